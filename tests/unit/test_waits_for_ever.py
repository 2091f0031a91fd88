"""Waits with a parity that come too late: they are told, and no repair makes anybody wait beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import RACES, Code, Finding, KernelReport, Status, Verdict
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


_OBJECTS = """#include <cuda/barrier>
using Bar = cuda::barrier<cuda::thread_scope_block>;
__global__ void k(const float* in, float* out, int tiles) {
  __shared__ Bar full, empty;
  __shared__ float s[64];
  int t = threadIdx.x;
  if (t == 0) { init(&full, 128); init(&empty, 128); }
  __syncthreads();
  if (t < 64) {
    for (int k = 0; k < tiles; ++k) { s[t] = in[k * 64 + t]; full.arrive_and_wait(); EMPTY }
  } else {
    float a = 0;
    for (int k = 0; k < tiles; ++k) { full.arrive_and_wait(); a += s[127 - t]; EMPTY }
    out[blockIdx.x * 64 + t - 64] = a;
  }
}
void g(const float* in, float* out, int tiles) { k<<<16, 128>>>(in, out, ARGUMENT); }
"""


def sure(finding: Finding) -> bool:
    return finding.status in (Status.PROVED, Status.CONDITIONAL)


def fed(empty: str = "empty.arrive_and_wait();", argument: str = "tiles") -> KernelReport:
    report = check_text(PATH, _OBJECTS.replace("EMPTY", empty).replace("ARGUMENT", argument))
    assert not report.errors
    return report.kernels[0]


@pytest.mark.parametrize("argument", ["tiles", "8"])
def test_arrivals_at_several_places_make_one_phase(argument: str) -> None:
    """How often each of two loops runs was decided apart: one of them was said to wait for ever."""
    found = fed(argument=argument).findings
    assert not [f for f in found if f.code is Code.BARRIER_DIVERGENCE or (f.code in RACES and sure(f))]


@pytest.mark.parametrize("argument", ["tiles", "8"])
def test_a_phase_of_the_whole_block_orders_no_place_of_one_part_with_one_that_comes_later(
    argument: str,
) -> None:
    """Without ``empty`` the next tile is stored too early: the solver took a place for a barrier of all."""
    kernel = fed(empty="", argument=argument)
    assert kernel.verdict is not Verdict.RACE_FREE
    assert not [f for f in kernel.findings if f.code is Code.BARRIER_DIVERGENCE]
    assert argument == "tiles" or kernel.verdict is Verdict.RACY


def test_a_place_that_others_never_come_to_is_told() -> None:
    text = _OBJECTS.replace("EMPTY", "").replace("ARGUMENT", "8")
    loop = "{ full.arrive_and_wait(); a"
    assert loop in text
    (found,) = stuck(text.replace(loop, "{ a"))
    assert found.status is Status.PROVED and "64 come" in found.message


_STAGES = """#include <cooperative_groups.h>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
__global__ void k(const float* in, float* out, int rows) {
  __shared__ float s[2][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  float a = 0;
  for (int r = 0, f = 0; r < rows; ++r) {
    for (; f < rows && f < r + 2; ++f) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s[f & 1], in + (blockIdx.x * rows + f) * 128, sizeof(float) * 128, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    a += s[r & 1][127 - threadIdx.x];
    pipe.consumer_release();
  }
  out[blockIdx.x * 128 + threadIdx.x] = a;
}
void g(const float* in, float* out, int rows) { k<<<16, 128>>>(in, out, rows); }
"""


def test_stages_that_an_inner_loop_fills_ahead_are_not_said_to_stay_empty() -> None:
    assert not stuck(_STAGES)


def test_a_stage_that_nobody_fills_is_told() -> None:
    loop = "for (; f < rows && f < r + 2; ++f) {"
    assert loop in _STAGES
    text = _STAGES.replace(loop, "if (rows < 0) {").replace(
        "<<<16, 128>>>(in, out, rows)", "<<<16, 128>>>(in, out, 4)"
    )
    assert any(f.status is Status.PROVED for f in stuck(text))
