"""Arrays whose neighbouring elements bound a stretch: offsets of rows, buckets, segments.

A kernel that reads ``row[v]`` and ``row[v + 1]`` takes them to ascend. Two pointers are neighbours when they
are one element apart whatever the variables hold, which is tried with a few numbers.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cuda_lsp.ir.program import Array, Expr, Kernel, Load, Var
from cuda_lsp.ir.types import INT32, Int, Pointer
from cuda_lsp.ir.walk import walk
from cuda_lsp.model import Space
from cuda_lsp.static.exact.values import Value, evaluator
from cuda_lsp.static.execution.enumerate import facts_of

_NOWHERE = Array("(where a pointer points)", Space.GLOBAL, INT32, (), -1)
_TRIED = 3
_MOST = 8  # reads of one array that are compared


@lru_cache(maxsize=4)  # as ``facts_of``
def offset_arrays(kernel: Kernel) -> frozenset[str]:
    """Pointer parameters to integers that a kernel reads at neighbouring places and never writes."""
    facts = facts_of(kernel)
    reads: dict[Array, list[Load]] = defaultdict(list)
    values = {s.var: s.pointer for s in walk(kernel.body) if isinstance(s, Load) and s.var is not None}
    for s in walk(kernel.body):
        if isinstance(s, Load) and isinstance(s.type, Int) and s.var is not None:
            roots = facts.roots(s.pointer)
            if len(roots) == 1:
                reads[next(iter(roots))].append(s)
    return frozenset(
        array.param.name
        for array, loads in reads.items()
        if array.param is not None and array not in facts.written
        if any(_neighbours(a, b, values) for a, b in itertools.combinations(loads[:_MOST], 2))
    )


def _neighbours(a: Load, b: Load, values: Mapping[Var, Expr]) -> bool:
    here, there = evaluator(a.pointer, _itself), evaluator(b.pointer, _itself)
    for seed in range(_TRIED):
        thread = _Thread(seed, values)
        first, second = here(thread), there(thread)
        if not isinstance(first, tuple) or not isinstance(second, tuple):
            return False
        if first[1] is None or second[1] is None or abs(first[1] - second[1]) != a.type.size:
            return False
    return True


def _itself(var: Var) -> Any:
    return var


class _Numbers(dict[Any, Value]):
    """A small number for everything that is asked for; of a pointer, so many bytes into nowhere.

    What was read at one place is one number, however often it is read.
    """

    def __init__(self, thread: _Thread, seed: int) -> None:
        self._thread, self._random = thread, random.Random(seed)
        self._read: dict[Value, Value] = {}

    def __missing__(self, key: Any) -> Value:
        pointer = self._thread.values.get(key)
        place = evaluator(pointer, _itself)(self._thread) if pointer is not None else None
        number = self._random.randrange(1, 1 << 12)
        value: Value = (
            (_NOWHERE, number) if isinstance(key, Var) and isinstance(key.type, Pointer) else number
        )
        self[key] = value = value if place is None else self._read.setdefault(place, value)
        return value


class _Thread:
    """A thread as ``exact_values`` wants it, of any numbers. ``values``: where variables were read."""

    def __init__(self, seed: int, values: Mapping[Var, Expr]) -> None:
        self.values = values
        self.held = self.axes = _Numbers(self, seed)
        self.offers: dict[int, Value] = {}


__all__ = ["offset_arrays"]
