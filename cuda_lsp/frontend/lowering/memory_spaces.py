"""Which memory a variable is declared in: the attributes of its declaration.

Those between a class and a variable that is declared with it (``union { … } __shared__ s;``) are the
variable's to nvcc. clang takes them for the class's, and drops them: these are read from the text.
"""

from __future__ import annotations

from cuda_lsp.frontend.libclang import RawCursor
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.tree import Ast, Declaration

SPACES = frozenset({K.SHARED_ATTR, K.CONSTANT_ATTR, K.DEVICE_ATTR})
_CLASSES = frozenset({2, 3, 4})  # struct, union, class
_WORDS = {
    b"__shared__": K.SHARED_ATTR,
    b"__constant__": K.CONSTANT_ATTR,
    b"__device__": K.DEVICE_ATTR,
    b"__managed__": K.DEVICE_ATTR,
}
_FURTHEST = 1000  # bytes from a class to a variable that is declared with it


def spaces_of(ast: Ast, declaration: Declaration) -> frozenset[int]:
    """The kinds of the attributes that say where the variable lies; none: nothing says it."""
    attributes = declaration.attributes
    if declaration.kind != K.VAR or not attributes & _CLASSES:
        return attributes & SPACES
    classes = (child for child in ast.children(declaration.cursor) if child.kind in _CLASSES)
    behind = (_between(ast, made, declaration.cursor) for made in classes)
    named = {kind for text in behind for word, kind in _WORDS.items() if word in text}
    return (attributes & SPACES) | named


def _between(ast: Ast, made: RawCursor, variable: RawCursor) -> bytes:
    """The text from the end of a class to the name of the variable."""
    lib = ast.lib
    file, _, _, begin = ast.place(lib.clang_getRangeEnd(lib.clang_getCursorExtent(made)))
    other, _, _, end = ast.place(lib.clang_getCursorLocation(variable))
    return ast.contents(file)[begin:end] if file == other and end - begin < _FURTHEST else b""
