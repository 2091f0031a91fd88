"""Where a program starts: the ``main`` that a text defines."""

from __future__ import annotations

import re

from cuda_lsp.blanked import blanked

_MAIN = re.compile(r"\bmain\s*\((?:(?!\bmain\b)[^;{}])*\{")


def main_line(text: str) -> int | None:
    """The line (from 1) on which ``main`` is defined; None: no program starts here."""
    if "main" not in text:
        return None
    found = _MAIN.search(blanked(text))
    return text.count("\n", 0, found.start()) + 1 if found else None
