"""Variable templates in memory: each instance is an array of its own, whoever names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

DECLARED = """template <class T> __constant__ T weights[8];
template <class T> __device__ T sums[64];
template <class T> __device__ T at(int i) { return sums<T>[i]; }
template <class T> __global__ void k(const T* in) {
  int t = threadIdx.x;
  %s
}
void go(float* in) { k<float><<<1, 64>>>(in); }
"""


@pytest.mark.parametrize(
    ("statements", "verdict"),
    [
        ("sums<T>[t] = in[t] * weights<T>[t % 8];", Verdict.RACE_FREE),
        ("sums<T>[t / 2] = in[t];", Verdict.RACY),
        ("sums<T>[t] = in[t]; sums<T>[t] += at<T>(63 - t);", Verdict.RACY),
        ("sums<T>[t] = in[t]; __syncthreads(); T x = at<T>(63 - t); __syncthreads(); sums<T>[t] = x;",
         Verdict.RACE_FREE),
        ("sums<T>[t] = in[t]; sums<int>[t] = sums<int>[t] + 1;", Verdict.RACE_FREE),
        ("sums<T>[t] = in[t]; if (t < 63) sums<float>[t + 1] = 0;", Verdict.RACY),
    ],
)  # fmt: skip
def test_instances_of_variable_templates(statements: str, verdict: Verdict) -> None:
    (kernel,) = check_text(Path("/x/a.cu"), DECLARED % statements).kernels
    assert kernel.verdict is verdict
