"""Whole programs on the GPU: their own inputs, their own results, and what their kernels did meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pointer_programs import POINTERS, total
from programs import CLUSTERS, COOPERATIVE, DEVICES, GRAPH, HISTOGRAM, MANAGED
from shared_libraries import written

from cuda_lsp.dynamic.compilation.compile import CompileOptions
from cuda_lsp.dynamic.gpu.engine import device_architecture
from cuda_lsp.dynamic.job import EngineKind, Parameter, Piece
from cuda_lsp.dynamic.programs.build_command import BuildJob
from cuda_lsp.dynamic.programs.job import ProgramJob, ProgramKernel, ProgramResult
from cuda_lsp.dynamic.runner import Runner
from cuda_lsp.dynamic.runs import EngineUnavailable
from cuda_lsp.model import Position, SourceRange


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    try:
        device_architecture()
    except EngineUnavailable as reason:
        pytest.skip(str(reason))
    made = Runner()
    yield made
    made.close()


def run(runner: Runner, folder: Path, text: str, *arguments: str) -> ProgramResult:
    """Run ``text``, whose kernel begins with ``__global__`` and ends before ``int main``."""
    path = folder / "program.cu"
    path.write_text(text)
    lines = text.splitlines()
    first = next(n for n, line in enumerate(lines, 1) if "__global__" in line)
    last = next(n for n, line in enumerate(lines, 1) if "int main" in line) - 1
    pointers = tuple(Parameter(name, (Piece(name, 0, 8, pointer=True),), 8) for name in ("bins", "data"))
    name = lines[first - 1].partition("(")[0].split()[-1]
    extent = SourceRange(path, Position(first, 1), Position(last, 2))
    kernel = ProgramKernel(name, name, "", extent, pointers)
    options = CompileOptions(arch="sm_75")
    job = ProgramJob(path, text, (kernel,), options, folder / "cache", folder, arguments)
    return runner.run_program(evolve(job, engine=EngineKind.GPU, deadline=60.0))


def test_a_correct_program_gives_its_results_and_no_race(runner: Runner, tmp_path: Path) -> None:
    result = run(runner, tmp_path, HISTOGRAM.replace("BARRIER", "__syncthreads();"), "64000")
    assert result.problem is None, (result, result.output)
    assert "total 1056000, launches 6, no error" in result.output
    assert result.output.count("first of 1000 blocks") == 3
    assert result.status == 0
    assert result.launches == 3
    check = result.checks["count"]
    assert [len(trial.races.races) for trial in check.results] == [0, 0]
    banks = check.results[0].banks
    assert banks is not None
    assert banks.banks


def test_a_missing_barrier_is_seen_in_the_program(runner: Runner, tmp_path: Path) -> None:
    result = run(runner, tmp_path, HISTOGRAM.replace("BARRIER", ""), "64000")
    check = result.checks["count"]
    races = check.results[0].races.races
    assert races
    places = {check.sites[k].site for race in races for k in race.sites}
    assert {place.range.start.line for place in places if place is not None} == {9, 12}


def test_a_kernel_that_hangs_or_faults_is_told(runner: Runner, tmp_path: Path) -> None:
    text = """__global__ void wait(volatile int* p, int*) { while (*p == 0) {} }
int main() { int* p; cudaMalloc(&p, 4); cudaMemset(p, 0, 4); wait<<<1, 32>>>(p, p);
  return cudaDeviceSynchronize(); }
"""
    path = run_with_deadline(runner, tmp_path, text, 3.0)
    assert path.problem is not None
    assert any("did not end" in note for note in path.notes) or "deadline" in path.problem
    faulty = """__global__ void crash(int* p, int*) { p[1ll << 40] = 1; }
int main() { int* p; cudaMalloc(&p, 4); crash<<<1, 32>>>(p, p); return cudaDeviceSynchronize() ? 5 : 0; }
"""
    result = run(runner, tmp_path, faulty)
    assert result.problem is not None or result.status == 5


def run_with_deadline(runner: Runner, folder: Path, text: str, seconds: float) -> ProgramResult:
    path = folder / "program.cu"
    path.write_text(text)
    extent = SourceRange(path, Position(1, 1), Position(1, 80))
    kernel = ProgramKernel("wait", "wait", "", extent, ())
    options = CompileOptions(arch="sm_75")
    job = ProgramJob(path, text, (kernel,), options, folder / "cache", folder)
    return runner.run_program(evolve(job, engine=EngineKind.GPU, deadline=seconds))


def test_a_kernel_that_faults_is_run_unwatched_in_a_new_process_and_those_before_stay_checked(
    runner: Runner, tmp_path: Path
) -> None:
    text = """__global__ void shift(int* bins, const int* data) {
    __shared__ int s[65];
    s[threadIdx.x] = data[threadIdx.x];
    bins[threadIdx.x] = s[threadIdx.x + 1];
}
__global__ void crash(int* p) { p[1ll << 40] = 1; }
int main() {
    int* p;
    cudaMalloc(&p, 4096);
    shift<<<1, 64>>>(p, p + 512);
    crash<<<1, 32>>>(p);
    return cudaDeviceSynchronize() != cudaSuccess ? 5 : 0;
}
"""
    path = tmp_path / "program.cu"
    path.write_text(text)
    job = ProgramJob(path, text, (), CompileOptions(arch="sm_75"), tmp_path / "cache", tmp_path)
    result = runner.run_program(evolve(job, engine=EngineKind.GPU, deadline=120.0))
    told = {run.name: run for run in result.runs}
    assert any(note.startswith("crash: ") for note in result.notes), result
    assert told["shift"].checks[0].results[0].races.races
    assert result.status == 5  # the program's own word for it, in the second run


def test_instances_that_nobody_analysed_are_checked_and_counted(runner: Runner, tmp_path: Path) -> None:
    text = """namespace { template <int N> __global__ void shift(int* p) {
    __shared__ int s[N + 1];
    s[threadIdx.x] = p[threadIdx.x];
    p[threadIdx.x] = s[threadIdx.x + 1];
} }
template <int N> void each(int* p) {
    for (int k = 0; k < 40; ++k) shift<N><<<1, N>>>(p);
    if constexpr (N < 256) each<2 * N>(p);
}
int main() { int* p; cudaMalloc(&p, 4096); each<64>(p); return cudaDeviceSynchronize(); }
"""
    path = tmp_path / "program.cu"
    path.write_text(text)
    job = ProgramJob(path, text, (), CompileOptions(arch="sm_75"), tmp_path / "cache", tmp_path)
    result = runner.run_program(evolve(job, engine=EngineKind.GPU, deadline=120.0))
    assert result.status == 0, result
    told = {run.name: run for run in result.runs}
    assert set(told) == {"shift<64>", "shift<128>", "shift<256>"}
    for run in told.values():
        assert (run.counts.launches, run.counts.checked) == (40, 5)
        assert run.counts.reasons == {"only launches 1, 2, 3, 8 and 32 of each kernel are": 35}
        assert run.checks[0].results[0].races.races


@pytest.mark.parametrize(("barrier", "racy"), [("__syncthreads();", False), ("", True)])
def test_kernels_in_graphs_are_checked(runner: Runner, tmp_path: Path, barrier: str, racy: bool) -> None:
    text, path = GRAPH.replace("BARRIER", barrier), tmp_path / "program.cu"
    path.write_text(text)
    job = ProgramJob(path, text, (), CompileOptions(arch="sm_75"), tmp_path / "cache", tmp_path)
    result = runner.run_program(evolve(job, engine=EngineKind.GPU, deadline=120.0))
    assert result.status == 0, result
    assert racy or "as it should be, no error" in result.output
    assert result.output.count("host: captured") == 3
    told = {run.name: run for run in result.runs}
    assert (told["shift"].counts.launches, told["shift"].counts.checked) == (3, 3)
    assert (told["add"].counts.launches, told["add"].counts.checked) == (7, 3)
    assert bool(told["shift"].checks[0].results[0].races.races) == racy


@pytest.mark.parametrize(("barrier", "racy"), [("cluster.sync();", False), ("", True)])
def test_a_launch_as_clusters_is_checked(runner: Runner, tmp_path: Path, barrier: str, racy: bool) -> None:
    text, path = CLUSTERS.replace("BARRIER", barrier), tmp_path / "program.cu"
    path.write_text(text)
    job = ProgramJob(path, text, (), CompileOptions(arch="sm_90"), tmp_path / "cache", tmp_path)
    result = runner.run_program(evolve(job, engine=EngineKind.GPU, deadline=120.0))
    assert result.status == 0, result
    assert racy or "as it should be, no error" in result.output
    (run,) = result.runs
    assert (run.counts.launches, run.counts.checked) == (1, 1)
    outcome = run.checks[0].results[0].races
    assert bool(outcome.races) == racy
    assert not outcome.faults


def whole(
    runner: Runner, folder: Path, text: str, *extra: str, all_blocks: bool = False, link: tuple[str, ...] = ()
) -> ProgramResult:
    """A program of which nothing is known beforehand. ``extra``: options of its compiler."""
    path = folder / "program.cu"
    path.write_text(text)
    options = CompileOptions(arch="sm_75", extra=extra)
    job = ProgramJob(path, text, (), options, folder / "cache", folder)
    job = evolve(job, engine=EngineKind.GPU, deadline=120.0, all_blocks=all_blocks, link=link)
    result = runner.run_program(job)
    assert result.status == 0, result
    return result


IMAGES = """
#include <cstdio>
__global__ void mirror(float* out, cudaTextureObject_t t, cudaSurfaceObject_t u) {
    __shared__ float s[64];
    s[threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.5f, blockIdx.x + 0.5f);
    BARRIER
    out[64 * blockIdx.x + threadIdx.x] = s[63 - threadIdx.x];
    surf2Dwrite<float>(1, u, 4 * threadIdx.x, blockIdx.x);
}
int main() {
    static float data[4][64];
    for (int k = 0; k < 256; ++k) data[k / 64][k % 64] = k;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array, other;
    cudaMallocArray(&array, &format, 64, 4);
    cudaMallocArray(&other, &format, 64, 4, cudaArraySurfaceLoadStore);
    cudaMemcpy2DToArray(array, 0, 0, data, 256, 256, 4, cudaMemcpyHostToDevice);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc how = {};
    cudaTextureObject_t texture;
    cudaCreateTextureObject(&texture, &resource, &how, nullptr);
    resource.res.array.array = other;
    cudaSurfaceObject_t surface;
    cudaCreateSurfaceObject(&surface, &resource);
    float* out;
    cudaMallocManaged(&out, sizeof data);
    mirror<<<4, 64>>>(out, texture, surface);
    printf("%s, %g %g\\n", cudaGetErrorString(cudaDeviceSynchronize()), out[0], out[255]);
    cudaMemcpy2DFromArray(data, 256, other, 0, 0, 256, 4, cudaMemcpyDeviceToHost);
    printf("%g\\n", data[3][63]);
}
"""


@pytest.mark.parametrize(("barrier", "racy"), [("__syncthreads();", False), ("", True)])
def test_kernels_with_images_are_checked(runner: Runner, tmp_path: Path, barrier: str, racy: bool) -> None:
    result = whole(runner, tmp_path, IMAGES.replace("BARRIER", barrier))
    (run,) = result.runs
    assert (run.counts.launches, run.counts.checked) == (1, 1), run
    assert bool(run.checks[0].results[0].races.races) == racy
    assert racy or "no error, 63 192" in result.output
    assert result.output.rstrip().endswith("1")


def test_managed_variables_are_the_programs_own(runner: Runner, tmp_path: Path) -> None:
    result = whole(runner, tmp_path, MANAGED)
    assert "total 20, last 6, no error" in result.output
    (run,) = result.runs
    assert (run.counts.launches, run.counts.checked) == (5, 3)


@pytest.mark.parametrize(("barrier", "racy"), [("__syncthreads();", False), ("", True)])
def test_launches_on_a_second_gpu_are_checked_there(
    runner: Runner, tmp_path: Path, barrier: str, racy: bool
) -> None:
    result = whole(runner, tmp_path, DEVICES.replace("BARRIER", barrier))
    if "only 1 device" in result.output:
        pytest.skip("one GPU")
    assert "2 and 4 of 6, device 1, memory of 1, invalid device ordinal" in result.output
    assert racy or "as it should be" in result.output
    (run,) = result.runs
    assert (run.counts.launches, run.counts.checked) == (6, 3)
    assert bool(run.checks[0].results[0].races.races) == racy


def test_a_default_stream_for_each_thread_hides_no_launch(runner: Runner, tmp_path: Path) -> None:
    result = whole(runner, tmp_path, GRAPH.replace("BARRIER", ""), "--default-stream=per-thread")
    told = {run.name: run for run in result.runs}
    assert (told["shift"].counts.launches, told["shift"].counts.checked) == (3, 3)
    assert (told["add"].counts.launches, told["add"].counts.checked) == (7, 3)
    assert told["shift"].checks[0].results[0].races.races


@pytest.mark.parametrize(("barrier", "racy"), [("grid.sync();", False), ("", True)])
def test_cooperative_grids_as_large_as_the_gpu_holds_are_checked(
    runner: Runner, tmp_path: Path, barrier: str, racy: bool
) -> None:
    """Blocks that fill a multiprocessor's threads, or its shared memory, or both.

    With their probes they still find a place at once.
    """
    result = whole(runner, tmp_path, COOPERATIVE.replace("BARRIER", barrier), all_blocks=True)
    assert racy or result.output.count("as it should be, no error") == 4, result.output
    told = {run.name: run for run in result.runs}
    for name in ("many<64>", "many<1024>", "large", "wide"):
        counts = told[name].counts
        assert counts.checked == 1, (told[name].told, result.notes)
        seen = told[name].checks[0].results[0].races
        assert bool(seen.races) == racy, (name, seen.not_covered)
    assert told["sized"].counts.checked == 1, (told["sized"].told, result.notes)
    assert not told["sized"].checks[0].results[0].races.races


NESTED = """
#include <cuda_runtime.h>
#include <cstdio>
__global__ void child(int* p, int add) { p[threadIdx.x] += add; }
__global__ void parent(int* p) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    BARRIER
    p[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) child<<<1, 64>>>(p + blockIdx.x * 64, 1000);
}
int main() {
    int *p, host[256];
    cudaMalloc(&p, sizeof host);
    parent<<<4, 64>>>(p);
    cudaError_t error = cudaDeviceSynchronize();
    cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost);
    bool same = true;
    for (int i = 0; i < 256; ++i) same = same && host[i] == 1063 - i % 64;
    printf("%s, %s\\n", same ? "as it should be" : "wrong", cudaGetErrorString(error));
}
"""


@pytest.mark.parametrize(("barrier", "racy"), [("__syncthreads();", False), ("", True)])
def test_kernels_that_launch_kernels_are_checked_as_far_as_they_go_themselves(
    runner: Runner, tmp_path: Path, barrier: str, racy: bool
) -> None:
    result = whole(runner, tmp_path, NESTED.replace("BARRIER", barrier), all_blocks=True, link=("-rdc=true",))
    assert racy or "as it should be, no error" in result.output, (result.output, result.notes)
    told = {run.name: run for run in result.runs}
    assert told["parent"].counts.checked == 1, (told["parent"].told, result.notes)
    seen = told["parent"].checks[0].results[0].races
    assert bool(seen.races) == racy
    assert not seen.faults
    assert "what the kernels do that it launches: they run unwatched" in seen.not_covered


@pytest.mark.parametrize(("barrier", "racy"), [("__syncthreads();", False), ("", True)])
@pytest.mark.parametrize(
    ("target", "words"), [("./linked", ()), ("./opened", ("./libfirst.so", "libsecond.so"))]
)
def test_kernels_of_libraries_that_the_build_makes_are_checked(
    runner: Runner, tmp_path: Path, target: str, words: tuple[str, ...], barrier: str, racy: bool
) -> None:
    """Linked with the program or opened by it, one with linked device code, each with a kernel of its own."""
    written(tmp_path, barrier)
    cache = tmp_path / "cache"
    built = runner.run_build(BuildJob(tmp_path / "first.cu", tmp_path, "make", target, cache))
    assert built.problem is None
    of, path = built.made_of, built.made_of.units[0].path
    job = ProgramJob(
        path, path.read_text(), (), CompileOptions(arch="sm_75"), cache, tmp_path, words, called=target,
        built=of.units, link=of.link, libraries=of.libraries, needs=of.needs, engine=EngineKind.GPU,
    )  # fmt: skip
    result = runner.run_program(job)
    assert result.status == 0, (result, result.output)
    if not racy:
        said = "libfirst.so: 164, libsecond.so: 264, no error" if words else "linked 164 264, no error"
        assert said in result.output
    assert len(result.runs) == 2
    for run in result.runs:
        assert (run.counts.launches, run.counts.checked) == (1, 1), run.told
        assert bool(run.checks[0].results[0].races.races) == racy
    places = {run.kernel.range.path.name for run in result.runs if run.kernel is not None}
    assert places == {"first.cu", "second.cu"}


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize(("barrier", "racy"), [("__syncthreads();", False), ("", True)])
def test_calls_through_pointers_that_lie_in_memory_are_followed(
    runner: Runner, tmp_path: Path, linked: bool, barrier: str, racy: bool
) -> None:
    """From the host, from other kernels, checked or not, and of objects; the program goes on as it would."""
    text, path = POINTERS.replace("BARRIER", barrier).replace("ROUNDS", "6"), tmp_path / "program.cu"
    path.write_text(text)
    job = ProgramJob(
        path, text, (), CompileOptions(arch="sm_75"), tmp_path / "cache", tmp_path, engine=EngineKind.GPU,
        all_blocks=True, link=("-rdc=true",) if linked else (), deadline=120.0,
    )  # fmt: skip
    result = runner.run_program(job)
    assert result.status == 0, (result, result.output)
    assert racy or f"total {total(6)}, no error" in result.output, result.output
    told = {run.name: run for run in result.runs}
    for name in ("given", "stores", "stored", "table", "makes", "uses"):
        assert (told[name].counts.launches, told[name].counts.checked) == (6, 3), told[name].told
        seen = [trial.races for trial in told[name].checks[0].results]
        assert not any(races.failure or races.faults for races in seen), seen
        calls = name in ("given", "stored", "table", "uses")
        assert any(races.races for races in seen) == (racy and calls), name
