"""What a run puts into a kernel's parameters, and where: records of every shape, packs, empty functors."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.confirm import kernel_parameters
from cuda_lsp.static.analyze import Analyzer

TEXT = """
struct Empty {};
struct Aligned { int n; int4 v; short s; float* p; };
struct Tagged { char tag[3]; float* p; };
struct Bits { int a : 3; int b : 5; float* p; };
struct Base { char c; };
struct Derived : Base { float* p; };
struct Either { union { int i; double* d; }; float* p; };
struct Rows { float* rows[3]; Empty e; int n; };
template <class F> __global__ void functor(F f, float* p) { p[f(threadIdx.x)] = 1; }
struct Twice { __device__ int operator()(int i) const { return 2 * i; } };
template <class... A> __global__ void pack(float* p, A... a) { p[threadIdx.x] = (0 + ... + a); }
__global__ void aligned(Aligned a) { a.p[threadIdx.x] = a.v.y; }
__global__ void tagged(Tagged a) { a.p[threadIdx.x] = a.tag[1]; }
__global__ void bits(Bits a) { a.p[threadIdx.x] = a.a; }
__global__ void derived(Derived a) { a.p[threadIdx.x] = a.c; }
__global__ void either(Either a) { a.p[threadIdx.x] = a.d[0]; }
__global__ void rows(Rows a) { a.rows[1][threadIdx.x] = a.n; }
__global__ void unnamed(int, float* p, short) { p[threadIdx.x] = 1; }
void run(float* p, Aligned a, Tagged t, Bits b, Derived d, Either e, Rows r) {
    functor<<<1, 64>>>(Twice{}, p); pack<<<1, 64>>>(p, 1, 2.0, 'c');
    aligned<<<1, 64>>>(a); tagged<<<1, 64>>>(t); bits<<<1, 64>>>(b); derived<<<1, 64>>>(d);
    either<<<1, 64>>>(e); rows<<<1, 64>>>(r); unnamed<<<1, 64>>>(1, p, 2);
}
"""
# Offsets and sizes as nvcc's PTX has them: of each parameter its bytes, and where its pointers stand.
EXPECTED = {
    "functor": [(1, []), (8, [0])],
    "pack": [(8, [0]), (4, []), (8, []), (1, [])],
    "aligned": [(48, [40])],
    "tagged": [(16, [8])],
    "bits": [(16, [8])],
    "derived": [(16, [8])],
    "either": [(16, [0, 8])],
    "rows": [(32, [0, 8, 16])],
    "unnamed": [(4, []), (8, [0]), (2, [])],
}


@pytest.fixture(scope="module")
def layouts():
    analyzer, path = Analyzer(Settings(solver=False)), Path("layouts.cu")
    found = {}
    for report in analyzer.update(path, TEXT).kernels:
        kernel = analyzer.kernel(path, report.name)
        assert kernel is not None
        found[report.name.partition("<")[0]] = [
            (p.size, [piece.offset for piece in p.pieces if piece.pointer]) for p in kernel_parameters(kernel)
        ]
    analyzer.shutdown()
    return found


@pytest.mark.parametrize("kernel", EXPECTED)
def test_members_stand_where_the_compiler_puts_them(layouts, kernel):
    assert layouts[kernel] == EXPECTED[kernel]
