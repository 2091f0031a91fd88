"""Which part of an ``if`` or a ``for`` a child is, where a macro writes the statement.

libclang gives the children in a row, without those that are not there. Where they stand in the text tells
them apart; those of a macro all stand where it is used. There it is told by what they are: a condition is
asked, and what changes something is done. What may be either is not understood.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.output import Untranslatable
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import VOID, type_of
from cuda_lsp.frontend.tree import Node

_STATEMENTS = range(200, 300)


def has_else(low: Lowering, node: Node, parts: Sequence[Node]) -> bool:
    """Whether three parts of an ``if`` are (condition, then, else), and not (first, condition, then)."""
    first, then, last = parts
    if then.kind in _STATEMENTS:
        return True
    behind = _between(low, then, last)
    if b"else" in behind:
        return True
    if b";" in _between(low, first, then) and b")" in behind:
        return False
    if not _changes(low, then):
        raise Untranslatable("if", "a macro writes it, and which part is its condition is not known", node)
    return True


def _between(low: Lowering, one: Node, other: Node) -> bytes:
    """The text between two parts; nothing where they do not stand one behind the other."""
    _, file, _, end = low.ast.extent(one)
    _, other_file, start, _ = low.ast.extent(other)
    return low.ast.contents(file)[end:start] if file == other_file else b""


def for_parts_by_kind(
    low: Lowering, node: Node, parts: Sequence[Node]
) -> tuple[Node | None, Node | None, Node | None]:
    """(init, condition, step) of what there is of these."""
    declared = bool(parts) and parts[0].kind == K.DECL_STMT
    init, rest = (parts[0], parts[1:]) if declared else (None, parts)
    does = [_changes(low, part) for part in rest]
    if does == [False]:
        return init, rest[0], None
    if does == [False, True]:
        return init, rest[0], rest[1]
    if does == [True] and declared:
        return init, None, rest[0]
    if does == [True, False] and not declared:
        return rest[0], rest[1], None
    if not rest:
        return init, None, None
    raise Untranslatable("for", "a macro writes it, and which of its parts are there is not known", node)


def _changes(low: Lowering, node: Node) -> bool:
    """Whether an expression is there for what it does: nobody asks what it gives."""
    while node.kind in (K.PAREN, K.UNEXPOSED, K.C_CAST) and node.children:
        node = node.children[-1]
    if node.kind == K.COMPOUND_ASSIGN:
        return True
    if node.kind == K.UNARY:
        return 0 < low.ast.operator(node) <= K.PRE_DEC
    if node.kind == K.BINARY and len(node.children) == 2:
        op = low.ast.operator(node)
        return op == K.ASSIGN or (op == K.COMMA and _changes(low, node.children[-1]))
    return node.kind == K.CALL and type_of(low.ast, node) is VOID
