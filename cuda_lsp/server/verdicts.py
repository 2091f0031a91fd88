"""Verdicts in the few words of lenses and status bars: one for all instances of a template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cuda_lsp.model import RACES, Dim3, KernelReport, LaunchConfig, LaunchSource, Verdict
from cuda_lsp.report.defects import template_of

IGNORED = "races ignored"
BARRIER_MISSED = "barrier missed"
_WORST_FIRST = (Verdict.RACY.value, IGNORED, Verdict.UNDECIDED.value, BARRIER_MISSED, Verdict.RACE_FREE.value)
_SOURCES = {
    LaunchSource.FILE: "",
    LaunchSource.PROGRAM: "",
    LaunchSource.DIRECTIVE: "",
    LaunchSource.LEFT_OUT: "guessed",
    LaunchSource.BOUNDS: "guessed",
    LaunchSource.DEFAULT: "guessed",
}


def shown_verdict(kernel: KernelReport) -> str:
    """The verdict; that somebody has silenced all of its races, or that races are all it is free of."""
    if kernel.verdict is Verdict.RACE_FREE and kernel.misses_barrier:
        return BARRIER_MISSED
    if (
        kernel.verdict is Verdict.RACY
        and kernel.refined
        and all(f.code not in RACES for f in kernel.findings)
    ):
        return IGNORED
    return kernel.verdict.value


def title(instances: Sequence[KernelReport]) -> str:
    """``racy · block 64``; of several instances ``tiles: 3 of 4 race-free, 1 racy · …``."""
    state = _state(instances)
    if any(not kernel.refined for kernel in instances):
        state = f"{state} · proving…" if state else "proving…"
    launches = [kernel.launches[0] for kernel in instances if kernel.launches]
    told = dict.fromkeys(launch_words(launch) for launch in launches)
    launch = f" · {next(iter(told))}" if len(told) == 1 else ""
    first = instances[0].name
    name = template_of(first) if len(instances) > 1 else first
    return f"{name}: {state}{launch}" if template_of(first) != first else f"{state}{launch}"


def _state(instances: Sequence[KernelReport]) -> str:
    """What is known of them."""
    known = [k for k in instances if k.refined or k.verdict is not Verdict.UNDECIDED]
    counts = Counter(shown_verdict(kernel) for kernel in known)
    said = [word for word in _WORST_FIRST if counts[word]]
    if len(instances) == 1 or not said:
        return "".join(said)
    if len(said) == 1 and counts[said[0]] == len(instances):
        return f"{said[0]} in all {len(instances)} instances"
    first, *others = reversed(said)
    return ", ".join([f"{counts[first]} of {len(instances)} {first}", *(f"{counts[o]} {o}" for o in others)])


def launch_words(launch: LaunchConfig) -> str:
    """``block 16×16, grid 64, guessed``."""
    grid = f", grid {_extents(launch.grid)}" if launch.grid else ""
    source = _SOURCES.get(launch.source, launch.source.value)
    return f"{block_text(launch)}{grid}{f', {source}' if source else ''}"


def block_text(launch: LaunchConfig) -> str:
    """``block 16×16``."""
    return f"block {_extents(launch.block)}"


def _extents(extents: Dim3) -> str:
    x, y, z = extents
    return "×".join(map(str, (x, y, z) if z != 1 else (x, y) if y != 1 else (x,)))
