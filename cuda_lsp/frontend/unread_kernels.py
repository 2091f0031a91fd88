"""Kernels that a text holds and clang could not make out: what stands between ``__global__`` and ``(``.

Told from the text alone, because the tree has nothing of them: they are half typed, written by macros that
are not known, or left out by the preprocessor.
"""

from __future__ import annotations

import re

from cuda_lsp.frontend.blanked import blanked
from cuda_lsp.frontend.kernel_sources import KernelSources
from cuda_lsp.frontend.source_text import SourceText
from cuda_lsp.model import ToolError

_KERNEL_NAME = re.compile(
    r"\b__global__\b(?:[^;{}()]|\((?=[^()]*\)\s*(?:void|static|inline|\w+\s*\()))*?(?:\([^()]*\)[^;{}()]*?)?"
    r"\b([A-Za-z_]\w*)\s*\("
)


def unread_kernels(text: str, sources: KernelSources) -> dict[str, int]:
    """Name → where it stands (index of ``text``)."""
    seen = {k.offsets for k in (*sources.kernels, *sources.templates)}
    if text.count("__global__") <= len(seen):
        return {}
    found = {k.base_name for k in (*sources.kernels, *sources.templates)}
    found.add("__launch_bounds__")
    plain = blanked(text)
    missing = (m for m in _KERNEL_NAME.finditer(plain) if m[1] not in found)
    return {m[1]: m.start(1) for m in missing if _is_definition(plain, m)}


def not_read(unread: dict[str, int], source: SourceText) -> list[ToolError]:
    """What the user should know of them."""
    told: list[ToolError] = []
    for name, start in unread.items():
        offset = len(source.text[:start].encode("utf-8", "replace"))
        message = (
            f"kernel '{name}' is not analysed: clang cannot make it out, or the preprocessor leaves it out"
        )
        told.append(ToolError(message, source.range(offset, offset + len(name.encode()))))
    return told


def _is_definition(plain: str, match: re.Match[str]) -> bool:
    """Whether a body follows, and the text is not the replacement of a macro."""
    line = plain[plain.rfind("\n", 0, match.start()) + 1 : match.start()]
    if line.lstrip().startswith("#"):
        return False
    end = min((i for i in (plain.find("{", match.end()), plain.find(";", match.end())) if i >= 0), default=-1)
    return end >= 0 and plain[end] == "{"
