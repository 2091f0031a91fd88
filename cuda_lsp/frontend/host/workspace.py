"""Launch sites of other files: where a kernel without a launch of its own is launched from.

The nearest files count: those of the kernel's folder, then of the folders below, then of the folders around
it, up to the project's root: parts of projects have build files of their own. What a file launches is defined
in the file that is nearest to it, of those that define a kernel of that name. Texts come from disk and are
kept until they change there; everything here may be slow, so an editor asks from a background thread. Unsaved
launches in other editor buffers are not seen.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, cached_property
from pathlib import Path

from attrs import define, field, frozen

from cuda_lsp import files
from cuda_lsp.frontend.host.caller_arguments import HandingOn
from cuda_lsp.frontend.host.contexts import Callers, no_callers
from cuda_lsp.frontend.host.defined_kernels import defined_kernels
from cuda_lsp.frontend.host.handed_twice import hands_on_twice
from cuda_lsp.frontend.host.host_code import HostCode, ReadFiles
from cuda_lsp.frontend.host.host_file import HostFile
from cuda_lsp.frontend.host.launch_site import Called, LaunchSite
from cuda_lsp.frontend.host.launches import handed_on, may_launch, may_launch_by_macros, may_launch_kernel
from cuda_lsp.frontend.host.naming import files_of, folders_around, naming
from cuda_lsp.frontend.host.text import HostText
from cuda_lsp.frontend.surroundings.compile_commands import options_for
from cuda_lsp.frontend.surroundings.included import mentioned, resolved
from cuda_lsp.frontend.surroundings.nearby_headers import folders_of, in_common
from cuda_lsp.frontend.toolchain import OTHER_NAMES, FrontendOptions

_MOST_BYTES = 2 << 20  # of one file
_BODY = r"(?<!\w){name}\s*\((?:[^(){{}};]|\([^(){{}};]*\)){{0,1000}}\)\s*(?:const\s*)?(?:noexcept\s*)?\{{"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.M)


@frozen
class _Found:
    """A file's launches of some kernels. ``called_by``: functions whose callers they hang on, and these."""

    kernels: frozenset[str]
    sites: tuple[LaunchSite, ...]
    called_by: Mapping[str, tuple[Path, ...]]

    def of(self, kernels: Set[str]) -> tuple[LaunchSite, ...]:
        """Those of some of the kernels."""
        return tuple(site for site in self.sites if site.kernel in kernels)

    def holds(self, callers: Callable[[str], Sequence[HostFile]]) -> bool:
        """Whether the same files call."""
        return all(paths == tuple(f.path for f in callers(name)) for name, paths in self.called_by.items())


@define
class _File:
    """What is known of a file's launches.

    ``stamp``: nanoseconds of the last change, bytes. ``text``: "" where nothing is launched; ``launches``:
    whether it is without a macro. ``kernels``: a text that may define some. ``sites``: by the kernels that
    were asked for.
    """

    stamp: tuple[int, int]
    text: str
    launches: bool
    kernels: str
    sites: dict[str, tuple[LaunchSite, ...]] = field(factory=dict[str, tuple[LaunchSite, ...]])
    _defined: frozenset[str] | None = field(default=None, init=False)

    def may_launch(self, kernel: str) -> bool:
        """Whether the text may launch this kernel."""
        return may_launch_kernel(self.text, kernel, self.launches)

    def defines(self, kernel: str) -> bool:
        """Whether it defines a kernel of this name; who does not name it is not read for that."""
        if kernel not in self.kernels:
            return False
        if self._defined is None:
            self._defined = frozenset(name for name, _ in defined_kernels(HostText(self.kernels)))
        return kernel in self._defined


class _Now:
    """What was found in files while one request is answered, and their host code, which is walked once."""

    def __init__(self) -> None:
        self.found: dict[Path, list[_Found]] = {}
        self._codes: dict[tuple[Path, str], HostCode] = {}
        self._callers: dict[Path, HostFile] = {}
        self._texts: dict[Path, str] = {}
        self._read = ReadFiles()

    def text(self, file: Path) -> str:
        """What a file says; rings hold the files of smaller ones."""
        if file not in self._texts:
            self._texts[file] = text_of(file)
        return self._texts[file]

    def code(self, file: Path, text: str) -> HostCode:
        """Of a file with a text."""
        if (file, text) not in self._codes:
            self._codes[file, text] = host_code_of(file, text, self._read)
        return self._codes[file, text]

    def calling(self, file: Path, text: str) -> HostFile:
        """A file that may call what launches in others."""
        if file not in self._callers:
            self._callers[file] = self.code(file, text).file(text)
        return self._callers[file]


class Workspace:
    """Finds launch sites around a file. Thread-safe; a file is read again when it changed on disk."""

    def __init__(self) -> None:
        self._files: dict[Path, _File] = {}
        self._lock = threading.Lock()

    def launches(self, path: Path, kernels: Iterable[str]) -> Mapping[str, tuple[LaunchSite, ...]]:
        """Sites in other files for kernels that ``path`` defines, from the nearest folder that has any.

        Sites of ``path`` itself are among them where callers in other files tell more of these.
        """
        wanted = set(kernels)
        found: dict[str, tuple[LaunchSite, ...]] = {}
        now = _Now()
        with self._lock:
            for ring in _rings(path) if wanted else ():
                here = self._sites(Neighbours(ring, now), path, wanted - set(found))
                found.update(here)
                if wanted <= set(found):
                    break
        return found

    def neighbours(self, path: Path) -> Neighbours:
        """The files around a path, as they are now."""
        return Neighbours((), _Now(), path)

    def launched_too(
        self, path: Path, kernels: Set[str], around: Neighbours
    ) -> Mapping[str, tuple[LaunchSite, ...]]:
        """Sites in other files for kernels that ``path`` defines and launches, or its unit does.

        Of files that see these: others launch kernels of their own that are called alike.
        """
        found: dict[str, tuple[LaunchSite, ...]] = {}
        with self._lock:
            for file in around.naming(kernels) if kernels else ():
                known = self._read(file) if file != path else None
                named = {k for k in kernels if known.may_launch(k)} if known is not None else set[str]()
                if known is None or not named:
                    continue
                code = around.now.code(file, known.text)
                seen = {k for k in named if not known.defines(k) and code.sees(known.text, path, k)}
                for site in self._launching(file, known, around, seen):
                    found[site.kernel] = (*found.get(site.kernel, ()), site)
        return found

    def handed_on(self, launched: Iterable[tuple[Path, str]], around: Neighbours) -> tuple[Called, ...]:
        """Launches of kernels (where, and which) as files ``around`` call what launches them.

        Those alone to which a call hands one buffer twice.
        """
        by_file: dict[Path, set[str]] = {}
        for file, kernel in launched:
            by_file.setdefault(file, set()).add(kernel)
        with self._lock:
            every = (
                handed_on(around.now.calling(file, text_of(file)), kernels, around.handing_on_twice(file))
                for file, kernels in by_file.items()
            )
            return tuple(itertools.chain.from_iterable(every))

    def _sites(self, ring: Neighbours, path: Path, wanted: set[str]) -> dict[str, tuple[LaunchSite, ...]]:
        found: dict[str, tuple[LaunchSite, ...]] = {}
        for file in ring.paths:
            known = self._read(file)
            kernels = {k for k in wanted if known.may_launch(k)} if known is not None else set[str]()
            if known is None or not kernels:
                continue
            here = self._launching(file, known, ring, kernels)
            if file == path:
                here = [site for site in here if site.site is not None and site.site.range.path != path]
            for site in here:
                if file == path or self._is_of(site.kernel, path, file, ring.paths):
                    found[site.kernel] = (*found.get(site.kernel, ()), site)
        return found

    def _launching(
        self, file: Path, known: _File, ring: Neighbours, kernels: Set[str]
    ) -> Sequence[LaunchSite]:
        """A file's launches of some kernels; where it does not tell their blocks, as others call it."""
        here = _alone(file, known, kernels, ring.now) if kernels else ()
        return _as_called(file, known, ring, kernels) if any(s.block is None for s in here) else here

    def _is_of(self, kernel: str, path: Path, launching: Path, ring: Sequence[Path]) -> bool:
        """Whether no other file that defines a kernel of this name is nearer to the one that launches it."""
        own = in_common(path.parts, launching.parts)
        others = (f for f in ring if f != path and (known := self._read(f)) and known.defines(kernel))
        return all(in_common(other.parts, launching.parts) <= own for other in others)

    def _read(self, file: Path) -> _File | None:
        try:
            stamp = files.stamp(file)
            known = self._files.get(file)
            if known is None or known.stamp != stamp:
                text = files.read_text(file) if files.size(file) <= _MOST_BYTES else ""
                launches = may_launch(text)
                kept = text if launches or may_launch_by_macros(text) else ""
                kernels = text if "__global__" in text else ""
                known = self._files[file] = _File(stamp, kept, launches, kernels)
        except OSError:  # gone, or not ours to read: no launch can be learnt from it
            return None
        return known


class Neighbours:
    """Files around a kernel, while its launches are looked for; what they say is read once."""

    def __init__(self, paths: Sequence[Path], now: _Now, around: Path | None = None) -> None:
        """``around``: all files around a path instead, of which those alone count that hold certain words."""
        self.paths = paths
        self.now = now
        self._around = around
        self._calling: dict[str, tuple[HostFile, ...]] = {}

    @cached_property
    def _texts(self) -> dict[Path, str]:
        return {path: self.now.text(path) for path in self.paths}

    def naming(self, words: Set[str]) -> dict[Path, str]:
        """The texts that hold one of some words."""
        if self._around is not None:
            return {path: self.now.text(path) for path in naming(self._around, words)}
        return {path: text for path, text in self._texts.items() if any(word in text for word in words)}

    def calling(self, name: str) -> tuple[HostFile, ...]:
        """Those that may call a function."""
        if name not in self._calling:
            called = re.compile(rf"(?<!\w){re.escape(name)}\s*[(<]")
            texts = self.naming({name}).items()
            found = (self.now.calling(path, text) for path, text in texts if called.search(text))
            self._calling[name] = tuple(found)
        return self._calling[name]

    def handing_on_twice(self, defined: Path) -> HandingOn:
        """Those that may give a function one thing twice; it is ``defined`` nearest to them."""

        @cache
        def found(name: str, positions: tuple[int, ...]) -> tuple[HostFile, ...]:
            texts = {path: text for path, text in self.naming({name}).items() if path != defined}
            calling = {path: text for path, text in texts.items() if hands_on_twice(text, name, positions)}
            defines = re.compile(_BODY.format(name=re.escape(name)))
            others = [path for path, text in texts.items() if defines.search(text)] if calling else []

            def nearer(caller: Path) -> bool:
                own = in_common(defined.parts, caller.parts)
                return any(in_common(other.parts, caller.parts) > own for other in others)

            return tuple(self.now.calling(path, text) for path, text in calling.items() if not nearer(path))

        return lambda function, positions: found(function.name, tuple(positions))


def text_of(file: Path) -> str:
    """What a file says; "" when it cannot be read."""
    try:
        return files.read_text(file, _MOST_BYTES)
    except OSError:  # gone, or not ours to read: it calls nothing
        return ""


def _alone(file: Path, known: _File, kernels: Set[str], now: _Now) -> Sequence[LaunchSite]:
    """A file's launches of some kernels, whatever other files call; kept until the file changes."""
    new = kernels - known.sites.keys()
    if new:
        found = _found(now.code(file, known.text), known, new, no_callers)
        now.found.setdefault(file, []).append(found)
        known.sites.update({kernel: found.of({kernel}) for kernel in new})
    return [site for kernel in sorted(kernels) for site in known.sites[kernel]]


def _as_called(file: Path, known: _File, ring: Neighbours, kernels: Set[str]) -> Sequence[LaunchSite]:
    """A file's launches of some kernels, where other files of the ring call what launches them.

    They are found again only where others call than did in a smaller ring.
    """

    def callers(name: str) -> Sequence[HostFile]:
        return [other for other in ring.calling(name) if other.path != file]

    before = ring.now.found.setdefault(file, [])
    found = next((f for f in before if kernels <= f.kernels and f.holds(callers)), None)
    if found is None:
        found = _found(ring.now.code(file, known.text), known, kernels, callers)
        before.append(found)
    return found.of(kernels)


def _found(code: HostCode, known: _File, kernels: Set[str], callers: Callers) -> _Found:
    called_by: dict[str, tuple[Path, ...]] = {}

    def noted(name: str) -> Sequence[HostFile]:
        found = tuple(callers(name))
        called_by[name] = tuple(other.path for other in found)
        return found

    sites = code.launches(known.text, kernels, noted)
    return _Found(frozenset(kernels), sites, called_by)


def host_code_of(file: Path, text: str, read: ReadFiles | None = None) -> HostCode:
    """A file's host code, with its build's flags and the headers that the project has somewhere."""
    options, _ = options_for(file, FrontendOptions())
    folders = options.include_dirs
    unfound = [name for name in mentioned(text) if resolved(file, name, folders) is None]
    folders = (*folders, *folders_of(file, unfound), str(OTHER_NAMES))
    return HostCode(file, folders, options.defines, options.undefines(), read=read)


def _rings(path: Path) -> Iterator[list[Path]]:
    """Files to look at, nearest first; later rings hold the earlier ones' files too.

    Parents are looked at only inside a project: below its root, or a folder that a build file marks.
    """
    folders = folders_around(path)
    yield from [list(files_of(folder, folders=1)) for folder in folders[:1]]
    for ring in folders:
        yield list(files_of(ring))
