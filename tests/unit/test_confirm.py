"""A kernel on its own under check: what both analyses say of it together."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import evolve
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.batch.analysis import analysed
from cuda_lsp.batch.asked import Asked
from cuda_lsp.cli import main
from cuda_lsp.confirm import CheckOptions, check_kernels, kernel_jobs
from cuda_lsp.dynamic.job import CheckJob, EngineKind
from cuda_lsp.dynamic.runner import Runner
from cuda_lsp.model import Code, FileReport, Status, Verdict
from cuda_lsp.readings import Reading
from cuda_lsp.static.analyze import Analyzer

pytestmark = [needs_nvcc, pytest.mark.usefixtures("own_cache")]


def checked(path: Path, *, blind: bool = False) -> tuple[FileReport, FileReport]:
    """The report before and after the check. ``blind``: as if the static analysis had found nothing."""
    runner = Runner()
    options = CheckOptions(EngineKind.EMULATOR, watch_all=True)

    def without_findings(report: FileReport) -> FileReport:
        return evolve(report, kernels=tuple(evolve(k, findings=()) for k in report.kernels))

    def plan(analyzer: Analyzer, text: str, report: FileReport) -> Sequence[CheckJob]:
        return kernel_jobs(options, (), analyzer, text, without_findings(report) if blind else report)

    found = analysed(Reading(path), Asked(plan=plan), lambda report: None)
    try:
        given = without_findings(found.report) if blind else found.report
        return found.report, check_kernels(given, found.planned, runner)
    finally:
        runner.close()


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
    alike = {Code.WARP_SYNCHRONOUS: Code.WARP_RACE}  # a run does not tell what code relies on
    assert [(alike.get(f.code, f.code), f.site.range) for f in static.findings] == [
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


CONDITIONS = """__global__ void fact(int* out, const int* x) {
    __shared__ int s[256];
    s[threadIdx.x] = threadIdx.x;
    if (x[5] != 1234567) __syncthreads();
    out[threadIdx.x] = s[255 - threadIdx.x];
}
__global__ void argument(int* out, int k) {
    __shared__ int s[512];
    s[threadIdx.x] = threadIdx.x;
    if (k == 77) out[threadIdx.x] = s[threadIdx.x + 1];
}
__global__ void histogram(int* out, const int* x) {
    __shared__ int h[16];
    if (threadIdx.x < 16) h[threadIdx.x] = 0;
    __syncthreads();
    h[x[threadIdx.x]] += 1;
    __syncthreads();
    if (threadIdx.x < 16) out[threadIdx.x] = h[threadIdx.x];
}
void launch(int* out, int* x, int k) {
    fact<<<1, 256>>>(out, x);
    argument<<<1, 256>>>(out, k);
    histogram<<<1, 256>>>(out, x);
}
"""


def test_a_conditional_race_is_tried_under_its_own_condition(tmp_path):
    source = tmp_path / "conditions.cu"
    source.write_text(CONDITIONS)
    static, dynamic = checked(source)
    before = {f.kernel: f.status for f in static.findings if f.kind}
    assert before["fact"] is before["argument"] is Status.CONDITIONAL
    after = {f.kernel: f.status for f in dynamic.findings if f.kind}
    assert after["fact"] is after["argument"] is after["histogram"] is Status.CONFIRMED
    assert not any(f.code is Code.SHARED_OUT_OF_BOUNDS for f in dynamic.findings)


OF_ANY_SIZE = """__global__ void halves(float* g) {
    extern __shared__ float s[];
    int t = threadIdx.x;
    s[t] = g[blockIdx.x * blockDim.x + t];
    __syncthreads();
    if (t < blockDim.x / 2) s[t] += s[t + blockDim.x / 2];
    if (t == 0) g[blockIdx.x * blockDim.x] = s[1];
}
"""


def test_dynamic_shared_memory_of_a_size_that_nothing_tells_is_large_enough(tmp_path):
    source = tmp_path / "k.cu"
    source.write_text(OF_ANY_SIZE)
    _, after = checked(source)
    (kernel,) = after.kernels
    assert {f.code for f in kernel.findings if f.status is Status.CONFIRMED} == {Code.WARP_SYNCHRONOUS}


NEEDS = """__global__ void late(int* p) {
    __shared__ int s[64];
    s[threadIdx.x] = p[blockIdx.x * 64 + threadIdx.x];
    if (blockIdx.x != 1777) __syncthreads();
    p[blockIdx.x * 64 + threadIdx.x] = s[(threadIdx.x + 1) % 64];
}
__global__ void three(int* p) {
    __shared__ int s[256];
    s[threadIdx.x] = p[threadIdx.x];
    if (blockDim.x < 100) __syncthreads();
    p[threadIdx.x] = s[(threadIdx.x + 1) % blockDim.x];
}
void run(int* p) {
    late<<<3000, 64>>>(p);
    three<<<1, 64>>>(p);
    three<<<1, 96>>>(p);
    three<<<1, 128>>>(p);
}
"""


def test_the_block_of_a_witness_and_each_launch_of_the_source_are_run(tmp_path):
    source = tmp_path / "k.cu"
    source.write_text(NEEDS)
    _, after = checked(source)
    races = {f.kernel: f for f in after.findings if f.kind}
    assert {name: f.status for name, f in races.items()} == dict.fromkeys(("late", "three"), Status.CONFIRMED)
    assert races["three"].observation is not None
    assert races["three"].observation.launch.block == (128, 1, 1)


LUCK = """__global__ void luck(int* p, const float* a) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (a[0] - a[1] > BOUND) { } else __syncthreads();
    p[threadIdx.x] = s[(threadIdx.x + 1) % 64];
}
void run(int* p, const float* a) { luck<<<1, 64>>>(p, a); }
"""


@pytest.mark.parametrize(("bound", "found"), [("0.2f", True), ("5.0f", False)])
def test_what_needs_luck_is_sought_and_the_report_says_how_hard(tmp_path, bound, found):
    source = tmp_path / "k.cu"
    source.write_text(LUCK.replace("BOUND", bound))
    before, after = checked(source)
    assert any(f.kind and f.status is not Status.PROVED for f in before.findings)
    (kernel,) = after.kernels
    statuses = {f.status for f in kernel.findings if f.kind}
    assert (Status.CONFIRMED in statuses) == found, kernel
    sought = [r for r in kernel.reasons if "suspected and not seen was sought in" in r]
    assert len(sought) == 1 and "further seed" in sought[0], kernel.reasons


LAST = """__device__ int done;
__global__ void last(int* part, int* out) {
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
        part[blockIdx.x] = blockIdx.x;
        is_last = atomicAdd(&done, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last) out[threadIdx.x] = part[threadIdx.x % gridDim.x];
}
void run(int* part, int* out) { last<<<48, 128>>>(part, out); }
"""


def test_a_race_that_no_block_of_the_sample_shows_is_sought_in_all_of_them(tmp_path):
    source = tmp_path / "k.cu"
    source.write_text(LAST)
    _, after = checked(source)
    (kernel,) = after.kernels
    seen = [f for f in kernel.findings if f.status is Status.CONFIRMED]
    assert [f.site.range.start.line for f in seen] == [9], kernel
    assert any("further run, 1 of them of all blocks" in r for r in kernel.reasons), kernel.reasons


def test_an_overload_is_not_taken_for_the_other(tmp_path: Path) -> None:
    path = tmp_path / "overloads.cu"
    path.write_text(
        "__global__ void k(int* out) { out[threadIdx.x] = 1; }\n"
        "__global__ void k(float* out) { out[0] = threadIdx.x; }\n"
        "void f(int* i, float* o) { k<<<1, 64>>>(i); k<<<1, 64>>>(o); }\n"
    )
    before, after = checked(path)
    assert [kernel.verdict for kernel in before.kernels] == [Verdict.RACE_FREE, Verdict.RACY]
    assert after.kernels == before.kernels
    assert [error.message for error in after.errors] == [
        "k was not run: 2 kernels of this file are called so; rename it to check it"
    ] * 2
