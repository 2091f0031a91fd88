"""Repairs of one file, found in the process that has analysed it: what ``check`` plans beside its report."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from cuda_lsp.model import Code, FileReport, Finding
from cuda_lsp.repair import Repair
from cuda_lsp.repairs.candidate import Candidate
from cuda_lsp.repairs.search import composed, mended
from cuda_lsp.repairs.source import Source

if TYPE_CHECKING:
    from cuda_lsp.static.analyze import Analyzer


@frozen
class Wish:
    """Which repairs are looked for. ``files``: real paths of those that may change. ``codes``: of findings.

    ``unsafe``: also repairs after which the program may do something else where nothing was wrong.
    ``together``: one on top of the other, for writing; else each by itself, for telling. ``until``: seconds
    of the process's processor time behind which nothing more is tried.
    """

    files: frozenset[str]
    codes: frozenset[Code]
    unsafe: bool = False
    together: bool = True
    until: float = math.inf

    def of(self, finding: Finding) -> bool:
        """Whether a finding is to be mended."""
        return finding.code in self.codes

    def wants(self, candidate: Candidate) -> bool:
        """Whether a repair may be made."""
        return candidate.keeps_meaning or self.unsafe


@frozen
class PlannedRepairs:
    """Verified repairs of a file's ``original`` text, which together make ``text`` with its finished report.

    Where each is by itself, ``text`` is the original. ``whole``: there was time for all that might be one.
    """

    original: str
    text: str
    report: FileReport
    repairs: tuple[Repair, ...]
    whole: bool = True


def planned_repairs(wish: Wish, analyzer: Analyzer, text: str, report: FileReport) -> PlannedRepairs | None:
    """What can be mended of a file, whose finished report this is; None: it is not to be changed.

    The analyzer has another text of the file afterwards.
    """
    if os.path.realpath(report.path) not in wish.files:
        return None
    trials = InProcess(analyzer, report.path, wish.until)
    if not wish.together:
        return PlannedRepairs(text, text, report, tuple(_each(wish, text, report, trials)), not trials.late)
    found = composed(report.path, text, report, trials, wish.wants, wish.of)
    return PlannedRepairs(text, found.text, found.report, found.repairs, not trials.late)


def _each(wish: Wish, text: str, report: FileReport, trials: InProcess) -> Iterator[Repair]:
    """A repair for each finding that no other repair mends already."""
    source, done = Source(report.path, text), list[Finding]()
    for finding in sorted(report.findings, key=lambda f: f.effective_severity):
        if finding not in done and wish.of(finding):
            found = mended(source, report, finding, trials, wish.wants)
            if found is not None and found.repair.verified:
                done += found.repair.findings
                yield found.repair


@define
class InProcess:
    """Trials by an analyzer that has the file open, and whose text of it nobody needs any more.

    Kernels that an edit does not touch are known already.
    """

    _analyzer: Analyzer
    _path: Path
    _until: float = math.inf  # of ``time.process_time``
    late: bool = field(default=False, init=False)  # something was not tried, because time was up
    _shown: str | None = field(default=None, init=False)  # the text that the analyzer has
    _first: dict[str, FileReport] = field(factory=dict[str, FileReport], init=False)
    _finished: dict[str, FileReport] = field(factory=dict[str, FileReport], init=False)

    def first(self, text: str) -> FileReport | None:
        """What the first tier says."""
        if text not in self._first:
            if self._is_late():
                return None
            self._first[text] = self._analyzer.update(self._path, text)
            self._shown = text
        return self._first[text]

    def finished(self, text: str) -> FileReport | None:
        """What both tiers say."""
        if text not in self._finished:
            if self._is_late():
                return None
            if self._shown != text:
                self._first[text] = self._analyzer.update(self._path, text)
                self._shown = text
            has_solver = self._analyzer.settings_of(self._path).solver
            self._finished[text] = self._analyzer.settle(self._path) if has_solver else self._first[text]
        return self._finished[text]

    def _is_late(self) -> bool:
        self.late |= time.process_time() > self._until
        return self.late
