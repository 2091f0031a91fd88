"""Arrays whose neighbouring elements bound a stretch: offsets of rows, buckets, segments.

A kernel that reads ``row[v]`` and ``row[v + 1]`` takes them to ascend.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache

from cuda_lsp.ir.program import Array, Expr, Kernel, Load, Var
from cuda_lsp.ir.types import Int
from cuda_lsp.ir.walk import mapped, walk
from cuda_lsp.static import budgets
from cuda_lsp.static.facts import facts_of
from cuda_lsp.static.linear import Sum, combined, linear


@lru_cache(maxsize=budgets.KEPT_FACTS)  # as ``facts_of``
def offset_arrays(kernel: Kernel) -> frozenset[str]:
    """Pointer parameters to integers that a kernel reads at neighbouring places and never writes."""
    facts = facts_of(kernel)
    reads: dict[Array, list[tuple[Sum, int]]] = defaultdict(list)
    alike: dict[Var, Var] = {}  # what was read at one place is one number, however often it is read
    first: dict[frozenset[tuple[Expr | None, int]], Var] = {}
    for s in walk(kernel.body):
        if isinstance(s, Load) and s.var is not None:
            place = linear(_renamed(s.pointer, alike))
            alike[s.var] = first.setdefault(frozenset(place.items()), s.var)
            roots = facts.roots(s.pointer)
            if isinstance(s.type, Int) and len(roots) == 1:
                reads[next(iter(roots))].append((place, s.type.size))
    return frozenset(
        array.param.name
        for array, places in reads.items()
        if array.param is not None and array not in facts.written
        if any(
            combined(here, there, -1) in ({None: size}, {None: -size})
            for (here, size), (there, _) in itertools.combinations(places[: budgets.MOST_NEIGHBOURS], 2)
        )
    )


def _renamed(e: Expr, alike: Mapping[Var, Var]) -> Expr:
    return alike.get(e, e) if isinstance(e, Var) else mapped(e, lambda part: _renamed(part, alike))
