"""One file of host code as launches and calls are read from it: its constants, its pointers, its places."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from cuda_lsp.frontend.host.host_classes import HostClasses
from cuda_lsp.frontend.host.host_constants import HostConstants
from cuda_lsp.frontend.host.host_functions import HostFunctions
from cuda_lsp.frontend.host.host_pointers import HostPointers
from cuda_lsp.frontend.host.passed_fields import PassedFields
from cuda_lsp.frontend.host.pieces.units import Unit
from cuda_lsp.frontend.host.preprocessor import EVERYTHING, Regions
from cuda_lsp.frontend.host.text import HostText, host_text
from cuda_lsp.model import Position, Site, SourceRange


class HostFile:
    """``text`` is ``whole`` with stretches left out. ``headers``: the constants of what it includes."""

    def __init__(
        self,
        path: Path,
        text: str,
        whole: str,
        headers: Sequence[HostConstants] = (),
        read: Regions = EVERYTHING,
    ) -> None:
        self.path = path
        self.host = host_text(text)
        self._headers = headers
        self.headers = [file.text for file in headers]
        self._whole = whole
        self.constants = HostConstants(self.host, headers, read.doubtful)
        self.constants.members = lambda variable, field, at: self.fields.member(variable, field, at)

    @cached_property
    def fields(self) -> PassedFields:
        """What its records hold."""
        return PassedFields(self.constants)

    @cached_property
    def pointers(self) -> HostPointers:
        """Its pointer variables."""
        return HostPointers(self.host, self.constants.functions, self.functions_of_headers)

    @cached_property
    def functions_of_headers(self) -> Sequence[tuple[HostText, HostFunctions]]:
        """The texts that it includes, and their functions."""
        return [(file.text, file.functions) for file in self._headers]

    @cached_property
    def units(self) -> Sequence[Unit]:
        """Its text and those of what it includes, as they are followed."""
        headers = [
            Unit(file.text, file.functions, HostClasses(file.text, file.functions)) for file in self._headers
        ]
        return [Unit(self.host, self.constants.functions, self.pointers.called.classes), *headers]

    @cached_property
    def _line_ends(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self._whole)]

    def site(self, begin: int, end: int) -> Site:
        """What stands between two offsets of the host text."""
        first, last = self.host.original(begin), self.host.original(end - 1) + 1
        extent = SourceRange(self.path, self._position(first), self._position(last))
        return Site(extent, self._whole[first:last])

    def _position(self, offset: int) -> Position:
        line = bisect_left(self._line_ends, offset)
        begin = self._line_ends[line - 1] + 1 if line else 0
        return Position(line + 1, offset - begin + 1)
