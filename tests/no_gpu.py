"""Programs that were built for a GPU, run without one: CUDA's runtime is ours, and launches nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cuda_lsp.dynamic.compilation.toolkit import find_toolkit

# CUDA's runtime, as far as launches need it: everything else answers that it is done.
RUNTIME = r"""
#include <stdlib.h>
#include <string.h>
typedef struct { unsigned x, y, z; } dim3;
static struct { dim3 grid, block; size_t shared; void* stream; } pushed;
static void* binary;
void** __cudaRegisterFatBinary(void* data) { return &binary; }
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void* stream) {
    pushed.grid = grid, pushed.block = block, pushed.shared = shared, pushed.stream = stream;
    return 0;
}
int __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void** stream) {
    *grid = pushed.grid, *block = pushed.block, *shared = pushed.shared, *stream = pushed.stream;
    return 0;
}
int __cudaGetKernel(void** out, void* function) { *out = function; return 0; }
int cudaStreamIsCapturing(void* stream, int* out) { *out = 0; return 0; }
int cudaGetDevice(int* out) { *out = 0; return 0; }
int cudaMalloc(void** out, size_t size) { *out = calloc(1, size); return 0; }
int cudaMemcpy(void* out, const void* in, size_t size, int kind) { memcpy(out, in, size); return 0; }
int cudaMemset(void* out, int value, size_t size) { memset(out, value, size); return 0; }
const char* cudaGetErrorString(int error) { return "no error"; }
"""

# What `gpu_process.py` does with a program, but that each launch is only named.
LOADED = """
import ctypes, sys

program = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
name, start, size = ctypes.c_char_p(), ctypes.c_ulonglong(), ctypes.c_ulonglong()


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint), ctypes.c_void_p)
def launch(name, shape, arguments):
    print("launch", name.decode(), shape[0], shape[3], flush=True)
    return 1


program.clsp_attach(launch)
words = [word.encode() for word in sys.argv[1:]]
program.main(len(words), (ctypes.c_char_p * len(words))(*words))
number = 0
while program.clsp_variable(number, *map(ctypes.byref, (name, start, size))):
    print("variable", name.value.decode(), size.value, flush=True)
    number += 1
"""


def ran_on_no_gpu(folder: Path, program: Path, words: tuple[str, ...]) -> list[str]:
    """What the loaded program and its hooks say, with a runtime that launches nothing."""
    binaries = [program, *program.parent.glob("[0-9]*/*")]
    needed = {
        line.split()[-1].partition("@")[0]
        for binary in binaries
        for line in subprocess.check_output(["nm", "-D", "-u", binary], text=True).splitlines()
    }
    runtime = {name for name in needed if name.startswith(("cuda", "__cuda"))}
    others = sorted(name for name in runtime if f" {name}(" not in RUNTIME and f"** {name}(" not in RUNTIME)
    (folder / "runtime.c").write_text(RUNTIME + "".join(f"int {name}() {{ return 0; }}\n" for name in others))
    version = find_toolkit().version.partition(".")[0]
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "runtime.c", "-o", f"libcudart.so.{version}"],
                   cwd=folder, check=True)  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", LOADED, program, *words], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done
    return done.stdout.splitlines()
