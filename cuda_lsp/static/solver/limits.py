"""The limits of parameters beyond which shared arrays are left, which no constant of a formula need be.

``s[3][y][k]`` of ``float s[4][16][24]``, with ``k < n``, is left when ``n`` > 24; its formula holds bytes.
A limit that is needed is moved towards the values that show it, and told if that is enough: one thread, in
one round of its loops, goes on to show it (Z3), or ordinary values do, as of races.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import evolve, frozen

from cuda_lsp.ir.program import BID, GDIM
from cuda_lsp.static import budgets
from cuda_lsp.static.findings.conditions import Compared, Conditions, parameters_of
from cuda_lsp.static.solver.condition import example_of, extent_of, needed_condition, suffice
from cuda_lsp.static.solver.query import Outcome, Query
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Op, Term

_FIRST = {">": 1, ">=": 0, "<": -1}
"""Of comparisons with a limit: how far from it the first value is that fulfils them."""


def sufficient(formula: Term, arguments: Mapping[str, int], query: Query) -> Conditions:
    """What ``formula`` needs of parameters, where that is enough, else the ``arguments`` as an example."""
    formula = _of_parameters(formula, query)
    query.solve(formula)  # a model, which the limits below start from
    parameters = {part.args[0]: part for part in query.parameters(formula)}
    found = needed_condition(formula, query, arguments)
    needed = [c for c in found if isinstance(c, Compared)]
    if len(needed) == len(found):
        limits = _Limits(formula, parameters, query)
        closest = [limits.closest(c) for c in needed]
        showing = limits.shown_at(closest)
        if showing is not None and limits.go_on(showing, closest):
            return limits.beyond_launches(limits.loosest(needed, closest, showing))
        if suffice(closest, parameters, formula, query):
            return limits.beyond_launches(closest)
    return (example_of(formula, parameters, arguments, query),)


def _of_parameters(formula: Term, query: Query) -> Term:
    """With what the host computes extents of the grid from in their place."""
    for axis in GDIM:
        extent = query.where.axes[axis]
        for told in query.told:
            sums = dict(t.monomials(told.args[0])) if told.op is Op.EQ else dict[t.Monomial, int]()
            factor = sums.pop((extent,), 0)
            if abs(factor) == 1 and extent not in t.subterms(*(atom for atoms in sums for atom in atoms)):
                formula = t.substitute(formula, {extent: t.scale(t.from_monomials(sums), -factor)})
                break
    return formula


@frozen(eq=False)
class _Limits:
    formula: Term
    parameters: Mapping[str, Term]
    query: Query

    def closest(self, needed: Compared) -> Compared:
        """The limit, as far as it can be moved and is needed."""
        parameter, last = self.parameters[needed.parameter], _last(needed)
        seen = self.query.known_model(self.formula).get(parameter)
        if last is None or seen is None:
            return needed

        def shows(value: int) -> bool | None:
            """Whether values from the limit up to this one do."""
            limit = t.const(value)
            up_to = t.le(limit, parameter) if needed.sign == "<" else t.le(parameter, limit)
            outcome = self.query.briefly(t.and_(self.formula, up_to)).outcome
            return None if outcome is Outcome.UNKNOWN else outcome is Outcome.MODEL

        return self._moved(needed, _first_of(last, seen, shows) - _FIRST[">" if seen > last else "<"])

    def shown_at(self, needed: Sequence[Compared]) -> Mapping[Term, Term] | None:
        """A thread, and what else is no parameter, that shows it for the first values that fulfil these.

        Of the first block, which every grid has, if one does.
        """
        first = [
            t.eq(self.parameters[c.parameter], t.const(n)) for c in needed if (n := _first(c)) is not None
        ]
        blocks = (self.query.where.axes[axis] for axis in BID)
        in_first = t.and_(self.formula, *first, *(t.eq(x, t.ZERO) for x in blocks))
        model = self.query.briefly(in_first).values or self.query.briefly(t.and_(self.formula, *first)).values
        if model is None:
            return None
        own = frozenset(self.parameters.values())
        return {x: t.const(value) for x, value in model.items() if x.op is Op.SYMBOL and x not in own}

    def go_on(self, showing: Mapping[Term, Term], needed: Sequence[Compared]) -> bool:
        """Those show it for all values that fulfil the comparisons, as far as the source admits them.

        Parameters that no comparison is about are positive: without them there may be no thread.
        """
        compared = parameters_of(needed)
        sizes = (t.le(t.ZERO if name in compared else t.ONE, x) for name, x in self.parameters.items())
        missed = t.not_(t.substitute(self.formula, showing))
        return self.query.refutes(t.and_(*self.query.told, *sizes, *map(self._term, needed), missed))

    def beyond_launches(self, enough: Sequence[Compared]) -> Conditions:
        """Without what holds wherever there is a grid: ``n`` > 0 of ``(n + 63) / 64`` blocks."""
        launched = t.and_(*self.query.told, *(t.le(t.ONE, self.query.where.axes[axis]) for axis in GDIM))
        more = (c for c in enough if not self.query.refutes(t.and_(launched, t.not_(self._term(c)))))
        return tuple(more) or tuple(enough)

    def loosest(
        self, needed: Sequence[Compared], closest: Sequence[Compared], showing: Mapping[Term, Term]
    ) -> tuple[Compared, ...]:
        """Limits nearer to those of the program that are enough, too: ``n`` > 16 where it is even anyway."""
        found = list(closest)
        for i, (far, near) in enumerate(zip(needed, closest, strict=True)):
            last, first = _last(far), _last(near)
            if last is None or first is None or far == near:
                continue

            def enough(limit: int, i: int = i, near: Compared = near) -> bool:
                moved = [*found[:i], self._moved(near, limit), *found[i + 1 :]]
                return self.go_on(showing, moved)

            found[i] = far if enough(last) else self._moved(near, _first_of(last, first, enough))
        return tuple(found)

    def _moved(self, c: Compared, limit: int) -> Compared:
        if limit == _last(c):
            return c
        sign = "<" if c.sign == "<" else ">"
        return evolve(c, sign=sign, other=limit, extent=extent_of(limit, self.query))

    def _term(self, c: Compared) -> Term:
        one = self.parameters[c.parameter]
        other = self.parameters[c.other] if isinstance(c.other, str) else t.const(c.other)
        return {
            "==": t.eq(one, other), "!=": t.not_(t.eq(one, other)), "<": t.lt(one, other),
            ">": t.lt(other, one), ">=": t.le(other, one),
        }[c.sign]  # fmt: skip


def _first(c: Compared) -> int | None:
    """The first value that fulfils a comparison with a limit; None: it has none."""
    return c.other + _FIRST[c.sign] if isinstance(c.other, int) and c.sign in _FIRST else None


def _last(c: Compared) -> int | None:
    """The last value that does not."""
    first = _first(c)
    return None if first is None else first + (1 if c.sign == "<" else -1)


def _first_of(fails: int, holds: int, test: Callable[[int], bool | None]) -> int:
    """The first number after one that fails, on the way to one that holds, of which the test does."""
    for _ in range(budgets.MOST_CONDITION_QUERIES):
        if abs(holds - fails) <= 1:
            break
        middle = (holds + fails) // 2
        outcome = test(middle)
        if outcome is None:
            break
        holds, fails = (middle, fails) if outcome else (holds, middle)
    return fails + (1 if holds > fails else -1)
