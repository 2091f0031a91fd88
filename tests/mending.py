"""Repairs of texts as the command line finds them: one file, both tiers, one process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cuda_lsp.config import PATIENT, Settings
from cuda_lsp.model import Code, FileReport, Finding
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.plan import InProcess
from cuda_lsp.repairs.search import Composition, composed, every_one
from cuda_lsp.static.analyze import Analyzer

PATH = Path("/k.cu")


def mended(
    text: str,
    of: Callable[[Finding], bool] = every_one,
    settings: Settings = PATIENT,
    kinds: frozenset[RepairKind] = frozenset(RepairKind),
) -> Composition:
    """All verified repairs of these kinds, one on top of the other."""
    analyzer = Analyzer(settings)
    try:
        report = analyzer.check(PATH, text)
        return composed(PATH, text, report, InProcess(analyzer, PATH), lambda c: c.kind in kinds, of)
    finally:
        analyzer.shutdown()


def races(report: FileReport) -> list[Code]:
    """The codes of the races that are left."""
    return [finding.code for finding in report.findings if finding.kind]
