"""A flattened kernel as basic blocks, each a generated Python function over all threads.

Blocks end at jumps, barriers and exits, and begin at labels and at instructions for which lanes of a warp
wait for one another. Translation happens once per kernel; a launch only supplies memory and registers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np

from cuda_lsp.dynamic.emulator import arithmetic, floats, integers, masks, memory_ops, rounding, warp_ops
from cuda_lsp.dynamic.emulator.emitter import Emitter, stored_name
from cuda_lsp.dynamic.emulator.program import BarrierOp, Block, Program, Wait
from cuda_lsp.dynamic.ptx.flatten import (
    FlatInstruction,
    FlatKernel,
    UnknownInstruction,
    Untranslatable,
    flatten,
)
from cuda_lsp.dynamic.ptx.functions import POLLS, meets_in_grid
from cuda_lsp.dynamic.ptx.module import Instruction, PtxModule
from cuda_lsp.dynamic.ptx.opcodes import Role, meets_lanes, results_of, row_of
from cuda_lsp.dynamic.ptx.operands import IntegerOperand, RegisterOperand, parse_operand


def _without_number(emit: arithmetic.Emit) -> memory_ops.Emit:
    """Of an instruction that asks the machine for nothing: it need not say which one it is."""
    return lambda e, code, number: emit(e, code)


SEMANTICS: Mapping[str, memory_ops.Emit] = {
    **{base: _without_number(emit) for base, emit in arithmetic.TABLE.items()},
    **memory_ops.TABLE, **warp_ops.TABLE,
}  # fmt: skip
"""What an instruction computes, by the first word of its opcode; what the rest is, its row tells."""

_WHOLE_WARP = 0xFFFFFFFF
_REGISTER = re.compile(r"%[\w$.]+")
_JUMPS = (Role.JUMP, Role.LEAVE)
_ENDS = (*_JUMPS, Role.WARP_BARRIER)  # lanes may leave one from elsewhere: nothing else is in its block


def translate(module: PtxModule, entry: str) -> Program:
    """Raises Untranslatable, with every opcode that is not known, and KeyError for an unknown entry."""
    kernel = flatten(module, entry)
    starts = _starts(kernel)
    ends = [*starts[1:], len(kernel.instructions)][: len(starts)]  # of a kernel without code: none
    pieces = [kernel.instructions[a:b] for a, b in zip(starts, ends, strict=True)]
    numbers = _outliving(kernel, pieces)
    at = {start: k for k, start in enumerate(starts)}
    constants = _globals(kernel)
    program = Program(kernel, module, [], [stored_name(kernel.registers[r]) for r in numbers], numbers)
    program.sites = [(flat.function, flat.index, flat.calls) for flat in kernel.instructions]
    program.grid_wide = meets_in_grid(flat.code for flat in kernel.instructions)
    program.polls = any(POLLS & set(flat.code.modifiers) for flat in kernel.instructions)
    program.fetches = any(flat.code.base == "tex" for flat in kernel.instructions)
    sources: list[str] = []
    shapes: list[tuple[str, tuple[int, ...], Wait | None, BarrierOp | None, int]] = []
    unknown: dict[str, Untranslatable] = {}
    for k, (start, piece) in enumerate(zip(starts, pieces, strict=True)):
        try:
            source, shape = _block(kernel, numbers, constants, piece, start, k, at)
            sources.append(source)
            shapes.append(shape)
        except Untranslatable as problem:
            unknown[str(problem)] = problem
    if unknown:
        raise Untranslatable(", ".join(unknown), chain.from_iterable(p.opcodes for p in unknown.values()))
    program.blocks = [
        Block(kind, targets, wait, barrier, last, min(targets, default=k + 1) <= k, text, f"b{k}", constants)
        for k, ((kind, targets, wait, barrier, last), text) in enumerate(zip(shapes, sources, strict=True))
    ]
    program.constants = constants
    return program


def _globals(kernel: FlatKernel) -> dict[str, Any]:
    names: dict[str, Any] = {"np": np, "value_bf16": floats.from_bf16}
    for module in (integers, floats, rounding, masks):
        names |= {n: v for n, v in vars(module).items() if callable(v) and not n.startswith("_")}
    for kind in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "b1"):
        names[f"d_{kind}"] = np.dtype(kind)
        names[f"z_{kind}"] = np.dtype(kind).type(0)
    return names


def _starts(kernel: FlatKernel) -> list[int]:
    """Where blocks begin."""
    starts = {0, *kernel.labels.values()}
    for k, flat in enumerate(kernel.instructions):
        row, barrier = row_of(flat.code), _is_barrier(flat.code)
        if barrier or meets_lanes(flat.code):
            starts.add(k)
        if barrier or row.role in _ENDS:
            starts.add(k + 1)
    return sorted(s for s in starts if s < len(kernel.instructions))


def _is_barrier(code: Instruction) -> bool:
    return row_of(code).role in (Role.BARRIER, Role.CLUSTER)


def _mentioned(code: Instruction) -> tuple[set[str], set[str]]:
    """Register names that are read and written."""
    results = results_of(code)
    reads = set(_REGISTER.findall(" ".join(code.arguments[len(results) :])))
    if row_of(code).role is Role.CALL:
        reads = set(_REGISTER.findall(code.operands))
        writes = {f"%{name.strip('() ')}.0" for name in results}
    else:
        writes = set(_REGISTER.findall(" ".join(results)))
    if code.guard:
        reads |= {code.guard.lstrip("!")} | writes
    return reads, writes


def _outliving(kernel: FlatKernel, pieces: list[list[FlatInstruction]]) -> dict[str, int]:
    """Registers whose value some block takes from another execution → number."""
    home: dict[str, int] = {}
    shared: dict[str, None] = {}
    for k, piece in enumerate(pieces):
        defined: set[str] = set()
        for flat in piece:
            reads, writes = _mentioned(flat.code)
            for name in reads | writes:
                if name in kernel.registers and home.setdefault(name, k) != k:
                    shared[name] = None
            for name in reads - defined:
                if name in kernel.registers:
                    shared[name] = None
            defined |= writes
            if meets_lanes(flat.code) or _is_barrier(flat.code):
                shared |= dict.fromkeys(n for n in reads | writes if n in kernel.registers)
    if "%cc" in kernel.registers:  # not among the operands
        shared["%cc"] = None
    return {name: number for number, name in enumerate(shared)}


def _block(
    kernel: FlatKernel,
    numbers: Mapping[str, int],
    constants: dict[str, Any],
    piece: list[FlatInstruction],
    start: int,
    number: int,
    at: Mapping[int, int],
) -> tuple[str, tuple[str, tuple[int, ...], Wait | None, BarrierOp | None, int]]:
    e = Emitter(kernel, numbers, constants)
    wait: Wait | None = None
    barrier: BarrierOp | None = None
    kind, targets, result = "next", (number + 1,), "None"
    for offset, flat in enumerate(piece):
        code, row = flat.code, row_of(flat.code)
        if meets_lanes(code):
            wait = _wait(code, numbers)
        e.under(flat)
        if row.role in _JUMPS:
            kind, targets, result = _jump(kernel, e, code, number, at)
        elif _is_barrier(code):
            kind, barrier = "barrier", _barrier(code, numbers)
            result = e.guard or "None"
        elif row.role is not Role.WARP_BARRIER:  # that is the wait itself
            _emit(e, code, start + offset)
    body = [*e.finish(), f"return {result}"]
    text = f"def b{number}(S, R, m):\n" + "\n".join(f"    {line}" for line in body)
    return text, (kind, targets, wait, barrier, start + len(piece) - 1)


def _emit(e: Emitter, code: Instruction, number: int) -> None:
    if not row_of(code).executed:
        raise UnknownInstruction(code.opcode)
    SEMANTICS[code.base](e, code, number)


def _jump(
    kernel: FlatKernel, e: Emitter, code: Instruction, number: int, at: Mapping[int, int]
) -> tuple[str, tuple[int, ...], str]:
    if row_of(code).role is Role.LEAVE:
        return "exit", (number + 1,), e.guard or "None"

    def target(name: str) -> int:
        return at.get(kernel.labels[name], len(at))

    if code.base == "brx":
        table = tuple(target(t) for t in kernel.targets[code.arguments[1]])
        return "table", table, e.read(code.arguments[0], "u32")
    there = target(code.operands.strip())
    return ("branch", (there, number + 1), e.guard) if e.guard else ("jump", (there,), "None")


def _wait(code: Instruction, numbers: Mapping[str, int]) -> Wait:
    row = row_of(code)
    if row.role in (Role.PRODUCT, Role.MATRIX):
        return Wait(_WHOLE_WARP)
    operand, anywhere = parse_operand(code.arguments[-1]), row.role is Role.WARP_BARRIER
    if isinstance(operand, IntegerOperand):
        return Wait(operand.value & _WHOLE_WARP, anywhere=anywhere)
    assert isinstance(operand, RegisterOperand)
    return Wait(None, numbers[operand.name], anywhere)


def _barrier(code: Instruction, numbers: Mapping[str, int]) -> BarrierOp:
    words, arguments = code.modifiers, list(code.arguments)
    if "cluster" in words:
        return BarrierOp(0, None, "arrive" in words, cluster=True, relaxed="relaxed" in words)
    if "red" in words:
        reduce = next(w for w in words if w in ("popc", "and", "or"))
        count = arguments[2] if len(arguments) > 3 else None
        return BarrierOp(_value(arguments[1]), _value(count), False, reduce, arguments[-1], arguments[0])
    count = arguments[1] if len(arguments) > 1 else None
    return BarrierOp(_value(arguments[0]) if arguments else 0, _value(count), "arrive" in words)


def _value(text: str | None) -> Any:
    if text is None:
        return None
    operand = parse_operand(text)
    return operand.value if isinstance(operand, IntegerOperand) else text
