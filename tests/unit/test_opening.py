"""A file that is opened is told of in parts, and a part is not taken for the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import FileReport, Verdict
from cuda_lsp.server.session import _whole  # pyright: ignore[reportPrivateUsage]
from cuda_lsp.static import budgets
from cuda_lsp.static.analyze import Analyzer

KERNEL = """__global__ void k{n}(int *a) {{
  __shared__ int s[64];
  s[threadIdx.x] = 1;
  a[threadIdx.x] = s[63 - threadIdx.x];
}}
"""
TEXT = "".join(KERNEL.format(n=n) for n in range(4)) + "void go(int *a) { k0<<<1, 64>>>(a); }\n"


def opened(looked_at: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[FileReport], FileReport]:
    """What is told of a file while it is opened, and in the end; each kernel is a part."""
    monkeypatch.setattr(budgets, "FIRST_S", -1.0)
    monkeypatch.setattr(budgets, "EARLY_S", -1.0)
    analyzer, path = Analyzer(Settings(solver=False), quick=True), Path("/p/a.cu")
    told: list[FileReport] = []
    try:
        analyzer.looked_at[path] = looked_at
        last = analyzer.update(path, TEXT, 7, said=told.append)
        analyzer.update(path, TEXT + "\n", 8, said=told.append)  # after an edit there are no parts
    finally:
        analyzer.shutdown()
    return told, last


@pytest.mark.parametrize(("line", "order"), [(1, "0123"), (99, "3210"), (9, "1203")])
def test_the_kernels_nearest_to_what_is_looked_at_come_first(
    line: int, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, last = opened(line, monkeypatch)
    known = [{k.name for k in report.kernels if k.key} for report in told]
    assert known == [{f"k{n}" for n in order[:many]} for many in (1, 2, 3)]
    assert all(report.version == 7 and len(report.kernels) == 4 for report in (*told, last))


def test_what_is_to_come_is_undecided_and_the_report_no_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    told, last = opened(1, monkeypatch)
    for report in told:
        waiting = [kernel for kernel in report.kernels if not kernel.key]
        assert waiting and not _whole(report)
        assert all(k.verdict is Verdict.UNDECIDED and not k.refined and k.reasons for k in waiting)
    assert _whole(last) and all(kernel.verdict is not Verdict.RACE_FREE for kernel in last.kernels)
