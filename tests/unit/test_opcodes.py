"""One row an opcode: the emulator, the sites, synchronisation and the probes agree on what it is."""

from __future__ import annotations

import pytest
from ptx_kernels import module as text_of
from ptx_kernels import run

from cuda_lsp.dynamic.compilation.compile import CompiledModule
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.tokens import TokenTable
from cuda_lsp.dynamic.emulator.translate import SEMANTICS, translate
from cuda_lsp.dynamic.instrumentation.probe_operands import zeroed
from cuda_lsp.dynamic.instrumentation.synchronisation import (
    has_order_of_blocks,
    has_order_of_threads,
    has_partial_order,
    literal_registers,
    participants,
)
from cuda_lsp.dynamic.ptx.flatten import Untranslatable
from cuda_lsp.dynamic.ptx.module import Instruction
from cuda_lsp.dynamic.ptx.opcodes import (
    ROWS,
    Opcode,
    Role,
    fences_blocks,
    is_fence,
    meets_lanes,
    results_of,
    row_named,
    row_of,
)
from cuda_lsp.dynamic.ptx.reader import read_module
from cuda_lsp.dynamic.runs import EngineUnavailable, Level, PtxSite, SiteKind
from cuda_lsp.model import Mode

STRUCTURE = {Role.JUMP, Role.LEAVE, Role.BARRIER, Role.WARP_BARRIER, Role.CLUSTER}
"""Roles that ``translate`` gives a meaning itself."""


def first_of(body: str, target: str = "sm_90") -> Instruction:
    """The first instruction of a body, behind the frame of the kernel."""
    frame = len(list(read_module(text_of("")).functions["k"].instructions())) - 1
    return list(read_module(text_of(body, target)).functions["k"].instructions())[frame]


def site_of(body: str) -> PtxSite | None:
    text = text_of(body, "sm_90")
    compiled = CompiledModule(text, TokenTable(()), Level.O0, "sm_90", 0.0)
    code = first_of(body)
    return next((s for s in sites_of(compiled, "k") if s.index == code.index), None)


def test_every_name_has_one_row() -> None:
    names = [row.name for row in ROWS]
    assert sorted(names) == sorted(set(names))
    assert all(row_named(row.name) is row for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_executed_or_said_not_to_be(row: Opcode) -> None:
    if row.executed:
        assert row.base in SEMANTICS or row.role in STRUCTURE
        return
    with pytest.raises(Untranslatable, match=row.base):
        translate(read_module(text_of(f"{row.name}.b32 %r5, %r6;", "sm_90")), "k")


@pytest.mark.parametrize("base", SEMANTICS)
def test_what_the_emulator_knows_has_a_row(base: str) -> None:
    assert any(row.base == base and row.executed for row in ROWS)


@pytest.mark.parametrize(
    "opcode", ["ld.shared.v2.u32", "ldmatrix.sync.aligned.m8n8.x1.shared.b16", "ldu.global.u32", "lddd.u32"]
)
def test_a_row_is_found_by_whole_words(opcode: str) -> None:
    assert row_named(opcode).name == opcode.partition(".")[0]


@pytest.mark.parametrize(
    ("opcode", "role"),
    [
        ("cp.async.ca.shared.global", Role.COPY),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", Role.UNCOVERED),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32", Role.UNCOVERED),
        ("cp.async.mbarrier.arrive.noinc.shared.b64", Role.COPY_WAIT),
        ("bar.warp.sync", Role.WARP_BARRIER),
        ("barrier.cluster.wait.aligned", Role.CLUSTER),
        ("bar.cta.red.popc.u32", Role.BARRIER),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", Role.PRODUCT),
        ("wmma.store.d.sync.aligned.row.m16n16k16.global.f32", Role.MATRIX),
        ("vote.sync.ballot.b32", Role.EXCHANGE),
        ("vote.ballot.b32", Role.VALUE),
        ("frobnicate.global.u32", Role.UNKNOWN),
    ],
)
def test_the_words_that_decide(opcode: str, role: Role) -> None:
    assert row_named(opcode).role is role


MEETINGS = (
    "shfl.sync.down.b32 %r5|%p1, %r1, 1, 31, {mask};",
    "vote.sync.ballot.b32 %r5, %p1, {mask};",
    "match.any.sync.b32 %r5, %r1, {mask};",
    "match.all.sync.b32 %r5|%p1, %r1, {mask};",
    "redux.sync.add.s32 %r5, %r1, {mask};",
    "elect.sync %r5|%p1, {mask};",
    "bar.warp.sync {mask};",
)


@pytest.mark.parametrize("text", MEETINGS)
def test_all_see_lanes_meet(text: str) -> None:
    """A site to watch, a wait of the emulator, and the operand that names who takes part."""
    whole, some = first_of(text.format(mask="-1")), first_of(text.format(mask="%r7"))
    assert meets_lanes(whole)
    assert (participants(whole, {}), participants(some, {})) == ("all", "%r7")
    assert has_partial_order(read_module(text_of(text.format(mask="15"))), "k")
    site = site_of(text.format(mask="-1"))
    assert site is not None and site.kind is SiteKind.WARP_SYNC
    program = translate(read_module(text_of(text.format(mask="-1"), "sm_90")), "k")
    assert [block.wait is not None for block in program.blocks].count(True) == 1


@pytest.mark.parametrize(
    ("text", "results"),
    [
        ("st.shared.u32 [%r4], %r1;", ()),
        ("ld.shared.v2.u32 {%r5, %r6}, [%r4];", ("{%r5, %r6}",)),
        ("atom.shared.add.u32 %r5, [%r4], 1;", ("%r5",)),
        ("red.shared.add.u32 [%r4], 1;", ()),
        ("bar.red.popc.u32 %r5, 0, %p1;", ("%r5",)),
        ("bar.sync %r5;", ()),
        ("bar.warp.sync %r5;", ()),
        ("mbarrier.init.shared.b64 [%r4], %r5;", ()),
        ("mbarrier.arrive.shared.b64 %rd5, [%r4];", ("%rd5",)),
        ("nanosleep.u32 %r5;", ()),
        ("sust.b.1d.b32.trap [%rd1, {%r5}], {%r6};", ()),
        ("cp.async.wait_group 1;", ()),
        ("setp.eq.u32 %p1|%p2, %r5, 0;", ("%p1|%p2",)),
    ],
)
def test_what_an_instruction_writes(text: str, results: tuple[str, ...]) -> None:
    code = first_of(text)
    assert results_of(code) == results
    types = dict.fromkeys(("%r5", "%r6"), "b32")
    loads = row_of(code).role is Role.ACCESS and results
    assert bool(loads) == (row_of(code).role is Role.ACCESS and bool(zeroed(code, types)))


def test_a_register_that_a_vector_writes_too_holds_no_literal() -> None:
    vector, single = "mov.b64 {%r5, %r6}, %rd1;", "mov.b32 %r5, %r1;"
    for other in (vector, single):
        function = read_module(text_of(f"mov.b32 %r5, -1; mov.b32 %r8, -1; {other}")).functions["k"]
        assert literal_registers(function) == {"%r8": "-1"}


@pytest.mark.parametrize(
    ("text", "orders", "blocks"),
    [
        ("membar.cta;", True, False),
        ("membar.gl;", True, True),
        ("fence.acq_rel.cluster;", True, True),
        ("fence.proxy.async;", False, False),
        ("fence.proxy.tensormap::generic.release.gpu;", False, False),
        ("fence.mbarrier_init.release.cluster;", False, False),
    ],
)
def test_who_sees_a_fence(text: str, orders: bool, blocks: bool) -> None:
    code = first_of(text)
    assert (is_fence(code), fences_blocks(code)) == (orders, blocks)


@pytest.mark.parametrize(
    ("text", "blocks", "threads"),
    [
        ("atom.acq_rel.gpu.global.add.u32 %r5, [%rd1], 1;", True, True),
        ("atom.acq_rel.global.add.u32 %r5, [%rd1], 1;", True, True),  # of the whole device, unless it says so
        ("atom.acq_rel.cluster.global.add.u32 %r5, [%rd1], 1;", True, True),
        ("atom.acq_rel.cta.global.add.u32 %r5, [%rd1], 1;", False, True),
        ("atom.global.add.u32 %r5, [%rd1], 1;", False, False),
        ("barrier.cluster.arrive.release.aligned;", False, False),
    ],
)
def test_accesses_that_order(text: str, blocks: bool, threads: bool) -> None:
    module = read_module(text_of(text, "sm_90"))
    assert (has_order_of_blocks(module, "k"), has_order_of_threads(module, "k")) == (blocks, threads)


@pytest.mark.parametrize(
    "text",
    [
        "frobnicate.global.u32 [%rd1], %r1;",
        "st.bulk.weak.shared::cta [%r4], 64, 0;",
        "discard.global.L2 [%rd1], 128;",
        "tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 1;",
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r4], [%r4];",
        "mapa.shared::cluster.u32 %r5, %r4, 0;",
        "st.shared::cluster.u32 [%r4], 1;",
    ],
)
def test_memory_that_no_engine_watches_is_said(text: str) -> None:
    site = site_of(text)
    assert site is not None and site.kind is SiteKind.OTHER


@pytest.mark.parametrize("text", ["add.u32 %r5, %r1, 1;", "membar.gl;", "activemask.b32 %r5;"])
def test_what_touches_no_memory_is_no_site(text: str) -> None:
    assert site_of(text) is None


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("ld.global.u32 %r5, [%rd1];", Mode.READ),
        ("ld.relaxed.gpu.global.u32 %r5, [%rd1];", Mode.ATOMIC_READ),
        ("ld.volatile.global.u32 %r5, [%rd1];", Mode.READ),
        ("st.release.gpu.global.u32 [%rd1], %r5;", Mode.ATOMIC),
        ("red.global.add.u32 [%rd1], %r5;", Mode.ATOMIC),
        ("cp.async.cg.shared.global [%r4], [%rd1], 16;", Mode.WRITE),
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r4], {%r5};", Mode.WRITE),
        ("sured.b.add.1d.u32.trap [%rd1, {%r5}], %r6;", Mode.ATOMIC),
    ],
)
def test_what_an_access_does(text: str, mode: Mode) -> None:
    site = site_of(text)
    assert site is not None and site.mode is mode


def test_a_bulk_store_is_refused_by_name() -> None:
    with pytest.raises(EngineUnavailable, match=r"st\.bulk"):
        run("st.bulk.weak.shared::cta [%r4], 64, 0;")
