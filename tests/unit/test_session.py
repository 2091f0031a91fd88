"""Documents and their process: pauses read the whole text, repairs are tried apart, crashes cost one text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.workspace import TextDocument

from cuda_lsp.config import Settings
from cuda_lsp.model import FileReport
from cuda_lsp.server.diagnostics import DiagnosticsJson
from cuda_lsp.server.session import Session

URI, PATH = "file:///nowhere/a.cu", Path("/nowhere/a.cu")
TWO = """__global__ void first(int* a) {
    __shared__ int s[64];
    s[threadIdx.x] = a[threadIdx.x];
    a[threadIdx.x] = s[63 - threadIdx.x];
}
__global__ void second(int* a) {
    __shared__ int s[64];
    s[threadIdx.x] = a[threadIdx.x];
    a[threadIdx.x] = s[threadIdx.x ^ 1];
}
int main() { first<<<1, 64>>>(0); second<<<1, 64>>>(0); }
"""
MENDED = TWO.replace("    a[threadIdx.x] = s[63", "    __syncthreads();\n    a[threadIdx.x] = s[63")


class Shown:
    """What the client was shown, oldest first."""

    def __init__(self) -> None:
        self.reports: list[FileReport] = []

    def publish(self, uri: str, report: FileReport, refined: bool) -> None:
        del uri, refined
        self.reports.append(report)


@pytest.fixture
def shown() -> Shown:
    return Shown()


@pytest.fixture
def session(shown: Shown) -> Iterator[Session]:
    session = Session(Settings(solver=False), shown.publish)
    yield session
    session.stop()


def opened(session: Session, text: str, version: int) -> FileReport:
    session.change(URI, PATH, text, version)
    report = session.settled(URI, version, text, 120)
    assert report
    assert report.version == version
    return report


def racy(report: FileReport) -> set[str]:
    return {finding.kernel for finding in report.findings if finding.kind}


def test_a_repair_is_tried_and_the_document_stays(session: Session) -> None:
    before = opened(session, TWO, 1)
    tried = session.tried(URI, 1, MENDED)
    assert tried
    assert racy(before) == {"first", "second"}
    assert racy(tried) == {"second"}
    assert session.report(URI) is before
    assert racy(opened(session, TWO + "\n", 2)) == {"first", "second"}


def test_a_repair_of_an_older_version_is_not_tried(session: Session) -> None:
    opened(session, TWO, 1)
    opened(session, TWO + "// more\n", 2)
    assert session.tried(URI, 1, MENDED) is None


def test_a_pause_changes_nothing_that_is_shown(session: Session, shown: Shown) -> None:
    opened(session, TWO, 1)
    typed = opened(session, TWO.replace("s[63 -", "s[ 63 -"), 2)
    session.tried(URI, 2, MENDED)
    time.sleep(1.0)  # the whole text of version 2 is read now
    assert session.report(URI) == typed
    assert all(racy(report) == {"first", "second"} for report in shown.reports)


def test_unchanged_kernels_keep_their_reports_and_diagnostics(session: Session) -> None:
    encoded: list[Any] = []

    def encode(diagnostic: lsp.Diagnostic) -> str:
        encoded.append(diagnostic)
        return f'"{diagnostic.code}"'

    made = DiagnosticsJson(encode)
    first = made.of(opened(session, TWO, 1), TextDocument(URI, TWO))
    total = len(encoded)
    edited = TWO.replace("s[63 -", "s[ 63 -")
    assert made.of(opened(session, edited, 2), TextDocument(URI, edited)) == first
    assert total < len(encoded) < 2 * total
    made.forget(PATH)
    report = session.report(URI)
    assert report
    assert made.of(report, TextDocument(URI, edited)) == first
    assert len(encoded) > 2 * total


def verdicts(report: FileReport) -> set[str]:
    return {kernel.verdict.value for kernel in report.kernels}


CRASH = "#pragma clang __debug crash\n"


def test_a_text_that_crashes_is_undecided_until_the_next(session: Session, shown: Shown) -> None:
    opened(session, TWO, 1)
    crashed = opened(session, CRASH + TWO, 2)
    assert verdicts(crashed) == {"undecided"}
    assert [kernel.range.start.line for kernel in crashed.kernels] == [2, 7]
    assert "crashed" in crashed.errors[0].message
    assert session.tried(URI, 2, MENDED) is None
    assert racy(opened(session, TWO, 3)) == {"first", "second"}
    assert [report.version for report in shown.reports] == [1, 2, 3]


def test_a_file_that_keeps_crashing_waits_and_is_tried_again(session: Session) -> None:
    for version in range(1, 5):
        opened(session, CRASH + "\n" * version + TWO, version)
    waiting = opened(session, TWO, 5)  # at once, though it is not analysed yet
    assert not waiting.kernels and waiting.errors
    until = time.monotonic() + 60
    while not (report := session.report(URI)) or not report.kernels:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert report.version == 5 and racy(report) == {"first", "second"}


def test_a_repair_that_crashes_is_none_and_blames_nobody(session: Session) -> None:
    opened(session, TWO, 1)
    assert session.tried(URI, 1, CRASH + TWO) is None
    assert racy(opened(session, TWO + "\n", 2)) == {"first", "second"}
    assert session.tried(URI, 2, MENDED + "\n")


def test_the_same_version_of_a_document_opened_again_is_another_text(session: Session) -> None:
    opened(session, TWO, 1)
    session.close(URI)
    session.change(URI, PATH, MENDED, 1)
    report = session.settled(URI, 1, MENDED, 60)
    assert report and racy(report) == {"second"}
    assert session.settled(URI, 1, TWO, 0.1) is None


def test_texts_larger_than_what_goes_at_once_arrive_in_order(session: Session) -> None:
    large = TWO + "// " + "x" * 80 + "\n"
    for version in range(1, 9):
        session.change(URI, PATH, large + "// more words than a socket takes\n" * 40_000, version)
    session.change(URI, PATH, MENDED, 9)
    report = session.settled(URI, 9, MENDED, 60)
    assert report and report.version == 9 and racy(report) == {"second"}
