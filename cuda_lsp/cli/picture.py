"""``cuda-lsp explain --picture FILE:LINE`` as SVG: the barrier intervals of a race there, or the banks."""

from __future__ import annotations

import re
import time
from pathlib import Path

from attrs import define

from cuda_lsp import settings_file
from cuda_lsp.barrier_intervals import IntervalPicture, meeting_of, race_on
from cuda_lsp.cli.common import Failure
from cuda_lsp.files import read_text
from cuda_lsp.model import FileReport, Finding
from cuda_lsp.repairs.plan import InProcess
from cuda_lsp.repairs.search import conflict_free, ordered
from cuda_lsp.repairs.source import Source
from cuda_lsp.report import bank_picture, interval_picture
from cuda_lsp.static import close_looks, interval_looks
from cuda_lsp.static.analyze import Analyzer

_REPAIR_S = 20.0  # seconds of processor time for a repair to be verified


def picture(place: str, of: str | None) -> str:
    """The picture, with that of the mended text beside it where a repair is verified. Raises Failure.

    ``of``: ``intervals`` or ``banks``; None: of a race on that line, else of its banks.
    """
    named = re.fullmatch(r"(?P<path>.+?):(?P<line>\d+)(?::\d+)?", place)
    if named is None:
        raise Failure(f"--picture wants FILE:LINE, not {place!r}")
    path, line = Path(named["path"]), int(named["line"])
    try:
        text = read_text(path)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    settings, _ = settings_file.load(path.absolute().parent)
    analyzer = Analyzer(settings)
    try:
        looked_at = _LookedAt(analyzer, path, line, text, analyzer.check(path, text))
        race = race_on(looked_at.report, line) if of != "banks" else None
        if race is None and of == "intervals":
            raise Failure(f"{path}:{line}: no race of two threads that are known")
        return looked_at.intervals(race) if race is not None else looked_at.banks()
    finally:
        analyzer.shutdown()


@define
class _LookedAt:
    """A line of a file, and all that is found in that file."""

    _analyzer: Analyzer
    _path: Path
    _line: int
    _text: str
    report: FileReport

    def banks(self) -> str:
        """The banks of the dearest access of the line."""
        kernel = next((kernel for kernel in self.report.kernels if kernel.range.has_line(self._line)), None)
        if kernel is None:
            raise Failure(f"{self._path}:{self._line}: no kernel stands there")
        now = close_looks.pictures(self._path, kernel, self._line, self._analyzer)
        if not now:
            raise Failure(f"{self._path}:{self._line}: no access to shared memory whose addresses are known")
        mended = conflict_free(self._source, self.report, kernel, self._line, self._trials)
        look = close_looks.pictures_of_text
        then = look(self._path, mended, kernel.name, self._line, self._analyzer) if mended else ()
        return bank_picture.svg(bank_picture.panels(now, then))

    def intervals(self, race: Finding) -> str:
        """Where its two accesses are between barriers."""
        meeting = meeting_of(race)
        now = interval_looks.interval_picture(self._path, meeting, self._analyzer) if meeting else None
        if now is None:
            raise Failure(f"{self._path}:{self._line}: the kernel {race.kernel} is not there")
        mended = ordered(self._source, self.report, race, self._trials)
        then: IntervalPicture | None = None
        if mended is not None:
            then = interval_looks.interval_picture_of_text(self._path, *mended, self._analyzer)
        return interval_picture.svg(interval_picture.panels(now, then))

    @property
    def _source(self) -> Source:
        return Source(self._path, self._text)

    @property
    def _trials(self) -> InProcess:
        return InProcess(self._analyzer, self._path, time.process_time() + _REPAIR_S)
