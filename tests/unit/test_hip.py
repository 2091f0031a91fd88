"""HIP's words mean CUDA's where CUDA's compiler reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import FileReport, Verdict
from cuda_lsp.static.analyze import check_text

TURN = """#include "hip/hip_runtime.h"
#ifdef __HIPCC__
#define BOTH __host__ __device__
#endif
BOTH inline int other(int i, int n) {{ return n - 1 - i; }}
template <class T, int N> __global__ void turn(const T* in, T* out, int n) {{
    HIP_DYNAMIC_SHARED(T, s)
    s[hipThreadIdx_x] = in[hipBlockIdx_x * N + threadIdx.x];
    {barrier}
    out[blockIdx.x * {row} + threadIdx.x] = s[other(threadIdx.x, N)];
}}
hipError_t go(const float* in, float* out, int n, hipStream_t stream) {{
    hipFuncAttributes attributes;
    hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&turn<float, 64>));
    hipLaunchKernelGGL({kernel}, dim3(n), dim3(64), 64 * sizeof(float), stream, in, out, n);
    return hipSuccess;
}}
"""
NAMED = ["HIP_KERNEL_NAME(turn<float, 64>)", "(turn<float, 64>)"]


def checked(text: str) -> FileReport:
    return check_text(Path("turn.cu"), text, Settings())


@pytest.mark.parametrize("kernel", NAMED)
@pytest.mark.parametrize(
    ("barrier", "row", "wanted"),
    [
        ("__syncthreads();", "N", Verdict.RACE_FREE),
        ("", "N", Verdict.RACY),
        ("__syncthreads();", "(N - 1)", Verdict.RACY),
    ],
)
def test_a_kernel_of_hip_is_read_and_launched_as_one_of_cuda(
    kernel: str, barrier: str, row: str, wanted: Verdict
) -> None:
    (told,) = checked(TURN.format(kernel=kernel, barrier=barrier, row=row)).kernels
    assert (told.name, told.verdict, told.launches[0].block) == ("turn<float, 64>", wanted, (64, 1, 1))
    assert not told.launches[0].assumed


def test_launches_that_the_platform_chooses_are_those_of_cuda() -> None:
    text = """#include <hip/hip_runtime.h>
    __global__ void copy(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x]; }
    void go(const int* in, int* out) {
    #if defined(__HIP_PLATFORM_NVIDIA__)
        hipLaunchKernelGGL(copy, dim3(2), dim3(32), 0, 0, in, out);
    #else
        hipLaunchKernelGGL(copy, dim3(1), dim3(64), 0, 0, in, out);
    #endif
    }
    """
    (told,) = checked(text).kernels
    assert (told.verdict, told.launches[0].block) == (Verdict.RACY, (32, 1, 1))


@pytest.mark.parametrize(
    ("sync", "wanted"),
    [("__syncthreads();", Verdict.RACE_FREE), ("", Verdict.UNDECIDED)],
    ids=["synced", "not"],
)
def test_collectives_of_hipcub_are_those_of_cub(sync: str, wanted: Verdict) -> None:
    text = """#include <hipcub/hipcub.hpp>
    __global__ void sums(const int* in, int* out) {
        typedef hipcub::BlockReduce<int, 128> Reduce;
        __shared__ typename Reduce::TempStorage storage;
        int a = Reduce(storage).Sum(in[threadIdx.x]);
        SYNC
        int b = Reduce(storage).Sum(in[threadIdx.x + 128]);
        if (threadIdx.x == 0) { out[0] = a; out[1] = b; }
    }
    void go(const int* in, int* out) { hipLaunchKernelGGL(sums, 1, 128, 0, 0, in, out); }
    """
    (told,) = checked(text.replace("SYNC", sync)).kernels
    assert told.verdict is wanted


def test_a_project_s_own_header_of_that_name_counts(tmp_path: Path) -> None:
    (tmp_path / "hip").mkdir()
    (tmp_path / "hip/hip_runtime.h").write_text("#define WIDTH 16\n")
    path = tmp_path / "k.cu"
    path.write_text(
        '#include "hip/hip_runtime.h"\n'
        "__global__ void k(int* p) { p[threadIdx.x % WIDTH] = threadIdx.x; }\n"
        "void go(int* p) { k<<<1, 32>>>(p); }\n"
    )
    (told,) = check_text(path, path.read_text(), Settings()).kernels
    assert told.verdict is Verdict.RACY
