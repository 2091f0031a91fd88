"""``switch``: nested blocks, so that fall-through is falling out of one block into the next."""

from __future__ import annotations

from attrs import define, field

from cuda_lsp.frontend import budgets
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering import expressions, statements
from cuda_lsp.frontend.lowering.build import binary, cast
from cuda_lsp.frontend.lowering.output import unclear
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.tree import Node
from cuda_lsp.ir.program import FALSE, Assign, BinaryOp, Block, Const, Expr, If, Leave, Stmt


@define(eq=False)
class Segment:
    """Statements behind one group of labels."""

    values: list[Node] = field(factory=list[Node])
    default: bool = False
    body: list[Node] = field(factory=list[Node])


def switch(low: Lowering, node: Node) -> None:
    """A chain of blocks that the chosen label leaves, so that cases fall through."""
    children = list(node.children)
    while children and children[0].kind in (K.DECL_STMT, K.VAR):
        statements.statement(low, children.pop(0))
    if len(children) != 2:
        raise unclear("switch", "clang could not make sense of it", node)
    subject = expressions.scalar(low, children[0])
    if not isinstance(subject, Const):
        held = low.var("", subject.type)
        low.emit(Assign(held, subject))
        subject = held
    segments = _segments(children[1])
    if len(segments) > budgets.MOST_CASES:
        raise budgets.TooMuch(f"a switch has more than {budgets.MOST_CASES:,} cases")
    tests = [_test(low, subject, segment) for segment in segments]
    label = low.fresh()
    low.frame.breaks.append(label)
    low.frame.depths[label] = len(low.frame.scopes)
    bodies: list[list[Stmt]] = []
    for segment in segments:
        with low.nested() as lowered:
            statements.sequence(low, segment.body)
        bodies.append(lowered)
    low.frame.breaks.pop()
    low.emit(_assemble(low, node, label, segments, tests, bodies))


def _segments(body: Node) -> list[Segment]:
    segments: list[Segment] = []
    for child in body.children if body.kind == K.COMPOUND else [body]:
        if child.kind in (K.CASE, K.DEFAULT):
            segment = Segment()
            while child.kind in (K.CASE, K.DEFAULT):
                if child.kind == K.CASE:
                    segment.values.append(child.children[0])
                else:
                    segment.default = True
                if not child.children:
                    break
                child = child.children[-1]
            segment.body.append(child)
            segments.append(segment)
        elif segments:
            segments[-1].body.append(child)
    return segments


def _test(low: Lowering, subject: Expr, segment: Segment) -> Expr:
    test: Expr = FALSE
    for node in segment.values:
        value = cast(expressions.scalar(low, node), subject.type)
        test = binary(BinaryOp.OR, test, binary(BinaryOp.EQ, subject, value))
    return test


def _assemble(
    low: Lowering,
    node: Node,
    label: int,
    segments: list[Segment],
    tests: list[Expr],
    bodies: list[list[Stmt]],
) -> Block:
    """Every segment is what follows the block that a jump to it leaves."""
    site = low.site(node)
    targets = [low.fresh() for _ in segments]
    jumps: list[Stmt] = []
    default = label
    for segment, target, test in zip(segments, targets, tests, strict=True):
        if segment.default:
            default = target
        if segment.values:
            jumps.append(If(test, (Leave(target, site),), (), site))
    jumps.append(Leave(default, site))
    inner: list[Stmt] = jumps
    for target, body in zip(targets, bodies, strict=True):
        inner = [Block(target, tuple(inner), site), *body]
    return Block(label, tuple(inner), site)
