"""What is around the text of one file: the unit in which it is read, its flags, its headers, its host code.

All of it is of the disk as it was when the text's ``#include`` lines, or what is guessed, last changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from pathlib import Path

from attrs import evolve

from cuda_lsp import files
from cuda_lsp.frontend import toolchain
from cuda_lsp.frontend.host.constants import number
from cuda_lsp.frontend.host.host_code import HostCode, ReadFiles
from cuda_lsp.frontend.host.launch_facts import as_others_call
from cuda_lsp.frontend.host.launch_site import Called, LaunchSite
from cuda_lsp.frontend.own_names import left_to_program
from cuda_lsp.frontend.source_text import resolved_name
from cuda_lsp.frontend.surroundings import made_headers, nearby_headers, units
from cuda_lsp.frontend.surroundings.compile_commands import options_for
from cuda_lsp.frontend.surroundings.guessed import Guessed
from cuda_lsp.frontend.surroundings.included import Inclusions, contents_digest, inclusions, mentioned
from cuda_lsp.frontend.surroundings.units import kernel_headers, on_the_way, unit_at
from cuda_lsp.frontend.toolchain import FrontendOptions


class Around:
    """Of the file ``path``. ``unit``: the file in which it is read; None: itself, until one is taken."""

    def __init__(self, path: Path, options: FrontendOptions, unit: Path | None) -> None:
        self.path = path
        self._given = options
        self._included: tuple[object, Inclusions] | None = None  # for what of the text and the guesses
        self._host: tuple[Inclusions, HostCode] | None = None
        self._read: tuple[object, ReadFiles] = None, ReadFiles()  # for what the text mentions
        self.outside: Mapping[str, tuple[LaunchSite, ...]] = {}
        self.called: tuple[Called, ...] = ()  # launches that files around hand one buffer twice
        self.guessed = Guessed(unit=unit_at(unit) if unit is not None else None)
        self._ours: tuple[str, ...] = ()
        self._take_options()

    @property
    def main(self) -> Path:
        """The file that clang begins with."""
        return self.guessed.unit.path if self.guessed.unit is not None else self.path

    @property
    def folders(self) -> tuple[str, ...]:
        """The include path; the unit's own folder is the first that clang is given."""
        own = (str(self.main.parent), *self.options.include_dirs, *self.guessed.folders)
        return (*own, str(toolchain.OTHER_NAMES))

    @property
    def macros(self) -> Mapping[str, int]:
        """The macros of the build, and guessed ones, that are numbers."""
        defined = (each.partition("=") for each in (*self.options.defines, *self.guessed.definitions))
        values = {name: number(text or "1") for name, _, text in defined}
        return {name: value for name, value in values.items() if value is not None}

    def take(self, guessed: Guessed) -> None:
        """Other guesses."""
        before, self.guessed = self.guessed.unit, guessed
        if guessed.unit != before:
            self._take_options()

    def leave_to_program(self, names: Iterable[str]) -> None:
        """Namespaces that the program has itself; ours of that name are called otherwise."""
        before, self._ours = self._ours, left_to_program(names)
        if self._ours != before:
            self._take_options()

    def _take_options(self) -> None:
        """The flags of the unit."""
        options, self.option_errors = options_for(self.main, self._given)
        self.options = evolve(options, ours=self._ours)
        self.flags = (*self.options.file_flags(self.main), *toolchain.shim_flags(self.options))

    def refresh(self) -> None:
        """Headers have changed on disk, or come, or gone."""
        self._included = None
        self._read = None, ReadFiles()
        nearby_headers.forget()
        made_headers.forget()
        units.forget()
        unit = self.guessed.unit
        if unit is not None:
            self.guessed = evolve(self.guessed, unit=unit_at(unit.path) or unit)

    def inclusions(self, text: str, names: tuple[str, ...] | None = None) -> Inclusions:
        """What the text includes, or its unit does; ``names``: what the text mentions, if that is known."""
        key = (mentioned(text) if names is None else names, self.guessed)
        if self._included is None or self._included[0] != key:
            self._included = (key, self._inclusions(text))
        return self._included[1]

    def _inclusions(self, text: str) -> Inclusions:
        unit = self.guessed.unit
        read = [(self.path, text), (self.main, self.options.forced_headers())]
        behind = (self.main, self.guessed.forced_headers)
        if unit is None:
            found = inclusions([*read, behind], self.folders)
            own = inclusions(read, self.folders) if self.guessed.headers else found
            return evolve(found, with_kernels=kernel_headers(self.path, own.texts))
        found = inclusions([(unit.path, unit.text), *read, behind], self.folders)
        leading = {resolved_name(str(unit.path)): unit.text, **found.texts}
        return evolve(found, around=on_the_way(resolved_name(str(self.path)), leading))

    def digest(self, text: str, read: Iterable[str]) -> bytes:
        """Changes with the flags and the contents of the headers; ``read``: those that clang read."""
        told = {Path(files.target(name)) for name in read}
        if told or self.guessed.unit is not None:
            told |= self.inclusions(text).texts.keys()
        told.discard(resolved_name(str(self.path)))
        return contents_digest(told, repr((self.flags, self.guessed)).encode())

    # ------------------------------------------------------------------------------------- host code

    def launches(self, text: str, names: tuple[str, ...] | None = None) -> tuple[LaunchSite, ...]:
        """The launches of the text."""
        return as_others_call(self._host_code(text, names).launches(text), self.called)

    def launches_elsewhere(
        self, text: str, of: Set[str], names: tuple[str, ...] | None = None
    ) -> Mapping[str, tuple[LaunchSite, ...]]:
        """Launches of these kernels in other files, by name: of the unit, then of the workspace."""
        found: dict[str, tuple[LaunchSite, ...]] = {}
        for site in as_others_call(self._host_code(text, names).launches_around(text, of), self.called):
            found[site.kernel] = (*found.get(site.kernel, ()), site)
        read = {site.site.range.path for sites in found.values() for site in sites if site.site}
        for kernel, sites in self.outside.items():
            others = [s for s in sites if s.site and resolved_name(str(s.site.range.path)) not in read]
            found[kernel] = (*found.get(kernel, ()), *as_others_call(others, self.called))
        return found

    def _host_code(self, text: str, names: tuple[str, ...] | None) -> HostCode:
        included = self.inclusions(text, names)
        if self._host is None or self._host[0] is not included:
            options, unit = self.options, self.guessed.unit
            mentions = mentioned(text) if names is None else names
            if self._read[0] != mentions:  # else guesses alone have changed
                self._read = mentions, ReadFiles()
            code = HostCode(
                self.path,
                self.folders,
                (*options.defines, *self.guessed.definitions),
                options.undefines(),
                (unit.path, unit.text) if unit is not None else None,
                self._read[1],
            )
            self._host = (included, code)
        return self._host[1]
