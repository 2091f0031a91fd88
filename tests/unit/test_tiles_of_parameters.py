"""Tiles of a size that a parameter tells: rows that are no multiple of it are the doubt that is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(float* out, const float* in, int h, int w, int c, int tile, int shift) {{
    int plane = blockIdx.z * gridDim.y * gridDim.x, i = threadIdx.x;
    int y = {y}, x = {x};
    int number = {number};
    if (i < c) out[(plane + number) * c + i] = in[(plane + blockIdx.y * gridDim.x + blockIdx.x) * c + i];
}}
void f(float* out, const float* in, int n, int h, int w, int c, int tile, int shift) {{
    k<<<dim3(w, h, n), 128>>>(out, in, h, w, c, tile, shift);
}}
"""
NUMBER = "(y / tile * (w / tile) + x / tile) * tile * tile + y % tile * tile + x % tile"
TURNED = "shift != 0 ? (blockIdx.{axis} - shift + gridDim.{axis}) % gridDim.{axis} : blockIdx.{axis}"
OF_SIZES = "`out` (line 6): whether `h` and `w` are multiples of `tile`"


def report(number: str = NUMBER, y: str = "blockIdx.y", x: str = "blockIdx.x") -> KernelReport:
    text = KERNEL.format(number=number, y=y, x=x)
    (found,) = check_text(Path("/k.cu"), text, Settings(solver_budget=700)).kernels
    return found


def test_sizes_that_are_no_multiples_of_a_tile_are_the_doubt() -> None:
    found = report()
    assert found.verdict is Verdict.UNDECIDED
    assert [f"{OF_SIZES};" in reason for reason in found.reasons] == [True]
    assert not any(f.certain for f in found.findings)


def test_so_is_a_row_that_is_turned_by_more_than_it_is_long() -> None:
    found = report(y=TURNED.format(axis="y"), x=TURNED.format(axis="x"))
    assert found.verdict is Verdict.UNDECIDED
    (reason,) = found.reasons
    assert f"{OF_SIZES}, and `shift` no more than that; an `assert`" in reason


@pytest.mark.parametrize(
    "number",
    [
        NUMBER.replace("+ x % tile", "+ x % tile / 2"),  # two blocks to a place
        NUMBER.replace("y % tile * tile", "y % tile"),
        NUMBER.replace("y / tile", "y / tile / 2"),
    ],
)
def test_what_meets_in_whole_tiles_is_no_doubt_about_them(number: str) -> None:
    found = report(number)
    assert found.verdict is not Verdict.RACE_FREE
    assert not any("multiple" in text for text in found.reasons)


def test_what_fits_however_large_the_tiles_are_is_proved() -> None:
    found = report("y * w + x / tile * tile + x % tile")
    assert found.verdict is Verdict.RACE_FREE, found.reasons
