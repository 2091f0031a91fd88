"""Kernel text → kernel program, for tests of the lowering."""

from __future__ import annotations

from pathlib import Path

from kernel_text import kernel_text

from cuda_lsp.frontend.translation import Translation
from cuda_lsp.ir.program import Incomplete, Kernel
from cuda_lsp.ir.walk import walk


def lowered(text: str, name: str | None = None) -> Kernel:
    """The program of the first kernel of ``text`` (or the one called ``name``)."""
    translation = Translation(Path("kernel.cu"), text)
    sources = [k for k in translation.kernels() if name is None or k.name == name]
    return translation.lower(sources[0])


def printed(text: str) -> list[str]:
    """The statements of the first kernel, one a line, stripped."""
    return [line.strip() for line in kernel_text(lowered(text)).splitlines()]


def constructs(kernel: Kernel) -> list[str]:
    """What the lowering did not cover."""
    return [s.construct for s in walk(kernel.body) if isinstance(s, Incomplete)]


def accesses(text: str, base: str) -> list[str]:
    """Loads, stores and atomics of one array, as printed, in order of text."""
    return [
        line
        for line in printed(text)
        if f"&{base}" in line and ("load" in line or "store" in line or "atomic" in line or "copy" in line)
    ]
