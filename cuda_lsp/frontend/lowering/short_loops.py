"""Loops of few rounds that walk arrays of the thread's own: ``for (int d = 0; d < 3; d++) a += x[d] * p[d]``.

A scalar of a parameter is a parameter like any other where its place is known (``parameters``): of a
pitch more can be said than of what some memory holds. Such a loop is written out, its counter a number
in each round. That is what the program does: the counter begins with a number, and nothing but the
header changes it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator

from cuda_lsp.frontend import budgets
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import TypeInfo, type_of, type_of_declaration
from cuda_lsp.frontend.tree import Declaration, Node
from cuda_lsp.ir.program import BinaryOp
from cuda_lsp.ir.types import Int

_ELSEWHERE = frozenset({K.LAMBDA, K.GOTO, K.INDIRECT_GOTO, K.LABEL, K.CASE, K.DEFAULT, K.ASM})
_HOLDS: dict[BinaryOp, Callable[[int, int], bool]] = {
    BinaryOp.LT: operator.lt,
    BinaryOp.LE: operator.le,
    BinaryOp.GT: operator.gt,
    BinaryOp.GE: operator.ge,
    BinaryOp.NE: operator.ne,
}


def values_of_counter(
    low: Lowering, init: Node | None, test: Node | None, step: Node | None, body: Node | None
) -> tuple[Declaration, TypeInfo, tuple[int, ...]] | None:
    """The counter of a loop, and what it is in each round; None: that is not plain, or they are many."""
    if init is None or test is None or step is None or body is None:
        return None
    variable = init.children[0] if init.kind == K.DECL_STMT and len(init.children) == 1 else init
    declaration = low.ast.declaration(variable.cursor) if variable.kind == K.VAR else None
    if declaration is None or not variable.children:
        return None
    info = type_of_declaration(low.ast, declaration)
    lasts = low.ast.lib.clang_Cursor_getStorageClass(declaration.cursor) in (K.EXTERN, K.STATIC)
    if not isinstance(info.ir, Int) or info.volatile or lasts:
        return None
    first = low.ast.evaluate(variable.children[-1].cursor)
    by = _step(low, step, declaration)
    if not isinstance(first, int) or not by or not _only_read(low, body, declaration):
        return None
    values: list[int] = []
    value = first
    while (goes_on := _goes_on(low, test, declaration, value)) and len(values) < budgets.SHORT_ROUNDS:
        values.append(value)
        value += by
    fits = all(info.ir.minimum <= each <= info.ir.maximum for each in (*values, value))
    return (declaration, info, tuple(values)) if goes_on is False and fits else None


def _goes_on(low: Lowering, test: Node, counter: Declaration, value: int) -> bool | None:
    """Whether the condition holds of a value of the counter; None: it says something else."""
    operation = K.ARITHMETIC.get(low.ast.operator(test)) if test.kind == K.BINARY else None
    if operation not in _HOLDS or len(test.children) != 2 or not _is(low, test.children[0], counter):
        return None
    limit = low.ast.evaluate(test.children[1].cursor)
    if not isinstance(limit, int) or (
        min(value, limit) < 0 and not all(_signed(low, x) for x in test.children)
    ):
        return None
    return _HOLDS[operation](value, limit)


def _signed(low: Lowering, node: Node) -> bool:
    type = type_of(low.ast, node).ir
    return isinstance(type, Int) and type.signed


def _step(low: Lowering, step: Node, counter: Declaration) -> int:
    """What the header adds to the counter in each round; 0: it does something else."""
    if not step.children or not _is(low, step.children[0], counter):
        return 0
    operation = low.ast.operator(step)
    if step.kind == K.UNARY:
        return {K.PRE_INC: 1, K.POST_INC: 1, K.PRE_DEC: -1, K.POST_DEC: -1}.get(operation, 0)
    if step.kind == K.COMPOUND_ASSIGN and len(step.children) == 2:
        by = low.ast.evaluate(step.children[1].cursor)
        added = K.COMPOUND_ARITHMETIC.get(operation)
        sign = 1 if added is BinaryOp.ADD else -1 if added is BinaryOp.SUB else 0
        return sign * by if isinstance(by, int) else 0
    return 0


def _is(low: Lowering, node: Node, counter: Declaration) -> bool:
    while node.kind in (K.UNEXPOSED, K.PAREN) and len(node.children) == 1:
        node = node.children[0]
    return node.kind == K.DECL_REF and low.ast.referenced(node) is counter


def _only_read(low: Lowering, body: Node, counter: Declaration) -> bool:
    """Whether the body only takes the counter's value: clang has a cast to the plain type there."""
    for count, (node, parent) in enumerate(_with_parents(body)):
        if count > budgets.SHORT_BODY or node.kind in _ELSEWHERE:
            return False
        read = parent is not None and parent.kind == K.UNEXPOSED and not type_of(low.ast, parent).const
        if node.kind == K.DECL_REF and not read and low.ast.referenced(node) is counter:
            return False
    return True


def _with_parents(root: Node) -> Iterator[tuple[Node, Node | None]]:
    pending: list[tuple[Node, Node | None]] = [(root, None)]
    while pending:
        node, parent = pending.pop()
        yield node, parent
        pending += ((child, node) for child in node.children)
