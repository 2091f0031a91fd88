"""How large terms are: bounds that guards state, and comparisons of polynomials in positive parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from attrs import define, field, frozen

from cuda_lsp.static import budgets
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Op, Term

SHARED, FIRST, SECOND, MIXED = 0, 1, 2, 3
"""Whose a term is: of both threads alike, of one of them, of both at once (bits)."""


def side(term: Term) -> int:
    """Whose the term is."""
    if term.whose < 0:
        whose = SHARED
        if term.op in (Op.SYMBOL, Op.APPLY, Op.TEST):
            name = term.args[0]
            whose = FIRST if name.endswith("#1") else SECOND if name.endswith("#2") else SHARED
        for part in term.parts:
            whose |= side(part)
        term.whose = whose
    return term.whose


@frozen(eq=False)
class _Bound:
    """``value`` stays below ``limit``, or is no more than ``most``, of its thread, or below that."""

    value: Term
    limit: Term
    most: Term | None = None


_upper: dict[Term, _Bound | None] = t.memo()
_lower: dict[Term, tuple[Term, Term] | None] = t.memo()


def upper_bounds(guards: Iterable[Term], *, below: bool = False) -> dict[Term, list[Term]]:
    """Exclusive upper bounds that the guards state: term of one thread → shared terms.

    And other terms of the thread that it is no more than; ``below``: by which it is less, too.
    """
    found: dict[Term, list[Term]] = {}
    for guard in guards:
        if guard.op is not Op.LE:
            continue
        if guard not in _upper:
            _upper[guard] = _upper_bound(guard.args[0])
        bound = _upper[guard]
        if bound is None:
            continue
        if bound.most is None:
            found.setdefault(bound.value, []).extend((bound.limit, *_of_minimum(bound.limit)))
        elif below or bound.limit is t.ONE:
            found.setdefault(bound.value, []).append(bound.most)
    return found


def _upper_bound(difference: Term) -> _Bound | None:
    """What is bound where this is 0 at most."""
    varying: dict[t.Monomial, int] = {}
    shared: dict[t.Monomial, int] = {}
    for atoms, factor in t.monomials(difference).items():
        (varying if any(side(a) for a in atoms) else shared)[atoms] = factor
    if not varying or side(t.from_monomials(varying)) == MIXED:
        return None
    limit = t.sub(t.ONE, t.from_monomials(shared))
    positive = {m: c for m, c in varying.items() if c > 0}
    negative = {m: -c for m, c in varying.items() if c < 0}
    value = t.from_monomials(positive)
    if not negative:
        return _Bound(value, limit)
    if not limit.is_const or limit.value > 1:
        return None
    return _Bound(value, limit, t.add(t.from_monomials(negative), limit, t.const(-1)))


def _of_minimum(limit: Term) -> Iterator[Term]:
    """What a limit is no more than, as it has the smaller of two numbers in it: both of these."""
    for atoms, factor in t.monomials(limit).items():
        if factor > 0 and len(atoms) == 1 and atoms[0].op is Op.ITE:
            condition, then, otherwise = atoms[0].args
            if condition in (t.le(then, otherwise), t.lt(then, otherwise)):
                rest = t.sub(limit, t.scale(atoms[0], factor))
                yield from (t.add(rest, t.scale(part, factor)) for part in (then, otherwise))


def lower_bounds(guards: Iterable[Term]) -> dict[Term, list[Term]]:
    """What terms of one thread are at least, as the guards state: shared terms."""
    found: dict[Term, list[Term]] = {}
    for guard in guards:
        if guard.op is not Op.LE:
            continue
        if guard not in _lower:
            _lower[guard] = _lower_bound(guard.args[0])
        bound = _lower[guard]
        if bound is not None:
            found.setdefault(bound[0], []).append(bound[1])
    return found


def _lower_bound(difference: Term) -> tuple[Term, Term] | None:
    """What is bound where this is 0 at most, and what it is at least."""
    varying = {m: -c for m, c in t.monomials(difference).items() if any(map(side, m))}
    value = t.from_monomials(varying)
    if not varying or min(varying.values()) <= 0 or side(value) == MIXED:
        return None
    return value, t.add(difference, value)


def exactly_divided(a: Term, b: Term) -> Term | None:
    """The polynomial ``a / b`` when ``b`` divides ``a``."""
    if a is b:
        return t.ONE
    if b is t.ZERO:
        return None
    leading, by = _leading(b)
    result, rest = t.ZERO, a
    for _ in range(budgets.MOST_SIZE_TERMS):
        if rest is t.ZERO:
            return result
        atoms, factor = _leading(rest)
        remaining = t.without(atoms, leading)
        if remaining is None or factor % by:
            return None
        part = t.from_monomials({tuple(remaining): factor // by})
        result, rest = t.add(result, part), t.sub(rest, t.mul(part, b))
    return None


def remainder_of(term: Term) -> tuple[Term, Term] | None:
    """``(x, d)`` where the term is written ``x % d``, whatever their signs."""
    if term.op not in (Op.FLOOR_MOD, Op.REM):
        return None
    return term.args[0], t.const(term.args[1]) if term.op is Op.FLOOR_MOD else term.args[1]


def _leading(term: Term) -> tuple[t.Monomial, int]:
    """The monomial of the highest degree, of those the last in the order of atoms."""
    return max(t.monomials(term).items(), key=lambda item: (len(item[0]), [a.order for a in item[0]]))


def certainly_at_most(small: Term, large: Term, free: Iterable[str]) -> bool:
    """Whether ``small <= large`` for parameters (``free``) that are positive."""
    return Sizes(frozenset(free), {}).at_least(large, small)


def _times(part: Mapping[t.Monomial, int], whole: Mapping[t.Monomial, int]) -> Fraction | None:
    """What of the other sum this one is, where all its monomials are the same multiple of those there."""
    times = {Fraction(c, whole[m]) if m in whole else None for m, c in part.items()}
    (only,) = times if len(times) == 1 else (None,)
    return only if only is not None and only > 0 else None


@define(eq=False)
class Sizes:
    """How terms compare when ``free`` parameters are positive, which ``assumed`` were taken to be.

    ``bounds``: what conditions say, as ``upper_bounds``; ``floors``: as ``lower_bounds``; ``above_zero``:
    what they keep above 0. ``shifts``: parameters that were taken not to be negative; None: none may be.
    """

    free: frozenset[str]
    bounds: Mapping[Term, Sequence[Term]]
    assumed: dict[Term, None] = field(factory=dict[Term, None])
    shifts: dict[Term, None] | None = None
    above_zero: frozenset[Term] = frozenset()
    floors: Mapping[Term, Sequence[Term]] = field(factory=dict[Term, Sequence[Term]])
    _limits: dict[tuple[Term, int], list[Term]] = field(factory=dict[tuple[Term, int], "list[Term]"])
    _is_guarded: dict[Term, bool] = field(factory=dict[Term, bool])
    _divided: dict[tuple[Term, Term], Term | None] = field(factory=dict[tuple[Term, Term], "Term | None"])
    _compared: dict[tuple[Term, Term], bool] = field(factory=dict[tuple[Term, Term], bool])

    def divided(self, a: Term, b: Term) -> Term | None:
        """``exactly_divided``, worked out once."""
        if (a, b) not in self._divided:
            self._divided[a, b] = exactly_divided(a, b)
        return self._divided[a, b]

    def positive(self, atom: Term) -> bool:
        """The atom is at least 1: by its interval, by a guard (``0 <= x < atom``), or by assumption."""
        if atom.lo >= 1 or self._guarded(atom):
            return True
        names = [x for x in t.subterms(atom) if x.op is Op.SYMBOL]
        plain = all(x.op in (Op.SYMBOL, Op.CONST, Op.SUM, Op.DIV, Op.FLOOR_DIV) for x in t.subterms(atom))
        if not plain or not names or any(x.args[0] not in self.free for x in names):
            return False
        self.assumed[atom] = None
        return True

    def not_zero(self, weight: Term) -> bool:
        """Shown, not assumed: a stride may be 0, which is how threads meet."""
        sums = t.monomials(weight)
        return all(c > 0 for c in sums.values()) and all(
            a.lo >= 1 or self._guarded(a) for atoms in sums for a in atoms
        )

    def _guarded(self, atom: Term) -> bool:
        """What is not negative stays below it, or below it less something that is not negative either."""
        known = self._is_guarded.get(atom)
        if known is None:
            known = self._is_guarded[atom] = atom in self.above_zero or any(
                value.lo >= 0 and (atom is limit or t.sub(limit, atom).hi <= 0)
                for value, limits in self.bounds.items() for limit in limits
            )  # fmt: skip
        return known

    def at_least(self, large: Term, small: Term) -> bool:
        """``large >= small`` because every monomial of ``small`` is part of one of ``large``."""
        if (large, small) not in self._compared:
            self._compared[large, small] = self._at_least_anew(large, small)
        return self._compared[large, small]

    def _at_least_anew(self, large: Term, small: Term) -> bool:
        if small.hi <= large.lo:
            return True
        choice = next((a for m in t.monomials(small) for a in m if a.op is Op.ITE), None)
        if choice is not None:  # whichever it is
            return all(self.at_least(large, t.replacing({choice: x})(small)) for x in choice.args[1:])
        room = dict(t.monomials(large))
        if any(c < 0 for c in room.values()):
            return False
        positive: list[Term] = []
        natural: list[Term] = []
        for atoms, factor in t.monomials(self._unfloored(small)).items():
            if factor < 0:
                if not all(self._natural(a) for a in atoms):
                    return False
                continue
            for candidate, capacity in room.items():
                rest = t.without(candidate, atoms)
                if rest is not None and capacity >= factor:
                    room[candidate] = capacity - factor
                    positive += rest
                    natural += atoms
                    break
            else:
                return False
        natural += [a for m, c in room.items() if c for a in m]
        return all(map(self.positive, dict.fromkeys(positive))) and all(map(self._natural, natural))

    def _natural(self, atom: Term) -> bool:
        return self._rounds_up(atom) or self.positive(atom)

    def _unfloored(self, term: Term) -> Term:
        """No smaller: ``d * (x / d)`` as ``x``."""
        if not any(x.op is Op.DIV for x in term.parts):
            return term
        total: list[Term] = []
        for atoms, factor in t.monomials(term).items():
            value = t.from_monomials({atoms: factor})
            for atom in atoms if factor > 0 else ():
                if atom.op is not Op.DIV or atom.args[0].op is not Op.SYMBOL:
                    continue
                whole = exactly_divided(value, t.mul(atom, atom.args[1]))
                if whole is not None and self.positive(atom.args[0]) and self.sound(atom.args[1]):
                    value = t.mul(whole, atom.args[0])
                    break
            total.append(value)
        return t.add(*total)

    def not_negative(self, term: Term) -> bool:
        """By its interval, or as a sum of quotients by what is positive, and of multiples of that.

        Or as what a condition keeps above what is subtracted: ``i - n`` where ``n <= i``.
        """
        if term.lo >= 0 or self._is_above(term):
            return True
        if term.op is Op.DIV:
            return self.not_negative(term.args[0]) and self.sound(term.args[1])
        if term.op is Op.REM:
            return self.not_negative(term.args[0]) or self._is_shifted(term.args[0])
        if term.op is not Op.SUM:
            return False
        atoms = dict.fromkeys(a for m in t.monomials(term) for a in m)
        shared = [a for a in atoms if a.lo < 0 and side(a) == SHARED]
        if any(c < 0 for c in t.monomials(term).values()):
            return False
        return all(self.not_negative(a) for a in atoms if a not in shared) and all(map(self.positive, shared))

    def _is_above(self, term: Term) -> bool:
        """A condition says that it is not negative."""
        if not self.floors:
            return False
        own = t.from_monomials({m: c for m, c in t.monomials(term).items() if any(map(side, m))})
        rest = t.sub(term, own)
        return any(t.add(floor, rest).lo >= 0 for floor in self.floors.get(own, ()))

    def _is_shifted(self, index: Term) -> bool:
        """It is what is not negative, and parameters that are taken not to be: ``(i + s) % n``."""
        sums = t.monomials(index)
        shifts = [m[0] for m in sums if len(m) == 1 and m[0].lo < 0 and self._is_free(m[0])]
        rest = t.from_monomials({m: c for m, c in sums.items() if m not in {(x,) for x in shifts}})
        if self.shifts is None or not side(rest) or not self.not_negative(rest):
            return False
        if any(sums[(x,)] < 0 for x in shifts):
            return False
        self.shifts.update(dict.fromkeys(shifts))
        return True

    def _is_free(self, atom: Term) -> bool:
        return atom.op is Op.SYMBOL and atom.args[0] in self.free

    def quotient(self, term: Term) -> tuple[Term, Term]:
        """``(x, d)`` with ``term == x // d`` and ``x >= 0``, nested quotients as one."""
        if term.op in (Op.DIV, Op.FLOOR_DIV) and self.not_negative(term.args[0]):
            divisor = term.args[1] if term.op is Op.DIV else t.const(term.args[1])
            inner, outer = self.quotient(term.args[0])
            return inner, t.mul(outer, divisor)
        if term.op is Op.SUM and term.lo >= 0:
            parts = [m[0] for m, c in t.monomials(term).items() if c == 1 and len(m) == 1]
            parts = [x for x in parts if x.op is Op.FLOOR_DIV and x.args[0].lo >= 0]
            if len(parts) == 1:  # p + r // d  ==  (d*p + r) // d
                divisor = parts[0].args[1]
                whole = t.add(t.scale(t.sub(term, parts[0]), divisor), parts[0].args[0])
                inner, outer = self.quotient(whole)
                return inner, t.scale(outer, divisor)
        return term, t.ONE

    def remainder(self, term: Term) -> tuple[Term, Term] | None:
        """``(x, d)`` with ``term == x mod d`` and ``x >= 0``; of ``(x % 32) / 4``, ``x / 4`` and 8."""
        parts = remainder_of(term) or self._part_of_remainder(term)
        if parts is None or not (self.not_negative(parts[0]) or self._is_shifted(parts[0])):
            return None
        return parts

    def _part_of_remainder(self, term: Term) -> tuple[Term, Term] | None:
        """``(x / e, d / e)`` of ``(x % d) / e``, where ``e`` divides ``d``."""
        if term.op not in (Op.DIV, Op.FLOOR_DIV):
            return None
        inner = remainder_of(term.args[0])
        by = term.args[1] if term.op is Op.DIV else t.const(term.args[1])
        times = self.divided(inner[1], by) if inner is not None else None
        if inner is None or times is None or not (self.not_negative(inner[0]) and self.sound(by, times)):
            return None
        return t.divide(inner[0], by), times

    def limits(self, value: Term, rounds: int = budgets.MOST_BOUNDS) -> list[Term]:
        """Shared terms that ``value``, which is not negative, stays below."""
        known = self._limits.get((value, rounds))
        if known is None:
            known = self._limits[value, rounds] = self._limits_anew(value, rounds)
        return known

    def _limits_anew(self, value: Term, rounds: int, natural: bool = False) -> list[Term]:
        """``natural``: it is known that the value is not negative."""
        if rounds == 0 or not (natural or self.not_negative(value)):
            return []
        found: list[Term] = []
        varying = {m: c for m, c in t.monomials(value).items() if any(side(a) for a in m)}
        own = t.from_monomials(varying)
        for limit in self._limits_of_part(varying):
            if side(limit) == SHARED:
                found.append(t.add(limit, t.sub(value, own)))
            elif own is not value:
                continue
            else:  # value <= limit
                found += self._limits_anew(limit, rounds - 1, natural=True)
        found += self._limits_of_sum(value, rounds)
        remainder = self.remainder(value)
        if remainder is not None:
            found += [remainder[1]] if side(remainder[1]) == SHARED else []
            found += self.limits(remainder[0], rounds - 1)
        x, divisor = self.quotient(value)
        if x is not value and side(divisor) == SHARED and self.sound(divisor):
            parts = (exactly_divided(limit, divisor) for limit in self.limits(x, rounds - 1))
            found += [part for part in parts if part is not None]
            found += self._limits_of_quotient(x, divisor.value) if divisor.is_const else ()
            inner = value.args[0]
            if value.op is not Op.SUM and inner is not x:
                own = value.args[1] if value.op is Op.DIV else t.const(value.args[1])
                parts = (exactly_divided(limit, own) for limit in self.limits(inner, rounds - 1))
                found += [part for part in parts if part is not None]
        if value.hi < 1 << 62:
            found.append(t.const(int(value.hi) + 1))
        return list(dict.fromkeys(found))

    def _limits_of_sum(self, value: Term, rounds: int) -> list[Term]:
        """One more than what is at most of each of its parts: ``4 * x + y`` where ``x < n`` and ``y < 4``."""
        varying = {m: c for m, c in t.monomials(value).items() if any(map(side, m))}
        if not 1 < len(varying) == len(t.monomials(value)):
            return []
        least: list[Term] = []
        for atoms, factor in varying.items():
            limits = self.limits(t.from_monomials({atoms: 1}), rounds - 1)
            if not limits:
                return []
            least.append(t.scale(t.sub(limits[0], t.ONE), factor))
        return [t.add(t.ONE, *least)]

    def _limits_of_part(self, part: Mapping[t.Monomial, int]) -> list[Term]:
        """What bounds a sum of which this is a part, or a multiple of one, and the rest is not negative."""
        found: list[Term] = []
        for times, limits in self._bounds_of(part):
            if times.denominator == 1:  # value <= times * whole
                found += [t.scale(limit, times.numerator) for limit in limits]
            elif times.numerator == 1:
                found += limits
        return found

    def _bounds_of(self, part: Mapping[t.Monomial, int]) -> Iterator[tuple[Fraction, Sequence[Term]]]:
        """Bounds of sums that this is so many times a part of, and the rest is not negative."""
        natural = all(c > 0 and all(a.lo >= 0 for a in m) for m, c in part.items())
        for whole, limits in self.bounds.items():
            sums = t.monomials(whole)
            times = _times(part, sums)
            if times is None or not (natural or times.denominator == 1):
                continue
            if all(a.lo >= 0 for m in sums if m not in part for a in m):
                yield times, limits

    def _limits_of_quotient(self, x: Term, divisor: int) -> Iterator[Term]:
        """Of ``x // d`` where ``c * x < limit``: the limit divided by ``c * d``, rounded up."""
        for times, limits in self._bounds_of(t.monomials(x)):
            if times.numerator == 1:
                by = times.denominator * divisor
                shared = (limit for limit in limits if side(limit) == SHARED)
                yield from (t.divide(t.add(limit, t.const(by - 1)), t.const(by)) for limit in shared)

    def sound(self, *divisors: Term) -> bool:
        """Quotients nest, and remainders are what is left, for positive divisors."""
        return all(self._is_above_zero(t.monomials(d)) for d in divisors)

    def _is_above_zero(self, sums: Mapping[t.Monomial, int]) -> bool:
        """One more than what is not negative is positive, ``1 + (n - 1) / 64``; else each part is."""
        atoms = dict.fromkeys(a for m in sums for a in m)
        if any(c <= 0 for c in sums.values()):
            return False
        return (() in sums and all(map(self._rounds_up, atoms))) or all(map(self.positive, atoms))

    def _rounds_up(self, atom: Term) -> bool:
        """Not negative: by its interval, or as ``(n - 1) / 64`` where ``n`` is positive."""
        if atom.lo >= 0 or atom.op not in (Op.DIV, Op.FLOOR_DIV):
            return atom.lo >= 0
        sums, divisor = t.monomials(atom.args[0]), atom.args[1]
        least = sum(sums.values())
        known = isinstance(divisor, int) or divisor.lo >= 1
        if not known or least < 0 or any(c < 0 for m, c in sums.items() if m):
            return False
        return all(map(self.positive, dict.fromkeys(a for m in sums for a in m)))
