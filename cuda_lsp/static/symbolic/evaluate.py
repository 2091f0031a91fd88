"""Expressions of the kernel program → symbolic terms, with C's types."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.exchanges import EXCHANGES, Exchange, Reach
from cuda_lsp.ir.ops import INTRINSICS
from cuda_lsp.ir.program import Array, BinaryOp, Expr, UnaryOp
from cuda_lsp.ir.types import Int, Pointer
from cuda_lsp.static import budgets
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Level, Op, Term
from cuda_lsp.static.symbolic.values import (
    NOTHING,
    NOWHERE,
    NULL,
    Object,
    PointerValue,
    Target,
    Value,
    choose,
    into_signed,
    rest_of_size,
    settle,
    sizes_in,
    type_range,
)


@frozen(eq=False)
class Evaluator:
    """Turns pure expressions into values for the generic thread.

    ``lookup``: the current value of a variable. ``fresh``: a value of a type that nothing is known
    of: (what it stands for, level, type) → term. ``sizes``: gets the parameters, and what is left of them,
    that are compared as unsigned numbers and were taken to be sizes. ``exchanged``: what is known of a value
    of several lanes. ``of_warp``: whether all lanes of a warp have one value of a term.
    ``less_than_nothing``: whether the conditions so far let something be no size. ``cut``: gets what is
    divided by something that is no number, and that.
    """

    axes: Mapping[ir.Axis, Term]
    lookup: Callable[[ir.Var], Value]
    fresh: Callable[..., Value]
    sizes: dict[str, frozenset[str]]
    exchanged: Callable[[ir.Intrinsic, Evaluator], Value | None]
    of_warp: Callable[[Term], bool]
    less_than_nothing: Callable[[Term], bool]
    cut: dict[tuple[Term, Term], None]

    def condition(self, expression: Expr) -> Term:
        """The expression as a truth value."""
        match expression:
            case ir.Unary(op=UnaryOp.NOT):
                return t.not_(self.condition(expression.operand))
            case ir.Binary(op=BinaryOp.AND):
                return t.and_(self.condition(expression.left), self.condition(expression.right))
            case ir.Binary(op=BinaryOp.OR):
                return t.or_(self.condition(expression.left), self.condition(expression.right))
            case ir.Binary() if expression.op in _COMPARISONS:
                return self._compare(expression)
            case ir.Cast() if isinstance(expression.type, Int) and expression.type.boolean:
                return self.condition(expression.operand)
            case _:
                value = self.value(expression)
                if isinstance(value, PointerValue):
                    known = all(x.array not in (None, NOTHING) for x in value.targets)
                    return t.TRUE if known else self._unknown_test()
                if not isinstance(expression.type, Int):
                    return t.test("float!=0", Level.GRID, (value,))
                return t.truth(settle(value, expression.type))

    def integer(self, expression: Expr) -> Term:
        """The expression as an integer in the range of its type."""
        value = self.value(expression)
        if isinstance(value, PointerValue):
            return self._address(value)
        return settle(value, expression.type)

    def value(self, expression: Expr) -> Value:
        """The expression as a value that is congruent to it ("raw")."""
        match expression:
            case ir.Const():
                if isinstance(expression.value, int):
                    if isinstance(expression.type, Pointer):
                        return NOWHERE if expression.value else NULL
                    return t.const(expression.value)
                return t.symbol(f"{expression.value!r}f", Level.GRID)
            case ir.Var():
                return self.lookup(expression)
            case ir.Builtin():
                return self.axes[expression.axis]
            case ir.AddressOf():
                return PointerValue((Target(t.TRUE, expression.array, t.ZERO),))
            case ir.Offset():
                return self._offset(expression)
            case ir.Select():
                condition = self.condition(expression.condition)
                return choose(condition, self.value(expression.then), self.value(expression.otherwise))
            case ir.Cast():
                return self._cast(expression)
            case ir.Unknown():
                level = self._level(expression)
                return self.fresh(expression.reason, level, expression.type, expression.loaded)
            case ir.Unary():
                return self._unary(expression)
            case ir.Binary():
                return self._binary(expression)
            case ir.Intrinsic():
                return self._intrinsic(expression)

    def _level(self, unknown: ir.Unknown) -> Level:
        """Among which threads a value that is not expressed is one."""
        if not unknown.uniform and not unknown.inputs:
            return Level.THREAD
        inputs = [self.value(part) for part in unknown.inputs]
        shared = Level.BLOCK if unknown.per_block else Level.GRID
        return max((shared, *map(self._shared_level, inputs)))

    def _shared_level(self, value: Value) -> Level:
        """Who surely has one value of it."""
        if not isinstance(value, Term):
            return Level.THREAD
        level = t.level_of(value)
        return Level.WARP if level is Level.THREAD and self.of_warp(value) else level

    # -- pointers

    def _offset(self, e: ir.Offset) -> Value:
        base, move = self.value(e.pointer), self.integer(e.bytes)
        if not isinstance(base, PointerValue):
            return NOWHERE
        moved = (Target(x.condition, x.array, t.add(x.offset, move)) for x in base.targets)
        return PointerValue(tuple(moved))

    def _address(self, value: PointerValue) -> Term:
        total: Term = t.ZERO
        for target in value.targets:
            if target.array is NOTHING:
                total = t.ite(target.condition, target.offset, total)
                continue
            name = repr(target.array) if target.array is not None else "somewhere"
            base = t.symbol(f"&{name}", Level.GRID, 0)
            total = t.ite(target.condition, t.add(base, target.offset), total)
        return total

    # -- operators

    def _unknown_test(self) -> Term:
        value = self.fresh("a pointer's value", Level.THREAD, Int(32))
        assert isinstance(value, Term)
        return t.truth(value)

    def _unary(self, e: ir.Unary) -> Value:
        if e.op is UnaryOp.NOT:
            return t.number(t.not_(self.condition(e.operand)))
        operand = self.value(e.operand)
        if isinstance(operand, PointerValue):
            return NOWHERE
        if not isinstance(e.type, Int):
            return t.apply("float-", Level.GRID, (operand,))
        if e.op is UnaryOp.NEG:
            return t.scale(operand, -1)
        return t.sub(t.const(-1), operand)  # ~a == -a - 1, modulo 2**bits

    def _compare(self, e: ir.Binary) -> Term:
        left_type, right_type = e.left.type, e.right.type
        if isinstance(left_type, Pointer) or isinstance(right_type, Pointer):
            return self._compare_pointers(e)
        if not isinstance(left_type, Int):
            a, b = self._data(e.left), self._data(e.right)
            return _compare_data(e.op, a, b)
        a, b = self._compared(e.left), self._compared(e.right)
        return _COMPARISONS[e.op](_asked_for_wrap(a, b, left_type), _asked_for_wrap(b, a, left_type))

    def _compared(self, e: Expr) -> Term:
        settled = self.integer(e)
        rest = rest_of_size(settled, e.type)
        if rest is not None and not self.less_than_nothing(rest):
            self.sizes[t.show(rest)] = frozenset(x.args[0] for x in rest.parts if x.op is Op.SYMBOL)
            return rest
        sizes = list(sizes_in(settled, e.type))
        if isinstance(e.type, Int) and any(map(self.less_than_nothing, sizes)):
            return t.wrap(settled, e.type.bits, e.type.signed)
        self.sizes.update((x.args[0], frozenset({x.args[0]})) for x in sizes)
        return settled

    def _compare_pointers(self, e: ir.Binary) -> Term:
        a, b = self.value(e.left), self.value(e.right)
        if not isinstance(a, PointerValue) or not isinstance(b, PointerValue):
            return self._unknown_test()
        if e.op in (BinaryOp.EQ, BinaryOp.NE) and NULL in (a, b):
            null = self._is_null(a if b == NULL else b)
            return null if e.op is BinaryOp.EQ else t.not_(null)
        if len(a.targets) != 1 or len(b.targets) != 1:
            return self._unknown_test()
        x, y = a.targets[0], b.targets[0]
        if x.array is not None and x.array is y.array:
            return _COMPARISONS[e.op](x.offset, y.offset)
        return self._unknown_test()

    def _is_null(self, pointer: PointerValue) -> Term:
        """One unknown answer for each array; what is moved from where an object begins is not null."""
        return t.or_(*(t.and_(x.condition, self._nothing_at(x.array)) for x in pointer.targets))

    def _nothing_at(self, array: Object | None) -> Term:
        if isinstance(array, Array):
            return t.test(f"{array!r} is null", Level.GRID, ())
        return t.TRUE if array is NOTHING else self._unknown_test()

    def _data(self, e: Expr) -> Term:
        value = self.value(e)
        return self._address(value) if isinstance(value, PointerValue) else value

    def _binary(self, e: ir.Binary) -> Value:
        if e.op in _COMPARISONS or e.op in (BinaryOp.AND, BinaryOp.OR):
            return t.number(self.condition(e))
        if isinstance(e.left.type, Pointer) or isinstance(e.right.type, Pointer):
            return self._pointer_arithmetic(e)
        if not isinstance(e.type, Int):
            return t.apply(f"float{e.op.value}", Level.GRID, (self._data(e.left), self._data(e.right)))
        if e.op in _RING:
            a, b = self.value(e.left), self.value(e.right)
            if isinstance(a, PointerValue) or isinstance(b, PointerValue):
                return NOWHERE
            return self._ring(e, a, b)
        if e.op is BinaryOp.SHL:
            left = self.value(e.left)
            if isinstance(left, PointerValue):
                return NOWHERE
            return t.shift_left(left, self.integer(e.right))
        left, right = self.integer(e.left), self.integer(e.right)
        if e.op in (BinaryOp.DIV, BinaryOp.REM) and not right.is_const:
            self.cut[left, right] = None
        return _SETTLED[e.op](left, right)

    def _ring(self, e: ir.Binary, a: Term, b: Term) -> Term:
        result = _RING[e.op](a, b)
        assert isinstance(e.type, Int)
        factor = a if a.is_const else b
        hashes = e.op is BinaryOp.MUL and factor.is_const and abs(factor.value) >= budgets.HASH_FACTOR
        if hashes and not e.type.signed and (result.hi > e.type.maximum or result.lo < 0):
            return t.wrap(result, e.type.bits, False)
        return result

    def _pointer_arithmetic(self, e: ir.Binary) -> Value:
        a, b = self.value(e.left), self.value(e.right)
        if e.op is BinaryOp.SUB and isinstance(a, PointerValue) and isinstance(b, PointerValue):
            if len(a.targets) == len(b.targets) == 1 and a.targets[0].array is b.targets[0].array:
                return t.sub(a.targets[0].offset, b.targets[0].offset)
            return t.sub(self._address(a), self._address(b))
        return NOWHERE

    def _cast(self, e: ir.Cast) -> Value:
        source = e.operand.type
        if isinstance(e.type, Int) and e.type.boolean:
            return t.number(self.condition(e.operand))
        value = self.value(e.operand)
        if isinstance(value, PointerValue):
            return value if isinstance(e.type, Pointer) else self._address(value)
        if isinstance(e.type, Pointer):
            return NOWHERE
        if not isinstance(e.type, Int):
            return value if not isinstance(source, Int) else t.apply("float", Level.GRID, (value,))
        if not isinstance(source, Int):
            return t.apply(f"{e.type}(float)", Level.GRID, (value,), *type_range(e.type))
        if e.type.bits > source.bits:
            return settle(value, source)
        if e.type.signed and (not source.signed or source.bits > e.type.bits):
            return into_signed(value, e.type)
        if not e.type.signed and source.signed and e.type.bits == source.bits:
            return value  # congruent; brought into range when it matters
        return value if e.type.bits >= 32 else settle(value, e.type)

    def _intrinsic(self, e: ir.Intrinsic) -> Value:
        name = e.name
        known = self.exchanged(e, self)
        if known is not None:
            return known
        if name in EXCHANGES:
            return self.fresh(f"the result of `{name}`", self._shared_by(EXCHANGES[name], e), e.type)
        operands = tuple(self.value(operand) for operand in e.operands)
        terms = tuple(self._address(o) if isinstance(o, PointerValue) else o for o in operands)
        if not isinstance(e.type, Int) or not all(isinstance(o.type, Int) for o in e.operands):
            return t.apply(name, Level.GRID, terms, *type_range(e.type))
        settled = tuple(settle(v, o.type) for v, o in zip(terms, e.operands, strict=True))
        return _integer_intrinsic(name, e, settled)

    def _shared_by(self, row: Exchange, e: ir.Intrinsic) -> Level:
        """Who sees one result: those of one mask. A mask that is a vote is taken as its author means it."""
        mask = self.value(e.operands[0]) if row.masked else t.ZERO
        by_mask = Level.GRID if isinstance(mask, PointerValue) or mask.op is Op.APPLY else t.level_of(mask)
        return max(_LEVELS[row.reach], by_mask)


def _integer_intrinsic(name: str, e: ir.Intrinsic, operands: tuple[Term, ...]) -> Term:
    if name in ("abs", "labs", "llabs"):
        (a,) = operands
        return a if a.lo >= 0 else t.ite(t.le(t.ZERO, a), a, t.scale(a, -1))
    if name in ("__mul24", "__umul24"):
        factor = Int(24, signed=name == "__mul24")
        return t.mul(*(into_signed(x, factor) if factor.signed else settle(x, factor) for x in operands))
    if name in INTRINSICS:
        lo, hi = (0, 64) if name.strip("_")[:3] in ("pop", "clz", "ffs") else type_range(e.type)
        return t.intrinsic(name, e.operands[0].type, operands, lo, hi)
    return t.apply(name, Level.GRID, operands, *type_range(e.type))


def _asked_for_wrap(whole: Term, part: Term, type: Int) -> Term:
    """``whole`` as it wraps, where comparing it with its own part asks whether it does: ``a + b < a``.

    Of data, that is; sizes are small.
    """
    sums = t.monomials(whole)
    own = t.monomials(part)
    among = 0 < len(own) < len(sums) and all(0 < c <= sums.get(m, 0) for m, c in own.items())
    if type.signed or not among or whole.hi <= type.maximum:
        return whole
    return t.wrap(whole, type.bits, False) if any(x.op is Op.APPLY for x in t.subterms(whole)) else whole


def _compare_data(op: BinaryOp, a: Term, b: Term) -> Term:
    """Comparisons of floating-point data: predicates of which only ``a > b == b < a`` is known."""
    if op in (BinaryOp.GT, BinaryOp.GE):
        a, b = b, a
        op = BinaryOp.LT if op is BinaryOp.GT else BinaryOp.LE
    if op is BinaryOp.NE:
        return t.not_(t.test("float==", Level.GRID, (a, b)))
    return t.test(f"float{op.value}", Level.GRID, (a, b))


_LEVELS = {Reach.LANE: Level.THREAD, Reach.WARP: Level.WARP, Reach.BLOCK: Level.BLOCK}
_COMPARISONS: Mapping[BinaryOp, Callable[[Term, Term], Term]] = {
    BinaryOp.LT: t.lt,
    BinaryOp.LE: t.le,
    BinaryOp.GT: lambda a, b: t.lt(b, a),
    BinaryOp.GE: lambda a, b: t.le(b, a),
    BinaryOp.EQ: t.eq,
    BinaryOp.NE: lambda a, b: t.not_(t.eq(a, b)),
}
_RING: Mapping[BinaryOp, Callable[[Term, Term], Term]] = {
    BinaryOp.ADD: lambda a, b: t.add(a, b),
    BinaryOp.SUB: t.difference,
    BinaryOp.MUL: t.mul,
}
_SETTLED: Mapping[BinaryOp, Callable[[Term, Term], Term]] = {
    BinaryOp.DIV: t.divide,
    BinaryOp.REM: t.remainder,
    BinaryOp.SHR: t.shift_right,
    BinaryOp.BAND: t.bit_and,
    BinaryOp.BOR: t.bit_or,
    BinaryOp.BXOR: t.bit_xor,
    BinaryOp.MIN: t.minimum,
    BinaryOp.MAX: t.maximum,
}
