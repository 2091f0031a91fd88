"""Products of several sizes overflow 32 bits for some sizes: told where a proof rests on that they do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from extract_kernels import lowered

from cuda_lsp.config import PATIENT
from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import Code, KernelReport, LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

TOLD = "32-bit indices do not overflow"
KERNEL = """
__global__ void k(float* a, int heads, int rows, int columns, unsigned seed) {{
    int b = blockIdx.y, h = blockIdx.x;
    for (int r = 0; r < rows; r++)
        for (int i = threadIdx.x; i < columns; i += blockDim.x) {{ {body} }}
}}
"""


def decided(body: str) -> SolverResult:
    launch = LaunchConfig((64, 1, 1), source=LaunchSource.FILE)
    return refine_kernel(lowered(KERNEL.format(body=body)), [launch], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    "body",
    [
        "int at = ((b * heads + h) * rows + r) * columns + (threadIdx.x + (i - threadIdx.x)); a[at] = 1;",
        "unsigned at = ((blockIdx.y * heads + blockIdx.x) * rows + r) * columns + i; a[at] = 1;",
        "unsigned at = ((blockIdx.y * gridDim.x + blockIdx.x) * rows + r) * columns + i; a[at] = 1;",
    ],
)
def test_an_index_of_four_dimensions_is_taken_not_to_overflow(body: str) -> None:
    result = decided(body)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert TOLD in result.assumptions


@pytest.mark.parametrize(
    "body",
    [
        "unsigned at = ((blockIdx.y * heads + blockIdx.x) * rows + r) * columns * 2654435761u + i;"
        " a[at] = 1;",
        "unsigned at = (blockIdx.y * heads + blockIdx.x - seed) * rows * columns + r * columns + i;"
        " a[at / 2] = 1;",
        "unsigned at = ((blockIdx.y * heads + blockIdx.x) * rows + r) * columns + i; a[at % seed] = 1;",
        "unsigned at = ((blockIdx.y * heads + blockIdx.x) * rows + r) * columns + i; a[at] = a[at + 1];",
        "unsigned at = (blockIdx.y * gridDim.y + blockIdx.x) * columns + i; if (r == 0) a[at] = 1;",
        "unsigned at = (blockIdx.y * gridDim.x + blockIdx.x) * columns + i; if (r < 2) a[at + r] = 1;",
    ],
)
def test_what_wraps_as_it_is_meant_to_is_not_proved(body: str) -> None:
    result = decided(body)
    assert result.verdict is not Verdict.RACE_FREE


PARTS = """
__global__ void k(float* y, unsigned first, unsigned step, unsigned n) {{
    unsigned each = (n - 1) / (gridDim.x * blockDim.x) + 1;
    unsigned begin = each * blockDim.x * blockIdx.x, end = each * blockDim.x * (blockIdx.x + 1){more};
    for (unsigned i = begin + threadIdx.x; i < end; i += blockDim.x)
        if ({guard}) y[{at}] += 1;
}}
"""


def in_parts(at: str = "i * step + first", guard: str = "i < n", more: str = "") -> SolverResult:
    launch = LaunchConfig((64, 1, 1), (32, 1, 1), source=LaunchSource.FILE)
    text = PARTS.format(at=at, guard=guard, more=more)
    return refine_kernel(lowered(text), [launch], GpuModel("test", (9, 0)))


def test_a_quotient_of_a_size_that_a_guard_keeps_above_zero_is_a_size() -> None:
    result = in_parts()
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert "rows of `step` elements do not overlap" in result.assumptions


@pytest.mark.parametrize(
    "changed",
    [
        {"more": " + 1"},  # the next block's first element, too
        {"at": "i * step + first - i % 2"},
        {"at": "i / 2 * step + first"},
        {"at": "(i - first) * step"},
        {"guard": "i < n && step == 0"},
    ],
)
def test_parts_that_overlap_are_not_proved(changed: dict[str, str]) -> None:
    assert in_parts(**changed).verdict is not Verdict.RACE_FREE


BACKWARDS = """
__global__ void k(float* b, unsigned n, unsigned w, unsigned first, unsigned step) {{
    for (unsigned k = 0; {rounds}; ++k) {{
        unsigned row = n - 1 - k;
        __syncthreads();
        float x = b[(row * step + first) * w + blockIdx.x];
        for (unsigned i = threadIdx.x; i < {above}; i += blockDim.x)
            b[({row} * step + first) * w + blockIdx.x] -= x;
    }}
}}
"""


def backwards(rounds: str = "k < n", above: str = "row", row: str = "i") -> SolverResult:
    launch = LaunchConfig((64, 1, 1), source=LaunchSource.FILE)
    text = BACKWARDS.format(rounds=rounds, above=above, row=row)
    return refine_kernel(lowered(text), [launch], GpuModel("test", (9, 0)))


def test_a_row_that_is_counted_from_the_end_is_a_row() -> None:
    result = backwards()
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert TOLD in result.assumptions


@pytest.mark.parametrize(
    "changed",
    [
        {"rounds": "k <= n"},  # the row before the first
        {"above": "row + 1"},  # which all threads read
        {"row": "(i / 2)"},
        {"row": "(row - i)"},
        {"row": "(i - k)"},
    ],
)
def test_rows_that_are_counted_beyond_the_end_are_not_proved(changed: dict[str, str]) -> None:
    assert backwards(**changed).verdict is not Verdict.RACE_FREE


def test_where_nothing_can_overflow_nothing_is_told() -> None:
    assert TOLD not in decided("if (b == 0 && h == 0 && r == 0) a[i] = 1;").assumptions


def told(text: str) -> KernelReport:
    return check_text(Path("k.cu"), text, PATIENT).kernels[0]


GRID = """
__global__ void k(int* out) {{ unsigned i = blockIdx.x * 256 + threadIdx.x; out[i * {factor}u] = {value}; }}
void f(int* out) {{ k<<<{blocks}, 256>>>(out); }}
"""


@pytest.mark.parametrize(("blocks", "factor"), [("1u << 25", 1), ("1u << 15", 1024)])
def test_a_wrap_under_the_grid_of_the_source_is_named(blocks: str, factor: int) -> None:
    report = told(GRID.format(blocks=blocks, factor=factor, value="i >> 3"))
    (found,) = [f for f in report.findings if f.code is Code.GLOBAL_RACE]
    assert "the 32-bit index wraps" in found.message and report.verdict is Verdict.RACY


def test_a_race_without_a_wrap_does_not_name_one() -> None:
    report = told(GRID.format(blocks="1u << 25", factor=0, value="i"))
    assert report.verdict is Verdict.RACY and "wraps" not in report.findings[0].message


TOLD_SIZES = """
// cuda-lsp: assume n <= 32
// cuda-lsp: assume n > {least}
__global__ void k(float* a, int n, int rounds) {{
    int width = n > 32 ? n : 32, t = threadIdx.x;
    int at = blockIdx.y * (gridDim.x * 4 * n) + blockIdx.x * 4 * n + t / width * n;
    for (int r = 0; r < rounds; r++) {{
        int i = r * blockDim.x + t % width;
        if (i < {limit}) a[at + i] += 1;
    }}
}}
"""


def of_told_sizes(limit: str, least: int = 15) -> SolverResult:
    kernel = lowered(TOLD_SIZES.format(limit=limit, least=least))
    launch = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
    return refine_kernel(kernel, [launch], GpuModel("test", (9, 0)))


def test_what_is_told_of_sizes_makes_addresses_simple() -> None:
    result = of_told_sizes("n")
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize("limit", ["n + 1", "width"])
def test_what_is_told_of_sizes_proves_no_more_than_it_says(limit: str) -> None:
    assert of_told_sizes(limit).verdict is not Verdict.RACE_FREE


def test_columns_of_another_size_are_free_where_rows_are_taken_to_be_apart() -> None:
    result = of_told_sizes("rounds")
    assert (
        result.verdict is not Verdict.RACE_FREE or "rows of `n` elements do not overlap" in result.assumptions
    )


FOR_SIZES = """
__global__ void k(int* out, int n) {{
    unsigned at = {row};
    for (int i = threadIdx.x; i < {limit}; i += blockDim.x) out[at + i] = {value};
}}
void f(int* out, int n) {{ k<<<dim3({blocks}, n), n >= 1024 ? 1024 : n>>>(out, n); }}
"""


def for_sizes(row: str, blocks: str = "b", limit: str = "n", value: str = "blockIdx.x") -> KernelReport:
    text = FOR_SIZES.format(row=row, limit=limit, blocks=blocks, value=value)
    return told(
        text.replace("int* out, int n)", "int* out, int n, int b)").replace("(out, n);", "(out, n, b);")
    )


def test_a_size_that_a_launch_is_made_for_is_a_size_still() -> None:
    report = for_sizes("blockIdx.x * (n * n) + blockIdx.y * n")
    assert report.verdict is Verdict.RACE_FREE and TOLD in report.assumptions


@pytest.mark.parametrize(
    ("row", "blocks", "limit"),
    [
        ("blockIdx.x * (n * n) + blockIdx.y * n", "b", "n + 1"),
        ("blockIdx.x * (n * n) + blockIdx.y", "b", "n"),
        ("blockIdx.x * 65536", "1u << 20", "1"),
        ("blockIdx.x * 2654435761u", "b", "n"),
    ],
)
def test_such_a_size_hides_no_other_race(row: str, blocks: str, limit: str) -> None:
    assert for_sizes(row, blocks, limit).verdict is not Verdict.RACE_FREE
