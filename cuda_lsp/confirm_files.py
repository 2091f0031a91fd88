"""Files under check, as the command line does it: what to run is planned where a file is analysed.

That is a process of its own: a text that crashes clang, hangs or takes too much memory costs itself, is told
as not analysed, and the others are run. Kernel programs stay there; only plain data comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from cuda_lsp.batch.asked import Analysed, Asked
from cuda_lsp.batch.check import checking, each
from cuda_lsp.batch.limits import FileLimits
from cuda_lsp.batch.sources import SUFFIXES, sources
from cuda_lsp.confirm import CheckOptions, Progress, check_kernels, kernel_jobs
from cuda_lsp.confirm_program import ProgramOptions, Source, device_headers, device_units, source_of
from cuda_lsp.dynamic.job import CheckJob
from cuda_lsp.dynamic.runner import Runner
from cuda_lsp.files import read_text
from cuda_lsp.model import FileReport
from cuda_lsp.readings import Reading


@frozen
class Planned:
    """Reports of files, and what to run for the kernels of each."""

    reports: Sequence[FileReport]
    jobs: Mapping[Path, Sequence[CheckJob]]


def planned(
    paths: Sequence[Path], asked: Asked, options: CheckOptions, jobs: int | None, limits: FileLimits
) -> Planned:
    """Files as ``check`` analyses them, and runs of the kernels in ``paths``.

    A header's kernels run with what the first of the units says that include it.
    """
    given = frozenset(paths)
    heard: dict[Reading, Sequence[CheckJob]] = {}

    def take(reading: Reading, found: Analysed) -> None:
        if reading.path in given:
            heard[reading] = found.planned or ()

    asked = evolve(asked, plan=partial(kernel_jobs, options, ()))
    with checking(paths, asked, jobs, limits, heard=take) as coming:
        reports = list(coming)
    to_run: dict[Path, dict[str, CheckJob]] = {path: {} for path in given}
    for reading in sorted(heard, key=lambda reading: reading.unit or reading.path):
        for job in heard[reading]:
            to_run[reading.path].setdefault(job.kernel, job)
    return Planned(reports, {path: tuple(jobs.values()) for path, jobs in to_run.items()})


def planned_alone(path: Path, asked: Asked, options: CheckOptions, names: Sequence[str]) -> Planned:
    """One file, and runs of its kernels of these names; none: of all."""
    (found,) = each({path: evolve(asked, plan=partial(kernel_jobs, options, names))})
    return Planned([found.report], {path: found.planned or ()})


def run_planned(
    plan: Planned, runner: Runner, progress: Progress, printed: Callable[[str], None]
) -> tuple[list[FileReport], bool]:
    """The reports after all runs, one after the other, and whether all could be made."""
    reports = [
        check_kernels(report, plan.jobs.get(report.path, ()), runner, progress, printed=printed)
        for report in plan.reports
    ]
    whole = all(len(a.errors) == len(b.errors) for a, b in zip(plan.reports, reports, strict=True))
    return reports, whole


def program_sources(file: Path, asked: Asked, options: CheckOptions, program: ProgramOptions) -> list[Source]:
    """The analysis of every source and header of a program that may hold kernels; that of ``file`` first.

    Raises NoSource.
    """
    plan = partial(source_of, options)
    pending = {
        path: evolve(asked, overrides=overrides, plan=plan)
        for path, overrides in _program_files(file, asked, program).items()
    }
    return [
        found.planned or Source(path, _text_of(path), found.report)
        for path, found in zip(pending, each(pending), strict=True)
    ]


def _program_files(file: Path, asked: Asked, program: ProgramOptions) -> dict[Path, dict[str, Any]]:
    """These files, with the settings of each."""
    (main_file,) = sources([file])
    flags = device_units(program.built) if program.built is not None else {}
    known = {path.resolve(): said for path, said in flags.items()}
    others = [path for path in program.sources if path.suffix in SUFFIXES]
    others += [path for path in flags if path.resolve() != file.resolve()]
    found = {path: {**known.get(path.resolve(), {}), **asked.overrides} for path in sources([file, *others])}
    for source, said in list(found.items()):
        folders = [Path(folder) for folder in said.get("include_dirs", ())]
        for header in device_headers(source, _text_of(source), folders):
            if header != main_file.resolve():
                found.setdefault(header, said)
    return found


def _text_of(path: Path) -> str:
    try:
        return read_text(path)
    except OSError:  # its analysis says so
        return ""
