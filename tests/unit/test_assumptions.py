"""What a race-free verdict takes for granted is told; what guards imply is not assumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text


def report(body: str, parameters: str = "float* a, int n") -> KernelReport:
    names = ", ".join(p.split()[-1].lstrip("*") for p in parameters.split(","))
    text = f"""
__global__ void k({parameters}) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}
int main(int n, char** v) {{ float* a; int w = atoi(v[1]); k<<<n, 256>>>({names}); }}
"""
    (kernel,) = check_text(Path("k.cu"), text, PATIENT).kernels
    return kernel


def test_rows_of_free_width_are_told() -> None:
    kernel = report("a[blockIdx.x * w + threadIdx.x] = 1;", "float* a, int w")
    assert kernel.verdict is Verdict.RACE_FREE
    assert kernel.assumptions == ("rows of `w` elements do not overlap",)


def test_guards_that_imply_it_leave_nothing_to_assume() -> None:
    kernel = report(
        "for (int c = threadIdx.x; c < w; c += blockDim.x) a[blockIdx.x * w + c] = 1;", "float* a, int w"
    )
    assert kernel.verdict is Verdict.RACE_FREE
    assert kernel.assumptions == ()


def test_a_guard_keeps_the_second_half_apart() -> None:
    kernel = report("if (i < n) a[i] = a[i + n];")
    assert kernel.verdict is Verdict.RACE_FREE
    assert not any("rows" in assumption for assumption in kernel.assumptions)


@pytest.mark.parametrize("body", ["a[i] = a[i + n];", "if (i < n + 1) a[i] = a[i + n];"])
def test_a_load_that_nothing_keeps_apart_is_a_conditional_race(body: str) -> None:
    kernel = report(body)
    assert kernel.verdict is Verdict.RACY
    assert any(f.condition and "`n`" in f.condition for f in kernel.findings), kernel.findings


def test_a_racy_kernel_tells_no_assumptions() -> None:
    assert report("a[0] = i; a[blockIdx.x * n + threadIdx.x] = 1;").assumptions == ()


def test_a_count_that_a_comparison_makes_unsigned_is_taken_for_a_size() -> None:
    # For n == -3 every thread would store, also to what another one reads.
    kernel = report(
        "__shared__ float s[512]; int t = threadIdx.x;"
        " float v = s[t + n]; if (threadIdx.x < n) s[t] = 1; a[i] = v;"
    )
    assert kernel.verdict is Verdict.RACE_FREE
    assert kernel.assumptions == ("`n` is not negative",)


def test_a_comparison_that_decides_nothing_leaves_nothing_to_assume() -> None:
    kernel = report("__shared__ float s[512]; if (threadIdx.x < n) s[threadIdx.x] = 1;")
    assert kernel.verdict is Verdict.RACE_FREE
    assert kernel.assumptions == ()


def test_a_size_is_one_where_nothing_compares_it_too() -> None:
    body = "if (i < 64) a[i] = a[i + n + 64];"  # for n == -64 the two meet
    kernel = report(f"__shared__ float s[512]; if (threadIdx.x < n) s[threadIdx.x] = 1; {body}")
    assert kernel.verdict is Verdict.RACE_FREE
    assert kernel.assumptions == ("`n` is not negative",)


def test_what_is_left_of_a_size_is_taken_for_a_size() -> None:
    # For n == -3 the bound wraps, and every thread would store, also to what another one reads.
    kernel = report("unsigned u = i; if (u < n - 1) a[u] = a[u + n];")
    assert kernel.verdict is Verdict.RACE_FREE
    assert "`n - 1` is not negative" in kernel.assumptions


def test_active_lanes_are_told_to_be_active_together() -> None:
    kernel = report(
        "__shared__ int s[256]; if (threadIdx.x & 16) { s[threadIdx.x] = n; __syncwarp(__activemask()); "
        "a[i] = s[threadIdx.x ^ 1]; }"
    )
    assert kernel.verdict is Verdict.RACE_FREE
    assert kernel.assumptions == (
        "all lanes that come to `__syncwarp(__activemask())` (line 2) are active together",
    )


def test_an_exchange_among_active_lanes_alone_takes_nothing_for_granted() -> None:
    kernel = report("int v = __shfl_sync(__activemask(), n, 0); a[i] = v;")
    assert kernel.verdict is Verdict.RACE_FREE
    assert kernel.assumptions == ()
