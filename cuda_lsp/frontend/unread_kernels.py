"""Kernels that a text holds and clang could not make out: what stands between ``__global__`` and ``(``.

Told from the text alone, because the tree has nothing of them: they are half typed, written by macros that
are not known, or left out by the preprocessor.
"""

from __future__ import annotations

import re

from cuda_lsp.frontend.host.text import HostText
from cuda_lsp.frontend.kernel_sources import KernelSources
from cuda_lsp.frontend.source_text import SourceText
from cuda_lsp.model import ToolError

_GLOBAL = re.compile(r"\b__global__\b")
_ATTRIBUTES = frozenset({"__launch_bounds__", "__cluster_dims__", "__block_size__", "__maxnreg__"})
_BODY = re.compile(r"[{;]")
_NAME = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s?\(")
_END = re.compile(r"[;{}]")
_DECLARATION = re.compile(r"\s?(?:void|static|inline|\b\w+\s?\()")
_LONGEST = 1000  # characters from ``__global__`` to a kernel's name


def unread_kernels(text: str, sources: KernelSources) -> dict[str, int]:
    """Name → where it stands (index of ``text``)."""
    seen = {k.offsets for k in (*sources.kernels, *sources.templates)}
    if text.count("__global__") <= len(seen) or sources.more:
        return {}
    known = {k.base_name for k in (*sources.kernels, *sources.templates)}
    host = HostText(text)
    found: dict[str, int] = {}
    body: re.Match[str] | None = None
    for match in _GLOBAL.finditer(host.plain):
        name = _name(host, match.end())
        if name is None or name[1] in known or _in_directive(host.plain, match.start()):
            continue
        if body is None or body.start() < name.end():
            body = _BODY.search(host.plain, name.end())
        if body is None:
            break
        if body[0] == "{":
            found[name[1]] = host.original(name.start(1))
    return found


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


def not_read(unread: dict[str, int], source: SourceText) -> list[ToolError]:
    """What the user should know of them."""
    told: list[ToolError] = []
    for name, start in unread.items():
        offset = len(source.text[:start].encode("utf-8", "replace"))
        message = (
            f"kernel '{name}' is not analysed: clang cannot make it out, or the preprocessor leaves it out"
        )
        place = source.range(offset, offset + len(name.encode()))
        told.append(ToolError(message, place, kernel=name))
    return told


def _in_directive(plain: str, place: int) -> bool:
    """Whether the text is the replacement of a macro."""
    line = plain.rfind("\n", 0, place) + 1
    return plain[line : line + 2].lstrip().startswith("#")
