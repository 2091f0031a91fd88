"""Subscripts of member arrays: in global memory what leaves the array is no race, that is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Code, KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
struct In {{ int count, first; float dir[4]; }};
struct Out {{ int octave; float x; float dir[4]; int count; }};
struct Tail {{ int count; float dir[1]; }};
struct Buffers {{ In* in; Out* out; }};
__device__ Buffers b;
__global__ void k(const In* in, Out* out, Tail* tail, int n) {{
    int i = blockIdx.x * 32 + threadIdx.x;
    {body}
}}
void run(const In* in, Out* out, Tail* tail, int n) {{ k<<<8, 32>>>(in, out, tail, n); }}
"""


def checked(body: str) -> KernelReport:
    report = check_text(Path("k.cu"), TEXT.format(body=body))
    assert not report.errors
    return report.kernels[0]


def races(kernel: KernelReport) -> list[Status]:
    return [f.status for f in kernel.findings if f.code in (Code.GLOBAL_RACE, Code.SHARED_RACE)]


@pytest.mark.parametrize(
    "body",
    [
        "out[i].x = 1; for (int k = 0; k < in[i].count; k++) out[i].dir[k] = in[i].dir[k];",
        "Out& o = b.out[i]; int k = 0; int m = b.in[i].count; o.x = 1;"
        "for (; k < m; k++) o.dir[k] = 1; for (; k < 4; k++) o.dir[k] = 0;",
        "out[i].x = 1; out[i].dir[in[i].first] = 2;",
        "out[i].x = 1; for (int k = 0; k < n; k++) (out + i)->dir[k] = 0;",
    ],
)
def test_a_subscript_stays_in_its_member_array_which_is_told(body: str) -> None:
    kernel = checked(body)
    assert kernel.verdict is Verdict.RACE_FREE
    assert "subscripts of `dir` stay within its 4 elements" in kernel.assumptions


@pytest.mark.parametrize(
    "body",
    [
        "out[i].x = 1; if (in[i].first < 4 && in[i].first >= 0) out[i].dir[in[i].first] = 2;",
        "out[i].x = 1; for (int k = 0; k < 4; k++) out[i].dir[k] = 2;",
    ],
)
def test_what_the_kernel_says_itself_is_not_granted(body: str) -> None:
    kernel = checked(body)
    assert kernel.verdict is Verdict.RACE_FREE
    assert not any("stay within" in text for text in kernel.assumptions)


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < in[i].count; k++) out[i / 2].dir[k] = i;",  # two threads have one record
        "out[0].dir[in[i].first] = i;",  # any two elements of one array may be one
        "float* p = out[i].dir; out[i].x = 1; for (int k = 0; k < n; k++) p[k] = 0;",
        "tail[i].count = 1; for (int k = 0; k < n; k++) tail[i].dir[k] = 0;",  # no known length
        "out[blockIdx.x].x = 1; out[blockIdx.x].dir[threadIdx.x] = i;",  # seen to happen
    ],
)
def test_records_that_threads_share_are_not_cleared(body: str) -> None:
    kernel = checked(body)
    assert kernel.verdict is not Verdict.RACE_FREE
    assert races(kernel)


@pytest.mark.parametrize(
    "body",
    [
        "__shared__ struct {{ int a[32]; int b[32]; }} s; s.a[threadIdx.x + n] = i; s.b[threadIdx.x] = i;",
        "__shared__ struct {{ int a[8]; int b[32]; }} s[32]; for (int k = 0; k < n; k++)"
        "s[threadIdx.x].a[k] = i; s[threadIdx.x].b[31] = i; s[threadIdx.x].b[threadIdx.x] = 1;",
        "__shared__ Out s[32]; s[threadIdx.x].x = 1; for (int k = 0; k < n; k++) s[threadIdx.x].dir[k] = i;",
    ],
)
def test_shared_memory_is_what_the_kernel_laid_out(body: str) -> None:
    kernel = checked(body.replace("{{", "{").replace("}}", "}"))
    assert Status.CONDITIONAL in races(kernel)
