"""A program whose kernels call functions through pointers that lie in memory."""

from __future__ import annotations

POINTERS = """
#include <cstdio>
#include <new>
typedef int (*Turn)(int);
__device__ int exchanged(int x) {
    __shared__ int s[64];
    s[threadIdx.x] = x;
    BARRIER
    return s[63 - threadIdx.x];
}
__device__ int turned(int x) { return exchanged(x) + 100; }
__device__ int twice(int x) { return 2 * x; }
__device__ Turn first = turned;
__device__ Turn both[2] = {twice, turned};
struct Base { __device__ virtual int of(int x) const { return x; } };
struct More : Base { __device__ int of(int x) const override { return turned(x) + 7; } };
__device__ More object;

// A pointer that the host got from a variable; one that another kernel stored; an object that one made.
__global__ void given(int* out, Turn turn) { out[threadIdx.x] = turn(threadIdx.x); }
__global__ void stores(Turn* place, int which) {
    if (threadIdx.x == 0) { place[0] = which ? turned : twice; both[0] = first; }
}
__global__ void stored(int* out, Turn* place) { out[threadIdx.x] = place[0](threadIdx.x); }
__global__ void table(int* out, int which) { out[threadIdx.x] = both[which](threadIdx.x); }
__global__ void makes(Base** place, void* room) { if (threadIdx.x == 0) *place = new (room) More(); }
__global__ void uses(int* out, Base** place) { out[threadIdx.x] = (*place)->of(threadIdx.x); }

int main() {
    int *out, host[64], total = 0;
    Turn turn, *place;
    Base** objects;
    void* room;
    cudaMalloc(&out, 256);
    cudaMalloc(&place, 8);
    cudaMalloc(&objects, 8);
    cudaMalloc(&room, 64);
    cudaMemcpyFromSymbol(&turn, first, sizeof turn);
    for (int k = 0; k < ROUNDS; ++k) {
        given<<<1, 64>>>(out, turn);
        cudaMemcpy(host, out, 256, cudaMemcpyDeviceToHost);
        total += host[0];  // 163
        stores<<<1, 64>>>(place, k % 2 == 0);
        stored<<<1, 64>>>(out, place);
        cudaMemcpy(host, out, 256, cudaMemcpyDeviceToHost);
        total += host[1];  // 162 or 2
        table<<<1, 64>>>(out, 0);
        cudaMemcpy(host, out, 256, cudaMemcpyDeviceToHost);
        total += host[2];  // 161
        makes<<<1, 64>>>(objects, room);
        uses<<<1, 64>>>(out, objects);
        cudaMemcpy(host, out, 256, cudaMemcpyDeviceToHost);
        total += host[3];  // 167
    }
    printf("total %d, %s\\n", total, cudaGetErrorString(cudaDeviceSynchronize()));
}
"""


def total(rounds: int) -> int:
    """What the program says."""
    return sum(163 + (2 if k % 2 else 162) + 161 + 167 for k in range(rounds))
