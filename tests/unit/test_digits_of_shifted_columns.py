"""Digits beside constants, and columns that a loop takes from one end of a window to the other."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.answer import Budget
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

LAUNCH = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
PARTS = """
__global__ void k(float* out, const float* in) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int d = i % 64, h = i / 64 % {heads}, n = i / 64 / {heads};
    int at = n * {pitch} + h * 64 + d;
    out[at] += in[i];
    out[at + {shift}] += in[i];
}}
"""
WINDOW = """
__global__ void k(float* out, int total, int H, int W, int h, int w, int r, int s) {{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += blockDim.x * gridDim.x) {{
        int x = i % W, y = i / W % H, n = i / W / H;
        for (int a = {first}; a < {end}; a++)
            for (int b = max(0, s - x); b < min(w, W + s - x); b++)
                out[(n * H * W + y * W + x) * H * W + (a + y - r) * W + b + x - s] = 1;
    }}
}}
"""


def decided(source: str, seconds: float = 2.0) -> SolverResult:
    return refine_kernel(lowered(source), [LAUNCH], GpuModel("test", (9, 0)), Budget(kernel=seconds))


def proved(source: str) -> bool:
    """Whether it is in a time in which all above are: what cannot be proved takes all that it is given."""
    return decided(source, seconds=0.5).verdict is Verdict.RACE_FREE


@pytest.mark.parametrize("shift", [12 * 64, 24 * 64])
def test_parts_of_a_row_lie_apart(shift: int) -> None:
    result = decided(PARTS.format(heads=12, pitch=3 * 12 * 64, shift=shift))
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize(
    ("rows", "shift"), [(1, 64), (3, 11 * 64), (3, 36 * 64), (3, 12 * 64 - 1), (3, 35 * 64 - 1)]
)
def test_parts_that_overlap_are_not_proved(rows: int, shift: int) -> None:
    source = PARTS.format(heads=12, pitch=rows * 12 * 64, shift=shift)
    assert not proved(source)


def test_a_window_that_stays_within_its_plane_is_apart() -> None:
    result = decided(WINDOW.format(first="max(0, r - y)", end="min(h, H + r - y)"))
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert set(result.assumptions) <= {"`total` is not negative", "`W` is positive", "`H` is positive"}


@pytest.mark.parametrize(
    ("first", "end"),
    [
        ("max(0, r - y)", "min(h, H + r - y + 1)"),
        ("max(0, r - y - 1)", "min(h, H + r - y)"),
        ("min(0, r - y)", "min(h, H + r - y)"),
        ("max(0, r - y)", "max(h, H + r - y)"),
    ],
)
def test_a_window_that_leaves_its_plane_is_not_proved(first: str, end: str) -> None:
    assert not proved(WINDOW.format(first=first, end=end))


def test_what_data_moves_stays_where_a_guard_keeps_it() -> None:
    source = """
    __global__ void k(float* out, const int* shift, int T, int C) {
        int c = threadIdx.x + blockIdx.x * blockDim.x, n = blockIdx.y;
        if (c >= C) return;
        for (int i = 0; i < T; i++) {
            int t = i + shift[n * C + c];
            if (t < 0 || t >= T) continue;
            out[(n * T + t) * C + c] = 1;
        }
    }
    """
    result = decided(source)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert not any("overlap" in text for text in result.assumptions)
    assert not proved(source.replace("t >= T", "t > T"))


STEPS = """
__global__ void k(float* out, int n, int m, int w) {{
    float* p = out + (blockIdx.y * m + blockIdx.z) * n * w;
    for (int row = blockIdx.x; row < n; row += gridDim.x) {{
        if ({first} < {limit}) p[row * w + {first}] = 1;
        if ({second} < {limit}) p[row * w + {second}] = 2;
    }}
}}
"""


def steps(first: str, second: str, limit: str = "w") -> SolverResult:
    source = STEPS.format(first=first, second=second, limit=limit)
    return refine_kernel(lowered(source), [LAUNCH], GpuModel("test", (9, 0)), Budget(kernel=0.15, query=0.05))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2 * threadIdx.x", "2 * threadIdx.x + 1"),
        ("3 * threadIdx.x + 1", "3 * threadIdx.x"),
        ("4 * threadIdx.x", "4 * threadIdx.x + 3"),
    ],
)
def test_columns_in_steps_stay_in_their_rows(first: str, second: str) -> None:
    result = steps(first, second)
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize(
    ("first", "second", "limit"),
    [
        ("2 * threadIdx.x", "2 * threadIdx.x + 2", "w"),
        ("2 * threadIdx.x", "3 * threadIdx.x", "w"),
        ("2 * threadIdx.x", "2 * threadIdx.x + 1", "w + 1"),
        ("2 * threadIdx.x", "2 * threadIdx.x + 1", "2 * w"),
    ],
)
def test_columns_in_steps_that_meet_are_not_proved(first: str, second: str, limit: str) -> None:
    assert steps(first, second, limit).verdict is not Verdict.RACE_FREE
