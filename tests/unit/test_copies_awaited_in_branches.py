"""Copies that are committed or awaited under conditions: where they are, and where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import RACES, KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

_HEAD = """#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
__global__ void k(const float* in, float* out, int tiles) {
  __shared__ float s[2][256];
  auto block = cg::this_thread_block();
  const float* p = in + blockIdx.x * tiles * 256;
  float a = 0;
"""
_TAIL = """
  out[blockIdx.x * 256 + threadIdx.x] = a;
}
void g(const float* in, float* out, int tiles) { k<<<20, 256>>>(in, out, tiles); }
"""
_BY_GROUP = """
  cg::memcpy_async(block, s[0], p, sizeof(float) * 256);
  for (int k = 0; k < tiles; ++k) {
    if (k + 1 < tiles) {
      cg::memcpy_async(block, s[(k + 1) & 1], p + (k + 1) * 256, sizeof(float) * 256);
      cg::wait_prior<1>(block);
    } else {
      cg::wait(block);
    }
    a += s[k & 1][255 - threadIdx.x];
    block.sync();
  }
"""
_BY_THREAD = """
  int t = threadIdx.x;
  __pipeline_memcpy_async(&s[0][t], p + t, 4);
  __pipeline_commit();
  for (int k = 0; k < tiles; ++k) {
    if (k + 1 < tiles) {
      __pipeline_memcpy_async(&s[(k + 1) & 1][t], p + (k + 1) * 256 + t, 4);
      __pipeline_commit();
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    a += s[k & 1][255 - t];
    __syncthreads();
  }
"""


def checked(body: str) -> KernelReport:
    report = check_text(Path("k.cu"), _HEAD + body + _TAIL)
    assert not report.errors
    (kernel,) = report.kernels
    return kernel


@pytest.mark.parametrize("body", [_BY_GROUP, _BY_THREAD], ids=["group", "thread"])
def test_each_branch_awaits_what_its_rounds_have_under_way(body: str) -> None:
    """A correct kernel was accused of copying twice at once."""
    kernel = checked(body)
    assert not [f for f in kernel.findings if f.code in RACES]
    assert kernel.verdict is Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("body", "right", "wrong"),
    [
        (_BY_GROUP, "wait_prior<1>", "wait_prior<2>"),
        (_BY_GROUP, "cg::wait(block);", ""),
        (_BY_GROUP, "block.sync();", ""),
        (_BY_GROUP, "s[(k + 1) & 1], p", "s[k & 1], p"),
        (_BY_THREAD, "wait_prior(1)", "wait_prior(2)"),
        (_BY_THREAD, "wait_prior(0)", "wait_prior(1)"),
        (_BY_THREAD, "    __syncthreads();\n  }", "  }"),
        (_BY_THREAD, "s[(k + 1) & 1][t]", "s[k & 1][t]"),
    ],
)
def test_what_a_branch_leaves_under_way_is_not_cleared(body: str, right: str, wrong: str) -> None:
    broken = body.replace(right, wrong)
    assert broken != body and checked(broken).verdict is not Verdict.RACE_FREE
