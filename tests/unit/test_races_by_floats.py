"""Races that floats decide, and that counters bring about: a run on numbers shows them, or shows nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import RACES, FileReport, Finding, Severity, Status
from cuda_lsp.static.analyze import check_text


def checked(body: str) -> FileReport:
    kernel = f"""__global__ void k(const float* x, const int* from, const int* to, const unsigned char* text,
    int* d, int* list, int* out, int* count, int* other, int n) {{
  __shared__ int s[128]; __shared__ int hits;
  int t = threadIdx.x, b = blockIdx.x, i = b * 128 + t, lane = t & 31;
  if (t == 0) hits = 0;
  s[t] = 0;
  __syncthreads();
  {body}
}}
void f(float* x, int* a, int* b, unsigned char* c, int* d, int* l, int* o, int* k_, int* m, int n) {{
  k<<<4, 128>>>(x, a, b, c, d, l, o, k_, m, n);
}}
"""
    report = check_text(Path("k.cu"), kernel, PATIENT)
    assert not report.errors
    return report


def races(body: str) -> list[Finding]:
    (kernel,) = checked(body).kernels
    certain = (Status.PROVED, Status.CONDITIONAL)
    found = [f for f in kernel.findings if f.code in RACES and f.status in certain]
    return [f for f in found if f.effective_severity <= Severity.WARNING]


RANK = (
    "unsigned m = __ballot_sync(~0u, x[i] > .5f); int base = 0; if (lane == 0 && m) base = atomicAdd(count, "
)
SHARED = "); base = __shfl_sync(~0u, base, 0); if (x[i] > .5f) out[base + "

RACY = [
    "if (x[i] > .5f) hits++;",
    "float v = 0; for (int k = 0; k < 4; ++k) v += x[i + k]; if (v * .25f >= 1) hits += 1;",
    "int k = 0; for (int j = 0; j < n && k < 4; ++j) if (fabsf(x[j] - x[i]) < .5f) list[k++ * 64 + i] = j;",
    "if (x[i] < 0) s[t] = t; if (x[i] > 2) s[t ^ 1] = t;",
    RANK + "__popc(m)" + SHARED + "__popc(m)] = i;",
    RANK + "__popc(m) - 1" + SHARED + "__popc(m & ((1u << lane) - 1))] = i;",
    "if (x[i] > 1) { int k = atomicAdd(count, 1); out[k] = i; out[k + 1] = -i; }",
    "int e = i; if (e < n) atomicMin(&d[to[e]], d[from[e]] + 1);",
    "if (text[i] == 'q' && text[i + 1] == 'u') *out = i;",
]


@pytest.mark.parametrize("body", RACY)
def test_numbers_bring_threads_together(body: str) -> None:
    assert {f.status for f in races(body)} == {Status.CONDITIONAL}


FREE = [
    "if (x[i] > .5f) atomicAdd(&hits, 1);",
    "float v = 0; for (int k = 0; k < 4; ++k) v += x[i + k]; if (v * .25f >= 1) s[t] += 1;",
    "int k = 0; for (int j = 0; j < n && k < 4; ++j) if (fabsf(x[j] - x[i]) < .5f) list[k++ * 512 + i] = j;",
    "if (x[b] < 0) s[t] = t; if (x[b] > 2) s[t ^ 1] = t;",
    "if (x[t & 126] < 0) s[t] = t; else s[t] = -t;",
    RANK + "__popc(m)" + SHARED + "__popc(m & ((1u << lane) - 1))] = i;",
    "if (x[i] > 1) { int k = atomicAdd(count, 2); out[k] = i; out[k + 1] = -i; }",
    # two sides of one array, counters of which nobody tells where they begin
    "int k = x[i] > 1 ? atomicAdd(count, 1) : atomicSub(other, 1); out[k] = i;",
    "int k = x[i] > 1 ? atomicAdd(count, 1) : atomicAdd(other, 1); out[k] = i;",
    # a ring that is large enough; where parts of a list begin
    "if (x[i] > 1) out[atomicAdd(count, 1) % n] = i;",
    "if (x[i] > 1) out[atomicAdd(&count[from[i]], 1)] = i;",
    # what levels keep apart, and the host
    "int e = i; if (d[from[e]] == n && d[to[e]] == n + 1) atomicAdd(&list[to[e]], list[from[e]]);",
    "if (x[i] > 1) out[from[i]] = i;",
    "if (from[i] <= n && n < from[i + 1]) *out = i;",
]


@pytest.mark.parametrize("body", FREE)
def test_numbers_that_keep_threads_apart_accuse_nobody(body: str) -> None:
    assert not races(body)


@pytest.mark.parametrize("body", RACY)
def test_what_races_is_not_called_race_free(body: str) -> None:
    (kernel,) = checked(body).kernels
    assert kernel.verdict.value != "race-free"


OTHER_LOCK = """__global__ void raise(const int* key, int* lock, int* bucket, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int b = key[i] & 255, l = key[i] >> 8 & 63;
  for (bool done = false; !done;) {
    if (atomicCAS(&lock[LOCK], 0, 1) == 0) {
      __threadfence();
      bucket[b] += 1;
      __threadfence();
      atomicExch(&lock[LOCK], 0);
      done = true;
    }
  }
}
void f(int* k, int* l, int* b) { raise<<<40, 128>>>(k, l, b, 5000); }
"""


@pytest.mark.parametrize(("lock", "status"), [("l", Status.CONDITIONAL), ("b", None)])
def test_a_replay_asks_nothing_of_what_an_atomic_finds(lock: str, status: Status | None) -> None:
    report = check_text(Path("k.cu"), OTHER_LOCK.replace("LOCK", lock), PATIENT)
    (kernel,) = report.kernels
    certain = {f.status for f in kernel.findings if f.code in RACES and f.status is not Status.POSSIBLE}
    assert certain == ({status} if status else set())
