"""C++ types as the lowering needs them: kernel-program type, size, layout of records.

Layout comes from libclang (target: NVPTX64, so ``long`` is 8 bytes); offsets of base classes, which
libclang 18 does not give, follow the Itanium rules for classes without virtual functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from ctypes import c_void_p
from typing import Any

from attrs import define, frozen

from cuda_lsp.frontend import budgets
from cuda_lsp.frontend.libclang import FieldVisitor, RawCursor, RawType
from cuda_lsp.frontend.tree import Ast, Declaration, Node
from cuda_lsp.ir.program import Part
from cuda_lsp.ir.types import BOOL, INT32, Float, Int, Opaque, Pointer, Type

_SIGNED = {13: 8, 14: 8, 16: 16, 17: 32, 18: 64, 19: 64, 20: 128}  # Char_S SChar Short Int Long LongLong
_UNSIGNED = {4: 8, 5: 8, 6: 16, 7: 32, 8: 16, 9: 32, 10: 64, 11: 64, 12: 128, 15: 32}
_FLOATS = {21: 32, 22: 64, 23: 64, 30: 128, 31: 16, 32: 16, 39: 16}
_VOID, _BOOL, _NULLPTR = 2, 3, 24
_POINTER, _LVALUE_REFERENCE, _RVALUE_REFERENCE = 101, 103, 104
_RECORD, _ENUM, _FUNCTION, _FUNCTION_NO_PROTO = 105, 106, 111, 110
_CONSTANT_ARRAY, _VECTOR, _INCOMPLETE_ARRAY, _VARIABLE_ARRAY, _DEPENDENT_ARRAY = 112, 113, 114, 115, 116
_SIZED = frozenset({100, _VECTOR, 117, 176})  # complex, vectors, member pointers
_FLOAT_RECORDS = re.compile(
    r"^(__half|half|__nv_bfloat16|nv_bfloat16|__half_raw|__nv_bfloat16_raw|__nv_fp8_e[45]m[32]"
    r"|__c10_half|__c10_bfloat16)$"
)


@frozen(eq=False)
class Field:
    """A member of a record: byte ``offset``, identity of its declaration; bit-fields give their unit."""

    name: str
    key: int
    type: TypeInfo
    offset: int
    bitfield: bool = False


@define(eq=False)
class TypeInfo:
    """One canonical C++ type.

    ``ir`` is what a value of it is in the kernel program; ``kind`` one of scalar, pointer, reference,
    record, array, function, void, unknown. ``target``: pointee, referee or element. ``count``: array
    extent, None if unknown. ``declaration``: of a record or an enumeration.
    """

    kind: str
    name: str
    ir: Type
    size: int
    align: int = 1
    const: bool = False
    volatile: bool = False
    restrict: bool = False
    target: TypeInfo | None = None
    count: int | None = None
    fields: tuple[Field, ...] = ()
    declaration: Declaration | None = None
    union: bool = False
    bases: tuple[tuple[int, TypeInfo], ...] = ()  # (byte offset, class)
    virtual: bool = False
    leaves: int = 1  # fields that are no records, through the records in it

    @property
    def is_float(self) -> bool:
        """Whether a value is a floating-point number."""
        return isinstance(self.ir, Float)

    @property
    def is_int(self) -> bool:
        """Whether a value is an integer or a truth value."""
        return isinstance(self.ir, Int)

    @property
    def is_pointer(self) -> bool:
        """Whether it is a pointer to objects or functions."""
        return self.kind == "pointer"

    @property
    def is_record(self) -> bool:
        """Whether it is a class, struct or union."""
        return self.kind == "record"

    @property
    def scalar(self) -> bool:
        """Whether one value of the kernel program holds it."""
        return self.kind in ("scalar", "pointer")

    @property
    def pointee_size(self) -> int:
        """Bytes by which a pointer of this type advances; at least 1."""
        return max(1, self.target.size) if self.target is not None else 1

    def element(self) -> tuple[TypeInfo, tuple[int | None, ...]]:
        """The innermost element type of an array and the extents, outermost first."""
        shape: list[int | None] = []
        info: TypeInfo = self
        while info.kind == "array" and info.target is not None:
            shape.append(info.count)
            info = info.target
        return info, tuple(shape)

    def scalar_replaceable(self) -> bool:
        """Whether a local object of this type can live in one variable per scalar field."""
        if self.kind in ("scalar", "pointer", "reference"):
            return True
        if self.kind != "record" or self.union or self.virtual:
            return False
        return not any(f.bitfield for f in self.fields) and all(
            f.type.scalar_replaceable() for f in self.fields
        )


VOID = TypeInfo("void", "void", INT32, 1)
UNKNOWN = TypeInfo("unknown", "unknown", INT32, 4)


def type_of(ast: Ast, node: Node) -> TypeInfo:
    """The type of an expression or variable node."""
    known = node.type_
    if known is None:
        known = node.type_ = info(ast, ast.lib.clang_getCursorType(node.cursor))
    return known


def type_of_declaration(ast: Ast, declaration: Declaration) -> TypeInfo:
    """The type of a variable, parameter, field or function."""
    if declaration.type_ is None:
        declaration.type_ = info(ast, ast.lib.clang_getCursorType(declaration.cursor))
    return declaration.type_


def info(ast: Ast, raw: RawType) -> TypeInfo:
    """The description of a type, cached per parse by clang's own identity."""
    key = (raw.kind, raw.data[0])
    known = ast.types.get(key)
    if known is None:
        canonical = ast.lib.clang_getCanonicalType(raw)
        canonical_key = ("canonical", canonical.kind, canonical.data[0])
        known = ast.types.get(canonical_key)
        if known is None:
            known = _describe(ast, canonical, canonical_key)
        ast.types[key] = known
    return known


def _describe(ast: Ast, raw: RawType, key: Any) -> TypeInfo:
    lib = ast.lib
    kind: int = raw.kind
    flags: dict[str, Any] = {
        "const": bool(lib.clang_isConstQualifiedType(raw)),
        "volatile": bool(lib.clang_isVolatileQualifiedType(raw)),
        "restrict": bool(lib.clang_isRestrictQualifiedType(raw)),
    }
    name = ast.string(lib.clang_getTypeSpelling(raw))
    if kind == _VOID:
        result = VOID
    elif kind == _BOOL:
        result = TypeInfo("scalar", name, BOOL, 1, 1, **flags)
    elif kind in _SIGNED or kind in _UNSIGNED:
        bits = _SIGNED.get(kind) or _UNSIGNED[kind]
        result = TypeInfo("scalar", name, Int(bits, kind in _SIGNED), bits // 8, bits // 8, **flags)
    elif kind in _FLOATS:
        bits = _FLOATS[kind]
        result = TypeInfo("scalar", name, Float(bits), bits // 8, bits // 8, **flags)
    elif kind == _ENUM:
        cursor = lib.clang_getTypeDeclaration(raw)
        integer = info(ast, lib.clang_getEnumDeclIntegerType(cursor))
        flags["declaration"] = ast.declaration(cursor)
        result = TypeInfo("scalar", name, integer.ir, integer.size, integer.align, **flags)
    elif kind in (_POINTER, _NULLPTR):
        target = info(ast, lib.clang_getPointeeType(raw)) if kind == _POINTER else VOID
        ir = Pointer(max(1, target.size))
        result = TypeInfo("pointer", name, ir, 8, 8, target=target, **flags)
    elif kind in (_LVALUE_REFERENCE, _RVALUE_REFERENCE):
        target = info(ast, lib.clang_getPointeeType(raw))
        result = TypeInfo("reference", name, Pointer(max(1, target.size)), 8, 8, target=target, **flags)
    elif kind in (_CONSTANT_ARRAY, _INCOMPLETE_ARRAY, _VARIABLE_ARRAY, _DEPENDENT_ARRAY):
        result = _array(ast, raw, name, flags)
    elif kind == _RECORD:
        result = TypeInfo("record", name, Opaque(name, 1), 1, **flags)
        ast.types[key] = result  # recursive records find themselves
        _lay_out(ast, raw, result)
    elif kind in (_FUNCTION, _FUNCTION_NO_PROTO):
        result = TypeInfo("function", name, Pointer(), 1)
    else:
        # Dependent and placeholder types have no size: asking crashes libclang 18.
        size: int = lib.clang_Type_getSizeOf(raw) if kind in _SIZED else 1
        result = TypeInfo("unknown", name, Opaque(name, max(1, size)), max(1, size), **flags)
    ast.types[key] = result
    return result


def _array(ast: Ast, raw: RawType, name: str, flags: dict[str, Any]) -> TypeInfo:
    element = info(ast, ast.lib.clang_getArrayElementType(raw))
    count: int | None = ast.lib.clang_getArraySize(raw) if raw.kind == _CONSTANT_ARRAY else None
    size = element.size * count if count is not None else 0
    flags = dict(flags, volatile=flags["volatile"] or element.volatile, const=flags["const"] or element.const)
    return TypeInfo(
        "array", name, Opaque(name, size), size, element.align, target=element, count=count, **flags
    )


def _lay_out(ast: Ast, raw: RawType, result: TypeInfo) -> None:
    lib = ast.lib
    cursor: RawCursor = lib.clang_getTypeDeclaration(raw)
    result.declaration = ast.declaration(cursor)
    result.size = max(1, lib.clang_Type_getSizeOf(raw))
    result.align = max(1, lib.clang_Type_getAlignOf(raw))
    base_name = result.name.removeprefix("const ").removeprefix("volatile ").rsplit("::", 1)[-1]
    if _FLOAT_RECORDS.match(base_name):
        result.kind, result.ir = "scalar", Float(8 * result.size)
        return
    result.ir = Opaque(result.name.removeprefix("const ").removeprefix("volatile "), result.size)
    if result.declaration is None:
        return
    children = ast.children(cursor)
    result.union = cursor.kind == 3
    result.virtual = any(c.kind in (21, 25) and lib.clang_CXXMethod_isVirtual(c) for c in children)
    fields: list[Field] = []
    bases: list[tuple[int, TypeInfo]] = []
    above = [info(ast, lib.clang_getCursorType(child)) for child in children if child.kind == 44]
    primary = next((base for base in above if base.virtual), None)  # shares the table, stands first
    offset = primary.size if primary is not None else 8 if result.virtual else 0
    for base in above:
        empty = not base.fields and not base.virtual
        if base is primary:
            bases.append((0, base))
            fields.extend(base.fields)
            result.virtual = True
            continue
        offset = 0 if empty else -(-offset // base.align) * base.align
        bases.append((offset, base))
        fields.extend(Field(f.name, f.key, f.type, f.offset + offset, f.bitfield) for f in base.fields)
        result.virtual = result.virtual or base.virtual
        offset += 0 if empty else base.size
    result.bases = tuple(bases)
    own = [d for cursor in _field_cursors(ast, raw) if (d := ast.declaration(cursor)) is not None]
    result.leaves = sum(field.type.leaves for field in fields)
    result.leaves += sum(type_of_declaration(ast, field).leaves for field in own)
    if result.leaves > budgets.MOST_FIELDS:
        raise budgets.TooMuch(f"{result.name} has more than {budgets.MOST_FIELDS:,} members")
    fields.extend(_field(ast, declaration) for declaration in own)
    result.fields = tuple(_told_apart(fields, result.bases))


def _told_apart(fields: Sequence[Field], bases: Sequence[tuple[int, TypeInfo]]) -> Iterator[Field]:
    """The fields, where one that a later one of its name hides is named with its class."""
    last = {field.name: k for k, field in enumerate(fields)}
    for k, field in enumerate(fields):
        if not field.name or last[field.name] == k:
            yield field
        else:
            holder = next((b.name for at, b in bases if at <= field.offset < at + b.size), "?")
            yield Field(f"{holder}::{field.name}", field.key, field.type, field.offset, field.bitfield)


def _field_cursors(ast: Ast, raw: RawType) -> list[RawCursor]:
    found: list[RawCursor] = []

    def visit(cursor: RawCursor, _: Any) -> int:
        found.append(cursor)
        return 1

    ast.lib.clang_Type_visitFields(raw, FieldVisitor(visit), c_void_p())
    return found


def _field(ast: Ast, declaration: Declaration) -> Field:
    """A member; libclang looks through all that is in a record to tell where it stands."""
    type = type_of_declaration(ast, declaration)
    bits: int = ast.lib.clang_Cursor_getOffsetOfField(declaration.cursor)
    bitfield = bool(ast.lib.clang_Cursor_isBitField(declaration.cursor))
    unit = max(1, type.size) if bitfield else 1
    return Field(declaration.name, declaration.key, type, max(0, bits) // 8 // unit * unit, bitfield)


def field_of(type: TypeInfo, key: int) -> Field | None:
    """The field that a member reference names, also through anonymous unions and structs."""
    for field in type.fields:
        if field.key == key:
            return field
    for field in type.fields:
        if field.type.is_record:
            inner = field_of(field.type, key)
            if inner is not None:
                return Field(inner.name, key, inner.type, field.offset + inner.offset, inner.bitfield)
    return None


def common(left: Type, right: Type) -> Type:
    """C's usual arithmetic conversions of two scalar types."""
    if isinstance(left, Float) or isinstance(right, Float):
        floats = [t for t in (left, right) if isinstance(t, Float)]
        return max(floats, key=lambda t: t.bits)
    if not isinstance(left, Int) or not isinstance(right, Int):
        return left if not isinstance(left, Int) else right
    left, right = promote(left), promote(right)
    if left.bits != right.bits:
        return left if left.bits > right.bits else right
    return left if not left.signed else right


def promote(type: Int) -> Int:
    """An integer's type after C's integer promotions."""
    return INT32 if type.bits < 32 else type


_MOST_PARTS = 64


def parts_of(info: TypeInfo, at: int = 0, within: str = "") -> tuple[Part, ...]:
    """The scalars and arrays of scalars in a record, those of records in it and of its bases included."""
    found: list[Part] = []
    for offset, base in info.bases:
        found += parts_of(base, at + offset, within)
    for field in info.fields:
        name, place = f"{within}{field.name}", at + field.offset
        element, shape = field.type.element()
        if field.type.is_record:
            found += parts_of(field.type, place, f"{name}.")
        elif len(shape) == 1 and not element.is_record:
            found.append(Part(name, place, element.size, shape[0]))
        elif not shape and not field.bitfield:
            found.append(Part(name, place, field.type.size))
        if len(found) > _MOST_PARTS:
            break
    return tuple(found)
