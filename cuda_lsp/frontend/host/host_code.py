"""The host code of one unit, as the host's preprocessor leaves it: what is read, and the constants around.

The text of one file, the one that is looked at, changes all the time; the others are read from disk when an
``#include`` first leads to them, and kept. While the directives of the text stay, nothing is walked anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence, Set
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from cuda_lsp import files
from cuda_lsp.frontend.host.contexts import Callers, no_callers
from cuda_lsp.frontend.host.host_constants import HostConstants
from cuda_lsp.frontend.host.host_file import HostFile
from cuda_lsp.frontend.host.launch_site import LaunchSite
from cuda_lsp.frontend.host.launches import (
    find_launches,
    may_launch,
    may_launch_by_macros,
    may_launch_kernel,
)
from cuda_lsp.frontend.host.preprocessor import (
    EVERYTHING,
    Directive,
    Preprocessor,
    Regions,
    State,
    directives,
    regions,
)
from cuda_lsp.frontend.host.text import host_text
from cuda_lsp.frontend.surroundings.included import resolved

Key = TypeVar("Key")
Value = TypeVar("Value")
_DECLARED = r"\b__global__\b[^;{{}}]{{0,300}}(?<!\w){name}\s*\([^;{{}}]{{0,2000}}\)\s*;"
_MOST_FILES = 400
_MOST_BYTES = 2 << 20  # of one file


class HostCode:
    """A unit's host code, seen from the file ``path``. ``unit``: path and text where that is another file.

    ``definitions``, ``undefined``: the build's ``-D`` and ``-U``. ``folders``: the include path.
    ``read``: files that others have included before.
    """

    def __init__(
        self,
        path: Path,
        folders: Sequence[str] = (),
        definitions: Sequence[str] = (),
        undefined: Iterable[str] = (),
        unit: tuple[Path, str] | None = None,
        read: ReadFiles | None = None,
    ) -> None:
        self._path = path
        self._folders = folders
        self._definitions = definitions
        self._undefined = tuple(undefined)
        self._files = _Files(folders, read or ReadFiles())
        self._unit = unit
        self._lines: tuple[tuple[str, str], ...] | None = None
        self._walked: _Walked | None = None

    def launches(
        self, text: str, of: Set[str] | None = None, callers: Callers = no_callers
    ) -> tuple[LaunchSite, ...]:
        """The launches of the file when it has this text; ``of``: only of these kernels, if told.

        ``callers``: files outside of the unit that may call what launches in the file.
        """
        if not (may_launch(text) or may_launch_by_macros(text)):
            return ()
        walked, lines = self._walk(text)
        read = self._read(walked, lines, text)

        def calling(name: str) -> Iterable[HostFile]:
            return (*walked.callers(name), *callers(name))

        return find_launches(self._path, text, walked.constants, read, calling, of)

    def launches_around(self, text: str, of: Set[str]) -> tuple[LaunchSite, ...]:
        """What the unit's other files launch of these kernels, when the file has this text."""
        walked, _ = self._walk(text)
        found = walked.launches(of)
        if all(site.block is not None for site in found):
            return found
        return walked.launches_with(self.file(text), of)

    def sees(self, text: str, path: Path, kernel: str) -> bool:
        """Whether the file, when it has this text, can launch a kernel that ``path`` defines.

        It includes that file, or declares the kernel, as what it includes may.
        """
        walked, _ = self._walk(text)
        if Path(files.target(path)) in walked.states:
            return True
        declares = re.compile(_DECLARED.format(name=re.escape(kernel)))
        texts = (text, *(self._files.text(other) for other in walked.states))
        return any(kernel in each and declares.search(each) is not None for each in texts)

    def file(self, text: str) -> HostFile:
        """The file, when it has this text."""
        walked, lines = self._walk(text)
        read = self._read(walked, lines, text)
        return HostFile(self._path, read.active(text), text, walked.constants, read)

    def _read(self, walked: _Walked, lines: Sequence[Directive], text: str) -> Regions:
        """What is read of the file; all of one to which the unit does not come."""
        states = walked.states.get(self._path)
        return EVERYTHING if states is None else regions(lines, states, len(text))

    def _walk(self, text: str) -> tuple[_Walked, tuple[Directive, ...]]:
        lines = directives(text)
        said = tuple((line.word, line.rest) for line in lines)
        if self._walked is None or self._lines != said:
            self._lines = said
            self._walked = self._walked_anew(lines)
        return self._walked, lines

    def _walked_anew(self, lines: tuple[Directive, ...]) -> _Walked:
        real = Path(files.target(self._path))

        def included(where: Path, name: str) -> tuple[Path, Sequence[Directive]] | None:
            found = self._files.included(where, name)
            if found is None:
                return None
            return (self._path, lines) if found == real else (found, self._files.directives(found))

        walk = Preprocessor(included)
        walk.define(self._definitions, self._undefined)
        main = self._path
        if self._unit is None:
            walk.walk(self._path, lines)
        else:
            main = self._unit[0]
            self._files.take(*self._unit)
            walk.walk(main, self._files.directives(main))
        return _Walked(self._files, walk.states, self._path)


class _Walked:
    """One walk through the unit."""

    def __init__(self, known: _Files, states: dict[Path, tuple[State, ...]], looked_at: Path) -> None:
        self._files = known
        self.states = states
        self._others = [path for path in states if path != looked_at][:_MOST_FILES]
        self._sites: dict[str, tuple[LaunchSite, ...]] = {}  # by kernel

    @cached_property
    def constants(self) -> tuple[HostConstants, ...]:
        """Of the other files."""
        return tuple(self._files.constants(path, self._regions(path)) for path in self._others)

    def launches(self, of: Set[str]) -> tuple[LaunchSite, ...]:
        """What the other files launch of these kernels; of one that is asked for again it is known."""
        new = frozenset(of - self._sites.keys())
        found = tuple(site for path in self._launching for site in self._launched(path, new)) if new else ()
        self._sites |= {kernel: tuple(site for site in found if site.kernel == kernel) for kernel in new}
        return tuple(site for kernel in sorted(of) for site in self._sites[kernel])

    def _launched(self, path: Path, of: Set[str]) -> tuple[LaunchSite, ...]:
        return self._launches(path, self.callers, self.constants, of)

    def launches_with(self, here: HostFile, of: Set[str]) -> tuple[LaunchSite, ...]:
        """The same with the constants and the calls of the file that is looked at."""

        def callers(name: str) -> Iterable[HostFile]:
            return (here, *self.callers(name))

        headers, found = (*self.constants, here.constants), self.launches(of)
        unknown = dict.fromkeys(site.site.range.path for site in found if site.block is None and site.site)
        settled = (s for s in found if s.site is None or s.site.range.path not in unknown)
        return (*settled, *(s for path in unknown for s in self._launches(path, callers, headers, of)))

    def _launches(
        self, path: Path, callers: Callers, headers: Sequence[HostConstants], of: Set[str]
    ) -> tuple[LaunchSite, ...]:
        text = self._files.text(path)
        named = {kernel for kernel in of if may_launch_kernel(text, kernel)}
        return find_launches(path, text, headers, self._regions(path), callers, named) if named else ()

    def callers(self, name: str) -> Iterable[HostFile]:
        """Those of the other files that may call a function."""
        return (self._host_file(path) for path in self._others if name in self._files.text(path))

    @cached_property
    def _launching(self) -> Sequence[Path]:
        texts = ((path, self._files.text(path)) for path in self._others)
        return [path for path, text in texts if may_launch(text) or may_launch_by_macros(text)]

    def _host_file(self, path: Path) -> HostFile:
        def made() -> HostFile:
            text, read = self._files.text(path), self._regions(path)
            return HostFile(path, read.active(text), text, self.constants, read)

        return _kept(self._host_files, path, made)

    @cached_property
    def _host_files(self) -> dict[Path, HostFile]:
        return {}

    def _regions(self, path: Path) -> Regions:
        return regions(self._files.directives(path), self.states[path], len(self._files.text(path)))


class ReadFiles:
    """Included files as they were when they were first asked for, whoever includes them."""

    def __init__(self) -> None:
        self._texts: dict[Path, str] = {}
        self._directives: dict[Path, tuple[Directive, ...]] = {}
        self._constants: dict[tuple[Path, Regions], HostConstants] = {}

    def take(self, path: Path, text: str) -> None:
        """What a file says."""
        self._texts[path] = text

    def text(self, path: Path) -> str:
        """What a file says; "" when it cannot be read."""
        return _kept(self._texts, path, lambda: _read(path))

    def directives(self, path: Path) -> tuple[Directive, ...]:
        """Those of a file."""
        return _kept(self._directives, path, lambda: directives(self.text(path)))

    def constants(self, path: Path, read: Regions) -> HostConstants:
        """Those of a file of which this is read."""

        def made() -> HostConstants:
            host = host_text(read.active(self.text(path)))
            return HostConstants(host, doubtful=read.doubtful)

        return _kept(self._constants, (path, read), made)


class _Files:
    """Files that are included, by an include path."""

    def __init__(self, folders: Sequence[str], read: ReadFiles) -> None:
        self._folders = folders
        self._resolved: dict[tuple[Path, str], Path | None] = {}
        self.take, self.text, self.directives, self.constants = (
            read.take,
            read.text,
            read.directives,
            read.constants,
        )

    def included(self, where: Path, name: str) -> Path | None:
        return _kept(self._resolved, (where, name), lambda: resolved(where, name, self._folders))


def _kept(known: dict[Key, Value], key: Key, make: Callable[[], Value]) -> Value:
    if key not in known:
        known[key] = make()
    return known[key]


def _read(path: Path) -> str:
    try:
        return files.read_text(path, _MOST_BYTES)
    except OSError:  # gone, or too large: its constants are not known
        return ""
