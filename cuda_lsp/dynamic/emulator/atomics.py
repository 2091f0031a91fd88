"""Atomic read-modify-write on an arena, all lanes of an instruction at once.

Lanes that meet at one address act one after the other, in lane order: that is a legal order, and results
that code may rely on (each ticket once, sums) hold in every order. Source: PTX ISA 9.7.13.3 "atom".
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def apply(view: Array, index: Array, operation: str, value: Array, second: Array | None) -> Array:
    """Perform ``operation`` at ``view[index]`` for each lane; returns what each lane found, ``(k,)``."""
    old = np.empty(len(index), view.dtype)
    if operation == "add" and view.dtype.kind in "iu":
        return _integer_add(view, index, value, old)
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]] if len(order) else np.empty(0, bool)
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    turn = np.arange(len(order)) - start
    for k in range(int(turn.max(initial=-1)) + 1):
        lanes = order[turn == k]
        at = index[lanes]
        found = view[at]
        old[lanes] = found
        other = second[lanes] if second is not None else None
        view[at] = _combine(operation, found, value[lanes], other)
    return old


def _integer_add(view: Array, index: Array, value: Array, old: Array) -> Array:
    """Running sums within each address instead of a round per lane."""
    order = np.argsort(index, kind="stable")
    ordered, added = index[order], value[order]
    with np.errstate(over="ignore"):
        total = np.cumsum(added, dtype=view.dtype)
        before = total - added
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(order) else np.empty(0, np.int64)
    group = np.repeat(first, np.diff(np.r_[first, len(order)]))
    old[order] = view[ordered] + (before - before[group])
    last = np.r_[first[1:], len(order)] - 1 if len(first) else first
    view[ordered[last]] = old[order[last]] + added[last]
    return old


def _combine(operation: str, found: Array, value: Array, second: Array | None) -> Array:
    match operation:
        case "add":
            return found + value
        case "min":
            return np.fmin(found, value)
        case "max":
            return np.fmax(found, value)
        case "and":
            return found & value
        case "or":
            return found | value
        case "xor":
            return found ^ value
        case "exch":
            return value
        case "cas":
            assert second is not None
            return np.where(found == value, second, found)
        case "inc":
            return np.where(found >= value, np.zeros_like(found), found + found.dtype.type(1))
        case _:  # dec
            one = found.dtype.type(1)
            return np.where((found == 0) | (found > value), value, found - one)
