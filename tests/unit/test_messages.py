"""How contents of memory are told as a condition."""

from __future__ import annotations

from cuda_lsp.ir.program import Array
from cuda_lsp.ir.types import INT32, Opaque, Type
from cuda_lsp.model import Space
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import Contents


def contents(cells: dict[tuple[Array, int], int]) -> str:
    return words.conditions((Contents(tuple(cells.items())),))


def array(name: str, number: int, element: Type = INT32) -> Array:
    return Array(name, Space.GLOBAL, element, (), number)


def test_a_few_cells_are_told_one_by_one() -> None:
    a = array("a", 1)
    assert contents({(a, 8): 7, (a, 0): 0}) == "for example `a[0]` == 0 and `a[2]` == 7"


def test_many_cells_that_are_alike_are_told_by_their_array() -> None:
    a, b = array("a", 1), array("b", 2)
    cells = {(a, 4 * i): 3 for i in range(4)} | {(b, 0): 1, (b, 4): 2}
    assert contents(cells) == "for example `a` holds only 3 and `b` holds certain values"
    assert contents({(b, 4 * i): i for i in range(4)}) == "`b` holds certain values"


def test_a_record_is_told_by_its_bytes() -> None:
    pairs = array("pairs", 1, Opaque("int2", 8))
    cells = {(pairs, 8): 5, (pairs, 4): 1}
    assert contents(cells) == "for example `pairs[0]` holds 1 at byte 4 and `pairs[1]` begins with 5"
