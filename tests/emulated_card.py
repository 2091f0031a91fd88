"""A card for the GPU engine where there is none: the emulator executes the instrumented kernel.

The instrumented PTX, the detector and all that surrounds a launch are those of a real GPU; only what
``gpu_device.Device`` names is done here. The emulator's own checks are off, and an access outside all memory
fails the launch, as it does on a GPU.
"""

from __future__ import annotations

import re
import weakref
from functools import lru_cache
from typing import Any
from unittest.mock import MagicMock

import numpy as np
from attrs import define, evolve, field
from subroutines import with_subroutines

from cuda_lsp.dynamic.compilation.toolkit import Toolkit
from cuda_lsp.dynamic.emulator.engine import Launch
from cuda_lsp.dynamic.emulator.heap import Heap, Needs
from cuda_lsp.dynamic.emulator.memory import Memory
from cuda_lsp.dynamic.emulator.program import Program
from cuda_lsp.dynamic.emulator.translate import translate
from cuda_lsp.dynamic.gpu.device import Ended, GridTooLarge, Start
from cuda_lsp.dynamic.gpu.engine import GpuEngine
from cuda_lsp.dynamic.gpu.records import Records
from cuda_lsp.dynamic.ptx.module import Instruction, PtxFunction, PtxModule, Statement
from cuda_lsp.dynamic.ptx.reader import read_module
from cuda_lsp.dynamic.runs import KernelRun
from cuda_lsp.model import LaunchConfig

_MOST_BLOCKS = 1024  # that run at once


class CardError(Exception):
    """What a driver would say of a kernel that failed."""


@define(eq=False)
class Allocation:
    start: int

    def __int__(self) -> int:
        return self.start


class CardMemory(Heap):
    """A card holds one module at a time."""

    def redeclare(self, module: PtxModule) -> None:
        """Another module takes the place of all that were declared: its variables begin anew."""
        for region in self._variables.values():
            self.release(region.start)
        self._variables.clear()
        self.declare(module)


@define(eq=False, slots=False)
class EmulatedCard:
    """``backwards``: warps run in the opposite order. ``only``: the blocks that run; None: all."""

    backwards: bool = False
    only: tuple[int, ...] | None = None
    architecture: int = 90
    shared_limit: int = 227 * 1024
    multiprocessors: int = 132
    threads_at_once: int = 2048
    heap: CardMemory = field(factory=CardMemory)

    context: Any = field(factory=MagicMock)  # pushed and popped around a program's launches

    @property
    def name(self) -> str:
        return "emulated card"

    def allow(self, limit: int) -> None:
        """Its memory is its heap's."""

    def wait(self) -> None:
        """Nothing is ever under way."""

    @property
    def error(self) -> type[Exception]:
        return CardError

    def free_bytes(self) -> int:
        return self.heap.size - self.heap.used

    def allocate(self, size: int) -> Allocation:
        start = self.heap.allocate(size)
        if not start:
            raise CardError("out of memory")
        allocation = Allocation(start)
        weakref.finalize(allocation, self.heap.release, start)
        return allocation

    def clear(self, start: int, size: int) -> None:
        self.heap.clear(start, size)

    def upload(self, start: int, data: Records) -> None:
        given = np.frombuffer(data.tobytes(), np.uint8)
        self.heap.data[start : start + len(given)] = given

    def download(self, start: int, target: Records) -> None:
        size = target.nbytes
        target[:] = np.frombuffer(self.heap.data[start : start + size].tobytes(), target.dtype)

    def copy(self, target: int, source: int, size: int) -> None:
        self.heap.data[target : target + size] = self.heap.data[source : source + size].copy()

    def load(self, ptx: str, architecture: str, together: bool) -> EmulatedCode:
        return EmulatedCode(self, _read(ptx), ptx, together)


@define
class EmulatedCode:
    card: EmulatedCard
    module: PtxModule
    ptx: str
    together: bool = False

    def __attrs_post_init__(self) -> None:
        self.card.heap.redeclare(self.module)

    def variable(self, name: str) -> tuple[int, int] | None:
        region = self.card.heap.variable(name)
        return (region.start, region.size) if region is not None and name in self.module.variables else None

    def _most(self, start: Start) -> int:
        """Blocks that run at once, as far as the assembler was told of them and shared memory has room."""
        threads = start.block[0] * start.block[1] * start.block[2]
        told = re.search(r"\.minnctapersm (\d+)", self.ptx)
        sizes = (v.size for v in self.module.variables.values() if v.space == "shared")
        shared = (self.card.shared_limit + 1024) // (sum(sizes) + start.shared + 1024)
        each = min(int(told[1]) if told else 1, self.card.threads_at_once // threads, shared)
        return min(_MOST_BLOCKS, each * self.card.multiprocessors)

    def launch(self, start: Start) -> Ended:
        program = translated(self.ptx, start.entry)
        x, y, z = start.grid
        blocks = range(x * y * z) if self.card.only is None or program.grid_wide else self.card.only
        most = self._most(start) if self.together else _MOST_BLOCKS
        if len(blocks) > most:
            raise GridTooLarge("the blocks of this launch do not fit on the emulated card at once")
        config = LaunchConfig(start.block, start.grid, start.shared)
        request = KernelRun(
            "", start.entry, config, (), (), blocks=tuple(blocks), races=False, deadline=start.deadline
        )

        def lay(program: Program, request: KernelRun, count: int) -> Memory:
            variables = tuple(program.kernel.variables.values())
            return self.card.heap.memory(
                Needs(start.packed(), variables, program.module, count, config.threads, start.shared, {})
            )

        launch = Launch(program, request, self.card.backwards, lay, len(blocks))
        outcome = launch.outcome()
        if (fault := next(iter(launch.services.faults.values()), None)) is not None:
            code = program.kernel.instructions[fault.number].code
            raise CardError(f"illegal address {fault.address:#x}: {code.opcode} {code.operands}")
        if outcome.failure is not None and ("stuck" in outcome.failure or "deadline" in outcome.failure):
            place, size = start.rescue
            return Ended(None, outcome.output, self.card.heap.data[place : place + size].tobytes())
        if outcome.failure is not None:
            raise CardError(outcome.failure)
        return Ended(0.001, outcome.output)


@lru_cache(8)
def translated(ptx: str, entry: str) -> Program:
    """The instrumented module for the emulator."""
    program = translate(with_subroutines(_patient(_read(ptx)), entry), entry)
    # Without what follows locks only the detector itself waits, for moments: its calls, which lead back in
    # the text here, must not be taken for a loop that waits.
    program.polls = program.polls and "clsp_thread_fenced" in ptx
    return program


@lru_cache(8)
def _read(ptx: str) -> PtxModule:
    return read_module(ptx)


_STRONG = {"volatile", "relaxed", "acquire", "acq_rel", "atom"}


def _patient(module: PtxModule) -> PtxModule:
    """Threads that look at what others may change let those go first: they may wait for it in a loop."""
    changed: dict[str, PtxFunction] = {}
    for name, function in module.functions.items():
        body: list[Statement] = []
        for statement in function.body or ():
            body.append(statement)
            if not isinstance(statement, Instruction):
                continue
            strong = statement.guard == "%clsp_ok" and _STRONG & set(statement.modifiers)
            if strong or "cas" in statement.modifiers:  # the detector has a lock of its own
                body.append(Instruction("nanosleep.u32", "0"))
        changed[name] = function if function.body is None else function.with_body(tuple(body))
    items = (changed.get(i.name, i) if isinstance(i, PtxFunction) and i.body else i for i in module.items)
    return evolve(module, items=tuple(items))


def emulated_engine(toolkit: Toolkit, backwards: bool = False) -> GpuEngine:
    """The GPU engine on an emulated card."""
    return GpuEngine(EmulatedCard(backwards), toolkit)
