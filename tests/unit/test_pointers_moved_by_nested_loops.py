"""A pointer that an inner loop moves moves evenly in the loop around it, where parameters tell the rounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text


def verdict(inner: str, *, channel: str = "rows * columns", after: str = "") -> Verdict:
    text = f"""
    __global__ void unfold(float* out, int n, int pixels, int rows, int columns) {{
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {{
            float* to = out + (i / pixels) * {channel} * pixels + i % pixels;
            for (int r = 0; r < rows; r++) {{
                for (int c = 0; {inner}; c++) {{ *to = r + c; to += pixels; }}
                {after}
            }}
        }}
    }}
    void f(float* a, int n, int p, int r, int c) {{ unfold<<<64, 256>>>(a, n, p, r, c); }}
    """
    (report,) = check_text(Path("/k.cu"), text).kernels
    return report.verdict


def test_rows_and_columns_that_a_thread_walks_over_are_its_own() -> None:
    assert verdict("c < columns") is Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("inner", "channel", "after"),
    [
        ("c < columns + 1", "rows * columns", ""),
        ("c <= columns", "rows * columns", ""),
        ("c < columns", "columns", ""),
        ("c < columns", "rows * columns", "to -= pixels;  to += 1;"),
        ("c < columns && out[i] > 0", "rows * columns", "to += pixels;"),
    ],
)
def test_walks_that_leave_what_is_the_threads_own_are_not_called_free(
    inner: str, channel: str, after: str
) -> None:
    assert verdict(inner, channel=channel, after=after) is not Verdict.RACE_FREE


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("columns", range(-1, 6))
@pytest.mark.parametrize("size", [3, 6])
def test_rounds_are_counted_as_they_run(columns: int, step: int, size: int) -> None:
    """``rows`` walks of a thread end where the next one's begin, and not one element later."""
    own = 3 * max(0, -(-columns // step))
    text = f"""
    __global__ void walk(float* out, int columns) {{
        if (columns != {columns}) return;
        float* to = out + threadIdx.x * {size};
        for (int r = 0; r < 3; r++) for (int c = 0; c < columns; c += {step}) *to++ = threadIdx.x;
    }}
    void f(float* a, int m) {{ walk<<<1, 32>>>(a, m); }}
    """
    (report,) = check_text(Path("/k.cu"), text).kernels
    assert (report.verdict is Verdict.RACE_FREE) == (own <= size), report.reasons


@pytest.mark.parametrize(("stored", "wanted"), [("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)])
def test_a_place_that_nobody_knows_may_be_left_by_a_stride_of_0(stored: str, wanted: Verdict) -> None:
    """With all arguments 0 the place is a division by 0, and its distance to the next one 0."""
    text = f"""
    __global__ void sums(const float* in, float* out, int n, int rows, int plane) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        const float* from = in + (i / rows) * plane;
        float sum = 0;
        for (int c = 0; c < 4; c++, from += plane) sum += *from;
        out[{stored}] = sum;
    }}
    void f(float* a, float* b, int n, int r, int p) {{ sums<<<n / 256 + 1, 256>>>(a, b, n, r, p); }}
    """
    report = check_text(Path("/k.cu"), text)
    assert not report.errors
    assert [kernel.verdict for kernel in report.kernels] == [wanted]
