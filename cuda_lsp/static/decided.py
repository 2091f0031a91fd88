"""Kernels of a newer text that need not be executed while somebody types: what was decided before holds.

Their code is the same, or their program is (``same_program``), or the text is broken and decides nothing.
In a pause all of them are looked at as if nothing had been known (``Analyzer.complete``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import define, evolve, field

from cuda_lsp.frontend.kernel_sources import KernelSource
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import KernelReport
from cuda_lsp.static.diagnostics.incomplete import COMPILE_ERRORS
from cuda_lsp.static.opening import Document, Keyed, undecided
from cuda_lsp.static.same_program import Program

PUT_OFF = "it is analysed when nobody types"


@define(eq=False)
class Decided:
    """Of the newest ``text`` of a document: reports by key, and the keys that nobody need look at.

    Reports that quote code which is written in another way now are shown, and looked at.
    """

    document: Document
    text: str
    reports: dict[str, KernelReport] = field(factory=dict[str, KernelReport])
    done: set[str] = field(factory=set[str])

    def by_code(self, key: str, source: KernelSource) -> None:
        """Take a kernel whose code was decided before."""
        before, carried = self.document.put_off.get(key), self.document.carried
        if before is None:
            here = undecided(source, PUT_OFF, refined=False)
            self._take(key, carried.same(source.identity, self.text, evolve(here, key=source.digest)))
        else:  # it stood in the text before
            lines = source.range.start.line - before.range.start.line
            self._take(key, carried.shifted(source.identity, self.text, lines))

    def half_typed(self, key: str, source: KernelSource) -> None:
        """Take a kernel that is more broken than when it was decided, before somebody typed."""
        complaints = None if key in self.reports else self.document.translation.complaints(source)
        if complaints:
            here = evolve(undecided(source, COMPILE_ERRORS), key=source.digest)
            self._take(key, self.document.carried.half_typed(source.identity, self.text, here, complaints))

    def leave_out(self, of_file: Iterable[Keyed]) -> None:
        """Nobody need look at what was taken, of all kernels of the file."""
        respelled = self.document.carried.is_respelled
        self.done |= {
            key for key, source in of_file if key in self.reports and not respelled(source.identity)
        }

    def by_program(
        self, key: str, source: KernelSource, kernel: Kernel, valued: Callable[[], Kernel]
    ) -> bool:
        """Take a kernel that is the program of an older text, if it is. ``valued``: with values of floats."""
        here = evolve(undecided(source, PUT_OFF), key=source.digest)
        carried = self.document.carried
        program = Program(kernel, self.document.translation.complaints(source))
        taken = self._take(key, carried.alike(source.identity, self.text, here, program, valued))
        self.done |= {key} if taken else set()
        return taken

    def waiting(self, wanted: list[Keyed]) -> dict[str, KernelReport]:
        """What is shown of kernels that are looked at later, and of those that were taken."""
        later = {key: self._put_off(source) for key, source in wanted if key not in self.reports}
        return self.reports | later

    def _put_off(self, source: KernelSource) -> KernelReport:
        why = COMPILE_ERRORS if self.document.translation.lost_sight_of(source) else PUT_OFF
        return self.document.carried.put_off(
            source.identity, self.text, undecided(source, why, refined=False)
        )

    def _take(self, key: str, report: KernelReport | None) -> bool:
        if report is not None:
            self.reports[key] = report
        return report is not None
