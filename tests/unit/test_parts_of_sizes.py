"""Which sizes decide: those of whole blocks, those that examples name, and those that no size is without."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from cuda_lsp.config import Settings
from cuda_lsp.model import Code, Finding, Severity, Verdict
from cuda_lsp.static import work
from cuda_lsp.static.analyze import Analyzer, check_text
from cuda_lsp.static.solver.answer import Stats
from cuda_lsp.static.solver.grains import of_whole_blocks
from cuda_lsp.static.solver.problems import problems
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.solve import under
from cuda_lsp.static.solver.tactics import PROOFS
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, first_answer
from cuda_lsp.static.symbolic.launch import setting
from cuda_lsp.static.symbolic.summarise import summarise

TILES = """
__global__ void tiles(float* c, int m, int n, int k) {
    float sum = 0;
    for (int i = 0; i < k; i++) sum += i;
    int row = blockIdx.y * 16 + threadIdx.x / 16, column = blockIdx.x * 16 + threadIdx.x % 16;
    for (int r = 0; r < 2; r++) c[(row + r * 8) * n + column] = sum;
}
void run(float* c, int m, int n, int k) {
    dim3 grid((n + 15) / 16, (m + 15) / 16);
    tiles<<<grid, 128>>>(c, m, n, k);
}
"""
TABLE = """
__global__ void k(float* out, int n, int m, int rounds) {
    __shared__ float s[64];
    s[threadIdx.x] = m;
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < rounds; i++) sum += s[threadIdx.x + BY];
    if (blockIdx.x * 64 + threadIdx.x < n) out[blockIdx.x * 64 + threadIdx.x] = sum;
}
void run(float* out, int n, int m, int rounds) { k<<<(n + 63) / 64, 64>>>(out, n, m, rounds); }
"""


def open_pair(text: str, name: str) -> OpenPair:
    """A pair of the kernel that arithmetic leaves open, under its launch."""
    path, analyzer = Path("k.cu"), Analyzer(Settings())
    analyzer.update(path, text)
    kernel = analyzer.kernel(path, name)
    assert kernel is not None
    launch, stats, gpu = kernel.launches[0], Stats(), Settings().gpu
    kernel = under(kernel, launch)
    where = setting(kernel, launch, gpu)
    summary = summarise(kernel, where.axes, where.arguments, 0, work.begin(10))
    found = problems(kernel, summary, where, gpu, stats, work.begin(10))
    p, facts = next((p, facts) for p, facts in found if not p.pair.relation.same_block)
    return OpenPair(p, facts, Query(kernel, where, summary, 1.0, work.begin(10), stats), launch)


def checked(text: str) -> tuple[Verdict, list[Finding]]:
    (kernel,) = check_text(Path("k.cu"), text, Settings(solver_budget=6_000)).kernels
    return kernel.verdict, list(kernel.findings)


def test_a_tail_of_rows_is_told_with_sizes_that_decide() -> None:
    verdict, findings = checked(TILES)
    assert verdict is Verdict.RACY
    (race,) = [f for f in findings if f.code is Code.GLOBAL_RACE]
    assert race.condition is not None
    assert "`m`" in race.condition and "`n`" in race.condition and "`k`" not in race.condition


@pytest.mark.parametrize(("by", "apart"), [("16", {16}), ("8", set())])
def test_whole_blocks_keep_the_rows_of_a_matrix_apart(by: str, apart: set[int]) -> None:
    """By what the host divides them by; blocks that overlap anyway are not excused by it."""
    pair = open_pair(TILES.replace("blockIdx.x * 16", f"blockIdx.x * {by}"), "tiles")
    proved = {
        uneven.divisor
        for uneven, p, facts, query in of_whole_blocks(pair.p, pair.facts, pair.query)
        if isinstance(first_answer(PROOFS, evolve(pair, p=p, facts=facts, query=query)), Proved)
    }
    assert proved == apart


def test_tiles_that_overlap_for_every_width_are_not_excused_by_it() -> None:
    _, findings = checked(TILES.replace("blockIdx.x * 16", "blockIdx.x * 8"))
    assert any(f.code is Code.GLOBAL_RACE and f.severity is not Severity.INFORMATION for f in findings)


@pytest.mark.parametrize(
    ("by", "condition"),
    [
        ("1", "`rounds` > 0"),  # whatever n and m are
        ("i", "`rounds` > 1"),
    ],
)
def test_sizes_without_a_part_are_not_named(by: str, condition: str) -> None:
    _, findings = checked(TABLE.replace("BY", by))
    (outside,) = [f for f in findings if f.code is Code.SHARED_OUT_OF_BOUNDS]
    assert outside.condition == condition


def test_what_every_size_leaves_an_array_by_is_a_mistake() -> None:
    """No loop is meant to run no round; that it runs one only may be meant."""
    severities = {
        by: {f.effective_severity for f in checked(TABLE.replace("BY", by))[1]
             if f.code is Code.SHARED_OUT_OF_BOUNDS}
        for by in ("1", "i")
    }  # fmt: skip
    assert severities == {"1": {Severity.WARNING}, "i": {Severity.INFORMATION}}
