"""Files checked one after the other, as the command line does: each with the settings of its folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import evolve

from cuda_lsp import config, files
from cuda_lsp.frontend.surroundings.units import included_sources, is_header
from cuda_lsp.model import FileReport, ToolError
from cuda_lsp.readings import Reading, Readings
from cuda_lsp.settings_file import load, load_file
from cuda_lsp.static.analyze import Analyzer


def check_files(
    paths: Sequence[Path],
    overrides: Mapping[str, Any],
    settings_file: Path | None = None,
    *,
    solver: bool = True,
) -> Sequence[FileReport]:
    """Both tiers on files, and on headers with kernels that they include: a report a file.

    What cannot be read is an error of its report. ``overrides``, ``solver``: as in ``analysed_files``.
    """
    parts = [path for path in paths if is_header(path)] if len(paths) > 1 else []
    readings = Readings(paths, [*parts, *included_sources(paths)])
    while wave := readings.wave():
        for reading in wave:
            with _analysed(reading, overrides, settings_file, solver) as (_, _, report):
                readings.take(reading, report)
    return readings.reports()


def analysed_files(
    paths: Iterable[Path],
    overrides: Mapping[str, Any],
    settings_file: Path | None = None,
    *,
    solver: bool = True,
) -> Iterator[tuple[Analyzer, str, FileReport]]:
    """Each file with its text, its report, and the analyzer that still knows its kernels until the next.

    ``overrides``: settings that come before those of ``settings_file``, or else of the file's folder.
    ``solver`` False: the first tier only, whatever the settings say.
    """
    for path in paths:
        with _analysed(Reading(path), overrides, settings_file, solver) as analysed:
            yield analysed


@contextmanager
def _analysed(
    reading: Reading, overrides: Mapping[str, Any], settings_file: Path | None, solver: bool
) -> Iterator[tuple[Analyzer, str, FileReport]]:
    path = reading.path
    loaded, problems = (
        load_file(settings_file, config.PATIENT)
        if settings_file
        else load(path.absolute().parent, config.PATIENT)
    )
    settings, more = config.merge(loaded, overrides, "command line")
    told = tuple(ToolError(str(problem)) for problem in (*problems, *more))
    analyzer = Analyzer(settings)
    try:
        text = _text_of(path)
        report = (
            text
            if isinstance(text, FileReport)
            else analyzer.check(path, text, solver=solver, unit=reading.unit)
        )
        known = text if isinstance(text, str) else ""
        yield analyzer, known, evolve(report, errors=(*told, *report.errors))
    finally:
        analyzer.shutdown()


def _text_of(path: Path) -> str | FileReport:
    """The file's text, or the report that says why there is none."""
    try:
        data = files.read_bytes(path)
    except OSError as error:
        return FileReport(path, errors=(ToolError(f"cannot read {path}: {error.strerror}"),))
    if b"\0" in data[:4096]:
        return FileReport(path, errors=(ToolError(f"{path} is a binary file, not CUDA source"),))
    return data.decode("utf-8", "replace")
