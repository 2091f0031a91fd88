"""What a stretch of host code that is not understood may have changed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cuda_lsp.frontend.host.pieces.machine import Machine
from cuda_lsp.frontend.host.pieces.nodes import Type
from cuda_lsp.frontend.host.pieces.values import (
    Address,
    Cell,
    Lambda,
    Object,
    Place,
)

_WORD = re.compile(r"[A-Za-z_]\w*")
WRITES = re.compile(r"(?<![=!<>])=(?!=)|\+\+|--|<<=|>>=|&\s?\w")
_TARGET = re.compile(
    r"(?P<declared>(?:\*|\bauto)\s?)?(?<![\w.])(?<!->)(?P<name>[A-Za-z_]\w*)(?:\s?(?:\.|->)\s?\w+){0,8}\s?"
    r"(?:\[[^\[\]]{0,80}\]\s?)?=(?!=)"
)


def forgotten(m: Machine, place: int, end: int) -> list[Cell]:
    """Whatever a stretch of text names may have changed, and what functions that it names may name."""
    text = m.frame.unit.text.plain[place:end]
    words, writes = dict.fromkeys(_WORD.findall(text)), WRITES.search(text) is not None
    for word in [*words]:
        inner = _named_by(m, word)
        writes = writes or bool(inner)
        words |= inner
    known = {word: cell for word in words if (cell := m.lookup(word)) is not None}
    found = [c for c in known.values() if writes or isinstance(c.value, Object | Address)]
    if m.frame.this is not None and "(" in text:
        found.append(m.frame.this)
    roots = m.roots_of(known.values())
    for cell in found:
        m.forget(cell)
    new = {word: m.declare_unknown(word) for word in words if word not in known}
    if len(roots) == 1:
        _led_into(m, text, {**known, **new}, roots.pop())
    return found


def _led_into(m: Machine, text: str, cells: Mapping[str, Cell], root: str) -> None:
    """Pointers that are given places by what names one buffer alone are in it, however far."""
    for match in _TARGET.finditer(text):
        cell = cells.get(match["name"])
        held = cell.value if cell is not None else None
        elements = held.fields.values() if isinstance(held, Object) else ()
        if isinstance(held, Object):
            held.root = root
        for one in (cell, *elements) if cell is not None else ():
            if isinstance(one.value, Object):
                continue
            pointer = (one.type is not None and one.type.pointers) or (one is cell and match["declared"])
            if pointer or isinstance(one.value, Place):
                star = Type("unknown__") if (match["declared"] or "").startswith("*") else None
                type_ = one.type.pointee if one.type is not None and one.type.pointers else star
                m.put(one, Place(m.fresh("somewhere"), {}, root, type_))


def _named_by(m: Machine, word: str) -> dict[str, None]:
    """The words of a function, or of a lambda."""
    found: dict[str, None] = {}
    for unit in m.units:
        for function in unit.functions.named(word):
            found |= dict.fromkeys(_WORD.findall(unit.text.plain[function.body : function.end]))
    cell = m.lookup(word)
    if cell is not None and isinstance(cell.value, Lambda):
        text = m.frame.unit.text
        found |= dict.fromkeys(
            _WORD.findall(text.plain[cell.value.body : text.braces.end(cell.value.body + 1)])
        )
    return found
