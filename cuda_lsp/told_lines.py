"""Lines that a text for people speaks of ("as lines 7 and 9 decide"), when the code has moved."""

from __future__ import annotations

import re
from collections.abc import Callable

_LINES = re.compile(r"(?<!launch on )\blines? \d+(?:(?:, | and | to )\d+)*")
_NUMBER = re.compile(r"\d+")


def with_lines(text: str, where: Callable[[int], int | None]) -> str:
    """``text`` with each line (from 1) as the number ``where`` tells it to be now; None: it stays.

    A launch is none of its kernel's code, and stays where it is.
    """
    if "line" not in text:
        return text

    def number(found: re.Match[str]) -> str:
        now = where(int(found[0]))
        return found[0] if now is None else str(now)

    return _LINES.sub(lambda found: _NUMBER.sub(number, found[0]), text)
