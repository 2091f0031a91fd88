"""The exact machine: a thread alone does what the execution of all says of it; what nobody knows stays so."""

from __future__ import annotations

import numpy as np
import pytest
from extract_kernels import lowered
from hypothesis import event, given
from kernel_notation import TID, E, Notation, listing
from test_solve_properties import GPU, LAUNCH, kernels
from test_three_engines import EXAMPLES, cases, threads_of

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import BinaryOp
from cuda_lsp.ir.types import FLOAT32, INT32, INT64, Int, Type
from cuda_lsp.model import Dim3, LaunchConfig, Mode, Scope, Space
from cuda_lsp.static import budgets, work
from cuda_lsp.static.exact.code import whole_code
from cuda_lsp.static.exact.machine import runners_of
from cuda_lsp.static.exact.memory import Memory
from cuda_lsp.static.exact.replay import NeedsData, Run, TooLong, replay
from cuda_lsp.static.exact.threads import Thread
from cuda_lsp.static.exact.values import evaluator
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.execution.values import Data
from cuda_lsp.static.slicing import slice_kernel

Touched = tuple[Dim3, Dim3, int, ir.Array, int, Mode]
"""Block, thread, line, array, byte."""

ALONE = Thread((3, 0, 0), (0, 0, 0), (8, 1, 1), (1, 1, 1), 4)


# ------------------------------------------------------------------- against the other interpreter


def executed(kernel: ir.Kernel, launch: LaunchConfig, arguments: dict[str, int]) -> set[Touched] | None:
    """What threads access in the execution of all, which leaves out rounds that say nothing new. None: not
    decided."""
    blocks = tuple(dict.fromkeys(thread.bid for thread in threads_of(launch, GPU.warp_size)))
    trace = execute(kernel, launch, arguments, GPU, blocks=blocks)
    (path,) = trace.paths or (None,)
    if path is None or trace.undecided:
        return None
    found: set[Touched] = set()
    for access in path.accesses:
        if isinstance(access.offset, Data):
            return None
        offsets = np.broadcast_to(access.offset, access.must.shape)
        for index in map(tuple, np.argwhere(access.must).tolist()):
            who = trace.block(index[-1]), trace.thread(index[-1])
            found.add((*who, access.site.range.start.line, access.array, int(offsets[index]), access.mode))
    return found


def replayed(kernel: ir.Kernel, launch: LaunchConfig, arguments: dict[str, int]) -> set[Touched]:
    """The same, of every thread alone; what nobody writes is not told by the other."""
    found: set[Touched] = set()
    told = [a for a in kernel.arrays if a.space is Space.SHARED or a in slice_kernel(kernel).written]
    for thread in threads_of(launch, GPU.warp_size):
        for a in replay(kernel, thread, arguments, frozenset(kernel.arrays)).accesses:
            if a.array in told:
                line = a.site.range.start.line
                found.add((thread.bid, thread.tid, line, a.array, a.start, a.mode))
    return found


def check(kernel: ir.Kernel, launch: LaunchConfig, arguments: dict[str, int]) -> None:
    expected = executed(kernel, launch, arguments)
    event("undecided" if expected is None else "compared")
    if expected is not None:
        assert replayed(kernel, launch, arguments) == expected, listing(kernel.body)


@EXAMPLES
@given(kernels(jumps=True))
def test_a_thread_alone_accesses_what_it_does_among_others(kernel):
    check(kernel, LAUNCH, {})


@EXAMPLES
@given(kernels(free=True))
def test_so_it_does_for_values_of_a_parameter(kernel):
    for n in (-3, 0, 1, 5, 8):
        check(kernel, LAUNCH, {"n": n})


@EXAMPLES
@given(cases())
def test_so_it_does_in_blocks_with_atomics_and_barriers_of_warps(case):
    check(*case, {})


# ---------------------------------------------------------------------------------- what is not known


def value(e: ir.Expr, floats: bool = False) -> object:
    """Of an expression without variables, in thread 3."""
    (runner,) = runners_of(whole_code(Notation().kernel()), [ALONE], {})
    return evaluator(e, lambda var: 0, floats)(runner)


@pytest.mark.parametrize(
    ("op", "right", "result"),
    [
        (BinaryOp.DIV, 0, None),
        (BinaryOp.REM, 0, None),
        (BinaryOp.SHL, 32, None),
        (BinaryOp.SHR, -1, None),
        (BinaryOp.DIV, 2, 3),
        (BinaryOp.SHL, 31, -(1 << 31)),
    ],
)
def test_what_cpp_leaves_undefined_is_not_known(op: BinaryOp, right: int, result: int | None):
    assert value(ir.Binary(op, ir.const(7), ir.const(right), INT32)) == result


@pytest.mark.parametrize("number", [float("inf"), float("nan"), 1e300, -3e9])
def test_a_float_beyond_all_integers_is_none_of_them(number: float):
    assert value(ir.Cast(ir.Const(number, FLOAT32), INT32), floats=True) is None
    assert value(ir.Cast(ir.Const(7.9, FLOAT32), INT32), floats=True) == 7


def test_floats_are_not_known_unless_asked_for():
    half = ir.Binary(BinaryOp.MUL, ir.Cast(TID.node, FLOAT32), ir.Const(0.5, FLOAT32), FLOAT32)
    assert value(half) is None
    assert value(half, floats=True) == 1.5


def test_addresses_in_one_object_have_a_distance_and_others_none():
    n = Notation()
    s, other = n.shared("s", 8), n.shared("t", 8)
    apart = ir.Binary(BinaryOp.SUB, n.at(s, TID), ir.AddressOf(s), INT64)
    assert value(apart) == 12
    assert value(ir.Binary(BinaryOp.SUB, n.at(s, TID), ir.AddressOf(other), INT64)) is None


# --------------------------------------------------------------------------------------------- memory


def test_private_memory_knows_what_was_written_whole_and_last():
    memory, a = Memory(), ir.Array("a", Space.LOCAL, INT32, (4,), 1)
    wide, narrow = Int(64), Int(16, signed=False)
    held = memory.held(a)
    memory.store(held, 0, 8, 1 << 40)
    assert memory.load(held, a, 0, wide) == 1 << 40
    assert memory.load(held, a, 0, INT32) is None
    memory.store(held, 4, 4, -1)
    assert memory.load(held, a, 0, wide) is None
    assert memory.load(held, a, 4, INT32) == -1
    assert memory.load(held, a, 4, narrow) is None
    assert memory.load(held, a, 4, Int(32, signed=False)) == (1 << 32) - 1


def test_memory_with_first_contents_is_lost_when_read_in_two_sizes():
    memory, g = Memory(lambda array, offset, type: 7), ir.Array("g", Space.GLOBAL, INT32, (), 1)
    held = memory.held(g)
    assert memory.load(held, g, 4, INT32) == 7
    assert memory.load(held, g, 8, Int(64)) is None
    assert memory.load(held, g, 4, INT32) is None


def test_contents_that_are_said_are_read_as_the_type_that_reads_them():
    kernel = lowered("__global__ void k(const unsigned char* m, int* x) { if (m[0] == 44) x[0] = 1; }")
    assert [a.array.name for a in alone(kernel, memory=300).accesses] == ["m", "x"]


# --------------------------------------------------------------------------------- what is passed over


def alone(kernel: ir.Kernel, only: str = "", memory: int | None = None, choice: bool | None = None) -> Run:
    """A thread of the kernel, with ``only`` one array of interest, and one number all over global memory."""

    def held(array: ir.Array, offset: int, type: Type) -> int | None:
        return memory if array.space is Space.GLOBAL else None

    interesting = frozenset(a for a in kernel.arrays if a.name == only)
    return replay(kernel, ALONE, {}, interesting, held, choice)


@pytest.mark.parametrize(
    "inside",
    [
        "other[t] = 1;",
        "float* p = other; p[t] = 1;",
        "int k = 0; while (in[k] > 0) k++; other[k] = 1;",
    ],
)
def test_what_is_of_no_interest_is_passed_over(inside: str):
    kernel = lowered(
        "__global__ void k(float* out, float* other, const float* in) { int t = threadIdx.x;"
        f" if (in[t] > 0) {{ {inside} }} out[t] = 1; }}"
    )
    assert alone(kernel, "out").accesses[-1].array.name == "out"


@pytest.mark.parametrize(
    "inside",
    ["out[t] = 1;", "return;", "__syncthreads();", "float* p = t > 1 ? out : other; p[t] = 1;"],
)
def test_what_may_matter_is_not_passed_over(inside: str):
    kernel = lowered(
        "__global__ void k(float* out, float* other, const float* in) { int t = threadIdx.x;"
        f" if (in[t] > 0) {{ {inside} }} out[t] = 1; }}"
    )
    with pytest.raises(NeedsData) as cut:
        alone(kernel, "out")
    assert [a.array.name for a in cut.value.run.accesses] == ["in"]


def test_a_pointer_that_moves_in_what_is_passed_over_stays_in_its_array():
    kernel = lowered(
        "__global__ void k(float* out, const float* in) { const float* p = in; float v = 0;"
        " while (*p > 0) { v += *p; p++; } out[threadIdx.x] = v; }"
    )
    assert alone(kernel, "out").accesses[-1].array.name == "out"


def test_a_condition_that_nobody_knows_comes_out_as_chosen_and_is_told():
    kernel = lowered(
        "__global__ void k(float* out, const float* in) { int t = threadIdx.x;"
        " if (t < 4) if (in[t] > 0) { if (t > 1) out[t] = 1; } out[8] = 1; }"
    )
    stores = [a for a in alone(kernel, "out", choice=True).accesses if a.mode is Mode.WRITE]
    assert [a.start for a in stores] == [12, 32]
    assert [a.chosen and a.chosen[1] for a in stores] == [True, None]
    assert [a.start for a in alone(kernel, "out", choice=False).accesses if a.mode is Mode.WRITE] == [32]


@pytest.mark.parametrize(
    "loop",
    [
        "while (true) { if (in[0] > 1.0f) break; __syncthreads(); out[threadIdx.x] = 1; }",
        "while (n > 0) { if (in[n] > 1.0f) break; for (int j = 0; j < 3; ++j) out[j] = 1; }",
    ],
)
def test_a_round_that_changes_nothing_is_the_last_that_is_run(loop: str):
    kernel = lowered(f"__global__ void k(float* out, const float* in, int n) {{ {loop} }}")
    begun = work.DONE.instructions
    with pytest.raises(TooLong) as cut:
        replay(kernel, ALONE, {"n": 2}, frozenset(kernel.arrays), choice=False)
    assert {a.array.name for a in cut.value.run.accesses} == {"in", "out"}
    assert work.DONE.instructions - begun <= 2 * budgets.REPLAY_TURN


@pytest.mark.parametrize(
    "loop",
    [
        "while (n > 0) { if (in[n] > 1.0f) break; n--; }",
        "while (true) { int d[2]; d[1] = n--; if (in[0] > 1.0f || d[1] < 0) break; }",
        "for (int i = 0; i < n; ++i) for (int j = 0; j < 2; ++j) if (in[0] > 1.0f) out[0] = 1;",
    ],
)
def test_rounds_that_change_something_are_run_to_the_end(loop: str):
    kernel = lowered(f"__global__ void k(float* out, const float* in, int n) {{ {loop} out[9] = 1; }}")
    run = replay(kernel, ALONE, {"n": 5}, frozenset(kernel.arrays), choice=False)
    assert (run.accesses[-1].array.name, run.accesses[-1].start) == ("out", 36)


# ----------------------------------------------------------------------------- what is told of accesses


def test_rounds_are_those_finished_in_each_loop():
    n = Notation()
    s, i, j = n.shared("s", 64), n.var("i"), n.var("j")
    inner = n.loop(E(j) < 2, [n.let(j, E(j) + 1)], n.write(s, E(j)))
    outer = n.loop(E(i) < 2, [n.let(i, E(i) + 1)], n.let(j, 0), inner, n.write(s, 8))
    run = alone(n.kernel(n.let(i, 0), outer, n.write(s, 9)))
    assert [a.rounds for a in run.accesses] == [(0, 0), (0, 1), (0,), (1, 0), (1, 1), (1,), ()]


def test_a_lock_is_held_until_its_region_is_left_also_by_a_jump():
    n = Notation()
    s, lock = n.shared("s", 64), n.globals("lock", INT32)
    leave = n.when(TID.eq(3), ir.Leave(77, n.site()))
    held = ir.Block(78, (n.write(s, 0), leave, n.write(s, 1)), None, ir.Lock(n.at(lock, 2), Scope.DEVICE))
    run = alone(n.kernel(ir.Block(77, (held,)), n.write(s, 2)))
    assert [(a.start, a.held) for a in run.accesses] == [
        (0, frozenset({((lock, 8), Scope.DEVICE)})),
        (8, frozenset()),
    ]


def test_a_thread_that_does_not_end_is_cut():
    n = Notation()
    s, i = n.shared("s", 64), n.var("i")
    kernel = n.kernel(n.let(i, 0), n.loop(E(i) >= 0, [n.let(i, E(i) ^ 1)], n.write(s, E(i))))
    with pytest.raises(TooLong) as cut:
        alone(kernel)
    assert budgets.REPLAY_INSTRUCTIONS / 5 < len(cut.value.run.accesses) < budgets.REPLAY_INSTRUCTIONS / 3
