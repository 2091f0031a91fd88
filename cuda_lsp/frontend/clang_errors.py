"""What clang complains of in one parse, by libclang's C functions: there may be hundreds at a keystroke."""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import byref, c_uint, c_void_p
from typing import Any, NamedTuple

from cuda_lsp.frontend.tree import Ast

_ERROR = 3  # CXDiagnostic_Error; fatal ones have 4


class Said(NamedTuple):
    """What clang says of a place, macros seen from outside. ``file``: its handle, 0: none."""

    message: str
    file: int
    line: int
    column: int
    offset: int


class ClangError(NamedTuple):
    """An error and the notes below it. ``syntax``: of the parser."""

    said: Said
    syntax: bool
    notes: tuple[Said, ...]


def clang_errors(ast: Ast) -> Iterator[ClangError]:
    """All that are of a file, in clang's order; warnings are left out."""
    lib: Any = ast.lib
    categories: dict[int, bool] = {}
    for diagnostic in _errors(ast):
        said = _said(ast, diagnostic)
        if not said.file:
            continue
        category: int = lib.clang_getDiagnosticCategory(diagnostic)
        if category not in categories:
            text = ast.string(lib.clang_getDiagnosticCategoryText(diagnostic))
            categories[category] = text == "Parse Issue"
        below = lib.clang_getChildDiagnostics(diagnostic)
        count: int = lib.clang_getNumDiagnosticsInSet(below) if below else 0
        notes = tuple(_said(ast, lib.clang_getDiagnosticInSet(below, i)) for i in range(count))
        yield ClangError(said, categories[category], notes)


def complains(ast: Ast) -> bool:
    """Whether clang has an error of anything in the unit."""
    if ast.complains is None:
        ast.complains = any(True for _ in _errors(ast))
    return ast.complains


def _errors(ast: Ast) -> Iterator[int]:
    """Clang's handles of the unit's errors, which are the unit's, as is all below them."""
    lib: Any = ast.lib
    every = lib.clang_getDiagnosticSetFromTU(ast.handle)
    for number in range(lib.clang_getNumDiagnosticsInSet(every)):
        diagnostic = lib.clang_getDiagnosticInSet(every, number)
        if lib.clang_getDiagnosticSeverity(diagnostic) >= _ERROR:
            yield diagnostic


def _said(ast: Ast, diagnostic: int) -> Said:
    lib: Any = ast.lib
    file, line, column, offset = c_void_p(), c_uint(), c_uint(), c_uint()
    location = lib.clang_getDiagnosticLocation(diagnostic)
    lib.clang_getExpansionLocation(location, byref(file), byref(line), byref(column), byref(offset))
    message = ast.string(lib.clang_getDiagnosticSpelling(diagnostic))
    return Said(message, file.value or 0, line.value, column.value, offset.value)
