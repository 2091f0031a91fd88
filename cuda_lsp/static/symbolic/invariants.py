"""How far conditional steps go: what holds of a loop's variable at the start of every round.

``if (cnt < K) cnt++`` leaves ``cnt`` at most ``K``, or what it was before the loop. A bound is read off each
way through one round: what the variable becomes there is no further than before, or no further than a
condition of that way says. All ways together are an induction: the entry, and then each round, keep the
furthest of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from cuda_lsp.static import budgets
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Op, Term

_Way = tuple[Term, Term]
"""A condition of one way through a round, and what the variable is at its end."""


@frozen(eq=False)
class Round:
    """One round of a loop from unknown values. ``ends``: when it comes to its end, and another may follow.

    ``moving``: the round's number, and what variables hold at its start.
    """

    ends: Term
    moving: frozenset[Term]

    def steady(self, term: Term) -> bool:
        """It has one value in all rounds."""
        return all(part not in self.moving for part in t.subterms(term))


def most(of: Round, mark: Term, entry: Term, after: Term) -> Term | None:
    """What the variable is at most at the start of any round; it enters with ``entry``. None: nobody knows.

    ``after``: what a round makes of ``mark``.
    """
    cases = ways(after, of.ends)
    if cases is None:
        return None
    found: dict[Term, None] = {}
    for condition, value in cases:
        if t.sub(value, mark).hi <= 0:
            continue
        limits = list(dict.fromkeys(_limits(condition, value, of)))
        if not limits:
            return None
        found[next((x for x in limits if x in found), limits[0])] = None
    if not 0 < len(found) <= budgets.MOST_BOUNDS:
        return None
    total = entry
    for limit in found:
        total = t.maximum(total, limit)
    return total


def least(of: Round, mark: Term, entry: Term, after: Term) -> Term | None:
    """What the variable is at least; otherwise as ``most``."""
    negated = t.symbol("-h", t.Level.GRID, -mark.hi, -mark.lo)
    mirrored = t.replacing({mark: t.scale(negated, -1)})
    turned = Round(mirrored(of.ends), of.moving | {negated})
    found = most(turned, negated, t.scale(entry, -1), t.scale(mirrored(after), -1))
    return t.scale(found, -1) if found is not None else None


def ways(value: Term, condition: Term) -> list[_Way] | None:
    """The value in each case of its choices that can be; None: too many."""
    found: list[_Way] = []
    left = [(condition, value)]
    while left:
        where, what = left.pop()
        choice = next((a for m in t.monomials(what) for a in m if a.op is Op.ITE), None)
        if choice is None:
            found.append((where, what))
            if len(found) > budgets.MOST_WAYS:
                return None
            continue
        test, then, otherwise = choice.args
        for case, taken in ((test, then), (t.not_(test), otherwise)):
            told = t.replacing({case: t.TRUE, t.not_(case): t.FALSE})(where)
            both = t.and_(told, case)
            if both is not t.FALSE:
                left.append((both, t.replacing({choice: taken})(what)))
    return found


def _limits(condition: Term, value: Term, of: Round) -> Iterator[Term]:
    """Steady terms that the value is at most under the condition."""
    if of.steady(value):
        yield value
    for part in t.conjuncts(condition):
        if part.op is Op.LE:
            rest = t.sub(value, part.args[0])  # value <= value - part
            if of.steady(rest):
                yield rest
    if value.hi < budgets.UNBOUNDED:
        yield t.const(int(value.hi))
