"""Waits with a parity that come too late: they are told, and no repair makes anybody wait beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Code, Finding, Status
from cuda_lsp.repair import RepairKind
from cuda_lsp.static.analyze import check_text
from tests.mending import mended, races

PATH = Path("/k.cu")
WORDS = (Path(__file__).parents[2] / "fixtures" / "labelled" / "mbarriers.cu").read_text().partition("//=")[0]
START = """
    __shared__ int s[N];
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) make(&bar, N);
    __syncthreads();
    s[threadIdx.x] = threadIdx.x;
"""
READ = "    out[blockIdx.x * N + threadIdx.x] = s[N - 1 - threadIdx.x];\n"


def kernel(body: str, start: str = START) -> str:
    return (
        f"{WORDS}__global__ void k(int* out) {{{start}{body}}}\nvoid f(int* out) {{ k<<<4, 64>>>(out); }}\n"
    )


def stuck(text: str) -> list[Finding]:
    return [f for f in check_text(PATH, text).findings if f.code is Code.BARRIER_DIVERGENCE]


def test_the_last_to_arrive_waits_for_ever_for_the_other_parity() -> None:
    (found,) = stuck(kernel(f"    arrive(&bar);\n    wait(&bar, 1);\n{READ}"))
    assert found.status is Status.PROVED and "waits for ever if it comes late" in found.message


def test_so_does_who_is_late_for_what_others_do() -> None:
    late = "    if (threadIdx.x < 32) arrive(&bar);\n    else wait(&bar, 1);\n"
    assert stuck(kernel(late, START.replace("make(&bar, N)", "make(&bar, 32)")))


TURNS = """
    __shared__ int s[32];
    __shared__ unsigned long long full, empty;
    if (threadIdx.x == 0) { make(&full, 32); make(&empty, 32); }
    __syncthreads();
    for (int r = 0; r < 4; r++) {
        if (threadIdx.x < 32) {
            wait(&empty, (r & 1) ^ 1);
            s[threadIdx.x] = r;
            arrive(&full);
        } else {
            wait(&full, r & 1);
            out[blockIdx.x * 32 + threadIdx.x - 32] = s[63 - threadIdx.x];
            arrive(&empty);
        }
    }
"""


def test_who_waits_before_others_can_arrive_is_never_late() -> None:
    report = check_text(PATH, kernel("", TURNS))
    assert not report.findings


@pytest.mark.parametrize("wait", ["wait(&bar, 0);", "wait(&bar, 0); wait(&bar, 0);"])
def test_a_phase_that_is_complete_lets_pass(wait: str) -> None:
    assert not stuck(kernel(f"    arrive(&bar);\n    {wait}\n{READ}"))


def test_nobody_is_made_to_wait_in_a_kernel_that_hangs() -> None:
    text = kernel(f"    arrive(&bar);\n    wait(&bar, 1);\n{READ}")
    assert races(check_text(PATH, text)) == [Code.SHARED_RACE]
    assert mended(text, kinds=frozenset({RepairKind.BARRIER})).repairs == ()
    found = mended(text)
    assert [repair.kind for repair in found.repairs] == [RepairKind.OBJECT] and "wait(&bar, 0);" in found.text
    assert not found.report.findings


def test_a_missed_barrier_is_mended_before_one_is_added() -> None:
    text = """__global__ void k(int* out, int* in) {
    __shared__ int s[64];
    s[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = s[63 - threadIdx.x];
    if (threadIdx.x < 32) {
        __syncthreads();
        in[threadIdx.x] = 1;
    }
}
void f(int* out, int* in) { k<<<1, 64>>>(out, in); }
"""
    assert {f.code for f in check_text(PATH, text).findings} >= {Code.BARRIER_DIVERGENCE, Code.SHARED_RACE}
    found = mended(text)
    assert found.repairs[0].findings[0].code is Code.BARRIER_DIVERGENCE
    assert not found.report.findings


def test_where_it_cannot_be_mended_none_is_added() -> None:
    text = """__global__ void k(int* out, int* in) {
    __shared__ int s[64];
    s[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = s[63 - threadIdx.x];
    for (int r = 0; r < threadIdx.x; r++) { __syncthreads(); in[threadIdx.x] += r; }
}
void f(int* out, int* in) { k<<<1, 64>>>(out, in); }
"""
    assert {f.code for f in check_text(PATH, text).findings} >= {Code.BARRIER_DIVERGENCE, Code.SHARED_RACE}
    found = mended(text)
    assert stuck(found.text) and Code.SHARED_RACE in races(found.report)
