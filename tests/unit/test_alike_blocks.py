"""A kernel that does not ask which block it runs in stores the same in each: information, whoever is last."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Code, Finding
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(const float* x, unsigned n, float* out, int* drawn) {{
    __shared__ float part[128];
    __shared__ int last;
    float best = {first};
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {step}
    part[threadIdx.x] = best;
    for (unsigned d = blockDim.x / 2; d > 0; d /= 2) {{
        __syncthreads();
        if (threadIdx.x < d) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + d]);
    }}
    {store}
}}
void f(float* x, unsigned n, float* out, int* d) {{ k<<<128, 128>>>(x, n, out, d); }}
"""
USUAL = "if (threadIdx.x == 0) *out = part[0];"


STEP = "best = x[i] > best ? x[i] : best;"


def races(first: str = "x[0]", store: str = USUAL, step: str = STEP) -> list[Finding]:
    text = KERNEL.format(first=first, store=store, step=step)
    report = check_text(Path("k.cu"), text, PATIENT).kernels[0]
    found = [f for f in report.findings if f.code is Code.GLOBAL_RACE]
    assert found, report.reasons
    return found


@pytest.mark.parametrize("store", [USUAL, "__syncthreads(); out[threadIdx.x] = part[threadIdx.x / 2];"])
def test_what_all_blocks_do_alike_is_one_value(store: str) -> None:
    assert all(f.same_value for f in races(store=store))


@pytest.mark.parametrize(
    ("first", "store"),
    [
        ("x[blockIdx.x]", USUAL),
        ("x[0]", "if (threadIdx.x == 0) *out = part[0] * blockIdx.x;"),
        ("x[0]", "if (threadIdx.x == blockIdx.x) *out = part[0];"),
        ("x[0] * (float)clock()", USUAL),
        ("(float)clock()", USUAL),
        ("out[0]", USUAL),  # what another block has left there
        ("x[0]", "if (threadIdx.x == 0) *out = part[0] + atomicAdd(drawn, 1);"),
        ("x[0]", "*out = part[threadIdx.x];"),
        ("x[0]", "for (int r = 0; r < 2; r++) if (threadIdx.x == 0) *out = part[r];"),
    ],
)
def test_what_they_do_apart_is_not(first: str, store: str) -> None:
    assert not all(f.same_value for f in races(first, store))


@pytest.mark.parametrize(
    "step",
    [
        "best += x[i] * blockIdx.x;",
        "best = x[i] > best ? x[i] * blockIdx.x : best;",
        "best = x[i] > best * blockIdx.x ? x[i] : best;",
        "best += x[i + blockIdx.x];",
        "best += x[i] * (float)clock();",
        "best += (float)clock();",
        "if (clock() % 2) best = x[i];",
        "best += x[i] * atomicAdd(drawn, 1);",
    ],
)
def test_what_a_loop_adds_up_is_asked_too(step: str) -> None:
    assert not all(f.same_value for f in races(step=step))


def test_nor_is_what_threads_of_a_block_race_for() -> None:
    store = "part[threadIdx.x / 2] += 1; if (threadIdx.x == 64) *out = part[0];"
    assert not all(f.same_value for f in races(store=store))
