"""One dynamic check from text to outcomes: compile, find sites, make inputs, run, run again where it pays.

Runs in the process that may be killed (``worker``). What goes wrong becomes a ``problem`` or ``errors`` of
the result, never an exception, except for mistakes of ours.
"""

from __future__ import annotations

import enum
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from math import prod
from pathlib import Path

from attrs import define, evolve, field

from cuda_lsp.dynamic.compilation.compile import (
    NEWER,
    RELOCATABLE,
    CompiledModule,
    CompileError,
    CompileOptions,
    Interrupted,
    compile_module,
    plan_ahead,
)
from cuda_lsp.dynamic.compilation.releases import with_releases
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import Toolkit, ToolkitMissing, find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine, remarks
from cuda_lsp.dynamic.inputs import arguments, first_sizes, grown, with_grid
from cuda_lsp.dynamic.instrumentation.detector import made_meanwhile
from cuda_lsp.dynamic.instrumentation.synchronisation import meets_in_clusters
from cuda_lsp.dynamic.job import (
    CheckJob,
    CheckResult,
    EngineKind,
    Places,
    Preparation,
    Trial,
    TrialResult,
)
from cuda_lsp.dynamic.observations.notes import with_lines
from cuda_lsp.dynamic.ptx.directives import cluster_of
from cuda_lsp.dynamic.ptx.names import comparable
from cuda_lsp.dynamic.runs import Engine, EngineUnavailable, KernelRun, Level, PtxSite, RunOutcome
from cuda_lsp.dynamic.sampling import first_and_last_blocks, spread_blocks
from cuda_lsp.hardware import architecture_number
from cuda_lsp.model import Dim3, LaunchConfig

Progress = Callable[[str], None]

PRUNED = "not watched for races, being proved to have none (`watch-all` watches everything)"
LONE = (
    "each block ran as a cluster of its own: how many blocks a cluster has is read from `__cluster_dims__`,"
    " not from the launch; `--program` runs launches as they are"
)
_GROWTHS = 4
_MOST_SOUGHT, _SOUGHT = 8, 0.25  # further runs for what was not seen, and their share of the deadline
_WHOLE = 1 << 16  # threads of a launch that the emulator runs whole where a sample showed nothing
_FEWER = 3  # times fewer blocks are worth a run of their own, where one of all does not end in time …
_BEFORE = 0.6  # … which then has this share of its time
_LEAST, _SHARE = 0.1, 0.9  # seconds of a run; of what is left: judging what was seen takes some


class _Look(enum.Enum):
    """Which blocks are checked."""

    SAMPLE = "some, and those of witnesses"
    ALL = "all"
    ENOUGH = "those that it takes to see a race"


class Engines:
    """The engines of this process, made on first use."""

    def __init__(self) -> None:
        self._emulator = EmulatorEngine()
        self._gpu: Engine | None = None
        self._no_gpu: str | None = None

    @property
    def spent(self) -> bool:
        """The GPU hung or faulted: this process can run nothing more on it."""
        return self._gpu is not None and not self._gpu.usable

    def choose(self, kind: EngineKind, nvcc: Path | None = None) -> tuple[Engine, tuple[str, ...]]:
        """The engine, and notes for people. ``nvcc``: for what the engine itself builds.

        Raises EngineUnavailable.
        """
        if kind is EngineKind.EMULATOR:
            return self._emulator, ()
        if self._gpu is None and self._no_gpu is None:
            from cuda_lsp.dynamic.gpu.engine import open_engine

            try:
                self._gpu = open_engine(nvcc)
            except EngineUnavailable as problem:
                self._no_gpu = str(problem)
        if self._gpu is not None:
            return self._gpu, ()
        if kind is EngineKind.GPU:
            raise EngineUnavailable(self._no_gpu or "there is no GPU")
        return self._emulator, (f"checked on the CPU: {self._no_gpu}",)


def check(
    job: CheckJob,
    engines: Engines,
    progress: Progress,
    chosen: Callable[[Engine], None] = lambda engine: None,
    seen: Callable[[CheckResult], None] = lambda result: None,
) -> CheckResult:
    """Check one kernel, within its deadline. ``chosen`` is told the engine before anything runs on it,
    ``seen`` what is known after each run."""
    started = time.perf_counter()
    try:
        result = _Check(job, engines, progress, chosen, seen).result()
    except CompileError as error:
        result = CheckResult(job.kernel, errors=error.errors, problem=f"{job.kernel} does not compile")
    except (ToolkitMissing, EngineUnavailable, Interrupted) as error:
        result = CheckResult(job.kernel, problem=str(error))
    except OSError as error:
        where = error.filename or job.cache
        result = CheckResult(job.kernel, problem=f"{where}: {os.strerror(error.errno or 0)}")
    return evolve(result, seconds=time.perf_counter() - started)


@define
class _Check:
    """One check. ``end``: monotonic, when it has to be over; compiling counts."""

    job: CheckJob
    engines: Engines
    progress: Progress
    chosen: Callable[[Engine], None]
    seen: Callable[[CheckResult], None]
    end: float = field(init=False)
    _large: tuple[LaunchConfig, Mapping[str, int], dict[str, int]] | None = None

    def __attrs_post_init__(self) -> None:
        self.end = min(self.job.until, time.monotonic() + self.job.deadline)

    @property
    def left(self) -> float:
        """Seconds."""
        return self.end - time.monotonic()

    def result(self) -> CheckResult:
        """What was seen. Raises what ``check`` tells."""
        job = self.job
        toolkit = find_toolkit(job.nvcc)
        self.progress("compiling")
        with ThreadPoolExecutor(2) as aside:  # while a GPU's context is made, and the first build runs
            plain, later = [aside.submit(self._compiled, level, toolkit) for level in (Level.O0, Level.O3)]
            _begin_detector(job.engine, architecture_number(job.options.arch), toolkit)
            engine, notes = self.engines.choose(job.engine, job.nvcc)
            self.chosen(engine)
            try:
                return self._run_both(engine, notes, plain.result(), later)
            except Interrupted as interrupted:
                late = f"was not compiled within its deadline of {job.deadline:g} s: raise --deadline"
                raise Interrupted(f"{job.kernel} {late}") from interrupted

    def _compiled(self, level: Level, toolkit: Toolkit) -> CompiledModule:
        job = self.job

        def made(options: CompileOptions) -> CompiledModule:
            seconds = max(0.1, self.left)
            return compile_module(job.path, job.text, options, level, toolkit, job.cache, seconds=seconds)

        try:
            return made(job.options)
        except CompileError as error:
            if error.needs_newer and job.options.arch != NEWER:
                return made(evolve(job.options, arch=NEWER))
            if not error.needs_linking:
                raise
        return made(evolve(job.options, extra=(*job.options.extra, RELOCATABLE)))

    def _run_both(
        self, engine: Engine, notes: tuple[str, ...], plain: CompiledModule, later: Future[CompiledModule]
    ) -> CheckResult:
        job, entry = self.job, _entry(self.job, plain)
        plain, sites = with_releases(plain, sites_of(plain, entry), job.releases)
        if plain.arch != job.options.arch:
            notes = (*notes, f"compiled for {plain.arch}: the file uses what {job.options.arch} lacks")
        if not job.watch:
            notes = (*notes, PRUNED)
        elif (watch := watched(job, sites)) is not None:
            notes = (*notes, f"{len(sites) - len(watch)} accesses are {PRUNED}")
        if cluster_of(plain.module.entries[entry]) is None and meets_in_clusters(plain.module, entry):
            notes = (*notes, LONE)
        result = CheckResult(
            job.kernel, engine.device, (), sites, notes=notes, headers=plain.headers, untried=job.untried
        )
        self._foresee_banks(engine, later)
        for number, trial in enumerate(job.trials):
            if number and (self.left <= 0 or not engine.usable):
                return evolve(result, left=len(job.trials) - number)
            share = _SHARE if number == len(job.trials) - 1 else _SHARE / 2
            narrowed = self._narrowed(engine, plain, entry, trial)
            first = _BEFORE * share if narrowed else share
            outcome = self._run(engine, plain, entry, sites, trial, share=first)
            if outcome.blocks_total == 0 and not narrowed:
                raise MemoryError
            result = evolve(result, results=(*result.results, TrialResult(trial, outcome)))
            for fewer in narrowed if outcome.failure else ():
                self.seen(result)
                if unseen(trial.shows or (), result) and self.left > 0:
                    result = self._further(result, engine, plain, entry, fewer, share)
            self.seen(result)
        if isinstance(engine, EmulatorEngine):
            result = evolve(result, notes=(*result.notes, *remarks()))
        if not job.trials or not job.banks or not engine.usable:
            return result
        self.progress("counting bank conflicts")
        try:
            result = self._with_banks(result, engine, later.result())
        except (EngineUnavailable, Interrupted) as problem:
            told = f"bank conflicts were not counted: {problem}"
            result = evolve(result, notes=(*result.notes, told))
        self.seen(result)
        return self._sought(result, engine, plain, entry)

    def _narrowed(
        self, engine: Engine, compiled: CompiledModule, entry: str, trial: Trial
    ) -> tuple[Trial, ...]:
        """Runs of those blocks alone that can show what it is to show, and of the first of them alone.

        Both come further in the same time, and one block keeps nothing for others. None: they are not much
        fewer.
        """
        if not isinstance(engine, EmulatorEngine) or not trial.shows or not trial.enough:
            return ()
        if engine.translated(compiled.ptx, entry).grid_wide:
            return ()
        launch = with_grid(trial.launch)
        sample = None if self.job.all_blocks else _blocks(launch, trial, engine)
        count = prod(launch.grid or (1, 1, 1)) if sample is None else len(sample)
        chosen = dict.fromkeys((trial.enough, trial.enough[:1]))
        return tuple(_of(trial, few) for few in chosen if count >= _FEWER * len(few))

    def _too_large(self, engine: Engine) -> RunOutcome:
        """Of a run that took all the memory there is, of which nothing is known."""
        why = f"the kernel needs more than {self.job.memory >> 20} MiB to be emulated in so many blocks"
        return RunOutcome(engine.device, 0.0, 0, 0, failure=why)

    def _further(
        self,
        result: CheckResult,
        engine: Engine,
        compiled: CompiledModule,
        entry: str,
        trial: Trial,
        share: float,
    ) -> CheckResult:
        """With what fewer blocks show of a run that did not come to its end in time."""
        outcome = self._run(engine, compiled, entry, result.sites, trial, share=share, look=_Look.ENOUGH)
        known = {race.sites for other in result.results for race in other.races.races}
        if {race.sites for race in outcome.races} - known:
            return evolve(result, results=(*result.results, TrialResult(trial, outcome)))
        how = "did not come to its end either" if outcome.failure else "came to its end, and showed no more"
        return evolve(result, notes=(*result.notes, f"the run for {trial.why} {how}"))

    def _sought(
        self, result: CheckResult, engine: Engine, compiled: CompiledModule, entry: str
    ) -> CheckResult:
        """What is suspected and was not seen: in all blocks, with other contents and schedules."""
        job, begun, made = self.job, time.monotonic(), 0

        def goes_on() -> bool:
            spent = self.left <= 0 or time.monotonic() - begun >= _SOUGHT * job.deadline
            return not spent and engine.usable and unseen(job.suspects, result)

        def sought(
            trial: Trial, how: str, seed: int, backwards: bool = False, look: _Look = _Look.SAMPLE
        ) -> None:
            nonlocal result
            outcome = self._run(
                engine, compiled, entry, result.sites, trial, share=_SOUGHT,
                seed=seed, backwards=backwards, look=look,
            )  # fmt: skip
            known = {race.sites for other in result.results for race in other.races.races}
            if (outcome.failure is None or _is_late(outcome)) and {
                race.sites for race in outcome.races
            } - known:
                found = TrialResult(evolve(trial, why=f"{trial.why}, {how}"), outcome)
                result = evolve(result, results=(*result.results, found))

        wider = [trial for trial in job.trials if self._leaves_out(trial, engine)]
        whole = 0
        while whole < len(wider) and goes_on():
            sought(wider[whole], "with all blocks", job.seed, look=_Look.ALL)
            whole += 1
        while made < _MOST_SOUGHT and goes_on():
            trial, seed = job.trials[made % len(job.trials)], job.seed + 1 + made // len(job.trials)
            sought(trial, f"with contents of seed {seed}", seed, backwards=made % 2 == 1)
            made += 1
        told = _how_sought(whole, made, len(job.trials))
        return evolve(result, notes=(*result.notes, *told))

    def _leaves_out(self, trial: Trial, engine: Engine) -> bool:
        """Whether blocks of a launch were left out that can all be run."""
        launch = with_grid(trial.launch)
        if self.job.all_blocks or _blocks(launch, trial, engine) is None:
            return False
        x, y, z = launch.grid or (1, 1, 1)
        return not isinstance(engine, EmulatorEngine) or x * y * z * launch.threads <= _WHOLE

    def _sizes(self, trial: Trial) -> dict[str, int]:
        """Bytes of each buffer for a first attempt: as many as it took before, if it was tried."""
        first = first_sizes(self.job.parameters, trial)
        if self._large is None or self._large[:2] != (trial.launch, trial.scalars):
            return first
        return {name: max(size, self._large[2].get(name, 0)) for name, size in first.items()}

    def _foresee_banks(self, engine: Engine, later: Future[CompiledModule]) -> None:
        """While races are looked for, a GPU's code for bank conflicts is assembled."""
        job = self.job
        if not job.trials or not job.banks or isinstance(engine, EmulatorEngine):
            return

        def foresee() -> None:
            with suppress(
                CompileError, EngineUnavailable, Interrupted, OSError
            ):  # told when they are counted
                optimised = later.result()
                entry, trial = _entry(job, optimised), job.trials[0]
                request = self._request(
                    engine, optimised, entry, sites_of(optimised, entry), trial, job, True
                )
                made = arguments(job.parameters, trial, first_sizes(job.parameters, trial), job.seed)
                engine.foresee(evolve(request, arguments=made))

        threading.Thread(target=foresee, daemon=True).start()

    def _with_banks(self, result: CheckResult, engine: Engine, optimised: CompiledModule) -> CheckResult:
        entry = _entry(self.job, optimised)
        sites = sites_of(optimised, entry)
        if self.left <= 0:
            raise Interrupted("the deadline came first")
        banks = self._run(engine, optimised, entry, sites, self.job.trials[0], banks=True)
        first, *others = result.results
        return evolve(result, results=(evolve(first, banks=banks), *others), bank_sites=sites)

    def _request(
        self,
        engine: Engine,
        compiled: CompiledModule,
        entry: str,
        sites: tuple[PtxSite, ...],
        trial: Trial,
        job: CheckJob,
        banks: bool,
        backwards: bool = False,
        look: _Look = _Look.SAMPLE,
    ) -> KernelRun:
        """What the engine is asked to do, still without arguments and deadline."""
        trial = _in_clusters(trial, cluster_of(compiled.module.entries[entry]))
        launch = with_grid(trial.launch)
        if trial.spare_shared:
            launch = evolve(launch, dynamic_shared=trial.spare_shared)
        return KernelRun(
            ptx=compiled.ptx,
            entry=entry,
            launch=launch,
            arguments=(),
            sites=sites,
            watch=watched(job, sites),
            blocks=self._looked_at(launch, trial, engine, look),
            detail=job.detail,
            races=not banks,
            banks=banks,
            seed=job.seed,
            lock_step=job.lock_step,
            backwards=backwards,
        )

    def _looked_at(
        self, launch: LaunchConfig, trial: Trial, engine: Engine, look: _Look
    ) -> tuple[int, ...] | None:
        if look is _Look.ENOUGH:
            return trial.enough
        return None if self.job.all_blocks or look is _Look.ALL else _blocks(launch, trial, engine)

    def _run(
        self,
        engine: Engine,
        compiled: CompiledModule,
        entry: str,
        sites: tuple[PtxSite, ...],
        trial: Trial,
        banks: bool = False,
        share: float = _SHARE,
        seed: int | None = None,
        backwards: bool = False,
        look: _Look = _Look.SAMPLE,
    ) -> RunOutcome:
        job = self.job if seed is None else evolve(self.job, seed=seed)
        request = self._request(engine, compiled, entry, sites, trial, job, banks, backwards, look)
        trial = evolve(trial, launch=request.launch)
        sizes = self._sizes(trial)
        outcome: RunOutcome | None = None
        for _ in range(_GROWTHS):
            before = outcome
            seconds = min(job.running, max(_LEAST, self.left * share))
            try:
                made = arguments(job.parameters, trial, sizes, job.seed)
                outcome = engine.run(evolve(request, arguments=made, deadline=seconds), self.progress)
            except MemoryError:  # of the emulator
                outcome = before or self._too_large(engine)
                break
            except EngineUnavailable as problem:
                raise EngineUnavailable(with_lines(str(problem), problem.opcodes, sites)) from problem
            larger = grown(sizes, outcome)
            if _is_late(outcome):  # another one would not come as far, and the one before came further
                outcome = _came_further(before, outcome)
                break
            if larger is None or self.left <= 0:
                break
            sizes = larger
            self._large = trial.launch, trial.scalars, sizes
        assert outcome is not None
        return evolve(outcome, results={})


def _of(trial: Trial, blocks: tuple[int, ...]) -> Trial:
    """The same run of these blocks alone."""
    numbers = f"block{'s' * (len(blocks) > 1)} {', '.join(map(str, blocks))}"
    return evolve(trial, enough=blocks, why=f"{trial.why}, {numbers} alone")


def _is_late(outcome: RunOutcome) -> bool:
    """Whether a run did not come to its end in time."""
    return outcome.failure is not None and any(stuck.late for stuck in outcome.stuck)


def _came_further(before: RunOutcome | None, late: RunOutcome) -> RunOutcome:
    """What two runs showed of which the second did not end in time, its buffers being larger."""
    if before is None:
        return late
    known = {race.sites for race in before.races}
    more = tuple(race for race in late.races if race.sites not in known)
    return evolve(before, races=(*before.races, *more), executed=before.executed | late.executed)


def _how_sought(whole: int, made: int, trials: int) -> tuple[str, ...]:
    """What is said of further runs: ``whole`` of all blocks, ``made`` with further seeds."""
    if not whole + made:
        return ()
    seeds = 1 + (made - 1) // trials if made else 0
    hows = [f"{whole} of them of all blocks"] * bool(whole)
    hows += [f"with {seeds} further seed{'s' if seeds > 1 else ''}"] * bool(made)
    runs = f"{whole + made} further run{'s' if whole + made > 1 else ''}"
    return (f"what was suspected and not seen was sought in {', '.join((runs, *hows))}",)


def _in_clusters(trial: Trial, cluster: Dim3 | None) -> Trial:
    """A guessed grid consists of whole clusters."""
    if cluster is None or trial.launch.grid is not None:
        return trial
    x, y, z = with_grid(trial.launch).grid or (1, 1, 1)
    grid = (-(-x // cluster[0]) * cluster[0], y * cluster[1], z * cluster[2])
    return evolve(trial, launch=evolve(trial.launch, grid=grid))


def prepare(what: Preparation) -> None:
    """Begin what a first check would wait for: nvcc's plans, the GPU's driver, the detector's build."""

    def begin() -> None:
        # What is amiss is told by the check that needs it.
        with suppress(EngineUnavailable, ToolkitMissing, Interrupted, OSError):
            toolkit, wanted = find_toolkit(what.nvcc), architecture_number(what.options.arch)
            _begin_detector(what.engine, wanted, toolkit)
            plan_ahead(what.path, what.options, toolkit, what.cache)
            if what.engine is EngineKind.EMULATOR:
                return
            from cuda_lsp.dynamic.gpu.engine import device_architecture

            own = device_architecture()
            if not wanted or own < wanted:
                made_meanwhile(toolkit, own)

    threading.Thread(target=begin, daemon=True).start()


def _begin_detector(engine: EngineKind, architecture: int | None, toolkit: Toolkit) -> None:
    """A GPU will need it: on most machines for the architecture that the code is compiled for."""
    if engine is EngineKind.EMULATOR or not architecture:
        return
    from cuda_lsp.dynamic.gpu.engine import library

    with suppress(EngineUnavailable):  # told when the engine is opened
        library()
        made_meanwhile(toolkit, architecture)


def _entry(job: CheckJob, compiled: CompiledModule) -> str:
    """The entry of the kernel; of a template the instantiation that was analysed."""
    entries = compiled.entries_of(job.range, job.base_name)
    wanted = comparable(job.mangled)
    same = [entry for entry in entries if comparable(entry) == wanted]
    if same:
        return same[0]
    if not entries or job.mangled:
        raise EngineUnavailable(
            f"nvcc makes no code for {job.kernel}: a template needs an explicit instantiation to run"
        )
    return entries[0]


def _blocks(launch: LaunchConfig, trial: Trial, engine: Engine) -> tuple[int, ...] | None:
    sampled = sampled_blocks(launch.grid or (1, 1, 1), launch.threads, engine)
    return tuple(sorted({*sampled, *trial.blocks})) if sampled is not None else None


def watched(job: CheckJob, sites: tuple[PtxSite, ...]) -> frozenset[int] | None:
    """Numbers of the sites to watch for races; None: all."""
    if not job.watch:
        return frozenset()
    proved = {n for n, s in enumerate(sites) if s.site is not None and s.site.range in job.proved}
    return frozenset(range(len(sites))) - proved if proved else None


def unseen(suspects: Iterable[Places], result: CheckResult) -> bool:
    """Whether some pair of places was not seen to race."""
    raced = {
        frozenset(site.range.start.line for k in race.sites if (site := result.sites[k].site) is not None)
        for trial in result.results
        for race in trial.races.races
    }
    return any(frozenset(place.start.line for place in pair) not in raced for pair in suspects)


def sampled_blocks(grid: Dim3, threads: int, engine: Engine) -> tuple[int, ...] | None:
    """Which blocks are checked; None: all. The emulator executes no others, the GPU runs all."""
    if isinstance(engine, EmulatorEngine):
        return first_and_last_blocks(grid, threads)
    x, y, z = grid
    return spread_blocks(x * y * z)
