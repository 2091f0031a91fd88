"""Names of CUDA's headers that a program defines itself, because it does not include the header.

``#ifndef BF16_AVAILABLE`` · ``using __nv_bfloat162 = __half2;``: our declarations have such a name always.
The program's text gets another name for it then, by a macro on the command line: declarations that were
precompiled keep theirs.

The namespace ``cuda`` is there for who includes libcu++, and with our declarations always. Who has one of
that name (``namespace cuda = image::cuda;``) does not include it: there ours has another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_CLASH = re.compile(r"typedef redefinition with different types \('.*' vs '__cuda_lsp_narrow::(\w+)'\)")
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


def left_to_program(names: Iterable[str]) -> tuple[str, ...]:
    """Macros with which our declarations leave namespaces to the program: they are made anew with these."""
    return tuple(_OURS[name] for name in sorted(names) if name in _OURS)
