"""Races found by enumeration: the classic kernels with and without each of their barriers, and the rest."""

from __future__ import annotations

import pytest
from kernel_notation import BDIM, BID, LANE, TID, E, Notation
from test_solve_classics import BROKEN, CLASSICS, figure1

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import BarrierScope
from cuda_lsp.ir.types import INT32
from cuda_lsp.model import Code, LaunchConfig, RaceKind, Scope, Status
from cuda_lsp.static.diagnostics.races import race_findings
from cuda_lsp.static.execution.enumerate import execute

GPU = GpuModel("sm_80", (8, 0))
OLD = GpuModel("sm_60", (6, 0))
ARGUMENTS = dict.fromkeys(("n", "N", "width", "height", "rounds"), 64)


def analysed(kernel, block=(256, 1, 1), grid=None, gpu=GPU, arguments=ARGUMENTS):
    grid = grid or ((4, 4, 1) if block[1] > 1 else (4, 1, 1))
    trace = execute(kernel, LaunchConfig(block, grid), arguments, gpu)
    return race_findings(trace), trace


@pytest.mark.parametrize("name", CLASSICS)
def test_the_correct_kernel_has_no_race(name: str) -> None:
    build, block, _ = CLASSICS[name]
    findings, trace = analysed(build(Notation(), 0), block)
    assert not findings, [f.message for f in findings]
    assert not trace.undecided


@pytest.mark.parametrize(("name", "drop"), BROKEN)
def test_without_a_barrier_a_race_is_found(name: str, drop: int) -> None:
    build, block, _ = CLASSICS[name]
    findings, _ = analysed(build(Notation(), drop), block)
    expected = Status.POSSIBLE if name == "histogram" else Status.PROVED
    assert expected in {f.status for f in findings}


def test_figure_1_names_both_threads_and_the_element() -> None:
    (finding,), _ = analysed(figure1(Notation(), barrier=False))
    assert finding.kind is RaceKind.RAW and finding.code is Code.SHARED_RACE
    assert (finding.related[0].site.range.start.line, finding.site.range.start.line) == (2, 3)
    first, second = finding.witness.threads
    assert (second[0] + 1) % 256 == first[0] == finding.witness.index[0]
    assert f"thread {second[0]} reads" in finding.message


def test_lanes_of_one_warp_need_a_warp_barrier_since_volta() -> None:
    def kernel(barrier: bool) -> ir.Kernel:
        n = Notation()
        s = n.shared("s", 64)
        between = [n.syncwarp()] if barrier else []
        return n.kernel(n.write(s, TID), *between, n.read(s, TID ^ 1))

    (finding,), _ = analysed(kernel(False), (64, 1, 1))
    assert finding.code is Code.WARP_RACE and "__syncwarp" in finding.message
    assert not analysed(kernel(True), (64, 1, 1))[0]
    (in_step,), _ = analysed(kernel(False), (64, 1, 1), gpu=OLD)
    assert in_step.lanes_only  # for ``lock_step`` to judge


def test_a_warp_barrier_does_not_order_different_warps() -> None:
    n = Notation()
    s = n.shared("s", 64)
    (finding,), _ = analysed(n.kernel(n.write(s, TID), n.syncwarp(), n.read(s, TID ^ 32)), (64, 1, 1))
    assert finding.code is Code.SHARED_RACE


def test_a_warp_barrier_orders_only_the_lanes_of_its_mask() -> None:
    for mask, racy in ((0xFFFF, False), (0xFF, True)):
        n = Notation()
        s = n.shared("s", 16)
        low = n.when(LANE < 16, n.write(s, LANE), n.syncwarp(mask), n.read(s, LANE ^ 15))
        findings, _ = analysed(n.kernel(low), (32, 1, 1))
        assert bool(findings) is racy


def test_a_tile_barrier_orders_its_tile() -> None:
    for distance, racy in ((3, False), (4, True)):
        n = Notation()
        s = n.shared("s", 64)
        tile = ir.Barrier(BarrierScope.TILE, n.site("tile.sync()"), size=4)
        findings, _ = analysed(n.kernel(n.write(s, TID), tile, n.read(s, TID ^ distance)), (64, 1, 1))
        assert bool(findings) is racy


def test_one_instruction_of_many_lanes_on_one_word_is_a_waw_race() -> None:
    n = Notation()
    s = n.shared("s", 4)
    (finding,), _ = analysed(n.kernel(n.write(s, 0, TID)), (32, 1, 1), gpu=OLD)
    assert finding.kind is RaceKind.WAW and not finding.same_value
    n = Notation()
    s = n.shared("s", 4)
    (finding,), _ = analysed(n.kernel(n.write(s, 0, 7)), (32, 1, 1))
    assert finding.same_value


def test_blocks_race_in_global_memory_and_a_block_barrier_does_not_help() -> None:
    n = Notation()
    out = n.globals("out")
    (finding,), _ = analysed(n.kernel(n.write(out, TID), n.sync()))
    assert finding.code is Code.GLOBAL_RACE
    assert finding.witness.blocks == ((0, 0, 0), (1, 0, 0))


def test_a_grid_barrier_orders_blocks() -> None:
    for scope, racy in ((BarrierScope.GRID, False), (BarrierScope.BLOCK, True)):
        n = Notation()
        out = n.globals("out")
        own = n.write(out, BID * BDIM + TID)
        barrier = ir.Barrier(scope, n.site("sync"))
        findings, _ = analysed(n.kernel(own, barrier, n.read(out, TID)), grid=(4, 1, 1))
        assert bool(findings) is racy


def test_atomics_do_not_race_with_each_other_but_with_plain_accesses() -> None:
    n = Notation()
    s = n.shared("s", 4, element=INT32)
    assert not analysed(n.kernel(n.atomic_add(s, 0)))[0]
    n = Notation()
    s = n.shared("s", 4, element=INT32)
    assert analysed(n.kernel(n.atomic_add(s, 0), n.read(s, 0)))[0]


def test_block_scope_atomics_race_between_blocks() -> None:
    for scope, racy in ((Scope.BLOCK, True), (Scope.DEVICE, False)):
        n = Notation()
        out = n.globals("out", INT32)
        add = ir.Atomic(None, AtomicOp.ADD, n.at(out, 0), (ir.const(1),), INT32, scope, n.site("atomicAdd"))
        assert bool(analysed(n.kernel(add), grid=(2, 1, 1))[0]) is racy


def test_an_atomic_ticket_is_a_slot_of_its_own() -> None:
    n = Notation()
    count, out, slot = n.globals("count", INT32), n.globals("out"), n.var("slot")
    findings, _ = analysed(n.kernel(n.atomic_add(count, 0, slot), n.write(out, slot)), grid=(4, 1, 1))
    assert not findings


def test_an_index_that_is_data_is_a_possible_race_and_says_which_data() -> None:
    n = Notation()
    data, s, i = n.globals("data", INT32), n.shared("s", 256), n.var("i")
    (finding,), _ = analysed(n.kernel(n.read(data, TID, i), n.write(s, E(i) & 255)), grid=(4, 1, 1))
    assert finding.status is Status.POSSIBLE and finding.reason


def test_bounds_keep_data_dependent_ranges_of_different_threads_apart() -> None:
    n = Notation()
    data, s, i = n.globals("data", INT32), n.shared("s", 2048), n.var("i")
    kernel = n.kernel(n.read(data, TID, i), n.write(s, TID * 8 + (E(i) & 7)))
    assert not analysed(kernel, grid=(4, 1, 1))[0]


def test_both_sides_of_a_uniform_unknown_condition_never_meet() -> None:
    n = Notation()
    data, s, flag = n.globals("data", INT32), n.shared("s", 512), n.var("flag")
    branch = n.when(E(flag) > 0, n.write(s, TID), otherwise=(n.write(s, TID + 1),))
    assert not analysed(n.kernel(n.read(data, 0, flag), branch), grid=(1, 1, 1))[0]


def test_words_of_different_width_overlap() -> None:
    n = Notation()
    s = n.shared("s", 256)
    wide = ir.Store(n.at(s, TID * 2, 4), ir.Unknown("data", ir.UINT32, 99), ir.Opaque("float2", 8), n.site())
    assert not analysed(n.kernel(wide), (64, 1, 1))[0]
    n = Notation()
    s = n.shared("s", 256)
    wide = ir.Store(n.at(s, TID, 4), ir.Unknown("data", ir.UINT32, 99), ir.Opaque("float2", 8), n.site())
    assert analysed(n.kernel(wide), (64, 1, 1))[0]


def last_block(fence: bool) -> ir.Kernel:
    """The last block to finish sums what all blocks wrote."""
    n = Notation()
    partial, count = n.globals("partial"), n.globals("count", INT32)
    last, ticket, flag = n.shared("last", 1, element=INT32), n.var("ticket"), n.var("flag")
    fences = [ir.Fence(Scope.DEVICE, n.site("__threadfence()"))] if fence else []
    is_last = ir.Select(E(ticket).eq(3).node, ir.const(1), ir.const(0), INT32)
    leader = n.when(
        TID.eq(0), n.write(partial, BID), *fences,
        n.atomic_add(count, 0, ticket), n.write(last, 0, E(is_last)),
    )  # fmt: skip
    total = n.when(E(flag).ne(0), n.when(TID < 4, n.read(partial, TID)))
    return n.kernel(leader, n.sync(), n.read(last, 0, flag), total)


def test_last_block_done_is_accepted_with_its_fence() -> None:
    assert not analysed(last_block(fence=True), grid=(4, 1, 1))[0]
    assert analysed(last_block(fence=False), grid=(4, 1, 1))[0]


def test_a_barrier_in_two_steps_orders_what_stands_before_and_behind_both() -> None:
    n = Notation()
    s = n.shared("s", 64)
    arrive, wait = (
        ir.Barrier(BarrierScope.NAMED, n.site("barrier.arrive"), phase)
        for phase in (ir.BarrierPhase.ARRIVE, ir.BarrierPhase.WAIT)
    )
    findings, trace = analysed(n.kernel(n.write(s, TID), arrive, wait, n.read(s, 63 - TID)), (64, 1, 1))
    assert not findings and not trace.undecided
    findings, _ = analysed(n.kernel(n.write(s, TID), arrive, n.read(s, 63 - TID), wait), (64, 1, 1))
    assert findings


def test_what_a_spin_lock_protects_is_not_decided_rather_than_a_race() -> None:
    n = Notation()
    lock, total, old = n.globals("lock", INT32), n.globals("total"), n.var("old")
    take = ir.Atomic(
        old, AtomicOp.CAS, n.at(lock, 0), (ir.const(0), ir.const(1)), INT32, Scope.DEVICE, n.site()
    )
    spin = ir.Loop(900, 901, (take,), E(old).ne(0).node, (), (), n.site())
    leader = n.when(TID.eq(0), spin, n.read(total, 0), n.write(total, 0))
    findings, trace = analysed(n.kernel(leader), grid=(4, 1, 1))
    assert not findings and any("lock" in reason for reason in trace.undecided)


def test_a_condition_that_changes_from_round_to_round_does_not_keep_threads_apart() -> None:
    n = Notation()
    data, s, k, flag = n.globals("data", INT32), n.shared("s", 64), n.var("k"), n.var("flag")
    arms = n.when(E(flag) > 0, n.write(s, TID), otherwise=(n.read(s, TID + 1),))
    loop = n.loop(E(k) < 4, [n.let(k, E(k) + 1)], n.read(data, k, flag), arms)
    findings, _ = analysed(n.kernel(n.let(k, 0), loop), (32, 1, 1))
    assert [f.status for f in findings] == [Status.POSSIBLE]


def test_slots_of_a_counter_that_goes_both_ways_are_not_distinct() -> None:
    n = Notation()
    count, out, slot = n.globals("count", INT32), n.globals("out"), n.var("slot")
    back = ir.Atomic(
        None, AtomicOp.SUB, n.at(count, 0), (ir.const(1),), INT32, Scope.DEVICE, n.site("atomicSub")
    )
    kernel = n.kernel(n.atomic_add(count, 0, slot), n.write(out, slot), back)
    assert analysed(kernel, grid=(4, 1, 1))[0]


def test_atomic_inc_wraps_and_its_slots_are_not_distinct() -> None:
    n = Notation()
    count, out, slot = n.globals("count", INT32), n.globals("out"), n.var("slot")
    draw = ir.Atomic(
        slot, AtomicOp.INC, n.at(count, 0), (ir.const(3),), INT32, Scope.DEVICE, n.site("atomicInc")
    )
    assert analysed(n.kernel(draw, n.write(out, slot)), grid=(4, 1, 1))[0]
