"""Columns of which a guard bounds a part by the width: that they stay in their rows is not for granted."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

LAUNCH = LaunchConfig((8, 8, 1), source=LaunchSource.FILE)
KERNEL = """
__global__ void k(float* a, int rows, int w) {{
    int eight = blockIdx.x * 8 + threadIdx.y, first = 8 * eight, lane = threadIdx.x;
    if ({leaves}) return;
    for (int r = 0; r < rows; r++) a[r * {pitch} + first + lane] = r;
}}
"""


def decided(leaves: str, pitch: str = "w") -> SolverResult:
    kernel = lowered(KERNEL.format(leaves=leaves, pitch=pitch))
    return refine_kernel(kernel, [LAUNCH], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    ("leaves", "pitch"),
    [
        ("first >= w", "w"),  # the last eight may go on in the next row
        ("first + 4 >= w", "w"),
        ("eight >= w", "(4 * w)"),
        ("first > w - lane", "w"),
    ],
)
def test_what_goes_on_behind_the_bound_may_leave_the_row(leaves: str, pitch: str) -> None:
    result = decided(leaves, pitch)
    assert result.verdict is not Verdict.RACE_FREE, result.assumptions


@pytest.mark.parametrize(
    ("leaves", "pitch"),
    [
        ("first + lane >= w", "w"),
        ("first + 8 > w", "w"),
        ("first >= w", "(w + 7)"),
        ("eight >= w", "(8 * w)"),
        ("first >= w || first + lane >= w", "w"),
    ],
)
def test_what_the_bound_has_room_for_stays_in_it(leaves: str, pitch: str) -> None:
    assert decided(leaves, pitch).verdict is Verdict.RACE_FREE


def test_where_nothing_bounds_columns_rows_are_taken_for_granted() -> None:
    result = decided("rows == 0")
    assert result.verdict is Verdict.RACE_FREE
    assert "rows of `w` elements do not overlap" in result.assumptions


def test_a_width_that_steps_do_not_end_with_is_a_doubt_about_it() -> None:
    result = decided("first >= w")
    assert result.verdict is Verdict.UNDECIDED
    assert any("whether `w` is a multiple of 8;" in reason for reason in result.reasons)
    assert not any(finding.certain for finding in result.findings)


HALVES = """
__global__ void k(float* a, int w) {{
    int row = blockIdx.x * 8 + threadIdx.y, lane = threadIdx.x;
    float* out = a + row * (w + 4);
    for (int i = 0; i < {rounds}; i++)
        if (i * 64 + 8 * lane < w)
            for (int j = 0; j < 2; j++) {{ {halves} }}
    if (lane == 0) out[{behind}] = w;
}}
"""
TWO = "out[i * 64 + 8 * lane] = j; out[i * 64 + 8 * lane + 4] = j;"


@pytest.mark.parametrize(
    ("rounds", "halves", "behind", "certain"),
    [
        (1, TWO, "w", False),  # the step's second half, written out: it may go on behind the row's end
        (2, TWO, "w", False),
        (1, TWO.replace("lane + 4", "lane + 8"), "w", True),  # it is the next step's
        (1, TWO.replace("8 * lane", "lane"), "w - 1", True),
    ],
)
def test_steps_whose_parts_are_written_out_end_with_the_width(
    rounds: int, halves: str, behind: str, certain: bool
) -> None:
    kernel = lowered(HALVES.format(rounds=rounds, halves=halves, behind=behind))
    result = refine_kernel(kernel, [LAUNCH], GpuModel("test", (9, 0)))
    assert any(finding.certain for finding in result.findings) is certain
    assert certain or any("whether `w` is a multiple of 8;" in reason for reason in result.reasons)


LAST = """
__global__ void k(float* a, const int* count, int w, int n) {{
    int row = blockIdx.x * 8 + threadIdx.y, lane = threadIdx.x;
    float* out = a + row * w;
    {every}
    if (lane == 0) out[{last}] = 2;
}}
"""


def beside_the_last(every: str, last: str) -> SolverResult:
    return refine_kernel(lowered(LAST.format(every=every, last=last)), [LAUNCH], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    ("every", "last"),
    [
        ("out[lane] = 1;", "w - 1"),  # in rows of eight it is the last lane's
        ("out[lane] = 1;", "w - 8"),
        ("out[lane] = 1; if (lane < 3) out[w - 3 + lane] = 3;", "0"),
        ("out[2 * lane] = 1;", "w - 2"),
        ("for (int i = 0; i < n; i++) out[i * 8 + lane] = 1;", "w - 1"),
        ("for (int i = lane; i < count[row]; i += 8) out[i] = 1;", "w - 1"),
        ("for (int i = lane; i < w; i += 8) out[i] = 1;", "w - 1"),
    ],
)
def test_the_last_of_a_row_is_one_of_its_columns(every: str, last: str) -> None:
    assert beside_the_last(every, last).verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("every", "last"),
    [
        ("for (int i = lane; i < w - 1; i += 8) out[i] = 1;", "w - 1"),
        ("if (lane == 1) out[0] = 1;", "w - 1"),
        ("if (lane < w - 2) out[lane] = 1;", "w - 2"),
    ],
)
def test_what_stops_before_the_last_of_a_row_leaves_it_alone(every: str, last: str) -> None:
    assert beside_the_last(every, last).verdict is Verdict.RACE_FREE


COLUMNS = """
__global__ void k(float* a, int w, int h) {{
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if ({stays}) a[{place}] = {stored};
}}
"""


def of_columns(stays: str, place: str, stored: str = "x + 3 * y") -> SolverResult:
    kernel = lowered(COLUMNS.format(stays=stays, place=place, stored=stored))
    return refine_kernel(kernel, [LAUNCH], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    ("stays", "place", "stored"),
    [
        ("x / 8 * 8 < w && y < h", "y * w + x", "x + 3 * y"),  # whole groups of eight leave the row
        ("y % w < w / 2 && x < w", "(x / 4 * w + y) * 4 + x % 4", "y"),  # `y` is more than a row
        ("x < w && y < h", "(x / 4 * w + y) * 4 + x % 4", "y"),  # rows and columns are mixed up
        ("x % w < w / 2", "x", "a[x + w]"),  # the second half of a pair is the first of another
    ],
)
def test_columns_that_are_more_than_a_row_are_no_columns(stays: str, place: str, stored: str) -> None:
    result = of_columns(stays, place, stored)
    assert result.verdict is not Verdict.RACE_FREE, result.assumptions


@pytest.mark.parametrize(
    ("stays", "place", "stored"),
    [
        ("x / 8 < w && y < h", "8 * w * y + x", "x"),
        ("y < w && x < h", "(x / 4 * w + y) * 4 + x % 4", "y"),
        ("y == 0 && x % (2 * w) < w", "x", "a[x + w]"),
    ],
)
def test_columns_that_are_a_row_at_most_stay_in_it(stays: str, place: str, stored: str) -> None:
    assert of_columns(stays, place, stored).verdict is Verdict.RACE_FREE


TILES = """
__global__ void k(float* a, int columns, int pitch, int w) {{
    int x = blockIdx.x % w * 8 + threadIdx.x, row = blockIdx.x / w * 8 + threadIdx.y;
    for (int c = x; c < columns; c += w * {step}) a[row * pitch + c] = c;
}}
"""


@pytest.mark.parametrize(
    ("step", "verdict"), [(8, Verdict.RACE_FREE), (16, Verdict.RACE_FREE), (4, None), (1, None)]
)
def test_remainders_that_go_over_several_steps_are_no_columns_of_one(
    step: int, verdict: Verdict | None
) -> None:
    result = refine_kernel(lowered(TILES.format(step=step)), [LAUNCH], GpuModel("test", (9, 0)))
    if verdict is None:
        assert result.verdict is not Verdict.RACE_FREE, result.assumptions
    else:
        assert result.verdict is verdict, result.reasons


CUT = """
__global__ void k(float* a, int n, int s, int w) {{
    int i = blockIdx.x * 64 + threadIdx.y * 8 + threadIdx.x;
    int c = i % {by}, r = i / {by};
    if (i < n) {{ a[{first}] = c; a[{second}] = r; }}
}}
"""


@pytest.mark.parametrize(
    ("by", "first", "second", "free"),
    [
        ("s", "r * s + c", "(r + 1) * s + c", False),  # the next row is another thread's
        ("s", "i", "i + s", False),
        ("s", "r * s + c", "r * s + s / 2 + c", False),  # `c` goes over both halves
        ("s", "r * s + c", "n + r * s + c", True),
        ("(s / 2)", "r * s + c", "r * s + s / 2 + c", True),
        ("w", "i", "i + s", True),  # rows of `w` in planes of `s`, perhaps
    ],
)
def test_an_index_that_the_kernel_cuts_by_a_size_goes_over_several_rows_of_it(
    by: str, first: str, second: str, free: bool
) -> None:
    kernel = lowered(CUT.format(by=by, first=first, second=second))
    result = refine_kernel(kernel, [LAUNCH], GpuModel("test", (9, 0)))
    assert (result.verdict is Verdict.RACE_FREE) is free, (result.reasons, result.assumptions)


ASKED = """
__global__ void k(int* a, const int* b, int w, int first) {{
    int y = blockIdx.x, x = 8 * threadIdx.y + threadIdx.x + first;
    int v = {asked} ? {read} : 0;
    {guard} a[y * w + x] = v;
}}
"""


@pytest.mark.parametrize(
    ("asked", "read", "guard", "free"),
    [
        ("x < w", "b[y * w + x]", "", False),  # who asks that knows of columns that are no row's
        ("w > x", "a[y * w + x]", "", False),
        ("x < w", "b[x]", "if (first > 0)", False),
        ("x < w", "b[y * w + x]", "if (x < w)", True),
        ("x < w - 1", "b[y * w + x + 1]", "", True),  # the last column has no neighbour
        ("y < w", "b[y * w + x]", "", True),
        ("first == 0", "b[y * w + x]", "", True),
    ],
)
def test_a_column_that_another_access_asks_about_may_be_none(
    asked: str, read: str, guard: str, free: bool
) -> None:
    kernel = lowered(ASKED.format(asked=asked, read=read, guard=guard))
    result = refine_kernel(kernel, [LAUNCH], GpuModel("test", (9, 0)))
    assert (result.verdict is Verdict.RACE_FREE) is free, (result.reasons, result.assumptions)


TURNED = """
__global__ void k(float* a, const int* b, int groups, int of, int n) {{
    int y = blockIdx.y, g = blockIdx.z {cut}, i = blockIdx.x * 64 + threadIdx.y * 8 + threadIdx.x;
    if (i < n && b[g] > 0) a[(y * groups * of + blockIdx.z) * n + i] = 1;
}}
"""


@pytest.mark.parametrize(
    ("cut", "free"),
    [("% groups", True), ("/ groups", True), ("/ (groups * of)", False)],
)
def test_rows_of_several_sizes_hold_what_is_cut_by_one_of_these(cut: str, free: bool) -> None:
    result = refine_kernel(lowered(TURNED.format(cut=cut)), [LAUNCH], GpuModel("test", (9, 0)))
    assert (result.verdict is Verdict.RACE_FREE) is free, (result.reasons, result.assumptions)
