"""Offsets of rows, two of which bound a stretch: taken to ascend, and told, but not against the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

ASCENDS = "`row` ascends"
HEAD = """
__constant__ unsigned begins[65];
__device__ int places[65];
struct Node { int keys[9]; int count; };
"""
V = "int v = blockIdx.x * blockDim.x + threadIdx.x;"


def checked(body: str, launch: str = "8, 128") -> KernelReport:
    names = "int* row, const int* other, float* out, const float* in, int n, int width"
    text = f"""{HEAD}
    __global__ void k({names}) {{ {body} }}
    void go({names}) {{ k<<<{launch}>>>(row, other, out, in, n, width); }}
    """
    (kernel,) = check_text(Path("/k.cu"), text, PATIENT).kernels
    return kernel


@pytest.mark.parametrize(
    ("body", "array"),
    [
        (f"{V} if (v < n) for (int e = row[v]; e < row[v + 1]; e++) out[e] *= 2;", "row"),
        (f"{V} if (v < n) for (int e = row[v]; e < row[v + 1]; e++) for (int j = 0; j < width; j++) "
         "out[e * width + j] = in[j];", "row"),
        (f"{V} if (v < n) {{ int e = row[v], end = row[v + 1]; while (e < end) out[e++] = v; }}", "row"),
        # Which stretch is empty changes nothing.
        (f"{V} if (v >= n) return; int b = row[v], e = row[v + 1]; if (b >= e) return; out[b] = v;", "row"),
        ("int b = blockIdx.x; for (int i = threadIdx.x; begins[b] + i < begins[b + 1]; i += blockDim.x) "
         "out[begins[b] + i] = in[i];", "begins"),
        ("for (int v = blockIdx.x * 128 + threadIdx.x; v < n; v += 128 * gridDim.x) "
         "for (int e = row[v]; e < row[v + 1]; e++) out[e] = v;", "row"),
        ("int v = blockIdx.x * 4 + threadIdx.x / 32; if (v < n) "
         "for (int e = row[v] + threadIdx.x % 32; e < row[v + 1]; e += 32) out[e] = v;", "row"),
        (f"{V} if (v < 64) for (int e = places[v]; e < places[v + 1]; e++) out[e] = v;", "places"),
        # Of ranges one holds the key.
        ("int t = threadIdx.x, b = blockIdx.x, k = other[b]; if (row[t] <= k && k < row[t + 1]) out[b] = t;",
         "row"),
    ],
)  # fmt: skip
def test_stretches_between_neighbouring_offsets_are_apart(body: str, array: str) -> None:
    kernel = checked(body)
    assert kernel.verdict is Verdict.RACE_FREE
    assert f"`{array}` ascends" in kernel.assumptions


IN_COLUMNS = """int b = blockIdx.x, range = row[b + 1] - row[b];
for (int c = threadIdx.x; c < width; c += blockDim.x)
    for (int i = {first}; i < range{more}; i += {step}) out[row[b] + i] = in[b * width + c];"""


def test_columns_of_a_stretch_are_in_it() -> None:
    """What is stepped by has a sign, because a column is below it."""
    kernel = checked(IN_COLUMNS.format(first="c", more="", step="width"), "n, 128")
    assert kernel.verdict is Verdict.RACE_FREE
    assert ASCENDS in kernel.assumptions


@pytest.mark.parametrize(
    ("first", "more", "step"),
    [("c", " + 1", "width"), ("c - 1", "", "width"), ("c", "", "n"), ("0", "", "1")],
)
def test_columns_that_leave_their_stretch_or_meet_are_seen(first: str, more: str, step: str) -> None:
    kernel = checked(IN_COLUMNS.format(first=first, more=more, step=step), "n, 128")
    assert kernel.verdict is not Verdict.RACE_FREE


FIRST_BEGINS_AT_0 = """int v = blockIdx.x, first = v > {after} ? row[v - 1] : {begin};
int more = v > {after} ? row[v] - row[v - 1] : row[0]{beyond};
if (threadIdx.x < more) out[first + threadIdx.x] = in[threadIdx.x];"""


def test_the_first_row_may_begin_at_0() -> None:
    kernel = checked(FIRST_BEGINS_AT_0.format(after=0, begin=0, beyond=""))
    assert kernel.verdict is Verdict.RACE_FREE
    assert ASCENDS in kernel.assumptions


@pytest.mark.parametrize(("after", "begin", "beyond"), [(1, 0, ""), (0, 0, " + 1"), (0, 1, "")])
def test_a_first_row_that_is_longer_is_not_apart(after: int, begin: int, beyond: str) -> None:
    body = FIRST_BEGINS_AT_0.format(after=after, begin=begin, beyond=beyond)
    assert checked(body).verdict is not Verdict.RACE_FREE


LAST_ENDS_WITH_ALL = """int b = blockIdx.x, first = row[b], end = b + 1 < n ? row[b + 1] : width;
for (int f = threadIdx.x; f < end - first; f += blockDim.x) out[first + f] = in[f];"""


def test_the_last_row_may_end_with_all_that_there_is() -> None:
    kernel = checked(LAST_ENDS_WITH_ALL, "n, 128")
    assert kernel.verdict is Verdict.RACE_FREE
    assert ASCENDS in kernel.assumptions


NO_SIGN = """__global__ void k(const long* row, float* out, const float* in, size_t n, size_t all) {{
    size_t b = blockIdx.x, first = row[b], end = b + 1 < n ? row[b + 1] : all;
    for (size_t f = threadIdx.x; f < end - first; f += blockDim.x) out[first + f] = in[f];
}}
void go(const long* row, float* out, const float* in, long n, long all) {{
    const int blocks = {blocks};
    k<<<blocks, 128>>>(row, out, in, n, all);
}}"""


@pytest.mark.parametrize(("blocks", "free"), [("n", True), ("n + 1", False), ("2 * n", False)])
def test_a_number_of_blocks_is_the_same_without_a_sign(blocks: str, free: bool) -> None:
    (kernel,) = check_text(Path("/k.cu"), NO_SIGN.format(blocks=blocks), PATIENT).kernels
    assert (kernel.verdict is Verdict.RACE_FREE) is free


def test_several_last_rows_are_not_apart() -> None:
    assert checked(LAST_ENDS_WITH_ALL, "8, 128").verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        # The last element is the next row's first.
        f"{V} if (v < n) for (int e = row[v]; e <= row[v + 1]; e++) out[e] *= 2;",
        # It begins in the row before.
        f"{V} if (v < n) for (int e = row[v] - 1; e < row[v + 1]; e++) out[e] *= 2;",
        # Two rows in one.
        f"{V} if (v < n) for (int e = row[v]; e < row[v + 2]; e++) out[e] *= row[v + 1];",
        # Two threads have one row.
        f"{V} if (v < n) for (int e = row[v / 2]; e < row[v / 2 + 1]; e++) out[e] *= 2;",
        # Rows of neighbours, of which two may have the same.
        f"{V} if (v < n) {{ int u = other[v]; for (int e = row[u]; e < row[u + 1]; e++) out[e] *= 2; }}",
        # It is bounded by another array.
        f"{V} if (v < n) for (int e = row[v]; e < other[v + 1]; e++) out[e] *= row[v + 1];",
        # Ascending alone does not make numbers differ.
        f"{V} if (v < n) out[row[v]] = in[row[v + 1]];",
        # The last row may be longer than the rest.
        f"{V} if (v < n) for (int e = row[v]; e < (v ? row[v + 1] : width); e++) out[e] *= 2;",
        # Several columns, steps narrower than they are.
        f"""{V} if (v < n) for (int e = row[v]; e < row[v + 1]; e++)
        for (int j = 0; j <= width; j++) out[e * width + j] = in[j];""",
        # A key that ends one range begins the next.
        """int t = threadIdx.x, k = other[blockIdx.x];
        if (row[t] <= k && k <= row[t + 1]) out[blockIdx.x] = t;""",
    ],
)  # fmt: skip
def test_what_meets_in_ascending_offsets_is_not_called_free(body: str) -> None:
    assert checked(body).verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("body", "launch"),
    [
        # Each batch has offsets of its own, which may all begin at 0.
        ("int b = blockIdx.x; for (int v = threadIdx.x; v < n; v += 128) "
         "for (int e = row[b * (n + 1) + v]; e < row[b * (n + 1) + v + 1]; e++) out[e] *= 2;", "8, 128"),
        ("int i = blockIdx.x * 65 + threadIdx.x; for (int e = row[i]; e < row[i + 1]; e++) out[e] *= 2;",
         "8, 64"),
        ("const int* own = row + blockIdx.x * width; int v = threadIdx.x; "
         "for (int e = own[v]; e < own[v + 1]; e++) out[e] *= 2;", "8, 64"),
        # Begin and end of each stand side by side, and nothing between one's end and the next one's begin.
        (f"{V} if (v < n) for (int e = row[2 * v]; e < row[2 * v + 1]; e++) out[e] *= 2;", "8, 128"),
        # Some rows are nobody's.
        ("int i = blockIdx.y * 9 + threadIdx.y; for (int e = row[i]; e < row[i + 1]; e++) out[e] *= 2;",
         "dim3(1, 8), dim3(1, 8)"),
        # As bytes they are other numbers.
        (f"{V} const short* part = (const short*)row; "
         "if (v < n) for (int e = part[v]; e < part[v + 1]; e++) out[e] *= 2;", "8, 128"),
    ],
)  # fmt: skip
def test_what_is_no_single_row_of_offsets_is_not_taken_to_ascend(body: str, launch: str) -> None:
    assert checked(body, launch).verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        # The kernel moves them itself.
        f"{V} if (v < n) {{ for (int e = row[v]; e < row[v + 1]; e++) out[e] *= 2; row[v] = 0; }}",
        # It expects them to descend.
        f"{V} if (v < n) for (int e = row[v + 1]; e < row[v]; e++) out[e] *= 2;",
        # It is ready for either.
        f"""{V} if (v < n) {{ int a = row[v], b = row[v + 1];
        for (int e = min(a, b); e < max(a, b); e++) out[e] *= 2; }}""",
        f"""{V} if (v < n) {{ int a = row[v], b = row[v + 1]; if (a > b) {{ int c = a; a = b; b = c; }}
        for (int e = a; e < b; e++) out[e] *= 2; }}""",
        f"""{V} if (v < n) {{ int a = row[v], b = row[v + 1], d = a < b ? 1 : -1;
        for (int e = a; e != b; e += d) out[e] *= 2; }}""",
        f"""{V} if (v < n) {{ int a = row[v], b = row[v + 1]; if (b < a) out[b] = 1; else out[a] = 2; }}""",
        # Runs of keys, which may come again.
        f"{V} if (v < n && row[v] != row[v + 1]) out[row[v]] = v;",
        f"{V} if (v >= n) return; if (row[v] == row[v + 1]) return; out[row[v]] = v;",
    ],
)
def test_nothing_is_taken_for_granted_against_the_kernel(body: str) -> None:
    kernel = checked(body)
    assert kernel.verdict is not Verdict.RACE_FREE


def test_numbers_in_a_record_are_no_offsets() -> None:
    kernel = checked(
        """const Node* node = reinterpret_cast<const Node*>(in); int t = threadIdx.x, k = other[blockIdx.x];
        if (node[blockIdx.x].keys[t] <= k && k < node[blockIdx.x].keys[t + 1]) out[blockIdx.x] = t;"""
    )
    assert kernel.verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    "asked",
    [
        "row[v] == 5 && row[v + 1] == 7",
        "row[v] < 5 && row[v + 1] > 7",
        "row[v] == width && row[v + 1] == n - 3",
        "row[v] % 8 == 1 && row[v + 1] % 8 == 3",
    ],
)
def test_what_is_held_against_numbers_is_in_no_order(asked: str) -> None:
    """A letter and the next one (``text[i] == 'q' && text[i + 1] == 'u'``) may stand at two places."""
    assert checked(f"{V} if (v < n && {asked}) out[0] = v;").verdict is not Verdict.RACE_FREE
