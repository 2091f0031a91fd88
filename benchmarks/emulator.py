"""How fast the CPU emulator executes and checks kernels, in NumPy and in C.

``python benchmarks/emulator.py``. Needs nvcc. For each kernel: milliseconds of plain execution, of execution
watched for races, of one whose bank conflicts are counted; after translation and lowering, in CPU time, the
best of several runs in turn (the machine is noisy, the program is not). One execution is measured; a kernel
that races is executed a second time, with the opposite order of warps. Then every run that a check of each
fixture makes.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

from cuda_lsp.config import Settings
from cuda_lsp.confirm import CheckOptions, job_for
from cuda_lsp.dynamic.check import Engines, check
from cuda_lsp.dynamic.compilation.compile import CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine, Launch
from cuda_lsp.dynamic.emulator.native.library import LIBRARY
from cuda_lsp.dynamic.job import EngineKind
from cuda_lsp.dynamic.runs import Argument, Buffer, KernelRun, Level, RunOutcome
from cuda_lsp.model import LaunchConfig
from cuda_lsp.static.analyze import Analyzer

SOURCE = r"""
#include <cuda/barrier>
__global__ void figure1(int* out) {
    __shared__ int s[257];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 1];
}
__global__ void scan(int* data) {
    __shared__ int s[512];
    int tid = threadIdx.x, offset = 1;
    s[2 * tid] = data[2 * tid];
    s[2 * tid + 1] = data[2 * tid + 1];
    for (int d = 256; d > 0; d >>= 1) {
        __syncthreads();
        if (tid < d) s[offset * (2 * tid + 2) - 1] += s[offset * (2 * tid + 1) - 1];
        offset *= 2;
    }
    if (tid == 0) s[511] = 0;
    for (int d = 1; d < 512; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (tid < d) {
            int a = offset * (2 * tid + 1) - 1, b = offset * (2 * tid + 2) - 1, t = s[a];
            s[a] = s[b];
            s[b] += t;
        }
    }
    __syncthreads();
    data[2 * tid] = s[2 * tid];
    data[2 * tid + 1] = s[2 * tid + 1];
}
__global__ void matmul(float* c, const float* a, const float* b, int n) {
    __shared__ float as[16][16], bs[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    float sum = 0;
    for (int t = 0; t < n / 16; ++t) {
        as[ty][tx] = a[ty * n + t * 16 + tx];
        bs[ty][tx] = b[(t * 16 + ty) * n + tx];
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += as[ty][k] * bs[k][tx];
        __syncthreads();
    }
    c[ty * n + tx] = sum;
}
__global__ void binomial(float* out, float rise, float fall, int steps) {
    __shared__ float value[257];
    int i = threadIdx.x;
    value[i] = i * 0.01f;
    if (i == 0) value[256] = 2.56f;
    for (int s = steps; s > 0; --s) {
        __syncthreads();
        float v = i < s ? rise * value[i + 1] + fall * value[i] : 0;
        __syncthreads();
        if (i < s) value[i] = v;
    }
    if (i == 0) out[0] = value[0];
}
#define TILE 32
__global__ void product(float* c, const float* a, const float* b, int n) {
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0;
    for (int t = 0; t < n / TILE; ++t) {
        as[ty][tx] = a[row * n + t * TILE + tx];
        bs[ty][tx] = b[(t * TILE + ty) * n + col];
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += as[ty][k] * bs[k][tx];
        __syncthreads();
    }
    c[row * n + col] = sum;
}
#define R 4
__global__ void stencil(float* out, const float* in, int nx, int ny, int nz) {
    __shared__ float tile[8 + 2 * R][32 + 2 * R];
    int x = blockIdx.x * 32 + threadIdx.x + R, y = blockIdx.y * 8 + threadIdx.y + R;
    int tx = threadIdx.x + R, ty = threadIdx.y + R;
    int plane = nx * ny, at = y * nx + x;
    float behind[R], front[R], current;
    for (int i = R - 1; i >= 0; --i) { behind[i] = in[at]; at += plane; }
    current = in[at]; int o = at; at += plane;
    for (int i = 0; i < R; ++i) { front[i] = in[at]; at += plane; }
    for (int z = R; z < nz - R; ++z) {
        __syncthreads();
        if (threadIdx.y < R) {
            tile[threadIdx.y][tx] = in[o - R * nx];
            tile[threadIdx.y + 8 + R][tx] = in[o + 8 * nx];
        }
        if (threadIdx.x < R) {
            tile[ty][threadIdx.x] = in[o - R];
            tile[ty][threadIdx.x + 32 + R] = in[o + 32];
        }
        tile[ty][tx] = current;
        __syncthreads();
        float v = 0.5f * current;
        for (int i = 1; i <= R; ++i)
            v += 0.1f * (front[i - 1] + behind[i - 1] + tile[ty - i][tx] + tile[ty + i][tx]
                         + tile[ty][tx - i] + tile[ty][tx + i]);
        out[o] = v;
        for (int i = R - 1; i > 0; --i) behind[i] = behind[i - 1];
        behind[0] = current; current = front[0];
        for (int i = 0; i < R - 1; ++i) front[i] = front[i + 1];
        front[R - 1] = z + R + 1 < nz ? in[at] : 0.f;
        at += plane; o += plane;
    }
}
__global__ void hand_over(float* out, const float* in, int rounds) {
    __shared__ float buffer[2][128];
    __shared__ cuda::barrier<cuda::thread_scope_block> ready[2], filled[2];
    if (threadIdx.x == 0)
        for (int k = 0; k < 2; ++k) { init(&ready[k], blockDim.x); init(&filled[k], blockDim.x); }
    __syncthreads();
    int t = threadIdx.x;
    if (t < 128) {
        for (int i = 0; i < rounds; ++i) {
            ready[i % 2].arrive_and_wait();
            buffer[i % 2][t] = in[i * 128 + t];
            auto token = filled[i % 2].arrive();
        }
    } else {
        auto a = ready[0].arrive(); auto b = ready[1].arrive();
        float sum = 0;
        for (int i = 0; i < rounds; ++i) {
            filled[i % 2].arrive_and_wait();
            sum += buffer[i % 2][(t - 128 + i) % 128];
            auto token = ready[i % 2].arrive();
        }
        out[128 * blockIdx.x + t - 128] = sum;
    }
}
"""
CASES = {  # block, grid, pointers, scalars
    "figure1": ((256, 1, 1), (1, 1, 1), 1, ()),
    "scan": ((256, 1, 1), (1, 1, 1), 1, ()),
    "matmul": ((16, 16, 1), (1, 1, 1), 3, (("i", 256),)),
    "binomial": ((256, 1, 1), (1, 1, 1), 1, (("f", 0.5), ("f", 0.5), ("i", 128))),
    "product": ((32, 32, 1), (2, 1, 1), 3, (("i", 1024),)),
    "stencil": ((32, 8, 1), (2, 2, 1), 2, (("i", 96), ("i", 32), ("i", 256))),
    "hand_over": ((256, 1, 1), (2, 1, 1), 2, (("i", 16),)),
}
RUNS = 20


def arguments(pointers: int, scalars: tuple[tuple[str, float], ...]) -> tuple[Argument, ...]:
    chance = np.random.default_rng(1)
    buffers = [Buffer(f"p{k}", chance.random(1 << 20, np.float32).view(np.uint8)) for k in range(pointers)]
    kinds = {"i": np.int32, "f": np.float32}
    return (
        *(Argument(b.name, bytes(8), ((0, b),)) for b in buffers),
        *(Argument(f"s{k}", kinds[kind](value).tobytes()) for k, (kind, value) in enumerate(scalars)),
    )


def best(engine: EmulatorEngine, runs: dict[str, KernelRun], times: int) -> dict[str, float]:
    """CPU milliseconds of each run, in NumPy and in C."""
    found: dict[str, float] = {}
    for _ in range(times):  # in turn, so that what else the machine does hits all of them
        for name, run in runs.items():
            program = engine.translated(run.ptx, run.entry)
            for compiled in (False, None):  # None: as users have it, once the engine was made
                key = f"{name} {'C' if compiled is None else 'NumPy'}"
                taken = 1e3 * Launch(program, run, compiled=compiled).cpu_seconds
                found[key] = min(taken, found.get(key, taken))
    return found


def kernels(engine: EmulatorEngine, folder: Path) -> Iterator[dict[str, Any]]:
    source = folder / "kernels.cu"
    source.write_text(SOURCE)
    module = compile_module(source, SOURCE, CompileOptions(), Level.O0, find_toolkit(), folder / "cache")
    for kernel, (block, grid, pointers, scalars) in CASES.items():
        entry = next(e for e in module.module.entries if kernel in e)
        made, sites = arguments(pointers, scalars), sites_of(module, entry)
        request = KernelRun(module.ptx, entry, LaunchConfig(block, grid, 0), made, sites, deadline=60)
        names = ("plain", "races", "banks")
        runs = {name: evolve(request, races=name == "races", banks=name == "banks") for name in names}
        yield {"kernel": kernel, **best(engine, runs, RUNS)}


def fixtures(engine: EmulatorEngine) -> Iterator[dict[str, Any]]:
    """What a check of each kernel of a fixture runs, all runs together."""
    asked: list[KernelRun] = []
    run, engines = EmulatorEngine.run, Engines()

    def noted(self: EmulatorEngine, request: KernelRun, progress: Callable[[str], None]) -> RunOutcome:
        asked.append(request)
        return run(self, request, progress)

    EmulatorEngine.run = noted  # type: ignore[method-assign]
    for path in sorted((Path(__file__).parents[1] / "fixtures").glob("*.cu")):
        text, analyzer = path.read_text(), Analyzer(Settings())
        for kernel in analyzer.update(path, text).kernels:
            asked.clear()
            options = CheckOptions(EngineKind.EMULATOR, watch_all=True, all_blocks=False)
            program = analyzer.kernel(path, kernel.name)
            if program is not None:
                check(job_for(path, text, program, kernel, Settings(), options), engines, lambda stage: None)
            found = [best(engine, {"check": request}, 3) for request in asked]
            if found:
                total = {key: sum(times[key] for times in found) for key in found[0]}
                yield {"fixture": f"{path.stem}: {kernel.name}", **total}
        analyzer.shutdown()


def main() -> None:
    LIBRARY.get()
    engine, rows = EmulatorEngine(), []
    with tempfile.TemporaryDirectory() as folder:
        for row in (*kernels(engine, Path(folder)), *fixtures(engine)):
            rows.append(row)
            numbers = {key: value for key, value in row.items() if isinstance(value, float)}
            name = row.get("kernel") or row.get("fixture")
            print(
                f"{name:34}", "  ".join(f"{key} {value:8.2f}" for key, value in numbers.items()), flush=True
            )
    (Path(__file__).parent / "emulator.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
