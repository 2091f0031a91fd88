"""One dynamic check from text to outcomes: compile, find sites, make inputs, run, run again where it pays.

Runs in the process that may be killed (``worker``). What goes wrong becomes a ``problem`` or ``errors`` of
the result, never an exception, except for mistakes of ours.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from attrs import evolve

from cuda_lsp.dynamic.compilation.compile import CompiledModule, CompileError, Interrupted, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import Toolkit, ToolkitMissing, find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
from cuda_lsp.dynamic.inputs import arguments, first_sizes, grown, with_grid
from cuda_lsp.dynamic.instrumentation.detector import made_meanwhile
from cuda_lsp.dynamic.job import CheckJob, CheckResult, EngineKind, Trial, TrialResult
from cuda_lsp.dynamic.observations.notes import with_lines
from cuda_lsp.dynamic.ptx.names import comparable
from cuda_lsp.dynamic.runs import Engine, EngineUnavailable, KernelRun, Level, PtxSite, RunOutcome
from cuda_lsp.dynamic.sampling import first_and_last_blocks, spread_blocks
from cuda_lsp.hardware import architecture_number
from cuda_lsp.model import Dim3, LaunchConfig

Progress = Callable[[str], None]

PRUNED = "not watched for races, being proved to have none (--watch-all watches everything)"
_GROWTHS = 4


class Engines:
    """The engines of this process, made on first use."""

    def __init__(self) -> None:
        self._emulator = EmulatorEngine()
        self._gpu: Engine | None = None
        self._no_gpu: str | None = None

    @property
    def spent(self) -> bool:
        """The GPU hung or faulted: this process can run nothing more on it."""
        return not getattr(self._gpu, "usable", True)

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
) -> CheckResult:
    """Check one kernel. ``chosen`` is told the engine before anything runs on it."""
    started = time.perf_counter()
    try:
        result = _check(job, engines, progress, chosen)
    except CompileError as error:
        result = CheckResult(job.kernel, errors=error.errors, problem=f"{job.kernel} does not compile")
    except (ToolkitMissing, EngineUnavailable, Interrupted) as error:
        result = CheckResult(job.kernel, problem=str(error))
    except OSError as error:
        where = error.filename or job.cache
        result = CheckResult(job.kernel, problem=f"{where}: {os.strerror(error.errno or 0)}")
    return evolve(result, seconds=time.perf_counter() - started)


def _check(
    job: CheckJob, engines: Engines, progress: Progress, chosen: Callable[[Engine], None]
) -> CheckResult:
    toolkit = find_toolkit(job.nvcc)
    progress("compiling")
    with ThreadPoolExecutor(2) as aside:  # while a GPU's context is made, and the first build runs
        plain, later = [aside.submit(_compiled, job, level, toolkit) for level in (Level.O0, Level.O3)]
        _begin_detector(job, toolkit)
        engine, notes = engines.choose(job.engine, job.nvcc)
        chosen(engine)
        return _run_both(job, engine, notes, plain.result(), later, progress)


def _begin_detector(job: CheckJob, toolkit: Toolkit) -> None:
    """A GPU will need it: on most machines for the architecture that the code is compiled for."""
    architecture = architecture_number(job.options.arch)
    if job.engine is not EngineKind.EMULATOR and architecture and find_spec("pycuda") is not None:
        made_meanwhile(toolkit, architecture)


def _run_both(
    job: CheckJob,
    engine: Engine,
    notes: tuple[str, ...],
    plain: CompiledModule,
    later: Future[CompiledModule],
    progress: Progress,
) -> CheckResult:
    entry = _entry(job, plain)
    sites = sites_of(plain, entry)
    results = [
        TrialResult(trial, _run(job, engine, plain, entry, sites, trial, progress)) for trial in job.trials
    ]
    if not job.watch:
        notes = (*notes, PRUNED)
    elif (chosen := watched(job, sites)) is not None:
        notes = (*notes, f"{len(sites) - len(chosen)} accesses are {PRUNED}")
    bank_sites: tuple[PtxSite, ...] = ()
    if results:
        progress("counting bank conflicts")
        optimised = later.result()
        bank_entry = _entry(job, optimised)
        bank_sites = sites_of(optimised, bank_entry)
        try:
            banks = _run(job, engine, optimised, bank_entry, bank_sites, job.trials[0], progress, banks=True)
            results[0] = evolve(results[0], banks=banks)
        except EngineUnavailable as problem:
            notes = (*notes, f"bank conflicts were not counted: {problem}")
    return CheckResult(
        job.kernel, engine.device, tuple(results), sites, bank_sites, notes=notes, headers=plain.headers
    )


def _compiled(job: CheckJob, level: Level, toolkit: Toolkit) -> CompiledModule:
    return compile_module(job.path, job.text, job.options, level, toolkit, job.cache)


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


def _run(
    job: CheckJob,
    engine: Engine,
    compiled: CompiledModule,
    entry: str,
    sites: tuple[PtxSite, ...],
    trial: Trial,
    progress: Progress,
    banks: bool = False,
) -> RunOutcome:
    launch = with_grid(trial.launch)
    if trial.spare_shared:
        launch = evolve(launch, dynamic_shared=trial.spare_shared)
    sizes = first_sizes(job.parameters, trial)
    request = KernelRun(
        ptx=compiled.ptx,
        entry=entry,
        launch=launch,
        arguments=(),
        sites=sites,
        watch=watched(job, sites),
        blocks=None if job.all_blocks else _blocks(launch, trial, engine),
        detail=job.detail,
        races=not banks,
        banks=banks,
        deadline=job.deadline,
        seed=job.seed,
        lock_step=job.lock_step,
    )
    outcome: RunOutcome | None = None
    for _ in range(_GROWTHS):
        made = arguments(job.parameters, trial, sizes, job.seed)
        try:
            outcome = engine.run(evolve(request, arguments=made), progress)
        except EngineUnavailable as problem:
            raise EngineUnavailable(with_lines(str(problem), problem.opcodes, sites)) from problem
        larger = grown(sizes, outcome)
        if larger is None:
            break
        sizes = larger
    assert outcome is not None
    return evolve(outcome, results={})


def _blocks(launch: LaunchConfig, trial: Trial, engine: Engine) -> tuple[int, ...] | None:
    sampled = sampled_blocks(launch.grid or (1, 1, 1), launch.threads, engine)
    return tuple(sorted({*sampled, *trial.blocks})) if sampled is not None else None


def watched(job: CheckJob, sites: tuple[PtxSite, ...]) -> frozenset[int] | None:
    """Numbers of the sites to watch for races; None: all."""
    if not job.watch:
        return frozenset()
    proved = {n for n, s in enumerate(sites) if s.site is not None and s.site.range in job.proved}
    return frozenset(range(len(sites))) - proved if proved else None


def sampled_blocks(grid: Dim3, threads: int, engine: Engine) -> tuple[int, ...] | None:
    """Which blocks are checked; None: all. The emulator executes no others, the GPU runs all."""
    if isinstance(engine, EmulatorEngine):
        return first_and_last_blocks(grid, threads)
    x, y, z = grid
    return spread_blocks(x * y * z)
