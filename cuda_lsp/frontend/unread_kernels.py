"""Kernels that a text holds and clang could not make out: what stands between ``__global__`` and ``(``.

Told from the text alone, because the tree has nothing of them: they are half typed, written by macros that
are not known, or left out by the preprocessor.
"""

from __future__ import annotations

from cuda_lsp.frontend.focus import Focus
from cuda_lsp.frontend.host.defined_kernels import defined_kernels
from cuda_lsp.frontend.host.text import HostText
from cuda_lsp.frontend.kernel_sources import KernelSources
from cuda_lsp.frontend.source_text import SourceText, differing
from cuda_lsp.ir.program import NextStep
from cuda_lsp.model import ToolError

_MARK = b"__global__"
_NEAR = len(_MARK) - 1


def unread_kernels(text: str, sources: KernelSources) -> dict[str, int]:
    """Name → where it stands (index of ``text``)."""
    seen = {k.offsets for k in (*sources.kernels, *sources.templates)}
    if text.count("__global__") <= len(seen) or sources.more:
        return {}
    known = {k.base_name for k in (*sources.kernels, *sources.templates)}
    host = HostText(text)
    named = ((name, host.original(start)) for name, start in defined_kernels(host) if name not in known)
    return {name: start for name, start in named if not _is_glued(text, start)}


def _is_glued(text: str, start: int) -> bool:
    """``name##_kernel``: a macro is defined that makes names of kernels; there is none of this one."""
    return text[:start].rstrip(" \t").endswith("##")


def moved_unread(
    unread: dict[str, int], focus: Focus, before: SourceText, text: str
) -> dict[str, int] | None:
    """The same after an edit inside the function in focus; None: it may tell of others there."""
    edit = focus.edit
    near = before.data[max(0, edit.start - _NEAR) : edit.old_end + _NEAR]
    near += b" " + focus.text[max(0, edit.start - _NEAR) : edit.new_end + _NEAR]
    if _MARK in near or focus.text.count(_MARK, *focus.offsets) > 1:
        return None
    if not unread:
        return unread
    _, end, now = differing(before.text, text)
    return {name: start + now - end if start >= end else start for name, start in unread.items()}


def not_read(unread: dict[str, int], source: SourceText) -> list[ToolError]:
    """What the user should know of them."""
    told: list[ToolError] = []
    for name, start in unread.items():
        offset = len(source.text[:start].encode("utf-8", "replace"))
        message = (
            f"kernel '{name}' is not analysed: clang cannot make it out, or the preprocessor leaves it out;"
            f" {NextStep.HEADER.value}"
        )
        place = source.range(offset, offset + len(name.encode()))
        told.append(ToolError(message, place, kernel=name))
    return told
