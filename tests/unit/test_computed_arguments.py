"""Arguments that every launch computes from others: what is read of the host, and what it decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text


def computed(body: str) -> dict[int, object]:
    """Of the last launch of a function."""
    text = f"void f(float* a, int n, int m, int h, Sizes s) {{ {body} }}"
    return dict(find_launches(Path("a.cu"), text)[-1].computed)


@pytest.mark.parametrize(
    ("body", "formulas"),
    [
        ("k<<<1, 32>>>(a, n * m, n, m);", {1: ("*", "#2", "#3")}),
        ("int r = n * m; k<<<1, 32>>>(a, r, n, m);", {1: ("*", "#2", "#3")}),
        ("int r; r = n * m; k<<<1, 32>>>(a, r, n, m);", {1: ("*", "#2", "#3")}),
        ("k<<<1, 32>>>(a, n, m, 2 * n + m);", {3: ("+", "#2", ("*", "#1", 2))}),
        ("k<<<1, 32>>>(a, n, n);", {2: "#1"}),
        ("int bytes = n * sizeof(float); k<<<1, 32>>>(a, bytes, n);", {1: ("*", "#2", 4)}),
        ("k<<<1, 32>>>(a, (int)n * (size_t)m, n, static_cast<int>(m));", {1: ("*", "#2", "#3")}),
        ("int w = s.data.size(0); k<<<1, 32>>>(a, w, w * h, h);", {2: ("*", "#1", "#3")}),
        ("dim3 g(n, m), b(h); k<<<g, b>>>(a, 2 * m, h * n);",
         {1: ("*", "gridDim.y", 2), 2: ("*", "gridDim.x", "blockDim.x")}),
        ("dim3 g; g.x = n; g.y = m; k<<<g, 32>>>(a, m * n);", {1: ("*", "gridDim.x", "gridDim.y")}),
        # Sizes that the kernel never sees cancel.
        ("int row = n * m; k<<<1, 32>>>(a, row, row * h, h);", {2: ("*", "#1", "#3")}),
        ("k<<<1, 32>>>(a, n / 4 * m, n / 4, m);", {1: ("*", "#2", "#3")}),
        # Powers of two, and what loops count.
        ("k<<<1, 32>>>(a, (1 << n) - 1, 1 << n);", {1: ("+", -1, "#2")}),
        ("k<<<1, 32>>>(a, 1 << n, 4 << (n + 1));", {2: ("*", "#1", 8)}),
        ("k<<<1, 32>>>(a, n >> m, (n >> m) * h, h);", {2: ("*", "#1", "#3")}),
        ("for (int d = 9; d >= 0; --d) k<<<1, 32>>>(a, (1 << d) - 1, 1 << d);", {1: ("+", -1, "#2")}),
        ("for (int d = 0; d < n; ++d) { int b = d + 1; k<<<1, 32>>>(a, d, b); }", {2: ("+", 1, "#1")}),
        # One value within a launch, whatever it is in another round.
        ("int w = 1024; while (w > 16) { k<<<1, 32>>>(a, w, w * h, h); w /= 2; }", {2: ("*", "#1", "#3")}),
    ],
)  # fmt: skip
def test_an_argument_that_is_computed_from_others_is_their_formula(
    body: str, formulas: dict[int, object]
) -> None:
    assert computed(body) == formulas


@pytest.mark.parametrize(
    "body",
    [
        "k<<<1, 32>>>(a, n, m);",
        "k<<<1, 32>>>(a, n * m, n);",  # nothing tells m
        "k<<<1, 32>>>(a, n * sizeof(Pixel), n);",  # nor how large that is
        "int r = n * m; n = 5; k<<<1, 32>>>(a, r, n, m);",  # another n by then
        "int r = n * m; if (h) r = 7; k<<<1, 32>>>(a, r, n, m);",
        "int r = n * m; g(&r); k<<<1, 32>>>(a, r, n, m);",
        "char r = n * m; k<<<1, 32>>>(a, r, n, m);",  # not all of it
        "bool r = n * m; k<<<1, 32>>>(a, r, n, m);",
        "float r = n * m; k<<<1, 32>>>(a, r, n, m);",
        "k<<<1, 32>>>(a, next() * n, n, next());",  # twice a call
        "k<<<1, 32>>>(a, s.n * m, s.n, m);",  # members may change unseen
        "for (int i = 0; i < n; i++) { k<<<1, 32>>>(a, h, i); h = i * 2; }",
        "k<<<1, 32>>>(a, 12, 3, 4);",  # known
        "k<<<1, 32>>>(a, (1 << n) - 1, 1 << m);",
        "k<<<1, 32>>>(a, 1 << n, 1 << (n - 1));",  # 0, where n is
        "for (int d = 9; d >= 0; --d) { int b = d; d--; k<<<1, 32>>>(a, d, b); }",  # twice a round
        "for (char d = 9; d >= 0; --d) k<<<1, 32>>>(a, d + 1, d);",
        "k<<<n, 32>>>(a, n);",  # the grid follows it, not it the grid
    ],
)
def test_what_is_not_known_to_be_is_not(body: str) -> None:
    assert computed(body) == {}


KERNEL = """
__global__ void heads(float* out, int count, int size, int hidden) {
    int at = threadIdx.x, head = threadIdx.y;
    if (head < count && at < size) out[blockIdx.x * hidden + head * size + at] = head;
}
void other(float* a, int b, int t, int h, int s) { OTHER }
void run(float* a, int rows, int n, int size) { LAUNCH }
"""


def verdict(launch: str, other: str = "") -> Verdict:
    text = KERNEL.replace("LAUNCH", launch).replace("OTHER", other)
    return check_text(Path("a.cu"), text).kernels[0].verdict


@pytest.mark.parametrize("behind", ["float scale", "bool all", "short s", "unsigned char u"])
def test_the_type_of_a_parameter_is_not_the_next_one_s(behind: str) -> None:
    """Each on a line of its own, as formatters write them."""
    text = f"void f(float* a, int n,\n       int m,\n       {behind}) {{ k<<<1, 32>>>(a, n * m, n, m); }}"
    (site,) = find_launches(Path("a.cu"), text)
    assert site.computed == {1: ("*", "#2", "#3")}


def test_strides_that_are_computed_from_each_other_keep_rows_apart() -> None:
    dims = "dim3 block(16, 16);"
    assert verdict(f"{dims} heads<<<rows, block>>>(a, n, size, n * size);") is Verdict.RACE_FREE
    assert verdict(f"{dims} heads<<<rows, block>>>(a, n, size, n * size - 1);") is not Verdict.RACE_FREE
    assert verdict(f"{dims} heads<<<rows, block>>>(a, n, size, size);") is Verdict.RACY


def test_launches_that_compute_it_differently_tell_nothing() -> None:
    def assumed(*launches: str) -> tuple[str, ...]:
        text = KERNEL.replace("LAUNCH", f"dim3 block(16, 16); {launches[0]}")
        (kernel,) = check_text(
            Path("a.cu"), text.replace("OTHER", f"dim3 block(16, 16); {launches[1]}")
        ).kernels
        return kernel.assumptions

    once = "heads<<<rows, block>>>(a, n, size, n * size);"
    assert assumed(once, "heads<<<b, block>>>(a, t, h, h * t);") == ()
    assert assumed(once, "heads<<<b, block>>>(a, t, h, s);") != ()


def conditions(body: str) -> tuple[str, ...]:
    return find_launches(Path("a.cu"), f"void f(float* a, int n, int m) {{ {body} }}")[-1].conditions


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("int k = n * 1024; k<<<1, 32>>>(a, k);", ("#u1 % 1024 == 0",)),
        ("k<<<1, 32>>>(a, 8 * n + 12 * m);", ("#u1 % 4 == 0",)),
        ("k<<<1, 32>>>(a, n / 4 * 4);", ("#u1 % 4 == 0",)),
        ("k<<<1, 32>>>(a, n * m);", ()),
        ("k<<<1, 32>>>(a, 2 * n + 1);", ()),
    ],
)
def test_an_argument_that_is_multiplied_is_a_multiple(body: str, told: tuple[str, ...]) -> None:
    assert conditions(body) == told


STEPS = """
__global__ void halves(float* a, int n, int m, int all) {
    __shared__ float s[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= all) return;
    s[threadIdx.x] = a[i];
    __syncthreads();
    a[i] = s[255 - threadIdx.x];
}
void run(float* a, int n, int m) { LAUNCH }
"""


def test_blocks_of_a_multiple_of_their_size_are_whole() -> None:
    def kernel(launch: str) -> tuple[Verdict, bool]:
        report = check_text(Path("a.cu"), STEPS.replace("LAUNCH", launch))
        diverges = any(f.code.value == "barrier-divergence" for f in report.findings)
        return report.kernels[0].verdict, diverges

    assert kernel("halves<<<n, 256>>>(a, n, m, n * 1024);") == (Verdict.RACE_FREE, False)
    assert kernel("halves<<<n, 256>>>(a, n, m, n * 16);")[1]


GUARDED = """
__global__ void shifted(float* a, int heads, int size, int all) {
    int i = threadIdx.x;
    if (i < heads * size) a[i] = a[i + all];
}
void run(float* a, int heads, int size) {
    int all = heads * size;
    GUARD
    shifted<<<1, 256>>>(a, heads, size, all);
}
"""


def test_what_the_host_checks_of_a_computed_argument_holds_of_its_formula() -> None:
    text = GUARDED.replace("a[i + all]", "a[i + 64]").replace("if (i < heads", "if (all <= 64 || i < heads")
    free = text.replace("if (all <= 64 || ", "if (").replace("GUARD", "if (all > 64) return;")
    assert check_text(Path("a.cu"), free).kernels[0].verdict is Verdict.RACE_FREE
    racy = free.replace("all > 64", "all > 65")
    assert check_text(Path("a.cu"), racy).kernels[0].verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("body", "conditions"),
    [
        ("k<<<n * m, 32>>>(a, n, m);", ("gridDim.x == (#u1 * #u2)",)),
        ("dim3 g(n, m * h); k<<<g, 32>>>(a, m, h);", ("gridDim.y == (#u1 * #u2)",)),
        ("int p = m * h; dim3 g(4, n, p); k<<<g, 32>>>(a, m, h);", ("gridDim.z == (#u1 * #u2)",)),
        ("dim3 g; g.x = n * m * h / 1; k<<<g, 32>>>(a, m * h, n);", ("gridDim.x == (#u1 * #u2)",)),
        ("k<<<2 * n, 32>>>(a, n);", ("gridDim.x == (#u1 * 2)",)),
        ("k<<<n * m, 32>>>(a, n);", ()),
        ("k<<<n * m / 4, 32>>>(a, n, m);", ("gridDim.x == (#1 * #2) / 4",)),
        ("k<<<(n + m + 7) / 8, 32>>>(a, n, m);", ("gridDim.x == ((7 + #2) + #1) / 8",)),
        ("k<<<n * m / h, 32>>>(a, n, m);", ()),
        ("k<<<n * m / 4 - 1, 32>>>(a, n, m);", ()),
        ("dim3 g(n * m); if (h) g.x = n; k<<<g, 32>>>(a, n, m);", ()),
    ],
)
def test_a_grid_that_is_computed_from_arguments_is_their_formula(
    body: str, conditions: tuple[str, ...]
) -> None:
    text = f"void f(float* a, int n, int m, int h, Sizes s) {{ {body} }}"
    site = find_launches(Path("a.cu"), text)[-1]
    assert tuple(c for c in site.conditions if c.startswith("gridDim")) == conditions


GRID = """
__global__ void place(float* out, const float* in, int rows, int columns) {
    int row = blockIdx.x / columns, column = blockIdx.x % columns;
    out[column * rows + row] = in[blockIdx.x];
}
void f(float* out, const float* in, int rows, int columns) {
    if (rows < 1 || columns < 1) return;
    place<<<COUNT, 1>>>(out, in, rows, columns);
}
"""


def test_blocks_of_a_grid_of_rows_and_columns_stay_in_their_columns() -> None:
    (kernel,) = check_text(Path("a.cu"), GRID.replace("COUNT", "rows * columns")).kernels
    assert kernel.verdict is Verdict.RACE_FREE
    (kernel,) = check_text(Path("a.cu"), GRID.replace("COUNT", "rows * columns * 2")).kernels
    assert kernel.verdict is Verdict.RACY


def test_an_argument_that_nobody_should_write_warns_nobody(recwarn: pytest.WarningsRecorder) -> None:
    assert computed("k<<<1, 32>>>(a, n * 1if, n, a + 1or);") == {}
    assert not recwarn.list


LEVELS = """
__global__ void refit(float2* box, int first, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float2 l = box[2 * (first + i) + 1], r = box[2 * (first + i) + 2];
    box[first + i] = make_float2(fminf(l.x, r.x), fmaxf(l.y, r.y));
}
void launch(float2* box) {
    for (int d = 13; d >= 0; --d) refit<<<((1 << d) + 127) / 128, 128>>>(box, (1 << d) - 1, 1 << d);
}
"""


def test_levels_of_a_tree_are_as_large_as_what_is_before_them() -> None:
    (kernel,) = check_text(Path("a.cu"), LEVELS).kernels
    assert kernel.verdict is Verdict.RACE_FREE
    (kernel,) = check_text(Path("a.cu"), LEVELS.replace("1 << d);", "2 << d);")).kernels
    assert kernel.verdict is Verdict.RACY  # two levels at once


HALVED = """__global__ void down(const float* src, float* dst, int sw, int dw, int dh) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x >= dw || y >= dh) return;
    const float* p = src + 2 * y * sw + 2 * x;
    dst[y * dw + x] = p[0] + p[1] + p[sw] + p[sw + 1];
}
void f(float* b, int n) {
    int w = 1024;
    float* src = b;
    while (w > 16) {
        float* dst = src + PLACE;
        int d = (w / 2 + 15) / 16;
        down<<<dim3(d, d), dim3(16, 16)>>>(src, dst, w, WIDTH, w / 2);
        src = dst;
        w /= 2;
    }
}
"""


@pytest.mark.parametrize(
    ("place", "width", "free"),
    [
        ("w * w", "w / 2", True),
        ("w * w + 64", "w / 2", True),
        ("w * w / 2", "w / 2", False),
        ("w * (w - 1)", "w / 2", False),
        ("0", "w / 2", False),
        ("w * w", "n / 2", False),  # another size: rows beyond
    ],
)
def test_arguments_that_are_others_divided_stay_so_in_every_round(place: str, width: str, free: bool) -> None:
    text = HALVED.replace("PLACE", place).replace("WIDTH", width)
    (kernel,) = check_text(Path("k.cu"), text, PATIENT).kernels
    assert (kernel.verdict is Verdict.RACE_FREE) is free


@pytest.mark.parametrize(
    ("asked", "condition"),
    [
        ("if (n % 2) return;", "#1 % 2 == 0"),
        ("if (n < 2 || (n % 4)) return;", "#1 % 4 == 0"),
        ("if (n & 1) throw 1;", "#1 % 2 == 0"),
        ("if ((n & 7) || m < 1) throw 1;", "#1 % 8 == 0"),
        ("assert(!(n % 32));", "#1 % 32 == 0"),
        ("if (n % 2 == 0) return;", "#1 % 2 != 0"),
        ("if (!(n & 1)) return;", "#1 % 2 != 0"),
    ],
)
def test_a_remainder_is_a_truth_value(asked: str, condition: str) -> None:
    assert condition in conditions(f"{asked} k<<<4, 64>>>(a, n, m);")


@pytest.mark.parametrize("asked", ["if (n & 5) return;", "if (n % 2 && m) return;", "if (f(n) % 2) return;"])
def test_what_says_nothing_of_a_remainder(asked: str) -> None:
    assert not [c for c in conditions(f"{asked} k<<<4, 64>>>(a, n, m);") if "%" in c]
