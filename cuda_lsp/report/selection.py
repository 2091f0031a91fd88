"""Findings of some codes only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from attrs import evolve

from cuda_lsp.model import Code, FileReport, Finding


def selected(reports: Iterable[FileReport], select: Set[Code], ignore: Set[Code]) -> Iterator[FileReport]:
    """The reports with findings of ``select`` (of all codes if it is empty) without those of ``ignore``.

    Verdicts stay: they say what a kernel is, whatever is told of it.
    """
    if not select and not ignore:
        yield from reports
        return

    def left(findings: Iterable[Finding]) -> tuple[Finding, ...]:
        wanted = (finding for finding in findings if not select or finding.code in select)
        return tuple(finding for finding in wanted if finding.code not in ignore)

    for report in reports:
        kernels = tuple(evolve(kernel, findings=left(kernel.findings)) for kernel in report.kernels)
        yield evolve(report, kernels=kernels)
