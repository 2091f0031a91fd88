"""The PTX emulator: values, races by happens-before, faults, barriers of all kinds, refusals."""

import gc
import time
import weakref

import numpy as np
import pytest
from attrs import evolve
from ptx_kernels import NEIGHBOUR, module, opcodes, request, run

from cuda_lsp.dynamic.emulator.engine import EmulatorEngine, Launch
from cuda_lsp.dynamic.runs import EngineUnavailable
from cuda_lsp.model import Mode, Space


def words(outcome, kind=np.int32):
    return outcome.results["out"].view(kind)


def test_neighbour_read_without_a_barrier_races():
    (race,) = run(f"st.shared.u32 [%r4], %r1; {NEIGHBOUR} ld.shared.u32 %r9, [%r8];").races
    assert set(race.modes) == {Mode.WRITE, Mode.READ}
    assert race.pairs == race.words == 256
    assert race.place.space is Space.SHARED and race.place.array == "s"
    assert abs(race.threads[0] - race.threads[1]) in (1, 255)


def test_neighbour_read_after_a_barrier_is_race_free_and_right():
    body = f"st.shared.u32 [%r4], %r1; bar.sync 0; {NEIGHBOUR} ld.shared.u32 %r9, [%r8];"
    result = run(body + "st.global.u32 [%rd3], %r9;")
    assert result.races == () and result.failure is None
    assert (words(result) == np.roll(np.arange(256), -1)).all()


def test_warp_sync_orders_lanes_of_one_warp_only():
    body = f"st.shared.u32 [%r4], %r1; bar.warp.sync -1; {NEIGHBOUR} ld.shared.u32 %r9, [%r8];"
    (race,) = run(body).races
    assert race.pairs == 8  # one pair at the border of each warp


def test_a_partial_warp_sync_orders_only_its_lanes():
    half = "and.b32 %r10, %r1, 16; setp.eq.u32 %p1, %r10, 0; selp.b32 %r11, 65535, -65536, %p1;"
    neighbour = "xor.b32 %r5, %r1, {}; shl.b32 %r7, %r5, 2; add.s32 %r8, %r2, %r7; ld.shared.u32 %r9, [%r8];"
    body = f"{half} st.shared.u32 [%r4], %r1; bar.warp.sync %r11; "
    assert run(body + neighbour.format(1), threads=32).races == ()
    assert run(body + neighbour.format(16), threads=32).races


def test_a_race_late_in_a_loop_of_warp_syncs_is_found():
    body = (
        "mov.u32 %r10, 0;\n$L: st.shared.u32 [%r2], %r1; bar.warp.sync -1; add.u32 %r10, %r10, 1;"
        "setp.lt.u32 %p1, %r10, 9; @%p1 bra $L; st.shared.u32 [%r2], 5; ld.shared.u32 %r9, [%r2];"
    )
    assert ("st.shared.u32", "ld.shared.u32") in opcodes(run(body, threads=32), body)


def test_one_word_written_by_all_lanes_races_with_itself():
    (race,) = run("st.shared.u32 [%r2], %r1;", threads=32).races
    assert race.sites[0] == race.sites[1] and not race.same_value


def test_one_value_written_by_all_lanes_is_told_apart():
    (race,) = run("st.shared.u32 [%r2], 7;", threads=32).races
    assert race.same_value


def test_bytes_of_one_word_do_not_race():
    body = "cvt.u16.u32 %h1, %r1; add.s32 %r5, %r2, %r1; st.shared.u8 [%r5], %h1;"
    assert run(body, threads=64).races == ()


def test_halves_that_overlap_bytes_do():
    body = (
        "cvt.u16.u32 %h1, %r1; add.s32 %r5, %r2, %r1; st.shared.u8 [%r5], %h1;"
        "and.b32 %r6, %r1, 62; add.s32 %r7, %r2, %r6; ld.shared.u16 %h2, [%r7];"
    )
    assert opcodes(run(body, threads=64), body) == {("st.shared.u8", "ld.shared.u16")}


def test_atomics_do_not_race_with_each_other_and_sum_up():
    body = (
        "atom.shared.add.u32 %r5, [%r2], 1; bar.sync 0; ld.shared.u32 %r6, [%r2]; st.global.u32 [%rd3], %r6;"
    )
    result = run(body)
    assert result.races == () and (words(result) == 256).all()


def test_an_atomic_races_with_a_plain_read():
    body = "atom.shared.add.u32 %r5, [%r2], 1; ld.shared.u32 %r6, [%r2];"
    assert opcodes(run(body), body) == {("atom.shared.add.u32", "ld.shared.u32")}


def test_an_atomic_load_writes_nothing():
    read = "ld.relaxed.cta.shared.u32 %r5, [%r2]; ld.shared.u32 %r6, [%r2];"
    assert run(read).races == ()
    body = f"setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r2], %r1; {read}"
    races = {race.modes for race in run(body).races}
    assert races == {(Mode.WRITE, Mode.READ), (Mode.WRITE, Mode.ATOMIC_READ)}
    load, store = "ld.relaxed.cta.global.u32 %r5, [%rd1];", "st.relaxed.cta.global.u32 [%rd1], %r1;"
    assert run(load, blocks=2).races == ()
    found = {race.modes for race in run(load + store, blocks=2).races}
    assert found == {(Mode.ATOMIC_READ, Mode.ATOMIC), (Mode.ATOMIC, Mode.ATOMIC)}


def test_tickets_are_handed_out_once_each():
    result = run("atom.shared.add.u32 %r5, [%r2], 1; st.global.u32 [%rd3], %r5;")
    assert sorted(words(result)) == list(range(256))


def test_blocks_race_in_global_memory():
    result = run("st.global.u32 [%rd3], %r1;", threads=32, blocks=2)
    (race,) = result.races
    assert race.blocks[0] != race.blocks[1] and race.place.array == "out"


LAST_BLOCK = (
    "mov.u32 %r20, %ctaid.x; shl.b32 %r21, %r20, 2; cvt.u64.u32 %rd4, %r21; add.s64 %rd5, %rd1, %rd4;"
    "st.global.u32 [%rd5+64], %r20; {fence} atom.global.add.u32 %r22, [%rd1], 1;"
    "setp.ne.u32 %p1, %r22, 1; @%p1 bra $E;"
    "ld.global.u32 %r23, [%rd1+64]; ld.global.u32 %r24, [%rd1+68];\n$E:"
)


def test_the_last_block_may_read_what_others_published():
    assert run(LAST_BLOCK.format(fence="membar.gl;"), threads=1, blocks=2).races == ()


def test_without_the_fence_it_races():
    assert run(LAST_BLOCK.format(fence=""), threads=1, blocks=2).races


def test_an_access_outside_the_buffer_is_a_fault_and_changes_nothing():
    result = run("st.global.u32 [%rd3], %r1;", threads=32, words=31)
    assert [(f.thread, f.place.array, f.place.offset) for f in result.faults] == [(31, "out", 124)]
    assert (words(result) == np.arange(31)).all()


def test_a_barrier_that_some_threads_skip_is_reported():
    result = run("setp.lt.u32 %p1, %r1, 9; @%p1 bra $E; bar.sync 0;\n$E:", threads=32)
    (stuck,) = result.stuck
    assert stuck.exited == 9 and stuck.waiting[0][1] == 23


def test_threads_at_different_counted_barriers_are_stuck():
    body = "setp.lt.u32 %p1, %r1, 32; @%p1 bra $A; bar.sync 1, 64; bra $E;\n$A: bar.sync 2, 64;\n$E:"
    result = run(body, threads=64)
    assert result.failure and "stuck" in result.failure
    assert sorted(n for _, n, _ in result.stuck[0].waiting) == [32, 32]


def test_one_instruction_may_name_a_barrier_per_warp():
    result = run("shr.u32 %r5, %r1, 6; bar.sync %r5, 64; st.global.u32 [%rd3], %r1;", threads=128)
    assert not result.failure and not result.stuck


def test_a_producer_arrives_and_a_consumer_waits():
    body = (
        "setp.lt.u32 %p1, %r1, 32; @%p1 bra $P; bar.sync 1, 64;"
        "sub.s32 %r5, %r4, 128; ld.shared.u32 %r9, [%r5]; st.global.u32 [%rd3], %r9; bra $E;\n"
        "$P: st.shared.u32 [%r4], %r1; bar.arrive 1, 64;\n$E:"
    )
    result = run(body, threads=64)
    assert result.races == () and result.failure is None
    assert (words(result)[32:64] == np.arange(32)).all()


def test_a_barrier_with_a_vote_gives_all_threads_the_count():
    body = "setp.lt.u32 %p1, %r1, 9; barrier.red.popc.u32 %r5, 0, %p1; st.global.u32 [%rd3], %r5;"
    assert (words(run(body.replace("barrier.red", "bar.red")), np.int32)[:256] == 9).all()


def test_shuffles_move_values_down_the_warp():
    body = "shfl.sync.down.b32 %r5|%p1, %r1, 1, 31, -1; st.global.u32 [%rd3], %r5;"
    expected = [i + 1 if i % 32 < 31 else i for i in range(64)]
    assert list(words(run(body, threads=64))[:64]) == expected


def test_lanes_that_diverged_meet_at_a_shuffle():
    body = (
        "and.b32 %r10, %r1, 1; setp.eq.u32 %p1, %r10, 0; mov.u32 %r11, 5; @%p1 bra $A; mov.u32 %r11, 6;\n"
        "$A: shfl.sync.bfly.b32 %r5, %r11, 1, 31, -1; st.global.u32 [%rd3], %r5;"
    )
    assert list(words(run(body, threads=4))[:4]) == [6, 5, 6, 5]


def test_lanes_that_come_late_to_a_shuffle_find_the_others_there():
    body = (
        "and.b32 %r10, %r1, 1; setp.eq.u32 %p1, %r10, 0; mov.u32 %r11, 5;\n"
        "@%p1 bra $A; mov.u32 %r11, 6; nanosleep.u32 0;\n"
        "$A: shfl.sync.bfly.b32 %r5, %r11, 1, 31, -1; st.global.u32 [%rd3], %r5;"
    )
    outcome = run(body, threads=4)
    assert outcome.failure is None
    assert list(words(outcome)[:4]) == [6, 5, 6, 5]


def test_a_lane_that_spins_on_another_gets_out():
    body = (
        "setp.eq.u32 %p1, %r1, 0; @%p1 bra $S;\n$L: ld.volatile.shared.u32 %r5, [%r2];"
        "setp.eq.u32 %p2, %r5, 0; @%p2 bra $L; bra $E;\n$S: st.volatile.shared.u32 [%r2], 1;\n$E:"
    )
    result = run(body, threads=32)
    assert result.failure is None


def test_a_block_meets_at_a_barrier_while_another_spins_on_it():
    body = """mov.u32 %r9, %ctaid.x; setp.eq.u32 %p1, %r9, 0; @%p1 bra $WRITE;
    $SPIN: ld.relaxed.gpu.global.u32 %r5, [%rd1]; setp.eq.u32 %p2, %r5, 0; @%p2 bra $SPIN; bra $END;
    $WRITE: bar.sync 0; mov.u32 %r6, 7; st.relaxed.gpu.global.u32 [%rd1], %r6; $END:"""
    outcome = run(body, 64, blocks=2, deadline=5.0)
    assert outcome.failure is None


def test_a_label_belongs_to_its_scope():
    loop = "{ .reg .pred %q; $L: add.u32 %r5, %r5, STEP; setp.lt.u32 %q, %r5, LIMIT; @%q bra $L; }"
    body = "mov.u32 %r5, 0; " + loop.replace("STEP", "3").replace("LIMIT", "10")
    body += loop.replace("STEP", "5").replace("LIMIT", "20") + "st.global.u32 [%rd3], %r5;"
    assert set(words(run(body, threads=32))[:32]) == {22}


def test_an_endless_loop_ends_with_a_reason():
    result = run("$L: bra $L;", threads=32, deadline=0.1)
    assert result.failure and "deadline" in result.failure


def test_an_unknown_instruction_is_refused_by_name():
    with pytest.raises(EngineUnavailable, match=r"wgmma\.mma_async"):
        run("wgmma.mma_async %r1;")


def test_lanes_on_a_long_way_meet_where_it_ends():
    """Only who comes round again and again lets others go first: those may be what they wait for."""
    steps = "".join(f"@%p2 bra $s{k}; add.u32 %r5, %r5, 1; $s{k}:\n" for k in range(80))
    result = run("atom.shared.cas.b32 %r5, [%r4], 0, 0; setp.gt.u32 %p1, %r1, 2; setp.gt.u32 %p2, %r1, 1;\n"
                 f"@%p1 bra $join;\n{steps} $join: st.shared.u32 [%r4], %r5;", banks=True)  # fmt: skip
    assert [(seen.executions, seen.wavefronts) for seen in result.banks] == [(8, 8), (8, 8)]


@pytest.mark.parametrize(
    ("body", "low", "high"),
    [
        ("redux.sync.max.u32 %r6, %r1, %r5;", 15, 31),
        ("redux.sync.add.u32 %r6, %r1, %r5;", 120, 376),
        ("vote.sync.ballot.b32 %r6, 1, %r5;", 0xFFFF, 0xFFFF0000),
        ("vote.sync.all.pred %p2, %p1, %r5; selp.u32 %r6, 1, 0, %p2;", 1, 0),
        ("vote.sync.any.pred %p2, %p1, %r5; selp.u32 %r6, 1, 0, %p2;", 1, 0),
        ("match.any.sync.b32 %r6, 7, %r5;", 0xFFFF, 0xFFFF0000),
        ("shr.u32 %r7, %r1, 4; match.all.sync.b32 %r6, %r7, %r5;", 0xFFFF, 0xFFFF0000),
    ],
)
def test_groups_of_a_warp_that_act_at_once_see_their_own_lanes(body: str, low: int, high: int):
    """Each names its own mask, as partitions of cooperative groups do."""
    ptx = module(f"setp.lt.u32 %p1, %r1, 16; selp.b32 %r5, 0xffff, 0xffff0000, %p1; {body}\n"
                 "st.global.u32 [%rd3], %r6;", "sm_80")  # fmt: skip
    result = EmulatorEngine(keep_results=True).run(request(ptx, 32, 32), lambda stage: None)
    assert result.results["out"].view(np.uint32).tolist() == [low] * 16 + [high] * 16


def test_banks_are_counted_per_site():
    result = run("shl.b32 %r5, %r1, 7; and.b32 %r6, %r5, 1023; add.s32 %r7, %r2, %r6;"
        "ld.shared.u32 %r8, [%r7];",
                 threads=32, banks=True)  # fmt: skip
    (seen,) = result.banks
    assert (seen.worst_ways, seen.worst_wavefronts, seen.executions) == (8, 8, 1)


def test_only_watched_sites_are_judged():
    body = "st.shared.u32 [%r2], %r1; st.shared.u32 [%r2+4], %r1;"
    every = run(body, threads=32).races
    assert len(every) == 2
    assert [r.sites for r in run(body, threads=32, watch=frozenset(every[0].sites)).races] == [every[0].sites]


@pytest.mark.parametrize(
    ("opcode", "a", "b", "expected"),
    [
        ("div.s32", -7, 2, -3),
        ("rem.s32", -7, 2, -1),
        ("shl.b32", 1, 40, 0),
        ("shr.s32", -8, 40, -1),
        ("mul.lo.s32", 65537, 65537, 131073),
        ("mul.hi.s32", -(2**31), 2, -1),
        ("min.u32", -1, 3, 3),
        ("bfind.u32", 0x00F0, None, 7),
        ("clz.b32", 0x00F0, None, 24),
        ("popc.b32", 0x00F0, None, 4),
        ("brev.b32", 1, None, -(2**31)),
        ("fns.b32", 0b101100, "0, 2", 3),  # the second set bit from bit 0 on
        ("fns.b32", 0b101100, "4, -1", 3),
        ("fns.b32", 0b101100, "5, 0", 5),
        ("fns.b32", 0b101100, "4, 0", -1),
    ],
)
def test_integer_operations(opcode, a, b, expected):
    second = "" if b is None else f", {b}"
    body = f"mov.u32 %r5, {a}; {opcode} %r6, %r5{second}; st.global.u32 [%rd3], %r6;"
    assert (words(run(body, 32, 32)) == expected).all()


def test_a_carry_runs_through_wide_sums():
    body = "mov.u32 %r5, -1; add.cc.u32 %r6, %r5, 1; addc.u32 %r7, 5, 0; st.global.u32 [%rd3], %r7;"
    assert (words(run(body, 32, 32)) == 6).all()


def test_a_borrow_runs_through_wide_differences():
    body = "mov.u32 %r5, 0; sub.cc.u32 %r6, %r5, 1; subc.u32 %r7, 5, 0; st.global.u32 [%rd3], %r7;"
    assert (words(run(body, 32, 32)) == 4).all()


@pytest.mark.parametrize(("mode", "expected"), [("rn", 0.1), ("rz", 0.1), ("rm", 0.1), ("rp", 0.1)])
def test_directed_rounding_brackets_the_exact_value(mode, expected):
    body = f"mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f41200000; mul.{mode}.f32 %f3, %f1, 0f3DCCCCCD;"
    body += f"add.{mode}.f32 %f4, %f3, 0f33000000; st.global.f32 [%rd3], %f4;"
    got = float(words(run(body, 32, 32), np.float32)[0])
    exact = float(np.float32(0.1)) + float(np.float32(2**-25))
    assert abs(got - expected) < 1e-6
    if mode in ("rz", "rm"):
        assert got <= exact
    if mode == "rp":
        assert got >= exact


@pytest.mark.parametrize(
    ("code", "value", "expected"),
    [("shl.b32", 5, 20), ("shl.b32", -1, -4), ("shr.s32", -8, -2), ("shr.u32", -8, 0x3FFFFFFE)],
)
@pytest.mark.parametrize("amount", ["2", "%r10"])
def test_shifts_by_constants_and_by_registers(code, value, expected, amount):
    body = f"mov.u32 %r10, 2; mov.u32 %r9, {value}; {code} %r9, %r9, {amount}; st.global.u32 [%rd3], %r9;"
    assert words(run(body, threads=32))[0] == expected


@pytest.mark.parametrize(("code", "expected"), [("shl.b32", 0), ("shr.s32", -1), ("shr.u32", 0)])
def test_a_shift_by_the_width_moves_everything_out(code, expected):
    body = f"mov.u32 %r9, -8; {code} %r9, %r9, 32; st.global.u32 [%rd3], %r9;"
    assert words(run(body, threads=32))[0] == expected


def test_a_launch_that_does_not_end_is_judged_in_time_and_says_what_it_left_out(monkeypatch):
    """What it logged grows with its deadline: all of it would take as long again, and longer."""
    from cuda_lsp.dynamic.emulator import detect

    monkeypatch.setattr(detect, "_CUT", 10_000)
    body = "$L: st.global.u32 [%rd1], %r1; add.u32 %r1, %r1, 1; bra $L;"
    result = run(body, deadline=0.3)
    assert result.failure is not None and result.races
    assert any("of a launch that did not end" in note for note in result.not_covered)


def test_a_second_order_of_the_warps_gets_what_is_left_of_the_deadline():
    loops = "setp.lt.u32 %p1, %r10, 3000; @%p1 bra $L;"
    body = f"mov.u32 %r10, 0; $L: st.shared.u32 [%r2], %r1; bar.sync 0; add.u32 %r10, %r10, 1; {loops}"
    began = time.monotonic()
    result = run(body, deadline=1.0)
    assert result.races
    assert time.monotonic() - began < 3.0


@pytest.mark.parametrize(("space", "size"), [("shared", 1023 << 10), ("local", 1 << 24)])
def test_memory_that_no_gpu_has_is_told(space: str, size: int):
    with pytest.raises(EngineUnavailable, match=f"KiB of {space} memory; a"):
        run(f".{space} .align 4 .b8 large[{size}]; mov.u64 %rd5, large; st.{space}.u32 [%rd5], %r1;")


def test_a_kernel_whose_code_was_thrown_away_runs():
    empty = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 out) {\n}"
    assert EmulatorEngine().run(request(empty), lambda stage: None).failure is None


def test_an_access_outside_local_memory_is_told():
    body = ".local .align 4 .b8 a[16]; mov.u64 %rd5, a; st.local.u32 [%rd5+1073741824], %r1;"
    made = request(module(body))
    made = evolve(made, sites=tuple(site for site in made.sites if site.opcode != "st.local.u32"))
    outcome = EmulatorEngine().run(made, lambda stage: None)
    assert any("outside local or constant memory" in note for note in outcome.not_covered)


def test_the_memory_of_a_launch_goes_with_it_and_waits_for_no_collection_of_rubbish():
    engine = EmulatorEngine()
    asked = request(module("st.global.u32 [%rd3], %r1;"))
    gc.collect()
    gc.disable()
    try:
        launch = Launch(engine.translated(asked.ptx, asked.entry), asked)
        launch.outcome()
        arena = weakref.ref(launch.memory)
        del launch
        assert arena() is None
    finally:
        gc.enable()


def test_buffers_are_in_the_outcome_only_where_somebody_asks():
    asked = request(module("st.global.u32 [%rd3], %r1;"))
    assert EmulatorEngine().run(asked, lambda stage: None).results == {}
    kept = EmulatorEngine(keep_results=True).run(asked, lambda stage: None)
    assert words(kept).tolist() == list(range(256))
