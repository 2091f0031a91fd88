"""Base classes of templates, of which libclang tells nothing, in records that stay in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

VIEWS = """
template <class T> struct Holder { T* data; };
template <class T> struct Rows : public Holder<T> {
  size_t step;
  __device__ T* row(int y) const { return (T*)((char*)Holder<T>::data + y * step); }
};
template <class T> struct Image : public Rows<T> { int width, height; };
template <class T> struct Size { int n; };
template <class T> struct Shift { int m; };
template <class T> struct Both : Size<T>, Shift<T> { T* out; T more[3]; };
template <class T> struct Marked { };
template <class T> struct Tagged : Marked<Tagged<T>>, Rows<T> { float more[2]; };
template <class T> struct Table { virtual int n() const; };
template <class T> struct Behind : Holder<T> { T scale[2]; virtual int n() const; };
"""
WORK = """struct Work { Image<float> in; Rows<float> out; float matrix[9]; int n;
  __device__ void operator()() const {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= in.width || y >= in.height) return;
    %s } };
"""
HERE = "int i = threadIdx.x + blockIdx.x * blockDim.x; "


def works(body: str, host: str = "") -> KernelReport:
    launch = "void f(Work w, Image<float> m) { " + host + "k<<<dim3(8, 8), dim3(32, 8)>>>(w); }\n"
    return kernel_of(WORK % body + "__global__ void k(const Work w) { w(); }\n" + launch)


def passed(type: str, body: str) -> KernelReport:
    return kernel_of(
        f"__global__ void k({type} p) {{ {HERE}{body} }}\nvoid f({type} p) {{ k<<<4, 256>>>(p); }}\n"
    )


def kernel_of(text: str) -> KernelReport:
    report = check_text(Path("k.cu"), VIEWS + text)
    assert not report.errors, report.errors
    return report.kernels[-1]


@pytest.mark.parametrize(
    "body",
    [
        "out.row(y)[x] = in.row(y)[x] * matrix[0];",
        "out.row(y)[x] = in.row(in.height - 1 - y)[x] * matrix[0];",
        "if (matrix[x % 9] > 0) out.row(y)[x] += in.row((y + 1) % in.height)[x];",
    ],
)
def test_pointers_of_hidden_base_classes_are_told_apart(body: str) -> None:
    kernel = works(body)
    assert kernel.verdict is Verdict.RACE_FREE, kernel.reasons


@pytest.mark.parametrize(
    "body",
    [
        "out.row(y)[x] = out.row(in.height - 1 - y)[x] * matrix[0];",
        "out.row(y / 2)[x] = in.row(y)[x] * matrix[0];",
        "out.row(0)[x] = in.row(y)[x] * matrix[0];",
    ],
)
def test_races_through_a_hidden_base_class_are_told(body: str) -> None:
    assert works(body).verdict is not Verdict.RACE_FREE


def test_what_launches_point_to_one_buffer_is_no_buffer_of_its_own() -> None:
    host = "w.in = m; w.out = m; "
    assert works("out.row(y)[x] = in.row(in.height - 1 - y)[x];", host).verdict is not Verdict.RACE_FREE


def test_the_only_base_class_that_has_members_stands_first() -> None:
    kernel = passed("Tagged<float>", "p.row(0)[i] = p.row(0)[i] + p.more[0];")
    assert kernel.verdict is Verdict.RACE_FREE, kernel.reasons
    assert passed("Tagged<float>", "p.row(0)[i] = p.row(0)[i + 1] + p.more[0];").verdict is Verdict.RACY


def test_of_several_base_classes_nobody_knows_where_each_stands() -> None:
    kernel = passed("Both<float>", "if (i < p.n) p.out[i] = p.out[i + p.m] + p.more[0];")
    assert kernel.verdict is Verdict.UNDECIDED


def test_a_table_of_virtual_functions_may_stand_before_a_base_class() -> None:
    assert passed("Behind<float>", "p.data[i] = p.scale[0];").verdict is Verdict.UNDECIDED


def test_a_specialisation_may_have_other_base_classes() -> None:
    text = """template <> struct Rows<int> : Size<int>, Shift<int> { int* at; };
    __global__ void k(Image<int> p) { %s if (i < p.n) p.at[i] = p.at[i + p.m]; }
    void f(Image<int> p) { k<<<4, 256>>>(p); }
    """
    assert kernel_of(text % HERE).verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize("more", ["float f;", "float f[3];"])
@pytest.mark.parametrize("template", ["", "template <class T> "])
def test_members_of_one_name_are_two(more: str, template: str) -> None:
    """Each base class has its own, and so has a class that hides its base's."""
    of = "<int>" if template else ""
    inherited = f"{template}struct N {{ int n; }};\n{template}struct D : N{'<T>' if template else ''} "
    records = f"{inherited}{{ int n; float* a; {more} }};\n"
    body = f"if (i < p.N{of}::n) p.a[i] = p.a[i + p.D{of}::n];"
    text = (
        f"{records}__global__ void k(D{of} p) {{ {HERE}{body} }}\nvoid f(D{of} p) {{ k<<<4, 256>>>(p); }}\n"
    )
    assert kernel_of(text).verdict is not Verdict.RACE_FREE


RECORDS = "struct Part { float* a; int n; };\nstruct Parts { Part p[3]; float* q[2]; };\n"


@pytest.mark.parametrize(
    ("body", "free"),
    [
        ("p.p[0].a[i] = p.p[1].a[i + 1];", True),
        ("p.p[0].a[i] = p.q[j][i + 1];", True),
        ("p.p[0].a[i] = p.p[0].a[i];", True),
        ("p.p[0].a[i] = p.p[j].a[i + 1];", False),  # j may be 0
        ("p.p[j].a[i] = p.p[0].a[i + 1];", False),
        ("p.p[0].a[i] = p.p[i % 2].a[i + 1];", False),
    ],
)
def test_a_record_that_a_kernel_chooses_may_be_one_that_it_names(body: str, free: bool) -> None:
    text = f"{RECORDS}__global__ void k(Parts p, int j) {{ {HERE}{body} }}\n"
    kernel = kernel_of(f"{text}void f(Parts p, int j) {{ k<<<4, 256>>>(p, j); }}\n")
    assert (kernel.verdict is Verdict.RACE_FREE) is free, kernel.reasons
