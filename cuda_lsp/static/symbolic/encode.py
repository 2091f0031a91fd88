"""Terms → Z3: integers, or bit-vectors where bit operators occur.

In the integer theory bit operators and pure intrinsics are abstracted as unknown functions (a proof
stays a proof; a model is then only a candidate); unknown values are congruent: equal operands, equal
value.  Defining facts of loop exits are added for every exit that a formula mentions.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import define, field

from cuda_lsp.static import budgets
from cuda_lsp.static.symbolic import nodes
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import Fact, Summary
from cuda_lsp.static.symbolic.nodes import Z3, z3
from cuda_lsp.static.symbolic.terms import BIT_OPS, Level, Op, Term

_FAR = 1 << 62
"""From 0, for a number of 64 bits."""
_WORD, _SPARE = 32, 2
"""Bits of an ordinary number, and beside those of the largest: its sign, and one for sums."""


def base_name(name: str) -> str:
    """The function's name without its thread number."""
    return name[:-2] if name.endswith(("#1", "#2")) else name


def closure(formula: Term, summary: Summary, shared: Level) -> Term:
    """The formula with the facts of every loop exit and number in it (``shared``: as ``affine.copy_of``)."""
    facts = {**summary.facts, **summary.limits, **summary.invariants}
    done: set[Term] = set()
    result = formula
    while True:
        exits = [
            p for p in t.subterms(result)
            if p.op is Op.APPLY and base_name(p.args[0]) in facts and p not in done
        ]  # fmt: skip
        if not exits:
            return result
        for application in exits:
            done.add(application)
            result = t.and_(result, _instance(application, facts, shared))


def _instance(application: Term, facts: Mapping[str, Fact], shared: Level) -> Term:
    """The defining fact of one loop exit, for the thread that the application belongs to."""
    from cuda_lsp.static.symbolic.affine import copy_of

    name = application.args[0]
    fact = facts[base_name(name)]
    general = fact.fact if name == base_name(name) else copy_of(fact.fact, int(name[-1]), shared, {})
    return t.substitute(general, dict(zip(fact.formals, application.args[2], strict=True)))


def has_bits(formula: Term) -> bool:
    """Operators on bits occur in it, or functions of bits that are known."""
    parts = t.subterms(formula)
    return any(p.op in BIT_OPS or (p.op is Op.INTRINSIC and p.args[0] in _OF_BITS) for p in parts)


@define
class Encoder:
    """One formula in one theory. ``width`` None: integers; else bit-vectors of so many bits.

    ``linear``: products of unknowns, and quotients by them, are unknowns themselves, of which only signs and
    ``x == d*(x/d) + x%d`` are known, and that quotient and remainder together are of one number: linear
    arithmetic, where a contradiction is found at once.
    """

    width: int | None = None
    linear: bool = False
    few: int = 0
    """With ``linear``: numbers up to it are told what they multiply by at most."""
    constraints: list[Z3] = field(factory=list[Z3])
    _context: Any = None
    names: dict[Term, Z3] = field(factory=dict[Term, Z3])
    _done: dict[Term, Z3] = field(factory=dict[Term, Z3])
    _products: dict[t.Monomial, Z3] = field(factory=dict["t.Monomial", Z3])
    _dividends: dict[Term, dict[Term, None]] = field(factory=dict[Term, dict[Term, None]])
    _applications: dict[str, list[tuple[list[Z3], Z3]]] = field(factory=dict[str, list[tuple[list[Z3], Z3]]])
    inexact: bool = False
    """Something was abstracted: a model is only a candidate."""

    @property
    def context(self) -> Any:
        """Of Z3, made when it is needed: for what there is no time to ask it never is.

        One for each formula: answers depend on all that was ever asked in it, and on when Python gave back
        what was asked.
        """
        if self._context is None:
            self._context = z3().Context()
        return self._context

    def encode(self, term: Term) -> Z3:
        """The term in Z3; ``constraints`` then say what its parts are."""
        known = self._done.get(term)
        if known is None:
            known = self._encode(term)
            self._done[term] = known
        return known

    # -- leaves

    def _number(self, value: int) -> Z3:
        return (
            z3().IntVal(value, self.context)
            if self.width is None
            else z3().BitVecVal(value, self.width, self.context)
        )

    def _variable(self, name: str, term: Term, most: int = 1 << 31) -> Z3:
        """``most``: how far from 0 bit-vectors let a number be of which nothing says it."""
        width = self.width
        variable = z3().Int(name, self.context) if width is None else z3().BitVec(name, width, self.context)
        limited = width is not None and width > _WORD + _SPARE
        lo = int(term.lo) if math.isfinite(term.lo) else -most if limited else None
        hi = int(term.hi) if math.isfinite(term.hi) else most - 1 if limited else None
        self.constraints += [] if lo is None else [self._at_most(self._number(lo), variable)]
        self.constraints += [] if hi is None else [self._at_most(variable, self._number(hi))]
        return variable

    def _application(self, function: str, operands: tuple[Term, ...], value: Z3) -> Z3:
        mine = [self.encode(operand) for operand in operands]  # before looking at others: they may nest
        for others, other in self._applications.setdefault(function, []):
            if len(others) == len(mine):
                same = [nodes.equal(a, b) for a, b in zip(mine, others, strict=True)]
                alike = nodes.equal(value, other)
                self.constraints.append(nodes.implied(nodes.both(*same), alike) if same else alike)
        self._applications[function].append((mine, value))
        return value

    # -- operations

    def _encode(self, term: Term) -> Z3:
        op, args = term.op, term.args
        if op is Op.CONST:
            return self._number(term.value)
        if op in (Op.TRUE, Op.FALSE):
            return z3().BoolVal(op is Op.TRUE, self.context)
        if op is Op.SYMBOL:
            self.names[term] = self._variable(args[0], term)
            return self.names[term]
        if op is Op.APPLY:
            self.names[term] = self._variable(f"{args[0]}!{term.order}", term)
            return self._application(args[0], args[2], self.names[term])
        if op is Op.TEST:
            self.names[term] = z3().Bool(f"{args[0]}!{term.order}", self.context)
            return self._application(args[0], args[2], self.names[term])
        if op is Op.SUM:
            return self._sum(args[0])
        if op in (Op.AND, Op.OR):
            parts = [self.encode(part) for part in args]
            return nodes.both(*parts) if op is Op.AND else nodes.either(*parts)
        if op is Op.NOT:
            return nodes.negated(self.encode(args[0]))
        if op in (Op.LE, Op.EQ):
            return self._comparison(op, args[0])
        if op is Op.ITE:
            return z3().If(*(self.encode(part) for part in args))
        return self._arithmetic(term)

    def _sum(self, items: Iterable[tuple[t.Monomial, int]]) -> Z3:
        total: Z3 = None
        for atoms, factor in items:
            product: Z3 = None
            if self.linear and len(atoms) > 1:
                product = self._product(atoms)
            else:
                for atom in atoms:
                    part = self.encode(atom)
                    product = part if product is None else self._times(product, part)
            if product is None:
                product = self._number(factor)
            elif factor != 1:
                product = self._times(product, self._number(factor))
            total = product if total is None else self._plus(total, product)
        return self._number(0) if total is None else total

    def _product(self, atoms: t.Monomial) -> Z3:
        """A product as an unknown of its own: not negative, and no less than a factor, where that holds."""
        known = self._products.get(atoms)
        if known is not None:
            return known
        self.inexact = True
        low, high = t.monomial_range(atoms)
        value = z3().Int("product!" + "*".join(str(atom.order) for atom in atoms), self.context)
        self._products[atoms] = value
        if math.isfinite(low):
            self.constraints.append(nodes.at_most(self._number(int(low)), value))
        if math.isfinite(high):
            self.constraints.append(nodes.at_most(value, self._number(int(high))))
        for factor, other in (atoms, atoms[::-1]) if self.few and len(atoms) == 2 else ():
            a, b = self.encode(factor), self.encode(other)
            small = z3().And(a >= 0, a <= self.few, b >= 0)
            self.constraints.append(z3().Implies(small, z3().And(value >= 0, value <= self.few * b)))
        if len(atoms) == 2 and all(atom.lo >= 0 for atom in atoms):
            for factor, other in (atoms, atoms[::-1]):
                if factor.lo >= 1:
                    self.constraints.append(value >= int(factor.lo) * self.encode(other))
                if math.isfinite(factor.hi):
                    self.constraints.append(value <= int(factor.hi) * self.encode(other))
        return value

    def _comparison(self, op: Op, difference: Term) -> Z3:
        """Negative monomials go to the other side, so that bit-vectors do not wrap in between."""
        sums = t.monomials(difference)
        a = self._sum((m, c) for m, c in sums.items() if c > 0)
        b = self._sum((m, -c) for m, c in sums.items() if c < 0)
        return self._at_most(a, b) if op is Op.LE else nodes.equal(a, b)

    def _plus(self, a: Z3, b: Z3) -> Z3:
        return nodes.plus(a, b) if self.width is None else a + b

    def _times(self, a: Z3, b: Z3) -> Z3:
        return nodes.times(a, b) if self.width is None else a * b

    def _at_most(self, a: Z3, b: Z3) -> Z3:
        return nodes.at_most(a, b) if self.width is None else a <= b

    def _arithmetic(self, term: Term) -> Z3:
        op, args = term.op, term.args
        if op is Op.FLOOR_DIV:
            return self._floor_div(self.encode(args[0]), args[1], args[0].lo >= 0)
        if op is Op.FLOOR_MOD:
            return self._floor_mod(self.encode(args[0]), args[1], args[0].lo >= 0)
        if op in (Op.DIV, Op.REM):
            return self._divided(term) if self.linear else self._quotient(op, args[0], args[1])
        if op is Op.WRAP:
            return self._wrap(args[0], args[1], args[2])
        if op is Op.POWER:
            return self._power(term)
        return self._intrinsic(term) if op is Op.INTRINSIC else self._bits(term)

    def _intrinsic(self, term: Term) -> Z3:
        """What is made of the bits of its operand, where these are seen; else an unknown function."""
        name, type, operands = term.args
        of_bits = _OF_BITS.get(name)
        if of_bits is not None and self.width is not None and self.width >= type.bits:
            operand = self.encode(operands[0])
            return of_bits([z3().Extract(i, i, operand) for i in range(type.bits)], self.width, type.signed)
        self.inexact = True
        return self._application(name, operands, self._variable(f"{name}!{term.order}", term))

    def _floor_div(self, a: Z3, divisor: int, positive: bool) -> Z3:
        if self.width is None:
            return a / divisor
        if divisor & (divisor - 1) == 0:
            return a >> (divisor.bit_length() - 1)
        d = self._number(divisor)
        return a / d if positive else z3().If(a >= 0, a / d, -((-a + d - 1) / d))

    def _floor_mod(self, a: Z3, divisor: int, positive: bool) -> Z3:
        if self.width is None:
            return a % divisor
        if divisor & (divisor - 1) == 0:
            return a & (divisor - 1)
        return a - self._floor_div(a, divisor, positive) * self._number(divisor)

    def _quotient(self, op: Op, a: Term, b: Term) -> Z3:
        x, y = self.encode(a), self.encode(b)
        if self.width is not None:
            return x / y if op is Op.DIV else z3().SRem(x, y)
        size = y if b.lo >= 0 else z3().If(y >= 0, y, -y)
        if op is Op.REM:
            return x % size if a.lo >= 0 else z3().If(x >= 0, x % size, -((-x) % size))
        magnitude = x / size if a.lo >= 0 else z3().If(x >= 0, x / size, -((-x) / size))
        return magnitude if b.lo >= 0 else z3().If(y >= 0, magnitude, -magnitude)

    def _divided(self, term: Term) -> Z3:
        """A quotient or remainder as an unknown; ``d*quotient + remainder`` is what was divided."""
        x, d = term.args
        self.inexact = True
        value = self._variable(f"{term.op.value}!{term.order}", term)
        self._done[term] = value
        dividend, divisor = self.encode(x), self.encode(d)
        quotient, remainder = self.encode(t.divide(x, d)), self.encode(t.remainder(x, d))
        whole = self.encode(t.mul(d, t.divide(x, d)))
        none, one = self._number(0), self._number(1)
        divides = nodes.both(
            nodes.equal(dividend, nodes.plus(whole, remainder)),
            nodes.at_most(none, quotient), nodes.at_most(quotient, dividend),
            nodes.at_most(none, remainder), nodes.at_most(remainder, dividend),
            nodes.negated(nodes.at_most(divisor, remainder)),
        )  # fmt: skip
        # By 0 nobody divides, but a condition may stand in front: `n ? i % n : 0`.
        natural = nodes.both(nodes.at_most(one, divisor), nodes.at_most(none, dividend))
        self.constraints.append(nodes.implied(natural, divides))
        self._tell_apart(x, d)
        return value

    def _tell_apart(self, x: Term, d: Term) -> None:
        """Numbers that agree in quotient and remainder are one, which takes no product to see."""
        others = self._dividends.setdefault(d, {})
        for y in [] if x in others or len(others) > budgets.MOST_REMAINDERS else list(others):
            both = ((t.divide(x, d), t.divide(y, d)), (t.remainder(x, d), t.remainder(y, d)))
            alike = nodes.both(*(nodes.equal(self.encode(a), self.encode(b)) for a, b in both))
            none = nodes.equal(self.encode(d), self._number(0))
            same = nodes.either(none, nodes.equal(self.encode(x), self.encode(y)))
            self.constraints.append(nodes.implied(alike, same))
        others[x] = None

    def _wrap(self, a: Term, bits: int, signed: bool) -> Z3:
        x = self.encode(a)
        low = -(1 << (bits - 1)) if signed else 0
        period = 1 << bits
        if self.width is not None:
            if self.width <= bits:
                return x
            part = z3().Extract(bits - 1, 0, x)
            extend = z3().SignExt if signed else z3().ZeroExt
            return extend(self.width - bits, part)
        if low - period <= a.lo and a.hi < low + 2 * period:
            return z3().If(x < low, x + period, z3().If(x >= low + period, x - period, x))
        return (x - low) % period + low

    def _power(self, term: Term) -> Z3:
        """A case for each exponent as far as it goes; of larger ones only how far the value is from 0."""
        start, factor, exponent, growing = term.args
        value = self._variable(f"power!{term.order}", term, _FAR)
        x, n = self.encode(start), self.encode(exponent)
        cases: list[Z3] = [n < 0]  # the round before the first: a term that nothing may rest on
        last, amount = int(min(exponent.hi, budgets.MOST_EXPONENT)), 1
        for i in range(last + 1):
            amount = factor**i
            if (start.lo > 0 and start.lo * amount > _FAR) if growing else start.hi // amount == 0:
                last = i - 1
                break
            reached = x * self._number(amount) if growing else self._floor_div(x, amount, True)
            cases.append(z3().And(n == i, value == reached))
        else:
            amount *= factor
        far, none = self._number(min(amount, _FAR)), self._number(0)
        if growing:
            beyond = z3().Or(z3().And(x == none, value == none), value >= far, value <= -far)
        else:
            most = none if start.hi // amount == 0 else self._floor_div(x, amount, True)
            beyond = z3().And(value >= none, value <= most)
        self.constraints.append(z3().Or(*cases, z3().And(n > last, beyond)))
        return value

    def _bits(self, term: Term) -> Z3:
        if self.width is None:
            self.inexact = True
            value = self._variable(f"bits!{term.order}", term)
            return self._application(term.op.value, term.args, value)
        a, b = (self.encode(part) for part in term.args)
        return _BITS[term.op](a, b)


_BITS: Mapping[Op, Callable[[Z3, Z3], Z3]] = {
    Op.BAND: lambda a, b: a & b,
    Op.BOR: lambda a, b: a | b,
    Op.BXOR: lambda a, b: a ^ b,
    Op.SHL: lambda a, b: a << b,
    Op.SHR: lambda a, b: a >> b,
}


def _reversed(bits: Sequence[Z3], width: int, signed: bool) -> Z3:
    extend = z3().SignExt if signed else z3().ZeroExt
    return extend(width - len(bits), z3().Concat(*bits))


def _counted(bits: Sequence[Z3], width: int, signed: bool) -> Z3:
    return functools.reduce(operator.add, (z3().ZeroExt(width - 1, bit) for bit in bits))


_OF_BITS: Mapping[str, Callable[[Sequence[Z3], int, bool], Z3]] = {
    "__brev": _reversed,
    "__brevll": _reversed,
    "__popc": _counted,
    "__popcll": _counted,
}
"""Intrinsics of the bits of their operand, the least first: a number of so many bits."""


def width_for(formula: Term) -> int:
    """Bits that hold every sub-term (two's complement, with a spare bit), ``MOST_BITS`` at most."""
    bits = 8
    for part in t.subterms(formula):
        for bound in (part.lo, part.hi):
            if not math.isfinite(bound):
                return budgets.MOST_BITS
            bits = max(bits, int(abs(bound)).bit_length() + _SPARE)
    return min(bits, budgets.MOST_BITS)
