"""Symbolic values: integer and boolean terms over thread, launch, parameter, loop and data symbols.

An integer term is either an *atom* (a symbol, an uninterpreted value, a division, …) or a polynomial
over atoms in normal form, so that equal addresses are the same object and differences cancel.  Terms
are mathematical integers; where the machine wraps, ``wrap`` says so explicitly.  Equal terms are
identical (hash-consed), hence compared with ``is``.  Each term carries a sound interval.

This room: nodes and polynomials. ``integers`` and ``logic`` hold the other operations,
``rewrite`` substitution, ``text`` the printing; ``terms`` names them all.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cuda_lsp.static.work import DONE


class Level(enum.IntEnum):
    """Among which threads a symbol has one value."""

    GRID = 0
    BLOCK = 1
    WARP = 2
    THREAD = 3


class Op(enum.Enum):
    """What a term is made by, with the arguments of its node."""

    CONST = "const"
    SYMBOL = "symbol"  # args: name, Level
    APPLY = "apply"  # args: name, Level, operands: an unknown function of its operands
    SUM = "sum"  # args: ((monomial, coefficient), …)
    DIV = "div"  # truncating, as C
    REM = "rem"
    FLOOR_DIV = "floor-div"  # by a positive constant (>> and bit fields)
    FLOOR_MOD = "floor-mod"
    BAND = "&"
    BOR = "|"
    BXOR = "^"
    SHL = "<<"
    SHR = ">>"
    ITE = "ite"
    WRAP = "wrap"  # args: term, bits, signed
    POWER = "power"  # args: start, factor, exponent, growing: start*factor**exponent or start//…
    INTRINSIC = "intrinsic"  # args: name, Int type, operands
    # boolean
    TRUE = "true"
    FALSE = "false"
    LE = "<="  # args: term; true when it is <= 0
    EQ = "=="  # args: term; true when it is == 0
    NOT = "not"
    AND = "and"
    OR = "or"
    TEST = "test"  # args: name, Level, operands: an unknown predicate of its operands

    __hash__ = object.__hash__  # of members, which are one object each: interning hashes them all the time


BIT_OPS = frozenset({Op.BAND, Op.BOR, Op.BXOR, Op.SHL, Op.SHR})
INFINITY = math.inf
_UNKNOWN = frozenset({Op.SYMBOL, Op.APPLY, Op.TEST})
_UNKNOWN_BITS = 60  # an int of one or two machine words


class Term:
    """One hash-consed node. ``lo``/``hi``: a sound interval (``±inf`` when unbounded)."""

    __slots__ = ("args", "hi", "lo", "negation", "op", "order", "parts", "unknowns", "whose")

    op: Op
    args: tuple[Any, ...]
    lo: float
    hi: float
    order: int
    parts: tuple[Term, ...]
    """The direct sub-terms."""
    unknowns: int
    """Bits of the symbols, functions and predicates in it: who lacks those of another is not around it."""
    negation: Term | None
    """Of a condition, once somebody asked for it."""
    whose: int
    """Of which of two threads, once somebody asked (``digits.side``); -1 before."""

    def __hash__(self) -> int:  # no address: what goes by the order of a set is the same in every run
        return self.order

    def __repr__(self) -> str:  # for people: ``text.show``
        return f"{self.op.name}{self.args}"

    @property
    def is_const(self) -> bool:
        """It is a number."""
        return self.op is Op.CONST

    @property
    def value(self) -> int:
        """The integer of a constant."""
        return self.args[0]


_table: dict[tuple[Any, ...], Term] = {}
"""All of one kernel: one that was given back and made again would have another order, as Python's collector
happens to run."""
_order = itertools.count()
_permanent: list[Term] = []
"""Terms that modules made when they were imported."""
_memos: list[dict[Any, Any]] = []


def memo() -> dict[Any, Any]:
    """Of what was worked out about terms, which is forgotten with them."""
    _memos.append({})
    return _memos[-1]


def _key(op: Op, args: tuple[Any, ...], lo: float, hi: float) -> tuple[Any, ...]:
    return (op, args, lo, hi) if op in (Op.SYMBOL, Op.APPLY) else (op, args)


def begin_afresh() -> None:
    """Forgets the terms of kernels before, but those of constants in the program itself.

    Sums and conjunctions go by the order in which terms were made; what is asked of one kernel must not
    depend on which others were looked at. Terms from before are not to be mixed with new ones.
    """
    global _order
    if not _permanent:
        _permanent.extend(sorted(_table.values(), key=lambda term: term.order))
    for known in _memos:
        known.clear()
    _table.clear()
    _table.update((_key(term.op, term.args, term.lo, term.hi), term) for term in _permanent)
    _order = itertools.count(len(_permanent))


def intern(op: Op, args: tuple[Any, ...], parts: tuple[Term, ...], lo: float, hi: float) -> Term:
    """The one node of these arguments, made if there is none. ``lo``, ``hi``: its sound interval."""
    # An interval that a symbol declares is part of its identity.
    DONE.terms += 1
    key = _key(op, args, lo, hi)
    found = _table.get(key)
    if found is not None:
        return found
    term = Term()
    term.op, term.args, term.parts, term.lo, term.hi = op, args, parts, lo, hi
    term.order = next(_order)
    unknowns = 1 << term.order % _UNKNOWN_BITS if op in _UNKNOWN else 0
    for part in parts:
        unknowns |= part.unknowns
    term.unknowns = unknowns
    term.negation = None
    term.whose = -1
    _table[key] = term
    return term


TRUE = intern(Op.TRUE, (), (), 0, 1)
FALSE = intern(Op.FALSE, (), (), 0, 1)


def const(value: int) -> Term:
    """A number."""
    return intern(Op.CONST, (value,), (), value, value)


ZERO = const(0)
ONE = const(1)


def symbol(name: str, level: Level, lo: float = -INFINITY, hi: float = INFINITY) -> Term:
    """A free integer."""
    if lo == hi:
        return const(int(lo))
    return intern(Op.SYMBOL, (name, level), (), lo, hi)


def apply(
    name: str, level: Level, operands: tuple[Term, ...], lo: float = -INFINITY, hi: float = INFINITY
) -> Term:
    """The value of an unknown integer function, one function per ``level`` unit."""
    return intern(Op.APPLY, (name, level, operands), operands, lo, hi)


def test(name: str, level: Level, operands: tuple[Term, ...]) -> Term:
    """The value of an unknown predicate."""
    return intern(Op.TEST, (name, level, operands), operands, 0, 1)


Monomial = tuple[Term, ...]


def monomials(term: Term) -> Mapping[Monomial, int]:
    """The normal form ``{atoms: coefficient}``; the constant's key is ``()``."""
    if term.op is Op.SUM:
        return dict(term.args[0])
    if term.op is Op.CONST:
        return {(): term.value} if term.value else {}
    return {(term,): 1}


def range_times(x: tuple[float, float], y: tuple[float, float]) -> tuple[float, float]:
    """The interval of products of numbers in two intervals."""
    a, b = x
    c, d = y
    # 0 times infinity is 0.
    products = (
        a * c if a and c else 0,
        a * d if a and d else 0,
        b * c if b and c else 0,
        b * d if b and d else 0,
    )
    return min(products), max(products)


def range_of_sum(
    sums: Mapping[Monomial, int], range_of: Callable[[Term], tuple[float, float]]
) -> tuple[float, float]:
    """The interval of a polynomial whose atoms have these intervals."""
    low = high = 0.0
    for atoms, factor in sums.items():
        bounds: tuple[float, float] = (factor, factor)
        for atom in atoms:
            bounds = range_times(bounds, range_of(atom))
        low, high = low + bounds[0], high + bounds[1]
    return low, high


def monomial_range(atoms: Monomial) -> tuple[float, float]:
    """The interval of a product of atoms."""
    bounds: tuple[float, float] = (1, 1)
    for atom in atoms:
        bounds = range_times(bounds, (atom.lo, atom.hi))
    if len(atoms) == 2 and atoms[0] is atoms[1]:
        bounds = (max(0, bounds[0]), bounds[1])
    return bounds


_NO_MORE = frozenset({Op.BAND, Op.REM, Op.FLOOR_MOD})
"""What is made of a number that is not negative is no more than it: some of its bits, a remainder."""


def _least_beside_parts(items: Iterable[tuple[Monomial, int]]) -> float:
    """What a sum is at least where numbers are taken for parts of them: 0 of ``x - x % d``."""
    sums = dict(items)
    parts = [(m, c) for m, c in items if c < 0 and len(m) == 1 and m[0].op in _NO_MORE]
    for atoms, factor in parts:
        whole = _whole_of(atoms[0], sums)
        if whole is not None:
            del sums[atoms]
            for other, times in monomials(whole).items():
                sums[other] = sums.get(other, 0) + factor * times
    return range_of_sum(sums, lambda atom: (atom.lo, atom.hi))[0] if parts else -INFINITY


def _whole_of(part: Term, sums: Mapping[Monomial, int]) -> Term | None:
    """A number that the part is no more than, and that the sum has as well."""
    wholes = part.parts if part.op is Op.BAND else part.parts[:1]
    return next((x for x in wholes if x.lo >= 0 and monomials(x).keys() & sums.keys()), None)


def from_monomials(sums: Mapping[Monomial, int]) -> Term:
    """The polynomial with these coefficients."""
    items = [(m, c) for m, c in sums.items() if c]
    if not items:
        return ZERO
    if len(items) == 1:
        atoms, factor = items[0]
        if not atoms:
            return const(factor)
        if factor == 1 and len(atoms) == 1:
            return atoms[0]
    items.sort(key=lambda item: [atom.order for atom in item[0]])
    args = (tuple(items),)
    known = _table.get((Op.SUM, args))
    if known is not None:  # most are made again
        DONE.terms += 1
        return known
    lo = hi = 0.0
    for atoms, factor in items:
        if len(atoms) == 1:  # the usual case, without products of intervals
            low, high = atoms[0].lo * factor, atoms[0].hi * factor
        elif not atoms:
            low = high = factor
        else:
            low, high = range_times(monomial_range(atoms), (factor, factor))
        lo, hi = (lo + low, hi + high) if factor > 0 or len(atoms) != 1 else (lo + high, hi + low)
    lo = max(lo, _least_beside_parts(items)) if lo < 0 else lo
    parts = tuple(dict.fromkeys(atom for atoms, _ in items for atom in atoms))
    exact = (int(lo) if math.isfinite(lo) else lo, int(hi) if math.isfinite(hi) else hi)
    return intern(Op.SUM, args, parts, *exact)


def add(*terms: Term) -> Term:
    """Their sum."""
    total: dict[Monomial, int] = {}
    for term in terms:
        for atoms, factor in monomials(term).items():
            total[atoms] = total.get(atoms, 0) + factor
    return from_monomials(total)


def scale(term: Term, factor: int) -> Term:
    """The term times a number."""
    return from_monomials({m: c * factor for m, c in monomials(term).items()})


def sub(a: Term, b: Term) -> Term:
    """``a - b``."""
    total = dict(monomials(a))
    for atoms, factor in monomials(b).items():
        total[atoms] = total.get(atoms, 0) - factor
    return from_monomials(total)


def mul(a: Term, b: Term) -> Term:
    """``a * b``."""
    return from_monomials(_product(monomials(a), b))


def sum_of_products(items: Iterable[tuple[Iterable[Term], int]]) -> Term:
    """The sum of products of terms and a number each; no term is made for what is in between."""
    total: dict[Monomial, int] = {}
    for factors, number in items:
        product: Mapping[Monomial, int] = {(): number}
        for factor in factors:
            product = _product(product, factor)
        for atoms, count in product.items():
            total[atoms] = total.get(atoms, 0) + count
    return from_monomials(total)


def _product(sums: Mapping[Monomial, int], by: Term) -> Mapping[Monomial, int]:
    """A polynomial times a term."""
    total: dict[Monomial, int] = {}
    for right, y in monomials(by).items():
        for left, x in sums.items():
            both = tuple(sorted(left + right, key=_order_of)) if left and right else left + right
            total[both] = total.get(both, 0) + x * y
    return total


def _order_of(atom: Term) -> int:
    return atom.order


def content(term: Term) -> int:
    """The greatest common divisor of the coefficients (0 for zero)."""
    return math.gcd(*monomials(term).values())


def without(monomial: Monomial, part: Monomial) -> Monomial | None:
    """The monomial divided by another; None when that does not divide it."""
    rest = list(monomial)
    for atom in part:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def split_multiple(term: Term, divisor: int) -> tuple[Term, Term]:
    """``(q, r)`` with ``term == divisor*q + r``: the monomials that ``divisor`` divides, and the rest."""
    sums = monomials(term)
    whole = from_monomials({m: c // divisor for m, c in sums.items() if c % divisor == 0})
    return whole, from_monomials({m: c for m, c in sums.items() if c % divisor})
