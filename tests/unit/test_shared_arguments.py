"""Arguments of a launch that point into one buffer, and how far apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.frontend.host.shared_arguments import SharedBuffer
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import Analyzer, check_text


def shared(arguments: str) -> dict[int, tuple[object, object]]:
    text = f"void f() {{ const int N = 64; k<<<1, 32>>>({arguments}); }}"
    (site,) = find_launches(Path("a.cu"), text)
    return {position: (s.first, s.offset) for position, s in site.leads.shared.items()}


@pytest.mark.parametrize(
    ("arguments", "offset"),
    [
        ("d, d", 0),
        ("d, (float*)d", 0),
        ("d, reinterpret_cast<const int*>(d)", 0),
        ("d, d + 1", 1),
        ("d + 4, d", -4),
        ("d, d - N", -64),
        ("&d[2], &d[2 * N]", 126),
        ("p->data, p->data + 8", 8),
        ("d + r * w, d + (r - 1) * w + N * w", None),
    ],
)
def test_offsets_of_constants(arguments: str, offset: int | None) -> None:
    assert shared(arguments) == {1: (0, offset)}


def test_an_offset_of_other_arguments_names_them_by_position() -> None:
    assert shared("d, d + n, n") == {1: (0, "#2")}
    assert shared("d, d + 2 * n * m + 1, n, m") == {1: (0, ("+", 1, ("*", ("*", 2, "#2"), "#3")))}


def test_what_the_host_alone_knows_may_cancel() -> None:
    assert shared("d + r * w, d + (r - 1) * w, w")[1] == (0, ("*", -1, "#2"))
    assert shared("d + f(), d + f()") == {1: (0, 0)}
    assert shared("d + f(), d + f() + 1") == {1: (0, None)}


@pytest.mark.parametrize(
    "arguments",
    [
        "d, e",
        "buf[cur], buf[1 - cur]",
        "buf[s % 2], buf[(s + 1) % 2]",
        "buf[i], buf[i ^ 1]",
        "b[i], b[j]",
        "b[0], b[1]",
        "a.x, a.y",
        "d, 0",
        "NULL, NULL",
    ],
)
def test_different_places_are_different_buffers(arguments: str) -> None:
    assert shared(arguments) == {}


@pytest.mark.parametrize(
    ("arguments", "offset"),
    [
        ("buf[s % 2], buf[(s + 2) % 2]", 0),
        ("buf[s & 1] + 4, buf[(s ^ 2) & 1]", -4),
        ("buf[i], buf[i * 2]", None),  # at 0
        ("buf[s % 2], buf[s / 2 % 2]", None),
    ],
)
def test_elements_of_an_array_of_pointers_may_be_one(arguments: str, offset: int | None) -> None:
    assert shared(arguments) == {1: (0, offset)}


def test_parameters_are_named_once_the_kernel_is_known() -> None:
    by_position = SharedBuffer(0, ("*", 2, "#2"))
    assert by_position.named(["out", "in", "n"]) == SharedBuffer("out", ("*", 2, "n"))


def test_an_offset_by_an_argument_that_the_kernel_does_not_take_is_unknown() -> None:
    assert SharedBuffer(0, ("*", 2, "#2")).named(["out", "in"]) == SharedBuffer("out", None)


KERNEL = """
__global__ void k(float* out, const float* in) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}}
int main() {{ float *d, *e; k<<<2, 64>>>({arguments}); }}
"""


def test_an_edited_launch_is_seen_by_the_kernel(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    analyzer = Analyzer()
    verdicts: list[Verdict] = []
    for arguments in ("d, e", "d, d + 1", "d, d + 128"):
        path.write_text(text := KERNEL.format(arguments=arguments))
        analyzer.update(path, text)
        verdicts.append(analyzer.settle(path).kernels[0].verdict)
    analyzer.shutdown()
    assert verdicts == [Verdict.RACE_FREE, Verdict.RACY, Verdict.RACE_FREE]


def held(body: str) -> dict[int, tuple[object, object]]:
    """What the last launch of a function shares, whose parameters are ``d``, ``e`` and ``n``."""
    site = find_launches(Path("a.cu"), f"void f(float* d, float* e, int n) {{ {body} }}")[-1]
    return {position: (s.first, s.offset) for position, s in site.leads.shared.items()}


@pytest.mark.parametrize(
    ("body", "offset"),
    [
        ("float* p = d + 1; k<<<1, 32>>>(d, p);", 1),
        ("float *q, *p; p = &d[2]; k<<<1, 32>>>(d, p);", 2),
        ("auto p = d; k<<<1, 32>>>(d, p);", 0),
        ("const float* p(d + 4); k<<<1, 32>>>(d, p + 1);", 5),
        ("float* p = d + 1; float* q = p + 1; k<<<1, 32>>>(d, q);", 2),
        ("float* p = d + n; k<<<1, 32>>>(d, p, n);", "#2"),
        ("float* p = d + 1; float* q = d + 3; k<<<1, 32>>>(p, q);", 2),
        ("if (n) { float* p = d + 1; k<<<1, 32>>>(d, p); }", 1),
        ("{ float* p = e; k<<<1, 32>>>(d, p); } { float* p = d + 7; k<<<1, 32>>>(d, p); }", 7),
        ("A a; a.p = d + 1; k<<<1, 32>>>(d, a.p);", 1),
        ("float* p = d + n; k<<<1, 32>>>(d, p);", None),
        ("float* p = d; p += n; k<<<1, 32>>>(d, p);", None),
        ("float* p = n > 3 ? d : e; k<<<1, 32>>>(d, p);", None),
        ("float* p; if (n) p = d; else p = e; k<<<1, 32>>>(d, p);", None),
        ("k<<<1, 32>>>(d, n ? d : e);", None),
        ("for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) { k<<<1, 32>>>(d, p[i]); p[i] = d; }", 0),
    ],
)
def test_variables_of_the_host_stand_for_what_they_hold(body: str, offset: int | None) -> None:
    assert held(body) == {1: (0, offset)}


@pytest.mark.parametrize(
    "body",
    [
        "float* p = e + 1; k<<<1, 32>>>(d, p);",
        "float* p = d; cudaMalloc(&p, 64); k<<<1, 32>>>(d, p);",
        "float* p = d; cudaMalloc((void**)&p, 64); k<<<1, 32>>>(d, p);",
        "float* p = make(d); k<<<1, 32>>>(d, p);",
        "{ float* p = d; use(p); } float* p = e; k<<<1, 32>>>(d, p);",
        "float *p = d, *q = e; for (;;) { k<<<1, 32>>>(p, q); std::swap(p, q); }",
        "float *p = d, *q = e; for (;;) { k<<<1, 32>>>(p, q); float* t = p; p = q; q = t; }",
        "float* p; *p = *d; k<<<1, 32>>>(d, p);",
        "for (int i = 0; i < n; i++) { k<<<1, 32>>>(d, p[i]); p[i] = d; }",
        "for (int i = 0; i < n; ++i) { if (n) { k<<<1, 32>>>(d, p[i]); } p[i] = d; }",
    ],
)
def test_variables_that_hold_something_else_share_nothing(body: str) -> None:
    assert held(body) == {}


def test_a_size_that_changes_before_the_launch_is_another_one() -> None:
    assert held("float* p = d + n; n = 5; k<<<1, 32>>>(d, p, n);") == {1: (0, None)}


@pytest.mark.parametrize(
    ("body", "offset"),
    [
        ("float* p = d + n; if (!e) { n = 5; return; } k<<<1, 32>>>(d, p, n);", "#2"),
        ("float* p = d + 1; if (!e) { p = e; throw n; } k<<<1, 32>>>(d, p, n);", 1),
        ("float* p = d + n; if (!e) { n = 5; } k<<<1, 32>>>(d, p, n);", None),
        ("float* p = d + n; if (!e) { n = 5; if (n) { return; } } k<<<1, 32>>>(d, p, n);", "#2"),
        ("float* p = d + n; if (!e) { n = e; if (n) { return; } } k<<<1, 32>>>(d, p, n);", None),
        ("float* p = d + n; auto change = [&] { n = 5; return; }; change(); k<<<1, 32>>>(d, p, n);", None),
        ("float* p = d + n; if (!e) { n = 5; } else { return; } k<<<1, 32>>>(d, p, n);", None),
    ],
)
def test_what_is_written_on_ways_that_leave_does_not_count(body: str, offset: int | None) -> None:
    assert held(body) == {1: (0, offset)}


def test_products_of_sizes_that_the_host_knows_are_pieces_that_lie_apart() -> None:
    body = "float *q = d + 0 * B * T, *k = d + 1 * B * T; k<<<1, 32>>>(q, k, n);"
    (site,) = find_launches(Path("a.cu"), f"void f(float* d, int B, int T, int n) {{ {body} }}")
    assert site.leads.shared[1] == SharedBuffer(0, None, pieces=True)


@pytest.mark.parametrize(
    ("body", "pieces"),
    [
        ("int s = B * T; float *q = d + s, *k = q + s; k<<<1, 32>>>(q, k, n);", True),
        ("int s = B * T; float *q = d + 2 * s; k<<<1, 32>>>(q, d, n);", True),
        ("int r = T; int s = B * r; k<<<1, 32>>>(d, d + s, n);", True),
        ("k<<<1, 32>>>(d, d + x.numel(), n);", True),
        ("k<<<1, 32>>>(d, d + at::numel(x), n);", True),
        ("int s = 2 * T; k<<<1, 32>>>(d, d + s, n);", False),  # one size: may be a shift
        ("int s = B * T + 1; k<<<1, 32>>>(d, d + s, n);", False),
        ("int s = B * T; s = T; k<<<1, 32>>>(d, d + s, n);", False),
        ("int s = B * T; float* q = d + s; float* r = d + T; k<<<1, 32>>>(q, r, n);", False),
        ("int s = B * T; if (n) s = T; k<<<1, 32>>>(d, d + s, n);", False),
        ("int s = B * T; float* q = d + s; s = T; k<<<1, 32>>>(d, q, n);", False),
        ("k<<<1, 32>>>(d, d + count(x), n);", False),
    ],
)
def test_a_size_that_has_a_name_is_the_product_that_it_is_set_to(body: str, pieces: bool) -> None:
    (site,) = find_launches(Path("a.cu"), f"void f(float* d, at::Tensor x, int B, int T, int n) {{ {body} }}")
    assert site.leads.shared[1] == SharedBuffer(0, None, pieces=pieces)


def test_a_handle_of_a_library_that_a_function_takes_by_reference_is_no_buffer() -> None:
    text = """
struct Layer {{ void run(int n, {type}& h); }};
void f(Layer layer, float* d, int B, int T) {{
    float* q = d + B * T; float* r = q + B * T; layer.run(1, q); k<<<1, 32>>>(q, r); }}
"""
    for type, pieces in (("cublasHandle_t", True), ("cudaStream_t", True), ("float*", False), ("T", False)):
        (site,) = find_launches(Path("a.cu"), text.format(type=type))
        assert site.leads.shared[1].pieces is pieces, type


NEVER = """
__global__ void k(float* out, const float* in) { out[threadIdx.x] = in[threadIdx.x + 1]; }
void f(float* a, float* b) { if (a) { k<<<1, 64>>>(a, b); } else { CHECKED k<<<1, 64>>>(a, a); } }
"""


@pytest.mark.parametrize(
    ("checked", "verdict"),
    [
        ("MY_CHECK(false);", Verdict.RACE_FREE),
        ('TORCH_CHECK(false, "never");', Verdict.RACE_FREE),
        ("", Verdict.RACY),
        ("MY_CHECK(true);", Verdict.RACY),
        ("if (b) { MY_CHECK(false); }", Verdict.RACY),
        ("check(false);", Verdict.RACY),  # whatever that does
    ],
)
def test_a_launch_behind_a_check_of_false_is_none(checked: str, verdict: Verdict) -> None:
    (kernel,) = check_text(Path("a.cu"), NEVER.replace("CHECKED", checked)).kernels
    assert kernel.verdict is verdict


def test_nor_is_one_whose_function_is_called_there() -> None:
    text = NEVER.replace("void f(", "void g(float* a, float* b) { k<<<1, 64>>>(a, b); }\nvoid f(")
    text = text.replace("{ k<<<1, 64>>>(a, b); } else", "{ g(a, b); } else")
    text = text.replace("CHECKED k<<<1, 64>>>(a, a)", "CHECKED g(a, a)")
    for checked, verdict in (("MY_CHECK(false);", Verdict.RACE_FREE), ("", Verdict.RACY)):
        (kernel,) = check_text(Path("a.cu"), text.replace("CHECKED", checked)).kernels
        assert kernel.verdict is verdict


CARVED = "float* a = (float*)work; int* b = (int*)(a + s); float* c = (float*)(b + t);"


@pytest.mark.parametrize(
    ("body", "pieces"),
    [
        (f"{CARVED} k<<<1, 32>>>(a, b, n);", True),
        (f"{CARVED} k<<<1, 32>>>(c, b, n);", True),
        (f"{CARVED} k<<<1, 32>>>(a, c, n);", True),
        ("auto b = reinterpret_cast<int*>(d + s); k<<<1, 32>>>(d, b, n);", True),
        ("auto b = (int*)d + s; k<<<1, 32>>>(d, b, n);", True),
        ("k<<<1, 32>>>(d, (int*)(d + s), n);", True),
        ("k<<<1, 32>>>(d, (int*)(d + n), n);", False),  # exactly so far: the sizes of both are one
        (f"{CARVED} s = 4; k<<<1, 32>>>(a, b, n);", False),  # nobody knows how far
        ("int* b = (int*)d; k<<<1, 32>>>(d, b, n);", False),  # at one place
        ("int* b = (int*)(d + 4); k<<<1, 32>>>(d, b, n);", False),
        ("int* b = (int*)(d + s + 1); k<<<1, 32>>>(d, b, n);", False),
        ("int* b = (int*)(d + s - t); k<<<1, 32>>>(d, b, n);", False),
        ("float* a = (float*)work; float* b = a + s; k<<<1, 32>>>(a, b, n);", False),  # one array, shifted
        ("float* b = (float*)d + s; k<<<1, 32>>>(d, b, n);", False),
    ],
)
def test_a_workspace_is_carved_into_arrays_of_different_types(body: str, pieces: bool) -> None:
    (site,) = find_launches(Path("a.cu"), f"void f(float* d, void* work, int s, int t, int n) {{ {body} }}")
    assert site.leads.shared[1].pieces is pieces


def test_pieces_are_told_to_be_taken_for_granted(tmp_path: Path) -> None:
    text = """
__global__ void k(float* out, const float* in) { out[threadIdx.x] = in[threadIdx.x]; }
void f(float* d, int h, int w) { float* q = d + h * w; k<<<1, 64>>>(q, d); }
"""
    (kernel,) = check_text(tmp_path / "k.cu", text).kernels
    assert kernel.verdict is Verdict.RACE_FREE
    assert kernel.assumptions == ("`out` and `in` point to pieces of one buffer that do not overlap",)


PYRAMID = """
__global__ void down(const float* src, float* dst, int dw, int dh) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x >= dw || y >= dh) return;
    dst[y * dw + x] = src[2 * y * 2 * dw + 2 * x] + src[(2 * y + 1) * 2 * dw + 2 * x];
}
void launch(float* levels, int w, int h) {
    float* src = levels;
    for (int l = 0; l < 4; ++l) {
        float* dst = src + w * h;
        CHANGE
        down<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(src, dst, w, h);
        src = dst;
    }
}
"""


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ("w /= 2; h /= 2;", Verdict.RACE_FREE),
        ("w >>= 1; h >>= 1;", Verdict.RACE_FREE),
        ("w *= 2; h *= 2;", Verdict.RACY),
        ("w /= 2; h /= 2; if (l) w += 3;", Verdict.UNDECIDED),
        ("w -= 1; h -= 1;", Verdict.UNDECIDED),
        ("", Verdict.RACY),  # four times as many are read as lie between the two
    ],
)
def test_a_place_behind_an_array_stays_where_it_is_when_the_sizes_change(
    change: str, verdict: Verdict
) -> None:
    (kernel,) = check_text(Path("a.cu"), PYRAMID.replace("CHANGE", change)).kernels
    assert kernel.verdict is verdict
    assert (verdict is Verdict.RACE_FREE) == any("share" in x or "overlap" in x for x in kernel.assumptions)


def test_one_size_between_two_places_is_no_array() -> None:
    (kernel,) = check_text(
        Path("a.cu"), PYRAMID.replace("w * h;", "w;").replace("CHANGE", "w /= 2; h /= 2;")
    ).kernels
    assert kernel.verdict is Verdict.UNDECIDED


def test_sizes_that_were_divided_since_are_no_longer_the_same_for_either_pointer() -> None:
    assert held("float* p = d + n; n /= 2; float* q = d + n; k<<<1, 32>>>(p, q);") == {1: (0, None)}


TWO_PARTS = """
__global__ void sums(const float* in, float* total, float* part) {
    if (threadIdx.x == 0) { total[INDEX] = in[blockIdx.x]; part[blockIdx.x] = in[blockIdx.x] * 2; }
}
void run(const float* in, float* buffer, int batch, int length) { HOST }
"""
BLOCKS = "int blocks = batch * length;"


@pytest.mark.parametrize(
    ("host", "index", "verdict"),
    [
        (f"{BLOCKS} float* part = buffer + blocks; sums<<<blocks, 64>>>(in, buffer, part);", "", "race-free"),
        (f"{BLOCKS} sums<<<batch * length, 64>>>(in, buffer, buffer + blocks);", "", "race-free"),
        ("float* part = buffer + length; sums<<<length, 64>>>(in, buffer, part);", "", "race-free"),
        ("sums<<<length, 64>>>(in, buffer, buffer + 2 * length);", " + gridDim.x", "race-free"),
        (f"{BLOCKS} float* part = buffer + blocks - 1; sums<<<blocks, 64>>>(in, buffer, part);", "", "racy"),
        (f"{BLOCKS} float* part = buffer + blocks; sums<<<2 * blocks, 64>>>(in, buffer, part);", "", None),
        (f"{BLOCKS} sums<<<blocks, 64>>>(in, buffer, buffer + blocks);", " + 1", "racy"),
        (f"{BLOCKS} auto p = buffer + length; sums<<<blocks, 64>>>(in, buffer, p);", "", None),
        ("float* p = buffer + length; length *= 2; sums<<<length, 64>>>(in, buffer, p);", "", None),
        ("float* p = buffer + length; length++; sums<<<length, 64>>>(in, buffer, p);", "", None),
        ("float* p = buffer + length; sums<<<length + 1, 64>>>(in, buffer, p);", "", None),
    ],
)
def test_parts_of_a_buffer_lie_as_far_apart_as_the_grid_is_large(
    host: str, index: str, verdict: str | None
) -> None:
    text = TWO_PARTS.replace("HOST", host).replace("INDEX", f"blockIdx.x{index}")
    (kernel,) = check_text(Path("a.cu"), text).kernels
    assert kernel.verdict.value == verdict if verdict else kernel.verdict is not Verdict.RACE_FREE
    assert kernel.assumptions == ()


@pytest.mark.parametrize(
    ("behind", "pieces"),
    [
        ("n * m * sizeof(T)", True),
        ("(n * sizeof(T) + m - 1) / m * m", True),
        ("m * sizeof(T)", False),  # one size, of elements of one type
        ("sizeof(T)", False),
        ("n * m * sizeof(T) - h * w * sizeof(T)", False),
        ("n * h(sizeof(T))", False),
    ],
)
def test_how_large_elements_are_is_no_size_between_pieces(behind: str, pieces: bool) -> None:
    text = f"template <typename T> void f(char* d) {{ char* p = d + {behind}; k<<<1, 32>>>(d, p); }}"
    (shared,) = find_launches(Path("a.cu"), text)[-1].leads.shared.values()
    assert (shared.first, shared.offset, shared.pieces) == (0, None, pieces)


def test_elements_of_one_name_may_be_of_two_sizes() -> None:
    text = """
struct A { char* d; char* p; int n;
  template <typename T> void f() { p = d + n * sizeof(T); }
  template <typename T> void g() { char* q = d + n * sizeof(T); k<<<1, 32>>>(p, q); }
};"""
    (shared,) = find_launches(Path("a.cu"), text)[-1].leads.shared.values()
    assert (shared.offset, shared.pieces) == (None, False)
