"""The GPU engine on small kernels of its own: each shows one thing that the detector must see, or must not.

They run on a GPU where there is one (with PyCUDA), and everywhere on an emulated card, whose warps run in
either order. All need nvcc.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from emulated_card import EmulatedCard, emulated_engine
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.gpu.device import Ended, GridTooLarge, Start
from cuda_lsp.dynamic.gpu.engine import GpuEngine
from cuda_lsp.dynamic.gpu.launch import Launch
from cuda_lsp.dynamic.ptx.reader import read_module
from cuda_lsp.dynamic.runs import Argument, Buffer, Detail, KernelRun, Level, RunOutcome
from cuda_lsp.model import LaunchConfig, Mode, Space

pytestmark = needs_nvcc
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["emulated", "backwards", "card"])
def engine(request: pytest.FixtureRequest) -> GpuEngine:
    if request.param == "card":
        made: GpuEngine = request.getfixturevalue("card")
    else:
        made = emulated_engine(find_toolkit(), request.param == "backwards")
    made.keep_results = True
    return made


def run_of(
    tmp_path: Path,
    text: str,
    buffers: dict[str, np.ndarray],
    block: int = 64,
    grid: int = 1,
    **options: object,
) -> KernelRun:
    """The first kernel of ``text``, its pointer parameters being ``buffers`` in order."""
    run = tmp_path.parents["PYTEST_XDIST_WORKER" in os.environ]  # one place for all tests and processes
    path = run / "kernel.cu"  # so that a text is compiled once
    path.write_text(text)
    toolkit = find_toolkit()
    level = options.pop("level", Level.O0)
    module = compile_module(path, text, CompileOptions(), level, toolkit, path.with_name("cache"))  # type: ignore[arg-type]
    entry = next(iter(module.module.entries))
    arguments = tuple(
        Argument(name, bytes(8), ((0, Buffer(name, np.frombuffer(data.tobytes(), np.uint8), data.itemsize)),))
        for name, data in buffers.items()
    )
    shared = int(options.pop("shared", 0))  # type: ignore[call-overload]
    return KernelRun(
        ptx=module.ptx,
        entry=entry,
        launch=LaunchConfig(block=(block, 1, 1), grid=(grid, 1, 1), dynamic_shared=shared),
        arguments=arguments,
        sites=sites_of(module, entry),
        **options,  # type: ignore[arg-type]
    )


def outcome_of(engine: GpuEngine, run: KernelRun) -> RunOutcome:
    outcome = engine.run(run, lambda stage: None)
    assert outcome.failure is None
    return outcome


OUT = {"out": np.zeros(4096, np.int32)}


def test_results_are_those_of_the_plain_kernel(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__global__ void k(int* out) { __shared__ int s[64]; int t = threadIdx.x;
    s[t] = t * t; __syncthreads(); out[t] = s[63 - t]; }"""
    outcome = outcome_of(engine, run_of(tmp_path, text, OUT))
    assert outcome.races == ()
    assert outcome.results["out"].view(np.int32)[:64].tolist() == [(63 - t) ** 2 for t in range(64)]


def test_a_race_names_array_offset_and_two_threads(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__global__ void k(int* out) { __shared__ int first[8]; __shared__ int s[65];
    first[threadIdx.x % 8] = 0; s[threadIdx.x] = 1; out[threadIdx.x] = s[threadIdx.x + 1] + first[0]; }"""
    races = outcome_of(engine, run_of(tmp_path, text, OUT)).races
    race = next(r for r in races if r.place.array and r.place.array.endswith("E1s"))
    assert race.place.space is Space.SHARED
    assert abs(race.threads[0] - race.threads[1]) == 1
    assert race.place.offset == 4 * max(race.threads)


def test_bytes_of_one_word_do_not_race(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__global__ void k(int* out) { __shared__ char s[64]; s[threadIdx.x] = 1;
    out[threadIdx.x] = s[threadIdx.x]; }"""
    assert outcome_of(engine, run_of(tmp_path, text, OUT)).races == ()


def test_neighbouring_bytes_do_race(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__global__ void k(int* out) { __shared__ char s[65]; s[threadIdx.x] = 1;
    out[threadIdx.x] = s[threadIdx.x + 1]; }"""
    assert outcome_of(engine, run_of(tmp_path, text, OUT)).races


@pytest.mark.parametrize(("value", "same"), [("7", True), ("threadIdx.x", False)])
def test_all_lanes_store_to_one_word(engine: GpuEngine, tmp_path: Path, value: str, same: bool) -> None:
    text = f"""__global__ void k(int* out) {{ __shared__ int s; s = {value}; __syncthreads();
    out[threadIdx.x] = s; }}"""
    (race,) = outcome_of(engine, run_of(tmp_path, text, OUT)).races
    assert race.sites[0] == race.sites[1]
    assert race.same_value is same


def test_atomics_do_not_race_with_each_other_but_with_plain_reads(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__global__ void k(int* out) { __shared__ int s; if (threadIdx.x == 0) s = 0; __syncthreads();
    atomicAdd(&s, 1); %s out[threadIdx.x] = s; }"""
    assert outcome_of(engine, run_of(tmp_path, text % "__syncthreads();", OUT)).races == ()
    assert outcome_of(engine, run_of(tmp_path, text % "", OUT)).races


WARP = """__global__ void k(int* out) { __shared__ int s[64]; int t = threadIdx.x;
s[t] = t; __syncwarp(%s); out[t] = s[t ^ %d]; }"""


def test_syncwarp_orders_the_lanes_of_its_mask_only(engine: GpuEngine, tmp_path: Path) -> None:
    mask = "threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u"
    assert outcome_of(engine, run_of(tmp_path, WARP % ("", 1), OUT)).races == ()
    assert outcome_of(engine, run_of(tmp_path, WARP % (mask, 1), OUT)).races == ()
    assert outcome_of(engine, run_of(tmp_path, WARP % (mask, 16), OUT)).races
    assert outcome_of(engine, run_of(tmp_path, WARP % ("", 32), OUT)).races  # another warp


def test_in_lock_step_only_one_instruction_races_with_itself(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__global__ void k(int* out) { __shared__ int s[33]; int t = threadIdx.x;
    s[t %% %d] = t; out[t] = s[t ^ 1]; }"""
    ordered = run_of(tmp_path, text % 32, OUT, block=32, lock_step=True)
    assert outcome_of(engine, ordered).races == ()
    assert outcome_of(engine, run_of(tmp_path, text % 32, OUT, block=32)).races
    (race,) = outcome_of(engine, run_of(tmp_path, text % 16, OUT, block=32, lock_step=True)).races
    assert race.sites[0] == race.sites[1]


def test_a_named_barrier_orders_its_warps_only(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__global__ void k(int* out) { __shared__ int s[128]; int t = threadIdx.x; s[t] = t;
    asm volatile("bar.sync %%0, 64;" :: "r"(1 + t / 64) : "memory"); out[t] = s[t ^ %d]; }"""
    assert outcome_of(engine, run_of(tmp_path, text % 32, OUT, block=128)).races == ()
    assert outcome_of(engine, run_of(tmp_path, text % 64, OUT, block=128)).races


def test_a_named_barrier_orders_global_memory_too(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__global__ void k(int* out, int* in) { int t = threadIdx.x; in[t] = t;
    asm volatile("bar.sync %%0, 64;" :: "r"(1 + t / 64) : "memory"); out[t] = in[t ^ %d]; }"""
    buffers = {**OUT, "in": np.zeros(128, np.int32)}
    assert outcome_of(engine, run_of(tmp_path, text % 32, buffers, block=128)).races == ()
    assert outcome_of(engine, run_of(tmp_path, text % 64, buffers, block=128)).races


def test_producers_arrive_and_consumers_wait(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__global__ void k(int* out) { __shared__ int s[32]; int t = threadIdx.x;
    if (t < 32) { s[t] = t; asm volatile("bar.arrive 1, 64;" ::: "memory"); }
    else { asm volatile("bar.sync 1, 64;" ::: "memory"); out[t] = s[63 - t]; } }"""
    assert outcome_of(engine, run_of(tmp_path, text, OUT)).races == ()


def test_state_survives_functions_that_are_not_inlined(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__device__ __noinline__ void put(int* s, int i, int v) { s[i] = v; __syncthreads(); }
    __global__ void k(int* out) { __shared__ int s[64]; int t = threadIdx.x;
    for (int i = 0; i < 10; ++i) { put(s, (t + i) %% 64, i); %s out[t] += s[t]; __syncthreads(); } }"""
    for level in (Level.O0, Level.O3):
        good = run_of(tmp_path, text % "", OUT, level=level)
        assert outcome_of(engine, good).races == ()
        bad = run_of(tmp_path, text % "s[63 - t] = t;", OUT, level=level)
        assert outcome_of(engine, bad).races


POINTERS = """typedef void (*Put)(int*, int);
__device__ __noinline__ void straight(int* s, int t) {{ s[t] = t; }}
__device__ __noinline__ void shifted(int* s, int t) {{ s[(t + 1) % 64] = t; {sync} }}
{table}
__global__ void k(int* out) {{ __shared__ int s[64]; {choice}
calls[threadIdx.x / 32](s, threadIdx.x); __syncthreads(); out[threadIdx.x] = s[threadIdx.x]; }}"""
TABLE = "{}Put calls[2] = {{straight, shifted}};"


@pytest.mark.parametrize("level", [Level.O0, Level.O3])
@pytest.mark.parametrize("where", ["table", "choice"])
def test_code_behind_a_pointer_is_watched(
    engine: GpuEngine, tmp_path: Path, where: str, level: Level
) -> None:
    fill = {"table": "", "choice": "", "sync": "", where: TABLE.format("__device__ " * (where == "table"))}
    run = run_of(tmp_path, POINTERS.format(**fill), OUT, level=level)
    outcome = outcome_of(engine, run)
    assert [(r.place.offset, r.threads) for r in outcome.races] in ([(0, (0, 63))], [(0, (63, 0))])
    assert not any("pointer" in sentence for sentence in outcome.not_covered)
    sampled = outcome_of(engine, run_of(tmp_path, POINTERS.format(**fill), OUT, grid=2, blocks=(0,)))
    assert any("pointer" in sentence for sentence in sampled.not_covered)


def test_blocks_that_write_one_element_race(engine: GpuEngine, tmp_path: Path) -> None:
    text = "__global__ void k(int* out) { out[threadIdx.x] = blockIdx.x; }"
    (race,) = outcome_of(engine, run_of(tmp_path, text, OUT, grid=4)).races
    assert race.place.space is Space.GLOBAL
    assert race.place.array == "out"
    assert race.blocks[0] != race.blocks[1]


LAST_BLOCK = """__device__ unsigned done;
__global__ void k(int* out) {{ __shared__ bool last; out[blockIdx.x * 64 + threadIdx.x] = 1; {fence}
if (threadIdx.x == 0) {{ {late} last = atomicAdd(&done, 1u) == gridDim.x - 1; }} __syncthreads();
if (last && threadIdx.x == 0) {{ int sum = 0;
for (int i = 0; i < 64 * gridDim.x; ++i) sum += out[i]; out[4000] = sum; }} }}"""


@pytest.mark.parametrize(
    ("fence", "late", "racy"),
    [
        ("__threadfence(); __syncthreads();", "", False),
        ("__syncthreads();", "__threadfence();", False),
        ("__threadfence();", "", True),  # the other threads' stores are not waited for
        ("__threadfence_block(); __syncthreads();", "", True),
        ("__syncthreads();", "", True),
    ],
)
def test_the_last_block_sees_what_was_released(
    engine: GpuEngine, tmp_path: Path, fence: str, late: str, racy: bool
) -> None:
    text = LAST_BLOCK.format(fence=fence, late=late)
    outcome = outcome_of(engine, run_of(tmp_path, text, OUT, grid=4))
    assert bool(outcome.races) == racy
    assert all(race.blocks[0] != race.blocks[1] for race in outcome.races)
    assert not any("blocks" in sentence for sentence in outcome.not_covered)


FLAG = """#include <cuda/atomic>
__global__ void k(int* out, int* flag) {{ cuda::atomic_ref<int, cuda::thread_scope_{scope}> f(*flag);
if (blockIdx.x == 0) {{ out[threadIdx.x] = 7; __syncthreads();
  if (threadIdx.x == 0) f.store(1, cuda::memory_order_{order}); }}
else {{ int looks = {looks};
  if (threadIdx.x == 0) while (f.load(cuda::memory_order_acquire) == 0 && --looks) {{}}
  __syncthreads();
  out[64 + threadIdx.x] = out[threadIdx.x]; }} }}"""


@pytest.mark.parametrize(
    ("order", "scope", "racy"),
    [("release", "device", False), ("relaxed", "device", True), ("release", "block", True)],
)
def test_a_flag_between_blocks(engine: GpuEngine, tmp_path: Path, order: str, scope: str, racy: bool) -> None:
    looks = 1000 if scope == "block" else 1 << 30  # a load of block scope may never see the flag
    text = FLAG.format(order=order, scope=scope, looks=looks)
    buffers = {**OUT, "flag": np.zeros(1, np.int32)}
    outcome = outcome_of(engine, run_of(tmp_path, text, buffers, grid=2))
    assert bool([race for race in outcome.races if race.place.array == "out"]) == racy


LATE = """__global__ void k(int* out) {
    __shared__ int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int i = 0; i < 40; ++i) atomicAdd(out + 100, 1);
        atomicExch(&flag, 1);
    } else {
        if (threadIdx.x == 32) while (atomicAdd(&flag, 0) == 0) { }
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[threadIdx.x] = 1;
    }
}"""


TREES = """__global__ void k(int* out) {
    __shared__ unsigned short ones[512], others[512], sizes[512], roots[512];
    int t = threadIdx.x, step = 1;
    for (int i = t; i < 512; i += 256) {
        ones[i] = i * 7 % 3 == 0; others[i] = !ones[i]; sizes[i] = ones[i] ? 0 : 2 + i % 5; roots[i] = 0; }
    for (int d = 256; d > 0; d >>= 1, step <<= 1) {
        __barrier_sync(0);
        if (t < d) {
            int low = step * (2 * t + 1) - 1, high = step * (2 * t + 2) - 1;
            ones[high] += ones[low];
            others[high] += others[low];
            if (roots[low] != 1 || roots[high] != 1) {
                if (roots[low] == 1) roots[high] = 1;
                else if (roots[high] == 1) roots[low] = 1;
                else {
                    unsigned both = sizes[high] + sizes[low];
                    if (both > 64) { roots[low] = 1; roots[high] = 1; }
                    else { sizes[high] = both; sizes[low] = 0; }
                }
            }
        }
    }
    for (int d = 2; d < 512; d <<= 1) {
        step >>= 1;
        __barrier_sync(0);
        if (t < d - 1) {
            int low = step * (t + 1) - 1, high = low + step / 2;
            ones[high] += ones[low];
            others[high] += others[low];
        }
    }
    __barrier_sync(0);
    for (int i = t; i < 512; i += 256) {
        out[i] = ones[i]; out[512 + i] = others[i]; out[1024 + i] = sizes[i]; out[1536 + i] = roots[i]; }
}"""


def trees() -> list[int]:
    """What ``TREES`` computes, one element after the other."""
    ones = [int(i * 7 % 3 == 0) for i in range(512)]
    sizes, roots = [0 if ones[i] else 2 + i % 5 for i in range(512)], [0] * 512
    for level in range(9):
        for high in range((2 << level) - 1, 512, 2 << level):
            low = high - (1 << level)
            if roots[low] or roots[high] or sizes[high] + sizes[low] > 64:
                roots[low] = roots[high] = 1
            else:
                sizes[high], sizes[low] = sizes[high] + sizes[low], 0
    first = np.cumsum(ones).tolist()
    return [*first, *(i + 1 - n for i, n in enumerate(first)), *sizes, *roots]


@pytest.mark.parametrize("level", [Level.O0, Level.O3])
def test_lanes_that_came_apart_meet_at_a_barrier(engine: GpuEngine, tmp_path: Path, level: Level) -> None:
    banks = level is Level.O3
    run = run_of(tmp_path, TREES, OUT, block=256, level=level, races=not banks, banks=banks)
    for _ in range(4 if engine.device.startswith("NVIDIA") else 1):
        outcome = outcome_of(engine, run)
        assert outcome.races == ()
        assert outcome.results["out"].view(np.int32)[:2048].tolist() == trees()


def test_a_named_barrier_waits_for_a_lane_that_comes_late(engine: GpuEngine, tmp_path: Path) -> None:
    outcome = outcome_of(engine, run_of(tmp_path, LATE, OUT, block=96))
    assert outcome.results["out"].view(np.int32)[32:96].tolist() == [1] * 64


LEADERS = """__global__ void k(int* out, int* flag) {
    if (threadIdx.x >= 32) return;
    if (blockIdx.x == 0) {
        out[threadIdx.x] = threadIdx.x;
        %s
        if (threadIdx.x == 0) { __threadfence(); atomicExch(flag, 1); }
    } else {
        if (threadIdx.x == 0) { while (atomicAdd(flag, 0) == 0) { } __threadfence(); }
        %s
        out[64 + threadIdx.x] = out[31 - threadIdx.x];
    }
}"""


@pytest.mark.parametrize(
    ("before", "after", "racy"),
    [("__syncwarp();", "__syncwarp();", False), ("", "__syncwarp();", True), ("__syncwarp();", "", True)],
)
def test_one_lane_speaks_for_its_warp(
    engine: GpuEngine, tmp_path: Path, before: str, after: str, racy: bool
) -> None:
    buffers = {**OUT, "flag": np.zeros(1, np.int32)}
    outcome = outcome_of(engine, run_of(tmp_path, LEADERS % (before, after), buffers, grid=2))
    assert bool(outcome.races) == racy


GRID = """#include <cooperative_groups.h>
__global__ void k(int* out) { int i = blockIdx.x * 64 + threadIdx.x; out[i] = i; %s
out[1024 + i] = out[64 * gridDim.x - 1 - i]; }"""


@pytest.mark.parametrize(
    ("between", "racy"),
    [("cooperative_groups::this_grid().sync();", False), ("cooperative_groups::this_grid();", True)],
)
def test_a_grid_that_synchronises_is_launched_together(
    engine: GpuEngine, tmp_path: Path, between: str, racy: bool
) -> None:
    outcome = outcome_of(engine, run_of(tmp_path, GRID % between, OUT, grid=4))
    assert bool(outcome.races) == racy
    assert outcome.faults == ()
    assert outcome.results["out"].view(np.int32)[1024] == 4 * 64 - 1 or racy


@pytest.mark.parametrize(("shared", "elsewhere"), [(0, False), (4096, True)])
def test_a_grid_that_meets_is_assembled_so_that_it_fits(tmp_path: Path, shared: int, elsewhere: bool) -> None:
    run = run_of(tmp_path, GRID % "cooperative_groups::this_grid().sync();", OUT, grid=48, shared=shared)
    launch = Launch(EmulatedCard(multiprocessors=2), find_toolkit(), run, read_module(run.ptx))
    launch.prepare()
    assert launch.made is not None and ".minnctapersm 24\n" in launch.made.text
    assert launch.plan.layout.in_global is elsewhere  # the shadow of shared memory


STRIDES = """#include <cooperative_groups.h>
__device__ __noinline__ int here(int i) { return i %% 1024; }
__global__ void k(int* out) {
    extern __shared__ int s[];
    auto grid = cooperative_groups::this_grid();
    s[threadIdx.x] = threadIdx.x;
    for (int i = grid.thread_rank(); i < 1024; i += grid.size()) out[here(i)] = i + s[threadIdx.x] * 0;
    %s
    for (int i = grid.thread_rank(); i < 1024; i += grid.size()) out[1024 + i] = out[here(1023 - i)];
}"""
MEETS = [("grid.sync();", False), ("if (gridDim.x > 1u << 30) grid.sync();", True)]


@pytest.mark.parametrize(("between", "racy"), MEETS)
def test_a_grid_too_large_to_run_at_once_is_checked_as_a_smaller_one(
    engine: GpuEngine, tmp_path: Path, between: str, racy: bool
) -> None:
    run = run_of(tmp_path, STRIDES % between, OUT, grid=1 << 16, shared=256, deadline=120.0)
    outcome = outcome_of(engine, run)
    assert bool(outcome.races) == racy
    assert outcome.blocks_checked < outcome.blocks_total == 1 << 16
    (told,) = (text for text in outcome.not_covered if "at once" in text)
    assert "65,536" in told
    assert engine.usable


@pytest.mark.parametrize(("between", "racy"), MEETS)
def test_a_grid_that_meets_and_fills_shared_memory_has_its_whole_shadow_elsewhere(
    engine: GpuEngine, tmp_path: Path, between: str, racy: bool
) -> None:
    run = run_of(tmp_path, STRIDES % between, OUT, grid=4, shared=engine.card.shared_limit)
    outcome = outcome_of(engine, run)
    assert bool(outcome.races) == racy
    assert outcome.faults == ()
    assert outcome.blocks_checked == 4


def test_blocks_that_find_no_place_at_once_take_less_of_a_multiprocessor(
    engine: GpuEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path, STRIDES % "grid.sync();", OUT, grid=4, shared=256)
    launch = Launch(engine.card, find_toolkit(), run, read_module(run.ptx))
    launch.prepare()
    made = launch.plan.layout

    def too_large(code: object, start: Start) -> Ended:
        monkeypatch.undo()  # it takes the next one
        raise GridTooLarge("at once")

    monkeypatch.setattr(type(launch.code), "launch", too_large)
    outcome = launch.execute(keep_results=True)
    assert (outcome.failure, outcome.races) == (None, ())
    assert not made.in_global and launch.plan.layout.in_global and launch.plan.layout.stamps_in_global
    assert outcome.results["out"].view(np.int32)[1024:2048].tolist() == list(range(1023, -1, -1))


def test_who_only_asks_for_the_grid_needs_no_cooperative_launch(engine: GpuEngine, tmp_path: Path) -> None:
    run = run_of(tmp_path, STRIDES % "", OUT, grid=1 << 14, shared=256, blocks=(0, 1, 2, 3))
    launch = Launch(engine.card, find_toolkit(), run, read_module(run.ptx))
    launch.prepare()
    assert not launch.plan.cooperative
    program = evolve(launch, request=evolve(run, together=True))  # a program may ask for it all the same
    program.prepare()
    assert program.plan.cooperative


def test_atomics_of_block_scope_race_between_blocks(engine: GpuEngine, tmp_path: Path) -> None:
    text = "__global__ void k(int* out) { atomicAdd%s(out, 1); }"
    assert outcome_of(engine, run_of(tmp_path, text % "", OUT, grid=4)).races == ()
    assert outcome_of(engine, run_of(tmp_path, text % "_block", OUT)).races == ()
    (race,) = outcome_of(engine, run_of(tmp_path, text % "_block", OUT, grid=4)).races
    assert race.blocks[0] != race.blocks[1]


def test_an_atomic_load_writes_nothing(engine: GpuEngine, tmp_path: Path) -> None:
    text = """#include <cuda/atomic>
__global__ void k(int* out) {
    cuda::atomic_ref<int, cuda::thread_scope_block> f(*out);
    int i = 64 * blockIdx.x + threadIdx.x + 1;
    if (threadIdx.x & 1) out[i] = f.load(cuda::memory_order_relaxed); else out[i] = *out;
    %s
}"""
    assert outcome_of(engine, run_of(tmp_path, text % "", OUT, grid=2)).races == ()
    write = "if (i == 1) f.store(3, cuda::memory_order_relaxed);"
    races = outcome_of(engine, run_of(tmp_path, text % write, OUT, grid=2)).races
    assert {race.modes for race in races} == {(Mode.ATOMIC_READ, Mode.ATOMIC), (Mode.READ, Mode.ATOMIC)}


def test_both_stores_of_one_thread_are_named(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__global__ void k(int* out) { __shared__ int s; if (threadIdx.x == 0) { s = 1;
    s = out[0] + 2; s = out[1] + 3; }
    for (int i = 0; i < 300; ++i) __nanosleep(100);
    if (threadIdx.x == 40) out[4] = s; }"""
    races = outcome_of(engine, run_of(tmp_path, text, OUT)).races
    assert len({race.sites for race in races}) == 3


COPY = """#include <cuda_pipeline.h>
__global__ void k(int* out, int* in) {{ __shared__ int s[2][64]; int t = threadIdx.x;
__pipeline_memcpy_async(&s[0][t], &in[t], 4); __pipeline_commit();
for (int i = 0; i < 4; ++i) {{
  __pipeline_memcpy_async(&s[(i + 1) & 1][t], &in[64 * i + t], 4); __pipeline_commit();
  __pipeline_wait_prior({prior}); __syncthreads();
  out[t] += s[i & 1][63 - t]; {end} }} }}"""


@pytest.mark.parametrize(
    ("prior", "end", "racy"),
    [("1", "__syncthreads();", False), ("2", "__syncthreads();", True), ("1", "", True)],
)
def test_copies_end_with_the_wait_for_them(
    engine: GpuEngine, tmp_path: Path, prior: str, end: str, racy: bool
) -> None:
    text = COPY.format(prior=prior, end=end)
    buffers = {**OUT, "in": np.zeros(1024, np.int32)}
    for level in (Level.O0, Level.O3):
        outcome = outcome_of(engine, run_of(tmp_path, text, buffers, level=level))
        assert bool(outcome.races) == racy
        assert outcome.faults == ()


MANY_COPIES = """#include <cuda_pipeline.h>
__global__ void k(int* out, int* in) {{ __shared__ int s[64]; int t = threadIdx.x;
for (int i = 0; i < 1500; ++i) __pipeline_commit();
{first} __pipeline_memcpy_async(&s[t], &in[t], 4); __pipeline_commit(); {wait} __syncthreads();
out[t] = s[63 - t]; }}"""


@pytest.mark.parametrize(
    ("first", "wait", "racy"),
    [
        ("", "__pipeline_wait_prior(0);", False),
        ("__pipeline_wait_prior(0);", "__pipeline_wait_prior(0);", False),
        ("__pipeline_wait_prior(0);", "", True),
        ("", "__pipeline_wait_prior(1);", True),
    ],
)
def test_copies_of_late_groups_are_told_from_early_ones(
    engine: GpuEngine, tmp_path: Path, first: str, wait: str, racy: bool
) -> None:
    text = MANY_COPIES.format(first=first, wait=wait)
    buffers = {**OUT, "in": np.zeros(64, np.int32)}
    outcome = outcome_of(engine, run_of(tmp_path, text, buffers, level=Level.O3))
    assert bool(outcome.races) == racy


def test_a_copy_of_many_groups_ago_is_over(engine: GpuEngine, tmp_path: Path) -> None:
    text = """#include <cuda_pipeline.h>
__global__ void k(int* out, int* in) { __shared__ int s[64]; int t = threadIdx.x;
__pipeline_memcpy_async(&s[t], &in[t], 4); __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads();
for (int i = 0; i < 1023; ++i) __pipeline_commit();
__pipeline_wait_prior(0); __syncthreads();
out[t] = s[63 - t]; }"""
    buffers = {**OUT, "in": np.zeros(64, np.int32)}
    assert outcome_of(engine, run_of(tmp_path, text, buffers, level=Level.O3)).races == ()


MBARRIER = """#include <cuda/barrier>
__global__ void k(int* out) {{ using Barrier = cuda::barrier<cuda::thread_scope_block>;
__shared__ alignas(8) char room[sizeof(Barrier)]; Barrier& bar = *reinterpret_cast<Barrier*>(room);
__shared__ int s[128]; int t = threadIdx.x; if (t == 0) init(&bar, {count}); __syncthreads();
for (int i = 0; i < 3; ++i) {{ s[t] = i; {first} out[t] += s[127 - t]; {second} }} }}"""


@pytest.mark.parametrize(
    ("first", "second", "racy"),
    [
        ("bar.arrive_and_wait();", "bar.arrive_and_wait();", False),
        ("bar.arrive_and_wait();", "", True),
        ("(void)bar.arrive();", "bar.arrive_and_wait();", True),
    ],
)
def test_mbarriers_order_those_who_wait(
    engine: GpuEngine, tmp_path: Path, first: str, second: str, racy: bool
) -> None:
    # More arrivals than a phase expects may be a fault on a card, where lanes arrive together.
    count = 256 if first.startswith("(void)") else 128
    text = MBARRIER.format(first=first, second=second, count=count)
    outcome = outcome_of(engine, run_of(tmp_path, text, OUT, block=128))
    assert bool([race for race in outcome.races if race.place.space is Space.SHARED]) == racy


def test_fences_alone_order_nothing(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__global__ void k(int* out) { __shared__ int s[64]; s[threadIdx.x] = 1; __threadfence(); %s
    out[threadIdx.x] = s[63 - threadIdx.x]; }"""
    assert outcome_of(engine, run_of(tmp_path, text % "__syncthreads();", OUT)).races == ()
    assert outcome_of(engine, run_of(tmp_path, text % "", OUT)).races


def test_global_accesses_outside_a_buffer_are_reported_and_not_carried_out(
    engine: GpuEngine, tmp_path: Path
) -> None:
    text = """__global__ void k(int* out, int* in) { out[threadIdx.x] = in[threadIdx.x + 60] + 1;
    in[1 << 20] = 1; }"""
    buffers = {"out": np.zeros(64, np.int32), "in": np.full(64, 5, np.int32)}
    for blocks in (None, (0,)):  # also in blocks that are not checked
        outcome = outcome_of(engine, run_of(tmp_path, text, buffers, grid=2, blocks=blocks))
        assert len(outcome.faults) == 2
        assert outcome.faults[0].count + outcome.faults[1].count == 2 * (60 + 64)
        assert outcome.results["out"].view(np.int32).tolist() == [6] * 4 + [1] * 60


@pytest.mark.parametrize(("level", "stride", "count"), [(Level.O0, 2, 32), (Level.O3, 4096, 63)])
def test_shared_accesses_outside_the_block_s_memory_are_reported(
    engine: GpuEngine, tmp_path: Path, level: Level, stride: int, count: int
) -> None:
    text = """__global__ void k(int* out) { __shared__ int s[64]; s[threadIdx.x] = 1; __syncthreads();
    out[threadIdx.x] = s[threadIdx.x * %d]; }"""
    outcome = outcome_of(engine, run_of(tmp_path, text % stride, OUT, level=level))
    (fault,) = outcome.faults
    assert fault.place.space is Space.SHARED
    assert fault.count == count


@pytest.mark.parametrize("memory", ["out", "s"])
@pytest.mark.parametrize("level", [Level.O0, Level.O3])
def test_words_at_odd_addresses_are_reported_and_not_carried_out(
    engine: GpuEngine, tmp_path: Path, memory: str, level: Level
) -> None:
    text = f"""__global__ void k(char* out, int* other) {{ __shared__ char s[260]; s[threadIdx.x] = 0;
    __syncthreads(); *(int*)({memory} + 4 * threadIdx.x + 1) = 7;
    __syncthreads(); other[threadIdx.x] = s[threadIdx.x]; }}"""
    buffers = {"out": np.zeros(300, np.int8), "other": np.zeros(64, np.int32)}
    outcome = outcome_of(engine, run_of(tmp_path, text, buffers, level=level))
    (fault,) = outcome.faults
    assert fault.count == 64
    assert not outcome.results["out"].any()


ROWS = """__global__ void k(unsigned* out) {{ __shared__ alignas(16) unsigned short s[2][64];
int t = threadIdx.x; for (int i = t; i < 128; i += 64) s[i / 64][i % 64] = i; {sync}
unsigned a, row = __cvta_generic_to_shared(&s[{warp}][8 * (t % 8)]);
asm volatile("ldmatrix.sync.aligned.m8n8.x1.{trans}shared.b16 {{%0}}, [%1];" : "=r"(a) : "r"(row) : "memory");
out[t] = a; }}"""


@pytest.mark.parametrize("trans", ["", "trans."])
@pytest.mark.parametrize(
    ("sync", "warp", "racy"),
    [("__syncthreads();", "1 - t / 32", False), ("__syncwarp();", "1 - t / 32", True)],
)
def test_rows_of_matrices_are_watched(
    engine: GpuEngine, tmp_path: Path, trans: str, sync: str, warp: str, racy: bool
) -> None:
    run = run_of(tmp_path, ROWS.format(sync=sync, warp=warp, trans=trans), OUT)
    outcome = outcome_of(engine, run)
    assert bool(outcome.races) == racy
    kinds = {run.sites[race.sites[1]].opcode.split(".")[0] for race in outcome.races}
    assert kinds == ({"ldmatrix"} if racy else set())
    assert not any("ldmatrix" in sentence for sentence in outcome.not_covered)


def test_a_matrix_row_outside_the_block_s_memory_is_not_read(engine: GpuEngine, tmp_path: Path) -> None:
    text = ROWS.format(sync="__syncthreads();", warp="t == 3 ? 4096 : 0", trans="")
    outcome = outcome_of(engine, run_of(tmp_path, text, OUT))
    (fault,) = outcome.faults
    assert (fault.thread, fault.count) == (3, 1)
    assert not outcome.results["out"].view(np.int32)[:32].any()  # the whole warp waits for its rows


def test_rows_of_matrices_cost_wavefronts(engine: GpuEngine, tmp_path: Path) -> None:
    text = ROWS.format(sync="__syncthreads();", warp="0", trans="")
    run = run_of(tmp_path, text, OUT, races=False, banks=True, level=Level.O3)
    outcome = outcome_of(engine, run)
    (banks,) = (b for b in outcome.banks if run.sites[b.site].opcode.startswith("ldmatrix"))
    assert (banks.executions, banks.wavefronts, banks.worst_ways) == (2, 2, 1)


TILES = """#include <mma.h>
using namespace nvcuda;
__global__ void k(float* out, float* more) {{ __shared__ alignas(32) float s[2][256];
int w = threadIdx.x / 32;
wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum; wmma::fill_fragment(sum, 1.0f);
wmma::store_matrix_sync({where}, sum, 16, wmma::mem_row_major); {sync}
more[threadIdx.x] = s[1 - w][threadIdx.x % 32]; }}"""


@pytest.mark.parametrize(
    ("where", "sync", "racy"),
    [
        ("s[w]", "__syncthreads();", False),
        ("s[w]", "", True),
        ("s[0]", "__syncthreads();", True),
        ("out + 256 * w", "", False),
        ("out + 240 * w", "", True),
    ],
)
def test_tiles_of_a_warp_are_watched(
    engine: GpuEngine, tmp_path: Path, where: str, sync: str, racy: bool
) -> None:
    buffers = {"out": np.zeros(512, np.float32), "more": np.zeros(64, np.float32)}
    run = run_of(tmp_path, TILES.format(where=where, sync=sync), buffers)
    outcome = outcome_of(engine, run)
    assert bool(outcome.races) == racy
    assert outcome.faults == ()


def test_flags_name_words_and_warps(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__global__ void k(int* out) { __shared__ int s[65]; s[threadIdx.x] = 1;
    out[threadIdx.x] = s[threadIdx.x + 1]; }"""
    outcome = outcome_of(engine, run_of(tmp_path, text, OUT, detail=Detail.FLAGS))
    assert outcome.races == ()
    assert {flag.place.offset for flag in outcome.flags} <= {4 * i for i in range(1, 64)}
    assert len(outcome.flags) >= 32


def test_unwatched_sites_are_left_alone(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__global__ void k(int* out) { __shared__ int s[65]; s[threadIdx.x] = 1;
    out[threadIdx.x] = s[threadIdx.x + 1]; }"""
    outcome = outcome_of(engine, run_of(tmp_path, text, OUT, watch=frozenset()))
    assert outcome.races == ()


def test_large_shared_memory_keeps_its_shadow_elsewhere(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__global__ void k(int* out) { extern __shared__ int s[]; int t = threadIdx.x;
    for (int i = t; i < 40000; i += 64) s[i] = i; %s out[64 * blockIdx.x + t] = s[39999 - t]; }"""
    good = run_of(tmp_path, text % "__syncthreads();", OUT, shared=160000, grid=3)
    assert outcome_of(engine, good).races == ()
    bad = run_of(tmp_path, text % "", OUT, shared=160000, grid=3)
    assert outcome_of(engine, bad).races


def test_printf_and_device_variables(engine: GpuEngine, tmp_path: Path) -> None:
    text = """#include <cstdio>
    __device__ int table[64]; __global__ void k(int* out) { table[threadIdx.x] = 2;
    out[threadIdx.x] = table[threadIdx.x]; if (threadIdx.x == 3) printf("hello %d\\n", table[3]); }"""
    outcome = outcome_of(engine, run_of(tmp_path, text, OUT))
    assert outcome.output == "hello 2\n"
    assert outcome.races == () and outcome.faults == ()


def test_memory_that_the_kernel_allocates_is_let_be(engine: GpuEngine, tmp_path: Path) -> None:
    text = """__global__ void k(int* out) { int* mine = (int*)malloc(8); mine[1] = threadIdx.x;
    out[threadIdx.x] = mine[1]; free(mine); }"""
    outcome = outcome_of(engine, run_of(tmp_path, text, OUT))
    assert outcome.faults == () and outcome.races == ()
    assert outcome.results["out"].view(np.int32)[:64].tolist() == list(range(64))
    assert any("allocates on the device" in sentence for sentence in outcome.not_covered)


def only_on_a_card(engine: GpuEngine) -> None:
    if engine.card.name == "emulated card":
        pytest.skip("too many steps for an emulated card")


def test_many_warp_synchronisations_are_not_taken_for_one(engine: GpuEngine, tmp_path: Path) -> None:
    only_on_a_card(engine)
    text = """__global__ void k(int* out) { __shared__ int s[64]; int t = threadIdx.x;
    for (int i = 0; i < 5000; ++i) { s[t] = i; __syncwarp(); out[t] = s[t ^ 1]; __syncwarp(); } }"""
    outcome = outcome_of(engine, run_of(tmp_path, text, OUT))
    assert outcome.races == ()
    assert any("4,094" in sentence for sentence in outcome.not_covered)


def test_epochs_do_not_wrap_into_false_alarms(engine: GpuEngine, tmp_path: Path) -> None:
    only_on_a_card(engine)
    text = """__global__ void k(int* out) { __shared__ int s[64]; int t = threadIdx.x;
    if (t == 0) s[5] = 1; for (int i = 0; i < 65535; ++i) __syncthreads(); out[t] = s[5]; __syncthreads();
    for (int i = 0; i < 10; ++i) { s[t] = i; __syncthreads(); out[t] += s[63 - t]; __syncthreads(); } }"""
    assert outcome_of(engine, run_of(tmp_path, text, OUT, level=Level.O3)).races == ()


HANGING = """__global__ void k(int* out) { volatile int* flag = out; int t = threadIdx.x;
if (t < 32) { while (flag[99] == 0) {} } __syncthreads(); out[t] = 1; }"""


def outcome_apart(engine: GpuEngine, run: KernelRun) -> RunOutcome:
    """In a process of its own, where the device is real: it cannot be used afterwards."""
    if engine.card.name == "emulated card":
        return engine.run(run, lambda stage: None)
    script = """import os, pickle, sys
from cuda_lsp.dynamic.gpu.engine import open_engine
outcome = open_engine().run(pickle.load(sys.stdin.buffer), lambda stage: None)
sys.stdout.buffer.write(pickle.dumps(outcome)); sys.stdout.flush(); os._exit(0)"""
    done = subprocess.run(
        [sys.executable, "-c", script], input=pickle.dumps(run), capture_output=True, timeout=60, cwd=ROOT
    )
    return pickle.loads(done.stdout)


def test_a_kernel_that_hangs_says_who_waits(engine: GpuEngine, tmp_path: Path) -> None:
    outcome = outcome_apart(engine, run_of(tmp_path, HANGING, OUT, deadline=3.0))
    assert outcome.failure is not None
    (stuck,) = outcome.stuck
    assert stuck.spinning
    ((_, waiting, first),) = stuck.waiting
    assert (waiting, first) == (32, 32)
