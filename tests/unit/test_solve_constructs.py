"""One construct of real kernels per test: what the solver takes as ordering, and what it does not."""

from __future__ import annotations

from attrs import evolve
from kernel_notation import BDIM, BID, GDIM, LANE, TID, E, Notation

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import BarrierPhase, BarrierScope
from cuda_lsp.ir.types import INT32, Pointer
from cuda_lsp.model import Code, LaunchConfig, LaunchSource, RaceKind, Scope, Status, Verdict
from cuda_lsp.static.solver.solve import refine_kernel

GPU = GpuModel("test", (9, 0))


def refine(kernel, block=(128, 1, 1), grid=(1, 1, 1), **arguments):
    launch = LaunchConfig(block, grid, source=LaunchSource.FILE, arguments=arguments)
    return refine_kernel(kernel, [launch], GPU)


def verdict(kernel, block=(128, 1, 1), grid=(1, 1, 1), **arguments) -> Verdict:
    return refine(kernel, block, grid, **arguments).verdict


def last_block_done(fence: bool) -> ir.Kernel:
    """The threadFenceReduction pattern: partial results, fence, ticket, flag through shared memory."""
    n = Notation()
    partial, count = n.globals("partial"), n.globals("count", INT32)
    last = n.shared("last", 1, element=INT32)
    ticket, flag, i = n.var("ticket"), n.var("flag"), n.var("i")
    publish = [ir.Fence(Scope.DEVICE, n.site())] if fence else []
    done = E(ir.Cast(E(ticket).eq(GDIM - 1).node, INT32))
    take = [n.atomic_add(count, 0, ticket), n.write(last, 0, done)]
    total = n.loop(E(i) < GDIM, [n.let(i, E(i) + BDIM)], n.read(partial, i))
    finish = n.when(E(flag).ne(0), n.let(i, TID), total)
    return n.kernel(
        n.when(TID.eq(0), n.write(partial, BID), *publish, *take), n.sync(), n.read(last, 0, flag), finish
    )


def test_last_block_done_with_a_fence_is_accepted():
    assert verdict(last_block_done(True), grid=None) is Verdict.RACE_FREE


def test_last_block_done_without_the_fence_is_not():
    assert verdict(last_block_done(False), grid=None) is not Verdict.RACE_FREE


def test_grid_sync_orders_blocks_and_a_block_barrier_does_not():
    def kernel(scope: BarrierScope) -> ir.Kernel:
        n = Notation()
        g = n.globals("g")
        i = BID * BDIM + TID
        return n.kernel(n.write(g, i), ir.Barrier(scope, n.site()), n.read(g, i + 1))

    assert verdict(kernel(BarrierScope.GRID), grid=(4, 1, 1)) is Verdict.RACE_FREE
    result = refine(kernel(BarrierScope.BLOCK), grid=(4, 1, 1))
    assert [f.code for f in result.findings] == [Code.GLOBAL_RACE]
    assert result.findings[0].witness.blocks is not None


def test_a_tile_barrier_orders_only_its_tile():
    def kernel(reach: int) -> ir.Kernel:
        n = Notation()
        s = n.shared("s", 160)
        tile = ir.Barrier(BarrierScope.TILE, n.site(), size=16)
        return n.kernel(n.write(s, TID), tile, n.read(s, TID ^ reach))

    assert verdict(kernel(8)) is Verdict.RACE_FREE
    assert verdict(kernel(16)) is Verdict.RACY


def test_a_partial_mask_orders_only_the_lanes_it_names():
    def kernel(mask: int) -> ir.Kernel:
        n = Notation()
        s = n.shared("s", 160)
        return n.kernel(n.write(s, TID), n.when(LANE < 8, n.syncwarp(mask), n.read(s, TID ^ 1)))

    assert verdict(kernel(0xFF)) is Verdict.RACE_FREE
    assert verdict(kernel(0xF)) is Verdict.RACY


def test_arrive_and_wait_order_only_what_came_before_the_arrival():
    def kernel(between: bool) -> ir.Kernel:
        n = Notation()
        s = n.shared("s", 160)
        arrive = ir.Barrier(BarrierScope.BLOCK, n.site(), BarrierPhase.ARRIVE)
        wait = ir.Barrier(BarrierScope.BLOCK, n.site(), BarrierPhase.WAIT)
        write = n.write(s, TID)
        ordered = [arrive, write] if between else [write, arrive]
        return n.kernel(*ordered, wait, n.read(s, TID + 1))

    assert verdict(kernel(False)) is Verdict.RACE_FREE
    assert verdict(kernel(True)) is not Verdict.RACE_FREE


def test_early_return_of_whole_blocks_keeps_barriers_convergent():
    n = Notation()
    size, s = n.param("n"), n.shared("s", 160)
    kernel = n.kernel(n.leave_if(size <= BID), n.write(s, TID), n.sync(), n.read(s, TID + 1))
    assert verdict(kernel, grid=None) is Verdict.RACE_FREE


def test_early_return_of_some_threads_diverges_at_the_barrier():
    n = Notation()
    size, s = n.param("n"), n.shared("s", 160)
    kernel = n.kernel(n.leave_if(size <= TID), n.write(s, TID), n.sync(), n.read(s, TID + 1))
    result = refine(kernel)
    assert [f.code for f in result.findings] == [Code.BARRIER_DIVERGENCE]
    assert result.findings[0].status is Status.CONDITIONAL


def test_a_flag_broadcast_through_shared_memory_is_uniform():
    n = Notation()
    data, flag, s = n.globals("data", INT32), n.shared("flag", 1, element=INT32), n.shared("s", 160)
    value, seen = n.var("value"), n.var("seen")
    kernel = n.kernel(
        n.when(TID.eq(0), n.read(data, 0, value), n.write(flag, 0, value)), n.sync(), n.read(flag, 0, seen),
        n.when(E(seen) > 0, n.write(s, TID), n.sync(), n.read(s, TID + 1)),
    )  # fmt: skip
    assert verdict(kernel) is Verdict.RACE_FREE


def test_toggled_double_buffer_is_followed():
    def kernel(barrier: bool) -> ir.Kernel:
        n = Notation()
        rounds, s, cur, i = n.param("rounds"), n.shared("s", 512), n.var("cur"), n.var("i")
        other = n.let(cur, 1 - E(cur))
        half = E(cur) * 256
        body = [n.write(s, half + TID), *([n.sync()] if barrier else []), n.read(s, half + 127 - TID)]
        return n.kernel(n.let(cur, 0), n.let(i, 0), n.loop(E(i) < rounds, [n.let(i, E(i) + 1), other], *body))

    assert verdict(kernel(True)) is Verdict.RACE_FREE
    assert verdict(kernel(False)) is Verdict.RACY


def test_trailing_barrier_missing_in_a_tile_loop_is_a_war_race():
    n = Notation()
    rounds, s, i = n.param("rounds"), n.shared("s", 160), n.var("i")
    body = [n.write(s, TID), n.sync(), n.read(s, TID + 1)]
    result = refine(n.kernel(n.let(i, 0), n.loop(E(i) < rounds, [n.let(i, E(i) + 1)], *body)))
    (finding,) = result.findings
    assert finding.status is Status.CONDITIONAL
    assert finding.condition == "`rounds` > 1"
    assert finding.kind is RaceKind.WAR  # line 4 reads what line 2 overwrites in the next round


def test_pointer_swap_in_a_loop_is_followed():
    n = Notation()
    a, b = n.shared("a", 160), n.shared("b", 160)
    p, q, spare, i, rounds = *(n.var(x, Pointer(4)) for x in "pqs"), n.var("i"), n.param("rounds")
    swap = [ir.Assign(spare, p), ir.Assign(p, q), ir.Assign(q, spare)]
    body = [n.read(p, TID + 1), n.write(q, TID), n.sync(), *swap]
    start = [ir.Assign(p, ir.AddressOf(a)), ir.Assign(q, ir.AddressOf(b)), n.let(i, 0)]
    assert verdict(n.kernel(*start, n.loop(E(i) < rounds, [n.let(i, E(i) + 1)], *body))) is Verdict.RACE_FREE


def test_block_scope_atomics_do_not_cover_two_blocks():
    n = Notation()
    count = n.globals("count", INT32)
    wide = n.kernel(n.atomic_add(count, 0))
    assert verdict(wide, grid=(2, 1, 1)) is Verdict.RACE_FREE
    (block,) = wide.body
    narrow = evolve(wide, body=(ir.Block(0, (evolve(block.body[0], scope=Scope.BLOCK),)),))
    assert verdict(narrow, grid=(2, 1, 1)) is Verdict.RACY
    assert verdict(narrow, grid=(1, 1, 1)) is Verdict.RACE_FREE


def test_what_is_not_translated_leaves_the_kernel_undecided_with_its_reason():
    n = Notation()
    kernel = n.kernel(ir.Incomplete("asm", "unknown instruction", n.site()))
    result = refine(kernel)
    assert result.verdict is Verdict.UNDECIDED
    assert result.reasons == ("asm is not analysed (unknown instruction; try `check --dynamic`)",)


def test_a_loop_of_unknown_updates_is_never_called_race_free():
    n = Notation()
    nxt, s, i = n.globals("next", INT32), n.shared("s", 160), n.var("i")
    walk = n.loop(E(i) > 0, [n.read(nxt, i, i)], n.write(s, i))
    result = refine(n.kernel(n.let(i, TID), walk))
    assert result.verdict is Verdict.UNDECIDED
    assert all(f.status is Status.POSSIBLE for f in result.findings)


def test_a_parameter_that_moves_an_index_out_of_bounds_is_conditional():
    n = Notation()
    shift, s = n.param("shift"), n.shared("s", 256)
    result = refine(n.kernel(n.when(shift >= 0, n.write(s, TID + shift))))
    (finding,) = result.findings
    assert finding.code is Code.SHARED_OUT_OF_BOUNDS
    assert finding.status is Status.CONDITIONAL
    assert finding.condition == "`shift` >= `blockDim.x` (128)" or "`shift` > " in finding.condition
    assert result.verdict is Verdict.RACE_FREE


def test_an_exchange_under_a_condition_on_data_races_when_the_condition_holds():
    """Compare and swap without a barrier: the reads happen anyway, the writes for some data."""
    n = Notation()
    s, a, b = n.shared("s", 256), n.var("a"), n.var("b")
    swap = n.when(E(a) > E(b), n.write(s, TID))
    result = refine(n.kernel(n.read(s, TID, a), n.read(s, TID + 1, b), swap))
    (finding,) = result.findings
    assert result.verdict is Verdict.RACY
    assert finding.status is Status.CONDITIONAL
    assert finding.condition == f"the condition on line {swap.site.range.start.line} is true"


def test_a_masked_index_takes_its_size_to_be_a_power_of_two():
    """The bitonic merge: ``pos = 2*i - (i & (stride - 1))`` is its thread's own for powers of two."""
    n = Notation()
    stride, out = n.param("stride"), n.globals("out")
    i = BID * BDIM + TID
    result = refine(n.kernel(n.write(out, i * 2 - (i & (stride - 1)))), grid=(4, 1, 1))
    assert result.verdict is Verdict.RACE_FREE
    assert result.assumptions == ("`stride` a power of two",)


def test_a_witness_shows_the_parameters_of_its_condition_and_no_others():
    """Not those whose names are part of a word in it, as `D` and `x` are of "`blockDim.x`"."""
    n = Notation()
    a = n.globals("a")
    shift, depth, x = n.param("n"), n.param("D"), n.param("x")
    i = BID * BDIM + TID
    result = refine(n.kernel(n.write(a, i), n.read(a, i + shift), n.when(x < depth, n.sync())))
    races = [f for f in result.findings if f.kind]
    assert [set(f.witness.values) for f in races] == [{"n"}]
    assert races[0].condition == "for example `n` == 1"
