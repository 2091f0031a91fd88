"""C++ statements → those of the kernel program.

Control flow becomes the structured forms of ``ir.program``: ``break``, ``return`` and forward ``goto`` leave
labelled blocks; a backward ``goto`` is a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cuda_lsp.frontend.compile_errors import CompileError, Complaint
from cuda_lsp.frontend.lowering import conversions, expressions, lifetimes, lvalues
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.build import cast, zero
from cuda_lsp.frontend.lowering.declarations import declarations, declare
from cuda_lsp.frontend.lowering.loops import do_loop, for_loop, range_for, while_loop
from cuda_lsp.frontend.lowering.lost import is_statement, lost
from cuda_lsp.frontend.lowering.output import Untranslatable, unclear
from cuda_lsp.frontend.lowering.parts_in_macros import has_else
from cuda_lsp.frontend.lowering.places import (
    EXPR_TYPES,
    Address,
    Value,
)
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.switch import switch
from cuda_lsp.frontend.lowering.types import type_of
from cuda_lsp.frontend.tree import Node
from cuda_lsp.frontend.vocabulary import asm
from cuda_lsp.ir.program import (
    TRUE,
    Block,
    Const,
    Expr,
    If,
    Incomplete,
    Leave,
    Loop,
    NextStep,
    Stmt,
)
from cuda_lsp.ir.types import INT64
from cuda_lsp.ir.walk import walk
from cuda_lsp.model import Site


def statement(low: Lowering, node: Node) -> None:
    """Emit what a statement does; what is not covered becomes an ``Incomplete`` here."""
    low.step()
    handler = _HANDLERS.get(node.kind)
    temporaries = low.temporaries
    try:
        if handler is not None:
            handler(low, node)
        elif 100 <= node.kind < 200:
            expressions.discard(low, node)
        elif node.kind in (K.VAR,):
            declare(low, node)
        elif 200 <= node.kind < 300:
            raise Untranslatable(low.ast.text(node)[:60], "a statement of a kind not covered", node)
    except Untranslatable as missing:
        low.missing(missing, node, synchronises=_may_synchronise(low, node))
    if low.temporaries > temporaries:
        low.temporaries = temporaries
        text = low.ast.text(node)[:60]
        low.incomplete(text, "the destructor of a temporary object is not followed", node, synchronises=True)


def _may_synchronise(low: Lowering, node: Node) -> bool:
    text = low.ast.text(node)
    return "sync" in text or "barrier" in text or "wait" in text


def _compound(low: Lowering, node: Node) -> None:
    scopes = low.frame.scopes
    scopes.append([])
    behind = 0
    for index, (text, place) in lost(low.ast, node).items():
        sequence(low, node.children[behind:index])
        low.emit(_lost(text, Site(place, "", low.calls)))
        behind = index
    sequence(low, node.children[behind:])
    if scopes[-1] and not (low.out and isinstance(low.out[-1], Leave)):
        lifetimes.unwind(low, len(scopes) - 1, node)
    scopes.pop()


def sequence(low: Lowering, nodes: Sequence[Node]) -> None:
    """Statements in order; labels split them (forward ``goto`` leaves a block, backward repeats a loop)."""
    for index, node in enumerate(nodes):
        if node.kind == K.LABEL:
            _labelled(low, nodes, index)
            return
    for node in nodes:
        if low.errors:
            _report_errors(low, node)
        statement(low, node)


def _labelled(low: Lowering, nodes: Sequence[Node], index: int) -> None:
    label = nodes[index]
    name = low.ast.spelling(label.cursor)
    before, rest = nodes[:index], [*label.children, *nodes[index + 1 :]]
    forward = low.fresh()
    labels = low.frame.labels
    labels[name] = forward
    with low.nested() as statements:
        sequence(low, before)
    if any(_leaves(s, forward) for s in statements):
        low.emit(Block(forward, tuple(statements), low.site(label)))
    else:
        low.out.extend(statements)
    again, out = low.fresh(), low.fresh()
    labels[name] = again
    with low.nested() as statements:
        sequence(low, rest)
    del labels[name]
    if any(_leaves(s, again) for s in statements):
        site = low.site(label)
        body = (*statements, Leave(out, site))
        low.emit(Loop(out, again, (), TRUE, body, (), site))
    else:
        low.out.extend(statements)


def _leaves(statement: Stmt, label: int) -> bool:
    return any(isinstance(s, Leave) and s.label == label for s in walk((statement,)))


def _goto(low: Lowering, node: Node) -> None:
    name = low.ast.spelling(node.children[0].cursor) if node.children else ""
    label = low.frame.labels.get(name)
    if label is None:
        raise Untranslatable(f"goto {name}", "jumps into a block", node)
    if any(low.frame.scopes):
        raise Untranslatable(f"goto {name}", "may leave the scope of an object with a destructor", node)
    low.emit(Leave(label, low.site(node)))


def not_compiled(error: CompileError, site: Site) -> Incomplete:
    """What clang did not take, as a statement."""
    if error.complaint is Complaint.LAUNCH_ON_DEVICE:
        return Incomplete(
            "kernel launch in device code", "what child grids do is not modelled", site, synchronises=True
        )
    return Incomplete("compile error", error.message, site, synchronises=True, step=NextStep.HEADER)


def _report_errors(low: Lowering, node: Node) -> None:
    """Errors that clang reported before or inside this statement become incomplete here."""
    end = low.ast.extent(node)[0].end
    if node.kind in (K.COMPOUND, K.IF, K.FOR, K.WHILE, K.DO, K.SWITCH):
        end = low.ast.extent(node)[0].start
    while low.errors and low.errors[0].range.start < end:
        error = low.errors.pop(0)
        low.emit(not_compiled(error, Site(error.range, "", low.calls)))


def _if(low: Lowering, node: Node) -> None:
    children = list(node.children)
    otherwise: Node | None = None
    while children and (children[0].kind in (K.DECL_STMT, K.VAR) or children[0].kind == K.NULL):
        statement(low, children.pop(0))
    if len(children) == 3 and not has_else(low, node, children):
        statement(low, children.pop(0))
    if len(children) < 2:
        raise unclear("if", "clang could not make sense of its condition", node)
    test_node, then = children[0], children[1]
    if len(children) > 2:
        otherwise = children[2]
    test = _test(low, node, test_node)
    if isinstance(test, Const):
        chosen = then if test.value else otherwise
        if chosen is not None:
            statement(low, chosen)
        return
    with low.nested() as first:
        statement(low, then)
    with low.nested() as second:
        if otherwise is not None:
            statement(low, otherwise)
    if first or second:
        low.emit(If(test, tuple(first), tuple(second), low.site(test_node)))


def _test(low: Lowering, node: Node, test_node: Node) -> Expr:
    """The condition of an ``if``; that of ``if constexpr`` stands inside a node that only evaluates."""
    _, file, start, _ = low.ast.extent(node)
    if low.ast.contents(file)[start : start + 40].replace(b" ", b"").startswith(b"ifconstexpr"):
        known = low.ast.evaluate(test_node.cursor)
        if known is not None:
            return Const(int(bool(known)), TRUE.type)
    try:
        return expressions.condition(low, test_node)
    except Untranslatable as missing:
        low.missing(missing, test_node)
        test = low.unknown("a condition that is not covered", zero(INT64).type)
        return cast(test, TRUE.type)


def _return(low: Lowering, node: Node) -> None:
    frame = low.frame
    children = [c for c in node.children if c.kind >= 100]
    if children:
        _return_value(low, children[-1])
    if node.key in frame.tails:
        return
    frame.left = True
    lifetimes.unwind(low, 0, node)
    low.emit(Leave(frame.label, low.site(node)))


def _return_value(low: Lowering, node: Node) -> None:
    frame = low.frame
    if frame.by_reference:
        place = lvalues.place(low, node)
        if frame.result is None:
            frame.returned = place
        else:
            low.write(frame.result, low.pointer(low.address(place)), None)
        return
    if len(low.frames) == 1:
        expressions.discard(low, node)
        return
    temporaries = low.temporaries
    value = expressions.value(low, node)
    if low.temporaries > temporaries and lifetimes.ends(low, type_of(low.ast, node)):
        low.temporaries -= 1  # handed to the caller
    if frame.result is None or (not isinstance(value, EXPR_TYPES) and not hasattr(value, "fields")):
        frame.returned = value
        if frame.result is not None and isinstance(value, Address):
            frame.returned = None
            low.write(frame.result, low.pointer(value), None)
        return
    low.write(frame.result, conversions.convert(low, value, frame.result.info), None)


def _break(low: Lowering, node: Node) -> None:
    if not low.frame.breaks:
        raise Untranslatable("break", "outside a loop", node)
    _jump(low, low.frame.breaks[-1], node)


def _continue(low: Lowering, node: Node) -> None:
    if not low.frame.continues:
        raise Untranslatable("continue", "outside a loop", node)
    _jump(low, low.frame.continues[-1], node)


def _jump(low: Lowering, label: int, node: Node) -> None:
    lifetimes.unwind(low, low.frame.depths.get(label, 0), node)
    low.emit(Leave(label, low.site(node)))


def _wrapped(low: Lowering, node: Node) -> None:
    sequence(low, [c for c in node.children if c.kind >= 100 and c.kind < 400])


def _nothing(low: Lowering, node: Node) -> None:
    if is_statement(low.ast, node):
        low.emit(_lost("a statement", low.site(node)))


def _lost(text: str, site: Site) -> Incomplete:
    return Incomplete(text, "clang keeps nothing of it", site, synchronises=True, step=NextStep.HEADER)


def statement_expression(low: Lowering, node: Node) -> Value:
    """``({ …; value; })``."""
    inner = node.children[-1].children if node.children else []
    if not inner:
        return zero(INT64)
    sequence(low, inner[:-1])
    if 100 <= inner[-1].kind < 200:
        return expressions.value(low, inner[-1])
    statement(low, inner[-1])
    return zero(INT64)


_HANDLERS: dict[int, Callable[[Lowering, Node], None]] = {
    K.COMPOUND: _compound,
    K.DECL_STMT: declarations,
    K.VAR: declare,
    K.IF: _if,
    K.FOR: for_loop,
    K.WHILE: while_loop,
    K.DO: do_loop,
    K.RANGE_FOR: range_for,
    K.SWITCH: switch,
    K.RETURN: _return,
    K.BREAK: _break,
    K.CONTINUE: _continue,
    K.GOTO: _goto,
    K.ASM: asm.lower,
    K.UNEXPOSED_STMT: _wrapped,
    K.LABEL: lambda low, node: sequence(low, [node]),
    K.NULL: _nothing,
}
