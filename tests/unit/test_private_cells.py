"""What threads' own arrays hold after stores of other sizes, to places nobody knows, or by some lanes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(int* out, const int* in, int n) {{
  int t = threadIdx.x;
  {body}
}}
void f(int* o, const int* i, int n) {{ k<<<1, 64>>>(o, i, n); }}
"""


def verdict(body: str) -> Verdict:
    (kernel,) = check_text(Path("a.cu"), KERNEL.format(body=body)).kernels
    return kernel.verdict


@pytest.mark.parametrize(
    "body",
    [
        "int a[2] = {t, t}; *(long long*)a = 0; out[a[1]] = t;",
        "int a[2] = {t, t}; ((char*)a)[4] = 0; out[a[1]] = t;",
        "long long a = t; *(int*)&a = 0; out[(int)a] = t;",
        "int a[2] = {0, 0}; a[n & 1] = 0; if (t < 1) a[0] = t; out[a[0]] = t;",
        "int a[4], b[4] = {0, 0, 0, 0}; for (int i = 0; i < 4; i++) a[i] = b[i];"
        "memcpy(a, b, 16); if (t < 1) a[0] = t; out[a[0]] = t;",
        "int a[2] = {t, t}; atomicExch(&a[1], 0); out[a[1]] = t;",
        "int a[2] = {0, 0}; if (in[t]) a[0] = t; out[a[0]] = t;",
    ],
)
def test_what_other_stores_may_have_left_is_not_taken_for_what_was_there(body: str) -> None:
    assert verdict(body) is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "int a[2] = {t, 0}; *(long long*)a = 0; a[0] = t; out[a[0]] = t;",
        "int a[2] = {0, t}; a[0] = 7; out[a[1]] = t;",
        "int a[2]; if (t < 32) a[0] = t; else a[0] = t + 64; out[a[0]] = t;",
        "int a[2] = {t, 0}; if (t < 32) a[0] = t + 64; out[a[0]] = t;",
        "int a[4]; for (int i = 0; i < 4; i++) a[i] = 4 * t + i; for (int i = 0; i < 4; i++) out[a[i]] = t;",
        "int a[64]; a[t] = t; out[a[t]] = t;",
    ],
)
def test_what_each_thread_stored_is_known(body: str) -> None:
    assert verdict(body) is Verdict.RACE_FREE
