"""What inlining needs to know of a function: body, returns, what it assigns to; and of a call: arguments."""

from __future__ import annotations

from itertools import pairwise

from attrs import define

from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.syntax import strip
from cuda_lsp.frontend.lowering.types import VOID, TypeInfo, info
from cuda_lsp.frontend.tree import Declaration, Node


@define(eq=False)
class Function:
    """The parts of a function definition that inlining needs."""

    declaration: Declaration
    parameters: list[Declaration]
    body: Node | None
    initialisers: list[tuple[Node, Node]]
    result: TypeInfo
    returns: list[Node]
    tails: set[tuple[int, int]]
    written: set[int]  # declarations that the body evidently assigns to


def function_of(low: Lowering, declaration: Declaration) -> Function:
    """What is known of this declaration, itself: perhaps no body (see ``defined``)."""
    known = low.ast.functions.get(declaration.key)
    low.met.setdefault(declaration.key, declaration)
    if known is None:
        root = low.ast.body(declaration)
        body = next((c for c in root.children if c.kind in (K.COMPOUND, K.TRY)), None)
        if body is not None and body.kind == K.TRY:
            body = next((c for c in body.children if c.kind == K.COMPOUND), None)
        parameters = [low.ast.declaration(c.cursor) for c in root.children if c.kind == K.PARAMETER]
        returns: list[Node] = []
        if body is not None:
            _returns(body, returns)
        result = result_type(low, declaration)
        known = Function(
            declaration,
            [p for p in parameters if p is not None],
            body,
            _initialisers(root),
            result,
            returns,
            _tails(body) if body is not None else set(),
            written(low, body) if body is not None else set(),
        )
        low.ast.functions[declaration.key] = known
    return known


def result_type(low: Lowering, declaration: Declaration) -> TypeInfo:
    """The type that a function returns (VOID for constructors)."""
    if declaration.kind in (K.CONSTRUCTOR, K.DESTRUCTOR):
        return VOID
    lib = low.ast.lib
    return info(low.ast, lib.clang_getResultType(lib.clang_getCursorType(declaration.cursor)))


def written(low: Lowering, body: Node) -> set[int]:
    """Variables named on the left of an assignment or incremented: knowing them early saves restarts."""
    found: set[int] = set()
    pending = [body]
    while pending:
        node = pending.pop()
        pending.extend(node.children)
        kind = node.kind
        if (
            kind == K.COMPOUND_ASSIGN
            or (kind == K.BINARY and low.ast.operator(node) == K.ASSIGN)
            or (kind == K.UNARY and low.ast.operator(node) <= K.PRE_DEC)
        ) and node.children:
            target = strip(node.children[0])
            if target.kind == K.DECL_REF:
                declaration = low.ast.referenced(target)
                if declaration is not None:
                    found.add(declaration.key)
    return found


def defined(low: Lowering, declaration: Declaration) -> Function:
    """A function with its body where there is one (for an instantiation, "definition" is the template)."""
    own = function_of(low, declaration)
    if own.body is not None:
        return own
    definition = low.ast.definition(declaration)
    return function_of(low, definition) if definition is not None else own


def _returns(node: Node, found: list[Node]) -> None:
    for child in node.children:
        if child.kind == K.RETURN:
            found.append(child)
        elif child.kind != K.LAMBDA:
            _returns(child, found)


def _tails(node: Node) -> set[tuple[int, int]]:
    """Returns after which the function ends anyway."""
    if node.kind == K.RETURN:
        return {node.key}
    if node.kind == K.COMPOUND and node.children:
        return _tails(node.children[-1])
    if node.kind == K.IF and len(node.children) >= 2:
        found = _tails(node.children[-1])
        return found | _tails(node.children[-2]) if len(node.children) >= 3 else found
    return set()


def _initialisers(root: Node) -> list[tuple[Node, Node]]:
    """(member or base, expression) pairs of a constructor."""
    pairs: list[tuple[Node, Node]] = []
    children = root.children
    for first, second in pairwise(children):
        if first.kind in (K.MEMBER_REF, K.TYPE_REF, K.TEMPLATE_REF) and 100 <= second.kind < 200:
            pairs.append((first, second))
    return pairs


def argument_nodes(low: Lowering, node: Node) -> list[Node]:
    """The arguments of a call; default arguments included."""
    children = {child.key: child for child in node.children}
    found: list[Node] = []
    for cursor in low.ast.arguments(node):
        probe = children.get((0, cursor.data[1] or 0))
        found.append(probe if probe is not None else low.ast.snapshot(cursor))
    return found
