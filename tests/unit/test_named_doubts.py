"""What a doubt names: what the addresses hang on, before what decides who comes to them."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Verdict
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
    assert kernel.reasons == ("the contents of `first`",)
    assert all("comparison" not in finding.message for finding in kernel.findings)
