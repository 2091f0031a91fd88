"""A project whose kernels stand in shared libraries; each library has a kernel and a variable of one name."""

from __future__ import annotations

from pathlib import Path

TURN = """#pragma once
__device__ int turned(int x) {
    __shared__ int s[64];
    s[threadIdx.x] = x;
    BARRIER
    return s[63 - threadIdx.x];
}
"""
LIBRARY = """#include "turn.cuh"
__device__ int added = ADDED;
__global__ void turn(int* p) { p[threadIdx.x] = turned(p[threadIdx.x]) + added; }
static void start(int* p) {
    int one = 0;
    cudaMemcpyFromSymbol(&one, added, sizeof one);
    one += 1;
    cudaMemcpyToSymbol(added, &one, sizeof one);
    turn<<<1, 64>>>(p);
}
extern "C" void NAME(int* p) { start(p); }
extern "C" void run(int* p) { start(p); }
"""
APP = """#include <cstdio>
extern "C" void first(int* p);
extern "C" void second(int* p);
int main() {
    int *p, host[2];
    cudaMalloc(&p, 256);
    cudaMemset(p, 0, 256);
    first(p);
    cudaMemcpy(host, p, 4, cudaMemcpyDeviceToHost);
    cudaMemset(p, 0, 256);
    second(p);
    cudaMemcpy(host + 1, p, 4, cudaMemcpyDeviceToHost);
    printf("linked %d %d, %s\\n", host[0], host[1], cudaGetErrorString(cudaDeviceSynchronize()));
}
"""
OPENING = """#include <cuda_runtime.h>
#include <cstdio>
#include <dlfcn.h>
int main(int count, char** names) {
    int *p, host = 0;
    cudaMalloc(&p, 256);
    for (int k = 1; k < count; ++k) {
        void* library = dlopen(names[k], RTLD_NOW);
        if (!library) { printf("%s\\n", dlerror()); return 3; }
        cudaMemset(p, 0, 256);
        ((void (*)(int*))dlsym(library, "run"))(p);
        cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost);
        printf("%s: %d, ", names[k], host);
    }
    printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
"""
MAKEFILE = """NVCC ?= nvcc
all: linked opened
libfirst.so: first.cu turn.cuh
\t$(NVCC) -shared -Xcompiler -fPIC -DNAME=first -DADDED=163 first.cu -o libfirst.so.1
\tln -sf libfirst.so.1 libfirst.so
second.o: second.cu turn.cuh
\t$(NVCC) -rdc=true -Xcompiler -fPIC -DNAME=second -DADDED=263 -c second.cu -o second.o
libsecond.so: second.o
\t$(NVCC) -shared second.o -o libsecond.so
linked: app.cu libfirst.so libsecond.so
\t$(NVCC) app.cu -L. -lfirst libsecond.so -Xlinker -rpath,. -o linked
opened: opening.cpp plain
\t$(NVCC) opening.cpp -Xlinker -rpath,. -ldl -o opened
plain: libfirst.so libsecond.so
"""


def written(folder: Path, barrier: str) -> None:
    """The project in a folder."""
    texts = {
        "turn.cuh": TURN.replace("BARRIER", barrier),
        "first.cu": LIBRARY,
        "second.cu": LIBRARY,
        "app.cu": APP,
        "opening.cpp": OPENING,
        "Makefile": MAKEFILE,
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
