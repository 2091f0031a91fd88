"""Launches of the fixtures' kernels with arguments, for ``dynamic.py`` and the tests on a GPU.

Sizes follow the ``launch`` function at the end of each fixture; ``timing`` ones fill a GPU and are those of
``dynamic_kernels.cu``.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from attrs import frozen

from cuda_lsp.dynamic.compilation.compile import CompiledModule, CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.runs import Argument, Buffer, Detail, KernelRun, Level, RunOutcome
from cuda_lsp.model import LaunchConfig

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
Dim3 = tuple[int, int, int]
Builder = Callable[[int, np.random.Generator], tuple[Argument, ...]]


@frozen
class Launch:
    """How one kernel is launched. ``arguments``: made for a number of blocks. ``blocks``: shapes to try."""

    file: str
    kernel: str
    grid: Dim3
    block: Dim3
    arguments: Builder
    shared: int = 0
    blocks: tuple[Dim3, ...] = ()  # other block shapes the kernel is right for; empty: only its own
    max_grid: int = 64


def floats(name: str, count: int, rng: np.random.Generator) -> Argument:
    return pointer(name, rng.random(count, dtype=np.float32))


def zeros(name: str, count: int) -> Argument:
    return pointer(name, np.zeros(count, np.float32))


def pointer(name: str, values: np.ndarray, element: int = 4) -> Argument:
    data = np.frombuffer(values.tobytes(), np.uint8).copy()
    return Argument(name, bytes(8), ((0, Buffer(name, data, element)),))


def integer(name: str, value: int) -> Argument:
    return Argument(name, struct.pack("<i", value))


def real(name: str, value: float) -> Argument:
    return Argument(name, struct.pack("<f", value))


def _in_out(per_block: int, out_per_block: int = 1) -> Builder:
    return lambda n, rng: (zeros("out", n * out_per_block), floats("in", n * per_block, rng))


def _keys(n: int, rng: np.random.Generator) -> tuple[Argument, ...]:
    return (pointer("keys", rng.integers(0, 1 << 30, n * 256, dtype=np.uint32)),)


def _histogram(count: int) -> Builder:
    return lambda n, rng: (
        zeros("bins", 256),
        pointer("data", rng.integers(0, 256, count, dtype=np.uint8), 1),
        integer("n", count),
    )


def _scan(n: int, rng: np.random.Generator) -> tuple[Argument, ...]:
    return zeros("out", 256), floats("in", 256, rng), integer("n", 256)


def _stencil(n: int, rng: np.random.Generator) -> tuple[Argument, ...]:
    return zeros("out", n * 128 + 6), floats("in", n * 128 + 6, rng), integer("n", n * 128)


def _matmul(width: int) -> Builder:
    size = width * width
    return lambda n, rng: (
        zeros("c", size),
        floats("a", size, rng),
        floats("b", size, rng),
        integer("n", width),
    )


def _transpose(width: int) -> Builder:
    size = width * width
    return lambda n, rng: (zeros("out", size), floats("in", size, rng), integer("width", width))


_POWERS: tuple[Dim3, ...] = ((32, 1, 1), (64, 1, 1), (128, 1, 1))
LAUNCHES: tuple[Launch, ...] = (
    Launch(
        "binomial", "binomial", (4, 1, 1), (128, 1, 1),
        lambda n, rng: (
            zeros("price", n), floats("terminal", n * 128, rng), real("up", 0.5), real("down", 0.5),
        ),
    ),
    Launch("bitonic", "bitonic_sort", (8, 1, 1), (256, 1, 1), _keys),
    Launch(
        "double_buffer", "smooth_tiles", (1, 1, 1), (128, 1, 1),
        lambda n, rng: (zeros("out", 8 * 128), floats("in", 8 * 128, rng), integer("tiles", 8)), max_grid=1,
    ),
    Launch(
        "figure1", "neighbour", (1, 1, 1), (64, 1, 1), lambda n, rng: (zeros("out", 1024),), shared=256,
        blocks=((2, 1, 1), (33, 1, 1), (48, 1, 1), (64, 1, 1)), max_grid=1,
    ),
    Launch(
        "figure2", "consecutive_or_strided", (1, 1, 1), (16, 1, 1),
        lambda n, rng: (zeros("out", 256), integer("consecutive", 0), integer("iters", 4)), max_grid=1,
    ),
    Launch(
        "histogram", "histogram", (120, 1, 1), (128, 1, 1), _histogram(1 << 16),
        blocks=((64, 1, 1), (96, 1, 1), (128, 1, 1), (256, 1, 1)),
    ),
    Launch("matmul", "matmul", (64, 64, 1), (16, 16, 1), _matmul(1024), max_grid=0),
    Launch("reduce", "reduce_interleaved", (64, 1, 1), (128, 1, 1), _in_out(128), blocks=_POWERS),
    Launch("reduce", "reduce_strided", (64, 1, 1), (128, 1, 1), _in_out(128), blocks=_POWERS),
    Launch("reduce", "reduce_sequential", (64, 1, 1), (128, 1, 1), _in_out(256)),
    Launch("reduce", "reduce_last_warp", (64, 1, 1), (128, 1, 1), _in_out(128)),
    Launch(
        "reduce", "reduce_shuffle", (64, 1, 1), (128, 1, 1), _in_out(256),
        blocks=((64, 1, 1), (128, 1, 1), (256, 1, 1)),
    ),
    Launch("scan", "scan", (1, 1, 1), (128, 1, 1), _scan, shared=1024, max_grid=1),
    Launch("stencil", "stencil", (32, 1, 1), (128, 1, 1), _stencil),
    Launch("transpose", "transpose_naive", (32, 32, 1), (32, 32, 1), _transpose(1024), max_grid=0),
    Launch("transpose", "transpose_padded", (32, 32, 1), (32, 32, 1), _transpose(1024), max_grid=0),
)  # fmt: skip

_BIG = 1 << 22
TIMING: tuple[Launch, ...] = (
    Launch("reduce", "reduce_sequential", (_BIG // 256, 1, 1), (128, 1, 1), _in_out(256)),
    Launch("transpose", "transpose_padded", (64, 64, 1), (32, 32, 1), _transpose(2048)),
    Launch("matmul", "matmul", (64, 64, 1), (16, 16, 1), _matmul(1024)),
    Launch("histogram", "histogram", (1056, 1, 1), (128, 1, 1), _histogram(_BIG)),
    Launch("scan", "scan", (_BIG // 256, 1, 1), (128, 1, 1), _scan, shared=1024),
    Launch("bitonic", "bitonic_sort", (_BIG // 256, 1, 1), (256, 1, 1), _keys),
)


def shapes(launch: Launch, count: int, seed: int) -> Iterator[tuple[Dim3, Dim3]]:
    """``count`` random (grid, block) that the kernel is written for."""
    rng = random.Random(f"{launch.kernel} {seed}")
    for _ in range(count):
        block = rng.choice(launch.blocks) if launch.blocks else launch.block
        if launch.max_grid == 0:  # two-dimensional: a smaller corner of the same matrix
            grid = (rng.randint(1, launch.grid[0]), rng.randint(1, launch.grid[1]), 1)
        else:
            grid = (rng.randint(1, launch.max_grid), 1, 1)
        yield grid, block


def compiled(path: Path, text: str, level: Level, cache: Path, arch: str = "sm_90") -> CompiledModule:
    return compile_module(path, text, CompileOptions(arch=arch), level, find_toolkit(), cache)


def entry_of(module: CompiledModule, kernel: str) -> str:
    """The mangled name of a kernel in a module."""
    wanted = f"{len(kernel)}{kernel}"
    return next(name for name in module.module.entries if name == kernel or wanted in name)


def request(
    module: CompiledModule,
    launch: Launch,
    grid: Dim3 | None = None,
    block: Dim3 | None = None,
    *,
    watch: frozenset[int] | None = None,
    blocks: tuple[int, ...] | None = None,
    detail: Detail = Detail.PAIRS,
    races: bool = True,
    banks: bool = False,
    seed: int = 0,
) -> KernelRun:
    """One launch of a compiled fixture."""
    grid, block = grid or launch.grid, block or launch.block
    entry = entry_of(module, launch.kernel)
    count = grid[0] * grid[1] * grid[2]
    return KernelRun(
        ptx=module.ptx,
        entry=entry,
        launch=LaunchConfig(block=block, grid=grid, dynamic_shared=launch.shared),
        arguments=launch.arguments(count, np.random.default_rng(seed)),
        sites=sites_of(module, entry),
        watch=watch,
        blocks=blocks,
        detail=detail,
        races=races,
        banks=banks,
        deadline=20.0,
        seed=seed,
    )


def line_pairs(outcome: RunOutcome, run: KernelRun) -> set[tuple[int, int]]:
    """Source lines of the races, ascending; 0 where a site has no place in the file."""
    pairs: set[tuple[int, int]] = set()
    for race in outcome.races:
        found = (run.sites[number].site for number in race.sites)
        low, high = sorted(site.range.start.line if site else 0 for site in found)
        pairs.add((low, high))
    return pairs
