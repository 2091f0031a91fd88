"""Which of clang's diagnostics a user should hear about, in words with a next step.

Host code parsed for the device is full of errors that mean nothing, and so do toolkit headers that we
replace: those are dropped here on purpose. What counts is a header of the user's own that is missing, and
errors inside a kernel's text.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

from attrs import frozen

from cuda_lsp.frontend.kernel_sources import KernelSource, KernelSources, called_stretches
from cuda_lsp.frontend.source_text import SourceText
from cuda_lsp.frontend.tree import Ast
from cuda_lsp.model import SourceRange, ToolError

_MISSING = re.compile(r"'([^']+)' file not found")
# Headers of the toolkit, of the C library and of systems that sources include in quotes as well.
_TOOLKIT = re.compile(
    r"(?:^|/)(?:cuda|cu(?:blas|fft|rand|sparse|solver|dnn|complex|tensor|pti)|cub/|cooperative_groups|thrust/|nv|npp|"
    r"device_|driver_|vector_|math_|sm_\d|texture_|surface_|crt/|channel_desc|host_defines|builtin_types|mma|"
    r"curand|nccl|mpi|omp|sys/|std(?:io|lib|int|bool|def)|math\.h|string|assert|time|unistd)",
)
_PER_KERNEL = 3


@frozen
class Problem:
    """An error of clang in the main file; ``offset`` in bytes."""

    message: str
    offset: int
    line: int


def main_file_problems(
    unit: Any, ast: Ast, path: str, limit: int
) -> tuple[list[Problem], list[tuple[str, int]]]:
    """Errors inside the first ``limit`` bytes of the main file, and (name, line) of missing headers.

    The line is 0 for a header that another header includes. Headers in ``<…>`` are the system's: absent on
    purpose, the shim declares what matters of them.
    """
    problems: list[Problem] = []
    missing: list[tuple[str, int]] = []
    for diagnostic in unit.diagnostics:
        if diagnostic.severity < 3:
            continue
        location = diagnostic.location
        here = location.file is not None and location.file.name == path and location.offset < limit
        absent = _MISSING.search(diagnostic.spelling)
        if absent:
            if not _in_angle_brackets(ast, location):
                missing.append((absent[1], location.line if here else 0))
        elif here:
            problems.append(Problem(diagnostic.spelling, location.offset, location.line))
    return problems, missing


def _in_angle_brackets(ast: Ast, location: Any) -> bool:
    file = ctypes.cast(location.file.from_param(), ctypes.c_void_p).value if location.file else None
    return file is not None and ast.contents(file)[location.offset : location.offset + 1] == b"<"


def missing_headers(missing: Sequence[tuple[str, int]], source: SourceText) -> list[ToolError]:
    """One message per header of the user's own that was not found."""
    errors: list[ToolError] = []
    seen: set[str] = set()
    for name, line in missing:
        text = source.line(line)
        if name in seen or _TOOLKIT.search(name):
            continue
        seen.add(name)
        start = source.line_starts[line - 1] if line else 0
        errors.append(
            ToolError(
                f"header {name!r} was not found, so what it declares is unknown: add its folder to the"
                " setting include-dirs, pass -I, or provide a compile_commands.json",
                source.range(start, start + len(text)) if line else None,
            )
        )
    return errors


def errors_within(
    kernel: KernelSource, sources: KernelSources, problems: Sequence[Problem], source: SourceText
) -> tuple[tuple[SourceRange, str], ...]:
    """Where clang reports errors inside a kernel, or inside functions of the file that it may call."""
    if not problems:
        return ()
    stretches = called_stretches(sources, kernel, source.data)
    found = dict.fromkeys(
        (p.offset, p.message) for p in problems if any(start <= p.offset < end for start, end in stretches)
    )
    return tuple((source.range(offset, offset + 1), message) for offset, message in found)


def kernel_errors(
    kernels: Sequence[KernelSource], problems: Sequence[Problem], source: SourceText
) -> list[ToolError]:
    """The first few errors inside each kernel's text, as clang words them."""
    errors: list[ToolError] = []
    for start, end in sorted({k.offsets for k in kernels}):
        name = next(k.base_name for k in kernels if k.offsets == (start, end))
        inside = list(dict.fromkeys((p.message, p.offset) for p in problems if start <= p.offset < end))
        for message, offset in inside[:_PER_KERNEL]:
            errors.append(
                ToolError(f"in kernel '{name}', not understood: {message}", source.range(offset, offset + 1))
            )
    return errors
