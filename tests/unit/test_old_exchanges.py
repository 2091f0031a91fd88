"""Slots by the votes and shuffles of old, without a mask: of all lanes, where the whole warp comes by."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
__global__ void collect(const float* in, int* out, int* count, int n) {
    int t = threadIdx.x, i = (blockIdx.x * 4 + threadIdx.y) * 32 + t, at = 0;
    bool keep = i < n && in[i] > 0;
    unsigned votes = __ballot(keep);
    if (t == 0) at = atomicAdd(count, __popc(votes));
    at = __shfl(at, 0);
    at += __popc(votes & ((1 << t) - 1));
    if (keep) out[at] = i;
}
void run(const float* in, int* out, int* c, int n) { collect<<<n, dim3(32, 4)>>>(in, out, c, n); }
"""


def verdict(*changes: tuple[str, str]) -> Verdict:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    return report.kernels[0].verdict


def test_slots_of_a_warps_votes_are_its_own() -> None:
    assert verdict() is Verdict.RACE_FREE


@pytest.mark.parametrize(
    "change",
    [
        ("count, __popc(votes)", "count, 1"),  # others draw the same slots
        ("(1 << t) - 1", "(2 << t) - 1"),  # the last slot is the next warp's first
        ("if (keep) out", "out"),
        ("__ballot(keep)", "t < 16 ? __ballot(keep) : 0"),  # half of a warp votes
        ("at = __shfl(at, 0)", "if (keep) at = __shfl(at, 0)"),  # lane 0 may not be there
    ],
)
def test_other_slots_are_not_cleared(change: tuple[str, str]) -> None:
    assert verdict(change) is not Verdict.RACE_FREE
