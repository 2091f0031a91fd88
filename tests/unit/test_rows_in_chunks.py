"""Rows that blocks take chunk by chunk, of which memory says how long they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(int* out, const int* count, const float* x, int n, int width, int keep, int pitch) {{
    int chunks = 1 + (width - 1) / blockDim.x;
    for (int c = blockIdx.x; c < n * chunks; c += gridDim.x) {{
        int row = c / chunks, i = {column};
        if (i >= count[row]) continue;
        {body}
    }}
}}
void f(int* out, const int* count, const float* x, int n, int width, int keep, int pitch) {{
    k<<<64, 128>>>(out, count, x, n, width, keep, pitch);
}}
"""
COLUMN = "c % chunks * blockDim.x + threadIdx.x"
SOME = "int m = 0; for (int j = 0; j < n && m < keep; j++) if (x[j] > x[i]) out[{place}] = j;"


def report(body: str, column: str = COLUMN) -> KernelReport:
    text = KERNEL.format(body=body, column=column)
    (found,) = check_text(Path("/k.cu"), text, Settings(solver_budget=500)).kernels
    return found


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        ("out[row * width + i] = i;", "width"),
        (SOME.format(place="(row * width + i) * keep + m++"), "width"),
        (SOME.format(place="row * pitch + i * keep + m++"), "pitch"),
    ],
)
def test_what_memory_bounds_stays_in_its_row(body: str, rows: str) -> None:
    found = report(body)
    assert found.verdict is Verdict.RACE_FREE, found.reasons
    assert f"rows of `{rows}` elements do not overlap" in found.assumptions


def test_that_there_is_more_than_one_chunk_is_not_taken_for_granted() -> None:
    assumed = report("out[row * width + i] = i;").assumptions
    assert not any("/" in text for text in assumed), assumed


@pytest.mark.parametrize(
    ("body", "column"),
    [
        ("out[row * width + i / 2] = i;", COLUMN),
        ("out[row + i] = i;", COLUMN),
        ("out[row / 2 * width + i] = i;", COLUMN),
        ("out[row * width + i] = i;", "c % chunks + threadIdx.x"),
        ("out[row * width + i] = i;", "c % chunks * 64 + threadIdx.x"),
        (SOME.format(place="(row * width + i) * keep + m++ + 1 + n"), "c % chunks * 64 + threadIdx.x"),
        ("out[row * pitch + i * keep] = out[row * pitch + i * keep + 1];", COLUMN),
    ],
)
def test_columns_that_threads_share_are_not_proved(body: str, column: str) -> None:
    assert report(body, column).verdict is not Verdict.RACE_FREE
