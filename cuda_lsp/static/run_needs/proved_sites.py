"""Accesses of a racy kernel that need not be watched when it runs: everything about their memory is decided.

Only of kernels of which no pair of accesses was left open; an access through a pointer whose target is not
known keeps all of them watched.
"""

from __future__ import annotations

import itertools

from cuda_lsp.ir.program import Array, Kernel
from cuda_lsp.ir.walk import accesses
from cuda_lsp.model import RACES, KernelReport, SourceRange, Verdict
from cuda_lsp.static.facts import facts_of


def proved_sites(kernel: Kernel, report: KernelReport) -> frozenset[SourceRange]:
    """Ranges of accesses to arrays on which nothing races, though something else in the kernel does."""
    if report.verdict is not Verdict.RACY or report.reasons or not report.refined:
        return frozenset()
    facts = facts_of(kernel)
    touched: dict[SourceRange, set[Array]] = {}
    for pointer, _, site in itertools.chain.from_iterable(map(accesses, facts.statements)):
        arrays = facts.roots(pointer)
        if not arrays:
            return frozenset()
        touched.setdefault(site.range, set()).update(arrays)
    races = [f for f in report.findings if f.code in RACES]
    places = {site.range for f in races for site in (f.site, *(r.site for r in f.related[:1]))}
    if not places <= touched.keys():
        return frozenset()
    accused = {array for place in places for array in touched[place]}
    return frozenset(place for place, arrays in touched.items() if not arrays & accused)
