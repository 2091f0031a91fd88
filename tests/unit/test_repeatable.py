"""What is said of a kernel does not depend on what was looked at before."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.config import Settings
from cuda_lsp.model import FileReport
from cuda_lsp.static.analyze import Analyzer

RACY = """
__global__ void shifted(int* a, int n, int pitch) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x < n) a[y * pitch + x] = a[y * pitch + x + 1];
}
"""
OTHER = """
__global__ void other(int* a, int first, int pitch, int n) {
    int i = blockIdx.x * pitch + threadIdx.x * first;
    if (i < n) a[i] = n;
}
"""


def settled(text: str) -> FileReport:
    analyzer = Analyzer(Settings())
    analyzer.update(Path("k.cu"), text)
    try:
        return analyzer.settle(Path("k.cu"))
    finally:
        analyzer.shutdown()


def test_earlier_kernels_change_no_witness() -> None:
    alone = settled(RACY).kernels[0].findings
    settled(OTHER)
    assert alone
    assert settled(RACY).kernels[0].findings == alone
