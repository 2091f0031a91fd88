"""Repairs of one file, found in the process that has analysed it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, field

from cuda_lsp.model import FileReport

if TYPE_CHECKING:
    from cuda_lsp.static.analyze import Analyzer


@define
class InProcess:
    """Trials by an analyzer that has the file open, and whose text of it nobody needs any more.

    Kernels that an edit does not touch are known already.
    """

    _analyzer: Analyzer
    _path: Path
    _shown: str | None = None  # the text that the analyzer has
    _first: dict[str, FileReport] = field(factory=dict[str, FileReport])
    _finished: dict[str, FileReport] = field(factory=dict[str, FileReport])

    def first(self, text: str) -> FileReport:
        """What the first tier says."""
        if text not in self._first:
            self._first[text] = self._analyzer.update(self._path, text)
            self._shown = text
        return self._first[text]

    def finished(self, text: str) -> FileReport:
        """What both tiers say."""
        if text not in self._finished:
            if self._shown != text:
                self._analyzer.update(self._path, text)
                self._shown = text
            settle = self._analyzer.settings.solver
            self._finished[text] = self._analyzer.settle(self._path) if settle else self.first(text)
        return self._finished[text]
