"""An assumed launch accuses nobody: only what every other plausible launch shows too is certain.

A buffer of 512 words and a default block of 1024 threads prove nothing about the program. What a tier finds
under such a launch is asked for again under others; what does not come back is *possible*, with the launch
as its reason. A block whose threads surely leave a shared array is not the one that the kernel's author had
in mind: a smaller one is assumed in its stead, and it has no say about others. Launches that the source fixes
are never doubted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set

from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import Code, LaunchConfig
from cuda_lsp.static.findings.conditions import Open
from cuda_lsp.static.findings.diagnosis import Diagnosis, Key
from cuda_lsp.static.launches.alternatives import alternatives, smaller
from cuda_lsp.static.launches.coordinates import unlike

ADVICE = frozenset({Code.BANK_CONFLICT, Code.UNCOALESCED_ACCESS, Code.REDUNDANT_BARRIER})
"""What is told of the launch at hand, assumed or not: it accuses nobody of a mistake."""
_NOT_ASKED_AGAIN = ADVICE - {Code.BANK_CONFLICT}
"""Advice that is not asked for again: which lanes share a warp, and so a bank, hangs on the block."""

Judge = Callable[[LaunchConfig], bool]


def fitted(kernel: Kernel, launch: LaunchConfig, leaves_arrays: Judge) -> LaunchConfig:
    """The launch, or one with a smaller block if the threads of an assumed one surely leave shared arrays."""
    if not launch.assumed or not leaves_arrays(launch):
        return launch
    return next((other for other in smaller(kernel, launch) if not leaves_arrays(other)), launch)


def entitled(kernel: Kernel, launch: LaunchConfig, misuses_arrays: Judge) -> Iterator[LaunchConfig]:
    """The other launches that have a say in what the assumed one shows.

    Not those whose threads surely misuse shared arrays (leave them, or read what none has written) when its
    own do not.
    """
    as_bad: bool | None = None
    for other in () if unlike(kernel, launch) else alternatives(kernel, launch):
        if misuses_arrays(other):
            as_bad = misuses_arrays(launch) if as_bad is None else as_bad
            if not as_bad:
                continue
        yield other


def accusations(findings: Iterable[Diagnosis]) -> set[Key]:
    """The keys of those that say for certain that the program is wrong, perhaps under a condition."""
    return {finding.key for finding in findings if _accuses(finding)}


def _accuses(finding: Diagnosis) -> bool:
    return finding.certain and finding.code not in _NOT_ASKED_AGAIN


def second_opinion(
    kernel: Kernel,
    launch: LaunchConfig,
    findings: Iterable[Diagnosis],
    others: Iterable[LaunchConfig],
    shown: Callable[[LaunchConfig, Set[Key]], Set[Key]],
) -> tuple[Diagnosis, ...]:
    """The findings under an assumed launch; what not all of the ``others`` show is only possible.

    ``shown``: which accusations a launch shows, at least those among some that are wanted.
    """
    findings = tuple(findings)
    upheld: Set[Key] = set() if unlike(kernel, launch) else accusations(findings)
    if upheld:
        for other in others:
            upheld &= shown(other, upheld)
            if not upheld:
                break
    doubtful = (_accuses(finding) and finding.key not in upheld for finding in findings)
    return tuple(f.doubted(Open.LAUNCH_UNTOLD) if d else f for f, d in zip(findings, doubtful, strict=True))
