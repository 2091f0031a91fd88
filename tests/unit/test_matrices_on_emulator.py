"""Tensor-core instructions on the emulator: products against NumPy, documented layouts, what is watched."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from click.testing import CliRunner
from ptx_kernels import module, request, run, sites

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.cli import main
from cuda_lsp.dynamic.emulator import floats
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
from cuda_lsp.dynamic.runs import Argument, Buffer, EngineUnavailable, KernelRun
from cuda_lsp.model import LaunchConfig

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) {
.reg .b32 %a<32>; .reg .b32 %b<32>; .reg .b32 %r<20>; .reg .b64 %p<9>; .reg .b64 %m<9>;
.reg .TYPE %c<9>; .reg .OUT %d<9>; .reg .f64 %fa<4>; .reg .f64 %fb<4>;
ld.param.u64 %p1, [pa]; ld.param.u64 %p2, [pb]; ld.param.u64 %p3, [pc]; ld.param.u64 %p4, [pd];
"""


def launch(body: str, a, b, c, d, threads: int = 32) -> np.ndarray:
    """The bytes of ``d`` after the kernel ran."""
    buffers = [
        Buffer(n, np.ascontiguousarray(v).view(np.uint8).ravel())
        for n, v in zip("abcd", (a, b, c, d), strict=True)
    ]
    arguments = tuple(Argument(f"p{b.name}", bytes(8), ((0, b),)) for b in buffers)
    made = KernelRun(body, "k", LaunchConfig((threads, 1, 1), (1, 1, 1), 0), arguments, sites(body))
    outcome = EmulatorEngine(keep_results=True).run(made, lambda stage: None)
    assert outcome.failure is None and outcome.faults == () and outcome.races == ()
    return outcome.results["d"]


def to_bytes(kind: str, values: np.ndarray) -> np.ndarray:
    if kind == "bf16":
        return floats.to_bf16(values.astype(np.float32))
    names = {"f16": "f2", "f32": "f4", "tf32": "f4", "f64": "f8", "s32": "i4", "s8": "i1", "u8": "u1"}
    return values.astype(names[kind])


def numbers(kind: str, shape: tuple[int, int], seed: int) -> np.ndarray:
    """Small integers, so that every sum is exact in every format."""
    low = 0 if kind == "u8" else -8
    return np.random.default_rng(seed).integers(low, 9, shape).astype(np.float64)


def registers(name: str, count: int) -> str:
    return "{" + ", ".join(f"%{name}{k}" for k in range(count)) + "}"


COUNTS = {  # registers of a and b (PTX ISA, "Matrix fragments for WMMA")
    ("f16", "m16n16k16"): (8, 8), ("f16", "m32n8k16"): (8, 8), ("f16", "m8n32k16"): (8, 8),
    ("bf16", "m16n16k16"): (4, 4), ("bf16", "m32n8k16"): (8, 2), ("bf16", "m8n32k16"): (2, 8),
    ("tf32", "m16n16k8"): (4, 4), ("s8", "m16n16k16"): (2, 2), ("u8", "m32n8k16"): (4, 1),
    ("s8", "m8n32k16"): (1, 4), ("f64", "m8n8k4"): (1, 1),
}  # fmt: skip
SIZES = {"m16n16k16": (16, 16, 16), "m32n8k16": (32, 8, 16), "m8n32k16": (8, 32, 16), "m16n16k8": (16, 16, 8),
         "m8n8k4": (8, 8, 4)}  # fmt: skip

RESULTS = {
    "f16": ("f32", "f16"),
    "bf16": ("f32",),
    "tf32": ("f32",),
    "s8": ("s32",),
    "u8": ("s32",),
    "f64": ("f64",),
}


@pytest.mark.parametrize("layouts", [("row", "col"), ("col", "row"), ("row", "row"), ("col", "col")])
@pytest.mark.parametrize(("kind", "shape", "out"), [(*c, o) for c in COUNTS for o in RESULTS[c[0]]])
def test_wmma_multiplies_matrices_in_memory(kind, shape, out, layouts):
    m, n, k = SIZES[shape]
    a, b, c = numbers(kind, (m, k), 1), numbers(kind, (k, n), 2), numbers("s32", (m, n), 3)
    stride = 40  # elements, more than any row
    stored = [np.zeros((40, stride)) for _ in range(4)]
    for place, matrix, layout in zip(stored, (a, b, c), (*layouts, "col"), strict=False):
        turned = matrix if layout == "row" else matrix.T
        place[: turned.shape[0], : turned.shape[1]] = turned
    na, nb = COUNTS[kind, shape]
    fa, fb = ("fa", "fb") if kind == "f64" else ("a", "b")
    nc = m * n // 32 // (2 if out == "f16" else 1)
    types = {"f16": ("f16.f16" if out == "f16" else "f32.f32")}.get(kind, f"{out}.{kind}.{kind}.{out}")
    body = HEAD.replace(".TYPE", ".b32" if out == "f16" else f".{out}").replace(
        ".OUT", ".b32" if out == "f16" else f".{out}"
    )
    body += f"""
    mov.u32 %r1, {stride};
    wmma.load.a.sync.aligned.{layouts[0]}.{shape}.global.{kind} {registers(fa, na)}, [%p1], %r1;
    wmma.load.b.sync.aligned.{layouts[1]}.{shape}.global.{kind} {registers(fb, nb)}, [%p2], %r1;
    wmma.load.c.sync.aligned.col.{shape}.global.{out} {registers("c", nc)}, [%p3], %r1;
    wmma.mma.sync.aligned.{layouts[0]}.{layouts[1]}.{shape}.{types} {registers("d", nc)}, {registers(fa, na)},
        {registers(fb, nb)}, {registers("c", nc)};
    wmma.store.d.sync.aligned.row.{shape}.global.{out} [%p4], {registers("d", nc)}, %r1;
    ret; }}"""
    kinds = (kind, kind, out, out)
    found = launch(body, *(to_bytes(t, v) for t, v in zip(kinds, stored, strict=True)))
    name = {"f16": "f2", "f32": "f4", "f64": "f8", "s32": "i4"}[out]
    assert (found.view(name).reshape(40, stride)[:m, :n] == a @ b + c).all()


G, T = np.arange(32) >> 2, np.arange(32) % 4


def m16n8(kind: str, k: int):
    """The formulas of the PTX ISA for a, b and c, element by element: (row, column) for each lane."""
    if kind in ("f16", "bf16"):
        a = [(G + 8 * (i // 2 % 2), 2 * T + i % 2 + 8 * (i >= 4)) for i in range(k // 2)]
        b = [(2 * T + i % 2 + 8 * (i >= 2), G) for i in range(k // 4)]
    elif kind == "tf32":
        a = [(G + 8 * (i % 2), T + 4 * (i >= 2)) for i in range(k // 2)]
        b = [(T + 4 * i, G) for i in range(k // 4)]
    else:
        a = [(G + 8 * (i % 8 >= 4), 4 * T + i % 4 + 16 * (i >= 8)) for i in range(k // 2)]
        b = [(4 * T + i % 4 + 16 * (i >= 4), G) for i in range(k // 4)]
    return a, b, [(G + 8 * (i >= 2), 2 * T + i % 2) for i in range(4)]


def held(places, matrix: np.ndarray, kind: str) -> np.ndarray:
    """What the registers of each lane hold, ``(32, bytes)``."""
    return np.ascontiguousarray(to_bytes(kind, np.stack([matrix[p] for p in places], axis=1))).view(np.uint8)


def multiplied(opcode: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, kind: str, out: str) -> np.ndarray:
    """``mma`` on registers that each lane loads for itself, ``(32, bytes)``; the registers of d."""
    counts = [v.shape[1] // 4 for v in (a, b, c)]
    body = HEAD.replace(".TYPE", ".b32").replace(".OUT", ".b32") + "mov.u32 %r1, %laneid;\n"
    for pointer, name, count in zip((1, 2, 3), "abc", counts, strict=True):
        body += f"mad.wide.u32 %m{pointer}, %r1, {4 * count}, %p{pointer};\n"
        body += "".join(f"ld.global.u32 %{name}{k}, [%m{pointer}+{4 * k}];\n" for k in range(count))
    given = ", ".join(registers(n, count) for n, count in zip("abc", counts, strict=True))
    body += f"{opcode} {registers('d', counts[2])}, {given};\n"
    body += f"mad.wide.u32 %m4, %r1, {4 * counts[2]}, %p4;\n"
    body += "".join(f"st.global.u32 [%m4+{4 * k}], %d{k};\n" for k in range(counts[2])) + "ret; }"
    return launch(body, a, b, c, np.zeros_like(c)).reshape(32, -1)


@pytest.mark.parametrize(
    ("kind", "k", "out"),
    [("f16", 16, "f32"), ("f16", 8, "f32"), ("bf16", 16, "f32"), ("bf16", 8, "f32"), ("tf32", 8, "f32"),
     ("tf32", 4, "f32"), ("s8", 32, "s32"), ("s8", 16, "s32"), ("u8", 32, "s32"), ("f16", 16, "f16")],
)  # fmt: skip
def test_mma_uses_the_documented_layout(kind, k, out):
    a, b, c = numbers(kind, (16, k), 1), numbers(kind, (k, 8), 2), numbers("s32", (16, 8), 3)
    at = m16n8(kind, k)
    parts = [held(p, v, t) for p, v, t in zip(at, (a, b, c), (kind, kind, out), strict=True)]
    opcode = f"mma.sync.aligned.m16n8k{k}.row.col.{out}.{kind}.{kind}.{out}"
    assert (multiplied(opcode, *parts, kind, out) == held(at[2], a @ b + c, out)).all()


@pytest.mark.parametrize("layouts", [("row", "col"), ("col", "row")])
@pytest.mark.parametrize("out", ["f16", "f32"])
def test_mma_m8n8k4_makes_four_products_of_quad_pairs(layouts, out):
    lane = np.arange(32)
    pair, quad, high = lane // 4 % 4, lane % 4, lane // 16
    matrices = [np.stack([numbers("f16", s, 10 * i + j) for i in range(4)]) for j, s in
                enumerate([(8, 4), (4, 8), (8, 8)])]  # fmt: skip
    across, along = quad + 4 * high, quad
    a = [
        (pair, across, 0 * lane + i) if layouts[0] == "row" else (pair, 4 * high + i, along) for i in range(4)
    ]
    b = [
        (pair, 0 * lane + i, across) if layouts[1] == "col" else (pair, along, 4 * high + i) for i in range(4)
    ]
    if out == "f16":
        c = [(pair, across, 0 * lane + i) for i in range(8)]
    else:  # PTX ISA: row from bits of the lane and of i, column from the others
        c = [(pair, lane % 2 + i // 2 % 2 * 2 + 4 * high, (lane // 2 % 2) * 2 + i % 2 + i // 4 * 4)
             for i in range(8)]  # fmt: skip
    parts = [held(p, v, t) for p, v, t in zip((a, b, c), matrices, ("f16", "f16", out), strict=True)]
    opcode = f"mma.sync.aligned.m8n8k4.{layouts[0]}.{layouts[1]}.{out}.f16.f16.{out}"
    expected = held(c, matrices[0] @ matrices[1] + matrices[2], out)
    assert (multiplied(opcode, *parts, "f16", out) == expected).all()


def test_integer_products_wrap_or_saturate():
    at = m16n8("u8", 16)
    a, b, c = np.full((16, 16), 255.0), np.full((16, 8), 255.0), np.full((16, 8), 2.0**31 - 1)
    parts = [held(p, v, t) for p, v, t in zip(at, (a, b, c), ("u8", "u8", "s32"), strict=True)]
    found = [
        multiplied(f"mma.sync.aligned.m16n8k16.row.col{s}.s32.u8.u8.s32", *parts, "u8", "s32").view(np.int32)
        for s in ("", ".satfinite")
    ]
    assert (found[0] == 2**31 - 1 + 16 * 255 * 255 - 2**32).all() and (found[1] == 2**31 - 1).all()


def test_single_bits_are_counted():
    random = np.random.default_rng(5)
    a, b = random.integers(0, 2, (8, 128)), random.integers(0, 2, (128, 8))
    pa = np.packbits(np.stack([a[G, 32 * T + i] for i in range(32)], axis=1), axis=1, bitorder="little")
    pb = np.packbits(np.stack([b[32 * T + i, G] for i in range(32)], axis=1), axis=1, bitorder="little")
    c = np.zeros((32, 2), np.int32).view(np.uint8)
    for operation, expected in (("and", a @ b), ("xor", (a[:, :, None] != b[None]).sum(axis=1))):
        opcode = f"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.{operation}.popc"
        found = multiplied(opcode, pa, pb, c, "b1", "s32").view(np.int32)
        assert (found == np.stack([expected[G, 2 * T + i] for i in range(2)], axis=1)).all()


@pytest.mark.parametrize(
    ("shape", "kinds", "a", "b", "expected"),
    [
        ("m8n8k32", "s32.s4.s4.s32", 0x8F, 0x11, 16 * -1 + 16 * -8),
        ("m8n8k32", "s32.u4.s4.s32", 0x8F, 0x11, 16 * 23),
        ("m16n8k32", "f32.e4m3.e4m3.f32", 0x38, 0x7E, 32 * 448),
        ("m16n8k32", "f32.e4m3.e5m2.f32", 0x08, 0xBC, -32 / 64),
        ("m16n8k32", "f32.e4m3.e4m3.f32", 0x01, 0x38, 32 / 512),
    ],
)
def test_small_numbers_packed_in_bytes(shape, kinds, a, b, expected):
    wide = shape == "m16n8k32"
    parts = [
        np.full((32, 4 * n), byte, np.uint8) for n, byte in ((4 if wide else 1, a), (2 if wide else 1, b))
    ]
    added = np.zeros((32, 16 if wide else 8), np.uint8)
    found = multiplied(f"mma.sync.aligned.{shape}.row.col.{kinds}", *parts, added, "", "")
    assert (found.view("i4" if kinds[0] == "s" else "f4") == expected).all()


FILL = "cvt.u16.u32 %h1, %r1; add.s32 %r20, %r2, %r1; add.s32 %r20, %r20, %r1;"
"""%r20: the address of this thread's 16-bit element."""


def rows_loaded(count: int, trans: str) -> np.ndarray:
    """256 threads write 256 elements, each warp loads ``count`` matrices of 8 rows; registers of warp 0."""
    body = (
        f"{FILL} st.shared.u16 [%r20], %h1; bar.sync 0; mov.u32 %r21, %laneid; shl.b32 %r21, %r21, 4;"
        "rem.u32 %r21, %r21, 512; add.s32 %r22, %r2, %r21;"
        f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {registers('r3', count)}, [%r22];"
    )
    found = []
    for k in range(count):
        outcome = run(f"{body} st.global.u32 [%rd3], %r3{k};")
        assert outcome.races == () and outcome.faults == ()
        found.append(outcome.results["out"].view(np.uint16).reshape(256, 2)[:32])
    return np.stack(found)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_gives_each_lane_two_elements_of_a_row(count):
    expected = [
        [(64 * j + 8 * (t // 4) + t % 4 * 2 + e) for e in (0, 1)] for j in range(count) for t in range(32)
    ]
    assert rows_loaded(count, "").reshape(-1, 2).tolist() == expected


def test_ldmatrix_transposes():
    expected = [
        [(64 * j + 8 * (t % 4 * 2 + e) + t // 4) for e in (0, 1)] for j in range(4) for t in range(32)
    ]
    assert rows_loaded(4, ".trans").reshape(-1, 2).tolist() == expected


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_stmatrix_is_the_reverse_of_ldmatrix(trans):
    body = (
        f"{FILL} st.shared.u16 [%r20], %h1; bar.sync 0; shl.b32 %r21, %r1, 4; add.s32 %r22, %r2, %r21;"
        f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {registers('r3', 4)}, [%r22];"
        f"add.s32 %r22, %r22, 512;"
        f"stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [%r22], {registers('r3', 4)};"
        "bar.warp.sync -1; ld.shared.u32 %r9, [%r4+512]; st.global.u32 [%rd3], %r9;"
    )
    outcome = run(body, threads=32)
    assert outcome.faults == ()
    assert (outcome.results["out"].view(np.uint16)[:64] == np.r_[np.arange(32), np.zeros(32)]).all()


def test_movmatrix_transposes():
    body = (
        "mov.u32 %r21, %laneid; shl.b32 %r21, %r21, 1; shl.b32 %r22, %r21, 16; add.s32 %r22, %r22, 65536;"
        "or.b32 %r21, %r21, %r22; movmatrix.sync.aligned.m8n8.trans.b16 %r23, %r21;"
        "st.global.u32 [%rd3], %r23;"
    )
    found = run(body, threads=32).results["out"].view(np.uint16)[:64].reshape(8, 8)
    assert (found == np.arange(64).reshape(8, 8).T).all()


# ----------------------------------------------------------------------------------- what is watched

ROWS = "shl.b32 %r21, %r1, 4; rem.u32 %r21, %r21, 512; add.s32 %r22, %r2, %r21; mov.u32 %r9, 0;"
LOAD = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r22];"


def test_another_warp_that_writes_a_row_races_with_ldmatrix():
    body = f"{ROWS} {LOAD} st.shared.u32 [%r4], %r9;"  # each lane writes what it got of its own warp
    (race,) = run(body, threads=64).races
    assert {sites(module(body))[s].opcode.partition(".")[0] for s in race.sites} == {"ldmatrix", "st"}
    assert run(body, threads=32).races == ()


def test_the_lanes_that_get_a_row_read_it_and_not_the_lane_that_names_it():
    body = f"{ROWS} {LOAD} st.shared.v4.u32 [%r22], {{%r9, %r9, %r9, %r9}};"
    assert run(body, threads=32).races


def test_the_wait_for_all_lanes_orders_what_they_wrote_before():
    body = f"{ROWS} st.shared.v4.u32 [%r22], {{%r9, %r9, %r9, %r9}}; {LOAD}"
    assert run(body, threads=32).races == ()
    assert run(body, threads=64).races  # the other warp writes the same rows


def test_a_tile_read_without_synchronisation_after_it_was_stored_races():
    store = f"wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r2], {registers('f', 8)}, %r9;"
    read = "ld.shared.u32 %r10, [%r4]; st.global.u32 [%rd3], %r10;"
    zero = "mov.u32 %r9, 16;" + "".join(f"mov.f32 %f{k}, 0f3F800000;" for k in range(8))
    assert run(f"{zero} {store} {read}", threads=32).races
    outcome = run(f"{zero} {store} bar.warp.sync -1; {read}", threads=32)
    assert outcome.races == () and (outcome.results["out"].view(np.float32)[:32] == 1).all()


@pytest.mark.parametrize(("pitch", "ways"), [(4, 1), (7, 8)])
def test_bank_wavefronts_of_ldmatrix(pitch, ways):
    """Rows of 16 bytes side by side need one wavefront a matrix, rows 128 bytes apart eight."""
    body = f"rem.u32 %r21, %r1, 8; shl.b32 %r21, %r21, {pitch}; add.s32 %r22, %r2, %r21; {LOAD}"
    made = evolve(request(module(body), 32), races=False, banks=True)
    (banks,) = (
        b for b in EmulatorEngine(keep_results=True).run(made, lambda stage: None).banks if b.wavefronts
    )
    assert (banks.ideal, banks.wavefronts, banks.worst_ways) == (4, 4 * ways, ways)


def test_wmma_costs_no_banks_and_says_so():
    body = "wmma.load.a.sync.aligned.row.m16n16k16.shared.s8 {%r5, %r6}, [%r2];"
    made = evolve(request(module(body), 32), races=False, banks=True)
    outcome = EmulatorEngine(keep_results=True).run(made, lambda stage: None)
    assert outcome.banks == () and any("wmma" in text for text in outcome.not_covered)


def test_sparse_products_are_refused_by_name():
    with pytest.raises(EngineUnavailable, match=r"mma\.sp"):
        run("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r5}, {%r6}, {%f1}, %r7, 0;")


def test_a_tile_beyond_its_buffer_is_a_fault():
    load = "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r10, %r11, %r12, %r13}, [%rd1], %r9;"
    body = f"mov.u32 %r9, 16; {load}"
    assert run(body, threads=32, words=128).faults == ()
    assert run(body, threads=32, words=120).faults


@pytest.mark.parametrize(
    ("mode", "bits", "expected"),
    [("rna", 0x3F801000, 0x3F802000), ("rn", 0x3F801000, 0x3F800000), ("rn", 0x3F803000, 0x3F804000),
     ("rz", 0x3F801FFF, 0x3F800000), ("rna", 0xBF801000, 0xBF802000), ("rna", 0x7F800000, 0x7F800000)],
)  # fmt: skip
def test_rounding_to_tf32(mode, bits, expected):
    body = f"mov.b32 %f1, {bits}; cvt.{mode}.tf32.f32 %r9, %f1; st.global.u32 [%rd3], %r9;"
    assert run(body, threads=1).results["out"].view(np.uint32)[0] == expected


@pytest.mark.parametrize(("x", "expected"), [(0x3C00, 0x3C00), (0x4000, 0), (0x7E00, 0)])
def test_comparison_of_halves_as_a_number(x, expected):
    body = f"mov.b16 %h1, {x}; mov.b16 %h2, 0x3C00; set.eq.f16.f16 %h3, %h1, %h2; cvt.u32.u16 %r9, %h3;"
    assert run(body + "st.global.u32 [%rd3], %r9;", threads=1).results["out"].view(np.uint32)[0] == expected


TILES = """#include <mma.h>
using namespace nvcuda;
// cuda-lsp: launch block=64 grid=1
__global__ void tiles(const half* a, const half* b, float* out) {
    __shared__ float r[2][256];
    int warp = threadIdx.x / 32;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 1.0f);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(r[warp], fc, 16, wmma::mem_row_major);
    WAIT
    out[threadIdx.x] = r[warp][255 - threadIdx.x % 32];
}"""


@needs_nvcc
@pytest.mark.parametrize(("wait", "racy"), [("__syncwarp();", False), ("", True)])
def test_races_of_a_tile_are_told_at_its_call(wait, racy, tmp_path, own_cache):
    source = tmp_path / "tiles.cu"
    source.write_text(TILES.replace("WAIT", wait))
    done = CliRunner().invoke(main, ["run", str(source), "--engine", "emulator", "--watch-all"])
    assert "cannot run" not in done.stdout
    assert ("warp-race [confirmed]" in done.stdout) == racy, done.stdout
    assert ("writes wmma::store_matrix_sync(r[warp], fc" in done.stdout) == racy
