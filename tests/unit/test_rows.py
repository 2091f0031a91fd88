"""Rows that do not overlap: pitches in bytes, rows that all threads share, extents that are not negative."""

from __future__ import annotations

from pathlib import Path

import pytest
from extract_kernels import lowered

from cuda_lsp.config import PATIENT
from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel


def verdict(text: str) -> Verdict:
    (kernel,) = check_text(Path("/k.cu"), text, PATIENT).kernels
    return kernel.verdict


LAUNCH = "void go(dim3 g, %s) { dim3 block(16, 16); k<<<g, block>>>(%s); }\n"


@pytest.mark.parametrize("second", ["float2", "float"])
def test_a_pitch_in_bytes(second: str) -> None:
    text = (
        f"""__global__ void k(char* v, int w, size_t pitch) {{
      int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
      if (x < w) {{ {second}* f = ({second}*)(v + y * pitch) + x; *f = {second}(); }}
    }}
    """
        + LAUNCH % ("char* v, int w, size_t p", "v, w, p")
    )
    assert verdict(text) is not Verdict.RACY


def test_a_pitch_in_bytes_does_not_hide_a_race() -> None:
    text = (
        """__global__ void k(char* v, int w, size_t pitch) {
      int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
      if (x < w) { float* f = (float*)(v + y * pitch) + x; f[0] = f[1]; }
    }
    """
        + LAUNCH % ("char* v, int w, size_t p", "v, w, p")
    )
    assert verdict(text) is Verdict.RACY


def test_a_row_that_all_threads_read() -> None:
    text = (
        """__global__ void k(float* a, int n, int t) {
      int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
      if (x < n - 1 - t && y < n - t) a[n * (x + 1 + t) + y + t] -= a[n * t + y + t];
    }
    """
        + LAUNCH % ("float* v, int w, int t", "v, w, t")
    )
    assert verdict(text) is Verdict.RACE_FREE


def test_a_row_that_others_write() -> None:
    text = (
        """__global__ void k(float* a, int n) {
      int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
      if (x < n && y < n) a[n * x + y] -= a[n * 3 + y];
    }
    """
        + LAUNCH % ("float* v, int w", "v, w")
    )
    assert verdict(text) is not Verdict.RACE_FREE


@pytest.mark.parametrize("bound", ["x <= w", "x < w + 2"])
def test_a_column_that_the_program_bounds_by_more_than_the_row_is_no_row(bound: str) -> None:
    text = (
        f"""__global__ void k(float* a, int w, int h) {{
      int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
      if ({bound} && y < h) a[y * w + x] = 1;
    }}
    """
        + LAUNCH % ("float* a, int w, int h", "a, w, h")
    )
    assert verdict(text) is not Verdict.RACE_FREE


def test_a_column_within_the_row_needs_no_assumption() -> None:
    text = (
        """__global__ void k(float* a, int w, int h) {
      int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
      if (x < w && y < h) a[y * w + x] = 1;
    }
    """
        + LAUNCH % ("float* a, int w, int h", "a, w, h")
    )
    assert verdict(text) is Verdict.RACE_FREE


@pytest.mark.parametrize("other", ["(y + 1) * 256 + x", "y * 256 + x - 512"])
def test_a_neighbouring_row_of_a_known_width_is_a_row(other: str) -> None:
    """Under a condition on a parameter: the first tier does not see it."""
    text = (
        f"""__global__ void k(float* a, int h) {{
      int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
      if (y < h && h == 77) a[y * 256 + x] = a[{other}];
    }}
    """
        + LAUNCH % ("float* a, int h", "a, h")
    )
    assert verdict(text) is Verdict.RACY


def test_a_pitch_that_bounds_rows_while_columns_are_bounded_by_another_parameter_is_not_assumed() -> None:
    text = """
    // cuda-lsp: launch block=256 grid=8
    __global__ void k(float* a, int w, int h) {
      int i = blockIdx.x * 256 + threadIdx.x;
      for (int x = 0; x < w; ++x) if (i < h) a[i + x * w] = x;
    }
    """
    assert verdict(text) is not Verdict.RACE_FREE
    assert verdict(text.replace("x * w", "x * h")) is Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("bound", "apart"),
    [
        ("count[b]", True),
        ("count[b + 1] - count[b]", True),
        ("min(count[b], w)", True),
        ("count[0] < n ? count[b] : n", True),
        ("w + 1", False),
        ("w + 1 + count[0] - count[0]", False),
        ("n > w ? w + 2 : w", False),
    ],
)
def test_what_memory_holds_lies_in_its_row(bound: str, apart: bool) -> None:
    text = f"""
    // cuda-lsp: launch block=256 grid=8
    __global__ void k(float* a, const int* count, int w, int n) {{
      int b = blockIdx.x;
      for (int i = threadIdx.x; i < ({bound}); i += blockDim.x) a[b * w + i] = b;
    }}
    """
    assert (verdict(text) is Verdict.RACE_FREE) == apart


def coordinates(index: str, before: str = "") -> str:
    """Elements of rows of ``n``, stored into rows of ``pitch``."""
    return (
        "__global__ void k(float* out, const float* in, int n, int pitch, int total) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"  if (i < total) out[{index}] = in[i];\n"
        "}\n"
        "void go(float* o, float* i, int n, int p, int t) {\n"
        f"  {before} k<<<(t + 255) / 256, 256>>>(o, i, n, p, t);\n"
        "}\n"
    )


def test_rows_of_another_pitch_by_quotient_and_remainder_do_not_overlap() -> None:
    (kernel,) = check_text(Path("/k.cu"), coordinates("i / n * pitch + i % n")).kernels
    assert kernel.verdict is Verdict.RACE_FREE
    assert set(kernel.assumptions) >= {"rows of `pitch` elements do not overlap", "`n` is not 0"}


@pytest.mark.parametrize(
    ("index", "before"),
    [
        ("i / n * pitch + i % n / 2", ""),
        ("i / n * pitch + i % (n / 2)", ""),
        ("i / n / 2 * pitch + i % n", ""),
        ("(i + 1) / n * pitch + i % n", ""),
        ("i / n * pitch + i % n", "if (p >= n) return;"),
        ("i / n * pitch + i % n", "if (p != 48 || n != 64) return;"),
    ],
)
def test_quotients_and_remainders_that_share_places_race_still(index: str, before: str) -> None:
    assert verdict(coordinates(index, before)) is not Verdict.RACE_FREE


TOLD_SIZES = """
// cuda-lsp: assume channels > 4092
__global__ void gather(const float* from, float* to, int channels, int batch, int row) {{
    float* own = to + blockIdx.x * batch + blockIdx.y * row;
    for (int i = threadIdx.x; i < {limit}; i += blockDim.x) own[{column}] = from[i];
}}
"""


def of_told_sizes(limit: str, column: str = "i") -> SolverResult:
    launch = LaunchConfig((1024, 1, 1), source=LaunchSource.FILE)
    return refine_kernel(
        lowered(TOLD_SIZES.format(limit=limit, column=column)), [launch], GpuModel("test", (9, 0))
    )


def test_rows_are_wide_beside_sizes_that_are_told_to_be_large() -> None:
    result = of_told_sizes("channels")
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert any("do not overlap" in text for text in result.assumptions)


@pytest.mark.parametrize(("limit", "column"), [("row + 1", "i"), ("row", "2 * i"), ("channels", "i / 2")])
def test_no_numbers_that_a_word_cannot_hold_make_rows_wide(limit: str, column: str) -> None:
    source = TOLD_SIZES.replace("// cuda-lsp: assume channels > 4092", "").format(limit=limit, column=column)
    launch = LaunchConfig((1024, 1, 1), source=LaunchSource.FILE)
    assert refine_kernel(lowered(source), [launch], GpuModel("test", (9, 0))).verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(("limit", "column"), [("row + 1", "i"), ("row", "2 * i"), ("channels", "i / 2")])
def test_rows_that_the_program_leaves_are_not_beside_such_sizes(limit: str, column: str) -> None:
    assert of_told_sizes(limit, column).verdict is not Verdict.RACE_FREE


TILES = """__global__ void k(float* out, int w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i + (threadIdx.y + i / w%s) * w] = 1;
}
void go(float* out, int w, int n) { k<<<n, dim3(8, 8)>>>(out, w); }
"""


@pytest.mark.parametrize(("rows", "expected"), [(" * 7", Verdict.RACE_FREE), ("", Verdict.RACY)])
def test_a_column_that_is_divided_by_the_width_spans_several_rows(rows: str, expected: Verdict) -> None:
    """Each row of tiles has eight rows of elements: seven, and the one that ``i`` itself has come to."""
    assert verdict(TILES % rows) is expected


PADDED = """__global__ void k(float* out, int pad) {{
  int i = blockIdx.x * 256 + threadIdx.x;
  {body}
}}
void go(float* out, int pad, int n) {{ k<<<n, 256>>>(out, pad); }}
"""


@pytest.mark.parametrize("row", ["1000 - i / 32", "(i / 32) ^ 1"])
def test_rows_that_are_made_of_the_index_that_is_the_column_are_not_wider_than_it(row: str) -> None:
    """With a pad of 32 a row's index comes where another row's is: ``i`` itself goes through all rows."""
    assert verdict(PADDED.format(body=f"out[i + pad * ({row})] = 1;")) is Verdict.RACY


def test_padded_rows_rise_with_the_index() -> None:
    (kernel,) = check_text(Path("/k.cu"), PADDED.format(body="out[i + pad * (i / 32)] = 1;"), PATIENT).kernels
    assert kernel.verdict is Verdict.RACE_FREE
    assert "`pad` is not negative" in kernel.assumptions


@pytest.mark.parametrize(
    "body",
    [
        "if (pad >= -32) out[i + pad * (i / 32)] = 1;",
        "out[i / 2 + pad * (i / 64)] = 1;",
        "out[i + pad * (i / 32)] = out[i + 1 + pad * (i / 32)];",
        "out[i + pad * (i / 32 - i / 64 * 2)] = 1;",
    ],
)
def test_what_does_not_rise_with_the_index_or_comes_twice_is_not_proved(body: str) -> None:
    assert verdict(PADDED.format(body=body)) is not Verdict.RACE_FREE


PLANES = """__global__ void k(const float* in, float* out, int w, int p, int h) {
  int x = threadIdx.x, y = blockIdx.x, plane = threadIdx.y;
  %s
  if (%s) out[%s] = in[x];
}
void go(const float* in, float* out, int w, int p, int h) { k<<<h, dim3(32, 2)>>>(in, out, w, p, h); }
"""
ROW_OF_A_PLANE = "plane * h * p + y * p + x"


def test_that_the_grid_tells_how_many_rows_a_plane_has_says_nothing_of_their_pitch() -> None:
    """The row of a block lies in its plane, by the grid: only the pitch is taken for granted."""
    assert verdict(PLANES % ("", "x < w", ROW_OF_A_PLANE)) is Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("before", "bound", "place"),
    [
        ("", "x <= p", ROW_OF_A_PLANE),  # columns leave their row
        ("if (p > w + 8) return;", "x < w", ROW_OF_A_PLANE),  # the source relates the pitch to the columns
        ("", "x < w", "plane * (h - 1) * p + y * p + x"),  # planes of a row less than the grid has
        ("", "x < w", "plane * h * p + (y + plane) * p - plane * h * p + x"),  # rows of no plane
    ],
)
def test_planes_of_a_grid_that_share_places_race(before: str, bound: str, place: str) -> None:
    assert verdict(PLANES % (before, bound, place)) is Verdict.RACY


@pytest.mark.parametrize(
    ("limit", "place", "apart"),
    [
        ("f < num", "b * pitch + f", True),
        ("f < num", "b * pitch + 2 * f", True),
        ("f <= pitch && f < num + pitch", "b * pitch + f", False),  # one too many
        ("f < num + pitch", "b * pitch + f", False),
    ],
)
def test_a_length_that_offsets_tell_is_none_below_zero(limit: str, place: str, apart: bool) -> None:
    text = f"""
    __global__ void k(float* out, const long* first, const unsigned long pitch) {{
      const unsigned long b = blockIdx.x;
      const int num = first[b + 1] - first[b];
      for (unsigned long f = threadIdx.x; {limit}; f += blockDim.x) out[{place}] = f;
    }}
    void go(float* out, const long* first, long p, int n) {{ k<<<n, 256>>>(out, first, p); }}
    """
    assert (verdict(text) is Verdict.RACE_FREE) == apart
