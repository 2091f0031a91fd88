"""Arrays whose neighbouring elements bound a stretch: offsets of rows, buckets, segments.

A kernel that reads ``row[v]`` and ``row[v + 1]`` takes them to ascend. Two pointers are neighbours when they
are one element apart whatever the variables hold, which is tried with a few numbers.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict

from cuda_lsp.ir.ops import BINARY
from cuda_lsp.ir.program import (
    AddressOf,
    Array,
    Binary,
    Builtin,
    Cast,
    Const,
    Expr,
    Kernel,
    Load,
    Offset,
    Var,
)
from cuda_lsp.ir.types import INT64, Int
from cuda_lsp.static.enumerate import facts_of
from cuda_lsp.static.slicing import walk

_TRIED = 3
_MOST = 8  # reads of one array that are compared


def offset_arrays(kernel: Kernel) -> frozenset[str]:
    """Pointer parameters to integers that a kernel reads at neighbouring places and never writes."""
    facts = facts_of(kernel)
    reads: dict[Array, list[Load]] = defaultdict(list)
    for s in walk(kernel.body):
        if isinstance(s, Load) and isinstance(s.type, Int) and s.var is not None:
            roots = facts.roots(s.pointer)
            if len(roots) == 1:
                reads[next(iter(roots))].append(s)
    return frozenset(
        array.param.name
        for array, loads in reads.items()
        if array.param is not None and array not in facts.written
        if any(_neighbours(a, b) for a, b in itertools.combinations(loads[:_MOST], 2))
    )


def _neighbours(a: Load, b: Load) -> bool:
    for seed in range(_TRIED):
        numbers = _Numbers(seed)
        here, there = numbers.of(a.pointer), numbers.of(b.pointer)
        if here is None or there is None or abs(here - there) != a.type.size:
            return False
    return True


class _Numbers:
    """Values of expressions when every variable holds a small number of its own."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._values: dict[object, int] = {}

    def of(self, e: Expr) -> int | None:
        if isinstance(e, Const):
            return e.value if isinstance(e.value, int) else None
        if isinstance(e, Var | Builtin | AddressOf):
            key = e.axis if isinstance(e, Builtin) else e.array if isinstance(e, AddressOf) else e
            return self._values.setdefault(key, self._random.randrange(1, 1 << 12))
        if isinstance(e, Cast):
            return self.of(e.operand)
        if isinstance(e, Offset):
            base, moved = self.of(e.pointer), self.of(e.bytes)
            return None if base is None or moved is None else base + moved
        if isinstance(e, Binary):
            left, right = self.of(e.left), self.of(e.right)
            return None if left is None or right is None else BINARY[e.op].python(left, right, INT64)
        return None


__all__ = ["offset_arrays"]
