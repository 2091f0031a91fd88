"""Names of CUDA's headers that a program defines itself, because it does not include the header.

``#ifndef BF16_AVAILABLE`` · ``using __nv_bfloat162 = __half2;``: our declarations have such a name always.
The program's text gets another name for it then, by a macro on the command line: declarations that were
precompiled keep theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_CLASH = re.compile(r"typedef redefinition with different types \('.*' vs '__cuda_lsp_narrow::(\w+)'\)")
_OWN = "__cuda_lsp_own_"


def redefined(messages: Iterable[str]) -> frozenset[str]:
    """The names that clang complains of."""
    return frozenset(match[1] for message in messages if (match := _CLASH.match(message)) is not None)


def renaming(names: Iterable[str]) -> tuple[str, ...]:
    """Flags with which a program's own names are none of ours."""
    return tuple(f"-D{name}={_OWN}{name}" for name in sorted(names))
