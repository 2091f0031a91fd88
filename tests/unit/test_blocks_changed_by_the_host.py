"""Blocks of one thread that the host may make larger: swapped, handed over, set from outside, of a list."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
#include <tuple>
#include <utility>
__global__ void k(float* d) { d[blockIdx.x] = d[blockIdx.x] + threadIdx.x; }
"""
CLASS = "struct C {{ int t = 1; {const} int u = 1; void go(float* d) {{ k<<<4, {block}>>>(d); }} }}; "


def verdict(host: str) -> Verdict:
    (report,) = check_text(Path("k.cu"), KERNEL + host).kernels
    return report.verdict


@pytest.mark.parametrize(
    "host",
    [
        "void f(float* d) { int t = 1, u = 64; std::swap(t, u); k<<<4, t>>>(d); }",
        "std::tuple<int, int> sizes(); void f(float* d)"
        " { int g = 4, t = 1; std::tie(g, t) = sizes(); k<<<g, t>>>(d); }",
        "const int sizes[] = {1, 64}; void f(float* d, int i) { k<<<4, sizes[i]>>>(d); }",
        CLASS.format(const="", block="t") + "void f(float* d) { C c; c.t = 64; c.go(d); }",
        CLASS.format(const="", block="t") + "void f(float* d, C* c) { c->t *= 64; c->go(d); }",
    ],
)
def test_they_are_not_taken_to_stay_so(host: str) -> None:
    assert verdict(host) is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    "host",
    [
        "void f(float* d) { int t = 1, u = 64, v = 2; std::swap(u, v); k<<<4, t>>>(d); }",
        "const int sizes[] = {1, 64}; void f(float* d) { k<<<4, sizes[0]>>>(d); }",
        CLASS.format(const="", block="t") + "void f(float* d) { C c; c.u = 64; c.go(d); }",
        CLASS.format(const="static constexpr", block="u") + "void f(float* d, C c) { c.go(d); }",
    ],
)
def test_what_nobody_changes_stays(host: str) -> None:
    assert verdict(host) is Verdict.RACE_FREE
