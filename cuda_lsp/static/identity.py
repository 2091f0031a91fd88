"""When two findings are one: the same thing found under another launch, with other arguments, or by Z3."""

from __future__ import annotations

from cuda_lsp.model import Code, Finding, SourceRange

RACE = "race"
"""Of a pair of places, whatever memory it is in and however near its threads are to one another."""

RACES = frozenset({Code.SHARED_RACE, Code.GLOBAL_RACE, Code.WARP_RACE})

Key = tuple[Code | str, tuple[SourceRange, ...]]
"""A diagnosis and its places in the text."""


def key_of(finding: Finding) -> Key:
    """Equal for the same thing found twice: races by their pair of places, others by place."""
    if finding.code not in RACES:
        return finding.code, (finding.site.range,)
    return RACE, tuple(sorted([finding.site.range, *(other.site.range for other in finding.related[:1])]))
