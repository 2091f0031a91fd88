"""Host functions that call themselves on the way to what they return: nothing is known of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.static.analyze import check_text

KERNEL = "__global__ void k(float *a, float *b) { a[threadIdx.x] = b[threadIdx.x]; }\n"


@pytest.mark.parametrize(
    "functions",
    [
        "float *next(float *a, int n) { float *b = next(a, n - 1); return b; }",
        "float *other(float *a, int n);\n"
        "float *next(float *a, int n) { float *b = other(a, n); return b; }\n"
        "float *other(float *a, int n) { float *b = next(a, n - 1); return b; }",
        "float *next(float *a, int n) { float *b = a; if (n) b = next(b, n - 1); return b; }",
        "float *next(float *a, int n) { float *b; b = next(b, n); return b; }",
    ],
)
def test_a_value_that_is_made_of_itself_is_not_known(functions: str) -> None:
    text = f"{KERNEL}{functions}\nvoid go(float *a, int n) {{ float *b = next(a, n); k<<<1, 64>>>(a, b); }}"
    (site,) = find_launches(Path("/x/a.cu"), text)
    assert site.block == (64, 1, 1)
    assert not check_text(Path("k.cu"), text).errors
