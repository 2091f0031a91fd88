"""Generated CUDA kernels: the static analysis and the emulator name the same racing lines and wavefronts.

The one reads the source with libclang and reasons about it; the other executes what nvcc made of it. They
share no code but the bank rule. Kernels are compiled in batches; ``CUDA_LSP_EXAMPLES`` sets how many.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.config import PATIENT
from cuda_lsp.dynamic.compilation.compile import CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
from cuda_lsp.dynamic.runs import Argument, Buffer, KernelRun, Level
from cuda_lsp.model import Code, KernelReport, LaunchConfig, Status, Verdict
from cuda_lsp.static.analyze import check_text

pytestmark = needs_nvcc
PER_FILE = 40
FILES = max(1, int(os.environ.get("CUDA_LSP_EXAMPLES", "40")) // PER_FILE)
BLOCK, GRID = (32, 2, 1), (2, 1, 1)
Lines = set[tuple[int, int]]


class Writer:
    """One random kernel, a statement a line, so that lines name accesses."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.chance = chance
        self.names = ["x", "y", "t", "b"]
        self.lines = [
            "// cuda-lsp: launch block=(32,2,1) grid=(2,1,1)",
            f"__global__ void {name}(int* g) {{",
            "  __shared__ int s[256];",
            "  int x = threadIdx.x, y = threadIdx.y, t = y * 32 + x, b = blockIdx.x;",
        ]
        self.statements(2, True)
        self.lines.append("}")

    def index(self, depth: int = 2) -> str:
        pick = self.chance.choice
        if depth == 0 or self.chance.random() < 0.3:
            return pick([*self.names, str(self.chance.randrange(8)), "t", "t"])
        a, b = self.index(depth - 1), self.index(depth - 1)
        c = self.chance.randrange(1, 5)
        return pick(
            [f"({a} + {b})", f"({a} * {c})", f"({a} / {c})", f"({a} % {4 * c})", f"({a} ^ {c})", f"({a} & 7)"]
        )

    def place(self) -> str:
        return f"{'s' if self.chance.random() < 0.7 else 'g'}[({self.index()}) & 127]"

    def condition(self) -> str:
        a = self.index(1)
        return self.chance.choice(
            [f"{a} < {self.chance.randrange(40)}", f"{a} % 2 == 0", f"{a} == {self.index(0)}"]
        )

    def statements(self, depth: int, uniform: bool) -> None:
        for _ in range(self.chance.randrange(2, 5)):
            kind = self.chance.choice(["store", "store", "load", "atomic", "sync", "warp", "if", "for"])
            if kind == "store":
                self.lines.append(f"  {self.place()} = {self.index()};")
            elif kind == "load":
                self.lines.append("  {")
                self.lines.append(f"    int unused = {self.place()};")
                self.lines.append('    asm volatile("" :: "r"(unused));')
                self.lines.append("  }")
            elif kind == "atomic":
                self.lines.append(f"  atomicAdd(&{self.place()}, 1);")
            elif kind == "sync" and uniform:
                self.lines.append("  __syncthreads();")
            elif kind == "warp" and uniform:
                self.lines.append("  __syncwarp();")
            elif kind == "if" and depth:
                self.lines.append(f"  if ({self.condition()}) {{")
                self.statements(depth - 1, False)
                self.lines.append("  }")
            elif kind == "for" and depth:
                name = f"k{len(self.lines)}"
                self.lines.append(
                    f"  for (int {name} = 0; {name} < {self.chance.randrange(1, 4)}; ++{name}) {{"
                )
                self.names.append(name)
                self.statements(depth - 1, uniform)
                self.names.remove(name)
                self.lines.append("  }")


def certain(kernel: KernelReport) -> Lines:
    found: Lines = set()
    for f in kernel.findings:
        if f.kind and f.status is Status.PROVED:
            a, b = sorted((f.site.range.start.line, f.related[0].site.range.start.line))
            found.add((a, b))
    return found


def ways(kernel: KernelReport) -> dict[int, int]:
    found: dict[int, int] = {}
    for f in kernel.findings:
        if f.code is Code.BANK_CONFLICT and f.bank and f.status is Status.PROVED:
            line = f.site.range.start.line
            found[line] = max(found.get(line, 0), f.bank.wavefronts)
    return found


@pytest.mark.parametrize("seed", range(FILES))
def test_the_static_analysis_and_the_emulator_name_the_same_lines(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    writers = [Writer(f"k{k}", chance) for k in range(PER_FILE)]
    text = "\n".join("\n".join(w.lines) for w in writers) + "\n"
    path = tmp_path / "generated.cu"
    path.write_text(text)
    report = check_text(path, text, PATIENT)
    assert report.errors == ()
    module = compile_module(path, text, CompileOptions(), Level.O0, find_toolkit(), tmp_path / "cache")
    engine = EmulatorEngine()
    rows = text.splitlines()
    for kernel in report.kernels:
        (entry,) = module.entries_of(kernel.range, kernel.name)
        sites = sites_of(module, entry)
        memory = Buffer("g", np.zeros(1 << 16, np.uint8))
        run = KernelRun(
            module.ptx, entry, LaunchConfig(BLOCK, GRID, 0), (Argument("g", bytes(8), ((0, memory),)),),
            sites, banks=True,
        )  # fmt: skip
        outcome = engine.run(run, lambda stage: None)
        assert outcome.failure is None
        seen: Lines = set()
        for race in outcome.races:
            ends = [sites[k].site for k in race.sites]
            a, b = sorted(e.range.start.line for e in ends if e is not None)
            seen.add((a, b))
        listing = "\n".join(rows[kernel.range.start.line - 1 : kernel.range.end.line])
        said = f"from line {kernel.range.start.line}\n{listing}\n{kernel.verdict} {kernel.reasons}"
        assert certain(kernel) <= seen, f"static only: {certain(kernel) - seen} {said}"
        if kernel.verdict is not Verdict.UNDECIDED and not kernel.reasons:
            assert seen == certain(kernel), f"emulator only: {seen - certain(kernel)} {said}"
        costs: dict[int, int] = {}
        for banks in outcome.banks:
            site = sites[banks.site].site
            if site is not None and banks.worst_wavefronts > banks.worst_ideal:
                line = site.range.start.line
                costs[line] = max(costs.get(line, 0), banks.worst_wavefronts)
        atomic = {s.site.range.start.line for s in sites if s.site and "atom" in s.opcode}
        executed = {k: v for k, v in ways(kernel).items() if k not in atomic}
        assert executed == {k: v for k, v in costs.items() if k not in atomic}, said
