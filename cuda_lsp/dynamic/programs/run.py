"""A check of a whole program: built, run to its end with its own inputs, its kernels checked on the way.

On a GPU the program runs in a process of its own (``gpu_process``). Without one it is linked with the
stand-in runtime and its kernels are emulated here. Runs in the process that may be killed (``worker``): what
goes wrong becomes a ``problem`` or ``errors`` of the result.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from attrs import evolve

from cuda_lsp.dynamic.compilation.compile import CompiledModule, CompileError, Interrupted
from cuda_lsp.dynamic.compilation.toolkit import Toolkit, ToolkitMissing, find_toolkit
from cuda_lsp.dynamic.emulator.engine import DEVICE, remarks
from cuda_lsp.dynamic.emulator.heap import Heap
from cuda_lsp.dynamic.gpu.engine import device_architecture
from cuda_lsp.dynamic.job import EngineKind
from cuda_lsp.dynamic.programs.attended import Start, attend
from cuda_lsp.dynamic.programs.build import build, told_by
from cuda_lsp.dynamic.programs.channel import answered
from cuda_lsp.dynamic.programs.device_code import DeviceCode, DeviceCompiler, linked
from cuda_lsp.dynamic.programs.function_tables import table_name, told_functions
from cuda_lsp.dynamic.programs.instances import taken_for_one
from cuda_lsp.dynamic.programs.job import ProgramJob, ProgramResult
from cuda_lsp.dynamic.programs.on_emulator import Host
from cuda_lsp.dynamic.programs.on_gpu import Functions, run_on_gpu
from cuda_lsp.dynamic.programs.scripts.run import run_script
from cuda_lsp.dynamic.ptx.names import of_library
from cuda_lsp.dynamic.runs import EngineUnavailable

Progress = Callable[[str], None]

Modules = tuple[tuple[CompiledModule, CompiledModule], ...]

_LEAST = 1.0  # seconds of a program's run


def check_program(job: ProgramJob, progress: Progress) -> ProgramResult:
    """Build and run one program."""
    started = time.perf_counter()
    try:
        result = _checked(job, progress)
    except CompileError as error:
        result = ProgramResult(errors=error.errors, problem=f"{job.path.name} does not build")
    except (ToolkitMissing, EngineUnavailable, Interrupted) as error:
        result = ProgramResult(problem=str(error))
    except OSError as error:
        result = ProgramResult(problem=f"{error.filename or job.cache}: {os.strerror(error.errno or 0)}")
    return evolve(result, seconds=time.perf_counter() - started)


def _checked(job: ProgramJob, progress: Progress) -> ProgramResult:
    toolkit = find_toolkit(job.nvcc)
    end = min(job.until, time.monotonic() + job.deadline)
    architecture, note = _gpu(job.engine)
    if job.interpreter:
        result = run_script(job, toolkit, architecture, end, progress)
        return evolve(result, notes=(*result.notes, *note))
    progress("building the program")
    try:
        program, codes = _built(job, toolkit, architecture, end)
        modules = tuple(code.pair for code in codes)
    except Interrupted as interrupted:
        raise Interrupted(
            f"{job.path.name} was not built within its deadline of {job.deadline:g} s: raise --deadline"
        ) from interrupted
    job = evolve(job, deadline=min(job.running, max(_LEAST, end - time.monotonic())))
    if architecture:
        functions = _functions(job, program, codes)
        result = run_on_gpu(job, program, modules, toolkit, progress, functions=functions)
    else:
        result = _emulated(job, program, modules, progress)
    headers = {path: digest for plain, _ in modules for path, digest in plain.headers.items()}
    runs = tuple(
        evolve(run, checks=tuple(evolve(check, headers=headers) for check in run.checks))
        for run in result.runs
    )
    return evolve(result, runs=runs, notes=(*result.notes, *note, *taken_for_one(modules)))


def _built(
    job: ProgramJob, toolkit: Toolkit, architecture: int, end: float
) -> tuple[Path, tuple[DeviceCode, ...]]:
    """The program, and both builds of each of its sources, by the time ``end`` (monotonic)."""
    compiler = DeviceCompiler(job.options.arch, toolkit, job.cache, end)
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        made = pool.submit(build, job, toolkit, architecture, end)
        units = (unit for unit in job.units if unit.device)
        pending = [compiler.start(pool, unit, job.text_of(unit)) for unit in units]
        codes = linked(pending)
        program = made.result()
    telling = {u for code in codes for u in code.units if told_functions(code.pair[1].module)}
    if architecture and telling:
        numbers = frozenset(k for k, unit in enumerate(job.units) if unit in telling)
        program = build(job, toolkit, architecture, end, telling=numbers)
    return program, codes


def _functions(job: ProgramJob, program: Path, codes: Sequence[DeviceCode]) -> tuple[Functions, ...]:
    """Where the addresses of functions are told that the program has, for each device code."""
    told, numbers = told_by(program), {unit: number for number, unit in enumerate(job.units)}
    found: list[Functions] = []
    for code in codes:
        places: dict[str, tuple[str, int]] = {}
        for unit in code.units:
            table = of_library(table_name(numbers[unit]), unit.library)
            for place, name in enumerate(told.get(numbers[unit], ())):
                function = name in code.pair[1].module.functions
                places[name if function else of_library(name, unit.library)] = (table, place)
        found.append(places)
    return tuple(found)


def runs_on_gpu(engine: EngineKind) -> bool:
    """Whether a program with this choice of engine will run on a GPU here."""
    try:
        return _gpu(engine)[0] > 0
    except EngineUnavailable:
        return True  # it will not run, and needs no cap


def _gpu(engine: EngineKind) -> tuple[int, tuple[str, ...]]:
    """The architecture of the GPU to use, 0: the emulator, and why. Raises EngineUnavailable."""
    if engine is EngineKind.EMULATOR:
        return 0, ()
    try:
        return device_architecture(), ()
    except EngineUnavailable as problem:
        if engine is EngineKind.GPU:
            raise
        return 0, (f"checked on the CPU: {problem}",)


def _emulated(job: ProgramJob, program: Path, modules: Modules, progress: Progress) -> ProgramResult:
    heap = Heap(job.memory)
    try:
        host = Host(heap, modules, job.kernels, job.wanted, job.detail, job.all_blocks)
        result = _run(job, program, host, progress)
        return evolve(result, notes=(*result.notes, *remarks()))
    finally:
        heap.close()


def _run(job: ProgramJob, program: Path, host: Host, progress: Progress) -> ProgramResult:
    ended = attend(job, host, Start(job.command, str(program)), partial(answered, host), progress)
    return ProgramResult(
        status=ended.status,
        output=ended.output,
        runs=host.runs(),
        launches=host.launches,
        device=DEVICE,
        problem=ended.problem,
        notes=tuple(f"{host.instances.name_of(entry)}: {why}" for entry, why in host.problems.items()),
    )
