"""Atomics of several widths: they are not atomic to each other (``detector/widths.cuh``).

A kernel that has one width only is checked without any of this. Loads and stores count that are as strong as
atomics. Source: PTX ISA, "Memory consistency model", "Overlap": mixed-size accesses race.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuda_lsp.dynamic.runs import PtxSite, SiteKind
from cuda_lsp.model import Mode, Scope, Space

_NARROW, _LOADS, _OF_BLOCK = 32, 64, 128


def spaces_of_widths(sites: Sequence[PtxSite]) -> frozenset[Space]:
    """Shared and global memory, where atomics of several widths may update it."""
    return frozenset(s for s in (Space.SHARED, Space.GLOBAL) if len(_widths(sites, s)) > 1)


def width_table(sites: Sequence[PtxSite]) -> bytes:
    """Of each site what ``widths.cuh`` says; 0: no atomic."""
    widest = max((site.bytes for site in sites if _is_atomic(site)), default=0)
    return bytes(_entry(site, widest) if _is_atomic(site) else 0 for site in sites)


def _entry(site: PtxSite, widest: int) -> int:
    flags = _LOADS * (site.mode is Mode.ATOMIC_READ) | _OF_BLOCK * (site.scope is Scope.BLOCK)
    return site.bytes | _NARROW * (site.bytes < widest) | flags


def _widths(sites: Sequence[PtxSite], space: Space) -> set[int]:
    return {site.bytes for site in sites if _is_atomic(site) and site.space in (None, space)}


def _is_atomic(site: PtxSite) -> bool:
    return site.kind is SiteKind.ACCESS and site.atomic
