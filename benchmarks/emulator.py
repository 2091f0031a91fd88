"""How fast the CPU emulator executes and checks one block: ``python benchmarks/emulator.py``.

Needs nvcc. For each kernel: milliseconds of plain execution, of execution watched for races, of one whose
bank conflicts are counted, and the ratios; after translation, in CPU time, the best of several runs (the
machine is noisy, the program is not). One execution is measured; a kernel that races is executed a second
time, with the opposite order of warps.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
from attrs import evolve

from cuda_lsp.dynamic.compilation.compile import CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine, Launch
from cuda_lsp.dynamic.runs import Argument, Buffer, KernelRun, Level
from cuda_lsp.model import LaunchConfig

SOURCE = r"""
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
"""
CASES = {
    "figure1": ((256, 1, 1), ()),
    "scan": ((256, 1, 1), ()),
    "matmul": ((16, 16, 1), (("i", 256),)),
    "binomial": ((256, 1, 1), (("f", 0.5), ("f", 0.5), ("i", 128))),
}
POINTERS = {"figure1": 1, "scan": 1, "matmul": 3, "binomial": 1}
RUNS = 120


def arguments(kernel: str) -> tuple[Argument, ...]:
    buffers = [
        Buffer(f"p{k}", np.arange(1 << 16, dtype=np.int32).view(np.uint8)) for k in range(POINTERS[kernel])
    ]
    pointers = [Argument(b.name, bytes(8), ((0, b),)) for b in buffers]
    kinds = {"i": np.int32, "f": np.float32}
    scalars = [
        Argument(f"s{k}", kinds[kind](value).tobytes()) for k, (kind, value) in enumerate(CASES[kernel][1])
    ]
    return (*pointers, *scalars)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernels.cu"
        source.write_text(SOURCE)
        module = compile_module(
            source, SOURCE, CompileOptions(), Level.O0, find_toolkit(), Path(folder) / "cache"
        )
    engine = EmulatorEngine()
    rows = []
    for kernel, (block, _) in CASES.items():
        entry = next(e for e in module.module.entries if kernel in e)
        launch = LaunchConfig(block, (1, 1, 1), 0)
        request = KernelRun(
            module.ptx, entry, launch, arguments(kernel), sites_of(module, entry), deadline=60
        )
        program = engine.translated(request.ptx, request.entry)
        names = ("plain", "races", "banks")
        runs = {name: evolve(request, races=name == "races", banks=name == "banks") for name in names}
        times = dict.fromkeys(runs, float("inf"))
        for _ in range(RUNS):  # in turn, so that what else the machine does hits all of them
            for name, run in runs.items():
                times[name] = min(times[name], 1e3 * Launch(program, run).cpu_seconds)
        ratios = {f"{name} ratio": times[name] / times["plain"] for name in ("races", "banks")}
        rows.append({"kernel": kernel, **times, **ratios})
        shown = "  ".join(f"{name} {value:7.2f} ms" for name, value in times.items())
        print(f"{kernel:10} {shown}  " + "  ".join(f"{ratio:.2f}x" for ratio in ratios.values()))
    (Path(__file__).parent / "emulator.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
