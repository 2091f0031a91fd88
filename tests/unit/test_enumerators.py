"""A parameter of an enumeration is one of its enumerators: taken for granted, and told."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text

THREAD = "int t = threadIdx.x, b = blockIdx.x;"
MODE = "enum Mode { Row, Column, Both };"
CLASS = "enum class Mode : unsigned char { Row = 3, Column = 7 };"
FLAGS = "enum Mode { Read = 1, Write = 2, Both = 4 };"


def kernel_of(kind: str, body: str, parameter: str = "Mode m") -> KernelReport:
    text = f"{kind}\n__global__ void k(int* out, {parameter}) {{ {THREAD} {body} }}\n"
    report = check_text(Path("k.cu"), f"{text}void f(int* o, {parameter}) {{ k<<<8, 256>>>(o, m); }}\n")
    assert not report.errors
    return report.kernels[0]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (MODE, "int d = m == Row ? 1 : m == Column ? 2 : m == Both ? 3 : 0; out[b * 1024 + t * d] = t;"),
        (MODE, "int i = 0; switch (m) { case Row: i = t; break; case Column: i = 2 * t; break;"
               " case Both: i = 3 * t; break; } out[b * 1024 + i] = t;"),
        (MODE, "__shared__ int s[256]; s[t] = t; if (m == Row || m == Column || m == Both) __syncthreads();"
               " out[b * 256 + t] = s[255 - t];"),
        (CLASS, "int d = m == Mode::Row ? 1 : m == Mode::Column ? 2 : 0; out[b * 1024 + t * d] = t;"),
        (FLAGS, "if (m > 7) out[0] = t; else out[b * 256 + t] = m;"),
    ],
)  # fmt: skip
def test_numbers_that_no_enumerator_has_are_not_passed(kind: str, body: str) -> None:
    kernel = kernel_of(kind, body)
    assert kernel.verdict is Verdict.RACE_FREE and not kernel.findings, kernel.reasons
    assert kernel.assumptions == ("`m` is one of its type's enumerators",)


def test_a_record_that_holds_one_is_read_like_it() -> None:
    body = "out[b * 1024 + t * (p.m == Row ? 1 : p.m == Column || p.m == Both ? 2 : 0)] = t;"
    text = f"{MODE} struct P {{ Mode m; int n; }};\n__global__ void k(int* out, P p) {{ {THREAD} {body} }}\n"
    report = check_text(Path("k.cu"), f"{text}void f(int* o, P p) {{ k<<<8, 256>>>(o, p); }}\n")
    assert report.kernels[0].verdict is Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (MODE, "out[b * 1024 + t * (m == Both ? 0 : 1)] = t;"),
        (
            MODE,
            "__shared__ int s[256]; s[t] = t; if (m == Row) __syncthreads(); out[b * 256 + t] = s[255 - t];",
        ),
        (FLAGS, "out[b * 1024 + t * (m == 3 ? 0 : 1)] = t;"),  # two of them
        ("enum Mode : int;", "out[b * 1024 + t * (m == 3 ? 0 : 1)] = t;"),
    ],
)
def test_races_that_an_enumerator_brings_are_told(kind: str, body: str) -> None:
    kernel = kernel_of(kind, body)
    assert kernel.verdict is Verdict.RACY
    assert any(f.status is Status.CONDITIONAL and f.kind for f in kernel.findings)


def test_an_integer_stays_any_number() -> None:
    body = "int d = m == Row ? 1 : m == Column ? 2 : m == Both ? 3 : 0; out[b * 1024 + t * d] = t;"
    assert kernel_of(MODE, body, "int m").verdict is Verdict.RACY
