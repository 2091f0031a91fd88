"""Programs whose device code is linked from several sources, and kernels that launch kernels."""

from __future__ import annotations

import ctypes
import io
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from emulated_card import EmulatedCard, emulated_engine
from toolkit import needs_nvcc

from cuda_lsp.cli import main
from cuda_lsp.dynamic.compilation.compile import CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.linking import link_modules
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.gpu.launch import Launch
from cuda_lsp.dynamic.gpu.memory import HostMemory
from cuda_lsp.dynamic.gpu.plan import Plan
from cuda_lsp.dynamic.instrumentation.detector import assembled
from cuda_lsp.dynamic.programs.gpu_process import Hosted
from cuda_lsp.dynamic.programs.job import ProgramJob
from cuda_lsp.dynamic.programs.on_gpu import Task
from cuda_lsp.dynamic.ptx.linking import LinkError, linked, undefined
from cuda_lsp.dynamic.ptx.reader import read_module
from cuda_lsp.dynamic.ptx.writer import write_module
from cuda_lsp.dynamic.runs import Argument, EngineUnavailable, KernelRun, Level
from cuda_lsp.model import LaunchConfig

pytestmark = [needs_nvcc, pytest.mark.usefixtures("own_cache")]

HEADER = """
extern __device__ int far(int), turned(int);
extern __device__ int table[4], hits;
extern __constant__ int factors[4];
template <class T> __device__ T twice(T x) { return x + x; }
void other(int*);
"""
MAIN = """
#include <cstdio>
#include "far.h"
static __device__ int helper(int x) { return x + 1; }
__global__ void first(int* p) {
    p[threadIdx.x] = far(helper(threadIdx.x)) + twice(table[0]) + factors[1] + turned(threadIdx.x);
    if (threadIdx.x == 0) printf("main has %d\\n", ++hits);
}
int main() {
    int *p, host[64], given[4] = {5, 6, 7, 8};
    cudaMalloc(&p, sizeof host);
    cudaMemcpyToSymbol(factors, given, sizeof given);
    first<<<1, 64>>>(p);
    other(p);
    cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost);
    printf("%d %d, %s\\n", host[0], host[1], cudaGetErrorString(cudaGetLastError()));
}
"""
FAR = """
#include <cstdio>
#include "far.h"
__device__ int table[4] = {10, 20, 30, 40}, hits;
__constant__ int factors[4];
static __device__ int helper(int x) { return x + 2; }
__device__ int far(int x) { return helper(x) * 100; }
__device__ int turned(int x) {
    __shared__ int s[64];
    s[x] = x;
    BARRIER
    return s[63 - x];
}
__global__ void second(int* p) {
    p[threadIdx.x] += twice(far(3));
    if (threadIdx.x == 1) printf("far has %d\\n", table[2] + hits);
}
void other(int* p) { second<<<1, 64>>>(p); }
"""
NESTED = """
#include <cstdio>
__global__ void turn(int* p, char again, int add) {
    __shared__ int s[32];
    s[threadIdx.x] = p[blockIdx.x * 32 + threadIdx.x] + add;
    BARRIER
    p[blockIdx.x * 32 + threadIdx.x] = s[31 - threadIdx.x];
    if (again && threadIdx.x == 0 && blockIdx.x == 0) turn<<<1, 32>>>(p, 0, 1000);
}
__global__ void parent(int* p) {
    p[threadIdx.x + blockIdx.x * 64] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        cudaStream_t stream;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        turn<<<2, 32, 0, stream>>>(p + blockIdx.x * 64, blockIdx.x == 1, 100);
        cudaStreamDestroy(stream);
        if (cudaGetLastError() != cudaSuccess) printf("not launched\\n");
    }
}
int main() {
    int *p, host[128];
    cudaMalloc(&p, sizeof host);
    parent<<<2, 64>>>(p);
    cudaError_t error = cudaDeviceSynchronize();
    cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost);
    printf("%d %d %d, %s\\n", host[0], host[32], host[64], cudaGetErrorString(error));
}
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for name, text in (("far.h", HEADER), ("main.cu", MAIN), ("far.cu", FAR), ("nested.cu", NESTED)):
        (tmp_path / name).write_text(text)
    return tmp_path


def run(source: Path, barrier: str, *options: str) -> Result:
    given = ["run", str(source), "--engine", "emulator", "-D", f"BARRIER={barrier}", *options]
    return CliRunner().invoke(main, given)


@pytest.mark.parametrize(("barrier", "racy"), [("__syncthreads();", False), ("", True)])
def test_device_code_of_several_sources_is_linked_and_checked(
    sources: Path, barrier: str, racy: bool
) -> None:
    """The race is in one source, in a function that a kernel of the other calls."""
    options = ("--program", "--with", str(sources / "far.cu"), "--link", "-rdc=true")
    done = run(sources / "main.cu", barrier, *options)
    assert done.stderr.splitlines()[:3] == ["main has 1", "far has 31", "1389 1488, no error"]
    assert ("far.cu:12" in done.stdout) == racy
    assert ("[confirmed]" in done.stdout) == racy


@pytest.mark.parametrize(("barrier", "racy"), [("__syncthreads();", False), ("", True)])
def test_kernels_that_kernels_launch_run_and_are_checked(sources: Path, barrier: str, racy: bool) -> None:
    done = run(sources / "nested.cu", barrier, "--program", "--link", "-rdc=true")
    assert done.stderr.splitlines()[0] == "131 163 1100, no error"
    assert "4 launches on CPU emulator" in done.stderr
    assert "turn was launched 3 times by the program" in done.stdout
    assert ("in launches 1, 2 and 3 of the program" in done.stdout or "[confirmed]" in done.stdout) == racy


def test_a_kernel_on_its_own_says_what_it_would_have_launched(sources: Path) -> None:
    done = run(sources / "nested.cu", "__syncthreads();", "--kernel", "parent")
    assert "what it launches was not run (turn)" in done.stdout


def test_a_kernel_on_its_own_says_what_stands_elsewhere(sources: Path) -> None:
    done = run(sources / "main.cu", "")
    assert "call of far, which stands in another source" in done.stdout


def test_places_of_linked_code_are_those_of_its_sources(sources: Path) -> None:
    options = CompileOptions(extra=("-rdc=true",), defines=("BARRIER=",))
    parts = [
        compile_module(
            sources / name, (sources / name).read_text(), options, Level.O3, find_toolkit(), sources / "cache"
        )
        for name in ("main.cu", "far.cu")
    ]
    whole = link_modules(parts)
    assert undefined(whole.module) == {"vprintf"}
    for entry, name in (("_Z5firstPi", "main.cu"), ("_Z6secondPi", "far.cu")):
        extent = whole.extent_of(entry)
        assert extent is not None
        assert extent.path.name == name


PART = """.version 9.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) far (.param .b32 x);
.global .align 1 .b8 $str[2] = {65, 0};
.extern .global .align 4 .b8 table[16];
.func (.param .b32 r) near (.param .b32 x) { ret; }
.weak .func (.param .b32 r) both (.param .b32 x) { ret; }
.visible .entry one (.param .u64 p) {
    .loc 1 7 1
    call.uni (r), near, (x);
    mov.u64 %rd1, $str;
    ret;
}
.file 1 "one.cu"
"""
OTHER = """.version 9.0
.target sm_90
.address_size 64
.visible .global .align 8 .u64 first = table;
.visible .global .align 4 .b8 table[16];
.global .align 1 .b8 $str[2] = {66, 0};
.func (.param .b32 r) near (.param .b32 x) { trap; }
.weak .func (.param .b32 r) both (.param .b32 x) { ret; }
.visible .func (.param .b32 r) far (.param .b32 x) {
    .loc 1 3 1
    call.uni (r), near, (x);
    ret;
}
.file 1 "other.cu"
"""


def test_what_modules_keep_to_themselves_stays_apart_and_what_they_share_is_one() -> None:
    whole = read_module(write_module(linked([read_module(PART), read_module(OTHER)], [10, 10])))
    assert set(whole.entries) == {"one"}
    assert set(whole.functions) == {"one", "near$unit0", "near$unit1", "both", "far"}
    assert set(whole.variables) == {"table", "first", "$str$unit0", "$str$unit1"}
    names = list(whole.variables)
    assert names.index("table") < names.index("first")
    (call,) = (i for i in whole.functions["far"].instructions() if i.base == "call")
    assert call.arguments[1] == "near$unit1"
    assert call.location is not None
    assert (whole.files[call.location.file], call.location.line) == ("other.cu", 13)
    assert undefined(whole) == frozenset()


def test_two_definitions_of_one_name_do_not_link() -> None:
    with pytest.raises(LinkError, match="first is defined in several sources"):
        linked([read_module(OTHER), read_module(OTHER)], [1, 1])


def test_a_kernel_that_lacks_code_is_refused_on_a_gpu() -> None:
    text = PART.replace("far", "_Z3fari").replace("call.uni (r), near, (x);", "call.uni (r), _Z3fari, (x);")
    request = KernelRun(text, "one", LaunchConfig((32, 1, 1), (1, 1, 1), 0), (), ())
    with pytest.raises(EngineUnavailable, match="it calls far, which stands in another"):
        Plan(EmulatedCard(), request, read_module(text))


def test_the_code_of_kernels_that_launch_kernels_is_linked_with_what_does_so(sources: Path) -> None:
    """Its own accesses are watched, what it launches is not, and that is said."""
    options, toolkit = CompileOptions(extra=("-rdc=true",), defines=("BARRIER=",)), find_toolkit()
    path = sources / "nested.cu"
    plain = compile_module(path, path.read_text(), options, Level.O0, toolkit, sources / "cache")
    entry = next(name for name in plain.module.entries if "parent" in name)
    sites = sites_of(plain, entry)
    request = KernelRun(plain.ptx, entry, LaunchConfig((64, 1, 1)), (Argument("p", bytes(8)),), sites)
    launch = Launch(EmulatedCard(), toolkit, request, plain.module, host=HostMemory())
    launch.assemble()
    assert launch.not_covered == ["what the kernels do that it launches: they run unwatched"]
    assert launch.made is not None
    cubin = assembled(launch.made.text, toolkit, "sm_90")
    assert entry.encode() in cubin and b"cudaCDP" in cubin


def test_kernels_that_launch_others_alone_or_themselves_are_not_checked_on_a_gpu(sources: Path) -> None:
    """It is said; the program goes on, the launch is its own."""
    options, toolkit = CompileOptions(extra=("-rdc=true",), defines=("BARRIER=",)), find_toolkit()
    path = sources / "nested.cu"
    plain, optimised = (
        compile_module(path, path.read_text(), options, level, toolkit, sources / "cache")
        for level in (Level.O0, Level.O3)
    )
    entry = next(name for name in plain.module.entries if "turn" in name)
    words = "not checked on the GPU: it launches {} from the device"
    request = KernelRun(plain.ptx, entry, LaunchConfig((64, 1, 1)), (Argument("p", bytes(8)),), ())
    with pytest.raises(EngineUnavailable) as refused:
        emulated_engine(toolkit).run(request, lambda stage: None)
    assert str(refused.value) == words.format("kernels")
    job = ProgramJob(path, path.read_text(), (), options, sources / "cache", sources)
    task = Task(job, path, ((plain, optimised),), toolkit)
    host = Hosted(task, EmulatedCard(), NoProgram(), io.BytesIO(), lambda number: None)  # type: ignore[arg-type]
    shape = (ctypes.c_uint * 13)(1, 1, 1, 64, 1, 1, 0, 0, 1, 1, 1, 0, 0)
    value = ctypes.c_ulonglong()
    given = (ctypes.c_void_p * 3)(*3 * [ctypes.addressof(value)])
    assert host.launch(entry.encode(), shape, given) == 0
    assert host.tally.counts[entry].reasons == {words.format("itself"): 1}


class NoProgram:
    """Without memory of its own."""

    def clsp_allocation(self, *unused: object) -> int:
        return 0

    def clsp_variable(self, *unused: object) -> int:
        return 0
