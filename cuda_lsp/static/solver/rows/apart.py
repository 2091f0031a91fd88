"""Whether rows overlap: what the program's own guards show, and what has to be taken for granted.

Rows of a pitch make a pair impossible when the two accesses cannot lie in one row and column. That rows do
not overlap follows from guards (``x < width``), or is assumed of a parameter about which the source is silent
and whose rows the program does not itself make overlap (``x <= width``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from attrs import define, evolve

from cuda_lsp.ir.program import BDIM, GDIM
from cuda_lsp.static import budgets
from cuda_lsp.static.solver.query import Query, is_linear
from cuda_lsp.static.solver.rows.pitch import Pitch
from cuda_lsp.static.solver.rows.stated import speaks_against_sizes, speaks_of_rows
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.digits import digits_of
from cuda_lsp.static.symbolic.encode import base_name
from cuda_lsp.static.symbolic.reduced import concerning
from cuda_lsp.static.symbolic.terms import Level, Op, Term


@define(eq=False)
class Rows:
    """Of the rows of one pair's addresses."""

    p: Problem
    facts: Term
    query: Query
    _different: Term | None = None

    def _formula(self, *parts: Term) -> Term:
        return self.query.complete(t.and_(self.facts, self.p.guards, *parts), self.p)

    def _meeting(self, pitch: Pitch) -> Term:
        """The two accesses lie in one row and column of the pitch's rows, which do not overlap.

        With what their threads' numbers say, whose digits these may be.
        """
        if self._different is None:
            self._different = t.and_(*self._different_numbers())
        return self._formula(pitch.rows, pitch.equal, self._different)

    def _different_numbers(self) -> Iterator[Term]:
        """That numbers which are divided differ, where their own digits say so: ``k*gridDim.x + blockIdx.x``.

        No two threads have one of them, but that takes products, which linear arithmetic knows nothing of.
        """
        divided = (x.args[0] for x in t.subterms(self.p.offsets[0]) if x.op in (Op.DIV, Op.REM))
        for number in dict.fromkeys(divided):
            same = t.eq(number, t.renamed(number, _as_second, {}))
            if same.op is not Op.EQ or is_linear(same):
                continue
            where = self.query.where
            digits = digits_of(evolve(self.p, overlap=same), self.facts, where.axes, where.free)
            if digits is not None and digits.refuted and not digits.positive:
                yield t.not_(same)

    def refuting(self, pitches: Sequence[Pitch], sizes_too: bool) -> Iterator[Pitch]:
        """The rows that, not overlapping, make the pair impossible, as they are found.

        ``sizes_too``: also those that do so for parameters that are not negative. Then those that do where
        no address is divided by 0.
        """
        found = for_sizes = False
        for pitch in pitches:
            if self.query.refutes_quickly(self._meeting(pitch)):
                found = True
                yield pitch
        for pitch in pitches if sizes_too and all(pitch.assumable for pitch in pitches) else ():
            sizes, sized = self.query.sized(self._meeting(pitch))
            if sizes and self.query.refutes_quickly(sized):
                for_sizes = True
                yield evolve(pitch, sizes=tuple(dict.fromkeys((*pitch.sizes, *sizes))))
        divisors = () if found or for_sizes else tuple(_divisors(*self.p.offsets))
        divided = t.and_(*(t.not_(t.eq(x, t.ZERO)) for x in divisors))
        for pitch in pitches if divisors else ():
            if self.query.refutes_quickly(t.and_(self._meeting(pitch), divided)):
                found = True
                yield evolve(pitch, divisors=divisors)
        likeliest = next(iter(pitches), None)
        if found or likeliest is None:
            return
        if self.query.refutes(self._meeting(likeliest)):
            yield likeliest

    def hold(self, pitch: Pitch, lightly: bool = False) -> bool:
        """The program's own guards keep columns within their rows: nothing need be assumed.

        Where that may be assumed, products of unknowns are not worth the solver's time.
        """
        formula = self._formula(t.not_(pitch.rows))
        lightly = lightly or (pitch.assumable and not pitch.bounded)
        return self.query.refutes_quickly(formula) if lightly else self.query.refutes(formula)

    def shown(self, pitch: Pitch | None) -> bool:
        """The program's own guards keep columns within their rows, and that makes the pair impossible."""
        return (
            pitch is not None
            and self.query.refutes_quickly(self._meeting(pitch))
            and self.hold(pitch, lightly=True)
        )

    def owed_hold(self, pitch: Pitch) -> bool:
        """Of rows that are assumed, those that have to be shown hold."""
        owed = t.and_(*(columns.within for columns in pitch.levels if columns.owed))
        return owed is t.TRUE or self.query.refutes_quickly(self._formula(pitch.taken, t.not_(owed)))

    def hold_for_sizes(self, pitch: Pitch) -> tuple[Term, ...]:
        """Parameters that, if they are not negative, make the program's own guards keep rows apart."""
        sizes, sized = self.query.sized(self._formula(t.not_(pitch.rows)))
        return sizes if sizes and self.query.refutes(sized) else ()

    def broken(self, pitch: Pitch) -> bool | None:
        """Columns leave their rows however wide these may be: the program bounds them wrongly.

        None: not decided.
        """
        if not pitch.parameters:
            return False
        where, query = self.query.where, self.query
        divided = (t.le(t.ONE, x) for x in _divisors(*self.p.offsets))
        formula = self._formula(t.not_(pitch.taken), *divided)
        formula = concerning(t.and_(formula, *_lengths(formula)), t.not_(pitch.taken))
        named = [x for x in t.subterms(formula) if x.op in (Op.SYMBOL, Op.APPLY)]
        symbols = [x for x in named if x.op is Op.SYMBOL]
        free = [x for x in symbols if x.args[0] in where.free or x in where.axes.values()]
        # What memory holds lies in its row like what parameters bound: who owns the row knows what is in it.
        known = query.summary.facts.keys() | query.summary.invariants.keys()
        free += [x for x in named if x.op is Op.APPLY and base_name(x.args[0]) not in known]
        extents = [where.axes[axis] for axis in (*BDIM, *GDIM)]
        stated = [c for c in query.stated(self.p) if not set(named).isdisjoint(t.subterms(c))]
        for scale in (*budgets.AMPLE_SCALES, *budgets.NARROW_SCALES):
            wide = _ample(pitch, free, extents, t.and_(*stated), scale)
            if query.satisfiable(t.and_(*stated, wide)) is False:
                continue  # the source bounds its parameters otherwise
            formula, few = t.and_(formula, wide), max(1, int(budgets.MOST_SIZE_BESIDE * scale))
            if query.refuted_linearly(formula, few=few):
                return False
            possible = query.satisfiable(formula, patiently=True)
            return None if possible and scale in budgets.NARROW_SCALES else possible
        return None

    def as_stated(self, pitch: Pitch) -> Pitch:
        """Where the source itself says how wide rows are, there is no guess either."""
        guess = pitch.assumable and not pitch.bounded
        if not guess or self.hold(pitch) or not speaks_of_rows(self.p, self.facts, pitch, self.query):
            return pitch
        return evolve(pitch, bounded=True)

    def apart(self, pitch: Pitch, sizes_too: bool) -> tuple[tuple[str, ...] | None, bool | None]:
        """What has to be taken for granted for rows not to overlap; None: that is too much.

        And whether the program itself makes them overlap. ``sizes_too``: parameters may be taken for sizes.
        """
        if self.hold(pitch):
            return granted(pitch), False
        broken = self.broken(pitch) if pitch.assumable else False
        guess = pitch.assumable and not pitch.bounded and broken is False
        if guess and self.owed_hold(pitch):
            return (pitch.text, *granted(pitch)), False
        guess = sizes_too and (pitch.assumable or not pitch.names)
        sizes = self.hold_for_sizes(pitch) if guess else ()
        if not sizes or speaks_against_sizes(self.p, self.facts, sizes, 0, self.query):
            return None, broken
        return (*told(sizes), *granted(pitch)), broken


def _as_second(part: Term) -> str | None:
    """The name that the second thread has for what is the first one's."""
    name = part.args[0]
    return f"{name[:-2]}#2" if name.endswith("#1") else None


def _ample(
    pitch: Pitch, others: Iterable[Term], extents: Iterable[Term], stated: Term, scale: float = 1
) -> Term:
    """Rows far wider than everything that the pitch does not bound itself.

    Columns that leave their row even so are bounded by the pitch, wrongly (``x <= width``): that rows do
    not overlap is then no assumption to make. What is ``stated`` to be large is not much larger, and what
    is computed from the pitch is as large as that says.
    """
    known = math.prod(e.value for e in extents if e.is_const)
    # No grid of so few blocks leaves its row.
    wide = int(scale * max(budgets.AMPLE_PITCH, budgets.AMPLE_TIMES * known * budgets.MOST_SIZE_BESIDE))
    few = max(1, int(scale * budgets.MOST_SIZE_BESIDE))
    wide = max(wide, budgets.AMPLE_TIMES * few * few)  # a column may be a count of steps
    free = [x for x in others if x not in pitch.parameters and x not in _computed_from(pitch, stated)]
    bounds = t.bounds_of(stated)
    least = {x: int(low) for x, (low, _) in bounds.items() if few < low < math.inf}
    if any(least.get(x, 0) + few >= wide for x in free):
        return t.FALSE  # such rows are not wide beside what is large itself
    if any(high < wide for x, (_, high) in bounds.items() if x in pitch.parameters):
        return t.FALSE  # the source says that they are narrower
    small = [t.and_(t.le(x, t.const(least.get(x, 0) + few)), t.le(t.const(-few), x)) for x in free]
    nested = [t.le(t.scale(inner, wide), outer) for outer, inner in pitch.nested]
    return t.and_(*(t.le(t.const(wide), w) for w in pitch.parameters), *nested, *small)


def _computed_from(pitch: Pitch, stated: Term) -> set[Term]:
    """What an equation says by the pitch: ``gridDim.y == (n + 127) / 128``; what it is made of is free."""
    found = set[Term]()
    for condition in t.conjuncts(stated):
        parts = set(t.subterms(condition)) if condition.op is Op.EQ else set[Term]()
        if parts & set(pitch.parameters):
            made = {atoms[0] for atoms in t.monomials(condition.args[0]) if len(atoms) == 1}
            symbols = {x for x in parts if x.op is Op.SYMBOL}
            found |= symbols & made or symbols
    return found


def _lengths(formula: Term) -> Iterator[Term]:
    """That what memory says is taken for a length is one: ``f < (size_t)(first[b + 1] - first[b])``."""
    for part in t.subterms(formula):
        unsigned = part.op is Op.WRAP and not part.args[2]
        if unsigned and any(x.op is Op.APPLY for x in t.subterms(part.args[0])):
            yield t.le(t.ZERO, part.args[0])


def _divisors(*addresses: Term) -> Iterator[Term]:
    """What parts of addresses are divided by, wherever the accesses are reached; of choices nobody knows."""
    left, found = list(addresses), dict[Term, None]()
    while left:
        parts = (atom for atoms in t.monomials(left.pop()) for atom in atoms if atom.op in (Op.DIV, Op.REM))
        new = [atom for atom in parts if atom not in found]
        found |= dict.fromkeys(new)
        left += (atom.args[0] for atom in new)  # ``i / width / rows``
    for divisor in dict.fromkeys(atom.args[1] for atom in found):
        if divisor.lo <= 0 <= divisor.hi and t.level_of(divisor) is Level.GRID:
            yield divisor


def granted(pitch: Pitch) -> tuple[str, ...]:
    """What has to be taken for granted besides that rows do not overlap, for people."""
    return (*told(pitch.sizes), *(f"`{t.show(x)}` is not 0" for x in pitch.divisors))


def told(sizes: Iterable[Term]) -> tuple[str, ...]:
    """That parameters are not negative, for people."""
    return not_negative(size.args[0] for size in sizes)


def not_negative(names: Iterable[str]) -> tuple[str, ...]:
    """That what has these names is not negative, for people."""
    return tuple(f"`{name}` is not negative" for name in names)
