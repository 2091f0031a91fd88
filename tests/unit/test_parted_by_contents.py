"""Barriers that contents part threads at: lists, trees, texts, records in shared memory, locks, switches.

A run on contents that suit the kernel shows it; what the block decides as a whole parts nobody.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.ir.program import Array
from cuda_lsp.ir.types import INT32
from cuda_lsp.model import Code, Finding, Space, Status
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.exact.memory import Memory

HEAD = """__global__ void k(const int* p, const int2* child, const float4* q, int* out,
                  unsigned* cursor, int n) {
  __shared__ float4 tile[64]; __shared__ int lock[4], s[64], node;
  int t = threadIdx.x, b = blockIdx.x, i = b * 64 + t;
  BODY
}
"""
FIXED, OPEN = "k<<<4, 64>>>(p, c, q, o, h, 700);", "k<<<n / 64, 64>>>(p, c, q, o, h, n);"


def missed(body: str, launch: str = FIXED) -> list[Finding]:
    host = f"void f(int* p, int2* c, float4* q, int* o, unsigned* h, int n) {{ {launch} }}\n"
    report = check_text(Path("k.cu"), HEAD.replace("BODY", body) + host)
    assert not report.errors
    return [f for f in report.kernels[0].findings if f.code is Code.BARRIER_DIVERGENCE]


PARTED = [
    # lists and trees, of which each thread has its own
    "for (int e = p[i]; e != -1; e = out[e]) __syncthreads();",
    "int v = 0; while (child[v].x >= 0) { v = q[i].x < q[v].y ? child[v].x : child[v].y; __syncthreads(); }",
    # texts that are compared with each other, and leave off where they differ
    "for (int c = 0; c < 5; ++c) { if (p[c * 64 + t] != out[c * 64 + t]) return; __syncthreads(); }",
    # ways out of a switch, past one another
    "switch (p[i] & 7) { case 0: out[i] = 1; break; case 5: __syncthreads(); break; default: out[i] = 0; }",
    # records that threads hand to each other
    "float4 v = q[i]; tile[t] = v; __syncthreads(); if (v.x - tile[0].y > 2.f) return; __syncthreads();",
    # what converges by way of sines
    "float x = q[i].x; for (int r = 0; r < 9; ++r) { float e = x - sinf(x) / 2; if (fabsf(e) < 1e-6f) break;"
    " x -= e; __syncthreads(); }",
]


@pytest.mark.parametrize("body", PARTED)
def test_contents_that_suit_the_kernel_part_its_threads(body: str) -> None:
    found = missed(body)
    assert found and {f.status for f in found} == {Status.CONDITIONAL}


UNPARTED = [
    "for (int e = p[b]; e != -1; e = out[e]) __syncthreads();",
    "if (t == 0) node = 0; __syncthreads(); while (child[node].x >= 0) { __syncthreads(); if (t == 0)"
    " node = q[b].x < q[node].y ? child[node].x : child[node].y; __syncthreads(); }",
    "for (int c = 0; c < 5; ++c) { if (__syncthreads_or(p[c * 64 + t] != out[c * 64 + t])) return; }",
    "switch (p[b] & 7) { case 0: out[i] = 1; break; case 5: __syncthreads(); break; default: out[i] = 0; }",
    "switch (p[i] & 7) { case 0: s[t] = 1; break; case 5: s[t] = 2; break; default: s[t] = 0; }"
    " __syncthreads();",
    "for (int c = 0; c < 9; ++c) {"
    " switch (p[c]) { case 1: return; case 2: continue; case 3: s[t] = c; } __syncthreads(); }",
    "float4 v = q[i]; tile[t] = v; __syncthreads();"
    " if (tile[1].x - tile[0].y > 2.f) return; __syncthreads();",
    "if (t == 0) tile[0] = q[b]; __syncthreads();"
    " int r = (int)tile[0].z; for (int j = 0; j < r; ++j) __syncthreads();",
    "float x = q[b].x; for (int r = 0; r < 9; ++r) { float e = x - sinf(x) / 2; if (fabsf(e) < 1e-6f) break;"
    " x -= e; __syncthreads(); }",
    "for (;;) { if (t == 0) node = atomicAdd(cursor, 1u); __syncthreads(); int d = node; __syncthreads();"
    " if (d >= n) break; }",
    "if (t < 4) lock[t] = 0; __syncthreads();"
    " if (atomicExch(&lock[t & 3], 1) == 0) s[t] = 1; __syncthreads();",
]  # fmt: skip


@pytest.mark.parametrize("body", UNPARTED)
def test_what_the_block_decides_as_a_whole_parts_nobody(body: str) -> None:
    assert not [f for f in missed(body) if f.status is not Status.POSSIBLE]


def test_a_lock_in_shared_memory_has_one_winner_whatever_memory_holds() -> None:
    body = "if (t < 4) lock[t] = 0; __syncthreads(); if (atomicExch(&lock[t & 3], 1) == 0) __syncthreads();"
    (found,) = missed(body)
    assert found.status is Status.PROVED and found.condition is None


def test_sizes_for_which_no_thread_comes_to_a_barrier_tell_nothing_of_it() -> None:
    """The others are part of the condition."""
    body = "for (int k = 0; k + 64 <= n; k += 64) { if (p[k + t] > 3) return; __syncthreads(); }"
    (found,) = missed(body, OPEN)
    assert found.status is Status.CONDITIONAL and "`n` == " in (found.condition or "")


def test_a_size_that_ends_is_no_condition_on_contents() -> None:
    body = "for (int k = t; k < n; k += 64) { s[t] = p[k]; __syncthreads(); }"
    assert all("p[" not in (f.condition or "") for f in missed(body, OPEN))


def test_no_array_is_said_to_hold_one_number_where_another_lane_read_a_different_one() -> None:
    reduced = "int v = p[i]; for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);"
    body = f"{reduced} if (v > 9) __syncthreads();"
    (found,) = missed(body)
    assert found.status is Status.CONDITIONAL and "only" not in (found.condition or "")


def test_what_atomics_alone_have_written_is_known_to_have_begun_as_the_host_left_it() -> None:
    counter = Array("head", Space.GLOBAL, INT32, (1,), 1)
    memory = Memory(lambda array, offset, type: 6)
    held = memory.held(counter)
    for old in (6, 7):
        assert memory.update(held, counter, 0, INT32, lambda v: v + 1 if isinstance(v, int) else None) == old
        assert held.began[0] == 6
    memory.store(held, 0, 4, 0)
    memory.update(held, counter, 0, INT32, lambda v: v)
    assert not held.began
