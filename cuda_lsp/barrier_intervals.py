"""Two threads that race, between the barriers of their block: as data, for people who look at it.

A barrier interval is what a block executes from one barrier to the next (``docs/semantics.md``). Accesses of
two threads in one interval are in no order; of two intervals, the barrier between these orders them.
"""

from __future__ import annotations

from attrs import frozen

from cuda_lsp.model import RACES, Dim3, FileReport, Finding, LaunchConfig, Mode, RaceKind, Site, Witness


@frozen
class Meeting:
    """A race's two accesses, of which thread each is, and under which launch they meet.

    ``places``: the accesses in the order of ``witness.threads``, which is that of the text; ``kind`` tells
    which is executed first.
    """

    kernel: str
    launch: LaunchConfig
    witness: Witness
    places: tuple[Site, Site]
    kind: RaceKind | None

    @property
    def between_blocks(self) -> bool:
        """No barrier of a block orders the two."""
        return self.witness.blocks is not None and self.witness.blocks[0] != self.witness.blocks[1]


def meeting_of(finding: Finding) -> Meeting | None:
    """None: it is no race, or nobody knows of which threads."""
    seen, launch = finding.witness, finding.launch
    if finding.code not in RACES or seen is None or launch is None or not finding.related:
        return None
    return Meeting(finding.kernel, launch, seen, (finding.related[0].site, finding.site), finding.kind)


def race_on(report: FileReport, line: int) -> Finding | None:
    """The worst race on a line (from 1) of which the threads are known; first those with the later access."""

    def rank(finding: Finding) -> tuple[bool, int] | None:
        meeting = meeting_of(finding)
        ours = [site.range.path == report.path for site in meeting.places] if meeting else []
        there = [site.range.has_line(line) for site in meeting.places] if meeting else []
        if not any(a and b for a, b in zip(ours, there, strict=True)):
            return None
        return (not there[1], finding.effective_severity)

    found = [(order, finding) for finding in report.findings if (order := rank(finding)) is not None]
    return min(found, key=lambda known: known[0], default=(None, None))[1]


@frozen
class Step:
    """An access to the array: which of the two threads execute it, and for which it is the one that races.

    ``mode`` None: not known.
    """

    site: Site
    mode: Mode | None
    executed: tuple[bool, bool]
    racing: tuple[bool, bool]


@frozen
class Interval:
    """``steps`` as executed, of more that are ``left_out``. ``number``: from 1. ``ends`` None: the kernel."""

    number: int
    steps: tuple[Step, ...]
    ends: Site | None
    left_out: int = 0


@frozen
class IntervalPicture:
    """The intervals in which two threads access one element. ``begins``: the barrier before, None: none.

    ``whole``: what else they do to the array is there; else nobody has executed that.
    """

    kernel: str
    element: str
    threads: tuple[Dim3, Dim3]
    blocks: tuple[Dim3, Dim3] | None
    begins: Site | None
    intervals: tuple[Interval, ...]
    whole: bool = True

    @property
    def ordered(self) -> bool:
        """A barrier stands between the two accesses."""
        return sum(any(any(step.racing) for step in interval.steps) for interval in self.intervals) > 1

    @property
    def at_once(self) -> bool:
        """Both execute one statement: nothing could stand between."""
        return any(all(step.racing) for interval in self.intervals for step in interval.steps)
