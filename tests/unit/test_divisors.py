"""What divides on the way to an access is not 0, in conditions too: granted, and told."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Code, KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
__global__ void k(int* out, const int* in, int n, int m) {{
    extern __shared__ int s[];
    int t = threadIdx.x, first = (blockIdx.x * blockDim.x) % n;
    {body}
}}
void run(int* out, const int* in, int n, int m) {{ k<<<m / 256, 256, 4096>>>(out, in, n, m); }}
"""


def checked(body: str) -> KernelReport:
    report = check_text(Path("k.cu"), TEXT.format(body=body))
    assert not report.errors
    return report.kernels[0]


@pytest.mark.parametrize(
    "body",
    [
        "if (t == 0 || (t + first) % n == 0) s[(t + first) / n] = t;",
        "if (n > 0 && (t == 0 || (t + first) % n == 0)) s[(t + first) / n] = t;",
    ],
)
def test_a_divisor_in_a_condition_is_not_0(body: str) -> None:
    kernel = checked(body)
    assert kernel.verdict is Verdict.RACE_FREE
    assert ("`n` is not 0" in kernel.assumptions) is ("n > 0" not in body)


@pytest.mark.parametrize(
    "body",
    [
        "if (t == 0 || (t + first) % n <= 1) s[(t + first) / n] = t;",  # two threads of each row
        "if (t == 0 || (t + first) % n == 0) s[(t + first) / n / 2] = t;",
    ],
)
def test_other_rows_are_not_cleared(body: str) -> None:
    kernel = checked(body)
    assert kernel.verdict is Verdict.RACY
    assert any(f.code is Code.SHARED_RACE and f.status is not Status.POSSIBLE for f in kernel.findings)


@pytest.mark.parametrize(
    "body",
    [
        "if (n == 0 || t % n == 0) s[n == 0 ? 0 : t / n] = t;",
        "int q = n ? t / n : 0, r = n ? t % n : 0; if (r == 0) s[q] = t;",
        "int q = 0, r = 0; if (n > 0) { q = t / n; r = t % n; } if (r == 0) s[q] = t;",
        "if (n < 4 || t % (n / 4) == 0) s[n < 4 ? 0 : t / (n / 4)] = t;",
    ],
)
def test_a_divisor_that_the_kernel_lets_be_0_may_be(body: str) -> None:
    text = TEXT.format(body=body).replace(", first = (blockIdx.x * blockDim.x) % n", "")
    kernel = check_text(Path("k.cu"), text).kernels[0]
    assert kernel.verdict is not Verdict.RACE_FREE
