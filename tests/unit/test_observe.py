"""What a run saw, merged into what the static side said."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from cuda_lsp.dynamic.emulator.engine import merged as both_orders
from cuda_lsp.dynamic.job import CheckResult, Shape, Trial, TrialResult, places_of
from cuda_lsp.dynamic.observations.merge import Seen, merged, with_all
from cuda_lsp.dynamic.observations.notes import with_lines
from cuda_lsp.dynamic.observations.places import source_name
from cuda_lsp.dynamic.runs import (
    Place,
    PtxSite,
    RunOutcome,
    SeenFault,
    SeenFlag,
    SeenRace,
    SiteKind,
    Stuck,
)
from cuda_lsp.model import (
    Code,
    Finding,
    KernelReport,
    LaunchConfig,
    LaunchSource,
    Mode,
    Position,
    RaceKind,
    Related,
    Severity,
    Site,
    SourceRange,
    Space,
    Status,
    Verdict,
)

PATH = Path("/k.cu")
LAUNCH = LaunchConfig((64, 1, 1), (4, 1, 1))


def place(line: int, text: str = "s[i]") -> Site:
    return Site(SourceRange(PATH, Position(line, 5), Position(line, 5 + len(text))), text)


def ptx(line: int, mode: Mode | None, kind: SiteKind = SiteKind.ACCESS, text: str = "s[i]") -> PtxSite:
    return PtxSite("k", line, kind, "ld", place(line, text), mode, Space.SHARED, 4)


STORE, LOAD, BARRIER = (
    ptx(2, Mode.WRITE),
    ptx(3, Mode.READ, text="s[i + 1]"),
    ptx(4, None, SiteKind.BARRIER, "__syncthreads()"),
)
REPORT = KernelReport(
    "k", SourceRange(PATH, Position(1, 1), Position(9, 1)), Verdict.UNDECIDED, ("why",), (LAUNCH,)
)
RACE = SeenRace(
    (0, 1), (Mode.WRITE, Mode.READ), (5, 4), (0, 0), Place(Space.SHARED, "_ZZ1kPiE1s", 20), pairs=63, words=63
)


def result(**outcome: object) -> CheckResult:
    base = RunOutcome("CPU emulator", 0.001, 2, 4, executed=frozenset({0, 1}))
    trial = TrialResult(Trial(LAUNCH), evolve(base, **outcome))
    return CheckResult("k", "CPU emulator", (trial,), (STORE, LOAD, BARRIER))


def suspicion(status: Status) -> Finding:
    return Finding(
        Code.SHARED_RACE, status, "suspected", "k", LOAD.site, (Related(STORE.site, "the store"),),
        RaceKind.RAW, reason="data",
    )  # fmt: skip


def test_a_seen_race_confirms_the_finding_of_its_pair():
    report = evolve(REPORT, findings=(suspicion(Status.POSSIBLE),))
    after = merged(report, result(races=(RACE,)), {})
    (finding,) = after.findings
    assert finding.status is Status.CONFIRMED and after.verdict is Verdict.RACY
    assert finding.observation is not None
    assert (finding.observation.pairs, finding.observation.blocks_checked) == (63, 2)


def test_a_seen_race_without_a_finding_becomes_one_with_a_witness():
    (finding,) = merged(REPORT, result(races=(RACE,)), {"s": Shape(4, (65,))}).findings
    assert finding.kind is RaceKind.RAW and finding.site == LOAD.site
    assert finding.witness is not None
    assert (finding.witness.array, finding.witness.index) == ("s", (5,))
    assert finding.witness.threads == ((5, 0, 0), (4, 0, 0))


def test_the_order_of_the_sites_does_not_matter():
    turned = SeenRace((0, 1), (Mode.READ, Mode.WRITE), (4, 5), (0, 0), RACE.place)
    swapped = evolve(result(races=(turned,)), sites=(LOAD, STORE, BARRIER))
    (finding,) = merged(REPORT, swapped, {}).findings
    assert finding.kind is RaceKind.RAW and finding.site == LOAD.site
    assert finding.witness is not None and finding.witness.threads == ((5, 0, 0), (4, 0, 0))


def test_a_suspicion_that_ran_and_was_not_seen_says_so():
    report = evolve(REPORT, findings=(suspicion(Status.POSSIBLE),))
    (finding,) = merged(report, result(), {}).findings
    assert finding.status is Status.NOT_OBSERVED and "proves nothing" in finding.message


def test_what_did_not_run_or_was_proved_is_left_alone():
    possible = evolve(REPORT, findings=(suspicion(Status.POSSIBLE),))
    assert merged(possible, result(executed=frozenset({0})), {}).findings == possible.findings
    proved = evolve(REPORT, findings=(suspicion(Status.PROVED),))
    assert merged(proved, result(), {}).findings == proved.findings


def test_a_run_that_failed_judges_nothing():
    report = evolve(REPORT, findings=(suspicion(Status.POSSIBLE),))
    after = merged(report, result(failure="it hung"), {})
    assert after.findings == report.findings
    assert any("it hung" in reason for reason in after.reasons)


def test_shares_and_faults_are_told():
    fault = SeenFault(1, 0, 0, Place(Space.GLOBAL, "out", 4096))
    reasons = merged(REPORT, result(faults=(fault,)), {}).reasons
    assert "2 of 4 blocks were checked dynamically" in reasons
    assert any("line 3" in reason for reason in reasons)


def test_accesses_that_are_not_aligned_are_told_of_both_builds():
    fault = SeenFault(1, 0, 0, Place(Space.GLOBAL, "out", 4097), misaligned=True)
    told = "accesses that are not aligned were not carried out (line 3)"
    assert told in merged(REPORT, result(faults=(fault,)), {}).reasons
    seen = result()
    (trial,) = seen.results
    optimised = evolve(trial, banks=evolve(trial.races, faults=(fault,)))
    seen = evolve(seen, results=(optimised,), bank_sites=seen.sites)
    assert told in merged(REPORT, seen, {}).reasons


def test_where_nothing_is_known_of_the_threads_nothing_is_said_of_them():
    stuck = Stuck(0, (), spinning=True, late=True)
    reasons = merged(REPORT, result(failure="it hung", stuck=(stuck,)), {}).reasons
    assert not any("threads of block" in reason for reason in reasons)


def test_threads_that_wait_for_others_are_a_finding():
    (finding,) = merged(REPORT, result(stuck=(Stuck(0, ((2, 32, 0),), exited=32),)), {}).findings
    assert finding.code is Code.BARRIER_DIVERGENCE
    assert "32 wait there, 32 have returned" in finding.message


def test_where_threads_wait_in_a_loop_is_told_with_lines():
    spinning = Stuck(1, ((1, 1, 5), (2, 62, 0)), exited=1, spinning=True)
    after = merged(REPORT, result(failure="it is stuck", stuck=(spinning,)), {})
    waits = "1 at line 3 (thread (5,0,0), `s[i + 1]`); 62 at line 4 (thread (0,0,0), `__syncthreads()`)"
    assert after.notes[:2] == (
        "CPU emulator: it is stuck",
        f"threads of block (1,0,0): {waits}; 1 have returned",
    )
    (finding,) = after.findings
    assert finding.code is Code.BARRIER_DIVERGENCE and finding.site == BARRIER.site
    slow = merged(REPORT, result(failure="the deadline came", stuck=(evolve(spinning, late=True),)), {})
    assert not slow.findings  # who is at no barrier may only be slow


def test_what_was_seen_with_inputs_of_ours_says_what_it_depends_on():
    report = evolve(REPORT, findings=(suspicion(Status.POSSIBLE),))
    seen = result(races=(RACE,))
    trial = evolve(seen.results[0].trial, scalars={"n": 7})
    ours = evolve(seen, results=(evolve(seen.results[0], trial=trial),))
    (found,) = merged(report, ours, {}).findings
    assert found.message.endswith("with made-up inputs (depends on data)")
    assert found.witness is not None and found.witness.values == {"n": 7}
    assert found.effective_severity is Severity.INFORMATION  # the program may never have such data
    programs = evolve(seen, results=(evolve(seen.results[0], trial=evolve(trial, own_memory=True)),))
    (found,) = merged(report, programs, {}).findings
    assert "made-up" not in found.message
    assert found.effective_severity is Severity.ERROR


def test_a_race_that_is_proved_and_was_not_seen_is_told():
    report = evolve(REPORT, findings=(suspicion(Status.PROVED),))
    after = merged(report, result(), {})
    assert [f.status for f in after.findings] == [Status.PROVED]
    assert any("proved on line 3 was not seen on CPU emulator" in note for note in after.notes), after.notes


def test_a_new_race_of_an_undecided_kernel_may_be_one_of_our_inputs():
    doubted = evolve(REPORT, findings=(), verdict=Verdict.UNDECIDED)
    (found,) = merged(doubted, result(races=(RACE,)), {}).findings
    assert found.effective_severity is Severity.INFORMATION and "with made-up inputs" in found.message
    sure = evolve(REPORT, findings=(), verdict=Verdict.RACE_FREE)
    (found,) = merged(sure, result(races=(RACE,)), {}).findings
    assert found.effective_severity is Severity.ERROR


def test_a_race_in_no_file_of_the_users_is_told_all_the_same():
    seen = result(races=(RACE,))
    hidden = evolve(seen, sites=(evolve(STORE, site=None), LOAD, BARRIER))
    assert any("raced" in note for note in merged(REPORT, hidden, {}).notes)
    assert not any("raced" in note for note in merged(REPORT, seen, {}).notes)


def test_what_is_not_covered_names_its_lines():
    copy = evolve(ptx(7, None, SiteKind.OTHER), opcode="cp.async.bulk")
    seen = result(not_covered=("something else",), unwatched=("cp.async.bulk",))
    notes = merged(REPORT, evolve(seen, sites=(STORE, LOAD, copy)), {}).notes
    assert "cp.async.bulk: memory it touches is not watched (line 7)" in notes
    assert "something else" in notes


def test_lines_are_those_of_the_named_instructions_alone():
    """`cp.async` is part of what `cp.async.bulk` is called."""
    bulk = evolve(ptx(7, None, SiteKind.OTHER), opcode="cp.async.bulk")
    plain = evolve(ptx(9, None, SiteKind.OTHER), opcode="cp.async")
    assert with_lines("no", ("cp.async.bulk",), (bulk, plain)) == "no (line 7)"


def test_names_of_shared_variables_are_read_from_mangled_ones():
    assert source_name("_ZZ18reduce_interleavedPfPKfE1s") == "s"
    assert source_name("_ZZ6matmulILi16EEvPfE4tile_0") == "tile"
    assert source_name("plain") == "plain"


def test_an_access_outside_shared_memory_is_a_finding():
    fault = SeenFault(0, 5, 0, Place(Space.SHARED, "_ZZ1kPiE1s", 64))
    after = merged(evolve(REPORT, verdict=Verdict.RACE_FREE), result(faults=(fault,)), {})
    (finding,) = after.findings
    assert finding.code is Code.SHARED_OUT_OF_BOUNDS and finding.status is Status.CONFIRMED
    assert "outside s" in finding.message and "thread (5,0,0)" in finding.message


def test_an_access_outside_the_programs_own_memory_is_a_finding():
    fault = SeenFault(0, 5, 2, Place(Space.GLOBAL, "out", 256))
    seen = result(faults=(fault,))
    ours = evolve(
        seen, results=tuple(evolve(r, trial=evolve(r.trial, own_memory=True)) for r in seen.results)
    )
    assert not merged(REPORT, seen, {}).findings
    (finding,) = merged(REPORT, ours, {}).findings
    assert finding.code is Code.GLOBAL_OUT_OF_BOUNDS and finding.status is Status.CONFIRMED
    assert "outside out: thread (5,0,0) of block (2,0,0) reaches byte 256" in finding.message


def test_racing_words_without_statements_hide_no_suspicion():
    report = evolve(REPORT, findings=(suspicion(Status.POSSIBLE),))
    flag = SeenFlag(RACE.place, (0, 1), 0)
    after = merged(report, result(flags=(flag,)), {})
    assert after.findings == report.findings and after.verdict is Verdict.RACY
    assert any("1 words raced" in reason for reason in after.reasons)


def test_places_that_ran_in_different_runs_only_are_not_judged():
    report = evolve(REPORT, findings=(suspicion(Status.POSSIBLE),))
    first = result(executed=frozenset({0}))
    second = result(executed=frozenset({1})).results
    after = merged(report, evolve(first, results=(*first.results, *second)), {})
    assert after.findings == report.findings


def test_notes_are_told_of_race_free_kernels_too():
    after = merged(evolve(REPORT, verdict=Verdict.RACE_FREE), result(failure="it hung"), {})
    assert any("it hung" in reason for reason in after.reasons)


def test_a_run_under_a_condition_that_ends_early_does_not_spoil_the_others():
    plain = result()
    failed = evolve(plain.results[0].races, failure="the kernel did not finish before the deadline")
    under = TrialResult(Trial(LAUNCH, why="`x[0]` == 3"), failed)
    both = evolve(plain, results=(*plain.results, under))
    after = merged(evolve(REPORT, findings=(suspicion(Status.POSSIBLE),)), both, {})
    assert after.findings[0].status is Status.NOT_OBSERVED
    assert any("in the run for `x[0]` == 3" in reason for reason in after.reasons)


WITHIN = evolve(RACE, warp_only=True)


def test_a_race_between_lanes_only_is_the_code_that_the_static_side_would_choose():
    (found,) = merged(REPORT, result(races=(WITHIN,)), {}).findings
    assert found.code is Code.WARP_RACE
    assert "no __syncwarp() orders the lanes of this warp" in found.message
    (found,) = merged(REPORT, result(races=(evolve(RACE, warp_only=False),)), {}).findings
    assert found.code is Code.SHARED_RACE


def test_an_engine_that_does_not_tell_is_judged_by_its_examples():
    (found,) = merged(REPORT, result(races=(RACE,)), {}).findings
    assert found.code is Code.WARP_RACE  # threads 5 and 4
    wide = evolve(RACE, sites=(1, 1), threads=(5, 40), modes=(Mode.WRITE, Mode.WRITE))
    codes = {f.code for f in merged(REPORT, result(races=(RACE, wide)), {}).findings}
    assert codes == {Code.SHARED_RACE}


def test_a_race_that_the_static_side_had_not_found_is_recorded_as_a_miss():
    (found,) = merged(REPORT, result(races=(RACE,)), {}).findings
    assert found.missed
    known = evolve(REPORT, findings=(suspicion(Status.POSSIBLE),))
    assert not any(f.missed for f in merged(known, result(races=(RACE,)), {}).findings)


def test_another_instance_confirms_by_line_and_proves_nothing_of_this_one():
    possible = Finding(
        Code.SHARED_RACE, Status.POSSIBLE, "m", "k<8>", place(3, "s[i + 1]"), (Related(place(2), ""),),
        kind=RaceKind.RAW, reason="data",
    )  # fmt: skip
    report = evolve(REPORT, name="k<8>", findings=(possible,))
    racy, clean = result(races=(RACE,)), result(executed=frozenset({0, 1}))
    (finding,) = with_all(report, [Seen(racy, {}, "k<256>")]).findings
    assert finding.status is Status.CONFIRMED
    assert "seen in k<256> on" in finding.message
    assert with_all(report, [Seen(clean, {}, "k<256>")]).findings == report.findings
    (own,) = with_all(report, [Seen(clean, {})]).findings
    assert own.status is Status.NOT_OBSERVED


def test_what_one_run_did_not_see_another_may_confirm():
    possible = Finding(
        Code.SHARED_RACE, Status.POSSIBLE, "m", "k", place(3, "s[i + 1]"), (Related(place(2), ""),),
        kind=RaceKind.RAW,
    )  # fmt: skip
    report = evolve(REPORT, findings=(possible,))
    seen = [Seen(result(executed=frozenset({0, 1})), {}), Seen(result(races=(RACE,)), {})]
    for order in (seen, seen[::-1]):
        (finding,) = with_all(report, order).findings
        assert finding.status is Status.CONFIRMED


def test_a_race_of_another_instance_is_told_once():
    seen = Seen(result(races=(RACE,)), {}, "k<256>", adds=False)
    assert not with_all(REPORT, [seen]).findings
    (finding,) = with_all(REPORT, [evolve(seen, adds=True)]).findings
    assert finding.kernel == "k<256>"


def test_a_confirmation_tells_values_blocks_launches_and_a_guessed_launch_in_the_same_words_everywhere():
    race = evolve(RACE, values=("7", "5"), in_blocks=3)
    programs = tuple(
        TrialResult(
            Trial(LaunchConfig((64, 1, 1), (4, 1, 1), 0, LaunchSource.PROGRAM), own_memory=True, number=n),
            result(races=(race,)).results[0].races,
        )
        for n in (1, 4)
    )
    report = merged(REPORT, evolve(result(), results=programs), {})
    (finding,) = report.findings
    seen = finding.observation
    assert seen is not None
    often = "(126 thread pairs; in 3 blocks; one read 5, the other wrote 7)"
    assert seen.told == f"seen on {seen.device} in launches 1 and 4 of the program {often}"
    assert seen.told in finding.message
    guessed = merged(REPORT, result(races=(race,)), {}).findings[0]
    assert guessed.observation is not None
    assert guessed.observation.told.endswith("with a launch that the source does not tell")


def test_accesses_that_leave_their_buffer_for_another_race_with_nothing():
    here, there = (evolve(RACE, place=Place(Space.GLOBAL, name, 8)) for name in ("a", "b"))
    first, second = (result(races=(race,)).results[0].races for race in (here, there))
    both = both_orders(first, second)
    assert not both.races
    assert any("leave their buffer" in text for text in both.not_covered)
    assert both_orders(first, first).races == (here,)
    assert both_orders(first, evolve(second, races=())).races == (here,)


SUSPICION = suspicion(Status.POSSIBLE)
SUSPECTED = evolve(REPORT, findings=(SUSPICION,))


def runs(*made: tuple[bool, str | None]) -> CheckResult:
    """Of runs in which both places ran; whether each was to show the suspicion, and how it ended early."""
    pair = places_of(SUSPICION)
    (plain,) = result().results
    results = (
        TrialResult(
            evolve(plain.trial, shows=frozenset({pair} if meant else ()), scalars={"n": 7}),
            evolve(plain.races, failure=failure),
        )
        for meant, failure in made
    )
    return evolve(result(), results=tuple(results))


def test_a_suspicion_whose_own_run_came_to_its_end_says_with_what_it_was_made():
    (found,) = merged(SUSPECTED, runs((False, None), (True, None)), {}).findings
    assert found.status is Status.NOT_OBSERVED
    assert "not seen on CPU emulator with `n` == 7, which proves nothing" in found.message


def test_a_suspicion_whose_own_run_was_cut_is_not_judged_by_another_and_says_so():
    after = merged(SUSPECTED, runs((False, None), (True, "the deadline")), {})
    assert after.findings == SUSPECTED.findings
    told = "line 3 was not seen on CPU emulator: the run that was to show it did not come to its end"
    assert any(told in note for note in after.notes), after.notes


def test_a_suspicion_whose_own_run_was_not_made_in_time_says_so():
    after = merged(SUSPECTED, evolve(runs((False, None)), left=1), {})
    assert after.findings == SUSPECTED.findings
    assert any("there was no time for the run that was to show it" in note for note in after.notes)


def test_a_suspicion_for_which_no_run_was_meant_says_why():
    untried = {places_of(SUSPICION): "8 runs are made at most"}
    after = merged(SUSPECTED, evolve(runs((False, None)), untried=untried), {})
    assert after.findings == SUSPECTED.findings
    assert any("line 3 was not seen on CPU emulator: 8 runs are made at most" in note for note in after.notes)
