"""Two kernels whose blocks run variants, ``correct`` ones and ``broken`` ones, for every dynamic engine.

The lines of a broken variant that race carry the same number in ``//1``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from attrs import frozen

from cuda_lsp.dynamic.compilation.compile import CompiledModule, CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.runs import Argument, Buffer, KernelRun, Level, RunOutcome
from cuda_lsp.model import LaunchConfig

Pairs = dict[str, set[tuple[int, int]]]


@frozen
class Handovers:
    """``source`` holds the kernels ``correct`` and ``broken``; ``broken`` comes last.

    ``chosen``: how a kernel asks for the ``{}``-th of its variants. ``together``: blocks of one variant,
    which have ``words`` of memory. ``deadline``: seconds of a run.
    """

    source: str
    correct: Mapping[str, str]
    broken: Mapping[str, str]
    chosen: str
    together: int
    words: int
    deadline: float

    def labelled_pairs(self) -> Pairs:
        """By variant: the pairs of lines (from 1) of the source that carry the same number."""
        lines = self.source[: self.source.index("__global__ void broken")].count("\n")
        expected: Pairs = {}
        text = self.source.splitlines()
        for number, (name, body) in enumerate(self.broken.items()):
            start = next(i for i in range(lines, len(text)) if f"{self.chosen.format(number)})" in text[i])
            marked: dict[str, list[int]] = {}
            for i in range(start, start + body.count("\n") + 1):
                for mark in re.findall(r"//(\d)", text[i]):
                    marked.setdefault(mark, []).append(i + 1)
            expected[name] = {(a, b) for a, b in marked.values()}
        return expected

    def compiled(self, folder: Path) -> CompiledModule:
        path = folder / "kernels.cu"
        path.write_text(self.source)
        options = CompileOptions(extra=("-arch=sm_90",))
        return compile_module(path, self.source, options, Level.O0, find_toolkit(), folder / "cache")

    def run_of(self, module: CompiledModule, entry: str) -> KernelRun:
        count = len(self._variants(entry))
        memory = np.zeros(4 * self.words * count, np.uint8)
        out = Argument("out", bytes(8), ((0, Buffer("out", memory, 4)),))
        launch = LaunchConfig((64, 1, 1), (self.together * count, 1, 1), 0)
        sites = sites_of(module, entry)
        return KernelRun(module.ptx, entry, launch, (out,), sites, deadline=self.deadline)

    def pairs_of(self, run: KernelRun, outcome: RunOutcome) -> Pairs:
        """The pairs of lines that raced, by variant. All are within one."""
        names = list(self._variants(run.entry))
        pairs: Pairs = {}
        for race in outcome.races:
            assert race.blocks[0] // self.together == race.blocks[1] // self.together
            a, b = sorted(line_of(run, site) for site in race.sites)
            pairs.setdefault(names[race.blocks[0] // self.together], set()).add((a, b))
        return pairs

    def _variants(self, entry: str) -> Mapping[str, str]:
        return self.correct if entry == "correct" else self.broken


def line_of(run: KernelRun, number: int) -> int:
    site = run.sites[number].site
    assert site is not None
    return site.range.start.line
