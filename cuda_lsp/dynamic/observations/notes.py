"""What a reader must know of a run besides its findings: shares, failures, what was not covered."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from cuda_lsp.dynamic.job import CheckResult, TrialResult
from cuda_lsp.dynamic.observations.places import (
    line_of,
    made_up,
    source_name,
    thread_words,
    triple,
    waiting_places,
)
from cuda_lsp.dynamic.runs import PtxSite, SeenFlag, SiteKind

_BLOCKS_TOLD = 3  # of those that wait


def notes(result: CheckResult) -> Iterator[str]:
    """What a reader must know of the run: shares, failures, what was not covered."""
    if result.problem:
        yield result.problem
    if result.left:
        yield f"{result.left} further {'run was' if result.left == 1 else 'runs were'} not made in time"
    for number, trial in enumerate(result.results):
        outcome = trial.races
        if outcome.failure:
            under = f", in the run for {trial.trial.why}" if number and trial.trial.why else ""
            first, *waits = ending(result, trial)
            yield f"{first}{under}"
            yield from waits
        if outcome.blocks_checked < outcome.blocks_total:
            yield f"{outcome.blocks_checked} of {outcome.blocks_total} blocks were checked dynamically"
        if outcome.flags:
            yield _flagged(outcome.flags)
        nowhere = sum(any(result.sites[k].site is None for k in race.sites) for race in outcome.races)
        if nowhere:
            yield f"{nowhere} pairs of instructions raced that stand in no file of yours"
        yield from _not_carried_out(result, trial)
        yield from outcome.not_covered
        for opcode in outcome.unwatched:
            yield with_lines(f"{opcode}: memory it touches is not watched", (opcode,), result.sites)
    yield from result.notes


def _not_carried_out(result: CheckResult, trial: TrialResult) -> Iterator[str]:
    """Accesses that may be wrong only because the arguments are made up; not aligned ones of both builds."""
    outcomes = (trial.races, result.sites), (trial.banks, result.bank_sites)
    faults = [(f, sites[f.site]) for run, sites in outcomes if run is not None for f in run.faults]
    faults = [(f, site) for f, site in faults if made_up(f, trial)]
    outside = {line_of(s) for f, s in faults if not f.misaligned and f in trial.races.faults}
    astray = {line_of(s) for f, s in faults if f.misaligned}
    for which, lines in (("outside the buffers of the check", outside), ("that are not aligned", astray)):
        if lines:
            told = ", ".join(map(str, sorted(lines)))
            yield f"accesses {which} were not carried out (line {told})"


def _flagged(flags: Sequence[SeenFlag]) -> str:
    """How many words raced, and an example."""
    one = min(flags, key=lambda flag: (flag.block, flag.place.offset))
    where = f"byte {one.place.offset} of {source_name(one.place.array or 'memory')}"
    first, second = sorted(one.warps)
    who = f"in warp {first}" if first == second else f"between warps {first} and {second}"
    count = len({flag.place for flag in flags})
    return (
        f"{count} words raced, as {where} {who} of block {one.block} (`flags` does not tell the statements)"
    )


def with_lines(text: str, opcodes: Container[str], sites: Sequence[PtxSite]) -> str:
    """A sentence about instructions of these names, with the lines where they stand."""
    named = [s for s in sites if s.kind in (SiteKind.OTHER, SiteKind.IMAGE) and s.opcode in opcodes]
    lines = sorted({line_of(site) for site in named if site.site is not None})
    return f"{text} (line {', '.join(map(str, lines))})" if lines else text


def ending(result: CheckResult, trial: TrialResult) -> Iterator[str]:
    """Why a run ended early, then where the threads of each block were that did not come to an end."""
    launch = trial.trial.launch
    yield f"{result.device}: {trial.races.failure}"
    for stuck in trial.races.stuck[:_BLOCKS_TOLD]:
        places = [
            f"{count} at line {line_of(site)} ({thread_words(triple(one, launch.block), None)}, `{text}`)"
            if count
            else f"some at line {line_of(site)} (`{text}`)"
            for site, text, count, one in waiting_places(stuck, result)
        ]
        left = [f"{stuck.exited} have returned"] if stuck.exited else []
        block = triple(stuck.block, launch.grid or (1, 1, 1))
        if places or left:
            counted = any(count for _, count, _ in stuck.waiting)
            of = f" of block ({block[0]},{block[1]},{block[2]})" if counted or left else ""
            yield f"threads{of}: {'; '.join([*places, *left])}"
