"""Loops of every form, keeping their structure."""

from __future__ import annotations

from collections.abc import Sequence

from cuda_lsp.frontend.lowering import conversions, expressions, lvalues, statements
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.build import binary, element
from cuda_lsp.frontend.lowering.output import Untranslatable, unclear
from cuda_lsp.frontend.lowering.parts_in_macros import for_parts_by_kind
from cuda_lsp.frontend.lowering.places import MemoryPlace, StaticPlace
from cuda_lsp.frontend.lowering.ranges import Iterators
from cuda_lsp.frontend.lowering.short_loops import values_of_counter
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import TypeInfo, type_of, type_of_declaration
from cuda_lsp.frontend.tree import Declaration, Node
from cuda_lsp.ir import walk
from cuda_lsp.ir.program import TRUE, Assign, Barrier, BinaryOp, Block, Const, Expr, Loop, Stmt
from cuda_lsp.ir.types import INT64
from cuda_lsp.ir.walk import root_array
from cuda_lsp.model import Space


def for_loop(low: Lowering, node: Node) -> None:
    """``for (init; test; step) body``; ``test`` may declare a variable."""
    init, variable, test, step, body = for_parts(low, node)
    counted = values_of_counter(low, init, test, step, body) if variable is None else None
    if counted is not None and body is not None and node.key in low.written_out:
        _written_out(low, node, *counted, body)
        return
    if init is not None:
        statements.statement(low, init)
    low.short_loops += (node.key,) if counted is not None else ()
    _loop(low, node, variable, test, step, body)
    if counted is not None:
        low.short_loops.pop()
        if not _only_computes(low, low.out[-1:]):
            low.walked.discard(node.key)


def _only_computes(low: Lowering, loop: Sequence[Stmt]) -> bool:
    """Whether a loop touches nothing that other threads see: of those that do, the loop itself tells more."""
    inside = list(walk.walk(loop))
    bases = [root_array(pointer) for s in inside for pointer, _, _ in walk.accesses(s)]
    own = all(base is not None and (base.space is Space.LOCAL or base.id in low.passed) for base in bases)
    return own and not any(isinstance(s, Barrier) for s in inside)


def _written_out(
    low: Lowering, node: Node, counter: Declaration, info: TypeInfo, values: tuple[int, ...], body: Node
) -> None:
    """The rounds of a loop one after the other, the counter a number in each."""
    label, site = low.fresh(), low.site(node)
    with low.nested() as rounds:
        for value in values:
            around = low.fresh()
            low.env[counter.key] = StaticPlace(info, Const(value, info.ir))
            with low.nested() as inside:
                _inside(low, body, label, around)
            low.emit(Block(around, tuple(inside), site))
    low.emit(Block(label, tuple(rounds), site))


def while_loop(low: Lowering, node: Node) -> None:
    """``while (test) body``. Raises ``Untranslatable`` where clang has no condition."""
    children = list(node.children)
    variable = children.pop(0) if children and children[0].kind in (K.VAR, K.DECL_STMT) else None
    if len(children) < 2:
        raise unclear("while", "clang could not make sense of its condition", node)
    _loop(low, node, variable, children[0], None, children[1])


def do_loop(low: Lowering, node: Node) -> None:
    """``do body while (test);``. Raises ``Untranslatable`` where clang has no condition."""
    if len(node.children) < 2:
        raise unclear("do", "clang could not make sense of its condition", node)
    _loop(low, node, None, node.children[1], None, node.children[0], tests_first=False)


def _loop(
    low: Lowering,
    node: Node,
    variable: Node | None,
    test: Node | None,
    step: Node | None,
    body: Node | None,
    tests_first: bool = True,
) -> None:
    label, around = low.fresh(), low.fresh()
    condition: Expr = TRUE
    with low.nested() as tests:
        if variable is not None:
            statements.statement(low, variable)
        if test is not None:
            condition = _condition(low, test)
    if isinstance(condition, Const) and not condition.value and tests_first and not tests:
        return
    with low.nested() as inside:
        _inside(low, body, label, around)
    with low.nested() as steps:
        if step is not None:
            statements.statement(low, step)
    site = low.site(test if test is not None else node)
    if isinstance(condition, Const) and not condition.value and not tests_first and not tests:
        _once(low, inside, label, around, node)
        return
    low.emit(Loop(label, around, tuple(tests), condition, tuple(inside), tuple(steps), site, tests_first))


def _once(low: Lowering, body: list[Stmt], label: int, around: int, node: Node) -> None:
    """``do … while (0)``: a block that ``break`` and ``continue`` leave."""
    site = low.site(node)
    low.emit(Block(label, (Block(around, tuple(body), site),), site))


def _condition(low: Lowering, test: Node) -> Expr:
    try:
        return expressions.condition(low, test)
    except Untranslatable as missing:
        low.missing(missing, test)
        return low.unknown("a condition that is not covered", TRUE.type)


def _inside(low: Lowering, body: Node | None, label: int, around: int) -> None:
    frame = low.frame
    frame.breaks.append(label)
    frame.continues.append(around)
    frame.depths[label] = frame.depths[around] = len(frame.scopes)
    if body is not None:
        statements.statement(low, body)
    frame.breaks.pop()
    frame.continues.pop()


def for_parts(
    low: Lowering, node: Node
) -> tuple[Node | None, Node | None, Node | None, Node | None, Node | None]:
    """(init, condition variable, condition, step, body); libclang omits absent parts without a trace."""
    children = list(node.children)
    if not children:
        return None, None, None, None, None
    body = children.pop()
    if len(children) == 3 and all(c.kind != K.VAR for c in children):
        return children[0], None, children[1], children[2], body
    semicolons = _semicolons(low, node)
    if len(semicolons) < 2 and children and all(c.kind != K.VAR for c in children):
        init, condition, step = for_parts_by_kind(low, node, children)
        return init, None, condition, step, body
    parts: list[Node | None] = [None, None, None]
    variable: Node | None = None
    for child in children:
        start = low.ast.extent(child)[2]
        index = sum(start > at for at in semicolons)
        if child.kind == K.VAR and index == 1:
            variable = child
        else:
            parts[min(index, 2)] = child
    return parts[0], variable, parts[1], parts[2], body


def _semicolons(low: Lowering, node: Node) -> list[int]:
    """Byte offsets of the two semicolons in a ``for``'s parentheses."""
    _, file, start, end = low.ast.extent(node)
    data = low.ast.contents(file)
    depth, found, at = 0, list[int](), data.find(b"(", start)
    while 0 <= at < end and len(found) < 2:
        char = data[at : at + 1]
        if char in b"([{":
            depth += 1
        elif char in b")]}":
            depth -= 1
            if depth == 0:
                break
        elif data[at : at + 2] == b"//":
            at = data.find(b"\n", at)
            continue
        elif data[at : at + 2] == b"/*":
            at = data.find(b"*/", at) + 2
            continue
        elif char == b";" and depth == 1:
            found.append(at)
        at += 1
    return found


def range_for(low: Lowering, node: Node) -> None:
    """``for (T x : array)``: a counted loop over the elements."""
    children = list(node.children)
    variable = next((c for c in children if c.kind == K.VAR), None)
    others = [c for c in children if c.kind >= 100]
    if variable is None or len(others) < 2:
        raise unclear("range-for", "clang could not make sense of it", node)
    range_node, body = others[-2], others[-1]
    source = _listed(range_node)
    info = type_of(low.ast, source)
    declaration = low.ast.declaration(variable.cursor)
    if info.kind == "record" and len(info.fields) == 1 and info.fields[0].type.kind == "array":  # std::array
        place = low.member(lvalues.place(low, source), info.fields[0])
        info = place.info
    elif info.kind == "array":
        place = lvalues.place(low, source)
    elif info.kind == "record" and declaration is not None:
        _over_iterators(low, node, Iterators(low, range_node, source), declaration, body)
        return
    else:
        raise Untranslatable(low.ast.text(range_node)[:60], "a range that is not an array", node)
    if info.count is None or info.target is None or declaration is None or not isinstance(place, MemoryPlace):
        raise Untranslatable(low.ast.text(range_node)[:60], "a range of unknown length", node)
    index = low.var("", INT64)
    low.emit(Assign(index, Const(0, INT64)))
    label, around = low.fresh(), low.fresh()
    item = MemoryPlace(info.target, element(place.pointer, index, max(1, info.target.size)))
    type = type_of_declaration(low.ast, declaration)
    with low.nested() as inside:
        if type.kind == "reference":
            low.env[declaration.key] = item
        else:
            copy = low.local(declaration.name, type, declaration.key)
            low.env[declaration.key] = copy
            low.write(copy, conversions.convert(low, low.read(item, range_node), type), None)
        _inside(low, body, label, around)
    step = (Assign(index, binary(BinaryOp.ADD, index, Const(1, INT64))),)
    test = binary(BinaryOp.LT, index, Const(info.count, INT64))
    low.emit(Loop(label, around, (), test, tuple(inside), step, low.site(range_node)))


def _over_iterators(
    low: Lowering, node: Node, iterators: Iterators, declaration: Declaration, body: Node
) -> None:
    label, around = low.fresh(), low.fresh()
    with low.nested() as tests:
        differ = iterators.differ()
    with low.nested() as inside:
        iterators.give(declaration)
        _inside(low, body, label, around)
    with low.nested() as steps:
        iterators.advance()
    low.emit(Loop(label, around, tuple(tests), differ, tuple(inside), tuple(steps), low.site(node)))


def _listed(node: Node) -> Node:
    """The array behind a braced list's ``initializer_list``."""
    probe = node
    while probe.kind == K.UNEXPOSED and probe.children:
        probe = probe.children[-1]
    return probe if probe.kind == K.INIT_LIST else node


__all__ = ["StaticPlace", "do_loop", "for_loop", "range_for", "while_loop"]
