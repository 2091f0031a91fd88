"""Tensors of five and six dimensions, whose strides lie in a record: rows in rows in rows, in 32 bits."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

LAUNCH = LaunchConfig((32, 4, 4), source=LaunchSource.FILE)
HEAD = """
struct Tensor { float* data; int s[6]; };
__global__ void k(Tensor o, const float* in, int P, int Q, int R, int H, int W) {
    int n = blockIdx.x, h = blockIdx.y * blockDim.y + threadIdx.y, w = blockIdx.z * blockDim.z + threadIdx.z;
"""
LOOPS = "for (int p = 0; p < P; ++p) for (int q = 0; q < Q; ++q) "
ROWS = "n * o.s[0] + p * o.s[1] + q * o.s[2] + "
FIVE = f"o.data[{ROWS}h * o.s[3] + w * o.s[4]]"
BELOW, ABOVE = FIVE.replace("h *", "p *"), FIVE.replace("h *", "(h + 1) *")
INSIDE = "if (h >= H || w >= W) return; "


def decided(body: str) -> SolverResult:
    return refine_kernel(lowered(HEAD + body + " }"), [LAUNCH], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    "body",
    [
        f"{INSIDE}{LOOPS}if (threadIdx.x == 0) {FIVE} = in[0];",
        f"{INSIDE}{LOOPS}if (threadIdx.x == 0) {FIVE} *= in[p];",
        f"if (h < H && w < W && threadIdx.x == 0) {LOOPS}{FIVE} = in[q];",
        f"{INSIDE}if (threadIdx.x) return; {LOOPS}for (int r = 0; r < R; ++r)"
        f" o.data[{ROWS}r * o.s[3] + h * o.s[4] + w * o.s[5]] = in[r];",
        f"{INSIDE}for (int p = 0; p < P; ++p) if (threadIdx.x < Q)"
        " o.data[n * o.s[0] + p * o.s[1] + threadIdx.x * o.s[2] + h * o.s[3] + w * o.s[4]] = in[p];",
    ],
)
def test_places_of_a_tensor_of_many_dimensions_are_apart(body: str) -> None:
    result = decided(body)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert any("`o.s[3]`" in text and "overlap" in text for text in result.assumptions)


@pytest.mark.parametrize(
    "body",
    [
        f"{INSIDE}{LOOPS}{FIVE} = in[threadIdx.x];",  # 32 threads a place
        f"{INSIDE}{LOOPS}if (threadIdx.x == 0) {{ float v = {ABOVE}; {FIVE} = v; }}",
        f"{INSIDE}{LOOPS}if (threadIdx.x == 0) {BELOW} = in[h];",
        f"if (h >= H || w > o.s[3] || threadIdx.x) return; {LOOPS}o.data[{ROWS}h * o.s[3] + w] = in[h];",
        f"if (h >= H || w * o.s[4] > o.s[3]) return; {LOOPS}if (threadIdx.x == 0) {FIVE} = in[h];",
        f"{INSIDE}{LOOPS}if (threadIdx.x == 0) {FIVE.replace('n *', '(n / 2) *')} = in[h];",
    ],
)
def test_what_several_threads_store_to_is_not_proved(body: str) -> None:
    assert decided(body).verdict is not Verdict.RACE_FREE
