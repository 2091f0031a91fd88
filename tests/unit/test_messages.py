"""How contents of memory are told as a condition, and what gives way where messages are too long."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from cuda_lsp.ir.program import STRETCH, Array, Part
from cuda_lsp.ir.types import INT32, Opaque, Type
from cuda_lsp.model import Mode, Position, RaceKind, Site, SourceRange, Space
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import Contents

PLACE = SourceRange(Path("k.cu"), Position(1, 1), Position(1, 9))


def contents(cells: dict[tuple[Array, int], int]) -> str:
    return words.conditions((Contents(tuple(cells.items())),))


def array(name: str, number: int, element: Type = INT32) -> Array:
    return Array(name, Space.GLOBAL, element, (), number)


def test_a_few_cells_are_told_one_by_one() -> None:
    a = array("a", 1)
    assert contents({(a, 8): 7, (a, 0): 0}) == "for example `a[0]` == 0 and `a[2]` == 7"
    four = {(a, 4 * i): i for i in range(4)}
    assert contents(four) == "for example `a[0]` == 0 and `a[1]` == 1 and `a[2]` == 2 and `a[3]` == 3"


def test_many_cells_that_are_alike_are_told_by_their_array() -> None:
    a, b = array("a", 1), array("b", 2)
    cells = {(a, 4 * i): 3 for i in range(4)} | {(b, 0): 1, (b, 4): 2}
    assert contents(cells) == "for example `a` holds only 3 and `b` holds certain values"
    assert contents({(b, 4 * i): i for i in range(5)}) == "`b` holds certain values"


def test_a_record_is_told_by_its_bytes() -> None:
    pairs = array("pairs", 1, Opaque("int2", 8))
    cells = {(pairs, 8): 5, (pairs, 4): 1}
    assert contents(cells) == "for example `pairs[0]` holds 1 at byte 4 and `pairs[1]` begins with 5"


def test_a_field_is_told_by_its_name() -> None:
    fields = (Part("total", 0, 4), Part("of", 4, 2, 3), Part("at.x", 12, 4))
    many = evolve(array("many", 1, Opaque("Counts", 16)), parts=fields)
    assert contents({(many, 16): 5}) == "for example `many[1].total` == 5"
    assert contents({(many, 8): 5}) == "for example `many[0].of[2]` == 5"
    assert contents({(many, 9): 5}) == "for example `many[0]` holds 5 at byte 9"
    assert contents({(many, 10): 5}) == "for example `many[0]` holds 5 at byte 10"
    alone = evolve(many, shape=(1,), size=16)
    assert contents({(alone, 12): 5}) == "for example `many.at.x` == 5"


def test_an_index_below_its_object_is_negative() -> None:
    numbers = array("a", 1)
    assert words.subscript(numbers, -8) == "a[-2]"
    assert words.subscript(numbers, STRETCH - 8) == "a[-2]"
    assert words.subscript(numbers, 3 * STRETCH + 8) == "a[2]"


STORE = "normed_rows[blockIdx.x * elements_of_a_row + threadIdx.x + lane]"


def message(name: str, what_is_missing: str, condition: str) -> str:
    deeds = (words.doing(Mode.WRITE, Site(PLACE, STORE)),) * 2
    threads = ("thread (0,1) of block 12", "thread 9 of block (0,3)")
    story = words.race(RaceKind.WAW, name, threads, deeds, {}, what_is_missing)
    return words.fitted(f"{story}, when {condition}", [STORE])


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("row[3]", "`n` > 1"),
        ("normed_rows (memory[3])", "`n` > 1"),
        ("normed_rows (memory[3])", "for example `elements_of_a_row` == 3"),
        ("normed_rows (memory[3])", "for example `count` == 3 and `elements_of_a_row` == 130"),
        ("memory_of_all[3]", "for example `count` == 3 and `elements_of_a_row` == 130"),
    ],
)
@pytest.mark.parametrize("orders", [(True, False), (False, True), (False, False)])
def test_what_a_race_needs_is_told_whole_before_its_expressions(
    name: str, condition: str, orders: tuple[bool, bool]
) -> None:
    told = message(name, words.remedy(orders[0], False, orders[1], not any(orders)).told, condition)
    assert len(told) < 160
    assert told.endswith(f"when {condition}")
    assert told.startswith("WAW race on ")
    assert name.split("(")[-1].rstrip(")") in told


def test_who_executes_a_call_accesses_what_it_is_about() -> None:
    call = "atomicOr(&" + "result_buffer_output.bits" * 4 + ", bit)"
    deeds = words.doing(Mode.READ, Site(PLACE, "ahead")), words.doing(Mode.ATOMIC, Site(PLACE, call))
    where = "result_buffer_output.bits[2]"
    story = words.race(RaceKind.RAW, where, ("thread 32", "thread 0"), deeds, {}, "no barrier orders them")
    told = words.fitted(f"{story}, when the conditions on lines 12 and 14 are true", ["ahead", call])
    assert len(told) <= words.LONGEST
    assert "thread 32 reads it while thread 0 accesses it atomically" in told
    assert told.endswith("are true")


def test_what_is_missing_is_told_rather_than_all_values_of_an_example() -> None:
    story = "WAR race on tops[32]: thread 0 writes tops[at] while thread 32 reads tops[t] (query = 0, t = 32)"
    sizes = "count = 256, k = 64, size = 1024, stride = 2048, pitch = 1024, width = 8"
    told = words.fitted(
        f"{story}; no barrier orders them from one loop round to the next (for example when {sizes})",
        ["tops[at]", "tops[t]"],
    )
    assert "; no barrier between rounds (for example when count = 256" in told
    assert told.endswith("more)") and len(told) <= words.LONGEST


TWO = "thread 0 of block (1,3) and thread (2,3) of block (0,2) both write it"


@pytest.mark.parametrize(
    ("story", "needed", "told"),
    [
        (
            f"WAW race on outputs[64]: {TWO}",
            ", when for example `sizes.second` == 64 (depends on the template arguments: blocks of 16x16 are"
            " assumed)",
            f"{TWO} (depends on the template arguments: ",
        ),
        (
            f"WAW race on coefficients[10]: {TWO} (the same value)",
            ", when `boundary` and `is_elastic` and `all_the_indices` hold certain values",
            "threads of two blocks both write it (the same value), when ",
        ),
        (
            "WAW race on lengths.of_all_sequences[0]: thread 1 and thread 0 both write it",
            ", when `lengths.size` > 0 (here 3) and `lengths.width` > 1 (here 4) and the condition on line 7"
            " is true",
            " and `lengths.width` > 1 (here 4) and more",
        ),
        (
            "possible WAW race on all_the_memory; whether two threads meet depends on the arguments",
            " `first_of_the_sizes` and `second_of_the_sizes` and the contents of `what_is_left`",
            " `first_of_the_sizes` and others and the contents of `what_is_left`",
        ),
        (
            f"WAW race on where_each_row_comes_from[0]: {TWO}",
            " (depends on whether `where_each_of_the_rows_goes_to_in_the_end` holds a number twice)",
            " holds a number twice)",
        ),
    ],
)
def test_what_is_too_long_is_told_in_fewer_words_and_not_cut_off(story: str, needed: str, told: str) -> None:
    short = words.fitted(story + needed, [])
    assert len(story + needed) > words.LONGEST >= len(short)
    assert told in short and not short.endswith("…")


def test_the_numbers_of_an_example_stay_whole() -> None:
    values = " and ".join(f"`all.data[{i}]` == {i}.25" for i in range(6))
    story = "WAW race on same[0]: thread (0,2) and thread 0 both write it"
    told = words.fitted(f"{story}, when for example {values}", [])
    assert told.endswith("`all.data[1]` == 1.25 and 4 more")


def test_more_is_said_once() -> None:
    story = f"WAW race on every_one_of_the_rows[0]: {TWO} (the same value)"
    told = words.fitted(
        f"{story}, when for example `rows[0]` == 9 and 1 more and the condition on line 7 is true", []
    )
    assert told.endswith("`rows[0]` == 9 and more")
