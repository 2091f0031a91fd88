"""Tiles of a size that a parameter tells: that rows are multiples of it is taken for granted, and told."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
{directive}
__global__ void k(float* out, const float* in, int h, int w, int c, int tile, int shift) {{
    int plane = blockIdx.z * gridDim.y * gridDim.x, i = threadIdx.x, at = blockIdx.y * gridDim.x + blockIdx.x;
    int y = {y}, x = {x};
    int number = {number};
    if (i < c{guard}) out[(plane + number) * c + i] = in[(plane + at) * c + i];
    {after}
}}
void f(float* out, const float* in, int n, int h, int w, int c, int tile, int shift) {{
    {before}
    k<<<dim3({grid}, n), 128>>>(out, in, h, w, c, tile, shift);
}}
"""
NUMBER = "(y / tile * (w / tile) + x / tile) * tile * tile + y % tile * tile + x % tile"
TURNED = "shift != 0 ? (blockIdx.{axis} - shift + gridDim.{axis}) % gridDim.{axis} : blockIdx.{axis}"
THEY_FIT = "`h` and `w` are multiples of `tile`"


def report(number: str = NUMBER, y: str = "blockIdx.y", x: str = "blockIdx.x", **more: str) -> KernelReport:
    rest = {"directive": "", "guard": "", "after": "", "before": "", "grid": "w, h"} | more
    text = KERNEL.format(number=number, y=y, x=x, **rest)
    (found,) = check_text(Path("/k.cu"), text, Settings(solver_budget=700)).kernels
    return found


def test_sizes_are_taken_to_be_multiples_of_a_tile_that_counts_them() -> None:
    found = report()
    assert found.verdict is Verdict.RACE_FREE, found.reasons
    assert THEY_FIT in found.assumptions


def test_so_is_a_row_to_be_turned_by_no_more_than_it_is_long() -> None:
    found = report(y=TURNED.format(axis="y"), x=TURNED.format(axis="x"))
    assert found.verdict is Verdict.RACE_FREE, found.reasons
    assert f"{THEY_FIT}, and `shift` no more than that" in found.assumptions


@pytest.mark.parametrize(
    "more",
    [
        {"guard": " && y < h / tile * tile"},
        {"after": "if (x >= w / tile * tile) out[x] = 0;"},
        {"after": "if (w % tile != 0 && i == 0) out[plane] = 0;"},
        {"after": "for (int j = 0; j < (w + tile - 1) / tile; j++) out[h * w * c + i] += in[j];"},
        {"grid": "(w + tile - 1) / tile * tile, h"},
        {"directive": "// cuda-lsp: assume w == 10"},
        {"directive": "// cuda-lsp: assume w == 10 && h == 10 && tile == 4"},
    ],
)
def test_not_where_the_source_looks_after_a_rest(more: dict[str, str]) -> None:
    found = report(**more)
    assert found.verdict is not Verdict.RACE_FREE
    assert not any("multiple" in text for text in found.assumptions)


def test_it_is_the_doubt_that_is_told_then() -> None:
    found = report(guard=" && y < h / tile * tile")
    assert [f"whether {THEY_FIT};" in reason for reason in found.reasons] == [True], found.reasons
    assert not any(f.certain for f in found.findings)


@pytest.mark.parametrize(
    "number",
    [
        NUMBER.replace("+ x % tile", "+ x % tile / 2"),  # two blocks to a place
        NUMBER.replace("y % tile * tile", "y % tile"),
        NUMBER.replace("y / tile", "y / tile / 2"),
    ],
)
def test_what_meets_in_whole_tiles_is_not_granted(number: str) -> None:
    found = report(number)
    assert found.verdict is not Verdict.RACE_FREE
    assert not any("multiple" in text for text in (*found.reasons, *found.assumptions))


def test_what_fits_however_large_the_tiles_are_is_proved() -> None:
    found = report("y * w + x / tile * tile + x % tile")
    assert found.verdict is Verdict.RACE_FREE, found.reasons
    assert not any("multiple" in text for text in found.assumptions)
