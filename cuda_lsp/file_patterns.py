"""Patterns of files as settings have them: ``*`` and ``?`` within a name, ``**`` over folders, ``[abc]``.

A pattern without a slash is about the file's name, wherever the file is; any other is about its whole path.
They come from folders that nobody trusts: a match takes no more time than their two lengths, multiplied.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

_PART = re.compile(r"\[!?[^\]]{1,256}\]|.", re.DOTALL)


def placed(pattern: str, folder: Path) -> str:
    """A pattern of a settings file, which is about files below its folder."""
    return pattern if "/" not in pattern else os.path.join(os.path.abspath(folder), pattern)


def matches(pattern: str, path: Path) -> bool:
    """Whether a file is meant; of a relative pattern with slashes: relative to the working folder."""
    if "/" not in pattern:
        return _is_name(pattern, path.name)
    folders = os.path.abspath(pattern).split("/"), os.path.abspath(path).split("/")
    return _wild(*folders, "**", _is_name)


def _is_name(pattern: str, name: str) -> bool:
    last = pattern.rfind("]") + 1  # behind it no [ is looked after to the end
    return _wild([*_PART.findall(pattern[:last]), *pattern[last:]], name, "*", _is_letter)


def _is_letter(part: str, letter: str) -> bool:
    if len(part) > 1:  # [abc], [!abc]
        return letter not in part[2:-1] if part[1] == "!" else letter in part[1:-1]
    return part in ("?", letter)


def _wild(
    pattern: Sequence[str], parts: Sequence[str], star: str, is_one: Callable[[str, str], bool]
) -> bool:
    """Whether the parts are what the pattern says, where ``star`` stands for any number of them.

    What an earlier star takes need never be thought over again when a later one is reached.
    """
    at = here = back = 0
    behind = -1  # the last star
    while here < len(parts):
        if at < len(pattern) and pattern[at] == star:
            behind, back = at + 1, here
            at += 1
        elif at < len(pattern) and is_one(pattern[at], parts[here]):
            at, here = at + 1, here + 1
        elif behind >= 0:
            back += 1
            at, here = behind, back
        else:
            return False
    return all(part == star for part in pattern[at:])
