"""What the source itself says of its parameters, against which nothing is taken for granted.

That rows do not overlap, that a size is not negative or a power of two, is assumed where the source is
silent. ``if (w > blockDim.x) return;`` is not silent: rows wider than the block are not what the kernel is
made for, so whether rows of ``w`` overlap is for the solver, with the guard as one of its conditions.
Read are the conditions of the two accesses and what the kernel assumes or asserts; not the host.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from cuda_lsp.ir.program import BDIM, BID, GDIM, TID, Axis
from cuda_lsp.static import budgets
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.rows.pitch import Columns, Pitch, factor_of, named, unit_of
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.sizes import certainly_at_most, side, upper_bounds
from cuda_lsp.static.symbolic.terms import Level, Op, Term

_COMPARED = frozenset({Op.LE, Op.EQ, Op.AND, Op.OR, Op.SUM, Op.SYMBOL, Op.CONST})
_COORDINATES = {axis.value for axis in (*TID, *BID)}
_EXTENTS = {
    x.value: extent.value for axes, extents in ((TID, BDIM), (BID, GDIM))
    for x, extent in zip(axes, extents, strict=True)
}  # fmt: skip
_Interval = tuple[float, float]
_NOTHING: _Interval = (0, 0)


def speaks_of_rows(p: Problem, facts: Term, pitch: Pitch, query: Query) -> bool:
    """The source relates a pitch and the range of its columns, or never lets two columns share a row.

    It relates them when it compares the pitch, directly or by way of others, with what bounds the columns, or
    with numbers of the size of the columns' own range. Of rows that the program itself keeps apart nothing is
    guessed: ``gridDim.y == height`` says how many rows a plane has, and nothing of how wide these are.
    """
    said = _Said(p, query)
    guessed = [columns for columns in pitch.levels if not columns.owed]
    if any(said.relates(columns) and said.reached(facts, t.not_(columns.within)) for columns in guessed):
        return True
    widths = [columns.width for columns in guessed]
    return said.mentions(widths) and not said.reached(facts, pitch.rows)


def speaks_against_sizes(p: Problem, facts: Term, sizes: Iterable[Term], least: int, query: Query) -> bool:
    """The source admits that a size is below ``least``, or nothing else.

    It admits it by bounds: no less than something negative (``k >= -r``), no more than 0.
    """
    said = _Said(p, query)
    taken = tuple(sizes)
    if not taken:
        return False
    if any(said.has_no_size(x) for size in taken for x in t.subterms(size) if x.op is Op.SYMBOL):
        return True
    return said.mentions(taken) and not said.reached(facts, *(t.le(t.const(least), size) for size in taken))


def speaks_against_powers(p: Problem, size: Term, query: Query) -> bool:
    """The source names a size that is no power of two, or admits none that is one."""
    said = _Said(p, query)
    names = {x for x in t.subterms(size) if x.op is Op.SYMBOL}
    about = t.and_(
        *(c for c in said.conditions if names & set(t.subterms(c)) and _is_of_parameters(c, query))
    )
    if about is t.TRUE:
        return False

    def admitted(case: Term) -> bool:
        return query.satisfiable(t.and_(about, case)) is not False

    if any(value & (value - 1) and admitted(t.eq(size, t.const(value))) for value in said.named(size)):
        return True
    return not admitted(t.or_(*(t.eq(size, t.const(1 << i)) for i in range(31))))


def names_numbers(p: Problem, size: Term, query: Query) -> bool:
    """The source asks whether the size is some number, where both accesses are reached."""
    return any(_Said(p, query).named(size))


class _Said:
    """Conditions that all threads share, of the places where both accesses are reached."""

    def __init__(self, p: Problem, query: Query) -> None:
        self.p, self.query = p, query
        self.guards = (*t.conjuncts(p.guards), *query.told)
        self.conditions = query.stated(p)
        self.comparisons = tuple(c for c in self.conditions if _is_comparison(c))

    def mentions(self, terms: Iterable[Term]) -> bool:
        """Some condition is about a parameter of these, and more than that it is above something."""
        names = {x for x in t.subterms(*terms) if x.op is Op.SYMBOL}
        return any(
            condition.op is not Op.LE or any(t.monomials(condition.args[0]).get((x,), 1) > 0 for x in about)
            for condition in self.guards
            if (about := names & set(t.subterms(condition)))
        )

    def reached(self, facts: Term, *cases: Term) -> bool:
        """The accesses may be reached in this case, for all that linear arithmetic shows."""
        formula = t.and_(facts, self.p.guards, *cases)
        complete = self.query.complete(formula, self.p)
        return not self.query.refutes_quickly(complete)

    def admits(self, case: Term) -> bool:
        return self.query.satisfiable(t.and_(*self.conditions, case)) is not False

    # -- sizes

    def has_no_size(self, parameter: Term) -> bool:
        for condition in self.comparisons:
            if condition.op is not Op.LE:
                continue
            rest = dict(t.monomials(condition.args[0]))
            factor = rest.pop((parameter,), 0)
            constant, names = rest.pop((), 0), bool(rest)
            if factor < 0 and constant <= 0 and all(c < 0 for c in rest.values()) and (names or constant < 0):
                return True  # -k - r <= 0
            if factor > 0 and not names and constant >= 0:
                return True
        return False

    def named(self, parameter: Term) -> Iterator[int]:
        """Constants that the parameter is asked to be equal to."""
        for part in t.subterms(*self.conditions):
            if part.op is Op.EQ:
                sums = dict(t.monomials(part.args[0]))
                constant = sums.pop((), 0)
                if list(sums) == [(parameter,)] and constant % sums[(parameter,)] == 0:
                    yield -constant // sums[(parameter,)]

    # -- rows

    def relates(self, columns: Columns) -> bool:
        pitch = {x for x in t.subterms(columns.width) if x.op is Op.SYMBOL}
        related = self._connected(pitch)
        limits = [x for term in columns.both for x in self._limits(term)]
        own = {x for term in columns.both for x in _extents(term, self.query)}
        own |= {x for x in t.subterms(*limits) if x.op is Op.SYMBOL} - pitch
        if related & own or any(self._leaves(term, columns.width) for term in columns.both):
            return True
        if any(x.op is Op.SYMBOL and self.has_no_size(x) for x in t.sub(*columns.both).parts):
            return True
        return self._of_the_size_of_columns(columns, limits)

    def _connected(self, pitch: set[Term]) -> set[Term]:
        """What the pitch is compared with, and that with others."""
        found = set(pitch)
        for _ in self.comparisons:
            before = len(found)
            for condition in self.comparisons:
                names = {x for x in t.subterms(condition) if x.op is Op.SYMBOL}
                if names & found:
                    found |= names
            if len(found) == before:
                break
        return found

    def _limits(self, column: Term) -> list[Term]:
        """What the column stays below: exclusive bounds of what varies in it, and of what that is made of."""
        parts = [unit_of(column), *(a for m in t.monomials(column) for a in m if side(a))]
        bounds, every = upper_bounds(self.guards), upper_bounds(self.guards, below=True)
        own = [x for part in parts for x in bounds.get(part, ())]
        for part in parts:  # ``i % d`` of ``256 * (i % d) + t < n`` goes as far as that says
            divisors = list(_divisors(part))
            sums = [x for x in every if x.op is Op.SUM and (part,) in t.monomials(x)] if divisors else []
            own += [limit for x in sums for limit in every[x]] or divisors
        return list(dict.fromkeys((*own, *self._told_limits(column))))

    def _told_limits(self, column: Term) -> Iterator[Term]:
        """What a column stays below that is a parameter: the counter of a loop of the host."""
        atoms, factor = next(iter(t.monomials(column).items()), ((), 0))
        alone = len(t.monomials(column)) == 1 and len(atoms) == 1 and not side(column)
        for condition in self.comparisons if alone else ():
            rest = dict(t.monomials(condition.args[0])) if condition.op is Op.LE else {}
            if rest.pop(atoms, 0) == 1:
                yield t.scale(t.sub(t.ONE, t.from_monomials(rest)), factor)

    def _leaves(self, column: Term, width: Term) -> bool:
        """``x < width - k`` where ``k`` may be negative, or ``x >= width``: a column that is of no row."""
        pitch = {x for x in t.subterms(width) if x.op is Op.SYMBOL}
        sizes = [x.args[0] for x in t.subterms(*self.guards) if x.op is Op.SYMBOL and not self.has_no_size(x)]
        factor = factor_of(column)
        for limit in self._limits(column):
            scaled = t.scale(limit, factor)
            if pitch & named(_apart_from_data(limit)) and not certainly_at_most(scaled, width, sizes):
                return True
        return self._begins_behind(column, width)

    def _begins_behind(self, column: Term, width: Term) -> bool:
        """``x >= width``: no column of the row itself."""
        unit = unit_of(column)
        for condition in self.guards:
            if condition.op is Op.LE:
                beyond = t.add(condition.args[0], unit)  # no more than what varies in the column
                if not side(beyond) and t.le(width, t.scale(beyond, factor_of(column))) is t.TRUE:
                    return True
        return False

    def _of_the_size_of_columns(self, columns: Columns, limits: list[Term]) -> bool:
        width = columns.width
        low_stated = width.is_const or (
            bool(self._about(width)) and not self._compares(t.le(width, t.const(t.content(width))))
        )
        if low_stated and any(self._exceeds(limit, width, term) for term in columns.both for limit in limits):
            return True
        if width.is_const or not self._about(width):
            return False
        reach = self._reach(columns, limits)
        if reach < 2:
            return False
        if low_stated and self.admits(t.lt(width, t.const(reach))):
            return True
        return not self._compares(t.lt(t.const(2 * reach), width))

    def _about(self, width: Term) -> list[Term]:
        names = {x for x in t.subterms(width) if x.op is Op.SYMBOL}
        return [c for c in self.comparisons if names & set(t.subterms(c))]

    def _compares(self, case: Term) -> bool:
        """The comparisons alone admit the case."""
        return self.query.satisfiable(t.and_(*self.comparisons, case)) is not False

    def _exceeds(self, limit: Term, width: Term, column: Term) -> bool:
        """A limit of columns that the source bounds by a number may be more than the width."""
        if t.level_of(limit) is not Level.GRID or set(t.subterms(width)) & set(t.subterms(limit)) - {t.ONE}:
            return False
        bounded = limit.is_const or not self._compares(t.lt(t.const(budgets.UNBOUNDED), limit))
        return bounded and self.admits(t.lt(width, t.scale(limit, factor_of(column))))

    def _reach(self, columns: Columns, limits: list[Term]) -> int:
        """How many columns there are in any launch: 1 where parameters decide."""
        if any(not limit.is_const for limit in limits):
            return 1
        known = _intervals(self.guards)
        ends = [_interval(term, known, self.query) for term in columns.both]
        (low_a, high_a), (low_b, high_b) = ends
        return int(max(high_a - low_b, high_b - low_a)) + 1


def _is_of_parameters(condition: Term, query: Query) -> bool:
    leaves = [x for x in t.subterms(condition) if x.op in (Op.SYMBOL, Op.APPLY, Op.TEST)]
    return all(x.op is Op.SYMBOL and x.args[0] in query.where.free for x in leaves)


def _is_comparison(condition: Term) -> bool:
    return all(part.op in _COMPARED for part in t.subterms(condition))


def _extents(column: Term, query: Query) -> Iterator[Term]:
    """Extents of the launch, where they are unknown, that the column's coordinates run up to."""
    for part in t.subterms(column):
        name = part.args[0].split("#")[0] if part.op is Op.SYMBOL else ""
        if name in _EXTENTS:
            extent = query.where.axes[Axis(_EXTENTS[name])]
            if not extent.is_const:
                yield extent


def _apart_from_data(limit: Term) -> Term:
    """The limit without what memory holds: where that stands says nothing of it."""
    read = (x for m in t.monomials(limit) for x in m if x.op is Op.APPLY)
    return t.substitute(limit, dict.fromkeys(read, t.ZERO))


def _divisors(part: Term) -> Iterator[Term]:
    """``x % d`` stays below ``d``, ``min(x, d)`` is at most ``d``."""
    if part.op is Op.REM:
        yield part.args[1]
    elif part.op is Op.FLOOR_MOD:
        yield t.const(part.args[1])
    elif part.op is Op.ITE:
        yield from (t.add(x, t.ONE) for x in part.args[1:] if not side(x) and not x.is_const)


def _intervals(guards: Iterable[Term]) -> dict[Term, _Interval]:
    """Of what the guards compare with a number."""
    known: dict[Term, _Interval] = {}
    for guard in guards:
        if guard.op not in (Op.LE, Op.EQ):
            continue
        sums = dict(t.monomials(guard.args[0]))
        constant = sums.pop((), 0)
        if len(sums) != 1:
            continue
        ((atoms, factor),) = sums.items()
        if len(atoms) != 1:
            continue
        (atom,) = atoms
        low, high = known.get(atom, (atom.lo, atom.hi))
        if guard.op is Op.EQ or factor > 0:
            high = min(high, -constant // factor)
        if guard.op is Op.EQ or factor < 0:
            low = max(low, -(-constant // -factor) if factor < 0 else -constant // factor)
        known[atom] = (low, high)
    return known


def _interval(column: Term, known: Mapping[Term, _Interval], query: Query) -> _Interval:
    """The columns of threads that every launch has; what is not of them counts as its least value."""
    return t.range_of_sum(t.monomials(column), lambda atom: _sure(atom, known, query))


def _sure(atom: Term, known: Mapping[Term, _Interval], query: Query) -> _Interval:
    low, high = known.get(atom, (atom.lo, atom.hi))
    if not side(atom):
        return _NOTHING  # alike in both columns
    names = {x.args[0].split("#")[0] for x in t.subterms(atom) if x.op in (Op.SYMBOL, Op.APPLY, Op.TEST)}
    counted = names <= _COORDINATES and all(query.where.axes[Axis(_EXTENTS[name])].is_const for name in names)
    if counted:
        return low, high
    least = low if math.isfinite(low) else 0
    return least, least
