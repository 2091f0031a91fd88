"""Kernels of one name in several namespaces have launches of their own, where these say whose they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.static.analyze import check_text

TEXT = """
namespace tiles { __global__ void smooth(float* out, int w) { out[threadIdx.x] = w; } }
namespace deep { namespace rows { __global__ void smooth(float* out, int w) { out[threadIdx.x] = w; } } }
struct myrows { static __device__ void none(); };
namespace short_rows = deep::rows;
void run(float* out, int w) { %s }
"""


def blocks(launches: str) -> list[set[tuple[int, int, int]]]:
    report = check_text(Path("k.cu"), TEXT % launches, Settings(solver=False))
    return [{launch.block for launch in kernel.launches} for kernel in report.kernels]


@pytest.mark.parametrize(
    ("launches", "tiles", "rows"),
    [
        ("tiles::smooth<<<1, 32>>>(out, w); deep::rows::smooth<<<1, 64>>>(out, w);", {32}, {64}),
        ("tiles :: smooth<<<1, 32>>>(out, w); ::deep::rows::smooth<<<1, 64>>>(out, w);", {32}, {64}),
        (
            "using namespace deep; tiles::smooth<<<1, 32>>>(out, w); rows::smooth<<<1, 64>>>(out, w);",
            {32},
            {64},
        ),
        # whose it is, nobody knows: it may be of both
        (
            "using namespace tiles; smooth<<<1, 32>>>(out, w); deep::rows::smooth<<<1, 64>>>(out, w);",
            {32, 64},
            {32, 64},
        ),
        ("short_rows::smooth<<<1, 96>>>(out, w);", {96}, {96}),
    ],
)
def test_a_launch_is_of_the_kernel_that_it_names(launches: str, tiles: set[int], rows: set[int]) -> None:
    assert [{x for x, _, _ in found} for found in blocks(launches)] == [tiles, rows]


OVERLOADED = """
FORWARD
__global__ void heat(int n, const float* a, const float* b, float* out) { out[threadIdx.x] = a[n] + b[n]; }
void one(int n, float* v, float* out) { heat<<<1, 32>>>(n, v, v + n, out); }
__global__ void heat(int n, const float* mass, float* x, float* out) { out[threadIdx.x] = mass[n] + x[n]; }
void two(int n, float* m, float* v, float* out) { heat<<<1, 64>>>(n, m, v, out); }
"""


@pytest.mark.parametrize(
    ("changed", "first", "second"),
    [
        (("FORWARD", ""), {32}, {64}),  # as many arguments, of types that nobody can tell apart
        (("FORWARD", "void no() { heat<<<1, 128>>>(0, 0, 0, 0); }"), {32, 128}, {64, 128}),
        (("heat<<<1, 64>>>(n, m, v, out)", "one(n, v, out)"), {32}, {256}),  # nobody launches the second
    ],
)
def test_a_launch_is_of_the_last_of_several_definitions(
    changed: tuple[str, str], first: set[int], second: set[int]
) -> None:
    text = OVERLOADED.replace(*changed).replace("FORWARD", "")
    report = check_text(Path("k.cu"), text, Settings(solver=False))
    found = [{launch.block[0] for launch in kernel.launches} for kernel in report.kernels]
    assert found == [first, second]
