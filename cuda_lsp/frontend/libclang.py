"""libclang's C functions with their types, as clang-c/Index.h declares them.

A handle of our own on the library that the Python binding loads: the binding's cursors cost about ten times
as much, and it exposes no operators.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    c_char_p,
    c_double,
    c_int,
    c_longlong,
    c_size_t,
    c_uint,
    c_ulonglong,
    c_void_p,
)
from importlib import import_module
from typing import Any


class RawCursor(ctypes.Structure):
    """CXCursor of clang-c/Index.h."""

    _fields_ = [("kind", c_int), ("xdata", c_int), ("data", c_void_p * 3)]
    kind: int
    data: Any


class RawType(ctypes.Structure):
    """CXType."""

    _fields_ = [("kind", c_int), ("data", c_void_p * 2)]
    kind: int
    data: Any


class RawString(ctypes.Structure):
    """CXString."""

    _fields_ = [("data", c_void_p), ("flags", c_uint)]


class RawLocation(ctypes.Structure):
    """CXSourceLocation."""

    _fields_ = [("ptr", c_void_p * 2), ("int_data", c_uint)]


class RawRange(ctypes.Structure):
    """CXSourceRange."""

    _fields_ = [("ptr", c_void_p * 2), ("begin", c_uint), ("end", c_uint)]


Visitor = ctypes.CFUNCTYPE(c_int, RawCursor, RawCursor, c_void_p)
FieldVisitor = ctypes.CFUNCTYPE(c_int, RawCursor, c_void_p)

_PROTOTYPES: tuple[tuple[str, Any, list[Any]], ...] = (
    ("clang_visitChildren", c_uint, [RawCursor, Visitor, c_void_p]),
    ("clang_Type_visitFields", c_uint, [RawType, FieldVisitor, c_void_p]),
    ("clang_getCursorType", RawType, [RawCursor]),
    ("clang_getCanonicalType", RawType, [RawType]),
    ("clang_getUnqualifiedType", RawType, [RawType]),
    ("clang_getPointeeType", RawType, [RawType]),
    ("clang_getArrayElementType", RawType, [RawType]),
    ("clang_getArraySize", c_longlong, [RawType]),
    ("clang_Type_getSizeOf", c_longlong, [RawType]),
    ("clang_Type_getAlignOf", c_longlong, [RawType]),
    ("clang_isInvalidDeclaration", c_uint, [RawCursor]),
    ("clang_isConstQualifiedType", c_uint, [RawType]),
    ("clang_isVolatileQualifiedType", c_uint, [RawType]),
    ("clang_isRestrictQualifiedType", c_uint, [RawType]),
    ("clang_getTypeDeclaration", RawCursor, [RawType]),
    ("clang_getEnumDeclIntegerType", RawType, [RawCursor]),
    ("clang_getEnumConstantDeclValue", c_longlong, [RawCursor]),
    ("clang_getTypeSpelling", RawString, [RawType]),
    ("clang_getResultType", RawType, [RawType]),
    ("clang_getCursorSpelling", RawString, [RawCursor]),
    ("clang_Cursor_getMangling", RawString, [RawCursor]),
    ("clang_getCursorReferenced", RawCursor, [RawCursor]),
    ("clang_getCursorDefinition", RawCursor, [RawCursor]),
    ("clang_getCursorSemanticParent", RawCursor, [RawCursor]),
    ("clang_getCanonicalCursor", RawCursor, [RawCursor]),
    ("clang_getSpecializedCursorTemplate", RawCursor, [RawCursor]),
    ("clang_getCursorBinaryOperatorKind", c_int, [RawCursor]),
    ("clang_getCursorUnaryOperatorKind", c_int, [RawCursor]),
    ("clang_getCursorExtent", RawRange, [RawCursor]),
    ("clang_getCursorLocation", RawLocation, [RawCursor]),
    ("clang_getRangeStart", RawLocation, [RawRange]),
    ("clang_getRangeEnd", RawLocation, [RawRange]),
    (
        "clang_getFileLocation",
        None,
        [RawLocation, POINTER(c_void_p), POINTER(c_uint), POINTER(c_uint), POINTER(c_uint)],
    ),
    (
        "clang_getExpansionLocation",
        None,
        [RawLocation, POINTER(c_void_p), POINTER(c_uint), POINTER(c_uint), POINTER(c_uint)],
    ),
    ("clang_getDiagnosticSetFromTU", c_void_p, [c_void_p]),
    ("clang_getNumDiagnosticsInSet", c_uint, [c_void_p]),
    ("clang_getDiagnosticInSet", c_void_p, [c_void_p, c_uint]),
    ("clang_getChildDiagnostics", c_void_p, [c_void_p]),
    ("clang_getDiagnosticSeverity", c_int, [c_void_p]),
    ("clang_getDiagnosticLocation", RawLocation, [c_void_p]),
    ("clang_getDiagnosticSpelling", RawString, [c_void_p]),
    ("clang_getDiagnosticCategory", c_uint, [c_void_p]),
    ("clang_getDiagnosticCategoryText", RawString, [c_void_p]),
    ("clang_getFileName", RawString, [c_void_p]),
    ("clang_getFileContents", c_void_p, [c_void_p, c_void_p, POINTER(c_size_t)]),
    ("clang_Location_isInSystemHeader", c_int, [RawLocation]),
    ("clang_getCString", c_char_p, [RawString]),
    ("clang_disposeString", None, [RawString]),
    ("clang_Cursor_getNumArguments", c_int, [RawCursor]),
    ("clang_Cursor_getArgument", RawCursor, [RawCursor, c_uint]),
    ("clang_Cursor_Evaluate", c_void_p, [RawCursor]),
    ("clang_EvalResult_getKind", c_int, [c_void_p]),
    ("clang_EvalResult_isUnsignedInt", c_uint, [c_void_p]),
    ("clang_EvalResult_getAsLongLong", c_longlong, [c_void_p]),
    ("clang_EvalResult_getAsUnsigned", c_ulonglong, [c_void_p]),
    ("clang_EvalResult_getAsDouble", c_double, [c_void_p]),
    ("clang_EvalResult_dispose", None, [c_void_p]),
    ("clang_Cursor_getStorageClass", c_int, [RawCursor]),
    ("clang_Cursor_getOffsetOfField", c_longlong, [RawCursor]),
    ("clang_Cursor_isBitField", c_uint, [RawCursor]),
    ("clang_Cursor_getNumTemplateArguments", c_int, [RawCursor]),
    ("clang_Cursor_getTemplateArgumentValue", c_longlong, [RawCursor, c_uint]),
    ("clang_Cursor_getTemplateArgumentKind", c_int, [RawCursor, c_uint]),
    ("clang_Cursor_getTemplateArgumentType", RawType, [RawCursor, c_uint]),
    ("clang_CXXMethod_isConst", c_uint, [RawCursor]),
    ("clang_CXXMethod_isDefaulted", c_uint, [RawCursor]),
    ("clang_CXXMethod_isStatic", c_uint, [RawCursor]),
    ("clang_CXXMethod_isVirtual", c_uint, [RawCursor]),
    ("clang_isVirtualBase", c_uint, [RawCursor]),
    ("clang_equalTypes", c_uint, [RawType, RawType]),
)


def _load() -> Any:
    """A private handle on the library, so that our prototypes do not disturb the binding's."""
    cindex: Any = import_module("clang.cindex")  # ships no types
    library = ctypes.CDLL(str(cindex.conf.lib._name))
    for name, result, arguments in _PROTOTYPES:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_FATAL = 4  # CXDiagnostic_Fatal
_LIB: list[Any] = []


def library() -> Any:
    """libclang with typed prototypes, loaded once."""
    if not _LIB:
        _LIB.append(_load())
    return _LIB[0]


def unit_handle(unit: Any) -> c_void_p:
    """The binding's translation unit, for our functions; it dies with that."""
    handle = getattr(unit, "obj", None) or getattr(unit, "_as_parameter_", None) or unit.from_param()
    return ctypes.cast(handle, c_void_p)


def has_fatal_error_of_no_file(unit: c_void_p) -> bool:
    """Whether clang gave up before it came to any file."""
    lib = library()
    every = lib.clang_getDiagnosticSetFromTU(unit)  # the unit's
    for number in range(lib.clang_getNumDiagnosticsInSet(every)):
        diagnostic = lib.clang_getDiagnosticInSet(every, number)
        if lib.clang_getDiagnosticSeverity(diagnostic) == _FATAL:
            file = c_void_p()
            location = lib.clang_getDiagnosticLocation(diagnostic)
            lib.clang_getExpansionLocation(location, ctypes.byref(file), None, None, None)
            if not file.value:
                return True
    return False


def raw_cursor(cursor: Any) -> RawCursor:
    """A binding's cursor as ours (the two structures have one layout)."""
    if isinstance(cursor, RawCursor):
        return cursor
    return RawCursor.from_buffer_copy(bytes(cursor))
