"""Launches that stand in a macro or in a function that is given the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.host_constants import HostConstants
from cuda_lsp.frontend.host.launch_site import LaunchSite
from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.frontend.host.text import HostText


def of(kernel: str, text: str) -> list[LaunchSite]:
    return [site for site in find_launches(Path("a.cu"), text) if site.kernel == kernel]


MACROS = {
    "the kernel": "#define RUN(k) k<<<4, 128>>>(p, 7)\nvoid f(int* p) { RUN(first); }",
    "everything": (
        "#define RUN(k, g, b, ...) k<<<g, b>>>(__VA_ARGS__)\nvoid f(int* p) { RUN(first, 4, 128, p, 7); }"
    ),
    "pasted": "#define RUN(n) f##n<<<4, 128>>>(p, 7)\nvoid f(int* p) { RUN(irst); }",
    "on lines": (
        "#define RUN(k) \\\n  do { dim3 b(128); \\\n k<<<4, b>>>(p, 7); } while (0)\n"
        "void f(int* p) { RUN(first); }"
    ),
    "nested": "#define RUN(k, b) k<<<4, b>>>(p, 7)\n#define GO(k) RUN(k, 128)\nvoid f(int* p) { GO(first); }",
    "in parentheses": (
        "#define RUN(k, ...) (k)<<<(4), (128), (0), (s)>>>(__VA_ARGS__)\n"
        "void f(int* p) { RUN((first), p, 7); }"
    ),
    "constant": "#define RUN(k) k<<<4, N>>>(p, 7)\nvoid f(int* p) { const int N = 128; RUN(first); }",
}
FUNCTIONS = {
    "template": (
        "template <class K, class... A> void run(K k, int g, dim3 b, A... a) { k<<<g, b>>>(a...); }\n"
        "void f(int* p) { run(first, 4, 128, p, 7); }"
    ),
    "pointer": (
        "void run(void (*k)(int*, int), int* p) { dim3 b(128); k<<<4, b>>>(p, 7); }\n"
        "void f(int* p) { run(&first, p); }"
    ),
    "lambda": "void f(int* p) { auto run = [&](auto k, int b) { k<<<4, b>>>(p, 7); }; run(first, 128); }",
    "constant of the caller": (
        "template <class K> void run(K k, int b, int* p) { k<<<4, b>>>(p, 7); }\n"
        "void f(int* p) { constexpr int N = 128; run(ns::first, N, p); }"
    ),
}


@pytest.mark.parametrize("text", [*MACROS.values(), *FUNCTIONS.values()], ids=[*MACROS, *FUNCTIONS])
def test_a_use_is_the_launch_that_it_makes(text: str) -> None:
    (site,) = of("first", text)
    assert (site.block, site.grid, site.arguments) == ((128, 1, 1), (4, 1, 1), {1: 7})
    assert site.site is not None
    assert site.site.range.start.line == text.count("\n") + 1


def test_template_arguments_of_a_kernel_that_is_given() -> None:
    text = "template <class K> void run(K k) { k<<<1, 64>>>(); }\nvoid f() { run(first<float, 4>); }"
    assert [s.template_arguments for s in of("first", text)] == ["float, 4"]


def test_what_a_use_does_not_tell_is_not_known() -> None:
    text = "#define RUN(k, b) k<<<1, b>>>()\nvoid f(int n) { RUN(first, n); }"
    assert [s.block for s in of("first", text)] == [None]


def test_each_use_is_a_launch() -> None:
    text = "#define RUN(k, b) k<<<1, b>>>()\nvoid f() { RUN(first, 32); RUN(second, 64); RUN(first, 64); }"
    assert [s.block for s in of("first", text)] == [(32, 1, 1), (64, 1, 1)]
    assert [s.block for s in of("second", text)] == [(64, 1, 1)]


@pytest.mark.parametrize("kernel", ["(first<3>)", "((ns::first<3>))", "( first<3> )"])
def test_a_kernel_in_parentheses(kernel: str) -> None:
    (site,) = of("first", f"void f() {{ {kernel}<<<1, 64>>>(); }}")
    assert (site.template_arguments, site.block) == ("3", (64, 1, 1))


def test_what_a_call_returns_is_not_its_argument() -> None:
    assert of("first", "void f() { picked(first)<<<1, 64>>>(); }") == []


RUN = "#define RUN(k, b) (k)<<<1, (b)>>>()\n"
USE = "void f() { RUN(first, 96); }"


def of_headers(text: str, *headers: str) -> list[tuple[int, int, int] | None]:
    read = [HostConstants(HostText(header)) for header in headers]
    return [site.block for site in find_launches(Path("a.cu"), text, read)]


def test_a_macro_of_a_header_launches() -> None:
    assert of_headers(USE, "int other;", RUN) == [(96, 1, 1)]
    assert of_headers(USE, "#define RUN(k, b) GO(k, b)\n", RUN.replace("RUN", "GO")) == [(96, 1, 1)]


def test_the_file_s_own_macro_is_meant_before_a_header_s() -> None:
    assert of_headers(RUN.replace("(b)", "(b) / 3") + USE, RUN) == [(32, 1, 1)]


def test_macros_of_headers_that_differ_are_not_followed() -> None:
    assert of_headers(USE, RUN, RUN.replace("(b)", "64")) == []
    assert of_headers(USE, RUN, RUN) == [(96, 1, 1)]


EX = "void f(float* p) {{ cudaLaunchConfig_t c{}; cudaLaunchKernelEx(&c, first<float, 4>, p, 7); }}"


@pytest.mark.parametrize(
    "config",
    [
        " = {0}; c.gridDim = dim3(4); c.blockDim = 128",
        " = {dim3(4), dim3(128), 64}",
        "{.gridDim = 4, .blockDim = {128, 1, 1}}",
    ],
)
def test_a_configuration_object_is_read(config: str) -> None:
    (site,) = of("first", EX.format(config))
    assert (site.block, site.arguments, site.template_arguments) == ((128, 1, 1), {1: 7}, "float, 4")


def test_a_configuration_object_that_changes_is_not_known() -> None:
    assert of("first", EX.format("; c.blockDim = 128; g(); c.blockDim = 64")) == []


def test_a_use_is_of_the_definition_before_it() -> None:
    text = """
#define RUN(k, w) dim3 block(32 * w); k<<<4, block>>>(p, 7)
void f(int* p) { RUN(first, 4); }
#undef RUN
#define RUN(k, w) dim3 block(8 * w); k<<<4, block>>>(p, 7)
void g(int* p) { RUN(second, 4); }
"""
    assert [site.block for site in of("first", text)] == [(128, 1, 1)]
    assert [site.block for site in of("second", text)] == [(32, 1, 1)]


def test_a_macro_without_parameters_takes_the_names_of_its_use() -> None:
    text = """
#define RUN dim3 block(32 * WARPS); first<WARPS, 4><<<n / WARPS, block>>>(p, 7)
void f(int* p, int n) {
    if (n % 4 == 0) { const int WARPS = 4; RUN; }
    else { const int WARPS = 1; RUN; }
}
"""
    found = {(site.block, site.template_arguments) for site in of("first", text)}
    assert found == {((128, 1, 1), "4, 4"), ((32, 1, 1), "1, 4")}


def test_a_macro_that_nobody_uses_here_is_a_launch_all_the_same() -> None:
    assert [site.block for site in of("first", "#define RUN first<<<4, 128>>>(p)\n")] == [(128, 1, 1)]


WRITES = {
    "by a component": ("b.x /= N; k<<<4, b>>>(p);", (32, 1, 1)),
    "twice": ("b.x /= N; b.x = (b.x + 31) / 64 * 64; k<<<4, b>>>(p);", None),
    "of another axis": ("b.y = N; k<<<4, b>>>(p);", (128, 4, 1)),
    "in braces around": ("{ b.x /= N; { k<<<4, b>>>(p); } }", (32, 1, 1)),
    "in braces before": ("if (c) { b.x /= N; } k<<<4, b>>>(p);", None),
    "sometimes": ("if (c) b.x /= N; k<<<4, b>>>(p);", None),
    "behind": ("k<<<4, b>>>(p); b.x /= N;", (128, 1, 1)),
    "in a loop": ("for (int i = 0; i < N; i++) { b.x /= 2; k<<<4, b>>>(p); }", None),
    "whole": ("b = dim3(N * 8, 2); k<<<4, b>>>(p);", (32, 2, 1)),
    "whole, then a component": ("b = dim3(N * 8, 2); b.x *= 2; k<<<4, b>>>(p);", None),
    "to a local": ("dim3 q(64); q.x *= 2; k<<<4, q>>>(p);", None),
}


@pytest.mark.parametrize(("body", "block"), WRITES.values(), ids=WRITES)
def test_what_a_macro_writes_before_its_launch_counts(body: str, block: tuple[int, int, int] | None) -> None:
    text = f"#define RUN(N) {body}\nvoid f(int* p, bool c) {{ dim3 b(128); RUN(4) }}"
    assert {site.block for site in of("k", text)} == {block}
    nested = f"#define RUN(N) {body}\n#define GO(N) RUN(N)\nvoid f(int* p, bool c) {{ dim3 b(128); GO(4) }}"
    assert {site.block for site in of("k", nested)} == {block}


def test_what_an_outer_macro_writes_counts_too() -> None:
    text = (
        "#define RUN(k) k<<<4, b>>>(p)\n#define GO(k, N) b.x /= N; RUN(k)\n"
        "void f(int* p) { dim3 b(128); GO(first, 4); }"
    )
    assert [site.block for site in of("first", text)] == [(32, 1, 1)]


def test_a_comparison_of_the_block_before_a_macro_is_not_one_of_the_block_that_it_makes() -> None:
    text = (
        "#define RUN(N) b.x /= N; k<<<4, b>>>(p, n);\n"
        "void f(int* p, int n) { dim3 b(n); if (b.x > 2048) { RUN(4) } else if (b.x > 1024) { RUN(2) } }"
    )
    first, second = of("k", text)
    assert not any("blockDim.x >" in condition for condition in (*first.conditions, *second.conditions))
    assert [[made.block[0] for made in site.sized] for site in (first, second)] == [[1024, 768], [1024]]
