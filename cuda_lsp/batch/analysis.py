"""The analysis of one file as the command line does it: with the settings of its folder, both tiers."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve

from cuda_lsp import config, files
from cuda_lsp.batch.asked import Analysed, Asked
from cuda_lsp.model import FileReport, Severity, ToolError
from cuda_lsp.readings import Reading
from cuda_lsp.settings_file import load, load_file
from cuda_lsp.static.analyze import Analyzer


def analysed(reading: Reading, asked: Asked, say: Callable[[FileReport], None]) -> Analysed:
    """Both tiers on a file; what cannot be read is an error of its report.

    ``say`` is told what the first tier knows, before the solver begins.
    """
    if not asked.noting:
        return Analysed(_report(reading, asked, say))
    with files.noting() as notes:
        report = _report(reading, asked, say)
    return Analysed(report, _answers(notes))


def _answers(notes: files.Notes) -> Mapping[files.Question, str] | None:
    """What the report hangs on; None: not all of it is known, or it changed while it was read."""
    if notes.doubts or any(files.answer(question) != said for question, said in notes.answers.items()):
        return None
    return notes.answers


def _report(reading: Reading, asked: Asked, say: Callable[[FileReport], None]) -> FileReport:
    path = reading.path
    started = time.perf_counter()
    with _opened(path, asked) as (analyzer, text, told):
        if isinstance(text, FileReport):
            report = text
        else:
            report = analyzer.update(path, text, unit=reading.unit)
            if asked.solver and analyzer.settings.solver:
                say(evolve(report, errors=(*told, *report.errors)))
                report = analyzer.settle(path)
        seconds = time.perf_counter() - started
        return evolve(report, errors=(*told, *report.errors), seconds=seconds)


def analysed_files(paths: Iterable[Path], asked: Asked) -> Iterator[tuple[Analyzer, str, FileReport]]:
    """Each file with its text, its report, and the analyzer that still knows its kernels until the next.

    In this process, one after the other.
    """
    for path in paths:
        with _opened(path, asked) as (analyzer, text, told):
            if isinstance(text, FileReport):
                report, text = text, ""
            else:
                report = analyzer.check(path, text, solver=asked.solver)
            yield analyzer, text, evolve(report, errors=(*told, *report.errors))


@contextmanager
def _opened(path: Path, asked: Asked) -> Generator[tuple[Analyzer, str | FileReport, tuple[ToolError, ...]]]:
    """An analyzer with the file's settings; its text, or why there is none; mistakes in the settings."""
    loaded, problems = (
        load_file(asked.settings_file, config.PATIENT)
        if asked.settings_file
        else load(path.absolute().parent, config.PATIENT)
    )
    settings, more = config.merge(loaded, asked.overrides, "command line")
    analyzer = Analyzer(settings)
    try:
        yield analyzer, _text_of(path), tuple(ToolError(str(problem)) for problem in (*problems, *more))
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
