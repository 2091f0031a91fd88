"""The GPU's detector on an emulated card against the emulator's own, fixture by fixture.

Both execute the same launches: the one as instrumented PTX with the detector of the GPU, the other with its
own checks. They must show the same faults, costs in banks and results, and races in the same kernels. Of many
racing pairs of a word the GPU's detector may name some; it must not name others (``docs/dynamic.md``).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve, field, frozen

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from emulated_card import emulated_engine
from fixture_cases import FIXTURES, cases
from toolkit import needs_nvcc

from cuda_lsp.config import Settings
from cuda_lsp.confirm import CheckOptions, job_for
from cuda_lsp.dynamic.check import Engines, check
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
from cuda_lsp.dynamic.job import EngineKind
from cuda_lsp.dynamic.runs import Detail, Engine, KernelRun, RunOutcome, SeenRace, SiteKind
from cuda_lsp.server.analysis.documents import return_memory
from cuda_lsp.static.analyze import Analyzer

pytestmark = needs_nvcc
MOST_BLOCKS = 2
OPTIONS = CheckOptions(EngineKind.EMULATOR, watch_all=True, all_blocks=False)

Races = dict[tuple[int, int], SeenRace]


@pytest.fixture(autouse=True, scope="module")
def room():
    """What earlier tests of this process left behind is not needed beside two engines."""
    gc.collect()
    return_memory()


@pytest.fixture(autouse=True)
def caches(own_cache, shared_cache):
    """Both are of all tests."""


def on_card(run: KernelRun, backwards: bool = False) -> RunOutcome:
    """The blocks to check, and no others."""
    engine = emulated_engine(find_toolkit(), backwards)
    engine.card.only = run.blocks
    engine.keep_results = True
    return engine.run(run, lambda stage: None)


@frozen
class BothEngines:
    """Runs each launch on both, and keeps what differs. ``change``: of each run."""

    change: Callable[[KernelRun], KernelRun] = lambda run: run
    most_blocks: int = MOST_BLOCKS
    emulator: EmulatorEngine = field(factory=lambda: EmulatorEngine(keep_results=True))
    differences: list[str] = field(factory=list[str])
    device = "both"
    usable = True

    def run(self, request: KernelRun, progress: Callable[[str], None]) -> RunOutcome:
        x, y, z = request.launch.grid or (1, 1, 1)
        blocks = request.blocks or tuple(range(x * y * z))
        if not self.emulator.translated(request.ptx, request.entry).grid_wide:
            blocks = blocks[: self.most_blocks]
        request = self.change(evolve(request, blocks=blocks, deadline=100.0))
        mine, theirs = self.emulator.run(request, progress), on_card(request)
        assert theirs.failure is None, theirs.failure
        races = {race.sites: race for race in theirs.races}
        if mine.races:
            races |= {race.sites: race for race in on_card(request, backwards=True).races}
        self.compare(request, mine, theirs, races)
        return mine

    def foresee(self, request: KernelRun) -> None:
        """Nothing is made ahead of its run."""

    def compare(self, request: KernelRun, mine: RunOutcome, theirs: RunOutcome, races: Races) -> None:
        def differ(what: str, a: object, b: object) -> None:
            if a != b:
                self.differences.append(f"{request.entry} {what}: {a} on the emulator, {b} on the card")

        differ("racy", bool(mine.races), bool(races))
        differ("races that are none", [], sorted(set(races) - {race.sites for race in mine.races}))
        for race in mine.races:
            if race.sites in races:
                differ("place", race.place.array, races[race.sites].place.array)
        differ("faults", {(f.site, f.count) for f in mine.faults}, {(f.site, f.count) for f in theirs.faults})
        accesses = {n for n, site in enumerate(request.sites) if site.kind is SiteKind.ACCESS}
        watched = accesses if request.watch is None else accesses & request.watch
        if request.races:
            differ("executed", mine.executed & watched, theirs.executed & watched)
        if not mine.races and not racy(self.emulator, request):
            differ("banks", costs(mine), costs(theirs))
            same = all(np.array_equal(mine.results[n], theirs.results[n]) for n in mine.results)
            differ("results", True, same)


def racy(engine: EmulatorEngine, request: KernelRun) -> bool:
    """Then what is computed, and who runs together, depends on the schedule."""
    return not request.races and bool(engine.run(evolve(request, races=True), lambda stage: None).races)


def costs(outcome: RunOutcome) -> set[tuple[int, ...]]:
    return {(b.site, b.executions, b.wavefronts, b.ideal, b.worst_ways) for b in outcome.banks}


@frozen
class Chosen(Engines):
    both: BothEngines

    def choose(self, kind: EngineKind, nvcc: Path | None = None) -> tuple[Engine, tuple[str, ...]]:
        return self.both, ()


def compared(
    path: Path,
    text: str,
    only: str = "",
    change: Callable[[KernelRun], KernelRun] = lambda run: run,
    most_blocks: int = MOST_BLOCKS,
) -> list[str]:
    analyzer, both = Analyzer(Settings()), BothEngines(change, most_blocks)
    try:
        for kernel in analyzer.update(path, text).kernels:
            if only and kernel.name != only:
                continue
            program = analyzer.kernel(path, kernel.name)
            assert program is not None
            job = job_for(path, text, program, kernel, Settings(), OPTIONS)
            result = check(evolve(job, trials=job.trials[:2]), Chosen(both), lambda stage: None)
            assert result.problem is None, (result.problem, result.errors)
    finally:
        analyzer.shutdown()
    return both.differences


# Each shows something else: a race in a loop, with atomics, of warps, in two dimensions; and correct kernels.
CASES = [c for c in cases() if c.name in ("figure1", "figure1-without-A", "histogram", "histogram-without-A",
         "scan-without-B", "stencil", "transpose")]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_fixtures_show_the_same_on_both(case) -> None:
    assert compared(case.path, case.text) == []


LABELLED = [
    ("matrices", "tile_of_the_next_warp"), ("matrices", "lanes_read_their_tile_at_once"),
    ("atomics", "counter_not_ready"), ("barriers", "neighbour_unordered"), ("global", "words_over_bytes"),
    ("groups", "grid_in_two_phases"),
    ("locks", "spin_lock_of_one_thread"), ("locks", "lock_not_taken"), ("locks", "lock_freed_too_early"),
    ("locks", "standard_atomics_beside_a_plain_store"), ("locks", "lock_in_shared_without_a_fence"),
    ("mbarriers", "mbarrier_completes_copies"), ("groups", "tile_inside_tile"),
    ("widths", "slots_of_two_widths"), ("widths", "upper_half_by_itself"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "kernel"), LABELLED)
def test_labelled_kernels_show_the_same_on_both(file: str, kernel: str) -> None:
    path = FIXTURES / "labelled" / f"{file}.cu"
    assert compared(path, path.read_text(), kernel) == []


ALL_BLOCKS = (
    ("locks", "last_block_but_one"), ("locks", "first_block_instead_of_last"),
    ("locks", "grid_barrier_that_does_not_wait"), ("groups", "block_sync_for_the_grid"),
)  # fmt: skip


@pytest.mark.parametrize(("file", "kernel"), ALL_BLOCKS)
def test_blocks_that_hand_over_show_the_same_on_both(file: str, kernel: str) -> None:
    path = FIXTURES / "labelled" / f"{file}.cu"
    assert compared(path, path.read_text(), kernel, most_blocks=8) == []


def test_words_that_race_are_flagged_on_both() -> None:
    case = next(c for c in cases() if c.name == "figure1-without-A")
    words: list[set[int]] = []

    def flags(run: KernelRun) -> KernelRun:
        run = evolve(run, detail=Detail.FLAGS)
        if run.races:
            outcomes = (EmulatorEngine(keep_results=True).run(run, lambda stage: None), on_card(run))
            words.extend({flag.place.offset for flag in outcome.flags} for outcome in outcomes)
        return run

    assert compared(case.path, case.text, change=flags) == []
    mine, theirs = words[:2]
    assert theirs and theirs <= mine


def test_sites_that_were_proved_are_not_watched_on_either() -> None:
    case = next(c for c in cases() if c.name == "histogram-without-A")

    def pruned(run: KernelRun) -> KernelRun:
        half = frozenset(n for n, site in enumerate(run.sites) if n % 2 or site.kind is not SiteKind.ACCESS)
        return evolve(run, watch=half) if run.races else run

    assert compared(case.path, case.text, change=pruned) == []


BEYOND = """
__global__ void beyond(int* out, int far) {
    __shared__ int s[64];
    s[threadIdx.x] = far;
    __syncthreads();
    if (threadIdx.x > 59) s[threadIdx.x + far] = 1;
    out[threadIdx.x] = s[threadIdx.x];
}
int main() { int* out; cudaMalloc(&out, 256); beyond<<<1, 64>>>(out, 64); }
"""


def test_what_misses_shared_memory_is_told_whatever_is_watched(tmp_path: Path) -> None:
    assert compared(tmp_path / "beyond.cu", BEYOND) == []
