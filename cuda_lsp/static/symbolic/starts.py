"""Loops that begin anywhere, by the values that they run through instead of their rounds.

``for (y = max(0, r - h); y < min(m, H + r - h); y++)`` makes ``y`` a choice and a count of rounds. What is
the sum of both stands for itself here, with what the guards say of it: each side of a maximum is no more than
it, it is below each side of a minimum. So ``y + h - r`` is a digit with ends, whatever the choices are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import evolve

from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem, touching
from cuda_lsp.static.symbolic.sizes import side
from cuda_lsp.static.symbolic.terms import Op, Term

_ROUND = re.compile(r"(k\d+(?:\.\d+)*)#([12])")


def by_value(p: Problem) -> Problem:
    """The pair with such loops by the values that they run through; the guards say what these are."""
    sizes = p.pair.first.size, p.pair.second.size
    if p.overlap.op is not Op.EQ or not all(size.is_const for size in sizes):
        return p
    found: dict[Term, tuple[Term, Term]] = {}
    for guard in t.conjuncts(p.guards):
        for start, counter in _starts(guard):
            found.setdefault(start, (counter, _value_of(counter, start)))
    if not found:
        return p
    put_in = t.replacing({start: t.sub(value, counter) for start, (counter, value) in found.items()})
    said = [part for guard in t.conjuncts(p.guards) for part in _in_parts(put_in(guard))]
    for start, (counter, value) in found.items():
        said += [t.eq(value, t.add(start, counter)), *_in_parts(t.le(start, value))]
    first, second = map(put_in, p.offsets)
    overlap = touching(first, second, sizes, words=p.pair.first.word and p.pair.second.word)
    offsets = first, second
    guards = t.and_(p.guards, *said)
    return evolve(p, overlap=overlap, difference=t.sub(first, second), offsets=offsets, guards=guards)


def _starts(guard: Term) -> Iterator[tuple[Term, Term]]:
    """Choices that a loop begins with, and the loop's count, both of one thread: ``k + max(a, b) < end``."""
    if guard.op is not Op.LE:
        return
    alone = [m[0] for m, c in t.monomials(guard.args[0]).items() if len(m) == 1 and c == 1]
    counters = [x for x in alone if x.op is Op.SYMBOL and _ROUND.fullmatch(x.args[0])]
    starts = [x for x in alone if x.op is Op.ITE]
    if len(counters) == len(starts) == 1 and side(starts[0]) in (0, side(counters[0])):
        yield starts[0], counters[0]


def _value_of(counter: Term, start: Term) -> Term:
    """What the loop's variable holds."""
    name, thread = counter.args[0].split("#")
    return t.symbol(f"{name}@#{thread}", counter.args[1], start.lo)


def _in_parts(condition: Term) -> Iterator[Term]:
    """The condition, and where it is about a maximum from above or a minimum from below, of both sides."""
    if condition.op is not Op.LE:
        return
    yield condition
    for atoms, factor in t.monomials(condition.args[0]).items():
        if len(atoms) == 1 and (_is_maximum(atoms[0]) if factor > 0 else _is_minimum(atoms[0])):
            for side_of in atoms[0].args[1:]:
                yield from _in_parts(t.replacing({atoms[0]: side_of})(condition))
            return


def _is_maximum(choice: Term) -> bool:
    return _chooses(choice, 1)


def _is_minimum(choice: Term) -> bool:
    return _chooses(choice, -1)


def _chooses(choice: Term, sign: int) -> bool:
    """``b <= a ? a : b``, or with the other sign ``a <= b ? a : b``."""
    if choice.op is not Op.ITE or choice.args[0].op is not Op.LE:
        return False
    condition, then, otherwise = choice.args
    gap = t.sub(condition.args[0], t.scale(t.sub(otherwise, then), sign))
    return gap.is_const and 0 <= gap.value <= 1
