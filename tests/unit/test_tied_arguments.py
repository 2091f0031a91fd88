"""Arguments that the host makes of others, nobody knows how: a race for certain values of both is a doubt."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Status, Verdict
from cuda_lsp.static.analyze import check_text

FOLD = """
unsigned wide_enough(unsigned n);
__global__ void fold(float* b, const float* a, unsigned size, unsigned whole) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) {
        b[i] = a[i];
        if (i > 0) b[whole - i] = a[i];
    }
}
void go(float* b, const float* a, unsigned size, unsigned other) {
    unsigned whole = MADE;
    CHANGED
    fold<<<128, 128>>>(b, a, static_cast<unsigned int>(size),
                       static_cast<unsigned int>(whole));
}
MORE
"""


@pytest.mark.parametrize(
    ("made", "changed", "more", "verdict"),
    [
        ("wide_enough(2 * size - 1)", "", "", Verdict.UNDECIDED),
        ("1 + wide_enough(size)", "", "", Verdict.UNDECIDED),
        # What has nothing to do with it, or no more at the launch, ties nothing:
        ("wide_enough(other)", "", "", Verdict.RACY),
        ("other", "", "", Verdict.RACY),
        ("wide_enough(size)", "size = other;", "", Verdict.RACY),
        ("wide_enough(size)", "whole = other;", "", Verdict.RACY),
        # What is known is known:
        ("size / 2", "", "", Verdict.RACY),
        # Another launch passes them as it likes:
        (
            "wide_enough(size)",
            "",
            "void too(float* b, float* a, unsigned n, unsigned m) { fold<<<128, 128>>>(b, a, n, m); }",
            Verdict.RACY,
        ),
    ],
)
def test_what_the_host_makes_of_another_argument_is_its_business(
    made: str, changed: str, more: str, verdict: Verdict
) -> None:
    text = FOLD.replace("MADE", made).replace("CHANGED", changed).replace("MORE", more)
    (kernel,) = check_text(Path("k.cu"), text, PATIENT).kernels
    assert kernel.verdict is verdict
    if verdict is Verdict.UNDECIDED:
        assert {f.status for f in kernel.findings if f.kind} == {Status.POSSIBLE}


def test_what_needs_no_certain_sizes_of_both_is_accused() -> None:
    text = FOLD.replace("MADE", "wide_enough(size)").replace("CHANGED", "").replace("MORE", "")
    for place in ("i - 1", "i < whole ? i - 1 : i"):
        (kernel,) = check_text(Path("k.cu"), text.replace("whole - i", place), PATIENT).kernels
        assert kernel.verdict is Verdict.RACY
