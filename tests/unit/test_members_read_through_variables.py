"""Strides of a tensor that is passed by value, read through pointers that are handed on."""

from __future__ import annotations

from pathlib import Path

from extract_kernels import lowered

from cuda_lsp.ir.program import Load
from cuda_lsp.ir.walk import walk
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

TENSOR = """
template <typename T, int N> struct View {
    T* data; const long* strides;
    __device__ View(T* d, const long* s) : data(d), strides(s) {}
    __device__ View<T, N - 1> operator[](long i) {
        return View<T, N - 1>(data + strides[0] * i, strides + 1);
    }
};
template <typename T> struct View<T, 1> {
    T* data; const long* strides;
    __device__ View(T* d, const long* s) : data(d), strides(s) {}
    __device__ T& operator[](long i) { return data[strides[0] * i]; }
};
template <typename T, int N> struct Tensor {
    T* data; long sizes[N]; long strides[N];
    __device__ View<T, N - 1> operator[](long i) const {
        const long* s = strides + 1;
        return View<T, N - 1>(data + strides[0] * i, s);
    }
};
"""
LAUNCH = "\nvoid f(Tensor<float, 2> a, long n) { fill<<<64, 128>>>(a, n); }\n"


def fill(body: str) -> str:
    return f"{TENSOR}__global__ void fill(Tensor<float, 2> a, long n) {{ {body} }}\n"


def report_of(body: str) -> KernelReport:
    (report,) = check_text(Path("/k.cu"), fill(body) + LAUNCH).kernels
    return report


def test_what_a_view_reads_of_its_strides_is_a_parameter() -> None:
    kernel = lowered(fill("a[blockIdx.x][threadIdx.x] = 1;"))
    assert "a.strides[1]" in {var.name for var in kernel.params}
    assert not any(isinstance(s, Load) for s in walk(kernel.body))


def test_elements_of_a_tensor_are_apart_where_its_rows_are() -> None:
    report = report_of("for (long p = threadIdx.x; p < n; p += blockDim.x) a[blockIdx.x][p] = 1;")
    assert report.verdict is Verdict.RACE_FREE, report.reasons
    assert any("do not overlap" in text for text in report.assumptions)


def test_one_element_that_all_threads_write_is_none_of_them() -> None:
    report = report_of("for (long p = 0; p < n; p++) a[blockIdx.x][p] = threadIdx.x;")
    assert report.verdict is not Verdict.RACE_FREE


def test_a_pointer_that_moves_on_through_the_strides_points_to_no_one_of_them() -> None:
    body = """const long* s = a.strides; long at = 0;
        for (int d = 0; d < 2; d++) { at += *s * threadIdx.x; s++; }
        a.data[at] = 1;"""
    kernel = lowered(fill(body))
    assert any(isinstance(s, Load) for s in walk(kernel.body))
