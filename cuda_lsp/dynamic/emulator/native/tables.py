"""A program as the C engine reads it: blocks as tables of operations, lowered when it is worth while."""

from __future__ import annotations

import ast
import ctypes
from typing import Any

from attrs import define, field

from cuda_lsp.dynamic.emulator.native.instructions import Operation, PythonOnly, Shared
from cuda_lsp.dynamic.emulator.native.lowering import lowered
from cuda_lsp.dynamic.emulator.native.structures import Block, Op
from cuda_lsp.dynamic.emulator.program import Program

_KINDS = {"next": 0, "jump": 0, "branch": 1, "table": 2, "exit": 3}
_PYTHON = 4
_OFTEN = 2  # times that a block is met before it is worth lowering


@define(eq=False)
class Tables:
    """A program as the engine reads it. Blocks are lowered one by one, when they are met for the second
    time."""

    program: Program
    shared: Shared = field(init=False)
    blocks: Any = field(init=False)
    met: dict[int, int] = field(factory=dict[int, int])  # how often, by number of the block
    kept: list[Any] = field(factory=list[Any])

    def __attrs_post_init__(self) -> None:
        self.shared = Shared(self.program.constants, self.program.registers)
        self.blocks = (Block * max(1, len(self.program.blocks)))()
        for row in self.blocks:
            row.kind = _PYTHON

    def meet(self, number: int) -> bool:
        """A block is about to be executed in NumPy. Whether it is the engine's from now on."""
        times = self.met[number] = self.met.get(number, 0) + 1
        return times == _OFTEN and self._lowered(number)

    def meet_all(self) -> None:
        """Lower all blocks that are not yet."""
        for number in range(len(self.program.blocks)):
            if self.met.get(number, 0) < _OFTEN:
                self.met[number] = _OFTEN
                self._lowered(number)

    def _lowered(self, number: int) -> bool:
        block, row = self.program.blocks[number], self.blocks[number]
        kind = _KINDS.get(block.kind)
        if kind is None or block.wait is not None or block.barrier is not None:
            return False
        (function,) = ast.parse(block.source).body
        assert isinstance(function, ast.FunctionDef)
        try:
            found = lowered(function, self.shared)
        except PythonOnly:
            return False
        operations = (Op * max(1, len(found.operations)))(*map(_op, found.operations))
        targets = (ctypes.c_int32 * max(1, len(block.targets)))(*block.targets)
        self.kept += [operations, targets]
        row.condition, row.leads_back = found.condition, block.leads_back
        row.targets_count, row.ops_count = len(block.targets), len(found.operations)
        row.targets, row.ops = targets, operations
        row.kind = kind
        return True


def tables_of(program: Program) -> Tables:
    """Made once for each program."""
    if program.tables is None:
        program.tables = Tables(program)
    return program.tables


def _op(o: Operation) -> Op:
    a, b, c = (*o.given, -1, -1, -1)[:3]
    constant = o.constant & 0xFFFFFFFFFFFFFFFF
    return Op(
        o.code,
        o.result,
        a,
        b,
        c,
        o.number,
        o.size,
        len(o.parts),
        o.kind,
        (ctypes.c_int32 * 8)(*o.parts),
        constant,
    )
