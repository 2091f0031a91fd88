"""What the source calls memory: kernels cut dynamic shared memory into arrays of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable

_INDEXED = re.compile(r"\W*([A-Za-z_]\w*)[\s)]*\[")


def called(element: str, array: str, accesses: Iterable[str]) -> str:
    """An ``element`` of an ``array``, with the name that all accesses to it use, where that is another.

    ``s_out (smem[124])`` of ``smem[124]`` that ``s_out[t]`` and ``s_out[t + 1]`` meet in.
    """
    names = {found[1] if (found := _INDEXED.match(text)) else "" for text in accesses}
    name = names.pop() if len(names) == 1 else ""
    return f"{name} ({element})" if name and name != array else element
