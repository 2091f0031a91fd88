"""Threads of a block that hand over to one another, on a real GPU: many times, and many at once.

The same kernels are checked on an emulated card in ``tests/unit/test_order_on_both_engines.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from order_kernels import HANDOVERS, HEAD
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import CompiledModule, CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.gpu.engine import GpuEngine
from cuda_lsp.dynamic.runs import Argument, Buffer, KernelRun, Level, RunOutcome
from cuda_lsp.model import LaunchConfig

pytestmark = needs_nvcc


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> CompiledModule:
    return HANDOVERS.compiled(tmp_path_factory.mktemp("order"))


def outcome_of(card: GpuEngine, run: KernelRun) -> RunOutcome:
    outcome = card.run(run, lambda stage: None)
    assert outcome.failure is None
    return outcome


def test_threads_that_hand_over_correctly_are_not_accused(card: GpuEngine, module: CompiledModule) -> None:
    run = HANDOVERS.run_of(module, "correct")
    for _ in range(20):
        assert HANDOVERS.pairs_of(run, outcome_of(card, run)) == {}


def test_what_breaks_the_chain_is_told_with_its_lines(card: GpuEngine, module: CompiledModule) -> None:
    run, expected = HANDOVERS.run_of(module, "broken"), HANDOVERS.labelled_pairs()
    found = HANDOVERS.pairs_of(run, outcome_of(card, run))
    assert {name: pairs - expected[name] for name, pairs in found.items() if pairs - expected[name]} == {}
    assert sorted(found) == sorted(expected)


# name → (body, what the counter holds at the end)
CROWDS = {
    "leaders_of_all_warps": (
        """
    if (l == 0)
        for (int k = 0; k < 30; ++k) {
            LOCK(f)
            s[0] += 1;
            UNLOCK(f)
        }""",
        960,
    ),
    "every_fourth_thread": (
        """
    for (int k = 0; k < 2; ++k)
        for (bool done = t % 4; !done;)
            if (atomicCAS(f, 0, 1) == 0) {
                __threadfence_block();
                s[0] += 1;
                UNLOCK(f)
                done = true;
            }""",
        512,
    ),
    "warps_in_a_ring": (
        """
    for (int k = 0; k < 20; ++k) {
        if (l == 0) while (atomicAdd(f, 0) != k * n + w) { }
        __syncwarp();
        s[l] += 1;
        __syncwarp();
        if (l == 0) { __threadfence_block(); atomicAdd(f, 1); }
    }""",
        640,
    ),
}


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize(("left_out", "racy"), [("", False), ("__threadfence_block();", True)])
def test_crowds_hand_over(card: GpuEngine, tmp_path: Path, crowd: str, left_out: str, racy: bool) -> None:
    """Blocks of 1,024 threads, a block or two on every multiprocessor."""
    text = (
        HEAD
        + f"""__global__ void k(int* out) {{ __shared__ int s[32], f[1];
    int t = threadIdx.x, l = t % 32, w = t / 32, n = blockDim.x / 32;
    if (t < 32) s[t] = 0; if (t == 0) f[0] = 0; __syncthreads(); {CROWDS[crowd][0]}
    __syncthreads(); if (t == 0) out[blockIdx.x] = s[0]; }}"""
    )
    text = text.replace(left_out, " ") if left_out else text
    path = tmp_path / "kernel.cu"
    path.write_text(text)
    module = compile_module(path, text, CompileOptions(), Level.O0, find_toolkit(), tmp_path / "cache")
    entry = next(iter(module.module.entries))
    out = Argument("out", bytes(8), ((0, Buffer("out", np.zeros(4 * 264, np.uint8), 4)),))
    launch = LaunchConfig((1024, 1, 1), (264, 1, 1), 0)
    run = KernelRun(module.ptx, entry, launch, (out,), sites_of(module, entry), deadline=60.0)
    card.keep_results = True
    outcome = outcome_of(card, run)
    assert bool(outcome.races) == racy
    if not racy:
        counts = np.frombuffer(outcome.results["out"].tobytes(), np.int32)
        assert set(counts.tolist()) == {CROWDS[crowd][1]}
