"""Records that are passed by value and hold arrays: their numbers and pointers are parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text

BEFORE = """
enum Mode { Row, Column };
struct Param { float* ptr; int dims[4]; long long strides[4]; Mode mode[2]; float* more[2]; };
"""


def kernel_of(body: str, parameters: str = "Param p") -> KernelReport:
    names = ", ".join(part.split()[-1].lstrip("*") for part in parameters.split(","))
    text = (
        f"{BEFORE}__global__ void k({parameters}) {{\n"
        f"int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y; {body} }}\n"
        f"void f({parameters}) {{ k<<<dim3(7, 5), 256>>>({names}); }}\n"
    )
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    return report.kernels[0]


def test_strides_of_a_record_are_pitches_of_rows() -> None:
    kernel = kernel_of("if (x < p.dims[0] && y < p.dims[1]) p.ptr[x + y * p.strides[1]] = 1;")
    assert kernel.verdict is Verdict.RACE_FREE
    assert kernel.assumptions == ("rows of `p.strides[1]` elements do not overlap",)


def test_a_stride_that_the_index_forgets_is_a_race() -> None:
    kernel = kernel_of("if (x < p.dims[0] && y < p.dims[1]) p.ptr[x * p.strides[0]] = y;")
    assert kernel.verdict is Verdict.RACY


def test_its_numbers_are_named_in_conditions() -> None:
    kernel = kernel_of("if (x < p.dims[2]) p.ptr[0] = x;")
    conditions = {f.condition for f in kernel.findings if f.kind}
    assert any(condition and "`p.dims[2]`" in condition for condition in conditions)


def test_enumerations_in_it_are_enumerations() -> None:
    body = "int d = p.mode[1] == Row ? 1 : p.mode[1] == Column ? 2 : 0; p.ptr[(x + y * 4096) * d] = 1;"
    assert kernel_of(body).verdict is Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "p.more[y & 1][x] = y; p.more[0][x + 1] = x;",  # chosen, and named
        "int i = x & 1; p.more[i][0] = x;",
    ],
)
def test_its_tables_of_pointers_are_no_parameters(body: str) -> None:
    assert kernel_of(body).verdict is not Verdict.RACE_FREE


def test_pointers_of_two_records_are_apart_like_two_parameters() -> None:
    body = "if (x < p.dims[0]) p.ptr[x + y * p.dims[0]] = q.ptr[x + 1];"
    assert kernel_of(body, "Param p, Param q").verdict is Verdict.RACE_FREE
    body = "if (y == 0) p.ptr[x] = p.ptr[x + 1];"
    kernel = kernel_of(body)
    assert any(f.kind and f.status in (Status.PROVED, Status.CONDITIONAL) for f in kernel.findings)
