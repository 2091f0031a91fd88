"""Objects that pointers from memory lead to: nobody knows how far apart they are, and none are compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from cuda_lsp.static.execution.trace import Access, Trace
from cuda_lsp.static.findings.conditions import Open


def say_overlapping(trace: Trace, by_array: Iterable[list[Access]]) -> None:
    """Says of which that is, where one of them is written."""
    groups: dict[str, list[list[Access]]] = defaultdict(list)
    for accesses in by_array:
        if accesses[0].array.may_alias is not None:
            groups[accesses[0].array.may_alias].append(accesses)
    for together in groups.values():
        if len(together) > 1 and any(a.mode.writes for accesses in together for a in accesses):
            names = " and ".join(sorted({accesses[0].array.name for accesses in together}))
            trace.not_decided(f"{Open.POINTERS.value}: {names}")
