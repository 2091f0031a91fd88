"""Pointers that are kept in memory: published in shared memory, or in tables that the host filled."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Code, KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text

OWN = ("the pointers in `q` point to objects of their own",)


def kernel_of(parameters: str, body: str, arguments: str, before: str = "") -> KernelReport:
    text = f"{before}__global__ void k({parameters}) {{ int t = threadIdx.x, b = blockIdx.x; {body} }}\n"
    names = ", ".join(part.split()[-1].lstrip("*") for part in parameters.split(","))
    report = check_text(Path("k.cu"), f"{text}void f({parameters}) {{ k<<<{arguments}>>>({names}); }}\n")
    assert not report.errors, report.errors
    return report.kernels[-1]


def published(body: str, kept: str = "int* p") -> KernelReport:
    return kernel_of("int* a, int* c, int n", f"__shared__ {kept}; {body}", "8, 256")


@pytest.mark.parametrize(
    "body",
    [
        "if (t == 0) p = a + b * 256; __syncthreads(); p[t] = t;",
        "if (t == 0) p = a + b * blockDim.x; __syncthreads(); for (int i = t; i < 256; i += 256) p[i]++;",
        "__shared__ int s[512]; if (t == 0) p = s + 256; __syncthreads(); p[t] = t; __syncthreads();"
        " c[b * 256 + t] = p[255 - t];",
        "__shared__ int o; if (t == 0) { o = b * 256; p = a + o; } __syncthreads(); p[t] = o;",
    ],
)
def test_a_pointer_that_one_thread_publishes_points_where_it_says(body: str) -> None:
    kernel = published(body)
    assert kernel.verdict is Verdict.RACE_FREE and not kernel.findings, kernel.reasons


@pytest.mark.parametrize(
    "body",
    [
        "if (t == 0) p = a; __syncthreads(); p[t] = b;",  # one place for all blocks
        "if (t == 0) p = a + b * 255; __syncthreads(); p[t] = t + b;",  # blocks overlap by one
        "__shared__ int s[256]; if (t == 0) p = s; __syncthreads(); p[t] = t; c[b * 256 + t] = s[t ^ 65];",
        "if (t == 0) p = a + b * 256; p[t] = t;",  # read before it is published
    ],
)
def test_races_through_a_published_pointer_are_proved(body: str) -> None:
    kernel = published(body)
    assert kernel.verdict is Verdict.RACY
    assert any(f.kind and f.status is Status.PROVED and not f.same_value for f in kernel.findings)


def test_pointers_that_a_block_keeps_in_a_shared_table_are_followed() -> None:
    fill = "if (t < 4) p[t] = a + b * 1024 + {} * t; __syncthreads(); p[t / 64][t % 64] = t;"
    assert published(fill.format(64), "int* p[4]").verdict is Verdict.RACE_FREE
    assert published(fill.format(32), "int* p[4]").verdict is Verdict.RACY


@pytest.mark.parametrize(
    "body",
    [
        "if (t == 0) p = n ? a : c; __syncthreads(); p[b * 256 + t] = 1; a[b * 256 + 255 - t] = 2;",
        "if (t == 0) p = a; __syncthreads(); int* q = p; __syncthreads(); if (t == 0) p = c;"
        " __syncthreads(); q[b * 256 + t] = 1; p[b * 256 + t] = 2;",
        "int* q = p; if (t == 0) p = a; q[b * 256 + t] = 1; a[b * 256 + 255 - t] = 2;",
    ],
)
def test_pointers_into_several_objects_leave_the_kernel_undecided(body: str) -> None:
    kernel = published(body)
    assert kernel.verdict is not Verdict.RACE_FREE
    assert any("pointer kept in memory" in reason for reason in kernel.reasons)


@pytest.mark.parametrize(
    ("before", "parameter"),
    [
        ("", "float** q"),
        ("struct T { int n; float* p[8]; }; ", "T q"),
        ("__constant__ float* q[8]; ", "int n"),
    ],
)
def test_each_block_has_the_object_that_its_place_of_a_table_names(before: str, parameter: str) -> None:
    table = "q.p" if "struct" in before else "q"
    own = kernel_of(parameter, f"{table}[b][t] += 1;", "8, 256", before)
    assert own.verdict is Verdict.RACE_FREE and not own.findings
    assert own.assumptions == OWN
    halves = kernel_of(parameter, f"{table}[b / 2][t] += 1;", "8, 256", before)
    assert halves.verdict is Verdict.RACY
    (found,) = {str(f.witness) for f in halves.findings if f.kind and f.status is Status.PROVED} or {""}
    assert found.endswith("[0]")


def test_what_a_kernel_itself_puts_into_a_table_is_no_row_of_its_own() -> None:
    kernel = kernel_of("float** q, float* x", "q[b] = x; q[b][t] += 1;", "8, 256")
    assert kernel.verdict is not Verdict.RACE_FREE


def test_a_place_of_a_table_for_each_thread_stays_a_doubt() -> None:
    kernel = kernel_of("float** q", "q[t][b] += 1;", "8, 256")
    assert kernel.verdict is Verdict.UNDECIDED
    assert not any(f.status is Status.PROVED for f in kernel.findings if f.kind)


@pytest.mark.parametrize(
    ("value", "verdict"), [("(int)(-1.0f * b)", Verdict.RACY), ("(int)(0.3f * b)", Verdict.UNDECIDED)]
)
def test_what_is_computed_of_the_block_in_floats_differs_between_blocks(value: str, verdict: Verdict) -> None:
    """The first of them brings all blocks to one place, which only the floats themselves tell."""
    kernel = kernel_of("int* a, int* c", f"int i = {value}; a[i * 256 + b * 256 + t] = t;", "8, 256")
    assert kernel.verdict is verdict


ROWS_OF_OWN = """
    int* p = q[b];
    int rows = m[b], width = n[b];
    for (int i = 0; i < (rows * width + 63) / 64; i++) {
        int at = t + i * 64;
        if (at / width < rows) p[BLOCKS] = t;
    }
"""


def test_sizes_that_memory_has_do_not_lead_from_one_object_into_the_next() -> None:
    body = ROWS_OF_OWN.replace("BLOCKS", "at / width * width + at % width")
    kernel = kernel_of("int** q, const int* m, const int* n", body, "8, 64")
    assert kernel.verdict is Verdict.RACE_FREE and kernel.assumptions == OWN, kernel.reasons


@pytest.mark.parametrize("index", ["at / width", "at % width", "at / 2"])
def test_threads_of_a_block_still_meet_in_theirs(index: str) -> None:
    kernel = kernel_of("int** q, const int* m, const int* n", ROWS_OF_OWN.replace("BLOCKS", index), "8, 64")
    assert kernel.verdict is not Verdict.RACE_FREE


def test_blocks_that_choose_one_object_meet_there() -> None:
    body = ROWS_OF_OWN.replace("q[b]", "q[b / 2]").replace("BLOCKS", "at / width * width + at % width")
    kernel = kernel_of("int** q, const int* m, const int* n", body, "8, 64")
    assert kernel.verdict is not Verdict.RACE_FREE


FOUND = "int* x = c[b] > 0 ? a : c; if (t == 0) { p = nullptr; if (a[b] > 3) p = x; } __syncthreads();"


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (f"{FOUND} if (p == nullptr) return; __syncthreads(); c[b * 256 + t] = 1;", False),
        (f"{FOUND} if (!p) return; __syncthreads(); c[b * 256 + t] = 1;", False),
        (f"{FOUND} if (t < 3) p = x; if (p == nullptr) return; __syncthreads(); c[b * 256 + t] = 1;", True),
        (
            "if (t < 2) p[t] = c[t] > 0 ? a : nullptr; __syncthreads();"
            " if (p[t % 2] == nullptr) return; __syncthreads(); c[b * 256 + t] = 1;",
            True,
        ),
    ],
)
def test_a_pointer_that_all_read_from_one_place_is_null_for_all_or_none(body: str, parts: bool) -> None:
    kernel = published(body, "int* p[2]" if "p[t]" in body else "int* p")
    assert any(f.code is Code.BARRIER_DIVERGENCE for f in kernel.findings) is parts
