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
from cuda_lsp.batch.sources import SUFFIXES, NoSource, sources
from cuda_lsp.files import read_text
from cuda_lsp.model import CODES, Code, Dim3, FileReport, KernelReport, Severity, ToolError
from cuda_lsp.report.output import STYLES, print_reports

if TYPE_CHECKING:
    from cuda_lsp.config import Settings
    from cuda_lsp.confirm import CheckOptions
    from cuda_lsp.confirm_program import Analysed, ProgramOptions

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
    if dynamic == "off":
        from cuda_lsp.batch.check import checking

        try:
            with checking(files, asked, jobs, FileLimits(deadline, memory << 20), cache=cache) as reports:
                _finish(reports, True, style, verbose, fail_on)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        return
    from cuda_lsp.confirm import CheckOptions
    from cuda_lsp.dynamic.job import EngineKind

    options = CheckOptions(engine=EngineKind(dynamic))
    _finish(*_run_files(files, asked, options, lambda kernel: True), style, verbose, fail_on)


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
    from cuda_lsp.confirm import CheckOptions
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
        _finish(*_run_program(file, overrides, config, options, how, names), style, True, fail_on)
        return
    if arguments or sources or link:
        raise _Failure("arguments and further sources are for --program")

    def wanted(kernel: KernelReport) -> bool:
        return not names or kernel.name in names or kernel.name.split("<")[0] in names

    reports, ran = _run_files(_sources([file]), Asked(overrides, config), options, wanted)
    if names and not any(wanted(kernel) for report in reports for kernel in report.kernels):
        known = ", ".join(kernel.name for report in reports for kernel in report.kernels)
        raise _Failure(f"no kernel {' or '.join(names)} in {file}; it has {known or 'none'}")
    _finish(reports, ran, style, True, fail_on)


def _run_files(
    files: Sequence[Path],
    asked: Asked,
    options: CheckOptions,
    wanted: Callable[[KernelReport], bool],
) -> tuple[Sequence[FileReport], bool]:
    """Both analyses on every file, with a line of progress where somebody watches; whether all could run."""
    from rich.console import Console

    from cuda_lsp.batch.analysis import analysed_files
    from cuda_lsp.confirm import check_kernels
    from cuda_lsp.dynamic.runner import Runner

    runner = Runner()
    console = Console(stderr=True, highlight=False)
    reports: list[FileReport] = []
    ran = True
    try:
        with console.status("", spinner="dots") as status:
            for analyzer, text, report in analysed_files(files, asked):
                checked = check_kernels(
                    analyzer, report.path, text, report, runner, options, wanted, status.update,
                    printed=lambda said: click.echo(said, err=True, nl=False),
                )  # fmt: skip
                ran = ran and len(checked.errors) == len(report.errors)
                reports.append(checked)
    finally:
        runner.close()
    return reports, ran


def _run_program(
    file: Path,
    overrides: dict[str, Any],
    config: Path | None,
    options: CheckOptions,
    how: ProgramOptions,
    names: Sequence[str],
) -> tuple[Sequence[FileReport], bool]:
    """Both analyses on a program, and whether it ran; what it prints goes to stderr, beside the report."""
    from attrs import evolve
    from rich.console import Console

    from cuda_lsp.confirm_program import build_job, check_program, outcome_of
    from cuda_lsp.dynamic.runner import Runner

    runner = Runner()
    console = Console(stderr=True, highlight=False)
    try:
        with console.status("", spinner="dots") as status:
            how = _configured(file, config, how)
            if how.build:
                how = evolve(how, built=runner.run_build(build_job(file, how, options), status.update))
            if how.built is not None and how.built.problem is not None:
                return [FileReport(file, errors=(ToolError(how.built.problem),))], False
            files, settings = _program_files(file, overrides, config, how)
            reports, result = check_program(files, settings, runner, options, how, names, status.update)
    finally:
        runner.close()
    click.echo(result.output, err=True, nl=False)
    if result.status is not None:
        click.echo(f"{outcome_of(file.name, result)}, {result.seconds:.1f} s", err=True)
    return reports, result.problem is None


def _configured(file: Path, config: Path | None, how: ProgramOptions) -> ProgramOptions:
    """The program with what the settings say of it."""
    from attrs import evolve

    from cuda_lsp.confirm_program import options_of
    from cuda_lsp.settings_file import load, load_file

    settings, _ = load_file(config) if config else load(file.absolute().parent)  # problems are told later
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


def _program_files(
    file: Path, overrides: dict[str, Any], config: Path | None, how: ProgramOptions
) -> tuple[list[Analysed], Settings]:
    """The static analysis of every source and header of the program that may hold kernels."""
    from cuda_lsp.batch.analysis import analysed_files
    from cuda_lsp.confirm_program import Analysed, device_headers, device_units

    (main_file,) = _sources([file])
    flags = device_units(how.built) if how.built is not None else {}
    known = {path.resolve(): said for path, said in flags.items()}
    others = [path for path in how.sources if path.suffix in SUFFIXES]
    others += [path for path in flags if path.resolve() != file.resolve()]
    pending = {path: {**known.get(path.resolve(), {}), **overrides} for path in _sources([file, *others])}
    for source, said in list(pending.items()):
        try:
            text = read_text(source)
        except OSError:  # its analysis says so
            continue
        for header in device_headers(source, text, [Path(folder) for folder in said.get("include_dirs", ())]):
            if header != main_file.resolve():
                pending.setdefault(header, said)
    analysed: list[Analysed] = []
    settings = None
    for source, said in pending.items():
        for analyzer, text, report in analysed_files([source], Asked(said, config)):
            kernels = tuple(analyzer.kernel(report.path, kernel.name) for kernel in report.kernels)
            analysed.append(Analysed(report.path, text, report, kernels))
            settings = settings or analyzer.settings
    assert settings is not None
    return analysed, settings


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
