"""Numbers and pointers that some rounds of a loop move, by one step or not at all."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import refine_kernel

KERNEL = """
__global__ void k(float* out, const float* p, int w, int h, int n) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= w) return;
    {start}
    for (int j = 0; j < n; j++) {body}
}}
"""
SOME = "if (p[j * w + x] > 0) "


def verdict(start: str, body: str) -> Verdict:
    launch = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
    return refine_kernel(
        lowered(KERNEL.format(start=start, body=body)), [launch], GpuModel("t", (9, 0))
    ).verdict


@pytest.mark.parametrize(
    ("start", "body"),
    [
        ("int next = x;", SOME + "{ out[next] = 1; next += w; }"),
        ("float* o = out + x;", SOME + "{ *o = 1; o += w; }"),
        ("float* o = out + x; if (h > 3) o += w;", SOME + "{ o += w; *o = 1; }"),
        (
            "int next = x, stride = w, end = x + w * n; if (h < 3) { stride = 0; end = 0; }",
            "if (next != end) { out[next] = 1; next += stride; }",
        ),
        ("int next = x + n * w;", SOME + "{ out[next] = 1; next -= w; }"),
    ],
)
def test_threads_that_move_by_whole_rows_stay_in_their_columns(start: str, body: str) -> None:
    assert verdict(start, body) is Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("start", "body"),
    [
        ("int next = x;", SOME + "{ out[next] = 1; next += w - 1; }"),
        ("int next = x;", SOME + "{ out[next] = 1; next += x; }"),
        ("int next = x;", SOME + "{ out[next] = 1; next += w; } else next += 1;"),
        ("int next = x;", SOME + "{ out[next] = 1; next += j; }"),
        ("int next = x / 2;", SOME + "{ out[next] = 1; next += w; }"),
        ("float* o = out + x;", SOME + "{ *o = 1; o += w; } else o++;"),
        ("float* o = out + x;", SOME + "{ *o = 1; o = out + x + 1; }"),
        ("float* o = out + x; if (h > 3) o++;", SOME + "{ *o = 1; o += w; if (j == 7) o -= 1; }"),
        ("float* o = out + x; int s = w;", SOME + "{ *o = 1; o += s; s += 1; }"),
    ],
)
def test_other_steps_are_not_proved(start: str, body: str) -> None:
    assert verdict(start, body) is not Verdict.RACE_FREE
