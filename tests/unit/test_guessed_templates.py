"""Template arguments that no launch tells are guessed by what parameters are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text


@pytest.mark.parametrize("name", ["StrideType", "stride_t", "pitch_type", "step_t", "IndexType"])
def test_what_counts_elements_is_an_integer(name: str) -> None:
    text = f"""
template <typename T, typename {name}>
__global__ void rows(T* out, const T* in, int n, {name} apart) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i * apart];
}}
template <typename T> void run(T* out, T* in, int n) {{ rows<<<n / 256 + 1, 256>>>(out, in, n, 1); }}
"""
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    assert {k.verdict for k in report.kernels} == {Verdict.RACE_FREE}
