"""Words that loops of compare-and-swaps update: no locks. And locks that look like them, which stay locks."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Severity, Status, Verdict
from cuda_lsp.static.analyze import check_text

UPDATES = {
    "do, while another came between": """
        unsigned long long* w = (unsigned long long*)p; unsigned long long old = *w, assumed;
        do {
            assumed = old;
            old = atomicCAS(w, assumed, __double_as_longlong(x + __longlong_as_double(assumed)));
        } while (assumed != old);""",
    "without a read before": """
        unsigned long long* w = (unsigned long long*)p; unsigned long long old = 0, assumed;
        do {
            assumed = old;
            old = atomicCAS(w, assumed, __double_as_longlong(x + __longlong_as_double(assumed)));
        } while (assumed != old);""",
    "while it is not as large": """
        unsigned long long* w = (unsigned long long*)p; unsigned long long seen = *w;
        while (__longlong_as_double(seen) < x) {
            unsigned long long was = atomicCAS(w, seen, __double_as_longlong(x));
            if (was == seen) break;
            seen = was;
        }""",
    "again while it is not as large": """
        unsigned long long* w = (unsigned long long*)p; unsigned long long old = *w, assumed;
        do {
            assumed = old;
            old = atomicCAS(w, assumed, __double_as_longlong(fmax(x, __longlong_as_double(assumed))));
        } while (assumed != old || __longlong_as_double(old) < x);""",
    "in the condition": """
        unsigned long long* w = (unsigned long long*)p; unsigned long long e;
        do { e = *w; }
        while (atomicCAS(w, e, __double_as_longlong(x + __longlong_as_double(e))) != e);""",
    "floats between": """
        double old = *p, assumed;
        do {
            assumed = old;
            old = __longlong_as_double(atomicCAS((unsigned long long*)p, __double_as_longlong(assumed),
                                                 __double_as_longlong(x + assumed)));
        } while (old != assumed);""",
    "through a union": """
        Both old, next; old.d = *p;
        while (true) {
            next.d = old.d + x;
            unsigned long long was = atomicCAS((unsigned long long*)p, old.u, next.u);
            if (was == old.u) break;
            old.u = was;
        }""",
    "through another sign": """
        long long old = *(long long*)p, assumed;
        do {
            assumed = old;
            long long next = assumed + (long long)x;
            unsigned long long was = atomicCAS((unsigned long long*)p, *(unsigned long long*)&assumed,
                                               *(unsigned long long*)&next);
            old = *(long long*)&was;
        } while (old != assumed);""",
    "with a flag": """
        unsigned long long* w = (unsigned long long*)p; bool done = false;
        while (!done) {
            unsigned long long e = *w;
            done = atomicCAS(w, e, __double_as_longlong(x + __longlong_as_double(e))) == e;
        }""",
    "for ever, and a return": """
        unsigned long long* w = (unsigned long long*)p;
        for (unsigned long long e = *w, was;; e = was) {
            was = atomicCAS(w, e, __double_as_longlong(x + __longlong_as_double(e)));
            if (was == e) return;
        }""",
}
TEXT = """
union Both {{ unsigned long long u; double d; }};
__device__ void update(double* p, double x) {{ {update} }}
__global__ void k(double* out, const double* in, const int* to, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {body}
}}
void f(double* o, double* i, int* t, int n) {{ k<<<64, 256>>>(o, i, t, n); }}
"""
SCATTER = "if (i < n) update(&out[to[i]], in[i]);"


def report_of(body: str, update: str = UPDATES["do, while another came between"]) -> KernelReport:
    report = check_text(Path("k.cu"), TEXT.format(update=update, body=body))
    assert not report.errors
    return report.kernels[0]


def worst(kernel: KernelReport) -> Severity:
    return min((f.effective_severity for f in kernel.findings), default=Severity.HINT)


@pytest.mark.parametrize("way", UPDATES)
def test_updates_of_words_that_data_choose_are_race_free(way: str) -> None:
    kernel = report_of(SCATTER, UPDATES[way])
    assert kernel.verdict is Verdict.RACE_FREE, kernel.reasons


@pytest.mark.parametrize("way", UPDATES)
def test_who_writes_the_word_plainly_beside_them_races(way: str) -> None:
    kernel = report_of("if (i < n) { update(&out[0], in[i]); out[i] = 1; }", UPDATES[way])
    assert kernel.verdict is Verdict.RACY
    assert worst(kernel) <= Severity.WARNING


@pytest.mark.parametrize("way", UPDATES)
def test_who_reads_the_word_plainly_beside_them_is_not_race_free(way: str) -> None:
    kernel = report_of("if (i < n) { update(&out[0], in[i]); out[64 * 256 + i] = out[0]; }", UPDATES[way])
    assert kernel.verdict is not Verdict.RACE_FREE
    assert kernel.verdict is Verdict.UNDECIDED or worst(kernel) <= Severity.WARNING


@pytest.mark.parametrize(
    "body",
    [
        "__shared__ double s[64]; if (threadIdx.x < 64) s[threadIdx.x] = 0; __syncthreads();"
        "if (i < n) update(&s[to[i] & 63], in[i]); __syncthreads();"
        "if (threadIdx.x < 64) update(&out[threadIdx.x], s[threadIdx.x]);",
        "__shared__ double s[64]; if (threadIdx.x < 64) s[threadIdx.x] = 0; __syncthreads();"
        "for (int j = i; j < n; j += 64 * 256) update(&s[j & 63], in[j]); __syncthreads();"
        "if (threadIdx.x < 64) update(&out[threadIdx.x], s[threadIdx.x]);",
    ],
)
def test_updates_in_shared_memory_between_barriers_harm_nobody(body: str) -> None:
    kernel = report_of(body, UPDATES["without a read before"])
    assert kernel.verdict is Verdict.RACE_FREE, kernel.reasons


def test_the_barrier_before_them_is_needed() -> None:
    body = """__shared__ double s[64]; if (threadIdx.x < 64) s[threadIdx.x] = 0;
        if (i < n) update(&s[i & 63], in[i]);"""
    kernel = report_of(body)
    assert kernel.verdict is Verdict.RACY
    assert worst(kernel) <= Severity.WARNING


def test_the_barrier_behind_them_is_needed() -> None:
    body = """__shared__ double s[64]; if (threadIdx.x < 64) s[threadIdx.x] = 0; __syncthreads();
        if (i < n) update(&s[i & 63], in[i]);
        if (threadIdx.x < 64) out[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];"""
    kernel = report_of(body)
    assert kernel.verdict is Verdict.RACY
    assert worst(kernel) <= Severity.WARNING


def test_a_word_of_which_only_a_half_is_updated_elsewhere_is_racy() -> None:
    kernel = report_of("if (i < n) { update(&out[0], in[i]); atomicAdd((unsigned*)out, 1u); }")
    assert kernel.verdict is Verdict.RACY


def test_the_guess_is_told_as_information_where_it_certainly_races() -> None:
    kernel = report_of("update(&out[0], in[i]);")
    assert kernel.verdict is Verdict.RACY
    (found,) = kernel.findings
    assert found.status is Status.PROVED
    assert found.effective_severity is Severity.INFORMATION
    assert "the compare-and-swap checks what was read" in found.message


def test_a_guess_that_is_stored_as_well_is_a_race_like_any_other() -> None:
    update = """unsigned long long* w = (unsigned long long*)p; unsigned long long old = *w, assumed;
        w[1 + blockIdx.x * 256 + threadIdx.x] = old;
        do { assumed = old; old = atomicCAS(w, assumed, assumed + 1); } while (assumed != old);"""
    kernel = report_of("update(&out[0], in[i]);", update)
    assert kernel.verdict is Verdict.RACY
    assert worst(kernel) is Severity.ERROR


def test_what_it_returns_is_no_number_of_ones_own() -> None:
    """`+ to[i]`: two threads may get one number."""
    body = """unsigned* w = (unsigned*)out; unsigned old = 0, assumed;
        do { assumed = old; old = atomicCAS(w, assumed, assumed + to[i]); } while (assumed != old);
        out[1 + old] = 1;"""
    assert report_of(body).verdict is not Verdict.RACE_FREE


LOCKS = {
    "the bit must be clear first": (
        "unsigned e = *l, g; do { g = e & ~1u; e = atomicCAS(l, g, g | 1u); } while (e != g);"
    ),
    "goes on while the bit was set": (
        "unsigned e = *l, g; do { g = e; e = atomicCAS(l, e, e | 1u); } while (e != g || (e & 1u));"
    ),
    "looks first": """while (true) { unsigned e = *(volatile unsigned*)l; if (e & 1u) continue;
        if (atomicCAS(l, e, e | 1u) == e) break; }""",
    "looks first, in the condition": """unsigned e;
        do { e = *(volatile unsigned*)l; } while ((e & 1u) || atomicCAS(l, e, e | 1u) != e);""",
    "swaps only what is free": """bool mine = false; unsigned e;
        while (!mine) { e = *(volatile unsigned*)l; if (!(e & 1u)) mine = atomicCAS(l, e, e | 1u) == e; }""",
    "a constant in a variable": "unsigned e = 0; while (atomicCAS(l, e, 1u) != e) {}",
}


@pytest.mark.parametrize("way", LOCKS)
def test_locks_that_look_like_them_accuse_nobody(way: str) -> None:
    body = f"""unsigned* l = (unsigned*)out;
        if (threadIdx.x == 0) {{
            {LOCKS[way]}
            __threadfence(); out[1] += in[i]; __threadfence(); atomicAnd(l, ~1u);
        }}"""
    kernel = report_of(body)
    of_sums = [f for f in kernel.findings if f.kind and "out[1]" in f.site.text]
    assert not any(f.status is not Status.POSSIBLE for f in of_sums), of_sums


def test_a_store_within_the_loop_is_not_forgotten() -> None:
    body = """unsigned* w = (unsigned*)out; unsigned old = *w, assumed;
        do { assumed = old; out[1] = i; old = atomicCAS(w, assumed, assumed + 1); } while (assumed != old);"""
    assert report_of(body).verdict is not Verdict.RACE_FREE


def test_an_address_that_moves_from_round_to_round_is_followed_as_before() -> None:
    body = """unsigned* w = (unsigned*)out; unsigned e = w[0], g; int at = 0;
        do { g = e; e = atomicCAS(&w[at], g, g + 1); at += 1; } while (e != g);
        w[2] = i;"""
    assert report_of(body).verdict is not Verdict.RACE_FREE
