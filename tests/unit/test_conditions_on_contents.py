"""Races that ordinary contents show: positions by flags, extremes, counts read too early, barriers."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text

CERTAIN = (Status.CONDITIONAL, Status.PROVED)


def report(
    body: str, head: str = "int* out, const int* in, int n", passed: str = "a, b, 2560"
) -> KernelReport:
    text = f"""__global__ void k({head}) {{ int t = threadIdx.x, i = blockIdx.x * 128 + t; {body} }}
    void run(int* a, const int* b, const int* c) {{ k<<<20, 128>>>({passed}); }}"""
    (kernel,) = check_text(Path("k.cu"), text, Settings(solver_budget=6_000)).kernels
    return kernel


def accused(kernel: KernelReport) -> bool:
    return any(f.status in CERTAIN and f.kind is not None for f in kernel.findings)


RANK = "unsigned m = __ballot_sync(~0u, KEEP); int rank = __popc(m & ((1u << (t & 31)) - 1)); if (KEEP) "
FLAGS = {"in[i] > 0": True, "(in[i] & 1)": True, "in[i] % 2 == 0": True, "in[i] != n": True}


@pytest.mark.parametrize("flag", FLAGS)
def test_ranks_of_one_warp_that_all_warps_use_collide(flag: str) -> None:
    assert accused(report(RANK.replace("KEEP", flag) + "out[blockIdx.x * 128 + rank] = i;"))


@pytest.mark.parametrize("flag", FLAGS)
def test_ranks_behind_the_own_warp_are_not_accused(flag: str) -> None:
    assert not accused(report(RANK.replace("KEEP", flag) + "out[blockIdx.x * 128 + (t & ~31) + rank] = i;"))


@pytest.mark.parametrize(
    "body",
    [
        "out[in[i]] = i;",  # ids may differ
        "out[in[i] >> 3] = i;",
        "int lo = 0, hi = n;"
        " while (lo < hi) { int m = (lo + hi) / 2; if (in[m] < key[i]) lo = m + 1; else hi = m; }"
        " out[lo] = i;",  # keys may differ
        "int r = 0; for (int j = 0; j < n; ++j) r += in[j] < key[i]; out[r] = i;",
        "int r = 0; for (int j = 0; j < n; ++j) r += in[j] < in[i] || (in[j] == in[i] && j < i); out[r] = i;",
        "int mine = in[i], r = 0; for (int j = 0; j < n; ++j) r += in[j] < mine; out[r] = mine;",  # one value
    ],
)
def test_what_the_host_may_keep_apart_is_not_accused(body: str) -> None:
    head, passed = "int* out, const int* in, const int* key, int n", "a, b, c, 2560"
    assert not accused(report(body, head, passed))


@pytest.mark.parametrize(
    "body",
    [
        "int r = 0; for (int j = 0; j < n; ++j) r += in[j] < in[i]; out[r] = i;",
        "int r = n; for (int j = 0; j < n; ++j) if (in[j] > in[i]) --r; out[r - 1] = i;",
        "int mine = in[i], r = 0; for (int j = 0; j < n; ++j) r += in[j] < mine; out[r] = mine + i;",
        "__shared__ int s[128]; s[t] = in[i]; __syncthreads(); int r = 0;"
        " for (int j = 0; j < 128; ++j) r += s[j] < s[t]; out[blockIdx.x * 128 + r] = t;",
        "int r = 0; for (int j = 0; j < n; ++j) r += in[j] < in[i] || (in[j] == in[i] && j < i - 1);"
        " out[r] = i;",
        "int r = 0; for (int j = 0; j < n; ++j) r += in[j] < in[i] || (in[j] == in[i] && j > i);"
        " out[r / 2] = i;",
    ],
)
def test_equal_keys_have_equal_ranks(body: str) -> None:
    assert accused(report(f"if (i >= n) return; {body}", passed="a, b, 256"))


EXTREME = "int old = atomic{op}(lo, in[i]); if (in[i] {than} old) {store};"
HEAD = "int* lo, int* pos, const int* in"


@pytest.mark.parametrize(("op", "than"), [("Min", "<"), ("Max", ">")])
def test_who_lowers_an_extreme_is_not_alone(op: str, than: str) -> None:
    plain = EXTREME.format(op=op, than=than, store="*pos = i")
    assert accused(report(plain, HEAD, "a, a + 1, b"))
    atomic = EXTREME.format(op=op, than=than, store="atomicExch(pos, i)")
    assert report(atomic, HEAD, "a, a + 1, b").verdict is Verdict.RACE_FREE


COUNT = "if (i < n) atomicAdd(&out[in[i]], 1);"
SUM = "for (int b = 0, r = 0; b < 64; ++b) out[64 + b] = r += out[b];"


def test_counts_that_other_blocks_still_change_are_read() -> None:
    assert accused(report(f"{COUNT} __syncthreads(); if (i == 0) {SUM}"))
    alone = report(f"{COUNT} __syncthreads(); if (i == 0) for (int b = 0; b < 64; ++b) lim[b] = b;",
                   "int* out, int* lim, const int* in, int n", "a, a + 4096, b, 2560")  # fmt: skip
    assert not accused(alone)


def test_slots_that_are_taken_without_an_atomic_collide_though_they_were_counted_with_one() -> None:
    begin = "__shared__ int next[16]; int v = in[i] & 15; if (t < 16) next[t] = 0; __syncthreads();"
    counted = f"{begin} atomicAdd(&next[v], 1); __syncthreads();"
    assert accused(report(f"{counted} int at = next[v]++; out[i] = at;"))
    assert not accused(report(f"{counted} int at = atomicAdd(&next[v], 1); out[i] = at;"))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("int v = in[i]; if (__any_sync(~0u, v < 0)) __syncthreads(); out[i] = v;", True),
        ("int v = in[i]; if (__syncthreads_or(v < 0)) __syncthreads(); out[i] = v;", False),
        (
            "__shared__ int s[128]; for (int k = 0; k < 9; ++k) { s[t] = in[k * 128 + t]; __syncthreads();"
            " if (s[(t + 1) & 127] == t) break; __syncthreads(); } out[i] = s[t];",
            True,
        ),
        (
            "__shared__ int s[128]; for (int k = 0; k < 9; ++k) { s[t] = in[k * 128 + t]; __syncthreads();"
            " if (s[5] == 7) break; __syncthreads(); } out[i] = s[t];",
            False,
        ),
    ],
)
def test_barriers_that_contents_let_some_threads_miss(body: str, told: bool) -> None:
    found = [f for f in report(body).findings if f.code.value == "barrier-divergence"]
    assert any(f.status in CERTAIN for f in found) is told


TOTAL = """template <typename T> __global__ void total(T* out, const T* in, int n) {
    __shared__ T sum;
    if (threadIdx.x == 0) sum = 0;
    BARRIER
    T mine = 0;
    for (int i = threadIdx.x; i < n; i += 256) mine += in[i];
    atomicAdd(&sum, mine);
    __syncthreads();
    if (threadIdx.x == 0) out[0] = sum;
}
template <typename T> void f(T* out, const T* in, int n) { total<T><<<1, 256>>>(out, in, n); }
"""


def test_what_holds_for_every_argument_stays_though_sample_arguments_show_it_too() -> None:
    racy = check_text(Path("k.cu"), TOTAL.replace("BARRIER", ""), Settings()).kernels
    assert {kernel.verdict for kernel in racy} == {Verdict.RACY}
    free = check_text(Path("k.cu"), TOTAL.replace("BARRIER", "__syncthreads();"), Settings()).kernels
    assert {kernel.verdict for kernel in free} == {Verdict.RACE_FREE}
