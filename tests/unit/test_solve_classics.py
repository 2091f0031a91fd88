"""The textbook kernels, for all arguments: correct ones proved, each with a barrier removed refuted."""

from __future__ import annotations

import pytest
from kernel_notation import BDIM, BID, BIDY, TID, TIDY, E, Notation

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.types import FLOAT32, INT32, Pointer
from cuda_lsp.model import LaunchConfig, LaunchSource, RaceKind, Status, Verdict
from cuda_lsp.static.solver.solve import refine_kernel

GPU = GpuModel("test", (9, 0))


def refine(kernel, block=(256, 1, 1), grid=None, source=LaunchSource.FILE, gpu=GPU, **arguments):
    return refine_kernel(kernel, [LaunchConfig(block, grid, source=source, arguments=arguments)], gpu)


def figure1(n: Notation, barrier: bool) -> ir.Kernel:
    s, out = n.shared("s", 256), n.globals("out")
    between = [n.sync()] if barrier else []
    result = n.write(out, BID * BDIM + TID)
    return n.kernel(n.write(s, TID, TID), *between, n.read(s, (TID + 1) % BDIM), result)


def reduction(n: Notation, drop: int) -> ir.Kernel:
    size, s, stride = n.param("n"), n.shared("s", 256), n.var("stride")
    g, out = n.globals("g"), n.globals("out")
    i = BID * BDIM + TID
    body = [n.when(i < size, n.read(g, i)), n.write(s, TID), *barrier(n, drop, 1), n.let(stride, BDIM // 2)]
    half = n.when(stride > TID, n.read(s, TID + stride), n.read(s, TID), n.write(s, TID))
    inner = [half, *barrier(n, drop, 2)]
    body += [n.loop(E(stride) > 0, [n.let(stride, E(stride) >> 1)], *inner)]
    return n.kernel(*body, n.when(TID.eq(0), n.read(s, 0), n.write(out, BID)))


def barrier(n: Notation, drop: int, number: int) -> list[ir.Stmt]:
    return [] if drop == number else [n.sync()]


def scan(n: Notation, drop: int) -> ir.Kernel:
    s, d, off, ai, bi = n.shared("temp", 512), n.var("d"), n.var("offset"), n.var("ai"), n.var("bi")
    place = [n.let(ai, E(off) * (TID * 2 + 1) - 1), n.let(bi, E(off) * (TID * 2 + 2) - 1)]
    body = [n.let(off, 1), n.write(s, TID * 2), n.write(s, TID * 2 + 1), n.let(d, BDIM)]
    up = n.when(d > TID, *place, n.read(s, ai), n.read(s, bi), n.write(s, bi))
    up_step = [n.let(d, E(d) >> 1)]
    body += [n.loop(E(d) > 0, up_step, *barrier(n, drop, 1), up, n.let(off, E(off) * 2))]
    body += [n.when(TID.eq(0), n.write(s, BDIM * 2 - 1)), n.let(d, 1)]
    down = n.when(d > TID, *place, n.read(s, ai), n.read(s, bi), n.write(s, ai), n.write(s, bi))
    half = n.let(off, E(off) >> 1)
    body += [n.loop(E(d) < BDIM * 2, [n.let(d, E(d) * 2)], half, *barrier(n, drop, 2), down)]
    return n.kernel(*body, *barrier(n, drop, 3), n.read(s, TID), n.read(s, TID + BDIM))


def matmul(n: Notation, drop: int) -> ir.Kernel:
    size, a_in, out = n.param("N"), n.globals("A"), n.globals("C")
    a, b, m, k = n.shared("a", 16, 16), n.shared("b", 16, 16), n.var("m"), n.var("k")
    row, col = BIDY * 16 + TIDY, BID * 16 + TID
    own = TIDY * 16 + TID
    inner = [n.read(a_in, row * size + E(m) * 16 + TID), n.write(a, own), n.write(b, own)]
    inner += [*barrier(n, drop, 1), n.let(k, 0)]
    inner += [n.loop(E(k) < 16, [n.let(k, E(k) + 1)], n.read(a, TIDY * 16 + k), n.read(b, E(k) * 16 + TID))]
    inner += barrier(n, drop, 2)
    rounds = n.loop(E(m) < size // 16, [n.let(m, E(m) + 1)], *inner)
    inside = (row < size).and_(col < size)
    return n.kernel(n.let(m, 0), rounds, n.when(inside, n.write(out, row * size + col)))


def transpose(n: Notation, drop: int) -> ir.Kernel:
    width, height, data, out = n.param("width"), n.param("height"), n.globals("in"), n.globals("out")
    tile = n.shared("tile", 16, 17)
    x, y = BID * 16 + TID, BIDY * 16 + TIDY
    load = n.when((x < width).and_(y < height), n.read(data, y * width + x), n.write(tile, TIDY * 17 + TID))
    x, y = BIDY * 16 + TID, BID * 16 + TIDY
    store = n.when((x < height).and_(y < width), n.read(tile, TID * 17 + TIDY), n.write(out, y * height + x))
    return n.kernel(load, *barrier(n, drop, 1), store)


def stencil(n: Notation, drop: int) -> ir.Kernel:
    size, s, data, out, i = n.param("n"), n.shared("s", 262), n.globals("in"), n.globals("out"), n.var("i")
    halo = n.when(TID < 3, n.write(s, TID), n.write(s, TID + 259))
    read = n.loop(E(i) <= 3, [n.let(i, E(i) + 1)], n.read(s, TID + 3 + i))
    own = n.when(size > BID * BDIM + TID, n.read(data, BID * BDIM + TID))
    start = n.let(i, -3)
    write = n.when(size > BID * BDIM + TID, n.write(out, BID * BDIM + TID))
    return n.kernel(own, n.write(s, TID + 3), halo, *barrier(n, drop, 1), start, read, write)


def bitonic(n: Notation, drop: int) -> ir.Kernel:
    s, k, j, other = n.shared("s", 256), n.var("k"), n.var("j"), n.var("other")
    swap = n.when(E(other) > TID, n.read(s, TID), n.read(s, other), n.write(s, TID), n.write(s, other))
    inner = n.loop(E(j) > 0, [n.let(j, E(j) >> 1)], n.let(other, TID ^ E(j)), swap, *barrier(n, drop, 2))
    outer = n.loop(E(k) <= BDIM, [n.let(k, E(k) * 2)], n.let(j, E(k) >> 1), inner)
    return n.kernel(n.write(s, TID), *barrier(n, drop, 1), n.let(k, 2), outer, n.read(s, TID))


def histogram(n: Notation, drop: int) -> ir.Kernel:
    size, data, out = n.param("n"), n.globals("data", INT32), n.globals("out", INT32)
    bins, i, bin = n.shared("bins", 256, element=INT32), n.var("i"), n.var("bin")
    count = n.loop(
        E(i) < size, [n.let(i, E(i) + BDIM)], n.read(data, i, bin), n.atomic_add(bins, E(bin) & 255)
    )
    into = n.var("value")
    clear = n.write(bins, TID, 0)
    return n.kernel(
        clear, *barrier(n, drop, 1), n.let(i, TID), count, *barrier(n, drop, 2), n.read(bins, TID, into),
        n.atomic_add(out, TID),
    )  # fmt: skip


def double_buffer(n: Notation, drop: int) -> ir.Kernel:
    rounds, a, b = n.param("rounds"), n.shared("a", 256), n.shared("b", 256)
    p, q, swap, i = (n.var(x, Pointer(4)) for x in ("p", "q", "swap")), None, None, n.var("i")
    front, back, spare = p
    del q, swap
    body = [n.read(front, (TID + 1) % BDIM), n.write(back, TID), *barrier(n, drop, 2)]
    exchange = [ir.Assign(spare, front), ir.Assign(front, back), ir.Assign(back, spare)]
    init = [ir.Assign(front, ir.AddressOf(a)), ir.Assign(back, ir.AddressOf(b)), n.write(a, TID)]
    loop = n.loop(E(i) < rounds, [n.let(i, E(i) + 1)], *body, *exchange)
    return n.kernel(*init, *barrier(n, drop, 1), n.let(i, 0), loop)


CLASSICS = {
    "figure1": (lambda n, drop: figure1(n, drop == 0), (256, 1, 1), 1),
    "reduction": (reduction, (256, 1, 1), 2),
    "scan": (scan, (256, 1, 1), 3),
    "matmul": (matmul, (16, 16, 1), 2),
    "transpose": (transpose, (16, 16, 1), 1),
    "stencil": (stencil, (256, 1, 1), 1),
    "bitonic": (bitonic, (256, 1, 1), 2),
    "histogram": (histogram, (256, 1, 1), 2),
    "double_buffer": (double_buffer, (256, 1, 1), 2),
}
BROKEN = [(name, drop) for name, (_, _, count) in CLASSICS.items() for drop in range(1, count + 1)]


@pytest.mark.parametrize("name", CLASSICS)
def test_the_correct_kernel_is_proved_race_free_for_all_arguments(name):
    build, block, _ = CLASSICS[name]
    result = refine(build(Notation(), 0), block)
    assert result.verdict is Verdict.RACE_FREE, (result.reasons, [f.message for f in result.findings])


@pytest.mark.parametrize(("name", "drop"), BROKEN)
def test_without_a_barrier_there_is_a_replayed_witness(name, drop):
    build, block, _ = CLASSICS[name]
    result = refine(build(Notation(), drop), block)
    assert result.verdict is Verdict.RACY, result.reasons
    assert any(f.witness for f in result.findings)
    assert all(f.status in (Status.PROVED, Status.CONDITIONAL, Status.POSSIBLE) for f in result.findings)


def test_the_condition_names_the_parameter_that_the_race_needs():
    n = Notation()
    stride, s = n.param("stride"), n.shared("s", 512)
    kernel = n.kernel(n.read(s, TID + stride), n.write(s, TID))
    (finding,) = (f for f in refine(kernel).findings if f.kind is not None)
    assert finding.status is Status.CONDITIONAL
    assert finding.kind is RaceKind.WAR
    assert finding.condition == "for example `stride` == 1"  # below 256 it races, but not for 0


def test_an_atomic_ticket_is_a_slot_of_its_own():
    n = Notation()
    count, out, slot = n.globals("count", INT32), n.globals("out", FLOAT32), n.var("slot")
    kernel = n.kernel(n.atomic_add(count, 0, slot), n.write(out, slot))
    assert refine(kernel).verdict is Verdict.RACE_FREE


def test_a_data_dependent_index_is_only_possible():
    n = Notation()
    where, s, i = n.globals("where", INT32), n.shared("s", 256), n.var("i")
    kernel = n.kernel(n.read(where, TID, i), n.write(s, i))
    result = refine(kernel, grid=(1, 1, 1))
    assert result.verdict is Verdict.UNDECIDED
    assert [f.status for f in result.findings] == [Status.POSSIBLE]
    assert result.findings[0].reason == "whether `where` holds a number twice"


def test_a_proof_for_an_assumed_launch_extends_to_every_launch():
    n = Notation()
    size, out = n.param("n"), n.globals("out")
    i = BID * BDIM + TID
    result = refine(n.kernel(n.when(i < size, n.write(out, i))), source=LaunchSource.DEFAULT)
    assert result.verdict is Verdict.RACE_FREE
    assert result.every_launch


def test_lanes_of_one_warp_need_a_warp_barrier_since_volta():
    def kernel(barrier: bool) -> ir.Kernel:
        n = Notation()
        s = n.shared("s", 64)
        return n.kernel(n.write(s, TID), *([n.syncwarp()] if barrier else []), n.read(s, TID + 1))

    assert refine(kernel(False), (32, 1, 1)).verdict is Verdict.RACY
    assert refine(kernel(True), (32, 1, 1)).verdict is Verdict.RACE_FREE
    assert refine(kernel(True), (64, 1, 1)).verdict is Verdict.RACY
    old = refine(kernel(False), (32, 1, 1), gpu=GpuModel("old", (6, 1)))
    assert all(f.lanes_only for f in old.findings)  # which ``lock_step`` judges


def test_a_barrier_under_a_thread_dependent_condition_diverges():
    n = Notation()
    result = refine(n.kernel(n.when(TID < 10, n.sync())), (64, 1, 1))
    assert [f.code.value for f in result.findings] == ["barrier-divergence"]
    assert result.findings[0].status is Status.PROVED
