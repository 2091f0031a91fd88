"""Generated kernels executed by the emulator and by a host's compiler, and what differs between two
executions.

Integers and every single operation on floats must be equal bit for bit (one NaN is as good as another).
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from generated_kernels import GRID, INPUTS, POOL, GeneratedKernel

from cuda_lsp.dynamic.compilation.compile import CompileOptions
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine, Launch
from cuda_lsp.dynamic.runs import Argument, Buffer, KernelRun
from cuda_lsp.model import LaunchConfig

Arrays = dict[str, np.ndarray]
HERE = Path(__file__).resolve().parent
ARCH = "sm_90"
OPTIONS = CompileOptions((HERE,), arch=ARCH, extra=("-fmad=false",))
_NARROW = {"h16": (0x7C00, 1), "b16": (0x7F80, 1), "h16x2": (0x7C00, 2), "b16x2": (0x7F80, 2)}
_HOST_FLAGS = ("-O1", "-fwrapv", "-frounding-math", "-ffp-contract=off", "-w", "-pthread")


def inputs() -> Arrays:
    """What ``pool`` starts with, and ``in`` and ``fin`` of every kernel."""
    chance = np.random.default_rng(5)
    words = chance.integers(0, 2**32, INPUTS, np.uint32)
    words[::9] = chance.choice(
        np.array([0, 1, 31, 32, 255, 2**31 - 1, 2**31, 2**32 - 1], np.uint32), len(words[::9])
    )
    small = chance.random(INPUTS) < 0.3
    words[small] &= 0xFF
    reals = (chance.standard_normal(INPUTS) * 10.0 ** chance.integers(-4, 5, INPUTS)).astype(np.float32)
    special = np.array(
        [0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -3e-45, 3.4e38, 2**31, -(2**63), 0.5, 1.5, 2.5]
    )
    reals[::11] = chance.choice(special.astype(np.float32), len(reals[::11]))
    return {"pool": chance.integers(0, 2**32, POOL, np.uint32), "in": words, "fin": reals}


def source(kernels: Sequence[GeneratedKernel]) -> str:
    return '#include "generated_prelude.h"\n' + "\n".join(kernel.text for kernel in kernels) + "\n"


# ------------------------------------------------------------------------------------ the emulator


def emulated(engine: EmulatorEngine, ptx: str, name: str, block: int, grid: int, given: Arrays) -> Arrays:
    """Execute a kernel on some arrays, its parameters in order; the arrays afterwards.

    Raises EngineUnavailable, and RuntimeError when it does not end or reaches outside them.
    """
    buffers = [Buffer(n, np.frombuffer(data.tobytes(), np.uint8)) for n, data in given.items()]
    arguments = tuple(Argument(b.name, bytes(8), ((0, b),)) for b in buffers)
    launch = LaunchConfig((block, 1, 1), (grid, 1, 1), 0)
    run = KernelRun(ptx, name, launch, arguments, (), races=False, deadline=120)
    outcome = Launch(engine.translated(ptx, name), run).outcome(keep_results=True)
    if outcome.failure or outcome.faults or outcome.stuck:
        raise RuntimeError(f"{name}: {outcome.failure or outcome.faults or outcome.stuck}")
    return {n: outcome.results[n].view(data.dtype) for n, data in given.items()}


def given_to(kernel: GeneratedKernel, inputs: Arrays) -> Arrays:
    """The arrays that a kernel is launched with, in the order of its parameters."""
    return {"out": np.zeros(GRID * kernel.block * len(kernel.kinds), np.uint64)} | inputs


# ---------------------------------------------------------------------------------- a host's compiler

_MAIN = """
template <class K> static void launch(K kernel, unsigned block, unsigned kinds, FILE* in, FILE* out) {
    std::vector<u64> o(%(grid)d * block * kinds);
    std::vector<u32> pool(%(pool)d), words(%(inputs)d);
    std::vector<f32> reals(%(inputs)d);
    rewind(in);
    if (fread(words.data(), 4, words.size(), in) + fread(reals.data(), 4, reals.size(), in) +
        fread(pool.data(), 4, pool.size(), in) != 2 * words.size() + pool.size()) exit(1);
    blockDim.x = block;
    gridDim.x = %(grid)d;
    for (unsigned b = 0; b < %(grid)d; ++b) {
        Meeting all(block);
        whole = &all;
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < block; ++t)
            threads.emplace_back([&, t, b] {
                threadIdx.x = t;
                blockIdx.x = b;
                kernel(o.data(), pool.data(), words.data(), reals.data());
            });
        for (std::thread& t : threads) t.join();
        groups.clear();
    }
    fwrite(o.data(), 8, o.size(), out);
    fwrite(pool.data(), 4, pool.size(), out);
}
int main(int, char** names) {
    FILE *in = fopen(names[1], "rb"), *out = fopen(names[2], "wb");
    %(launches)s
    return fclose(out);
}
"""


def hosted(kernels: Sequence[GeneratedKernel], given: Arrays, folder: Path) -> dict[str, Arrays]:
    """The same kernels as C++ for this machine. Raises CalledProcessError."""
    launches = "\n    ".join(f"launch({k.name}, {k.block}, {len(k.kinds)}, in, out);" for k in kernels)
    main = _MAIN % {"grid": GRID, "pool": POOL, "inputs": INPUTS, "launches": launches}
    text = f'#include <cstdio>\n#include "generated_host.h"\n#define SHARED static\n{source(kernels)}{main}'
    (folder / "host.cpp").write_text(text)
    built = folder / "host"
    compiler = [
        find_toolkit().nvcc,
        "-x",
        "c++",
        "-std=c++17",
        f"-I{HERE}",
        f"-Xcompiler={','.join(_HOST_FLAGS)}",
    ]
    subprocess.run([*compiler, folder / "host.cpp", "-o", built], check=True, timeout=280)
    data, results = folder / "in.bin", folder / "out.bin"
    data.write_bytes(b"".join(given[name].tobytes() for name in ("in", "fin", "pool")))
    subprocess.run([built, data, results], check=True, timeout=280)
    raw, at, found = results.read_bytes(), 0, {}
    for kernel in kernels:
        size = GRID * kernel.block * len(kernel.kinds)
        pool = np.frombuffer(raw, np.uint32, POOL, at + 8 * size)
        found[kernel.name] = {"out": np.frombuffer(raw, np.uint64, size, at), "pool": pool}
        at += 8 * size + 4 * POOL
    return found


# ------------------------------------------------------------------------------------------ comparison


def different(kind: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Which outputs of one kind differ; NaNs are equal."""
    if kind == "f32":
        x, y = (v.astype(np.uint32).view(np.float32) for v in (a, b))
        return (a != b) & ~(np.isnan(x) & np.isnan(y))
    if kind == "f64":
        x, y = (np.ascontiguousarray(v).view(np.float64) for v in (a, b))
        return (a != b) & ~(np.isnan(x) & np.isnan(y))
    if kind in _NARROW:
        infinity, count = _NARROW[kind]
        differs = np.zeros(len(a), bool)
        for k in range(count):
            x, y = ((v >> np.uint64(16 * k)) & np.uint64(0xFFFF) for v in (a, b))
            nan = ((x & np.uint64(0x7FFF)) > infinity) & ((y & np.uint64(0x7FFF)) > infinity)
            differs |= (x != y) & ~nan
        return differs
    return a != b


def compared(name: str, kinds: Sequence[str], a: Arrays, b: Arrays) -> list[str]:
    """What differs between two executions, in words; empty when nothing does."""
    rows: list[str] = []
    first, second = (arrays["out"].reshape(-1, len(kinds)) for arrays in (a, b))
    for k, kind in enumerate(kinds):
        wrong = np.flatnonzero(different(kind, first[:, k], second[:, k]))
        if len(wrong):
            t = int(wrong[0])
            values = f"{int(first[t, k]):#x} {int(second[t, k]):#x}"
            rows.append(f"{name} x{k} ({kind}): {len(wrong)} of {len(first)} threads, thread {t}: {values}")
    words = np.flatnonzero(a["pool"] != b["pool"])
    if len(words):
        rows.append(f"{name} pool: words {words.tolist()[:4]}")
    return rows
