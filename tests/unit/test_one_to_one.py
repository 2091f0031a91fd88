"""Rotations, xor and bit reversal: functions that bring no two numbers together, and some that do."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

LAUNCH = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
KERNEL = """
__global__ void k(int* a, int n, int s, int size) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned u = i;
    if ({guard}) a[{index}] = i;
}}
"""


def decided(guard: str, index: str) -> SolverResult:
    return refine_kernel(lowered(KERNEL.format(guard=guard, index=index)), [LAUNCH], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    ("guard", "index"),
    [
        ("i < n", "(i + s) % n"),
        ("i < n", "(i - s) % n + n"),  # C's remainder has the sign of what is divided
        ("i < n", "(n - i) % n"),
        ("i < n && n <= size", "(s + i) % size"),
        ("i < n", "__brev(u)"),
        ("i < n", "__brev(u) ^ 21"),
        ("i < n", "(i ^ s) * 3"),
    ],
)
def test_a_rotation_and_bit_reversal_keep_threads_apart(guard: str, index: str) -> None:
    result = decided(guard, index)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert result.assumptions == ()


@pytest.mark.parametrize(
    ("guard", "index"),
    [
        ("i <= n", "(i + s) % n"),  # the first and the last meet
        ("i < n", "(2 * i + s) % n"),  # twice round where n is even
        ("i < n", "(s * i) % n"),
        ("i < n", "(i + s) % size"),  # size may be less than n
        ("i < n", "(i + threadIdx.x) % n"),  # not all are shifted alike
        ("i < n", "__brev(u) / 512"),  # the highest bits of u are lost
        ("i < n", "__brev(u & ~1u)"),
        ("i < n", "i ^ (threadIdx.x & s)"),
        ("i < n", "(i ^ s) / 2"),
    ],
)
def test_what_brings_numbers_together_is_not_proved(guard: str, index: str) -> None:
    assert decided(guard, index).verdict is not Verdict.RACE_FREE


def test_a_ring_that_may_be_too_small_races_for_sizes_that_mean_something() -> None:
    result = decided("i < n", "(s + i) % size")
    assert result.verdict is Verdict.RACY
    assert all(f.witness is not None and f.witness.arguments["size"] > 0 for f in result.findings)
