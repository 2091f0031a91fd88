"""Addresses that are rows and columns: ``pitch*row + column`` with ``|Δcolumn| < pitch`` is a number pair.

Then two addresses are equal exactly when rows and columns are, which is linear where the address is
not (``y*width + x``, grid-stride loops).  Where the program's own bounds keep columns within their
rows this is a lemma; for a free parameter, or a grid whose extent nobody knows, it is an assumption
that is told to the user: "rows of `width` elements do not overlap".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, reduce

from attrs import define, field, frozen

from cuda_lsp.ir.program import Var
from cuda_lsp.model import Space
from cuda_lsp.static import budgets
from cuda_lsp.static.solver.rows import division
from cuda_lsp.static.solver.rows.components import stored_both
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.events import Summary, accesses
from cuda_lsp.static.symbolic.sizes import (
    certainly_at_most,
    exactly_divided,
    lower_bounds,
    side,
    upper_bounds,
)
from cuda_lsp.static.symbolic.terms import Op, Term

Division = tuple[Term, Term]
"""What is divided, and by what."""


@frozen(eq=False)
class _Around:
    """What the kernel says of a pair's threads, wherever it does, as the pair calls what is not one for both.

    ``cut``: what it divides, and by what. ``asked``: what accesses are reached below (``upper_bounds``).
    """

    p: Problem
    summary: Summary

    @cached_property
    def cut(self) -> Sequence[Division]:
        own = self._as_called(dict.fromkeys(x for division in self.summary.cut for x in division))
        return [(one[x], one[by]) for one in own for x, by in self.summary.cut]

    @cached_property
    def asked(self) -> Mapping[Term, Sequence[Term]]:
        return upper_bounds(x for one in self._as_called(_limits(self.summary)) for x in one.values())

    def _as_called(self, terms: Iterable[Term]) -> list[dict[Term, Term]]:
        """The terms as each of the two threads has them."""
        own = {x.args[0] for x in t.subterms(*self.p.offsets) if x.op in (Op.SYMBOL, Op.APPLY) and side(x)}
        found: list[dict[Term, Term]] = []
        for thread in ("#1", "#2"):
            memo = dict[Term, Term]()

            def called(part: Term, thread: str = thread) -> str | None:
                name = f"{part.args[0]}{thread}"
                return name if name in own else None

            found.append({x: t.renamed(x, called, memo) for x in terms})
        return found


@frozen(eq=False)
class Columns:
    """One level of rows: how wide they are, and the columns of both threads.

    ``within``: these lie within one row. ``owed``: that has to be shown, whatever else is taken for granted.
    """

    width: Term
    both: tuple[Term, Term]
    within: Term
    owed: bool = False


@frozen(eq=False)
class Pitch:
    """``rows``: the columns of both threads lie within one row. ``equal``: the addresses are equal, given
    that. ``assumable``: whether ``rows`` may be taken for granted when it cannot be shown.
    ``parameters``: the pitches that nothing fixes. ``bounded``: the program bounds columns by a pitch, so
    that nothing is left to assume. ``nested``: a parameter whose rows hold rows of another one. ``sizes``:
    parameters that must not be negative for ``equal`` to be impossible. ``divisors``: those that must not be
    0 for it. ``levels``: the rows, one by one."""

    rows: Term
    equal: Term
    names: tuple[str, ...]
    assumable: bool
    parameters: tuple[Term, ...] = ()
    bounded: bool = False
    nested: tuple[tuple[Term, Term], ...] = ()
    sizes: tuple[Term, ...] = ()
    divisors: tuple[Term, ...] = ()
    levels: tuple[Columns, ...] = ()

    @property
    def taken(self) -> Term:
        """What of ``rows`` may be taken for granted, if ``assumable``."""
        return t.and_(*(columns.within for columns in self.levels if not columns.owed))

    @property
    def text(self) -> str:
        """What is taken for granted of the rows, for people."""
        return f"rows of {' and '.join(self.names)} elements do not overlap"


def pitches_of(p: Problem, summary: Summary, free: Mapping[str, Var], *, grid_known: bool) -> list[Pitch]:
    """The ways to read the pair's addresses as rows and columns, the likeliest first.

    ``free``: scalar parameters without a value. ``grid_known``: the number of blocks is a fact.
    """
    if not _is_readable(p):
        return []
    in_global = p.pair.first.array.space is Space.GLOBAL
    vectors = _vectors(p, free)
    a, b = vectors[:2] if vectors is not None else p.offsets
    starts = division.symbols(a, b, free, uniform=in_global)[: budgets.MOST_READINGS]
    stored = stored_both(p.pair, summary)
    planes = division.component(a, b, free) if starts and stored else None
    begun = [*starts, planes] if planes is not None and planes not in starts else starts or [None]
    readings: list[Pitch | None] = []
    around = _Around(p, summary)
    for start in begun:
        reading = _Reading(p, free, grid_known, stored, around=around)
        readings.append(reading.read(start))
        if reading.asked_for_components:
            readings.append(_Reading(p, free, grid_known, False, around=around).read(start))
    readings += [_as_a_whole(p, free, grid_known, start, starts, around) for start in starts]
    return list({(x.rows, x.equal): x for x in readings if x is not None}.values())


def _vectors(p: Problem, free: Mapping[str, Var]) -> tuple[Term, Term, int, tuple[Term, ...]] | None:
    """What whole addresses count vectors of (``division.vectors``)."""
    return division.vectors(*p.offsets, free) if p.overlap.op is Op.EQ else None


def _as_a_whole(
    p: Problem,
    free: Mapping[str, Var],
    grid_known: bool,
    start: Term,
    pitches: Sequence[Term],
    around: _Around,
) -> Pitch | None:
    """Rows that columns alone tell apart, whichever they are; None: the columns hold rows themselves."""
    pitch = _Reading(p, free, grid_known, False, whole=True, around=around).read(start)
    columns = [x for level in pitch.levels for x in level.both] if pitch is not None else []
    return pitch if set(pitches).isdisjoint(t.subterms(*columns)) else None


def first_row_of(p: Problem, free: Mapping[str, Var]) -> Pitch | None:
    """Rows of which one address names the first, ``x`` beside ``y*width + x``; nothing of them is assumed."""
    width = division.beside_the_first_row(*p.offsets, free) if _is_readable(p) else None
    return _Reading(p, free, True, False, assumable=False).read(width) if width is not None else None


@lru_cache(maxsize=budgets.KEPT_FACTS)
def _limits(summary: Summary) -> Sequence[Term]:
    """Limits that accesses are reached below."""
    every = (guard for access in accesses(summary.events) for guard in t.conjuncts(access.guard))
    return tuple(guard for guard in dict.fromkeys(every) if guard.op is Op.LE)


def _asked_elsewhere(
    p: Problem, width: Term, columns: tuple[Term, Term], asked: Mapping[Term, Sequence[Term]]
) -> bool:
    """Another access asks whether the column is one of the row's, and one of these does not.

    ``v = x < w ? a[y * w + x] : 0; … a[y * w + x] = v``: it may be none.
    """
    own = upper_bounds(t.conjuncts(p.guards))
    for column in columns:
        unit, factor = unit_of(column), factor_of(column)
        shared = t.sub(column, t.scale(unit, factor))
        ends = (x for x in asked.get(unit, ()) if t.add(t.scale(x, factor), shared) is width)
        if any(end not in own.get(unit, ()) for end in ends):
            return True
    return False


def _is_readable(p: Problem) -> bool:
    """Both sizes are known, and the two overlap where their addresses are equal, or in global memory."""
    first, second = p.pair.first, p.pair.second
    if p.overlap is t.TRUE or not (first.size.is_const and second.size.is_const):
        return False
    return p.overlap.op is Op.EQ or first.array.space is Space.GLOBAL


@define(eq=False)
class _Reading:
    """One way to take the two addresses apart."""

    p: Problem
    free: Mapping[str, Var]
    grid_known: bool
    components: bool  # what tells addresses apart may be a component of a structure of arrays
    whole: bool = field(default=False, kw_only=True)  # columns alone tell threads apart, in whichever rows
    around: _Around | None = field(default=None, kw_only=True)
    rows: list[Term] = field(factory=list[Term])
    equal: list[Term] = field(factory=list[Term])
    names: list[str] = field(factory=list[str])
    parameters: list[Term] = field(factory=list[Term])
    assumable: bool = True
    bounded: bool = False
    nested: list[tuple[Term, Term]] = field(factory=list[tuple[Term, Term]])
    levels: list[Columns] = field(factory=list[Columns])
    asked_for_components: bool = False  # without them it may be read otherwise

    def read(self, start: Term | None) -> Pitch | None:
        first, second = self.p.pair.first, self.p.pair.second
        # Elements that may overlap in part (a pitch in bytes): rows keep whole elements apart.
        partly = self.p.overlap.op is not Op.EQ
        sizes = (int(first.size.value), int(second.size.value)) if partly else (1, 1)
        vectors = _vectors(self.p, self.free)
        if vectors is not None:  # whose elements are counted: no two threads of a row touch one vector
            one, other, count, needed = vectors
            self._divide(one, other, (count, count), 1, start)
        else:
            needed = ()
            self._divide(*self.p.offsets, sizes, int(first.size.value), start)
        if not self.levels:
            return None
        return Pitch(
            t.and_(*self.rows), t.and_(*self.equal), tuple(dict.fromkeys(self.names)),
            self.assumable and bool(self.names),
            tuple(self.parameters), self.bounded, tuple(self.nested), needed, levels=tuple(self.levels),
        )  # fmt: skip

    def _divide(
        self, a: Term, b: Term, sizes: tuple[int, int], element: int, start: Term | None = None
    ) -> None:
        """``sizes``: bytes of the two accesses where the innermost columns may overlap in part."""
        known = len(self.names)
        found = self._pitch(a, b, element, start) if len(self.levels) < budgets.MOST_LEVELS else None
        if found is None:
            self.equal.append(_overlapping(t.sub(a, b), sizes))
            return
        width, (row_a, column_a), (row_b, column_b) = found
        gap = t.sub(column_a, column_b)
        low, high = (t.add(gap, t.const(sizes[0] - 1)), t.add(t.scale(gap, -1), t.const(sizes[1] - 1)))
        within = t.and_(t.lt(low, width), t.lt(high, width))
        self.rows.append(within)
        self.levels.append(Columns(width, (column_a, column_b), within, owed=known == len(self.names)))
        if not division.symbols(column_a, column_b, self.free, uniform=False):
            self.equal.append(_overlapping(gap, sizes))
        else:
            outer, count = self.parameters[-1:], len(self.parameters)
            self._divide(column_a, column_b, sizes, element)
            inner = self.parameters[count:]
            self.nested += [(o, i) for o in outer for i in inner if o is not i]
        if not self.whole:
            self._divide(row_a, row_b, (1, 1), 1)

    def _pitch(
        self, a: Term, b: Term, element: int, start: Term | None
    ) -> tuple[Term, tuple[Term, Term], tuple[Term, Term]] | None:
        """The width of rows, and both addresses as row and column."""
        in_global = self.p.pair.first.array.space is Space.GLOBAL
        pitch = start or next(iter(division.symbols(a, b, self.free, uniform=in_global)), None)
        if pitch is None and self.components:
            self.asked_for_components = True
            pitch = division.component(a, b, self.free)
        if pitch is not None:
            (row_a, column_a), (row_b, column_b) = (division.divide(x, pitch) for x in (a, b))
            width = t.scale(pitch, math.gcd(t.content(row_a), t.content(row_b)) or 1)
            name = t.show(pitch)
            one, two = division.sheared(pitch, row_a, column_a), division.sheared(pitch, row_b, column_b)
            if one is not None and row_b is t.ZERO:
                two = one[0], (row_b, column_b)
            elif two is not None and row_a is t.ZERO:
                one = two[0], (row_a, column_a)
            if one is not None and two is not None and one[0] is two[0]:
                (width, (row_a, column_a)), (_, (row_b, column_b)) = one, two
                if t.monomials(width).get((pitch,), 0) < 0:
                    return width, (row_a, column_a), (row_b, column_b)
                name = t.show(division.reduced(width, t.content(width)))
            # `width - 1 - x` leaves its width with the row: rows are those of columns counted alike.
            level = division.split(row_a, division.varies)[1] is division.split(row_b, division.varies)[1]
            alike = level or not _from_both_ends(self.p, column_a, column_b)
            crossed = _bounds_rows(self.p, pitch, (row_a, row_b), (column_a, column_b), self.free)
            self.assumable = self.assumable and alike and not crossed
            columns = column_a, column_b
            self.bounded = self.bounded or _bounded(self.p, pitch, width, columns, self.free)
            if self.around is not None and self.assumable and not self.bounded:
                whole = t.mul(width, _common(row_a, row_b))
                self.bounded = _is_cut(whole, columns, self.around.cut, self.free)
                self.bounded = self.bounded or _asked_elsewhere(self.p, width, columns, self.around.asked)
            self.bounded = self.bounded or of_one_index(row_a, column_a) or of_one_index(row_b, column_b)
            if pitch.args[0] in self.free:  # rows of blocks or threads are shown to hold, or not
                self.parameters.append(pitch)
                self.names.append(f"`{name}`")
            return width, (row_a, column_a), (row_b, column_b)
        split = None if self.grid_known else division.constant(a, b)
        if split is None:
            return None
        size, *parts = split
        self.assumable = self.assumable and _mirrored(parts[0][1]) == _mirrored(parts[1][1])
        self.names.append(str(size // element if size % element == 0 else size))
        return t.const(size), parts[0], parts[1]


def _is_cut(
    width: Term, columns: tuple[Term, Term], cut: Sequence[Division], free: Mapping[str, Var]
) -> bool:
    """The kernel divides a column by the width: it goes over several rows."""
    for column in columns:
        unit, factor = unit_of(column), factor_of(column)
        among = (t.scale(by, factor) for x, by in cut if side(x) and unit_of(x) is unit)
        if any(certainly_at_most(width, by, free) for by in among):
            return True
    return False


def _common(*rows: Term) -> Term:
    """The parameters that all of some rows are multiplied with: of ``n * k`` in rows of ``g``, ``k``."""
    products = [m for row in rows for m in t.monomials(row)]
    shared = set(products[0]).intersection(*products) if products else set[Term]()
    return reduce(t.mul, (x for x in shared if x.op is Op.SYMBOL and not side(x)), t.ONE)


def _overlapping(gap: Term, sizes: tuple[int, int]) -> Term:
    """Accesses of so many bytes, the first ``gap`` behind the second, have a byte in common."""
    if sizes == (1, 1):
        return t.eq(gap, t.ZERO)
    return t.and_(t.lt(gap, t.const(sizes[1])), t.lt(t.scale(gap, -1), t.const(sizes[0])))


def meetings_in_a_row(p: Problem, summary: Summary, free: Mapping[str, Var]) -> Iterator[Term]:
    """Conditions, linear as a rule, under which the two addresses are equal whatever their pitch is.

    Rows and columns are equal; of columns counted from both ends, those that meet within a row. None where a
    parameter may tell two planes of rows apart.
    """
    a, b = p.offsets
    pitch = next(iter(division.symbols(a, b, free, uniform=True)), None)
    planes = division.component(a, b, free) if stored_both(p.pair, summary) else None
    if pitch is None or planes not in (None, pitch):
        return
    (row_a, column_a), (row_b, column_b) = division.divide(a, pitch), division.divide(b, pitch)
    yield t.and_(t.eq(row_a, row_b), t.eq(column_a, column_b))
    (own_a, common_a), (own_b, common_b) = (division.split(row, division.varies) for row in (row_a, row_b))
    if _from_both_ends(p, column_a, column_b):
        rest = t.add(t.mul(pitch, t.sub(common_a, common_b)), t.sub(column_a, column_b))
        yield t.and_(t.eq(own_a, own_b), t.eq(rest, t.ZERO))


def _bounded(
    p: Problem,
    pitch: Term,
    width: Term,
    columns: tuple[Term, Term],
    free: Mapping[str, Var],
) -> bool:
    """The program itself bounds the columns by the pitch: rows overlap or they do not, there is no guess.

    By a guard (``x <= width``; ``x < width - 2`` is fine), or what is shifted: ``x % width + 1``, and beside
    ``x`` the column ``x - 1`` where ``x < width``; or by remainders that go over several rows, ``x % n * 32``
    in rows of ``n * 16``.
    """
    if any(_goes_over(column, pitch, width, free) for column in columns):
        return True
    bounds = upper_bounds(t.conjuncts(p.guards))
    shifted = () in t.monomials(t.sub(*columns))
    parts = t.subterms(*t.conjuncts(p.guards), *p.offsets)
    cut = (x for x in parts if x.op in (Op.DIV, Op.REM) and exactly_divided(x.args[1], pitch) is not None)
    spanning = {unit_of(x.args[0]) for x in cut if side(x.args[0])}
    for counted, of in (x for column in columns for x in _counted(column, width)):
        unit, factor = unit_of(counted), factor_of(counted)
        within = [a for m in t.monomials(unit) for a in m if a.op is not Op.SYMBOL and shifted]
        # What is bounded may be a multiple of the unit, where rows are read in vectors.
        limits = ((t.scale(x, factor), by) for by, found in _bounds_of(unit, bounds) for x in found)
        beyond = [x for x, by in limits if shifted or not certainly_at_most(x, t.scale(of, by), free)]
        if unit is t.ZERO:  # one column for all: of memory that is above 0 it says nothing where that is
            beyond = [_without_places(x) for x in beyond]
        if any(pitch in named(x) for x in (*within, *beyond)):
            return True
        # Who divides it, or a part of it, by the width or a multiple takes that to span several rows.
        if any(unit_of(part) in spanning for part in (unit, *_parts(unit))):
            return True
        if _spans_more(p, pitch, unit, bounds, free) or _goes_on(p, (counted, of), pitch, bounds, free):
            return True
    return False


def _goes_over(column: Term, pitch: Term, width: Term, free: Mapping[str, Var]) -> bool:
    """Remainders by the pitch reach further than one row: who takes them means all that there are."""
    for atoms, times in t.monomials(column).items():
        for part in atoms:
            if part.op is not Op.REM or not side(part) or pitch not in t.subterms(part.args[1]):
                continue
            others = t.without(atoms, (part,)) or ()
            if not any(map(side, others)):
                reach = t.mul(t.from_monomials({others: abs(times)}), part.args[1])
                if not certainly_at_most(reach, width, free):
                    return True
    return False


def _goes_on(
    p: Problem,
    row: tuple[Term, Term],
    pitch: Term,
    bounds: Mapping[Term, list[Term]],
    free: Mapping[str, Var],
) -> bool:
    """A guard bounds a part of the column by the pitch, and the rest goes on from there.

    ``8*i + j`` where ``8*i < width``, and ``j`` is below 8; ``x`` where ``8*(x/8) < width``. Not where the
    column itself is bounded so that it stays in its row.
    """
    column, width = row
    own = {m: c for m, c in t.monomials(column).items() if any(map(side, m))}
    known = t.bounds_of(p.guards)
    whole = bounds.get(t.from_monomials(own), ())
    if width is t.ZERO or any(len(m) > 1 for m in own):
        return False  # rows of rows
    if any(certainly_at_most(limit, width, free) for limit in whole):
        return False
    for value, limits in bounds.items():
        parts = t.monomials(value)
        steps = _in_steps_of(parts, own)
        times = {steps.get(m, 0) // c if steps.get(m, 0) % c == 0 else 0 for m, c in parts.items()}
        most = t.interval_of({m: c for m, c in steps.items() if m not in parts}, known)[1]
        if len(times) != 1 or min(times) <= 0 or not 0 < most < math.inf:
            continue
        (by,) = times
        furthest = (t.add(t.scale(t.sub(limit, t.ONE), by), t.const(int(most) + 1)) for limit in limits)
        ends = list(zip(limits, furthest, strict=True))
        if all(pitch in named(x) and not certainly_at_most(end, width, free) for x, end in ends):
            return True
    return False


def _in_steps_of(
    bounded: Mapping[t.Monomial, int], own: Mapping[t.Monomial, int]
) -> Mapping[t.Monomial, int]:
    """The column in steps and what is left of them, where it is a quotient of it that is bounded."""
    (atoms,) = bounded if len(bounded) == 1 else ((),)
    if len(atoms) != 1 or atoms[0].op is not Op.FLOOR_DIV:
        return own
    index, step = atoms[0].args
    column = t.from_monomials(own)
    if unit_of(column) is not index:
        return own
    factor = factor_of(column)
    return {atoms: factor * step, **t.monomials(t.scale(t.floor_mod(index, step), factor))}


def _spans_more(
    p: Problem, pitch: Term, unit: Term, bounds: Mapping[Term, list[Term]], free: Mapping[str, Var]
) -> bool:
    """A guard lets the column go through more smaller rows than the pitch has.

    ``i / C - 1 < T`` alone lets it come by ``T + 1``, beside ``i / C >= 1`` it comes by ``T``.
    """
    parts = [x for x in bounds if x.op in (Op.DIV, Op.FLOOR_DIV) and unit_of(x.args[0]) is unit]
    least = lower_bounds(t.conjuncts(p.guards)) if parts else {}
    for part in parts:
        firsts = [*([t.const(int(part.lo))] if math.isfinite(part.lo) else []), *least.get(part, [])]
        limits = [x for x in bounds[part] if pitch in named(x)]
        spans = [[t.sub(limit, first) for first in firsts] for limit in limits]
        if any(not any(certainly_at_most(s, pitch, free) for s in several) for several in spans):
            return True
    return False


def _parts(unit: Term) -> Iterator[Term]:
    """What the term is a sum of, where that differs between threads."""
    return (t.from_monomials({m: c}) for m, c in t.monomials(unit).items() if any(map(side, m)))


def of_one_index(row: Term, column: Term) -> bool:
    """The row is a part of the index that the column is, ``i + pad * (i / 32)``: it goes through all rows."""
    unit = unit_of(column)
    cut = (x.args[0] for x in t.subterms(row) if x.op in (Op.DIV, Op.FLOOR_DIV))
    return bool(side(unit)) and any(unit_of(x) is unit for x in cut)


def _counted(column: Term, width: Term) -> Iterator[tuple[Term, Term]]:
    """The column and its width; and both in smaller rows that it is made of: ``nx * y + x`` as ``y``."""
    yield column, width
    products = (m for m in t.monomials(column) if len(m) > 1 and any(map(side, m)))
    for inner in dict.fromkeys(a for m in products for a in m if a.op is Op.SYMBOL and not side(a)):
        row, _ = division.divide(column, inner)
        yield row, exactly_divided(width, inner) or t.ZERO


def _bounds_of(unit: Term, bounds: Mapping[Term, list[Term]]) -> Iterator[tuple[int, list[Term]]]:
    """Bounds of the term times a number, and the number."""
    for whole, limits in bounds.items():
        times = t.content(whole)
        if whole is unit or (times and t.scale(unit, times) is whole):
            yield times, limits


def _bounds_rows(
    p: Problem, pitch: Term, rows: tuple[Term, Term], columns: tuple[Term, Term], free: Mapping[str, Var]
) -> bool:
    """The program bounds rows, or what they are counted by, by their pitch and columns by another parameter.

    They may be mixed up: of ``(y * heads + r) * rows + h``, where ``r < rows`` and ``h < heads``.
    """
    bounds = [(own_symbols(x), limits) for x, limits in upper_bounds(t.conjuncts(p.guards)).items()]

    def crossed(row: Term, column: Term) -> bool:
        counted, within = own_symbols(row), own_symbols(column)
        by_pitch = any(pitch in limits for own, limits in bounds if own and own <= counted)
        others = (limits for own, limits in bounds if own <= within and not own <= counted)
        names = {
            x for limits in others for x in t.subterms(*limits) if x.op is Op.SYMBOL and x.args[0] in free
        }
        return by_pitch and bool(names) and pitch not in names

    return all(map(crossed, rows, columns))


def own_symbols(term: Term) -> frozenset[Term]:
    """What tells the thread from others in the term."""
    return frozenset(x for x in t.subterms(term) if x.op is Op.SYMBOL and side(x))


def factor_of(term: Term) -> int:
    """What is common to all that differs between threads in the term."""
    return math.gcd(*(c for m, c in t.monomials(term).items() if any(map(side, m)))) or 1


def named(limit: Term) -> set[Term]:
    """What a limit of columns is made of.

    Of quotients and remainders that both threads share (``width - x % size``) no divisors.
    """
    shared = (x for m in t.monomials(limit) for x in m if not side(x) and x.op in (Op.DIV, Op.REM))
    return set(t.subterms(t.substitute(limit, dict.fromkeys(shared, t.ZERO))))


def _without_places(limit: Term) -> Term:
    """The limit without what memory holds, and so without where that is: ``ids[row * pitch + x] >= 0``."""
    return t.substitute(limit, {x: t.ZERO for x in t.subterms(limit) if x.op is Op.APPLY})


def unit_of(term: Term) -> Term:
    """What differs between threads in the term, without the factor common to all of it."""
    unit = factor_of(term)
    return t.from_monomials({m: c // unit for m, c in t.monomials(term).items() if any(map(side, m))})


def _from_both_ends(p: Problem, a: Term, b: Term) -> bool:
    """One column is counted from the end of its row (``width - 1 - x``, or ``width - 1`` beside one that
    varies), the other from the start: columns of one row meet."""
    if _mirrored(a) != _mirrored(b):
        return True
    bounds = t.bounds_of(p.guards)
    ends = (t.interval_of(t.monomials(column), bounds)[1] for column in (a, b))
    before = [end < 0 for end in ends]  # its row for certain, so at the end of the one that is before
    return before[0] != before[1] and any(map(division.varies, t.monomials(b if before[0] else a)))


def _mirrored(column: Term) -> bool:
    """The column goes down as threads go up."""
    return any(factor < 0 and division.varies(atoms) for atoms, factor in t.monomials(column).items())
