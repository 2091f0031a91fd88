"""C++ lvalues → places: which object an expression names, to the byte."""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.frontend.lowering import (
    assignments,
    calls,
    closures,
    declarations,
    expressions,
    initialisers,
    tables,
)
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.base_classes import field_offset, hides_bases, offset_in
from cuda_lsp.frontend.lowering.build import cast, element, offset_by, select
from cuda_lsp.frontend.lowering.memory_spaces import spaces_of
from cuda_lsp.frontend.lowering.output import Untranslatable, unclear
from cuda_lsp.frontend.lowering.places import (
    EXPR_TYPES,
    PLACE_TYPES,
    Address,
    DataPlace,
    FunctionValue,
    MemoryPlace,
    MemoryRecord,
    Place,
    RecordPlace,
    RecordValue,
    StaticPlace,
    Value,
)
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.syntax import strip
from cuda_lsp.frontend.lowering.types import Field, TypeInfo, field_of, type_of, type_of_declaration
from cuda_lsp.frontend.tree import Declaration, Node
from cuda_lsp.ir.program import AddressOf, Assign, Axis, Builtin, Const, Expr, If, NextStep, Within
from cuda_lsp.ir.types import INT32, INT64, Float, Int, Pointer
from cuda_lsp.ir.walk import root
from cuda_lsp.model import Space

_FUNCTIONS = {K.FUNCTION, K.METHOD, K.CONSTRUCTOR, K.DESTRUCTOR, K.CONVERSION, K.FUNCTION_TEMPLATE}
_AXES = {
    f"{name}.{component}": axis
    for axis in Axis
    if "." in axis.value
    for name, component in [axis.value.split(".")]
}
BUILTIN_RECORDS = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})


def place(low: Lowering, node: Node) -> Place:
    """The object that an expression names; a temporary for values."""
    low.step()
    kind = node.kind
    if kind == K.PAREN and node.children:
        return place(low, node.children[-1])
    if kind == K.DECL_REF:
        return _named(low, node)
    if kind == K.MEMBER_EXPR:
        return _member(low, node)
    if kind == K.SUBSCRIPT:
        return _subscript(low, node)
    if kind == K.UNEXPOSED or kind in K.CASTS:
        return _converted(low, node)
    if kind == K.UNARY:
        op = low.ast.operator(node)
        if op == K.DEREF:
            return pointed(low, expressions.value(low, node.children[-1]), type_of(low.ast, node), node)
        if op in (K.PRE_INC, K.PRE_DEC):
            return assignments.incremented(low, node.children[-1], op == K.PRE_INC)
        if op == K.EXTENSION:
            return place(low, node.children[-1])
    if kind == K.BINARY:
        op = low.ast.operator(node)
        if op == K.ASSIGN:
            return assignments.assign(low, node)
        if op == K.COMMA:
            expressions.discard(low, node.children[0])
            return place(low, node.children[1])
    if kind == K.COMPOUND_ASSIGN:
        return assignments.compound(low, node)
    if kind == K.CALL:
        result = calls.call(low, node)
        if isinstance(result, PLACE_TYPES):
            return result
        return temporary(low, result, type_of(low.ast, node))
    if kind == K.CONDITIONAL:
        return _conditional(low, node)
    if kind == K.STRING:
        info = type_of(low.ast, node)
        array = low.array(f"string {node.key}", "string literal", Space.CONSTANT, info)
        return MemoryPlace(info, AddressOf(array))
    if kind == K.INIT_LIST and type_of(low.ast, node).kind == "array":
        target = low.local("", type_of(low.ast, node))
        initialisers.initialise(low, target, node)
        return target
    return temporary(low, expressions.value(low, node), type_of(low.ast, node))


def temporary(low: Lowering, value: Value, info: TypeInfo) -> Place:
    """An object that holds a value just computed."""
    if isinstance(value, MemoryRecord):
        return MemoryPlace(info, value.pointer)
    if isinstance(value, RecordValue):
        target = low.local("", info)
        low.write(target, value, None)
        return target
    return StaticPlace(info, value)


def _converted(low: Lowering, node: Node) -> Place:
    children = [c for c in node.children if c.kind >= 100]
    info = type_of(low.ast, node)
    if not children:
        return temporary(low, expressions.value(low, node), info)
    child = children[-1]
    source = type_of(low.ast, child)
    if info.is_record and source.is_record:
        return as_class(place(low, child), info)
    same = info.kind == source.kind and info.ir == source.ir
    if node.kind in K.CASTS and not same:
        if (source.kind == "array" and info.kind == "pointer") or not _refers(low, node):
            return temporary(low, expressions.value(low, node), info)
        base = place(low, child)  # reinterpret_cast<T&>(object)
        return MemoryPlace(info, low.pointer(low.address(base)))
    if same or source.kind == "array" == info.kind:
        return place(low, child)
    return temporary(low, expressions.value(low, node), info)


def _refers(low: Lowering, node: Node) -> bool:
    text = low.ast.text(node)
    if node.kind == K.REINTERPRET_CAST:
        return "&>" in text.replace(" ", "") or "&)" in text.replace(" ", "")
    head = text[: text.find(")") + 1] if node.kind == K.C_CAST else text[: text.find(">") + 1]
    return "&" in head


def as_class(object: Place, target: TypeInfo) -> Place:
    """An object seen as one of its base classes (records of one layout stay as they are)."""
    if isinstance(object, MemoryPlace):
        offset, behind = offset_in(object.info, target), offset_in(target, object.info)
        if offset is not None:
            return MemoryPlace(target, offset_by(object.pointer, offset))
        if behind is None and (hides_bases(object.info) or hides_bases(target)):
            raise Untranslatable(target.name, "where it stands in an object is not known")
        if behind:
            return MemoryPlace(target, offset_by(object.pointer, -behind))
        return MemoryPlace(target if target.size <= object.info.size else object.info, object.pointer)
    return object


def base_of(object: Place, base: TypeInfo) -> Place:
    """The base class part of an object, with the base's own type."""
    if isinstance(object, RecordPlace):
        return RecordPlace(base, {f.key: object.fields[f.key] for f in base.fields if f.key in object.fields})
    return as_class(object, base)


def pointed(low: Lowering, pointer: Value, info: TypeInfo, node: Node) -> Place:
    """``*pointer``."""
    if isinstance(pointer, Address):
        target = pointer.place
        if target.info.ir == info.ir or _related(target.info, info) or isinstance(target, StaticPlace):
            return target
        if (
            isinstance(target.info.ir, Float)
            and isinstance(info.ir, Float | Int)
            and info.size == target.info.size
        ):
            return DataPlace(info)  # a float seen as an integer of its size: the bits are data
        return MemoryPlace(info, low.pointer(pointer))
    if isinstance(pointer, EXPR_TYPES):
        expr = low.pointer(pointer)
        if not isinstance(expr.type, Pointer):
            raise Untranslatable(
                low.ast.text(node)[:60], "dereferences something that is not a pointer", node
            )
        return MemoryPlace(info, expr)
    if isinstance(pointer, MemoryRecord | RecordValue):
        raise Untranslatable(low.ast.text(node)[:60], "dereferences an object of a class", node)
    return StaticPlace(info, pointer)


def _related(object: TypeInfo, seen_as: TypeInfo) -> bool:
    """Whether a record may be seen as another by inheritance (libclang hides some bases), not bit by bit."""
    if not (object.is_record and seen_as.is_record):
        return False
    declarations = (object.declaration, seen_as.declaration)
    return all(d is not None and not d.in_system_header for d in declarations)


def indexed(array: Place, index: int) -> Place:
    """Element ``index`` of an array object."""
    info = array.info.target or array.info
    if not isinstance(array, MemoryPlace):
        raise Untranslatable("array element", "of an object that the analysis does not model")
    return MemoryPlace(info, element(array.pointer, Const(index, INT64), max(1, info.size)))


def _subscript(low: Lowering, node: Node) -> Place:
    first, second = node.children[-2:]
    if type_of(low.ast, first).is_int:  # 3[array]
        first, second = second, first
    base = (
        expressions.value(low, first)
        if type_of(low.ast, first).kind != "array"
        else expressions.decay(low, first)
    )
    base = assignments.held(low, base, second)
    index = expressions.scalar(low, second)
    info = type_of(low.ast, node)
    if isinstance(base, Address):
        if isinstance(index, Const) and index.value == 0:
            return pointed(low, base, info, node)
        base = low.pointer(base)
    expr = low.pointer(base) if isinstance(base, EXPR_TYPES) else None
    if expr is None or not isinstance(expr.type, Pointer):
        raise Untranslatable(low.ast.text(node)[:60], "indexes something that is not a pointer", node)
    if not isinstance(index.type, Int):
        raise Untranslatable(low.ast.text(node)[:60], "the index has no integer type", node)
    _in_member_array(low, first, expr, index, node)
    return MemoryPlace(info, element(expr, index, max(1, info.size)))


def _in_member_array(low: Lowering, array: Node, pointer: Expr, index: Expr, node: Node) -> None:
    """``record.field[index]``: an element of the field is meant. A last field of one element is as long as
    its record was made."""
    named = strip(array)
    count = type_of(low.ast, named).count if named.kind == K.MEMBER_EXPR else None
    base = root(pointer)
    own = isinstance(base, AddressOf) and base.array.space is not Space.GLOBAL
    if count is None or count < 2 or isinstance(index, Const) or own:
        return
    declaration = low.ast.referenced(named)
    name = declaration.name if declaration is not None else low.ast.text(named)
    low.emit(Within(pointer, cast(index, INT64), count, name, low.site(node)))


def _conditional(low: Lowering, node: Node) -> Place:
    """``c ? a : b`` as an object: one of two addresses; constants and temporaries may be copied."""
    children = [c for c in node.children if c.kind >= 100]
    info = type_of(low.ast, node)
    if len(children) != 3:
        return temporary(low, expressions.value(low, node), info)
    named = all(_names_object(low, child) for child in children[1:])
    if info.scalar and (info.const or not named):
        return temporary(low, expressions.value(low, node), info)
    test = expressions.condition(low, children[0])
    if isinstance(test, Const):
        return place(low, children[1 if test.value else 2])
    with low.nested() as first:
        a = place(low, children[1])
    with low.nested() as second:
        b = place(low, children[2])
    if named and not info.const:
        a, b = _with_address(low, a, node), _with_address(low, b, node)
    if not isinstance(a, MemoryPlace) or not isinstance(b, MemoryPlace):
        target = low.local("", info)
        with low.nested() as extra:
            low.write(target, low.read(a, children[1]), None)
        first.extend(extra)
        with low.nested() as extra:
            low.write(target, low.read(b, children[2]), None)
        low.emit(If(test, tuple(first), (*second, *extra), low.site(node)))
        return target
    if not first and not second:
        return MemoryPlace(info, select(test, a.pointer, b.pointer, a.pointer.type))
    pointer = low.var("", a.pointer.type)
    first.append(Assign(pointer, a.pointer))
    second.append(Assign(pointer, b.pointer))
    low.emit(If(test, tuple(first), tuple(second), low.site(node)))
    return MemoryPlace(info, pointer)


def _with_address(low: Lowering, object: Place, node: Node) -> Place:
    """The variable itself, in memory, where both are chosen from: what is written there is written to it."""
    if isinstance(object, MemoryPlace):
        return object
    if not object.owner:  # a copy of it would be written
        raise Untranslatable(low.ast.text(node)[:60], "chooses between two variables as objects", node)
    return MemoryPlace(object.info, low.pointer(low.address(object)))


def _names_object(low: Lowering, node: Node) -> bool:
    while node.kind == K.PAREN and node.children:
        node = node.children[-1]
    if node.kind == K.UNARY:
        return low.ast.operator(node) == K.DEREF
    return node.kind in (K.DECL_REF, K.SUBSCRIPT, K.MEMBER_EXPR, K.CONDITIONAL)


# ------------------------------------------------------------------------------------- members


def _member(low: Lowering, node: Node) -> Place:
    declaration = low.ast.referenced(node)
    bases = [c for c in node.children if c.kind >= 100]
    if declaration is not None and declaration.kind in (K.VAR, K.ENUM_CONSTANT):
        return variable(low, declaration, node)
    if declaration is None or declaration.kind != K.FIELD:
        raise unclear(low.ast.text(node)[:60], "clang could not tell which member it is", node)
    if bases:
        base = bases[0]
        inner = strip(base)
        if inner.kind == K.DECL_REF:
            named = low.ast.referenced(inner)
            if named is not None and named.name in BUILTIN_RECORDS and named.in_system_header:
                return StaticPlace(type_of(low.ast, node), Builtin(_AXES[f"{named.name}.{declaration.name}"]))
        info = type_of(low.ast, base)
        if info.is_pointer:
            record = pointed(low, expressions.value(low, base), info.target or info, base)
        else:
            record = place(low, base)
    else:
        this = low.frame.this
        if this is None:
            raise Untranslatable(low.ast.text(node)[:60], "the object is not known", node)
        record = this
    return low.member(record, field_in(record, declaration, type_of(low.ast, node)))


def field_named(info: TypeInfo, declaration: Declaration, type: TypeInfo) -> Field:
    found = field_of(info, declaration.key)
    if found is not None:
        return found
    bits: int = declaration.ast.lib.clang_Cursor_getOffsetOfField(declaration.cursor)
    return Field(declaration.name, declaration.key, type, max(0, bits) // 8)


def field_in(record: Place, declaration: Declaration, type: TypeInfo) -> Field:
    """The field in the record's memory, if it has some."""
    found = field_named(record.info, declaration, type)
    if not isinstance(record, MemoryPlace) or field_of(record.info, declaration.key) is not None:
        return found
    offset = field_offset(record.info, declaration, found)
    if offset is None:
        raise Untranslatable(f"member {declaration.name}", "where it stands in an object is not known")
    return Field(found.name, found.key, found.type, offset, found.bitfield)


# ----------------------------------------------------------------------------------- variables


def _named(low: Lowering, node: Node) -> Place:
    declaration = low.ast.referenced(node)
    if declaration is None or (
        declaration.kind not in (K.VAR, K.PARAMETER, K.ENUM_CONSTANT, K.FIELD, K.BINDING)
        and declaration.kind != 28
    ):
        inner = [c for c in node.children if c.kind >= 100]
        found = low.ast.evaluate(node.cursor)
        info = type_of(low.ast, node)
        if found is not None and isinstance(info.ir, Int):
            return StaticPlace(info, Const(info.ir.wrap(int(found)), info.ir))
        if inner:
            return place(low, inner[-1])
        if declaration is not None and info.kind == "function":
            return StaticPlace(info, FunctionValue(declaration))
        raise unclear(low.ast.text(node)[:60], "clang could not tell what it names", node)
    return variable(low, declaration, node)


def variable(low: Lowering, declaration: Declaration, node: Node) -> Place:
    """The object of a variable, parameter or constant."""
    known = low.env.get(declaration.key)
    if known is not None:
        return known
    info = type_of_declaration(low.ast, declaration)
    name = declaration.name
    if declaration.in_system_header:
        if name in BUILTIN_RECORDS:
            fields = {
                f.key: Builtin(_AXES[f"{name}.{f.name}"]) for f in info.fields if f"{name}.{f.name}" in _AXES
            }
            return StaticPlace(info, RecordValue(info, dict(fields)))
        if name == "warpSize":
            return StaticPlace(info, Builtin(Axis.WARP_SIZE, INT32))
    held = closures.captured(low, declaration, info)
    if held is not None:
        low.env[declaration.key] = held
        return held
    if is_automatic(low, declaration):  # libclang hides it: ``switch (int n = a[i]; n)``
        declarations.declare(low, low.ast.body(declaration))
        if declaration.key in low.env:
            return low.env[declaration.key]
    made = _static_object(low, declaration, info, node)
    low.env[declaration.key] = made
    return made


def is_automatic(low: Lowering, declaration: Declaration) -> bool:
    """A variable that every call of a function has for itself."""
    if declaration.kind != K.VAR or spaces_of(low.ast, declaration):
        return False
    storage = low.ast.lib.clang_Cursor_getStorageClass(declaration.cursor)
    parent = low.ast.parent(declaration)
    return storage not in (K.EXTERN, K.STATIC) and parent is not None and parent.kind in _FUNCTIONS


def _static_object(low: Lowering, declaration: Declaration, info: TypeInfo, node: Node) -> Place:
    """Globals, shared memory, constants: declared outside what was executed so far."""
    attributes = spaces_of(low.ast, declaration)
    if K.SHARED_ATTR in attributes:
        return shared(low, declaration, info)
    if declaration.kind == K.BINDING and info.scalar and info.const:  # so are instances of variable templates
        found = low.ast.evaluate(node.cursor)
        if found is not None and isinstance(info.ir, Int):
            return StaticPlace(info, Const(info.ir.wrap(int(found)), info.ir))
    alone = declaration.kind == K.BINDING and not attributes
    if info.kind == "reference" or declaration.kind == K.PARAMETER or alone:
        reason = "what it refers to is not known"
        raise Untranslatable(low.ast.text(node)[:60], reason, node, NextStep.PROGRAM)
    if K.CONSTANT_ATTR in attributes:
        return _in_memory(low, declaration, info, Space.CONSTANT)
    if info.scalar and (info.const or declaration.kind == K.ENUM_CONSTANT):
        found = low.ast.evaluate(node.cursor)
        if found is None:
            found = low.ast.evaluate(declaration.cursor)
        if found is not None and not info.is_pointer:
            value = Const(info.ir.wrap(int(found)) if isinstance(info.ir, Int) else float(found), info.ir)
            return StaticPlace(info, value)
    if K.DEVICE_ATTR not in attributes and (
        info.const or (info.target is not None and info.element()[0].const)
    ):
        return _in_memory(low, declaration, info, Space.CONSTANT)
    return _in_memory(low, declaration, info, Space.GLOBAL)


def _in_memory(low: Lowering, declaration: Declaration, info: TypeInfo, space: Space) -> Place:
    array = low.array(declaration.key, declaration.name, space, info)
    numbers = tables.numbers_of(low.ast, declaration, info)
    if numbers is not None:
        low.tables[array.id] = numbers
    return MemoryPlace(info, AddressOf(array, Pointer(max(1, info.size))))


def shared(low: Lowering, declaration: Declaration, info: TypeInfo) -> Place:
    """A ``__shared__`` variable: one array per static declaration, laid out in order.

    All ``extern`` ones begin at one place: further declarations are views of the first one's array.
    """
    known = low.arrays.get(declaration.key)
    if known is not None:
        return MemoryPlace(info, AddressOf(known, Pointer(max(1, info.size))))
    site = low.site(low.ast.body(declaration))
    if (info.kind == "array" and info.count is None) or low.ast.lib.clang_Cursor_getStorageClass(
        declaration.cursor
    ) == K.EXTERN:
        sized_by_launch = evolve(info, count=None, size=0) if info.kind == "array" else info
        array = next((a for a in low.arrays.values() if a.dynamic), None) or low.array(
            declaration.key, declaration.name, Space.SHARED, sized_by_launch,
            dynamic=True, offset=0, may_alias="dynamic shared", site=site,
        )  # fmt: skip
        low.arrays[declaration.key] = array
    else:
        offset = -(-low.static_shared // info.align) * info.align
        low.static_shared = offset + info.size
        array = low.array(declaration.key, declaration.name, Space.SHARED, info, offset=offset, site=site)
    return MemoryPlace(info, AddressOf(array, Pointer(max(1, info.size))))


__all__ = ["indexed", "is_automatic", "place", "pointed", "shared", "variable"]
