"""Names of CUDA's headers that a program defines or declares itself, because it does not include the header.

``#ifndef BF16_AVAILABLE`` · ``using __nv_bfloat162 = __half2;``: our declarations have such a name always.
The program's text gets another name for it then, by a macro on the command line: declarations that were
precompiled keep theirs. What is only declared (``struct __half;``) is the type of the header: ours, which
stands in a namespace, so that such a declaration is read as white space where clang finds it ambiguous.

The namespace ``cuda`` is there for who includes libcu++, and with our declarations always. Who has one of
that name (``namespace cuda = image::cuda;``) does not include it: there ours has another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_CLASH = re.compile(r"typedef redefinition with different types \('.*' vs '__cuda_lsp_narrow::(\w+)'\)")
_AMBIGUOUS = re.compile(r"reference to '__(?:half|nv_bfloat16|nv_fp8)\w*' is ambiguous")
_AHEAD = re.compile(r"^[ \t]*(?:struct|class)[ \t]+__(?:half2?|nv_bfloat162?|nv_fp8_e\dm\d)[ \t]*;", re.M)
_NAMESPACE = re.compile(
    r"(?:redefinition of|reference to) '(cuda)'(?: as different kind of symbol| is ambiguous)?\Z"
)
_OWN = "__cuda_lsp_own_"
_OURS = {"cuda": "CUDA_LSP_LIBCUDACXX=__cuda_lsp_libcudacxx"}  # what calls a namespace of ours otherwise


def redefined(messages: Iterable[str]) -> frozenset[str]:
    """The names that clang complains of."""
    return frozenset(
        match[1] for message in messages if (match := _CLASH.match(message) or _NAMESPACE.match(message))
    )


def renaming(names: Iterable[str]) -> tuple[str, ...]:
    """Flags with which a program's own names are none of ours."""
    return tuple(f"-D{name}={_OWN}{name}" for name in sorted(names) if name not in _OURS)


def declared_ahead(messages: Iterable[str], texts: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The files, by name and text, that declare such a type of which clang does not know whose it is."""
    if not any(_AMBIGUOUS.match(message) for message in messages):
        return frozenset()
    return frozenset(name for name, text in texts if _AHEAD.search(text))


def without_declarations(text: str) -> str:
    """The text with white space for these declarations; all else stays where it is."""
    return _AHEAD.sub(lambda match: " " * len(match[0]), text)


def left_to_program(names: Iterable[str]) -> tuple[str, ...]:
    """Macros with which our declarations leave namespaces to the program: they are made anew with these."""
    return tuple(_OURS[name] for name in sorted(names) if name in _OURS)
