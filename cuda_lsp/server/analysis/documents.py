"""The documents of the server and their analysis, inside the analysis process: one thread, newest text wins.

A change is queued and analysed at once; a newer version replaces one that waits. The first tier is
told as soon as it is there, the solver's answers later, and only what differs from what was told
before. A keystroke inside a kernel reads that kernel only; a pause in the typing reads the whole text.
What a keystroke had no time for follows when nothing else is to be done, and ends when somebody types.
Reports of older versions are never told. The client itself moves old squiggles with the text until
new ones come, so nothing is cleared in between.
"""

from __future__ import annotations

import contextlib
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
from cuda_lsp.model import FileReport
from cuda_lsp.server.analysis.slate import Slate
from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.static.deadline import yielding

log = logging.getLogger(__name__)

_STACK = 64 << 20  # bytes, for expressions that nest deeply
_PAUSE = 0.7  # seconds without a change after which rubbish is collected
_TRIAL = 30.0  # seconds that somebody waits for the analysis of a text that is none of the document's
_STEPS = 4  # of a trial: what was cut is executed, then proved, and then it is told
_MOST_CHANGES = 300  # … or after so many changes without a pause


class Listener:
    """Who is told of the documents, from any thread. ``number``: of the message that brought the text."""

    def reported(self, uri: str, report: FileReport) -> None:
        """A new report; its version is the number."""
        raise NotImplementedError

    def failed(self, uri: str, number: int, error: Exception) -> None:
        """There is no report of this text, by a mistake of ours."""
        raise NotImplementedError

    def closed(self, uri: str) -> None:
        """Nothing more will be told of this document as it was."""
        raise NotImplementedError


@frozen
class _Change:
    """``again``: the text was analysed before, and there is more to find of it, or to know."""

    uri: str
    path: Path
    text: str
    number: int
    again: bool = False


@define(eq=False)
class _Trial:
    """A text that the document does not have, of message ``asked``; ``answer`` is given when ``done``."""

    asked: int
    uri: str
    path: Path
    number: int
    text: str
    settled: bool
    done: threading.Event = field(factory=threading.Event)
    answer: tuple[FileReport, tuple[str, ...]] | None = None


@define
class _Open:
    path: Path
    number: int
    report: FileReport | None = None
    text: str = ""


class Documents:
    """Analyses documents in a thread of its own. A text is known by the number of its message."""

    def __init__(self, settings: Settings, listener: Listener, slate: Slate, number: int) -> None:
        self._listener = listener
        self._slate = slate
        self._start = number
        self.analyzer = Analyzer(settings, quick=True, learnt=self._again)
        self._waiting: OrderedDict[str, _Change] = OrderedDict()
        self._open: dict[str, _Open] = {}
        self._trials: deque[_Trial] = deque()
        self._closing: list[tuple[str, Path]] = []
        self._outdated: set[Path] = set()  # documents whose headers are to be read again
        self._urgent = False  # somebody has typed since the thread last looked
        self._condition = threading.Condition()
        usual = threading.stack_size(_STACK)
        threading.Thread(target=self._work, name="cuda-lsp-analysis", daemon=True).start()
        threading.stack_size(usual)

    def change(self, number: int, uri: str, path: Path, text: str) -> None:
        """The document has this text now."""
        with self._condition:
            known = self._open.setdefault(uri, _Open(path, number))
            known.number, known.text = number, text
            self._waiting[uri] = _Change(uri, path, text, number)
            self._urgent = True
            self._condition.notify_all()

    def close(self, uri: str) -> None:
        """The document is closed."""
        with self._condition:
            known = self._open.pop(uri, None)
            self._waiting.pop(uri, None)
            if known:
                self._closing.append((uri, known.path))
            self._urgent = True
            self._condition.notify_all()

    def look(self, path: Path, line: int) -> None:
        """Somebody looks at this line (from 1)."""
        self.analyzer.looked_at[path] = line

    def refresh(self) -> None:
        """Headers may have changed: read them again, and with them every document."""
        with self._condition:
            for uri, known in self._open.items():
                self._outdated.add(known.path)
                self._waiting.setdefault(uri, _Change(uri, known.path, known.text, known.number))
            self._condition.notify_all()

    def tried(self, asked: int, uri: str, number: int, text: str, settled: bool) -> FileReport | None:
        """What the first tier says of another text, as if the document had it; ``settled``: both tiers.

        ``asked`` is the message with that text. Waits in a thread of the caller's; edits come first. None:
        the document has another text now than that of message ``number``, or proofs of texts came first.
        """
        for _ in range(_STEPS):
            with self._condition:
                known = self._open.get(uri)
                if known is None or known.number != number:
                    return None
                trial = _Trial(asked, uri, known.path, number, text, settled)
                self._trials.append(trial)
                self._condition.notify_all()
            trial.done.wait(_TRIAL)
            if trial.answer is None:
                return None
            report, unfinished = trial.answer
            if not unfinished:
                return report
            self.analyzer.finish(unfinished)
        return None

    # ----------------------------------------------------------------------- the analysis thread

    def _work(self) -> None:
        with self._slate.at(self._start):
            self.analyzer.warm_up()
        # A full collection walks every kept kernel, up to 100 ms: it waits for a pause in the typing.
        gc.disable()
        changes = 0
        while True:
            with self._condition:
                paused = changes > 0 and not self._condition.wait_for(self._has_work, _PAUSE)
            if paused:
                self._complete()
                self.analyzer.rest()
            if paused or changes >= _MOST_CHANGES:
                gc.collect()
                return_memory()
                changes = 0
            with self._condition:
                self._condition.wait_for(self._has_work)
                closing, self._closing = self._closing, []
                change = self._waiting.popitem(last=False)[1] if self._waiting else None
                trial = self._trials.popleft() if self._trials and not change else None
                self._urgent = any(not waiting.again for waiting in self._waiting.values())
            for uri, path in closing:
                self.analyzer.close(path)
                self._listener.closed(uri)
                changes += 1
            if change:
                self._analyse(change)
                changes += 1
            if trial:
                self._try(trial)
                changes += 1
            self.analyzer.rest()

    def _has_work(self) -> bool:
        return bool(self._waiting or self._closing or self._trials)

    def _again(self, path: Path) -> None:
        """Something outside the document's text is known now: the same text is analysed again."""
        with self._condition:
            for uri, known in self._open.items():
                if known.path == path:
                    self._waiting.setdefault(uri, _Change(uri, path, known.text, known.number, again=True))
            self._condition.notify_all()

    def _complete(self) -> None:
        """Analyse what the last keystrokes put off, until there is something else to do."""
        with self._condition:
            known = [_Change(uri, d.path, d.text, d.number) for uri, d in self._open.items()]
        for change in known:
            analysis = partial(self.analyzer.complete, change.path, change.text)
            with yielding(self._has_work):
                while self.analyzer.is_partial(change.path) and not self._has_work():
                    self._guarded(change, analysis)

    def _analyse(self, change: _Change) -> None:
        known = self._open.get(change.uri)
        opened = known is not None and known.report is None
        urgent: Callable[[], bool] | None = self._is_urgent if change.again else None
        if opened:  # who types in it does not wait until all of its kernels are looked at
            urgent = partial(self._waiting.__contains__, change.uri)
        with yielding(urgent) if urgent is not None else contextlib.nullcontext():
            self._guarded(change, partial(self._update, change))
        if self.analyzer.has_put_off(change.path):
            self._again(change.path)
        if opened:
            return_memory()

    def _is_urgent(self) -> bool:
        return self._urgent

    def _update(self, change: _Change) -> FileReport:
        if change.path in self._outdated:
            self._outdated.discard(change.path)
            self.analyzer.refresh(change.path)
        said = partial(self._deliver, change.uri)
        return self.analyzer.update(change.path, change.text, change.number, said=said)

    def _try(self, trial: _Trial) -> None:
        known = self._open.get(trial.uri)
        if known is not None and known.number == trial.number:
            try:
                with self._slate.at(trial.asked), yielding(self._is_urgent):
                    trial.answer = self.analyzer.tried(trial.path, trial.text, settled=trial.settled)
            except Exception:
                log.exception("analysis of a repair of %s failed", trial.path)
        trial.done.set()

    def _guarded(self, change: _Change, analysis: Callable[[], FileReport | None]) -> None:
        """Do something about a document's text, and tell what comes of it."""
        deliver = partial(self._deliver, change.uri)
        try:
            with self._slate.at(change.number):
                report = analysis()
                if report is None:
                    return
                deliver(report)
                if not self._is_outdated(change):  # otherwise the newer text asks for what it needs
                    self.analyzer.refine(change.path, deliver)
        except Exception as error:
            log.exception("analysis of %s failed", change.path)
            self._listener.failed(change.uri, change.number, error)

    def _is_outdated(self, change: _Change) -> bool:
        waiting = self._waiting.get(change.uri)
        return waiting is not None and not waiting.again

    def _deliver(self, uri: str, report: FileReport) -> None:
        with self._condition:
            known = self._open.get(uri)
            if known is None or known.number != report.version:
                return
            if known.report is not None and evolve(report, seconds=known.report.seconds) == known.report:
                return
            known.report = report
            self._listener.reported(uri, report)  # in this order


def return_memory() -> None:
    """Give freed memory back to the system: glibc keeps what parses leave behind, 100 MB for 20 files."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library: it decides by itself
        return
    trim(0)
