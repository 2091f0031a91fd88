"""Inline PTX on a predicate: ``setp`` of operands, and the access that only some threads do."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

LOAD = r"""
__device__ int load(const int* p, bool wanted) {
    int v;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.COMPARE.b32 p, %2, 0;\n\tmov.b32 %0, 0;\n"
                 "\t@PREDICATE ld.global.u32 %0, [%1];\n}\n" : "=r"(v) : "l"(p), "r"((int)wanted));
    return v;
}
// cuda-lsp: launch block=(64) grid=(1)
__global__ void k(int* a) {
    int v = load(a + threadIdx.x + 1, threadIdx.x % 2 == 0);
    if (threadIdx.x % 2 == 0) a[threadIdx.x] = v;
}
"""


def verdict(text: str) -> Verdict:
    (kernel,) = check_text(Path("a.cu"), text, Settings()).kernels
    return kernel.verdict


@pytest.mark.parametrize(("compare", "predicate"), [("ne", "p"), ("eq", "!p")])
def test_an_access_on_a_predicate_is_done_where_it_holds(compare: str, predicate: str) -> None:
    assert verdict(LOAD.replace("COMPARE", compare).replace("PREDICATE", predicate)) is Verdict.RACE_FREE


@pytest.mark.parametrize(("compare", "predicate"), [("eq", "p"), ("ne", "!p")])
def test_it_is_not_done_elsewhere(compare: str, predicate: str) -> None:
    assert verdict(LOAD.replace("COMPARE", compare).replace("PREDICATE", predicate)) is Verdict.RACY


def test_a_predicate_that_something_else_writes_is_not_known() -> None:
    text = LOAD.replace("mov.b32 %0, 0;", "not.pred p, p;").replace("COMPARE", "ne").replace("PREDICATE", "p")
    assert verdict(text) is Verdict.RACY
