"""A row whose number is a constant, between two sizes of a record: ``(i * sizes[1] + 1) * sizes[2] + x``.

That columns lie within their rows is taken for granted, and told, also where the store hangs on what memory
holds: where that is, ``ids[row * pitch + x] >= 0``, bounds no columns.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

PAIRS = """
struct Pairs { int* ids; int sizes[3]; };
__device__ int at(Pairs pairs, int i, int row, int x) {
  return (i * pairs.sizes[1] + row) * pairs.sizes[2] + x;
}
__global__ void rename(Pairs pairs, const int* names, int n) {
  for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < LIMIT; x += blockDim.x * gridDim.x)
    for (int i = 0; i < pairs.sizes[0]; ++i) {
      BODY
    }
}
void host(Pairs pairs, int* names, int n, int blocks) { rename<<<blocks, 1024>>>(pairs, names, n); }
"""
RENAMED = "int id = pairs.ids[at(pairs, i, 1, x)]; if (id >= 0) pairs.ids[at(pairs, i, 1, x)] = names[id];"


def report(body: str, limit: str = "n") -> KernelReport:
    text = PAIRS.replace("BODY", body).replace("LIMIT", limit)
    (kernel,) = check_text(Path("k.cu"), text).kernels
    return kernel


@pytest.mark.parametrize(
    "body",
    [
        RENAMED,
        RENAMED.replace("i, 1, x", "i, 0, x"),
        RENAMED.replace(">= 0", "> -1"),
        RENAMED.replace("i, 1, x", "x % 3, 1, x / 2"),  # each x has a plane or a column of its own
    ],
)
def test_one_row_of_each_plane_is_apart_from_the_others_and_it_is_told(body: str) -> None:
    found = report(body)
    assert found.verdict is Verdict.RACE_FREE
    assert any("pairs.sizes[2]" in granted for granted in found.assumptions)


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        (RENAMED.replace("] = names", " + 1] = names"), "n"),  # a neighbour's column
        (RENAMED.replace("] = names", "] = pairs.ids[at(pairs, i, 1, x + 1)] + names"), "n"),
        (RENAMED, "pairs.sizes[2] + 1"),  # one column more than a row has
        (f"if (pairs.sizes[2] < n) {{ {RENAMED} }}", "n"),
        (RENAMED.replace("i, 1, x", "x % 2, 1, x / 4"), "n"),
    ],
)
def test_rows_that_the_program_makes_overlap_are_told(body: str, limit: str) -> None:
    assert report(body, limit).verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(("row", "verdict"), [("1", Verdict.RACE_FREE), ("row", Verdict.RACY)])
def test_two_rows_of_each_block_meet_the_next_ones(row: str, verdict: Verdict) -> None:
    store = (
        f"int at = (blockIdx.y + {row}) * pairs.sizes[2] + x; if (names[x] >= 0) pairs.ids[at] = blockIdx.y;"
    )
    text = PAIRS.replace("BODY", f"for (int row = 0; row < 2; ++row) {{ {store} }}").replace("LIMIT", "n")
    (kernel,) = check_text(Path("k.cu"), text.replace("<<<blocks,", "<<<dim3(blocks, 8),")).kernels
    assert kernel.verdict is verdict
