"""Repairs that are no barriers of a block: guards, strides, wide indices, atomics, fences, locks, grids."""

from __future__ import annotations

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.expressions import parsed
from tests.mending import mended
from tests.unit.test_repairs import after, kernel


def launched(body: str, parameters: str, launch: str = "block=64 grid=4", before: str = "") -> str:
    """A kernel whose launch a directive tells."""
    return f"{before}\n// cuda-lsp: launch {launch}\n__global__ void k({parameters}) {{\n{body}\n}}\n"


def is_mended(text: str, kind: RepairKind, by: str) -> None:
    """One repair of this kind, which the text then shows, and nothing racy is left."""
    found = mended(text)
    assert [repair.kind for repair in found.repairs] == [kind]
    assert by in found.text
    assert found.report.kernels[0].verdict is Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("y * w + x", [("+", "y * w"), ("+", "x")]),
        ("a - (b - c) % 2", [("+", "a"), ("-", "(b - c) % 2")]),
        ("(int)threadIdx.x - s[i + 1]", [("+", "threadIdx.x"), ("-", "s[i + 1]")]),
        ("-x + y", [("+", "-x"), ("+", "y")]),
        ("a < b ? a : b", [("+", "a < b ? a : b")]),
    ],
)
def test_sums_are_taken_apart(text: str, terms: list[tuple[str, str]]) -> None:
    assert [(sign, term.text) for sign, term in parsed(text).terms()] == terms


# ------------------------------------------------------------------------------- who stores


def test_a_row_is_stored_up_to_its_width() -> None:
    text = launched(
        "    if (w > 16) return;\n    out[blockIdx.x * w + threadIdx.x] = threadIdx.x;", "int* out, int w"
    )
    is_mended(text, RepairKind.GUARD, "if (threadIdx.x < w) out[blockIdx.x * w")


def test_the_first_thread_of_a_group_stores() -> None:
    text = kernel("out[blockIdx.x * 16 + threadIdx.x / 4] = threadIdx.x;")
    is_mended(text, RepairKind.ONE_STORES, "if (threadIdx.x % 4 == 0) out[")


def test_one_block_stores_what_hangs_on_no_block() -> None:
    is_mended(
        kernel("out[threadIdx.x] = blockIdx.x;"),
        RepairKind.ONE_STORES,
        "if (blockIdx.x == 0) out[threadIdx.x]",
    )


def test_what_all_add_is_not_left_to_one_of_them() -> None:
    text = kernel("out[threadIdx.x / 2] *= 3;")
    assert after(text) == text


def test_a_guard_that_nobody_passes_is_no_repair() -> None:
    text = launched(
        "    int x = threadIdx.x;\n    if (x >= w) out[blockIdx.x * w + x] = x;", "int* out, int w"
    )
    assert "x < w" not in after(text)


def test_two_who_swap_are_one() -> None:
    body = """
    int i = blockIdx.x * 64 + threadIdx.x;
    int kept = a[i];
    a[i] = a[255 - i];
    a[255 - i] = kept;"""
    is_mended(launched(body, "int* a"), RepairKind.ONE_STORES, "if (i < 255 - i) { int kept = a[i];")


# --------------------------------------------------------------------- strides, bounds, width


def test_a_loop_over_the_grid_goes_on_by_all_its_threads() -> None:
    body = "    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x) y[i] *= 2;"
    is_mended(launched(body, "int* y, int n"), RepairKind.STRIDE, "i += blockDim.x * gridDim.x")


def test_blocks_are_as_far_apart_as_they_are_wide() -> None:
    text = launched("    y[blockIdx.x * 63 + threadIdx.x] = blockIdx.x;", "int* y")
    is_mended(text, RepairKind.STRIDE, "y[blockIdx.x * blockDim.x + threadIdx.x]")


def test_a_loop_ends_one_element_earlier() -> None:
    text = launched(
        "    for (int x = threadIdx.x; x <= 64; x += 64) out[blockIdx.x * 64 + x] = blockIdx.x;", "int* out"
    )
    is_mended(text, RepairKind.STRIDE, "x < 64;")


def test_an_index_beyond_32_bits_is_computed_in_64() -> None:
    body = "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n    a[i] = blockIdx.x;"
    text = launched(body, "float* a", "block=256 grid=33554432")
    is_mended(text, RepairKind.WIDE_INDEX, "size_t i = (size_t)blockIdx.x * blockDim.x")


# ------------------------------------------------------------------------------------ atomics


def test_an_update_in_two_statements_is_one_atomic() -> None:
    body = """
    if (threadIdx.x % 32 == 0) {
        int first = *size;
        *size = first + 4;
        out[first] = 1;
    }"""
    assert "int first = atomicAdd(size, 4);\n" in after(launched(body, "int* size, int* out"))


def test_an_update_in_two_statements_may_set_a_variable_that_stands_before() -> None:
    body = """
    int first = 0;
    if (threadIdx.x % 32 == 0) {
        first = *size;
        *size = first + 4;
        out[first] = 1;
    }"""
    assert "        first = atomicAdd(size, 4);\n" in after(launched(body, "int* size, int* out"))


def test_a_position_that_a_racing_count_gives_is_not_hidden_by_atomics() -> None:
    body = """
    int first = *size;
    *size = first * 2 + 1;
    out[first] = threadIdx.x;"""
    assert "atomicExch(&out" not in after(launched(body, "int* size, int* out"))


def test_a_slot_that_a_loop_seeks_is_not_claimed_by_two_atomics() -> None:
    body = """
    int slot = in[threadIdx.x] & 63;
    while (keys[slot] != -1) slot = (slot + 1) & 63;
    keys[slot] = in[threadIdx.x];"""
    assert "atomicExch" not in after(launched(body, "int* keys, const int* in"))


def test_a_plain_read_of_what_others_update_is_atomic() -> None:
    body = "    if (in[threadIdx.x] > *best) atomicMax(best, in[threadIdx.x]);"
    is_mended(launched(body, "int* best, const int* in"), RepairKind.ATOMIC, "> atomicAdd(best, 0))")


def test_what_data_chooses_is_stored_atomically() -> None:
    text = kernel("out[in[threadIdx.x]] = blockIdx.x;")
    is_mended(text, RepairKind.ATOMIC, "atomicExch(&out[in[threadIdx.x]], blockIdx.x);")


def test_all_reads_and_stores_of_an_array_that_data_walks_become_atomic() -> None:
    body = "    int v = blockIdx.x * 64 + threadIdx.x;\n    if (v < n) parent[v] = parent[parent[v]];"
    text = launched(body, "int* parent, int n")
    is_mended(
        text, RepairKind.ATOMIC, "atomicExch(&parent[v], atomicAdd(&parent[atomicAdd(&parent[v], 0)], 0));"
    )


def test_an_index_that_threads_compute_is_not_hidden_by_atomics() -> None:
    text = launched("    int i = blockIdx.x * 64 + threadIdx.x;\n    y[i] = y[i + 1];", "int* y")
    assert after(text) == text


def test_a_maximum_of_floats_is_not_taken_apart() -> None:
    body = "    if (in[threadIdx.x] > *best) *best = in[threadIdx.x];"
    text = launched(body, "float* best, const float* in")
    assert after(text) == text


def test_atomics_of_a_block_become_those_of_the_device() -> None:
    body = """
    cuda::atomic_ref<int, cuda::thread_scope_block> sum(*out);
    sum.fetch_add(1, cuda::memory_order_relaxed);"""
    text = launched(body, "int* out", before="#include <cuda/atomic>")
    is_mended(text, RepairKind.ATOMIC, "cuda::thread_scope_device> sum")


# ------------------------------------------------------------------------- fences, locks, grids


def test_what_the_last_block_reads_is_published() -> None:
    body = """
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = blockIdx.x;
        last = atomicAdd(done, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x < 4) out[threadIdx.x] = partial[threadIdx.x];"""
    text = launched(body, "float* out, float* partial, unsigned* done")
    is_mended(text, RepairKind.FENCE, "__threadfence();\n        last = atomicAdd(done, 1)")


def test_the_last_access_is_under_the_lock() -> None:
    body = """
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        __threadfence();
        float v = *total + in[blockIdx.x];
        __threadfence();
        atomicExch(lock, 0);
        *total = v;
    }"""
    text = launched(body, "int* lock, float* total, const float* in")
    is_mended(text, RepairKind.UNDER_LOCK, "*total = v;\n        __threadfence(); atomicExch(lock, 0);")


def test_a_grid_that_has_barriers_gets_one_more() -> None:
    body = """
    auto grid = cooperative_groups::this_grid();
    int i = blockIdx.x * 64 + threadIdx.x;
    for (int k = 0; k < 4; ++k) {
        b[i] = a[(i + 64) % 256];
        a[i] = b[i];
        grid.sync();
    }"""
    text = launched(body, "int* a, int* b", before="#include <cooperative_groups.h>")
    is_mended(text, RepairKind.GRID_BARRIER, "grid.sync();\n        a[i] = b[i];")


def test_a_grid_without_barriers_gets_none() -> None:
    body = """
    auto grid = cooperative_groups::this_grid();
    int i = blockIdx.x * 64 + threadIdx.x;
    a[i] = i;
    b[i] = a[(i + 64) % 256];"""
    text = launched(body, "int* a, int* b", before="#include <cooperative_groups.h>")
    assert "grid.sync" not in after(text)


CLUSTER = """#include <cooperative_groups.h>
__global__ void __cluster_dims__(2, 1, 1) k(int* a) {
    __shared__ int s[64];
    auto near = cooperative_groups::this_cluster();
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = i;
    BETWEEN
    int v = near.map_shared_rank(s, near.block_rank() ^ 1)[t];
    near.sync();
    a[i] = v;
}
void f(int* a) { k<<<4, 64>>>(a); }
"""


@pytest.mark.parametrize("between", ["a[i] = t;", "__syncthreads();"])
def test_blocks_of_a_cluster_wait_for_one_another(between: str) -> None:
    text = CLUSTER.replace("BETWEEN", between)
    is_mended(text, RepairKind.BARRIER, f"{between}\n    near.sync();\n    int v")


# -------------------------------------------------------------------------------------- waits


def test_a_wait_comes_before_what_needs_it() -> None:
    body = """
    __shared__ int s[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &in[t], 4);
    __pipeline_commit();
    __syncthreads();
    out[blockIdx.x * 64 + t] = s[63 - t];
    __pipeline_wait_prior(0);"""
    found = mended("#include <cuda_pipeline.h>\n" + kernel(body))
    assert [repair.kind for repair in found.repairs] == [RepairKind.WAIT]
    assert "__pipeline_wait_prior(0);\n    __syncthreads();" in found.text


def test_one_copy_fewer_is_left_under_way() -> None:
    body = """
    __shared__ int s[2][64];
    int t = threadIdx.x;
    for (int k = 0; k < 2; ++k) {
        __pipeline_memcpy_async(&s[k][t], &in[k * 64 + t], 4);
        __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    __syncthreads();
    out[blockIdx.x * 64 + t] = s[0][63 - t] + s[1][63 - t];"""
    found = mended("#include <cuda_pipeline.h>\n" + kernel(body))
    assert found.report.kernels[0].verdict is Verdict.RACE_FREE
    assert "__pipeline_wait_prior(0);" in found.text


# ---------------------------------------------------------------------------- barrier objects

OBJECT = """
    __shared__ int s[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    if (threadIdx.x == 0) init(&bar, %s);
    __syncthreads();
    s[threadIdx.x] = threadIdx.x;
    bar.arrive_and_wait();
    out[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];"""


@pytest.mark.parametrize("count", ["32", "65"])
def test_a_barrier_object_waits_for_all_threads_of_its_block(count: str) -> None:
    found = mended("#include <cuda/barrier>\n" + kernel(OBJECT % count))
    assert "init(&bar, blockDim.x);" in found.text and "__syncthreads();\n    out" not in found.text
    assert not found.report.findings and found.report.kernels[0].verdict is Verdict.RACE_FREE


def test_reads_of_what_other_blocks_store_are_not_left_out() -> None:
    body = """
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    t[i] = i;
    __syncthreads();
    if (i > 0) out[i] = t[i - 1];"""
    text = launched(body, "int* t, int* out")
    assert after(text) == text
