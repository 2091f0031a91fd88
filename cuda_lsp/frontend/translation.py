"""One live translation unit per open file: open, reparse, find kernels, lower them, close.

The text always comes from the caller (the editor's buffer), never from disk. Whatever the text is (empty,
binary, not CUDA, half typed), nothing here raises because of it: what could not be read is told by
``diagnostics``. libclang runs each parse under its own crash recovery; when it gives up, the unit is
thrown away, the file has no kernels until the next text, and a diagnostic says so.

Not thread-safe: one thread at a time may use a ``Translation``. Cursors of a ``KernelSource`` die at the next
``reparse``; its other fields live on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve

from cuda_lsp.frontend import instantiation, toolchain
from cuda_lsp.frontend.assumptions import BadAssumption, parse_assumption
from cuda_lsp.frontend.compile_errors import CompileError
from cuda_lsp.frontend.directives import FileDirectives, KernelDirective, parse_directives
from cuda_lsp.frontend.focus import Focus, Surroundings, focus_on, host_bodies, surroundings
from cuda_lsp.frontend.focused_reading import (
    merged_problems,
    merged_sources,
    moved_problems,
    moved_sites,
    moved_sources,
)
from cuda_lsp.frontend.header_problems import HeaderFunctions
from cuda_lsp.frontend.host.host_constants import HostConstants
from cuda_lsp.frontend.host.launch_facts import (
    block_of_template,
    common_extents,
    common_facts,
    directive_launch,
    launch_bounds,
    launches_for,
    launches_outside,
    shared_arguments,
)
from cuda_lsp.frontend.host.launches import LaunchSite, blanked, find_launches
from cuda_lsp.frontend.host.workspace import header_constants
from cuda_lsp.frontend.kernel_sources import (
    Environment,
    KernelSource,
    KernelSources,
    environment_of,
    find_kernels,
    with_digests,
)
from cuda_lsp.frontend.lowering.kernel import lower_kernel
from cuda_lsp.frontend.parse_problems import (
    Problems,
    errors_within,
    kernel_errors,
    missing_headers,
    read_problems,
)
from cuda_lsp.frontend.source_text import SourceText
from cuda_lsp.frontend.surroundings import nearby_headers
from cuda_lsp.frontend.surroundings.compile_commands import options_for
from cuda_lsp.frontend.surroundings.conventions import Conventions, conventions_of, switches_of
from cuda_lsp.frontend.surroundings.fragments import Prelude, find_preludes
from cuda_lsp.frontend.surroundings.included import included_texts
from cuda_lsp.frontend.toolchain import FrontendOptions
from cuda_lsp.frontend.tree import Ast, raw_cursor
from cuda_lsp.ir.program import Directives, Expr, Kernel
from cuda_lsp.model import ToolError

_MAX_BYTES = 8 << 20
_ROUNDS = 6  # parses of one text: a guess for its templates, and more when that guess does not compile
_MAX_HEADER_ROUNDS = 4
_NOT_SO = "if the build sees it differently, pass -I and -D or provide a compile_commands.json"
_PATIENCE = 3  # readings of the whole file after one of a single kernel could not be believed
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[^\n]*", re.M)
_KERNEL_NAME = re.compile(
    r"\b__global__\b(?:[^;{}()]|\((?=[^()]*\)\s*(?:void|static|inline|\w+\s*\()))*?(?:\([^()]*\)[^;{}()]*?)?"
    r"\b([A-Za-z_]\w*)\s*\("
)


class Translation:
    """A file as libclang sees it, kept up to date with ``reparse``."""

    def __init__(self, path: Path, text: str, options: FrontendOptions | None = None) -> None:
        self.path = path
        self.options, self._option_errors = options_for(path, options or FrontendOptions())
        self._flags = (*self.options.file_flags(path), *toolchain.shim_flags(self.options))
        self._unit: Any = None
        self._guesses: dict[str, tuple[int, str]] = {}  # template header → attempt, ``kernel<float, 16>``
        self._host_key: tuple[int, int] | None = None
        self._host_sites: tuple[LaunchSite, ...] = ()
        self._headers: tuple[bytes, bytes] = (b"", b"")  # include lines, digest of what they brought in
        self._preludes: tuple[Prelude, ...] = ()
        self._wait = 0  # readings of the whole text before the next attempt to read one kernel
        self._tailed = False  # what the preludes' files say behind the ``#include`` is read as well
        self._constants: tuple[bytes, tuple[HostConstants, ...]] | None = None
        self.outside: Mapping[str, tuple[LaunchSite, ...]] = {}
        """Launch sites of other files by kernel name, for kernels that this file does not launch."""
        self._found_folders: tuple[str, ...] = ()  # of headers that no flag tells the folder of
        self._conventions = Conventions()  # well-known names that no header declares
        self._switched_on: tuple[str, ...] = ()  # macros that nobody asked for
        self._read(text)
        if self._broken_kernels() and self._problems.unfound:
            self._look_for_headers(text)
        if self._broken_kernels():
            self._take_by_convention(text)
        if self._broken_kernels():
            self._try_as_fragment(text)

    def _look_for_headers(self, text: str) -> None:
        """Read with the headers that the project has somewhere, when more of the kernels is clear then."""
        flags, before = self._flags, self._understanding()
        for _ in range(_MAX_HEADER_ROUNDS):  # a header that is found may include others
            folders = nearby_headers.folders_of(self.path, self._problems.unfound)
            new = tuple(folder for folder in folders if folder not in self._found_folders)
            if not new:
                break
            self._found_folders += new
            self._flags = (*flags, *(f"-I{folder}" for folder in self._found_folders))
            self._read_behind((), False, text)
        if self._found_folders and not self._understands_more(before):
            self._flags, self._found_folders = flags, ()
            self._read_behind((), False, text)

    def _take_by_convention(self, text: str) -> None:
        """Read with declarations of well-known names, and of what switches device code on, if that helps."""
        before = self._understanding()
        self._conventions = conventions_of(text)
        if self._conventions.text:
            self._read_behind((), False, text)
            if not self._understands_more(before):
                self._conventions = Conventions()
                self._read_behind((), False, text)
        flags, before = self._flags, self._understanding()
        around = included_texts(self.path, text, self._include_path()) if self._broken_kernels() else {}
        switches = switches_of((text, *around.values())) if self._broken_kernels() else ()
        if switches:
            self._flags = (*flags, *(f"-D{name}=1" for name in switches))
            self._read_behind((), False, text)
            self._switched_on = switches
            if not self._understands_more(before):
                self._flags, self._switched_on = flags, ()
                self._read_behind((), False, text)

    def _include_path(self) -> tuple[str, ...]:
        return (*self.options.include_dirs, *self._found_folders)

    def _understanding(self) -> tuple[tuple[int, int], set[str]]:
        """Kernels not seen, what is broken of the file (absent headers have no errors); known kernels."""
        kernels = self._sources.kernels
        errors = {e for k in kernels for e in self._compile_errors(k) if e.range.path == self.path}
        broken = len(errors) + sum(kernel.dependent for kernel in kernels)
        return (len(self.unreadable), broken), self._kernel_names()

    def _understands_more(self, before: tuple[tuple[int, int], set[str]]) -> bool:
        broken, names = self._understanding()
        return broken < before[0] and before[1] <= names

    def _broken_kernels(self) -> int:
        """Errors that concern kernels, and templates that nothing instantiates."""
        kernels = self._sources.kernels
        errors = {error for kernel in kernels for error in self._compile_errors(kernel)}
        return len(errors) + sum(kernel.dependent for kernel in kernels) + len(self.unreadable)

    def _try_as_fragment(self, text: str) -> None:
        """Parse behind what the including files say first, when that makes more of the kernels readable."""
        fewest, best = self._broken_kernels(), ((), False)
        known = self._kernel_names()
        for preludes in find_preludes(self.path):
            for tailed in (False, True):
                self._read_behind(preludes, tailed, text)
                broken = self._broken_kernels()
                if broken < fewest and known <= self._kernel_names():
                    fewest, best = broken, (preludes, tailed)
                if not fewest or not self._sources.templates:
                    break
            if not fewest:
                break
        if (self._preludes, self._tailed) != best:
            self._read_behind(*best, text)

    def _kernel_names(self) -> set[str]:
        return {kernel.base_name for kernel in self._sources.kernels}

    def _read_behind(self, preludes: tuple[Prelude, ...], tailed: bool, text: str) -> None:
        self._preludes = preludes
        self._tailed = tailed
        self._unit = None
        self._guesses.clear()
        self._headers = (b"", b"")
        self._read(text)

    # --------------------------------------------------------------------------------- the text

    def reparse(self, text: str, *, focused: bool = False) -> None:
        """Replace the text. Cursors handed out before are dead afterwards.

        ``focused``: when only the body of one kernel changed, only that is read; ``lower`` then takes no
        other (``reads``) until ``complete``. All else that is told is what reading the whole file tells.
        """
        if text != self._source.text and not (focused and self._read_focused(text)):
            self._read(text)

    @property
    def is_focused(self) -> bool:
        """Whether at most one kernel of the text was read."""
        return self._focused is not None

    def reads(self, source: KernelSource) -> bool:
        """Whether ``lower`` can take this kernel."""
        return self._focused is None or source.offsets == self._focused

    def complete(self, text: str | None = None) -> None:
        """Read the whole text (None: as it is) if not done. Cursors handed out before are dead afterwards."""
        wanted = self._source.text if text is None else text
        if self._focused is not None or wanted != self._source.text:
            self._read(wanted)

    def refresh(self) -> None:
        """Read the same text again because a header changed on disk; digests follow the new headers."""
        self._headers = (b"", b"")
        nearby_headers.forget()
        self._read(self._source.text)

    def rest(self) -> None:
        """Free what ``lower`` keeps between kernels; it is made again when it is needed."""
        if self._ast is not None:
            self._ast.forget()

    def close(self) -> None:
        """Free libclang's memory. The translation has no kernels afterwards."""
        self._unit = None
        self._ast = None
        self._surroundings = None
        self._sources = KernelSources()

    def _take(self, text: str) -> None:
        self._source = SourceText(self.path, text)
        self._ast: Ast | None = None
        self._sources = KernelSources()
        self._problems = Problems()
        self._header_functions: HeaderFunctions | None = None
        self._bad_assumptions: dict[int, ToolError] = {}  # by line; known once the kernel is lowered
        self._failure: ToolError | None = None
        self._launch_sites: tuple[LaunchSite, ...] | None = None
        self._directives: FileDirectives | None = None
        self._surroundings: Surroundings | None = None
        self._environment: Environment | None = None
        self._focused: tuple[int, int] | None = None  # offsets of the only kernel that was read

    def _read(self, text: str) -> None:
        self._take(text)
        self._wait = max(0, self._wait - 1)
        if len(self._source.data) > _MAX_BYTES:
            self._failure = ToolError(f"files beyond {_MAX_BYTES >> 20} MB are not analysed")
            return
        for _ in range(_ROUNDS):
            if not self._parse() or not self._revise_guesses():
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
        if around is None or environment is None or self._preludes or self._wait:
            return False
        focus = focus_on(around, self._sources, before.data, SourceText(self.path, text).data)
        if focus is None or len(before.data) + focus.edit.shift > _MAX_BYTES:
            return False
        sources, problems, sites = self._sources, self._problems, self.launch_sites
        last = before.position(focus.was[1]).line
        self._take(text)
        self._surroundings, self._focused = around.moved(focus.edit), focus.offsets
        if not focus.name:  # a host function: every kernel is what it was
            self._sources, self._problems = (
                moved_sources(sources, focus),
                moved_problems(problems, focus, last),
            )
            self._digest()
            return True
        if not self._parse(focus) or not self._believe(focus, sources, problems):
            return False
        if focus.edit.lines and environment.device_lines:
            self._digest()
        else:
            self._digest(focus.offsets, environment)
        self._launch_sites = self._host_sites = moved_sites(sites, focus.edit.lines, last, self.path)
        self._host_key = self._host_text()
        return True

    def _believe(self, focus: Focus, sources: KernelSources, problems: Problems) -> bool:
        """Take over what was read of one kernel, when it agrees with what is known of the rest."""
        merged = merged_sources(sources, focus, self._sources)
        told = merged_problems(problems, focus, self._problems)
        if merged is None or told is None:
            self._wait = _PATIENCE
            return False
        if self._broken_between(*focus.offsets) and any(
            self._guesses.get(self._header(template), (0, ""))[1] for template in self._sources.templates
        ):
            return False  # other arguments are tried then
        self._sources, self._problems = merged, told
        return True

    def _parse(self, focus: Focus | None = None) -> bool:
        data = self._source.data if focus is None else focus.text
        appended = instantiation.appended_text([request for _, request in self._guesses.values() if request])
        for prelude in reversed(self._preludes):
            appended += f"\n{prelude.tail}" if self._tailed else "}" * prelude.open_braces
        buffer = [(str(self.path), data.decode("utf-8", "replace") + appended)]
        flags = [*self._flags]
        if self._conventions.text:
            buffer.append((self._conventions.header(self.path), self._conventions.text))
            flags += ["-include", self._conventions.header(self.path)]
        for prelude in self._preludes:
            buffer.append((str(prelude.path), prelude.text))
            flags += ["-include", str(prelude.path)]
        self._ast = None
        try:
            if self._unit is None:
                self._unit = toolchain.index().parse(
                    str(self.path),
                    args=flags,
                    unsaved_files=buffer,
                    options=toolchain.PARSE_OPTIONS,
                )
            else:
                self._unit.reparse(buffer, options=toolchain.PARSE_OPTIONS)
            if self._shim_is_damaged():
                raise toolchain.LoadError("the precompiled header is damaged")
        except (toolchain.LoadError, ValueError, TypeError) as error:
            self._unit = None
            if "-include-pch" in self._flags:
                self._flags = toolchain.without_damaged_shim(self._flags)
                return self._parse(focus)
            self._failure = ToolError(
                f"libclang gave up on this text ({error}); the file has no analysis until it changes"
            )
            return False
        self._ast = Ast(self._unit)
        preludes = [prelude.path for prelude in self._preludes]
        only = focus.name if focus else ""
        self._sources = find_kernels(self._ast, raw_cursor(self._unit.cursor), self._source, preludes, only)
        self._problems = read_problems(self._unit, self._ast, str(self.path), len(self._source.data))
        return True

    def _shim_is_damaged(self) -> bool:
        """Whether clang refused the precompiled header (a fatal error that is of no source file)."""
        if "-include-pch" not in self._flags:
            return False
        return any(d.severity == 4 and d.location.file is None for d in self._unit.diagnostics)

    # ------------------------------------------------------------------------ template arguments

    def _revise_guesses(self) -> bool:
        """Ask for, change or withdraw instantiations. True: the buffer must be parsed again."""
        assert self._ast is not None
        before = dict(self._guesses)
        for template in self._sources.templates:
            key = self._header(template)
            instances = [
                k for k in self._sources.kernels if k.offsets == template.offsets and not k.dependent
            ]
            guessed = self._guesses.get(key)
            if guessed is None:
                if not instances:
                    self._guess(key, template, 0)
            elif len(instances) > 1 and guessed[1]:
                del self._guesses[key]  # the file itself fixes the arguments now
            elif guessed[1] and (not instances or self._broken(template)):
                self._guess(key, template, guessed[0] + 1)
        for key in list(self._guesses)[:-64]:
            del self._guesses[key]
        return {k: v[1] for k, v in before.items()} != {k: v[1] for k, v in self._guesses.items()}

    def _guess(self, key: str, template: KernelSource, attempt: int) -> None:
        assert self._ast is not None
        request = instantiation.request(self._ast, template, self._source.data, attempt)
        if request is None and self._broken(template):
            # No guess compiles. The first one at least gives the types names; its errors are shown.
            request = instantiation.request(self._ast, template, self._source.data, 0)
            attempt = 1000
        if attempt <= 1000:
            self._guesses[key] = (attempt, request or "")

    def _header(self, template: KernelSource) -> str:
        start, _ = template.offsets
        name = template.name_range.start
        line = self._source.line_starts[name.line - 1]
        return f"{template.scope}{template.base_name}:" + self._source.data[
            start : line + name.column - 1
        ].decode("utf-8", "replace")

    def _broken(self, template: KernelSource) -> bool:
        return self._broken_between(*template.offsets)

    def _broken_between(self, start: int, end: int) -> bool:
        return any(start <= p.offset < end for p in self._problems.main)

    # ------------------------------------------------------------------------------------ results

    def kernels(self) -> tuple[KernelSource, ...]:
        """Kernels of the current text, in order; a template counts once per instantiation."""
        return self._sources.kernels

    @property
    def source(self) -> SourceText:
        return self._source

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Names of kernels that the text holds and clang could not make out (broken while typing)."""
        return tuple(self._unreadable())

    def _unreadable(self) -> dict[str, int]:
        """Name → where it stands (index of the text)."""
        seen = {k.offsets for k in (*self._sources.kernels, *self._sources.templates)}
        if self._source.text.count("__global__") <= len(seen):
            return {}
        found = {k.base_name for k in (*self._sources.kernels, *self._sources.templates)}
        found.add("__launch_bounds__")
        plain = blanked(self._source.text)
        missing = (m for m in _KERNEL_NAME.finditer(plain) if m[1] not in found)
        return {m[1]: m.start(1) for m in missing if _is_definition(plain, m)}

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
            key = self._host_text()
            if key != self._host_key:
                self._host_sites = find_launches(self.path, self._source.text, self._header_constants())
                self._host_key = key
            self._launch_sites = self._host_sites
        return self._launch_sites

    def _header_constants(self) -> tuple[HostConstants, ...]:
        """Of the headers as they were when the ``#include`` lines last changed."""
        includes = b"\0".join(_INCLUDE.findall(self._source.data))
        if self._constants is None or self._constants[0] != includes:
            constants = header_constants(self.path, self._source.text, self._include_path())
            self._constants = (includes, constants)
        return self._constants[1]

    def _host_text(self) -> tuple[int, int]:
        """Changes whenever text outside kernels, or the line of any of it, may have changed."""
        data = self._source.data
        pieces: list[bytes] = []
        position = 0
        for start, end in sorted({k.offsets for k in self._sources.kernels}):
            pieces.append(data[position:start])
            pieces.append(b"%d" % data.count(b"\n", start, end))
            position = max(position, end)
        pieces.append(data[position:])
        return hash(b"\0".join(pieces)), len(pieces)

    @property
    def diagnostics(self) -> tuple[ToolError, ...]:
        """What the user should know about how the text was read."""
        if self._failure:
            return (self._failure, *self._option_errors, *self.directives.errors)
        errors = [*self._option_errors]
        errors += missing_headers(self._problems.missing, self._source)
        errors += self._taken_on_trust()
        errors += kernel_errors(self._sources.kernels, self._problems.main, self._source)
        errors += [self._capped(template, count) for template, count in self._sources.skipped]
        errors += [self._not_read(name, start) for name, start in self._unreadable().items()]
        errors += [_not_instantiated(kernel) for kernel in self._sources.kernels if kernel.dependent]
        return (*errors, *self.directives.errors, *self._bad_assumptions.values())

    def _taken_on_trust(self) -> list[ToolError]:
        """What was guessed about the file's surroundings."""
        line = _INCLUDE.search(self._source.data)
        where = self._source.range(*line.span()) if line else self._source.range(0, 1)
        told: list[ToolError] = []
        if self._found_folders:
            found = f"some headers were found by their names only, in {_listed(self._found_folders)}"
            told.append(ToolError(f"{found}: {_NOT_SO}", where))
        if self._conventions.names:
            names = _listed(self._conventions.names)
            told.append(ToolError(f"nothing declares {names}: taken as in the frameworks; {_NOT_SO}", where))
        if self._switched_on:
            told.append(ToolError(f"read as if {_listed(self._switched_on)} were defined: {_NOT_SO}", where))
        return told

    def _not_read(self, name: str, start: int) -> ToolError:
        offset = len(self._source.text[:start].encode("utf-8", "replace"))
        return ToolError(
            f"kernel '{name}' is not analysed: clang cannot make it out, or the preprocessor leaves it out",
            self._source.range(offset, offset + len(name.encode())),
        )

    def _capped(self, template: KernelSource, more: int) -> ToolError:
        shown = sum(k.offsets == template.offsets for k in self._sources.kernels)
        return ToolError(
            f"kernel template '{template.base_name}' has {shown + more} instantiations;"
            f" the first {shown} are analysed",
            template.name_range,
        )

    # ------------------------------------------------------------------------------------ lowering

    def lower(self, source: KernelSource) -> Kernel:
        """The kernel program of one of ``kernels()``, with what directives and launches say of it."""
        if self._ast is None or not self.reads(source):
            raise RuntimeError("the translation is closed, or has read another kernel only")
        compile_errors = self._compile_errors(source)
        outside = self.outside.get(source.base_name, ())
        sites = (*self.launch_sites, *outside)
        shared = shared_arguments(source, sites)
        kernel = lower_kernel(self._ast, source.cursor, source.name, compile_errors, shared)
        directive = self._directive(source)
        grid, arguments = common_facts(source, sites)
        return evolve(
            kernel,
            range=source.range,
            name_range=source.name_range,
            launches=launches_for(source, self.launch_sites, directive)
            or launches_outside(source, outside, directive),
            grid=grid,
            required={**kernel.required, **block_of_template(source)},
            arguments={**arguments, **(directive.arguments if directive else {})},
            extents=common_extents(source, (*self.launch_sites, *outside)),
            bounds=kernel.bounds or launch_bounds(source, self._source),
            errors=tuple(error.range for error in compile_errors),
            directives=self._kernel_directives(kernel, directive),
            digest=source.digest,
            mangled=source.mangled,
            instantiated_by=self._instantiated_by(source),
        )

    def _compile_errors(self, source: KernelSource) -> tuple[CompileError, ...]:
        """Errors inside the kernel and inside what it may call, wherever that stands."""
        if self._problems.headers and self._header_functions is None and self._ast is not None:
            root = raw_cursor(self._unit.cursor)
            self._header_functions = HeaderFunctions(self._ast, root, self._problems.headers)
        return errors_within(source, self._sources, self._problems.main, self._header_functions, self._source)

    def _instantiated_by(self, source: KernelSource) -> str:
        """The text behind the file that makes a compiler instantiate ``source``; "" when the file does."""
        templates = (t for t in self._sources.templates if t.offsets == source.offsets)
        requests = [self._guesses.get(self._header(template), (0, ""))[1] for template in templates]
        return instantiation.appended_text([request for request in requests if request])

    def _directive(self, source: KernelSource) -> KernelDirective | None:
        first = source.name_range.start.line
        ends = [k.range.end.line for k in self._sources.kernels if k.offsets[1] <= source.offsets[0]]
        return self.directives.for_kernel(first, max(ends, default=0))

    def _kernel_directives(self, kernel: Kernel, directive: KernelDirective | None) -> Directives:
        if directive is None:
            return kernel.directives
        parameters = {var.name: var for var in kernel.params}
        conditions: list[Expr] = []
        for line, text in directive.assumptions:
            try:
                conditions.append(parse_assumption(text, parameters))
            except BadAssumption as error:
                message = f"`assume {text}` is not used: {error}"
                start = self._source.line_starts[line - 1]
                stretch = self._source.range(start, start + len(self._source.line(line)))
                self._bad_assumptions[line] = ToolError(message, stretch)
        launch = directive_launch(directive)
        return Directives(
            launch,
            tuple(conditions),
            arguments=directive.arguments,
            warp_synchronous=directive.warp_synchronous,
        )

    # ------------------------------------------------------------------------------------- digests

    def _context(self) -> bytes:
        """Digest of what lies outside the text: flags, and headers as they were when last included."""
        includes = b"\0".join(_INCLUDE.findall(self._source.data))
        if includes != self._headers[0] or not self._headers[1]:
            self._headers = (includes, self._header_digest())
        return self._headers[1]

    def _header_digest(self) -> bytes:
        sha = hashlib.sha256(repr((self._flags, self._conventions, self._preludes)).encode())
        if self._unit is not None and (self._preludes or _INCLUDE.search(self._source.data)):
            told = {Path(inclusion.include.name).resolve() for inclusion in self._unit.get_includes()}
            told |= included_texts(self.path, self._source.text, self._include_path()).keys()
            for path in sorted(told):
                try:
                    sha.update(str(path).encode() + path.read_bytes())
                except OSError:  # gone since it was parsed: as good as a different header
                    sha.update(b"unreadable")
        return sha.digest()


def _not_instantiated(kernel: KernelSource) -> ToolError:
    return ToolError(
        f"kernel template '{kernel.base_name}' is never instantiated in this file and no guess of its"
        " arguments compiles: instantiate it explicitly to have it analysed",
        kernel.name_range,
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _is_definition(plain: str, match: re.Match[str]) -> bool:
    """Whether a body follows, and the text is not the replacement of a macro."""
    line = plain[plain.rfind("\n", 0, match.start()) + 1 : match.start()]
    if line.lstrip().startswith("#"):
        return False
    end = min((i for i in (plain.find("{", match.end()), plain.find(";", match.end())) if i >= 0), default=-1)
    return end >= 0 and plain[end] == "{"
