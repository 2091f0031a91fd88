"""What a doubt names: what the addresses hang on, before what decides who comes to them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Code, Verdict
from cuda_lsp.static.analyze import check_text

STRETCHES = """
__global__ void weigh(float* w, const float* p, const bool* none, float least, const long* first,
                      const long* many, const long* row, long n) {
    long t = blockIdx.x * 32 + threadIdx.x;
    if (t >= n) return;
    long at = first[t], r = row[at], count = many[t];
    for (int i = 0; i < count; i++) {
        if (w[at + i] < least || none[r]) w[at + i] = -99.f;
        else w[at + i] = p[r] - w[at + i];
    }
}
void go(float* w, const float* p, const bool* no, float l, const long* f, const long* r, long n) {
    weigh<<<(n + 31) / 32, 32>>>(w, p, no, l, f, f, r, n);
}
"""


def test_where_threads_meet_is_told_by_what_their_places_hang_on() -> None:
    (kernel,) = check_text(Path("k.cu"), STRETCHES, PATIENT).kernels
    assert kernel.verdict is Verdict.UNDECIDED
    assert ["the contents of `first`;" in reason for reason in kernel.reasons] == [True]
    assert all("comparison" not in finding.message for finding in kernel.findings)


ROUNDS = """
__global__ void best(const int* count, const int* rounds, const float* v, int* out) {
    __shared__ int at[32];
    int n = count[blockIdx.x], m = rounds[blockIdx.x], t = threadIdx.x;
    for (int j = 1; j < m; j++) {
        int where = 0;
        for (int k = t; k < n; k += 32) if (v[k] > v[where]) where = k;
        at[t] = where;
        __syncthreads();
        if (DECIDES) out[t] = at[0];
    }
}
void go(const int* c, const int* r, const float* v, int* o) { best<<<1, 32>>>(c, r, v, o); }
"""


@pytest.mark.parametrize(
    ("decides", "arrays"),
    [("true", {"rounds"}), ("n > 5", {"count", "rounds"})],
)
def test_contents_are_told_that_an_access_hangs_on(decides: str, arrays: set[str]) -> None:
    (kernel,) = check_text(Path("k.cu"), ROUNDS.replace("DECIDES", decides), PATIENT).kernels
    (found,) = (f for f in kernel.findings if f.code is Code.SHARED_RACE and f.condition)
    assert found.condition is not None
    assert set(re.findall(r"`(\w+)\[", found.condition)) == arrays
