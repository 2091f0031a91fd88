"""Symbolic values: integer and boolean terms over thread, launch, parameter, loop and data symbols.

An integer term is either an *atom* (a symbol, an uninterpreted value, a division, …) or a polynomial
over atoms in normal form, so that equal addresses are the same object and differences cancel.  Terms
are mathematical integers; where the machine wraps, ``wrap`` says so explicitly.  Equal terms are
identical (hash-consed), hence compared with ``is``.  Each term carries a sound interval.

This room knows algebra only: no statements, no threads, no solver.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from weakref import WeakValueDictionary

from cuda_lsp.ir.ops import BINARY, INTRINSICS
from cuda_lsp.ir.program import BinaryOp
from cuda_lsp.ir.types import INT64


class Level(enum.IntEnum):
    """Among which threads a symbol has one value."""

    GRID = 0
    BLOCK = 1
    WARP = 2
    THREAD = 3


class Op(enum.Enum):
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


BIT_OPS = frozenset({Op.BAND, Op.BOR, Op.BXOR, Op.SHL, Op.SHR})
INFINITY = math.inf


class Term:
    """One hash-consed node. ``lo``/``hi``: a sound interval (``±inf`` when unbounded)."""

    __slots__ = ("__weakref__", "args", "hi", "lo", "op", "order", "parts")

    op: Op
    args: tuple[Any, ...]
    lo: float
    hi: float
    order: int
    parts: tuple[Term, ...]
    """The direct sub-terms."""

    def __repr__(self) -> str:
        return show(self)

    @property
    def is_const(self) -> bool:
        return self.op is Op.CONST

    @property
    def value(self) -> int:
        """The integer of a constant."""
        return self.args[0]


_table: WeakValueDictionary[tuple[Any, ...], Term] = WeakValueDictionary()
_order = itertools.count()


def _intern(op: Op, args: tuple[Any, ...], parts: tuple[Term, ...], lo: float, hi: float) -> Term:
    # An interval that a symbol declares is part of its identity.
    key = (op, args, lo, hi) if op in (Op.SYMBOL, Op.APPLY) else (op, args)
    found = _table.get(key)
    if found is not None:
        return found
    term = Term()
    term.op, term.args, term.parts, term.lo, term.hi = op, args, parts, lo, hi
    term.order = next(_order)
    _table[key] = term
    return term


TRUE = _intern(Op.TRUE, (), (), 0, 1)
FALSE = _intern(Op.FALSE, (), (), 0, 1)


def const(value: int) -> Term:
    return _intern(Op.CONST, (value,), (), value, value)


ZERO = const(0)
ONE = const(1)


def symbol(name: str, level: Level, lo: float = -INFINITY, hi: float = INFINITY) -> Term:
    """A free integer."""
    if lo == hi:
        return const(int(lo))
    return _intern(Op.SYMBOL, (name, level), (), lo, hi)


def apply(
    name: str, level: Level, operands: tuple[Term, ...], lo: float = -INFINITY, hi: float = INFINITY
) -> Term:
    """The value of an unknown integer function, one function per ``level`` unit."""
    return _intern(Op.APPLY, (name, level, operands), operands, lo, hi)


def test(name: str, level: Level, operands: tuple[Term, ...]) -> Term:
    """The value of an unknown predicate."""
    return _intern(Op.TEST, (name, level, operands), operands, 0, 1)


# ------------------------------------------------------------------------------------ polynomials

Monomial = tuple[Term, ...]


def monomials(term: Term) -> Mapping[Monomial, int]:
    """The normal form ``{atoms: coefficient}``; the constant's key is ``()``."""
    if term.op is Op.SUM:
        return dict(term.args[0])
    if term.op is Op.CONST:
        return {(): term.value} if term.value else {}
    return {(term,): 1}


def _times(a: float, b: float) -> float:
    return 0 if a == 0 or b == 0 else a * b


def _range_times(x: tuple[float, float], y: tuple[float, float]) -> tuple[float, float]:
    products = [_times(a, b) for a in x for b in y]
    return min(products), max(products)


def monomial_range(atoms: Monomial) -> tuple[float, float]:
    bounds: tuple[float, float] = (1, 1)
    for atom in atoms:
        bounds = _range_times(bounds, (atom.lo, atom.hi))
    if len(atoms) == 2 and atoms[0] is atoms[1]:
        bounds = (max(0, bounds[0]), bounds[1])
    return bounds


def from_monomials(sums: Mapping[Monomial, int]) -> Term:
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
    lo = hi = 0.0
    for atoms, factor in items:
        low, high = _range_times(monomial_range(atoms), (factor, factor))
        lo, hi = lo + low, hi + high
    parts = tuple(dict.fromkeys(atom for atoms, _ in items for atom in atoms))
    exact = (int(lo) if math.isfinite(lo) else lo, int(hi) if math.isfinite(hi) else hi)
    return _intern(Op.SUM, (tuple(items),), parts, *exact)


def add(*terms: Term) -> Term:
    total: dict[Monomial, int] = {}
    for term in terms:
        for atoms, factor in monomials(term).items():
            total[atoms] = total.get(atoms, 0) + factor
    return from_monomials(total)


def scale(term: Term, factor: int) -> Term:
    return from_monomials({m: c * factor for m, c in monomials(term).items()})


def sub(a: Term, b: Term) -> Term:
    return add(a, scale(b, -1))


def mul(a: Term, b: Term) -> Term:
    if a.is_const:
        return scale(b, a.value)
    if b.is_const:
        return scale(a, b.value)
    total: dict[Monomial, int] = {}
    for left, x in monomials(a).items():
        for right, y in monomials(b).items():
            atoms = tuple(sorted(left + right, key=lambda atom: atom.order))
            total[atoms] = total.get(atoms, 0) + x * y
    return from_monomials(total)


def content(term: Term) -> int:
    """The greatest common divisor of the coefficients (0 for zero)."""
    return math.gcd(*monomials(term).values())


def _split_multiple(term: Term, divisor: int) -> tuple[Term, Term]:
    """``(q, r)`` with ``term == divisor*q + r``: the monomials that ``divisor`` divides, and the rest."""
    sums = monomials(term)
    whole = from_monomials({m: c // divisor for m, c in sums.items() if c % divisor == 0})
    return whole, from_monomials({m: c for m, c in sums.items() if c % divisor})


# -------------------------------------------------------------------------------- integer operations


def floor_div(a: Term, divisor: int) -> Term:
    """``a // divisor`` for a positive constant."""
    if divisor == 1:
        return a
    whole, rest = _split_multiple(a, divisor)
    if rest.lo >= 0 and rest.hi < divisor:
        return whole
    if rest.op is Op.FLOOR_DIV and whole is ZERO:
        return floor_div(rest.args[0], rest.args[1] * divisor)
    if rest.is_const:
        return add(whole, const(rest.value // divisor))
    low = rest.lo // divisor if math.isfinite(rest.lo) else rest.lo
    high = rest.hi // divisor if math.isfinite(rest.hi) else rest.hi
    return add(whole, _intern(Op.FLOOR_DIV, (rest, divisor), (rest,), low, high))


def floor_mod(a: Term, divisor: int) -> Term:
    """``a mod divisor`` in ``[0, divisor)`` for a positive constant."""
    _, rest = _split_multiple(a, divisor)
    if rest.lo >= 0 and rest.hi < divisor:
        return rest
    if rest.is_const:
        return const(rest.value % divisor)
    return _intern(Op.FLOOR_MOD, (rest, divisor), (rest,), 0, divisor - 1)


def divide(a: Term, b: Term) -> Term:
    """C's truncating quotient."""
    if a.is_const and b.is_const:
        return const(BINARY[BinaryOp.DIV].python(a.value, b.value, INT64))
    if b.is_const and b.value > 0 and a.lo >= 0:
        return floor_div(a, b.value)
    if b.is_const and b.value > 0 and content(a) % b.value == 0:
        return from_monomials({m: c // b.value for m, c in monomials(a).items()})
    if a is b and a.lo > 0:
        return ONE
    reach = max(abs(a.lo), abs(a.hi))
    return _intern(Op.DIV, (a, b), (a, b), 0 if a.lo >= 0 and b.lo > 0 else -reach, reach)


def remainder(a: Term, b: Term) -> Term:
    """C's remainder, with the sign of ``a``."""
    if a.is_const and b.is_const:
        return const(BINARY[BinaryOp.REM].python(a.value, b.value, INT64))
    if b.is_const and b.value > 0 and a.lo >= 0:
        return floor_mod(a, b.value)
    if a.lo >= 0 and b.lo > 0 and a.hi < b.lo:
        return a
    if a.lo >= 0 and b.lo > 0:
        return _intern(Op.REM, (a, b), (a, b), 0, min(a.hi, b.hi - 1))
    reach = max(abs(b.lo), abs(b.hi))
    return _intern(Op.REM, (a, b), (a, b), 0 if a.lo >= 0 else -reach, reach)


def _low_zeros(term: Term) -> int:
    """Every value of ``term`` is a multiple of the power of two returned."""
    shared = content(term)
    return shared & -shared if shared else 1 << 62


def _runs_of_ones(mask: int) -> Iterable[tuple[int, int]]:
    """``(low bit, bit after)`` of each run of ones in a mask >= 0."""
    bit = 0
    while mask >> bit:
        if mask >> bit & 1:
            start = bit
            while mask >> bit & 1:
                bit += 1
            yield start, bit
        else:
            bit += 1


def bit_and(a: Term, b: Term) -> Term:
    """Two's complement and: bit fields become ``//`` and ``mod``, the rest stays a bit operation."""
    if a.is_const:
        a, b = b, a
    if b.is_const:
        mask = b.value
        if a.is_const:
            return const(a.value & mask)
        if mask < 0 and (-mask) & (-mask - 1) == 0:  # clears the low bits
            return sub(a, floor_mod(a, -mask))
        runs = list(_runs_of_ones(mask)) if mask >= 0 else []
        if mask >= 0 and len(runs) <= 2:
            fields = (scale(floor_mod(floor_div(a, 1 << lo), 1 << (hi - lo)), 1 << lo) for lo, hi in runs)
            return add(*fields)
    if a is b:
        return a
    high = min((x.hi for x in (a, b) if x.lo >= 0), default=INFINITY)
    return _intern(Op.BAND, _ordered(a, b), (a, b), 0 if a.lo >= 0 or b.lo >= 0 else -INFINITY, high)


def bit_or(a: Term, b: Term) -> Term:
    if a.is_const and b.is_const:
        return const(a.value | b.value)
    for x, y in ((a, b), (b, a)):
        if x.lo >= 0 and y.lo >= 0 and y.hi < _low_zeros(x):  # disjoint bits
            return add(x, y)
    return a if a is b else _intern(Op.BOR, _ordered(a, b), (a, b), *_bit_range(a, b))


def bit_xor(a: Term, b: Term) -> Term:
    if a.is_const and b.is_const:
        return const(a.value ^ b.value)
    if a is b:
        return ZERO
    for x, y in ((a, b), (b, a)):
        if x is ZERO:
            return y
        if x.is_const and x.value == -1:
            return sub(const(-1), y)
        if x.lo >= 0 and y.lo >= 0 and y.hi < _low_zeros(x):
            return add(x, y)
        if x.is_const and x.value > 0 and x.value & (x.value - 1) == 0 and y.lo >= 0:
            # one bit flipped: y + c when it was clear, y - c when it was set
            was = floor_mod(floor_div(y, x.value), 2)
            return add(y, x, scale(was, -2 * x.value))
    return _intern(Op.BXOR, _ordered(a, b), (a, b), *_bit_range(a, b))


def _ordered(a: Term, b: Term) -> tuple[Term, Term]:
    return (a, b) if a.order <= b.order else (b, a)


def _bit_range(a: Term, b: Term) -> tuple[float, float]:
    if a.lo >= 0 and b.lo >= 0 and math.isfinite(a.hi) and math.isfinite(b.hi):
        return 0, (1 << int(max(a.hi, b.hi)).bit_length()) - 1
    return -INFINITY, INFINITY


def shift_left(a: Term, b: Term) -> Term:
    if b.is_const:
        return scale(a, 1 << min(max(b.value, 0), 64))
    if a.is_const and b.lo >= 0 and b.hi <= 63:
        return power(a, 2, b, growing=True)
    low = 0 if a.lo >= 0 and b.lo >= 0 else -INFINITY
    return _intern(Op.SHL, (a, b), (a, b), low, INFINITY)


def shift_right(a: Term, b: Term) -> Term:
    """Arithmetic shift (of the mathematical value)."""
    if b.is_const:
        return floor_div(a, 1 << min(max(b.value, 0), 64))
    return _intern(Op.SHR, (a, b), (a, b), min(a.lo, 0), max(a.hi, 0))


def power(start: Term, factor: int, exponent: Term, *, growing: bool) -> Term:
    """``start * factor**exponent`` or ``start // factor**exponent`` (start >= 0 then)."""
    if start is ZERO:
        return ZERO
    if exponent.is_const:
        amount = factor ** max(exponent.value, 0)
        return scale(start, amount) if growing else floor_div(start, amount)
    if growing:
        top = start.hi * factor**exponent.hi if exponent.hi <= 64 and start.hi > 0 else INFINITY
        lo, hi = (start.lo, top) if start.lo >= 0 else (-INFINITY, INFINITY)
    else:
        lo, hi = 0, start.hi
    return _intern(Op.POWER, (start, factor, exponent, growing), (start, exponent), lo, hi)


def intrinsic(name: str, type: Any, operands: tuple[Term, ...], lo: float, hi: float) -> Term:
    """A pure function of ``ir.ops.INTRINSICS``; folded when its operands are constants."""
    if all(operand.is_const for operand in operands):
        return const(INTRINSICS[name](tuple(o.value for o in operands), type))
    return _intern(Op.INTRINSIC, (name, type, operands), operands, lo, hi)


def wrap(a: Term, bits: int, signed: bool) -> Term:
    """``a`` reduced modulo ``2**bits`` into the type's range."""
    low = -(1 << (bits - 1)) if signed else 0
    high = low + (1 << bits) - 1
    if low <= a.lo and a.hi <= high:
        return a
    if a.is_const:
        return const((a.value - low) % (1 << bits) + low)
    return _intern(Op.WRAP, (a, bits, signed), (a,), low, high)


def ite(condition: Term, then: Term, otherwise: Term) -> Term:
    if condition is TRUE or then is otherwise:
        return then
    if condition is FALSE:
        return otherwise
    if condition.op is Op.NOT:
        return ite(condition.args[0], otherwise, then)
    lo, hi = min(then.lo, otherwise.lo), max(then.hi, otherwise.hi)
    return _intern(Op.ITE, (condition, then, otherwise), (condition, then, otherwise), lo, hi)


def minimum(a: Term, b: Term) -> Term:
    if a.hi <= b.lo:
        return a
    return b if b.hi <= a.lo else ite(le(a, b), a, b)


def maximum(a: Term, b: Term) -> Term:
    if a.hi <= b.lo:
        return b
    return a if b.hi <= a.lo else ite(le(a, b), b, a)


# ---------------------------------------------------------------------------------------- booleans


def le(a: Term, b: Term) -> Term:
    return _le_zero(sub(a, b))


def lt(a: Term, b: Term) -> Term:
    return _le_zero(add(a, scale(b, -1), ONE))


def _le_zero(difference: Term) -> Term:
    if difference.hi <= 0:
        return TRUE
    if difference.lo > 0:
        return FALSE
    sums = dict(monomials(difference))
    constant = sums.pop((), 0)
    shared = math.gcd(*sums.values())
    if shared > 1:  # tighten: g*p + c <= 0  <=>  p + ceil(c/g) <= 0
        sums = {m: c // shared for m, c in sums.items()}
        constant = -(-constant // shared)
        difference = from_monomials({**sums, (): constant})
    return _intern(Op.LE, (difference,), (difference,), 0, 1)


def eq(a: Term, b: Term) -> Term:
    difference = sub(a, b)
    if difference.is_const:
        return TRUE if difference.value == 0 else FALSE
    if difference.lo > 0 or difference.hi < 0:
        return FALSE
    sums = dict(monomials(difference))
    constant = sums.pop((), 0)
    shared = math.gcd(*sums.values())
    if constant % shared:
        return FALSE
    first = min(sums, key=lambda atoms: [atom.order for atom in atoms])
    shared = -shared if sums[first] < 0 else shared
    difference = from_monomials({m: c // shared for m, c in {**sums, (): constant}.items()})
    return _intern(Op.EQ, (difference,), (difference,), 0, 1)


def _eq_zero(a: Term) -> Term:
    return eq(a, ZERO)


def not_(a: Term) -> Term:
    if a is TRUE:
        return FALSE
    if a is FALSE:
        return TRUE
    if a.op is Op.NOT:
        return a.args[0]
    if a.op is Op.LE:  # not (d <= 0)  <=>  1 - d <= 0
        return _le_zero(sub(ONE, a.args[0]))
    if a.op is Op.AND:
        return or_(*(not_(part) for part in a.args))
    if a.op is Op.OR:
        return and_(*(not_(part) for part in a.args))
    return _intern(Op.NOT, (a,), (a,), 0, 1)


def conjuncts(a: Term) -> tuple[Term, ...]:
    if a is TRUE:
        return ()
    return a.args if a.op is Op.AND else (a,)


def _gather(op: Op, terms: Iterable[Term], unit: Term, absorbing: Term) -> Term:
    parts: dict[Term, None] = {}
    for term in terms:
        for part in term.args if term.op is op else (term,):
            if part is absorbing:
                return absorbing
            if part is not unit:
                parts[part] = None
    if any(not_(part) in parts for part in parts if part.op in (Op.NOT, Op.LE, Op.EQ, Op.TEST)):
        return absorbing
    kept = tuple(sorted(parts, key=lambda part: part.order))
    if not kept:
        return unit
    return kept[0] if len(kept) == 1 else _intern(op, kept, kept, 0, 1)


def and_(*terms: Term) -> Term:
    return _gather(Op.AND, terms, TRUE, FALSE)


def or_(*terms: Term) -> Term:
    result = _gather(Op.OR, terms, FALSE, TRUE)
    if result.op is not Op.OR:
        return result
    common = set(conjuncts(result.args[0]))
    for part in result.args[1:]:
        common &= set(conjuncts(part))
    if not common:
        return result
    rest = [and_(*(c for c in conjuncts(part) if c not in common)) for part in result.args]
    return and_(*common, or_(*rest))


def bool_ite(condition: Term, then: Term, otherwise: Term) -> Term:
    if condition is TRUE or then is otherwise:
        return then
    if condition is FALSE:
        return otherwise
    if otherwise is FALSE:
        return and_(condition, then)
    if then is FALSE:
        return and_(not_(condition), otherwise)
    return and_(or_(not_(condition), then), or_(condition, otherwise))


def implies(premise: Term, conclusion: Term) -> bool:
    """Syntactically: every conjunct of the conclusion is one of the premise."""
    known = set(conjuncts(premise))
    return all(part in known for part in conjuncts(conclusion))


def truth(a: Term) -> Term:
    """An integer as a condition: ``a != 0``."""
    if a.op is Op.ITE and a.args[1] is ONE and a.args[2] is ZERO:
        return a.args[0]
    return not_(eq(a, ZERO))


def number(a: Term) -> Term:
    """A condition as an integer, 0 or 1."""
    return ite(a, ONE, ZERO)


# ------------------------------------------------------------------------------ walking over terms


def subterms(*roots: Term) -> Iterable[Term]:
    """Every distinct sub-term once, parents before children."""
    seen: set[Term] = set()
    stack = list(roots)
    while stack:
        term = stack.pop()
        if term in seen:
            continue
        seen.add(term)
        yield term
        stack.extend(term.parts)


def level_of(term: Term) -> Level:
    """Among which threads the term is certainly one value."""
    found = Level.GRID
    for part in subterms(term):
        if part.op in (Op.SYMBOL, Op.APPLY, Op.TEST):
            found = max(found, part.args[1])
    return found


def rebuild(term: Term, parts: tuple[Term, ...]) -> Term:
    """The same operation over other sub-terms (given in the order of ``term.parts``)."""
    op, args = term.op, term.args
    if op is Op.SUM:
        new = dict(zip(term.parts, parts, strict=True))
        total: list[Term] = []
        for atoms, factor in args[0]:
            product = const(factor)
            for atom in atoms:
                product = mul(product, new[atom])
            total.append(product)
        return add(*total)
    if op is Op.APPLY:
        return apply(args[0], args[1], parts, term.lo, term.hi)
    if op is Op.TEST:
        return test(args[0], args[1], parts)
    if op is Op.POWER:
        return power(parts[0], args[1], parts[1], growing=args[3])
    if op is Op.INTRINSIC:
        return intrinsic(args[0], args[1], parts, term.lo, term.hi)
    if op is Op.WRAP:
        return wrap(parts[0], args[1], args[2])
    if op in (Op.FLOOR_DIV, Op.FLOOR_MOD):
        return (floor_div if op is Op.FLOOR_DIV else floor_mod)(parts[0], args[1])
    return _BUILDERS[op](*parts)


_BUILDERS: Mapping[Op, Callable[..., Term]] = {
    Op.DIV: divide,
    Op.REM: remainder,
    Op.BAND: bit_and,
    Op.BOR: bit_or,
    Op.BXOR: bit_xor,
    Op.SHL: shift_left,
    Op.SHR: shift_right,
    Op.ITE: ite,
    Op.LE: _le_zero,
    Op.EQ: _eq_zero,
    Op.NOT: not_,
    Op.AND: and_,
    Op.OR: or_,
}


def replace(term: Term, leaf: Callable[[Term], Term | None], memo: dict[Term, Term] | None = None) -> Term:
    """``term`` with every sub-term for which ``leaf`` gives a term replaced by it, top down."""
    done = {} if memo is None else memo
    known = done.get(term)
    if known is not None:
        return known
    new = leaf(term)
    if new is None:
        parts = tuple(replace(part, leaf, done) for part in term.parts)
        same = all(x is y for x, y in zip(parts, term.parts, strict=True))
        # Operands of AND/OR were sorted on creation: rebuild from the args in their own order.
        new = term if same else rebuild(term, parts)
    done[term] = new
    return new


def substitute(term: Term, mapping: Mapping[Term, Term], memo: dict[Term, Term] | None = None) -> Term:
    return replace(term, mapping.get, memo) if mapping else term


# ----------------------------------------------------------------------------------------- people


def show(term: Term) -> str:
    """The term as C-like text, for messages and tests."""
    op, args = term.op, term.args
    if op is Op.CONST:
        return str(args[0])
    if op is Op.SYMBOL:
        return args[0]
    if op in (Op.APPLY, Op.TEST):
        return f"{args[0]}({', '.join(map(show, args[2]))})"
    if op is Op.SUM:
        return _show_sum(args[0])
    if op in (Op.TRUE, Op.FALSE):
        return op.value
    if op is Op.LE or op is Op.EQ:
        return _show_comparison(args[0], op.value)
    if op is Op.NOT:
        inner = args[0]
        return _show_comparison(inner.args[0], "!=") if inner.op is Op.EQ else f"!({show(inner)})"
    if op in (Op.AND, Op.OR):
        return (" && " if op is Op.AND else " || ").join(f"({show(part)})" for part in args)
    if op is Op.ITE:
        return f"({show(args[0])} ? {show(args[1])} : {show(args[2])})"
    if op is Op.POWER:
        return f"{show(args[0])} {'*' if args[3] else '/'} {args[1]}^({show(args[2])})"
    if op is Op.INTRINSIC:
        return f"{args[0]}({', '.join(map(show, args[2]))})"
    if op is Op.WRAP:
        return f"{'int' if args[2] else 'uint'}{args[1]}({show(args[0])})"
    sign = {Op.DIV: "/", Op.REM: "%", Op.FLOOR_DIV: "/", Op.FLOOR_MOD: "%"}.get(op, op.value)
    right = args[1] if isinstance(args[1], Term) else const(args[1])
    return f"({show(args[0])}) {sign} {show(right)}"


def _show_comparison(difference: Term, sign: str) -> str:
    """``difference <sign> 0`` with the negative monomials on the right; ``a + 1 <= b`` is ``a < b``."""
    sums = dict(monomials(difference))
    left = {m: c for m, c in sums.items() if c > 0 and m}
    right = {m: -c for m, c in sums.items() if c < 0 and m}
    constant = sums.get((), 0)
    if not left and right:  # b >= c reads better than -b + c <= 0
        flipped = {"<=": ">=", "==": "==", "!=": "!="}[sign]
        if sign == "<=" and constant > 0:
            return f"{show(from_monomials(right))} > {constant - 1}"
        return f"{show(from_monomials(right))} {flipped} {constant}"
    if constant == 1 and sign == "<=" and left:
        return f"{show(from_monomials(left))} < {show(from_monomials(right))}"
    if constant < 0 or not right:
        right[()] = abs(constant) if right or constant < 0 else -constant
    else:
        left[()] = constant
    return f"{show(from_monomials(left))} {sign} {show(from_monomials(right))}"


def _show_sum(items: tuple[tuple[Monomial, int], ...]) -> str:
    text = ""
    for atoms, factor in sorted(items, key=lambda item: not item[0]):
        names = [show(atom) if atom.op in (Op.SYMBOL, Op.APPLY) else f"({show(atom)})" for atom in atoms]
        size = abs(factor)
        if size != 1 or not names:
            names.insert(0, str(size))
        joint = " - " if factor < 0 else " + "
        text += ("-" if factor < 0 else "") if not text else joint
        text += "*".join(names)
    return text
