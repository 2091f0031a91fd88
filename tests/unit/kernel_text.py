"""A kernel program as text: for tests, for debugging, never parsed again."""

from __future__ import annotations

from collections.abc import Iterable

from cuda_lsp.ir.pretty import pretty
from cuda_lsp.ir.program import (
    Assign,
    Assume,
    Atomic,
    AwaitCopies,
    Barrier,
    BarrierPhase,
    Block,
    CommitCopies,
    Copy,
    Fence,
    If,
    Incomplete,
    Kernel,
    Leave,
    Load,
    Loop,
    Stmt,
    Store,
    Var,
    Within,
)


def kernel_text(kernel: Kernel) -> str:
    """The whole kernel: a head line, its arrays, its statements indented by structure."""
    parameters = ", ".join(f"{p.type} {p.name}" for p in kernel.params)
    lines = [f"kernel {kernel.name}({parameters})"]
    for array in kernel.arrays:
        extents = "".join(f"[{'' if n is None else n}]" for n in array.shape)
        dynamic = " dynamic" if array.dynamic else ""
        at = f" @{array.offset}" if array.offset is not None else ""
        lines.append(f"  {array.space.value} {array.element} {array.name}{extents}{at}{dynamic}")
    lines.extend(_lines(kernel.body, 1))
    return "\n".join(lines)


def _name(var: Var) -> str:
    return var.name or f"t{var.id}"


def _lines(statements: Iterable[Stmt], depth: int) -> list[str]:
    lines: list[str] = []
    for statement in statements:
        lines.extend(_statement(statement, depth))
    return lines


def _statement(s: Stmt, depth: int) -> list[str]:
    pad = "  " * depth
    if isinstance(s, If):
        lines = [f"{pad}if {pretty(s.condition, _name)}:", *_lines(s.then, depth + 1)]
        return [*lines, f"{pad}else:", *_lines(s.otherwise, depth + 1)] if s.otherwise else lines
    if isinstance(s, Block):
        return [f"{pad}block L{s.label}:", *_lines(s.body, depth + 1)]
    if isinstance(s, Loop):
        kind = "loop" if s.tests_first else "do-loop"
        lines = [f"{pad}{kind} L{s.label}/L{s.continue_label} while {pretty(s.condition, _name)}:"]
        for part, body in (("test", s.test), ("body", s.body), ("step", s.step)):
            if body:
                lines += [f"{pad} {part}:", *_lines(body, depth + 1)]
        return lines
    return [pad + _simple(s)]


def _simple(s: Stmt) -> str:
    if isinstance(s, Assign):
        return f"{_name(s.var)} = {pretty(s.value, _name)}"
    if isinstance(s, Load):
        flags = " volatile" * s.volatile + " readonly" * s.readonly + " part" * s.part
        target = _name(s.var) if s.var is not None else "_"
        return f"{target} = load {s.type} {pretty(s.pointer, _name)}{flags}"
    if isinstance(s, Store):
        return (
            f"store {s.type} {pretty(s.pointer, _name)} <- {pretty(s.value, _name)}{' volatile' * s.volatile}"
        )
    if isinstance(s, Atomic):
        target = f"{_name(s.var)} = " if s.var is not None else ""
        operands = ", ".join(pretty(o, _name) for o in s.operands)
        return f"{target}atomic {s.op.value} {s.type} {pretty(s.pointer, _name)} ({operands}) {s.scope.value}"
    if isinstance(s, Copy):
        how = f" async {s.mechanism}" if s.asynchronous else ""
        how += f" by {s.team.value}" if s.team is not None else ""
        to, source = pretty(s.destination, _name), pretty(s.source, _name)
        return f"copy {to} <- {source} size {pretty(s.size, _name)}{how}"
    if isinstance(s, CommitCopies):
        return "commit copies"
    if isinstance(s, AwaitCopies):
        return "await copies" if s.pending is None else f"await copies but {pretty(s.pending, _name)}"
    if isinstance(s, Barrier):
        return _barrier(s)
    if isinstance(s, Fence):
        return f"fence {s.scope.value}"
    if isinstance(s, Leave):
        return f"leave L{s.label}"
    if isinstance(s, Assume):
        return f"assume {pretty(s.condition, _name)}"
    if isinstance(s, Within):
        return f"within {s.name}: {pretty(s.index, _name)} of {s.extent}"
    if isinstance(s, Incomplete):
        return f"incomplete {s.construct!r}: {s.reason}"
    raise TypeError(type(s).__name__)


def _barrier(s: Barrier) -> str:
    more = "" if s.mask is None else f" mask {pretty(s.mask, _name)}"
    more += "" if s.size is None else f" size {s.size}"
    more += "" if s.id is None else f" id {pretty(s.id, _name)}"
    more += "" if s.count is None else f" count {pretty(s.count, _name)}"
    more += "" if s.object is None else f" at {pretty(s.object, _name)}"
    more += "" if s.parity is None else f" parity {pretty(s.parity, _name)}"
    more += "" if s.phase is BarrierPhase.SYNC else f" {s.phase.value}"
    return f"barrier {s.scope.value}{more}{' implied' if s.implied else ''}"
