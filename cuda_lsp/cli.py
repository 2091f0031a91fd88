"""The command line: ``cuda-lsp serve · check · run · explain · doctor · clean``.

Only argument handling lives here; heavy rooms are imported inside the commands, so that
``cuda-lsp --version`` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuda_lsp import __version__
from cuda_lsp.batch.asked import Asked
from cuda_lsp.batch.limits import FILE_MEMORY_MB, FILE_S, LEAST_MEMORY_MB, FileLimits
from cuda_lsp.batch.pool import prepare
from cuda_lsp.batch.sources import NoSource, sources
from cuda_lsp.model import CODES, Code, Dim3, FileReport, Severity, ToolError
from cuda_lsp.report.output import STYLES, print_reports

if TYPE_CHECKING:
    from cuda_lsp.config import Settings
    from cuda_lsp.confirm import CheckOptions
    from cuda_lsp.confirm_files import Planned
    from cuda_lsp.confirm_program import ProgramOptions

FOUND, BROKEN = 1, 2
INTERRUPTED = 130  # as shells tell of who was ended by Ctrl-C
_FAIL_ON = {"error": Severity.ERROR, "warning": Severity.WARNING, "information": Severity.INFORMATION}


class _Failure(click.ClickException):
    """The tool could not do its work: one line, exit code 2."""

    exit_code = BROKEN


def _extents(context: click.Context, option: click.Parameter, text: str | None) -> Dim3 | None:
    """Up to three positive numbers."""
    del context
    if text is None:
        return None
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise _Failure(f"{option.opts[0]} wants up to three positive numbers like 16,16 — not {text!r}")
    x, y, z = [*numbers, 1, 1][:3]
    return (x, y, z)


def _overrides(**values: Any) -> dict[str, Any]:
    """Settings given on the command line."""
    return {key: value for key, value in values.items() if value is not None and value != ()}


_COMMON = (
    click.option("--format", "style", type=click.Choice(STYLES), default=STYLES[0]),
    click.option(
        "--block-dim", callback=_extents, metavar="X[,Y[,Z]]",
        help="Threads of a block; overrides launches in the source.",
    ),
    click.option(
        "--grid-dim", callback=_extents, metavar="X[,Y[,Z]]",
        help="Blocks of the grid; overrides launches in the source.",
    ),
    click.option(
        "-I", "include_dirs", multiple=True, type=click.Path(path_type=Path), help="Add a folder of headers."
    ),
    click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro."),
    click.option("--arch", metavar="sm_NN", help="Target architecture."),
    click.option("--fail-on", type=click.Choice([*_FAIL_ON, "never"]), default="warning", show_default=True),
    click.option("--config", type=click.Path(path_type=Path, exists=True), help="Settings file."),
)  # fmt: skip


def _common(command: Callable[..., None]) -> Callable[..., None]:
    """The options that ``check`` and ``run`` share; settings among them come as further arguments."""
    for option in reversed(_COMMON):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cuda-lsp")
def main() -> None:
    """Find data races and bank conflicts in CUDA kernels."""


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@_common
@click.option("--banks", type=click.IntRange(1, 32), help="Shared-memory banks (16: compute capability 1.x).")
@click.option("--solver/--no-solver", default=True, help="Prove with Z3 what enumeration leaves open.")
@click.option("-v", "--verbose", is_flag=True, help="List race-free kernels with other findings too.")
@click.option(
    "-j", "--jobs", type=click.IntRange(1), envvar="CUDA_LSP_JOBS", show_envvar=True,
    help="Files at once; by default as many as there are processors.",
)  # fmt: skip
@click.option(
    "--deadline", metavar="SECONDS", type=click.FloatRange(1), default=FILE_S, show_default=True,
    envvar="CUDA_LSP_DEADLINE", show_envvar=True, help="Processor time that one file may take.",
)  # fmt: skip
@click.option(
    "--memory", metavar="MB", type=click.IntRange(LEAST_MEMORY_MB), default=FILE_MEMORY_MB, show_default=True,
    envvar="CUDA_LSP_MEMORY", show_envvar=True, help="Memory that one file may take.",
)  # fmt: skip
@click.option("--cache/--no-cache", default=True, help="Take what earlier runs found where nothing changed.")
@click.option(
    "--dynamic",
    type=click.Choice(["off", "emulator", "gpu"]),
    default="off",
    help="Then run every kernel instrumented, to confirm what was found.",
)
def check(
    paths: tuple[Path, ...],
    style: str,
    banks: int | None,
    fail_on: str,
    solver: bool,
    config: Path | None,
    verbose: bool,
    jobs: int | None,
    deadline: float,
    memory: int,
    cache: bool,
    dynamic: str,
    **given: Any,
) -> None:
    """Check files (of folders all that hold kernels), and headers with kernels that they include.

    Each file is analysed in a process of its own: what crashes or hangs there costs that file, and is told.

    Exit code 0: nothing at or above --fail-on; 1: findings; 2: the tool could not do its work.
    """
    overrides = _overrides(**given)
    asked = Asked(overrides, config, solver)
    files = _sources(paths)
    limits = FileLimits(deadline, memory << 20)
    try:
        if dynamic != "off":
            prepare()
            from cuda_lsp.confirm import CheckOptions
            from cuda_lsp.confirm_files import planned
            from cuda_lsp.dynamic.job import EngineKind

            plan = planned(files, asked, CheckOptions(EngineKind(dynamic)), jobs, limits)
            _finish(*_run_planned(plan), style, verbose, fail_on)
        else:
            from cuda_lsp.batch.check import checking

            with checking(files, asked, jobs, limits, cache=cache) as reports:
                _finish(reports, True, style, verbose, fail_on)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS]")
@_common
@click.option("--program", is_flag=True, help="Build and run the whole program; ARGUMENTS are its own.")
@click.option(
    "--with", "sources", multiple=True, type=click.Path(path_type=Path), help="Another source of the program."
)
@click.option("--link", multiple=True, metavar="OPTION", help="An option of the program's link step (-lz).")
@click.option(
    "--build", metavar="COMMAND", help="Run the program that this command builds (make, cmake --build build)."
)
@click.option("--run", "start", metavar="COMMAND", help="How the built program is started (./app 10).")
@click.option("--kernel", "-k", "names", multiple=True, help="Only this kernel; may be given several times.")
@click.option("--engine", type=click.Choice(["auto", "gpu", "emulator"]), default="auto", show_default=True)
@click.option("--detail", type=click.Choice(["pairs", "flags"]), default="pairs", show_default=True)
@click.option("--all-blocks", is_flag=True, help="Check every block, not a sample.")
@click.option("--watch-all", is_flag=True, help="Watch accesses that are proved race-free too.")
@click.option("--seed", type=int, default=0, help="Seed of the buffers' contents.")
@click.option(
    "--deadline", type=float, help="Seconds a kernel (default 10) or the program (default 120) may run."
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

    Each kernel runs on its own with made-up data, or (--program, --build) as its program launches it. Exit
    codes as for check.
    """
    prepare()
    from cuda_lsp.confirm import CheckOptions, is_wanted
    from cuda_lsp.confirm_files import planned_alone
    from cuda_lsp.dynamic.job import EngineKind
    from cuda_lsp.dynamic.runs import Detail

    overrides = _overrides(**given)
    options = CheckOptions(
        EngineKind(engine), Detail(detail), all_blocks, watch_all, seed, deadline or 10.0, nvcc
    )
    if program or build or start:
        from cuda_lsp.confirm_program import ProgramOptions

        if build and (sources or link):
            raise _Failure("--build says what the program is made of: leave --with and --link out")
        how = ProgramOptions(  # what is not given, the settings say
            arguments, sources, link, Path.cwd(), deadline or 120.0, build or "", start or ""
        )
        _finish(*_run_program(file, Asked(overrides, config), options, how, names), style, True, fail_on)
        return
    if arguments or sources or link:
        raise _Failure("arguments and further sources are for --program")

    plan = planned_alone(_sources([file])[0], Asked(overrides, config), options, names)
    known = [kernel.name for report in plan.reports for kernel in report.kernels]
    lost = any(_unusable(error, report) for report in plan.reports for error in report.errors)
    if not lost and names and not any(is_wanted(kernel, names) for kernel in known):
        raise _Failure(f"no kernel {' or '.join(names)} in {file}; it has {', '.join(known) or 'none'}")
    _finish(*_run_planned(plan), style, True, fail_on)


def _run_planned(plan: Planned) -> tuple[Sequence[FileReport], bool]:
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
            raise _Failure(str(error)) from None
        with console.status("", spinner="dots") as status:  # its thread must not be there before
            reports, result = check_program(files, settings, runner, options, how, names, status.update)
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
        raise _Failure("--run needs to know what the program is made of: add --build, or set build-command")
    return evolve(
        how,
        arguments=how.arguments or known.arguments,
        sources=how.sources or known.sources,
        link=how.link or known.link,
    )


def _finish(coming: Iterable[FileReport], ran: bool, style: str, verbose: bool, fail_on: str) -> None:
    """Print, and exit with what the reports ask for."""
    reports = print_reports(coming, style, verbose=verbose)
    if not ran or any(_unusable(error, report) for report in reports for error in report.errors):
        sys.exit(BROKEN)
    limit = _FAIL_ON.get(fail_on)
    found = limit and any(f.effective_severity <= limit for report in reports for f in report.findings)
    sys.exit(FOUND if found else 0)


def _sources(paths: Iterable[Path]) -> list[Path]:
    try:
        return sources(paths)
    except NoSource as error:
        raise _Failure(str(error)) from None


def _unusable(error: ToolError, report: FileReport) -> bool:
    return error.range is None and (not report.kernels or error.severity is Severity.ERROR)


@main.command()
@click.option("--log-file", type=click.Path(path_type=Path), help="Write the log there instead of to stderr.")
@click.option("--log-level", type=click.Choice(["error", "warning", "info", "debug"]), default="warning")
@click.option("--stdio", is_flag=True, help="Accepted for editors that pass it; stdio is the transport.")
def serve(log_file: Path | None, log_level: str, stdio: bool) -> None:
    """Speak the Language Server Protocol over stdin and stdout."""
    del stdio
    from cuda_lsp.server import serve as run_server

    sys.exit(run_server(log_file=log_file, log_level=log_level))


@main.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Say what a diagnostic code means, why it matters and how to mend it."""
    if code is None:
        for info in CODES.values():
            click.echo(f"{info.code.value:24} {info.title}")
        return
    try:
        known = Code(code)
    except ValueError:
        raise _Failure(f"no code {code!r}; `cuda-lsp explain` lists them") from None
    from rich.console import Console
    from rich.markdown import Markdown

    from cuda_lsp.report.explain import page

    Console().print(Markdown(page(known)))


@main.command()
def clean() -> None:
    """Empty the cache: results of check, precompiled headers, what dynamic checks have compiled."""
    from cuda_lsp.cache_folder import cache_folder, clean

    try:
        freed = clean()
    except OSError as error:
        raise _Failure(f"{error.filename}: {error.strerror}") from None
    click.echo(f"{cache_folder()}: {freed / 1e6:.1f} MB removed")


@main.command()
def doctor() -> None:
    """Say what works here and what is missing."""
    from rich.console import Console
    from rich.markup import escape

    from cuda_lsp.doctor import examine

    healthy = True
    console = Console(highlight=False)
    for result in examine():
        mark, style = ("✓", "green") if result.works else ("✗", "red") if result.required else ("–", "yellow")
        console.print(f"[{style}]{mark}[/] [bold]{result.name}[/]: {escape(result.message)}", soft_wrap=True)
        healthy = healthy and (result.works or not result.required)
    sys.exit(0 if healthy else BROKEN)
