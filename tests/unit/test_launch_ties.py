"""What a launch's sizes have to do with each other: sizes that its surroundings exclude make no launch."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT, Settings
from cuda_lsp.frontend.host.guards import in_common
from cuda_lsp.frontend.host.launch_site import LaunchSite
from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.frontend.host.passed_types import may_be_one
from cuda_lsp.model import Dim3, KernelReport, LaunchSource, Status, Verdict
from cuda_lsp.static.analyze import check_text

HEAD = "__global__ void k(float* p, int n, int m);\n"


def sites(text: str) -> tuple[LaunchSite, ...]:
    return find_launches(Path("a.cu"), HEAD + text)


def sized(body: str) -> list[Dim3]:
    """The blocks that sizes make of the only launch in a function's body."""
    (site,) = sites(f"void f(float* p, int n, int m) {{ {body} }}")
    return [made.block for made in site.sized]


@pytest.mark.parametrize("lanes", [4, 16])
def test_one_of_two_sizes_may_be_any_power_of_two(lanes: int) -> None:
    rows = "int lanes = (n + 7) / 8; int most = 64 / lanes; int rows = m < most ? m : most;"
    made = sized(f"{rows} if (lanes == {lanes}) k<<<m, dim3(lanes, rows)>>>(p, n, m);")
    assert made and all(x == lanes for x, _, _ in made)


@pytest.mark.parametrize(
    "body",
    [
        "assert(n % 32 == 0); k<<<1, dim3(n / 4, m)>>>(p, n, m);",
        "if (n % 32 != 0) return; k<<<1, dim3(n / 4, m)>>>(p, n, m);",
        "if (n % 32 == 0) k<<<1, dim3(n / 4, m)>>>(p, n, m);",
        "if (n % 32 != 0) { m = 1; } else { k<<<1, dim3(n / 4, m)>>>(p, n, m); }",
        "if (p) { g(); } else if (n % 32 != 0) { g(); } else { k<<<1, dim3(n / 4, m)>>>(p, n, m); }",
    ],
)
def test_sizes_that_a_check_excludes_make_no_launch(body: str) -> None:
    blocks = sized(body)
    assert blocks
    assert all(block[0] % 8 == 0 for block in blocks)


def test_a_branch_that_is_not_taken_for_small_sizes_has_blocks_of_large_ones() -> None:
    body = "bool small = n <= 128; int t = small ? 16 : 4; if (small) g(); else { k<<<1, t * n>>>(p, n, m); }"
    body = body.replace("g();", "{ g(); }")
    assert all(x > 4 * 128 for x, _, _ in sized(body))
    assert sized(body)


@pytest.mark.parametrize(
    "body",
    [
        "if (n > 64) { g(); } else { B }",
        "if (m) { if (n > 64) { g(); } else { B } }",
        "if (n > 64) g(); else B",
        "if (n > 64) g(n, (m)); else if (m) h(); else B",
        "if (n > 64) g(); else if (m) h(); else if (p) { B }",
        "if (n > 64) g(); else { if (m) h(); B }",
    ],
)
def test_what_the_if_asks_is_denied_in_its_else(body: str) -> None:
    (site,) = sites(f"void f(float* p, int n, int m) {{ {body.replace('B', 'k<<<1, 64>>>(p, n, m);')} }}")
    assert "#1 <= 64" in site.conditions


@pytest.mark.parametrize(
    "body",
    [
        "if (n > 64) { g(); } k<<<1, 64>>>(p, n, m);",
        "if (n > 64 && m) { g(); } else { k<<<1, 64>>>(p, n, m); }",
        "if (n > 64) { g(); } else { n = m; k<<<1, 64>>>(p, n, m); }",
        "if (n > 64) { g(); } else { g(); } { k<<<1, 64>>>(p, n, m); }",
        "if (n > 64) g(); else h(); k<<<1, 64>>>(p, n, m);",
        "if (n > 64) if (m) g(); else k<<<1, 64>>>(p, n, m);",
    ],
)
def test_what_no_else_denies_is_not_known(body: str) -> None:
    (site,) = sites(f"void f(float* p, int n, int m) {{ {body} }}")
    assert "#1 <= 64" not in site.conditions


OVERLOADS = """
__global__ void k(float* a, const float* in, int n, int m) {
    if (threadIdx.x < m) a[threadIdx.x] = a[threadIdx.x + n] + in[0];
}
__global__ void k(float* a, int n, int m) { if (threadIdx.x < m) a[threadIdx.x] = a[threadIdx.x + n]; }
void f(float* p, int n, int m) { k<<<1, 64>>>(p, p + 7, n, m); }
void g(float* p, int n, int m) { if (m <= n) k<<<1, 64>>>(p, n, m); }
"""


def test_a_launch_is_of_the_overload_that_takes_as_many_arguments() -> None:
    first, second = check_text(Path("a.cu"), OVERLOADS, Settings()).kernels
    assert first.verdict is Verdict.RACY
    assert second.verdict is Verdict.RACE_FREE


def test_defaults_may_fill_what_a_launch_does_not_pass() -> None:
    text = """__global__ void k(float* out, int n, int width = 64) { out[blockIdx.x * width] = n; }
void g(float* p, int n) { k<<<n, 64>>>(p, n); }"""
    (kernel,) = check_text(Path("a.cu"), text, Settings()).kernels
    assert kernel.launches[0].block == (64, 1, 1)


def test_a_local_constant_is_a_template_argument_though_templates_call_a_parameter_so() -> None:
    text = """template <int N> __global__ void k(float* p);
void f(float* p, int n) {
    if (n % 4 == 0) { const int N = 4; k<N><<<1, 32 * N>>>(p); }
    else { const int N = 1; k<N><<<1, 32 * N>>>(p); }
}
template <int N> void g(float* p) { k<N><<<1, 64>>>(p); }"""
    found = [(site.template_arguments, site.block) for site in find_launches(Path("a.cu"), text)]
    assert found == [("4", (128, 1, 1)), ("1", (32, 1, 1)), ("N", (64, 1, 1))]


def test_locals_of_a_macro_around_are_template_arguments_of_the_launch_in_a_macro_inside() -> None:
    text = """template <int A, int B> __global__ void k(float* p);
#define CALL(a) k<a, width><<<1, block>>>(p);
#define LAUNCH(w) const int width = w; if (n) { CALL(8) } else { CALL(4) }
void f(float* p, int n) {
    dim3 block(64);
    if (n > 3) { LAUNCH(16) } else { LAUNCH(32) }
}"""
    found = [site.template_arguments for site in find_launches(Path("a.cu"), text)]
    assert found == ["8, 16", "4, 16", "8, 32", "4, 32"]


APART = """__global__ void k(float* a, int n, int m) {
    if (threadIdx.x < m) a[threadIdx.x] = a[threadIdx.x + n];
}
void f(float* p, int n, int m) { if (m <= n) k<<<1, 64>>>(p, n, m); }
void g(float* p, int n, int m) { LAUNCH }
"""


@pytest.mark.parametrize(
    ("launch", "verdict"),
    [
        ("k<<<1, 32>>>(p, 32, m);", Verdict.RACE_FREE),
        ("if (m < 8 && n > 8) k<<<1, 64>>>(p, n, m);", Verdict.RACY),  # one launch with the first
        ("k<<<1, 32>>>(p, n, m);", Verdict.RACY),
        ("k<<<1, unknown()>>>(p, n, m);", Verdict.RACY),  # nobody looks at it alone
    ],
)
def test_what_holds_at_one_launch_counts_for_it_alone(launch: str, verdict: Verdict) -> None:
    (kernel,) = check_text(Path("a.cu"), APART.replace("LAUNCH", launch), Settings()).kernels
    assert kernel.verdict is verdict


def test_sizes_that_a_branch_excludes_are_not_among_those_of_a_block() -> None:
    text = "void f(float* p, int n) { if (n > 512) { k<<<1, n > 64 ? 256 : n>>>(p, n / 4, 1); } }"
    (site,) = sites(text)
    ((made,),) = (site.sized,) if site.sized else (((None,)),)
    assert made is not None and any("#1 >= 128" in condition for condition in made.conditions)


HALVES = """
template <typename T> __global__ void k(T* out, const T* in, int n);
template <typename T> void f(T* out, const T* in, int n) {
    if (BRANCH) k<<<1, 64>>>((half2*)out, (const half2*)in, n);
    else k<T><<<1, 128>>>(out, in, n);
}
template void f<float>(float* out, const float* in, int n);
template void f(half* out, const half* in, int n);
"""


@pytest.mark.parametrize(
    "branch",
    ["sizeof(T) == 2", "std::is_same<T, half>::value", "is_same_v<T, __half>", "sizeof(T) == 2 && true"],
)
def test_a_branch_on_a_type_is_taken_by_instances_of_this_type(branch: str) -> None:
    found = find_launches(Path("a.cu"), HALVES.replace("BRANCH", branch))
    assert [(s.template_arguments, s.block, s.types[0].strip()) for s in found] == [
        (None, (64, 1, 1), "half2*"),
        ("float", (128, 1, 1), "float*"),
    ]


def test_a_launch_is_of_the_instance_whose_pointers_it_passes() -> None:
    text = """#include <cuda_fp16.h>
template <typename T> __global__ void k(T* a, int n, int m) {
    if (threadIdx.x < m) a[threadIdx.x] = a[threadIdx.x + n];
}
void f(float* p, int n, int m) { k<<<1, 64>>>(p, n, m); }
void g(int* p, int n, int m) { if (m <= n) k<<<1, 64>>>(p, n, m); }
void h(void* p, int n, int m) { if (m <= n) k<<<1, 64>>>((half*)p, n, m); }
"""
    kernels = check_text(Path("a.cu"), text, Settings()).kernels
    assert {k.name.partition("<")[2].rpartition("::")[2]: k.verdict for k in kernels} == {
        "float>": Verdict.RACY,
        "int>": Verdict.RACE_FREE,
        "__half>": Verdict.RACE_FREE,
    }


@pytest.mark.parametrize(
    ("passed", "taken", "fits"),
    [
        ("const half*", "const __cuda_lsp_narrow::__half *", True),
        ("uint32_t *", "unsigned int *__restrict", True),
        ("float*", "int *", False),
        ("half4*", "float *", False),
        ("real*", "float *", True),  # whatever that is
        ("void*", "float *", True),
        ("size_t", "int", True),  # numbers are converted
        ("float**", "float *", False),
    ],
)
def test_pointers_of_known_types_fit_or_not(passed: str, taken: str, fits: bool) -> None:
    assert may_be_one(passed, taken) is fits


RECORD = """struct Params { float* out; int m; int n; };
__global__ void k(Params params) { params.out[blockIdx.x * params.n + threadIdx.x] = threadIdx.x; }
void f(Params params) { LAUNCH }
"""


@pytest.mark.parametrize(
    ("launch", "conditions"),
    [
        ("if (params.n == 64) k<<<params.m, 64>>>(params);", {"#u0.n == 64", "gridDim.x == #u0.m"}),
        ("if (params.n % 4 == 0) { k<<<1, 64>>>(params); }", {"#u0.n % 4 == 0"}),
        ("CHECK(params.n >= params.m); k<<<1, 64>>>(params);", {"#u0.n >= #u0.m"}),
        ("if (params.n == 64) { params.n = 8; k<<<1, 64>>>(params); }", set()),
        ("if (params.n == 64) { change(&params); k<<<1, 64>>>(params); }", set()),
        ("if (params.size() == 64) k<<<1, 64>>>(params);", set()),
        ("if (params.a.n == 64) k<<<1, 64>>>(params);", set()),
    ],
)
def test_fields_of_a_record_that_is_passed_are_compared(launch: str, conditions: set[str]) -> None:
    (site,) = find_launches(Path("a.cu"), RECORD.replace("LAUNCH", launch))
    assert set(site.conditions) == conditions


def test_what_a_taken_branch_asks_holds_at_the_launch_behind_it() -> None:
    text = "void f(float* p, int n, int m) { int t = n; if (n % 32 != 0) { t = 256; } k<<<m, t>>>(p, n, m); }"
    found = [s for s in sites(text) if s.block is not None]
    assert found and all("#1 % 32 != 0" in site.conditions for site in found)
    text = text.replace("t = 256;", "t = 256; n = 32;")
    assert not any("#1 % 32 != 0" in site.conditions for site in sites(text))


def test_a_block_that_follows_a_field_tells_the_field() -> None:
    text = RECORD.replace("LAUNCH", "k<<<params.m, params.n>>>(params);")
    (kernel,) = check_text(Path("a.cu"), text, Settings()).kernels
    assert kernel.launches[0].source is LaunchSource.SIZES
    assert kernel.verdict is Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("(int)threadIdx.x < -n - m", Status.POSSIBLE),
        ("n + m == -3", Status.CONDITIONAL),  # the source says so
        ("(int)threadIdx.x < n + m", Status.CONDITIONAL),
    ],
)
def test_a_race_that_only_sizes_below_zero_show_is_possible(condition: str, status: Status) -> None:
    text = f"""__global__ void k(float* a, int n, int m) {{ if ({condition}) a[0] = threadIdx.x; }}
void f(float* a, int n, int m) {{ k<<<1, 64>>>(a, n, m); }}"""
    (kernel,) = check_text(Path("a.cu"), text, Settings()).kernels
    assert {f.status for f in kernel.findings if f.kind} == {status}


@pytest.mark.parametrize(
    ("launch", "block", "passed"),
    [
        ("dh::LaunchKernel{1, 64, 0, s}(k, p, n);", (64, 1, 1), 2),
        ("LaunchKernel(grid, dim3(8, 4))(k<float>, p);", (8, 4, 1), 1),
        ("KernelLauncher{1, n}(k, p);", None, 1),
    ],
)
def test_an_object_that_launches_is_a_launch(launch: str, block: Dim3 | None, passed: int) -> None:
    (site,) = find_launches(Path("a.cu"), f"void f(float* p, int n) {{ {launch} }}")
    assert (site.kernel, site.block, site.passed) == ("k", block, passed)


@pytest.mark.parametrize(
    "text", ["LaunchKernel{1, 64}.go();", "LaunchKernel(1, 64);", "LaunchKernel{1}(k, p);"]
)
def test_what_launches_no_kernel_is_no_launch(text: str) -> None:
    assert find_launches(Path("a.cu"), f"void f(float* p) {{ {text} }}") == ()


def test_a_way_whose_block_the_branch_of_the_launch_excludes_makes_no_launch() -> None:
    text = """void f(float* p, int n, int m) {
    dim3 block(n);
    if (m != 0) { block.x = 1024; }
    if (block.x % 4 != 0) { k<<<1, block>>>(p, n, m); }
}"""
    assert (1024, 1, 1) not in {site.block for site in sites(text)}
    assert (1024, 1, 1) in {site.block for site in sites(text.replace("!= 0) { k", "== 0) { k"))}


TILES = """
__global__ void tiles(int* o, unsigned width) {{
    o[((blockIdx.y * width / 4) + blockIdx.x) * 4 + threadIdx.y] = blockIdx.x;
}}
void f(int* o, {type} width, int height) {{
    {check}
    dim3 grid(width / 4, height / 4);
    tiles<<<grid, dim3(1, 4)>>>(o, width);
}}
"""


@pytest.mark.parametrize(
    ("type", "check", "free"),
    [
        ("int", "if (width <= 0 || height <= 0) return;", True),
        ("int", "", False),
        ("int", "if (height <= 0) return;", False),
        ("unsigned", "", True),
    ],
)
def test_a_size_that_is_above_zero_is_the_same_without_a_sign(type: str, check: str, free: bool) -> None:
    text = TILES.format(type=type, check=check)
    (report,) = check_text(Path("k.cu"), text, PATIENT).kernels
    assert (report.verdict is Verdict.RACE_FREE) is free


@pytest.mark.parametrize(
    ("loop", "conditions"),
    [
        ("for (int i = 0; i < 60; i += 2) k<<<1, 64>>>(p, i);", {"#1 < 60", "#1 >= 0"}),
        ("for (int i = 1; i < n; i *= 2) { k<<<1, 64>>>(p, i); }", {"#1 >= 1"}),
        ("for (int i = 9; i >= 0 && n > 3; --i) { if (n) k<<<1, 64>>>(p, i + 1); }", {"#1 >= 1", "#1 <= 10"}),
        ("for (int i = 0; i < 60; ++i) { i += n; k<<<1, 64>>>(p, i); }", set()),
        ("for (int i = 0; i < 60; i += n) k<<<1, 64>>>(p, i);", {"#1 < 60"}),
        ("for (int j = 0; j < 9; ++j) for (int i = j; i < 9; ++i) k<<<1, 64>>>(p, i);", {"#1 < 9"}),
        ("int i = 0; for (; i < 60; ++i) {} k<<<1, 64>>>(p, i);", set()),
        ("for (int i = 0; i < 60; ++i) {} for (int i = 70; n; ) k<<<1, 64>>>(p, i);", set()),
    ],
)  # fmt: skip
def test_what_a_loop_asks_holds_in_its_rounds(loop: str, conditions: set[str]) -> None:
    (site,) = sites(f"void f(float* p, int n) {{ {loop} }}")
    assert set(site.conditions) == conditions


def test_launches_have_the_widest_of_their_limits_in_common() -> None:
    told = [("#1 < 60", "#1 >= 0", "#2 == 7", "#3 > 1"), ("#1 < 61", "#1 >= 1", "#2 == 9", "#3 > 1")]
    assert set(in_common(told)) == {"#1 <= 60", "#1 >= 0", "#2 <= 9", "#2 >= 7", "#3 > 1"}
    assert in_common([("#1 < 60",), ("#1 > 60",)]) == ()


@pytest.mark.parametrize(("last", "verdict"), [("64", Verdict.RACE_FREE), ("128", Verdict.RACY)])
def test_a_counter_of_the_host_is_no_larger_than_its_loop_makes_it(last: str, verdict: Verdict) -> None:
    text = (
        "__global__ void k(float* p, int n, int i) { int t = threadIdx.x;"
        " if (t < n && t != i) p[t * n + t] += p[t * n + i]; }\n"
        f"void f(float* p) {{ for (int i = 0; i < {last}; ++i) k<<<1, 128>>>(p, 64, i); }}\n"
    )
    (kernel,) = check_text(Path("a.cu"), text, Settings()).kernels
    assert kernel.verdict is verdict


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [
        ("n", Verdict.RACE_FREE),
        ("n + 1", Verdict.RACE_FREE),
        ("2 * n", Verdict.RACY),
        ("n + 9", Verdict.RACY),
    ],
)
def test_rows_are_not_taken_to_be_apart_where_a_loop_of_the_host_leaves_them(
    limit: str, verdict: Verdict
) -> None:
    text = (
        "__global__ void k(float* p, int n, int i) { int t = threadIdx.x;"
        " if (t < n && t != i) p[t * n + t] += p[t * n + i]; }\n"
        f"void f(float* p, int n) {{ for (int i = 0; i < {limit}; ++i) k<<<1, 128>>>(p, n, i); }}\n"
    )
    (kernel,) = check_text(Path("a.cu"), text, Settings()).kernels
    assert kernel.verdict is verdict
    assert not any("rows of" in taken for taken in kernel.assumptions)


def test_a_block_in_a_record_is_no_size() -> None:
    launch = (
        "struct Plan { dim3 blocks, threads; int n; };\nvoid f(Plan p, float* a) { k<<<8, p.n>>>(a, 1, 2); }"
    )
    (site,) = sites(launch)
    assert site.sized
    (site,) = sites(launch.replace("p.n", "p.threads"))
    assert site.sized == ()


# --------------------------------------------------------------------------- grids and what guards say

ROWS = """
template <class T, bool A> __global__ void k(T* out, int n, std::bool_constant<A>) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { if constexpr (A) atomicAdd(out + i, 1); else out[i] += 1; }
}
void f(int* p, int n, int m) {
    const int gx = (n + 63) / 64;
    const int gy = m / 8 > 1 ? m / 8 : 1;
    BODY
}
"""
PLAIN = "k<<<dim3(gx, gy), 64>>>(p, n, std::bool_constant<false>{});"
ATOMIC = PLAIN.replace("false", "true")


def rows(body: str) -> dict[str, Verdict]:
    text = "#include <type_traits>\n" + ROWS.replace("BODY", body)
    return {k.name: k.verdict for k in check_text(Path("a.cu"), text, Settings()).kernels}


@pytest.mark.parametrize("asked", ["gy == 1", "gy <= 1", "gy < 2 && n > 3", "1 >= gy"])
def test_a_guard_on_a_variable_of_the_grid_is_one_on_its_extent(asked: str) -> None:
    found = rows(f"if ({asked}) {PLAIN} else {ATOMIC}")
    assert set(found.values()) == {Verdict.RACE_FREE}


@pytest.mark.parametrize("asked", ["gy == 2", "gy <= 2", "gx == 1", "gy > 1", "m < 2"])
def test_a_guard_that_admits_more_rows_of_blocks_clears_nothing(asked: str) -> None:
    found = rows(f"if ({asked}) {PLAIN} else {ATOMIC}")
    assert found.pop("k<int, false>") is not Verdict.RACE_FREE
    assert set(found.values()) == {Verdict.RACE_FREE}


def test_a_variable_that_changes_after_the_guard_is_no_extent() -> None:
    found = rows(f"int g = gy; if (g == 1) {{ g = m; {PLAIN.replace('gy', 'g')} }}")
    assert Verdict.RACE_FREE not in found.values()


def test_rows_of_blocks_that_the_kernel_does_not_ask_for_repeat_it() -> None:
    kernel = "__global__ void k(int* out, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) STORE; }"
    host = "void f(int* p, int n, int m) { dim3 grid((n + 63) / 64, m); k<<<grid, 64>>>(p, n); }"
    for store, free in (("out[i] += 1", False), ("atomicAdd(out + i, 1)", True)):
        (found,) = check_text(Path("a.cu"), kernel.replace("STORE", store) + host, Settings()).kernels
        assert (found.verdict is Verdict.RACE_FREE) is free
    (flat,) = check_text(
        Path("a.cu"), kernel.replace("STORE", "out[i] += 1") + host.replace(", m);", ");"), Settings()
    ).kernels
    assert flat.verdict is Verdict.RACE_FREE


ROUNDS = """
inline int next_pow2(int v) {{
    int r = v - 1; r |= r >> 1; r |= r >> 2; r |= r >> 4; r |= r >> 8; return r + 1;
}}
template <int Power> int rounded(int v) {{ return (((v - 1) >> Power) + 1) << Power; }}
template <int rounds> __global__ void k(float* p, const float* q, int n) {{
    __shared__ float sums[32];
    float sum = 0;
    for (int i = 0; i < rounds; ++i) {{
        const int at = (i * blockDim.x + threadIdx.x) * 8;
        if (at < n) sum += q[blockIdx.x * n + at];
    }}
    sums[threadIdx.x / {lanes}] = sum;
    __syncthreads();
    p[blockIdx.x * blockDim.x + threadIdx.x] = sums[{read}];
}}
void f(float* p, float* q, int n, int groups) {{
    const int lanes = next_pow2((n + 7) / 8);
    const int threads = lanes < 1024 ? lanes : 1024;
    dim3 block(threads);
    const int once = threads * 8, raw = (n + once - 1) / once;
    const int rounds = raw >= 4 ? rounded<1>(raw) : raw;
    if (rounds == 1) {{ k<1><<<groups, block>>>(p, q, n); }}
    else if (rounds == 6) {{ k<6><<<groups, block>>>(p, q, n); }}
    else if (rounds == 12) {{ k<12><<<groups, block>>>(p, q, n); }}
    {other}
}}
"""


def in_rounds(lanes: str, read: str, other: str = "") -> dict[str, KernelReport]:
    report = check_text(Path("a.cu"), ROUNDS.format(lanes=lanes, read=read, other=other))
    return {kernel.name: kernel for kernel in report.kernels}


def test_rows_that_a_block_goes_over_often_make_its_launch() -> None:
    kernels = in_rounds("warpSize", "0")
    for name in ("k<1>", "k<6>", "k<12>"):
        launch = kernels[name].launches[0]
        assert launch.source is LaunchSource.SIZES
    assert {kernels[name].launches[0].block for name in ("k<6>", "k<12>")} == {(1024, 1, 1)}


def test_a_number_of_rounds_that_no_size_makes_is_no_launch() -> None:
    kernels = in_rounds("warpSize", "0", "else if (rounds == 13) { k<13><<<groups, block>>>(p, q, n); }")
    assert kernels["k<13>"].launches[0].source is not LaunchSource.SIZES


def test_what_races_in_every_block_of_such_rows_is_told() -> None:
    """Threads of a warp write one place with sums of their own."""
    kernels = in_rounds("warpSize", "0")
    assert all(kernels[name].verdict is Verdict.RACY for name in ("k<6>", "k<12>"))


def test_what_is_in_order_in_every_block_of_such_rows_is_race_free() -> None:
    one_a_warp = "if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;"
    text = ROUNDS.replace("sums[threadIdx.x / {lanes}] = sum;", one_a_warp)
    report = check_text(Path("a.cu"), text.format(read="threadIdx.x / 32", other=""))
    assert {kernel.name: kernel.verdict for kernel in report.kernels} == {
        "k<1>": Verdict.RACE_FREE, "k<6>": Verdict.RACE_FREE, "k<12>": Verdict.RACE_FREE,
    }  # fmt: skip
