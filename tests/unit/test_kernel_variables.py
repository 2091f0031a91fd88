"""Launches of what variables, tables, fields and functions hold: every kernel it may be, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches

_FIRST_OR_SECOND = [
    "void go(int *p, bool c) { auto k = c ? first : second; k<<<8, 96>>>(p); }",
    "void go(int *p, bool c) { void (*k)(int *) = c ? &first : &second; k<<<8, 96>>>(p); }",
    "void go(int *p, int c) { auto *k = c == 1 ? first : (c == 2 ? second : first); k<<<8, 96>>>(p); }",
    "void go(int *p, bool c) { void (*k)(int *) = 0; if (c) k = first; else k = second; k<<<8, 96>>>(p); }",
    "void go(int *p, bool c) { auto k{c ? first : second}; k<<<8, 96>>>(p); }",
    "void go(int *p, bool c) { (c ? first : second)<<<8, 96>>>(p); }",
    "void go(int *p, bool c) { auto k = c ? n::first<4> : n::second<8>; k<<<8, 96>>>(p); }",
    "void go(int *p, int c) { void (*k[])(int *) = {first, second}; k[c]<<<8, 96>>>(p); }",
    "static const F table[2] = {first, second}; void go(int *p, int c) { table[c]<<<8, 96>>>(p); }",
    "void go(int *p, int c) { F table[] = {first, second}; auto k = table[c]; k<<<8, 96>>>(p); }",
    "F pick(int c) { if (c) return first; return second; } void go(int *p, int c) { pick(c)<<<8, 96>>>(p); }",
    "F pick(int c) { switch (c) { case 1: return first; default: return &second; } }"
    " void go(int *p, int c) { F k = pick(c); k<<<8, 96>>>(p); }",
    "void go(int *p, int c) { auto pick = [&] { return c ? first : second; };"
    " auto k = pick(); k<<<8, 96>>>(p); }",
    "void go(int *p, int c) { R r; r.k = c ? first : second; r.k<<<8, 96>>>(p); }",
    "static R rs[] = {{1, first}, {2, second}}; void go(int *p, int c) { rs[c].k<<<8, 96>>>(p); }",
    "static R rs[] = {{.k = first}, {.k = second}}; void go(int *p, R *r) { r->k<<<8, 96>>>(p); }",
    "void go(int *p, int c) { std::map<int, F> m = {{1, first}, {2, second}}; m[c]<<<8, 96>>>(p); }",
    "void run(F k, int *p) { k<<<8, 96>>>(p); } void go(int *p, int c) { run(c ? first : second, p); }",
    "void go(int *p, int c) { cudaLaunchKernel((void *)(c ? first : second), dim3(8), dim3(96), a, 0, 0); }",
    "void go(int *p, int c) { const void *f = c ? (const void *)first : (const void *)second;"
    " cudaLaunchKernel(f, dim3(8), dim3(96), a, 0, 0); }",
]


def _blocks(text: str, kernel: str) -> list[int]:
    sites = find_launches(Path("/x/a.cu"), text)
    return sorted({site.block[0] for site in sites if site.kernel == kernel and site.block is not None})


@pytest.mark.parametrize("text", _FIRST_OR_SECOND)
def test_what_may_be_held_is_launched(text: str) -> None:
    assert _blocks(text, "first") == _blocks(text, "second") == [96]


@pytest.mark.parametrize(
    "text",
    [
        "void go(int *p) { auto k = first; k<<<8, 32>>>(p); }"
        "void to(int *p) { auto k = second; k<<<8, 64>>>(p); }",
        "void go(int *p, int c) { if (c) { auto k = first; k<<<8, 32>>>(p); }"
        " else { auto k = second; k<<<8, 64>>>(p); } }",
        "void go(int *p) { F k = first; k<<<8, 32>>>(p); { F k = second; k<<<8, 64>>>(p); } }",
    ],
    ids=["two functions", "two branches", "an inner variable"],
)
def test_a_variable_is_launched_where_it_is_seen(text: str) -> None:
    assert (_blocks(text, "first"), _blocks(text, "second")) == ([32], [64])


@pytest.mark.parametrize(
    "text",
    [
        "void go(int *p) { auto t = first; plain<<<8, 96>>>(p); }",
        "void go(int *p) { int n = size(first); plain<<<n, 96>>>(p); }",
        "void go(int *p, F k) { other = first; k<<<8, 96>>>(p); }",
        "F pick(int c) { check(first); return second; } void go(int *p, int c) { pick(c)<<<8, 96>>>(p); }",
    ],
    ids=["another variable", "a size", "a parameter", "what a function does not return"],
)
def test_what_is_only_mentioned_is_not_launched(text: str) -> None:
    assert _blocks(text, "first") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "void go(int *p, bool c) { auto k = c ? rows<4, int> : rows<8, int>; k<<<8, 96>>>(p); }",
            {("4, int", 96), ("8, int", 96)},
        ),
        (
            "#define LAUNCH auto k = rows<W, S>; k<<<8, 32 * W, S * 4>>>(p);\n"
            "void go(int *p, int n) { if (n > 4) { constexpr int W = 2, S = 3; LAUNCH }"
            " else { constexpr int W = 4, S = 5; LAUNCH } }",
            {("2, 3", 64), ("4, 5", 128)},
        ),
        (
            "void to(int *p) { auto k = rows<M<2>, 4>; k<<<8, 32>>>(p); }"
            " void go(int *p) { auto k = rows; k<<<8, 64>>>(p); }",
            {("M<2>, 4", 32), (None, 64)},
        ),
        (
            "void go(int *p, int n) { auto k = n < 4 ? rows : rows<2>; k<<<8, 64>>>(p); }",
            {(None, 64), ("2", 64)},
        ),
    ],
)
def test_what_is_held_has_its_template_arguments(text: str, expected: set[tuple[str | None, int]]) -> None:
    sites = [site for site in find_launches(Path("/x/a.cu"), text) if site.kernel == "rows"]
    assert {(site.template_arguments, site.block[0]) for site in sites if site.block} == expected
