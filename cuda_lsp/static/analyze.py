"""The tiers at work on files: what runs now, what runs in the background, what a change invalidates.

``Analyzer.update`` is the keystroke path: parse, lower the kernels whose digest changed, enumerate
them. It does no I/O of its own and waits for no solver. ``Analyzer.refine`` hands undecided kernels to
solver processes, which first finish what the keystroke path had to cut, and publishes each answer.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from attrs import evolve

from cuda_lsp.config import Settings
from cuda_lsp.frontend.host.workspace import Workspace
from cuda_lsp.frontend.kernel_sources import KernelSource
from cuda_lsp.frontend.toolchain import FrontendOptions
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import Code, FileReport, KernelReport, Severity, ToolError
from cuda_lsp.static import budgets, work
from cuda_lsp.static.background import Answer, Background
from cuda_lsp.static.broken_texts import broken_templates, closed, first_line
from cuda_lsp.static.carried import Carried
from cuda_lsp.static.kept_reports import Alike, KeptReport, keyed
from cuda_lsp.static.opening import Document, Publish, parts, undecided
from cuda_lsp.static.rewrites.grid_barriers import with_grid_barriers
from cuda_lsp.static.rewrites.locks import with_critical_sections
from cuda_lsp.static.shares import Shares
from cuda_lsp.static.stored_values import is_open, may_open, with_stored_values
from cuda_lsp.static.suppressed import unused, without_suppressed
from cuda_lsp.static.tiers import FirstTier, enumerate_kernel

_PROBE = "__global__ void k(int* a, int n) { if (threadIdx.x < n) a[threadIdx.x] = n; }\n"
_NOT_INSTANTIATED = (
    "a template that nothing in this file instantiates, and no guess of its arguments compiles"
)


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
        self._searches: queue.Queue[tuple[Path, frozenset[str]] | None] = queue.Queue()
        self._searcher: threading.Thread | None = None
        self._documents: dict[Path, Document] = {}
        self._settings_of: dict[Path, Settings] = {}
        self._reports: OrderedDict[str, KeptReport] = OrderedDict()
        self._lock = threading.RLock()
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
        said: Publish | None = None,
    ) -> FileReport:  # fmt: skip
        """Analyse the newest text of a file: first tier, cached kernels as far as they are known.

        ``unit``: the file in which a header is read, while it is opened; None: one is looked for. ``said`` is
        told what is known of it then while there is more to come.
        """
        started = time.perf_counter()
        until = time.thread_time() + (budgets.TYPING_S if path in self._documents else budgets.OPENING_S)
        text, unclosed = closed(path, text) if self._quick else (text, [])
        document = self._open(path, text, unit)
        translation = document.translation
        self._look_around(path, document, text)
        if said is not None and not document.text:
            document.text, document.version = text, version
            self._say_in_parts(path, document, until, said)
        keys, errors, unknown = self._first_tier(translation, until)
        errors += unclosed
        hidden = [k for k in broken_templates(translation) if k.base_name in document.last_good]
        unknown = tuple(k for k in unknown if all(k.range != source.range for source in hidden))
        good: dict[str, list[str]] = {}
        for key, _ in keys:
            good.setdefault(self._reports[key].base_name, []).append(key)
        document.last_good |= good
        vanished = self._vanished(document, text, (*translation.unreadable, *(k.base_name for k in hidden)))
        with self._lock:
            document.keys, document.errors, document.version = [*keys, *vanished], tuple(errors), version
            document.hidden = frozenset(key for key, _ in vanished)
            document.unknown, document.text = unknown, text
            document.directives = translation.directives
            document.seconds = time.perf_counter() - started
            self._forget_old()
            return self._report(path, document)

    def complete(self, path: Path, text: str) -> FileReport | None:
        """Read the newest text of a file whole if ``update`` read one kernel only; None: it had all."""
        document = self._documents.get(path)
        if document is None or not document.translation.is_focused:
            return None
        document.translation.complete(closed(path, text)[0])
        return self.update(path, text, document.version)

    def tried(
        self, path: Path, text: str, *, settled: bool = False
    ) -> tuple[FileReport, tuple[str, ...]] | None:
        """What is known of an open file if it had another text, and the keys of what is not finished.

        That is what the first tier had to cut; ``settled``: also what the solver has not decided. The file
        itself stays as it is; from ``update``'s thread. None: the file is not open.
        """
        document = self._documents.get(path)
        if document is None:
            return None
        translation = document.translation
        translation.reparse(text, focused=self._quick)
        keys, errors, unknown = self._first_tier(translation, time.thread_time() + budgets.TYPING_S)
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
        document.publish = publish
        line = self.looked_at.get(path, 1)
        near = sorted(document.keys, key=lambda place: abs(place[1] - line))
        known = ((key, self._reports.get(key)) for key, _ in near)
        open_ = {key: (k.kernel, k.first) for key, k in known if k is not None and not k.report.refined}
        return self._background.want(path, open_)

    def settle(self, path: Path, said: Publish | None = None) -> FileReport:
        """The second tier in this process, blocking: what ``refine`` does in the background.

        First all kernels with little of the solver's time, then what that did not decide with a share of the
        file's (``budgets.FILE_SHARES``). ``said`` is told what is known while there is more to come.
        """
        document, settings = self._documents[path], self.settings_of(path)
        open_ = [known for key, _ in document.keys if not (known := self._reports[key]).report.refined]
        told = work.done()
        for again in (False, True):
            shares, undecided = Shares(settings.solver_budget, len(open_), again), list[KeptReport]()
            alike: Alike = {}
            for known in open_:
                budget = shares.following()
                if budget is not None and known.settle(evolve(settings, solver_budget=budget), alike):
                    undecided += [known] if budget < settings.solver_budget else []
                if said is not None and work.done() > told + budgets.TOLD_S:
                    told = work.done()
                    said(self._report(path, document))
            open_ = undecided
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
        """The newest translation of one kernel of an open file."""
        document = self._documents.get(path)
        keys = document.keys if document else []
        return next(
            (k.kernel for key, _ in keys if (k := self._reports.get(key)) and k.kernel.name == name), None
        )

    def origins(self, path: Path) -> dict[int, tuple[KernelReport, int]]:
        """Shown reports of an open file's kernels, by identity: as they were made, and how far they moved."""
        with self._lock:
            document = self._documents.get(path)
            places = document.keys if document else []
            known = [(k, line) for key, line in places if (k := self._reports.get(key))]
            return {id(k.at(line)): (k.report, line - k.line) for k, line in known}

    # ----------------------------------------------------------------------------------- inside

    def _open(self, path: Path, text: str, unit: Path | None) -> Document:
        document = self._documents.get(path)
        if document is None:
            translation = Translation(path, text, FrontendOptions.of(self.settings_of(path)), unit)
            document = self._documents[path] = Document(translation, translation.directives, Carried(path))
        else:
            document.translation.reparse(text, focused=self._quick)
        return document

    def _first_tier(
        self, translation: Translation, until: float
    ) -> tuple[list[tuple[str, int]], list[ToolError], tuple[KernelReport, ...]]:
        """Every kernel's key and first line, its report known; errors; reports that only say why not."""
        wanted = keyed(translation)
        if not all(self._is_known(key, translation) or translation.reads(source) for key, source in wanted):
            translation.complete()
            wanted = keyed(translation)
        keys: list[tuple[str, int]] = []
        errors: list[ToolError] = list(translation.diagnostics)
        unknown = [undecided(k, _NOT_INSTANTIATED) for k in translation.kernels() if k.dependent]
        for key, source in wanted:
            if not self._is_known(key, translation):
                failure = self._analyse(translation, source, key, until)
                if failure:
                    errors.append(failure)
                    unknown.append(undecided(source, failure.message))
                    continue
            with self._lock:
                self._reports.move_to_end(key)
            keys.append((key, source.range.start.line))
        return keys, errors, tuple(unknown)

    def _say_in_parts(self, path: Path, document: Document, until: float, said: Publish) -> None:
        """Analyse the kernels of a file that was just opened, and tell of them as they come."""
        translation, every = document.translation, keyed(document.translation)
        wanted = [known for known in every if not self._is_known(known[0], translation)]
        line = partial(self.looked_at.get, path, 1)
        for to_come in parts(wanted, line, lambda k, s: self._analyse(translation, s, k, until)):
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
        """Learn the launches of kernels that this file does not launch: at once, or soon when in a hurry."""
        translation = document.translation
        here = itertools.chain(translation.launch_sites, *translation.sites_elsewhere.values())
        launched = {site.kernel for site in here if site.block is not None}
        names = frozenset(k.base_name for k in translation.kernels()) - launched
        if names <= document.searched:
            return
        document.searched |= names
        if not self._quick:
            translation.outside = self._workspace.launches(path, document.searched)
            translation.reparse(text)
        elif self._learnt is not None:
            if self._searcher is None:
                self._searcher = threading.Thread(target=self._search, name="cuda-lsp-launches", daemon=True)
                self._searcher.start()
            self._searches.put((path, frozenset(document.searched)))

    def _search(self) -> None:
        while (wanted := self._searches.get()) is not None:
            path, names = wanted
            found = self._workspace.launches(path, names)
            document = self._documents.get(path)
            if document is not None and found and found != document.translation.outside and self._learnt:
                document.translation.outside = found
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
        self, translation: Translation, source: KernelSource, key: str, until: float
    ) -> ToolError | None:
        until = max(until, time.thread_time() + budgets.LEAST_EXECUTION_S) if self._quick else math.inf
        try:
            settings, kernel = self.settings_of(translation.path), _program(translation, source)
            first = enumerate_kernel(kernel, settings, until=until)
            if first.cut or is_open(first, kernel) or may_open(first, kernel):
                kernel = evolve(kernel, followed=_program(translation, source, valued=True))
            if not first.cut and is_open(first, kernel):
                first = with_stored_values(first, kernel, settings, until=until)
        except (RecursionError, ctypes.ArgumentError):  # the latter: within a call of libclang
            return ToolError(f"{source.name} was not analysed: its code nests too deeply", source.name_range)
        except Exception as error:  # noqa: BLE001 - a bug of ours in one kernel must not silence the others
            message = f"{source.name} was not analysed: internal error {type(error).__name__}: {error}"
            return ToolError(f"{message}; please report this kernel", source.name_range)
        with self._lock:
            line = source.range.start.line
            self._reports[key] = KeptReport(kernel, source.base_name, first, first.report, line)
        return None

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
        first, name = known.first, known.kernel.mangled or known.kernel.name
        if key in document.hidden:
            return document.carried.hidden(name, document.text, known.at(line))
        broken = bool(known.kernel.errors)
        lines = line - known.line
        return document.carried.shown(
            name, document.text, known.at(line), first.report, lines, cut=first.cut, broken=broken
        )

    def _is_open(self, known: KeptReport) -> bool:
        return not known.report.refined and self._background.has_work(known.first)

    def _live(self) -> set[str]:
        return {key for document in self._documents.values() for key, _ in document.keys}

    def _forget_old(self) -> None:
        live = self._live()
        old = [key for key in self._reports if key not in live]
        for key in old[: -budgets.KEPT_REPORTS]:
            del self._reports[key]


def _program(translation: Translation, source: KernelSource, valued: bool = False) -> Kernel:
    """The kernel program, its locks and the barriers of its grid understood."""
    return with_critical_sections(with_grid_barriers(translation.lower(source, valued)))


def check_text(path: Path, text: str, settings: Settings | None = None, *, solver: bool = True) -> FileReport:
    """Both tiers on one text, in this process, blocking."""
    analyzer = Analyzer(settings)
    try:
        return analyzer.check(path, text, solver=solver)
    finally:
        analyzer.shutdown()
