"""The PTX emulator: values, races by happens-before, faults, divergent barriers, refusals."""

import numpy as np
import pytest

from cuda_lsp.dynamic.emulator.machine import Emulator, Untranslatable
from cuda_lsp.dynamic.ptx_reader import read_module
from cuda_lsp.model import Mode


def emulator(body: str) -> Emulator:
    return Emulator(
        read_module(
            ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
            ".reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .shared .align 4 .b8 s[1024];\n"
            "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;"
            f"add.s64 %rd3, %rd1, %rd2; mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.s32 %r4, %r2, %r3;\n"
            f"{body}\nret; }}"
        )
    )


NEIGHBOUR = "add.s32 %r5, %r1, 1; rem.s32 %r6, %r5, 256; shl.b32 %r7, %r6, 2; add.s32 %r8, %r2, %r7;"


def run(body: str, threads: int = 256, words: int = 256):
    return emulator(body).launch("k", (1, 1, 1), (threads, 1, 1), [np.zeros(words, np.int32)])


def test_neighbour_read_without_a_barrier_races():
    (race,) = run(f"st.shared.u32 [%r4], %r1; {NEIGHBOUR} ld.shared.u32 %r9, [%r8];").races
    assert set(race.modes) == {Mode.WRITE, Mode.READ} and race.pairs == 4 * 256


def test_neighbour_read_after_a_barrier_is_race_free_and_right():
    body = f"st.shared.u32 [%r4], %r1; bar.sync 0; {NEIGHBOUR} ld.shared.u32 %r9, [%r8];"
    body += "st.global.u32 [%rd3], %r9;"
    result = run(body)
    assert result.races == () and result.incomplete == ()
    assert (result.arrays[0] == np.roll(np.arange(256), -1)).all()


def test_warp_sync_orders_lanes_of_one_warp_only():
    body = f"st.shared.u32 [%r4], %r1; bar.warp.sync -1; {NEIGHBOUR} ld.shared.u32 %r9, [%r8];"
    (race,) = run(body).races
    assert race.pairs == 4 * 8  # one pair at the border of each warp, four bytes each


def test_one_word_written_by_all_lanes_races_with_itself():
    (race,) = run("st.shared.u32 [%r2], %r1;", threads=32).races
    assert race.sites[0] == race.sites[1]


def test_an_access_outside_the_buffer_is_a_fault_and_changes_nothing():
    result = run("st.global.u32 [%rd3], %r1;", threads=32, words=31)
    assert [f.thread for f in result.faults] == [31]
    assert (result.arrays[0] == np.arange(31)).all()


def test_a_barrier_that_some_threads_skip_is_reported():
    assert run("setp.lt.u32 %p1, %r1, 9; @%p1 bra $E; bar.sync 0;\n$E:", threads=32).divergent_barriers


def test_an_endless_loop_ends_with_a_reason():
    kernel = emulator("$L: bra $L;")
    result = kernel.launch("k", (1, 1, 1), (32, 1, 1), [np.zeros(1, np.int32)], max_steps=100)
    assert "did not end" in result.incomplete[0]


def test_an_unknown_instruction_is_refused_by_name():
    with pytest.raises(Untranslatable, match=r"wmma\.mma"):
        run("wmma.mma %r1;")


@pytest.mark.parametrize(
    ("opcode", "a", "b", "expected"),
    [
        ("div.s32", -7, 2, -3),
        ("rem.s32", -7, 2, -1),
        ("shl.b32", 1, 40, 0),
        ("shr.s32", -8, 40, -1),
        ("mul.lo.s32", 65537, 65537, 131073),
        ("min.u32", -1, 3, 3),
    ],
)
def test_integer_operations(opcode, a, b, expected):
    body = f"mov.u32 %r5, {a}; {opcode} %r6, %r5, {b}; st.global.u32 [%rd3], %r6;"
    assert (run(body, 32, 32).arrays[0] == expected).all()
