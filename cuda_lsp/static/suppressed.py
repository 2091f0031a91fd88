"""Findings that a comment of the source silences: ``// cuda-lsp: ignore[code] reason``."""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.frontend.directives import FileDirectives
from cuda_lsp.model import Finding, KernelReport


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
