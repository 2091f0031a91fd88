"""The documents of one client, and the process that analyses them.

Texts go out as they come, reports come in when they are new, and reports of older texts are not shown. When
the process crashes, takes too long or needs too much memory, it is started again with all texts but the
one that it was at: this is told as undecided, with the reason, until it is edited. A text that crashes edit
after edit waits before it is tried again, so that the others do not.
"""

from __future__ import annotations

import itertools
import logging
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define, evolve

from cuda_lsp.config import Settings
from cuda_lsp.model import FileReport, KernelReport, ToolError, Verdict
from cuda_lsp.server.analysis.messages import Closed, Failed, Failure, Log
from cuda_lsp.server.analysis.process import AnalysisProcess, Death
from cuda_lsp.server.analysis.reports import Receiver, Sent

if TYPE_CHECKING:
    from cuda_lsp.static.analyze import Analyzer

log = logging.getLogger(__name__)

_LOOK = 0.25  # seconds between two looks at a process that has something to do
_TRIAL = 70.0  # seconds that somebody waits for the analysis of a text that is none of the document's
_ASKED = 60.0  # … or for anything else
_STRIKES = 3  # deaths for no known cause at one text, after which it is the cause
_IN_A_ROW = 2  # texts of a document that may fail before the next one waits
_LONGEST_WAIT = 60.0

Published = Callable[[str, FileReport, bool], None]
"""Called from a thread of the session's: uri, report, whether the solver has finished with it."""

T = TypeVar("T")


@define
class _Document:
    """``number``: of the message with its text. ``report`` is of that text when their versions agree."""

    path: Path
    version: int | None
    text: str
    number: int
    sent: bool = False
    report: FileReport | None = None
    reported: int = 0  # the message whose text ``report`` is of
    again: bool = False  # the process is another than the one that made the report
    strikes: int = 0  # processes that ended, for whatever cause, while they were at this text
    failures: int = 0  # texts in a row of which there was no report
    reason: str = ""  # why the text is not analysed
    not_before: float = 0.0  # when another text of it may be tried
    waits: bool = False  # for that
    line: int = 1  # that somebody looks at


class Session:
    """Analyses documents in another process. ``publish`` receives every new report.

    ``process``: one that was started before, by a thread that lives as long as this one.
    """

    def __init__(
        self, settings: Settings, publish: Published, process: AnalysisProcess | None = None
    ) -> None:
        self._settings = settings
        self._publish = publish
        self._numbers = itertools.count(1)
        self._open: dict[str, _Document] = {}
        self._asked: dict[int, Future[Any]] = {}
        self._condition = threading.Condition()
        self._stopped = False
        self._ended = False  # the process, and no other was started yet
        self._something = threading.Event()  # the process may have something to do
        self._urgent = threading.Event()  # it has ended, or the session
        self._fruitless = 0  # processes in a row that ended before there was any report
        self._process = self._started(process or AnalysisProcess())
        threading.Thread(target=self._keep, name="cuda-lsp-watch", daemon=True).start()

    def change(self, uri: str, path: Path, text: str, version: int | None) -> None:
        """The document has this text now."""
        with self._condition:
            number = next(self._numbers)
            known = self._open.get(uri)
            if known is None:
                known = self._open[uri] = _Document(path, version, text, number)
            known.version, known.text, known.number, known.strikes = version, text, number, 0
            known.waits = known.not_before > time.monotonic()
            if not known.waits:
                known.reason = ""
            self._pass_on(uri, known)
            failed = self._give_up(known) if known.waits else None
        if failed:
            self._publish(uri, failed, True)

    def look(self, uri: str, line: int) -> None:
        """Somebody looks at this line (from 1) of a document: what stands there comes first."""
        with self._condition:
            known = self._open.get(uri)
            if known is not None and known.line != line:
                known.line = line
                self._send("look", known.path, line)

    def close(self, uri: str) -> None:
        """The document is closed."""
        with self._condition:
            if self._open.pop(uri, None):
                self._send("close", uri)

    def refresh(self) -> None:
        """Headers may have changed: read them again, and with them every document."""
        with self._condition:
            self._send("refresh")
            for uri, known in self._open.items():
                if known.reason:  # another header may mend it
                    self._take_up(uri, known)

    def report(self, uri: str) -> FileReport | None:
        """The newest report of a document."""
        known = self._open.get(uri)
        return known.report if known else None

    def reports(self) -> tuple[FileReport, ...]:
        """The newest ones of all documents."""
        return tuple(known.report for known in list(self._open.values()) if known.report)

    def settled(self, uri: str, version: int | None, text: str, seconds: float) -> FileReport | None:
        """The report of this version, waiting for it up to ``seconds``.

        None: it is not there, or the document was closed and opened again, with another ``text``, since.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._has(uri, version), seconds)
            known = self._open.get(uri)
            if known is None or (known.version, known.text) != (version, text) or not self._has(uri, version):
                return None
            return known.report

    def tried(
        self,
        uri: str,
        version: int | None,
        text: str,
        *,
        settled: bool = False,
        seconds: float = _TRIAL,
        stopped: Future[None] | None = None,
    ) -> FileReport | None:
        """What the first tier says of another text, as if this version of the document had it.

        ``settled``: both tiers. Waits in a thread of the caller's, so many seconds, or until it is
        ``stopped``; edits come first. None: the document has another version now, or there is no telling.
        """
        with self._condition:
            known = self._open.get(uri)
            if known is None or known.version != version or known.reason:
                return None
            answer = self._ask("try", uri, known.number, text, settled)
        wait({answer} if stopped is None else {answer, stopped}, seconds, FIRST_COMPLETED)
        return self._answer(answer)

    def ask(self, work: Callable[[Analyzer], T]) -> T | None:
        """What ``work`` (pickled) makes of the analyzer, in its process; None: that ended.

        Waits in a thread of the caller's. Raises RuntimeError when the work does.
        """
        with self._condition:
            answer = self._ask("ask", work)
        wait({answer}, _ASKED)
        return self._answer(answer)

    def stop(self) -> None:
        """End the analysis, with its processes."""
        with self._condition:
            self._stopped = True
            self._condition.notify_all()
            process = self._process
        self._urgent.set()
        self._something.set()
        process.close()

    # ------------------------------------------------------------------------------------- texts out

    def _started(self, process: AnalysisProcess) -> AnalysisProcess:
        receiver = Receiver()
        process.start(lambda heard: self._heard(process, receiver, heard), lambda: self._gone(process))
        process.send(next(self._numbers), self._settings, logging.getLogger().level)
        return process

    def _send(self, *message: Any) -> int:
        number = next(self._numbers)
        self._process.send(number, *message)
        self._something.set()
        return number

    def _pass_on(self, uri: str, known: _Document) -> None:
        """Have a document's text analysed, unless it has to wait."""
        known.sent = not known.reason and not self._ended
        if known.sent:
            self._process.send(known.number, "change", uri, known.path, known.text)
            self._something.set()

    def _take_up(self, uri: str, known: _Document) -> None:
        """Try a text that was given up, or had to wait."""
        known.reason, known.not_before, known.waits = "", 0.0, False
        self._pass_on(uri, known)

    def _ask(self, *message: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        if self._ended or self._stopped:
            answer.set_result(None)
        else:
            self._asked[self._send(*message)] = answer
        return answer

    def _answer(self, answer: Future[Any]) -> Any:
        found = answer.result() if answer.done() else None
        if isinstance(found, Failure):
            raise RuntimeError(found.reason)
        return found

    # ------------------------------------------------------------------------------------ reports in

    def _heard(self, process: AnalysisProcess, receiver: Receiver, message: Any) -> None:
        if isinstance(message, Sent):
            report = receiver.report(message)
            if process is self._process:
                self._deliver(message.uri, report)
        elif isinstance(message, Failed):
            self._fail(message.uri, message.number, message.reason)
        elif isinstance(message, Closed):
            receiver.forget(message.uri)
        elif isinstance(message, Log):
            logging.getLogger(message.name).log(message.level, "%s", message.text)
        else:
            number, answer = message
            with self._condition:
                asked = self._asked.pop(number, None)
            if asked:
                asked.set_result(answer)

    def _has(self, uri: str, version: int | None) -> bool:
        known = self._open.get(uri)
        has = known is not None and known.version == version and known.reported == known.number
        return self._stopped or has

    def _deliver(self, uri: str, report: FileReport) -> None:
        with self._condition:
            known = self._open.get(uri)
            if known is None or known.number != report.version or known.reason or self._stopped:
                return
            self._fruitless = known.failures = known.strikes = 0
            report = evolve(report, version=known.version)
            if known.again:
                known.again = not _refined(report)
                shown = known.report if known.reported == known.number else None
                if shown and (known.again or evolve(report, seconds=shown.seconds) == shown):
                    return
            known.report = report
            if _whole(report):
                known.reported = known.number
            self._condition.notify_all()
        self._publish(uri, report, _refined(report))

    # ------------------------------------------------------------------------------- when it goes wrong

    def _fail(self, uri: str, number: int, reason: str) -> None:
        """There is no report of a text, and there will be none."""
        with self._condition:
            known = self._open.get(uri)
            if known is None:
                return
            known.failures += 1
            if known.failures > _IN_A_ROW:
                wait = min(2.0 ** (known.failures - _IN_A_ROW), _LONGEST_WAIT)
                known.not_before = time.monotonic() + wait
            known.waits = known.number != number and known.not_before > time.monotonic()
            if known.number != number and not known.waits:
                return  # the next text is tried
            known.reason = reason
            report = self._give_up(known)
        self._publish(uri, report, True)

    def _give_up(self, known: _Document) -> FileReport:
        reason = f"{known.path.name} is not analysed: {known.reason}"
        kernels = known.report.kernels if known.report else ()
        undecided = tuple(k for kernel in kernels if (k := _undecided(kernel, known.text, reason)))
        report = FileReport(known.path, undecided, (ToolError(reason),), version=known.version)
        known.report, known.reported, known.again = report, known.number, False
        self._condition.notify_all()
        return report

    def _gone(self, process: AnalysisProcess) -> None:
        """A process has ended, and all that it said was heard."""
        with self._condition:
            asked, self._asked = self._asked, {}
            self._ended = self._ended or process is self._process
        self._urgent.set()
        self._something.set()
        for answer in asked.values():
            answer.set_result(None)

    def _keep(self) -> None:
        """Look after the process while it has something to do, and start another when it has ended."""
        while not self._stopped:
            self._something.wait(self._next_look())
            self._something.clear()
            if not self._urgent.wait(_LOOK) and self._process.busy:
                self._process.look()
            if self._ended and not self._stopped:
                self._revive(self._process)
            with self._condition:
                self._try_again()
            if self._process.busy:
                self._something.set()

    def _next_look(self) -> float | None:
        waiting = [known.not_before for known in list(self._open.values()) if known.waits]
        return max(0.0, min(waiting) - time.monotonic()) if waiting else None

    def _try_again(self) -> None:
        """Pass on texts that had to wait long enough."""
        for uri, known in self._open.items():
            if known.waits and known.not_before <= time.monotonic():
                self._take_up(uri, known)

    def _revive(self, ended: AnalysisProcess) -> None:
        """Start another process, with all texts but the one that is to blame."""
        death = ended.death()
        log.warning("the analysis process ended: it %s", death.reason)
        self._blame(death)
        while (process := self._another()) is None and not self._stopped:
            pass
        with self._condition:
            if process is None or self._stopped:
                return process.close() if process else None
            self._process, self._ended = self._started(process), False
            self._urgent.clear()
            for uri, known in sorted(self._open.items(), key=lambda item: item[1].failures):
                number, has = next(self._numbers), known.reported == known.number
                known.number, known.reported, known.again = number, number if has else 0, True
                self._pass_on(uri, known)

    def _another(self) -> AnalysisProcess | None:
        """A new process, later and later when none comes to anything; None: it could not be started."""
        with self._condition:
            if self._fruitless:
                seconds = min(2.0 ** min(self._fruitless, 10) / 4, _LONGEST_WAIT)
                self._condition.wait_for(lambda: self._stopped, seconds)
            self._fruitless += 1
        try:
            return None if self._stopped else AnalysisProcess()
        except OSError as error:
            log.error("the analysis process could not be started: %s", error)
            return None

    def _blame(self, death: Death) -> None:
        with self._condition:
            found = next((item for item in self._open.items() if item[1].number == death.text), None)
            if found is None:
                return
            uri, known = found
            known.strikes += 1
            blamed = death.blamed or known.strikes >= _STRIKES
        if blamed:
            self._fail(uri, death.text, f"its analysis {death.reason}; the next edit tries it again")


def _whole(report: FileReport) -> bool:
    """Whether each kernel was looked at: of those of a file that was just opened some come later."""
    return all(kernel.refined or kernel.key for kernel in report.kernels)


def _refined(report: FileReport) -> bool:
    return all(kernel.refined for kernel in report.kernels)


def _undecided(kernel: KernelReport, text: str, reason: str) -> KernelReport | None:
    """What is left of a kernel's report in a text that is not analysed; None: it has no such kernel."""
    name = re.escape(kernel.name.split("<")[0])
    place = re.search(rf"\b{name}\s*\(", text)
    if place is None:
        return None
    line = text.count("\n", 0, place.start()) + 1
    return KernelReport(
        kernel.name,
        kernel.range.shifted(line - kernel.range.start.line),
        Verdict.UNDECIDED,
        (reason,),
        kernel.launches,
        refined=True,
    )
