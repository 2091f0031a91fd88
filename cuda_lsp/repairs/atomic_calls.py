"""CUDA's atomic functions as they are called in the place of an update, for the types that have them."""

from __future__ import annotations

import re

from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.updates import Update

_BY_OPERATOR = {
    "+": "atomicAdd", "-": "atomicAdd", "&": "atomicAnd", "|": "atomicOr", "^": "atomicXor",
    "=": "atomicExch",
}  # fmt: skip
_WORDS = frozenset({"int", "unsigned", "unsigned int", "unsigned long long", "uint", "int32_t", "uint32_t"})
_TYPES = {
    "Add": _WORDS | {"float", "double", "__half2", "half2", "__half", "half"},
    "Exch": _WORDS | {"float"},
    "Min": _WORDS | {"long long"},
    "Max": _WORDS | {"long long"},
}
"""What CUDA has each of these for, and the others for words."""
_EXTREME = re.compile(r"(min|max)\s*\((.*)\)\Z", re.DOTALL)
_COMPARED = re.compile(r"(.+?)(?<![<>-])(<|>)=?(?![<>=])(.+)", re.DOTALL)
_INSIDE = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_WORDS_BEFORE = re.compile(r"\b[A-Za-z_][\w\s]{0,200}\Z")
_LONGEST_TYPE = 200  # characters
_PREFIXES = ("__shared__", "extern", "static")


def atomic_call(update: Update) -> str | None:
    """``atomicAdd(&x, v)`` for ``x += v``, ``x = x + v`` and the like; None: it is something else."""
    target = update.target.strip()
    if update.operator:
        return call(update.operator, target, update.value)
    written = re.escape(target)
    left = re.match(rf"{written}\s*([-+&|^])(?!\1)\s*", update.value)
    if left:
        value = update.value[left.end() :]
        return call(left[1], target, value) if _is_one_operand(left[1], value) else None
    extreme = _EXTREME.match(update.value)
    if extreme:
        other = re.sub(rf"^\s*{written}\s*,|,\s*{written}\s*$", "", extreme[2], count=1)
        if other != extreme[2]:
            return _called(f"atomic{extreme[1].capitalize()}", target, other.strip())
    return None


def atomic_extreme(update: Update, condition: str) -> str | None:
    """``atomicMax(&x, v)`` for ``x = v`` under ``v > x``, ``Min`` under ``v < x``; None: another one."""
    compared = _COMPARED.fullmatch(condition)
    if compared is None:
        return None
    target, value = update.target.strip(), update.value
    sides = (compared[1].strip(), compared[3].strip())
    if sides == (value, target):
        greater = compared[2] == ">"
    elif sides == (target, value):
        greater = compared[2] == "<"
    else:
        return None
    return _called("atomicMax" if greater else "atomicMin", target, value)


def call(operator: str, target: str, value: str) -> str | None:
    """The call that does ``target operator= value``; of ``=`` an exchange whose result nobody takes."""
    function = _BY_OPERATOR.get(operator)
    if function is None:
        return None
    return _called(function, target, f"-({value})" if operator == "-" else value)


def _called(function: str, target: str, value: str) -> str | None:
    if not re.match(r"[*(]*[A-Za-z_]", target) or re.search(r"[\w\]]\s+\w", target):
        return None  # a declaration, or an expression
    place = target[1:].strip() if target.startswith("*") else f"&{target}"
    return f"{function}({place}, {value})"


def exists(source: Source, at: int, target: str, atomic: str) -> bool:
    """Whether CUDA has the operation for the type that the target is declared with, as this text has it."""
    name = re.match(r"[*(\s]*([A-Za-z_]\w*)\s*(?:\[|\)|\Z)", target)
    path = source.statements.path(at)
    if name is None or not path:
        return False
    begin = max(source.plain.rfind(mark, 0, path[0].start) for mark in ";}{") + 1
    text = " ".join(source.plain[begin:at].split())
    for found in re.finditer(rf"[\s*&]{name[1]}\s*[\[;,)=]", text):
        before = text[max(0, found.start() - _LONGEST_TYPE) : found.start()].rstrip("*& ")
        declared = _WORDS_BEFORE.search(before.removesuffix("__restrict__").rstrip("*& "))
        if declared is None:
            continue
        words = [word for word in declared[0].split() if word not in _PREFIXES]
        if words not in (["return"], ["else"]):
            of = atomic.removeprefix("atomic").partition("(")[0]
            return " ".join(words) in _TYPES.get(of, _WORDS)
    return False


def _is_one_operand(operator: str, value: str) -> bool:
    """Whether ``x operator value`` is ``x`` with all of the value: nothing in it binds less."""
    while (shorter := _INSIDE.sub("", value)) != value:
        value = shorter
    return re.search(r"[&|^?<>=!]" if operator == "+" else r"[-+&|^?<>=!]", value) is None
