"""Elements of one array of pointers that a launch passes: ``k<<<…>>>(buf[s % 2], buf[(s + 2) % 2])``.

Whether two indices are one number is tried out, for small values of the names in them: buffers that take
turns are told by remainders, differences and bits, which a few values tell apart.
"""

from __future__ import annotations

import itertools
import re

from cuda_lsp.frontend.host.constants import NotConstant, evaluate

_ELEMENT = re.compile(r"\A([^\[\]]+)\[([^\[\]]+)\]\Z")
_VALUES = range(8)
_MOST_NAMES = 2


def is_one_element(one: str, other: str) -> bool | None:
    """Whether two places are one element of an array; None: now and then. Other places are not."""
    first, second = _ELEMENT.match(one), _ELEMENT.match(other)
    if first is None or second is None or first[1] != second[1]:
        return False
    index, another = first[2], second[2]
    try:
        names = _names(index)
        if names != _names(another) or not 1 <= len(names) <= _MOST_NAMES:
            return False  # of names that the two do not share it is not known how they go together
        every = itertools.product(_VALUES, repeat=len(names))
        settings = (dict(zip(sorted(names), values, strict=True)) for values in every)
        pairs = [tuple(evaluate(text, at.__getitem__) for text in (index, another)) for at in settings]
    except NotConstant:
        return False
    alike = {i == j for i, j in pairs if i >= 0 and j >= 0}
    return next(iter(alike)) if len(alike) == 1 else None


def _names(index: str) -> set[str]:
    """Raises NotConstant."""
    found: set[str] = set()

    def noted(name: str) -> int:
        found.add(name)
        return 1

    evaluate(index, noted)
    return found
