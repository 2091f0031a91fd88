"""A pointer that some way never sets is not followed there: nothing is accessed through it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
__device__ void doubled(float& x) {{ x = 2 * x; }}
__global__ void k(float4* out, const float4* in, float* more, int n) {{
    __shared__ float s[128], r[128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    float4 v; float2* h; float* p;
    {body}
}}
void f(float4* out, const float4* in, float* more, int n) {{ k<<<(n + 127) / 128, 128>>>(out, in, more, n); }}
"""
OWN = "if (i < n) {{ v = in[i]; h = reinterpret_cast<float2*>(&v); doubled(h[1].x); }} {wait} {last}"


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (OWN.format(wait="__syncthreads();", last="if (i < n) { h[0].y += 1; out[i] = v; }"), "race-free"),
        (OWN.format(wait="if (i >= n) return;", last="doubled(h[0].x); out[i] = v;"), "race-free"),
        ("if (i < n) p = more + i; __syncthreads(); if (i < n) *p = t;", "race-free"),
        ("if (t < 64) p = s + t; else p = r + t; __syncthreads(); *p = t;", "race-free"),
        (OWN.format(wait="__syncthreads();", last="if (i < n) { h[0].y += 1; out[i / 2] = v; }"), "racy"),
        ("if (i < n) p = more + i / 2; __syncthreads(); if (i < n) *p = t;", "racy"),
        ("if (t < 64) p = s + t; else p = s + t / 2; __syncthreads(); *p = t;", "racy"),
        ("if (i < n) p = s + t; if (i < n) { *p = t; more[i] = s[127 - t]; }", "racy"),
        ("p[t] = 1;", "undecided"),  # of nothing
        ("if (n > 5) h = (float2*)(more + t); h->x = 1;", "racy"),
    ],
)
def test_a_pointer_leads_where_some_way_has_set_it(body: str, verdict: str) -> None:
    (kernel,) = check_text(Path("k.cu"), TEXT.format(body=body)).kernels
    assert kernel.verdict is Verdict(verdict), kernel.reasons
