"""Tensors whose strides nothing tells: elements of different coordinates do not overlap, and no more."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

LAUNCH = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
KERNEL = """
struct Four {{ int x, y, z, w; }};
__global__ void k(float* a, float* b, Four size, Four s) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= size.x) return;
    for (int q = blockIdx.z; q < size.z * size.w; q += gridDim.z)
        for (int y = blockIdx.y; y < size.y; y += gridDim.y) {{
            int c = q % size.z, n = q / size.z;
            {does}
        }}
}}
"""
PLACE = "x * s.x + y * s.y + c * s.z + n * s.w"


def decided(does: str) -> SolverResult:
    return refine_kernel(lowered(KERNEL.format(does=does)), [LAUNCH], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    "does",
    [
        f"a[{PLACE}] = x;",
        f"a[{PLACE}] *= 2;",
        "a[n * s.w + c * s.z + y * s.y + x * s.x] = x;",
        f"if (y > 3) a[{PLACE}] = x; else a[{PLACE}] = y;",
    ],
)
def test_coordinates_tell_elements_apart(does: str) -> None:
    result = decided(does)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    told = [text for text in result.assumptions if text.startswith("rows of ")]
    assert all("elements do not overlap" in text for text in told)


def test_what_is_taken_for_granted_names_the_strides() -> None:
    told, *_ = decided(f"a[{PLACE}] = x;").assumptions
    assert all(f"`s.{axis}`" in told for axis in "xyzw")


@pytest.mark.parametrize(
    "does",
    [
        f"a[{PLACE}] = a[{PLACE} + s.x];",  # its neighbour's
        "a[(x + 1) * s.x + y * s.y + c * s.z + n * s.w] = a[x * s.x + y * s.y + c * s.z + n * s.w];",
        "a[x * s.x + y * s.y + c * s.z] = x;",  # all images in one
        "a[x / 2 * s.x + y * s.y + c * s.z + n * s.w] = x;",  # two threads an element
        "a[x * s.x + y % 8 * s.y + c * s.z + n * s.w] = x;",  # rows once more
        f"a[{PLACE}] = x; a[{PLACE} + 1] = y;",  # the next element, by a number that is no coordinate
        f"a[{PLACE}] = x; a[s.x * size.x + {PLACE}] = y;",
    ],
)
def test_coordinates_that_threads_share_are_not_proved(does: str) -> None:
    assert decided(does).verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    "guard",
    [
        "x <= s.y",  # the columns leave rows of so many
        "s.w > size.x",
        "s.x == 0",
    ],
)
def test_strides_that_conditions_are_about_are_no_guess(guard: str) -> None:
    result = decided(f"if ({guard}) a[{PLACE}] = x;")
    assert result.verdict is not Verdict.RACE_FREE


TILES = """
__global__ void k(float* a, int sy, int sz, int w, int columns, int rows) {{
    int z = blockIdx.x / w, x = blockIdx.x % w * 32 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    for (int r = y; r < rows; r += gridDim.y * 4)
        for (int c = x; c < columns; c += w * 32) a[z * sz + r * sy + {column}] = r;
}}
"""


def in_tiles(column: str, budget: Budget | None = None) -> SolverResult:
    launch = LaunchConfig((32, 4, 1), source=LaunchSource.FILE)
    kernel = lowered(TILES.format(column=column))
    return refine_kernel(kernel, [launch], GpuModel("test", (9, 0)), budget)


def test_a_column_may_be_of_tiles_and_rounds_of_so_many() -> None:
    result = in_tiles("c")
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert any("`sy` and `sz`" in text or "`sz` and `sy`" in text for text in result.assumptions)


@pytest.mark.parametrize("column", ["c / 2", "x % 31", "c - x", "c - threadIdx.x % 2", "c - c / 64 * 64"])
def test_columns_of_tiles_that_meet_are_not_proved(column: str) -> None:
    assert in_tiles(column, Budget(kernel=0.4)).verdict is not Verdict.RACE_FREE


def test_a_row_that_is_a_part_of_the_column_is_no_coordinate() -> None:
    result = decided("b[x * s.x + x / 32 * s.y + c * s.z + n * s.w] = y; a[q] = 1;")
    assert result.verdict is not Verdict.RACE_FREE
