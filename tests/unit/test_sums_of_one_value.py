"""What a loop adds up is one value for threads that give the loop the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Finding, Severity
from cuda_lsp.static.analyze import check_text


def found(body: str) -> list[Finding]:
    text = (
        "__global__ void k(const float* in, float* out, int n) {\n"
        f"  int t = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y; float sum = 0; {body}\n"
        "  out[row] = sum;\n}\n"
        "void go(const float* in, float* out) { k<<<dim3(4, 32), 256>>>(in, out, 1024); }\n"
    )
    (report,) = check_text(Path("k.cu"), text).kernels
    return [f for f in report.findings if f.kind]


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = 0; i < n; i++) sum += in[row * n + i];",
        "for (int i = 0; i < n; i++) { float v = in[row * n + i]; if (v > 0) sum += expf(v); else break; }",
        "for (int i = 0; i < n; i++) for (int j = 0; j < row; j++) sum += in[i] * in[j];",
        "float most = in[row]; for (int i = 1; i < n; i++) most = fmaxf(most, in[i]);"
        " for (int i = 0; i < n; i++) sum += in[i] - most;",
    ],
)
def test_threads_that_add_up_the_same_store_one_value(body: str) -> None:
    races = found(body)
    assert races and all(f.effective_severity is Severity.INFORMATION for f in races)
    assert all("the same value" in f.message for f in races)


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = 0; i < n; i++) sum += in[i + threadIdx.x];",
        "for (int i = t; i < n; i++) sum += in[i];",
        "for (int i = 0; i < n - t; i++) sum += in[i];",
        "sum = in[t]; for (int i = 0; i < n; i++) sum += in[i];",
        "for (int i = 0; i < n; i++) sum += out[i + 4096];",
        "float own[4]; own[t & 3] = t; for (int i = 0; i < 4; i++) sum += own[i];",
        "for (int i = 0; i < 5; i++) sum += __shfl(in[i], i + threadIdx.x);",
        "const float* p = in + t; for (int i = 0; i < n; i++) sum += p[i];",
    ],
)
def test_what_threads_give_or_memory_may_have_become_differs(body: str) -> None:
    assert any(f.effective_severity is Severity.ERROR for f in found(body))
