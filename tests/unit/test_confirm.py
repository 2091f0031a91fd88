"""A kernel on its own under check: what both analyses say of it together."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from attrs import evolve
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.cli import main
from cuda_lsp.confirm import CheckOptions, check_kernels
from cuda_lsp.dynamic.job import EngineKind
from cuda_lsp.dynamic.runner import Runner
from cuda_lsp.model import FileReport
from cuda_lsp.static.analyze import analysed_files

pytestmark = needs_nvcc


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("CUDA_LSP_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def checked(path: Path, *, blind: bool = False) -> tuple[FileReport, FileReport]:
    """The report before and after the check. ``blind``: as if the static analysis had found nothing."""
    runner = Runner()
    options = CheckOptions(EngineKind.EMULATOR, watch_all=True)
    try:
        for analyzer, text, report in analysed_files([path], {}):
            bare = evolve(report, kernels=tuple(evolve(k, findings=()) for k in report.kernels))
            given = bare if blind else report
            return report, check_kernels(analyzer, path, text, given, runner, options, lambda kernel: True)
    finally:
        runner.close()
    raise AssertionError("nothing was analysed")


LANES = """__global__ void lanes(int* out) {
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = t;
    out[t] = s[(t & ~31) + (t + 1) % 32];
}
__global__ void both(int* out) {
    __shared__ int s[256];
    __shared__ int r[256];
    int t = threadIdx.x;
    s[t] = t;
    out[t] = s[(t + 1) % 256];
    __syncthreads();
    r[t] = t;
    out[t] += r[(t & ~31) + (t + 1) % 32];
}
__global__ void one_warp(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[31 - threadIdx.x];
}
void launch(int* out) {
    lanes<<<1, 256>>>(out);
    both<<<1, 256>>>(out);
    one_warp<<<1, 32>>>(out);
}
"""


def test_codes_of_races_that_only_a_run_saw_are_the_static_sides(tmp_path):
    source = tmp_path / "lanes.cu"
    source.write_text(LANES)
    static, dynamic = checked(source, blind=True)
    assert [(f.code, f.site.range) for f in static.findings] == [
        (f.code, f.site.range) for f in dynamic.findings
    ]
    assert all(f.missed for f in dynamic.findings)


def test_what_a_kernel_prints_is_shown(tmp_path):
    source = tmp_path / "hello.cu"
    source.write_text(
        "#include <cstdio>\n__global__ void hello(int n)"
        ' { if (threadIdx.x == n) printf("thread %u\\n", threadIdx.x); }\n'
        "void launch() { hello<<<1, 64>>>(5); }\n"
    )
    done = CliRunner().invoke(main, ["run", str(source), "--engine", "emulator"])
    assert done.stderr == "hello printed:\nthread 5\n"
