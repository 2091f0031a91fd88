"""Counters that loops raise under a condition: how far they come, and rows that they fill so far."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

LAUNCH = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
KERNEL = """
__global__ void k(const float* x, int* out, int n, int m, int K) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int count = {first};
    for (int r = 0; r < m; ++r) {{
        if (x[i * m + r] > 0.5f) {{ {step} }}
    }}
    {then}
}}
"""
FILL = "for (int r = 0; r < count; ++r) out[i * {row} + r] = r;"


def decided(step: str, row: str, first: str = "0", then: str = FILL) -> SolverResult:
    source = KERNEL.format(step=step, first=first, then=then.format(row=row))
    return refine_kernel(lowered(source), [LAUNCH], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    ("step", "row"),
    [
        ("if (count < K) count++;", "K"),
        ("if (count < 16) count++;", "16"),
        ("if (count < 15) count += 2;", "16"),
        ("if (count >= K) break; count++;", "K"),
        ("count = count < K ? count + 1 : K;", "K"),
        ("count = min(count + 1, 16);", "16"),
        ("if (count == 0) count = 4; else if (count < 16) count++; else count = 8;", "16"),
    ],
)
def test_a_counter_stays_below_what_its_step_asks(step: str, row: str) -> None:
    result = decided(step, row)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert not any("overlap" in text for text in result.assumptions)


@pytest.mark.parametrize(
    ("step", "row"),
    [
        ("if (count <= K) count++;", "K"),
        ("if (count <= 16) count++;", "16"),
        ("if (count < 16) count += 2;", "15"),
        ("if (count < K) count += 2;", "K"),  # one too far where K is odd
        ("count++; if (count > K) break;", "K"),
        ("if (r < 16) count++; if (count == 3) count = 17;", "16"),
        ("if (count < r) count++;", "16"),  # what bounds it grows itself
        ("if (count < K) count++; else count = K + 1;", "K"),
    ],
)
def test_a_counter_that_comes_too_far_is_not_proved(step: str, row: str) -> None:
    assert decided(step, row).verdict is not Verdict.RACE_FREE


def test_a_counter_that_enters_too_far_is_not_proved() -> None:
    assert decided("if (count < 16) count++;", "16", first="17").verdict is not Verdict.RACE_FREE
    told = decided("if (count < K) count++;", "K", first="m").assumptions
    assert "rows of `K` elements do not overlap" in told  # of a width that nobody compares with m


def test_what_is_written_while_counting_stays_in_its_row() -> None:
    write = "out[i * K + count] = r; ++count; if (count >= K) break;"
    result = decided(write, "", then="")
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert result.assumptions == ("`K` is positive",)
    late = "out[i * K + count] = r; if (count >= K) break; ++count;"
    assert decided(late, "", then="").verdict is not Verdict.RACE_FREE


def test_a_bound_of_a_loop_that_may_not_run_says_nothing_of_its_entry() -> None:
    then = "if (m <= 0) out[i * 16 + count] = 1;"
    result = decided("if (count < 16) count++;", "", first="threadIdx.x == 0 ? 16 : 0", then=then)
    assert result.verdict is not Verdict.RACE_FREE


def test_two_blocks_have_different_numbers_of_pieces_however_the_grid_strides() -> None:
    source = """
    __global__ void k(float* out, const int* length, int n, int p, int pieces) {
        for (int piece = blockIdx.x; piece < n * pieces; piece += gridDim.x) {
            int row = piece / pieces, i = 128 * (piece % pieces) + threadIdx.x;
            if (i >= length[row]) continue;
            out[row * p + i] = 1;
        }
    }
    """
    result = refine_kernel(lowered(source), [LAUNCH], GpuModel("test", (9, 0)))
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert "rows of `p` elements do not overlap" in result.assumptions
    twice = source.replace("piece % pieces)", "piece % pieces / 2)")
    assert refine_kernel(lowered(twice), [LAUNCH], GpuModel("test", (9, 0))).verdict is not Verdict.RACE_FREE
