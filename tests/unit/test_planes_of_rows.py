"""Pixels of rows in planes: what two planes hold is apart, taken for granted, and told."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.config import Settings
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

PLANES = """
struct Image { int dims[4]; int strides[4]; float* ptr; };
__global__ void k(Image out, const float* in, int shift) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < out.dims[0] && y < out.dims[1]) {
        STORES
    }
}
void host(Image image, float* in, int n) {
    k<<<dim3(n, n), dim3(16, 16)>>>(image, in, n);
}
"""


def report(stores: str) -> KernelReport:
    (found,) = check_text(Path("k.cu"), PLANES.replace("STORES", stores), Settings()).kernels
    return found


def test_planes_of_rows_are_apart_and_it_is_told():
    found = report("""
        int at = x + y * out.strides[1];
        out.ptr[at] = 1; out.ptr[at + out.strides[2]] = 2; out.ptr[at + 2 * out.strides[2]] = 3;
    """)
    assert found.verdict is Verdict.RACE_FREE
    assert any("out.strides[2]" in granted for granted in found.assumptions)


def test_stores_beside_loads_are_no_planes():
    found = report("int at = x + y * out.strides[1]; out.ptr[at] = out.ptr[at + shift];")
    assert found.verdict is not Verdict.RACE_FREE


def test_rows_that_the_program_makes_overlap_are_no_planes():
    found = report("""
        int at = x + y * out.strides[1];
        if (x + shift < out.dims[0]) { out.ptr[at] = 1; out.ptr[at + shift] = 2; }
    """)
    assert found.verdict is not Verdict.RACE_FREE


def test_what_floats_choose_does_not_make_sizes_certain():
    found = report("""
        int at = x + y * out.strides[1], which = (int)(in[x] * 6);
        float value = 0;
        switch (which % 3) { case 0: value = 1; break; case 1: value = in[y]; break; }
        out.ptr[at] = value; out.ptr[at + out.strides[2]] = 2;
    """)
    assert found.verdict is not Verdict.RACY
