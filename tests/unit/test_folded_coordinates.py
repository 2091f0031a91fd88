"""Blocks that stand for several coordinates: ``x - x / n * n``, folded axes, rows within rows."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

TENSOR = "struct Tensor { float* at; long long extent[4]; long long stride[4]; };\n"
ITEM = """
__global__ void k(Tensor t, int tiles, int rows, int other) {{
    {index}
    if (x >= t.extent[0] || y >= t.extent[1] || c >= t.extent[2] || n >= t.extent[3]) return;
    {body}
}}
"""
PLANE = """int c = blockIdx.x / tiles; int tile = blockIdx.x - c * tiles;
    int x = threadIdx.x + tile * blockDim.x;
    int n = 0; int y = threadIdx.y + blockIdx.y * blockDim.y;"""
VOLUME = """int c = blockIdx.x / tiles; int tile = blockIdx.x - c * tiles;
    int x = threadIdx.x + tile * blockDim.x;
    int flat = blockIdx.y + blockIdx.z * gridDim.y;
    int n = flat / rows; int row = flat - n * rows; int y = threadIdx.y + row * blockDim.y;"""
STORE = "t.at[n * t.stride[3] + c * t.stride[2] + y * t.stride[1] + x] = 1;"
STEPS = """for (int v = y; v < t.extent[1]; v += {down})
        for (int u = x; u < t.extent[0]; u += {along})
            t.at[n * t.stride[3] + c * t.stride[2] + v * t.stride[1] + u] = 1;"""
WHOLE = STEPS.format(down="rows * blockDim.y", along="tiles * blockDim.x")


def decided(index: str, body: str, launch: LaunchConfig | None = None) -> SolverResult:
    launch = launch or LaunchConfig((32, 8, 1), source=LaunchSource.FILE)
    kernel = lowered(TENSOR + ITEM.format(index=index, body=body))
    return refine_kernel(kernel, [launch], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    ("index", "body"),
    [
        (PLANE, STORE),
        (VOLUME, STORE),
        (VOLUME, WHOLE),
        (PLANE, STEPS.format(down="gridDim.y * blockDim.y", along="tiles * blockDim.x")),
        (VOLUME.replace("blockIdx.y + blockIdx.z * gridDim.y", "gridDim.y * blockIdx.z + blockIdx.y"), STORE),
    ],
)
def test_coordinates_made_of_block_indices_keep_blocks_apart(index: str, body: str) -> None:
    result = decided(index, body)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert any("do not overlap" in text for text in result.assumptions)


@pytest.mark.parametrize(
    ("index", "body"),
    [
        (PLANE.replace("blockIdx.x - c * tiles", "blockIdx.x % other"), STORE),
        (VOLUME.replace("flat - n * rows", "flat / 2 - n * rows"), STORE),
        (
            PLANE.replace("blockIdx.x / tiles", "blockIdx.x / tiles / 2"),
            STORE.replace("stride[1] + x", "stride[1]"),
        ),
        (VOLUME, STORE.replace("n * t.stride[3] + ", "")),
        (VOLUME, STORE.replace("c * t.stride[2]", "n * t.stride[2]")),
        (VOLUME, STEPS.format(down="rows * blockDim.y", along="blockDim.x")),  # into the next tile
        (VOLUME, STEPS.format(down="blockDim.y", along="tiles * blockDim.x")),
        (PLANE, STEPS.format(down="blockDim.y", along="tiles * blockDim.x")),
        (VOLUME.replace("blockIdx.z * gridDim.y", "blockIdx.z * gridDim.x"), STORE),
        (VOLUME.replace("blockIdx.z * gridDim.y", "blockIdx.z * (gridDim.y - 1)"), STORE),
        (VOLUME.replace("threadIdx.y + row", "threadIdx.y / 2 + row"), STORE),
    ],
)
def test_what_brings_blocks_together_is_not_proved(index: str, body: str) -> None:
    assert decided(index, body).verdict is not Verdict.RACE_FREE


def test_blocks_along_both_folded_axes_that_the_source_tells_are_all_looked_at() -> None:
    launch = LaunchConfig((32, 8, 1), (4, 2, 3), source=LaunchSource.FILE)
    wrong = VOLUME.replace("blockIdx.z * gridDim.y", "blockIdx.z * (gridDim.y - 1)")
    assert decided(VOLUME, STORE, launch).verdict is Verdict.RACE_FREE
    assert decided(wrong, STORE, launch).verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("store", "free"),
    [
        ("a[x + y * pitch] = 1;", True),
        ("a[x + y / 2 * pitch] = 1;", False),
        ("if (x <= pitch) a[x + y * pitch] = 1;", False),  # the first column of the next row
        ("if (x0 >= 0 && pitch > 0 && x < pitch - x0 % pitch) a[x + y * pitch] = 1;", True),
    ],
)
def test_a_remainder_that_all_threads_share_says_nothing_of_its_divisor(store: str, free: bool) -> None:
    kernel = lowered(f"""
__global__ void k(int* a, int pitch, int x0) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    {store}
}}
""")
    launch = LaunchConfig((32, 8, 1), source=LaunchSource.FILE)
    verdict = refine_kernel(kernel, [launch], GpuModel("test", (9, 0))).verdict
    assert (verdict is Verdict.RACE_FREE) is free


def test_what_all_threads_of_a_block_share_is_no_row_of_theirs() -> None:
    """``count * tile`` is the same for the whole block: its images lie in planes, and planes hold rows."""
    body = """int images = t.extent[2] - n * other < other ? t.extent[2] - n * other : other;
    for (int i = 0; i < images; i++)
        t.at[n * other * t.stride[2] + y * t.stride[1] + x + i * t.stride[2]] = 1;"""
    index = PLANE.replace("int c = blockIdx.x / tiles;", "int n = blockIdx.x / tiles, c = n;")
    index = index.replace("int n = 0; ", "")
    assert decided(index, body).verdict is Verdict.RACE_FREE
    assert decided(index, body.replace("y * t.stride[1]", "y / 2 * t.stride[1]")).verdict is Verdict.RACY
    assert decided(index, body.replace("i < images", "i <= images")).verdict is not Verdict.RACE_FREE
