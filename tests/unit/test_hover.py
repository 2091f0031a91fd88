"""What hovers say, of reports that are made here."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import (
    Code,
    FileReport,
    Finding,
    KernelReport,
    Position,
    Site,
    SourceRange,
    Status,
    Verdict,
)
from cuda_lsp.server.hover import hover_text


def place(line: int) -> SourceRange:
    return SourceRange(Path("a.cu"), Position(line, 5), Position(line, 9))


@pytest.mark.parametrize("earlier", [True, False])
def test_a_finding_of_the_text_before_the_last_edit_says_so(earlier: bool) -> None:
    finding = Finding(
        Code.SHARED_RACE, Status.PROVED, "RAW race on s", "k", Site(place(3), "s[t]"), earlier=earlier
    )
    kernel = KernelReport("k", place(1), Verdict.UNDECIDED, findings=(finding,))
    told = hover_text(FileReport(Path("a.cu"), (kernel,)), Position(3, 6)) or ""
    assert "RAW race on s" in told
    assert ("As of the text before the last edit; it is being proved again." in told) is earlier
