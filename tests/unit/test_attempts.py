"""Waits on barrier objects that may give up: a loop that repeats one until it succeeds waits, no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from extract_kernels import lowered

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.validate import violations
from cuda_lsp.ir.walk import walk
from cuda_lsp.model import Code, KernelReport, Verdict
from cuda_lsp.repair import RepairKind
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.rewrites.attempts import with_waits
from tests.mending import mended, races

PATH = Path("/k.cu")
N = 64


def tried(name: str, done: str, bar: str, parity: str, arms: str = "1, 0") -> str:
    return (
        f'asm volatile("{{\\n.reg .pred p;\\nmbarrier.{name}.parity.shared.b64 p, [%1], %2;\\n"'
        f' "selp.u32 %0, {arms}, p;\\n}}" : "=r"({done}) : "r"(smem({bar})), "r"({parity}) : "memory");'
    )


WORDS = r"""
#include <cuda/barrier>
typedef unsigned long long Word;
__device__ unsigned smem(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void make(Word* bar, unsigned count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(smem(bar)), "r"(count) : "memory");
}
__device__ void arrive(Word* bar) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" :: "r"(smem(bar)) : "memory");
}
__device__ bool try_wait(Word* bar, unsigned parity) {
    unsigned ok;
    TRY
    return ok != 0;
}
__device__ bool test_wait(Word* bar, unsigned parity) {
    unsigned ok;
    TEST
    return (bool)ok;
}
__device__ void wait(Word* bar, unsigned parity) {
    while (true) {
        if (try_wait(bar, parity)) return;
    }
}
""".replace("TRY", tried("try_wait", "ok", "bar", "parity")).replace(
    "TEST", tried("test_wait.acquire.cta", "ok", "bar", "parity")
)
TRY = tried("try_wait", "done", "&bar", "PARITY")
START = """
    __shared__ int s[64];
    __shared__ Word bar;
    int t = threadIdx.x;
    if (t == 0) make(&bar, 64);
    __syncthreads();
    s[t] = t;
"""
END = "\n    out[blockIdx.x * 64 + t] = s[63 - t];\n"
OBJECT = START.replace("Word bar", "cuda::barrier<cuda::thread_scope_block> bar").replace("make(", "init(")

# A wait for one phase, of which PARITY is asked for.
SPELLINGS = {
    "while": f"unsigned done = 0; while (!done) {TRY}",
    "do": f"unsigned done; do {{ {TRY} }} while (!done);",
    "equal": f"bool over = false; while (!over) {{ int done; {TRY} over = done == 1; }}",
    "function": "while (!try_wait(&bar, PARITY)) {}",
    "break": "for (;;) if (test_wait(&bar, PARITY)) break;",
    "return": "wait(&bar, PARITY);",
    "sleep": "while (!try_wait(&bar, PARITY)) __nanosleep(20);",
    "backoff": "unsigned ns = 8; while (!try_wait(&bar, PARITY)) { __nanosleep(ns); if (ns < 256) ns *= 2; }",
    "counting": "int n = 0; do { n++; } while (!try_wait(&bar, PARITY)); if (n < 0) n = 1;",
    "step": "bool done = false; for (; !done; done = try_wait(&bar, PARITY)) {}",
    "continue": "while (true) { if (!try_wait(&bar, PARITY)) continue; break; }",
    "failed": "unsigned failed = 1; while (failed) " + tried("try_wait", "failed", "&bar", "PARITY", "0, 1"),
    "hint": f"unsigned done = 0; while (!done) {TRY}".replace("%2;", "%2, 1000;"),
    "nested": "bool done = false; if (t >= 0) { while (!done) done = try_wait(&bar, PARITY); }",
}
OBJECTS = {
    "token": "auto token = bar.arrive(); while (!bar.try_wait(std::move(token))) {}",
    "parity": "bar.arrive(); while (!bar.try_wait_parity(PARITY)) __nanosleep(10);",
}

# What is no wait, or may be none.
OPEN = {
    "once": "try_wait(&bar, 0);",
    "looked_at": "if (!try_wait(&bar, 0)) out[0] = 1;",
    "bounded": "int n = 0; while (!try_wait(&bar, 0)) if (++n > 10) break;",
    "bounded_for": "for (int i = 0; i < 100; i++) if (try_wait(&bar, 0)) break;",
    "bounded_while": "int done = 0; for (int n = 0; !done && n < 10; n++) done = try_wait(&bar, 0);",
    "until_it_fails": "while (try_wait(&bar, 0)) {}",
    "mostly": "bool done = false; while (!done) { done = try_wait(&bar, 0); if (t == 3) done = true; }",
    "forgotten": "bool done = false; while (!done) { try_wait(&bar, 0); done = true; }",
    "twice": "int done = 0; while (!done) { done = try_wait(&bar, 0); done |= try_wait(&bar, 1); }",
    "either": "while (!try_wait(&bar, 0) && !try_wait(&bar, 1)) {}",
    "other_phases": "unsigned p = 0; while (!try_wait(&bar, p)) p ^= 1;",
    "some_rounds": "for (int i = 0;; i++) if (i % 2 == 0 || try_wait(&bar, 0)) break;",
    "not_always": "bool done = false; while (!done) { done = true; if (t % 2) done = try_wait(&bar, 0); }",
    "working": "while (!try_wait(&bar, 0)) out[t + 4096]++;",
    "flag": "while (!try_wait(&bar, 0)) if (*(volatile int*)&out[9999]) break;",
    "arriving": "while (!try_wait(&bar, 0)) arrive(&bar);",
    "timed": "long long begun = clock64(); while (!try_wait(&bar, 0)) if (clock64() - begun > 1000) break;",
    "maybe": "bool done = out[4096 + t] != 0; while (!done) done = try_wait(&bar, 0);",
    "overwritten": 'unsigned d = 0; while (!d) asm volatile("{ .reg .pred p;'
    ' mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; add.u32 %0, %0, 1; }"'
    ' : "=r"(d) : "r"(smem(&bar)) : "memory");',
    "relaxed": 'unsigned d = 0; while (!d) asm volatile("{ .reg .pred p;'
    ' mbarrier.try_wait.parity.relaxed.cta.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"'
    ' : "=r"(d) : "r"(smem(&bar)) : "memory");',
    "jumping_on": 'unsigned d = 0; while (!d) asm volatile("{ .reg .pred p; mov.u32 %0, 1;'
    ' mbarrier.try_wait.parity.shared.b64 p, [%1], 0; @p bra ON; mov.u32 %0, 0; ON: }"'
    ' : "=r"(d) : "r"(smem(&bar)) : "memory");',
    "jumping_over": 'asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%0], 0;'
    ' @p bra OVER; OVER: }" :: "r"(smem(&bar)) : "memory");',
    "set_anew": 'unsigned d = 0; while (!d) asm volatile("{ .reg .pred p;'
    ' mbarrier.try_wait.parity.shared.b64 p, [%1], 0; setp.eq.u32 p, %2, 0; selp.u32 %0, 1, 0, p; }"'
    ' : "=r"(d) : "r"(smem(&bar)), "r"(t & 1) : "memory");',
}


def kernel(name: str, body: str, start: str = START) -> str:
    return (
        f"__global__ void {name}(int* out) {{{start}    {body}{END}}}\n"
        f"void run_{name}(int* out) {{ {name}<<<4, 64>>>(out); }}\n"
    )


def checked(text: str) -> dict[str, KernelReport]:
    return {report.name: report for report in check_text(PATH, WORDS + text).kernels}


@pytest.fixture(scope="module")
def told() -> dict[str, KernelReport]:
    """All kernels of this file: the parity that is right (``_0``) and wrong (``_1``), and who is missing."""
    text = ""
    for parity in (0, 1):
        for name, wait in SPELLINGS.items():
            body = f"arrive(&bar);\n    {wait}".replace("PARITY", str(parity))
            text += kernel(f"{name}_{parity}", body)
            if parity == 0:
                text += kernel(f"{name}_short", body.replace("arrive", "if (t > 0) arrive", 1))
                text += kernel(f"{name}_late", body.replace("arrive", "out[t + 99999] = s[t ^ 1]; arrive", 1))
        for name, wait in OBJECTS.items():
            text += kernel(f"{name}_object_{parity}", wait.replace("PARITY", str(parity)), OBJECT)
    for name, wait in OPEN.items():
        text += kernel(f"{name}_open", f"arrive(&bar);\n    {wait}")
    return checked(text)


@pytest.mark.parametrize("name", [*SPELLINGS, *(f"{name}_object" for name in OBJECTS)])
def test_a_loop_that_repeats_a_try_waits(told: dict[str, KernelReport], name: str) -> None:
    report = told[f"{name}_0"]
    assert (report.verdict, report.reasons, report.findings) == (Verdict.RACE_FREE, (), ())


@pytest.mark.parametrize("name", [*SPELLINGS, "parity_object"])
def test_for_the_phase_before_the_first_nobody_waits(told: dict[str, KernelReport], name: str) -> None:
    report = told[f"{name}_1"]
    codes = {finding.code for finding in report.findings}
    assert report.verdict is Verdict.RACY and codes == {Code.SHARED_RACE, Code.BARRIER_DIVERGENCE}


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_phase_that_lacks_an_arrival_is_told(told: dict[str, KernelReport], name: str) -> None:
    assert Code.BARRIER_DIVERGENCE in {finding.code for finding in told[f"{name}_short"].findings}


@pytest.mark.parametrize("name", SPELLINGS)
def test_what_comes_before_the_arrival_races(told: dict[str, KernelReport], name: str) -> None:
    assert told[f"{name}_late"].verdict is Verdict.RACY


@pytest.mark.parametrize("name", OPEN)
def test_what_may_go_on_without_the_phase_is_no_wait(told: dict[str, KernelReport], name: str) -> None:
    report = told[f"{name}_open"]
    assert report.verdict is not Verdict.RACE_FREE, report
    assert report.reasons or report.findings
    assert Code.BARRIER_DIVERGENCE not in {finding.code for finding in report.findings}


def test_programs_with_waits_are_well_formed_and_leave_no_try() -> None:
    for name, wait in SPELLINGS.items():
        body = f"arrive(&bar);\n    {wait}".replace("PARITY", "0")
        before = lowered(WORDS + kernel("k", body), "k")
        after = with_waits(before)
        assert not violations(before) and not violations(after)
        assert any(isinstance(s, ir.Incomplete) for s in walk(before.body))
        assert not any(isinstance(s, (ir.Incomplete, ir.Loop)) for s in walk(after.body)), name


STAGES = """
    __shared__ int s[2][32];
    __shared__ Word full[2], empty[2];
    int lane = threadIdx.x % 32;
    if (threadIdx.x < 2) { make(&full[threadIdx.x], 32); make(&empty[threadIdx.x], 32); }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int k = 0; k < 8; ++k) {
            while (!try_wait(&empty[k % 2], (k / 2 & 1) ^ 1)) {}
            s[k % 2][lane] = k * 32 + lane;
            arrive(&full[k % 2]);
        }
    } else {
        int sum = 0;
        for (int k = 0; k < 8; ++k) {
            while (!try_wait(&full[k % 2], k / 2 & 1)) {}
            sum += s[k % 2][31 - lane];
            arrive(&empty[k % 2]);
        }
        out[blockIdx.x * 32 + lane] = sum;
    }
"""


def test_stages_are_waited_for_in_turn() -> None:
    def verdict(body: str) -> Verdict:
        text = f"__global__ void k(int* out) {{{body}}}\nvoid f(int* out) {{ k<<<4, 64>>>(out); }}\n"
        return checked(text)["k"].verdict

    assert verdict(STAGES) is Verdict.RACE_FREE
    unasked = STAGES.replace("while (!try_wait(&empty[k % 2], (k / 2 & 1) ^ 1)) {}", "")
    assert verdict(unasked) is not Verdict.RACE_FREE
    assert verdict(STAGES.replace("^ 1)) {}", "^ 1)) if (lane > 99) break;")) is not Verdict.RACE_FREE


@pytest.mark.parametrize("name", ["while", "function"])
def test_no_barrier_is_added_where_a_try_may_hang(name: str) -> None:
    body = f"arrive(&bar);\n    {SPELLINGS[name]}".replace("PARITY", "1")
    text = WORDS + kernel("k", body)
    assert mended(text, kinds=frozenset({RepairKind.BARRIER})).repairs == ()
    assert races(check_text(PATH, text)) == [Code.SHARED_RACE]


def test_the_parity_that_a_try_asks_for_is_mended() -> None:
    body = f"arrive(&bar);\n    {SPELLINGS['function']}".replace("PARITY", "1")
    found = mended(WORDS + kernel("k", body))
    assert "while (!try_wait(&bar, 0)) {}" in found.text and not found.report.findings
