"""The analysis of one file as the command line does it: with the settings of its folder, both tiers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import evolve

from cuda_lsp import files
from cuda_lsp.batch.asked import Analysed, Asked
from cuda_lsp.model import FileReport, Severity, ToolError
from cuda_lsp.readings import Reading
from cuda_lsp.static import work
from cuda_lsp.static.analyze import Analyzer


def analysed(reading: Reading, asked: Asked, say: Callable[[FileReport], None]) -> Analysed:
    """Both tiers on a file; what cannot be read is an error of its report.

    ``say`` is told what is known before the solver begins, and before the plan is made.
    """
    work.take_time()
    if not asked.noting:
        return _analysed(reading, asked, say)
    with files.noting() as notes:
        found = _analysed(reading, asked, say)
    return evolve(found, answers=_answers(notes))


def _answers(notes: files.Notes) -> Mapping[files.Question, str] | None:
    """What the report hangs on; None: not all of it is known, or it changed while it was read."""
    if notes.doubts or any(files.answer(question) != said for question, said in notes.answers.items()):
        return None
    return notes.answers


def _analysed(reading: Reading, asked: Asked, say: Callable[[FileReport], None]) -> Analysed:
    path = reading.path
    started = time.perf_counter()
    settings, problems = asked.settings(path)
    told = tuple(ToolError(str(problem)) for problem in problems)

    def whole(report: FileReport) -> FileReport:
        return evolve(report, errors=(*told, *report.errors), seconds=time.perf_counter() - started)

    text = _text_of(path)
    if isinstance(text, FileReport):
        return Analysed(whole(text))
    analyzer = Analyzer(settings)
    try:
        report = analyzer.update(path, text, unit=reading.unit)
        if asked.solver and settings.solver:
            say(whole(report))
            report = analyzer.settle(path, lambda known: say(whole(known)), reading.left_open)
        report = whole(report)
        if asked.plan is None:
            return Analysed(report)
        say(report)
        return Analysed(report, planned=asked.plan(analyzer, text, report))
    finally:
        analyzer.shutdown()


def _text_of(path: Path) -> str | FileReport:
    """The file's text, or the report that says why there is none."""
    try:
        data = files.read_bytes(path)
    except OSError as error:
        return _unreadable(path, f"cannot read {path}: {error.strerror}")
    if b"\0" in data[:4096]:
        return _unreadable(path, f"{path} is a binary file, not CUDA source")
    return data.decode("utf-8", "replace")


def _unreadable(path: Path, message: str) -> FileReport:
    return FileReport(path, errors=(ToolError(message, severity=Severity.ERROR),))
