"""Patterns of files as settings have them: ``*`` and ``?`` within a name, ``**`` over folders, ``[abc]``.

A pattern without a slash is about the file's name, wherever the file is; any other is about its whole path.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

_PART = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|.", re.DOTALL)
_MEANS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def placed(pattern: str, folder: Path) -> str:
    """A pattern of a settings file, which is about files below its folder."""
    return pattern if "/" not in pattern else os.path.join(os.path.abspath(folder), pattern)


def matches(pattern: str, path: Path) -> bool:
    """Whether a file is meant; of a relative pattern with slashes: relative to the working folder."""
    if "/" not in pattern:
        return _compiled(pattern).fullmatch(path.name) is not None
    return _compiled(os.path.abspath(pattern)).fullmatch(os.path.abspath(path)) is not None


@lru_cache(256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile("".join(map(_regular, _PART.findall(pattern))), re.DOTALL)


def _regular(part: str) -> str:
    if part in _MEANS:
        return _MEANS[part]
    if len(part) > 1:  # [abc], [!abc]
        inside = part[1:-1].replace("\\", r"\\")
        return f"[{'^' + inside[1:] if inside.startswith('!') else inside}]"
    return re.escape(part)
