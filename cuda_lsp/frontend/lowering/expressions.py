"""C++ expressions → values; what they do to memory becomes statements, in evaluation order."""

from __future__ import annotations

from collections.abc import Callable

from cuda_lsp.frontend.lowering import (
    assignments,
    calls,
    closures,
    initialisers,
    lifetimes,
    lvalues,
    statements,
)
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.build import binary, select, unary, zero
from cuda_lsp.frontend.lowering.conversions import convert, converted, truth
from cuda_lsp.frontend.lowering.float_reasons import as_written, brief
from cuda_lsp.frontend.lowering.operators import arithmetic
from cuda_lsp.frontend.lowering.output import Untranslatable, unclear
from cuda_lsp.frontend.lowering.places import (
    PLACE_TYPES,
    FunctionValue,
    StaticPlace,
    Value,
    is_expr,
)
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.syntax import strip
from cuda_lsp.frontend.lowering.types import VOID, TypeInfo, type_of
from cuda_lsp.frontend.tree import Node
from cuda_lsp.ir.program import (
    AddressOf,
    Assign,
    BinaryOp,
    Const,
    Expr,
    If,
    UnaryOp,
)
from cuda_lsp.ir.types import BOOL, INT64, Float, Int, Pointer
from cuda_lsp.model import Space


def value(low: Lowering, node: Node) -> Value:
    """The value of an expression (lvalues are read)."""
    low.step()
    handler = _HANDLERS.get(node.kind)
    if handler is None:
        raise Untranslatable(
            low.ast.text(node)[:60] or "expression", "an expression of a kind not covered", node
        )
    return handler(low, node)


def scalar(low: Lowering, node: Node) -> Expr:
    """The value of a scalar expression."""
    return low.scalar(value(low, node), type_of(low.ast, node))


def discard(low: Lowering, node: Node) -> None:
    """Evaluate for the effects only."""
    while node.kind in (K.PAREN, K.C_CAST, K.UNEXPOSED) and node.children:
        node = node.children[-1]
    if node.kind in (K.DECL_REF, K.MEMBER_EXPR) and not type_of(low.ast, node).volatile:
        return
    if node.kind == K.BINARY and low.ast.operator(node) == K.ASSIGN:
        assignments.assign(low, node)
    elif node.kind == K.COMPOUND_ASSIGN:
        assignments.compound(low, node)
    elif node.kind == K.CALL:
        made = calls.call(low, node)  # a returned reference is not read
        if not isinstance(made, PLACE_TYPES) and lifetimes.ends(low, of := type_of(low.ast, node)):
            lifetimes.destroy(low, lvalues.temporary(low, made, of), node)
            low.temporaries -= 1
    elif node.kind == K.UNARY and 0 < (op := low.ast.operator(node)) <= K.PRE_DEC:
        assignments.increment(low, node.children[-1], op in (K.POST_INC, K.PRE_INC), post=False)
    elif node.kind == K.BINARY and low.ast.operator(node) == K.COMMA:
        for child in node.children:
            discard(low, child)
    else:
        value(low, node)


def condition(low: Lowering, node: Node) -> Expr:
    """An expression as a truth value."""
    return as_written(truth(low, value(low, node)), node, low.ast)


# ------------------------------------------------------------------------------------ casts


def _unexposed(low: Lowering, node: Node) -> Value:
    children = [c for c in node.children if c.kind >= 100]
    target = type_of(low.ast, node)
    if not children:
        return _evaluated(low, node, target, "value")
    if len(children) == 4 and low.ast.text(children[0]) == low.ast.text(children[2]):
        return _itself_or(low, node, children[0], children[3])
    child = children[-1]
    source = type_of(low.ast, child)
    if source.kind == "array" and target.kind == "pointer":
        return decay(low, child)
    if source.kind == "function" or target.kind == "function":
        named = low.ast.referenced(strip(child))
        known = named is not None and named.kind == K.FUNCTION
        return FunctionValue(named) if known and named is not None else low.unknown("a function", Pointer())
    if len(children) > 1 and target.kind == "unknown":
        raise unclear(low.ast.text(node)[:60], "clang could not make sense of it", node)
    if target is VOID:
        discard(low, child)
        return zero(INT64)
    return as_written(convert(low, value(low, child), target), child, low.ast)


def decay(low: Lowering, node: Node) -> Value:
    """Array to pointer. A parameter written as an array (``int x[]``) is a pointer already."""
    place = lvalues.place(low, node)
    return low.read(place, None) if place.info.kind == "pointer" else low.address(place)


def _cast(low: Lowering, node: Node) -> Value:
    target = type_of(low.ast, node)
    children = [c for c in node.children if c.kind >= 100]
    if not children:
        return _evaluated(low, node, target, "cast")
    if target is VOID:
        discard(low, children[-1])
        return zero(INT64)
    child = children[-1]
    if target.is_record and type_of(low.ast, child).is_record:
        return value(low, child)
    if type_of(low.ast, child).kind == "array":
        return convert(low, decay(low, child), target)
    return as_written(convert(low, value(low, child), target), child, low.ast)


def _evaluated(low: Lowering, node: Node, info: TypeInfo, what: str) -> Value:
    found = low.ast.evaluate(node.cursor)
    if found is None:
        text = low.ast.text(node)
        if info.kind == "unknown":
            raise unclear(text[:60] or what, "clang could not make sense of it", node)
        reason = (
            f"`{brief(text)}`, which clang cannot evaluate"
            if text
            else f"a {what} that clang cannot evaluate"
        )
        return low.unknown_record(info, reason) if info.kind == "record" else low.unknown(reason, info.ir)
    if isinstance(info.ir, Int):
        return Const(info.ir.wrap(int(found)), info.ir)
    if isinstance(info.ir, Float):
        return Const(float(found), info.ir)
    return Const(int(found), info.ir)


# ----------------------------------------------------------------------------------- leaves


def _literal(low: Lowering, node: Node) -> Value:
    return _evaluated(low, node, type_of(low.ast, node), "literal")


def _pointer_literal(low: Lowering, node: Node) -> Value:
    return Const(0, Pointer())


def _string(low: Lowering, node: Node) -> Value:
    return low.read(lvalues.place(low, node), node)


def _read(low: Lowering, node: Node) -> Value:
    return low.read(lvalues.place(low, node), node)


def _paren(low: Lowering, node: Node) -> Value:
    return value(low, node.children[-1]) if node.children else _literal(low, node)


def _this(low: Lowering, node: Node) -> Value:
    place = low.frame.this
    if place is None:
        raise Untranslatable("this", "the object is not known", node)
    return low.address(place)


# ------------------------------------------------------------------------------- operators


def _unary(low: Lowering, node: Node) -> Value:
    op: int = low.ast.operator(node)
    child = node.children[-1]
    if op in (K.POST_INC, K.POST_DEC, K.PRE_INC, K.PRE_DEC):
        return assignments.increment(
            low, child, op in (K.POST_INC, K.PRE_INC), op in (K.POST_INC, K.POST_DEC)
        )
    if op == K.ADDRESS_OF:
        place = lvalues.place(low, child)
        function = type_of(low.ast, child).kind == "function"
        if function and isinstance(place, StaticPlace) and isinstance(place.value, FunctionValue):
            return place.value
        return low.address(place)
    if op == K.DEREF:
        return _read(low, node)
    if op == K.NOT:
        return unary(UnaryOp.NOT, condition(low, child))
    operand = scalar(low, child)
    info = type_of(low.ast, node)
    if op in (K.PLUS, K.EXTENSION):
        return operand
    if op in (K.MINUS, K.INVERT) and isinstance(info.ir, Int):
        return unary(UnaryOp.NEG if op == K.MINUS else UnaryOp.INV, converted(low, operand, info.ir))
    if isinstance(operand, Const) and op == K.MINUS:
        return unary(UnaryOp.NEG, operand)
    if op == K.MINUS and isinstance(info.ir, Float) and operand.type == info.ir:
        return low.real(lambda: unary(UnaryOp.NEG, operand), "floating-point value", info.ir, [operand])
    return low.unknown("floating-point value", info.ir, [operand])


def _binary(low: Lowering, node: Node) -> Value:
    op: int = low.ast.operator(node)
    if len(node.children) == 1:  # around a constant expression there is one more node of the same kind
        return value(low, node.children[0])
    if len(node.children) != 2:
        raise unclear(low.ast.text(node)[:60], "clang could not make sense of it", node)
    left, right = node.children
    if op == K.ASSIGN:
        return low.read_back(assignments.assign(low, node))
    if op == K.COMMA:
        discard(low, left)
        return value(low, right)
    if op in (K.LOGICAL_AND, K.LOGICAL_OR):
        return _logical(low, left, right, op == K.LOGICAL_AND)
    operation = K.ARITHMETIC.get(op)
    if operation is None:
        raise Untranslatable(low.ast.text(node)[:60], "an operator that is not covered", node)
    a = value(low, left)
    a = assignments.held(low, a, right)
    b = value(low, right)
    result = arithmetic(
        low, operation, a, b, type_of(low.ast, left), type_of(low.ast, right), type_of(low.ast, node)
    )
    return as_written(result, node, low.ast)


def _logical(low: Lowering, left: Node, right: Node, conjunction: bool) -> Value:
    a = condition(low, left)
    if isinstance(a, Const):
        return condition(low, right) if bool(a.value) == conjunction else a
    with low.nested() as effects:
        b = condition(low, right)
    if not effects:
        return binary(BinaryOp.AND if conjunction else BinaryOp.OR, a, b)
    result = low.var("", BOOL)
    effects.append(Assign(result, b))
    low.emit(Assign(result, a))
    site = low.site(left)
    test: Expr = result
    low.emit(If(test, tuple(effects) if conjunction else (), () if conjunction else tuple(effects), site))
    return result


def _conditional(low: Lowering, node: Node) -> Value:
    children = [c for c in node.children if c.kind >= 100]
    if len(children) != 3:
        raise Untranslatable(low.ast.text(node)[:60], "a conditional expression that is not covered", node)
    info = type_of(low.ast, node)
    test = condition(low, children[0])
    if isinstance(test, Const):
        return convert(low, value(low, children[1 if test.value else 2]), info)
    with low.nested() as first:
        a = value(low, children[1]) if info is not VOID else discard(low, children[1])
    with low.nested() as second:
        b = value(low, children[2]) if info is not VOID else discard(low, children[2])
    if info is VOID:
        low.emit(If(test, tuple(first), tuple(second), low.site(node)))
        return zero(INT64)
    if not first and not second and is_expr(a) and is_expr(b):
        if isinstance(info.ir, Float):
            if low.computed and a.type == b.type == info.ir:
                return select(test, a, b, info.ir)
            return low.unknown("floating-point value", info.ir, [test, a, b])
        x, y = converted(low, a, info.ir), converted(low, b, info.ir)
        return select(test, x, y, info.ir)
    result = low.local("", info)
    with low.nested() as extra:
        low.write(result, convert(low, a, info), None)  # type: ignore[arg-type]
    first.extend(extra)
    with low.nested() as extra:
        low.write(result, convert(low, b, info), None)  # type: ignore[arg-type]
    second.extend(extra)
    low.emit(If(test, tuple(first), tuple(second), low.site(node)))
    return low.read(result, None)


def _itself_or(low: Lowering, node: Node, given: Node, otherwise: Node) -> Value:
    """``given ?: otherwise``, GNU's."""
    info = type_of(low.ast, node)
    result = low.local("", info)
    low.write(result, convert(low, value(low, given), info), None)
    test = truth(low, low.read(result, None))
    with low.nested() as lowered:
        low.write(result, convert(low, value(low, otherwise), info), None)
    low.emit(If(test, (), tuple(lowered), low.site(node)))
    return low.read(result, None)


def _compound(low: Lowering, node: Node) -> Value:
    return low.read_back(assignments.compound(low, node))


def _lambda(low: Lowering, node: Node) -> Value:
    return closures.closure(low, node)


def _call(low: Lowering, node: Node) -> Value:
    return calls.call_value(low, node)


def _init_list(low: Lowering, node: Node) -> Value:
    info = type_of(low.ast, node)
    children = [c for c in node.children if c.kind >= 100]
    if info.scalar:
        return convert(low, value(low, children[0]), info) if children else zero(info.ir)
    target = low.local("", info)
    initialisers.initialise(low, target, node)
    return low.read(target, None)


def _statement_expression(low: Lowering, node: Node) -> Value:
    return statements.statement_expression(low, node)


def _new(low: Lowering, node: Node) -> Value:
    info = type_of(low.ast, node)
    target = info.target or info
    array = low.array(
        f"new {low.fresh()}", "new", Space.LOCAL, TypeInfo("array", "", target.ir, 0, target=target)
    )
    return AddressOf(array, Pointer(info.pointee_size))


def _delete(low: Lowering, node: Node) -> Value:
    for child in node.children:
        if child.kind >= 100:
            value(low, child)
    return zero(INT64)


_HANDLERS: dict[int, Callable[[Lowering, Node], Value]] = {
    K.UNEXPOSED: _unexposed,
    K.DECL_REF: _read,
    K.MEMBER_EXPR: _read,
    K.SUBSCRIPT: _read,
    K.CALL: _call,
    K.INTEGER: _literal,
    K.FLOATING: _literal,
    K.CHARACTER: _literal,
    K.BOOL_LITERAL: _literal,
    K.SIZEOF: _literal,
    143: _literal,  # sizeof...(pack)
    K.STRING: _string,
    K.GNU_NULL: _pointer_literal,
    K.NULLPTR: _pointer_literal,
    K.PAREN: _paren,
    K.THIS: _this,
    K.UNARY: _unary,
    K.BINARY: _binary,
    K.COMPOUND_ASSIGN: _compound,
    K.CONDITIONAL: _conditional,
    K.C_CAST: _cast,
    K.STATIC_CAST: _cast,
    K.DYNAMIC_CAST: _cast,
    K.REINTERPRET_CAST: _cast,
    K.CONST_CAST: _cast,
    K.FUNCTIONAL_CAST: _cast,
    K.COMPOUND_LITERAL: _cast,
    K.INIT_LIST: _init_list,
    K.LAMBDA: _lambda,
    K.STATEMENT_EXPR: _statement_expression,
    K.NEW: _new,
    K.DELETE: _delete,
}
