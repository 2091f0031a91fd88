"""Lambdas: objects that hold what they captured by copy; references resolve where they are called.

What a lambda of the host holds by copy that a kernel was passed is a parameter of the kernel like any other.
"""

from __future__ import annotations

from cuda_lsp.frontend.host.text import split_arguments
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering import declarations, lvalues
from cuda_lsp.frontend.lowering.output import Untranslatable
from cuda_lsp.frontend.lowering.parameters import place_of_parameter
from cuda_lsp.frontend.lowering.places import Closure, MemoryPlace, Place, RecordPlace, Value, VarPlace
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import TypeInfo, type_of
from cuda_lsp.frontend.tree import Declaration, Node
from cuda_lsp.ir.program import Const, Copy
from cuda_lsp.ir.types import INT64
from cuda_lsp.ir.walk import root_array
from cuda_lsp.model import Space

_UNCLEAR = "a macro writes it, and how it captures variables is not known"
_LONGEST_CAPTURE = 2000  # characters between the brackets of a lambda


def closure(low: Lowering, node: Node) -> Value:
    """A lambda expression: copies what it captures by copy; references resolve where it is called."""
    info = type_of(low.ast, node)
    key = info.declaration.key if info.declaration is not None else node.key[1]
    text = low.ast.text(node)
    named = {
        d.key: d
        for c in node.children
        if c.kind == K.VARIABLE_REF and (d := low.ast.referenced(c)) is not None
    }
    if not text.startswith("["):
        _references(low, node, named)
        if any(_may_change(low, declaration) for declaration in named.values()):
            low.closures[key] = None  # nor is what a call of it does
            raise Untranslatable(text[:60], _UNCLEAR, node)
        named = {}
    captures = _captures(text)
    if "=" in captures:
        _references(low, node, named)
    this = low.frame.this
    made = Closure(
        key, {}, _copied(low, this, "", node) if this is not None and "*this" in captures else this
    )
    for child in node.children:
        if child.kind == K.VARIABLE_REF:
            made.captures.update(_initialised(low, child))
    for declared, declaration in named.items():
        place = low.env.get(declared)
        if place is None or declared in made.captures or f"&{declaration.name}" in captures:
            continue
        if declaration.kind == K.PARAMETER or lvalues.is_automatic(low, declaration):
            made.captures[declared] = _copied(low, place, declaration.name, node)
    low.closures[key] = made
    return made


def _may_change(low: Lowering, declaration: Declaration) -> bool:
    """Whether it is a variable of the function around, whose copy may come to be another number."""
    place = low.env.get(declaration.key)
    if declaration.kind != K.PARAMETER and not lvalues.is_automatic(low, declaration):
        return False
    if isinstance(place, VarPlace):
        return not place.constant and place.var.id not in low.stable
    return isinstance(place, MemoryPlace) or (isinstance(place, RecordPlace) and place.source is not place)


def _captures(text: str) -> set[str]:
    """``{"=", "&n", "m"}``: what stands between the brackets that a lambda begins with, without values."""
    depth, end = 0, 0
    while end < min(len(text), _LONGEST_CAPTURE):
        depth += (text[end] in "[({") - (text[end] in "])}")
        if not depth:
            break
        end += 1
    items = ("".join(part.split()) for part in split_arguments(text[1:end]))
    return {item if item == "=" else item.partition("=")[0] for item in items}


def _copied(low: Lowering, place: Place, name: str, node: Node) -> Place:
    """The lambda's own copy of an object; the object itself where nothing changes or follows it."""
    if isinstance(place, VarPlace):
        if place.constant:
            return place
        copy = VarPlace(place.info, low.var(place.var.name, place.info.ir), 0)
        low.write(copy, low.read(place, None), None)
        return copy
    if isinstance(place, MemoryPlace):
        base = root_array(place.pointer)
        local = base is not None and base.space is Space.LOCAL
        if not local and not place.info.scalar:
            return place
        copy = low.local(name, place.info)
        if place.info.kind == "array" and isinstance(copy, MemoryPlace):
            low.emit(Copy(copy.pointer, place.pointer, Const(place.info.size, INT64), low.site(node)))
        else:
            low.write(copy, low.read(place, None if local else node), None)
        return copy
    if isinstance(place, RecordPlace) and place.source is not place:  # a parameter as it was passed
        copy = low.local(name, place.info)
        low.write(copy, low.read(place, None), None)
        return copy
    return place


def _initialised(low: Lowering, node: Node) -> dict[int, Place]:
    """``[name = value]``: a variable of the lambda's own, made where the lambda is."""
    declaration = low.ast.referenced(node)
    if declaration is None or declaration.key in low.env or not lvalues.is_automatic(low, declaration):
        return {}
    declarations.declare(low, low.ast.body(declaration))
    made = low.env.pop(declaration.key, None)
    return {declaration.key: made} if made is not None else {}


def _references(low: Lowering, node: Node, found: dict[int, Declaration]) -> None:
    for child in node.children:
        if child.kind == K.DECL_REF:
            declaration = low.ast.referenced(child)
            if declaration is not None:
                found[declaration.key] = declaration
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
    parent = low.ast.parent(declaration) if declaration.name == "operator()" else None
    if parent is not None and low.closures.get(parent.key, parent) is None:
        raise Untranslatable("a lambda", _UNCLEAR)
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
