"""Diagnoses: merged and demoted as data, in words at the end."""

from __future__ import annotations

import pickle
from pathlib import Path

from attrs import evolve

from cuda_lsp.ir.program import Array, Axis
from cuda_lsp.ir.types import INT32
from cuda_lsp.model import Code, Position, RaceKind, Related, Site, SourceRange, Space, Status, Witness
from cuda_lsp.static.findings.conditions import (
    Branch,
    Compared,
    Contents,
    Example,
    Needs,
    OnData,
    Open,
    SomeValues,
    Unconfirmed,
    is_weak,
    parameters_of,
)
from cuda_lsp.static.findings.diagnosis import Diagnosis


def site(line: int) -> Site:
    return Site(SourceRange(Path("k.cu"), Position(line, 1), Position(line, 5)), "s[i]")


SEEN = Witness(((0, 0, 0), (1, 0, 0)), None, "s", (0,))
RACE = Diagnosis(
    Code.SHARED_RACE, Status.PROVED, "story", "k", site(2), (Related(site(1), "other"),), RaceKind.RAW, SEEN
)
SMALL = Compared("n", "<", 256, Axis.BDIM_X)


def test_a_condition_is_told_after_the_story():
    found = RACE.needing(SMALL, Compared("n", "!=", "m"))
    assert found.status is Status.CONDITIONAL
    assert found.condition == "`n` < `blockDim.x` (256) and `n` != `m`"
    assert found.message == f"story, when {found.condition}"


def test_a_demoted_race_keeps_its_condition_and_says_what_it_depends_on():
    found = RACE.needing(SMALL).doubted(Open.LAUNCH_UNTOLD)
    assert found.status is Status.POSSIBLE and found.conditions == (SMALL,)
    assert found.message == (
        "story, when `n` < `blockDim.x` (256) (depends on the launch, whose block nothing in the file tells)"
    )


def test_an_example_that_the_solver_cannot_confirm_stays_an_example():
    example = Example((("n", 5), ("m", 6)), sampled=True)
    found = RACE.needing(example)
    doubted = evolve(found.doubted(Unconfirmed(found.conditions)), conditions=())
    assert found.message == doubted.message == "story (for example when n = 5, m = 6)"
    assert (doubted.condition, doubted.reason) == (
        None,
        "arguments that nothing in the file tells (n = 5, m = 6)",
    )


def test_that_both_write_one_value_stands_before_what_decides():
    same = evolve(RACE, same_value=True)
    assert same.doubted(OnData("`in`")).message == "story (both write the same value) (depends on `in`)"
    assert same.needing(Needs.BLOCKS).message == (
        "story (both write the same value), when the grid has more than one block"
    )


def test_a_race_without_a_witness_says_what_decides_whether_threads_meet():
    assert evolve(RACE, witness=None).doubted(Open.REACHED).message == (
        "story; whether they meet depends on whether both are ever reached"
    )


def test_what_only_unknown_values_or_a_size_below_zero_show_is_weak():
    assert is_weak((SomeValues(("n",)),)) and is_weak((SMALL, Compared("n", "<", 0)))
    assert not is_weak((SMALL,)) and not is_weak((Compared("n", "<", 1),))


def test_conditions_speak_of_parameters_and_not_of_words_or_cells():
    conditions = (SMALL, Contents(()), SomeValues(("k",)), Example((("j", 1),)))
    assert parameters_of(conditions) == {"n", "k", "j"}


def test_a_diagnosis_travels_between_processes():
    found = RACE.needing(SMALL).doubted(OnData("x"))
    assert pickle.loads(pickle.dumps(found)) == found


def test_races_are_one_by_their_two_places_and_others_by_code_and_place():
    there = evolve(RACE, site=site(1), related=(Related(site(2), "other"),), code=Code.WARP_RACE)
    assert there.key == RACE.key
    bounds = Diagnosis(Code.SHARED_OUT_OF_BOUNDS, Status.PROVED, "story", "k", site(2))
    assert bounds.key != evolve(bounds, code=Code.SHARED_UNINITIALISED).key


def test_where_there_is_no_room_for_all_cells_the_arrays_are_named():
    first, second = (
        Array(name, Space.GLOBAL, INT32, (), n) for n, name in enumerate(("begins_of_rows", "ids"))
    )
    cells = ((first, 0), 1000), ((first, 4), 2000), ((second, 4000), 1), ((second, 8000), 3)
    story = "WAW race on values_of_rows[1]: thread 1 of block 12 and thread 0 of block 7 both write it"
    told = evolve(RACE, story=story).needing(Contents(cells), Branch(12, True)).message
    arrays = "`begins_of_rows` and `ids` hold certain values"
    assert told.endswith(f", when {arrays} and the condition on line 12 is true")
    short = evolve(RACE, story="story").needing(Contents(cells[:1])).message
    assert short == "story, when for example `begins_of_rows[0]` == 1000"
