"""Expressions over all threads at once.

Every value that a statement needs is remembered under the identity of the variables it depends on, so
a loop that computes the same addresses again gets the very same arrays back; later stages recognise
repetition by identity alone.  Unknown values are hash-consed: one operation on equal operands gives one
object.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.exchanges import EXCHANGES, Alike, Exchange, Reach, values_of
from cuda_lsp.ir.ops import BINARY, INTRINSICS, UNARY, convert, intrinsic_lanes, may_be_undefined
from cuda_lsp.ir.types import Float, Int, Opaque, Pointer, Type
from cuda_lsp.model import FULL_WARP, Dim3, LaunchConfig
from cuda_lsp.static.execution import alignment, tickets
from cuda_lsp.static.execution.lanes import builtin_values, merged, wide, widened
from cuda_lsp.static.execution.ranges import fits_type, result_bounds, settled, truth_bounds
from cuda_lsp.static.execution.values import (
    ONE_OF,
    UNALIGNED,
    Address,
    Choice,
    Data,
    Flags,
    Lanes,
    Scalar,
    Spread,
    Ticket,
    Value,
    bounds_of,
    choice_of,
    identity,
    spread_of,
)
from cuda_lsp.static.slicing import Slice


class Evaluator:
    """Values of expressions under the current environment ``env`` (variable id → value)."""

    def __init__(
        self, facts: Slice, launch: LaunchConfig, grid: Dim3, blocks: tuple[Dim3, ...], warp_size: int
    ) -> None:
        self.facts = facts
        self.blocks = blocks
        self.threads = launch.threads
        self.lanes = self.threads * len(blocks)
        self.warp_size = warp_size
        self.env: dict[int, Value] = {}
        self.executing: Flags = np.ones(self.lanes, bool)  # lanes of the statement being executed
        self.sure = True  # they all execute it
        self.split = False  # of one warp some may execute it, and others not
        self._for_some = False  # what is being computed is undefined for other lanes
        self._partial: dict[int, bool] = {}  # by id() of an expression: it may be undefined for some lanes
        self.held = 0  # bytes of the values that are remembered
        self._serial = 0
        self._data: dict[object, Data] = {}
        self._memo: dict[object, tuple[Value, tuple[Value | None, ...]]] = {}
        self._alive: list[object] = []
        self._contents: dict[int, tuple[int, Lanes]] = {}
        self._numbers: dict[object, int] = {}
        self._builtins = builtin_values(launch.block, grid, blocks, warp_size)

    # ------------------------------------------------------------------------------ entry points

    def executed_by(self, lanes: Flags, sure: bool, split: bool = True) -> None:
        """The statement whose expressions come next is executed by these lanes, ``sure``: by all of them.

        ``split`` as in ``Mask``.
        """
        self.executing, self.sure, self.split = lanes, sure, split

    def value(self, e: ir.Expr) -> Value:
        """The value of ``e``; remembered when it is pure."""
        if isinstance(e, ir.Const) and isinstance(e.value, int):
            return e.value
        if isinstance(e, ir.Var):
            return self._variable(e)
        variables, pure = self.facts.depends(e)
        if not pure:
            return self._compute(e)
        env = self.env
        held = tuple([env.get(v) for v in variables])
        key = (id(e), *[v if type(v) is int else id(v) for v in held])
        known = self._memo.get(key)
        if known is None:
            self._for_some = False
            known = (self._compute(e), held)
            if self._for_some:  # undefined for lanes that do not execute it now
                return known[0]
            self._memo[key] = known
            self.held += _bytes(known[0])
        return known[0]

    def remembered(self, key: object) -> Value | None:
        """What was computed under this key; None: nothing."""
        known = self._memo.get(key)
        return None if known is None else known[0]

    def remember(self, key: object, value: Value, *alive: object) -> Value:
        """Keep ``value`` under ``key`` and ``alive`` from being collected (identities stay valid)."""
        self._memo[key] = (value, ())
        self.held += _bytes(value)
        self._alive.extend(alive)
        return value

    def scalar(self, e: ir.Expr) -> Scalar:
        """The value of an expression that is no pointer (a pointer's number is unknown)."""
        return self.as_scalar(self.value(e))

    def as_scalar(self, value: Value) -> Scalar:
        """The value as a number; that of a pointer is not known."""
        if isinstance(value, (Address, Choice)):
            return self.data(("number", identity(value)), "the numeric value of a pointer", Spread.GRID)
        return value

    def content(self, value: Value) -> object:
        """As ``identity``, but equal for arrays of equal contents, however they were computed."""
        if isinstance(value, Address):
            return (value.array.id, self.content(value.offset))
        if not isinstance(value, np.ndarray):
            return identity(value)
        known = self._contents.get(id(value))
        if known is None:
            text = (value.shape, value.astype(np.int64).tobytes())
            number = self._numbers.setdefault(text, len(self._numbers))
            known = self._contents[id(value)] = (number, value)
        return ("=", known[0])

    # -------------------------------------------------------------------------------- unknowns

    def data(self, key: object, reason: str, spread: Spread = Spread.THREAD, **rest: Any) -> Data:
        """The unknown value identified by ``key``."""
        known = self._data.get(key)
        if known is None:
            self._serial += 1
            known = self._data[key] = Data(self._serial, reason, spread, **rest)
            self.held += _bytes(known.low) + _bytes(known.high)
        return known

    def fresh(self, reason: str, spread: Spread = Spread.THREAD, **rest: Any) -> Data:
        """A value that nothing is known of, unlike any other."""
        return self.data(("fresh", self._serial), reason, spread, **rest)

    def made_of(self, name: object, operands: tuple[Value, ...], **rest: Any) -> Data:
        """An unknown computed from ``operands``: as uniform as they are, for the first unknown's reason."""
        scalars = [self.as_scalar(v) for v in operands]
        key = (name, *(identity(v) for v in scalars))
        known = self._data.get(key)
        if known is not None:
            return known
        self._alive.extend(scalars)
        unknown = [v for v in scalars if isinstance(v, Data)]
        reason = unknown[0].reason if unknown else "floating-point arithmetic"
        spread = min((spread_of(v, len(self.blocks)) for v in scalars), default=Spread.GRID)
        if rest.get("aligned", UNALIGNED).cell == 1:
            spread = max(spread, Spread.WARP)
        weak = any(v.weak for v in unknown)
        return self.data(key, reason, spread, weak=weak, made=(name, tuple(scalars)), **rest)

    # ------------------------------------------------------------------------------- evaluation

    def _variable(self, e: ir.Var) -> Value:
        value = self.env.get(e.id)
        if value is None:
            name = e.name or "a temporary"
            reason = f"{name}, which has no known value"
            value = self.env[e.id] = self.data(("unset", e.id), reason, weak=True)
        return value

    def _compute(self, e: ir.Expr) -> Value:
        if isinstance(e, ir.Binary):
            left = self._part(e.left)
            if not BINARY[e.op].logical:
                return self.binary(e.op, left, self._part(e.right), e.left.type, e.type)
            right = self._where_it_counts(left, e.op is ir.BinaryOp.AND, e.right)
            return self.binary(e.op, left, right, e.left.type, e.type)
        if isinstance(e, ir.Cast):
            return self.cast(self._part(e.operand), e.type)
        if isinstance(e, ir.Offset):
            return self.offset(self._part(e.pointer), self.as_scalar(self._part(e.bytes)))
        if isinstance(e, ir.Builtin):
            return self._builtins[e.axis]
        if isinstance(e, ir.AddressOf):
            return self.address(e)
        if isinstance(e, ir.Select):
            condition = self.as_scalar(self._part(e.condition))
            then, otherwise = (
                self._where_it_counts(condition, outcome, arm)
                for outcome, arm in ((True, e.then), (False, e.otherwise))
            )
            return self.select(condition, then, otherwise)
        if isinstance(e, ir.Unary):
            return self._unary(e)
        if isinstance(e, ir.Const):
            if isinstance(e.value, int):
                return e.value
            key = ("constant", e.value)
            return self.data(key, f"the constant {e.value}", Spread.GRID, made=(key, ()))
        if isinstance(e, ir.Intrinsic):
            return self._intrinsic(e)
        if isinstance(e, ir.Unknown):
            return self.fresh(e.reason, self._spread(e), weak=True)
        return self._variable(e)

    def _spread(self, e: ir.Unknown) -> Spread:
        """Among which threads of a block a value that is not expressed is one."""
        if not e.inputs:
            return Spread.BLOCK if e.uniform else Spread.THREAD
        inputs = [self.as_scalar(self._part(part)) for part in e.inputs]
        return min(Spread.BLOCK, *(spread_of(value, len(self.blocks)) for value in inputs))

    def _part(self, e: ir.Expr) -> Value:
        return self._variable(e) if isinstance(e, ir.Var) else self._compute(e)

    def address(self, e: ir.AddressOf) -> Address:
        """The array's first byte."""
        key = ("address", e.array.id)
        known = self.remembered(key)
        if not isinstance(known, Address):
            known = Address(e.array, 0)
            self.remember(key, known)
        return known

    def binary(self, op: ir.BinaryOp, a: Value, b: Value, operand: Type, result: Type) -> Value:
        """``a op b`` in every lane, with operands of type ``operand``."""
        if type(a) is int and type(b) is int and isinstance(operand, Int):
            exact = BINARY[op].exact(a, b, operand)
            return self._undefined(op, a, b) if exact is None else exact
        if isinstance(a, (Address, Choice)) or isinstance(b, (Address, Choice)):
            return self._pointers(op, a, b)
        if isinstance(a, Data) or isinstance(b, Data) or not isinstance(operand, Int):
            return self._unknown_binary(op, a, b, operand)
        if type(a) is int and type(b) is int:
            return self.made_of(op, (a, b))
        row = BINARY[op]
        known: Any = True if row.defined is None else row.defined(b, operand)
        if known is not True and not np.all(known):
            if bool(np.any(self.executing & np.logical_not(known))):
                return self._undefined(op, a, b)
            self._for_some = True
        return row.numpy(widened(a, operand), widened(b, operand), operand)

    def _undefined(self, op: ir.BinaryOp, a: Scalar, b: Scalar) -> Data:
        """What some lane computes though C++ does not define it: proves nothing, accuses nobody."""
        self._alive.extend((a, b))
        spread = min(spread_of(v, len(self.blocks)) for v in (a, b))
        reason = f"a `{op.value}` that is undefined in C++"
        return self.data(("undefined", op, identity(a), identity(b)), reason, spread, weak=True)

    def _where_it_counts(self, condition: Value, outcome: bool, e: ir.Expr) -> Value:
        """``e``, which matters where the condition has that outcome: elsewhere it may be undefined."""
        if not isinstance(condition, np.ndarray):
            return self._part(e)
        partial = self._partial.get(id(e))
        if partial is None:
            partial = self._partial[id(e)] = may_be_undefined(e)
        if not partial:
            return self._part(e)
        executing = self.executing
        self.executing = executing & (condition.astype(bool) == outcome)
        try:
            return self._part(e)
        finally:
            self.executing = executing

    def _unknown_binary(self, op: ir.BinaryOp, a: Scalar, b: Scalar, operand: Type) -> Value:
        known = settled(op, a, b, isinstance(operand, Int))
        if known is not None:
            return known
        low, high = result_bounds(op, a, b)
        ticket = self._ticket(op, a, b)
        test = tickets.tested(op, a, b, len(self.blocks))
        rest: dict[str, Any] = {"low": low, "high": high, "ticket": ticket, "drawn": test}
        if isinstance(operand, Int):
            rest["aligned"] = alignment.result(op, a, b, operand, len(self.blocks))
        return self.made_of((op, operand), (a, b), **rest)

    def _ticket(self, op: ir.BinaryOp, a: Scalar, b: Scalar) -> Ticket | None:
        """How ``op`` carries over that values of a counter are distinct."""
        for drawn, other in ((a, b), (b, a)):
            ticket = drawn.ticket if isinstance(drawn, Data) else None
            if ticket is None or spread_of(other, len(self.blocks)) < ticket.within:
                continue
            if op in (ir.BinaryOp.ADD, ir.BinaryOp.SUB):
                base = (*ticket.base, op, identity(other), drawn is a)
                return evolve(ticket, base=base, line=tickets.moved(ticket, op, other, drawn is a))
            if op is ir.BinaryOp.MUL and isinstance(other, int) and other:
                base = (*ticket.base, op, other)
                line = tickets.moved(ticket, op, other, True)
                return evolve(ticket, gap=ticket.gap * abs(other), base=base, line=line)
        return None

    def _pointers(self, op: ir.BinaryOp, a: Value, b: Value) -> Value:
        if isinstance(a, Address) and isinstance(b, Address) and a.array is b.array:
            operand = Int(64)
            return self.binary(op, a.offset, b.offset, operand, operand)
        return self.made_of(("pointers", op), (a, b))

    def _unary(self, e: ir.Unary) -> Value:
        a = self.as_scalar(self._part(e.operand))
        operand = e.operand.type
        if isinstance(a, Data) or not isinstance(operand, Int):
            if e.op is ir.UnaryOp.NOT:
                test = tickets.negated(a) if isinstance(a, Data) else None
                low, high = truth_bounds(a)
                return self.made_of(e.op, (a,), low=1 - high, high=1 - low, drawn=test)
            return self.made_of(e.op, (a,))
        return UNARY[e.op].python(a, operand) if isinstance(a, int) else UNARY[e.op].numpy(a, operand)

    def cast(self, value: Value, type: Type) -> Value:
        """The value converted to ``type``, in every lane."""
        if isinstance(type, Pointer) or isinstance(value, (Address, Choice)):
            return value
        if isinstance(type, Int) and type.bits <= 64:
            if isinstance(value, int):
                return type.wrap(value)
            if not isinstance(value, Data):
                return convert(value, type)
            low, high = value.low, value.high
            fits = fits_type(low, high, type)
            if fits or type.bits >= 32:
                # Widths of 32 and more: unknown values are taken not to wrap, as indices do not.
                aligned = alignment.converted(value, type, len(self.blocks))
                rest: dict[str, Any] = {"ticket": value.ticket, "drawn": value.drawn, "aligned": aligned}
                bounds: dict[str, Any] = {"low": low, "high": high} if fits else {}
                return self.made_of(("cast", type), (value,), **rest, **bounds)
            if type.boolean:
                return self.made_of(("cast", type), (value,), low=0, high=1, drawn=value.drawn)
            return self.made_of(("cast", type), (value,), low=type.minimum, high=type.maximum)
        return self.made_of(("cast", type), (value,))

    def offset(self, pointer: Value, by: Scalar) -> Value:
        """The pointer moved by so many bytes."""
        if isinstance(pointer, Choice):
            moved = ((lanes, self.offset(a, by)) for lanes, a in pointer.options)
            return Choice(tuple((lanes, a) for lanes, a in moved if isinstance(a, Address)))
        if not isinstance(pointer, Address):
            return pointer if isinstance(pointer, Data) else self.made_of("pointer", (pointer, by))
        start = pointer.offset
        if type(by) is int and by == 0:
            return pointer
        if type(start) is int and start == 0:
            return Address(pointer.array, wide(by))
        total = self.binary(ir.BinaryOp.ADD, wide(start), wide(by), Int(64), Int(64))
        return Address(pointer.array, self.as_scalar(total))

    def select(self, condition: Scalar, then: Value, otherwise: Value) -> Value:
        """``condition ? then : otherwise`` in every lane."""
        if isinstance(condition, int):
            return then if condition else otherwise
        if identity(then) == identity(otherwise):
            return then
        if isinstance(condition, Data):
            return self._one_of(condition, None, then, otherwise)
        return self.merge(condition.astype(bool, copy=False), then, otherwise)

    def merge(self, lanes: Flags, then: Value, otherwise: Value) -> Value:
        """``then`` in ``lanes``, ``otherwise`` elsewhere."""
        if identity(then) == identity(otherwise):
            return then
        if isinstance(then, (int, np.ndarray)) and isinstance(otherwise, (int, np.ndarray)):
            return merged(lanes, then, otherwise)
        return self._one_of(None, lanes, then, otherwise)

    def either(self, a: Value, b: Value, within: Spread = Spread.THREAD) -> Value:
        """``a`` or ``b``, by data; ``within``: who has the same one."""
        if identity(a) == identity(b):
            return a
        which = self.fresh("data", within)  # is anybody's guess
        return self._one_of(which, None, a, b)

    def opposite(self, condition: Lanes) -> Lanes:
        """The negation, the same object for the same condition."""
        key = ("not", id(condition))
        known = self.remembered(key)
        if not isinstance(known, np.ndarray):
            known = ~condition.astype(bool, copy=False)
            self.remember(key, known, condition)
        return known

    def _one_of(self, condition: Data | None, lanes: Flags | None, then: Value, otherwise: Value) -> Value:
        options = (*_options(then), *_options(otherwise))
        if options:
            if len(options) == 2 and options[0][1].array is options[1][1].array:
                first, second = options[0][1], options[1][1]
                if lanes is not None:
                    offset = self.merge(lanes, first.offset, second.offset)
                else:
                    offset = self._one_of(condition, lanes, first.offset, second.offset)
                return Address(first.array, self.as_scalar(offset))
            first_lanes, rest_lanes = (lanes, ~lanes) if lanes is not None else (None, None)
            return choice_of((*_options(then, first_lanes), *_options(otherwise, rest_lanes)))
        a, b = self.as_scalar(then), self.as_scalar(otherwise)
        (al, ah), (bl, bh) = bounds_of(a), bounds_of(b)
        if lanes is not None:
            low = None if al is None or bl is None else np.where(lanes, al, bl)
            high = None if ah is None or bh is None else np.where(lanes, ah, bh)
        else:
            low = None if al is None or bl is None else np.minimum(al, bl)
            high = None if ah is None or bh is None else np.maximum(ah, bh)
        chooser: Scalar = condition if condition is not None else np.asarray(lanes)
        if condition is not None:
            test = tickets.chosen(condition, a, b)
        else:
            test = tickets.selected(lanes, a, b) if lanes is not None else None
        aligned = alignment.either(a, b, chooser, len(self.blocks))
        return self.made_of(ONE_OF, (chooser, a, b), low=low, high=high, drawn=test, aligned=aligned)

    def _intrinsic(self, e: ir.Intrinsic) -> Value:
        operands = tuple(self.as_scalar(self._part(o)) for o in e.operands)
        row = EXCHANGES.get(e.name)
        if row is not None:
            return self._exchange(row, operands, e)
        operand = e.operands[0].type if e.operands else e.type
        if e.name in INTRINSICS and isinstance(operand, Int) and isinstance(e.type, Int):
            numbers = [o for o in operands if isinstance(o, int)]
            if len(numbers) == len(operands):
                return INTRINSICS[e.name](numbers, operand)
            if not any(isinstance(o, Data) for o in operands):
                return intrinsic_lanes(e.name, [np.asarray(o) for o in operands], operand, e.type)
        if e.name in INTRINSICS or isinstance(e.type, Float | Opaque) or _is_of_floats(e):
            return self.made_of(e.name, operands)
        reasons = [o.reason for o in operands if isinstance(o, Data)] or [f"the result of {e.name}"]
        return self.fresh(reasons[0], weak=not any(isinstance(o, Data) for o in operands))

    def _exchange(self, row: Exchange, operands: tuple[Scalar, ...], e: ir.Intrinsic) -> Value:
        """Known operands are exchanged where it is known who takes part (a shuffle does not ask)."""
        data = [o.reason for o in operands if isinstance(o, Data)]
        known = [o for o in operands if not isinstance(o, Data)]
        sure = self.sure or row.source is not None
        if not data and sure and self.executing.ndim == 1 and isinstance(e.type, Int):
            result = values_of(row, known, self.executing, self.threads, e.type)
            if result is not None:
                return result
        offered = operands[row.offered] if row.alike and row.offered is not None else None
        if isinstance(offered, Data) and offered.spread is not Spread.THREAD:  # one value, whoever takes part
            return offered if row.alike is Alike.VALUE else self.fresh(offered.reason, offered.spread)
        one_warp = self.threads <= self.warp_size and self.sure and bool(self.executing.all())
        if row.reach is Reach.BLOCK or (row.reach is Reach.WARP and one_warp):
            return self.fresh(data[0] if data else f"the result of {e.name}", Spread.BLOCK)
        self._alive.extend(operands)
        reason = data[0] if data else f"the result of {e.name}"
        alike = row.reach is Reach.WARP and self._whole_warps(operands[0] if row.masked else FULL_WARP)
        spread = Spread.WARP if alike else Spread.THREAD
        return self.fresh(reason, spread, weak=not data, made=(e.name, operands))

    def _whole_warps(self, members: Scalar) -> bool:
        """All lanes of each warp that comes by are there, and named: what a vote tells them is one number."""
        named = isinstance(members, int) and members & FULL_WARP == FULL_WARP
        if not named or self.split or self.executing.ndim > 1:
            return False
        return alignment.by_warps(self.executing, np.ones(self.lanes, bool), self.threads)


# -------------------------------------------------------------------------------------- helpers


def _bytes(value: Value | None) -> int:
    if isinstance(value, Address):
        value = value.offset
    return value.nbytes if isinstance(value, np.ndarray) else 0


def _options(value: Value, lanes: Flags | None = None) -> tuple[tuple[Flags | None, Address], ...]:
    """The addresses that a value may be, where ``lanes`` take it (None: by data)."""
    if isinstance(value, Address):
        return ((lanes, value),)
    known = value.options if isinstance(value, Choice) else ()
    return tuple((None if lanes is None or own is None else lanes & own, a) for own, a in known)


def _is_of_floats(e: ir.Intrinsic) -> bool:
    """An integer that is made of floating-point numbers, or a truth value."""
    return any(isinstance(operand.type, Float | Opaque) for operand in e.operands)
