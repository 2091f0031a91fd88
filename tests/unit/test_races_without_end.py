"""A race in each of very many rounds costs little more than no race, and is told; a new one is still seen."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from emulated_card import emulated_engine
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
from cuda_lsp.dynamic.emulator.lanes import Lanes
from cuda_lsp.dynamic.emulator.order import Order
from cuda_lsp.dynamic.runs import Argument, Buffer, Engine, KernelRun, Level, RunOutcome
from cuda_lsp.model import LaunchConfig

pytestmark = needs_nvcc

FILTER = """__global__ void filter(float* p, int rounds) {
    __shared__ float s[65];
    int t = threadIdx.x;
    s[t] = p[t];
    __syncthreads();
    for (int k = 0; k < rounds; ++k) {
        float left = s[(t + 1) % 64];
        BARRIER
        s[t] = 0.5f * left + p[t];
        __syncthreads();
    }
    p[t] = s[t];
    if (rounds > 100) s[64] = t;
}
"""


def run(folder: Path, engine: Engine, barrier: str, rounds: int, text: str = FILTER) -> RunOutcome:
    text = text.replace("BARRIER", barrier)
    options = CompileOptions()
    made = compile_module(folder / "k.cu", text, options, Level.O0, find_toolkit(), folder / "cache")
    entry = next(iter(made.module.entries))
    buffer = Buffer("p", np.zeros(1024, np.uint8))
    arguments = (Argument("p", bytes(8), ((0, buffer),)), Argument("rounds", rounds.to_bytes(4, "little")))
    launch = LaunchConfig((64, 1, 1), (1, 1, 1), 0)
    request = KernelRun(made.ptx, entry, launch, arguments, sites_of(made, entry), deadline=120.0)
    return engine.run(request, lambda stage: None)


def lines(outcome: RunOutcome, sites) -> set[tuple[int, ...]]:
    return {tuple(sorted(sites[k].site.range.start.line for k in race.sites)) for race in outcome.races}


AMONG = """__global__ void among(float* p, int rounds) {
    __shared__ float s[200];
    int t = threadIdx.x;
    for (int k = 0; k < rounds; ++k) {
        __syncthreads();
        BODY
    }
}
"""


@pytest.mark.parametrize("late", [777, 778])
@pytest.mark.parametrize(
    ("body", "places"),
    [
        ("s[0] = t;\np[t] = s[k == LATE ? 0 : 1];\nif (t == 1) s[1] = k;", (6, 7)),
        ("s[64 + t] = k;\nif (t < 2) s[64] = t;\np[t] = s[64 + (t + (k == LATE)) % 64];", (6, 8)),
    ],
    ids=["instructions", "words"],
)
def test_what_only_one_late_round_brings_among_races_of_each_round_is_seen(tmp_path, body, places, late):
    text = AMONG.replace("BODY", body.replace("LATE", str(late)))
    made = compile_module(
        tmp_path / "k.cu", text, CompileOptions(), Level.O0, find_toolkit(), tmp_path / "cache"
    )
    sites = sites_of(made, next(iter(made.module.entries)))
    before, after = (lines(run(tmp_path, EmulatorEngine(), "", n, text), sites) for n in (late, 1000))
    assert after - before == {places}


@pytest.fixture
def sites(tmp_path):
    made = compile_module(
        tmp_path / "k.cu", FILTER.replace("BARRIER", ""), CompileOptions(), Level.O0, find_toolkit(),
        tmp_path / "cache",
    )  # fmt: skip
    return sites_of(made, next(iter(made.module.entries)))


def test_the_emulator_backs_off_and_still_sees_what_is_new(tmp_path, sites):
    engine = EmulatorEngine()
    run(tmp_path, engine, "", 5)  # translated
    run(tmp_path, engine, "__syncthreads();", 5)

    def seconds(barrier: str) -> tuple[float, RunOutcome]:
        before = time.process_time()
        outcome = run(tmp_path, engine, barrier, 1500)
        return time.process_time() - before, outcome

    (racy, seen), (clean, none) = seconds(""), seconds("__syncthreads();")
    assert (7, 9) in lines(seen, sites)
    assert (13, 13) in lines(seen, sites)  # once, after all of them
    assert any("later rounds that look like earlier ones" in text for text in seen.not_covered)
    assert all(race.sites[0] == race.sites[1] for race in none.races)  # line 13 alone
    assert racy < 2.5 * 2 * clean + 0.5, (racy, clean)  # a racy launch runs twice


def test_the_detector_of_the_gpu_backs_off_and_says_so(tmp_path, sites):
    seen = run(tmp_path, emulated_engine(find_toolkit()), "", 400)
    assert (7, 9) in lines(seen, sites), seen
    assert any("of a block that had reported 16,384 races" in text for text in seen.not_covered)
    few = run(tmp_path, emulated_engine(find_toolkit()), "", 20)
    assert (7, 9) in lines(few, sites)
    assert not any("16,384" in text for text in few.not_covered)


ARRIVALS = """#include <cuda/barrier>
__global__ void k(float* in, float* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> met;
    __shared__ float s[256];
    if (threadIdx.x == 0) init(&met, blockDim.x);
    __syncthreads();
    for (int i = 0; i < 1000; ++i) {
        s[threadIdx.x] = in[i];
        met.arrive_and_wait();
        out[threadIdx.x] = s[255 - threadIdx.x];
        met.arrive_and_wait();
    }
}
"""


def test_judging_what_many_barriers_order_ends_soon_after_the_deadline_with_what_was_seen(tmp_path):
    path = tmp_path / "k.cu"
    made = compile_module(path, ARRIVALS, CompileOptions(), Level.O0, find_toolkit(), tmp_path / "cache")
    entry = next(iter(made.module.entries))
    arguments = tuple(
        Argument(name, bytes(8), ((0, Buffer(name, np.zeros(4096, np.uint8), 4)),)) for name in ("in", "out")
    )
    launch = LaunchConfig((256, 1, 1), (4, 1, 1), 0)
    request = KernelRun(made.ptx, entry, launch, arguments, sites_of(made, entry), deadline=2.0)
    engine = EmulatorEngine()
    engine.run(evolve(request, deadline=0.1), lambda stage: None)  # translated
    before = time.process_time()
    outcome = engine.run(request, lambda stage: None)
    assert time.process_time() - before < 2.0 + 2.0
    assert (10, 10) in lines(outcome, request.sites), outcome.not_covered  # of different blocks
    assert outcome.failure is None or "deadline" in outcome.failure


def test_what_all_threads_of_a_block_wait_for_orders_them_at_once(tmp_path):
    lanes = Lanes((64, 1, 1), (2, 1, 1), (0, 1))
    order = Order(lanes)
    first = lanes.block == 0
    before = order.arrives()
    arrived = np.where(first, order.arrives(), 0)
    order.meet(arrived, first)
    after = order.arrives()
    a, b = np.array([0, 0, 0, 64]), np.array([63, 63, 64, 65])
    at = np.array([before, int(arrived[0]) + 1, before, before])
    assert order.gated(a, at, b, np.full(4, after)).tolist() == [True, False, False, False]
    assert not order.crosses
    order.meet(np.where(first, 0, order.arrives()), np.ones(128, bool))  # the other block tells this one
    assert order.crosses and list(order.block_gates) == [0, 1]
    part = np.arange(128) < 32
    order.meet(np.where(part, order.arrives(), 0), first)  # half of a block tells all of it: no gate
    assert len(order.block_gates[0]) == 1
