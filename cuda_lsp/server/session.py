"""The documents of one client and their analysis: one thread, newest text wins.

A change is queued and analysed at once; a newer version replaces one that waits. The first tier is
published as soon as it is there, the solver's answers later, and only what differs from what the client
shows. A keystroke inside a kernel reads that kernel only; a pause in the typing reads the whole text.
Reports of older versions are never published. The client itself moves old squiggles with the text until
new ones come, so nothing is cleared in between.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from attrs import define, evolve, field, frozen

from cuda_lsp.config import Settings
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import FileReport
from cuda_lsp.static.analyze import Analyzer

log = logging.getLogger(__name__)

_PAUSE = 0.7  # seconds without a change after which rubbish is collected
_TRIAL = 30.0  # seconds that somebody waits for the analysis of a text that is none of the document's
_MOST_CHANGES = 300  # … or after so many changes without a pause

Published = Callable[[str, FileReport, bool], None]
"""Called from the analysis thread: uri, report, whether the solver has finished with it."""


@frozen
class _Change:
    uri: str
    path: Path
    text: str
    version: int | None


@define(eq=False)
class _Trial:
    """A text that the document does not have; ``answer`` is given when ``done``."""

    uri: str
    path: Path
    version: int | None
    text: str
    done: threading.Event = field(factory=threading.Event)
    answer: tuple[FileReport, tuple[str, ...]] | None = None


@define
class _Open:
    path: Path
    version: int | None
    report: FileReport | None = None
    text: str = ""


class Session:
    """Analyses documents in a thread of its own. ``publish`` receives every new report."""

    def __init__(self, settings: Settings, publish: Published) -> None:
        self._publish = publish
        self._analyzer = Analyzer(settings, quick=True, learnt=self._again)
        self._waiting: OrderedDict[str, _Change] = OrderedDict()
        self._open: dict[str, _Open] = {}
        self._trials: deque[_Trial] = deque()
        self._closing: list[Path] = []
        self._outdated: set[Path] = set()  # documents whose headers are to be read again
        self._condition = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="cuda-lsp-analysis", daemon=True)
        self._thread.start()

    def change(self, uri: str, path: Path, text: str, version: int | None) -> None:
        """The document has this text now."""
        with self._condition:
            known = self._open.setdefault(uri, _Open(path, version))
            known.version, known.text = version, text
            self._waiting[uri] = _Change(uri, path, text, version)
            self._condition.notify_all()

    def close(self, uri: str) -> None:
        """The document is closed."""
        with self._condition:
            known = self._open.pop(uri, None)
            self._waiting.pop(uri, None)
            if known:
                self._closing.append(known.path)
            self._condition.notify_all()

    def refresh(self) -> None:
        """Headers may have changed: read them again, and with them every document."""
        with self._condition:
            for uri, known in self._open.items():
                self._outdated.add(known.path)
                self._waiting.setdefault(uri, _Change(uri, known.path, known.text, known.version))
            self._condition.notify_all()

    def report(self, uri: str) -> FileReport | None:
        """The newest report of a document."""
        known = self._open.get(uri)
        return known.report if known else None

    def kernel(self, path: Path, name: str) -> Kernel | None:
        """The newest translation of one kernel of an open document."""
        return self._analyzer.kernel(path, name)

    def settled(self, uri: str, version: int | None, seconds: float) -> FileReport | None:
        """The report of this version, waiting for it up to ``seconds``."""
        with self._condition:
            self._condition.wait_for(lambda: self._has(uri, version), seconds)
            return self.report(uri)

    def tried(self, uri: str, version: int | None, text: str) -> FileReport | None:
        """What the first tier says of another text, as if this version of the document had it.

        Waits in a thread of the caller's; edits come first. None: the document has another version now.
        """
        for _ in range(2):
            with self._condition:
                known = self._open.get(uri)
                if known is None or known.version != version or self._stopped:
                    return None
                trial = _Trial(uri, known.path, version, text)
                self._trials.append(trial)
                self._condition.notify_all()
            trial.done.wait(_TRIAL)
            if trial.answer is None:
                return None
            report, unfinished = trial.answer
            if not unfinished:
                return report
            self._analyzer.finish(unfinished)
        return None

    def stop(self) -> None:
        """End the analysis; solver processes are killed."""
        with self._condition:
            self._stopped = True
            self._condition.notify_all()
        self._analyzer.shutdown()

    # ----------------------------------------------------------------------- the analysis thread

    def _has(self, uri: str, version: int | None) -> bool:
        report = self.report(uri)
        return self._stopped or (report is not None and report.version == version)

    def _work(self) -> None:
        self._analyzer.warm_up()
        # A full collection walks every kept kernel, up to 100 ms: it waits for a pause in the typing.
        gc.disable()
        changes = 0
        while True:
            with self._condition:
                paused = changes > 0 and not self._condition.wait_for(self._has_work, _PAUSE)
            if paused:
                self._complete()
                self._analyzer.rest()
            if paused or changes >= _MOST_CHANGES:
                gc.collect()
                return_memory()
                changes = 0
            with self._condition:
                self._condition.wait_for(self._has_work)
                if self._stopped:
                    return
                closing, self._closing = self._closing, []
                change = self._waiting.popitem(last=False)[1] if self._waiting else None
                trial = self._trials.popleft() if self._trials and not change else None
            for path in closing:
                self._analyzer.close(path)
            if change:
                self._analyse(change)
                changes += 1
            if trial:
                self._try(trial)
                changes += 1
            self._analyzer.rest()

    def _again(self, path: Path) -> None:
        """Something outside the document's text is known now: the same text is analysed again."""
        with self._condition:
            for uri, known in self._open.items():
                if known.path == path:
                    self._waiting.setdefault(uri, _Change(uri, path, known.text, known.version))
            self._condition.notify_all()

    def _complete(self) -> None:
        """Read the texts whole of which the last keystrokes read one kernel."""
        with self._condition:
            known = [(uri, document.path, document.text) for uri, document in self._open.items()]
        for uri, path, text in known:
            report = self._guarded(path, partial(self._analyzer.complete, path, text))
            if report is not None:
                self._deliver(uri, report)
                self._refine(uri, path)

    def _has_work(self) -> bool:
        return bool(self._waiting or self._closing or self._trials or self._stopped)

    def _analyse(self, change: _Change) -> None:
        report = self._guarded(change.path, partial(self._update, change))
        if report is None:
            return
        opened = self.report(change.uri) is None
        self._deliver(change.uri, report)
        self._refine(change.uri, change.path)
        if opened:
            return_memory()

    def _try(self, trial: _Trial) -> None:
        known = self._open.get(trial.uri)
        if known is not None and known.version == trial.version:
            try:
                trial.answer = self._analyzer.tried(trial.path, trial.text)
            except Exception:
                log.exception("analysis of a repair of %s failed", trial.path)
        trial.done.set()

    def _update(self, change: _Change) -> FileReport:
        if change.path in self._outdated:
            self._outdated.discard(change.path)
            self._analyzer.refresh(change.path)
        return self._analyzer.update(change.path, change.text, change.version)

    def _refine(self, uri: str, path: Path) -> None:
        self._analyzer.refine(path, partial(self._deliver, uri))

    def _guarded(self, path: Path, analysis: Callable[[], FileReport | None]) -> FileReport | None:
        try:
            return analysis()
        except Exception:
            log.exception("analysis of %s failed", path)
            return None

    def _deliver(self, uri: str, report: FileReport) -> None:
        with self._condition:
            known = self._open.get(uri)
            if known is None or known.version != report.version:
                return
            if known.report is not None and evolve(report, seconds=known.report.seconds) == known.report:
                return
            known.report = report
            self._condition.notify_all()
        self._publish(uri, report, all(kernel.refined for kernel in report.kernels))


def return_memory() -> None:
    """Give freed memory back to the system: glibc keeps what parses leave behind, 100 MB for 20 files."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library: it decides by itself
        return
    trim(0)
