"""Dynamic checks of the kernels of one client: started by a command, kept by the kernel's text.

A result belongs to the text, headers and settings it was made from (``result_places``): it is shown as long
as they read the same, goes when they are edited, and comes back when the edit is undone. Only a trusted
workspace runs anything. Checks run in a thread and a child process; the keystroke path only merges what is
there.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from attrs import evolve, frozen
from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from cuda_lsp.config import Settings
from cuda_lsp.confirm import CheckOptions, chosen, failure_of, kernel_job, output_of, problems_of
from cuda_lsp.confirm_program import (
    build_job,
    errors_of,
    file_jobs,
    options_of,
    outcome_of,
    run_all,
    seen_of,
    with_notes,
)
from cuda_lsp.dynamic.compilation.compile import digest_of
from cuda_lsp.dynamic.job import CheckJob, CheckResult, EngineKind
from cuda_lsp.dynamic.observations.merge import Seen, with_all
from cuda_lsp.dynamic.runner import CheckCancelled, Runner
from cuda_lsp.model import FileReport, KernelReport, ToolError
from cuda_lsp.server.check_commands import STALE
from cuda_lsp.server.result_places import Layout, belongings, relocated
from cuda_lsp.server.session import Session

_KEPT = 128
_POLL = 0.05

_T = TypeVar("_T")


@frozen
class _Kept:
    """Results of one kernel, what is told beside them, and where its text stood.

    ``errors``: the text did not compile. ``outdated``: a header has changed.
    """

    seen: Sequence[Seen]
    told: Sequence[str]
    errors: Sequence[ToolError]
    path: Path
    kernel: str
    layout: Layout
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
                errors |= dict.fromkeys(kept.errors)
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
        return evolve(kept, seen=seen, errors=here(CheckResult("", errors=tuple(kept.errors))).errors)

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
    ) -> str | None:
        """Check one kernel of ``file`` with progress in the client. Returns what went wrong."""
        progress = await _Progress.begin(server, f"Dynamic check of {report.name}")
        try:
            result = await self._alone(progress, self._runner.run, job)
        except CheckCancelled:
            progress.end("cancelled")
            return None
        problems = problems_of(result, report)
        progress.end("done" if not problems else "failed")
        _log(server, output_of(result))
        self._keep(file, text, settings, report, [Seen(result, job.shapes)], errors=result.errors)
        return problems[0].message if problems else failure_of(result)

    async def _alone(self, progress: _Progress, work: Callable[..., _T], job: Any) -> _T:
        """Do work in a thread once it is its turn. Raises CheckCancelled, at once also while it waits."""
        turn, stop = object(), threading.Event()
        self._queue.append(turn)
        try:
            if self._queue[0] is not turn:
                progress.stage("waiting for another check")
            while self._queue[0] is not turn:
                if progress.cancelled():
                    raise CheckCancelled
                await asyncio.sleep(_POLL)
            return await asyncio.to_thread(
                work, job, progress.stage, lambda: stop.is_set() or progress.cancelled()
            )
        except asyncio.CancelledError:  # the client cancelled the request, or leaves
            progress.end("cancelled")
            raise
        finally:
            stop.set()
            self._queue.remove(turn)

    async def run_program(
        self,
        server: LanguageServer,
        file: FileReport,
        text: str,
        session: Session,
        settings: Settings,
        engine: str,
    ) -> tuple[str | None, str]:
        """Run the program that ``file`` belongs to. The problem, if there is one, and how it ended."""
        progress = await _Progress.begin(server, f"Running {file.path.name} under check")
        options, how = chosen(CheckOptions(engine=EngineKind(engine)), settings), options_of(settings)
        try:
            if how.build:
                built = await self._alone(
                    progress, self._runner.run_build, build_job(file.path, how, options)
                )
                if built.problem is not None:
                    progress.end("failed")
                    return built.problem, ""
                how = evolve(how, built=built)
            jobs = await asyncio.to_thread(session.ask, partial(file_jobs, text, file, options, how))
            if jobs is None:
                progress.end("failed")
                return f"the analysis of {file.path.name} ended meanwhile; run it again", ""
            result = await self._alone(progress, partial(run_all, self._runner), jobs)
        except CheckCancelled:
            progress.end("cancelled")
            return None, "cancelled"
        result = with_notes(result, how)
        errors = errors_of(result)
        progress.end("done" if result.problem is None else "failed")
        _log(server, result.output)
        for report in file.kernels:
            seen, told = seen_of(report, file, result)
            self._keep(file, text, settings, report, seen, told, result.errors)
        return (errors[0].message if errors else None), outcome_of(file.path.name, result)

    def _keep(
        self,
        file: FileReport,
        text: str,
        settings: Settings,
        report: KernelReport,
        seen: Sequence[Seen],
        told: Sequence[str] = (),
        errors: Sequence[ToolError] = (),
    ) -> None:
        seen = [one for one in seen if one.result.results]
        if not (seen or told or errors):
            return
        key, layout = belongings(file, text, settings)[report.name]
        self._results[key] = _Kept(seen, told, errors, file.path, report.name, layout)
        while len(self._results) > _KEPT:
            self._results.popitem(last=False)


class _Progress:
    """A work-done progress of the client; silent where it has none."""

    def __init__(self, server: LanguageServer, token: str | None) -> None:
        self._server = server
        self._token = token
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def begin(cls, server: LanguageServer, title: str) -> _Progress:
        window = server.client_capabilities.window
        if not (window and window.work_done_progress):
            return cls(server, None)
        token = str(uuid.uuid4())
        made: Any = server.work_done_progress
        await made.create_async(token)
        server.work_done_progress.begin(token, lsp.WorkDoneProgressBegin(title=title, cancellable=True))
        return cls(server, token)

    def stage(self, text: str) -> None:
        """Called from the runner's thread."""
        self._loop.call_soon_threadsafe(self._report, text)

    def _report(self, text: str) -> None:
        if self._token is not None:
            self._server.work_done_progress.report(self._token, lsp.WorkDoneProgressReport(message=text))

    def cancelled(self) -> bool:
        progress: Any = self._server.work_done_progress
        future = progress.tokens.get(self._token) if self._token is not None else None
        return future is not None and future.cancelled()

    def end(self, text: str) -> None:
        if self._token is not None:
            self._server.work_done_progress.end(self._token, lsp.WorkDoneProgressEnd(message=text))


def _log(server: LanguageServer, text: str) -> None:
    """What a kernel or program prints is for the client's log of the server."""
    if text:
        server.window_log_message(lsp.LogMessageParams(lsp.MessageType.Log, text))
