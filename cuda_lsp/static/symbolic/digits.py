"""Addresses as numbers of mixed radix with symbolic bases: equal numbers have equal digits.

``NH*d*n + d*h + i`` with ``0 <= i < d`` and ``0 <= h < NH`` is a number of three digits; two threads that
form the same number agree on each, and where the digits are quotients and remainders of one index, on
the index itself. That is linear where the address is not (Z3's nonlinear integer theory gives up on it).
Bounds of digits come from divisors, from the guards of the accesses (``i < n``) and from intervals; a base
that is a parameter must be positive, which a guard shows or is assumed, and told.

Theory: delinearisation (Grosser, Pop, Ramanujam, Sadayappan, "Optimistic Delinearization of Parametrically
Sized Arrays", ICS 2015), here for two threads instead of two iterations.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import define, evolve, field, frozen

from cuda_lsp.ir.program import BID, TID, Axis
from cuda_lsp.static import budgets
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.sizes import (
    FIRST,
    MIXED,
    SHARED,
    Sizes,
    exactly_divided,
    lower_bounds,
    remainder_of,
    side,
    upper_bounds,
)
from cuda_lsp.static.symbolic.starts import by_value
from cuda_lsp.static.symbolic.terms import Op, Term


@frozen(eq=False)
class Digits:
    """What two threads with one address agree on.

    ``refuted``: they would be one thread. ``equal``: the equations, without products of unknowns that
    the address had. ``positive``: what was taken to be positive, parameters and quotients of them;
    ``natural``: parameters taken not to be negative. ``rows``: of so many elements, that were taken not to
    overlap.
    """

    refuted: bool
    equal: Term
    positive: tuple[Term, ...]
    rows: tuple[Term, ...] = ()
    natural: tuple[Term, ...] = ()


@frozen(eq=False)
class _Digit:
    """``weight * (first - second + shift)``, a part of the difference of two addresses.

    ``back``: it is counted from the end, ``height - 1 - y``, and that part is subtracted.
    """

    weight: Term
    first: Term
    second: Term
    shift: int = 0
    back: bool = False


_Weighted = tuple[_Digit, Term]
"""A digit, and its weight in the units that count."""
_Cut = tuple[tuple[_Digit, ...], frozenset[_Digit]]
"""A digit with the run that ends below it, and all that stands below."""


def digits_of(
    p: Problem, facts: Term, axes: Mapping[Axis, Term], free: Iterable[str], unbounded: Iterable[Term] = (),
    *, shifted: bool = False,
) -> Digits | None:  # fmt: skip
    """The digits of the pair's address; None when it is no such number. ``free``: parameters' names.

    Of several equations that the overlap is made of, one may be. ``unbounded``: columns of the first
    thread, that are taken to stay within their rows. ``shifted``: parameters that are added to an index,
    ``(i + s) % n``, may be taken not to be negative.
    """
    rounds, p = p, by_value(p)
    parts = t.conjuncts(p.overlap)
    if any(part.op is not Op.EQ for part in parts):
        return None
    known = t.and_(facts, p.guards)
    shifts = dict[Term, None]() if shifted else None
    reader = _Reader(
        frozenset(free), upper_bounds(t.conjuncts(known), below=True), shifts=shifts,
        above_zero=frozenset(x for x, (low, _) in t.bounds_of(known).items() if low >= 1),
        unbounded=frozenset(unbounded), floors=lower_bounds(t.conjuncts(known)),
    )  # fmt: skip
    separated = [reader.separate(part.args[0]) for part in parts]
    if all(found is None for found in separated):
        return None
    left = (part for part, found in zip(parts, separated, strict=True) if found is None)
    if any(found is _IMPOSSIBLE for found in separated):
        return Digits(True, t.FALSE, tuple(reader.assumed), tuple(reader.rows), tuple(shifts or ()))
    equations = reader.closed([*(e for found in separated for e in found or ()), *_said_of_both(p.guards)])
    agreed = {a for a, b in equations if _renamed(a) is b}
    told_apart = [axes[a] for a in (TID if p.pair.relation.same_block else BID) if not axes[a].is_const]
    refuted = all(_first(axis) in agreed for axis in told_apart)
    equal = t.and_(*(t.eq(a, b) for a, b in equations), *left)
    equal = equal if p is rounds else t.and_(equal, p.guards)
    return Digits(refuted, equal, tuple(reader.assumed), tuple(reader.rows), tuple(shifts or ()))


_Equation = tuple[Term, Term]
_IMPOSSIBLE: list[_Equation] = []
"""Compared by identity: the difference cannot be 0."""


def _first(symbol: Term) -> Term:
    return t.symbol(f"{symbol.args[0]}#1", symbol.args[1], symbol.lo, symbol.hi)


def _renamed(term: Term) -> Term:
    """The first thread's term as the second one has it."""
    return t.renamed(term, lambda x: f"{x.args[0][:-2]}#2" if x.args[0].endswith("#1") else None, {})


def _said_of_both(guards: Term) -> list[_Equation]:
    """What conditions say to be one value in both threads: ``c % 2 == 0``."""
    conditions = [part for part in t.conjuncts(guards) if part.op is Op.EQ and side(part) == FIRST]
    others = set(t.conjuncts(guards)) if conditions else set[Term]()
    both = (part.args[0] for part in conditions if _renamed(part) in others)
    values = (t.from_monomials({m: c for m, c in t.monomials(x).items() if any(map(side, m))}) for x in both)
    return [(value, _renamed(value)) for value in values]


# ----------------------------------------------------------------------------------------- digits


@frozen(eq=False)
class _Limiting:
    """What bounds of digits are made of.

    ``products``: of a digit and a weight, which are bounded together. ``divides``: quotients of sizes are
    bounds: ``x / d``, each of weight ``d``, is no more than ``x``.
    """

    products: frozenset[t.Monomial]
    divides: bool


@define(eq=False)
class _Reader(Sizes):
    """Separates equations. ``unbounded``: columns, of which ``rows`` are taken not to overlap for it."""

    unbounded: frozenset[Term] = frozenset()
    rows: dict[Term, None] = field(factory=dict[Term, None])
    _separated: dict[Term, tuple[list[_Equation] | None, dict[Term, None]]] = field(
        factory=dict[Term, "tuple[list[_Equation] | None, dict[Term, None]]"]
    )
    _kept_apart: dict[_Cut, bool] = field(factory=dict["_Cut", bool])
    _reached: dict[frozenset[_Weighted], list[Term]] = field(
        factory=dict["frozenset[_Weighted]", "list[Term]"]
    )
    _in_common: dict[tuple[Term, Term], list[Term]] = field(factory=dict[tuple[Term, Term], "list[Term]"])
    _limiting: _Limiting | None = None

    @property
    def limiting(self) -> _Limiting:
        """What the bounds of digits are made of, worked out once."""
        if self._limiting is None:
            products = (m for value in self.bounds for m in t.monomials(value) if len(m) > 1)
            parts = t.subterms(*(limit for limits in self.bounds.values() for limit in limits))
            divides = any(x.op is Op.DIV and side(x) == SHARED for x in parts)
            self._limiting = _Limiting(frozenset(products), divides)
        return self._limiting

    # -- separation

    def separate(self, difference: Term) -> list[_Equation] | None:
        """Equations that hold when the difference is 0; None when it cannot be taken apart.

        Worked out once, with the rows that it takes for granted.
        """
        if difference not in self._separated:
            before, self.rows = self.rows, {}
            equations = self._separate(difference)
            self._separated[difference] = equations, self.rows
            self.rows = before
        equations, rows = self._separated[difference]
        self.rows.update(rows)
        return equations

    def _separate(self, difference: Term) -> list[_Equation] | None:
        for apart in (False, True):
            parts = _parts(difference, apart)
            if parts is None or not 1 <= len(parts) <= budgets.MOST_DIGITS:
                return None
            best = self._best(parts)
            equations = self._equations(best)
            if equations is None or len(parts) == 1:
                equations = self._of_steps(parts) or equations
            if equations is not None or all(len(t.monomials(d.weight)) == 1 for d in parts):
                return self._of_planes(parts) if equations is None else equations
        return None

    def _best(self, parts: list[_Digit]) -> list[list[_Digit]]:
        """The digits, least weight first, cut in as many places as some order of them tells."""
        best: list[list[_Digit]] = []
        for order in _orders(sorted(parts, key=_size)):
            taken = dict(self.rows)
            runs = self._runs(order, len(best))
            if len(runs) > len(best):
                best = runs
            else:
                self.rows = taken
            if len(best) == len(parts):
                break  # each digit by itself: no order shows more
        return best

    def _of_planes(self, parts: list[_Digit]) -> list[_Equation] | None:
        """``plane * z + …``: the rest, whose top digit nothing bounds, is taken to stay within its plane.

        The weight of a plane need be no multiple of what stands below it, but is no part of one unit there:
        it would hold nothing else (``(y * heads + r) * rows + h`` is no ``y`` in planes of ``rows``).
        """
        for top in parts if self.unbounded and len(parts) > 2 else ():
            taken, rest = dict(self.rows), [digit for digit in parts if digit is not top]
            runs = self._best(rest)
            if any(self.divided(d.weight, top.weight) is not None for d in runs[-1]):
                continue
            equations = self._equations(runs)
            columns = (list(itertools.chain(*runs[i:])) for i in range(len(runs) - 1, -1, -1))
            within = (self._in_rows(top, column, runs[0][0].weight) for column in columns)
            if equations and equations is not _IMPOSSIBLE and any(within):
                return [*equations, (t.add(top.first, t.const(top.shift)), top.second)]
            self.rows = taken
        return None

    def _of_steps(self, parts: list[_Digit]) -> list[_Equation] | None:
        """``size * z / 4 + …``, where the rest reaches from no such step to the next.

        The step need be no whole number: two of them are apart by what one is, rounded down, or more.
        """
        for low in (d for d in parts if d.weight is t.ONE):
            for step, size, top in _steps_of(low):
                own = evolve(low, first=t.sub(low.first, step), second=t.sub(low.second, _renamed(step)))
                rest = [own if d is low else d for d in parts]
                rest = [d for d in rest if not (d.first is d.second is t.ZERO and d.shift == 0)]
                taken, runs = dict(self.rows), self._best(rest)
                most = self._differ_below(runs[-1], rest) if runs and runs[-1] else [t.ONE]
                by = t.const(step.args[1])
                if any(self.at_least(size, t.mul(by, limit)) for limit in most):
                    equations = self._equations(runs) if rest else list[_Equation]()
                    if equations is not None and equations is not _IMPOSSIBLE:
                        return [*equations, (top, _renamed(top))]
                self.rows = taken
        return None

    def _runs(self, ordered: list[_Digit], known: int) -> list[list[_Digit]]:
        """The digits, least weight first, cut where what lies below is less than one unit of the next.

        Above a cut, all weights are multiples of that unit. What will not be more than the ``known`` runs of
        another order is not looked at to its end.
        """
        runs: list[list[_Digit]] = [[]]
        for i, digit in enumerate(ordered):
            if len(runs) + len(ordered) - max(i, 1) <= known:
                break
            if runs[-1] and self._is_cut(digit, runs[-1], ordered[:i], ordered[i + 1 :]):
                runs.append([])
            runs[-1].append(digit)
        return runs

    def _is_cut(self, digit: _Digit, run: list[_Digit], below: list[_Digit], above: list[_Digit]) -> bool:
        if not all(self.divided(d.weight, digit.weight) for d in above):
            return False
        return self._apart(digit, run, below) or self._in_rows(digit, run, run[0].weight)

    def _apart(self, digit: _Digit, run: list[_Digit], below: list[_Digit]) -> bool:
        """Everything below the digit differs by less than its weight.

        That is less than one unit of the run below, and what the run's digits differ by. Orders of digits
        have most of their cuts in common.
        """
        key = (digit, *run), frozenset(below)
        if key not in self._kept_apart:
            self._kept_apart[key] = self._apart_anew(digit, run, below)
        return self._kept_apart[key]

    def _apart_anew(self, digit: _Digit, run: list[_Digit], below: list[_Digit]) -> bool:
        if any(self._exceeds(d, digit.weight) for d in below):
            return False
        return any(self.at_least(digit.weight, limit) for limit in self._differ_below(run, below))

    def _differ_below(self, run: list[_Digit], below: list[_Digit]) -> list[Term]:
        """What everything below differs by less than; ``run``: the top of it."""
        unit = run[0].weight
        within = [self.divided(d.weight, unit) for d in run]
        weights = [w for w in within if w is not None]
        candidates: list[Term] = []
        if len(weights) == len(run):
            candidates += [t.mul(unit, limit) for limit in self._reach(run, weights)]
        if len(below) > 1 or unit is not t.ONE:
            candidates += self._reach(below, [d.weight for d in below], alone=False)
        return candidates

    def _exceeds(self, digit: _Digit, weight: Term) -> bool:
        """The digit's own weight is no part of this one, nor does a condition bound what it makes of it.

        What the digit ranges over is so many times its weight, which ``at_least`` will not find in the other.
        """
        room, parts = t.monomials(weight), t.monomials(digit.weight)
        if self.limiting.divides or all(any(t.without(m, part) is not None for m in room) for part in parts):
            return False
        value = digit.second if digit.first is t.ZERO else digit.first
        made = (part + atoms for part in parts for atoms in t.monomials(value))
        return not any(tuple(sorted(m, key=lambda atom: atom.order)) in self.limiting.products for m in made)

    def _reach(self, digits: Sequence[_Digit], weights: Sequence[Term], alone: bool = True) -> list[Term]:
        """What the digits' difference, with these weights, stays below: all together, and each ``alone``."""
        weighted = list(zip(digits, weights, strict=True))
        ends = ([part for part in weighted if part[0].back is back] for back in (False, True))
        each = [[part] for part in weighted] if len(weighted) > 1 and alone else []
        found: list[Term] = []
        for parts in ([end for end in ends if end], each):
            most = itertools.product(*map(self._together, parts)) if parts else ()
            found += [t.add(t.ONE, *choice) for choice in itertools.islice(most, budgets.MOST_BOUNDS)]
        return found

    def _together(self, weighted: Sequence[_Weighted]) -> list[Term]:
        """What the difference of digits is at most that are all counted from one end."""
        key = frozenset(weighted)
        if key not in self._reached:
            self._reached[key] = self._together_anew(weighted)
        return self._reached[key]

    def _together_anew(self, weighted: Sequence[_Weighted]) -> list[Term]:
        if all(d.first is t.ZERO and d.second is t.ZERO for d, _ in weighted):
            return [t.add(*(t.scale(w, abs(d.shift)) for d, w in weighted))]
        if len(weighted) == 1 and not weighted[0][0].shift:
            ((digit, weight),) = weighted
            most = (*self._common(digit.first, digit.second), *self._spans(digit.first, digit.second))
            found = [t.mul(weight, t.sub(x, t.ONE)) for x in most]
            if weight is t.ONE:
                return found
            sides = (t.mul(weight, digit.first), t.mul(weight, digit.second))  # ``2 * i < n``
            return [*found, *(t.sub(x, t.ONE) for x in self._common(*sides))]
        first = _weighted((w, d.first, max(d.shift, 0)) for d, w in weighted)
        second = _weighted((w, d.second, max(-d.shift, 0)) for d, w in weighted)
        return [t.sub(x, t.ONE) for x in self._common(first, second)]

    def _in_rows(self, digit: _Digit, run: list[_Digit], unit: Term) -> bool:
        """What stands below is a column that may be taken to stay within its row, as wide as sizes say.

        ``run``: the top of the column, in which so many ``unit``s count.
        """
        width = self.divided(digit.weight, unit)
        names = [x for x in t.subterms(width) if x.op is Op.SYMBOL] if width is not None else []
        if width is None or not names or len(t.monomials(width)) > 1 or any(d.shift for d in run):
            return False
        if not self._is_unbounded(run, run[0].weight) or any(x.args[0] not in self.free for x in names):
            return False
        if not self.sound(digit.weight):
            return False
        self.rows[width] = None
        return True

    def _is_unbounded(self, run: list[_Digit], unit: Term) -> bool:
        """The run is one column of both threads, and nothing tells how far that reaches."""
        within = [self.divided(d.weight, unit) for d in run]
        weights = [w for w in within if w is not None]
        if len(weights) < len(run) or len({d.back for d in run}) > 1:
            return False
        column = t.add(*(t.mul(w, d.first) for w, d in zip(weights, run, strict=True)))
        other = t.add(*(t.mul(w, d.second) for w, d in zip(weights, run, strict=True)))
        return _divided(column) in self.unbounded and other is _renamed(column)

    def _common(self, first: Term, second: Term) -> list[Term]:
        """What the difference of two terms that are not negative stays below."""
        if (first, second) not in self._in_common:
            self._in_common[first, second] = self._common_anew(first, second)
        return self._in_common[first, second]

    def _common_anew(self, first: Term, second: Term) -> list[Term]:
        if t.ZERO in (first, second):
            return self.limits(t.add(first, second))
        limits, others = self.limits(first), self.limits(second)
        numbers = [min((x.value for x in found if x.is_const), default=None) for found in (limits, others)]
        most = [t.const(max(n for n in numbers if n is not None))] if None not in numbers else []
        return list(dict.fromkeys((*(limit for limit in limits if limit in others), *most)))

    def _spans(self, first: Term, second: Term) -> Iterator[Term]:
        """The same by both ends of what the two range over: ``r <= y + h < H + r``."""
        floors = [x for x in self.floors.get(first, ()) if x in self.floors.get(second, ())]
        for limit in self.bounds.get(first, ()) if floors else ():
            if side(limit) == SHARED and limit in self.bounds.get(second, ()):
                yield from (t.sub(limit, floor) for floor in floors)

    def _equations(self, runs: list[list[_Digit]]) -> list[_Equation] | None:
        if not runs or (len(runs) == 1 and len(runs[0]) > 1) or not self.not_zero(runs[0][0].weight):
            return None
        found: list[_Equation] = []
        for run in runs:
            if len(run) == 1:
                (digit,) = run
                if digit.first is t.ZERO and digit.second is t.ZERO:
                    if digit.shift:
                        return _IMPOSSIBLE
                    continue
                found.append((t.add(digit.first, t.const(digit.shift)), digit.second))
                continue
            weights = [self.divided(d.weight, run[0].weight) for d in run]
            if not all(weights) or not self.sound(run[0].weight):
                weights = [d.weight for d in run]
            signs = (-1 if d.back else 1 for d in run)
            pairs = [(t.scale(w, sign), d) for w, d, sign in zip(weights, run, signs, strict=True) if w]
            first = _weighted((w, d.first, d.shift) for w, d in pairs)
            second = _weighted((w, d.second, 0) for w, d in pairs)
            inner = self.separate(t.sub(first, second))
            if inner is _IMPOSSIBLE:
                return _IMPOSSIBLE
            found += inner if inner is not None else [(first, second)]
        return found

    # -- consequences

    def closed(self, equations: list[_Equation]) -> list[_Equation]:
        """With what follows: an index whose quotient and remainder agree, the digits of what agrees."""
        found = dict.fromkeys(equations)
        for _ in range(budgets.MOST_DIGIT_ROUNDS):
            before = len(found)
            for a, b in list(found):
                if (a,) in t.monomials(a):
                    continue
                inner = self.separate(t.sub(a, b))
                if inner is not None and inner is not _IMPOSSIBLE:
                    found.update(dict.fromkeys(inner))
            agreed = [a for a, b in found if _renamed(a) is b]
            quotients = dict.fromkeys(map(self.quotient, agreed))
            for a in agreed:
                turned = self._turned(a)
                if turned is not None:
                    found[turned, _renamed(turned)] = None
                for other, by in quotients:  # what is less than the divisor is its own remainder
                    if _congruent(other, a, t.ONE, by) and self._is_top(a, by) and self.sound(by):
                        found[other, _renamed(other)] = None
                remainder = self.remainder(a)
                if remainder is None:
                    continue
                index, divisor = remainder
                x, outer = self.quotient(index)
                whole = t.mul(outer, divisor)
                if self._is_top(x, whole) and self.sound(outer, divisor):
                    found[index, _renamed(index)] = None
                    continue
                for other, by in quotients:
                    if by is whole and _congruent(other, x, outer, divisor) and self.sound(outer, divisor):
                        y = index if other is x else other
                        found[y, _renamed(y)] = None
            if len(found) == before:
                break
        return list(found)

    def _turned(self, a: Term) -> Term | None:
        """``i`` of ``(i + s) % n``, of which equal values are those of equal ``i`` where ``i < n``."""
        parts = remainder_of(a)
        if parts is None:
            return None
        index, divisor = parts
        own = t.from_monomials({m: c for m, c in t.monomials(index).items() if any(map(side, m))})
        if own is index or side(divisor) != SHARED or not self.sound(divisor):
            return None
        return own if self.not_negative(own) and self._is_top(own, divisor) else None

    def _is_top(self, x: Term, whole: Term) -> bool:
        """Both threads' index stays below ``whole``: its quotient by that is 0."""
        return any(self.at_least(whole, limit) for limit in self._common(x, _renamed(x)))


def _steps_of(low: _Digit) -> Iterator[tuple[Term, Term, Term]]:
    """``size * x / d``, rounded down, in both threads' number; with the size, which they share, and ``x``."""
    others = t.monomials(low.second)
    for atoms, factor in t.monomials(low.first).items():
        step = atoms[0] if len(atoms) == 1 and factor == 1 else t.ZERO
        if step.op is not Op.FLOOR_DIV or others.get((_renamed(step),)) != 1:
            continue
        products = t.monomials(step.args[0])
        ((inside, times),) = products.items() if len(products) == 1 else (((), 0),)
        own = tuple(x for x in inside if side(x))
        if own and times > 0:
            size = t.from_monomials({tuple(x for x in inside if not side(x)): times})
            yield step, size, t.from_monomials({own: 1})


def _weighted(parts: Iterable[tuple[Term, Term, int]]) -> Term:
    """The sum of ``weight * (term + number)``."""
    products = (((w, x), 1, (w,), n) for w, x, n in parts)
    return t.sum_of_products(item for a, one, b, n in products for item in ((a, one), (b, n)))


def _congruent(a: Term, b: Term, outer: Term, divisor: Term) -> bool:
    """Both have the same remainder: they are one, or differ by multiples of the divisor."""
    if a is b or outer is not t.ONE:
        return a is b
    a, b = _before_remainders(a, divisor), _before_remainders(b, divisor)
    return a is b or (divisor.is_const and t.content(t.sub(a, b)) % divisor.value == 0)


def _before_remainders(a: Term, divisor: Term) -> Term:
    """``x`` of ``x % d``, as often as the divisor divides ``d``: both have the same remainder by it."""
    while (parts := remainder_of(a)) is not None and exactly_divided(parts[1], divisor) is not None:
        a = parts[0]
    return a


def _divided(a: Term) -> Term:
    """``x`` of ``x / d``, where both threads have the same ``d``."""
    by_shared = a.op is Op.FLOOR_DIV or (a.op is Op.DIV and side(a.args[1]) == SHARED)
    return a.args[0] if by_shared else a


def _size(digit: _Digit) -> tuple[int, int, bool]:
    """Of a weight: degree, coefficients, and quotients before what they are parts of."""
    sums = t.monomials(digit.weight)
    whole = not any(a.op in (Op.DIV, Op.FLOOR_DIV) for m in sums for a in m)
    return max(len(m) for m in sums), sum(abs(c) for c in sums.values()), whole


def _orders(ordered: list[_Digit]) -> Iterable[list[_Digit]]:
    """Bases of different parameters are not ordered by their looks: any may be the top, or that of a row."""
    for top in reversed(ordered):
        yield [d for d in ordered if d is not top] + [top]
    for base in ordered:
        row = [d for d in ordered if exactly_divided(d.weight, base.weight) is not None]
        if 1 < len(row) < len(ordered):
            yield [d for d in ordered if d not in row] + row


def _parts(difference: Term, apart: bool) -> list[_Digit] | None:
    """The difference by weight; None when it is not of the form.

    ``apart``: a weight that is a sum counts as one weight each: ``k`` steps of ``height*pitch + width``.
    """
    weights: dict[tuple[int, t.Monomial, t.Monomial], dict[t.Monomial, int]] = {}
    for atoms, factor in t.monomials(difference).items():
        varying = tuple(a for a in atoms if side(a))
        whose = SHARED
        for atom in varying:
            whose |= side(atom)
        if whose == MIXED:
            return None
        shared = tuple(a for a in atoms if not side(a))
        weights.setdefault((whose, varying, shared if apart and varying else ()), {})[shared] = factor
    remainder = weights.pop((SHARED, (), ()), {})
    signs = {whose == FIRST: c > 0 for (whose, *_), sums in weights.items() for c in sums.values()}
    sign = 1 if signs.get(True, not signs.get(False, False)) else -1
    parts: dict[tuple[Term, bool], _Digit] = {}
    for (whose, varying, _), sums in weights.items():
        direction = sign if whose == FIRST else -sign
        back = all(c * direction < 0 for c in sums.values())
        direction = -direction if back else direction
        weight = t.from_monomials({m: c * direction for m, c in sums.items()})
        if any(c < 0 for c in t.monomials(weight).values()):
            return None  # a weight that is a difference
        known = parts.get((weight, back), _Digit(weight, t.ZERO, t.ZERO, back=back))
        value = t.from_monomials({varying: 1})
        if whose == FIRST:
            parts[weight, back] = evolve(known, first=t.add(known.first, value))
        else:
            parts[weight, back] = evolve(known, second=t.add(known.second, value))
    for weight, factor in _apportioned(remainder, [weight for weight, _ in parts]):
        back = (weight, True) in parts and (weight, False) not in parts
        known = parts.get((weight, back), _Digit(weight, t.ZERO, t.ZERO))
        parts[weight, back] = evolve(known, shift=-factor * sign if back else factor * sign)
    return list(parts.values())


def _apportioned(shared: Mapping[t.Monomial, int], weights: Iterable[Term]) -> Iterator[tuple[Term, int]]:
    """What both threads have in the difference, by weight; a number as one whose digits have these weights.

    ``768`` is twelve times ``64``, where columns of 64 are counted.
    """
    left = shared.get((), 0)
    for weight in sorted((w.value for w in weights if w.is_const and w.value > 1), reverse=True):
        times = abs(left) // weight * (1 if left > 0 else -1)
        if times:
            yield t.const(weight), times
            left -= times * weight
    if left:
        yield t.ONE, left
    yield from ((t.from_monomials({m: 1}), c) for m, c in shared.items() if m)
