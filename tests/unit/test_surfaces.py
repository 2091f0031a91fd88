"""Surfaces: accesses meet when all their coordinates do."""

from __future__ import annotations

import pytest
from extract_kernels import constructs, lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import refine_kernel

LAUNCH = LaunchConfig((16, 16, 1), None, source=LaunchSource.FILE)
HEAD = "int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y; float v = 0; "


def verdict(body: str) -> Verdict:
    text = (
        "__global__ void k(cudaSurfaceObject_t s, cudaSurfaceObject_t d, int w, int h) { " + HEAD + body + "}"
    )
    return refine_kernel(lowered(text), [LAUNCH], GpuModel("test", (9, 0))).verdict


@pytest.mark.parametrize(
    "body",
    [
        "if (x < w && y < h) surf2Dwrite(v, s, x * 4, y);",
        "if (x < w && y < h) for (int z = 0; z < 4; z++) surf3Dwrite(v, s, x * 4, y, z);",
        "v = surf2Dread<float>(s, x * 4 + 4, y); surf2Dwrite(v, d, x * 4, y);",
        "surf2Dread(&v, s, x * 4, y); surf2Dwrite(v, s, x * 4, y);",
    ],
)
def test_race_free(body: str):
    assert verdict(body) is Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "surf2Dwrite(v, s, x, y);",  # x is in bytes
        "surf2Dwrite(v, s, x * 4, y / 2);",
        "surf2DLayeredwrite(v, s, x * 4, 0, y / 2);",
        "v = surf2Dread<float>(s, x * 4 + 4, y); surf2Dwrite(v, s, x * 4, y);",
        "surf2Dread(&v, s, x * 4, y + 1); surf2Dwrite(v, s, x * 4, y);",
    ],
)
def test_racy(body: str):
    assert verdict(body) is Verdict.RACY


def test_handles_from_memory_may_be_one_surface():
    text = (
        "__global__ void k(cudaSurfaceObject_t* s) { int x = threadIdx.x;"
        " float v = surf1Dread<float>(s[0], x * 4 + 4); surf1Dwrite(v, s[1], x * 4); }"
    )
    result = refine_kernel(lowered(text), [LAUNCH], GpuModel("test", (9, 0)))
    assert result.verdict is not Verdict.RACE_FREE


def test_another_boundary_mode_is_said():
    text = (
        "__global__ void k(cudaSurfaceObject_t s) {"
        " surf1Dwrite(1.0f, s, threadIdx.x * 4 - 8, cudaBoundaryModeClamp); }"
    )
    assert constructs(lowered(text)) == ["surf1Dwrite"]


def test_what_is_read_is_a_new_value():
    text = "__global__ void k(cudaSurfaceObject_t s, int* a) { int v = 0; surf1Dread(&v, s, 0); a[v] = 1; }"
    assert refine_kernel(lowered(text), [LAUNCH], GpuModel("t", (9, 0))).verdict is not Verdict.RACE_FREE
