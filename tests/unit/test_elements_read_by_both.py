"""Threads that read one element of an array meet where it leads, whatever it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Finding, Status, Verdict
from cuda_lsp.static.analyze import check_text

LED = """
__global__ void k(float* out, const int* id, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) BODY
}
void go(float* out, int* id, float* in, int n) { k<<<32, 256>>>(out, id, in, n); }
"""


def races(body: str) -> tuple[Verdict, list[Finding]]:
    report = check_text(Path("k.cu"), LED.replace("BODY", body))
    assert not report.errors
    return report.kernels[0].verdict, [f for f in report.findings if f.kind]


@pytest.mark.parametrize(
    "body",
    [
        "out[id[i / 2]] += in[i];",
        "out[id[i & ~1]] = in[i];",
        "out[id[blockIdx.x] * 4 + threadIdx.x % 4] += in[i];",
        "if (threadIdx.x < 40) out[id[threadIdx.x / 2]] += in[i];",
    ],
)
def test_what_it_holds_is_no_condition(body: str) -> None:
    verdict, found = races(body)
    assert verdict is Verdict.RACY
    certain = [f for f in found if f.status is not Status.POSSIBLE]
    assert certain
    assert all("`id" not in (f.condition or "") and "id[" not in (f.condition or "") for f in certain)


@pytest.mark.parametrize(
    "body",
    [
        "out[id[i]] = in[i];",
        "if (threadIdx.x % 32 == 0) out[id[i / 32]] = in[i];",
        "out[id[blockIdx.x] * 256 + threadIdx.x] += in[i];",
        "{ int p = id[i / 32]; if (threadIdx.x % 32 == p) out[p * 1024 + i / 32] = in[i]; }",
    ],
)
def test_one_thread_an_element_is_up_to_what_it_holds(body: str) -> None:
    _, found = races(body)
    assert all(f.status is Status.POSSIBLE for f in found)


def test_stores_of_one_value_are_told_as_such() -> None:
    _, found = races("out[id[i / 32]] = 1;")
    assert found and all(f.same_value for f in found)
