"""Dynamic checks of the kernels of one client: started by a command, kept by the kernel's text.

A result belongs to the text, headers and settings it was made from (``result_places``): it is shown as long
as they read the same, goes when they are edited, and comes back when the edit is undone. Only a trusted
workspace runs anything. Checks run in a thread and a child process; the keystroke path only merges what is
there.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from attrs import evolve, frozen
from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from cuda_lsp.cache_folder import cache_folder
from cuda_lsp.config import Settings
from cuda_lsp.confirm import (
    CheckOptions,
    chosen,
    compile_options,
    endings_of,
    failure_of,
    kernel_job,
    made_ready,
    output_of,
    problems_of,
)
from cuda_lsp.confirm_program import (
    build_job,
    errors_of,
    file_jobs,
    options_of,
    outcome_of,
    run_all,
    seen_of,
    with_notes,
    with_result,
)
from cuda_lsp.dynamic.compilation.compile import digest_of
from cuda_lsp.dynamic.compilation.toolkit import ToolkitMissing, find_toolkit
from cuda_lsp.dynamic.job import CheckJob, CheckResult, EngineKind, Preparation
from cuda_lsp.dynamic.observations.merge import Seen, with_all
from cuda_lsp.dynamic.programs.job import ProgramResult
from cuda_lsp.dynamic.runner import CheckCancelled, Runner
from cuda_lsp.model import FileReport, KernelReport, Status, ToolError
from cuda_lsp.report.defects import defects
from cuda_lsp.server.check_commands import STALE
from cuda_lsp.server.client_progress import Progress, UserCancelled
from cuda_lsp.server.result_places import Layout, belongings, relocated
from cuda_lsp.server.run_messages import Told
from cuda_lsp.server.run_outcomes import LastRun, guess_of, last_run
from cuda_lsp.server.session import Session

OUTPUT = "cuda-lsp/programOutput"
"""A notification with what a program printed, for clients that have a terminal for it."""

_KEPT = 128
_POLL = 0.05

_T = TypeVar("_T")


@frozen
class _Kept:
    """Results of one kernel, what is told beside them, and where its text stood.

    ``errors``: the text did not compile. ``ended``: where runs ended early. ``outdated``: a header
    has changed.
    """

    seen: Sequence[Seen]
    told: Sequence[str]
    errors: Sequence[ToolError]
    path: Path
    kernel: str
    layout: Layout
    ended: Sequence[ToolError] = ()
    run: LastRun | None = None
    outdated: bool = False


class DynamicChecks:
    """Runs checks one at a time and remembers their results by what they belong to."""

    def __init__(self) -> None:
        self._results: OrderedDict[str, _Kept] = OrderedDict()
        self._runner = Runner()
        self._queue: list[object] = []  # checks that wait or run, in order

    def stop(self) -> None:
        """End the child process."""
        self._runner.close()

    def prepare(self, session: Session, path: Path, engine: str, settings: Settings) -> None:
        """Start the child process, and what it can make ready; nothing where no check could compile."""
        nvcc, options = chosen(CheckOptions(), settings).nvcc, compile_options(settings, path)
        with suppress(ToolkitMissing):  # told by the check that needs it
            find_toolkit(nvcc)
            self._runner.prepare(Preparation(EngineKind(engine), path, options, cache_folder(), nvcc))
            session.ask(made_ready)

    def overlay(self, report: FileReport, text: str, settings: Settings) -> FileReport:
        """``report`` with the results that belong to the texts of its kernels; ``text`` is the file's."""
        names = {kept.kernel for kept in self._results.values() if kept.path == report.path}
        if not any(kernel.name in names for kernel in report.kernels):
            return report
        owned = belongings(report, text, settings)
        kernels: list[KernelReport] = []
        errors: dict[ToolError, None] = {}
        for kernel in report.kernels:
            kept = self._fitting(report, *owned[kernel.name])
            if kept is not None:
                kernels.append(with_all(kernel, kept.seen, kept.told))
                errors |= dict.fromkeys((*kept.errors, *kept.ended))
            else:
                stale = (STALE,) if kernel.name in names else ()
                kernels.append(evolve(kernel, notes=(*kernel.notes, *stale)))
        return evolve(report, kernels=tuple(kernels), errors=(*report.errors, *errors))

    def _fitting(self, file: FileReport, key: str, layout: Layout) -> _Kept | None:
        """What is known of a kernel with this text, its places where they are now."""
        kept = self._results.get(key)
        if kept is None or kept.outdated:
            return None
        if layout == kept.layout:
            return kept
        here = partial(relocated, report=file, line=kept.layout.to(layout))
        seen = [evolve(one, result=here(one.result)) for one in kept.seen]
        errors, ended = (here(CheckResult("", errors=tuple(e))).errors for e in (kept.errors, kept.ended))
        return evolve(kept, seen=seen, errors=errors, ended=ended)

    def runs(self, report: FileReport, text: str, settings: Settings) -> dict[str, LastRun]:
        """What the last runs of kernels came to, by name, as far as they are of these texts."""
        names = {kept.kernel for kept in self._results.values() if kept.path == report.path}
        if not names:
            return {}
        owned = belongings(report, text, settings)
        kept = {name: self._results.get(owned[name][0]) for name in names & owned.keys()}
        return {name: known.run for name, known in kept.items() if known and known.run and not known.outdated}

    def files_changed(self) -> bool:
        """Hide results whose headers read differently now, show those that fit again. Whether any changed.

        Of what did not compile it is not known which headers it read: that is over.
        """
        digests: dict[str, str] = {}
        failed = [key for key, kept in self._results.items() if kept.errors]
        for key in failed:
            del self._results[key]
        changed = bool(failed)
        for key, kept in self._results.items():
            read = [item for one in kept.seen for item in one.result.headers.items()]
            for header, _ in read:
                digests.setdefault(header, digest_of(Path(header)))
            outdated = any(digests[header] != known for header, known in read)
            changed |= outdated != kept.outdated
            self._results[key] = evolve(kept, outdated=outdated)
        return changed

    def options(self, engine: str) -> CheckOptions:
        """What a client wants of checks."""
        return CheckOptions(engine=EngineKind(engine))

    async def job(
        self, session: Session, path: Path, text: str, report: KernelReport, engine: str
    ) -> CheckJob | None:
        """What to run for one kernel; None: it is not analysed."""
        work = partial(kernel_job, path, text, report, CheckOptions(engine=EngineKind(engine)))
        return await asyncio.to_thread(session.ask, work)

    async def run(
        self,
        server: LanguageServer,
        file: FileReport,
        text: str,
        job: CheckJob,
        report: KernelReport,
        settings: Settings,
    ) -> Told:
        """Check one kernel of ``file`` with progress in the client. Raises UserCancelled."""
        guess = guess_of(report, job, text)
        title = f"Dynamic check of {report.name}{f' ({guess})' if guess else ''}"
        async with Progress.shown(server, title) as progress:
            result = await self._alone(progress, self._runner.run, job)
            problems = problems_of(result, report)
            progress.end("done" if not problems else "failed")
        _log(server, output_of(result))
        seen = [Seen(result, job.shapes)]
        run = self._keep(file, text, settings, report, seen, errors=result.errors, watched=job.watch)
        if problems:
            return Told(problems[0].message, True, problems[0].range)
        if run is None:
            return Told(f"{report.name}: nothing was run", True)
        failure = failure_of(result)
        said = run.said(report.name, guess)
        return Told(f"{said}: {failure}" if failure else said, failure is not None, run.place)

    async def _alone(self, progress: Progress, work: Callable[..., _T], job: Any) -> _T:
        """Do work in a thread once it is its turn. Raises UserCancelled, at once also while it waits."""
        turn, stop = object(), threading.Event()
        self._queue.append(turn)
        try:
            if self._queue[0] is not turn:
                progress.stage("waiting for another check")
            while self._queue[0] is not turn:
                if progress.cancelled():
                    raise UserCancelled
                await asyncio.sleep(_POLL)
            return await asyncio.to_thread(
                work, job, progress.stage, lambda: stop.is_set() or progress.cancelled()
            )
        except CheckCancelled:
            raise UserCancelled from None
        finally:
            stop.set()
            self._queue.remove(turn)

    async def run_program(
        self,
        server: LanguageServer,
        opened: Sequence[tuple[FileReport, str]],
        session: Session,
        settings_of: Callable[[Path], Settings],
        options: CheckOptions,
        arguments: Sequence[str] | None,
    ) -> Told:
        """Run the program that the first of these reports and texts belongs to; the others show results, too.

        ``arguments``: instead of those of the settings. Raises UserCancelled.
        """
        file = opened[0][0]
        settings = settings_of(file.path)
        options, how = chosen(options, settings), options_of(settings)
        if arguments is not None:
            how = evolve(how, arguments=tuple(arguments))
        async with Progress.shown(server, f"Running {file.path.name} under check") as progress:
            if how.build:
                built = await self._alone(
                    progress, self._runner.run_build, build_job(file.path, how, options)
                )
                if built.problem is not None:
                    progress.end("failed")
                    return Told(built.problem, True)
                how = evolve(how, built=built)
            planned = partial(file_jobs, opened, options, how)
            jobs = await progress.unless_cancelled(asyncio.to_thread(session.ask, planned))
            if jobs is None:
                progress.end("failed")
                return Told(f"the analysis of {file.path.name} ended meanwhile; run it again", True)
            result = with_notes(await self._alone(progress, partial(run_all, self._runner), jobs), how)
            progress.end("done" if result.problem is None else "failed")
        _log(server, result.output)
        server.protocol.notify(OUTPUT, {"title": file.path.name, "text": result.output})
        runs: list[tuple[FileReport, LastRun]] = []
        for known, text in opened:
            for report in known.kernels:
                seen, told = seen_of(report, known, result)
                if seen or known is file:
                    run = self._keep(known, text, settings_of(known.path), report, seen, told, result.errors)
                    runs += [(known, run)] if run is not None and run.place is not None else []
        said = errors_of(result)
        if result.errors or result.problem is not None:
            return Told(said[0].message, True, said[0].range)
        counts = [f"{run.counts}{'' if known is file else f' in {known.path.name}'}" for known, run in runs]
        counts += _elsewhere([known for known, _ in opened], result)
        outcome = outcome_of(jobs[0].path.name, result)
        remarks = "".join(f". {remark.message}" for remark in said)
        seen_all = f": {'; '.join(counts)}" if counts else ""
        return Told(f"{outcome}{seen_all}{_usage(result)}{remarks}", place=runs[0][1].place if runs else None)

    def _keep(
        self,
        file: FileReport,
        text: str,
        settings: Settings,
        report: KernelReport,
        seen: Sequence[Seen],
        told: Sequence[str] = (),
        errors: Sequence[ToolError] = (),
        *,
        watched: bool = True,
    ) -> LastRun | None:
        """Remember what a check saw; what it came to, None: nothing was run."""
        seen = [one for one in seen if one.result.results]
        if not (seen or told or errors):
            return None
        ended = tuple(dict.fromkeys(e for one in seen for e in endings_of(one.result, report)))
        places = [error.range for error in ended if error.range is not None]
        run = last_run(report, with_all(report, seen, told), seen, places, watched)
        key, layout = belongings(file, text, settings)[report.name]
        self._results[key] = _Kept(seen, told, errors, file.path, report.name, layout, ended, run)
        while len(self._results) > _KEPT:
            self._results.popitem(last=False)
        return run


def _elsewhere(opened: Sequence[FileReport], result: ProgramResult) -> list[str]:
    """What was seen in files that nobody has open."""
    counts = [
        (sum(found.status is Status.CONFIRMED for found in defects(report.findings)), report.path.name)
        for report in with_result(opened, result)[len(opened) :]
    ]
    return [f"{count} confirmed in {name}" for count, name in counts if count]


def _usage(result: ProgramResult) -> str:
    """What a program that ended before it launched anything is likely to lack."""
    if result.launches or not result.status:
        return ""
    last = next((line.strip() for line in reversed(result.output.splitlines()) if line.strip()), "")
    said = f" (“{last[:120]}”)" if last else ""
    return f"; it ended before any kernel{said}: does it need arguments?"


def _log(server: LanguageServer, text: str) -> None:
    """What a kernel or program prints is for the client's log of the server."""
    if text:
        server.window_log_message(lsp.LogMessageParams(lsp.MessageType.Log, text))
