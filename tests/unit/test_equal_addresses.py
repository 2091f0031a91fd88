"""Threads that meet wherever contents send them: addresses of which two threads have the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Finding, KernelReport, Severity, Status, Verdict
from cuda_lsp.static.analyze import check_text


def kernel_of(body: str, grid: str = "dim3(8, 12)", block: int = 64) -> KernelReport:
    text = f"""
__global__ void k(int* out, float* y, const int* idx, const float* x) {{
    __shared__ int s[64];
    int b = blockIdx.x, h = blockIdx.y, t = threadIdx.x;
    {body}
}}
void run(int* out, float* y, const int* idx, const float* x) {{ k<<<{grid}, {block}>>>(out, y, idx, x); }}
"""
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    return report.kernels[0]


def accusations(kernel: KernelReport) -> list[Finding]:
    return [f for f in kernel.findings if f.kind and f.effective_severity <= Severity.WARNING]


@pytest.mark.parametrize(
    "body",
    [
        "out[idx[b]] = t;",
        "out[idx[idx[b] + 1]] = t;",
        "out[idx[b] * 64 + t] = h;",
        "y[(size_t)(b * 100 + idx[b]) * 64 + t] = x[(b * 12 + h) * 64 + t];",
        "int at = idx[b]; if (t < 32) out[at] = h;",
        "s[t] = 0; __syncthreads(); s[idx[b] & 63] = t;",
        "out[idx[b]] += 1;",
        "int at = idx[b]; for (int i = 0; i < 3; i++) at = idx[at + t]; out[at] = h;",
    ],
)
def test_whatever_the_contents_two_threads_meet(body: str) -> None:
    races = accusations(kernel_of(body))
    assert races
    assert races[0].status is Status.PROVED
    assert races[0].witness


@pytest.mark.parametrize(
    "body",
    [
        "out[idx[b * 12 + h] * 64 + t] = h;",
        "out[idx[(b * 12 + h) * 64 + t]] = h;",  # ids are taken to differ
        "if (t == 0 && h == 0) out[idx[b]] = t;",
        "if (x[t] > 0) out[idx[b]] = t;",  # nobody may come
        "out[idx[b] * 768 + h * 64 + t] = h;",
        "int at = idx[b]; for (int i = 0; i < 3; i++) at = idx[at + h * 64 + t]; out[at] = h;",
        "atomicAdd(&out[idx[b]], 1);",
    ],
)
def test_where_contents_decide_nothing_is_proved(body: str) -> None:
    assert not any(f.status is Status.PROVED for f in accusations(kernel_of(body)))


def test_one_value_for_all_is_information() -> None:
    kernel = kernel_of("out[idx[b]] = 1;")
    assert not accusations(kernel)
    assert any(f.same_value for f in kernel.findings)


def test_what_is_written_in_the_kernel_is_not_one_number() -> None:
    kernel = kernel_of("out[t] = t; __syncthreads(); int at = out[b]; y[at * 64 + t] = h;", grid="8")
    assert not any(f.array == "y" and f.status is Status.PROVED for f in kernel.findings)


def test_barriers_order_them() -> None:
    body = "int at = idx[b]; if (t == 0) out[at] = 1; __syncthreads(); if (t == 63) out[at] = 2;"
    assert not any(f.status is Status.PROVED for f in accusations(kernel_of(body, grid="1")))
    racy = accusations(kernel_of(body.replace("__syncthreads();", ""), grid="1"))
    assert racy
    assert kernel_of("out[idx[b]] = t;").verdict is Verdict.RACY
