"""Grids that the host divides by the block it launches, whatever size that is: ``k<<<n / t, t>>>(a, n)``."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

COLUMNS = """
__global__ void columns(float *a, const float *b, int w, int h, int r) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    a[x] = b[x];
    for (int y = 1; y <= r; y++) a[y * w + x] = b[y * w + x];
    for (int y = h - r; y < h; y++) a[y * w + x] = b[y * w + x];
}
"""


def conditions(body: str) -> set[tuple[str, ...]]:
    text = f"void f(float *a, int n, int m, int t) {{ {body} }}"
    return {site.conditions for site in find_launches(Path("a.cu"), text)}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("k<<<n / t, t>>>(a, n);", ["gridDim.x == #1 / blockDim.x"]),
        ("k<<<(n + t - 1) / t, t>>>(a, n);", ["gridDim.x == ((-1 + #1) + blockDim.x) / blockDim.x"]),
        ("dim3 b(t, m); dim3 g(n / b.x, n / b.y); k<<<g, b>>>(n);",
         ["gridDim.x == #0 / blockDim.x", "gridDim.y == #0 / blockDim.y"]),
        ("dim3 b; b.x = t; k<<<n / b.x, b>>>(a, n);", ["gridDim.x == #1 / blockDim.x"]),
        ("k<<<n / (t * 4), t>>>(a, n);", ["gridDim.x == #1 / (blockDim.x * 4)"]),
        ("int all = n * m; k<<<all / t, t>>>(n, m);", ["gridDim.x == (#0 * #1) / blockDim.x"]),
        ("k<<<n / m, 64>>>(n, m);", ["gridDim.x == #0 / #1"]),
    ],
)  # fmt: skip
def test_what_the_grid_is_divided_by_is_told(body: str, told: list[str]) -> None:
    assert conditions(body) == {tuple(told)}


@pytest.mark.parametrize(
    "body",
    [
        "k<<<n / m, t>>>(a, n);",  # nobody sees m
        "int g = n / t; t = 2 * t; k<<<g, t>>>(a, n);",  # the block is another one by then
        "k<<<n / t, t>>>(a, m);",  # of what is not passed
        "k<<<n / t + m, t>>>(a, n);",
        "k<<<2 * (n / t), t>>>(a, n);",
        "k<<<(n - 1) / t + 1, t>>>(a, n);",  # one block where n is 0
        "float s = t * 0.7f; k<<<n / s, (int)s>>>(a, n);",  # fractions are divided otherwise
    ],
)
def test_any_other_quotient_is_not(body: str) -> None:
    assert conditions(body) == {()}


def verdict(launch: str, kernel: str = COLUMNS) -> tuple[Verdict, tuple[str, ...]]:
    host = f"void f(float *a, float *b, int w, int h, int r, int t) {{ {launch} }}"
    (report,) = check_text(Path("a.cu"), kernel + host).kernels
    return report.verdict, report.assumptions


@pytest.mark.parametrize(
    "launch",
    [
        "columns<<<w / t, t>>>(a, b, w, h, r);",
        "int g = w / t; columns<<<g, t>>>(a, b, w, h, r);",
        "dim3 s(t); dim3 g(w / s.x); columns<<<g, s>>>(a, b, w, h, r);",
        "dim3 s; s.x = t; columns<<<w / s.x, s>>>(a, b, w, h, r);",
        "columns<<<w / 64, 64>>>(a, b, w, h, r);",
    ],
)
def test_columns_of_such_a_grid_stay_in_their_rows(launch: str) -> None:
    found, assumptions = verdict(launch)
    assert found is Verdict.RACE_FREE
    assert not any("overlap" in text for text in assumptions)  # it is shown


@pytest.mark.parametrize(
    "launch",
    [
        "columns<<<w / t + 1, t>>>(a, b, w, h, r);",
        "columns<<<h / t, t>>>(a, b, w, h, r);",
        "columns<<<2 * w / t, t>>>(a, b, w, h, r);",
        "columns<<<(w + t - 1) / t, t>>>(a, b, w, h, r);",  # up to t - 1 columns too many
        "columns<<<w / 64, t>>>(a, b, w, h, r);",
        "columns<<<w / t, t>>>(a, b, w / 2, h, r);",
    ],
)
def test_columns_of_a_larger_grid_do_not(launch: str) -> None:
    assert verdict(launch)[0] is not Verdict.RACE_FREE
