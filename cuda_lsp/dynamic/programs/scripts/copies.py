"""Shared libraries of a Python program, made anew for a check without a GPU, for there they cannot work."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from attrs import define, evolve, field, frozen

from cuda_lsp.dynamic.programs.build import build_libraries
from cuda_lsp.dynamic.programs.device_code import Pair
from cuda_lsp.dynamic.programs.job import Library, ProgramJob
from cuda_lsp.dynamic.programs.scripts.builds import Builds
from cuda_lsp.dynamic.programs.scripts.extensions import Extensions


@frozen
class Copy:
    """A library that was made anew: its number in this run, and both builds of its device code."""

    number: int
    path: Path
    modules: tuple[Pair, ...]


@define
class Copies:
    """Made when they are asked for first. ``job``: the program's."""

    job: ProgramJob
    builds: Builds
    extensions: Extensions
    _known: dict[Path, tuple[Copy, ...]] = field(factory=dict[Path, tuple[Copy, ...]])
    _numbers: dict[Library, int] = field(factory=dict[Library, int])

    def of(self, library: Path) -> tuple[Copy, ...]:
        """What is opened in the place of a library, which comes last, behind those that it is linked with;
        nothing, when it stays as it is. Raises CompileError, Interrupted, OSError.
        """
        made_of = self.extensions.made_of(library)
        if made_of is None:
            return ()
        if library not in self._known:
            self.builds.told(f"building {library.name}")
            job = evolve(
                self.job, interpreter="", built=made_of.units, libraries=made_of.libraries, link=(), needs=()
            )
            paths = build_libraries(job, self.builds.toolkit, self.builds.end)
            self._known[library] = tuple(self._copies(job, paths))
        return self._known[library]

    def _copies(self, job: ProgramJob, paths: Sequence[Path]) -> list[Copy]:
        numbers = [self._numbers.setdefault(one, len(self._numbers) + 1) for one in job.libraries]
        units = [evolve(unit, library=numbers[unit.library - 1]) for unit in job.units if unit.device]
        found = {
            number: self.builds.of_units(tuple(own))
            for number, own in groupby(units, lambda unit: unit.library)
        }
        return [Copy(n, path, found.get(n, ())) for n, path in zip(numbers, paths, strict=True)]
