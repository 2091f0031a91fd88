"""Kernels that a text defines: what stands between ``__global__`` and ``(``, with a body behind."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.frontend.host.text import HostText

_GLOBAL = re.compile(r"\b__global__\b")
_ATTRIBUTES = frozenset({"__launch_bounds__", "__cluster_dims__", "__block_size__", "__maxnreg__"})
_BODY = re.compile(r"[{;]")
_NAME = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s?\(")
_END = re.compile(r"[;{}]")
_DECLARATION = re.compile(r"\s?(?:void|static|inline|\b\w+\s?\()")
_LONGEST = 1000  # characters from ``__global__`` to a kernel's name


def defined_kernels(host: HostText) -> Iterator[tuple[str, int]]:
    """Names, and where they stand in ``host.plain``; not of kernels that are only declared, nor of macros."""
    body: re.Match[str] | None = None
    for match in _GLOBAL.finditer(host.plain):
        name = _name(host, match.end())
        if name is None or _in_directive(host.plain, match.start()):
            continue
        if body is None or body.start() < name.end():
            body = _BODY.search(host.plain, name.end())
        if body is None:
            break
        if body[0] == "{":
            yield name[1], name.start(1)


def _name(host: HostText, begin: int) -> re.Match[str] | None:
    """The first name with parentheses behind it, those of attributes left out."""
    plain = host.plain
    ended = _END.search(plain, begin, begin + _LONGEST)
    end = ended.start() if ended else begin + _LONGEST
    while (match := _NAME.search(plain, begin, end)) is not None:
        closing = host.closing(match.end() - 1)
        if closing < 0 or not (match[1] in _ATTRIBUTES or _DECLARATION.match(plain, closing + 1)):
            return match
        begin = closing + 1
    return None


def _in_directive(plain: str, place: int) -> bool:
    """Whether the text is the replacement of a macro."""
    line = plain.rfind("\n", 0, place) + 1
    return plain[line : line + 2].lstrip().startswith("#")
