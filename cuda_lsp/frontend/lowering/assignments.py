"""C++ expressions that write to what they name: assignments, increments, and operands that one may change."""

from __future__ import annotations

from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering import expressions, lvalues
from cuda_lsp.frontend.lowering.build import binary, cast
from cuda_lsp.frontend.lowering.conversions import convert
from cuda_lsp.frontend.lowering.operators import arithmetic, stepped
from cuda_lsp.frontend.lowering.output import Untranslatable
from cuda_lsp.frontend.lowering.places import Place, Value, VarPlace
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import common, promote, type_of
from cuda_lsp.frontend.tree import Node
from cuda_lsp.ir.program import Assign, BinaryOp, Expr, Var
from cuda_lsp.ir.types import Int


def assign(low: Lowering, node: Node) -> Place:
    """``left = right``; gives the left object."""
    left, right = node.children
    new = expressions.value(low, right)
    new = held(low, new, left)
    target = lvalues.place(low, left)
    new = convert(low, new, target.info)
    low.write(target, new, left)
    low.assigned_value = new
    return target


def compound(low: Lowering, node: Node) -> Place:
    """``x += y`` and its kin; gives the place that was written."""
    left, right = node.children
    op = K.COMPOUND_ARITHMETIC.get(low.ast.operator(node))
    if op is None:
        raise Untranslatable(low.ast.text(node)[:60], "an operator that is not covered", node)
    operand = expressions.value(low, right)
    target = lvalues.place(low, left)
    info = target.info
    old = low.read(target, left)
    if info.is_pointer:
        new = arithmetic(low, op, old, operand, info, type_of(low.ast, right), info)
    else:
        x, y = low.scalar(old, info), low.scalar(operand, type_of(low.ast, right))
        shift = op in (BinaryOp.SHL, BinaryOp.SHR)
        assert x.type is not None
        wide = (promote(x.type) if shift else common(x.type, y.type)) if isinstance(x.type, Int) else x.type
        if not isinstance(wide, Int) or not isinstance(y.type, Int):
            new = low.floating(op, info.ir, x, y)
        else:
            new = cast(binary(op, cast(x, wide), y if shift else cast(y, wide), wide), info.ir)
    low.write(target, new, left)
    low.assigned_value = new
    return target


def increment(low: Lowering, node: Node, up: bool, post: bool) -> Value:
    """``++x``, ``x++`` (``post``), ``--x``: the value before for ``post``, else the one after."""
    place = lvalues.place(low, node)
    old = low.scalar(low.read(place, node), place.info)
    if post and isinstance(place, VarPlace):
        copy = low.var("", place.info.ir)
        low.emit(Assign(copy, old))
        old = copy
    new = _step(low, place, old, node, up)
    return old if post else new if not isinstance(place, VarPlace) else place.var


def incremented(low: Lowering, node: Node, up: bool) -> Place:
    """The object that ``++x`` or ``--x`` names, found once: what it takes to name it happens once."""
    place = lvalues.place(low, node)
    _step(low, place, low.scalar(low.read(place, node), place.info), node, up)
    return place


def _step(low: Lowering, place: Place, old: Expr, node: Node, up: bool) -> Expr:
    new = stepped(low, old, place.info, up)
    low.write(place, new, node)
    return new


def held(low: Lowering, operand: Value, later: Node) -> Value:
    """Copy a variable read before an operand that may change it (``i + i++``-like code, calls)."""
    if isinstance(operand, Var) and operand.name and _may_assign(low, later):
        copy = low.var("", operand.type)
        low.emit(Assign(copy, operand))
        return copy
    return operand


def _may_assign(low: Lowering, node: Node) -> bool:
    if node.kind in (K.CALL, K.COMPOUND_ASSIGN):
        return True
    if node.kind == K.UNARY and low.ast.operator(node) <= K.PRE_DEC:
        return True
    if node.kind == K.BINARY and low.ast.operator(node) == K.ASSIGN:
        return True
    return any(_may_assign(low, child) for child in node.children)
