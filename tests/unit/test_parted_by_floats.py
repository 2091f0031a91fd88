"""Barriers that threads miss because of floats, draws and locks: a run on numbers shows it, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Code, FileReport, Finding, Status, Verdict
from cuda_lsp.static.analyze import check_text

HEAD = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ float block_sum(float v, float* part) {
  for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0;
  for (int w = 0; w < 4; ++w) sum += part[w];
  __syncthreads();
  return sum;
}
"""


def checked(body: str, grid: int = 4) -> FileReport:
    kernel = f"""{HEAD}__global__ void k(float* x, const float4* q, int* head, float eps, int n) {{
  __shared__ float s[128]; __shared__ int go;
  auto grid = cg::this_grid();
  int t = threadIdx.x, b = blockIdx.x, i = b * 128 + t;
  s[t] = 0;
  __syncthreads();
  {body}
}}
void f(float* x, float4* q, int* h, float e, int n) {{ k<<<{grid}, 128>>>(x, q, h, e, n); }}
"""
    report = check_text(Path("k.cu"), kernel, PATIENT)
    assert not report.errors
    return report


def missed(body: str, grid: int = 4) -> list[Finding]:
    (kernel,) = checked(body, grid).kernels
    return [f for f in kernel.findings if f.code is Code.BARRIER_DIVERGENCE]


PARTED = [
    # floats of each thread
    "float err = 1; while (err > 1e-3f) { err = fabsf(x[i] - s[t]); __syncthreads(); s[t] = x[i]; }",
    "for (int k = 0; k < 8; ++k) { if (x[k * 128 + t] < eps) break; __syncthreads(); }",
    "float m = 0; for (int k = 0; k < 8; ++k) { m = fmaxf(m, x[k + t]); __syncthreads(); if (m > 2) break; }",
    "if (q[i].z > 0) { s[t] = q[i].x; __syncthreads(); }",
    "float v = x[i]; if (isfinite(v)) { s[t] = v; __syncthreads(); }",
    "double d = x[i]; for (int k = 0; k < 4; ++k) { d *= 0.5; if (d < 0.1) continue; __syncthreads(); }",
    "int r = (int)floorf(x[i]); for (int k = 0; k < r; ++k) __syncthreads();",
    "float v = x[i] > 0 ? x[i] : -x[i]; if (sqrtf(v) > 1.5f) __syncthreads();",
    # of each warp
    "for (int k = 0; k < n; ++k) { if (!__any_sync(~0u, q[i].w > 0.01f)) break; __syncthreads(); }",
    "float v = x[i];for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o); if (v > 1) __syncthreads();",
    # draws and locks of each thread
    "while (atomicAdd(head, 1) < n) { __syncthreads(); }",
    "if (atomicCAS(&head[t & 7], 0, 1) == 0) { __syncthreads(); }",
    "if (atomicAdd(&x[t % 3], 1.f) > 2.f) { __syncthreads(); }",
]


@pytest.mark.parametrize("body", PARTED)
def test_numbers_of_each_thread_part_them(body: str) -> None:
    found = missed(body)
    assert found and {f.status for f in found} == {Status.CONDITIONAL}


UNPARTED = [
    # what all read from one place, or compute alike
    "for (int k = 0; k < 8; ++k) { if (x[k * 4 + b] < eps) break; __syncthreads(); }",
    "float err = 1; while (err > eps && n-- > 0) { err = block_sum(fabsf(x[i]), s); }",
    "float m = 0; for (int k = 0; k < 8; ++k) { m = fmaxf(m, x[k]); __syncthreads(); if (m > 2.f) break; }",
    "if (q[b].z > 0) { s[t] = q[i].x; __syncthreads(); }",
    "if (isfinite(x[b])) { s[t] = x[i]; __syncthreads(); }",
    "int r = (int)floorf(x[b]); for (int k = 0; k < r; ++k) __syncthreads();",
    "for (int k = 0; k < n; ++k) { if (!__syncthreads_or(q[i].w > 0.01f)) break; __syncthreads(); }",
    "float v = block_sum(x[i], s); if (v > 1.f) __syncthreads();",
    "if (t < 32 && __any_sync(~0u, x[i] > 1.f)) __syncwarp();",
    # the block's own draw, and its lock
    "for (;;) { if (t == 0) go = atomicAdd(head, 1); __syncthreads(); if (go >= n) break; __syncthreads(); }",
    "if (t == 0) go = atomicCAS(head, 0, 1); __syncthreads(); if (go == 0) { __syncthreads(); }",
    # what a thread does between barriers
    "for (int k = 0; k < 8; ++k) { if (x[k * 128 + t] < eps) s[t] += 1; __syncthreads(); }",
    "float err = 1; for (int k = 0; k < 9; ++k) { if (err > eps) err *= x[i]; __syncthreads(); }",
    "while (atomicAdd(head, 1) < n) { s[t] += 1; } __syncthreads();",
]


@pytest.mark.parametrize("body", UNPARTED)
def test_numbers_that_a_block_shares_part_nobody(body: str) -> None:
    assert not [f for f in missed(body) if f.status is not Status.POSSIBLE]


@pytest.mark.parametrize(
    ("body", "parted"),
    [
        ("for (int r = 0; r < n; ++r) { if (x[b] < 1e-3f) break; grid.sync(); }", True),
        ("if (head[b]) return; grid.sync();", True),
        ("if (head[b / 128]) return; grid.sync();", False),
        ("for (int r = 0; r < n; ++r) { if (x[0] < 1e-3f) break; grid.sync(); }", False),
        ("if (head[b]) s[t] = 1; grid.sync();", False),
    ],
)
def test_blocks_part_by_numbers_of_theirs(body: str, parted: bool) -> None:
    statuses = {f.status for f in missed(body)} - {Status.POSSIBLE}
    assert statuses == ({Status.CONDITIONAL} if parted else set())


def test_differences_that_roundings_make_decide_nothing() -> None:
    """A third, three times, is one or nearly so: whoever takes it for less in some threads is wrong."""
    body = "float v = (x[t] / 3.f) * 3.f - x[t]; if (v < 0 || v > 0) __syncthreads();"
    assert not [f for f in missed(body) if f.status is not Status.POSSIBLE]


def test_the_condition_names_numbers_that_part_threads() -> None:
    (found,) = missed("if (x[i] > 2.5f) __syncthreads();")
    assert found.condition is not None and "`x[" in found.condition


NARROW = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void k(const TYPE* mask, float* out) {
    __shared__ float s[64];
    int t = threadIdx.x;
    for (int i = 0; i < 9; i++) {
        if (TEST) break;
        s[t] = i;
        __syncthreads();
        out[blockIdx.x * 64 + t] = s[t ^ 1];
        __syncthreads();
    }
}
void run(const TYPE* m, float* o) { k<<<4, 64>>>(m, o); }
"""


@pytest.mark.parametrize("type", ["__half"])
@pytest.mark.parametrize(
    ("test", "alike"),
    [
        ("mask[i] == TYPE(1.0f)", True),
        ("__hlt(mask[i + blockIdx.x], mask[0])", True),
        ("mask[i + t] == TYPE(1.0f)", False),
        ("mask[i] >= TYPE((float)t)", False),
        ("__hgt(mask[t], mask[0])", False),
    ],
)
def test_comparisons_of_narrow_floats_are_alike_where_both_sides_are(
    test: str, alike: bool, type: str
) -> None:
    text = NARROW.replace("TEST", test).replace("TYPE", type)
    (kernel,) = check_text(Path("k.cu"), text).kernels
    assert (kernel.verdict is Verdict.RACE_FREE) is alike
    assert any(f.code is Code.BARRIER_DIVERGENCE for f in kernel.findings) is not alike
