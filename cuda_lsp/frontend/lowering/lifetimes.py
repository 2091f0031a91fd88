"""When objects end: destructors at the end of a scope and on the way out of it ([class.dtor], [stmt.jump]).

Locals are destroyed in reverse order of their declaration, then their members, then their bases. What is
not followed is said: arrays of such objects, parameters passed by value, ``goto`` out of a scope.
"""

from __future__ import annotations

from cuda_lsp.frontend.lowering import calls, functions, lvalues
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.places import Place
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import TypeInfo
from cuda_lsp.frontend.tree import Declaration, Node
from cuda_lsp.ir.program import NextStep


def destructor_of(low: Lowering, info: TypeInfo) -> Declaration | None:
    """The destructor that the class itself declares."""
    if info.kind != "record" or info.declaration is None or info.declaration.in_system_header:
        return None
    key = info.declaration.key
    if key not in low.ast.destructors:
        children = low.ast.children(info.declaration.cursor)
        found = next((c for c in children if c.kind == K.DESTRUCTOR), None)
        low.ast.destructors[key] = low.ast.declaration(found) if found is not None else None
    return low.ast.destructors[key]


def ends(low: Lowering, info: TypeInfo) -> bool:
    """Something happens when an object of this type ends."""
    if info.kind == "array" and info.target is not None:
        return ends(low, info.target)
    if info.kind != "record" or info.declaration is None or info.declaration.in_system_header:
        return False
    parts = [*(f.type for f in info.fields), *(base for _, base in info.bases)]
    return destructor_of(low, info) is not None or any(ends(low, part) for part in parts)


def declared(low: Lowering, place: Place) -> None:
    """A local object begins in the innermost scope."""
    if low.frame.scopes and ends(low, place.info):
        low.frame.scopes[-1].append(place)


def unwind(low: Lowering, depth: int, node: Node) -> None:
    """End the objects of all scopes deeper than ``depth``, innermost first."""
    for scope in reversed(low.frame.scopes[depth:]):
        for place in reversed(scope):
            destroy(low, place, node)


def destroy(low: Lowering, place: Place, node: Node) -> None:
    """The end of one object."""
    info = place.info
    if info.kind == "array":
        low.incomplete(f"array of {info.name}", "their destructors are not followed", node, synchronises=True)
        return
    own = destructor_of(low, info)
    if own is not None:
        function = functions.defined(low, own)
        if function.body is not None:
            calls.inline(low, node, function, [], place)
        elif "default" not in low.ast.text(low.ast.snapshot(own.cursor)):
            name = f"destructor of {info.name}"
            reason = "clang could read no body of it"
            low.incomplete(name, reason, node, synchronises=True, step=NextStep.BODY)
    inherited = {f.key for _, base in info.bases for f in base.fields}
    for field in reversed(info.fields):
        if field.key not in inherited and ends(low, field.type):
            destroy(low, low.member(place, field), node)
    for _, base in reversed(info.bases):
        if ends(low, base):
            destroy(low, lvalues.base_of(place, base), node)
