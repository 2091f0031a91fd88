"""An atomic load beside other accesses: it races with plain writes only, and both engines call it a load."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from both_engines import ENGINES, outcome_on
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import CompiledModule, CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.runs import Argument, Buffer, KernelRun, Level
from cuda_lsp.model import LaunchConfig, Mode

pytestmark = [needs_nvcc, pytest.mark.usefixtures("shared_cache")]

LOAD, PLAIN_LOAD = "flag.load(cuda::memory_order_relaxed)", "*out"
STORE = "flag.store(1, cuda::memory_order_relaxed);"
# Name: the scope of the atomics, what every thread reads, what one does then, the modes that race.
KERNELS: dict[str, tuple[str, str, str, set[Mode]]] = {
    "beside_a_plain_store": ("device", LOAD, "*out = 1;", {Mode.ATOMIC_READ, Mode.WRITE}),
    "beside_an_atomic_store": ("device", LOAD, STORE, set()),
    "beside_an_update": ("device", LOAD, "atomicAdd(out, 1u);", set()),
    "a_plain_load_beside_an_atomic_store": ("device", PLAIN_LOAD, STORE, {Mode.READ, Mode.ATOMIC}),
    "of_block_scope_between_blocks": ("block", LOAD, STORE, {Mode.ATOMIC_READ, Mode.ATOMIC}),
    "of_block_scope_beside_a_plain_load": ("block", LOAD, "seen += *out;", set()),
}
KERNEL = """extern "C" __global__ void %s(unsigned* out) {
    unsigned t = threadIdx.x, b = blockIdx.x;
    cuda::atomic_ref<unsigned, cuda::thread_scope_%s> flag(*out);
    unsigned seen = %s;
    if (t == 0 && b == 0) { %s }
    out[64 + 64 * b + t] = seen;
}
"""
SOURCE = "#include <cuda/atomic>\n" + "".join(KERNEL % (name, *KERNELS[name][:3]) for name in KERNELS)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledModule:
    folder = tmp_path_factory.mktemp("atomic_loads")
    path = folder / "kernel.cu"
    path.write_text(SOURCE)
    options = CompileOptions(extra=("-arch=sm_90",))
    return compile_module(path, SOURCE, options, Level.O3, find_toolkit(), folder / "cache")


@pytest.mark.parametrize("on", ENGINES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_an_atomic_load(compiled: CompiledModule, on: str, kernel: str) -> None:
    out = Buffer("out", np.zeros(1024, np.uint8))
    launch, argument = LaunchConfig((64, 1, 1), (2, 1, 1), 0), Argument("out", bytes(8), ((0, out),))
    run = KernelRun(compiled.ptx, kernel, launch, (argument,), sites_of(compiled, kernel), deadline=60.0)
    assert {mode for race in outcome_on(on, run).races for mode in race.modes} == KERNELS[kernel][3]
