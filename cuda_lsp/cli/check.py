"""``cuda-lsp check``: files, folders, what changed, or a text from standard input."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from cuda_lsp import files
from cuda_lsp.batch.asked import Asked, NoCluster
from cuda_lsp.batch.history import NoHistory, changed_since, concerned, staged
from cuda_lsp.batch.limits import FILE_MEMORY_MB, FILE_S, LEAST_MEMORY_MB, FileLimits
from cuda_lsp.batch.pool import prepare
from cuda_lsp.batch.sources import databases
from cuda_lsp.cli.common import INTERRUPTED, Failure, common, options, outcome, overrides, sources_of
from cuda_lsp.model import Code, FileReport
from cuda_lsp.report.output import Output, print_reports

if TYPE_CHECKING:
    from cuda_lsp.report.baseline import Baseline
    from cuda_lsp.report.progress import Progress

_STDIN = Path("-")


def _codes(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> frozenset[Code]:
    """Codes, several in one word with commas between."""
    del context
    try:
        return frozenset(Code(name) for word in given for name in word.split(","))
    except ValueError as error:
        unknown = str(error).split(" is not ")[0]
        raise Failure(f"{option.opts[0]}: no code {unknown}; `cuda-lsp explain` lists them") from None


_FILE = click.Path(path_type=Path, dir_okay=False)
_WHICH = (
    click.option("--since", metavar="REVISION", help="Only what changed since this revision (git)."),
    click.option("--staged", "of_index", is_flag=True, help="Only what the next commit changes, as staged."),
    click.option("--stdin-filename", type=_FILE, help="The name of the text that comes as - from stdin."),
    click.option("--watch", is_flag=True, help="Check again whenever a file changes."),
)
_WHAT = (
    click.option("--select", callback=_codes, multiple=True, metavar="CODE,…", help="Only these codes."),
    click.option("--ignore", callback=_codes, multiple=True, metavar="CODE,…", help="Not these codes."),
    click.option(
        "--baseline", "known", type=_FILE, metavar="FILE", help="Leave out findings that this file knows."
    ),
    click.option("--write-baseline", type=_FILE, metavar="FILE", help="Make all findings of this run known."),
)
_MENDING = (
    click.option("--fix", is_flag=True, help="Make verified repairs in the files, and tell what is left."),
    click.option("--diff", is_flag=True, help="Print what --fix would change; exit code 1: something."),
    click.option("--repairs", is_flag=True, help="Tell verified repairs (text, concise, sarif: as fixes)."),
    click.option(
        "--unsafe-fixes", is_flag=True, help="Also repairs that may not be what the author meant (guards)."
    ),
)
_HOW_SAID = (
    click.option("-v", "--verbose", is_flag=True, help="List race-free kernels with other findings too."),
    click.option("-q", "--quiet", is_flag=True, help="Findings and failures only: no verdicts, no totals."),
    click.option("--statistics", is_flag=True, help="Count findings by code and status at the end."),
    click.option("--explain", is_flag=True, help="Explain each code that was found at the end."),
)
_HOW_DONE = (
    click.option(
        "--banks", type=click.IntRange(1, 32), help="Shared-memory banks (16: compute capability 1.x)."
    ),
    click.option("--solver/--no-solver", default=True, help="Prove with Z3 what enumeration leaves open."),
    click.option(
        "-j", "--jobs", type=click.IntRange(1), envvar="CUDA_LSP_JOBS", show_envvar=True,
        help="Files at once; by default as many as there are processors.",
    ),
    click.option(
        "--deadline", metavar="SECONDS", type=click.FloatRange(1), default=FILE_S, show_default=True,
        envvar="CUDA_LSP_DEADLINE", show_envvar=True, help="Processor time that one file may take.",
    ),
    click.option(
        "--memory", metavar="MB", type=click.IntRange(LEAST_MEMORY_MB), default=FILE_MEMORY_MB,
        show_default=True, envvar="CUDA_LSP_MEMORY", show_envvar=True, help="Memory that one file may take.",
    ),
    click.option(
        "--cache/--no-cache", default=True, help="Take what earlier runs found where nothing changed."
    ),
    click.option(
        "--executor", metavar="dask://HOST:PORT",
        help="Analyse on the workers of a dask cluster (pip install 'cuda-lsp[dask]').",
    ),
    click.option(
        "--dynamic", type=click.Choice(["off", "emulator", "gpu"]), default="off",
        help="Then run every kernel instrumented, to confirm what was found.",
    ),
)  # fmt: skip


@frozen
class _Chosen:
    """What of all findings is told, and where those go that are known from now on."""

    select: frozenset[Code]
    ignore: frozenset[Code]
    known: Path | None
    write: Path | None

    def of(self, reports: Iterable[FileReport]) -> tuple[Iterator[FileReport], Baseline | None]:
        """The reports with what is left, and the baseline that hides some. Raises Failure."""
        from cuda_lsp.report.baseline import BadBaseline, Baseline
        from cuda_lsp.report.selection import selected

        told = selected(reports, self.select, self.ignore)
        if self.known is None:
            return told, None
        try:
            baseline = Baseline.read(self.known)
        except BadBaseline as error:
            raise Failure(str(error)) from None
        return baseline.new(told), baseline


@frozen
class _Work:
    """How files are analysed."""

    asked: Asked
    jobs: int | None
    limits: FileLimits
    cache: bool
    dynamic: str
    executor: str | None


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@common
@options(*_WHICH, *_WHAT, *_MENDING, *_HOW_SAID, *_HOW_DONE)
def check(
    paths: tuple[Path, ...],
    style: str,
    fail_on: str,
    config: Path | None,
    since: str | None,
    of_index: bool,
    stdin_filename: Path | None,
    watch: bool,
    select: frozenset[Code],
    ignore: frozenset[Code],
    known: Path | None,
    write_baseline: Path | None,
    fix: bool,
    diff: bool,
    repairs: bool,
    unsafe_fixes: bool,
    verbose: bool,
    quiet: bool,
    statistics: bool,
    explain: bool,
    solver: bool,
    jobs: int | None,
    deadline: float,
    memory: int,
    cache: bool,
    executor: str | None,
    dynamic: str,
    **given: Any,
) -> None:
    """Check files, and headers with kernels that they include.

    PATHS are files, patterns, folders (all below them that hold kernels), compile_commands.json, or - for
    standard input. Each file is analysed in a process of its own: what crashes or hangs there costs that
    file, and is told.

    Exit code 0: nothing at or above --fail-on; 1: findings (--diff: something to change); 2: the tool could
    not do its work.
    """
    if (statistics or explain or quiet) and style != "text":
        raise Failure("--quiet, --statistics and --explain are for --format text")
    told = overrides(**given)
    if listed := databases(paths):
        if len(listed) > 1:
            raise Failure("one compilation database at a time, please")
        told.setdefault("compile_commands", str(listed[0].absolute()))
    if executor is not None:
        _cluster_is_possible(executor, dynamic, of_index or _STDIN in paths)
    limits = FileLimits(deadline, memory << 20)
    work = _Work(Asked(told, config, solver), jobs, limits, cache, dynamic, executor)
    output = Output(
        style,
        verbose=verbose,
        quiet=quiet,
        statistics=statistics,
        explain=explain,
        documentation=work.asked.settings(Path("all"))[0].documentation if style == "sarif" else "",
    )
    chosen = _Chosen(select, ignore, known, write_baseline)
    try:
        if fix or diff or repairs:
            from cuda_lsp.cli.mend import Mending, mend

            _refuse_beside_mending(watch, of_index and (fix or diff), chosen, work)
            which = _which(paths, since, of_index, stdin_filename)
            how = Mending(fix and not diff, diff, unsafe_fixes, select, ignore, _STDIN in paths)
            sys.exit(mend(which, work.asked, work.jobs, work.limits, how, output, fail_on))
        if watch:
            _watch(paths, work, chosen, output, fail_on)
        which = _which(paths, since, of_index, stdin_filename)
        sys.exit(_checked(which, work, chosen, output, fail_on))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _cluster_is_possible(address: str, dynamic: str, is_not_on_disk: bool) -> None:
    """Raises Failure."""
    if not re.fullmatch(r"dask://[^/:]+:\d+", address):
        raise Failure(f"--executor wants dask://HOST:PORT, not {address!r}")
    if dynamic != "off" or is_not_on_disk:
        raise Failure("--executor analyses files as they are on disk: not with --dynamic, --staged or -")
    if find_spec("distributed") is None:
        raise Failure("--executor needs dask: pip install 'cuda-lsp[dask]'")


def _refuse_beside_mending(watch: bool, of_index: bool, chosen: _Chosen, work: _Work) -> None:
    """Raises Failure."""
    others = {
        "--watch": watch,
        "--staged": of_index,  # what is staged is not what lies on disk
        "--baseline": chosen.known is not None,
        "--write-baseline": chosen.write is not None,
        "--dynamic": work.dynamic != "off",
        "--executor": work.executor is not None,
    }
    if named := [option for option, given in others.items() if given]:
        raise Failure(f"repairs are not made beside {' and '.join(named)}")


def _which(paths: Sequence[Path], since: str | None, of_index: bool, name: Path | None) -> list[Path]:
    """The files to look at. Raises Failure."""
    if _STDIN in paths:
        if len(paths) > 1 or name is None:
            raise Failure("- stands alone, and --stdin-filename says what it is called")
        files.instead(name, sys.stdin.buffer.read(files.SOURCE_LIMIT + 1))
        return [name]
    if since is None and not of_index:
        if not paths:
            raise Failure("which files? Name some, or a folder: cuda-lsp check .")
        found = sources_of(paths)
        if not found:
            raise Failure(f"{', '.join(map(str, paths))}: no file with CUDA kernels")
        return found
    try:
        changed = staged(Path.cwd()) if of_index else changed_since(since or "", Path.cwd())
    except NoHistory as error:
        raise Failure(str(error)) from None
    return concerned(sources_of(paths or [Path()]), changed) if changed else []


def _checked(which: Sequence[Path], work: _Work, chosen: _Chosen, output: Output, fail_on: str) -> int:
    """Analyse, print; the exit status."""
    if work.dynamic != "off":
        reports, ran = _run(which, work)
        return _printed(reports, ran, chosen, output, fail_on)
    from cuda_lsp.batch.check import checking

    bar = _bar(len(which))
    seen: dict[str, Any] = {"heard": bar.heard, "tick": bar.tick} if bar else {}
    how: dict[str, Any] = {"cache": work.cache, "executor": work.executor}
    try:
        with checking(which, work.asked, work.jobs, work.limits, **how, **seen) as reports:
            return _printed(bar.beside(reports) if bar else reports, True, chosen, output, fail_on)
    except NoCluster as error:
        raise Failure(str(error)) from None


def _bar(files: int) -> Progress | None:
    """None where nobody sees one: what draws it takes as long to import as a known file takes to look up."""
    if not sys.stderr.isatty():
        return None
    from cuda_lsp.report.progress import Progress

    return Progress(files)


def _run(which: Sequence[Path], work: _Work) -> tuple[Sequence[FileReport], bool]:
    prepare()
    from cuda_lsp.cli.run import reports_of_runs
    from cuda_lsp.confirm import CheckOptions
    from cuda_lsp.confirm_files import planned
    from cuda_lsp.dynamic.job import EngineKind

    options = CheckOptions(EngineKind(work.dynamic))
    return reports_of_runs(planned(which, work.asked, options, work.jobs, work.limits))


def _printed(reports: Iterable[FileReport], ran: bool, chosen: _Chosen, output: Output, fail_on: str) -> int:
    left, baseline = chosen.of(reports)
    if chosen.write is not None:
        return _written(list(left), ran, chosen.write)
    status = outcome(print_reports(left, output), ran, fail_on)
    if baseline is not None and baseline.hidden and not output.quiet:
        click.echo(f"{baseline.hidden} known findings left out", err=True)
    return status


def _written(reports: Sequence[FileReport], ran: bool, path: Path) -> int:
    """All that was found is known from now on; what could not be analysed stays a failure."""
    from cuda_lsp.report.baseline import baseline

    try:
        path.write_text(baseline(reports, path), encoding="utf-8")
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    count = sum(len(report.findings) for report in reports)
    click.echo(f"{path}: {count} findings are known now")
    return outcome(reports, ran, "never")


def _watch(paths: Sequence[Path], work: _Work, chosen: _Chosen, output: Output, fail_on: str) -> None:
    """Check, and again whenever something changes; ends by Ctrl-C only."""
    from cuda_lsp.batch.watch import Watched

    if not paths or _STDIN in paths or chosen.write is not None:
        raise Failure("--watch is for files and folders, and writes no baseline")
    watched = Watched(paths)
    while True:
        _checked(sources_of(paths), work, chosen, output, fail_on)
        click.echo("waiting for changes, Ctrl-C ends", err=True)
        watched.wait()
