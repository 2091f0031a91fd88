"""Accesses that operators of classes make: on members of other objects, and of ``__half`` and its kin."""

from __future__ import annotations

from extract_kernels import accesses, printed

_NARROW = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"


def kernel(statement: str, parameters: str = "__half* a, const float* f, int i") -> str:
    return f"{_NARROW}__global__ void k({parameters}) {{ {statement} }}\n"


def test_a_narrow_float_passed_by_value_is_read() -> None:
    assert accesses(kernel("a[i] = __hadd(a[i + 1], a[i + 2]);"), "a") == [
        "_ = load float16 &a + (i + 1) * 2 B",
        "_ = load float16 &a + (i + 2) * 2 B",
        "store float16 &a + i * 2 B <- ?",
    ]


def test_a_narrow_float_is_read_to_initialise_another() -> None:
    assert accesses(kernel("__half x = a[i]; __half y(a[i + 1]); __half z{a[i + 2]};"), "a") == [
        "_ = load float16 &a + i * 2 B",
        "_ = load float16 &a + (i + 1) * 2 B",
        "_ = load float16 &a + (i + 2) * 2 B",
    ]


def test_a_narrow_float_converted_to_float_is_read() -> None:
    assert accesses(kernel("float x = a[i]; float y = (float)a[i + 1] + 2.0f;"), "a") == [
        "_ = load float16 &a + i * 2 B",
        "_ = load float16 &a + (i + 1) * 2 B",
    ]


def test_a_float_converted_to_a_narrow_one_is_read() -> None:
    assert [line for line in printed(kernel("a[i] = f[i]; __half x = f[i + 1];")) if "load" in line] == [
        "_ = load float32 &f + i * 4 B",
        "_ = load float32 &f + (i + 1) * 4 B",
    ]


def test_compound_assignment_of_narrow_floats_reads_and_writes() -> None:
    assert accesses(kernel("a[i] += a[i + 1];"), "a") == [
        "_ = load float16 &a + (i + 1) * 2 B",
        "_ = load float16 &a + i * 2 B",
        "store float16 &a + i * 2 B <- ?",
    ]


def test_a_pair_of_narrow_floats_is_read_and_written_whole() -> None:
    found = accesses(kernel("a[i] *= a[i + 1];", "__half2* a, int i"), "a")
    assert [line.split()[0] for line in found] == ["_", "_", "store"]


def test_a_member_is_assigned_from_another_objects_member() -> None:
    text = """
struct Point { float x, y; };
struct Body { Point at; int kind; };
__global__ void k(Body* a, const Body* b, int i) { a[i].at = b[i + 1].at; }
"""
    assert accesses(text, "b") == ["_ = load Point &b + (i + 1) * 12 B"]
    assert accesses(text, "a") == ["store Point &a + i * 12 B <- ?"]


def test_one_half_of_a_pair_is_assigned() -> None:
    assert accesses(kernel("a[i].y = a[i + 1].x;", "__half2* a, int i"), "a") == [
        "_ = load float16 &a + (i + 1) * 4 B",
        "store float16 &a + (i * 4 + 2) B <- ?",
    ]


def test_an_operator_of_a_class_is_called_on_a_member() -> None:
    text = """
struct Counter { int n; __device__ Counter& operator+=(int by) { n += by; return *this; } };
struct Cell { Counter here, there; };
__global__ void k(Cell* a, int i) { a[i].there += 5; }
"""
    assert accesses(text, "a") == [
        "t5 = load int32 &a + (i * 8 + 4) B",
        "store int32 &a + (i * 8 + 4) B <- t5 + 5",
    ]
