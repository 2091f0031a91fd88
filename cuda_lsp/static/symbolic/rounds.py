"""Rounds of loops that both threads of a pair are in, one by one: strides that double or halve have few.

Threads that a barrier in a loop keeps together are in the same round of it. Where conditions of the pair say
how far the loop goes, ``stride < 1024`` or ``stride > 0``, its counter has few values, though nothing in the
text counts: a stride that grows by a factor, from 1 or more on, is at its limit after as many rounds as that
has digits, and one that is divided is 0 after as many as its begin has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from attrs import field, frozen

from cuda_lsp.static import budgets
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.sizes import SHARED, side
from cuda_lsp.static.symbolic.tabulate import Column, tabulated
from cuda_lsp.static.symbolic.terms import Op, Term

ROUND = re.compile(r"(?:k\d+(?:\.\d+)*|exit\d+)(?:#\d)?")
"""Terms that count rounds of loops: iterators, and how often a loop runs."""

Interval = tuple[float, float]


@frozen(eq=False)
class Rounds:
    """Rounds that both threads may be in: the counters in each, and terms that know how far these go."""

    columns: Mapping[Term, Column] = field(factory=dict[Term, Column])
    bounded: Callable[[Term], Term] = lambda term: term
    count: int = 1


ONE_ROUND = Rounds()


def rounds_in_common(address: Term, conditions: Sequence[Term]) -> Rounds | None:
    """The rounds that the conditions of both threads let be; None: nothing tells how far they go.

    Only those whose counters the address mentions: what other loops do is nothing to it.
    """
    symbols = (x for x in t.subterms(address) if x.op is Op.SYMBOL and not side(x))
    counters = [x for x in symbols if ROUND.fullmatch(x.args[0])]
    if not counters:
        return ONE_ROUND
    shared = [c for c in conditions if side(c) == SHARED and not hangs_on_data(c)]
    known = _bounded(sorted(counters, key=lambda x: x.order), shared)
    if known is None:
        return None
    bounded, kept = t.replacing(known), list(known.values())
    columns = _every([x for x in kept if not x.is_const])
    if columns is None:
        return None
    count = len(next(iter(columns.values()))) if columns else 1
    live = np.ones(count, bool)
    for condition in map(bounded, shared):
        holds = tabulated(condition, columns) if columns else None
        live = live & holds if holds is not None else live
    return Rounds({x: column[live] for x, column in columns.items()}, bounded, int(live.sum()))


def hangs_on_data(condition: Term) -> bool:
    """What memory holds, or the like, has a part in it: no number of rounds tells its value."""
    return any(x.op in (Op.APPLY, Op.TEST) for x in t.subterms(condition))


def _every(counters: Sequence[Term]) -> dict[Term, Column] | None:
    """Each combination of values of counters that know how far they go; None: too many."""
    extents = [int(x.hi - x.lo) + 1 for x in counters]
    count = math.prod(extents)
    if count > budgets.MOST_ROUNDS_IN_COMMON:
        return None
    every = np.unravel_index(np.arange(count), extents) if counters else ()
    return {x: at + int(x.lo) for x, at in zip(counters, every, strict=True)}


def _bounded(counters: list[Term], conditions: Sequence[Term]) -> dict[Term, Term] | None:
    """The counters with how far conditions let them go: of inner loops once it is known of outer ones."""
    known: dict[Term, Term] = {}
    while len(known) < len(counters):
        told = [t.substitute(c, known) for c in conditions]
        bounds = t.bounds_of(t.and_(*told))
        parts = dict.fromkeys(x for c in told for x in t.subterms(c) if x.op is Op.POWER)
        before = len(known)
        for x in counters:
            low, high = bounds.get(x, (x.lo, x.hi))
            high = min((high, *_last_rounds(x, parts, bounds)))
            if x not in known and 0 <= high - low < budgets.MOST_ROUNDS_IN_COMMON:
                name, level = x.args
                known[x] = t.symbol(name, level, low, high)
        if len(known) == before:
            return None
    return known


def _last_rounds(counter: Term, powers: Iterable[Term], bounds: Mapping[Term, Interval]) -> Iterator[float]:
    """The last round in which a power that the counter is the exponent of is within its bounds."""
    for power in powers:
        start, factor, exponent, growing = power.args
        behind = t.sub(exponent, counter)
        low, high = bounds.get(power, (power.lo, power.hi))
        least, most = (start.lo, high) if growing else (low, start.hi)
        if behind.is_const and least >= 1 and math.isfinite(most):
            yield _logarithm(int(most) // int(least), factor) - behind.value


def _logarithm(number: int, base: int) -> int:
    """The largest exponent with which the base is no more than the number; -1 where there is none."""
    exponent = -1
    while base ** (exponent + 1) <= number:
        exponent += 1
    return exponent
