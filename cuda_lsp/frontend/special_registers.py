"""PTX's special registers in inline assembly: nvcc takes ``%laneid`` as it takes ``%%laneid``, clang not so.

Where clang complained, the text is read again with two signs. One takes the place of the blank before, so
that nothing moves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_COMPLAINT = "invalid % escape in inline assembly string"
_ONE_SIGN = re.compile(
    r"[ \t]%(?=(?:laneid|n?warpid|n?smid|gridid|lanemask_\w+|clock(?:_hi|64)?|globaltimer(?:_lo|_hi)?"
    r"|n?tid|n?ctaid|(?:total|dynamic|aggr)_smem_size)\b)"
)


def complained(errors: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Files with such a register; ``errors``: clang's, with their files."""
    return frozenset(path for path, message in errors if message == _COMPLAINT)


def escaped(text: str) -> str:
    """The text with two signs before each such register; all else stays where it is."""
    return _ONE_SIGN.sub("%%", text)
