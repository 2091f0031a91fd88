"""Dynamic checks of the kernels of one client: started by a command, kept by the kernel's text.

A result belongs to the text it was made from: it is shown as long as the kernel reads the same (wherever
it moves), goes when it is edited, and comes back when the edit is undone. Only a trusted workspace runs
anything. Checks run in a thread and a child process; the keystroke path only merges what is there.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from cuda_lsp.config import Settings
from cuda_lsp.confirm import CheckOptions, job_for, problems_of
from cuda_lsp.confirm_program import (
    Analysed,
    build_job,
    errors_of,
    options_of,
    outcome_of,
    program_job,
    with_notes,
)
from cuda_lsp.dynamic.job import CheckResult, EngineKind, Shape
from cuda_lsp.dynamic.observe import merged
from cuda_lsp.dynamic.runner import CheckCancelled, Runner
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import FileReport, KernelReport, Related

COMMAND = "cuda-lsp.runDynamicCheck"
PROGRAM_COMMAND = "cuda-lsp.runProgram"
UNTRUSTED = (
    "A dynamic check compiles and runs this file's kernels, so it needs a trusted workspace:"
    ' trust the folder in VS Code, or set "trusted": true in the initialization options'
)
_KEPT = 128


@frozen
class _Kept:
    """A result, what it is a result of, and the line the kernel stood on when it was made."""

    result: CheckResult
    path: Path
    kernel: str
    shapes: Mapping[str, Shape]
    line: int


class DynamicChecks:
    """Runs checks one at a time and remembers their results by kernel text."""

    def __init__(self) -> None:
        self._results: OrderedDict[str, _Kept] = OrderedDict()
        self._runner = Runner()

    def stop(self) -> None:
        """End the child process."""
        self._runner.close()

    def overlay(self, report: FileReport, text: str) -> FileReport:
        """``report`` with the results that belong to the texts of its kernels; ``text`` is the file's."""
        names = {kept.kernel for kept in self._results.values() if kept.path == report.path}
        if not any(kernel.name in names for kernel in report.kernels):
            return report
        keys = text_keys(report, text)
        return evolve(report, kernels=tuple(self._shown(k, keys[k.name]) for k in report.kernels))

    def _shown(self, report: KernelReport, key: str) -> KernelReport:
        kept = self._results.get(key)
        if kept is None:
            return report
        moved = report.range.start.line - kept.line
        shown = (
            merged(_moved(report, -moved), kept.result, kept.shapes)
            if moved
            else merged(report, kept.result, kept.shapes)
        )
        return _moved(shown, moved) if moved else shown

    async def run(
        self,
        server: LanguageServer,
        file: FileReport,
        text: str,
        kernel: Kernel,
        report: KernelReport,
        settings: Settings,
        engine: EngineKind,
    ) -> str | None:
        """Check one kernel of ``file`` with progress in the client. Returns the problem, if there is one."""
        job = job_for(file.path, text, kernel, report, settings, CheckOptions(engine=engine))
        progress = await _Progress.begin(server, f"Dynamic check of {report.name}")
        try:
            result = await asyncio.to_thread(self._runner.run, job, progress.stage, progress.cancelled)
        except CheckCancelled:
            progress.end("cancelled")
            return None
        problems = problems_of(result, report)
        progress.end("done" if not problems else "failed")
        self._keep(file, text, report, result, job.shapes)
        return problems[0].message if problems else None

    async def run_program(
        self,
        server: LanguageServer,
        file: FileReport,
        text: str,
        kernels: Sequence[Kernel | None],
        settings: Settings,
        engine: EngineKind,
    ) -> tuple[str | None, str]:
        """Run the program that ``file`` belongs to. The problem, if there is one, and how it ended."""
        progress = await _Progress.begin(server, f"Running {file.path.name} under check")
        options, how = CheckOptions(engine=engine), options_of(settings)
        try:
            if how.build:
                built = await asyncio.to_thread(
                    self._runner.run_build,
                    build_job(file.path, how, options),
                    progress.stage,
                    progress.cancelled,
                )
                if built.problem is not None:
                    progress.end("failed")
                    return built.problem, ""
                how = evolve(how, built=built)
            job = program_job([Analysed(file.path, text, file, tuple(kernels))], settings, options, how)
            result = await asyncio.to_thread(
                self._runner.run_program, job, progress.stage, progress.cancelled
            )
        except CheckCancelled:
            progress.end("cancelled")
            return None, "cancelled"
        result = with_notes(result, how)
        errors = errors_of(result)
        progress.end("done" if result.problem is None else "failed")
        shapes = {kernel.kernel: kernel.shapes for kernel in job.kernels}
        for report in file.kernels:
            if report.name in result.checks:
                self._keep(file, text, report, result.checks[report.name], shapes[report.name])
        return (errors[0].message if errors else None), outcome_of(file.path.name, result)

    def _keep(
        self,
        file: FileReport,
        text: str,
        report: KernelReport,
        result: CheckResult,
        shapes: Mapping[str, Shape],
    ) -> None:
        if not result.results:
            return
        key = text_keys(file, text)[report.name]
        self._results[key] = _Kept(result, file.path, report.name, shapes, report.range.start.line)
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


def text_keys(report: FileReport, text: str) -> dict[str, str]:
    """For each kernel what its behaviour can depend on: its own text, and all text outside kernels.

    Empty lines and the width of white space outside do not count, so that a kernel may move.
    """
    lines = text.splitlines()
    inside = {n for k in report.kernels for n in range(k.range.start.line - 1, k.range.end.line)}
    kept = (" ".join(lines[n].split()) for n in range(len(lines)) if n not in inside)
    outside = "\n".join(line for line in kept if line)
    keys: dict[str, str] = {}
    for kernel in report.kernels:
        own = "\n".join(lines[kernel.range.start.line - 1 : kernel.range.end.line])
        parts = (str(report.path), kernel.name, own, outside)
        keys[kernel.name] = hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
    return keys


def _moved(report: KernelReport, lines: int) -> KernelReport:
    """The report with its kernel and findings ``lines`` further down."""

    def related(r: Related) -> Related:
        return evolve(r, site=evolve(r.site, range=r.site.range.shifted(lines)))

    return evolve(
        report,
        range=report.range.shifted(lines),
        findings=tuple(
            evolve(
                f,
                site=evolve(f.site, range=f.site.range.shifted(lines)),
                related=tuple(map(related, f.related)),
            )
            for f in report.findings
        ),
    )


def action_for(kernel: KernelReport, uri: str) -> lsp.Command:
    """What a click on "Run dynamic check" sends."""
    return lsp.Command(title="Run dynamic check", command=COMMAND, arguments=[uri, kernel.name])


def program_action(uri: str) -> lsp.Command:
    """What a click on "Run the program under check" sends."""
    return lsp.Command(title="Run the program under check", command=PROGRAM_COMMAND, arguments=[uri])
