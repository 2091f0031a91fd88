"""Nothing flickers while somebody types: a part of ``benchmarks/calm.py``, always the same keystrokes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from client import Client
from keystrokes import Typist

# Rows by a pitch that nobody knows are the solver's affair, the columns of `s` the execution's.
ROWS = """// rows of a matrix
__device__ void put(float *place, float value) {
  place[threadIdx.x * 2] = value;
}
__global__ void rows(float *out, const float *in, int n, int pitch) {
  __shared__ float s[512];
  int t = threadIdx.x;
  put(s, in[t]);
  __syncthreads();
  out[blockIdx.x * pitch + t % (n * 64)] = s[t * 2];
}

template <int N>
__global__ void tiles(float *out, const float *in, int n, int pitch) {
  __shared__ float s[N];
  int t = threadIdx.x;
  float sum = 0;
  for (int r = 0; r < n; r++) {
    s[t] = in[r * N + t];
    __syncthreads();
    for (int k = 0; k < N; k++)
      sum += s[k];
  }
  if (t < pitch) out[blockIdx.x * pitch + t] = sum;
}
void launch(float *o, float *i, int n, int p) {
  rows<<<4, 256>>>(o, i, n, p);
  tiles<64><<<4, 64>>>(o, i, n, p);
  tiles<128><<<4, 128>>>(o, i, n, p);
}
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_no_finding_disappears_or_stands_elsewhere_while_somebody_types(tmp_path: Path, seed: int) -> None:
    client = Client(tmp_path)
    typist = Typist(client, "a.cu", ROWS, seed)
    assert typist.findings >= 3
    typist.type(60)
    typist.settle()
    assert client.close() == 0
    assert not typist.complaints, "\n".join(typist.complaints)
