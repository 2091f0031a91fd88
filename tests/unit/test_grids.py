"""Grids that the host computes from an argument of the launch, and what follows for kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.model import Code, Status, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """__global__ void masks(int n, const float *boxes, unsigned long long *mask) {
  const int row = blockIdx.y, size = min(n - row * 64, 64);
  if (threadIdx.x < size) {
    const int at = 64 * row + threadIdx.x;
    const int words = (n + 63) / 64;
    mask[AT] = (unsigned long long)boxes[at];
  }
}
"""
DIVUP = "#define DIVUP(m, n) ((m) / (n) + ((m) % (n) > 0))\n"


def conditions(text: str) -> set[tuple[str, ...]]:
    return {site.conditions for site in find_launches(Path("a.cu"), text)}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("k<<<(n + 63) / 64, 64>>>(a, n);", ["gridDim.x == (#1 + 63) / 64"]),
        ("k<<<n / 256, 256>>>(a, n);", ["gridDim.x == #1 / 256"]),
        ("k<<<n, 256>>>(n);", ["gridDim.x == #u0"]),
        ("int b = 192, g = (n - 1) / b + 1; k<<<g, b>>>(n);", ["gridDim.x == (#0 + 191) / 192"]),
        ("dim3 g(DIVUP(n, 64), DIVUP(n, 32)); k<<<g, 64>>>(n);",
         ["gridDim.x == (#0 + 63) / 64", "gridDim.y == (#0 + 31) / 32"]),
        ("k<<<at::ceil_div(n, 64), 64>>>(n);", ["gridDim.x == (#0 + 63) / 64"]),
        ("dim3 g((m + 15) / 16, (n + 7) / 8); k<<<g, 64>>>(n, m);",
         ["gridDim.y == (#0 + 7) / 8", "gridDim.x == (#1 + 15) / 16"]),
        ("dim3 g(blocks(n), 4); k<<<g, 64>>>(n);", ["gridDim.x == (#0 + 63) / 64"]),
        ("k<<<n * m, 64>>>(n, m);", ["gridDim.x == (#u0 * #u1)"]),
        ("int t = 256; k<<<(n * m + t - 1) / t, t>>>(n, m);", ["gridDim.x == (255 + (#0 * #1)) / 256"]),
        ("int all = m * n; k<<<(all - 1) / 64 + 1, 64>>>(m, n);",
         ["gridDim.x == (-1 + (#0 * #1)) / 64 + 1"]),
    ],
)  # fmt: skip
def test_a_grid_that_follows_an_argument_is_told(body: str, told: list[str]):
    host = "int blocks(int m) { return (m + 63) / 64; }\n"
    assert conditions(f"{DIVUP}{host}void f(float *a, int n, int m) {{ {body} }}") == {tuple(told)}


@pytest.mark.parametrize(
    "body",
    [
        "k<<<min((n + 63) / 64, 4096), 64>>>(n);",  # limited
        "k<<<(n + 63) / 64, 64>>>(m);",  # of another argument
        "k<<<(n + 63) / 64, 64>>>(n + 1);",
        "int g = (n + 63) / 64; n = m + n; k<<<g, 64>>>(n);",  # it is another number by then
        "int g = (n + 63) / 64; if (m) g = 7; k<<<g, 64>>>(n);",
        "k<<<(n + 63) / 64 + 1, 64>>>(n);",
        "k<<<number(n), 64>>>(n);",  # nobody knows what it gives
        "k<<<WIDE(n, 64), 64>>>(n);",  # text, not a number
        "k<<<32, 64>>>(n);",  # known
    ],
)
def test_any_other_grid_is_not(body: str):
    macros = "#define WIDE(m, n) (m + n - 1) / n\n"
    assert conditions(f"{macros}void f(float *a, int n, int m) {{ {body} }}") == {()}


def verdict(at: str, *launches: str) -> Verdict:
    host = "".join(
        f"void f{i}(int n, const float *b, unsigned long long *m) {{ {launch} }}\n"
        for i, launch in enumerate(launches)
    )
    (kernel,) = check_text(Path("a.cu"), KERNEL.replace("AT", at) + host).kernels
    return kernel.verdict


SQUARE = "int w = (n + 63) / 64; dim3 g(w, w); masks<<<g, 64>>>(n, b, m);"


def test_columns_of_such_a_grid_lie_in_their_rows():
    assert verdict("at * words + blockIdx.x", SQUARE) is Verdict.RACE_FREE


@pytest.mark.parametrize(
    "at", ["at", "at * words + blockIdx.x / 2", "at + blockIdx.x", "at * (words - 1) + blockIdx.x"]
)
def test_races_of_it_are_told_still(at: str):
    assert verdict(at, SQUARE) is Verdict.RACY


def test_what_holds_at_one_of_two_launches_is_not_taken_for_granted():
    other = "masks<<<dim3(9, n), 64>>>(n, b, m);"
    assert verdict("at * words + blockIdx.x", SQUARE, other) is not Verdict.RACE_FREE


def test_a_race_that_such_a_grid_has_is_conditional():
    text = "__global__ void k(float *a, int n) { a[blockIdx.x / 2] = blockIdx.x; }\n"
    (kernel,) = check_text(
        Path("a.cu"), text + "void f(float *a, int n) { k<<<(n + 63) / 64, 64>>>(a, n); }"
    ).kernels
    (race,) = [finding for finding in kernel.findings if finding.kind]
    assert kernel.verdict is Verdict.RACY and race.status in (Status.CONDITIONAL, Status.PROVED)


@pytest.mark.parametrize(
    ("guard", "verdict"),
    [("(n * m + 255) / 256", Verdict.RACE_FREE), ("(n * m + 255) / 256 - 1", Verdict.RACY)],
)
def test_blocks_for_a_product_of_sizes_are_as_many_as_the_host_makes(guard: str, verdict: Verdict):
    text = f"""
__global__ void k(float *a, int n, int m) {{ if (blockIdx.x >= {guard}) a[0] = threadIdx.x; }}
void f(float *a, int n, int m) {{ int t = 256; k<<<(m * n + t - 1) / t, t>>>(a, n, m); }}
"""
    (kernel,) = check_text(Path("a.cu"), text).kernels
    assert kernel.verdict is verdict


def test_blocks_along_an_axis_that_the_host_fixes_are_no_doubt():
    body = "int i = blockIdx.x * 64 + threadIdx.x; if (i < n) a[i] += 1;"
    text = f"__global__ void k(float *a, int n) {{ {body} }}\n"
    (kernel,) = check_text(
        Path("a.cu"), text + "void f(float *a, int n) { k<<<dim3((n + 63) / 64, 8), 64>>>(a, n); }"
    ).kernels
    (race,) = [finding for finding in kernel.findings if finding.kind]
    assert race.status is Status.CONDITIONAL and race.condition == "`n` > 0"


@pytest.mark.parametrize(("number", "free"), [("int", True), ("unsigned", True), ("signed char", False)])
def test_a_number_that_is_cut_down_says_nothing_of_the_grid(number: str, free: bool) -> None:
    text = f"""__global__ void k(int* out, {number} n) {{
        if (threadIdx.x == 0 && blockIdx.x >= n) out[0] = blockIdx.x;
    }}
    void f(int* out, int n) {{ k<<<n, 64>>>(out, n); }}"""
    (kernel,) = check_text(Path("k.cu"), text).kernels
    assert (kernel.verdict is Verdict.RACE_FREE) is free


SHAPE = """dim3 shape(int n, const char* by, dim3 block) {
  int blocks = 0, threads = block.x * block.y * block.z;
  if (by[0] == 't') { blocks = (n + threads - 1) / threads; } else { blocks = n; }
  dim3 grid = flat(blocks);
  return grid;
}
"""
FLAT = "dim3 flat(int x) { dim3 d(x); return d; }\ndim3 flat(int x, int y) { return dim3(x, y); }\n"


def axes(text: str) -> tuple[int | None, ...]:
    (site,) = find_launches(Path("a.cu"), text)
    return site.grid_axes


@pytest.mark.parametrize(
    ("functions", "grid", "told"),
    [
        (FLAT + SHAPE, 'shape(n, "threads", b)', (None, 1, 1)),
        (FLAT, "flat(n, 3)", (None, 3, 1)),
        (FLAT, "flat(7)", (7, 1, 1)),
        ("dim3 odd(int n) { dim3 d(n); if (n > 9) d.y = 2; return d; }", "odd(n)", (None, None, 1)),
        ("dim3 far(int n);", "far(n)", (None, None, None)),
        (
            "dim3 two(int n) { return dim3(n, 2); } dim3 two(long n) { return dim3(n, 3); }",
            "two(n)",
            (None,) * 3,
        ),
    ],
)
def test_axes_that_a_function_returns_are_known_one_by_one(
    functions: str, grid: str, told: tuple[int | None, ...]
) -> None:
    host = f"void f(float *a, int n) {{ dim3 b(128); dim3 g = {grid}; k<<<g, b>>>(a, n); }}"
    assert axes(f"{functions}\n{host}") == told


def test_a_grid_that_a_function_makes_of_an_argument_follows_it() -> None:
    text = "dim3 of(int n, int by) { int blocks = (n + by - 1) / by; return dim3(blocks); }\n"
    host = "void f(float *a, int n) { dim3 g = of(n, 64); k<<<g, 64>>>(a, n); }"
    assert conditions(text + host) == {("gridDim.x == (#1 + 63) / 64",)}


@pytest.mark.parametrize(
    ("type", "told"),
    [
        ("typedef int Index;", (4, 1, 1)),
        ("using Index = std::size_t;", (4, 1, 1)),
        ("#ifdef BIG\ntypedef long long Index;\n#else\ntypedef int Index;\n#endif", (4, 1, 1)),
        ("typedef int Small;\ntypedef Small Index;", (4, 1, 1)),
        ("typedef char Index;", (None, 1, 1)),
        ("typedef float Index;", (None, 1, 1)),
        ("typedef int Index;\nusing Index = double;", (None, 1, 1)),
        ("", (None, 1, 1)),
    ],
)
def test_names_for_integers_are_integers(type: str, told: tuple[int | None, ...]) -> None:
    body = "Index each = 64, all = 4 * each; Index more = all / each; k<<<dim3(more, 1), 64>>>(a);"
    host = f"void f(float *a) {{ {body} }}"
    assert axes(f"{type}\n{host}") == told


ROUNDS = """
__global__ void k(float* out, const float* in, int rows, int width) {
  __shared__ float most[32];
  for (int row = blockIdx.START; row < rows; row += gridDim.START) {
    most[threadIdx.x] = in[row * width + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) out[row] = most[0] + most[31];
    BARRIER
  }
}
"""


@pytest.mark.parametrize(("axis", "grid"), [("x", "m"), ("y", "dim3(1, m)")])
def test_what_takes_a_second_round_takes_more_than_there_are_blocks(axis: str, grid: str) -> None:
    launch = f"void f(float* o, const float* i, int n, int w, int m) {{ k<<<{grid}, 32>>>(o, i, n, w); }}"
    text = ROUNDS.replace("START", axis) + launch
    report = check_text(Path("k.cu"), text.replace("BARRIER", ""))
    found = [finding for finding in report.findings if finding.code is Code.SHARED_RACE]
    assert {finding.condition for finding in found} == {f"`rows` > `gridDim.{axis}`"}
    (kernel,) = check_text(Path("k.cu"), text.replace("BARRIER", "__syncthreads();")).kernels
    assert kernel.verdict is Verdict.RACE_FREE
