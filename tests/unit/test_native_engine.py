"""What the C engine computes and logs is what NumPy computes and logs, bit for bit (one NaN is as good as
another)."""

from __future__ import annotations

import ast
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
from generated_kernels import FAMILIES, GRID, generate
from generated_runs import OPTIONS, compared, given_to, inputs, source
from ptx_kernels import module, request, sites
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import compile_module
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator import translate
from cuda_lsp.dynamic.emulator.detect import Detector
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine, Launch
from cuda_lsp.dynamic.emulator.native import library
from cuda_lsp.dynamic.emulator.native.library import LIBRARY, Library, NoLibrary
from cuda_lsp.dynamic.emulator.native.operations import ROWS
from cuda_lsp.dynamic.emulator.records import Records
from cuda_lsp.dynamic.ptx.reader import read_module
from cuda_lsp.dynamic.runs import Argument, Buffer, KernelRun, Level
from cuda_lsp.model import LaunchConfig

COUNT = 2 * len(FAMILIES)
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@pytest.fixture(scope="module", autouse=True)
def compiled():
    try:
        LIBRARY.get()
    except NoLibrary as problem:
        pytest.skip(str(problem))


# -------------------------------------------------------------------------------- each operation


def values(kind, chance):
    if kind == "b1":
        return chance.integers(0, 2, 4096).astype(bool)
    if kind[0] == "f":
        special = [
            0,
            -0.0,
            np.inf,
            -np.inf,
            np.nan,
            1e-40,
            -3e-45,
            0.5,
            1.5,
            2.5,
            -2.5,
            2**31,
            -(2**63),
            3.4e38,
        ]
        with np.errstate(over="ignore"):
            made = (chance.standard_normal(4096) * 10.0 ** chance.integers(-30, 30, 4096)).astype(kind)
            made[::3] = chance.choice(np.array(special).astype(kind), len(made[::3]))
        return made
    bits = chance.integers(0, 2**63, 4096, np.uint64) * np.uint64(2) + chance.integers(0, 2, 4096, np.uint64)
    made = bits.astype(f"u{kind[1]}").view(kind)
    made[::2] = chance.choice(np.array([0, 1, 2, 3, 31, 32, 63, 64, 255]).astype(kind), len(made[::2]))
    made[::5] = chance.choice(np.array([np.iinfo(kind).min, np.iinfo(kind).max]).astype(kind), len(made[::5]))
    return made


def in_numpy(row, given, constants):
    """What generated NumPy computes: the row's name, read as Python."""
    word, _, rest = row.name.partition("(")
    more = [p for p in rest[:-1].split(",")[len(row.given) :] if p]
    names = [f"v{k}" for k in range(len(given))]
    if word == "astype":
        text = f"v0.astype('{row.result}')"
    elif word in ("neg", "~"):
        text = f"{'-' if word == 'neg' else '~'}v0"
    elif len(names) == 2 and not more and not word[-1].isalpha():
        text = f"v0 {word} v1"
    elif word in _SIGNS:
        text = f"v0 {_SIGNS[word]} v1"
    elif word == "approximate":
        text = f"approximate({more[0]}, v0)"
    elif word == "lop3":
        text = "lop3(v0, v1, v2, 0xCA)"
    else:
        part = next((m for m in more if "#" in m), "")
        arguments = ", ".join([*names, *(m.partition("#")[0] for m in more)])
        text = f"{word}({arguments})" + (f"[{part.partition('#')[2]}]" if part else "")
    return np.asarray(eval(text, constants | dict(zip(names, given, strict=True))))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_computes_what_numpy_does(row):
    chance = np.random.default_rng(len(row.name))
    given = [values(kind, chance) for kind in row.given]
    if row.name.startswith(("<<", ">>")):  # the translation shifts by constants within the width
        given[1] = (given[1].view(f"u{row.given[1][1]}") % (8 * given[1].itemsize)).astype(row.given[1])
    kernel = read_module(module("st.global.u32 [%rd3], %r1;"))
    constants = dict(translate.translate(kernel, "k").constants)
    found = np.zeros(4096, row.result if row.result != "b1" else bool)
    places = [g.ctypes.data for g in given] + [None] * (3 - len(given))
    LIBRARY.get().compute_row(ROWS.index(row), 4096, found.ctypes.data, *places, 0xCA)
    with np.errstate(all="ignore"):
        wanted = in_numpy(row, given, constants)
    assert wanted.dtype == found.dtype
    same = found == wanted
    if found.dtype.kind == "f":
        same |= np.isnan(found) & np.isnan(wanted)
        same &= (np.signbit(found) == np.signbit(wanted)) | np.isnan(wanted)
    wrong = np.flatnonzero(~same)
    assert not len(wrong), [(tuple(g[k] for g in given), wanted[k], found[k]) for k in wrong[:3]]


# ------------------------------------------------------------------------------------ whole kernels


def told(log):
    """Every logged access: instruction, size, mode, time, and what each thread touched and saw."""
    if isinstance(log, Records):
        low, high = log.memory.local
        for r in log.records:
            threads = np.arange(len(r.ticks)) if r.mask is None else np.flatnonzero(r.mask)
            threads = threads[(r.address[threads] < low) | (r.address[threads] >= high)]
            if len(threads):
                seen = np.zeros(len(threads), np.int64)
                if r.value is not None and r.size <= 8:
                    taken = np.asarray(r.value)[threads]
                    real = taken.dtype.kind == "f"
                    seen = (taken.view(f"u{r.size}") if real else taken).astype(np.int64)
                    seen = np.where(np.isnan(taken), -1, seen) if real else seen
                yield (
                    r.number,
                    r.size,
                    r.mode,
                    r.sequence,
                    threads,
                    r.address[threads],
                    seen,
                    r.ticks[threads],
                )
    else:
        threads, addresses = log.entries_of_all()
        for r in log.rows():
            part = slice(r["start"], r["start"] + r["count"])
            seen = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_int64 * log.columns.entries).from_address(
                log.columns.value
            ))[part].copy()  # fmt: skip
            seen = seen if r["known"] else np.zeros_like(seen)
            if r["kind"] == 2 and r["known"]:
                seen = np.where(np.isnan(seen.astype(f"u{r['size']}").view(f"f{r['size']}")), -1, seen)
            ticks = log.common.known[r["tick"]][threads[part]]
            yield (
                r["number"],
                r["size"],
                r["mode"],
                r["sequence"],
                threads[part],
                addresses[part],
                seen,
                ticks,
            )


def both(run, monkeypatch):
    """Outcome, and every log as it is judged, in NumPy and in C; and the launch in C."""
    logs = []
    judge = Detector._judge
    monkeypatch.setattr(
        Detector, "_judge", lambda self, log, *rest: (logs.append([*told(log)]), judge(self, log, *rest))
    )
    engine, found = EmulatorEngine(), []
    for compiled in (False, True):
        logs.clear()
        launch = Launch(engine.translated(run.ptx, run.entry), run, compiled=compiled)
        found.append((launch.outcome(keep_results=True), [*logs], launch))
    return found


def assert_alike(run, monkeypatch, kinds=()):
    (a, logs, _), (b, others, launch) = both(run, monkeypatch)
    for name in (
        "races",
        "flags",
        "banks",
        "faults",
        "stuck",
        "executed",
        "not_covered",
        "failure",
        "output",
    ):
        x, y = getattr(a, name), getattr(b, name)
        assert (x, y) == (x, x) if name == "failure" else sorted(map(repr, x)) == sorted(map(repr, y)), name
    if kinds:
        assert not compared(run.entry, kinds, *({n: o.results[n].view(k) for n, k in KINDS} for o in (a, b)))
    else:
        assert all((a.results[name] == b.results[name]).all() for name in a.results)
    assert len(logs) == len(others)
    for mine, theirs in zip(logs, others, strict=True):
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            assert one[:4] == other[:4]
            for name, x, y in zip(
                ("threads", "addresses", "values", "ticks"), one[4:], other[4:], strict=True
            ):
                assert np.array_equal(x, y), (one[:4], name, x, y)
    return launch


KINDS = (("out", np.uint64), ("pool", np.uint32))


def launched(ptx, name, block, arrays, **changes):
    buffers = [Buffer(n, np.frombuffer(data.tobytes(), np.uint8)) for n, data in arrays.items()]
    arguments = tuple(Argument(b.name, bytes(8), ((0, b),)) for b in buffers)
    launch = LaunchConfig((block, 1, 1), (GRID, 1, 1), 0)
    return KernelRun(ptx, name, launch, arguments, sites(ptx), deadline=120, **changes)


@needs_nvcc
@pytest.mark.parametrize(("level", "banks"), [*product(Level, (False, True))])
def test_generated_kernels_come_to_the_same(level, banks, tmp_path, monkeypatch):
    kernels, given = generate(COUNT), inputs()
    path = tmp_path / "kernels.cu"
    path.write_text(source(kernels))
    ptx = compile_module(path, source(kernels), OPTIONS, level, find_toolkit(), tmp_path / "cache").ptx
    native = 0
    for kernel in kernels:
        run = launched(ptx, kernel.name, kernel.block, given_to(kernel, given), races=not banks, banks=banks)
        launch = assert_alike(run, monkeypatch, kernel.kinds)
        native += sum(row.kind != 4 for row in launch.machine.native.tables.blocks)
    assert native > 20 * COUNT if level is Level.O0 else native  # not all was left to Python


@pytest.mark.parametrize(
    "body",
    [
        # a race, within a warp and between warps
        "st.shared.u32 [%r4], %r1; add.s32 %r5, %r4, 4; ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd3], %r6;",
        # what leaves the array, and what is not aligned
        "mul.lo.s32 %r5, %r1, 12; add.s32 %r6, %r2, %r5; st.shared.u32 [%r6], %r1; ld.shared.u32 %r7, [%r6];"
        "add.s64 %rd4, %rd3, 2; st.global.u32 [%rd4], %r7;",
        # branches apart, loops of their own length, vectors
        "mov.u32 %r5, 0; L: add.s32 %r5, %r5, 1; st.shared.u32 [%r4], %r5; setp.lt.u32 %p1, %r5, %r1;"
        "@%p1 bra L; bar.sync 0; and.b32 %r6, %r1, 252; shl.b32 %r6, %r6, 2; add.s32 %r6, %r6, %r2;"
        "ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [%r6]; st.global.u32 [%rd3], %r9;",
        # threads that leave before others come to a barrier
        "setp.gt.u32 %p1, %r1, 99; @%p1 exit; st.shared.u32 [%r4], %r1; bar.sync 0;"
        "ld.shared.u32 %r5, [%r4+4]; st.global.u32 [%rd3], %r5;",
        # one block for each of three ways, guarded stores, a uniform value that some threads change
        "mov.u32 %r5, 7; rem.u32 %r6, %r1, 3; setp.eq.u32 %p1, %r6, 1; @%p1 bra A; setp.eq.u32 %p2, %r6, 2;"
        "@%p2 mov.u32 %r5, 9; bra B; A: mov.u32 %r5, %r1; B: @!%p1 st.shared.u32 [%r2], %r5; bar.sync 0;"
        "st.global.u32 [%rd3], %r5;",
        # functions that only NumPy has, of all threads and of some
        "cvt.rn.f32.u32 %f1, %r1; sin.approx.f32 %f2, %f1; setp.gt.u32 %p1, %r1, 50; @%p1 bra A;"
        "ex2.approx.f32 %f2, %f1; A: st.global.f32 [%rd3], %f2;",
        # an atomic between what C executes
        "shl.b32 %r5, %r1, 1; and.b32 %r6, %r1, 7; shl.b32 %r6, %r6, 2; add.s32 %r6, %r6, %r2;"
        "atom.shared.add.u32 %r7, [%r6], %r5; st.global.u32 [%rd3], %r7; ld.shared.u32 %r8, [%r2];",
    ],
)  # fmt: skip
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("threads", [256, 70])
def test_kernels_of_every_shape_come_to_the_same(body, blocks, threads, monkeypatch):
    run = request(module(body), threads, 256, blocks)
    assert assert_alike(run, monkeypatch).machine.native is not None


def test_more_threads_than_are_computed_at_a_time(monkeypatch):
    body = (
        "mov.u32 %r10, %ctaid.x; mad.lo.s32 %r11, %r10, 1024, %r1; mul.wide.u32 %rd4, %r11, 4;"
        "add.s64 %rd5, %rd1, %rd4;"
        "mov.u32 %r5, 0; mov.u32 %r12, 3; L: ld.global.u32 %r6, [%rd5]; mad.lo.s32 %r6, %r6, %r12, %r11;"
        "st.global.u32 [%rd5], %r6; add.s32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 5; @%p1 bra L;"
        "cvt.u64.u32 %rd6, %r6; shl.b64 %rd6, %rd6, 3; cvt.u32.u64 %r7, %rd6; st.global.u32 [%rd5], %r7;"
    )
    assert_alike(request(module(body), 1024, 6 * 1024, 6), monkeypatch)


def test_a_launch_goes_on_in_c_when_the_library_comes(monkeypatch):
    """The results of one that began in NumPy are those of one that did not."""
    body = (
        "mov.u32 %r5, 0; L: add.s32 %r5, %r5, 1; st.shared.u32 [%r4], %r5; setp.lt.u32 %p1, %r5, 3000;"
        "@%p1 bra L; ld.shared.u32 %r6, [%r4]; st.global.u32 [%rd3], %r6;"
    )
    looks = iter([None, None])  # it is not there yet
    there = LIBRARY.get()
    monkeypatch.setattr(LIBRARY, "at_once", lambda: next(looks, there))
    engine = EmulatorEngine(keep_results=True)
    program = engine.translated(module(body), "k")
    launch = Launch(program, request(module(body)))
    assert launch.machine.native is not None
    assert (launch.outcome(True).results["out"].view(np.uint32) == 3000).all()


def test_without_a_compiler_numpy_executes_and_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_LSP_CACHE", str(tmp_path))
    monkeypatch.setenv("NVCC_CCBIN", str(tmp_path / "nothing"))
    alone = Library()
    assert alone.at_once() is None
    with pytest.raises(NoLibrary, match="no host compiler"):
        alone.get()


def test_a_compiler_that_fails_is_asked_once(monkeypatch, tmp_path):
    broken = tmp_path / "g++"
    broken.write_text(f"#!/bin/sh\necho x >> {tmp_path}/asked\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CUDA_LSP_CACHE", str(tmp_path))
    monkeypatch.setenv("NVCC_CCBIN", str(broken))
    alone = Library()
    for _ in range(2):
        with pytest.raises(NoLibrary, match="does not compile"):
            alone.get()
    assert (tmp_path / "asked").read_text() == "x\n"
    assert [*(tmp_path / "emulator").iterdir()] == []


def test_the_library_is_kept_for_the_next_process(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_LSP_CACHE", str(tmp_path))
    monkeypatch.setattr(library, "source", lambda: "long answer(void) { return 42; }")
    monkeypatch.setattr(library, "_FUNCTIONS", {"answer": (library._NUMBER, ())})
    library._key.cache_clear()
    try:
        assert Library().get().answer() == 42
        again = Library().at_once()
        assert again is not None and again.answer() == 42
    finally:
        library._key.cache_clear()


def test_the_text_of_every_block_is_python():
    program = EmulatorEngine().translated(module("st.global.u32 [%rd3], %r1;"), "k")
    assert all(ast.parse(block.source).body for block in program.blocks)
