"""Rows whose pitch is given in bytes: ``y * (pitch / sizeof(float)) + x``."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text


def kernel(body: str, of: str = "size_t") -> KernelReport:
    text = f"""
__global__ void k(float* out, const float* in, {of} pitch, int w, int h) {{
    int x = threadIdx.x + 16 * blockIdx.x, y = threadIdx.y + 16 * blockIdx.y;
    {body}
}}
void go(float* o, const float* i, {of} p, int w, int h) {{
    k<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(o, i, p, w, h);
}}
"""
    (report,) = check_text(Path("k.cu"), text, PATIENT).kernels
    return report


@pytest.mark.parametrize("of", ["size_t", "unsigned", "int"])
@pytest.mark.parametrize("elements", ["pitch / sizeof(float)", "(int)(pitch >> 2)", "(unsigned)(pitch / 4)"])
def test_rows_of_a_pitch_in_bytes_do_not_overlap(of: str, elements: str) -> None:
    found = kernel(f"if (x < w && y < h) {{ auto p = {elements}; out[y * p + x] = in[y * p + x]; }}", of)
    assert found.verdict is Verdict.RACE_FREE, found.reasons
    assert "rows of `pitch / 4` elements do not overlap" in found.assumptions


def test_a_record_says_how_far_its_rows_are_apart() -> None:
    text = """
struct Size { unsigned w, h, d; };
__global__ void k(cudaPitchedPtr out, cudaPitchedPtr in, Size size) {
    unsigned x = threadIdx.x + 16 * blockIdx.x, y = threadIdx.y + 16 * blockIdx.y;
    if (x >= size.w || y >= size.h) return;
    unsigned row = out.pitch >> 2;
    for (unsigned z = 0; z < size.d; z++)
        ((float*)out.ptr)[(z * size.h + y) * row + x] = ((float*)in.ptr)[(z * size.h + y) * row + x];
}
void go(cudaPitchedPtr o, cudaPitchedPtr i, Size s) { k<<<dim3(4, 4), dim3(16, 16)>>>(o, i, s); }
"""
    (found,) = check_text(Path("k.cu"), text, PATIENT).kernels
    assert found.verdict is Verdict.RACE_FREE, found.reasons
    assert "rows of `out.pitch / 4` and `size.h` elements do not overlap" in found.assumptions


@pytest.mark.parametrize(
    "body",
    [
        # The program bounds columns by the row, and beyond it:
        "int p = pitch / 4; if (x < 2 * p && y < h) out[y * p + x] = 1 + y;",
        "int p = pitch / 4; if (x <= p && y < h) out[y * p + x] = x;",
        "int p = pitch / 4; if (x + 1 < w && y < h) out[y * p + x] += out[y * p + x + 1];",
        "int p = pitch / 4; for (int i = x; i < 2 * p && y < h; i += 64) out[y * p + i] = y;",
        # What else is said of the pitch is about it, and not of its quotient:
        "int p = pitch / 4; if (x < pitch && y < h) out[y * p + x] = 1 + y;",
        "int p = pitch / 4; for (int i = x; i < pitch && y < h; i += 64) out[y * p + i] = y;",
        "int p = pitch / 4; if (x < w && y < h && w >= pitch) out[y * p + x] = 1 + y;",
        "int p = pitch / 4; if (x < w && y < h) out[y * p + x % 8] = x;",
        "int p = pitch / 4; if (p > 0 && pitch > 0) out[x / pitch * w + x % p] = x;",
        "int p = pitch / 4, q = pitch / 8; if (x < 2 * p && y < h) out[y * q + x] = x;",
    ],
)
def test_rows_that_overlap_are_not_taken_apart(body: str) -> None:
    assert kernel(body, "int").verdict is not Verdict.RACE_FREE
