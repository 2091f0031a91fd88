"""Extents that checks and branches before a launch compare with numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches

EITHER = "assert(c / h == 64 || c / h == 128);"


def blocks(body: str) -> list[int | None]:
    text = f"void go(int *p, int n, int c, int h, S *s) {{ {body} }}"
    sites = find_launches(Path("/x/a.cu"), text)
    return [site.block[0] if site.block else None for site in sites]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{EITHER} if (c / h == 64) k<<<n, c / h>>>(p); else k<<<n, c/h>>>(p);", [64, 128]),
        (f"{EITHER} if (c / h == 64) {{ k<<<n, c / h>>>(p); }} else {{ k<<<n, c / h>>>(p); }}", [64, 128]),
        (f"{EITHER} if (64 != c / h) k<<<n, c / h>>>(p);", [128]),
        ("assert(s->size[3] == 96); k<<<n, s->size[3]>>>(p);", [96]),
        ("CHECK(s->size[3] == 96); dim3 block(s->size[3]); k<<<n, block>>>(p);", [96]),
    ],
)
def test_an_expression_is_what_it_is_compared_with(body: str, expected: list[int]) -> None:
    assert blocks(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        f"{EITHER} k<<<n, c / h>>>(p);",  # either
        f"{EITHER} if (c / h != 256) k<<<n, c / h>>>(p);",
        f"{EITHER} h = 3; if (c / h != 64) k<<<n, c / h>>>(p);",  # of another h
        "if (c / h == 64) n = 2; k<<<n, c / h>>>(p);",  # not on every way
        "assert(s->size[3] == 96); s->size[3] = n; k<<<n, s->size[3]>>>(p);",
        "assert(s->size[3] == 96 || n == 3); k<<<n, s->size[3]>>>(p);",
        "assert(pick(n) == 96); k<<<n, pick(n)>>>(p);",  # which may say something else again
    ],
)
def test_not_where_something_else_may_be_meant(body: str) -> None:
    assert blocks(body) == [None]


def test_grids_are_told_along_each_axis() -> None:
    text = "void go(int *p, int n, S *s) { assert(s->n[2] == 1); dim3 g(n, 4, s->n[2]); k<<<g, 64>>>(p); }"
    (site,) = find_launches(Path("/x/a.cu"), text)
    assert site.grid_axes == (None, 4, 1)


def test_alternatives_of_arguments_are_conditions_of_the_kernel() -> None:
    text = "void go(int *p, int n) { assert(n == 8 || n == 16); k<<<4, 64>>>(p, n); }"
    (site,) = find_launches(Path("/x/a.cu"), text)
    assert "#1 == 8 || #1 == 16" in site.conditions
