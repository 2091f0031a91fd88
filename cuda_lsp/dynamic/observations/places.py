"""Threads, elements and source places as findings word them, and when two places are the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve

from cuda_lsp.dynamic.job import CheckResult, Shape, TrialResult
from cuda_lsp.dynamic.runs import Place, PtxSite, SeenFault, Stuck
from cuda_lsp.model import Dim3, Finding, Observation, SourceRange, Space

_ESCAPED = ", the static analysis had not found it"


def line_of(site: PtxSite) -> int:
    """The 1-based line of a site, 0 where nothing of it is in the user's files."""
    return site.site.range.start.line if site.site is not None else 0


def overlap(a: SourceRange, b: SourceRange) -> bool:
    """Whether two ranges of one file share a character."""
    return _real(a.path) == _real(b.path) and a.start < b.end and b.start < a.end


def _real(path: Path) -> str:
    return str(path.absolute())


def thread_words(thread: Dim3, block: Dim3 | None) -> str:
    """A thread as findings name it. ``block``: None where all that is told happened in one block."""
    text = f"thread ({thread[0]},{thread[1]},{thread[2]})"
    return text if block is None else f"{text} of block ({block[0]},{block[1]},{block[2]})"


def triple(linear: int, extents: Dim3) -> Dim3:
    """The (x, y, z) index of a linear one."""
    x, y, _ = extents
    return (linear % x, linear // x % y, linear // (x * y))


def element_of(place: Place, shapes: Mapping[str, Shape], access: int) -> tuple[str, tuple[int, ...]]:
    """The array's name in the source and the subscripts of the element."""
    name = source_name(place.array) if place.array is not None else "memory"
    shape = shapes.get(name)
    flat = place.offset // max(shape.element if shape else access, 1)
    if shape is None or len(shape.extents) < 2:
        return name, (flat,)
    indices: list[int] = []
    for extent in reversed(shape.extents[1:]):
        flat, rest = divmod(flat, max(extent, 1))
        indices.append(rest)
    return name, (flat, *reversed(indices))


def source_name(mangled: str) -> str:
    """The last identifier of a mangled variable name (Itanium ABI: its length comes before it)."""
    for match in reversed(list(re.finditer(r"\d+", mangled))):
        for start in range(match.start(), match.end()):
            size = int(mangled[start : match.end()])
            name = mangled[match.end() : match.end() + size]
            if size and len(name) == size and name.isidentifier():
                return name
    return mangled


def waiting_places(stuck: Stuck, result: CheckResult) -> list[tuple[PtxSite, str, int, int]]:
    """Where threads wait in the user's files, what stands there, how many, and one of them."""
    places = [(result.sites[k], count, one) for k, count, one in stuck.waiting]
    return [(site, site.site.text, count, one) for site, count, one in places if site.site is not None]


def made_up(fault: SeenFault, trial: TrialResult) -> bool:
    """Memory of the check itself only has the size that we gave it: what lies outside tells nothing."""
    if fault.place.space is Space.SHARED:
        return trial.trial.spare_shared > 0
    return not trial.trial.own_memory


def observation_of(
    trial: TrialResult, device: str, pairs: int, words: int, instance: str = ""
) -> Observation:
    """What a trial saw of one thing: on how many thread ``pairs``, in how many ``words`` of 4 bytes."""
    outcome = trial.races
    return Observation(
        device,
        trial.trial.launch,
        outcome.seconds,
        pairs,
        words,
        outcome.blocks_checked,
        outcome.blocks_total,
        instance,
        (trial.trial.number,) if trial.trial.number else (),
    )


def missed(seen: Finding) -> Finding:
    """A finding of the run that the static analysis should have made."""
    return evolve(seen, message=f"{seen.message}{_ESCAPED}", missed=True)


def never_analysed(seen: Finding) -> Finding:
    """The same of a kernel that the static analysis was not asked about."""
    return evolve(seen, message=seen.message.removesuffix(_ESCAPED), missed=False)
