"""Records that are passed by value and hold arrays: their numbers and pointers are parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches
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


PASSED_ON = """
struct View {{
    float* ptr; int dims[4];
    __device__ __host__ View(float* p) : ptr(p) {{}}
    {members}
}};
struct Reader {{
    const float* ptr; int dims[4];
    __device__ Reader(View& v) : dims{{v.dims[0], v.dims[1], v.dims[2], v.dims[3]}}, ptr(v.ptr) {{}}
}};
__device__ void set(View out, int x, float v) {{ if (x < out.dims[0]) out.ptr[x] = v; }}
__device__ float get(Reader in, int x) {{ return in.ptr[x]; }}
__global__ void k(View out, View other) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    {body}
}}
void f(View a, View b) {{ k<<<4, 256>>>(a, b); }}
"""
COPIED = [
    "",
    "View(const View& o) = default; View& operator=(const View& o) = default;",
    "View(View&& o) noexcept = default; View(const View& o) noexcept = default;",
]


def passed_on(body: str, members: str = "") -> KernelReport:
    return check_text(Path("k.cu"), PASSED_ON.format(body=body, members=members)).kernels[0]


@pytest.mark.parametrize("members", COPIED)
@pytest.mark.parametrize(
    "body",
    [
        "set(out, x, x);",
        "View copy = out; set(copy, x, x);",
        "View copy(out); copy.ptr[x] = 1; set(copy, x, 2);",
    ],
)
def test_a_record_is_followed_where_it_is_handed_on(members: str, body: str) -> None:
    assert passed_on(body, members).verdict is Verdict.RACE_FREE


@pytest.mark.parametrize("members", COPIED)
@pytest.mark.parametrize(
    "body",
    [
        "set(out, x % 64, x);",
        "View copy = out; set(copy, 0, x); set(out, x, 1);",
        "View copy = out; copy.dims[0] = 8; set(out, x % 64, x);",
    ],
)
def test_a_race_through_a_record_that_is_handed_on_is_found(members: str, body: str) -> None:
    assert passed_on(body, members).verdict is Verdict.RACY


@pytest.mark.parametrize("members", COPIED)
@pytest.mark.parametrize(
    "body",
    [
        "View copy = out; copy.ptr = other.ptr; set(copy, x, 1); set(other, x + 1, 2);",
        "View copy = out; set(copy, x, 1); copy.ptr += 1; copy.ptr[x] = 2;",
        "View copy = out; copy = other; set(copy, x, 1); set(other, x + 1, 2);",
    ],
)
def test_a_copy_that_changes_is_a_copy(members: str, body: str) -> None:
    assert passed_on(body, members).verdict is not Verdict.RACE_FREE
    if "+=" not in body:
        unchanged = body.replace("copy.ptr = other.ptr;", "").replace("copy = other;", "")
        assert passed_on(unchanged, members).verdict is Verdict.RACE_FREE


SURFACE = """
struct Surface { float* cells; int width, height, pitch; __device__ float& at(int i) { return cells[i]; } };
struct Turned { float* cells; int width, height, pitch; Turned(float* p, int a, int b, int c); };
struct Based : Surface { int width; };
void fill(Surface& s);
int other();
void f(float* p, int q, bool large) { LAUNCH }
"""
SIZES = {"width": 100, "height": 60}


@pytest.mark.parametrize(
    ("launch", "fields"),
    [
        ("Surface s{p, 100, 60, 96}; k<<<1, 32>>>(s);", {**SIZES, "pitch": 96}),
        ("k<<<1, 32>>>(Surface{p, 100, 60, q});", SIZES),
        ("const int w = 64; Surface s = {p, w, q, w - 16}; k<<<1, 32>>>(s);", {"width": 64, "pitch": 48}),
        ("Surface s{.cells = p, .pitch = 96}; k<<<1, 32>>>(s);", {"pitch": 96}),
        ("Surface s; cudaMalloc(&s.cells, 9); s.width = 100; k<<<1, 32>>>(s);", {"width": 100}),
        ("Surface s{p, 100, 60, 96}; s.pitch = 128; k<<<1, 32>>>(s);", {**SIZES, "pitch": 128}),
        ("Surface s{p, 100, 60, 96}; s.pitch = other(); k<<<1, 32>>>(s);", SIZES),
        ("Surface s{p, 100, 60, 96}; if (large) s.pitch = 8; k<<<1, 32>>>(s);", SIZES),
        ("Surface s{p, 100, 60, 96}; if (large) { s.pitch = 8; } k<<<1, 32>>>(s);", SIZES),
        ("Surface s{p, 100, 60, 96}; while (q--) { k<<<1, 32>>>(s); s.pitch += 8; }", SIZES),
        ("Surface s{p, 100, 60, 96}; fill(s); k<<<1, 32>>>(s);", {}),
        ("Surface s{p, 100, 60, 96}; fill(*&s); k<<<1, 32>>>(s);", {}),
        ("Surface s{p, 100, 60, 96}; s.resize(8); k<<<1, 32>>>(s);", {}),
        ("Surface s{p, 100, 60, 96}; Surface& t = s; t.pitch = 8; k<<<1, 32>>>(s);", {}),
        ("Turned s{p, 100, 60, 96}; k<<<1, 32>>>(s);", {}),
        ("Based s{p, 100, 60, 96}; k<<<1, 32>>>(s);", {}),
        ("Unknown s{p, 100, 60, 96}; k<<<1, 32>>>(s);", {}),
    ],
)  # fmt: skip
def test_constants_of_fields_are_told(launch: str, fields: dict[str, int]) -> None:
    (site,) = find_launches(Path("k.cu"), SURFACE.replace("LAUNCH", launch))
    assert site.fields == {(0, name): value for name, value in fields.items()}


@pytest.mark.parametrize(("pitch", "verdict"), [("96", Verdict.RACY), ("128", Verdict.RACE_FREE)])
def test_a_pitch_in_a_record_that_the_host_fills_is_not_taken_for_granted(
    pitch: str, verdict: Verdict
) -> None:
    text = (
        "struct Surface { float* cells; int width, pitch; };\n"
        "__global__ void k(Surface s) { if (threadIdx.x < s.width)"
        " s.cells[blockIdx.x * s.pitch + threadIdx.x] = blockIdx.x; }\n"
        f"void f(float* p) {{ Surface s{{p, 100, {pitch}}}; k<<<8, 128>>>(s); }}\n"
    )
    (kernel,) = check_text(Path("k.cu"), text).kernels
    assert kernel.verdict is verdict
    assert not kernel.assumptions


VIEW = """
template <typename T, int R> struct View {{ T* p; int shape[R], stride[R]; }};
struct Plain {{ float* p; int shape[2], stride[2]; }};
__global__ void k(View<float, 2> v) {{
    v.p[blockIdx.x * v.stride[0] + threadIdx.x * v.stride[1]] = blockIdx.x;
}}
void f(float* p, int w) {{ {launch} }}
"""


@pytest.mark.parametrize(
    ("launch", "strides"),
    [
        ("View<float, 2> v = {p, {40, 64}, {64, 1}}; k<<<40, 64>>>(v);", (64, 1)),
        ("View<float, 2> v{p, {40, 64}, {0, 1}}; k<<<40, 64>>>(v);", (0, 1)),
        ("k<<<40, 64>>>(Plain{p, {40, 64}, {64, 1}});", (64, 1)),
        ("View<float, 2> u = {p, {1, 1}, {2, 3}}, v = {p, {40, 64}, {64, 1}}; k<<<40, 64>>>(v);", (64, 1)),
        ("View<float, 2> v; v.stride[0] = 32; v.stride[1] = 1; k<<<40, 64>>>(v);", (32, 1)),
        ("View<float, 2> v = {p, {40, 64}, {64, 1}}; v.stride[0] = 32; k<<<40, 64>>>(v);", (32, 1)),
        ("View<float, 2> v = {p, {40, 64}, {64, 1}}; v.stride[w] = 32; k<<<40, 64>>>(v);", (None, None)),
        ("View<float, 2> v = {p, {40, 64}, {64, 1}}; fill(v.stride); k<<<40, 64>>>(v);", (None, None)),
        ("View<float, 2> v = {p, {40, 64}, {64, 1}}; v.stride[0] *= w; k<<<40, 64>>>(v);", (None, None)),
        ("View<float, 2> v = {p, {40, 64}, {64, 1}}; int q = v.stride[0]; k<<<40, 64>>>(v);", (64, 1)),
        ("View<float, 2> v = {p, {40, 64}, {64, 1}}; int* q = &v.stride[0]; k<<<40, 64>>>(v);", (None, None)),
        ("View<float, 2> v = {p, 40, 64, 64, 1}; k<<<40, 64>>>(v);", (None, None)),  # braces left out
        ("View<float, 2> v = {p, {40, 64}, {w, 1}}; k<<<40, 64>>>(v);", (None, 1)),
    ],
)
def test_elements_of_arrays_in_records_are_fields(
    launch: str, strides: tuple[int | None, int | None]
) -> None:
    (site,) = find_launches(Path("k.cu"), VIEW.format(launch=launch))
    assert (site.fields.get((0, "stride[0]")), site.fields.get((0, "stride[1]"))) == strides


@pytest.mark.parametrize(
    ("stride", "verdict"), [(64, Verdict.RACE_FREE), (32, Verdict.RACY), (0, Verdict.RACY)]
)
def test_a_stride_that_the_host_writes_is_not_taken_to_fit(stride: int, verdict: Verdict) -> None:
    launch = f"View<float, 2> v = {{p, {{40, 64}}, {{{stride}, 1}}}}; k<<<40, 64>>>(v);"
    (kernel,) = check_text(Path("k.cu"), VIEW.format(launch=launch)).kernels
    assert kernel.verdict is verdict
    assert not kernel.assumptions


BLOCK_OF_FIELDS = """
struct Param { float* out; int heads; int size; int width; };
__global__ void k(Param p) {
  float* row = p.out + blockIdx.x * 3 * p.width;
  const int quarter = p.size / 4;
  row[threadIdx.y * 3 * quarter + threadIdx.z * quarter + threadIdx.x] = threadIdx.z;
}
void f(float* out, int m, int heads, int width) {
  int size = width / heads;
  Param p{out, heads, size, heads * size};
  dim3 block(p.size / DIVIDED, p.heads, 3);
  k<<<m, block>>>(p);
}
"""


@pytest.mark.parametrize(("divided", "races"), [("4", False), ("2", True)])
def test_a_block_that_fields_of_a_record_make_has_these_fields(divided: str, races: bool) -> None:
    (kernel,) = check_text(Path("k.cu"), BLOCK_OF_FIELDS.replace("DIVIDED", divided)).kernels
    found = [f for f in kernel.findings if f.kind]
    assert bool(found) is races
    assert kernel.verdict is (Verdict.RACY if races else Verdict.RACE_FREE)


def test_fields_are_formulas_of_other_arguments_and_fields() -> None:
    text = "struct S { int a; int b; int c; }; void f(int n, int m) { %s k<<<dim3(m), 32>>>(s, n); }"
    (site,) = find_launches(Path("a.cu"), text % "S s{n, m, n * m};")
    assert site.computed_fields == {(0, "a"): "#1", (0, "b"): "gridDim.x", (0, "c"): ("*", "#1", "gridDim.x")}
    (site,) = find_launches(Path("a.cu"), text % "S s{n, m, n * m}; s.b = 4;")
    assert (site.fields, site.computed_fields.keys()) == ({(0, "b"): 4}, {(0, "a"), (0, "c")})
    (site,) = find_launches(Path("a.cu"), text % "S s{n, m, n * m}; g(&s);")
    assert not site.fields and not site.computed_fields
