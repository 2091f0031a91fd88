"""Small PTX kernels for tests: a frame of registers and addresses around a body, and their launch."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
from cuda_lsp.dynamic.ptx.reader import read_module
from cuda_lsp.dynamic.runs import Argument, Buffer, KernelRun, PtxSite, RunOutcome, SiteKind
from cuda_lsp.model import LaunchConfig

NEIGHBOUR = "add.s32 %r5, %r1, 1; rem.s32 %r6, %r5, 256; shl.b32 %r7, %r6, 2; add.s32 %r8, %r2, %r7;"
"""%r8: the address of the right neighbour's element."""


def module(body: str, target: str = "sm_75") -> str:
    """A kernel ``k(out)``: %r1 = tid, %rd3 = &out[tid], %r2 = s, %r4 = &s[tid] (shared, 1024 bytes)."""
    return (
        f".version 8.0\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n"
        ".reg .pred %p<9>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<20>;"
        ".reg .f64 %fd<20>; .shared .align 4 .b8 s[1024];\n"
        "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;"
        "add.s64 %rd3, %rd1, %rd2; mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.s32 %r4, %r2, %r3;\n"
        f"{body}\nret; }}"
    )


def sites(ptx: str) -> tuple[PtxSite, ...]:
    """Every instruction is a site: its number in the function is its number in the run."""
    functions = read_module(ptx).functions.values()
    return tuple(
        PtxSite(f.name, k, SiteKind.ACCESS, code.opcode, None)
        for f in functions
        for k, code in enumerate(f.instructions())
    )


def request(ptx: str, threads: int = 256, words: int = 256, blocks: int = 1, **changes: object) -> KernelRun:
    out = Buffer("out", np.zeros(words * 4, np.uint8))
    launch = LaunchConfig((threads, 1, 1), (blocks, 1, 1), 0)
    made = KernelRun(ptx, "k", launch, (Argument("out", bytes(8), ((0, out),)),), sites(ptx))
    return evolve(made, **changes)


def run(body: str, threads: int = 256, words: int = 256, blocks: int = 1, **changes: object) -> RunOutcome:
    engine = EmulatorEngine(keep_results=True)
    return engine.run(request(module(body), threads, words, blocks, **changes), lambda stage: None)


def opcodes(outcome: RunOutcome, body: str) -> set[tuple[str, str]]:
    """The racing instructions by opcode."""
    every = sites(module(body))
    return {(every[r.sites[0]].opcode, every[r.sites[1]].opcode) for r in outcome.races}
