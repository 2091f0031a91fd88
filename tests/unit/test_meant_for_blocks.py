"""A kernel that does not tell blocks apart, under a grid that nobody knows, may be meant for one block."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Status, Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
struct Sizes {{ dim3 grid; }};
__global__ void k(float* out, const float* in, int n) {{
    __shared__ float best[64];
    best[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    {body}
}}
dim3 blocks_of(int n);
void run(float* out, float* in, int n, dim3 g) {{ k<<<{grid}, 64>>>(out, in, n); }}
"""

SUM = "if (threadIdx.x == 0) { float s = 0; for (int i = 0; i < 64; i++) s += best[i]; out[0] = s; }"


def checked(body: str, grid: str) -> tuple[Verdict, set[Status]]:
    report = check_text(Path("k.cu"), TEXT.format(body=body, grid=grid))
    assert not report.errors
    return report.kernels[0].verdict, {f.status for f in report.findings if f.kind and not f.same_value}


@pytest.mark.parametrize("grid", ["g", "blocks_of(64)"])
@pytest.mark.parametrize("body", [SUM, "if (threadIdx.x < n) out[threadIdx.x] += best[63 - threadIdx.x];"])
def test_between_blocks_that_there_may_be_none_of_is_possible(body: str, grid: str) -> None:
    assert checked(body, grid) == (Verdict.UNDECIDED, {Status.POSSIBLE})


@pytest.mark.parametrize(
    ("body", "grid"),
    [
        (SUM, "2"),
        (SUM, "dim3(n, 4)"),
        (SUM, "(n + 63) / 64"),  # the host has as many as there are pieces
        (SUM.replace("in[", "in[blockIdx.x + ").replace("out[0]", "out[blockIdx.x / 2]"), "g"),
        ("if (threadIdx.x < gridDim.x) out[threadIdx.x] += best[63 - threadIdx.x];", "g"),
    ],
)
def test_where_there_are_blocks_they_race(body: str, grid: str) -> None:
    verdict, found = checked(body, grid)
    assert verdict is Verdict.RACY
    assert found <= {Status.PROVED, Status.CONDITIONAL}


def test_within_its_block_such_a_kernel_races_as_any_other() -> None:
    verdict, found = checked("best[threadIdx.x] += best[63 - threadIdx.x];", "g")
    assert verdict is Verdict.RACY
    assert Status.POSSIBLE not in found
