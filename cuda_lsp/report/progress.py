"""A bar on stderr, where that is a terminal: files, kernels, findings, time left.

It is drawn between findings, never beside them: who prints gets the screen. No thread draws it, because who
waits for files also forks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from cuda_lsp.batch.asked import Analysed
from cuda_lsp.readings import Reading
from cuda_lsp.report.defects import defects

_T = TypeVar("_T")


class Progress:
    """Of a run over so many files; headers that come with them are counted as they come."""

    def __init__(self, files: int, console: Console | None = None) -> None:
        console = console or Console(stderr=True, highlight=False)
        self._bar = Bar(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("files, {task.fields[kernels]} kernels, {task.fields[findings]} findings"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            auto_refresh=False,
            disable=not console.is_terminal or console.is_dumb_terminal,
        )
        self._kernels = self._findings = self._done = 0
        self._task = self._bar.add_task("", total=files, kernels=0, findings=0)

    def heard(self, reading: Reading, found: Analysed) -> None:
        """One more file is done."""
        del reading
        self._done += 1
        self._kernels += len(found.report.kernels)
        self._findings += len(defects(found.report.findings))
        total = max(self._done, int(self._bar.tasks[0].total or 0))
        self._bar.update(
            self._task, completed=self._done, total=total, kernels=self._kernels, findings=self._findings
        )

    def tick(self) -> None:
        """Some tenths of a second are over."""
        self._bar.refresh()

    def beside(self, coming: Iterable[_T]) -> Iterator[_T]:
        """What comes, with the bar drawn while it is waited for."""
        self._bar.start()
        try:
            for one in coming:
                self._bar.stop()
                yield one
                self._bar.start()
        finally:
            self._bar.stop()
