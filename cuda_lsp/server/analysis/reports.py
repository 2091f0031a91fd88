"""Reports on their way from the analysis process to the server: what a kernel's was before is not sent again.

A kernel whose report stayed is a number, one that only moved with its text a number and a distance. Both
sides remember the last report of each document, in the order in which they were sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from cuda_lsp.model import FileReport, KernelReport

Origin = tuple[KernelReport, int]
"""A kernel's report where it was made, and the lines it has moved down since."""


@frozen
class Sent:
    """A report without what the other side has; ``first``: that has nothing. ``kernels``: see above."""

    uri: str
    first: bool
    rest: FileReport
    kernels: tuple[KernelReport | int | tuple[int, int], ...]


@frozen
class _Known:
    report: KernelReport
    origin: Origin


@frozen
class Sender:
    """The side that makes reports."""

    _last: dict[str, list[_Known]] = field(factory=dict[str, list[_Known]])

    def sent(self, uri: str, report: FileReport, origins: Mapping[int, Origin]) -> Sent:
        """What to send of a report. ``origins``: of kernels' reports, by identity, where they are known."""
        before = self._last.get(uri)
        places = {id(known.origin[0]): (i, known) for i, known in enumerate(before or ())}
        known = [_Known(kernel, origins.get(id(kernel), (kernel, 0))) for kernel in report.kernels]
        self._last[uri] = known
        kernels = tuple(_short(kernel, places) for kernel in known)
        return Sent(uri, before is None, evolve(report, kernels=()), kernels)

    def forget(self, uri: str) -> None:
        """The document is closed."""
        self._last.pop(uri, None)


def _short(kernel: _Known, places: Mapping[int, tuple[int, _Known]]) -> KernelReport | int | tuple[int, int]:
    origin, lines = kernel.origin
    if id(origin) not in places:
        return kernel.report
    place, before = places[id(origin)]
    return place if lines == before.origin[1] else (place, lines - before.origin[1])


@frozen
class Receiver:
    """The side that gets them."""

    _last: dict[str, tuple[KernelReport, ...]] = field(factory=dict[str, tuple[KernelReport, ...]])

    def report(self, sent: Sent) -> FileReport:
        """The whole report; parts that stayed are the same objects."""
        before: Sequence[KernelReport] = () if sent.first else self._last[sent.uri]
        kernels = tuple(_whole(kernel, before) for kernel in sent.kernels)
        self._last[sent.uri] = kernels
        return evolve(sent.rest, kernels=kernels)

    def forget(self, uri: str) -> None:
        """The document is closed on the other side too."""
        self._last.pop(uri, None)


def _whole(kernel: KernelReport | int | tuple[int, int], before: Sequence[KernelReport]) -> KernelReport:
    if isinstance(kernel, KernelReport):
        return kernel
    place, lines = (kernel, 0) if isinstance(kernel, int) else kernel
    return before[place].moved(lines)
