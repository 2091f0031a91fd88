"""A launch that the kernel's own assertions end shows nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(float* out, int C) {
    extern __shared__ float s[];
    CHECK
    for (int i = 0; i < (C + 255) / 256 + 2; ++i) {
        int g = threadIdx.x * 8 + i * 256;
        if (g >= C) break;
        s[threadIdx.x] = out[g];
        __syncthreads();
        out[g] = s[threadIdx.x ^ 1];
        __syncthreads();
    }
}
int main() { float* d; LAUNCH }
"""
CHECKS = (
    "assert(C % 256 == 0);",
    'if (C % 256 != 0) { if (threadIdx.x == 0) printf("no"); __trap(); }',
    "if (C % 256 != 0) assert(false);",
    'if (C % 256 != 0) assert(0 && "no");',
)


def report(check: str, launches: str) -> KernelReport:
    text = KERNEL.replace("CHECK", check).replace("LAUNCH", launches)
    return check_text(Path("a.cu"), text, Settings()).kernels[0]


@pytest.mark.parametrize("check", CHECKS)
def test_nothing_is_told_of_a_launch_that_an_assertion_ends(check: str) -> None:
    kernel = report(check, "k<<<1, 32, 128>>>(d, 1600);")
    assert kernel.verdict is Verdict.UNDECIDED
    assert not kernel.findings
    assert any("assertions" in reason for reason in kernel.reasons)


@pytest.mark.parametrize("check", [*CHECKS, ""])
def test_a_launch_that_none_ends_is_looked_at(check: str) -> None:
    racy = report(check.replace("C %", "(C - 64) %"), "k<<<1, 32, 128>>>(d, 1600);")
    assert any(finding.code.value == "barrier-divergence" for finding in racy.findings)
    free = report(check, "k<<<1, 32, 128>>>(d, 1536);")
    assert free.verdict is Verdict.RACE_FREE


def test_the_other_launch_tells() -> None:
    both = "k<<<1, 32, 128>>>(d, 1600); k<<<1, 32, 128>>>(d, 1536);"
    kernel = report(CHECKS[0], both)
    assert kernel.verdict is Verdict.RACE_FREE
    broken = KERNEL.replace("__syncthreads();\n    }", "}")
    text = broken.replace("CHECK", CHECKS[0]).replace("LAUNCH", both)
    assert check_text(Path("a.cu"), text, Settings()).kernels[0].verdict is Verdict.RACY
