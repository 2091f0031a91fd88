"""Launches whose extents are told somewhere else: by callers, branches, loops, assignments before them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launch_site import LaunchSite
from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.model import Dim3, Verdict
from cuda_lsp.static.analyze import check_text


def sites(text: str) -> tuple[LaunchSite, ...]:
    return find_launches(Path("a.cu"), text)


def blocks(text: str) -> set[Dim3 | None]:
    return {site.block for site in sites(text)}


# ------------------------------------------------------------------------------------ assignments


@pytest.mark.parametrize(
    ("body", "block"),
    [
        ("int w; w = 64; k<<<1, w>>>();", (64, 1, 1)),
        ("int w = 32; w = 64; k<<<1, w>>>(); w = 128;", (64, 1, 1)),
        ("int w = 32; k<<<1, w>>>(); w = 64;", (32, 1, 1)),
        ("for (int i = 0; i < 2; ++i) { int w = 32; w = 64; k<<<1, w>>>(); w = 1; }", (64, 1, 1)),
        ("int w = 32; w = 64; if (w > 3) { k<<<1, w>>>(); } w = 8;", (64, 1, 1)),
        ("dim3 b; b = dim3(16, 4); k<<<1, b>>>();", (16, 4, 1)),
        ("dim3 b(32, 2, 1); b.x = 64; b.y = b.x / 16; k<<<1, b>>>(); b.x = 1;", (64, 4, 1)),
        ("dim3 const b(16, 4); k<<<1, b>>>();", (16, 4, 1)),
        ("dim3 b(16, 4); k<<<dim3(1), dim3(b)>>>();", (16, 4, 1)),
        ("auto b = dim3{16, 4}; k<<<1, b>>>();", (16, 4, 1)),
        ("uint3 b = make_uint3(16, 4, 1); k<<<1, b>>>();", (16, 4, 1)),
        ("dim3 b; k<<<1, b>>>();", (1, 1, 1)),
        ("k<<<1, int(64)>>>();", (64, 1, 1)),
    ],
)
def test_the_last_assignment_on_every_way_counts(body: str, block: Dim3) -> None:
    assert blocks(f"void f() {{ {body} }}") == {block}


@pytest.mark.parametrize(
    "body",
    [
        "int w; k<<<1, w>>>();",
        "int w = 32; while (c) w = 64; k<<<1, w>>>();",
        "int w = 32; w = 64; w += c; k<<<1, w>>>();",
        "int w = 32; w = 64; read(&w); k<<<1, w>>>();",
        "int w = 32; while (c--) { k<<<1, w>>>(); w = 64; }",
        "int w = 32; for (;;) k<<<1, w>>>(), w = 64;",
        "int w = 32; again: k<<<1, w>>>(); w = 64; goto again;",
        "int w = 32; auto go = [&]() { k<<<1, w>>>(); }; w = 64; go();",
        "int w; switch (c) { case 1: g(); w = 64; break; case 2: k<<<1, w>>>(); }",
        "dim3 b(32, 2); while (c) b.y = 4; k<<<1, b>>>();",
    ],
)
def test_what_some_way_may_change_is_not_known(body: str) -> None:
    assert blocks(f"void f(int c) {{ {body} }}") == {None}


def test_what_other_functions_write_is_not_known() -> None:
    assert blocks("int w = 32;\nvoid g() { w = 64; }\nvoid f() { k<<<1, w>>>(); }") == {None}
    assert blocks("int w = 32;\nvoid f() { k<<<1, w>>>(); }\nvoid g() { w = 64; }") == {None}
    assert blocks("int w = 32;\nvoid g() { int w = 1; w = 64; }\nvoid f() { k<<<1, w>>>(); }") == {(32, 1, 1)}


@pytest.mark.parametrize(
    ("parameter", "block"), [("int& t", None), ("const int& t", (64, 1, 1)), ("int t", (64, 1, 1))]
)
def test_what_a_function_may_write_by_reference_is_not_known(parameter: str, block: Dim3 | None) -> None:
    text = f"void tune(float* p, {parameter}) {{ use(t); }}\n"
    assert blocks(f"{text}void f() {{ int t = 64; tune(p, t); k<<<1, t>>>(p); }}") == {block}


def test_a_variable_that_is_called_like_a_function_is_handed_nothing() -> None:
    text = "void block(float* p, int& t) { use(t); }\n"
    assert blocks(f"{text}void f() {{ int t = 64; dim3 block(t, 1); k<<<1, block>>>(); }}") == {(64, 1, 1)}
    assert blocks(f"{text}int f() {{ int t = 64; k<<<1, t>>>(); return block(0, t); }}") == {(64, 1, 1)}
    assert blocks(f"{text}void f(int c) {{ int t = 64; if (c) g(); else block(0, t); k<<<1, t>>>(); }}") == {
        (64, 1, 1),
        None,
    }


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("inline int threads() { return 128; }\nvoid f() { k<<<1, threads()>>>(); }", (128, 1, 1)),
        ("int t(int n) { if (n) return 64; return 128; }\nvoid f() { k<<<1, t(1)>>>(); }", (64, 1, 1)),
        ("int t() { return 1; }\nint t(int n) { return n; }\nvoid f() { k<<<1, t(64)>>>(); }", (64, 1, 1)),
        ("int half(int n) { return n / 2; }\nvoid f() { k<<<1, half(128)>>>(); }", (64, 1, 1)),
        ("namespace a { constexpr int N = 96; }\nvoid f() { k<<<1, a::N>>>(); }", (96, 1, 1)),
        ("struct T { static constexpr int N = 4 * 32; };\nvoid f() { k<<<1, T::N>>>(); }", (128, 1, 1)),
    ],
)  # fmt: skip
def test_functions_and_qualified_names_are_read(text: str, block: Dim3) -> None:
    assert blocks(text) == {block}


@pytest.mark.parametrize(
    "text",
    [
        "int threads(int n) { if (m) return 64; return 128; }\nvoid f() { k<<<1, threads(1)>>>(); }",
        "int t(float n) { return 1; }\nint t(int n) { return n; }\nvoid f() { k<<<1, t(64)>>>(); }",
        "struct A { static constexpr int N = 1; };\nstruct B { static constexpr int N = 2; };\n"
        "template <class T> void f() { k<<<1, T::N>>>(); }",
    ],
)
def test_what_has_several_meanings_is_not_known(text: str) -> None:
    assert blocks(text) == {None}


# --------------------------------------------------------------------------------- branches, loops


def test_a_case_of_a_switch_tells_what_is_switched_on() -> None:
    text = """void f(int threads, float* p) {
    dim3 block(threads, 1, 1);
    switch (threads) {
    case 512:
        k<512><<<1, block>>>(p);
        break;
    case 64:
    case 32: k<64><<<1, block>>>(p); break;
    default: k<1><<<1, block>>>(p);
    }
}"""
    found = [(site.template_arguments, site.block) for site in sites(text)]
    assert found == [("512", (512, 1, 1)), ("64", (64, 1, 1)), ("64", (32, 1, 1)), ("1", None)]


@pytest.mark.parametrize(
    "body",
    [
        "if (n == 32) { k<<<1, n>>>(p, n); }",
        "if (n == 32) k<<<1, n>>>(p, n);",
        "if (p && (32 == n && true)) k<<<1, n>>>(p, n);",
        "if (n == 64) g(); else if (n == 32) { g(); k<<<1, n>>>(p, n); }",
    ],
)
def test_an_equality_that_holds_at_the_launch_counts_for_its_arguments_too(body: str) -> None:
    (site,) = sites(f"void f(float* p, int n) {{ {body} }}")
    assert (site.block, site.arguments) == ((32, 1, 1), {1: 32})


@pytest.mark.parametrize(
    "body",
    [
        "if (n == 32) g(); k<<<1, n>>>(p, n);",
        "if (n == 32) { g(); } else { k<<<1, n>>>(p, n); }",
        "if (n == 32 || p) k<<<1, n>>>(p, n);",
        "if (!(p && n == 32)) k<<<1, n>>>(p, n);",
        "if (both(p, n == 32)) k<<<1, n>>>(p, n);",
        "if (n == 32) { n = g(); k<<<1, n>>>(p, n); }",
        "if (n == 32) { while (p) { k<<<1, n>>>(p, n); n *= 2; } }",
        "switch (n) { case 1: g(); default: k<<<1, n>>>(p, n); }",
    ],
)
def test_an_equality_that_need_not_hold_tells_nothing(body: str) -> None:
    (site,) = sites(f"void f(float* p, int n) {{ {body} }}")
    assert (site.block, site.arguments) == (None, {})


def test_a_loop_over_few_sizes_is_a_launch_a_round() -> None:
    text = "void f() { for (int n = 64; n <= 512; n *= 2) { k<<<1024 / n, n>>>(p, n); } }"
    assert [(s.block, s.grid, s.arguments) for s in sites(text)] == [
        ((n, 1, 1), (1024 // n, 1, 1), {1: n}) for n in (64, 128, 256, 512)
    ]
    assert blocks("void f() { for (int n = 64; n <= 512; n *= 2) { if (g()) n = 7; k<<<1, n>>>(); } }") == {
        (7, 1, 1),
        None,
    }
    assert blocks("void f(int m) { for (int n = 64; n <= m; n *= 2) k<<<1, n>>>(); }") == {None}


# ----------------------------------------------------------------------------------------- callers

_RUN = "void run(float* p, int n, int threads) { k<<<n / threads, threads>>>(p, n); }\n"


def test_parameters_are_what_callers_pass() -> None:
    first, second = sites(_RUN + "int main() { run(p, 1024, 64); run(p, m, 128); }")
    assert (first.block, first.grid, first.arguments) == ((64, 1, 1), (16, 1, 1), {1: 1024})
    assert (second.block, second.grid, second.arguments) == ((128, 1, 1), None, {})
    assert first.site is not None
    assert first.site.text == "run(p, 1024, 64)"


def test_a_librarys_callers_tell_the_block_and_no_arguments() -> None:
    (site,) = sites(_RUN + "void api(float* p) { run(p, 1024, 64); }")
    assert (site.block, site.arguments) == ((64, 1, 1), {})


def test_callers_of_callers_are_looked_through() -> None:
    text = _RUN + "void middle(float* p, int t) { run(p, 256, 2 * t); }\nint main() { middle(p, 16); }"
    (site,) = sites(text)
    assert (site.block, site.grid, site.arguments) == ((32, 1, 1), (8, 1, 1), {1: 256})


@pytest.mark.parametrize(
    "text",
    [
        "void run(float* p, dim3 block) { k<<<1, block>>>(p); }\nint main() { dim3 b(8, 4); run(p, b); }",
        "void run(float* p, dim3 block = dim3(8, 4)) { k<<<1, block>>>(p); }\nint main() { run(p); }",
        "template <int X, int Y> void run() { k<<<1, dim3(X, Y)>>>(p); }\nint main() { run<8, 4>(); }",
        "template <typename T, int X>\nvoid run(T* p, int y) { k<T, X><<<1, dim3(X, y)>>>(p); }\n"
        "int main() { run<float, 8>(p, 4); }",
        "struct Body { void step(int x); };\nvoid Body::step(int x) { k<<<1, dim3(x, 4)>>>(p); }\n"
        "int main() { Body b; b.step(8); }",
    ],
)
def test_dims_defaults_template_arguments_and_members_are_passed(text: str) -> None:
    assert blocks(text) == {(8, 4, 1)}


@pytest.mark.parametrize(
    "type", ["int", "uint32_t", "const unsigned", "std::size_t", "short", "unsigned char"]
)
def test_template_arguments_of_any_integer_are_passed(type: str) -> None:
    launches = "constexpr int Y = X / 2; const dim3 block = { 2 * X, Y }; k<X><<<1, block>>>(p);"
    text = f"template <{type} X, bool last = false> void run(float* p) {{ {launches} }}\n"
    assert blocks(f"{text}int main() {{ run<8>(0); }}") == {(16, 4, 1)}


@pytest.mark.parametrize(
    "caller",
    [
        "void g() { other.run(p, 1, 64); }",
        "void run(float* p, int n, int threads);",
        "void g(int t) { run(p, 1, t); }",
        "void run(float* p, float n, int threads) { }\nvoid g() { run(p, 1, 64); }",
    ],
)
def test_what_callers_do_not_tell_is_not_known(caller: str) -> None:
    assert blocks(_RUN + caller) == {None}


def test_a_parameter_that_changes_on_the_way_is_not_what_was_passed() -> None:
    body = "void run(int t) {{ {change} k<<<1, t>>>(); }}\nint main() {{ run(64); }}"
    assert blocks(body.format(change="if (p) t = 32;")) == {(64, 1, 1), (32, 1, 1)}
    assert blocks(body.format(change="if (p) {{ t = 32; }}")) == {(64, 1, 1), (32, 1, 1)}
    assert blocks(body.format(change="if (p) t = g();")) == {(64, 1, 1), None}
    assert blocks(body.format(change="t = t / 2;")) == {(32, 1, 1)}
    assert blocks(body.format(change="g(&t);")) == {None}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("int w = 32; if (c) w = 64; k<<<1, w>>>();", {(32, 1, 1), (64, 1, 1)}),
        ("dim3 b(32, 2); if (c) b.y = 4; k<<<1, b>>>();", {(32, 2, 1), (32, 4, 1)}),
        ("int w; if (c > 1) w = 64; else w = 32; k<<<1, w>>>();", {(32, 1, 1), (64, 1, 1)}),
        ("int w = 8; if (c > 1) { w = 64; } else if (c) w = 32; k<<<1, w>>>();",
         {(8, 1, 1), (32, 1, 1), (64, 1, 1)}),
        ("int w = 8; if (c > 1) w = 64; else if (c) return; k<<<1, w>>>();", {(8, 1, 1), (64, 1, 1)}),
        ("int w = 8; if (c > 1) w = 64; else return; k<<<1, w>>>();", {(64, 1, 1)}),
        ("int w = 64; if (c > 1) w = atoi(s); k<<<1, w>>>();", {(64, 1, 1), None}),
    ],
)  # fmt: skip
def test_a_branch_without_braces_is_one(body: str, expected: set[Dim3 | None]) -> None:
    assert blocks(f"void f(int c) {{ {body} }}") == expected


@pytest.mark.parametrize(
    "caller",
    [
        "void g(int t) { run(p, 1, t); }",
        "void g() { run(p, 1, read()); }",
        "void g(int t) { h(t); }\nvoid h(int t) { run(p, 1, t); }",
        "void g(bool c) { int t = 128; if (c) t = read(); run(p, 1, t); }",
    ],
)
def test_who_does_not_tell_what_it_passes_stands_beside_who_does(caller: str) -> None:
    assert blocks(f"{_RUN}void f() {{ run(p, 1, 64); }}\n{caller}") >= {(64, 1, 1), None}


def test_recursion_ends() -> None:
    half = "void run(int t) { k<<<1, t>>>(); run(t / 2); }\nint main() { run(64); }"
    assert blocks(half) == {(64, 1, 1), None}
    assert blocks(half.replace("t / 2", "t")) == {(64, 1, 1)}
    assert blocks("void a(int t) { k<<<1, t>>>(); b(t); }\nvoid b(int t) { a(t); }") == {None}


@pytest.mark.parametrize("end", ["", ","])
def test_an_array_of_pointers_has_the_arguments(end: str) -> None:
    text = (
        f"void f(float* p) {{ int n = 64; void* args[] = {{(void*)&p, &n{end}}};"
        " cudaLaunchKernel((void*)k, dim3(2), dim3(n), args, 0, 0); }"
    )
    (site,) = sites(text)
    assert (site.block, site.grid, site.arguments, site.passed) == ((64, 1, 1), (2, 1, 1), {1: 64}, 2)


# ------------------------------------------------------------------------------------------ guards


@pytest.mark.parametrize(
    ("body", "conditions"),
    [
        ("if (n > 1024) return; k<<<1, t>>>(p, n, m);", ["#1 <= 1024"]),
        ("if (p == 0 || n < m) { g(); return; } k<<<1, t>>>(p, n, m);", ["#0 != 0", "#1 >= #2"]),
        ("if (n < m) { std::exit(1); } else g(); k<<<1, t>>>(p, n, m);", ["#1 >= #2"]),
        ("TORCH_CHECK(n >= 2 * m, x); k<<<1, t>>>(p, n, m);", ["#1 >= 2 * #2"]),
        ("CHECK_LE(t, 64); k<<<1, t>>>(p, n, m);", ["blockDim.x <= 64"]),
        ("const int LIMIT = 8; assert(m < LIMIT && (m > 1)); k<<<1, t>>>(p, n, m);", ["#2 < 8", "#2 > 1"]),
        ("if (n >= m) { k<<<1, t>>>(p, n, m); }", ["#1 >= #2"]),
        ("if (n >= m) k<<<1, t>>>(p, n, m);", ["#1 >= #2"]),
        ("if (n > 1024 && m > 4) return; k<<<1, t>>>(p, n, m);", ["#1 <= 1024 || #2 <= 4"]),
        ("if (n > 9 && m % 2) g(); else k<<<1, t>>>(p, n, m);", ["#1 <= 9 || #2 % 2 == 0"]),
        ("if (n >= 9 and m < n) { k<<<1, t>>>(p, n, m); }", ["#1 >= 9", "#2 < #1"]),
        ("if (n < 9 or m < n) return; k<<<1, t>>>(p, n, m);", ["#1 >= 9", "#2 >= #1"]),
    ],
)  # fmt: skip
def test_comparisons_before_a_launch_hold_for_its_arguments(body: str, conditions: list[str]) -> None:
    (site,) = sites(f"void f(float* p, int n, int m, int t) {{ {body} }}")
    assert list(site.conditions) == conditions


@pytest.mark.parametrize(
    "body",
    [
        "if (n > 1024) g(); k<<<1, t>>>(p, n, m);",
        "if (n > 1024) { if (m) return; } k<<<1, t>>>(p, n, m);",
        "if (n > 1024 && g(m)) return; k<<<1, t>>>(p, n, m);",
        "if (n > 1024 && (m > 4 || g(m))) return; k<<<1, t>>>(p, n, m);",
        "if (n > 1024) return; n = g(); k<<<1, t>>>(p, n, m);",
        "if (n > 1024) return; while (g()) { k<<<1, t>>>(p, n, m); n *= 2; }",
        "if (m) { if (n > 1024) return; } k<<<1, t>>>(p, n, m);",
        "switch (m) { case 1: if (n > 1024) return; g(); case 2: k<<<1, t>>>(p, n, m); }",
        "if (g(n) > 1024) return; k<<<1, t>>>(p, n, m);",
        "if (other.n > 1024) return; k<<<1, t>>>(p, n, m);",
        "assert(n - m > 0); k<<<1, t>>>(p, n, m);",
        "auto check = [&] { if (n > 1024) return; }; k<<<1, t>>>(p, n, m);",
        "if (n > 1024) k<<<1, t>>>(p, m, m);",
    ],
)
def test_comparisons_that_need_not_hold_tell_nothing(body: str) -> None:
    (site,) = sites(f"void f(float* p, int n, int m, int t) {{ {body} }}")
    assert site.conditions == ()


# ---------------------------------------------------------------------------------- listed blocks

LISTED = """
__global__ void k(int n);
void run(int n, int block) {{ k<<<n, block>>>(n); }}
int main() {{
    int n = 8;
    {table}
    for (int j = 0; j < {count}; j++) {{
        int block = blocks[j];
        run(n, block);
    }}
}}
"""
TABLE = "int blocks[] = {32, 64, 2 * 64};"


@pytest.mark.parametrize(
    "count", ["3", "sizeof(blocks) / sizeof(int)", "sizeof(blocks) / sizeof(blocks[0])", "sizeof(blocks) / 4"]
)
def test_blocks_that_an_array_lists_are_those_of_the_loop_s_rounds(count: str) -> None:
    found = sites(LISTED.format(table=TABLE, count=count))
    assert {site.block for site in found} == {(32, 1, 1), (64, 1, 1), (128, 1, 1)}
    assert {site.grid for site in found} == {(8, 1, 1)}


@pytest.mark.parametrize(
    "table",
    [
        f"{TABLE} blocks[1] = n;",
        f"{TABLE} blocks[1]++;",
        f"{TABLE} --blocks[1];",
        f"{TABLE} fill(blocks);",
        f"{TABLE} int* p = &blocks[0]; *p = n;",
        "int blocks[3]; read(blocks);",
        f"{{ {TABLE} }}",
        "float blocks[] = {32, 64, 128};",
    ],
)
def test_an_array_that_may_change_lists_nothing(table: str) -> None:
    assert {site.block for site in sites(LISTED.format(table=table, count="3"))} == {None}


def test_an_index_behind_an_array_is_no_element() -> None:
    assert {site.block for site in sites(LISTED.format(table=TABLE, count="5"))} == {
        (32, 1, 1),
        (64, 1, 1),
        (128, 1, 1),
        None,
    }
    assert blocks(f"void f() {{ {TABLE} k<<<1, blocks[3]>>>(); }}") == {None}


def test_specialisations_of_a_function_are_functions() -> None:
    text = """
template <class T> void run(T* p, int n);
template <> void run<float>(float* p, int n) { n >>= 2; k<<<8, n>>>(p); }
template <> void run<Pair<int, 2>>(Pair<int, 2>* p, int n) { n /= 2; k<<<8, n>>>(p); }
"""
    assert [{made.block[0] for made in site.sized} for site in sites(text)] == [{1024, 256}, {512, 128}]


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("few::COUNT", 32),
        ("many::COUNT", 512),
        ("Row::COUNT", 8),
        ("other::COUNT", None),
        ("deep::few::COUNT", 4),
    ],
)
def test_a_constant_is_that_of_the_scope_which_is_named(name: str, block: int | None) -> None:
    text = f"""
namespace few {{ constexpr int COUNT = 32; }}
namespace many {{ constexpr int THREADS = 1; const int COUNT = 512; }}
struct Row {{ static constexpr int COUNT = 8; }};
namespace deep {{ namespace few {{ constexpr int COUNT = 4; }} }}
void f(int* p) {{ int COUNT = 64; k<<<8, {name}>>>(p); }}
"""
    assert [site.block for site in sites(text)] == [block and (block, 1, 1)]


# ------------------------------------------------------------------------------------------ sizes


@pytest.mark.parametrize(
    "body",
    [
        "dim3 b(WARP, 4); k<<<m, b>>>(n);",  # of a header that nobody found
        "const int t = Traits::THREADS; k<<<m, t>>>(n);",
        "int t = WARPS * 32; k<<<m, t>>>(n);",
        "dim3 b = shape_of(n); k<<<m, b>>>(n);",
    ],
)
def test_constants_that_nobody_knows_are_no_sizes(body: str) -> None:
    assert [site.sized for site in sites(f"void f(int n, int m) {{ {body} }}")] == [()]


@pytest.mark.parametrize(
    "body", ["k<<<m, n>>>(n);", "int t = x.size(1); k<<<m, t>>>(n);", "int t = (n + 3) / 4; k<<<m, t>>>(n);"]
)
def test_sizes_make_blocks(body: str) -> None:
    (site,) = sites(f"void f(int n, int m) {{ {body} }}")
    assert site.sized


@pytest.mark.parametrize(
    ("body", "blocks"),
    [
        ("assert(n <= 1024); dim3 b(n / 4); k<<<m, b>>>(n);", {(256, 1, 1), (64, 1, 1)}),
        ("if (n > 512) return; k<<<m, n / 4>>>(n);", {(64, 1, 1), (32, 1, 1)}),
        ("assert(n % 32 == 0); k<<<m, n * w / 4>>>(n);", {(128, 1, 1), (512, 1, 1)}),
        ("dim3 b(n); if (b.x > 2048) { b.x /= 4; k<<<m, b>>>(n); }", {(1024, 1, 1), (768, 1, 1)}),
        ("assert(n > 4096); k<<<m, n>>>(n);", set()),
    ],
)
def test_sizes_that_the_host_refuses_make_no_blocks(body: str, blocks: set[Dim3]) -> None:
    (site,) = sites(f"void f(int n, int m, int w) {{ {body} }}")
    assert {made.block for made in site.sized} == blocks


def test_a_block_of_several_sizes_is_made_of_those_that_the_host_admits() -> None:
    (site,) = sites("void f(int n, int m, bool w) { if (n > 2048) { k<<<m, n / (w ? 4 : 8)>>>(n); } }")
    assert [made.arguments for made in site.sized] == [{0: 4096}, {0: 3072}]


def test_sizes_between_limits_are_tried() -> None:
    body = "c >>= 3; if (c > 128 || c < 16) { g(); } else { k<<<n, dim3(c / h, h, p)>>>(n, c, h); }"
    (site,) = sites(f"void f(int n, int c, int h, int p) {{ {body} }}")
    assert [made.block for made in site.sized] == [(4, 8, 3), (2, 8, 4)]


# --------------------------------------------------------------------------------------- branches


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("int w = 32; if (c) { w = 64; } k<<<1, w>>>();", {(32, 1, 1), (64, 1, 1)}),
        ("int w; if (c) { w = 64; } else { w = 128; } k<<<1, w>>>();", {(64, 1, 1), (128, 1, 1)}),
        ("int w = 8; if (c) { w = 64; } else if (c > 1) { w = 128; } k<<<1, w>>>();",
         {(8, 1, 1), (64, 1, 1), (128, 1, 1)}),
        ("int w = 8; if (c) { w = 64; } else { throw 1; } k<<<1, w>>>();", {(64, 1, 1)}),
        ("dim3 b, g; if (c) { b.x = 64; g.x = 2; } else { b.x = 128; b.y = 2; } k<<<g, b>>>();",
         {(64, 1, 1), (128, 2, 1)}),
        ("int w = 32; if (c) { w = 64; } dim3 b(w); k<<<1, b>>>();", {(32, 1, 1), (64, 1, 1)}),
        ("int w = 32; if (c) { w = 64; if (c > 3) { w = 96; } } k<<<1, w>>>();", {None, (32, 1, 1)}),
        ("int w = 32; while (c--) { if (c) { w = 64; } k<<<1, w>>>(); }", {(32, 1, 1), (64, 1, 1)}),
    ],
)  # fmt: skip
def test_branches_that_make_the_block_are_ways_to_the_launch(body: str, found: set[Dim3 | None]) -> None:
    assert blocks(f"void f(int c) {{ {body} }}") == found


@pytest.mark.parametrize(
    ("body", "conditions"),
    [
        ("if (n > 128 || n < 16) { return; } else { k<<<1, 32>>>(n); }", {"#0 <= 128", "#0 >= 16"}),
        ("if (n > 128) { g(); } else { k<<<1, 32>>>(n); }", {"#0 <= 128"}),
        ("if (n > 128) { g(); } else if (n > 64) { k<<<1, 32>>>(n); }", {"#0 > 64", "#0 <= 128"}),
        (
            "if (n > 128) { g(); } else if (n > 64) { g(); } else { k<<<1, 32>>>(n); }",
            {"#0 <= 64", "#0 <= 128"},
        ),
        ("if (n > 128 && m) { g(); } else { k<<<1, 32>>>(n); }", set()),
        ("if (n > 128) { n = 7; } else { n = 9; k<<<1, 32>>>(n); }", set()),
        ("if (n > 128) { g(); } else { g(); } k<<<1, 32>>>(n);", set()),
        ("if (n > 128) { { g(); } } else { if (m > 2) { k<<<1, 32>>>(n, m); } }", {"#0 <= 128", "#1 > 2"}),
    ],
)
def test_what_was_not_so_holds_behind_else(body: str, conditions: set[str]) -> None:
    (site,) = sites(f"void f(int n, int m) {{ {body} }}")
    assert set(site.conditions) == conditions


def test_what_another_branch_asks_holds_on_no_way_but_its_own() -> None:
    body = "if (n == 7) { m = 1; } else if (n > 100) { return; } k<<<1, 32>>>(n);"
    assert sites(f"void f(int n, int m) {{ {body} }}")[0].conditions == ()
    body = "if (n > 100) { return; } k<<<1, 32>>>(n);"
    assert sites(f"void f(int n, int m) {{ {body} }}")[0].conditions == ("#0 <= 100",)


@pytest.mark.parametrize(
    ("body", "block"),
    [
        ("int w = 32; if (c) { w = 64; } else { k<<<1, w>>>(); }", 32),
        ("int w = 32; if (c) { w = 64; k<<<1, w>>>(); } else { w = 7; }", 64),
        ("int w = 32; if (c) { w = 64; } else if (c > 3) { k<<<1, w>>>(); }", 32),
        ("int w = 32; if (c) { if (c > 1) { w = 64; } } else { if (c < 1) { k<<<1, w>>>(); } }", 32),
        ("int w = 32; w *= 4; k<<<1, w>>>();", 128),
        ("int w = 64; w /= 2 + 2; w <<= 1; k<<<1, w>>>();", 32),
        ("dim3 b(64); b.x /= 2; k<<<1, b>>>();", 32),
        ("int w = 32; if (c) { w += 32; } else { k<<<1, w>>>(); }", 32),
    ],
)
def test_a_branch_that_is_not_come_by_writes_nothing(body: str, block: int) -> None:
    assert blocks(f"void f(int c) {{ {body} }}") == {(block, 1, 1)}


@pytest.mark.parametrize(
    "body",
    [
        "int w = 32; for (;;) { if (c) { w = 64; } else { k<<<1, w>>>(); } }",  # a round before
        "int w = 32; for (;;) { k<<<1, w>>>(); w *= 2; }",
        "int w = 32; w += c; k<<<1, w>>>();",
        "int w = 32; again: if (c) { w = 64; } else { k<<<1, w>>>(); goto again; }",
    ],
)
def test_a_branch_that_another_round_comes_by_does(body: str) -> None:
    assert blocks(f"void f(int c) {{ {body} }}") == {None}


def test_a_caller_whose_sizes_a_branch_excludes_makes_no_launch() -> None:
    text = """
void run(int lg) {
    int size = 1 << lg;
    if (size <= 1024)
        k<<<1, size>>>(lg);
    else if (size < 10000) { j<<<size / 32, 32 * (size / 2048)>>>(lg); }
}
int main() { run(8); run(11); run(12); run(20); }
"""
    found = [(site.kernel, site.block) for site in sites(text)]
    assert found == [("k", (256, 1, 1)), ("j", (32, 1, 1)), ("j", (64, 1, 1))]


def test_the_next_power_of_two_is_known_by_its_usual_name() -> None:
    text = (
        "int next_pow2(int v) { v--; v |= shifted(v); return v + 1; }\nvoid f() { k<<<1, next_pow2(A)>>>(); }"
    )
    found = [blocks(text.replace("A", size)) for size in ("1", "32", "33", "1000")]
    assert found == [{(1, 1, 1)}, {(32, 1, 1)}, {(64, 1, 1)}, {(1024, 1, 1)}]
    assert blocks("void f() { k<<<1, pow2(33)>>>(); }") == {None}


@pytest.mark.parametrize(
    "width",
    [
        "warpSize()",
        "getWarpSizeCurrentDevice()",
        "get_warp_size(0)",
        "WarpSizeOfDevice(device)",
        "prop.warpSize",
    ],
)
def test_warps_have_32_lanes_whoever_asks(width: str) -> None:
    start = "cudaDeviceProp prop; cudaGetDeviceProperties(&prop, 0); "
    assert blocks(f"void f() {{ {start} dim3 block({width}, 8); k<<<1, block>>>(); }}") == {(32, 8, 1)}
    assert blocks(f"void f() {{ dim3 block({width}, 8); k<<<1, block>>>(); }}") == {(32, 8, 1)}


@pytest.mark.parametrize("width", ["warps()", "getWarpSizes(3, 4)", "prop.warps", "sizeOfWarps()"])
def test_other_names_tell_no_width(width: str) -> None:
    assert blocks(f"void f(P prop) {{ dim3 block({width}, 8); k<<<1, block>>>(); }}") == {None}


# ---------------------------------------------------------------------------- members of class types

PACKED = """
template <class T> struct alignas(16) Packed {
    static constexpr const size_t size = sizeof(int4) / sizeof(T);
    T p[size];
};
template <int N, class T = float> struct Lanes {
    static constexpr int wide = N * sizeof(int);
    enum { half = sizeof(T) };
};
void use(int size) { size = 3; }
typedef __half element;
typedef Packed<element> x128;
using f128 = Packed<float>;
"""


@pytest.mark.parametrize(
    ("extent", "block"),
    [
        ("32 * x128::size", 256),
        ("32 * f128::size", 128),
        ("16 * Packed<double>::size", 32),
        ("Lanes<8>::wide", 32),
        ("sizeof(element) * 16", 32),
    ],
)
def test_a_member_of_an_instance_is_what_its_arguments_make_it(extent: str, block: int) -> None:
    assert blocks(f"{PACKED} void f() {{ k<<<1, {extent}>>>(); }}") == {(block, 1, 1)}


@pytest.mark.parametrize(
    "text",
    [
        "typedef Packed<float> x128; void f() { k<<<1, 32 * x128::size>>>(); }",  # the name means two types
        "template <> struct Packed<float> { static constexpr size_t size = 1; };"
        " void f() { k<<<1, 32 * f128::size>>>(); }",
        "template <class U> void f() { k<<<1, 32 * Packed<U>::size>>>(); }",
        "void f() { k<<<1, Lanes<8>::half>>>(); }",
        "void f() { k<<<1, 32 * x128::other>>>(); }",
        "using a = b; using b = a; void f() { k<<<1, a::size>>>(); }",
    ],
)
def test_a_member_of_what_nobody_knows_is_not_known(text: str) -> None:
    assert blocks(PACKED + text) == {None}


def test_a_template_of_the_host_gives_its_argument_on() -> None:
    caller = "template <class U> void f() { k<<<1, 32 * Packed<U>::size>>>(); } void g() { f<float>(); }"
    assert blocks(PACKED + caller) == {(128, 1, 1)}


@pytest.mark.parametrize(("n", "known"), [(1536, {0: 1536}), (1600, {})])
def test_an_assertion_about_a_member_leaves_launches_out(n: int, known: dict[int, int]) -> None:
    f = "void f(int n, int b) { assert(n % (32 * x128::size) == 0 && 1); k<<<1, b>>>(n); }"
    (site,) = sites(f"{PACKED} {f} int main() {{ f({n}, 64); }}")
    assert site.arguments == known


@pytest.mark.parametrize(
    ("branch", "expected"),
    [
        ("if (n < 128) t = n;", {(128, 1, 1), (25, 1, 1)}),
        ("if (n >= 128) t = 64; else t = n;", {(64, 1, 1), (25, 1, 1)}),
        ("if (n > 4000) t = 512; else if (n > 128) t = 256;", {(128, 1, 1), (256, 1, 1), (512, 1, 1)}),
        ("if (n < 128 && c) t = n;", {(128, 1, 1), (25, 1, 1)}),
        ("if (n < limit()) t = n;", {(128, 1, 1), (25, 1, 1), (250, 1, 1), (8192, 1, 1)}),
    ],
)
def test_a_branch_that_a_callers_values_do_not_take_makes_no_launch(branch: str, expected: set[Dim3]) -> None:
    callers = "void f(int* p, bool c) { run(p, 25, c); run(p, 250, c); run(p, 8192, c); }"
    body = f"int t = 128; {branch} k<<<(n + t - 1) / t, t>>>(p, n);"
    assert blocks(f"void run(int* p, int n, bool c) {{ {body} }} {callers}") == expected


@pytest.mark.parametrize("written", ["Traits<T, b, 2>", "ns::Traits<T, b, 2> "])
def test_an_argument_of_a_template_with_arguments_of_its_own_is_one(written: str) -> None:
    text = f"""
namespace ns {{
template <class T, bool b, int n> struct Traits {{ static __device__ bool is() {{ return b; }} }};
}}
using namespace ns;
template <class T, class Of> __global__ void k(T* out) {{
  if (Of::is()) out[threadIdx.x / PARTS] = threadIdx.x;
}}
template <class T, bool b> void run(T* out) {{ k<T, {written}><<<1, 96>>>(out); }}
void go(int* out) {{ run<int, true>(out); }}
"""
    for parts, verdict in (("1", Verdict.RACE_FREE), ("2", Verdict.RACY)):
        (report,) = check_text(Path("k.cu"), text.replace("PARTS", parts)).kernels
        assert ([launch.block for launch in report.launches], report.verdict) == ([(96, 1, 1)], verdict)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("dim3 b(n); switch (b.x) { case 64: k<<<1, b>>>(p); break; }", {(64, 1, 1)}),
        ("dim3 b(n, 4); if (b.x == 32) k<<<1, b>>>(p);", {(32, 4, 1)}),
        ("dim3 b(8, n); if (32 == b.y && p) k<<<1, b>>>(p);", {(8, 32, 1)}),
        ("dim3 b(n, m); if (b.x == 32) k<<<1, b>>>(p);", {None}),
        ("dim3 b(n); if (b.x == 32) { b.x = m; k<<<1, b>>>(p); }", {None}),
        ("dim3 b(n), c(m); if (c.x == 32) k<<<1, b>>>(p);", {None}),
    ],
)
def test_an_extent_that_a_branch_is_for_is_known_in_it(body: str, expected: set[Dim3 | None]) -> None:
    assert blocks(f"void f(int* p, int n, int m) {{ {body} }}") == expected


def test_launches_are_of_instances_with_the_same_arguments_of_arguments() -> None:
    text = """
template <bool b, unsigned char n> struct Traits { static __device__ bool is() { return b; } };
template <class T, class Of> __global__ void k(T* out) { out[threadIdx.x] = Of::is() * threadIdx.x; }
template <class T, bool b> void run(T* out) { k<T, Traits<b, 2>><<<1, b ? 64 : 128>>>(out); }
void go(int* out) { run<int, true>(out); run<int, false>(out); }
"""
    found = {k.name: [launch.block for launch in k.launches] for k in check_text(Path("k.cu"), text).kernels}
    assert sorted(found.values()) == [[(64, 1, 1)], [(128, 1, 1)]]
