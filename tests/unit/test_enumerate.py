"""The concrete execution itself: loops, data, local memory, budgets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kernel_notation import BDIM, BID, TID, E, Notation
from test_solve_classics import matmul

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.types import FLOAT32, INT32
from cuda_lsp.model import LaunchConfig, Mode, Space
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.diagnostics.races import race_findings
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.execution.trace import Budget
from cuda_lsp.static.execution.values import Data, Spread

GPU = GpuModel("sm_80", (8, 0))


def run(kernel, threads=32, budget=None, **arguments):
    return execute(kernel, LaunchConfig((threads, 1, 1), (4, 1, 1)), arguments, GPU, budget)


def accesses(trace):
    (path,) = trace.paths
    return path.accesses


def counted(n: Notation, bound, *body):
    k = n.var("k")
    return [n.let(k, 0), n.loop(E(k) < bound, [n.let(k, E(k) + 1)], *(b(E(k)) for b in body))]


def test_a_loop_without_barriers_is_one_record_with_an_axis_of_rounds() -> None:
    n = Notation()
    s = n.shared("s", 1024)
    (access,) = accesses(run(n.kernel(*counted(n, 20, lambda k: n.write(s, TID + k * 32)))))
    assert access.offset.shape == (20, 32) and access.must.all()
    assert np.array_equal(access.offset // 4, np.arange(32) + 32 * np.arange(20)[:, None])


def test_lanes_leave_a_loop_each_after_its_own_rounds() -> None:
    n = Notation()
    s, i = n.shared("s", 1024), n.var("i")
    loop = n.loop(E(i) < 40, [n.let(i, E(i) + BDIM)], n.write(s, i))
    (access,) = accesses(run(n.kernel(n.let(i, TID), loop)))
    assert access.must.sum(axis=0).tolist() == [2] * 8 + [1] * 24


def test_a_loop_of_two_conditions_goes_on_after_its_first_stretch_of_rounds() -> None:
    n = Notation()
    s, k = n.shared("s", 2048), n.var("k")
    body = [
        n.let(k, 0),
        n.loop((E(k) < 200).and_(E(k) * 2 + TID < 9999), [n.let(k, E(k) + 1)], n.write(s, k)),
    ]
    rounds = [len(access.must) for access in accesses(run(n.kernel(*body)))]
    assert sum(rounds) == 200 and len(rounds) > 1


def test_unsigned_arithmetic_wraps_as_the_machine_does() -> None:
    n = Notation()
    s, x = n.shared("s", 64), n.var("x", ir.UINT32)
    below = ir.Binary(ir.BinaryOp.SUB, ir.const(0, ir.UINT32), ir.const(1, ir.UINT32), ir.UINT32)
    kernel = n.kernel(ir.Assign(x, below), n.write(s, E(x) & 7))
    (access,) = accesses(run(kernel))
    assert access.offset == 7 * 4


def test_the_same_element_read_twice_is_one_value() -> None:
    n = Notation()
    data, s, a, b = n.globals("data", INT32), n.shared("s", 64), n.var("a"), n.var("b")
    write = n.when(E(a).ne(b), n.write(s, 0))
    assert not accesses(run(n.kernel(n.read(data, TID, a), n.read(data, TID, b), write)))


def test_an_index_staged_through_shared_memory_is_known() -> None:
    n = Notation()
    table, s, i = n.shared("table", 32, element=INT32), n.shared("s", 64), n.var("i")
    kernel = n.kernel(n.write(table, TID, TID * 2), n.sync(), n.read(table, TID, i), n.write(s, i))
    *_, last = accesses(run(kernel))
    assert last.offset.tolist() == [8 * t for t in range(32)]


def test_a_condition_that_is_data_gives_lanes_that_may_execute() -> None:
    n = Notation()
    data, s, a = n.globals("data", INT32), n.shared("s", 64), n.var("a")
    kernel = n.kernel(n.read(data, TID, a), n.when(E(a) > 0, n.write(s, TID)))
    (access,) = accesses(run(kernel))
    assert access.may.all() and not access.must.any()


def test_a_uniform_unknown_condition_around_a_barrier_is_followed_both_ways() -> None:
    n = Notation()
    data, s, flag = n.globals("data", INT32), n.shared("s", 64), n.var("flag")
    kernel = n.kernel(
        n.read(data, 0, flag), n.write(s, TID), n.when(E(flag) > 0, n.sync()), n.read(s, TID ^ 33)
    )
    trace = run(kernel, 64)
    assert len(trace.paths) == 2 and not any(p.divergences for p in trace.paths)
    assert len(race_findings(trace)) == 1


def test_reads_of_memory_nobody_writes_are_not_recorded() -> None:
    n = Notation()
    data = n.globals("data")
    trace = run(n.kernel(n.read(data, TID)))
    assert not accesses(trace) and len(trace.paths[0].reads) == 1


def test_a_budget_is_said_never_silent() -> None:
    n = Notation()
    s = n.shared("s", 64)
    rounds = counted(n, 5000, lambda k: n.write(s, TID), lambda k: n.sync(), lambda k: n.read(s, k % 32))
    trace = run(n.kernel(*rounds), budget=Budget(steps=100))
    assert any("statements" in reason for reason in trace.undecided)


def test_a_repeating_barrier_loop_is_not_executed_to_the_end() -> None:
    n = Notation()
    trace = execute(matmul(n, 0), LaunchConfig((16, 16, 1), (4, 4, 1)), {"N": 1 << 16}, GPU)
    assert not trace.undecided and len(accesses(trace)) < 60
    assert not race_findings(trace)


def test_a_loop_of_unknown_length_is_not_decided() -> None:
    n = Notation()
    data, s, end, k = n.globals("data", INT32), n.shared("s", 64), n.var("end"), n.var("k")
    loop = n.loop(E(k) < end, [n.let(k, E(k) + 1)], n.write(s, k))
    trace = run(n.kernel(n.read(data, TID, end), n.let(k, 0), loop))
    assert any("depends on data" in reason for reason in trace.undecided)


def test_an_unwritten_argument_is_unknown_but_the_same_everywhere() -> None:
    n = Notation()
    size, s = n.param("n"), n.shared("s", 64)
    (access,) = accesses(run(n.kernel(n.write(s, size))))
    assert isinstance(access.offset, Data) and access.offset.spread is Spread.GRID


def test_an_assumption_that_fails_excludes_the_arguments() -> None:
    n = Notation()
    size = n.param("n")
    kernel = n.kernel(ir.Assume((size > 10).node, n.site()))
    assert run(kernel, n=3).excluded and run(kernel, n=11).excluded is None


def grid_of(blocks: int, threads: int, kernel):
    return execute(kernel, LaunchConfig((threads, 1, 1), (blocks, 1, 1)), {}, GPU)


def test_a_small_grid_is_executed_whole_when_global_memory_is_written() -> None:
    n = Notation()
    trace = grid_of(4, 32, n.kernel(n.write(n.globals("out"), TID)))
    assert len(trace.blocks) == 4 and trace.whole
    (access,) = accesses(trace)
    assert access.mode is Mode.WRITE and access.array.space is Space.GLOBAL


def test_a_large_grid_is_executed_at_its_ends_and_said_to_be_cut() -> None:
    n = Notation()
    trace = grid_of(1000, 256, n.kernel(n.write(n.globals("out"), TID)))
    assert trace.blocks == ((0, 0, 0), (1, 0, 0), (999, 0, 0)) and not trace.whole


def test_one_block_stands_for_all_when_shared_memory_does_not_depend_on_it() -> None:
    n = Notation()
    s, g, v = n.shared("s", 64), n.globals("g"), n.var("v", FLOAT32)
    copy = ir.Store(n.at(s, TID), v, FLOAT32, n.site())
    trace = grid_of(1000, 64, n.kernel(n.read(g, BID * 64 + TID, v), copy))
    assert trace.blocks == ((0, 0, 0),) and trace.whole


@pytest.mark.parametrize("way", ["address", "condition", "variable", "jump", "loop"])
def test_one_block_does_not_stand_for_all_when_shared_memory_depends_on_it(way: str) -> None:
    n = Notation()
    s, i = n.shared("s", 64), n.var("i")
    store = n.write(s, TID)
    body = {
        "address": [n.write(s, TID + BID)],
        "condition": [n.when(BID.eq(5), store)],
        "variable": [n.let(i, BID), n.write(s, TID + E(i))],
        "jump": [n.leave_if(BID.eq(5)), store],
        "loop": [n.let(i, 0), n.loop(E(i) < BID, [n.let(i, E(i) + 1)]), n.write(s, E(i))],
    }[way]
    assert not grid_of(1000, 64, n.kernel(*body)).whole


def test_a_race_in_one_block_only_names_that_block() -> None:
    n = Notation()
    s = n.shared("s", 64)
    trace = grid_of(8, 32, n.kernel(n.write(s, TID), n.when(BID.eq(5), n.write(s, TID + 1))))
    (finding,) = race_findings(trace)
    assert finding.witness is not None and finding.witness.blocks == ((5, 0, 0), (5, 0, 0))


@pytest.mark.parametrize("outer", ["for (int i = 0; i < 64; ++i) a[i] = 1;", ""])
def test_a_division_behind_a_condition_counts_for_those_who_execute_the_loop(outer: str):
    """Who executed the statement before says nothing of who executes this one."""
    text = f"""__global__ void k(int* a, int* b) {{
      {outer}
      int t = threadIdx.x;
      for (int i = 1; i < 1024 && (t == 0 ? i < 64 : 64 / t < i + 64); ++i)
        for (int j = 1; t != 0 && j < 64 / t; ++j) b[(i * 64 + j) * 256 + t] = 1;
    }}
    void go(int* a, int* b) {{ k<<<1, 256>>>(a, b); }}"""
    report = check_text(Path("k.cu"), text, solver=False)
    assert not report.errors
    assert len(report.kernels) == 1
