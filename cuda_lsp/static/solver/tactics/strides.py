"""Tensors of which no stride is known: ``x * s.x + y * s.y + q % n * s.z + q / n * s.w``.

Rows are read one in another, by the order of their pitches, and the strides of a tensor have none that the
kernel tells. What is taken for granted of them is the same: elements of different coordinates do not overlap.
It is of strides that the source is silent about, in conditions of the places, in what the host says and in
the coordinates themselves, and whose coordinates differ from thread to thread in both accesses: what one of
the two alone adds tells arrays apart. Then threads with one address have all coordinates in common, and these
are digits, quotients and remainders without products of unknown strides.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable

from attrs import evolve

from cuda_lsp.static.solver.rows.pitch import of_one_index
from cuda_lsp.static.solver.tactics import digits
from cuda_lsp.static.solver.tactics.first import linearly
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.sizes import FIRST, SECOND, side
from cuda_lsp.static.symbolic.terms import Op, Term

_PROOFS = (digits.differ, linearly)

_Coordinates = tuple[Term, Term]
"""Of both threads."""


def differ(pair: OpenPair) -> Proved | None:
    """No two threads have all coordinates in common, each of them in units of its stride."""
    p = pair.p
    if pair.launch is None or p.overlap.op is not Op.EQ:
        return None
    strides = _strides(pair)
    if len(strides) < 2:
        return None
    coordinates = _coordinates(p.overlap.args[0], strides, pair.query.where.free)
    if coordinates is None or _are_of_one_index(coordinates):
        return None
    equal = [t.eq(a, b) for a, b in coordinates]
    alike = evolve(p, overlap=t.and_(*equal), difference=t.sub(*coordinates[-1]), offsets=coordinates[-1])
    answer = first_answer(_PROOFS, evolve(pair, p=alike))
    if not isinstance(answer, Proved):
        return None
    names = " and ".join(f"`{t.show(stride)}`" for stride in strides)
    return Proved((f"rows of {names} elements do not overlap", *answer.assumptions))


def _strides(pair: OpenPair) -> list[Term]:
    """Parameters that multiply coordinates in both addresses, and that nothing else is about."""
    p, free = pair.p, pair.query.where.free
    sums = t.monomials(p.overlap.args[0])
    factors = dict.fromkeys(x for atoms in sums for x in atoms if x.op is Op.SYMBOL and x.args[0] in free)
    said = set(t.subterms(pair.query.complete(t.and_(pair.facts, p.guards), p)))
    inside = set(t.subterms(*(part for atoms in sums for x in atoms for part in x.parts)))

    def multiplies(stride: Term) -> bool:
        whose = [side(t.from_monomials({atoms: 1})) for atoms in sums if stride in atoms]
        return FIRST in whose and SECOND in whose

    return [x for x in factors if x not in said and x not in inside and multiplies(x)]


def _coordinates(
    difference: Term, strides: Collection[Term], free: Collection[str]
) -> list[_Coordinates] | None:
    """What each stride multiplies in the two addresses, and what none does.

    None: a product has several of them, or a parameter (``free``) that is none, and by which no part of the
    coordinate is a remainder (``x % w + w * k``); or one of the two addresses has nothing of what the other
    has.
    """
    plain = [atoms for atoms in t.monomials(difference) if not set(atoms) & set(strides)]
    widths = {x.args[1] for atoms in plain for x in atoms if x.op is Op.REM}
    parts: dict[Term, dict[t.Monomial, int]] = {stride: {} for stride in (*strides, t.ONE)}
    for atoms, factor in t.monomials(difference).items():
        found = [x for x in atoms if x in parts]
        others = (x for x in atoms if x.op is Op.SYMBOL and x.args[0] in free and x not in widths)
        if len(found) > 1 or (not found and any(others)):
            return None
        stride = found[0] if found else t.ONE
        rest = t.without(atoms, tuple(found)) or ()
        parts[stride][rest] = factor
    both = [_of_both(sums) for sums in parts.values() if sums]
    return [x for x in both if x is not None] if None not in both else None


def _of_both(sums: dict[t.Monomial, int]) -> _Coordinates | None:
    """The first thread's part of a difference, and the second one's, from whose the former is subtracted."""
    first: dict[t.Monomial, int] = {}
    second: dict[t.Monomial, int] = {}
    shift = 0
    for atoms, factor in sums.items():
        whose = side(t.from_monomials({atoms: 1}))
        if whose == SECOND:
            second[atoms] = -factor
        elif whose == FIRST:
            first[atoms] = factor
        elif atoms:
            return None
        else:
            shift = factor
    if not (first and second):
        return None
    return t.add(t.from_monomials(first), t.const(shift)), t.from_monomials(second)


def _are_of_one_index(coordinates: Iterable[_Coordinates]) -> bool:
    """One is a part of the index that another is, ``i + pad * (i / 32)``: its rows are all rows."""
    every = list(coordinates)
    return any(
        of_one_index(row, column)
        for rows, columns in itertools.permutations(every, 2)
        for row, column in zip(rows, columns, strict=True)
    )
