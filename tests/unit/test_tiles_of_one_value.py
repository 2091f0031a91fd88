"""Blocks whose tiles overlap: whether what both store in one place is one value."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from cuda_lsp.config import Settings
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.model import RaceKind
from cuda_lsp.static.diagnostics.races import race_findings
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.tiers import launches_of
from cuda_lsp.static.witnessed_values import with_values

TILES = """
#include <cuda_fp16.h>
__global__ void k(const float* in, const unsigned char* pixels, const half* halves, {type}* out, float gain,
                  int w, int h) {{
    __shared__ float s[324];
    float sum = 0;
    for (int e = threadIdx.x; e < 324; e += blockDim.x) {{
        int x = blockIdx.x * 16 + e % 18, y = blockIdx.y * 16 + e / 18, i = y * w + x;
        {before}
        if (x < w && y < h) out[i] = {value};
    }}
}}
void f(float* in, unsigned char* p, half* b, {type}* out, float gain, int w, int h) {{
    k<<<dim3((w + 15) / 16, (h + 15) / 16), 128>>>(in, p, b, out, gain, w, h);
}}
"""
WITNESS = {"w": 17, "h": 49}


def overlapping(value: str, type: str = "float", before: str = "") -> Diagnosis:
    """What is said of two blocks of which a solver's witness says that they meet."""
    translation = Translation(Path("k.cu"), TILES.format(value=value, type=type, before=before))
    (source,) = translation.kernels()
    kernel = evolve(translation.lower(source), followed=translation.lower(source, valued=True))
    gpu, (launch, *_) = Settings().gpu, launches_of(kernel, Settings())
    trace = execute(kernel, evolve(launch, grid=(2, 4, 1)), WITNESS, gpu, blocks=((0, 2, 0), (1, 3, 0)))
    found = next(f for f in race_findings(trace) if f.kind is RaceKind.WAW)
    assert found.witness is not None and found.witness.blocks is not None and not found.same_value
    asked = evolve(found, launch=launch, witness=evolve(found.witness, arguments=WITNESS))
    (told,) = with_values(kernel, [asked], gpu)
    return told


ONE_VALUE = [
    ("in[i]", "float"),
    ("gain * sqrtf(in[i] / 255.f)", "float"),
    ("in[i] * gain + pixels[i]", "float"),
    ("(unsigned char)(255 * sqrtf(pixels[i] / 255.f))", "unsigned char"),
    ("in[i] > 0.5f ? 255 : pixels[i]", "unsigned char"),
    ("(int)in[i] % w", "int"),
    ("in[i] < in[(y + 1) * w - 1]", "bool"),
    ("__hmul(halves[i], halves[y])", "half"),
]


@pytest.mark.parametrize(("value", "type"), ONE_VALUE)
def test_what_blocks_compute_alike_of_one_element_is_one_value(value: str, type: str) -> None:
    found = overlapping(value, type)
    assert found.same_value
    assert "(both write the same value)" in found.message


SEVERAL_VALUES = [
    ("in[i] * blockIdx.x", "float"),
    ("in[i + blockIdx.x]", "float"),
    ("in[i] + threadIdx.x", "float"),
    ("in[min(i, y * w + (int)blockIdx.x * 16 + 16)]", "float"),
    ("in[i] * (w > 17 ? blockIdx.x : 1)", "float"),  # under other arguments than the witness'
    ("in[i] * (h > 49 && blockIdx.y == 1 ? 2.f : 1.f)", "float"),  # and between other blocks
    ("out[i] * gain", "float"),
    ("(unsigned char)(255 * sqrtf(in[i] / (blockIdx.x + 1)))", "unsigned char"),
    ("in[blockIdx.x] > 0.5f ? 255 : pixels[i]", "unsigned char"),
    ("(int)in[i] + e", "int"),
    ("in[i] < in[e]", "bool"),
    ("__hmul(halves[i], halves[e])", "half"),
]


@pytest.mark.parametrize(("value", "type"), SEVERAL_VALUES)
def test_what_hangs_on_the_block_or_on_the_thread_is_not(value: str, type: str) -> None:
    assert not overlapping(value, type).same_value


@pytest.mark.parametrize(
    ("before", "value"),
    [
        ("sum += in[i];", "sum"),
        ("s[e] = in[e];", "s[e]"),
        ("float v = __shfl_xor_sync(~0u, in[i], 2);", "v"),
        ("float v = in[i]; if (in[e] > 0.5f) v = gain;", "v"),
    ],
)
def test_nor_what_is_summed_up_shared_or_exchanged(before: str, value: str) -> None:
    assert not overlapping(value, before=before).same_value
