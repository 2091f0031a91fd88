"""Blocks that hand over to one another, on a real GPU: many times, and many at once.

The same kernels are checked on an emulated card in ``tests/unit/test_order_between_blocks.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from block_kernels import HANDOVERS, HEAD
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import CompiledModule, CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.gpu.engine import GpuEngine
from cuda_lsp.dynamic.runs import Argument, Buffer, KernelRun, Level, RunOutcome
from cuda_lsp.model import LaunchConfig

pytestmark = needs_nvcc
BLOCKS = 256  # all of them fit on a large card at once


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> CompiledModule:
    return HANDOVERS.compiled(tmp_path_factory.mktemp("blocks"))


def outcome_of(card: GpuEngine, run: KernelRun) -> RunOutcome:
    outcome = card.run(run, lambda stage: None)
    assert outcome.failure is None
    return outcome


def test_blocks_that_hand_over_correctly_are_not_accused(card: GpuEngine, module: CompiledModule) -> None:
    run = HANDOVERS.run_of(module, "correct")
    for _ in range(20):
        assert HANDOVERS.pairs_of(run, outcome_of(card, run)) == {}


def test_what_breaks_the_chain_of_blocks_is_told_with_its_lines(
    card: GpuEngine, module: CompiledModule
) -> None:
    run, expected = HANDOVERS.run_of(module, "broken"), HANDOVERS.labelled_pairs()
    for _ in range(5):
        found = HANDOVERS.pairs_of(run, outcome_of(card, run))
        assert {name: pairs - expected[name] for name, pairs in found.items() if pairs - expected[name]} == {}
        assert sorted(found) == sorted(expected)


# name → (body, (a part of the text, what makes it race in its place), what out[0] holds at the end)
CROWDS = {
    "last_block": (
        """
    g[blockIdx.x * 128 + t] = 1;
    __threadfence();
    __syncthreads();
    if (t == 0) s[0] = atomicAdd(c, 1) == gridDim.x - 1;
    __syncthreads();
    if (s[0]) {
        int sum = 0;
        for (int k = t; k < 128 * gridDim.x; k += 128) sum += g[k];
        atomicAdd(out, sum);
    }""",
        ("gridDim.x - 1", "gridDim.x - 2"),
        128 * BLOCKS,
    ),
    "last_thread": (
        """
    g[blockIdx.x * 128 + t] = 1;
    __threadfence();
    if (atomicAdd(c, 1) == 128 * gridDim.x - 1)
        for (int k = 0; k < 128 * gridDim.x; k += 16) out[0] += g[k];""",
        ("__threadfence();", ""),
        8 * BLOCKS,
    ),
    "grid_barriers": (
        """
    for (int k = 1; k < 4; ++k) {
        g[blockIdx.x * 128 + t] += k;
        __syncthreads();
        if (t == 0) {
            __threadfence();
            atomicAdd(c, 1);
            while (atomicAdd(c, 0) < k * gridDim.x) { }
            __threadfence();
        }
        __syncthreads();
        atomicAdd(out, g[(blockIdx.x + k) % gridDim.x * 128 + t]);
        __syncthreads();
        if (t == 0) {
            __threadfence();
            atomicAdd(c + 1, 1);
            while (atomicAdd(c + 1, 0) < k * gridDim.x) { }
            __threadfence();
        }
        __syncthreads();
    }""",
        ("atomicAdd(c + 1, 0) < k", "0 * k"),
        10 * 128 * BLOCKS,
    ),
    "locks": (
        """
    if (t % 64 == 0)
        for (int k = 0; k < 2; ++k) {
            LOCK(c)
            out[0] += 1;
            UNLOCK(c)
        }""",
        ("__threadfence();", " "),
        4 * BLOCKS,
    ),
    "look_back": (
        """
    if (t == 0) {
        g[blockIdx.x] = 1;
        There(c[blockIdx.x]).store(1, cuda::memory_order_release);
        int sum = 1;
        for (int k = (int)blockIdx.x - 1; k >= 0; --k) {
            int state;
            while ((state = There(c[k]).load(cuda::memory_order_acquire)) == 0) { }
            sum += state == 2 ? g[gridDim.x + k] : g[k];
            if (state == 2) break;
        }
        g[gridDim.x + blockIdx.x] = sum;
        There(c[blockIdx.x]).store(2, cuda::memory_order_release);
        if (blockIdx.x == gridDim.x - 1) out[0] = sum;
    }""",
        ("memory_order_release", "memory_order_relaxed"),
        BLOCKS // 4,
    ),
    "chain": (
        """
    if (t == 0) {
        if (blockIdx.x) WAIT(c + blockIdx.x - 1)
        g[blockIdx.x] = 1;
        SET(c + blockIdx.x)
        if (blockIdx.x == gridDim.x - 1)
            for (int k = 0; k < gridDim.x; ++k) out[0] += g[k];
    }""",
        ("g[blockIdx.x] = 1;\n        SET(c + blockIdx.x)", "SET(c + blockIdx.x) g[blockIdx.x] = 1;"),
        BLOCKS // 4,
    ),
}
FEWER = {"look_back", "chain"}  # so that the detector follows all addresses through which they synchronise


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("racy", [False, True])
def test_crowds_of_blocks_hand_over(card: GpuEngine, tmp_path: Path, crowd: str, racy: bool) -> None:
    body, (right, wrong), expected = CROWDS[crowd]
    text = (
        HEAD
        + f"""__global__ void k(int* out, int* g, int* c) {{ __shared__ int s[32];
    int t = threadIdx.x; {body} }}"""
    )
    if racy:
        assert right in text
        text = text.replace(right, wrong)
    path = tmp_path / "kernel.cu"
    path.write_text(text)
    module = compile_module(path, text, CompileOptions(), Level.O0, find_toolkit(), tmp_path / "cache")
    entry = next(iter(module.module.entries))
    blocks = BLOCKS // 4 if crowd in FEWER else BLOCKS
    sizes = {"out": 4, "g": 512 * blocks, "c": 4 * blocks}
    arguments = tuple(
        Argument(name, bytes(8), ((0, Buffer(name, np.zeros(size, np.uint8), 4)),))
        for name, size in sizes.items()
    )
    launch = LaunchConfig((128, 1, 1), (blocks, 1, 1), 0)
    run = KernelRun(module.ptx, entry, launch, arguments, sites_of(module, entry), deadline=60.0)
    card.keep_results = True
    outcome = outcome_of(card, run)
    assert bool(outcome.races) == racy
    if not racy:
        assert np.frombuffer(outcome.results["out"].tobytes(), np.int32)[0] == expected
