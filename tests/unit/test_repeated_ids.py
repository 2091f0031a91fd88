"""What a scatter's verdict asks of the array that it reads its places from."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import refine_kernel

KERNEL = """
__global__ void k(float* out, const int* id, const int* flag, const float* in, int n, int width) {{
    int i = blockIdx.x;
    if (i >= n) return;
    {body}
}}
"""
ROWS = "for (int c = threadIdx.x; c < width; c += blockDim.x) "


def reasons(body: str) -> tuple[str, ...]:
    launch = LaunchConfig((64, 1, 1), source=LaunchSource.FILE)
    result = refine_kernel(lowered(KERNEL.format(body=body)), [launch], GpuModel("test", (9, 0)))
    assert result.verdict is Verdict.UNDECIDED
    return tuple(map(doubt_in, result.reasons))


def doubt_in(reason: str) -> str:
    """What a reason asks, without where, and what to do."""
    return (reason.partition("): ")[2] or reason).partition("; ")[0]


@pytest.mark.parametrize(
    "body",
    [
        "if (threadIdx.x == 0) out[id[i]] = in[i];",
        "if (threadIdx.x == 0 && flag[i]) out[id[i]] = in[i];",
        ROWS + "out[id[i] * width + c] = in[i * width + c];",
        ROWS + "if (flag[i] > c) out[id[i] * width + c] = in[i * width + c];",
    ],
)
def test_a_scatter_asks_whether_an_id_stands_twice(body: str) -> None:
    assert reasons(body) == ("whether `id` holds a number twice",)


@pytest.mark.parametrize(
    "body",
    [
        "if (threadIdx.x == 0) out[id[i] / 2] = in[i];",  # different ids may share an element
        "if (threadIdx.x == 0) out[id[i] + id[i + 1]] = in[i];",
        "if (threadIdx.x == 0) { out[id[i]] = in[i]; out[flag[i]] = in[i]; }",  # ids of two arrays
    ],
)
def test_what_unlike_ids_do_not_keep_apart_asks_for_more(body: str) -> None:
    assert any(reason != "whether `id` holds a number twice" for reason in reasons(body))


TABLE = """
__global__ void k(float** lists, const int* list, const int* at, const float* in, int n, int width) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {body}
}}
"""
BOTH = "the contents of `list` and `at`"
TWICE = "whether `at` holds a number twice"


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ("float* p = lists[list[i]]; p[at[i]] = in[i];", {BOTH}),
        ("lists[list[i]][at[i] / 2] = in[i];", {BOTH}),
        ("int b = blockIdx.x; lists[list[b]][at[b] * width + threadIdx.x] = in[i];", {BOTH}),
        ("float* p = lists[3]; p[at[i]] = in[i];", {TWICE}),
        ("float* p = lists[list[0]]; p[at[i]] = in[i];", {"the contents of `at`"}),
        ("lists[0][list[i] * width + at[i]] = in[i];", {BOTH}),
        ("if (list[i] > 3) lists[0][at[i]] = in[i];", {TWICE}),
    ],
)
def test_where_several_arrays_lead_somewhere_all_of_them_decide(body: str, asked: set[str]) -> None:
    launch = LaunchConfig((64, 1, 1), source=LaunchSource.FILE)
    result = refine_kernel(lowered(TABLE.format(body=body)), [launch], GpuModel("test", (9, 0)))
    assert set(map(doubt_in, result.reasons)) == asked
