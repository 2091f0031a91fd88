"""Launches that stand in a macro or in a function that is given the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launch_site import LaunchSite
from cuda_lsp.frontend.host.launches import find_launches


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
