"""One defect, one finding: pairs of accesses that one missing barrier leaves open are told together.

A pair is a finding wherever findings are data (reports of kernels, dynamic checks). People are shown
defects: the pairs of one array that are linked by accesses which they share, within a block or between
blocks, all of a kernel that rely on lock step, in whichever instances of a template they are, barriers that
threads miss for one reason, and reads of what nobody wrote in one array; of other findings those of one
place. What a function does is one defect in all kernels that call it. The worst of them leads; the places of
the others are related to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve

from cuda_lsp.model import Code, Finding, Related, Site, SourceRange, Status

_MOST_NAMES = 4
_MOST_CALLS = 3
_CALL = "a call that leads there"
_SUREST = (Status.CONFIRMED, Status.PROVED, Status.CONDITIONAL, Status.POSSIBLE, Status.NOT_OBSERVED)


def defects(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings with races of one defect in one, where its worst stood; ``also`` has the others."""
    found: list[list[Finding]] = []
    for finding in findings:
        linked = [group for group in found if _linked(group, finding)]
        for group in linked:
            found.remove(group)
        found.append([other for group in linked for other in group] + [finding])
    leaders = (_with_calls(_led(group)) for group in found)
    return tuple(sorted(leaders, key=lambda f: (f.site.range, f.code.value)))


def _with_calls(finding: Finding) -> Finding:
    """What stands in a function that kernels call, with the calls in kernels that lead there."""
    others = (other.site for other in (*finding.related, *finding.also))
    calls = dict.fromkeys(site.calls[0] for site in (finding.site, *others) if site.calls)
    lead = (Related(Site(call), _CALL) for call in list(calls)[:_MOST_CALLS])
    return evolve(finding, related=(*finding.related, *lead))


def _linked(group: Sequence[Finding], finding: Finding) -> bool:
    return any(
        _lock_step(finding, other)
        or _one_place(finding, other)
        or _one_function(finding, other)
        or _one_parting(finding, other)
        or _one_gap(finding, other)
        or (_alike(finding, other) and places_of(finding) & places_of(other))
        for other in group
    )


def template_of(kernel: str) -> str:
    """The name that all instances of a kernel template have in common."""
    return kernel.split("<")[0]


def _one_place(a: Finding, b: Finding) -> bool:
    """The same of several instances."""
    here = (a.code, a.site.range, template_of(a.kernel)) == (b.code, b.site.range, template_of(b.kernel))
    return here and a.kind is b.kind is None


def _one_function(a: Finding, b: Finding) -> bool:
    """The same accesses, in several kernels: they stand in what these call."""
    if a.code is not b.code or a.kind is not b.kind or template_of(a.kernel) == template_of(b.kernel):
        return False
    return a.site.range in places_of(b) and places_of(a) == places_of(b)


def _one_parting(a: Finding, b: Finding) -> bool:
    """Barriers that threads miss for one reason: a return before all of them, one loop around them."""
    if not a.code is b.code is Code.BARRIER_DIVERGENCE or template_of(a.kernel) != template_of(b.kernel):
        return False
    return bool(a.parted) and set(a.parted) == set(b.parted)


def _one_gap(a: Finding, b: Finding) -> bool:
    """Reads of what nobody has written in one shared array, which each step of a reduction repeats."""
    if not a.code is b.code is Code.SHARED_UNINITIALISED or template_of(a.kernel) != template_of(b.kernel):
        return False
    return a.witness is not None and b.witness is not None and a.witness.array == b.witness.array


def _lock_step(a: Finding, b: Finding) -> bool:
    """A kernel relies on it, or does not."""
    return a.code is b.code is Code.WARP_SYNCHRONOUS and template_of(a.kernel) == template_of(b.kernel)


def _alike(a: Finding, b: Finding) -> bool:
    """Races on one array, both within a block or both between blocks as far as that is known."""
    if a.kind is None or b.kind is None or a.array is None or a.array != b.array:
        return False
    if template_of(a.kernel) != template_of(b.kernel):
        return False
    return len({_between(a), _between(b)} - {None}) < 2


def places_of(finding: Finding) -> frozenset[SourceRange]:
    """Where the accesses of a race stand."""
    return frozenset({finding.site.range, *(related.site.range for related in finding.related[:1])})


def _between(finding: Finding) -> bool | None:
    if finding.witness is None:
        return None
    blocks = finding.witness.blocks
    return blocks is not None and blocks[0] != blocks[1]


def _listed(names: Sequence[str]) -> str:
    shown = (
        [*names] if len(names) <= _MOST_NAMES else [*names[:_MOST_NAMES], f"{len(names) - _MOST_NAMES} more"]
    )
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]


def _led(group: Sequence[Finding]) -> Finding:
    """The worst of a group, and what the others add."""
    ranked = sorted(group, key=lambda f: (f.effective_severity, _SUREST.index(f.status), f.site.range))
    leader, others = ranked[0], tuple(ranked[1:])
    told = set(places_of(leader))
    related: list[Related] = []
    for other in others:
        what = (
            other.kind.value
            if other.kind
            else "read"
            if other.code is Code.SHARED_UNINITIALISED
            else "missed"
        )
        also = f"also {what}: {other.status.value}"
        for place in (Related(other.site, also), *other.related[:1]):
            if place.site.range not in told:
                told.add(place.site.range)
                related.append(place)
    elsewhere = list(
        dict.fromkeys(f.kernel for f in group if template_of(f.kernel) != template_of(leader.kernel))
    )
    if elsewhere:
        related.append(Related(leader.site, f"also in {_listed(elsewhere)}"))
    return evolve(leader, related=(*leader.related, *related), also=others) if others else leader
