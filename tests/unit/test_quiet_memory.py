"""Where addresses come from, what cannot race there, and intervals in which nothing is written."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from both_engines import outcome_on
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import CompiledModule, CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.gpu.quiet import Likely, Shadow, likely
from cuda_lsp.dynamic.gpu.records import Extent
from cuda_lsp.dynamic.instrumentation.calm import calm_intervals
from cuda_lsp.dynamic.ptx.origins import Origin, origins, space_of
from cuda_lsp.dynamic.ptx.reader import read_module
from cuda_lsp.dynamic.runs import Argument, Buffer, KernelRun, Level, PtxSite, SiteKind
from cuda_lsp.model import LaunchConfig, Mode, Space

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 total;\n"


def kernel(body: str, parameters: int = 2) -> str:
    names = ", ".join(f".param .u64 k_{n}" for n in range(parameters))
    registers = ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .shared .align 4 .b8 s[256];"
    return f"{HEAD}.visible .entry k({names}) {{\n{registers}\n{body}\nret;\n}}\n"


def found(body: str, opcode: str) -> frozenset[Origin]:
    module = read_module(kernel(body))
    index = next(i.index for i in module.entries["k"].instructions() if i.opcode == opcode)
    return origins(module, "k").get(("k", index), frozenset())


def test_an_address_comes_from_all_that_was_added_to_it() -> None:
    body = "ld.param.u64 %rd1, [k_1]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;"
    assert found(f"{body} add.s64 %rd3, %rd1, %rd2; ld.u32 %r2, [%rd3+8];", "ld.u32") == {Origin("k_1")}
    both = f"{body} ld.param.u64 %rd4, [k_0]; selp.b64 %rd3, %rd1, %rd4, %p1; ld.u32 %r2, [%rd3];"
    assert found(both, "ld.u32") == {Origin("k_0"), Origin("k_1")}


def test_what_is_loaded_or_put_together_may_point_anywhere() -> None:
    loaded = "ld.param.u64 %rd1, [k_0]; ld.u64 %rd2, [%rd1]; add.s64 %rd3, %rd1, %rd2; st.u32 [%rd3], %r1;"
    assert found(loaded, "st.u32") == frozenset()
    assert found("mov.b64 %rd1, {%r1, %r2}; st.u32 [%rd1], %r1;", "st.u32") == frozenset()


def test_a_generic_address_of_a_shared_variable_lies_in_shared_memory() -> None:
    body = "mov.u32 %r1, s; cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd2, %rd1; st.u32 [%rd2], %r1;"
    assert space_of(found(body, "st.u32")) is Space.SHARED
    assert space_of(frozenset((Origin("s", 0, "shared"), Origin("k_0")))) is None


def test_a_register_of_an_inner_scope_is_another_one() -> None:
    body = (
        "ld.param.u64 %rd1, [k_0]; ld.param.u64 %rd2, [k_1]; { .reg .b64 %t; mov.u64 %t, %rd1; }"
        " { .reg .b64 %t; mov.u64 %t, %rd2; st.u32 [%t], %r1; }"
    )
    assert found(body, "st.u32") == {Origin("k_1")}


def pointer(buffer: Buffer) -> Argument:
    return Argument("p", bytes(8), ((0, buffer),))


LOAD = "ld.param.u64 %rd1, [k_0]; ld.global.u32 %r1, [%rd1];"
STORE = "ld.param.u64 %rd2, [k_1]; st.global.u32 [%rd2], %r1;"


def seen(body: str, *arguments: Argument, allocations: tuple[Extent, ...] | None = None) -> Likely:
    module = read_module(kernel(body))
    modes = {"ld": Mode.READ, "st": Mode.WRITE, "red": Mode.ATOMIC}
    sites = tuple(
        PtxSite("k", i.index, SiteKind.ACCESS, i.opcode, None, modes[i.base], Space.GLOBAL, 4)
        for i in module.entries["k"].instructions()
        if i.base in modes and "param" not in i.modifiers
    )
    return likely(module, KernelRun("", "k", LaunchConfig((1, 1, 1)), arguments, sites), allocations)


def test_what_nothing_writes_to_is_quiet_and_what_is_only_stored_to_keeps_writers() -> None:
    one, two = (Buffer(name, np.zeros(64, np.uint8)) for name in ("one", "two"))
    apart = seen(LOAD + STORE, pointer(one), pointer(two))
    assert apart.quiet == {0}
    assert (apart.shadow(id(one)), apart.shadow(id(two))) == (Shadow.NOTHING, Shadow.WRITERS)
    together = seen(LOAD + STORE, pointer(one), pointer(one))
    assert together.quiet == frozenset()
    assert together.shadow(id(one)) is Shadow.ALL


def test_a_store_to_anywhere_leaves_nothing_quiet() -> None:
    one, two = (Buffer(name, np.zeros(64, np.uint8)) for name in ("one", "two"))
    body = LOAD + "mov.b64 %rd2, {%r1, %r2}; st.global.u32 [%rd2], %r1;"
    anywhere = seen(body, pointer(one), pointer(two))
    assert anywhere.quiet == frozenset()
    assert anywhere.shadow(id(one)) is Shadow.ALL


def test_pointers_of_a_program_lie_in_its_allocations() -> None:
    first, second = ((Argument("p", value.to_bytes(8, "little"))) for value in (0x1000, 0x1080))
    apart = (Extent("a", 0x1000, 0x1080), Extent("b", 0x1080, 0x2000))
    assert seen(LOAD + STORE, first, second, allocations=apart).quiet == {0}
    one = (Extent("a", 0x1000, 0x2000),)
    assert seen(LOAD + STORE, first, second, allocations=one).quiet == frozenset()


def test_atomics_of_one_width_are_quiet_until_somebody_reads() -> None:
    one = Buffer("one", np.zeros(64, np.uint8))
    add = "ld.param.u64 %rd2, [k_1]; red.global.add.u32 [%rd2], 1;"
    assert seen(add, pointer(one), pointer(one)).quiet == {0}
    assert seen(LOAD + add, pointer(one), pointer(one)).quiet == frozenset()


def calm(body: str) -> tuple[int, int]:
    """How many barriers begin calm intervals, and how many reads lie in those."""
    function = read_module(kernel(body)).entries["k"]
    modes = {"ld": Mode.READ, "st": Mode.WRITE}
    sites = {
        i.index: PtxSite("k", i.index, SiteKind.ACCESS, i.opcode, None, modes[i.base], Space.SHARED, 4)
        for i in function.instructions()
        if i.base in modes
    }
    found = calm_intervals(function, lambda n: (n, sites[n]) if n in sites else None, lambda n: True)
    return len(found.barriers), len(found.reads)


READ, WRITE, BARRIER = "ld.shared.u32 %r1, [%r2];", "st.shared.u32 [%r2], %r1;", "bar.sync 0;"


def test_an_interval_is_calm_when_no_way_to_the_next_barrier_writes() -> None:
    assert calm(WRITE + BARRIER + READ + READ + BARRIER + WRITE) == (1, 2)
    assert calm(WRITE + BARRIER + READ + BARRIER + WRITE + BARRIER + WRITE) == (0, 0)  # not worth it
    assert calm(WRITE + BARRIER + READ + WRITE + BARRIER) == (0, 0)
    branch = f"{WRITE} {BARRIER} {READ} @%p1 bra $other; {READ} bra $end; $other: {WRITE} $end:"
    assert calm(branch) == (0, 0)


def test_a_loop_back_to_its_barriers_is_followed() -> None:
    loop = f"$again: {WRITE} {BARRIER} $inner: {READ} @%p1 bra $inner; {BARRIER} @%p2 bra $again;"
    assert calm(loop) == (1, 1)
    assert calm(f"{WRITE} $again: {BARRIER} {READ} @%p1 bra $again; {WRITE}") == (0, 0)


def test_what_may_write_by_itself_leaves_no_interval_calm() -> None:
    assert calm(WRITE + BARRIER + READ + "call other;") == (0, 0)
    assert calm("cp.async.wait_all;" + WRITE + BARRIER + READ) == (0, 0)


TILES = """
__global__ void tiles(int* out, const int* in, int rounds) {
    __shared__ int s[64];
    int sum = 0;
    for (int k = 0; k < rounds; ++k) {
        s[threadIdx.x] = in[k * 64 + threadIdx.x];
        FIRST
        for (int j = 0; j < 8; ++j) sum += s[(threadIdx.x + j) % 64];
        SECOND
    }
    if (threadIdx.x < 32) { HALF }
    out[blockIdx.x * 64 + threadIdx.x] = sum;
}
"""


def compiled(folder: Path, text: str) -> CompiledModule:
    path = folder / "tiles.cu"
    path.write_text(text)
    return compile_module(path, text, CompileOptions(arch="sm_90"), Level.O0, find_toolkit(), folder)


@needs_nvcc
@pytest.mark.parametrize(
    ("first", "second", "half", "racy"),
    [
        ("__syncthreads();", "__syncthreads();", "", False),
        ("", "__syncthreads();", "", True),
        ("__syncthreads();", "", "", True),
        ("__syncthreads();", "__syncthreads();", "s[threadIdx.x] = 1; sum += s[threadIdx.x + 1];", True),
    ],
)
def test_reads_of_calm_intervals_hide_no_race(
    tmp_path: Path, first: str, second: str, half: str, racy: bool
) -> None:
    text = TILES.replace("FIRST", first).replace("SECOND", second).replace("HALF", half)
    module = compiled(tmp_path, text)
    entry = next(iter(module.module.entries))
    data = np.zeros(4 * 64 * 4, np.uint8)
    arguments = (
        pointer(Buffer("out", data.copy())),
        pointer(Buffer("in", data)),
        Argument("rounds", (4).to_bytes(4, "little")),
    )
    config = LaunchConfig((64, 1, 1), (1, 1, 1), 0)
    run = KernelRun(module.ptx, entry, config, arguments, sites_of(module, entry), deadline=60.0)
    pairs = {engine: {r.sites for r in outcome_on(engine, run).races} for engine in ("emulator", "card")}
    assert bool(pairs["card"]) == racy
    assert pairs["card"] <= pairs["emulator"]
