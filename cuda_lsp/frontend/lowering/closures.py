"""Lambdas: objects that hold what they captured by copy; references resolve where they are called."""

from __future__ import annotations

from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering import declarations, lvalues
from cuda_lsp.frontend.lowering.places import Closure, Place, Value, VarPlace
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import type_of
from cuda_lsp.frontend.tree import Declaration, Node


def closure(low: Lowering, node: Node) -> Value:
    """A lambda expression: copies what it captures by copy; references resolve where it is called."""
    info = type_of(low.ast, node)
    key = info.declaration.key if info.declaration is not None else node.key[1]
    text = low.ast.text(node)
    capture = text[: text.find("]") + 1].replace(" ", "")
    made = Closure(key, {}, low.frame.this)
    named = {
        d.key for c in node.children if c.kind == K.VARIABLE_REF if (d := low.ast.referenced(c)) is not None
    }
    if capture.startswith("[="):
        _references(low, node, named)
    for child in node.children:
        if child.kind == K.VARIABLE_REF:
            made.captures.update(_initialised(low, child))
    for declared in named - made.captures.keys():
        place = low.env.get(declared)
        if not isinstance(place, VarPlace) or place.constant:
            continue
        name = place.var.name
        if f"&{name}" in capture:
            continue
        copy = VarPlace(place.info, low.var(name, place.info.ir), 0)
        low.write(copy, low.read(place, None), None)
        made.captures[declared] = copy
    low.closures[key] = made
    return made


def _initialised(low: Lowering, node: Node) -> dict[int, Place]:
    """``[name = value]``: a variable of the lambda's own, made where the lambda is."""
    declaration = low.ast.referenced(node)
    if declaration is None or declaration.key in low.env or not lvalues.is_automatic(low, declaration):
        return {}
    declarations.declare(low, low.ast.body(declaration))
    made = low.env.pop(declaration.key, None)
    return {declaration.key: made} if made is not None else {}


def _references(low: Lowering, node: Node, found: set[int]) -> None:
    for child in node.children:
        if child.kind == K.DECL_REF:
            declaration = low.ast.referenced(child)
            if declaration is not None:
                found.add(declaration.key)
        _references(low, child, found)


def closure_of(low: Lowering, declaration: Declaration) -> Closure | None:
    """The lambda whose call operator a function is; None: it is another function."""
    if declaration.name != "operator()":
        return None
    parent = low.ast.parent(declaration)
    found = low.closures.get(parent.key) if parent is not None else None
    return found if isinstance(found, Closure) else None


def captures(low: Lowering, declaration: Declaration) -> dict[int, Place]:
    """What the lambda of a call operator holds by copy: declaration → place; nothing for other functions."""
    found = closure_of(low, declaration)
    return dict(found.captures) if found is not None else {}
