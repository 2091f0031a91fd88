"""One live translation unit per open file: open, reparse, find kernels, lower them, close.

The text always comes from the caller (the editor's buffer), never from disk. Whatever the text is (empty,
binary, not CUDA, half typed), nothing here raises because of it: what could not be read is told by
``diagnostics``. When libclang gives up, the unit is thrown away, and a diagnostic says so.

Not thread-safe: one thread at a time may use a ``Translation``. Cursors of a ``KernelSource`` die at the next
``reparse``; its other fields live on.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any

from attrs import evolve

from cuda_lsp.frontend import budgets, clang_unit, instantiation, toolchain
from cuda_lsp.frontend.around import Around
from cuda_lsp.frontend.broken_declarations import BrokenDeclarations, broken_declarations
from cuda_lsp.frontend.compile_errors import CompileError, in_order
from cuda_lsp.frontend.directives import FileDirectives, KernelDirective, parse_directives
from cuda_lsp.frontend.excess.readable import Readable, is_readable, readable
from cuda_lsp.frontend.focus import Focus, Surroundings, edit_between, focus_on, host_bodies, surroundings
from cuda_lsp.frontend.focused_reading import (
    half_typed_problems,
    half_typed_sources,
    has_no_instance_left,
    merged_problems,
    merged_sources,
    moved_problems,
    moved_sites,
    moved_sources,
    problems_behind,
    resited,
    respelled_sources,
)
from cuda_lsp.frontend.header_problems import HeaderFunctions
from cuda_lsp.frontend.host.launch_facts import (
    cluster_dims,
    common_conditions,
    conditions_of,
    launch_bounds,
    passed,
    stated_by,
    without_known,
)
from cuda_lsp.frontend.host.launch_site import Called, LaunchSite
from cuda_lsp.frontend.instantiation import Guesses
from cuda_lsp.frontend.kernel_sources import (
    Environment,
    KernelSource,
    KernelSources,
    environment_of,
    find_kernels,
    text_outside,
    with_digests,
)
from cuda_lsp.frontend.left_out import left_out
from cuda_lsp.frontend.libclang import raw_cursor
from cuda_lsp.frontend.lowering.formulas import formulas_in
from cuda_lsp.frontend.lowering.kernel import lower_kernel
from cuda_lsp.frontend.lowering.lost import loses
from cuda_lsp.frontend.own_names import declared_ahead, redefined, renaming, without_declarations
from cuda_lsp.frontend.parse_problems import (
    Problems,
    errors_within,
    kernel_errors,
    missing_headers,
    outside_functions,
    read_problems,
)
from cuda_lsp.frontend.same_code import SameCode
from cuda_lsp.frontend.source_text import SourceText, resolved_name
from cuda_lsp.frontend.special_registers import complained, escaped
from cuda_lsp.frontend.surroundings.guessed import Guessed, Understanding, guess
from cuda_lsp.frontend.surroundings.included import Inclusions, mentioned
from cuda_lsp.frontend.told_launches import said_of_launches, with_launches
from cuda_lsp.frontend.toolchain import FrontendOptions
from cuda_lsp.frontend.tree import Ast
from cuda_lsp.frontend.unread_kernels import moved_unread, not_read, unread_kernels
from cuda_lsp.ir.program import Directives, Expr, Kernel
from cuda_lsp.model import ToolError

_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[^\n]*", re.M)
_NOWHERE = (-1, -1)  # where no kernel is
_KEPT_SITES = 2  # texts before the last one whose launches are remembered
_MOST_READINGS = 3  # that are kept while guesses are tried: each holds all that clang made of the headers
_OF_A_READING = (
    "_unit", "_ast", "_sources", "_problems", "_header_functions", "_broken", "_readable", "_escaped",
    "_own_names", "_guesses", "_host_key", "_host_sites", "_sites_of", "_headers", "_launch_sites",
    "_elsewhere", "_mentioned", "_unread", "_surroundings", "_environment", "_failure", "_understood",
)  # fmt: skip
"""What reading a text with some guesses comes to."""


class Translation:
    """A file as libclang sees it, kept up to date with ``reparse``."""

    def __init__(
        self, path: Path, text: str, options: FrontendOptions | None = None, unit: Path | None = None
    ) -> None:
        """``unit``: the file in which this one is read; None: itself, or one that is looked for."""
        self.path = path
        self._around = Around(path, options or FrontendOptions(), unit)
        self._unit: Any = None
        self._readable = Readable(b"")
        self._escaped: frozenset[str] = (
            frozenset()
        )  # files that spell registers, or declare types, as nvcc has it
        self._own_names: frozenset[str] = frozenset()  # of ours, that the program defines itself
        self._guesses = Guesses()
        self._host_key: tuple[int, int] | None = None
        self._sites_of: tuple[tuple[str, tuple[LaunchSite, ...]], ...] = ()  # of the last texts, newest first
        self._host_sites: tuple[LaunchSite, ...] = ()
        self._headers: tuple[bytes, bytes] = (b"", b"")  # include lines, digest of what they brought in
        self._outside_is_new = False
        self._unnamed: set[str] = set()  # templates whose instances clang does not find by their names
        self._wait = 0  # readings of the whole text before the next attempt to read one kernel
        self._read(text)
        self._readings: dict[Guessed, dict[str, Any]] = {}  # the last few, while guesses are tried
        guess(self, text)
        self._readings.clear()

    @property
    def options(self) -> FrontendOptions:
        """With what the build says of the file."""
        return self._around.options

    @property
    def guessed(self) -> Guessed:
        """What is guessed of what is around the file."""
        return self._around.guessed

    @property
    def outside(self) -> Mapping[str, tuple[LaunchSite, ...]]:
        """Launch sites of other files by kernel name, for kernels that this file does not launch."""
        return self._around.outside

    @outside.setter
    def outside(self, sites: Mapping[str, tuple[LaunchSite, ...]]) -> None:
        self._around.outside = sites
        self._elsewhere = None
        self._outside_is_new = bool(sites)

    @property
    def called(self) -> tuple[Called, ...]:
        """Launches, here or elsewhere, that callers in other files hand one buffer twice."""
        return self._around.called

    @called.setter
    def called(self, sites: tuple[Called, ...]) -> None:
        if sites == self._around.called:
            return  # what was read of the launches holds
        self._around.called = sites
        self._elsewhere = self._launch_sites = self._host_key = None
        self._sites_of = ()

    def handing_on(self) -> frozenset[tuple[Path, str]]:
        """Kernels of the text that are launched with pointers of who calls what launches them, and where."""
        kernels = {source.base_name for source in (*self._sources.kernels, *self._sources.templates)}
        every = itertools.chain(self.launch_sites, *self.sites_elsewhere.values())
        places = ((s.written or s.site, s.kernel) for s in every if s.hands_on and s.kernel in kernels)
        return frozenset((place.range.path, kernel) for place, kernel in places if place is not None)

    # ------------------------------------------------------------------------ guesses of what is around

    def read_with(self, guessed: Guessed) -> None:
        """Read the same text with other guesses of what is around the file, if that was not just done."""
        self._readings[self.guessed] = {name: getattr(self, name) for name in _OF_A_READING}
        for oldest in list(self._readings)[:-_MOST_READINGS]:
            del self._readings[oldest]
        self._around.take(guessed)
        known = self._readings.pop(guessed, None)
        if known is not None:
            for name, value in known.items():
                setattr(self, name, value)
            return
        self._unit = self._host_key = None
        self._guesses = Guesses()
        self._headers = (b"", b"")
        self._read(self._source.text)

    def understanding(self) -> Understanding:
        """How much of the kernels the last reading makes sense of."""
        if self._understood is None:
            self._understood = self._understand()
        return self._understood

    def _understand(self) -> Understanding:
        kernels = self._sources.kernels
        errors: set[CompileError] = set()
        for kernel in kernels:
            found, words = self._errors_and_words(kernel)
            errors.update(found, self._broken_declarations.named(words) if words else ())
        losing = sum(map(self._loses, kernels))  # for which any error may be to blame
        every = (problem.message for problem in (*self._problems.main, *self._problems.headers))
        return Understanding(
            unread=len(self.unreadable) + losing,
            errors=len(errors),
            here=sum(error.range.path == self.path for error in errors),
            dependent=sum(kernel.dependent for kernel in kernels),
            kernels=frozenset(kernel.base_name for kernel in kernels),
            templates=bool(self._sources.templates),
            unfound=self._problems.unfound,
            messages=(*(error.message for error in in_order(errors)), *(every if losing else ())),
            assumed=self._guesses.count,
            instances=len(kernels) + sum(more for _, more in self._sources.skipped),
        )

    def _loses(self, kernel: KernelSource) -> bool:
        """Whether clang keeps nothing of one of a kernel's statements."""
        return self._ast is not None and loses(self._ast, kernel.cursor)

    def texts(self) -> Iterable[str]:
        """Of the file and of what it includes, or its unit does."""
        return (self._source.text, *self._inclusions().texts.values())

    def included(self) -> Set[Path]:
        """The files that clang has read with it, links followed."""
        found = self._unit.get_includes() if self._unit is not None else ()
        return {resolved_name(str(each.include.name)) for each in found}

    def kernel_headers(self) -> tuple[Path, ...]:
        """Files of the project with kernels that the text includes, directly or through others."""
        return self._inclusions().with_kernels

    # --------------------------------------------------------------------------------- the text

    def reparse(self, text: str, *, focused: bool = False) -> None:
        """Replace the text. Cursors handed out before are dead afterwards.

        ``focused``: when only the body of one kernel changed, only that is read; ``lower`` then takes no
        other (``reads``) until ``complete``. All else that is told is what reading the whole file tells.
        """
        if self._outside_is_new and self._sources.templates:
            self._read(text)  # launches may tell other arguments of templates
        elif text != self._source.text and not (focused and self._read_focused(text)):
            self._read(text)

    def respell(self, last: str, text: str, same: SameCode) -> bool:
        """Take a text with the ``same`` code as the ``last``, without reading it; False: it has to be read.

        No kernel can be lowered until ``complete``; cursors handed out before are dead afterwards.
        """
        around, before = self._surroundings, self._source
        if self._outside_is_new or not self._may_focus() or before.text != last:
            return False
        if around is None or self._environment is None:
            return False
        edit = edit_between(before.data, SourceText(self.path, text).data)
        sources = respelled_sources(self._sources, edit, same)
        if sources is None or len(before.data) + edit.shift > budgets.MOST_BYTES:
            return False
        line, was = before.position(edit.old_end).line, (edit.start, edit.old_end)
        problems, broken = self._problems, self._broken_declarations
        elsewhere, mentions = self.sites_elsewhere, self._mentions()
        self._take(text)
        self._sources, self._problems = sources, problems_behind(problems, edit, was, line)
        self._surroundings, self._focused = around.moved(edit), (edit.start, edit.new_end)
        self._broken = broken.moved(self.path, line, edit.lines)
        self._elsewhere, self._mentioned = elsewhere, mentions
        self._digest()
        return True

    @property
    def is_focused(self) -> bool:
        """Whether at most one kernel of the text was read."""
        return self._focused is not None

    def reads(self, source: KernelSource) -> bool:
        """Whether ``lower`` can take this kernel."""
        if self._focused is None:
            return True
        return source.offsets == self._focused and self._only in ("", source.name) and not self._lost

    def lost_sight_of(self, source: KernelSource) -> bool:
        """Whether somebody types in this kernel, and it is so broken that nothing was read of it."""
        return self._lost and source.offsets == self._focused

    def complete(self, text: str | None = None) -> None:
        """Read the whole text (None: as it is) if not done. Cursors handed out before are dead afterwards."""
        wanted = self._source.text if text is None else text
        if self._focused is not None or wanted != self._source.text:
            self._read(wanted)

    def refresh(self) -> None:
        """Read the same text again because a header changed on disk; digests follow the new headers."""
        self._headers, self._host_key = (b"", b""), None
        self._around.refresh()
        self._read(self._source.text)

    def rest(self) -> None:
        """Free what ``lower`` keeps between kernels; it is made again when it is needed."""
        if self._ast is not None:
            self._ast.forget()

    def close(self) -> None:
        """Free libclang's memory. The translation has no kernels afterwards."""
        self._unit = self._ast = self._surroundings = None
        self._sources = KernelSources()

    def _take(self, text: str) -> None:
        self._source = SourceText(self.path, text)
        self._ast: Ast | None = None
        self._sources = KernelSources()
        self._problems = Problems()
        self._header_functions: HeaderFunctions | None = None
        self._broken: BrokenDeclarations | None = None
        self._bad_assumptions: dict[int, ToolError] = {}  # by line; known once the kernel is lowered
        self._failure: ToolError | None = None
        self._launch_sites: tuple[LaunchSite, ...] | None = None
        self._directives: FileDirectives | None = None
        self._surroundings: Surroundings | None = None
        self._environment: Environment | None = None
        self._elsewhere: Mapping[str, tuple[LaunchSite, ...]] | None = None
        self._understood: Understanding | None = None
        self._mentioned: tuple[str, ...] | None = None  # files that the text may look for
        self._unread: tuple[KernelSources, dict[str, int] | None] | None = None
        self._focused: tuple[int, int] | None = None  # offsets of the only kernel that was read
        self._only = ""  # the only instance of it that was read, of several
        self._lost = False  # that one is so broken that clang does not see its end

    def _read(self, text: str) -> None:
        self._take(text)
        self._wait = max(0, self._wait - 1)
        if len(self._source.data) > budgets.MOST_BYTES:
            self._failure = ToolError(f"files beyond {budgets.MOST_BYTES >> 20} MB are not analysed")
            return
        for _ in range(budgets.MOST_PARSES):
            if not self._parse() or not self._revise():
                break
        if self._ast is not None:
            self._surroundings = surroundings(self._sources, self._source.data)
            self._digest()

    def _digest(self, only: tuple[int, int] | None = None, environment: Environment | None = None) -> None:
        """Digests of all kernels, or of one where ``environment`` stayed as it was."""
        if environment is None:
            assert self._surroundings is not None
            host = host_bodies(self._surroundings, self._source.data)
            environment = environment_of(self._sources, self._source, self._context(), host)
        self._environment = environment
        self._sources = with_digests(self._sources, self._source, environment, only)

    def _read_focused(self, text: str) -> bool:
        """Read the one kernel in whose body the text changed. False: the whole text must be read."""
        around, environment, before = self._surroundings, self._environment, self._source
        if not self._may_focus() or around is None or environment is None:
            return False
        after = SourceText(self.path, text).data
        focus = focus_on(around, self._sources, before.data, after, self._asks_by_name)
        if focus is None or len(before.data) + focus.edit.shift > budgets.MOST_BYTES:
            return False
        if not is_readable(focus.text, *focus.offsets):
            return False
        sources, problems, sites = self._sources, self._problems, self.launch_sites
        elsewhere, mentions, broken = self.sites_elsewhere, self._mentions(), self._broken_declarations
        unread = moved_unread(self._unread_kernels, focus, before, text)
        header_functions = self._header_functions  # a kernel's text changes nothing in headers
        last = before.position(focus.was[1]).line
        self._take(text)
        self._surroundings, self._focused = around.edited(focus.edit), focus.offsets
        self._only, self._header_functions = focus.only, header_functions
        self._broken = broken.moved(self.path, last, focus.edit.lines)
        # No directive has changed; what a host function calls may tell launches in other files.
        self._elsewhere, self._mentioned = elsewhere if focus.name else None, mentions
        if not focus.name:  # a host function: every kernel is what it was
            self._sources, self._problems = (
                moved_sources(sources, focus),
                moved_problems(problems, focus, last),
            )
            if around.templates:  # for which such bodies count, but not the statement that was edited
                self._digest(_NOWHERE, environment)
            else:
                self._digest()
            self._unread = self._sources, unread
            return True
        if not self._parse(focus) or not self._believe(focus, sources, problems, last):
            return False
        if focus.edit.lines and environment.device_lines:
            self._digest()
        else:
            self._digest(focus.offsets, environment)
        self._unread = self._sources, unread
        self._launch_sites = self._host_sites = moved_sites(sites, focus.edit.lines, last, self.path)
        self._host_key = text_outside(self._sources, self._source)
        self._sites_of = ((text, self._host_sites), *self._sites_of[1:])
        return True

    def _asks_by_name(self, template: str) -> bool:
        """Whether instances of a template were had by their names as far as one knows."""
        return self.guessed.unit is None and template not in self._unnamed

    def _may_focus(self) -> bool:
        return self._readable.whole and not self._wait

    def _believe(self, focus: Focus, sources: KernelSources, problems: Problems, last: int) -> bool:
        """Take over what was read of one kernel, when it agrees with what is known of the rest."""
        if focus.instance and self._problems.refused:
            self._unnamed.add(focus.name)
            return False
        merged = merged_sources(sources, focus, self._sources)
        told = merged_problems(problems, focus, self._problems)
        if merged is None or told is None:
            spread = not set(self._problems.headers) <= set(problems.headers)
            gone = spread or has_no_instance_left(sources, focus, self._sources)
            told = half_typed_problems(problems, focus, last, self._problems, gone=gone)
            if told is None:
                if focus.instance:
                    self._unnamed.add(focus.name)
                else:
                    self._wait = budgets.PATIENCE
                return False
            self._sources, self._problems = half_typed_sources(sources, focus, self._source), told
            self._lost = True
            return True
        asked = self._guesses.asked_for(self._sources.templates, self._source)
        if asked and self._problems.hang_on_arguments(*focus.offsets):
            return False  # other arguments are tried then
        self._sources, self._problems = merged, told
        return True

    def _parse(self, focus: Focus | None = None) -> bool:
        if focus is None and not self._can_be_read():
            return False
        text = (self._readable.data if focus is None else focus.text).decode("utf-8", "replace")
        leader, replaced = self.guessed.unit, dict(self._readable.headers)
        leading = text if leader is None else replaced.pop(str(leader.path), leader.text)
        requests = self._requests(focus)
        buffers = [(str(self._around.main), leading + self.guessed.behind + requests)]
        buffers += [(str(self.path), text)] if leader else []
        buffers += (*self.guessed.buffers(self.path), *replaced.items())
        buffers += ((refusal.path, "") for refusal in self._inclusions().refused)
        buffers = self._respelled(buffers)
        # Where a unit begins, the text that changes is included: nothing can be kept of that.
        parsing = toolchain.PARSE_OPTIONS if leader is None else toolchain.PARSE_ALL
        self._around.leave_to_program(self._own_names)
        arguments = (*self.guessed.flags(self.path), *self._readable.flags, *renaming(self._own_names))
        unit, self._unit, self._ast = self._unit, None, None
        try:
            self._unit = clang_unit.read(unit, self._around, arguments, buffers, parsing)
        except (toolchain.LoadError, ValueError, TypeError) as error:
            gave_up = f"libclang gave up on this text ({error})"
            self._failure = ToolError(f"{gave_up}; the file has no analysis until it changes")
            return False
        self._ast = Ast(self._unit, self.path)
        only = focus.name if focus else ""
        root, around = raw_cursor(self._unit.cursor), self._inclusions().around
        found = find_kernels(self._ast, root, self._source, around, only)
        self._sources = self._guesses.named(found, self._source)
        size, reworded = len(self._source.data), self._readable.reason
        begin = len(buffers[0][1].encode()) - len(requests.encode())
        asked_at = (self._around.main, begin) if requests and focus is None else None
        self._problems = read_problems(self._ast, self.path, size, reworded, asked_at)
        return True

    def _requests(self, focus: Focus | None) -> str:
        """The line behind the text that asks for instances of templates."""
        if focus is None or not focus.instance:
            return self._guesses.text
        return instantiation.appended([f"&{focus.instance}"])

    def _respelled(self, buffers: list[tuple[str, str]]) -> list[tuple[str, str]]:
        if not self._escaped:
            return buffers
        known = {name for name, _ in buffers}
        texts = self._inclusions().texts.items()
        headers = [(str(path), text) for path, text in texts if str(path) in self._escaped - known]
        every = (*buffers, *headers)
        return [(n, without_declarations(escaped(t)) if n in self._escaped else t) for n, t in every]

    def _can_be_read(self) -> bool:
        """Whether clang may read the text, and what of it."""
        unit, own = self.guessed.unit, resolved_name(str(self.path))
        headers = [(str(unit.path), unit.text)] if unit is not None else []
        headers += ((str(path), text) for path, text in self._inclusions().texts.items() if path != own)
        before, self._readable = self._readable.flags, readable(self._source.data, tuple(headers))
        self._unit = self._unit if self._readable.flags == before else None
        if refusal := self._readable.refusal:
            self._failure = ToolError(f"this text is not analysed: {refusal}")
        return not refusal

    def _revise(self) -> bool:
        """Whether the text must be parsed again: other arguments of templates are wanted, some of its
        assembly is spelt as clang does not have it, or it has names that are ours."""
        ast, guesses = self._ast, self._guesses
        self._outside_is_new = False
        errors = [(str(self.path), p.message) for p in self._problems.main]
        errors += [(p.path, p.message) for p in self._problems.headers]
        misread, own = complained(errors), redefined(message for _, message in errors)
        texts = ((str(path), text) for path, text in self._inclusions().texts.items())
        misread |= declared_ahead(
            (message for _, message in errors), ((str(self.path), self._source.text), *texts)
        )
        if not misread <= self._escaped or not own <= self._own_names:
            self._escaped |= misread
            self._unit = self._unit if own <= self._own_names else None  # other flags
            self._own_names |= own
            return True
        return ast is not None and guesses.revise(
            ast, self._sources, self._problems, self._source, self._launches_of
        )

    def _launches_of(self, kernel: str) -> tuple[LaunchSite, ...]:
        outside = self.sites_elsewhere.get(kernel, ())
        return (*without_known(self.launch_sites, outside), *outside)

    # ------------------------------------------------------------------------------------ results

    def kernels(self) -> tuple[KernelSource, ...]:
        """Kernels of the current text, in order; a template counts once per instantiation."""
        return self._sources.kernels

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Names of kernels that the text holds and clang could not make out (broken while typing)."""
        return tuple(self._unread_kernels)

    @property
    def _unread_kernels(self) -> dict[str, int]:
        sources, unread = self._unread or (None, None)
        if unread is None or sources is not self._sources:
            unread = unread_kernels(self._source.text, self._sources)
            self._unread = self._sources, unread
        return unread

    @property
    def directives(self) -> FileDirectives:
        """The ``// cuda-lsp:`` comments of the current text."""
        if self._directives is None:
            self._directives = parse_directives(self.path, self._source.text)
        return self._directives

    @property
    def launch_sites(self) -> tuple[LaunchSite, ...]:
        """The launches of the current text."""
        if self._launch_sites is None:
            key = text_outside(self._sources, self._source)
            if key != self._host_key:
                text, known = self._source.text, self._sites_of if self._host_key is not None else ()
                same = self._same_sites(known)
                self._host_sites = self._read_sites(text) if same is None else same
                self._host_key, self._sites_of = key, ((text, self._host_sites), *known[:_KEPT_SITES])
            self._launch_sites = self._host_sites
        return self._launch_sites

    def _read_sites(self, text: str) -> tuple[LaunchSite, ...]:
        found, macros = self._around.launches(text, self._mentions()), self._around.macros
        return tuple(site.compiled_with(macros) for site in found)

    def _same_sites(
        self, known: Iterable[tuple[str, tuple[LaunchSite, ...]]]
    ) -> tuple[LaunchSite, ...] | None:
        """The launches of one of the last texts from which white space and comments alone differ."""
        for before, sites in known:
            same = SameCode.of(self.path, before, self._source.text)
            found = resited(sites, same) if same is not None else None
            if found is not None:
                return found
        return None

    @property
    def sites_elsewhere(self) -> Mapping[str, tuple[LaunchSite, ...]]:
        """Launches of the text's kernels in other files, by name: of the unit, then of the rest of the
        workspace."""
        if self._elsewhere is None:
            kernels = {source.base_name for source in (*self._sources.kernels, *self._sources.templates)}
            every = self._around.launches_elsewhere(self._source.text, kernels, self._mentions())
            macros = self._around.macros
            self._elsewhere = {k: tuple(s.compiled_with(macros) for s in sites) for k, sites in every.items()}
        return self._elsewhere

    @property
    def diagnostics(self) -> tuple[ToolError, ...]:
        """What the user should know about how the text was read."""
        if self._failure:
            return (self._failure, *self._around.option_errors, *self.directives.errors)
        errors = [*self._around.option_errors]
        own = self.guessed.unit is None  # what a unit lacks is told of the unit
        line = _INCLUDE.search(self._source.data)
        missing = [m for m in self._problems.missing if own or m[1]]
        includes = self._source.range(*line.span()) if line else None
        errors += missing_headers(missing, self._source, includes)
        errors += self._inclusions().told(self._source)
        errors += self.guessed.told(includes or self._source.range(0, 1))
        errors += kernel_errors(self._sources.kernels, self._problems, self._source)
        errors += instantiation.left_out(self._sources)
        errors += not_read(self._unread_kernels, self._source)
        errors += instantiation.without_arguments(self._sources)
        return (*errors, *self.directives.errors, *self._bad_assumptions.values())

    # ------------------------------------------------------------------------------------ lowering

    def lower(self, source: KernelSource, valued: bool = False, computed: bool = False) -> Kernel:
        """The kernel program of one of ``kernels()``, with what directives and launches say of it.

        ``valued``: floating-point values are followed, too; ``computed``: so that they can be computed.
        """
        if self._ast is None or not self.reads(source):
            raise RuntimeError("the translation is closed, or has read another kernel only")
        outside, directive = self.sites_elsewhere.get(source.base_name, ()), self._directive(source)
        here = without_known(self.launch_sites, outside)
        sites = (*here, *outside)
        passing = evolve(passed(source, sites, directive), cluster=cluster_dims(source, self._source))
        errors = self._compile_errors(source)
        kernel = lower_kernel(self._ast, source.cursor, source.name, errors, passing, valued, computed)
        kernel = with_launches(kernel, source, here, outside, directive)
        own = [t for t in self._sources.templates if t.offsets == source.offsets]
        formulas, common = formulas_in(kernel, passing.computed), common_conditions(source, sites)
        return evolve(
            kernel,
            said=said_of_launches(kernel, source, sites, common, formulas) if directive is None else {},
            range=source.range,
            name_range=source.name_range,
            bounds=kernel.bounds or launch_bounds(source, self._source),
            directives=self._kernel_directives(kernel, directive, conditions_of(common, kernel, formulas)),
            digest=source.digest,
            mangled=source.mangled,
            instantiated_by=self._guesses.text_for(own, self._source),
            guessed=self._guesses.made_up(own, self._source),
            guessed_numbers=self._guesses.numbers_made_up(own, self._source),
            granted=(*kernel.granted, *left_out(self._ast, source, self._source)),
        )

    def complaints(self, source: KernelSource) -> frozenset[str]:
        """What clang complains of in the kernel, or in what it may call, wherever that stands."""
        return frozenset(error.message for error in self._compile_errors(source))

    def _compile_errors(self, source: KernelSource) -> tuple[CompileError, ...]:
        """Errors inside the kernel and inside what it may call, wherever that stands, and of types that clang
        takes for others."""
        found, words = self._errors_and_words(source)
        return (*found, *self._broken_declarations.misread(words)) if words else found

    def _errors_and_words(self, source: KernelSource) -> tuple[tuple[CompileError, ...], set[bytes]]:
        problems = self._problems
        if not problems.main and not problems.headers:
            return (), set()
        if problems.headers and self._header_functions is None and self._ast is not None:
            root = raw_cursor(self._unit.cursor)
            self._header_functions = HeaderFunctions(self._ast, root, problems.headers)
        return errors_within(source, self._sources, problems.main, self._header_functions, self._source)

    @property
    def _broken_declarations(self) -> BrokenDeclarations:
        if self._broken is None:
            self._broken = BrokenDeclarations()
            problems = outside_functions(self._problems, self._sources, self._source)
            if problems and self._ast is not None:
                self._broken = broken_declarations(self._ast, raw_cursor(self._unit.cursor), problems)
        return self._broken

    def _directive(self, source: KernelSource) -> KernelDirective | None:
        first = source.name_range.start.line
        ends = [k.range.end.line for k in self._sources.kernels if k.offsets[1] <= source.offsets[0]]
        return self.directives.for_kernel(first, max(ends, default=0))

    def _kernel_directives(
        self, kernel: Kernel, directive: KernelDirective | None, guards: tuple[Expr, ...]
    ) -> Directives:
        stated = kernel.directives
        if directive is not None:
            stated, misread = stated_by(directive, kernel, self._source)
            self._bad_assumptions |= misread
        return evolve(stated, assumptions=(*stated.assumptions, *guards))

    # ------------------------------------------------------------------------------------- digests

    def _context(self) -> bytes:
        """Digest of what lies outside the text: flags, and headers as they were when last included."""
        includes = b"\0".join(_INCLUDE.findall(self._source.data))
        if includes != self._headers[0] or not self._headers[1]:
            self._headers = (includes, self._header_digest())
        return self._headers[1]

    def _mentions(self) -> tuple[str, ...]:
        if self._mentioned is None:
            self._mentioned = mentioned(self._source.text)
        return self._mentioned

    def _inclusions(self) -> Inclusions:
        return self._around.inclusions(self._source.text, self._mentions())

    def _header_digest(self) -> bytes:
        unit = self._unit if self.guessed.unit or _INCLUDE.search(self._source.data) else None
        read = (found.include.name for found in unit.get_includes()) if unit is not None else ()
        return self._around.digest(self._source.text, read)
