"""What must hold of every kernel program, whoever made it.

The rules are those of the docstring of ``ir.program``: one type per operation, conversions explicit,
parameters never assigned, ``Leave`` only inside the region it leaves, every array and site named.
"""

from __future__ import annotations

from collections.abc import Iterator

from cuda_lsp.ir.program import (
    AddressOf,
    Assign,
    Assume,
    Atomic,
    Barrier,
    Binary,
    BinaryOp,
    Block,
    Cast,
    Copy,
    Expr,
    If,
    Incomplete,
    Intrinsic,
    Kernel,
    Leave,
    Load,
    Loop,
    Offset,
    Select,
    Stmt,
    Store,
    Unary,
)
from cuda_lsp.ir.types import BOOL, INT64, Pointer

_SHIFTS = (BinaryOp.SHL, BinaryOp.SHR)
_LOGICAL = (BinaryOp.AND, BinaryOp.OR)


def violations(kernel: Kernel) -> list[str]:
    """One sentence for every broken invariant; empty when the program is well formed."""
    return list(_Checker(kernel).run())


class _Checker:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.arrays = {a.id for a in kernel.arrays}
        self.params = {p.id for p in kernel.params}

    def run(self) -> Iterator[str]:
        if len(self.arrays) != len(self.kernel.arrays):
            yield "two arrays share an id"
        yield from self._statements(self.kernel.body, frozenset())

    def _statements(self, body: tuple[Stmt, ...], labels: frozenset[int]) -> Iterator[str]:
        for statement in body:
            yield from self._statement(statement, labels)

    def _statement(self, s: Stmt, labels: frozenset[int]) -> Iterator[str]:
        var = getattr(s, "var", None)
        if var is not None and var.id in self.params:
            yield f"parameter {var.name} is assigned"
        for expr in _expressions(s):
            yield from self._expression(expr)
        if (
            isinstance(s, Assign)
            and s.var.type != s.value.type
            and not _both_pointers(s.var.type, s.value.type)
        ):
            yield f"{s.var} of type {s.var.type} gets a value of type {s.value.type}"
        elif isinstance(s, Load | Store | Atomic) and not isinstance(s.pointer.type, Pointer):
            yield f"{type(s).__name__} through something of type {s.pointer.type}"
        elif isinstance(s, If):
            if s.condition.type != BOOL:
                yield f"a condition of type {s.condition.type}"
            yield from self._statements(s.then, labels)
            yield from self._statements(s.otherwise, labels)
        elif isinstance(s, Loop):
            if s.condition.type != BOOL:
                yield f"a loop condition of type {s.condition.type}"
            around = labels | {s.label}
            yield from self._statements(s.test, around)
            yield from self._statements(s.body, around | {s.continue_label})
            yield from self._statements(s.step, around)
        elif isinstance(s, Block):
            yield from self._statements(s.body, labels | {s.label})
        elif isinstance(s, Leave) and s.label not in labels:
            yield f"leave of label {s.label} outside its region"

    def _expression(self, e: Expr) -> Iterator[str]:
        if isinstance(e, AddressOf):
            if e.array.id not in self.arrays:
                yield f"array {e.array} is not listed"
        elif isinstance(e, Offset):
            if e.bytes.type != INT64:
                yield f"an offset of type {e.bytes.type}"
        elif isinstance(e, Binary):
            yield from _operands(e)
        for child in _children(e):
            yield from self._expression(child)


def _operands(e: Binary) -> Iterator[str]:
    left, right = e.left.type, e.right.type
    if e.op in _LOGICAL:
        if left != BOOL or right != BOOL:
            yield f"{e.op.value} of {left} and {right}"
    elif e.op not in _SHIFTS and left != right and not _both_pointers(left, right):
        yield f"{e.op.value} of {left} and {right}"


def _both_pointers(a: object, b: object) -> bool:
    return isinstance(a, Pointer) and isinstance(b, Pointer)


def _children(e: Expr) -> tuple[Expr, ...]:
    if isinstance(e, Unary | Cast):
        return (e.operand,)
    if isinstance(e, Binary):
        return (e.left, e.right)
    if isinstance(e, Select):
        return (e.condition, e.then, e.otherwise)
    if isinstance(e, Intrinsic):
        return e.operands
    if isinstance(e, Offset):
        return (e.pointer, e.bytes)
    return ()


def _expressions(s: Stmt) -> tuple[Expr, ...]:
    """The expressions that a statement itself holds."""
    if isinstance(s, Assign):
        return (s.value,)
    if isinstance(s, Load):
        return (s.pointer,)
    if isinstance(s, Store):
        return (s.pointer, s.value)
    if isinstance(s, Atomic):
        return (s.pointer, *s.operands)
    if isinstance(s, Copy):
        return (s.destination, s.source, s.size)
    if isinstance(s, Barrier):
        return tuple(e for e in (s.mask, s.id, s.count, s.object, s.parity) if e is not None)
    if isinstance(s, If | Loop | Assume):
        return (s.condition,)
    if isinstance(s, Incomplete):
        return s.pointers
    return ()
