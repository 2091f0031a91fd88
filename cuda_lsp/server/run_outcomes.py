"""What a dynamic check of a kernel came to, in a line: for the message when it ends, lenses and hints."""

from __future__ import annotations

import time
from collections.abc import Sequence

from attrs import frozen

from cuda_lsp.confirm import asked_for
from cuda_lsp.dynamic.job import CheckJob, TrialResult
from cuda_lsp.dynamic.observations.merge import Seen
from cuda_lsp.model import Finding, KernelReport, SourceRange, Status
from cuda_lsp.report.defects import defects, places_of, template_of
from cuda_lsp.server.check_commands import SET_LAUNCH
from cuda_lsp.server.verdicts import block_text

_GUESSED = f"say what it is: choose “{SET_LAUNCH}…”, or write `// cuda-lsp: launch block=(x,y,z)` above it"


@frozen
class LastRun:
    """One check, or all launches of a program's run.

    ``blocks``: checked, and all there were; ``at``: time of day. The numbers are those of defects as people
    see them. ``place``: the first of these, or where the run ended early. ``watched``: for races.
    """

    device: str
    seconds: float
    blocks: tuple[int, int]
    at: str
    confirmed: int = 0
    new: int = 0
    refuted: int = 0
    failed: bool = False
    place: SourceRange | None = None
    watched: bool = True

    @property
    def counts(self) -> str:
        """``1 confirmed, 2 new``."""
        numbers = ((self.confirmed, "confirmed"), (self.new, "new"), (self.refuted, "not observed"))
        said = [f"{count} {word}" for count, word in numbers if count]
        said += ["ended early"] if self.failed else []
        return ", ".join(said) or ("no race seen" if self.watched else "proved race-free, not watched")

    @property
    def where(self) -> str:
        """``on CPU emulator, 12 ms, 4 of 64 blocks``."""
        time_ = f"{1e3 * self.seconds:.0f} ms" if self.seconds < 1 else f"{self.seconds:.1f} s"
        checked, total = self.blocks
        blocks = f"{checked} of {total} blocks" if total > 1 else "1 block"
        return f"on {self.device}, {time_}, {blocks}"

    def said(self, kernel: str, guess: str) -> str:
        """The message when it ends."""
        silent = self.watched and not (self.confirmed or self.new or self.failed)
        proves = "; that proves nothing" if silent else ""
        ending = f". {guess[0].upper()}{guess[1:]}: {_GUESSED}" if guess else ""
        return f"{kernel}: {self.counts} {self.where}{proves}{ending}"


def last_run(
    before: KernelReport,
    after: KernelReport,
    seen: Sequence[Seen],
    ended: Sequence[SourceRange],
    watched: bool,
) -> LastRun | None:
    """Of a kernel's reports without and with what was seen; ``ended``: where it ended early. None: no run."""
    trials: list[TrialResult] = [trial for one in seen for trial in one.result.results]
    if not trials:
        return None
    known = {_key(finding) for finding in before.findings}
    told = [d for d in defects(after.findings) if d.status in (Status.CONFIRMED, Status.NOT_OBSERVED)]
    sure = [d for d in told if d.status is Status.CONFIRMED]
    old = sum(any(_key(finding) in known for finding in (defect, *defect.also)) for defect in sure)
    return LastRun(
        seen[0].result.device,
        sum(trial.races.seconds for trial in trials),
        (sum(t.races.blocks_checked for t in trials), sum(t.races.blocks_total for t in trials)),
        time.strftime("%H:%M"),
        old,
        len(sure) - old,
        len(told) - len(sure),
        bool(ended) or any(trial.races.failure for trial in trials),
        next(iter([*ended, *(d.site.range for d in (*sure, *told))]), None),
        watched,
    )


def _key(finding: Finding) -> object:
    return finding.kind is None and finding.code, places_of(finding)


def guess_of(kernel: KernelReport, job: CheckJob, text: str) -> str:
    """What of a run of ``job`` is made up, in words; empty: nothing."""
    told: list[str] = []
    if job.text not in (text, text + asked_for(job.path, kernel.name)):
        told.append(f"template arguments ({kernel.name[len(template_of(kernel.name)) :]})")
    if not kernel.launches or kernel.launches[0].assumed:
        told.append(f"launch ({block_text(job.trials[0].launch)})")
    return f"guessed: its {' and '.join(told)}" if told else ""
