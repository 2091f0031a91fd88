"""Which of an enumeration's values class templates are specialised for.

``template <> struct Reduce<T, Op::kSum>`` has what the kernel uses; of the template itself often only a
declaration is there, as for values that mean nothing (``kNone = -1``).
"""

from __future__ import annotations

from collections import Counter

from cuda_lsp.frontend.libclang import RawCursor
from cuda_lsp.frontend.tree import Ast

# CXCursorKind numbers.
_STRUCT, _CLASS, _PARTIAL = 2, 4, 32
_NAMESPACE, _LINKAGE = 22, 23
_REFERENCE = 101  # to a declaration, in an expression
_ENUM_CONSTANT = 7
_CLASSES = frozenset({_STRUCT, _CLASS, _PARTIAL})


def specialised_for(ast: Ast, root: RawCursor, enumeration: RawCursor) -> Counter[int]:
    """Values of the enumeration, each as often as a class template is specialised for it."""
    lib = ast.lib
    wanted = lib.clang_getCanonicalCursor(enumeration).data[0]
    found: Counter[int] = Counter()
    pending = [root]
    while pending:
        for child in ast.children(pending.pop()):
            if child.kind in (_NAMESPACE, _LINKAGE):
                pending.append(child)
            elif child.kind in _CLASSES:
                for argument in _arguments(ast, child):
                    parent = lib.clang_getCanonicalCursor(lib.clang_getCursorSemanticParent(argument))
                    if parent.data[0] == wanted:
                        found[lib.clang_getEnumConstantDeclValue(argument)] += 1
    return found


def _arguments(ast: Ast, cursor: RawCursor) -> list[RawCursor]:
    """The enumerators among a class's template arguments."""
    named = (c for c in ast.children(cursor) if c.kind == _REFERENCE)
    referenced = (ast.lib.clang_getCursorReferenced(c) for c in named)
    return [c for c in referenced if c.kind == _ENUM_CONSTANT]
