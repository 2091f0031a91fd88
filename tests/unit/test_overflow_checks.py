"""``sum < a`` asks whether a sum of data wrapped: it may have, though sizes are taken not to."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.config import Settings
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

CARRY = """
// cuda-lsp: launch block=32 grid=4
__global__ void add(unsigned* sum, unsigned* carried, const unsigned* a, const unsigned* b, unsigned n) {
    unsigned i = blockIdx.x * 32 + threadIdx.x, s = a[i] + b[i];
    if (CONDITION) *carried = i;
    sum[i] = s;
}
"""


def verdict(condition: str) -> Verdict:
    (kernel,) = check_text(Path("add.cu"), CARRY.replace("CONDITION", condition), Settings()).kernels
    return kernel.verdict


def test_what_a_carry_decides_happens() -> None:
    assert verdict("s < a[i]") is Verdict.RACY
    assert verdict("b[i] > s") is Verdict.RACY


def test_sizes_are_taken_not_to_wrap() -> None:
    assert verdict("i + n < n") is Verdict.RACE_FREE


def test_a_sum_is_not_less_than_itself() -> None:
    assert verdict("s < s") is Verdict.RACE_FREE
