"""The device code of a program's sources, built for the check: without optimisation, and optimised."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from attrs import evolve, frozen

from cuda_lsp.dynamic.compilation.compile import RELOCATABLE, CompiledModule, compile_module
from cuda_lsp.dynamic.compilation.linking import link_modules, of_library
from cuda_lsp.dynamic.compilation.toolkit import Toolkit
from cuda_lsp.dynamic.programs.job import Unit
from cuda_lsp.dynamic.runs import Level
from cuda_lsp.files import read_text

Pair = tuple[CompiledModule, CompiledModule]


@frozen
class DeviceCompiler:
    """What makes both builds of a source. ``arch``: ``sm_90``; ``end``: monotonic."""

    arch: str
    toolkit: Toolkit
    cache: Path
    end: float

    def start(self, pool: ThreadPoolExecutor, unit: Unit, text: str | None = None) -> PendingUnit:
        """Compile in the threads of a pool. ``text``: of the source, where it is not saved yet."""
        levels = (Level.O0, Level.O3)
        return PendingUnit(unit, tuple(pool.submit(self._compiled, unit, level, text) for level in levels))

    def _compiled(self, unit: Unit, level: Level, text: str | None) -> CompiledModule:
        extra = (*unit.options.extra, *((RELOCATABLE,) if unit.relocatable else ()))
        options, left = evolve(unit.options, arch=self.arch, extra=extra), self.end - time.monotonic()
        known = read_text(unit.path) if text is None else text
        return compile_module(unit.path, known, options, level, self.toolkit, self.cache, seconds=left)


@frozen
class PendingUnit:
    """A source that is being compiled."""

    unit: Unit
    builds: tuple[Future[CompiledModule], ...]

    def pair(self) -> Pair:
        """Both builds. Raises what ``compile_module`` raises."""
        plain, optimised = (build.result() for build in self.builds)
        return plain, optimised


@frozen
class DeviceCode:
    """Both builds of one source, or of several that are linked with one another."""

    units: tuple[Unit, ...]
    pair: Pair


def linked(pending: Sequence[PendingUnit]) -> tuple[DeviceCode, ...]:
    """The device code of sources; the program and each of its libraries have their own."""
    done = [(one.unit, one.pair()) for one in pending]
    numbers = dict.fromkeys(unit.library for unit, _ in done)
    return tuple(code for n in numbers for code in _of_binary(n, [b for b in done if b[0].library == n]))


def _of_binary(number: int, builds: Sequence[tuple[Unit, Pair]]) -> Iterator[DeviceCode]:
    found: list[tuple[tuple[Unit, ...], Pair]] = [
        ((unit,), pair) for unit, pair in builds if not unit.relocatable
    ]
    if together := [(unit, pair) for unit, pair in builds if unit.relocatable]:
        pairs = [pair for _, pair in together]
        pair = link_modules([p for p, _ in pairs]), link_modules([o for _, o in pairs])
        found.append((tuple(unit for unit, _ in together), pair))
    for units, (plain, optimised) in found:
        yield DeviceCode(units, (of_library(plain, number), of_library(optimised, number)))
