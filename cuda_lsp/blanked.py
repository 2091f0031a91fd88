"""Source text without its comments and strings, read in one pass: positions stay.

Like a lexer's first look, with two liberties for text that is being typed: a comment or a string that
nobody closes is text, and character literals are (in host code they hold a quote hardly ever).
"""

from __future__ import annotations

import re

_BEGIN = re.compile(r'//|/\*|"')
_IN_STRING = re.compile(r'["\\\n]')


def blanked(text: str) -> str:
    """``text`` with comments and strings replaced by spaces; line ends stay."""
    pieces: list[str] = []
    done = at = 0
    open_until = 0  # no string that begins before this place is closed
    closes = True  # whether a ``*/`` is left
    while (match := _BEGIN.search(text, at)) is not None:
        begin, word, end = match.start(), match[0], -1
        if word == "//":
            end = text.find("\n", begin)
            end = len(text) if end < 0 else end
        elif word == "/*" and closes:
            end = text.find("*/", begin + 2) + 2
            closes = end >= 2
        elif word == '"' and begin >= open_until:
            end, closed = _string_end(text, begin + 1)
            open_until = 0 if closed else end
            end = end if closed else -1
        if end < 2:
            at = match.end() if word == '"' else begin + 1
            continue
        pieces += text[done:begin], _spaces(text[begin:end])
        done = at = end
    return "".join((*pieces, text[done:])) if pieces else text


def _string_end(text: str, at: int) -> tuple[int, bool]:
    """Where the string whose inside begins at ``at`` ends, or else its line; whether it is closed there."""
    while (match := _IN_STRING.search(text, at)) is not None:
        if match[0] != "\\":
            return match.end(), match[0] == '"'
        at = match.end() + 1
    return len(text), False


def _spaces(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))
