"""Executions as witnesses: what a real schedule shows, and what barriers, locks and data keep apart."""

from __future__ import annotations

import itertools

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import Finding, LaunchConfig, LaunchSource, RaceKind, Space, Status
from cuda_lsp.static import work
from cuda_lsp.static.data_flow import data_flow
from cuda_lsp.static.exact.code import Touch, linear_code
from cuda_lsp.static.exact.machine import Status as Standing
from cuda_lsp.static.exact.machine import runners_of
from cuda_lsp.static.exact.memory import Memory
from cuda_lsp.static.exact.ordinary_inputs import FILLINGS, Contents, argument_sets
from cuda_lsp.static.exact.report import races_by_running
from cuda_lsp.static.exact.run import Pending, Schedule
from cuda_lsp.static.exact.search import Search, Sites
from cuda_lsp.static.exact.threads import Thread

GPU = GpuModel("test", (9, 0))
PASCAL = GpuModel("older", (6, 0))


def races(
    text: str,
    *,
    block: int = 64,
    grid: int | None = 2,
    gpu: GpuModel = GPU,
    source: LaunchSource = LaunchSource.FILE,
    seconds: float = 120,
) -> list[Finding]:
    """What executions of the first kernel show, of all its pairs of places, in ``seconds`` of work."""
    kernel = lowered(text)
    launch = LaunchConfig((block, 1, 1), (grid, 1, 1) if grid else None, source=source)
    found = races_by_running(kernel, launch, gpu, every_pair(kernel), work.begin(seconds))
    return list(found.values())


def every_pair(kernel: Kernel) -> list[Sites]:
    """Places that may conflict."""
    memory = (Space.SHARED, Space.GLOBAL)
    places = [a for a in data_flow(kernel).accesses if any(x.space in memory for x in a.arrays)]
    both = itertools.combinations_with_replacement(places, 2)
    pairs = (sorted((a.site.range, b.site.range)) for a, b in both if a.arrays & b.arrays)
    return list(dict.fromkeys((first, second) for first, second in pairs))


def final_values(text: str, array: str, count: int, block: int = 32) -> list[object]:
    """The first integers of an array after one block ran; what the kernel reads is zero at first."""
    kernel = lowered(text)
    flow = data_flow(kernel)
    code = linear_code(kernel, flow.slice)
    threads = [Thread((i, 0, 0), (0, 0, 0), (block, 1, 1), (1, 1, 1), 32) for i in range(block)]
    runners = runners_of(code, threads, {})
    memory = Memory(lambda array, offset, type: 0)
    Schedule(code, memory, None, runners).run()
    assert all(t.status is Standing.DONE for t in runners)
    base = next(a for a in kernel.arrays if a.name == array)
    return [memory.load(memory.held(base), base, 4 * i, base.element) for i in range(count)]


# ------------------------------------------------------------------------------------- the execution


def test_barriers_hold_everybody_until_all_have_come():
    text = """
__global__ void k(int* out) {
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x * 10;
  __syncthreads();
  out[threadIdx.x] = s[31 - threadIdx.x];
  if (out[threadIdx.x] < 0) out[0] = 0;
}"""
    assert final_values(text, "out", 3) == [310, 300, 290]


def test_atomics_hand_out_each_number_once():
    text = """
__global__ void k(int* next, int* out) {
  int mine = atomicAdd(next, 2);
  out[threadIdx.x] = mine;
  if (out[threadIdx.x] < 0) out[0] = 0;
}"""
    assert final_values(text, "out", 4) == [0, 2, 4, 6]


def test_lanes_exchange_what_they_offer():
    text = """
__global__ void k(int* out) {
  int a = __shfl_down_sync(0xffffffffu, (int)threadIdx.x, 4);
  unsigned b = __ballot_sync(0xffffffffu, threadIdx.x < 3);
  out[threadIdx.x] = a * 100 + b;
  if (out[threadIdx.x] < 0) out[0] = 0;
}"""
    assert final_values(text, "out", 3) == [407, 507, 607]


def test_a_thread_that_needs_what_nobody_knows_stays_and_the_barrier_with_it():
    text = """
__global__ void k(float* x, int* out) {
  __shared__ int s[64];
  if (x[threadIdx.x] > 1.0f) return;
  s[threadIdx.x] = 1;
  __syncthreads();
  out[0] = s[63 - threadIdx.x];
}"""
    assert races(text) == []


def test_the_watched_thread_stops_before_its_access():
    kernel = lowered("__global__ void k(int* out) { out[threadIdx.x] = 7; if (out[0] == 7) out[1] = 1; }")
    flow = data_flow(kernel)
    code = linear_code(kernel, flow.slice)
    seen: list[Pending] = []
    runners = runners_of(code, [Thread((0, 0, 0), (0, 0, 0), (1, 1, 1), (1, 1, 1), 32)], {})
    memory = Memory(lambda array, offset, type: 0)
    watched = frozenset(i for i in code.instructions if isinstance(i, Touch) and i.value is not None)
    Schedule(code, memory, None, runners, watched, lambda p: bool(seen.append(p)) or True).run()
    assert [p.start for p in seen] == [0]
    assert runners[0].status is Standing.FROZEN
    assert not any(held.cells for held in memory.objects.values())


def test_runs_that_would_read_the_same_are_not_made_again(monkeypatch: pytest.MonkeyPatch):
    runs: list[object] = []
    run = Schedule.run

    def counted(self: Schedule) -> None:
        runs.append(self)
        run(self)

    monkeypatch.setattr(Schedule, "run", counted)
    apart = "__global__ void k(int* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = n; }"
    begun = work.DONE.instructions
    assert races(apart, grid=1) == []
    by_sizes = len(runs)
    assert 0 < by_sizes < len(FILLINGS)  # once for each set of arguments
    counted_once = work.DONE.instructions - begun
    with monkeypatch.context() as patch:
        patch.setattr(Search, "_ran_alike", lambda *_: None)
        begun = work.DONE.instructions
        assert races(apart, grid=1) == []
    assert work.DONE.instructions - begun == counted_once  # they take as much of what there is time for
    assert len(runs) > 3 * by_sizes
    runs.clear()
    data = "__global__ void k(int* out, const int* in, int n) { if (in[0] != 5) out[threadIdx.x] = n; }"
    assert races(data, grid=1) == []
    assert len(runs) > 2 * by_sizes  # contents differ


# -------------------------------------------------------------------------------------- what it shows

PUSH = """
__global__ void k(int* d, const int* row, const int* col, const int* w, int n) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < n) for (int e = row[v]; e < row[v + 1]; ++e) { int t = col[e]; if (d[t] < w[v]) STORE; }
}"""


def test_two_threads_that_update_one_place_race_for_ordinary_data():
    found = races(PUSH.replace("STORE", "d[t] = w[v]"))
    assert {f.kind for f in found} == {RaceKind.WAR, RaceKind.WAW}
    assert all(f.status is Status.CONDITIONAL and f.condition for f in found)


def test_a_plain_test_before_an_atomic_update_races():
    (found,) = races(PUSH.replace("STORE", "atomicMax(&d[t], w[v])"))
    assert found.kind is RaceKind.WAR
    assert "col" in (found.condition or "")


def test_without_conditions_on_data_or_arguments_the_race_is_proved():
    (found,) = races("__global__ void k(int* out) { out[threadIdx.x / 2] = threadIdx.x; }", grid=1)
    assert found.status is Status.PROVED


def test_other_blocks_need_a_grid_of_several():
    text = "__global__ void k(int* out) { out[threadIdx.x] = blockIdx.x; }"
    assert [f.condition for f in races(text, grid=2)] == [None]
    assert [f.condition for f in races(text, grid=None)] == ["the grid has more than one block"]
    assert races(text, grid=None, source=LaunchSource.DEFAULT) == []


LANES = """
__global__ void k(int* out) {
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x; SYNC
  out[threadIdx.x] = s[31 - threadIdx.x];
}"""


def test_races_of_lanes_that_lock_step_would_order_are_told_apart():
    for gpu in (GpuModel("newer", (8, 0)), PASCAL):
        (found,) = races(LANES.replace("SYNC", ""), block=32, grid=1, gpu=gpu)
        assert found.lanes_only
    assert not races(LANES.replace("SYNC", "__syncwarp();"), block=32, grid=1)


KEPT_APART = {
    "a scatter through what may be a permutation": "if (i < n) x[a[i]] = i;",
    "rows between ascending offsets": "if (i < n) for (int j = a[i]; j < a[i + 1]; ++j) x[j] *= 2;",
    "rows by begin and count": "if (i < n) for (int j = 0; j < a[i]; ++j) x[b[i] + j] *= 2;",
    "neighbours of another colour": "if (i < n && a[i] == 1) x[i] = x[b[i]];",
    "cells behind those that are copied": "if (i < n) x[n + i] = x[a[i]];",
    "a claim by exchange": "if (i < n && atomicExch(&a[b[i]], 1) == 0) x[b[i]] += 1;",
    "a lock": "for (bool go = true; go;)"
    " if (atomicCAS(a, 0, 1) == 0) { x[0] += 1; atomicExch(a, 0); go = false; }",
    "a flag that is waited for": "if (i == 0) { x[0] = 1; __threadfence(); b[0] = 1; }"
    " if (i == 1) { while (((volatile int*)b)[0] == 0); x[0] += 1; }",
    "the last to draw a number": "x[i] = 1; __threadfence();"
    " if (atomicAdd(a, 1) == gridDim.x * blockDim.x - 1) for (int j = 0; j < i; ++j) x[j] += 1;",
    "numbers drawn from a counter": "if (b[i] > 3) { int s = atomicAdd(a, 1); x[s] += i; }",
    "a shift that goes too far": "int k = i << (n + 1); if (k < n) x[k] += 1;",
    "what an assertion excludes": "__builtin_assume(a[0] == 7); if (a[1] == a[2]) x[0] = i;",
}


@pytest.mark.parametrize("body", KEPT_APART.values(), ids=KEPT_APART.keys())
def test_what_order_or_invariants_keep_apart_is_not_accused(body: str):
    text = "__global__ void k(int* x, int* a, int* b, int n) {\n"
    found = races(f"{text}  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  {body}\n}}", seconds=25)
    assert [f.message for f in found if "`" not in f.message or "x[" in f.message.split(":")[0]] == []


# -------------------------------------------------------------------------------- inputs and sources

CSR = """
__global__ void k(float* x, const int* row, const int* col, int* seen, int n) {
  int v = threadIdx.x;
  for (int e = row[v]; e < row[v + 1]; ++e) { x[col[e]] = 0; atomicAdd(&seen[v], 1); }
}"""


def test_an_address_comes_from_the_array_it_was_loaded_from():
    flow = data_flow(lowered(CSR))
    (store,) = [a for a in flow.accesses if any(x.name == "x" for x in a.arrays)]
    assert {a.name for a in flow.arrays_in(store.address)} == {"col"}
    assert {a.name for a in flow.arrays_in(store.guard)} == {"row"}


def test_offsets_ascend_and_counters_start_at_zero():
    kernel = lowered(CSR)
    flow = data_flow(kernel)
    arrays = {a.name: a for a in kernel.arrays}
    for filling in FILLINGS:
        contents = Contents(flow, filling, {})
        row = [contents.at(arrays["row"], 4 * i, arrays["row"].element) for i in range(9)]
        assert all(a is not None and b is not None and a < b for a, b in itertools.pairwise(row))
        assert contents.at(arrays["seen"], 0, arrays["seen"].element) == 0


def test_what_is_waited_for_is_not_chosen():
    kernel = lowered(
        "__global__ void k(volatile int* f, int* x) { while (f[0] == 0); x[0] = f[1]; f[0] = 0; }"
    )
    (flag,) = [a for a in kernel.arrays if a.name == "f"]
    assert Contents(data_flow(kernel), FILLINGS[0], {}).at(flag, 0, flag.element) is None


def test_sizes_that_agree_come_first():
    kernel = lowered("__global__ void k(int* x, int rows, int pitch) { x[rows * pitch] = 0; }")
    sets = list(argument_sets(kernel, LaunchConfig((64, 1, 1))))
    assert [s.equal for s in sets] == sorted((s.equal for s in sets), reverse=True)
    assert sets[0].values == {"rows": 64, "pitch": 64}


def test_strides_of_one_tensor_are_those_of_a_packed_one():
    text = (
        "struct T { int* data; long strides_[3]; }; __global__ void k(T t, int n) "
        "{ t.data[n * t.strides_[0] + threadIdx.x * t.strides_[1] + t.strides_[2]] = 0; }"
    )
    for found in argument_sets(lowered(text), LaunchConfig((64, 1, 1))):
        first, second, third = (found.values[f"t.strides_[{axis}]"] for axis in range(3))
        assert third == 1 and second == found.values["n"] and first == second * second


def test_both_sides_of_a_copy_are_accesses_at_their_own_places():
    kernel = lowered("struct P { int a[9]; }; __global__ void k(P* p, P* q) { p[0] = q[threadIdx.x]; }")
    flow = data_flow(kernel)
    touches = [i for i in linear_code(kernel, flow.slice).instructions if isinstance(i, Touch)]
    assert [t.site.text for t in touches] == ["q[threadIdx.x]", "p[0]"]
    assert all([t.mode] == [a.mode for a in flow.at(t.site.range)] for t in touches)
