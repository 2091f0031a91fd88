"""The verdicts that the status bar of an editor shows."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.model import FileReport, KernelReport, Position, SourceRange, Verdict
from cuda_lsp.server.file_status import file_status

HERE = SourceRange(Path("/k.cu"), Position(1, 1), Position(1, 2))


def test_status_names_each_kernel_with_its_verdict_and_reasons() -> None:
    kernels = (
        KernelReport("scan", HERE, Verdict.RACY, refined=True),
        KernelReport("sort", HERE, Verdict.UNDECIDED, reasons=("inline assembly",), refined=True),
    )
    status = file_status("file:///k.cu", FileReport(Path("/k.cu"), kernels, version=3))
    assert status == {
        "uri": "file:///k.cu",
        "version": 3,
        "refined": True,
        "kernels": [
            {"name": "scan", "verdict": "racy", "reasons": []},
            {"name": "sort", "verdict": "undecided", "reasons": ["inline assembly"]},
        ],
    }


def test_a_file_is_refined_only_when_every_kernel_is() -> None:
    kernels = (
        KernelReport("a", HERE, Verdict.RACE_FREE, refined=True),
        KernelReport("b", HERE, Verdict.RACE_FREE, refined=False),
    )
    assert file_status("file:///k.cu", FileReport(Path("/k.cu"), kernels))["refined"] is False
