"""Clusters on the emulator: their blocks run together, read one another's shared memory, and race there."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve, frozen
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import CompiledModule, CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.clusters import fits, places, whole
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
from cuda_lsp.dynamic.runs import Argument, Buffer, EngineUnavailable, KernelRun, Level, RunOutcome
from cuda_lsp.model import LaunchConfig

pytestmark = [needs_nvcc, pytest.mark.usefixtures("shared_cache")]

HEAD = """#include <cooperative_groups.h>
#include <utility>
namespace cg = cooperative_groups;
using u32 = unsigned;
#define ARRIVE asm volatile("barrier.cluster.arrive.aligned;" ::: "memory")
#define ARRIVE_RELAXED asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory")
#define WAIT asm volatile("barrier.cluster.wait.aligned;" ::: "memory")
#define FENCE asm volatile("fence.acq_rel.cluster;" ::: "memory")
__device__ u32 near(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ u32 far(const void* p, u32 rank) {
    u32 d; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(d) : "r"(near(p)), "r"(rank)); return d;
}
__device__ int get(u32 p) {
    int v; asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(p) : "memory"); return v;
}
__device__ void put(u32 p, int v) {
    asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(p), "r"(v) : "memory");
}
__device__ void send(u32 p, int v, u32 b) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
                 :: "r"(p), "r"(v), "r"(b) : "memory");
}
__device__ void push(u32 p, const void* from, u32 bytes, u32 b) {
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];" :: "r"(p), "r"(near(from)), "r"(bytes), "r"(b) : "memory");
}
__device__ void pull(u32 p, const void* from, u32 bytes, u32 b, unsigned short ranks) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1], %2, [%3], %4;"
                 :: "r"(p), "l"(from), "r"(bytes), "r"(b), "h"(ranks) : "memory");
}
__device__ void begin(const void* b, u32 count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(near(b)), "r"(count) : "memory");
}
__device__ void expect(const void* b, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(near(b)), "r"(bytes) : "memory");
}
__device__ void arrive_at(u32 b) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(b) : "memory");
}
__device__ void wait_for(const void* b, u32 parity) {
    u32 done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared.b64 p, [%1], %2;"
                     " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(near(b)), "r"(parity) : "memory");
}
"""
KERNEL = """extern "C" __global__ void __cluster_dims__(2, 1, 1) %s(int* out) {
    __shared__ int s[64];
    __shared__ unsigned long long b[1];
    cg::cluster_group cluster = cg::this_cluster();
    u32 t = threadIdx.x, mine = cluster.block_rank(), other = mine ^ 1, g = blockIdx.x * 64 + t;
    int* theirs = cluster.map_shared_rank(s, other);
%s
}
"""


@frozen
class Case:
    """What threads do; whether they race, and whether a block may end too early; what ``out`` holds then."""

    body: str
    races: bool = False
    ends: bool = False
    out: str = ""


CASES = {
    "exchange": Case("s[t] = g; cluster.sync(); out[g] = theirs[t]; cluster.sync();", out="g ^ 64"),
    "exchange_behind_a_block_barrier": Case(
        "s[t] = g; __syncthreads(); out[g] = theirs[t]; cluster.sync();", races=True
    ),
    "block_leaves_while_others_read": Case(
        "s[t] = g; cluster.sync(); out[g] = theirs[t];", ends=True, out="g ^ 64"
    ),
    "only_own_memory_behind_the_last_barrier": Case(
        "s[t] = g; cluster.sync(); int v = theirs[t]; cluster.sync(); out[g] = v + s[t];", out="(g ^ 64) + g"
    ),
    "own_memory_overwritten_too_early": Case(
        "s[t] = g; cluster.sync(); int v = theirs[t]; s[t] = 0; cluster.sync(); out[g] = v;", races=True
    ),
    "rounds": Case(
        """int v = g;
    for (int k = 0; k < 5; ++k) {
        s[t] = v; cluster.sync(); v = theirs[t ^ 1]; cluster.sync();
    }
    out[g] = v;""",
        out="g ^ 65",
    ),
    "rounds_without_the_trailing_barrier": Case(
        """int v = g;
    for (int k = 0; k < 5; ++k) {
        s[t] = v; cluster.sync(); v = theirs[t ^ 1];
    }
    cluster.sync(); out[g] = v;""",
        races=True,
    ),
    "barrier_in_two_parts": Case(
        """s[t] = g; auto token = cluster.barrier_arrive(); out[g] = 7;
    cluster.barrier_wait(std::move(token)); out[g] += theirs[t]; cluster.sync();""",
        out="7 + (g ^ 64)",
    ),
    "stored_between_arrival_and_wait": Case(
        """auto token = cluster.barrier_arrive(); s[t] = g; cluster.barrier_wait(std::move(token));
    out[g] = theirs[t]; cluster.sync();""",
        races=True,
    ),
    "stored_between_arrival_and_wait_for_the_own_block": Case(
        """auto token = cluster.barrier_arrive(); s[t] = g; cluster.barrier_wait(std::move(token));
    out[g] = s[t ^ 32];""",
        races=True,
    ),
    "the_barrier_of_a_cluster_is_one_of_its_blocks": Case(
        "s[t] = g; cluster.sync(); out[g] = s[t ^ 32]; cluster.sync(); s[t] = 1;", out="g ^ 32"
    ),
    "relaxed_arrival": Case(
        "s[t] = g; ARRIVE_RELAXED; WAIT; out[g] = theirs[t]; cluster.sync();", races=True
    ),
    "relaxed_arrival_behind_a_fence": Case(
        "s[t] = g; FENCE; ARRIVE_RELAXED; WAIT; out[g] = theirs[t]; ARRIVE; WAIT;", out="g ^ 64"
    ),
    "addresses_of_the_cluster_s_window": Case(
        "put(far(s + t, other), g); cluster.sync();"
        "out[g] = s[t] + get(far(s + t, mine)) + get(near(s + t));",
        out="3 * (g ^ 64)",
    ),
    "two_blocks_store_to_one_place": Case("put(far(s + t, 0), g); cluster.sync();", races=True),
    "blocks_add_to_one_place": Case(
        """if (t < 2) s[t] = 0; cluster.sync();
    atomicAdd(cluster.map_shared_rank(s, 0), 1); cluster.sync();
    if (t == 0) out[g] = s[0]; cluster.sync();""",
        out="((t == 0) & (mine == 0)) * 128",
    ),
    "blocks_add_with_the_scope_of_a_block": Case(
        """if (t < 2) s[t] = 0; cluster.sync();
    atomicAdd_block(cluster.map_shared_rank(s, 0), 1); cluster.sync();""",
        races=True,
    ),
    "stores_that_report": Case(
        """if (t == 0) { begin(b, 1); expect(b, 256); } cluster.sync();
    send(far(s + t, other), g, far(b, other)); wait_for(b, 0); out[g] = s[t ^ 1]; cluster.sync();""",
        out="g ^ 65",
    ),
    "stores_that_report_to_nobody_who_waits": Case(
        """if (t == 0) { begin(b, 1); expect(b, 256); } cluster.sync();
    send(far(s + t, other), g, far(b, other)); out[g] = s[t ^ 1]; cluster.sync();""",
        races=True,
    ),
    "a_bulk_copy_to_the_other_block": Case(
        """__shared__ int from[64]; from[t] = g;
    if (t == 0) { begin(b, 1); expect(b, 256); } cluster.sync();
    if (t == 0) push(far(s, other), from, 256, far(b, other));
    wait_for(b, 0); out[g] = s[t]; cluster.sync();""",
        out="g ^ 64",
    ),
    "a_bulk_copy_that_nobody_waits_for": Case(
        """__shared__ int from[64]; from[t] = g;
    if (t == 0) { begin(b, 1); expect(b, 256); } cluster.sync();
    if (t == 0) push(far(s, other), from, 256, far(b, other));
    out[g] = s[t]; cluster.sync();""",
        races=True,
    ),
    "one_copy_for_both_blocks": Case(
        """if (t == 0) { begin(b, 1); expect(b, 256); } cluster.sync();
    if (g % 128 == 0) pull(near(s), out + g, 256, near(b), 3);
    wait_for(b, 0); out[g] = s[t] + 7; cluster.sync();""",
        out="7 + 0 * g",
    ),
    "a_block_waits_for_the_other_at_an_mbarrier": Case(
        """if (t == 0) begin(b, 64); s[t] = g; cluster.sync();
    out[g] = theirs[t]; arrive_at(far(b, other)); wait_for(b, 0);""",
        out="g ^ 64",
    ),
    "one_thread_waits_for_the_other_block": Case(
        """if (t == 0) begin(b, 64); s[t] = g; cluster.sync();
    out[g] = theirs[t]; arrive_at(far(b, other)); if (t == 7) wait_for(b, 0);""",
        out="g ^ 64",
    ),
    "stores_to_the_other_block": Case(
        "cluster.sync(); theirs[t] = g; cluster.sync(); out[g] = s[t]; cluster.sync();", out="g ^ 64"
    ),
    "stores_to_the_other_block_that_it_does_not_wait_for": Case(
        "cluster.sync(); theirs[t] = g; __syncthreads(); out[g] = s[t]; cluster.sync();", races=True
    ),
    "both_blocks_store_there": Case(
        "cluster.sync(); theirs[t] = g; s[t] = 1; cluster.sync(); out[g] = s[t];", races=True
    ),
    "halves_of_one_block_s_memory": Case(
        """cluster.sync(); if (t < 32) cluster.map_shared_rank(s, 0)[mine * 32 + t] = g; cluster.sync();
    if (mine == 0) out[g] = s[t];"""
    ),
    "one_half_of_one_block_s_memory": Case(
        """cluster.sync(); if (t < 32) cluster.map_shared_rank(s, 0)[t] = g; cluster.sync();
    if (mine == 0) out[g] = s[t];""",
        races=True,
    ),
    "neighbours_store_one_place_further": Case(
        """cluster.sync(); if (t < 63) theirs[t + 1] = g; cluster.sync(); theirs[t] += 1; cluster.sync();"""
    ),
    "neighbours_read_one_place_further": Case(
        """s[t] = g; cluster.sync(); if (t < 63) theirs[t] = theirs[t + 1]; cluster.sync();""", races=True
    ),
    "memory_of_all_ranks": Case(
        """s[t] = g; cluster.sync(); int v = 0;
    for (int r = 0; r < 2; ++r) v += cluster.map_shared_rank(s, r)[63 - t];
    cluster.sync(); out[g] = v;"""
    ),
    "memory_of_all_ranks_while_it_changes": Case(
        """s[t] = g; cluster.sync(); int v = 0;
    for (int r = 0; r < 2; ++r) { v += cluster.map_shared_rank(s, r)[63 - t]; cluster.sync(); s[t] = v; }
    cluster.sync(); out[g] = v;""",
        races=True,
    ),
    "either_block_s_memory": Case(
        """cluster.sync(); int* p = t < 32 ? s : theirs; p[t] = g; cluster.sync(); out[g] = s[t];"""
    ),
    "either_block_s_memory_twice": Case(
        """cluster.sync(); int* p = t < 32 ? s : theirs; p[t & 31] = g; cluster.sync(); out[g] = s[t];""",
        races=True,
    ),
    "what_the_other_block_stored_decides": Case(
        """if (t == 0) s[0] = 0; cluster.sync(); if (t == 0) theirs[0] = mine; cluster.sync();
    if (s[0]) out[0] = g; cluster.sync();""",
        races=True,
    ),
    "numbers_of_one_block_as_places_of_another": Case(
        """__shared__ int c; if (t == 0) c = 0; cluster.sync();
    int k = atomicAdd(&c, 1); cluster.map_shared_rank(s, 0)[k] = g; cluster.sync();""",
        races=True,
    ),
    "global_memory_of_the_cluster": Case(
        "out[g] = g; cluster.sync(); int v = out[g ^ 64]; cluster.sync(); out[g] = v;", out="g ^ 64"
    ),
    "global_memory_of_the_cluster_behind_a_block_barrier": Case(
        "out[g] = g; __syncthreads(); int v = out[g ^ 64]; cluster.sync(); out[g] = v;", races=True
    ),
    "global_memory_of_the_next_cluster": Case(
        "out[g] = g; cluster.sync(); int v = out[g ^ 128]; cluster.sync(); out[g] = v;", races=True
    ),
    "global_memory_that_all_store": Case(
        "out[g & 127] = g; cluster.sync(); s[t] = g; cluster.sync();", races=True
    ),
    "ranks": Case(
        """out[g] = 1000 * cluster.num_blocks() + 100 * cluster.block_rank() + cluster.dim_blocks().x * 10
        + cluster.query_shared_rank(theirs) + cluster.block_index().x;
    cluster.sync();""",
        out="2021 + 100 * mine",
    ),
}  # fmt: skip
SOURCE = HEAD + "".join(KERNEL % (name, case.body) for name, case in CASES.items())
SOURCE += """
extern "C" __global__ void sized_by_its_launch(int* out) {
    u32 rank, x, y; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(x));
    asm volatile("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(y));
    if (threadIdx.x == 0) out[blockIdx.x + 4 * blockIdx.y] = 100 * rank + 10 * x + y;
}
extern "C" __global__ void waits_for_who_left(int* out) {
    if (blockIdx.x % 2 == 0) { ARRIVE; WAIT; }
    out[blockIdx.x] = 1;
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) beyond_its_cluster(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = 1;
    out[threadIdx.x] = get(far(s, 5));
}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledModule:
    folder = tmp_path_factory.mktemp("clusters")
    path = folder / "clusters.cu"
    path.write_text(SOURCE)
    options = CompileOptions(extra=("-arch=sm_90",))
    return compile_module(path, SOURCE, options, Level.O0, find_toolkit(), folder / "cache")


def run_of(compiled: CompiledModule, kernel: str, grid: tuple[int, int, int] = (4, 1, 1)) -> KernelRun:
    out = Buffer("out", np.zeros(1024, np.uint8))
    launch, argument = LaunchConfig((64, 1, 1), grid, 0), Argument("out", bytes(8), ((0, out),))
    return KernelRun(compiled.ptx, kernel, launch, (argument,), sites_of(compiled, kernel), deadline=60.0)


def outcome_of(run: KernelRun, in_c: bool = False) -> RunOutcome:
    return EmulatorEngine(keep_results=True, compiled=in_c).run(run, lambda stage: None)


@pytest.mark.parametrize("in_c", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_blocks_of_a_cluster(compiled: CompiledModule, name: str, in_c: bool) -> None:
    case, outcome = CASES[name], outcome_of(run_of(compiled, name), in_c)
    assert (outcome.failure, outcome.not_covered, outcome.unwatched) == (None, (), ())
    assert bool(outcome.races) == case.races
    assert bool(outcome.faults) == case.ends
    if case.out:
        g = np.arange(256)
        wanted = eval(case.out, {"g": g, "t": g % 64, "mine": g // 64 % 2})
        assert (outcome.results["out"].view(np.int32) == wanted).all()


def test_a_race_names_the_threads_of_both_blocks(compiled: CompiledModule) -> None:
    outcome = outcome_of(run_of(compiled, "exchange_behind_a_block_barrier"))
    (race,) = outcome.races
    assert sorted(race.blocks) in ([0, 1], [2, 3])
    assert race.threads[0] == race.threads[1]
    assert (race.place.array or "").endswith("1s")


def test_the_block_that_may_have_ended_is_named(compiled: CompiledModule) -> None:
    (fault,) = outcome_of(run_of(compiled, "block_leaves_while_others_read")).faults
    assert fault.outlived is not None
    assert {fault.block, fault.outlived} in ({0, 1}, {2, 3})
    assert fault.count == 256


def test_a_launch_may_say_how_large_clusters_are(compiled: CompiledModule) -> None:
    run = evolve(run_of(compiled, "sized_by_its_launch", (4, 4, 1)), cluster=(2, 2, 1))
    seen = outcome_of(run).results["out"].view(np.int32)[:16].reshape(4, 4)
    square = np.array([[0, 110], [201, 311]])
    assert (seen == np.tile(square, (2, 2))).all()


def test_whole_clusters_are_executed(compiled: CompiledModule) -> None:
    outcome = outcome_of(evolve(run_of(compiled, "exchange"), blocks=(3,)))
    assert (outcome.blocks_checked, outcome.failure) == (2, None)


def test_a_grid_of_other_than_whole_clusters_is_refused(compiled: CompiledModule) -> None:
    with pytest.raises(EngineUnavailable, match="3×1×1 blocks does not consist of clusters of 2×1×1"):
        outcome_of(run_of(compiled, "exchange", (3, 1, 1)))


def test_who_has_left_is_not_waited_for(compiled: CompiledModule) -> None:
    run = evolve(run_of(compiled, "waits_for_who_left"), cluster=(2, 1, 1))
    assert outcome_of(run).failure is None


def test_a_rank_that_is_not_there_is_outside_shared_memory(compiled: CompiledModule) -> None:
    faults = outcome_of(run_of(compiled, "beyond_its_cluster")).faults
    assert [fault.place.space.value for fault in faults] == ["shared"]


def test_clusters_are_boxes_of_the_grid() -> None:
    grid, size = (4, 4, 2), (2, 2, 1)
    assert whole([6], grid, size) == (2, 3, 6, 7)
    assert whole([0, 5, 31], grid, size) == (0, 1, 4, 5, 26, 27, 30, 31)
    found = places(whole(range(32), grid, size), grid, size)
    assert found.across == (2, 2, 2)
    assert found.peers[1].tolist() == [4, 5, 6, 7]
    assert found.within[7].tolist() == [1, 1, 0]
    assert not fits((3, 4, 2), size)
