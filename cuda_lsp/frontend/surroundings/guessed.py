"""What a file is read with that nobody told: headers found by name, well-known names, switches, includers.

Every guess is tried in its turn. Headers are kept where no more is unclear with them, everything else only
where more of the kernels is understood; what is kept is told. Made when a file is opened, never while typing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from typing import Protocol

from attrs import evolve, frozen

from cuda_lsp.frontend.compile_errors import may_call_the_host
from cuda_lsp.frontend.source_text import resolved_name
from cuda_lsp.frontend.surroundings import nearby_headers
from cuda_lsp.frontend.surroundings.branches_not_taken import (
    names_of_launches,
    switches_of_declarations,
    switches_of_kernels,
    switches_of_launches,
)
from cuda_lsp.frontend.surroundings.build_files import build_macros
from cuda_lsp.frontend.surroundings.conventions import (
    NO_CONVENTIONS,
    Conventions,
    conventions_of,
    switches_of,
)
from cuda_lsp.frontend.surroundings.made_headers import MadeHeader, made_headers
from cuda_lsp.frontend.surroundings.named_elsewhere import elsewhere, undeclared
from cuda_lsp.frontend.surroundings.noted import note_forced
from cuda_lsp.frontend.surroundings.units import Unit, is_header, units_of
from cuda_lsp.frontend.toolchain import OTHER_NAMES
from cuda_lsp.model import SourceRange, ToolError

_HIP = resolved_name(str(OTHER_NAMES / "hip" / "hip_runtime.h"))
_MAX_HEADER_ROUNDS = 4
_MAX_NAME_ROUNDS = 3
_MOST_INSTANCES = 32
RUN_TIME = "__CUDACC_RTC__"
"""What NVRTC defines, who takes functions that say nothing of it for the device's (``-default-device``)."""
_ALL_ON_DEVICE = "#pragma clang force_cuda_host_device begin\n"
_AS_WRITTEN = "\n#pragma clang force_cuda_host_device end\n"
_MACRO = re.compile(r"\b[A-Za-z_]\w+\b")
_NOT_SO = "if the build sees it differently, pass -I and -D or provide a compile_commands.json"


@frozen
class Guessed:
    """``folders``: of headers that no flag tells the folder of. ``switches``: macros that nobody asked for
    (``NAME``, ``NAME=VALUE``).

    ``unit``: the file that includes this one, in which it is read; None: it is read alone.
    ``headers``: that declare what nothing in the file does; they are read before it. ``made``: headers that
    the project's build writes.
    """

    folders: tuple[str, ...] = ()
    conventions: Conventions = NO_CONVENTIONS
    switches: tuple[str, ...] = ()
    unit: Unit | None = None
    headers: tuple[str, ...] = ()
    made: tuple[MadeHeader, ...] = ()

    @property
    def text(self) -> str:
        """What is read before the file: declarations by convention, and how a file is read at run time."""
        return (_ALL_ON_DEVICE if RUN_TIME in self.switches else "") + self.conventions.text

    @property
    def behind(self) -> str:
        """What is read behind the unit's text."""
        return _AS_WRITTEN if RUN_TIME in self.switches else ""

    def flags(self, path: Path) -> tuple[str, ...]:
        """The compiler's flags behind those of the file ``path``."""
        forced = ("-include", self.conventions.header(path)) if self.text else ()
        if forced:
            note_forced(self.conventions.header(path))
        for header in self.headers:
            note_forced(header)
            forced = (*forced, "-include", header)
        return (
            *(f"-I{folder}" for folder in self.folders),
            *(f"-I{folder}" for folder in dict.fromkeys(header.folder for header in self.made)),
            *(f"-D{definition}" for definition in self.definitions),
            *forced,
        )

    @property
    def forced_headers(self) -> str:
        """Lines that include ``headers``."""
        return "".join(f'#include "{header}"\n' for header in self.headers)

    @property
    def definitions(self) -> tuple[str, ...]:
        """The switches as ``NAME=VALUE``."""
        return tuple(name if "=" in name else f"{name}=1" for name in self.switches)

    def buffers(self, path: Path) -> list[tuple[str, str]]:
        """(name, text) of the headers that no folder holds."""
        told = [(self.conventions.header(path), self.text)] if self.text else []
        return told + [(header.path, header.text) for header in self.made]

    def told(self, where: SourceRange) -> list[ToolError]:
        """What the user should know of it, at the file's first ``#include``."""
        told: list[ToolError] = []
        if self.folders:
            found = f"some headers were found by their names only, in {_listed(self.folders)}"
            told.append(ToolError(f"{found}: {_NOT_SO}", where))
        if self.conventions.names:
            names = _listed(self.conventions.names)
            told.append(ToolError(f"nothing declares {names}: taken as in the frameworks; {_NOT_SO}", where))
        if self.headers:
            named = _listed([Path(header).name for header in self.headers])
            told.append(
                ToolError(f"read behind {named}, where names stand that nothing declares: {_NOT_SO}", where)
            )
        if self.made:
            named = _listed([header.name for header in self.made])
            told.append(ToolError(f"the build makes {named}: read as its template says; {_NOT_SO}", where))
        if self.switches:
            told.append(ToolError(f"read as if {_listed(self.switches)} were defined: {_NOT_SO}", where))
        return told


@frozen
class Understanding:
    """How much of a file a reading makes sense of.

    ``unread``: kernels that clang does not see. ``errors``: that concern kernels, wherever they stand, those
    ``here`` in the file itself. ``dependent``: templates that nothing instantiates. ``kernels``: names.
    ``templates``: whether there are any. ``unfound``: headers that are not there and the project may have.
    ``messages``: of the errors, in order. ``assumed``: templates whose arguments nothing tells.
    ``instances``: of templates, also those that are too many to be looked at.
    """

    unread: int
    errors: int
    here: int
    dependent: int
    kernels: frozenset[str]
    templates: bool
    unfound: tuple[str, ...]
    messages: tuple[str, ...] = ()
    assumed: int = 0
    instances: int = 0

    @property
    def broken(self) -> int:
        """What is not understood; 0: all is."""
        return self.errors + self.dependent + self.unread

    @property
    def unclear(self) -> tuple[int, int, int, int]:
        """What is not understood, for comparing.

        The file's own text has the first word: headers that were absent bring errors of their own.
        """
        return self.unread, self.here + self.dependent, self.errors, self.assumed

    def more_than(self, before: Understanding) -> bool:
        """Whether it is the better one and no kernel is lost."""
        return self.unclear < before.unclear and before.kernels <= self.kernels


class Reading(Protocol):
    """A file that can be read again with other guesses."""

    path: Path

    @property
    def guessed(self) -> Guessed:
        """With what it was read last."""
        ...

    def read_with(self, guessed: Guessed) -> None:
        """Read the same text again."""
        ...

    def understanding(self) -> Understanding:
        """Of the last reading."""
        ...

    def texts(self) -> Iterable[str]:
        """Of the file and of all that was read with it."""
        ...

    def included(self) -> Set[Path]:
        """The files that clang has read with it, links followed."""
        ...


def guess(reading: Reading, text: str) -> None:
    """Read ``text``, read once as it is, with what makes more of its kernels clear."""
    alone, tried = reading.guessed.unit is None, dict[Guessed, Understanding]()
    if alone and is_header(reading.path):
        _read_in_a_unit(reading, tried, always=True)
    elif alone and reading.understanding().broken:
        _read_in_a_unit(reading, tried, always=False)  # whoever includes it knows more than a guess
    if reading.understanding().unfound:
        _look_for_headers(reading)
    if reading.understanding().unfound and reading.understanding().broken:
        _make_headers(reading)
    for texts in ((text,), reading.texts()):
        if reading.understanding().broken:
            _take_by_convention(reading, "\n".join(texts))
        if reading.understanding().broken or reading.understanding().assumed:
            _take_by_convention(reading, "\n".join(texts), host=True)
    for define in (_define_as_the_build_does, _find_and_define, _take_and_define):
        if reading.understanding().broken:
            define(reading)
    if reading.understanding().unfound and reading.understanding().broken:
        _make_headers(reading)  # which macros may include
    for guess_again in (_read_as_at_run_time, _look_for_names, _read_as_at_run_time):
        if reading.understanding().broken:
            guess_again(reading)
    for switch in (_take_branches, _turn_switches_on, _take_and_turn_on):
        if reading.understanding().broken:
            switch(reading)
    if reading.understanding().unread and not reading.understanding().kernels:
        _take_branches_of_kernels(reading, text)
    if alone and reading.guessed.unit is None and reading.understanding().broken:
        _read_in_a_unit(reading, tried, always=False)
    _take_branches_of_launches(reading, text)


def _keep_if_better(reading: Reading, before: Understanding, otherwise: Guessed) -> None:
    if not reading.understanding().more_than(before):
        reading.read_with(otherwise)


def _keep_with_headers(reading: Reading, before: Understanding, otherwise: Guessed) -> None:
    """The same of switches: headers that they include are looked for before."""
    if not set(reading.understanding().unfound) <= set(before.unfound):
        _look_for_headers(reading)
    _keep_if_better(reading, before, otherwise)


def _look_for_headers(reading: Reading) -> None:
    """The headers that the project has somewhere."""
    first, before = reading.guessed, reading.understanding()
    if not _add_folders(reading) or _finds_more(reading, before):
        return
    if reading.understanding().unfound:
        _add_made_headers(reading)
    _add_conventions(reading, "\n".join(reading.texts()))  # which headers may need though the file does not
    if not _finds_more(reading, before):
        _keep_if_better(reading, before, first)


def _add_folders(reading: Reading) -> bool:
    """Folders of headers that are not found; one that is found then may include others."""
    first = reading.guessed
    for _ in range(_MAX_HEADER_ROUNDS):
        known = reading.guessed.folders
        folders = nearby_headers.folders_of(reading.path, reading.understanding().unfound)
        new = tuple(folder for folder in folders if folder not in known)
        if not new:
            break
        reading.read_with(evolve(reading.guessed, folders=(*known, *new)))
    return reading.guessed != first


def _finds_more(reading: Reading, before: Understanding) -> bool:
    """Whether headers were found and nothing is less clear with them."""
    now = reading.understanding()
    found = not set(before.unfound) <= set(now.unfound) and now.broken <= before.broken
    return found and before.kernels <= now.kernels


def _add_made_headers(reading: Reading) -> bool:
    made = made_headers(reading.path, reading.understanding().unfound)
    new = tuple(header for header in made if header not in reading.guessed.made)
    if new:
        reading.read_with(evolve(reading.guessed, made=(*reading.guessed.made, *new)))
    return bool(new)


def _add_conventions(reading: Reading, text: str, host: bool = False) -> bool:
    host = host or reading.guessed.conventions.host
    now = reading.understanding()
    conventions = conventions_of(text, undeclared(now.messages), host, now.unfound)
    new = bool(conventions.text) and conventions != reading.guessed.conventions
    if new:
        reading.read_with(evolve(reading.guessed, conventions=conventions))
    return new


def _make_headers(reading: Reading) -> None:
    """The headers that a build would make; one of them may include others."""
    first, before = reading.guessed, reading.understanding()
    if _add_made_headers(reading):
        _look_for_headers(reading)
        _keep_if_better(reading, before, first)


def _take_by_convention(reading: Reading, text: str, host: bool = False) -> None:
    """Declarations of well-known names.

    Where all is understood without them, for the instances that host code asks for: not for so many that
    each keystroke would wait for them.
    """
    first, before = reading.guessed, reading.understanding()
    if _add_conventions(reading, text, host):
        if not before.broken and reading.understanding().instances > _MOST_INSTANCES:
            reading.read_with(first)
        else:
            _keep_if_better(reading, before, first)


def _define_as_the_build_does(reading: Reading) -> None:
    """Macros of the project's build files that some text names: with its options as they are, and else."""
    first, before = reading.guessed, reading.understanding()
    for by_options in (True, False):
        if _add_macros(reading, by_options):
            _keep_with_headers(reading, before, first)
        if reading.guessed != first:
            break


def _add_macros(reading: Reading, by_options: bool = True) -> bool:
    first = reading.guessed
    names = {word for text in reading.texts() for word in _MACRO.findall(text)}
    known = {switch.partition("=")[0] for switch in first.switches}
    found = build_macros(reading.path, names, hip=_HIP in reading.included(), by_options=by_options)
    macros = tuple(m for m in found if m.partition("=")[0] not in known)
    if macros:
        reading.read_with(evolve(first, switches=(*first.switches, *macros)))
    return bool(macros)


def _find_and_define(reading: Reading) -> None:
    """Headers and the build's macros together: what the headers declare may hang on the macros."""
    first, before = reading.guessed, reading.understanding()
    if _add_folders(reading) and _add_macros(reading):
        _add_folders(reading)  # of those that are included where a macro says so
        _keep_if_better(reading, before, first)
    elif reading.guessed != first:
        reading.read_with(first)


def _take_and_define(reading: Reading) -> None:
    """Well-known names and the build's macros together: neither may tell anything alone."""
    first, before = reading.guessed, reading.understanding()
    if _add_conventions(reading, "\n".join(reading.texts())) and _add_macros(reading):
        _keep_if_better(reading, before, first)
    elif reading.guessed != first:
        reading.read_with(first)


def _read_as_at_run_time(reading: Reading) -> None:
    """As a compiler that a program brings along reads texts: every function may be called on the device."""
    first, before = reading.guessed, reading.understanding()
    wanted = any(map(may_call_the_host, before.messages)) or any(RUN_TIME in text for text in reading.texts())
    if first.unit is not None or RUN_TIME in first.switches or not wanted:
        return
    reading.read_with(evolve(first, switches=(*first.switches, RUN_TIME)))
    _keep_if_better(reading, before, first)


def _look_for_names(reading: Reading) -> None:
    """Headers of the project that declare what kernels name, and constants; these may name others."""
    for _ in range(_MAX_NAME_ROUNDS):
        first, before = reading.guessed, reading.understanding()
        found = elsewhere(reading.path, undeclared(before.messages), before.kernels)
        known = {switch.partition("=")[0] for switch in first.switches}
        read = reading.included()  # what these declare was read, and is not meant
        new = (h for h in found.headers if h not in first.headers and resolved_name(h) not in read)
        headers = (*new, *first.headers)
        constants = tuple(c for c in found.constants if c.partition("=")[0] not in known)
        if headers == first.headers and not constants:
            break
        reading.read_with(evolve(first, headers=headers, switches=(*first.switches, *constants)))
        if reading.understanding().unfound:
            _look_for_headers(reading)
        if not reading.understanding().more_than(before):
            reading.read_with(first)
            break


def _take_branches(reading: Reading) -> None:
    """Macros under which texts that are read declare what kernels name."""
    first, before = reading.guessed, reading.understanding()
    if _switch_on(reading, switches_of_declarations(reading.texts(), undeclared(before.messages))):
        _keep_with_headers(reading, before, first)


def _take_branches_of_kernels(reading: Reading, text: str) -> None:
    """Macros under which all kernels of a text stand: without them there would be nothing to look at."""
    first, before = reading.guessed, reading.understanding()
    if _switch_on(reading, switches_of_kernels(text)):
        _keep_with_headers(reading, before, first)


def _take_branches_of_launches(reading: Reading, text: str) -> None:
    """Macros under which texts that are read say what launches name: without them none would compile."""
    first, before = reading.guessed, reading.understanding()
    if _switch_on(reading, switches_of_launches(reading.texts(), names_of_launches(text))):
        now = reading.understanding()
        if now.unclear > before.unclear or not before.kernels <= now.kernels:
            reading.read_with(first)


def _turn_switches_on(reading: Reading) -> None:
    """Macros under which projects keep their device code."""
    first, before = reading.guessed, reading.understanding()
    if _add_switches(reading):
        _keep_with_headers(reading, before, first)


def _add_switches(reading: Reading) -> bool:
    return _switch_on(reading, switches_of(reading.texts()))


def _switch_on(reading: Reading, switches: Sequence[str]) -> bool:
    """Read with those whose macros have no value yet; whether there is one."""
    first = reading.guessed
    known = {switch.partition("=")[0] for switch in first.switches}
    new = tuple(switch for switch in switches if switch.partition("=")[0] not in known)
    if new:
        reading.read_with(evolve(first, switches=(*first.switches, *new)))
    return bool(new)


def _take_and_turn_on(reading: Reading) -> None:
    """Well-known names and these macros together: host code that makes instances may need both."""
    first, before = reading.guessed, reading.understanding()
    if _add_conventions(reading, "\n".join(reading.texts())) and _add_switches(reading):
        _keep_with_headers(reading, before, first)
    elif reading.guessed != first:
        reading.read_with(first)


def _read_in_a_unit(reading: Reading, tried: dict[Guessed, Understanding], *, always: bool) -> None:
    """As a part of a file that includes it: the first in which all is clear, or else most is.

    ``always``: also when nothing is unclear without; what is clear alone may mean something else there.
    ``tried``: what came of units before; those of which nothing comes are not read again.
    """
    alone, before = reading.guessed, reading.understanding()
    best, fewest = alone, before.unclear
    taken = False
    for unit in units_of(reading.path):
        first = evolve(alone, unit=unit)
        if first in tried and tried[first].unclear >= fewest:
            continue
        reading.read_with(first)
        if reading.understanding().unfound:
            _look_for_headers(reading)
        if reading.understanding().dependent:  # what would instantiate them may hang on the build's words
            _define_as_the_build_does(reading)
        now = tried[reading.guessed] = reading.understanding()
        keeps = before.kernels <= now.kernels
        if keeps and (now.unclear < fewest or (always and not taken and now.unclear == fewest)):
            fewest, best, taken = now.unclear, reading.guessed, True
        if taken and not any(fewest):
            break
    if reading.guessed != best:
        reading.read_with(best)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
