"""Two launches of one kernel: one points both arguments into one buffer, the other does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Status, Verdict
from cuda_lsp.report.document import document
from cuda_lsp.static.analyze import check_text

SUM = """__global__ void sum(const float* in, float* out, int n) {
  __shared__ float s[256];
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v += in[i];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
"""
MOVE = """__global__ void move(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}
"""


def report_of(kernel: str, *launches: str) -> KernelReport:
    host = f"void go(const float* a, float* b, int n) {{ {' '.join(launches)} }}\n"
    (report,) = check_text(Path("k.cu"), kernel + host).kernels
    return report


def test_what_is_left_of_all_blocks_is_added_in_place_by_one() -> None:
    launches = "sum<<<1024, 256>>>(a, b, n);", "sum<<<1, 256>>>(b, b, 1024);"
    assert report_of(SUM, *launches).verdict is Verdict.RACE_FREE
    assert report_of(SUM, *reversed(launches)).verdict is Verdict.RACE_FREE


def test_two_blocks_may_not_add_in_place() -> None:
    report = report_of(SUM, "sum<<<1024, 256>>>(a, b, n);", "sum<<<2, 256>>>(b, b, 1024);")
    assert report.verdict is Verdict.RACY
    assert [f.launch.grid for f in report.findings if f.status is Status.PROVED] == [(2, 1, 1)]


@pytest.mark.parametrize(
    ("launch", "verdict"),
    [
        ("move<<<(n + 127) / 128, 128>>>(b, b, n);", Verdict.RACE_FREE),
        ("move<<<(n + 127) / 128, 128>>>(b, b + 1, n);", Verdict.RACY),
        ("move<<<(n + 127) / 128, 128>>>(b, b + n, n);", Verdict.RACE_FREE),
    ],
)
def test_launches_of_one_shape_have_their_own_buffers(launch: str, verdict: Verdict) -> None:
    apart = "move<<<(n + 127) / 128, 128>>>(a, b, n);"
    assert report_of(MOVE, apart, launch).verdict is verdict
    assert report_of(MOVE, launch, apart).verdict is verdict


def test_a_race_where_they_are_apart_is_told_too() -> None:
    kernel = MOVE.replace("out[i]", "out[i / 2]")
    report = report_of(kernel, "move<<<64, 128>>>(a, b, 8192);", "move<<<1, 1>>>(b, b, 1);")
    (found,) = (f for f in report.findings if f.kind)
    assert found.status is Status.PROVED and "out[i / 2]" in found.message and "[0]" in found.message


def test_nobody_is_told_of_the_argument_that_says_so() -> None:
    text = SUM + "void go(float* a, float* b) { sum<<<9, 256>>>(a, b, 9); sum<<<1, 256>>>(b, b, 9); }\n"
    assert "elsewhere" not in str(document([check_text(Path("k.cu"), text)]))


RECORDS = """struct View { float* data; int rows; };
__global__ void move(View from, View to) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 1 < from.rows) to.data[i] = from.data[i + 1];
}
void go(View a, View b) { FIRST SECOND }
"""


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_record_that_one_launch_passes_twice(order: tuple[int, int]) -> None:
    launches = ("move<<<64, 128>>>(a, b);", "move<<<64, 128>>>(a, a);")
    first, second = (launches[i] for i in order)
    text = RECORDS.replace("FIRST", first).replace("SECOND", second)
    (report,) = check_text(Path("k.cu"), text).kernels
    assert report.verdict is Verdict.RACY
    apart = RECORDS.replace("FIRST", launches[0]).replace("SECOND", "")
    (report,) = check_text(Path("k.cu"), apart).kernels
    assert report.verdict is Verdict.RACE_FREE
