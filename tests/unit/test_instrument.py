"""Probes in PTX: what is watched, what is left alone, and that the assembler accepts it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from attrs import evolve

from cuda_lsp.dynamic.compilation.toolkit import ToolkitMissing, find_toolkit
from cuda_lsp.dynamic.gpu.launch import instrumented
from cuda_lsp.dynamic.gpu.records import control_offsets
from cuda_lsp.dynamic.instrumentation.detector import AssemblyError, assembled, detector_ptx
from cuda_lsp.dynamic.instrumentation.instrument import (
    Instrumented,
    instrument,
)
from cuda_lsp.dynamic.instrumentation.preparation import finest_granule, shared_variables
from cuda_lsp.dynamic.instrumentation.shadow import ShadowLayout
from cuda_lsp.dynamic.instrumentation.synchronisation import (
    has_partial_order,
    meets_in_clusters,
)
from cuda_lsp.dynamic.instrumentation.watch import Watch
from cuda_lsp.dynamic.ptx.functions import (
    calls_stored_pointers,
    keeps_functions,
    launches_kernels,
)
from cuda_lsp.dynamic.ptx.reader import read_module
from cuda_lsp.dynamic.runs import KernelRun, PtxSite, SiteKind
from cuda_lsp.model import LaunchConfig, Mode, Space

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = (
    HEAD
    + """
.func put(.param .b32 put_0) {
	.reg .b32 %r<3>;
	ld.param.u32 %r1, [put_0];
	st.shared.u32 [%r1], %r1;
	ret;
}
.visible .entry k(.param .u64 k_0) {
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	.reg .b64 %rd<3>;
	.shared .align 4 .b8 s[256];
	ld.param.u64 %rd1, [k_0];
	mov.u32 %r1, %tid.x;
	setp.eq.u32 %p1, %r1, 0;
	mov.u32 %r2, s;
	@%p1 st.shared.u32 [%r2+4], %r1;
	bar.sync 0;
	ld.shared.u32 %r3, [%r2];
	{ .param .b32 p0; st.param.b32 [p0], %r2; call.uni put, (p0); }
	{ .param .b32 p0; st.param.b32 [p0], %r2; call.uni put, (p0); }
	st.global.u32 [%rd1], %r3;
	ret;
}
"""
)


def access(
    function: str, index: int, mode: Mode, space: Space, via: tuple[tuple[str, int], ...] = ()
) -> PtxSite:
    return PtxSite(function, index, SiteKind.ACCESS, "", None, mode, space, 4, via=via)


def sites(told_apart: bool = False) -> tuple[PtxSite, ...]:
    puts = [(("k", call),) for call in (_calls() if told_apart else ())] or [()]
    return (
        access("k", 4, Mode.WRITE, Space.SHARED),
        PtxSite("k", 5, SiteKind.BARRIER, "bar.sync", None),
        access("k", 6, Mode.READ, Space.SHARED),
        *(access("put", 1, Mode.WRITE, Space.SHARED, via) for via in puts),
        access("k", _index("st.global.u32"), Mode.WRITE, Space.GLOBAL),
    )


def _calls() -> list[int]:
    return [i.index for i in read_module(KERNEL).entries["k"].instructions() if i.base == "call"]


def _index(opcode: str) -> int:
    return next(i.index for i in read_module(KERNEL).entries["k"].instructions() if i.opcode == opcode)


LAYOUT = ShadowLayout((64, 1, 1), 0, atomics=False)


def made(
    told_apart: bool = False, watched: frozenset[int] | None = None, sampled: bool = False, races: bool = True
) -> Instrumented:
    watch = Watch("k", LAYOUT, control_offsets(), ("s",), watched, races=races, ranges=1, sampled=sampled)
    return instrument(read_module(KERNEL), sites(told_apart), watch, "")


def test_every_watched_shared_access_gets_a_probe() -> None:
    assert made().probed == 3
    assert made(watched=frozenset({0})).probed == 1
    assert made(watched=frozenset(), races=False).probed == 0


def test_other_kernels_are_left_out() -> None:
    text = KERNEL + ".visible .entry other() { ret; }\n.visible .entry named() { ret; }\n"
    text += ".global .align 8 .u64 table[1] = {named};\n"
    watch = Watch("k", LAYOUT, control_offsets(), ("s",), ranges=1)
    result = instrument(read_module(text), sites(), watch, "").text
    assert "other(" not in result
    assert "named(" in result


def test_a_guarded_access_is_probed_only_when_it_happens() -> None:
    text = made().text
    text = text[text.index(".entry") :]
    branch, store = text.index("@!%p1 bra"), text.index("@%clsp_ok st.shared.u32 [%r2+4]")
    assert branch < text.index("atom.shared.exch") < store


def test_a_load_outside_the_block_s_memory_gives_zero() -> None:
    assert "@!%clsp_ok mov.b32 %r3, 0;" in made().text


IMAGES = (
    "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];",
    "sust.b.2d.b32.trap [%rd1, {%r1, %r2}], {%r3};",
)


def test_what_reads_and_writes_images_stands_beside_what_is_probed() -> None:
    watch = Watch("k", LAYOUT, control_offsets(), ("s",), ranges=1)
    result = instrument(read_module(with_images()), sites(), watch, "")
    assert result.probed == 3
    assert all(image in result.text for image in IMAGES)


def with_images() -> str:
    before, _, after = KERNEL.rpartition("ret;")
    return f"{before}{{ .reg .f32 %f<7>; {' '.join(IMAGES)} }} ret;{after}"


def test_callers_are_told_apart_when_their_sites_differ() -> None:
    assert made().text.count("_put(") == 2  # one copy: declared and defined
    assert made(told_apart=True).text.count("_put(") == 4


def test_blocks_that_are_not_checked_keep_their_own_code() -> None:
    text = made(sampled=True).text
    assert "$clsp_watched:" in text
    assert "@%p1 st.shared.u32 [%r2+4], %r1;" in text


def test_the_narrowest_access_sets_the_granule() -> None:
    narrow = PtxSite("k", 0, SiteKind.ACCESS, "st.shared.u8", None, Mode.WRITE, Space.SHARED, 1)
    assert finest_granule(sites(), (Space.SHARED,)) == 2
    assert finest_granule((*sites(), narrow), (Space.SHARED,)) == 0


@pytest.mark.parametrize(
    ("statement", "partial"),
    [
        ("bar.sync 0;", False),
        ("barrier.sync 1;", False),
        ("bar.sync 1, 64;", True),
        ("bar.arrive 1, 64;", True),
        ("bar.warp.sync -1;", False),
        ("bar.warp.sync 0xffff;", True),
        ("mov.u32 %r5, -1; bar.warp.sync %r5;", False),
        ("bar.red.popc.u32 %r5, 0, %p1;", False),
        ("bar.red.popc.u32 %r5, 0, 64, %p1;", True),
        ("shfl.sync.down.b32 %r5, %r4, 1, 31, 0xffffffff;", False),
    ],
)
def test_who_takes_part_in_a_synchronisation(statement: str, partial: bool) -> None:
    text = KERNEL.replace("bar.sync 0;", statement)
    assert has_partial_order(read_module(text), "k") is partial


def test_the_launch_needs_room_for_stamps_and_cells() -> None:
    layout = evolve(LAYOUT, static_bytes=256)
    assert layout.dynamic_bytes >= 64 * 8 + 256 // 4 * 32
    assert [v.name for v in shared_variables(read_module(KERNEL), "k")] == ["s"]


def test_a_launch_as_clusters_is_declared_by_the_kernel() -> None:
    watch = Watch("k", LAYOUT, control_offsets(), ("s",), ranges=1, cluster=(2, 1, 1))
    assert (
        ".explicitcluster\n.reqnctapercluster 2, 1, 1"
        in instrument(read_module(KERNEL), sites(), watch, "").text
    )


def test_the_assembler_is_told_how_many_blocks_are_to_fit() -> None:
    watch = Watch("k", LAYOUT, control_offsets(), ("s",), ranges=1, resident=7)
    text = instrument(read_module(KERNEL), sites(), watch, "").text
    assert ".maxntid 64, 1, 1" in text and ".minnctapersm 7" in text


@pytest.mark.parametrize(
    ("barrier", "first"),
    [
        ("barrier.sync 0;", True),
        ("barrier.cta.sync 0;", True),
        ("barrier.cta.sync.aligned 0;", False),
        ("bar.sync 0;", False),
        ("barrier.sync 1, 64;", False),
    ],
)
def test_lanes_meet_before_a_barrier_that_takes_them_one_by_one(barrier: str, first: bool) -> None:
    text = KERNEL.replace("bar.sync 0;", barrier)
    for races in (True, False):
        watch = Watch("k", LAYOUT, control_offsets(), ("s",), ranges=1, races=races, banks=not races)
        made = instrument(read_module(text), sites(), watch, "").text
        lines = [line.strip() for line in made.splitlines() if line.strip()]
        assert (lines[lines.index(barrier) - 1] == "bar.warp.sync -1;") == first


def test_a_cluster_s_barrier_begins_a_new_interval() -> None:
    text = KERNEL.replace("bar.sync 0;", "barrier.cluster.arrive; barrier.cluster.wait;")
    watch = Watch("k", LAYOUT, control_offsets(), ("s",), ranges=1)
    made = instrument(read_module(text), sites(), watch, "").text
    assert made.index("barrier.cluster.wait;") < made.index("add.u32 %clsp_hi")
    assert meets_in_clusters(read_module(text), "k")
    assert not meets_in_clusters(read_module(KERNEL), "k")


def test_launches_from_the_device_are_recognised() -> None:
    call = "{ .param .b32 q; call (q), cudaLaunchDeviceV2, (); }"
    head = ".extern .func (.param .b32 r) cudaLaunchDeviceV2();\n"
    text = KERNEL.replace(HEAD, HEAD + head).replace("bar.sync 0;", call)
    assert launches_kernels(read_module(text), "k")
    assert not launches_kernels(read_module(KERNEL), "k")


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(("in_global", "stamps"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("atomics", [False, True])
def test_ptxas_accepts_the_instrumented_kernel(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sampled: bool,
    in_global: bool,
    stamps: bool,
    atomics: bool,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    try:
        toolkit = find_toolkit()
        detector = detector_ptx(toolkit, 80)
    except (ToolkitMissing, AssemblyError, subprocess.SubprocessError, OSError) as reason:
        pytest.skip(f"no nvcc: {reason}")
    layout = ShadowLayout((64, 1, 1), 0, 2, in_global, atomics, stamps_in_global=stamps)
    watch = Watch("k", layout, control_offsets(), ("s",), banks=True, ranges=1, sampled=sampled)
    module = read_module(
        with_images().replace(".version 8.0", detector.split(".target")[0].strip().split("\n")[-1])
    )
    result = instrument(module, sites(told_apart=True), watch, detector)
    assert assembled(result.text, toolkit, "sm_80")[:4] == b"\x7fELF"


def test_a_function_named_as_a_register_is_not_its_address() -> None:
    clock = ".func (.param .b64 r) clock64() { .reg .b64 %rd<2>; mov.u64 %rd1, %clock64; ret; }\n"
    text = KERNEL.replace(HEAD, HEAD + clock).replace("bar.sync 0;", "bar.sync 0; mov.u64 %rd2, %clock64;")
    watch = Watch("k", LAYOUT, control_offsets(), ("s",), ranges=1)
    assert "mov.u64 %rd2, %clock64;" in instrument(read_module(text), sites(), watch, "").text


def test_pointers_that_only_the_kernel_itself_takes_are_not_from_memory() -> None:
    call = "mov.u64 %rd2, put; cast: .callprototype ()_ (.param .b32 _); call %rd2, (%r2), cast;"
    text = KERNEL.replace("{ .param .b32 p0; st.param.b32 [p0], %r2; call.uni put, (p0); }", "")
    taken = text.replace("bar.sync 0;", call)
    assert not calls_stored_pointers(read_module(KERNEL), "k")
    assert not calls_stored_pointers(read_module(taken), "k")
    table = ".global .align 8 .u64 table[1] = {put};\n"
    assert calls_stored_pointers(read_module(taken.replace(HEAD, HEAD + table)), "k")
    assert not keeps_functions(read_module(taken.replace(HEAD, HEAD + table)), "k")
    made = taken.replace("mov.u64 %rd2, put;", "mov.u64 %rd2, table;")
    assert keeps_functions(read_module(made.replace(HEAD, HEAD + table)), "k")
    other = ".visible .entry other() { .reg .b64 %rd<2>; mov.u64 %rd1, put; ret; }\n"
    assert calls_stored_pointers(read_module(taken + other), "k")


def test_what_is_instrumented_in_another_way_is_instrumented_anew() -> None:
    module, request = read_module(KERNEL), KernelRun(KERNEL, "k", LaunchConfig((64, 1, 1)), (), sites())
    made = [
        instrumented(
            module, request, Watch("k", ShadowLayout((64, 1, 1), 0), control_offsets(), order=order), ""
        )
        for order in (False, True, False)
    ]
    assert made[0] is made[2]
    assert made[0] is not made[1]


VIRTUAL = (
    HEAD
    + """
.func push(.param .b32 push_0) { ret; }
.global .align 8 .u64 table[3] = {0, 0, push};
.global .align 8 .u64 home = table;
.global .align 4 .u32 plain = 1;
.visible .entry makes(.param .u64 p) {
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [p];
	mov.u64 %rd2, NAME;
	st.global.u64 [%rd1], %rd2;
	ret;
}
"""
)


@pytest.mark.parametrize(
    ("name", "takes"), [("table", True), ("home", True), ("push", True), ("plain", False)]
)
def test_a_kernel_that_keeps_a_table_of_functions_is_known(name: str, takes: bool) -> None:
    module = read_module(VIRTUAL.replace("NAME", name))
    assert keeps_functions(module, "makes") is takes
