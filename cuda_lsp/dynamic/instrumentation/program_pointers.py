"""A kernel among a program's own, which keep addresses of functions in memory: theirs, not those of our copy.

In memory there are the program's addresses alone. Where our code takes the address of a function, or of a
table that holds some (a class's virtual ones), it takes the program's; so do variables that begin with some,
and tables themselves are the program's. A call through a pointer looks up which function of ours stands for
it, and calls that one. So what a checked kernel leaves behind means the same to kernels that run as they are,
and the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import evolve

from cuda_lsp.dynamic.ptx.functions import pointed_to
from cuda_lsp.dynamic.ptx.module import (
    Declaration,
    Instruction,
    PtxFunction,
    PtxModule,
    PtxVariable,
    Registers,
    Statement,
    Verbatim,
)

_TAKEN = re.compile(r"([A-Za-z_$][\w$]*)(?:\+(\d+))?")
_HELD = re.compile(
    r"generic\(\s*([A-Za-z_$][\w$]*)\s*\)(?:\+(\d+))?|(?<![\w.$])([A-Za-z_$][\w$]*)(?:\+(\d+))?"
)
_MEMORY = re.compile(r"\[\s*([A-Za-z_$][\w$]*)\s*(\+\s*\d+\s*)?\]")


def with_program_pointers(module: PtxModule, addresses: Mapping[str, int]) -> PtxModule:
    """``addresses``: in the program, of functions and of variables in global memory that hold some."""
    if not addresses:
        return module
    functions = {name: addresses[name] for name in sorted(pointed_to(module)) if name in addresses}
    tables = {name: at for name, at in addresses.items() if name in module.variables}
    if not functions and not tables:
        return module
    changed = _Changer(module, functions, tables)
    return evolve(module, items=tuple(map(changed.item, module.items)))


class _Changer:
    def __init__(self, module: PtxModule, functions: Mapping[str, int], tables: Mapping[str, int]) -> None:
        self.module, self.functions = module, functions
        self.addresses = {**functions, **tables}
        self.bases = {name: f"%clsp_table{k}" for k, name in enumerate(sorted(tables))}
        self.tables = tables

    def item(self, item: PtxFunction | PtxVariable | Verbatim) -> PtxFunction | PtxVariable | Verbatim:
        """A part of the module."""
        if isinstance(item, PtxFunction) and item.body is not None:
            return self.function(item)
        if isinstance(item, PtxVariable) and item.initialiser and item.name not in self.tables:
            head, equals, _ = item.text.partition("=")
            held = _HELD.sub(self._held, item.initialiser)
            return evolve(item, initialiser=held, text=f"{head}{equals} {held}")
        return item

    def _held(self, match: re.Match[str]) -> str:
        """A name among the first contents of a variable."""
        name, offset = (match[1], match[2]) if match[1] else (match[3], match[4])
        return f"{self.addresses[name] + int(offset or 0):#x}" if name in self.addresses else match[0]

    def function(self, function: PtxFunction) -> PtxFunction:
        """With all of its pointers as the program has them."""
        body = function.body or ()
        named = {m for i in function.instructions() for m, _ in _MEMORY.findall(i.operands)}
        bases = [name for name in self.bases if name in named]
        calls = sum(self._is_indirect(statement) for statement in body)
        self.calls = 0
        statements = [made for statement in body for made in self._statement(statement)]
        first = next((k for k, s in enumerate(body) if not isinstance(s, Registers | Declaration)), len(body))
        start = [Instruction("mov.u64", f"{self.bases[n]}, {self.tables[n]:#x}") for n in bases]
        registers = [self.bases[name] for name in bases] + [f"%clsp_called{k}" for k in range(calls)]
        declared = [_registers("b64", *registers)] if registers else []
        if calls:
            declared += [_registers("b64", "%clsp_ours"), _registers("pred", "%clsp_same")]
        return function.with_body((*declared, *statements[:first], *start, *statements[first:]))

    def _statement(self, statement: Statement) -> Iterator[Statement]:
        if not isinstance(statement, Instruction):
            yield statement
        elif self._is_indirect(statement):
            yield from self._call(statement)
        elif statement.base in ("mov", "cvta"):
            yield self._taking(statement)
        else:
            yield evolve(statement, operands=_MEMORY.sub(self._based, statement.operands))

    def _taking(self, code: Instruction) -> Instruction:
        """The program's address in the place of ours."""
        target, *sources = code.arguments
        taken = _TAKEN.fullmatch(sources[0]) if len(sources) == 1 else None
        if taken is None or taken[1] not in self.addresses:
            return code
        place = self.addresses[taken[1]] + int(taken[2] or 0)
        return evolve(code, opcode="mov.u64", operands=f"{target}, {place:#x}")

    def _based(self, match: re.Match[str]) -> str:
        base = self.bases.get(match[1])
        return f"[{base}{match[2] or ''}]" if base is not None else match[0]

    def _is_indirect(self, statement: Statement) -> bool:
        """Whether a call names no function."""
        return (
            isinstance(statement, Instruction)
            and statement.base == "call"
            and not any(part in self.module.functions for part in statement.arguments)
        )

    def _call(self, call: Instruction) -> Iterator[Statement]:
        """A call of our function that stands for the pointer; of what it names, where none does."""
        parts = list(call.arguments)
        at = next(k for k, part in enumerate(parts) if part.startswith("%"))
        pointer, called = parts[at], f"%clsp_called{self.calls}"
        self.calls += 1
        yield Instruction("mov.u64", f"{called}, {pointer}")
        for name, address in self.functions.items():
            yield Instruction("setp.eq.u64", f"%clsp_same, {pointer}, {address:#x}")
            yield Instruction("mov.u64", f"%clsp_ours, {name}")
            yield Instruction("selp.b64", f"{called}, %clsp_ours, {called}, %clsp_same")
        parts[at] = called
        yield evolve(call, operands=", ".join(parts))


def _registers(kind: str, *names: str) -> Registers:
    return Registers(kind, names, f".reg .{kind} {', '.join(names)};")
