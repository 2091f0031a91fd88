"""Several relocatable modules as one, as nvlink makes one program of their code.

What one module declares and another defines becomes one thing; of what each of them holds (templates, inline
functions) one copy stays. Functions and texts that a module keeps to itself get its number where another one
has the same name; variables do not, as the host knows them by theirs. Places keep their meaning: the numbers
of files, and of lines, which are those of tokens (``compilation/tokens.py``), go on where those of the module
before end. Source: PTX ISA 11.6 "Linking directives".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from cuda_lsp.dynamic.ptx.module import (
    Declaration,
    Instruction,
    Loc,
    PtxFunction,
    PtxModule,
    PtxVariable,
    Statement,
    Verbatim,
)
from cuda_lsp.dynamic.ptx.names import of_library

_NAME = re.compile(r"(?<![%.\w$])[A-Za-z_$][\w$]*")
_LOC = re.compile(r"(\.loc\s+|inlined_at\s+)(\d+)\s+(\d+)")
_STRING = re.compile(r"\$L__info_string\d+")
_SHARED_NAMES = ("visible", "extern", "weak", "common")

Item = PtxFunction | PtxVariable


class LinkError(Exception):
    """The modules do not fit together; the message names what does not."""


def linked(modules: Sequence[PtxModule], lines: Sequence[int]) -> PtxModule:
    """One module of all. ``lines``: how many each of them has. Raises LinkError."""
    parts = [_part(module, number, modules, lines) for number, module in enumerate(modules)]
    items = [item for part in parts for item in part.items if not isinstance(item, Verbatim)]
    chosen = _chosen(items)
    functions = [item for item in chosen.values() if isinstance(item, PtxFunction)]
    variables = [item for item in chosen.values() if isinstance(item, PtxVariable)]
    rest = [item for part in parts for item in part.items if isinstance(item, Verbatim)]
    files = {number: path for part in parts for number, path in part.files.items()}
    heads = (_forward(f) for f in functions if not f.entry and f.body is not None)
    bodies = [f for f in functions if f.body is not None or f.linkage == "extern"]
    declared = [f for f in bodies if f.body is None]
    defined = [f for f in bodies if f.body is not None]
    return PtxModule(
        max((m.version for m in modules), key=_version),
        modules[0].target,
        modules[0].address_size,
        (*declared, *heads, *_in_order(variables), *defined, *rest),
        files,
    )


def in_library(module: PtxModule, number: int) -> PtxModule:
    """The module of a shared library: kernels and variables that the host knows by name go by another one, as
    the program and its other libraries may have some of the same names."""
    own = (i.name for i in module.items if not isinstance(i, Verbatim) and _is_known(i))
    shift = _Shift(number, {name: of_library(name, number) for name in own}, 0, 0)
    return evolve(module, items=tuple(_item(item, shift) for item in module.items))


def _is_known(item: Item) -> bool:
    """Whether the host may know it."""
    if isinstance(item, PtxFunction):
        return item.entry
    return item.space in ("global", "const") and not item.name.startswith("$")


def undefined(module: PtxModule) -> frozenset[str]:
    """Functions that a module calls and does not hold."""
    return frozenset(name for name, f in module.functions.items() if f.body is None and not f.entry)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


# ------------------------------------------------------------------------------------- one module


@frozen
class _Shift:
    """What changes in a module: its names, and by how much the numbers of its files and lines."""

    number: int
    names: Mapping[str, str]
    files: int
    lines: int

    def text(self, text: str) -> str:
        """A piece of PTX."""
        if not self.names:
            return text
        return _NAME.sub(lambda match: self.names.get(match[0], match[0]), text)

    def place(self, text: str) -> str:
        """A ``.loc``, or a section of names that such lines refer to."""
        moved = _LOC.sub(lambda m: f"{m[1]}{int(m[2]) + self.files} {int(m[3]) + self.lines}", text)
        return _STRING.sub(lambda match: f"{match[0]}_{self.number}", moved)


def _part(module: PtxModule, number: int, modules: Sequence[PtxModule], lines: Sequence[int]) -> PtxModule:
    before = modules[:number]
    files = sum(max(m.files, default=0) for m in before)
    shift = _Shift(number, _renamed(module, number, modules), files, sum(lines[:number]))
    items = tuple(_item(item, shift) for item in module.items)
    return evolve(module, items=items, files={n + files: path for n, path in module.files.items()})


def _renamed(module: PtxModule, number: int, modules: Sequence[PtxModule]) -> Mapping[str, str]:
    """The names of its own that other modules have, too."""
    others = Counter(name for other in modules if other is not module for name in _names(other))
    own = {item.name for item in module.items if not isinstance(item, Verbatim) and _is_inner(item)}
    return {name: f"{name}$unit{number}" for name in own if others[name]}


def _names(module: PtxModule) -> set[str]:
    return {item.name for item in module.items if not isinstance(item, Verbatim)}


def _is_inner(item: Item) -> bool:
    """Whether nobody knows it but the module."""
    named = item.name.startswith("$") if isinstance(item, PtxVariable) else not item.entry
    return named and item.linkage not in _SHARED_NAMES


def _item(item: PtxFunction | PtxVariable | Verbatim, shift: _Shift) -> PtxFunction | PtxVariable | Verbatim:
    match item:
        case Verbatim(text):
            return Verbatim(shift.place(text))
        case PtxVariable():
            return _variable(item, shift)
        case PtxFunction():
            body = None if item.body is None else tuple(_statement(s, shift) for s in item.body)
            return evolve(item, name=shift.names.get(item.name, item.name), body=body)


def _variable(variable: PtxVariable, shift: _Shift) -> PtxVariable:
    started = variable.initialiser
    return evolve(
        variable,
        name=shift.names.get(variable.name, variable.name),
        initialiser=None if started is None else shift.text(started),
        text=shift.text(variable.text),
    )


def _statement(statement: Statement, shift: _Shift) -> Statement:
    match statement:
        case Instruction(operands=operands):
            return evolve(statement, operands=shift.text(operands))
        case Loc():
            return evolve(statement, text=shift.place(statement.text))
        case Declaration(variable):
            return Declaration(_variable(variable, shift))
        case _:
            return statement


# ------------------------------------------------------------------------------------ all of them


def _chosen(items: Sequence[Item]) -> dict[str, Item]:
    """One item of each name: its definition, where there is one. Raises LinkError."""
    chosen: dict[str, Item] = {}
    for item in items:
        known = chosen.get(item.name)
        if known is None or (_defines(item) and not _defines(known)):
            chosen[item.name] = item
        elif _defines(item) and item.linkage == known.linkage == "visible":
            raise LinkError(f"{item.name} is defined in several sources")
        elif _defines(item) and item.linkage == "visible":  # more than a weak one
            chosen[item.name] = item
    return chosen


def _defines(item: Item) -> bool:
    if isinstance(item, PtxFunction):
        return item.body is not None
    return item.linkage != "extern"


def _forward(function: PtxFunction) -> PtxFunction:
    return evolve(function, body=None, directives=())


def _in_order(variables: Sequence[PtxVariable]) -> Iterator[PtxVariable]:
    """Those that the first contents of others name come before these."""
    known = {variable.name: variable for variable in variables}
    done: set[str] = set()

    def visit(variable: PtxVariable) -> Iterator[PtxVariable]:
        if variable.name in done:
            return
        done.add(variable.name)
        for name in _NAME.findall(variable.initialiser or ""):
            if name in known:
                yield from visit(known[name])
        yield variable

    for variable in variables:
        yield from visit(variable)
