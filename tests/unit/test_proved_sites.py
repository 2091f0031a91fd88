"""Which accesses of a racy kernel a run need not watch."""

from __future__ import annotations

import sys
from pathlib import Path

from click.testing import CliRunner

from cuda_lsp.cli import main
from cuda_lsp.config import Settings
from cuda_lsp.model import KernelReport, SourceRange, Verdict
from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.static.run_needs import proved_sites

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

KERNEL = """
// cuda-lsp: launch block=64 grid=1
__global__ void k(int* out, const int* in, int* table) {
    __shared__ int clean[64], racy[64];
    int t = threadIdx.x;
    clean[t] = in[t];
    racy[t] = t;
    OTHER
    out[t] = racy[63 - t] + clean[t];
}
"""


def proved(tmp_path: Path, other: str = "") -> tuple[KernelReport, set[str]]:
    path, text = tmp_path / "k.cu", KERNEL.replace("OTHER", other)
    analyzer = Analyzer(Settings())
    analyzer.update(path, text)
    (report,) = analyzer.settle(path).kernels
    kernel = analyzer.kernel(path, "k")
    assert kernel is not None
    found = {_text(text, place) for place in proved_sites(kernel, report)}
    analyzer.shutdown()
    return report, found


def _text(text: str, place: SourceRange) -> str:
    return text.splitlines()[place.start.line - 1][place.start.column - 1 : place.end.column - 1]


def test_only_the_array_that_races_is_watched(tmp_path: Path) -> None:
    report, found = proved(tmp_path)
    assert report.reasons == ()
    assert {"clean[t]", "in[t]", "out[t]"} <= found
    assert not any("racy" in text for text in found)


def test_what_the_solver_decided_after_a_cut_execution_is_not_open(tmp_path: Path) -> None:
    path, text = (
        tmp_path / "k.cu",
        """
__global__ void rows(float* c, const float* a, int n) {
    __shared__ float s[256];
    float sum = 0.0f;
    for (int t = 0; t < n; ++t) {
        s[threadIdx.y] = a[t * 256 + threadIdx.x];
        sum += s[threadIdx.x];
    }
    c[blockIdx.x * 256 + threadIdx.x] = sum;
}
void launch(float* c, const float* a) { rows<<<dim3(3, 640), dim3(256)>>>(c, a, 2000); }
""",
    )
    analyzer = Analyzer(Settings())
    analyzer.update(path, text)
    (report,) = analyzer.settle(path).kernels
    analyzer.shutdown()
    assert report.verdict is Verdict.RACY and report.reasons == ()


def test_what_was_left_open_is_watched(tmp_path: Path) -> None:
    report, found = proved(tmp_path, "if (t < 32) table[in[t]] = table[in[t + 1]];")
    assert report.reasons
    assert found == set()


@needs_nvcc
def test_the_run_says_what_it_did_not_watch(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(KERNEL.replace("OTHER", ""))
    command = ["run", str(path), "--engine", "emulator", "--format", "json"]
    few = CliRunner().invoke(main, command)
    assert "racy" in few.stdout and "confirmed" in few.stdout
    assert "accesses are not watched for races" in few.stdout
    every = CliRunner().invoke(main, [*command, "--watch-all"])
    assert "not watched for races" not in every.stdout and "confirmed" in every.stdout
