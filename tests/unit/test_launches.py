"""What launch sites tell, and what must not be taken for a constant."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.frontend.host.launch_site import LaunchSite
from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.model import Code, LaunchSource, Status
from cuda_lsp.static.analyze import check_text

ROOT = Path(__file__).resolve().parents[2]


def only(text: str) -> LaunchSite:
    (site,) = find_launches(Path("a.cu"), text)
    return site


def test_literal_extents_and_shared_bytes() -> None:
    site = only("void f(float* p) { k<<<dim3(4, 5), 256, 16 * sizeof(float)>>>(p, 7); }")
    assert (site.kernel, site.block, site.grid, site.dynamic_shared) == ("k", (256, 1, 1), (4, 5, 1), 64)
    assert site.arguments == {1: 7}


@pytest.mark.parametrize(
    "launch",
    ["k<< <4, n >> 1, 8>> >(p, 7)", "k <<\n <4, n >> 1, 8 >>  > (p, 7)", "k<< <4, n >> 1, 8>>>(p, 7)"],
)
def test_brackets_that_a_formatter_has_spaced_are_those_of_a_launch(launch: str) -> None:
    """nvcc takes them; ranges are those of the text as it stands."""
    text = f"/* a  b */ void f(float* p) {{ const int n = 64;  {launch}; }}"
    site = only(text)
    assert (site.kernel, site.block, site.grid, site.dynamic_shared) == ("k", (32, 1, 1), (4, 1, 1), 8)
    assert site.arguments == {1: 7}
    assert site.site.range.start.column == text.index(launch) + 1


@pytest.mark.parametrize(
    "text",
    [
        "template <class T> S& operator<< <T>(S&, T); bool f(V<V<int> > v) { return a >> > b; }",
        "void f() { out << < 3, 4 >> (1); }",  # nobody closes it
        'void f() { puts("k<< <1, 32>> >(3)"); }',
    ],
)
def test_what_is_no_launch_becomes_none_by_its_spaces(text: str) -> None:
    assert find_launches(Path("a.cu"), text) == ()


def test_a_shift_in_spaced_brackets_and_an_operator_before_them_stay_what_they_are() -> None:
    text = "S& operator<< <T>(S&, T); void f(int n) { k<<<1, 1 << 5>>>(n); j<< <2, 1 << 6>> >(n); }"
    sites = find_launches(Path("a.cu"), text)
    assert [(site.kernel, site.block) for site in sites] == [("k", (32, 1, 1)), ("j", (64, 1, 1))]


def test_names_are_followed_through_macros_constants_and_dim3_variables() -> None:
    site = only(
        "#define TILE 16\nconstexpr int ROWS = TILE / 2;\n"
        "void f() { const int blocks = 1 << 3; dim3 block(TILE, ROWS); k<<<blocks, block>>>(); }"
    )
    assert (site.block, site.grid) == ((16, 8, 1), (8, 1, 1))


def test_template_arguments_are_kept_as_written() -> None:
    assert only("void f() { k<float, 2 * N><<<1, 32>>>(); }").template_arguments == "float, 2 * N"


@pytest.mark.parametrize(
    "text",
    [
        "void f(int n) { k<<<1, 32>>>(n); }\n",
        "void g() { int n = 64; use(n); }\nvoid f(int n) { k<<<1, 32>>>(n); }\n",
        "const int n = 64;\nvoid f(int n) { k<<<1, 32>>>(n); }\n",
        "void g() { int n = 64; }\nvoid f() { int n = atoi(s); k<<<1, 32>>>(n); }\n",
        "void f() { int n = 64; n = atoi(s); k<<<1, 32>>>(n); }\n",
        "void f() { int n = 64; read_option(&n); k<<<1, 32>>>(n); }\n",
        "void f() { int n = 64; n *= next(); k<<<1, 32>>>(n); }\n",
        "void f() { for (int n = 1; n < 9; ++n) k<<<1, 32>>>(n); }\n",
        "void f(int n = 64) { k<<<1, 32>>>(n); }\n",
        "#if BIG\n#define n 64\n#else\n#define n 32\n#endif\nvoid f() { k<<<1, 32>>>(n); }\n",
        "template <int n> void f() { k<<<1, 32>>>(n); }\n",
        "void f() { dim_t n = 64; if (s) n = 32; k<<<1, 32>>>(n); }\n",
        "const real n = 0.5 * 3;\nvoid f() { k<<<1, 32>>>(n); }\n",
    ],
)
def test_what_may_vary_is_not_a_constant(text: str) -> None:
    assert only(text).arguments == {}


def test_an_inner_definition_shadows_an_outer_one_only_in_its_scope() -> None:
    text = "const int n = 8;\nvoid f() { { const int n = 4; } k<<<1, n>>>(); }"
    assert only(text).block == (8, 1, 1)


def test_a_changed_block_gives_no_configuration_but_the_site_remains() -> None:
    site = only("void f() { dim3 block(16); block.x = m; k<<<1, block>>>(3); }")
    assert site.block is None
    assert site.configuration(("n",)) is None
    assert site.arguments == {0: 3}


@pytest.mark.parametrize(
    "device",
    [
        "cg::thread_block block = cg::this_thread_block();",
        "int block = blockIdx.x;",
        "float block; block += 1;",
    ],
)
def test_what_another_function_calls_the_same_says_nothing_of_a_block(device: str) -> None:
    site = only(f"void k() {{ {device} }}\nvoid f() {{ dim3 block(8, 8); k<<<4, block>>>(); }}")
    assert site.block == (8, 8, 1)


def test_arguments_get_the_names_of_parameters() -> None:
    configuration = only("void f() { k<<<2, 64>>>(p, 5); }").configuration(("data", "n"))
    assert configuration is not None
    assert configuration.arguments == {"n": 5}
    assert not configuration.assumed


def test_the_runtime_call_is_a_launch_too() -> None:
    site = only("void f() { dim3 b(8, 8); cudaLaunchCooperativeKernel((void*)k<float>, 4, b, args, 64, 0); }")
    assert (site.kernel, site.template_arguments) == ("k", "float")
    assert (site.block, site.grid, site.dynamic_shared, site.arguments) == ((8, 8, 1), (4, 1, 1), 64, {})


def test_launches_in_comments_and_strings_do_not_count() -> None:
    assert find_launches(Path("a.cu"), '// k<<<1, 2>>>()\nchar* s = "k<<<1, 2>>>()";') == ()


@pytest.mark.parametrize(
    "text", ["k<<<", "k<<<1", "k<<<1, 2>>>", "<<<1, 2>>>();", "k<<<,>>>()", "k<<<1,2>>>(("]
)
def test_half_typed_launches_never_fail(text: str) -> None:
    find_launches(Path("a.cu"), text)


def test_a_launch_through_a_function_pointer_is_one_of_each_kernel_it_may_hold() -> None:
    text = """__global__ void first(int* p) {}
__global__ void second(int* p) {}
int main() {
    void (*chosen)(int*) = &first;
    if (p) chosen = second;
    chosen<<<4, 96>>>(p);
}
"""
    sites = find_launches(Path("a.cu"), text)
    assert {(s.kernel, s.block) for s in sites if s.kernel != "chosen"} == {
        ("first", (96, 1, 1)),
        ("second", (96, 1, 1)),
    }


def test_components_of_a_dim3_assigned_once_are_its_extents() -> None:
    site = only(
        "void f() { dim3 grid; dim3 block; block.x = 128; block.y = 4; grid.x = 64 / block.y;"
        " k<<<grid, block>>>(3); }"
    )
    assert (site.block, site.grid) == ((128, 4, 1), (16, 1, 1))


@pytest.mark.parametrize(
    "assigned",
    [
        "block.x = 128; while (wide) block.x = 64;",
        "block.x = 128; block.y += wide;",
        "block.x = 128; resize(&block);",
        "block.x = 128; block = other;",
    ],
)
def test_components_that_depend_on_more_are_not_constant(assigned: str) -> None:
    assert only(f"void f(bool wide) {{ dim3 block; {assigned} k<<<1, block>>>(3); }}").block is None


def test_arguments_that_are_the_blocks_extent_are_known_without_it() -> None:
    site = only("void f(dim3 b, int n) { k<<<n / b.x, b>>>(p, b.x, n, b . y); }")
    assert (site.block, site.extents) == (None, {1: 0, 3: 1})
    assert only("void f(int threads) { k<<<1, threads>>>(threads, threads + 1); }").extents == {0: 0}
    assert only("void f(int t) { k<<<1, 2 * t>>>(t); }").extents == {}


_LAUNCHED = """__global__ void neighbour(int *out) {{
  extern __shared__ int s[];
  s[threadIdx.x] = 1;
  out[threadIdx.x] = s[63 - threadIdx.x];
}}
{comment}void launch(int *out) {{ neighbour<<<{launch}>>>(out); }}
"""


@pytest.mark.parametrize(
    "launch",
    [
        "1, 99999999999999999999",
        "1, dim3(1 << 30, 1 << 30)",
        "1, 65536 * 65536",
        "1, 1 << 4000000000",
        "1, 4096",
        "99999999999999999999, 64",
        "dim3(1, 70000), 64",
        "1, dim3(1, 1, 128)",
    ],
)
def test_a_launch_that_no_target_accepts_is_told_and_never_executed(launch: str):
    text = _LAUNCHED.format(launch=launch, comment="")
    report = check_text(Path("k.cu"), text, solver=False)
    codes = {finding.code for finding in report.findings}
    assert Code.LAUNCH_LIMIT in codes
    assert not report.errors
    assert all(told.threads <= 1024 for kernel in report.kernels for told in kernel.launches)


def test_a_directive_that_no_target_accepts_is_told_and_never_executed():
    directive = "// cuda-lsp: launch block=(1 << 20,1,1)\n".replace("1 << 20", str(1 << 30))
    text = directive + _LAUNCHED.format(launch="1, 64", comment="")
    report = check_text(Path("k.cu"), text, solver=False)
    assert Code.LAUNCH_LIMIT in {finding.code for finding in report.findings}
    assert [told.block for kernel in report.kernels for told in kernel.launches] == [(64, 1, 1)]


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("const int TILE = 32, ROWS = 8;\nvoid f() { k<<<1, dim3(TILE, ROWS)>>>(); }", (32, 8, 1)),
        ("void f() { int a = 4, b(8), c{2}; k<<<1, dim3(a, b, c)>>>(); }", (4, 8, 2)),
        ("int const N = sizeof(unsigned long long int) * 8;\nvoid f() { k<<<1, N>>>(); }", (64, 1, 1)),
        ("short constexpr N = sizeof(short int) * 8;\nvoid f() { k<<<1, N>>>(); }", (16, 1, 1)),
        ("void f() { const int n = 512; size_t w = n / 2; k<<<1, w>>>(); }", (256, 1, 1)),
        ("void f() { const std::size_t w = 64; uint8_t h = 4; k<<<1, dim3(w, h)>>>(); }", (64, 4, 1)),
        ("void f() { int w = 64; dim3 b; b.x = w; b.y = 1; k<<<1, b>>>(); }", (64, 1, 1)),
        ("void f() { const bool wide = true; int w = wide ? 128 : 32; k<<<1, w>>>(); }", (128, 1, 1)),
        ("void f() { int a = 4, w = 64; if (a) w = 32; k<<<1, w>>>(); }", (32, 1, 1)),
        ("void f() { int w = 64, n = w > 32 && w < 100; k<<<1, w << n>>>(); }", (128, 1, 1)),
        ("static const dim_t W = 64;\nvoid f() { k<<<1, W>>>(); }", (64, 1, 1)),
    ],
)
def test_constants_of_the_host_are_followed(text: str, block: tuple[int, int, int]) -> None:
    assert only(text).block == block


@pytest.mark.parametrize(
    "text",
    [
        "void f() { int a = g(), w = 64; while (a) w = 32; k<<<1, w>>>(); }",
        "void f() { for (int i = 0, w = 64; i < 2; ++i) k<<<1, w>>>(); }",
        "void f(int a = 1, int w = 64) { k<<<1, w>>>(); }",
        "void f() { int a = 4, w = n; k<<<1, w>>>(); }",
        "void f() { int a = g(4, w = 64); k<<<1, w>>>(); }",
    ],
)
def test_what_may_change_is_no_constant(text: str) -> None:
    assert only(text).block is None


def test_a_block_that_is_known_in_part_keeps_that_part(tmp_path: Path) -> None:
    kernel = """__global__ void k(int* a) {
    __shared__ int s[16][64];
    s[threadIdx.y % 16][threadIdx.x % 64] = 1;
}
"""
    for written, axis, extent in (("dim3(8, n)", 0, 8), ("n + 1", 1, 1), ("dim3(n, 2, 1)", 1, 2)):
        text = f"{kernel}void go(int* a, int n) {{ k<<<1, {written}>>>(a); }}\n"
        (report,) = check_text(tmp_path / "a.cu", text, Settings(solver=False)).kernels
        assert report.launches[0].source is LaunchSource.SIZES
        assert report.launches[0].block[axis] == extent


@pytest.mark.parametrize("path", sorted((ROOT / "fixtures").rglob("*.cu")), ids=lambda p: p.stem)
def test_launches_of_one_kernel_are_those_among_all(path: Path):
    text = path.read_text()
    every = find_launches(path, text)
    for kernel in {site.kernel for site in every}:
        assert find_launches(path, text, of={kernel}) == tuple(s for s in every if s.kernel == kernel)


NODES = """
__global__ void first(int* a, int n); __global__ void second(int* a);
void f(cudaGraph_t graph, int* d, bool wide) {
    int n = 7;
    cudaGraphNode_t node;
    cudaKernelNodeParams params = {0};
    void* args[2] = {(void*)&d, &n};
    params.func = (void*)first;
    params.gridDim = dim3(4, 1, 1);
    params.blockDim = dim3(64, 2, 1);
    params.kernelParams = (void**)args;
    CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    memset(&params, 0, sizeof(params));
    params.func = (void*)second;
    params.gridDim = dim3(1);
    params.blockDim = dim3(32);
    BEFORE
    cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params);
}
"""


def test_nodes_of_graphs_are_launches() -> None:
    first, second = find_launches(Path("a.cu"), NODES.replace("BEFORE", ""))
    assert (first.kernel, first.grid, first.block, first.arguments) == (
        "first",
        (4, 1, 1),
        (64, 2, 1),
        {1: 7},
    )
    assert (second.kernel, second.grid, second.block) == ("second", (1, 1, 1), (32, 1, 1))


@pytest.mark.parametrize(
    "before", ["if (wide) { params.blockDim = dim3(64); }", "params.blockDim = dim3(n);"]
)
def test_a_node_whose_block_is_written_twice_is_not_known(before: str) -> None:
    assert [site.kernel for site in find_launches(Path("a.cu"), NODES.replace("BEFORE", before))] == ["first"]


def test_a_launch_with_more_arguments_is_of_another_kernel_of_that_name(tmp_path: Path) -> None:
    text = """
template <class T> __global__ void k(T* p, int n) { p[threadIdx.x] = n; }
template <class T> __global__ void k(T* p, const T* q, int m, int n) { p[threadIdx.x] = q[m] + n; }
template <class A, class B> int of(A a, B b);
void f(float* p) { k<<<1, 64>>>(p, p, 3, 4); k<float><<<1, 32>>>(p, of<int, float>(1, 2)); }
"""
    kernels = check_text(tmp_path / "k.cu", text).kernels
    assert [[launch.block[0] for launch in kernel.launches] for kernel in kernels] == [[32], [64]]


FILLED = """
void f(float* p, int n) {
  dim3 grid, block;
  shape(grid, block, n);
  k<<<grid, block>>>(p, n);
}
"""


def test_a_block_that_a_function_fills_is_no_size_of_its_own() -> None:
    unread = "void shape(dim3& grid, dim3& block, int n);\n"
    site = only(unread + FILLED)
    assert (site.block, site.sized) == (None, ())


def test_a_block_that_a_function_fills_is_as_large_as_sizes_make_it() -> None:
    read = "void shape(dim3& grid, dim3& block, int n) { grid.x = n; block.x = min(n, 256); block.y = 2; }\n"
    site = only(read + FILLED)
    assert site.block is None
    assert [made.block for made in site.sized] == [(256, 2, 1), (128, 2, 1)]


@pytest.mark.parametrize(
    ("arch", "bytes_", "status"),
    [
        ("sm_80", 100 << 10, None),
        ("sm_80", 220_000, Status.POSSIBLE),  # nobody has said that it is built for sm_80
        ("sm_80", 240_000, Status.PROVED),
        ("sm_90", 220_000, None),
        ("sm_86", 220_000, Status.PROVED),
        ("sm_90", 240_000, Status.PROVED),
    ],
)
def test_shared_memory_that_another_target_has_is_no_error_of_the_usual_one(
    arch: str, bytes_: int, status: Status | None
) -> None:
    text = _LAUNCHED.format(launch=f"1, 64, {bytes_}", comment="")
    report = check_text(Path("k.cu"), text, Settings(arch=arch), solver=False)
    told = [finding.status for finding in report.findings if finding.code is Code.LAUNCH_LIMIT]
    assert told == ([status] if status else [])
