"""How to walk a kernel program: the parts of an expression, the statements inside a statement, who uses what.

The one place that lists the children of every node. Expressions share subexpressions (the frontend inlines
calls), so ``subexpressions`` visits each of them once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from attrs import evolve

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Expr, Stmt, Var
from cuda_lsp.model import Mode, Site

# ------------------------------------------------------------------------------------ expressions


# Of each node by its class, as most of a keystroke's walks meet thousands of them.
_OPERANDS: Mapping[type[Expr], Callable[[Any], tuple[Expr, ...]]] = {
    ir.Binary: attrgetter("left", "right"),
    ir.Unary: lambda e: (e.operand,),
    ir.Cast: lambda e: (e.operand,),
    ir.Offset: attrgetter("pointer", "bytes"),
    ir.Select: attrgetter("condition", "then", "otherwise"),
    ir.Intrinsic: attrgetter("operands"),
    ir.Unknown: attrgetter("inputs"),
}


def operands(e: Expr) -> tuple[Expr, ...]:
    """The direct subexpressions, from left to right."""
    parts = _OPERANDS.get(type(e))
    return () if parts is None else parts(e)


def mapped(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """``e`` with each direct subexpression changed; its type stays."""
    if isinstance(e, ir.Binary):
        return ir.Binary(e.op, change(e.left), change(e.right), e.type)
    if isinstance(e, ir.Unary):
        return ir.Unary(e.op, change(e.operand), e.type)
    if isinstance(e, ir.Cast):
        return ir.Cast(change(e.operand), e.type)
    if isinstance(e, ir.Offset):
        return ir.Offset(change(e.pointer), change(e.bytes), e.type)
    if isinstance(e, ir.Select):
        return ir.Select(change(e.condition), change(e.then), change(e.otherwise), e.type)
    if isinstance(e, ir.Intrinsic):
        return ir.Intrinsic(e.name, tuple(map(change, e.operands)), e.type)
    if isinstance(e, ir.Unknown) and e.inputs:
        return evolve(e, inputs=tuple(map(change, e.inputs)))
    return e


def subexpressions(
    expressions: Iterable[Expr], enter: Callable[[Expr], bool] = lambda e: True
) -> Iterator[Expr]:
    """The expressions and all their parts, each object once; nothing of those that ``enter`` refuses."""
    stack = list(expressions)
    seen: set[int] = set()
    while stack:
        e = stack.pop()
        if id(e) not in seen and enter(e):
            seen.add(id(e))
            yield e
            stack.extend(operands(e))


def variables(e: Expr) -> Iterator[Var]:
    """The variables of an expression, with repetitions."""
    stack: list[Expr] = [e]
    while stack:
        node = stack.pop()
        if isinstance(node, Var):
            yield node
        else:
            stack.extend(operands(node))


def stripped(e: Expr) -> Expr:
    """``e`` without the casts around it."""
    while isinstance(e, ir.Cast):
        e = e.operand
    return e


def root(pointer: Expr) -> Expr:
    """What a pointer is an offset from: an ``AddressOf``, a variable, or what chooses between some."""
    while isinstance(pointer, (ir.Offset, ir.Cast)):
        pointer = pointer.pointer if isinstance(pointer, ir.Offset) else pointer.operand
    return pointer


def root_array(pointer: Expr | None) -> ir.Array | None:
    """The array that a pointer evidently points into."""
    base = None if pointer is None else root(pointer)
    return base.array if isinstance(base, ir.AddressOf) else None


# ------------------------------------------------------------------------------------- statements


_CHILDREN: Mapping[type[Stmt], Callable[[Any], tuple[tuple[Stmt, ...], ...]]] = {
    ir.If: attrgetter("then", "otherwise"),
    ir.Loop: attrgetter("test", "body", "step"),
    ir.Block: lambda s: (s.body,),
}


def children(s: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The statement lists directly inside ``s``, in program order."""
    lists = _CHILDREN.get(type(s))
    return () if lists is None else lists(s)


def with_children(s: Stmt, change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt:
    """``s`` with each statement list directly inside it changed."""
    if isinstance(s, ir.If):
        return evolve(s, then=change(s.then), otherwise=change(s.otherwise))
    if isinstance(s, ir.Loop):
        return evolve(s, test=change(s.test), body=change(s.body), step=change(s.step))
    return evolve(s, body=change(s.body)) if isinstance(s, ir.Block) else s


def walk(statements: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement, in program order, outer before inner."""
    waiting = [*statements][::-1]
    while waiting:
        s = waiting.pop()
        yield s
        for inner in reversed(children(s)):
            waiting.extend(reversed(inner))


def inside(s: Stmt) -> Iterator[Stmt]:
    """Every statement inside ``s``, in program order, outer before inner."""
    for inner in children(s):
        yield from walk(inner)


def labels(s: Stmt) -> frozenset[int]:
    """What a ``Leave`` inside ``s`` may name without leaving it."""
    if isinstance(s, ir.Loop):
        return frozenset({s.label, s.continue_label})
    return frozenset({s.label}) if isinstance(s, ir.Block) else frozenset()


def assigned(s: Stmt) -> Var | None:
    """The variable that ``s`` sets."""
    return s.var if isinstance(s, (ir.Assign, ir.Load, ir.Atomic)) else None


def _condition(s: ir.If | ir.Loop | ir.Assume) -> tuple[Expr, ...]:
    return (s.condition,)


_USED: Mapping[type[Stmt], Callable[[Any], tuple[Expr, ...]]] = {
    ir.Assign: lambda s: (s.value,),
    ir.Load: lambda s: (s.pointer,),
    ir.Store: attrgetter("pointer", "value"),
    ir.Atomic: lambda s: (s.pointer, *s.operands),
    ir.Copy: attrgetter("destination", "source", "size"),
    ir.AwaitCopies: lambda s: () if s.pending is None else (s.pending,),
    ir.Barrier: lambda s: tuple(e for e in (s.mask, s.id, s.count, s.object, s.parity) if e is not None),
    ir.If: _condition,
    ir.Loop: _condition,
    ir.Assume: _condition,
    ir.Within: lambda s: (s.index,),
    ir.Incomplete: lambda s: s.pointers if s.attempt is None else (*s.pointers, *used(s.attempt.wait)),
}


def used(s: Stmt) -> tuple[Expr, ...]:
    """The expressions that ``s`` itself evaluates. A lock's address is one of the atomic that takes it."""
    parts = _USED.get(type(s))
    return () if parts is None else parts(s)


def stored(s: ir.Store) -> tuple[Expr, ...]:
    """What a store writes: the value, and those of a record's fields."""
    return (s.value, *(e for _, e in s.parts))


def expressions(statements: Iterable[Stmt]) -> Iterator[Expr]:
    """All that the statements and those inside them evaluate."""
    return (e for s in walk(statements) for e in used(s))


def read_expressions(statements: Iterable[Stmt]) -> Iterator[Expr]:
    """What ``expressions`` gives, but for values of variables that nobody reads.

    Of a copy of ``blockIdx`` of which ``x`` is used it is that.
    """
    values: dict[Var, list[Expr]] = {}
    waiting: list[Expr] = []
    for s in walk(statements):
        if isinstance(s, ir.Assign):
            values.setdefault(s.var, []).append(s.value)
        else:
            waiting.extend((*used(s), *(stored(s) if isinstance(s, ir.Store) else ())))
    seen: set[int] = set()

    def enter(e: Expr) -> bool:
        known = id(e) in seen
        seen.add(id(e))
        return not known

    while waiting:
        yield (e := waiting.pop())
        for part in subexpressions((e,), enter):
            if isinstance(part, Var):
                waiting.extend(values.pop(part, ()))


def pointers(s: Stmt) -> tuple[Expr, ...]:
    """Where ``s`` touches memory; what it writes first."""
    if isinstance(s, (ir.Load, ir.Store, ir.Atomic)):
        return (s.pointer,)
    return (s.destination, s.source) if isinstance(s, ir.Copy) else ()


def accesses(s: Stmt) -> tuple[tuple[Expr, Mode, Site], ...]:
    """Where ``s`` touches memory, how, and which expression of the source does; what it reads first."""
    if isinstance(s, ir.Copy):
        sides = ((s.source, Mode.READ), (s.destination, Mode.WRITE))
        return tuple((pointer, mode, s.where(mode)) for pointer, mode in sides)
    if isinstance(s, ir.Atomic):
        return ((s.pointer, s.mode, s.site),)
    modes = {ir.Load: Mode.READ, ir.Store: Mode.WRITE}
    return ((s.pointer, modes[type(s)], s.site),) if isinstance(s, (ir.Load, ir.Store)) else ()


def destinations(s: Stmt) -> tuple[Expr, ...]:
    """Where ``s`` may write; what was not translated may write wherever it is known to point."""
    if isinstance(s, ir.Incomplete):
        return s.pointers
    return () if isinstance(s, ir.Load) else pointers(s)[:1]


def written_arrays(statements: Iterable[Stmt]) -> set[ir.Array | None]:
    """The arrays that stores, atomics and copies evidently write, and None where that is not evident."""
    stores = (s for s in walk(statements) if isinstance(s, (ir.Store, ir.Atomic, ir.Copy)))
    return {root_array(pointer) for s in stores for pointer in destinations(s)}
