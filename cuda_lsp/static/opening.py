"""An open file, and how it is told of when it is opened: in parts, for a large one takes seconds.

Somebody looks at one place of it, and the kernels nearest to that are analysed first. Those that are still to
come are undecided and open until then, so that nobody takes a part for the whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from attrs import define, field

from cuda_lsp.frontend.directives import FileDirectives
from cuda_lsp.frontend.kernel_sources import KernelSource
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.model import FileReport, KernelReport, ToolError, Verdict
from cuda_lsp.static import budgets
from cuda_lsp.static.carried import Carried
from cuda_lsp.static.deadline import interrupted

_NOT_YET = "its analysis has just begun"
Keyed = tuple[str, KernelSource]


Publish = Callable[[FileReport], None]


@define
class Document:
    """One open file and the kernels of its newest text."""

    translation: Translation
    directives: FileDirectives
    carried: Carried
    version: int | None = None
    keys: list[tuple[str, int]] = field(factory=list[tuple[str, int]])  # (cache key, first line)
    searched: frozenset[str] = frozenset()  # kernels whose launches were looked for in other files
    launched: frozenset[str] = frozenset()  # those of them that are launched here, or in the unit
    handed_on: frozenset[tuple[Path, str]] = frozenset()  # launches (where, of what) whose callers were
    last_good: dict[str, list[str]] = field(factory=dict[str, list[str]])
    """Kernel name → keys of its instances in their last text that clang could read."""
    text: str = ""
    hidden: frozenset[str] = frozenset()  # keys of kernels that clang cannot make out
    unknown: tuple[KernelReport, ...] = ()  # templates whose types nothing tells
    put_off: dict[str, KernelReport] = field(factory=dict[str, KernelReport])
    """Key → what is shown of a kernel that is looked at when nobody types."""
    typed_at: int = 1  # line
    asked_for: bool = False  # somebody waits for a kernel that is put off
    errors: tuple[ToolError, ...] = ()
    seconds: float = 0.0
    publish: Publish | None = None


def parts(
    wanted: Sequence[Keyed], looked_at: Callable[[], int], analyse: Callable[[str, KernelSource], object]
) -> Iterator[list[KernelReport]]:
    """Analyse kernels; from time to time, placeholders for those to come. ``looked_at``: a line, from 1.

    Ends when somebody types, and one is analysed.
    """
    left, due = list(wanted), time.thread_time() + budgets.FIRST_S
    while left and not (len(left) < len(wanted) and interrupted()):
        line = looked_at()
        nearest = min(left, key=lambda known: _distance(known[1], line))
        left.remove(nearest)
        analyse(*nearest)
        if left and time.thread_time() > due:
            yield [undecided(source, _NOT_YET, refined=False) for _, source in left]
            due = time.thread_time() + budgets.EARLY_S


def _distance(source: KernelSource, line: int) -> int:
    return max(source.range.start.line - line, line - source.range.end.line, 0)


def undecided(source: KernelSource, reason: str, *, refined: bool = True) -> KernelReport:
    """What was not analysed has a verdict all the same, and the reason."""
    return KernelReport(source.name, source.range, Verdict.UNDECIDED, (reason,), refined=refined)
