"""The tiers at work on files: what runs now, what runs in the background, what a change invalidates.

``Analyzer.update`` is the keystroke path: parse, lower the kernels whose digest changed, enumerate
them. It does no I/O of its own and waits for no solver. ``Analyzer.refine`` hands undecided kernels to
solver processes, which first finish what the keystroke path had to cut, and publishes each answer.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Mapping, Set
from functools import partial
from pathlib import Path

from attrs import evolve

from cuda_lsp.config import Settings
from cuda_lsp.frontend.host.launch_site import Called, LaunchSite
from cuda_lsp.frontend.host.naming import one_moment
from cuda_lsp.frontend.host.workspace import Workspace
from cuda_lsp.frontend.kernel_sources import KernelSource
from cuda_lsp.frontend.toolchain import FrontendOptions
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import Code, FileReport, KernelReport, Severity, ToolError, Verdict
from cuda_lsp.static import budgets, kept_reports, work
from cuda_lsp.static.background import Answer, Background
from cuda_lsp.static.broken_texts import broken_templates, closed, first_line
from cuda_lsp.static.carried import Carried
from cuda_lsp.static.deadline import interrupted
from cuda_lsp.static.decided import Decided
from cuda_lsp.static.kept_reports import KeptReport, keyed
from cuda_lsp.static.opening import Document, Keyed, Publish, parts, undecided
from cuda_lsp.static.pace import Pace
from cuda_lsp.static.rewrites.attempts import with_waits
from cuda_lsp.static.rewrites.grid_barriers import with_grid_barriers
from cuda_lsp.static.rewrites.locks import with_critical_sections
from cuda_lsp.static.rewrites.retries import with_retries
from cuda_lsp.static.shares import Shares
from cuda_lsp.static.stored_values import is_open, may_open, with_stored_values
from cuda_lsp.static.suppressed import unused, without_suppressed
from cuda_lsp.static.tiers import FirstTier, enumerate_kernel

_PROBE = "__global__ void k(int* a, int n) { if (threadIdx.x < n) a[threadIdx.x] = n; }\n"
_NOT_INSTANTIATED = (
    "a template that nothing in this file instantiates, and no guess of its arguments compiles;"
    " instantiate it explicitly"
)

_PATIENCE_S = 5.0
"""That who asks for a kernel waits for one that was put off."""

_Elsewhere = Mapping[str, tuple[LaunchSite, ...]]


class Analyzer:
    """One per process: owns the open translations, the reports and the solver processes.

    ``update`` must be called from one thread at a time; ``refine`` publishes from a worker thread.
    ``quick``: an editor is waiting (see ``enumerate_kernel``). ``learnt`` is then called, from a
    background thread, with a path whose kernels other files launch: ``update`` it again. Without it an
    editor's files are not looked for elsewhere.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        quick: bool = False,
        learnt: Callable[[Path], None] | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self._quick = quick
        self._learnt = learnt
        self._workspace = Workspace()
        self._searches: queue.Queue[tuple[Path, Document] | None] = queue.Queue()
        self._searcher: threading.Thread | None = None
        self._documents: dict[Path, Document] = {}
        self._settings_of: dict[Path, Settings] = {}
        self._reports: OrderedDict[str, KeptReport] = OrderedDict()
        self._unfollowed: dict[
            str, tuple[Translation, KernelSource]
        ] = {}  # cut, and their values not lowered
        self._lock = threading.RLock()
        self._looked_at = threading.Condition(self._lock)  # kernels that were put off
        self.looked_at: dict[Path, int] = {}  # lines, from 1: what stands there comes first
        self._background = Background(self.settings.solver_processes, self.settings_of, self._answered)

    def settings_of(self, path: Path) -> Settings:
        """Those of one file."""
        if not (self.settings.per_file or self.settings.folders):
            return self.settings
        if path not in self._settings_of:
            self._settings_of[path] = self.settings.of_file(path)
        return self._settings_of[path]

    def update(
        self, path: Path, text: str, version: int | None = None, *, unit: Path | None = None,
        said: Publish | None = None, settled: bool = False,
    ) -> FileReport:  # fmt: skip
        """Analyse the newest text of a file: first tier, cached kernels as far as they are known.

        ``unit``: the file in which a header is read, while it is opened; None: one is looked for. ``said`` is
        told what is known of it then while there is more to come. ``settled``: also kernels whose code was
        decided before; while somebody types these are put off (``has_put_off``).
        """
        started = time.perf_counter()
        text, unclosed = closed(path, text) if self._quick else (text, [])
        pace = self._pace(self._documents.get(path), text, settled)
        document = self._open(path, text, unit)
        translation = document.translation
        self._look_around(path, document, text)
        if said is not None and not document.text:
            document.text, document.version = text, version
            self._say_in_parts(path, document, pace, said)
        decided = self._decided(document, text, pace)
        keys, errors, unknown, waiting = self._first_tier(translation, pace, decided)
        errors += unclosed
        hidden = [k for k in broken_templates(translation) if k.base_name in document.last_good]
        unknown = tuple(k for k in unknown if all(k.range != source.range for source in hidden))
        good: dict[str, list[str]] = {}
        for key, _ in keys:
            if key in self._reports:
                good.setdefault(self._reports[key].base_name, []).append(key)
        document.last_good |= good
        vanished = self._vanished(document, text, (*translation.unreadable, *(k.base_name for k in hidden)))
        with self._lock:
            document.keys, document.errors, document.version = [*keys, *vanished], tuple(errors), version
            document.hidden = frozenset(key for key, _ in vanished)
            document.unknown, document.text = unknown, text
            shown = decided.waiting(waiting).items()
            document.put_off = {key: report for key, report in shown if key not in self._reports}
            document.typed_at, document.asked_for = pace.line, False
            self._looked_at.notify_all()
            document.directives = translation.directives
            document.seconds = time.perf_counter() - started
            self._forget_old()
            return self._report(path, document)

    def complete(self, path: Path, text: str) -> FileReport | None:
        """Analyse what ``update`` put off of the newest text, read whole for it; None: nothing was."""
        document = self._documents.get(path)
        if document is None or not self.is_partial(path):
            return None
        document.translation.complete(closed(path, text)[0])
        return self.update(path, text, document.version, settled=True)

    def tried(
        self, path: Path, text: str, *, settled: bool = False
    ) -> tuple[FileReport, tuple[str, ...]] | None:
        """What is known of an open file if it had another text, and the keys of what is not finished.

        That is what the first tier had to cut; ``settled``: also what the solver has not decided. The file
        itself stays as it is; from ``update``'s thread. None: the file is not open, or the thread was wanted.
        """
        document = self._documents.get(path)
        if document is None:
            return None
        translation = document.translation
        self._forget_unfollowed()
        translation.reparse(text, focused=self._quick)
        keys, errors, unknown, waiting = self._first_tier(translation, Pace.of_trial())
        if waiting:
            return None  # somebody types
        with self._lock:
            imagined = Document(translation, translation.directives, Carried(path), keys=keys)
            imagined.errors, imagined.unknown = tuple(errors), unknown
            found = {key: self._reports[key] for key, _ in keys}
            cut = tuple(key for key, k in found.items() if k.first.cut or (settled and self._is_open(k)))
            return self._report(path, imagined), cut

    def finish(self, keys: Iterable[str]) -> None:
        """Have the background find what is next of kernels that are not finished; blocks, from any thread."""
        for key in keys:
            known = self._reports.get(key)
            if known is None or not self._is_open(known):
                continue
            first = known.first
            answer = self._background.once(known.kernel, first)
            with self._lock:
                if answer is not None and known.first is first and self._is_open(known):
                    known.take_in(answer, self.settings_of(known.kernel.range.path))

    def refresh(self, path: Path) -> None:
        """A header changed on disk: the next ``update`` sees it."""
        document = self._documents.get(path)
        if document is not None:
            document.translation.refresh()
            with self._lock:
                document.carried.surroundings_changed()

    def refine(self, path: Path, publish: Publish) -> int:
        """Send the file's kernels that are not settled to the background; returns how many.

        What only earlier texts asked for is dropped. ``publish`` gets the report after each answer.
        """
        document = self._documents.get(path)
        if document is None:
            return 0
        self._follow_values()
        document.publish = publish
        line = self.looked_at.get(path, 1)
        near = sorted(document.keys, key=lambda place: abs(place[1] - line))
        known = ((key, self._reports.get(key)) for key, _ in near)
        open_ = {key: (k.kernel, k.first) for key, k in known if k is not None and not k.report.refined}
        return self._background.want(path, open_)

    def settle(
        self, path: Path, said: Publish | None = None, left_open: Set[int] = frozenset()
    ) -> FileReport:
        """The second tier in this process, blocking: what ``refine`` does in the background.

        First all kernels with little of the solver's time, then what that did not decide with a share of the
        file's (``budgets.FILE_SHARES``), where it is larger than what the kernel had. Of a template of which
        one instance was not decided in its time the others have little of it, as have kernels on lines that
        are ``left_open`` whatever is found. ``said`` is told what is known while there is more to come.
        """
        document, settings = self._documents[path], self.settings_of(path)
        while document.put_off:
            self.update(path, document.text, document.version, settled=True)
        self._follow_values()
        open_ = [known for key, _ in document.keys if not (known := self._reports[key]).report.refined]
        told, digests = work.done(), {id(known): known.likeness() for known in open_}
        had: dict[str, int] = {}
        stuck: dict[tuple[str, int], KeptReport] = {}  # an instance of each template
        for again in (False, True):
            likes = [digests[id(known)] for known in open_]  # instances that are alike have one share
            shares, undecided = Shares(settings.solver_budget, len(set(likes)), again), list[KeptReport]()
            alike: kept_reports.Alike = {}
            given: dict[str, int | None] = {}
            for known, key in zip(open_, likes, strict=True):
                other = stuck.get(known.template, known)
                hopeless = other is not known and other.report.verdict is Verdict.UNDECIDED
                hopeless = hopeless or known.line in left_open
                budget = given[key] if key in alike else shares.following(hopeless)
                if key not in alike and budget is not None and budget <= had.get(key, 0):
                    budget = None  # it would tell no more; others have what it leaves
                given[key] = budget
                if budget is not None and known.settle(evolve(settings, solver_budget=budget), alike, key):
                    undecided += [known] if budget < settings.solver_budget else []
                    stuck.setdefault(known.template, known)
                if said is not None and work.done() > told + budgets.TOLD_S:
                    told = work.done()
                    said(self._report(path, document))
            open_, had = undecided, {key: share or 0 for key, share in given.items()}
        return self._report(path, document)

    def check(self, path: Path, text: str, *, solver: bool = True, unit: Path | None = None) -> FileReport:
        """Both tiers on one text, blocking; ``solver`` False: the first only. ``unit``: as in ``update``."""
        started = time.perf_counter()
        report = self.update(path, text, unit=unit)
        if solver and self.settings_of(path).solver:
            report = self.settle(path)
        return evolve(report, seconds=time.perf_counter() - started)

    def rest(self) -> None:
        """Free what reading kernels leaves behind; from ``update``'s thread, when its report is published."""
        for document in self._documents.values():
            document.translation.rest()

    def cancel(self, path: Path) -> None:
        """Drop what the background still has to do for a file."""
        self._background.want(path, {})

    def close(self, path: Path) -> None:
        """Forget an open file."""
        self.cancel(path)
        document = self._documents.pop(path, None)
        if document:
            document.translation.close()
        with self._lock:
            live = self._live()
            for key in [k for k, known in self._reports.items() if known.kernel.range.path == path]:
                if key not in live:
                    del self._reports[key]

    def shutdown(self) -> None:
        """End the solver processes and free libclang's memory."""
        self._background.close()
        self._searches.put(None)
        for path in list(self._documents):
            self.close(path)

    def warm_up(self) -> None:
        """Start the solver processes and pay for first uses before they are needed."""
        probe = Path("/cuda-lsp-warm-up.cu")
        self.update(probe, _PROBE)
        self.close(probe)
        if self.settings.solver:
            self._background.start()

    def kernel(self, path: Path, name: str) -> Kernel | None:
        """The newest translation of one kernel of an open file; waits for one that is put off."""
        document = self._documents.get(path)
        self._wait_for(path, document, name)
        keys = document.keys if document else []
        return next(
            (k.kernel for key, _ in keys if (k := self._reports.get(key)) and k.kernel.name == name), None
        )

    def has_put_off(self, path: Path) -> bool:
        """Whether kernels of an open file wait for ``update`` of the same text, decided ones aside.

        Those that the whole text must be read for wait for a pause (``complete``), if nobody asked.
        """
        document = self._documents.get(path)
        if document is None or (document.translation.is_focused and not document.asked_for):
            return False
        return any(not report.refined for report in document.put_off.values())

    def is_partial(self, path: Path) -> bool:
        """Whether there is something to ``complete``."""
        document = self._documents.get(path)
        return document is not None and (document.translation.is_focused or bool(document.put_off))

    def _wait_for(self, path: Path, document: Document | None, name: str) -> None:
        """Until a kernel is not put off any more, if ``update``'s thread can be told."""

        def is_waited_for() -> bool:
            return document is not None and any(k.name == name for k in document.put_off.values())

        if document is None or self._learnt is None or not is_waited_for():
            return
        document.asked_for = True
        self._learnt(path)
        with self._looked_at:
            self._looked_at.wait_for(lambda: not is_waited_for(), _PATIENCE_S)

    def origins(self, path: Path) -> dict[int, tuple[KernelReport, int]]:
        """Shown reports of an open file's kernels, by identity: as they were made, and how far they moved."""
        with self._lock:
            document = self._documents.get(path)
            places = document.keys if document else []
            known = [(k, line) for key, line in places if (k := self._reports.get(key))]
            return {id(k.at(line)): (k.report, line - k.line) for k, line in known}

    # ----------------------------------------------------------------------------------- inside

    def _open(self, path: Path, text: str, unit: Path | None) -> Document:
        self._forget_unfollowed()
        document = self._documents.get(path)
        if document is None:
            translation = Translation(path, text, FrontendOptions.of(self.settings_of(path)), unit)
            document = self._documents[path] = Document(translation, translation.directives, Carried(path))
        elif not self._respelled(document, text):
            document.translation.reparse(text, focused=self._quick)
        return document

    def _respelled(self, document: Document, text: str) -> bool:
        """Whether white space and comments alone have changed, and nothing has to be read for that."""
        before, translation = document.text, document.translation
        if not self._quick or not before or before == text:
            return False
        kernels = [source.identity for source in translation.kernels()]
        same = document.carried.respelled(kernels, before, text) if kernels else None
        return same is not None and translation.respell(before, text, same)

    def _pace(self, document: Document | None, text: str, settled: bool) -> Pace:
        if not self._quick:
            return Pace()
        if document is None or not document.text:
            return Pace.of_opening()
        if document.text != text:
            return Pace.of_keystroke(document.text, text)
        return Pace.between_keystrokes(document.typed_at, decided=not (settled or document.asked_for))

    def _decided(self, document: Document, text: str, pace: Pace) -> Decided:
        """What need not be looked at of the newest text."""
        translation, decided = document.translation, Decided(document, text)
        if document.text and self._quick:
            of_file = keyed(translation)
            for key, source in of_file:
                if not self._is_known(key, translation):
                    decided.by_code(key, source)
            for key, source in of_file if pace.decided else ():
                if key not in self._reports:
                    decided.half_typed(key, source)
            if pace.decided:
                decided.leave_out(of_file)
        return decided

    def _first_tier(
        self, translation: Translation, pace: Pace, decided: Decided | None = None
    ) -> tuple[list[tuple[str, int]], list[ToolError], tuple[KernelReport, ...], list[Keyed]]:
        """Keys and first lines of kernels; errors; reports that only say why not; kernels that are put off.

        The reports of all others are known then, but for those ``decided``, of which there may be more then.
        """
        done = decided.done if decided is not None else frozenset[str]()
        typed = decided if pace.decided else None
        unknown = self._unknown(translation, done)
        if pace.whole and any(not translation.reads(source) for _, source in unknown):
            translation.complete()
            unknown = self._unknown(translation, done)
        failures: dict[str, ToolError] = {}
        readable = [known for known in unknown if translation.reads(known[1])]
        for number, (key, source) in enumerate(sorted(readable, key=lambda known: pace.nearness(known[1]))):
            if not pace.begins(number):
                break
            failure = self._analyse(translation, source, key, pace, number, typed)
            if failure:
                failures[key] = failure
        waiting = [known for known in self._unknown(translation, done) if known[0] not in failures]
        keys = [(key, source.range.start.line) for key, source in keyed(translation) if key not in failures]
        with self._lock:
            for key in (key for key, _ in keys if key in self._reports):
                self._reports.move_to_end(key)
        told = [undecided(k, _NOT_INSTANTIATED) for k in translation.kernels() if k.dependent]
        told += [undecided(source, failures[key].message) for key, source in unknown if key in failures]
        return keys, [*translation.diagnostics, *failures.values()], tuple(told), waiting

    def _unknown(self, translation: Translation, decided: Container[str]) -> list[Keyed]:
        return [
            (key, source)
            for key, source in keyed(translation)
            if key not in decided and not self._is_known(key, translation)
        ]

    def _say_in_parts(self, path: Path, document: Document, pace: Pace, said: Publish) -> None:
        """Analyse the kernels of a file that was just opened, and tell of them as they come."""
        translation, every = document.translation, keyed(document.translation)
        wanted = [known for known in every if not self._is_known(known[0], translation)]
        line = partial(self.looked_at.get, path, 1)
        for to_come in parts(wanted, line, lambda k, s: self._analyse(translation, s, k, pace)):
            with self._lock:
                document.keys = [(k, s.range.start.line) for k, s in every if k in self._reports]
                document.unknown, document.directives = tuple(to_come), translation.directives
                document.errors = tuple(translation.diagnostics)
                report = self._report(path, document)
            said(report)

    def _is_known(self, key: str, translation: Translation) -> bool:
        """Whether a report can be shown: one that blames a launch stands where that was, in other text."""
        known = self._reports.get(key)
        if known is None or all(f.code is not Code.LAUNCH_LIMIT for f in known.report.findings):
            return known is not None
        places = {launch.site for launch in known.report.launches}
        return places <= {None, *(site.site for site in translation.launch_sites)}

    def _look_around(self, path: Path, document: Document, text: str) -> None:
        """Learn what other files tell: where they launch kernels of this one, and what buffers they hand on.

        At once, or soon when in a hurry.
        """
        translation = document.translation
        names = frozenset(k.base_name for k in translation.kernels())
        handed_on = translation.handing_on()
        if names <= document.searched and handed_on <= document.handed_on:
            return
        document.searched |= names
        document.handed_on |= handed_on
        here = itertools.chain(translation.launch_sites, *translation.sites_elsewhere.values())
        document.launched |= {site.kernel for site in here if site.block is not None} & names
        if not self._quick:
            translation.outside, translation.called = self._found_around(path, document)
            document.handed_on |= translation.handing_on()
            translation.reparse(text)
        elif self._learnt is not None:
            if self._searcher is None:
                self._searcher = threading.Thread(target=self._search, name="cuda-lsp-launches", daemon=True)
                self._searcher.start()
            self._searches.put((path, document))

    def _found_around(self, path: Path, document: Document) -> tuple[_Elsewhere, tuple[Called, ...]]:
        """Launches in other files, by kernel; launches that callers in other files hand one buffer twice."""
        around = self._workspace.neighbours(path)
        with one_moment():
            found = {
                **self._workspace.launches(path, document.searched - document.launched),
                **self._workspace.launched_too(path, document.launched, around),
            }
            beside = (
                (s.written or s.site, s.kernel) for sites in found.values() for s in sites if s.hands_on
            )
            handed_on = {(place.range.path, kernel) for place, kernel in beside if place is not None}
            return found, self._workspace.handed_on(document.handed_on | handed_on, around)

    def _search(self) -> None:
        while (wanted := self._searches.get()) is not None:
            path, document = wanted
            found, called = self._found_around(path, document)
            document = self._documents.get(path)
            if document is None or not self._learnt or not (found or called):
                continue
            if found != document.translation.outside or called != document.translation.called:
                document.translation.outside, document.translation.called = found, called
                with self._lock:
                    document.carried.surroundings_changed()
                self._learnt(path)

    def _vanished(self, document: Document, text: str, names: Iterable[str]) -> list[tuple[str, int]]:
        """Kernels that broken text hides from clang: their last good findings, moved with their name."""
        good = ((name, key) for name in names for key in document.last_good.get(name, ()))
        known = ((name, key, self._reports.get(key)) for name, key in good)
        lines = ((key, first_line(name, text, k.kernel, k.line)) for name, key, k in known if k)
        return [(key, line) for key, line in lines if line is not None]

    def _analyse(
        self, translation: Translation, source: KernelSource, key: str, pace: Pace, number: int = 0,
        typed: Decided | None = None,
    ) -> ToolError | None:  # fmt: skip
        try:
            settings, kernel = self.settings_of(translation.path), _program(translation, source)
            complaints = translation.complaints(source)
            valued = partial(_program, translation, source, valued=True)
            if typed is not None and typed.by_program(key, source, kernel, valued):
                return None
            until = pace.until_of(number)
            first = enumerate_kernel(kernel, settings, until=until)
            open_ = is_open(first, kernel)
            may_matter = open_ or first.cut or may_open(first, kernel)  # what threads store
            may_matter = may_matter or (kernel.judges_floats and not first.decided)
            if may_matter and pace.whole:
                kernel = _with_values(kernel, translation, source)
            elif open_ and not first.cut:
                kernel = _followed(kernel, translation, source)
            if open_ and not first.cut:
                first = with_stored_values(first, kernel, settings, until=until)
        except (RecursionError, ctypes.ArgumentError):  # the latter: within a call of libclang
            return ToolError(f"{source.name} was not analysed: its code nests too deeply", source.name_range)
        except Exception as error:  # noqa: BLE001 - a bug of ours in one kernel must not silence the others
            message = f"{source.name} was not analysed: internal error {type(error).__name__}: {error}"
            return ToolError(f"{message}; please report this kernel", source.name_range)
        if interrupted() or not pace.keeps(number, first.cut):
            return None
        with self._lock:
            line = source.range.start.line
            self._reports[key] = KeptReport(
                kernel, source.base_name, source.identity, first, first.report, line, complaints
            )
            if may_matter and not pace.whole and (kernel.followed is None or kernel.judges_floats):
                self._unfollowed[key] = translation, source
        return None

    def _follow_values(self) -> None:
        """Lower once more, with values, what somebody waited for: the background wants them."""
        with self._lock:
            wanted = [
                (self._reports[key], of) for key, of in self._unfollowed.items() if key in self._reports
            ]
            self._unfollowed.clear()
        for known, (translation, source) in wanted:
            # Code that nests too deeply for it is proved without them.
            with contextlib.suppress(RecursionError, ctypes.ArgumentError):
                known.kernel = _with_values(known.kernel, translation, source)

    def _forget_unfollowed(self) -> None:
        """Their cursors are about to die."""
        with self._lock:
            for key in self._unfollowed:
                self._reports.pop(key, None)
            self._unfollowed.clear()

    def _answered(self, path: Path, key: str, answer: Answer) -> FirstTier | None:
        """Takes in what the background says of a kernel, and publishes it where the kernel still is."""
        with self._lock:
            known = self._reports.get(key)
            if known is None:
                return None
            known.take_in(answer, self.settings_of(path))
            document = self._documents.get(path)
            if document is None or all(key != wanted for wanted, _ in document.keys):
                return None  # the answer is kept for when the text comes back
            report, publish = self._report(path, document), document.publish
        if publish:
            publish(report)
        return None if known.report.refined else known.first

    def _report(self, path: Path, document: Document) -> FileReport:
        kernels: list[KernelReport] = list(document.unknown)
        for key, line in document.keys:
            known = self._reports.get(key)
            if known:
                kernels.append(self._with_earlier(document, key, known, line))
            elif key in document.put_off:
                kernels.append(document.put_off[key])
        broken = any(error.severity is Severity.ERROR for error in document.errors)
        visible = tuple(without_suppressed(kernel, document.directives) for kernel in kernels)
        return FileReport(
            path,
            visible,
            document.errors,
            seconds=document.seconds,
            version=document.version,
            kernel_headers=document.translation.kernel_headers(),
            unused=() if broken else unused(kernels, document.directives, self.settings_of(path)),
        )

    def _with_earlier(self, document: Document, key: str, known: KeptReport, line: int) -> KernelReport:
        """A kernel's report where it stands, with what the text before had while that is not decided."""
        if not self._quick:
            return known.at(line)
        first, name = known.first, known.identity
        if key in document.hidden:
            return document.carried.hidden(name, document.text, known.at(line))
        return document.carried.shown(
            name, document.text, known.at(line), first.report, line - known.line,
            cut=first.cut, program=known.program,
        )  # fmt: skip

    def _is_open(self, known: KeptReport) -> bool:
        return not known.report.refined and self._background.has_work(known.first)

    def _live(self) -> set[str]:
        return {key for document in self._documents.values() for key, _ in document.keys}

    def _forget_old(self) -> None:
        live = self._live()
        old = [key for key in self._reports if key not in live]
        for key in old[: -budgets.KEPT_REPORTS]:
            del self._reports[key]


def _program(
    translation: Translation, source: KernelSource, *, valued: bool = False, computed: bool = False
) -> Kernel:
    """The kernel program, its locks and the barriers of its grid understood."""
    lowered = translation.lower(source, valued, computed)
    return with_critical_sections(with_retries(with_grid_barriers(with_waits(lowered))))


def _followed(kernel: Kernel, translation: Translation, source: KernelSource) -> Kernel:
    followed = kernel.followed or _program(translation, source, valued=True)
    return evolve(kernel, followed=followed)


def _with_values(kernel: Kernel, translation: Translation, source: KernelSource) -> Kernel:
    computed = _program(translation, source, computed=True) if kernel.judges_floats else None
    return evolve(_followed(kernel, translation, source), computed=computed)


def check_text(path: Path, text: str, settings: Settings | None = None, *, solver: bool = True) -> FileReport:
    """Both tiers on one text, in this process, blocking."""
    analyzer = Analyzer(settings)
    try:
        return analyzer.check(path, text, solver=solver)
    finally:
        analyzer.shutdown()
