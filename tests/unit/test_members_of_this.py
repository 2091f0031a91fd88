"""Members of the object at hand: templates of member functions, and references that its constructor sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

TEMPLATES = """
struct Sizes { static constexpr int WIDE = 32; enum { NARROW = 4 }; };
struct Fold { float* out; const float* in; int n;
  template <int N> __device__ float sum(int i) const {
    float s = 0; for (int k = 0; k < N; k++) s += in[i + k]; return s; }
  template <int N> __device__ void put(int i) { out[i + N] = 1; }
  template <int N> __device__ void fill(int i) {
    for (int k = 0; k < N; k++) out[N * i + k] = 1; }
  __device__ void run() { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { @ } }
};
__global__ void k(Fold s) { s.run(); }
void f(Fold s) { k<<<4, 256>>>(s); }
"""
REFERENCES = """
struct Batch { const float* in; float* out; int n; };
struct Walk { const Batch& batch; int at; int path[4];
  __device__ Walk(const Batch& b, int i) : batch(b), at(i) { path[0] = 0; }
  __device__ void step(int by) {
    int t = threadIdx.x; if (t < batch.n) batch.out[t] = batch.in[t + by]; } };
struct Cell { int& at; int more[3]; __device__ Cell(int& x) : at(x) { more[0] = 1; } };
__global__ void k(Batch b, int* a) { int t = threadIdx.x; @ }
void f(Batch b, int* a) { k<<<1, 256>>>(b, a); }
"""


def verdict_of(text: str, body: str) -> Verdict:
    report = check_text(Path("k.cu"), text.replace("@", body))
    assert not report.errors, report.errors
    return report.kernels[-1].verdict


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("out[i] = sum<Sizes::WIDE>(i);", Verdict.RACE_FREE),
        ("out[i] = sum<Sizes::NARROW>(i) + this->sum<Sizes::WIDE>(i) + sum<2>(i);", Verdict.RACE_FREE),
        ("fill<Sizes::NARROW>(i);", Verdict.RACE_FREE),
        ("fill<Sizes::NARROW>(i / 2);", Verdict.RACY),
        ("out[i] = out[i + Sizes::NARROW]; put<Sizes::NARROW>(i);", Verdict.RACY),
    ],
)
def test_a_templates_argument_is_not_the_object(body: str, verdict: Verdict) -> None:
    assert verdict_of(TEMPLATES, body) is verdict


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("Walk w(b, t); w.step(1);", Verdict.RACE_FREE),
        ("Cell c(a[t]); c.at = t;", Verdict.RACE_FREE),
        ("Cell c(a[t]); t = 0; c.at = threadIdx.x;", Verdict.RACE_FREE),  # it refers to what it did
        ("for (int i = 0; i < 2; i++) { Cell c(a[256 * i + t]); c.at = t; }", Verdict.RACE_FREE),
        ("for (int i = 0; i < 2; i++) { Cell c(a[i + t]); c.at = t; }", Verdict.RACY),
        ("Cell c(a[0]); c.at = t;", Verdict.RACY),
        ("int s = t; Cell c(s); c.at = 0; a[s] = t;", Verdict.RACY),
    ],
)
def test_a_reference_is_what_the_constructor_made_it(body: str, verdict: Verdict) -> None:
    assert verdict_of(REFERENCES, body) is verdict


@pytest.mark.parametrize(
    "body",
    [
        "Cell c(a[t]), d(a[t / 2]); Cell* e = t > 3 ? &c : &d; e->at = t;",
        "Cell c(a[t / 2]); Cell d(c); d.at = t;",
        "Cell c[2] = {Cell(a[t]), Cell(a[t / 2])}; c[t & 1].at = t;",
    ],
)
def test_of_copies_and_choices_nothing_is_claimed(body: str) -> None:
    assert verdict_of(REFERENCES, body) is not Verdict.RACE_FREE
