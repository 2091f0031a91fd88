"""Plausible arguments for kernel templates that the file never instantiates.

A template that no launch of the file fixes is still worth checking: a line that names
``kernel<float, 256>`` is appended behind the last line of the buffer (no position moves), so clang
instantiates it. Values come from the template's own hints: launch bounds, parameter names, small
defaults. The arguments that were assumed are part of the kernel's name, so they are shown.
"""

from __future__ import annotations

import re

from cuda_lsp.frontend.kernel_sources import KernelSource
from cuda_lsp.frontend.tree import Ast, RawCursor

_TYPE_PARAMETER, _VALUE_PARAMETER, _TEMPLATE_PARAMETER = 27, 28, 29
_BOUNDS = re.compile(rb"__launch_bounds__\s*\(\s*(\d+)")
_ENUM, _ENUM_CONSTANT = 5, 7
_DEFAULT_TYPES = ("float", "int", "double")
_VECTOR_TYPES = ("float", "int", "float2")  # for templates that name a vector's members
# The first guesses keep to what parameters are called; a later one gives all parameters one type.
_ATTEMPTS = ((0, True), (1, True), (2, True), (1, False))
_MEMBER = re.compile(rb"(?<!Idx)(?<!Dim)\.[xy]\b")

# What a type parameter is called → a usual type, for the first guess; first match wins.
_TYPES: tuple[tuple[str, str], ...] = (
    (r"bits?_|.*_bits?(?:_|$)|.*mask|u_?int|unsigned|word", "unsigned"),
    (r"ind(?:ex|ice)|idx|.*_(?:index|idx)_?t?$|offset|size_?t?$|int(?:eger)?_?t?$|count|label", "int"),
)

# What a template parameter is called → a usual value; first match wins.
_VALUES: tuple[tuple[str, str], ...] = (
    (r"warps?(?:_?per.*)?$|num_?warps", "4"),
    (r"warp_?size|lanes", "32"),
    (r"(?:block|bm|bn|tile|bk).*(?:dim|size|width|height|_?[xymnk])?$", "16"),
    (r"thread|nthreads|block_?size|bs$|bdim", "256"),
    (r"unroll|items|per_?thread|ipt|vec|stages?", "4"),
    (r"radius|halo", "3"),
)


def request(ast: Ast, template: KernelSource, data: bytes, attempt: int) -> str | None:
    """``ns::kernel<float, 256>``: guess number ``attempt`` (from 0); None when there is no further guess."""
    start, end = template.offsets
    types = _VECTOR_TYPES if _MEMBER.search(data, start, end) is not None else _DEFAULT_TYPES
    if attempt >= len(_ATTEMPTS):
        return None
    kind, named = _ATTEMPTS[attempt]
    bounds = _BOUNDS.search(data, start, end)
    arguments: list[str] = []
    for parameter in ast.children(template.cursor):
        if parameter.kind == _TEMPLATE_PARAMETER:
            return None
        if parameter.kind == _TYPE_PARAMETER:
            if _is_pack(ast, parameter, data):
                break
            arguments.append(_type(ast.spelling(parameter).lower(), types[kind], named))
        elif parameter.kind == _VALUE_PARAMETER:
            if _is_pack(ast, parameter, data):
                break
            arguments.append(_value(ast, parameter, bounds[1].decode() if bounds else None))
    return f"{template.scope}{template.base_name}<{', '.join(arguments)}>"


def _type(name: str, otherwise: str, named: bool) -> str:
    usual = next((kind for pattern, kind in _TYPES if re.match(pattern, name)), None)
    return usual if usual is not None and named else otherwise


def appended_text(requests: list[str]) -> str:
    """The line that makes clang instantiate ``requests``; it goes behind the text of the file."""
    if not requests:
        return ""
    uses = " ".join(f"(void)&{name};" for name in requests)
    return f"\nvoid __cuda_lsp_instantiate() {{ {uses} }}\n"


def _value(ast: Ast, parameter: RawCursor, bounds: str | None) -> str:
    name = ast.spelling(parameter).lower()
    kind = ast.string(ast.lib.clang_getTypeSpelling(ast.lib.clang_getCursorType(parameter)))
    if "bool" in kind:
        return "true"
    member = _enumerator(ast, parameter)
    if member is not None:
        return member
    for pattern, value in _VALUES:
        if re.match(pattern, name):
            return bounds if bounds and value == "256" else value
    return "16"


def _enumerator(ast: Ast, parameter: RawCursor) -> str | None:
    """The first value of the parameter's enumeration, by its full name; None when it is no enumeration."""
    lib = ast.lib
    type = lib.clang_getCanonicalType(lib.clang_getCursorType(parameter))
    declaration = lib.clang_getTypeDeclaration(type)
    if declaration.kind != _ENUM:
        return None
    first = next((c for c in ast.children(declaration) if c.kind == _ENUM_CONSTANT), None)
    value = lib.clang_getEnumConstantDeclValue(first) if first is not None else 0
    return f"static_cast<{ast.string(lib.clang_getTypeSpelling(type))}>({value})"


def _is_pack(ast: Ast, parameter: RawCursor, data: bytes) -> bool:
    lib = ast.lib
    extent = lib.clang_getCursorExtent(parameter)
    start = ast.place(lib.clang_getRangeStart(extent))[3]
    end = ast.place(lib.clang_getRangeEnd(extent))[3]
    return b"..." in data[start:end]
