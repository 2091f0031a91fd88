"""Lambdas: objects that hold what they captured by copy; references resolve where they are called.

What a lambda of the host holds by copy that a kernel was passed is a parameter of the kernel like any other.
"""

from __future__ import annotations

from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering import declarations, lvalues
from cuda_lsp.frontend.lowering.parameters import place_of_parameter
from cuda_lsp.frontend.lowering.places import Closure, Place, Value, VarPlace
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import TypeInfo, type_of
from cuda_lsp.frontend.tree import Declaration, Node

_LONGEST_CAPTURE = 2000  # characters between the brackets of a lambda


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


def captured(low: Lowering, declaration: Declaration, info: TypeInfo) -> Place | None:
    """A variable of the host that the lambda holds which is called; None: it is no such variable."""
    if declaration.kind != K.PARAMETER and not lvalues.is_automatic(low, declaration):
        return None
    function = low.ast.parent(declaration)
    if function is None or function.key in low.active:
        return None
    called = (found for key in reversed(low.active) if (found := low.met.get(key)) is not None)
    lambdas = (low.ast.parent(found) for found in called if found.name == "operator()")
    holder = next((found for found in lambdas if found is not None), None)
    if holder is None or holder.key in low.closures:
        return None
    held = _capture_list(low, holder)
    if held.isdisjoint(("=", declaration.name)) or f"&{declaration.name}" in held:
        return None
    clashes = declaration.name in low.record_fields or declaration.name in low.captured
    name = f"captured {declaration.name}" if clashes else declaration.name
    low.captured.append(name)
    value = info.target if info.kind == "reference" and info.target is not None else info
    return place_of_parameter(low, name, value, low.late_parameters, 0)


def _capture_list(low: Lowering, holder: Declaration) -> set[str]:
    """``{"=", "&n"}``: what stands between the brackets of a lambda, without spaces."""
    _, file, start, _ = low.ast.extent(Node(holder.cursor, (0, 0)))
    text = low.ast.contents(file)[start : start + _LONGEST_CAPTURE].decode(errors="replace")
    listed = text[1 : text.find("]")] if text.startswith("[") else ""
    return {"".join(part.split()) for part in listed.split(",")}
