"""Texts in the middle of an edit: what is read of them, and which kernels clang loses sight of meanwhile."""

from __future__ import annotations

import re
from pathlib import Path

from cuda_lsp.frontend.kernel_sources import KernelSource
from cuda_lsp.frontend.source_text import SourceText, open_comment
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import ToolError


def closed(path: Path, text: str) -> tuple[str, list[ToolError]]:
    """The text without a comment that nothing ends: until it is typed, it would be all of the rest."""
    found = open_comment(text)
    if found is None:
        return text, []
    start, end = found
    at = [len(text[:offset].encode("utf-8", "replace")) for offset in found]
    place = SourceText(path, text).range(*at)
    told = ToolError("nothing ends this comment; the lines below it are analysed", place)
    return text[:start] + " " * (end - start) + text[end:], [told]


def broken_templates(translation: Translation) -> list[KernelSource]:
    """Kernel templates without an instance, in whose text clang complains."""
    without = [kernel for kernel in translation.kernels() if kernel.dependent]
    places = [error.range.start for error in translation.diagnostics if error.range] if without else []
    return [k for k in without if any(k.name_range.end < place < k.range.end for place in places)]


def first_line(name: str, text: str, kernel: Kernel, line: int) -> int | None:
    """Where a kernel begins in a broken text, of which it began on a ``line`` before, by its name."""
    place = re.search(rf"\b{name}\s*\(", text)
    if place is None or kernel.name_range is None:
        return None
    first = text.count("\n", 0, place.start()) + 1 + line - kernel.name_range.start.line
    last = first + kernel.range.end.line - kernel.range.start.line
    return first if first >= 1 and last <= text.count("\n") + 1 else None
