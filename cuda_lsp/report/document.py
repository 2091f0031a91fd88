"""Findings as the exchange format: one JSON object a run (``docs/semantics.md``, schema 1).

Ranges are 1-based, end exclusive, columns in Unicode code points. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cuda_lsp import __version__
from cuda_lsp.model import (
    BankReport,
    FileReport,
    Finding,
    KernelReport,
    LaunchConfig,
    Observation,
    Position,
    SourceRange,
    Witness,
    is_apart,
)
from cuda_lsp.report.defects import defects

Json = dict[str, Any]


def document(files: Iterable[FileReport]) -> Json:
    """The whole run as one JSON-serialisable object."""
    return {
        "schema": 1,
        "tool": {"name": "cuda-lsp", "version": __version__},
        "files": [_file(report) for report in files],
    }


def _file(report: FileReport) -> Json:
    return {
        "path": str(report.path),
        "seconds": round(report.seconds, 4),
        "kernels": [_kernel(kernel) for kernel in report.kernels],
        "findings": [_finding(finding) for finding in defects(report.findings)],
        "errors": [
            {
                "message": error.message,
                "severity": error.severity.name.lower(),
                "path": str(error.range.path if error.range else report.path),
                "range": _range(error.range) if error.range else None,
            }
            for error in report.errors
        ],
    }


def _kernel(kernel: KernelReport) -> Json:
    return {
        "name": kernel.name,
        "range": _range(kernel.range),
        "verdict": kernel.verdict.value,
        "reasons": list(kernel.reasons),
        "assumptions": list(kernel.assumptions),
        "launch": _launch(kernel.launches[0]) if kernel.launches else None,
    }


def _launch(launch: LaunchConfig) -> Json:
    return {
        "block": list(launch.block),
        "grid": list(launch.grid) if launch.grid else None,
        "dynamic_shared": launch.dynamic_shared,
        "source": launch.source.value,
        "assumed": launch.assumed,
        "arguments": {name: value for name, value in launch.arguments.items() if not is_apart(name)},
    }


def _finding(finding: Finding) -> Json:
    return {
        "code": finding.code.value,
        "status": finding.status.value,
        "severity": finding.effective_severity.name.lower(),
        "message": finding.message,
        "kernel": finding.kernel,
        "path": str(finding.site.range.path),
        "range": _range(finding.site.range),
        "related": [
            {
                "range": _range(related.site.range),
                "path": str(related.site.range.path),
                "message": related.message,
            }
            for related in finding.related
        ],
        "also": [_finding(other) for other in finding.also],
        "kind": finding.kind.value if finding.kind else None,
        "condition": finding.condition,
        "reason": finding.reason,
        "next": finding.next_step,
        "witness": _witness(finding.witness) if finding.witness else None,
        "bank": _bank(finding.bank) if finding.bank else None,
        "missed": finding.missed,
        "observation": _observation(finding.observation) if finding.observation else None,
    }


def _observation(seen: Observation) -> Json:
    return {
        "device": seen.device,
        "launch": _launch(seen.launch),
        "seconds": seen.seconds,
        "pairs": seen.pairs,
        "words": seen.words,
        "blocks": {"checked": seen.blocks_checked, "total": seen.blocks_total},
        "instance": seen.instance or None,
        "told": seen.told,
        "launches": list(seen.launches),
        "in_blocks": seen.blocks,
        "values": list(seen.values) if seen.values else None,
    }


def _witness(witness: Witness) -> Json:
    return {
        "threads": [list(thread) for thread in witness.threads],
        "blocks": [list(block) for block in witness.blocks] if witness.blocks else None,
        "array": witness.array,
        "index": list(witness.index),
        "values": dict(witness.values),
    }


def _bank(bank: BankReport) -> Json:
    return {
        "ways": bank.ways,
        "wavefronts": bank.wavefronts,
        "ideal": bank.ideal,
        "histogram": list(bank.histogram),
    }


def _range(extent: SourceRange) -> Json:
    return {"start": _position(extent.start), "end": _position(extent.end)}


def _position(position: Position) -> Json:
    return {"line": position.line, "column": position.column}
