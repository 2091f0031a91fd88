"""Loops that step by the grid over planes: a block and its round are one number, which no other block has."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
__global__ void k(float* out, int pitch, int height, int batch, int w, int h, float s) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if ({outside}) return;
    int plane = pitch * height;
    for (int i = {first}; i < batch; i += {step})
        for (int c = 0; c < {colours}; c++) out[{index} + c * plane] = x + y + c + i;
}}
void run(float* out, int pitch, int height, int batch, int w, int h, float s) {{
    dim3 grid((w + 31) / 32, (h + 7) / 8, {blocks});
    k<<<grid, dim3(32, 8)>>>(out, pitch, height, batch, w, h, s);
}}
"""


def checked(
    outside: str = "x >= w || y >= h", first: str = "blockIdx.z", step: str = "gridDim.z",
    colours: int = 3, index: str = "i * 3 * plane + y * pitch + x", blocks: str = "batch / 2",
) -> KernelReport:  # fmt: skip
    text = TEXT.format(
        outside=outside, first=first, step=step, colours=colours, index=index, blocks=blocks
    )  # fmt: skip
    (kernel,) = check_text(Path("k.cu"), text, PATIENT).kernels
    return kernel


@pytest.mark.parametrize("outside", ["x >= w || y >= h", "x >= (int)(w * s) || y >= (int)(h * s)"])
@pytest.mark.parametrize("blocks", ["batch / 2", "s > 1 ? batch : 4"])
def test_planes_of_blocks_and_rounds_are_apart(outside: str, blocks: str) -> None:
    kernel = checked(outside, blocks=blocks)
    assert kernel.verdict is Verdict.RACE_FREE
    assert any("elements do not overlap" in told for told in kernel.assumptions)


@pytest.mark.parametrize(
    "changed",
    [
        {"colours": 4},
        {"first": "0"},
        {"first": "blockIdx.z / 2"},
        {"step": "gridDim.z - 1"},
        {"step": "1"},
        {"index": "i * 2 * plane + y * pitch + x"},
        {"index": "i * 3 * plane + y * pitch"},
        {"index": "(i / 2) * 3 * plane + y * pitch + x"},
        {"outside": "x > pitch || y >= h"},
    ],
)
def test_planes_that_share_elements_are_not_cleared(changed: dict[str, str]) -> None:
    assert checked(**changed).verdict is not Verdict.RACE_FREE  # type: ignore[arg-type]
