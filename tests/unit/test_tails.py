"""Tails: what a division leaves over is the kernel's own business where it looks after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text


def kernel_of(body: str, before: str = "", blocks: str = "(n + 255) / 256") -> KernelReport:
    kernel = (
        f"{before}__global__ void k(float* x, float* y, int n) {{\n"
        f"int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}\n"
    )
    launch = f"void f(float* x, float* y, int n) {{ k<<<{blocks}, 256>>>(x, y, n); }}\n"
    report = check_text(Path("k.cu"), kernel + launch)
    assert not report.errors
    return report.kernels[0]


@pytest.mark.parametrize(
    "body",
    [
        "int m = n / 4; if (i < m) for (int k = 0; k < 4; ++k) x[4 * i + k] *= 2;"
        " for (int j = m * 4; j < n; ++j) x[j] *= 2;",
        "int m = n >> 2; if (i < m) x[4 * i] = 0; for (int j = m << 2; j < n; ++j) x[j] *= 2;",
        "for (int j = n - n % 8; j < n; ++j) x[j] += 1;",
        "int j = n / 8 * 8 + threadIdx.x; if (j < n) x[j] += 1;",
        "float4* v = (float4*)y; if (i < n / 4) { float4 a = v[i]; a.x = 1; v[i] = a; }"
        " for (int j = n / 4 * 4; j < n; ++j) x[j] *= 2;",
    ],
)
def test_a_tail_that_several_threads_do_is_told_with_its_condition(body: str) -> None:
    kernel = kernel_of(body)
    assert kernel.verdict is Verdict.RACY
    assert any(
        f.kind and f.status is Status.CONDITIONAL and "`n`" in (f.condition or "") for f in kernel.findings
    )


@pytest.mark.parametrize(
    "body",
    [
        "int m = n / 4; if (i < m) for (int k = 0; k < 4; ++k) x[4 * i + k] *= 2;"
        " if (i == 0) for (int j = m * 4; j < n; ++j) x[j] *= 2;",
        "int j = n / 8 * 8 + i; if (j < n) x[j] += 1;",
    ],
)
def test_a_tail_that_one_thread_does_is_free(body: str) -> None:
    assert kernel_of(body).verdict is Verdict.RACE_FREE


def test_a_layout_of_whole_vectors_stays_a_doubt() -> None:
    body = "int c = n / 8; if (i < c) { x[blockIdx.y * c + i] = 1; y[blockIdx.y * n + i] = x[i]; }"
    kernel = kernel_of(body)
    assert not any(f.kind and f.status is Status.PROVED for f in kernel.findings)


def test_a_grid_of_unknown_size_may_be_one_block() -> None:
    kernel = kernel_of("if (threadIdx.x == 0) *y += x[0];", blocks="blocks_of(n)")
    told = {f.condition for f in kernel.findings if f.kind}
    assert told == {"the grid has more than one block"}


def test_a_grid_that_follows_an_argument_is_one_block_for_few() -> None:
    kernel = kernel_of("if (threadIdx.x == 0) *y += x[0];")
    told = {f.condition for f in kernel.findings if f.kind}
    assert told == {"`n` > `blockDim.x` (256)"}


VECTORS = """
__global__ void rows(float4* out, const float* in, int C, int N) {
    float* o = (float*)out;
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= N) return;
    for (int c = threadIdx.x * 4; c < C; c += 32 * 4)
        *(float4*)(o + row * WIDTH + c) = *(const float4*)(in + row * C + c);
}
void f(float4* out, float* in, int C, int N) { rows<<<(N + 7) / 8, dim3(32, 8)>>>(out, in, C, N); }
"""


def test_rows_that_are_written_four_at_once_are_whole_vectors() -> None:
    (whole,) = check_text(Path("k.cu"), VECTORS.replace("WIDTH", "C")).kernels
    assert whole.verdict is not Verdict.RACY
    assert {f.status for f in whole.findings if f.kind} <= {Status.POSSIBLE}
    (short,) = check_text(Path("k.cu"), VECTORS.replace("WIDTH", "(C - 4)")).kernels
    assert short.verdict is Verdict.RACY


@pytest.mark.parametrize(
    ("before", "verdict"),
    [
        (
            "if (n > 512 || n % 32 == 0) return;",
            Verdict.RACY,
        ),  # rows of fewer than the 256 that a block writes
        ("", Verdict.RACE_FREE),  # rows of `n / 4` elements are taken not to overlap, and that is said
    ],
)
def test_whole_vectors_excuse_nothing_that_the_host_tells_of_the_size(before: str, verdict: Verdict) -> None:
    text = f"""
__global__ void k(float* x, float* y, int n) {{
    float4* rows = (float4*)x;
    rows[blockIdx.x * (n / 4) + threadIdx.x] = ((float4*)y)[threadIdx.x];
}}
void f(float* x, float* y, int n) {{ {before} k<<<16, 256>>>(x, y, n); }}
"""
    (kernel,) = check_text(Path("k.cu"), text).kernels
    assert kernel.verdict is verdict, [f.message for f in kernel.findings]
    assert kernel.assumptions == (("rows of `n / 4` elements do not overlap",) if not before else ())
