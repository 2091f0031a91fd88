"""Local declarations: variables, references, shared arrays, structured bindings."""

from __future__ import annotations

from cuda_lsp.frontend.lowering import calls, expressions, initialisers, lifetimes, lvalues, objects
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.conversions import convert
from cuda_lsp.frontend.lowering.memory_spaces import spaces_of
from cuda_lsp.frontend.lowering.output import Untranslatable, unclear
from cuda_lsp.frontend.lowering.places import PLACE_TYPES, MemoryRecord, Place, RecordValue, Value, VarPlace
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import TypeInfo, type_of, type_of_declaration
from cuda_lsp.frontend.tree import Declaration, Node


def declarations(low: Lowering, node: Node) -> None:
    """``int a = 1, b;`` and structured bindings, one by one."""
    for child in node.children:
        if child.kind == K.VAR:
            declare(low, child)
        elif child.kind == K.BINDING and any(c.kind == K.BINDING for c in child.children):
            _decompose(low, child)


def _decompose(low: Lowering, node: Node) -> None:
    """``auto [a, b] = object;``: each name is a member (or element) of a copy, or of the object itself."""
    names = [
        d for c in node.children if c.kind == K.BINDING if (d := low.ast.declaration(c.cursor)) is not None
    ]
    source = next((c for c in reversed(node.children) if 100 <= c.kind < 200), None)
    if source is None:
        raise Untranslatable(low.ast.text(node)[:60], "a structured binding without an object", node)
    object = lvalues.place(low, source)
    head, bracket, _ = low.ast.text(node).partition("[")
    if not bracket or "auto" not in head or "(" in head:
        raise Untranslatable(low.ast.text(node)[:60], "a structured binding that a macro writes", node)
    if "&" not in head:
        copy = low.local("", object.info)
        low.write(copy, low.read(object, source), None)
        object = copy
    for index, declaration in enumerate(names):
        part = _part(low, object, index, len(names))
        if part is None:
            raise Untranslatable(
                low.ast.text(node)[:60], "a structured binding of a class of this kind", node
            )
        low.env[declaration.key] = part


def _part(low: Lowering, object: Place, index: int, count: int) -> Place | None:
    """One of the ``count`` parts of an object; None: nobody knows how to take it apart."""
    info = object.info
    fields = {field.name: field for field in info.fields}
    if info.kind == "array":
        return lvalues.indexed(object, index)
    if "__head" in fields:  # of std::tuple, as our declarations have it
        if not index:
            return low.member(object, fields["__head"])
        rest = fields.get("__rest")
        return _part(low, low.member(object, rest), index - 1, count - 1) if rest is not None else None
    if info.is_record and len(info.fields) == count:
        return low.member(object, info.fields[index])
    if len(info.fields) == 1 and info.fields[0].type.kind == "array":  # of std::array
        return lvalues.indexed(low.member(object, info.fields[0]), index)
    return None


def declare(low: Lowering, node: Node) -> None:
    """A local variable with its initialiser; when that is not understood, a local of unknown value."""
    declaration = low.ast.declaration(node.cursor)
    temporaries = low.temporaries
    if declaration is None:
        return
    key = declaration.key, len(low.active)
    if key in low.declaring:  # ``int t = t + 1;``
        raise Untranslatable(
            low.ast.text(node)[:60], "a variable whose initial value is made of itself", node
        )
    low.declaring.add(key)
    try:
        _declare(low, node)
        place = low.env.get(declaration.key)
        if place is not None and _is_own_object(low, declaration):
            lifetimes.declared(low, place)
            if low.temporaries > temporaries and lifetimes.ends(low, place.info):
                low.temporaries -= 1  # it is that object
    except Untranslatable:
        if declaration.key not in low.env:
            info = type_of_declaration(low.ast, declaration)
            if info.kind not in ("reference", "unknown"):
                low.env[declaration.key] = low.local(declaration.name, info, declaration.key)
        raise
    finally:
        low.declaring.discard(key)


def _is_own_object(low: Lowering, declaration: Declaration) -> bool:
    """A local object, no reference and not shared by the block."""
    if K.SHARED_ATTR in spaces_of(low.ast, declaration):
        return False
    return type_of_declaration(low.ast, declaration).kind in ("record", "array")


def _declare(low: Lowering, node: Node) -> None:
    declaration = low.ast.declaration(node.cursor)
    if declaration is None:
        return
    info = type_of_declaration(low.ast, declaration)
    if K.SHARED_ATTR in spaces_of(low.ast, declaration):
        low.env[declaration.key] = lvalues.shared(low, declaration, info)
        return
    storage = low.ast.lib.clang_Cursor_getStorageClass(node.cursor)
    if storage in (K.EXTERN, K.STATIC):  # not of this thread
        return
    initialiser = _initialiser(low, node, info)
    if info.kind == "reference":
        if initialiser is None:
            raise Untranslatable(declaration.name, "a reference without an object", node)
        low.env[declaration.key] = low.pinned(lvalues.place(low, initialiser))
        return
    if info.kind == "unknown":
        raise unclear(low.ast.text(node)[:60], "clang could not tell its type", node)
    if info.is_record and initialiser is not None and initialiser.kind == K.CALL:
        named = low.ast.referenced(initialiser)
        if named is not None and _only_declares(named, initialiser, info):
            low.env[declaration.key] = low.local(declaration.name, info, declaration.key)
            return
        own = named is not None and named.kind == K.CONSTRUCTOR and not named.in_system_header
        if named is not None and own and not objects.is_copy(low, initialiser, named):
            low.env[declaration.key] = place = low.local(declaration.name, info, declaration.key)
            made = objects.construct(low, initialiser, named, place)
            if made is not place and not isinstance(made, RecordValue | MemoryRecord):
                low.env[declaration.key] = (
                    made if isinstance(made, PLACE_TYPES) else lvalues.temporary(low, made, info)
                )
            return
    bound = _constant_or_alias(low, info, initialiser)
    if bound is not None:
        low.env[declaration.key] = calls.hold(low, declaration, info, bound)
        return
    place = low.local(declaration.name, info, declaration.key)
    low.env[declaration.key] = place
    if initialiser is not None:
        initialisers.initialise(low, place, initialiser)
    elif isinstance(place, VarPlace):
        low.emit_undefined(place)


def _only_declares(constructor: Declaration, node: Node, info: TypeInfo) -> bool:
    """``float4 v;``: a provided plain record without initial values."""
    return (
        constructor.kind == K.CONSTRUCTOR
        and constructor.in_system_header
        and not node.children
        and bool(info.fields)
        and "::" not in info.name
        and info.name != "dim3"
    )


def _constant_or_alias(low: Lowering, info: TypeInfo, initialiser: Node | None) -> Value | None:
    """The initial value where it may be bound without a variable, or an object that is no data."""
    if initialiser is None or info.kind == "array":
        return None
    if info.scalar and initialiser.kind != K.INIT_LIST:
        return convert(low, expressions.value(low, initialiser), info)
    if info.is_record and initialiser.kind != K.INIT_LIST:
        return expressions.value(low, initialiser)
    return None


def _initialiser(low: Lowering, node: Node, info: TypeInfo) -> Node | None:
    children = [c for c in node.children if 100 <= c.kind < 200]
    if info.kind == "array" and children:
        # the extents are children too; the initialiser comes last and starts after the name
        last = children[-1]
        if last.kind in (K.INIT_LIST, K.STRING, K.CALL) or type_of(low.ast, last).kind == "array":
            return last if last.kind != K.CALL else None
        return None
    return children[-1] if children else None
