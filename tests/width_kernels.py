"""Atomics of several widths on one word. Used on every dynamic engine."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from cuda_lsp.dynamic.compilation.compile import CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.runs import Argument, Buffer, KernelRun, Level, RunOutcome
from cuda_lsp.model import LaunchConfig

# Blocks 2 k and 2 k + 1 run variant k. ``g``, ``s``: 8 words of 64 bits in their global, in shared memory.
VARIANTS = {
    "add_of_64_and_32_bits": """
        if (t < 32) atomicAdd(g, 1ull);  //1
        else atomicAdd((unsigned*)g + 1, 1u);  //1""",
    "between_blocks": """
        if (b == 0 && t == 0) atomicAdd(g, 1ull);  //1
        if (b == 1 && t == 0) atomicAdd((unsigned*)g, 1u);  //1""",
    "cas_of_16_bits_in_a_word": """
        if (t % 32 == 0 && b == 0) atomicCAS((unsigned short*)g + 1 + 2 * (t / 32), 0, 1);  //1
        if (t % 32 == 0 && b == 1) atomicAdd((unsigned*)g + t / 32, 1u);  //1""",
    "another_half": """
        if (b == 0) atomicCAS((unsigned short*)g + 1, 0, 1);
        if (b == 1) atomicCAS((unsigned short*)g, 0, 1);""",
    "one_width_each": """
        atomicAdd(g, 1ull);
        atomicAdd((unsigned*)(g + 1), 1u);""",
    "own_word": """
        if (t < 4) {
            atomicAdd(g + 4 * b + t, 1ull);
            atomicAdd((unsigned*)(g + 4 * b + t), 1u);
        }""",
    "shared": """
        if (t == 0) atomicAdd(s, 1ull);  //1
        if (t == 32) atomicAdd((unsigned*)s, 1u);  //1""",
    "shared_one_after_another": """
        atomicAdd(s, 1ull);
        __syncthreads();
        atomicAdd((unsigned*)s, 1u);""",
    "shared_of_one_warp": """
        if (t == 1) atomicAdd(s, 1ull);  //1
        if (t == 2) atomicAdd((unsigned*)s + 1, 1u);  //1""",
    "shared_in_16_bits": """
        if (t == 0) atomicCAS((unsigned short*)s + 1, 0, 1);  //1
        if (t == 32) atomicAdd((unsigned*)s, 1u);  //1
        if (t == 33) atomicAdd((unsigned*)s + 1, 1u);""",
    "first_its_own_then_anothers": """
        if (b == 0 && t == 0) {
            atomicAdd(g, 1ull);  //1
            atomicAdd((unsigned*)g, 1u);
        }
        __syncthreads();
        if (b == 1 && t < 32) atomicAdd((unsigned*)g, 1u);  //1""",
    "plain_store": """
        if (b == 0 && t == 0) ((unsigned*)g)[0] = 1;  //1
        if (b == 1 && t == 0) atomicAdd((unsigned*)g, 1u);  //1""",
    "loads_alone": """
        using Wide = cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>;
        using Word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
        if (t == 0) g[4 + b] = Wide(g[0]).load(cuda::memory_order_relaxed);
        if (t == 1) g[6 + b] = Word(*(unsigned*)g).load(cuda::memory_order_relaxed);""",
    "plain_load": """
        if (b == 0 && t == 0) atomicAdd((unsigned*)g, 1u);  //1
        if (b == 1 && t == 0) g[4] = ((unsigned*)g)[0];  //1""",
}


def kernel() -> str:
    cases = "\n".join(
        f"    if (blockIdx.x / 2 == {k}) {{{body}\n    }}" for k, body in enumerate(VARIANTS.values())
    )
    return f"""#include <cuda/atomic>
extern "C" __global__ void widths(unsigned long long* out) {{
    __shared__ unsigned long long s[8];
    int t = threadIdx.x, b = blockIdx.x % 2;
    unsigned long long* g = out + 8 * (blockIdx.x / 2);
    if (t < 8) s[t] = 0;
    __syncthreads();
{cases}
}}
"""


SOURCE = kernel()


def labelled() -> dict[str, set[tuple[int, int]]]:
    """By variant: the two lines (from 1) that end with ``//1``."""
    text, expected = SOURCE.splitlines(), {}
    starts = [i for i, line in enumerate(text) if re.match(r"    if \(blockIdx.x / 2 ==", line)]
    for name, start, end in zip(VARIANTS, starts, (*starts[1:], len(text)), strict=True):
        marked = [i + 1 for i in range(start, end) if text[i].endswith("//1")]
        if marked:
            expected[name] = {(marked[0], marked[1])}
    return expected


def run_in(folder: Path) -> KernelRun:
    """All variants, built in ``folder``."""
    path = folder / "kernel.cu"
    path.write_text(SOURCE)
    options = CompileOptions(extra=("-arch=sm_90",))
    module = compile_module(path, SOURCE, options, Level.O0, find_toolkit(), folder / "cache")
    out = Argument("out", bytes(8), ((0, Buffer("out", np.zeros(64 * len(VARIANTS), np.uint8), 8)),))
    launch = LaunchConfig((64, 1, 1), (2 * len(VARIANTS), 1, 1), 0)
    return KernelRun(module.ptx, "widths", launch, (out,), sites_of(module, "widths"), deadline=300.0)


def pairs_of(run: KernelRun, outcome: RunOutcome) -> dict[str, set[tuple[int, int]]]:
    """The pairs of lines that raced, by variant."""
    names, pairs = list(VARIANTS), dict[str, set[tuple[int, int]]]()
    for race in outcome.races:
        lines = [site.range.start.line for n in race.sites if (site := run.sites[n].site) is not None]
        pairs.setdefault(names[race.blocks[0] // 2], set()).add((min(lines), max(lines)))
    return pairs
