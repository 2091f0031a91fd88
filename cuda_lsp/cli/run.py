"""``cuda-lsp run``: kernels, or a whole program, instrumented."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuda_lsp.batch.asked import Asked
from cuda_lsp.batch.pool import prepare
from cuda_lsp.batch.sources import NoSource
from cuda_lsp.cli.common import Failure, common, finish, overrides, sources_of, unusable
from cuda_lsp.model import FileReport, ToolError
from cuda_lsp.report.output import Output

if TYPE_CHECKING:
    from cuda_lsp.config import Settings
    from cuda_lsp.confirm import CheckOptions
    from cuda_lsp.confirm_files import Planned
    from cuda_lsp.confirm_program import ProgramOptions


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS]")
@common
@click.option("--program", is_flag=True, help="Build and run the whole program; ARGUMENTS are its own.")
@click.option(
    "--with", "sources", multiple=True, type=click.Path(path_type=Path), help="Another source of the program."
)
@click.option("--link", multiple=True, metavar="OPTION", help="An option of the program's link step (-lz).")
@click.option(
    "--build",
    metavar="COMMAND",
    help="Run what this command builds (make, cmake --build build); with --python, its libraries.",
)
@click.option("--run", "start", metavar="COMMAND", help="How the built program is started (./app 10).")
@click.option("--python", is_flag=True, help="Run a Python program; what it compiles at run time is checked.")
@click.option(
    "--interpreter",
    metavar="PATH",
    help="The Python that runs it (default: the one cuda-lsp is installed in).",
)
@click.option("--first", is_flag=True, help="Of the programs that --run starts, check only the first.")
@click.option("--kernel", "-k", "names", multiple=True, help="Only this kernel; may be given several times.")
@click.option("--engine", type=click.Choice(["auto", "gpu", "emulator"]), default="auto", show_default=True)
@click.option("--detail", type=click.Choice(["pairs", "flags"]), default="pairs", show_default=True)
@click.option("--all-blocks", is_flag=True, help="Check every block, not a sample.")
@click.option("--watch-all", is_flag=True, help="Watch accesses that are proved race-free too.")
@click.option("--seed", type=int, default=0, help="Seed of the buffers' contents.")
@click.option(
    "--deadline",
    type=float,
    help="Seconds for each kernel (default 20) or the program (default 120), compilation included.",
)
@click.option("--nvcc", type=click.Path(path_type=Path), help="The CUDA compiler to use.")
def run(
    file: Path,
    arguments: tuple[str, ...],
    program: bool,
    sources: tuple[Path, ...],
    link: tuple[str, ...],
    build: str | None,
    start: str | None,
    python: bool,
    interpreter: str | None,
    first: bool,
    names: tuple[str, ...],
    engine: str,
    style: str,
    detail: str,
    all_blocks: bool,
    watch_all: bool,
    seed: int,
    deadline: float | None,
    nvcc: Path | None,
    fail_on: str,
    config: Path | None,
    **given: Any,
) -> None:
    """Run kernels instrumented, on the GPU or the CPU emulator, and report what was seen.

    Each kernel runs on its own with made-up data, or (--program, --build, --python) as its program launches
    it. Exit codes as for check.
    """
    prepare()
    from cuda_lsp.confirm import CheckOptions
    from cuda_lsp.confirm_files import planned_alone
    from cuda_lsp.dynamic.job import EngineKind, is_wanted
    from cuda_lsp.dynamic.runs import Detail

    asked, output = Asked(overrides(**given), config), Output(style, verbose=True)
    options = CheckOptions(
        EngineKind(engine), Detail(detail), all_blocks, watch_all, seed, deadline or 20.0, nvcc
    )
    if python:
        from cuda_lsp.confirm_program import ProgramOptions

        if program or start or sources or link:
            raise Failure("--python runs the file as it is: leave --program and its options out")
        how = ProgramOptions(arguments, folder=Path.cwd(), deadline=deadline or 120.0, build=build or "")
        finish(*_run_script(file, asked, options, interpreter or sys.executable, how, names), output, fail_on)
        return
    if interpreter:
        raise Failure("--interpreter is for --python")
    if program or build or start:
        from cuda_lsp.confirm_program import ProgramOptions

        if build and (sources or link):
            raise Failure("--build says what the program is made of: leave --with and --link out")
        how = ProgramOptions(  # what is not given, the settings say
            arguments, sources, link, Path.cwd(), deadline or 120.0, build or "", start or "", first=first
        )
        finish(*_run_program(file, asked, options, how, names), output, fail_on)
        return
    if arguments or sources or link:
        raise Failure("arguments and further sources are for --program")

    plan = planned_alone(sources_of([file])[0], asked, options, names)
    known = [kernel.name for report in plan.reports for kernel in report.kernels]
    lost = any(unusable(error, report) for report in plan.reports for error in report.errors)
    if not lost and names and not any(is_wanted(kernel, names) for kernel in known):
        raise Failure(f"no kernel {' or '.join(names)} in {file}; it has {', '.join(known) or 'none'}")
    finish(*reports_of_runs(plan), output, fail_on)


def reports_of_runs(plan: Planned) -> tuple[Sequence[FileReport], bool]:
    """Reports after all runs, with a line of progress where somebody watches; whether all could be made."""
    from rich.console import Console

    from cuda_lsp.confirm_files import run_planned
    from cuda_lsp.dynamic.runner import Runner

    runner = Runner()
    try:
        with Console(stderr=True, highlight=False).status("", spinner="dots") as status:
            return run_planned(
                plan, runner, status.update, printed=lambda said: click.echo(said, err=True, nl=False)
            )
    finally:
        runner.close()


def _run_program(
    file: Path, asked: Asked, options: CheckOptions, how: ProgramOptions, names: Sequence[str]
) -> tuple[Sequence[FileReport], bool]:
    """Both analyses on a program, and whether it ran; what it prints goes to stderr, beside the report."""
    from attrs import evolve
    from rich.console import Console

    from cuda_lsp.confirm_files import program_sources
    from cuda_lsp.confirm_program import build_job, check_program, outcome_of
    from cuda_lsp.dynamic.runner import Runner

    runner = Runner()
    console = Console(stderr=True, highlight=False)
    try:
        settings, _ = asked.settings(file)  # problems are told by its analysis
        how = _configured(settings, how)
        if how.build:
            with console.status("", spinner="dots") as status:
                how = evolve(how, built=runner.run_build(build_job(file, how, options), status.update))
        if how.built is not None and how.built.problem is not None:
            return [FileReport(file, errors=(ToolError(how.built.problem),))], False
        try:
            files = program_sources(file, asked, options, how)
        except NoSource as error:
            raise Failure(str(error)) from None
        with console.status("", spinner="dots") as status:  # its thread must not be there before
            reports, result = check_program(files, settings, runner, options, how, names, status.update)
    finally:
        runner.close()
    click.echo(result.output, err=True, nl=False)
    if result.status is not None:
        click.echo(f"{outcome_of(file.name, result)}, {result.seconds:.1f} s", err=True)
    return reports, result.problem is None


def _run_script(
    file: Path,
    asked: Asked,
    options: CheckOptions,
    interpreter: str,
    how: ProgramOptions,
    names: Sequence[str],
) -> tuple[Sequence[FileReport], bool]:
    """What a Python program's kernels did, and whether it ran; what it prints goes to stderr."""
    from attrs import evolve
    from rich.console import Console

    from cuda_lsp.confirm_program import build_job, check_script, outcome_of
    from cuda_lsp.dynamic.runner import Runner

    if not file.is_file():
        raise Failure(f"{file} is no file")
    found = shutil.which(interpreter)
    if found is None:
        raise Failure(f"--interpreter {interpreter}: there is no such program")
    settings, _ = asked.settings(file)
    runner, console = Runner(), Console(stderr=True, highlight=False)
    try:
        if how.build:
            with console.status("", spinner="dots") as status:
                job = evolve(build_job(file, how, options), libraries=True)
                built = runner.run_build(job, status.update)
            if built.problem is not None:
                return [FileReport(file, errors=(ToolError(built.problem),))], False
        with console.status("", spinner="dots") as status:
            reports, result = check_script(file, found, settings, runner, options, how, names, status.update)
    finally:
        runner.close()
    click.echo(result.output, err=True, nl=False)
    if result.status is not None:
        click.echo(f"{outcome_of(file.name, result)}, {result.seconds:.1f} s", err=True)
    return reports, result.problem is None


def _configured(settings: Settings, how: ProgramOptions) -> ProgramOptions:
    """The program with what the settings say of it."""
    from attrs import evolve

    from cuda_lsp.confirm_program import options_of

    known = options_of(settings)
    if not how.build and known.build and not (how.sources or how.link):
        how = evolve(how, build=known.build, run=how.run or known.run, folder=known.folder)
    if how.run and not how.build:
        raise Failure("--run needs to know what the program is made of: add --build, or set build-command")
    return evolve(
        how,
        arguments=how.arguments or known.arguments,
        sources=how.sources or known.sources,
        link=how.link or known.link,
    )
