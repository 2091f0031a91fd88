"""Where the part of a base class stands in an object.

libclang tells no base classes of templates that are instantiated without being asked to, only how large their
objects are and where their own fields stand. The template itself tells how many it has: the only one stands
first. So does one that leaves no room for another before the first own field. Of any other nothing is known.
"""

from __future__ import annotations

from cuda_lsp.frontend.libclang import RawCursor, raw_cursor
from cuda_lsp.frontend.lowering.types import Field, TypeInfo, field_of, type_of_declaration
from cuda_lsp.frontend.tree import Ast, Declaration

# CXCursorKind numbers.
_STRUCT, _CLASS, _TEMPLATE, _PARTIAL, _BASE = 2, 4, 31, 32, 44
_METHOD, _DESTRUCTOR = 21, 25
_SCOPES = frozenset({_STRUCT, _CLASS, _TEMPLATE, _PARTIAL, 22, 23})  # namespaces, extern "C"
_CLASSES = frozenset({_STRUCT, _CLASS, _TEMPLATE, _PARTIAL})


def offset_in(info: TypeInfo, base: TypeInfo) -> int | None:
    """How many bytes into an object its part of a class begins; None: nothing tells, or it has none."""
    if _same(info, base):
        return 0
    for offset, above in info.bases:
        further = offset_in(above, base)
        if further is not None:
            return offset + further
    return 0 if _stands_first(info, base) else None


def hides_bases(info: TypeInfo) -> bool:
    """Whether the class, or a base of it, has base classes that libclang does not tell of."""
    return bool(_hidden(info)) or any(hides_bases(base) for _, base in info.bases)


def field_offset(info: TypeInfo, declaration: Declaration, field: Field) -> int | None:
    """Where a field that no told class of the record has stands in the record; None: nothing tells.

    The record may also be a base class, seen as what the object is.
    """
    holder, offset = declaration.ast.parent(declaration), field.offset
    while holder is not None and holder.kind in _CLASSES:
        above = type_of_declaration(declaration.ast, holder)
        found = field_of(above, declaration.key)
        offset = found.offset if found is not None else offset
        at = offset_in(info, above)
        if at is not None:
            return at + offset
        behind = offset_in(above, info)
        if behind is not None:
            return offset - behind
        if hides_bases(above):
            return None
        anonymous = not holder.name or "(" in holder.name
        holder = declaration.ast.parent(holder) if anonymous else None
    return None if hides_bases(info) else field.offset  # seen as what it is not


def _same(one: TypeInfo, other: TypeInfo) -> bool:
    if one.declaration is None or other.declaration is None:
        return False
    return one.declaration.key == other.declaration.key


def _stands_first(info: TypeInfo, base: TypeInfo) -> bool:
    """A hidden base class begins where the object does."""
    if not _hidden(info) or info.declaration is None or base.size > info.size:
        return False
    room = min((field.offset for field in info.fields), default=info.size)
    return room <= base.size or _is_only(info.declaration.ast, info.declaration.cursor, base)


def _hidden(info: TypeInfo) -> list[RawCursor]:
    """The base classes as the template of a class says them, where libclang tells none of its own."""
    if info.bases or info.declaration is None or not info.is_record:
        return []
    ast, key = info.declaration.ast, ("hidden", info.declaration.key)
    known: list[RawCursor] | None = ast.types.get(key)
    if known is None:
        above = ast.children(_pattern(ast, info.declaration.cursor))
        known = ast.types[key] = [child for child in above if child.kind == _BASE]
    return known


def _pattern(ast: Ast, cursor: RawCursor) -> RawCursor:
    """The template that a class is an instance of, or the class."""
    template = ast.lib.clang_getSpecializedCursorTemplate(cursor)
    return template if template.kind in _CLASSES else cursor


def _is_only(ast: Ast, cursor: RawCursor, base: TypeInfo) -> bool:
    """From the class up to the base each has one base class, and nothing stands before that."""
    assert base.declaration is not None
    wanted = _key(ast, _pattern(ast, base.declaration.cursor))
    while True:
        children = ast.children(_pattern(ast, cursor))
        above = [child for child in children if child.kind == _BASE]
        table = any(
            c.kind in (_METHOD, _DESTRUCTOR) and ast.lib.clang_CXXMethod_isVirtual(c) for c in children
        )
        if len(above) != 1 or table or ast.lib.clang_isVirtualBase(above[0]):
            return False
        cursor = ast.lib.clang_getTypeDeclaration(ast.lib.clang_getCursorType(above[0]))
        if cursor.kind not in _CLASSES:
            return False
        if _key(ast, _pattern(ast, cursor)) == wanted:
            return True
        if _key(ast, _pattern(ast, cursor)) in _specialised(ast):
            return False  # another class may be meant than the one whose bases are read here


def _key(ast: Ast, cursor: RawCursor) -> int:
    key: int = ast.lib.clang_getCanonicalCursor(cursor).data[0]
    return key


def _specialised(ast: Ast) -> frozenset[int]:
    """The class templates that some arguments have a class of their own for."""
    known: frozenset[int] | None = ast.types.get("specialised")
    if known is not None:
        return known
    found: set[int] = set()
    pending = [raw_cursor(ast.tu.cursor)]
    while pending:
        for child in ast.children(pending.pop()):
            if child.kind in _SCOPES:
                pending.append(child)
            template = ast.lib.clang_getSpecializedCursorTemplate(child) if child.kind in _CLASSES else None
            if template is not None and template.kind in _CLASSES:
                found.add(_key(ast, template))
    known = ast.types["specialised"] = frozenset(found)
    return known
