"""Findings that a comment of the source silences: ``// cuda-lsp: ignore[code] reason``."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from cuda_lsp.config import Settings
from cuda_lsp.frontend.directives import FileDirectives, Suppression
from cuda_lsp.model import Finding, KernelReport, SourceRange
from cuda_lsp.static.diagnostics.catalogue import is_wanted


def without_suppressed(kernel: KernelReport, directives: FileDirectives) -> KernelReport:
    """The report without them."""
    if not directives.suppressions and not directives.file_suppressions:
        return kernel
    everywhere = {code for s in directives.file_suppressions for code in s.codes}

    def silenced(finding: Finding) -> bool:
        line = finding.site.range.start.line
        return finding.code in everywhere or any(
            finding.code in s.codes for s in directives.suppressions if s.line == line
        )

    return evolve(kernel, findings=tuple(f for f in kernel.findings if not silenced(f)))


def unused(
    kernels: Iterable[KernelReport], directives: FileDirectives, settings: Settings
) -> tuple[SourceRange, ...]:
    """The comments that silence nothing, of kernels as they are without them.

    None while anything may still be found: a kernel is being proved, or codes that they name are off.
    """
    asked = (*directives.suppressions, *directives.file_suppressions)
    reports = tuple(kernels) if asked else ()
    if not asked or not all(kernel.refined and kernel.key for kernel in reports):
        return ()
    found = {(f.code, f.site.range.start.line) for kernel in reports for f in kernel.findings}
    anywhere = {code for code, _ in found}

    def silences(comment: Suppression, everywhere: bool) -> bool:
        return any(
            not is_wanted(code, settings)
            or (code in anywhere if everywhere else (code, comment.line) in found)
            for code in comment.codes
        )

    idle = [c for c in directives.suppressions if not silences(c, False)]
    idle += [c for c in directives.file_suppressions if not silences(c, True)]
    return tuple(comment.range for comment in idle)
