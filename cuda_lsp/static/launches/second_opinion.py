"""An assumed launch accuses nobody: only what every other plausible launch shows too is certain.

A buffer of 512 words and a default block of 1024 threads prove nothing about the program. What a tier finds
under such a launch is asked for again under others; what does not come back is *possible*, with the launch
as its reason. A block whose threads surely leave a shared array is not the one that the kernel's author had
in mind: a smaller one is assumed in its stead, and it has no say about others. Launches that the source fixes
are never doubted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set

from attrs import evolve

from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import Code, Finding, LaunchConfig, Status
from cuda_lsp.static.identity import Key, key_of
from cuda_lsp.static.launches.alternatives import alternatives, smaller
from cuda_lsp.static.launches.coordinates import unlike

ASSUMED = "the launch, which nothing in the file tells"
"""The reason of a finding that other plausible launches do not show."""

ADVICE = frozenset({Code.BANK_CONFLICT, Code.UNCOALESCED_ACCESS, Code.REDUNDANT_BARRIER})
"""What is told of the launch at hand, assumed or not: it accuses nobody of a mistake."""

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


def accuses(finding: Finding) -> bool:
    """It says for certain that the program is wrong, perhaps under a condition on its inputs."""
    return finding.status in (Status.PROVED, Status.CONDITIONAL) and finding.code not in ADVICE


def accusations(findings: Iterable[Finding]) -> set[Key]:
    """The keys of those that accuse."""
    return {key_of(finding) for finding in findings if accuses(finding)}


def second_opinion(
    kernel: Kernel,
    launch: LaunchConfig,
    findings: Iterable[Finding],
    others: Iterable[LaunchConfig],
    shown: Callable[[LaunchConfig, Set[Key]], Set[Key]],
) -> tuple[Finding, ...]:
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
    return tuple(f if not accuses(f) or key_of(f) in upheld else doubted(f) for f in findings)


def doubted(finding: Finding) -> Finding:
    """The finding as one that depends on the assumed launch."""
    message = f"{finding.message} (depends on {ASSUMED})"
    return evolve(finding, status=Status.POSSIBLE, reason=ASSUMED, message=message)
