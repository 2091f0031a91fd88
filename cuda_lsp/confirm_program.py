"""A whole program under check: what the static side knows of its kernels goes in, new findings come out.

The counterpart of ``confirm`` (one kernel on its own) for files with ``main``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from cuda_lsp.cache_folder import cache_folder
from cuda_lsp.config import Settings
from cuda_lsp.confirm import (
    Cancelled,
    CheckOptions,
    Progress,
    chosen,
    compile_options,
    kernel_parameters,
    kernel_shapes,
    proved_free,
    runs_in_lock_step,
)
from cuda_lsp.dynamic.compilation.compile import CompileOptions
from cuda_lsp.dynamic.observations.merge import Seen, with_all
from cuda_lsp.dynamic.programs.build_command import BuildJob, Built
from cuda_lsp.dynamic.programs.job import KernelRuns, ProgramJob, ProgramKernel, ProgramResult
from cuda_lsp.dynamic.runner import Runner
from cuda_lsp.files import is_regular, read_text
from cuda_lsp.frontend.host.workspace import INCLUDE
from cuda_lsp.frontend.surroundings.units import units_of
from cuda_lsp.ir.program import Kernel
from cuda_lsp.main_function import main_line
from cuda_lsp.model import FileReport, KernelReport, ToolError, Verdict
from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.static.run_needs import lock_releases

_MOST_HEADERS = 200
_LEAST = 1.0  # seconds for which a program is worth starting
_AT_RUN_TIME = "compiled by the program as it runs: not analysed statically"


@frozen
class ProgramOptions:
    """How the program is built and called. ``folder``: where it runs; None: where its source is.

    ``build``: the project's own command, which then says what ``sources`` and ``link`` would; ``run``: the
    command that starts the program (``first``: of several only the first). ``built``: what following them
    told. ``deadline``: seconds for all of its runs.
    """

    arguments: tuple[str, ...] = ()
    sources: tuple[Path, ...] = ()
    link: tuple[str, ...] = ()
    folder: Path | None = None
    deadline: float = 120.0
    build: str = ""
    run: str = ""
    built: Built | None = None
    first: bool = False


@frozen
class Source:
    """A source of the program, what the static side found in it, and its kernels as far as they are known."""

    path: Path
    text: str
    report: FileReport
    kernels: tuple[ProgramKernel, ...] = ()


def options_of(settings: Settings) -> ProgramOptions:
    """What the settings say of the program."""
    if settings.build_command:
        folder = Path(settings.program_folder) if settings.program_folder else None
        return ProgramOptions(
            settings.program_arguments, folder=folder, build=settings.build_command, run=settings.run_command
        )
    sources = tuple(Path(source) for source in settings.program_sources)
    return ProgramOptions(settings.program_arguments, sources, settings.program_link)


def build_job(path: Path, program: ProgramOptions, options: CheckOptions) -> BuildJob:
    """What to follow before the program can be built for the check."""
    folder = program.folder or path.absolute().parent
    return BuildJob(
        path.absolute(), folder, program.build, program.run, cache_folder(), options.nvcc, first=program.first
    )


def device_units(built: Built) -> dict[Path, dict[str, Any]]:
    """The sources with kernels of a built program, and the settings that their analysis needs."""
    return {
        unit.path: {
            "include_dirs": [str(folder) for folder in unit.options.include_dirs],
            "defines": list(unit.options.defines),
            **({"std": unit.options.std} if unit.options.std else {}),
        }
        for call in built.calls
        for unit in call.made_of.units
        if unit.device
    }


def device_headers(path: Path, text: str, folders: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Headers with kernels that a source includes by ``#include "…"``, also through others."""
    found: list[Path] = []
    seen = {path.absolute()}
    pending = [(path.absolute(), text)]
    while pending and len(seen) < _MOST_HEADERS:
        where, content = pending.pop()
        for name in INCLUDE.findall(content):
            header = next(
                (f for f in (folder / name for folder in (where.parent, *folders)) if is_regular(f)), None
            )
            if header is None or header.resolve() in seen:
                continue
            seen.add(header.resolve())
            try:
                inner = read_text(header)
            except OSError:  # too large: the compiler will have its say
                continue
            pending.append((header, inner))
            if "__global__" in inner:
                found.append(header.resolve())
    return tuple(found)


def source_of(options: CheckOptions, analyzer: Analyzer, text: str, report: FileReport) -> Source:
    """A source as the analyzer knows it."""
    settings = analyzer.settings_of(report.path)
    options = chosen(options, settings)
    known = ((found, analyzer.kernel(report.path, found.name)) for found in report.kernels)
    kernels = (_kernel(found, kernel, settings, options) for found, kernel in known if kernel is not None)
    return Source(report.path, text, report, tuple(kernels))


def program_jobs(
    files: Sequence[Source],
    settings: Settings,
    options: CheckOptions,
    program: ProgramOptions,
    wanted: Sequence[str] = (),
) -> list[ProgramJob]:
    """What to run: each call of the program, or programs. ``wanted``: names of kernels; none: all."""
    calls = program.built.calls if program.built is not None else (None,)
    return [program_job(files, settings, options, evolve(program, built=call), wanted) for call in calls]


def program_job(
    files: Sequence[Source],
    settings: Settings,
    options: CheckOptions,
    program: ProgramOptions,
    wanted: Sequence[str] = (),
) -> ProgramJob:
    """What to run; ``files[0]`` has ``main``, or it is one of the sources that the build tells."""
    first, options = _main_of(files, program.built), chosen(options, settings)
    kernels = [kernel for file in files for kernel in file.kernels]
    job = evolve(
        _bare_job(first.path, compile_options(settings, first.path), settings, options, program, wanted),
        text=first.text,
        kernels=tuple(kernels),
        sources=program.sources,
        link=program.link,
    )
    built = program.built
    if built is None:
        return job
    return evolve(
        job,
        built=built.made_of.units,
        link=built.made_of.link,
        libraries=built.made_of.libraries,
        needs=built.made_of.needs,
        called=built.called,
        arguments=(*built.arguments, *program.arguments),
        folder=built.folder or job.folder,
        environment=built.environment,
        input=built.input,
    )


def _bare_job(
    path: Path,
    compiled: CompileOptions,
    settings: Settings,
    options: CheckOptions,
    program: ProgramOptions,
    wanted: Sequence[str],
) -> ProgramJob:
    """What is asked of any program: where, with what, on what and for how long it runs."""
    return ProgramJob(
        path=path,
        text="",
        kernels=(),
        options=compiled,
        cache=cache_folder(),
        folder=program.folder or path.absolute().parent,
        arguments=program.arguments,
        wanted=tuple(wanted),
        engine=options.engine,
        nvcc=options.nvcc,
        detail=options.detail,
        all_blocks=options.all_blocks,
        deadline=program.deadline,
        host_memory=(settings.program_memory or 0) << 20,
        gpu_memory=(settings.gpu_memory or 0) << 20,
    )


def _main_of(files: Sequence[Source], built: Built | None) -> Source:
    """The source by whose name the program goes: the first that it is made of."""
    made_of = {unit.path.resolve() for unit in built.made_of.units} if built is not None else set[Path]()
    return next((file for file in files if file.path.resolve() in made_of), files[0])


def file_jobs(
    opened: Sequence[tuple[FileReport, str]],
    options: CheckOptions,
    program: ProgramOptions,
    analyzer: Analyzer,
) -> list[ProgramJob]:
    """What to run for the program of the first of these open files, with kernels as the analyzer knows them.

    Of the others those count that it is made of. A header belongs to the nearest source that has ``main``.
    """
    known = {report.path.resolve(): source_of(options, analyzer, text, report) for report, text in opened}
    clicked = next(iter(known.values()))
    main = clicked if program.built is not None else _program_of(clicked, known)
    settings = analyzer.settings_of(main.path)
    folders = compile_options(settings, main.path).include_dirs
    headers = device_headers(main.path, main.text, folders)
    sources = (main, clicked, *(known[header] for header in headers if header in known))
    found = {source.path.resolve(): source for source in sources}
    return program_jobs([*found.values()], settings, options, program)


def _program_of(file: Source, known: Mapping[Path, Source]) -> Source:
    """The source whose program a file is in: the nearest with ``main`` that includes it; else itself."""
    if main_line(file.text) is not None:
        return file
    on_disk = (Source(unit.path, unit.text, FileReport(unit.path, ())) for unit in units_of(file.path))
    found = (known.get(source.path.resolve(), source) for source in on_disk)
    return next((source for source in found if main_line(source.text) is not None), file)


def run_all(
    runner: Runner,
    jobs: Sequence[ProgramJob],
    progress: Progress = lambda stage: None,
    cancelled: Cancelled = lambda: False,
) -> ProgramResult:
    """What all of them did, one after the other, within the deadline of one. Raises CheckCancelled."""
    end = time.monotonic() + jobs[0].deadline
    results: list[ProgramResult] = []
    for number, job in enumerate(jobs):
        left = end - time.monotonic()
        if number and left < _LEAST:
            late = f"{len(jobs) - number} calls were not run in time: raise --deadline"
            results.append(ProgramResult(problem=late))
            break
        results.append(runner.run_program(evolve(job, deadline=left), progress, cancelled))
    return reduce(ProgramResult.with_more, results)


def check_program(
    files: Sequence[Source],
    settings: Settings,
    runner: Runner,
    options: CheckOptions,
    program: ProgramOptions,
    wanted: Sequence[str],
    progress: Progress = lambda stage: None,
    cancelled: Cancelled = lambda: False,
) -> tuple[list[FileReport], ProgramResult]:
    """The files' reports after the program ran. Raises CheckCancelled."""
    jobs = program_jobs(files, settings, options, program, wanted)
    result = with_notes(run_all(runner, jobs, progress, cancelled), program)
    reports = with_result([file.report for file in files], result)
    reports[0] = evolve(reports[0], errors=(*reports[0].errors, *errors_of(result)))
    return reports, result


def check_script(
    path: Path,
    interpreter: str,
    settings: Settings,
    runner: Runner,
    options: CheckOptions,
    program: ProgramOptions,
    wanted: Sequence[str],
    progress: Progress = lambda stage: None,
    cancelled: Cancelled = lambda: False,
) -> tuple[list[FileReport], ProgramResult]:
    """What the kernels of a Python program did that it compiles at run time. Raises CheckCancelled."""
    compiled = CompileOptions(arch=compile_options(settings, path).arch)
    job = _bare_job(path.absolute(), compiled, settings, chosen(options, settings), program, wanted)
    job = evolve(job, interpreter=interpreter)
    result = runner.run_program(job, progress, cancelled)
    reports = [FileReport(path.absolute())]
    for run in _alike_together(result.runs):
        if run.kernel is not None:
            reports = _with_stranger(reports, run, run.kernel, _AT_RUN_TIME, analysed=False)
    idle = [ToolError("it launched no kernel: nothing was checked")] if not result.launches else []
    reports[0] = evolve(reports[0], errors=(*reports[0].errors, *errors_of(result), *idle))
    return reports, result


def _alike_together(runs: Sequence[KernelRuns]) -> Sequence[KernelRuns]:
    """Kernels of one name at one place are one: a text that is compiled again, or with other values in it."""
    found: dict[object, KernelRuns] = {}
    for run in runs:
        key = run.name, run.kernel and (run.kernel.range.path, run.kernel.range.start.line)
        found[key] = found[key].with_more(run) if key in found else run
    return tuple(found.values())


def with_result(reports: Sequence[FileReport], result: ProgramResult) -> list[FileReport]:
    """The reports with what was seen of their kernels; kernels that none of them knows get one."""
    merged = [
        evolve(report, kernels=tuple(with_all(k, *seen_of(k, report, result)) for k in report.kernels))
        for report in reports
    ]
    for run in result.runs:
        if run.kernel is not None and not any(_stands_in(run, k) for r in reports for k in r.kernels):
            merged = _with_stranger(merged, run, run.kernel)
    return merged


def seen_of(kernel: KernelReport, file: FileReport, result: ProgramResult) -> tuple[list[Seen], list[str]]:
    """What a program's run says of one kernel of a file: results, and what became of its launches."""
    runs = [run for run in result.runs if _stands_in(run, kernel)]
    own = [run for run in runs if run.kernel is not None and run.kernel.analysed == kernel.name]
    others = [run for run in runs if run.kernel is not None and not run.kernel.analysed]
    first = kernel.name == next(k.name for k in file.kernels if k.range == kernel.range)
    seen = [Seen(check, run.kernel.shapes) for run in own if run.kernel for check in run.checks]
    seen += [Seen(check, {}, run.name, first) for run in others for check in run.checks]
    told = [run.told for run in own]
    if not own and result.launches:
        told.append(f"the program did not launch {kernel.name}")
    return seen, [*told, *(run.told for run in others if first)]


def _stands_in(run: KernelRuns, kernel: KernelReport) -> bool:
    """Whether it is an instance of this kernel."""
    known = run.kernel
    return (
        known is not None
        and known.range.path.absolute() == kernel.range.path.absolute()
        and known.range.start == kernel.range.start
    )


def _with_stranger(
    reports: list[FileReport],
    run: KernelRuns,
    kernel: ProgramKernel,
    why: str = "the static analysis does not know this kernel",
    analysed: bool = True,
) -> list[FileReport]:
    """A kernel that the static side could not read (``why``) is told all the same."""
    unknown = KernelReport(run.name, kernel.range, Verdict.UNDECIDED, (why,))
    made = with_all(unknown, [Seen(check, {}, analysed=analysed) for check in run.checks], [run.told])
    path = kernel.range.path
    if not any(report.path.absolute() == path for report in reports):
        return [*reports, FileReport(path, (made,))]
    return [
        evolve(report, kernels=(*report.kernels, made)) if report.path.absolute() == path else report
        for report in reports
    ]


def errors_of(result: ProgramResult) -> Sequence[ToolError]:
    """What kept the program from running; else what there is to say besides, as of kernels not checked."""
    if result.errors:
        return result.errors
    told = [result.problem] if result.problem else []
    foreign = [run.told for run in result.runs if run.kernel is None]
    return [ToolError(text) for text in (*told, *result.notes, *foreign)]


def with_notes(result: ProgramResult, program: ProgramOptions) -> ProgramResult:
    """The result, and what there was to say of the build."""
    return evolve(result, notes=(*result.notes, *(program.built.notes if program.built else ())))


def outcome_of(name: str, result: ProgramResult) -> str:
    """How the program ended, for people."""
    return f"{name}: {result.launches} launches on {result.device}, exit status {result.status}"


def _kernel(report: KernelReport, kernel: Kernel, settings: Settings, options: CheckOptions) -> ProgramKernel:
    return ProgramKernel(
        kernel=report.name,
        base_name=report.name.split("<")[0],
        mangled=kernel.mangled,
        range=report.range,
        parameters=kernel_parameters(kernel),
        shapes=kernel_shapes(kernel),
        watch=options.watch_all or not proved_free(report),
        lock_step=runs_in_lock_step(kernel, settings),
        analysed=report.name,
        releases=lock_releases(kernel),
    )
