"""What must hold of every kernel program, whoever made it; the tests ask it of all that they lower.

The rules are those of the docstring of ``ir.program``: one type per operation, conversions explicit,
parameters never assigned, ``Leave`` only inside the region it leaves, every array named.
"""

from __future__ import annotations

from collections.abc import Iterator

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import BinaryOp, Expr, Stmt
from cuda_lsp.ir.types import BOOL, INT64, Pointer, Type
from cuda_lsp.ir.walk import assigned, children, expressions, labels, pointers, subexpressions, walk

_SHIFTS = (BinaryOp.SHL, BinaryOp.SHR)
_LOGICAL = (BinaryOp.AND, BinaryOp.OR)
_RELATIONS = (BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE, BinaryOp.EQ, BinaryOp.NE, *_LOGICAL)


def violations(kernel: ir.Kernel) -> list[str]:
    """One sentence for every broken invariant; empty when the program is well formed."""
    return list(dict.fromkeys(_violations(kernel)))


def _violations(kernel: ir.Kernel) -> Iterator[str]:
    listed, params = {a.id for a in kernel.arrays}, {p.id for p in kernel.params}
    statements = list(walk(kernel.body))
    locks = [s.lock.pointer for s in statements if isinstance(s, ir.Block) and s.lock is not None]
    parts = list(subexpressions((*expressions(kernel.body), *locks)))
    if len(listed) != len(kernel.arrays):
        yield "two arrays share an id"
    named = [label for s in statements for label in labels(s)]
    if len(named) != len(set(named)):
        yield "two regions share a label"
    held = {v.id: v for v in (*(e for e in parts if isinstance(e, ir.Var)), *kernel.params)}
    for s in statements:
        var = assigned(s)
        if var is not None and var.id in params:
            yield f"parameter {var.name} is assigned"
        if var is not None and held.setdefault(var.id, var) is not var:
            yield f"two variables share the number of {var}"
        yield from _statement(s)
    for e in parts:
        if isinstance(e, ir.AddressOf) and e.array.id not in listed:
            yield f"array {e.array} is not listed"
        yield from _expression(e)
    yield from _leaves(kernel.body, frozenset())


def _leaves(body: tuple[Stmt, ...], around: frozenset[int]) -> Iterator[str]:
    for s in body:
        if isinstance(s, ir.Leave) and s.label not in around:
            yield f"leave of label {s.label} outside its region"
        for part in children(s):  # only the body of a round may end the round
            ended = labels(s) - (
                {s.continue_label} if isinstance(s, ir.Loop) and part is not s.body else frozenset()
            )
            yield from _leaves(part, around | ended)


def _statement(s: Stmt) -> Iterator[str]:
    if isinstance(s, ir.Assign) and not _alike(s.var.type, s.value.type):
        yield f"{s.var} of type {s.var.type} gets a value of type {s.value.type}"
    if isinstance(s, ir.Load | ir.Atomic) and s.var is not None and not _alike(s.var.type, s.type):
        yield f"{s.var} of type {s.var.type} gets what is read as {s.type}"
    if isinstance(s, ir.Store) and not _alike(s.value.type, s.type):
        yield f"a value of type {s.value.type} is stored as {s.type}"
    if isinstance(s, ir.If | ir.Loop | ir.Assume) and s.condition.type != BOOL:
        yield f"a condition of type {s.condition.type}"
    addresses = [*pointers(s), *(s.pointers if isinstance(s, ir.Incomplete) else ())]
    if isinstance(s, ir.Incomplete) and s.attempt is not None:
        yield from _statement(s.attempt.wait)
    if isinstance(s, ir.Barrier) and s.object is not None:
        addresses.append(s.object)
    if isinstance(s, ir.Block) and s.lock is not None:
        addresses.append(s.lock.pointer)
    for pointer in addresses:
        if not isinstance(pointer.type, Pointer):
            yield f"{type(s).__name__} through something of type {pointer.type}"


def _expression(e: Expr) -> Iterator[str]:
    if isinstance(e, ir.Offset):
        if e.bytes.type != INT64:
            yield f"an offset of type {e.bytes.type}"
        if not isinstance(e.pointer.type, Pointer):
            yield f"an offset from something of type {e.pointer.type}"
    elif isinstance(e, ir.Unary) and e.op is ir.UnaryOp.NOT and {e.operand.type, e.type} != {BOOL}:
        yield f"! of {e.operand.type} is {e.type}"
    elif isinstance(e, ir.Select):
        if e.condition.type != BOOL:
            yield f"a choice by something of type {e.condition.type}"
        if not (_alike(e.then.type, e.type) and _alike(e.otherwise.type, e.type)):
            yield f"a choice of {e.then.type} and {e.otherwise.type} is {e.type}"
    elif isinstance(e, ir.Binary):
        yield from _binary(e)


def _binary(e: ir.Binary) -> Iterator[str]:
    left, right = e.left.type, e.right.type
    if (e.op in _LOGICAL and not left == right == BOOL) or (e.op not in _SHIFTS and not _alike(left, right)):
        yield f"{e.op.value} of {left} and {right}"
    if e.op in _RELATIONS and e.type != BOOL:
        yield f"{e.op.value} is {e.type}"
    pointers_apart = isinstance(left, Pointer) and e.type == INT64
    if e.op not in _RELATIONS and not _alike(left, e.type) and not pointers_apart:
        yield f"{e.op.value} of {left} is {e.type}"


def _alike(a: Type, b: Type) -> bool:
    return a == b or (isinstance(a, Pointer) and isinstance(b, Pointer))
