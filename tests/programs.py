"""A whole program that both engines' tests run."""

HISTOGRAM = r"""
#include <cstdio>
#include <cstdlib>
__device__ int launches;
__managed__ int step = 2;
__constant__ int weights[2] = {1, 10};
__global__ void count(int* bins, const int* data, int n) {
    __shared__ int local[64];
    local[threadIdx.x] = 0;
    BARRIER
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&local[data[i] & 63], weights[i & 1]);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
    if (i == 0) { atomicAdd(&launches, step); printf("first of %u blocks, %s\n", gridDim.x, "hello"); }
}
int main(int argc, char** argv) {
    int n = argc > 1 ? atoi(argv[1]) : 1000;
    int *data, *bins, host[64], total = 0, seen = 0;
    cudaMallocManaged(&data, n * sizeof(int));
    cudaMalloc(&bins, 64 * sizeof(int));
    cudaMemset(bins, 0, 64 * sizeof(int));
    for (int i = 0; i < n; ++i) data[i] = i * 7;
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    for (int k = 0; k < 3; ++k) count<<<(n + 63) / 64, 64, 0, stream>>>(bins, data, n);
    cudaStreamSynchronize(stream);
    cudaMemcpy(host, bins, sizeof host, cudaMemcpyDeviceToHost);
    cudaMemcpyFromSymbol(&seen, launches, sizeof seen);
    for (int b : host) total += b;
    printf("total %d, launches %d, %s\n", total, seen, cudaGetErrorString(cudaGetLastError()));
    return total == 3 * (n / 2 * 11) ? 0 : 1;
}
"""
