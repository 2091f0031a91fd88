"""A light snapshot of libclang's syntax tree: what the lowering reads, and nothing else.

One ctypes visit per function makes plain Python nodes; types, declarations and constants are asked
for lazily and cached for the life of one parse.  The Python binding's own cursors cost about ten
times as much and do not expose operators.  Nothing here knows CUDA's meaning.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from ctypes import byref, c_size_t, c_uint, c_void_p
from pathlib import Path
from typing import Any

from cuda_lsp.frontend import budgets
from cuda_lsp.frontend.libclang import (
    RawCursor,
    RawLocation,
    RawString,
    Visitor,
    library,
    raw_cursor,
    unit_handle,
)
from cuda_lsp.frontend.source_text import resolved_name
from cuda_lsp.model import Position, SourceRange

_RECURSE, _CONTINUE, _BREAK = 2, 1, 0
_HEADERS = Path(__file__).resolve().parent / "headers"

_METHOD = 21  # CXCursor_CXXMethod


class Node:
    """One cursor of the tree with its children, in libclang's order."""

    __slots__ = ("children", "cursor", "key", "kind", "operator_", "referenced_", "type_")

    def __init__(self, cursor: RawCursor, key: tuple[int, int]) -> None:
        self.cursor = cursor
        self.kind: int = cursor.kind
        self.key = key
        self.children: list[Node] = []
        self.type_: Any = None  # filled by extract_types
        self.operator_: int = -1
        self.referenced_: Declaration | bool | None = False  # False: not asked yet

    def __repr__(self) -> str:
        return f"Node({self.kind}, {len(self.children)})"


class Declaration:
    """What a reference names. Two references to one entity share the object within a parse."""

    __slots__ = ("ast", "attributes_", "cursor", "key", "kind", "name_", "system_", "type_")

    def __init__(self, ast: Ast, cursor: RawCursor, key: int) -> None:
        self.ast = ast
        self.cursor = cursor
        self.key = key
        self.kind: int = cursor.kind
        self.name_: str | None = None
        self.attributes_: frozenset[int] | None = None
        self.system_: bool | None = None
        self.type_: Any = None

    @property
    def name(self) -> str:
        """As it is spelt; "" for what has no name."""
        if self.name_ is None:
            self.name_ = self.ast.spelling(self.cursor)
        return self.name_

    @property
    def attributes(self) -> frozenset[int]:
        """Kinds of the direct children (attributes have kinds of their own)."""
        if self.attributes_ is None:
            self.attributes_ = frozenset(child.kind for child in self.ast.children(self.cursor))
        return self.attributes_

    @property
    def in_system_header(self) -> bool:
        """Whether it is the toolkit's and not the user's."""
        if self.system_ is None:
            self.system_ = self.ast.is_provided(self.cursor)
        return self.system_

    def __repr__(self) -> str:
        return f"Declaration({self.name})"


class Ast:
    """Snapshots and lookups of one parse. Must not outlive a reparse of its translation unit.

    ``looked_at``: the file whose kernels are wanted; its path is told as it is given here, whatever
    ``#include`` led to it.
    """

    def __init__(self, tu: Any, looked_at: Path | None = None) -> None:
        self.lib = library()
        self._looked_at = looked_at
        self.tu = tu  # its handle, and all that is found below, dies with it
        self.handle = unit_handle(tu)
        self._bodies: dict[int, Node] = {}
        self._declarations: dict[int, Declaration] = {}
        self._paths: dict[int, Path] = {}
        self._files: dict[int, bytes] = {}
        self._extents: dict[tuple[int, int], tuple[SourceRange, int, int, int]] = {}
        self._provided: dict[int, bool] = {}
        self.types: dict[Any, Any] = {}  # extract_types' cache
        self.functions: dict[int, Any] = {}  # calls' cache
        self.macros: Any = None  # asm's cache
        self.complains: bool | None = None  # whether clang has an error of anything, once that is asked
        self.destructors: dict[int, Declaration | None] = {}  # by the class
        self._methods: dict[int, list[Declaration]] | None = None  # that are instantiated, by their class

    def forget(self) -> None:
        """Drop every snapshot and lookup; what is asked for again is made again."""
        for cache in (self._bodies, self._declarations, self._extents, self.types, self.functions):
            cache.clear()
        self.destructors.clear()
        self._methods = self.macros = None

    # ------------------------------------------------------------------------------- structure

    def snapshot(self, cursor: RawCursor) -> Node:
        """The whole subtree of ``cursor``. Raises TooMuch."""
        root = Node(cursor, _key(cursor))
        stack: list[Node] = [root]
        left = budgets.MOST_NODES

        def visit(cursor: RawCursor, parent: RawCursor, _: Any) -> int:
            key = _key(parent)
            for depth in range(len(stack) - 1, -1, -1):
                if stack[depth].key == key:
                    del stack[depth + 1 :]
                    break
            node = Node(cursor, _key(cursor))
            stack[-1].children.append(node)
            stack.append(node)
            nonlocal left
            left -= 1
            return _RECURSE if left else _BREAK

        self.lib.clang_visitChildren(cursor, Visitor(visit), None)
        if not left:
            what = self.spelling(cursor) or "an expression"
            raise budgets.TooMuch(f"{what} has more than {budgets.MOST_NODES:,} parts")
        return root

    def children(self, cursor: RawCursor) -> list[RawCursor]:
        """The direct children, in order of the text."""
        found: list[RawCursor] = []

        def visit(cursor: RawCursor, parent: RawCursor, _: Any) -> int:
            found.append(cursor)
            return _CONTINUE

        self.lib.clang_visitChildren(cursor, Visitor(visit), None)
        return found

    def body(self, declaration: Declaration) -> Node:
        """The subtree of a function's definition (cached)."""
        node = self._bodies.get(declaration.key)
        if node is None:
            node = self._bodies[declaration.key] = self.snapshot(declaration.cursor)
        return node

    def declaration(self, cursor: RawCursor) -> Declaration | None:
        """The entity of a cursor; None for none. One object an entity."""
        key = cursor.data[0]
        if not key or 70 <= cursor.kind <= 73:  # CXCursor_Invalid…
            return None
        known = self._declarations.get(key)
        if known is None:
            known = self._declarations[key] = Declaration(self, cursor, key)
        return known

    def referenced(self, node: Node) -> Declaration | None:
        """What a reference or a call names; None: nothing, or clang could not tell."""
        found = node.referenced_
        if found is False:
            found = node.referenced_ = self.declaration(self.lib.clang_getCursorReferenced(node.cursor))
        return found if isinstance(found, Declaration) else None

    def operator(self, node: Node) -> int:
        """CXBinaryOperatorKind or CXUnaryOperatorKind of an operator node."""
        if node.operator_ < 0:
            unary = node.kind == 112
            ask = (
                self.lib.clang_getCursorUnaryOperatorKind
                if unary
                else self.lib.clang_getCursorBinaryOperatorKind
            )
            node.operator_ = ask(node.cursor)
        return node.operator_

    def definition(self, declaration: Declaration) -> Declaration | None:
        """The one with a body; None: this parse has none. Of an instantiation it is the template."""
        return self.declaration(self.lib.clang_getCursorDefinition(declaration.cursor))

    def parent(self, declaration: Declaration) -> Declaration | None:
        """The class or namespace that holds it."""
        return self.declaration(self.lib.clang_getCursorSemanticParent(declaration.cursor))

    def methods(self, declaration: Declaration) -> list[Declaration]:
        """The methods of a class; of an instance those that something calls, for libclang tells no others."""
        inside = (self.declaration(child) for child in self.children(declaration.cursor))
        own = [found for found in inside if found is not None and found.kind == _METHOD]
        if own:
            return own
        if self._methods is None:  # clang hands functions to its consumer when it has made them: at the top
            self._methods = {}
            for child in self.children(raw_cursor(self.tu.cursor)):
                found = self.declaration(child) if child.kind == _METHOD else None
                holder = self.parent(found) if found is not None else None
                if found is not None and holder is not None:
                    self._methods.setdefault(holder.key, []).append(found)
        return self._methods.get(declaration.key, [])

    def field_cursor(self, key: int) -> Declaration | None:
        """The declaration of a field seen before, by its identity."""
        return self._declarations.get(key)

    def arguments(self, node: Node) -> list[RawCursor]:
        """The arguments of a call, default arguments included, in order."""
        count = self.lib.clang_Cursor_getNumArguments(node.cursor)
        return [self.lib.clang_Cursor_getArgument(node.cursor, i) for i in range(max(0, count))]

    # ------------------------------------------------------------------------------- properties

    def spelling(self, cursor: RawCursor) -> str:
        """A cursor's name."""
        return self.string(self.lib.clang_getCursorSpelling(cursor))

    def string(self, raw: RawString) -> str:
        """One of libclang's strings, which is disposed of."""
        text = self.lib.clang_getCString(raw)
        result = text.decode(errors="replace") if text else ""
        self.lib.clang_disposeString(raw)
        return result

    def evaluate(self, cursor: RawCursor) -> int | float | None:
        """The value that clang's constant evaluator finds; None: not a constant number."""
        lib = self.lib
        result = lib.clang_Cursor_Evaluate(cursor)
        if not result:
            return None
        kind = lib.clang_EvalResult_getKind(result)
        value: int | float | None = None
        if kind == 1:
            unsigned = lib.clang_EvalResult_isUnsignedInt(result)
            value = (
                lib.clang_EvalResult_getAsUnsigned(result)
                if unsigned
                else lib.clang_EvalResult_getAsLongLong(result)
            )
        elif kind == 2:
            value = lib.clang_EvalResult_getAsDouble(result)
        lib.clang_EvalResult_dispose(result)
        return value

    def is_provided(self, cursor: RawCursor) -> bool:
        """Whether a declaration is the toolkit's (our shim, a system header) and not the user's."""
        location = self.lib.clang_getCursorLocation(cursor)
        if self.lib.clang_Location_isInSystemHeader(location):
            return True
        file = self.place(location)[0]
        known = self._provided.get(file)
        if known is None:
            known = self._provided[file] = self.path(file).parent == _HEADERS
        return known

    # ------------------------------------------------------------------------------- source

    def place(self, location: RawLocation) -> tuple[int, int, int, int]:
        """(file handle, line, byte column, byte offset) of a location, macros seen from outside."""
        file, line, column, offset = c_void_p(), c_uint(), c_uint(), c_uint()
        self.lib.clang_getFileLocation(location, byref(file), byref(line), byref(column), byref(offset))
        return file.value or 0, line.value, column.value, offset.value

    def path(self, file: int) -> Path:
        """The file behind a handle; an empty path for none."""
        path = self._paths.get(file)
        if path is None:
            name = self.string(self.lib.clang_getFileName(file)) if file else ""
            path = self._paths[file] = self.named(name)
        return path

    def named(self, name: str) -> Path:
        """The file that clang calls so."""
        given, path = self._looked_at, Path(name)
        if given is not None and path.name == given.name and resolved_name(name) == resolved_name(str(given)):
            return given
        return resolved_name(name) if ".." in name else path

    def contents(self, file: int) -> bytes:
        """A file's bytes as clang read them."""
        data = self._files.get(file)
        if data is None:
            size = c_size_t()
            pointer = self.lib.clang_getFileContents(self.handle, file, byref(size)) if file else None
            data = self._files[file] = ctypes.string_at(pointer, size.value) if pointer else b""
        return data

    def extent(self, node: Node) -> tuple[SourceRange, int, int, int]:
        """The range of a node, its file, and its byte offsets there."""
        known = self._extents.get(node.key) if node.key[1] else None
        if known is not None:
            return known
        lib = self.lib
        extent = lib.clang_getCursorExtent(node.cursor)
        file, line, column, start = self.place(lib.clang_getRangeStart(extent))
        end_file, end_line, end_column, end = self.place(lib.clang_getRangeEnd(extent))
        if end_file != file or end < start:
            end_line, end_column, end = line, column, start
        data = self.contents(file)
        if end == start and data:  # a macro's name, or its argument
            length = 1
            while data[start : start + length + 1].replace(b"_", b"a").isalnum() and start + length < len(
                data
            ):
                length += 1
            end, end_column = start + length, end_column + length
        first = Position(line, _points(data, start, column))
        last = Position(end_line, _points(data, end, end_column))
        result = (SourceRange(self.path(file), first, last), file, start, end)
        self._extents[node.key] = result
        return result

    def text(self, node: Node) -> str:
        """The source of a node, on one line."""
        _, file, start, end = self.extent(node)
        text = self.contents(file)[start:end].decode(errors="replace")
        return text if "\n" not in text else " ".join(text.split())

    def text_from(self, node: Node) -> str:
        """The source from where a node begins to the end of the file."""
        _, file, start, _ = self.extent(node)
        return self.contents(file)[start:].decode(errors="replace")

    def texts(self) -> tuple[str, ...]:
        """The sources of the file and of all that it includes, without the toolkit's."""
        files = [self.tu.get_file(self.tu.spelling), *(each.include for each in self.tu.get_includes())]
        handles = dict.fromkeys(ctypes.cast(file.from_param(), c_void_p).value or 0 for file in files)
        own = (handle for handle in handles if _HEADERS not in self.path(handle).parents)
        return tuple(self.contents(handle).decode(errors="replace") for handle in own)


def distinct(names: Iterable[str]) -> list[str]:
    """Names of a function's parameters, told apart: all that a pack stands for have one name."""
    found: list[str] = []
    for number, name in enumerate(names):
        found.append(f"{name}__{number}" if name in found and name else name)
    return found


def _key(cursor: RawCursor) -> tuple[int, int]:
    """Identity of a cursor: the statement, or the declaration and (for references) where it is named."""
    data = cursor.data
    if 100 <= cursor.kind < 300:  # expressions and statements; data[0] is the declaration around them
        return 0, data[1] or 0
    return data[0] or 0, data[1] or 0


def _points(data: bytes, offset: int, column: int) -> int:
    """A byte column as a column in code points."""
    line = data[offset - column + 1 : offset]
    return column if line.isascii() else len(line.decode(errors="replace")) + 1
