"""Errors are told in every format, and stand where they are: also in a header."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from cuda_lsp.model import FileReport, Position, Severity, SourceRange, ToolError
from cuda_lsp.report.document import document
from cuda_lsp.report.github import workflow_commands
from cuda_lsp.report.sarif import sarif
from cuda_lsp.report.terminal import render

HEADER = Path("/p/a.h")
WRONG = ToolError("nvcc: what is this", SourceRange(HEADER, Position(7, 3), Position(7, 5)), Severity.ERROR)
REPORT = FileReport(Path("/p/a.cu"), errors=(WRONG, ToolError("there is no nvcc")))


def test_in_text(capsys: pytest.CaptureFixture[str]) -> None:
    render(Console(), [REPORT], lambda path: [])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["/p/a.h:7:3: nvcc: what is this", "/p/a.cu: there is no nvcc"]


def test_in_json() -> None:
    errors = document([REPORT])["files"][0]["errors"]
    assert [error["path"] for error in errors] == ["/p/a.h", "/p/a.cu"]


def test_in_sarif() -> None:
    (invocation,) = sarif([REPORT], Path("/p"))["runs"][0]["invocations"]
    first, second = invocation["toolExecutionNotifications"]
    assert not invocation["executionSuccessful"]
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a.h"
    assert (first["level"], second["level"]) == ("error", "note")


def test_on_github() -> None:
    first, second = workflow_commands([REPORT]).splitlines()
    assert first == "::error file=/p/a.h,line=7,col=3,title=cuda-lsp::nvcc: what is this"
    assert second == "::notice file=/p/a.cu,title=cuda-lsp::there is no nvcc"
