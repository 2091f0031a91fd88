"""Texts in the middle of an edit: what is read of them, and which kernels clang loses sight of meanwhile."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from cuda_lsp.frontend.kernel_sources import KernelSource
from cuda_lsp.frontend.source_text import SourceText, open_comment
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import ToolError

_ENDS = ("", ";", "{", "}")
_MOST_SLASHES = 16  # that are looked at
_SLASH = re.compile(r"/[ \t]*$", re.M)


def closed(path: Path, text: str) -> tuple[str, list[ToolError]]:
    """The text without comments that are being typed: one that nothing ends yet would be all of the rest, and
    of what follows a lone ``/`` clang makes nothing."""
    told: list[ToolError] = []
    read = text
    for begun, message in (
        (open_comment(text), "nothing ends this comment; the lines below it are analysed"),
        (_lone_slash(text), "a comment begins with `//` or `/*`; the lines below are analysed"),
    ):
        if begun is not None:
            start, end = begun
            at = [len(text[:offset].encode("utf-8", "replace")) for offset in begun]
            told.append(ToolError(message, SourceText(path, text).range(*at)))
            read = read[:start] + " " * (end - start) + read[end:]
    return read, told


def _lone_slash(text: str) -> tuple[int, int] | None:
    """A ``/`` at the end of a line where no quotient can be: behind a statement, or alone. As offsets."""
    for slash in islice(_SLASH.finditer(text), _MOST_SLASHES):
        start = slash.start()
        before = text[text.rfind("\n", 0, start) + 1 : start].rstrip(" \t")
        if "//" in before or open_comment(text[:start]) is not None:
            continue
        if not before:
            lines = (line.strip() for line in reversed(text[:start].splitlines()))
            before = next((line for line in lines if line and not line.startswith("//")), "")
        if before[-1:] in _ENDS or before.endswith("*/"):
            return start, start + 1
    return None


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
