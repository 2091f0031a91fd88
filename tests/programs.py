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

MANAGED = r"""
#include <cstdio>
__managed__ int step = 2, total;
__global__ void add(int* out) {
    out[threadIdx.x] = step;
    if (threadIdx.x == 0) total += step;
}
int main() {
    int *out, told = 0;
    cudaMalloc(&out, 64 * sizeof(int));
    add<<<1, 64>>>(out);
    cudaDeviceSynchronize();
    for (step = 3; step < 7; ++step) {
        add<<<1, 64>>>(out);
        cudaDeviceSynchronize();
    }
    cudaMemcpy(&told, out + 63, sizeof told, cudaMemcpyDeviceToHost);
    printf("total %d, last %d, %s\n", total, told, cudaGetErrorString(cudaGetLastError()));
    return 0;
}
"""
"""What host and kernels tell each other through managed variables, before the host has touched one."""

GRAPH = """
#include <cuda_runtime.h>
#include <cstdio>
__global__ void shift(int* out, const int* in) {
    __shared__ int s[65];
    s[threadIdx.x] = in[threadIdx.x];
    BARRIER
    out[threadIdx.x] = s[(threadIdx.x + 1) % 64];
}
__global__ void add(int* out, const int* in, int step) { out[threadIdx.x] += in[threadIdx.x] + step; }
void said(void* words) { printf("host: %s\\n", (const char*)words); }
int main() {
    int *a, *b, host[64], back[64];
    for (int i = 0; i < 64; ++i) host[i] = i;
    cudaMalloc(&a, 256);
    cudaMalloc(&b, 256);
    cudaMemcpy(a, host, 256, cudaMemcpyHostToDevice);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);  // b = a shifted; a += b + 1
    cudaMemsetAsync(b, 0, 256, stream);
    shift<<<1, 64, 0, stream>>>(b, a);
    add<<<1, 64, 0, stream>>>(a, b, 1);
    cudaLaunchHostFunc(stream, said, (void*)"captured");
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiateWithFlags(&ready, graph, 0);
    for (int k = 0; k < 3; ++k) cudaGraphLaunch(ready, stream);
    cudaStreamSynchronize(stream);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);

    int step = 10;
    void* given[] = {&a, &b, &step};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void*)add, kernel.gridDim = dim3(1), kernel.blockDim = dim3(64);
    kernel.kernelParams = given;
    cudaMemsetParams zeros = {};
    zeros.dst = b, zeros.elementSize = 4, zeros.width = 64, zeros.height = 1, zeros.value = 7;
    cudaGraphNode_t set, first, second, copied;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &zeros);
    cudaGraphAddKernelNode(&first, graph, &set, 1, &kernel);
    cudaGraphAddKernelNode(&second, graph, &first, 1, &kernel);
    cudaGraphAddMemcpyNode1D(&copied, graph, &second, 1, back, a, 256, cudaMemcpyDeviceToHost);
    cudaGraphInstantiateWithFlags(&ready, graph, 0);
    step = 1000;  // nodes keep what they were given
    cudaGraphLaunch(ready, stream);
    cudaStreamSynchronize(stream);
    step = 100;
    cudaGraphExecKernelNodeSetParams(ready, second, &kernel);
    cudaGraphLaunch(ready, stream);
    cudaStreamSynchronize(stream);
    int want[64], next[64];
    for (int k = 0; k < 3; ++k) {
        for (int i = 0; i < 64; ++i) next[i] = host[i] + host[(i + 1) % 64] + 1;
        for (int i = 0; i < 64; ++i) host[i] = next[i];
    }
    bool same = true;
    for (int i = 0; i < 64; ++i) want[i] = host[i] + 7 * 4 + 10 * 3 + 100, same = same && want[i] == back[i];
    printf("%s, %s\\n", same ? "as it should be" : "wrong", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}
"""

CLUSTERS = """
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <cstdio>
namespace cg = cooperative_groups;
__global__ void swap(int* out, const int* in) {
    __shared__ int s[64], t[65];
    cg::cluster_group cluster = cg::this_cluster();
    s[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    t[threadIdx.x] = threadIdx.x;
    BARRIER
    int* theirs = cluster.map_shared_rank(s, cluster.block_rank() ^ 1);
    out[blockIdx.x * 64 + threadIdx.x] = theirs[threadIdx.x] + t[(threadIdx.x + 1) % 64];
    cluster.sync();
}
int main() {
    int *in, *out, host[512];
    for (int i = 0; i < 512; ++i) host[i] = i;
    cudaMalloc(&in, sizeof host);
    cudaMalloc(&out, sizeof host);
    cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(8), config.blockDim = dim3(64);
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 2, attribute.val.clusterDim.y = 1, attribute.val.clusterDim.z = 1;
    config.attrs = &attribute, config.numAttrs = 1;
    const int* given = in;
    cudaLaunchKernelEx(&config, swap, out, given);
    cudaError_t error = cudaDeviceSynchronize();
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    bool same = true;
    for (int i = 0; i < 512; ++i) same = same && host[i] == (i ^ 64) + (i + 1) % 64;
    printf("%s, %s\\n", same ? "as it should be" : "wrong", cudaGetErrorString(error));
    return 0;
}
"""

DEVICES = """
#include <cuda_runtime.h>
#include <cstdio>
__device__ int seen;
__managed__ int together;
__constant__ int offset = 7;
__global__ void shift(int* out, const int* in) {
    __shared__ int s[64];
    s[threadIdx.x] = in[threadIdx.x] + offset;
    BARRIER
    out[threadIdx.x] = s[(threadIdx.x + 1) % 64];
    if (threadIdx.x == 0) { seen += 1; atomicAdd_system(&together, 1); }
}
int main() {
    int count = 0, host[64], back[2][64], told[2], *in[2], *out[2];
    cudaGetDeviceCount(&count);
    if (count < 2) { printf("only %d device\\n", count); return 0; }
    for (int i = 0; i < 64; ++i) host[i] = i;
    for (int d = 0; d < 2; ++d) {
        int step = 100 * (d + 1);
        cudaSetDevice(d);
        cudaMalloc(&in[d], sizeof host);
        cudaMalloc(&out[d], sizeof host);
        cudaMemcpy(in[d], host, sizeof host, cudaMemcpyHostToDevice);
        if (d) cudaMemcpyToSymbol(offset, &step, sizeof step);
    }
    for (int k = 0; k < 2; ++k)
        for (int d = 0; d < 2; ++d) {
            cudaSetDevice(d);
            for (int j = 0; j <= d; ++j) shift<<<1, 64>>>(out[d], in[d]);
        }
    int device = -1;
    for (int d = 0; d < 2; ++d) {
        cudaSetDevice(d);
        cudaDeviceSynchronize();
        cudaMemcpy(back[d], out[d], sizeof host, cudaMemcpyDeviceToHost);
        cudaMemcpyFromSymbol(&told[d], seen, sizeof told[d]);
    }
    bool same = true;
    for (int i = 0; i < 64; ++i)
        for (int d = 0; d < 2; ++d) same = same && back[d][i] == (i + 1) % 64 + (d ? 200 : 7);
    cudaPointerAttributes of;
    cudaPointerGetAttributes(&of, in[1]);
    cudaGetDevice(&device);
    printf("%s, %d and %d of %d, ", same ? "as it should be" : "wrong", told[0], told[1], together);
    printf("device %d, memory of %d, %s\\n", device, of.device, cudaGetErrorString(cudaSetDevice(count)));
    return 0;
}
"""

COOPERATIVE = """
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <cstdio>
namespace cg = cooperative_groups;
__device__ void reversed(int* out, int* s, int n, int own) {
    cg::grid_group grid = cg::this_grid();
    s[own] = own;
    if (threadIdx.x == 0) atomicAdd(out + 2 * n, 1);
    for (int i = grid.thread_rank(); i < n; i += grid.size()) out[i] = i + s[own] - own;
    BARRIER
    for (int i = grid.thread_rank(); i < n; i += grid.size()) out[n + i] = out[n - 1 - i];
}
template <int T> __global__ void many(int* out, int n) {
    __shared__ int s[T];
    reversed(out, s, n, threadIdx.x);
}
__global__ void large(int* out, int n) {
    extern __shared__ int s[];
    reversed(out, s, n, threadIdx.x);
}
__global__ void wide(int* out, int n) {
    extern __shared__ int s[];
    reversed(out, s, n, threadIdx.x);
}
__global__ void sized(int* out, int n) {  // meets nobody, and is launched like any other
    cg::grid_group grid = cg::this_grid();
    for (int i = grid.thread_rank(); i < n; i += grid.size()) out[i] = i;
}
void check(const char* name, const void* kernel, int threads, int shared, int n) {
    int device = 0, each = 0, processors = 0, *out;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, shared);
    cudaMalloc(&out, (2 * n + 1) * sizeof(int));
    cudaMemset(out, 0, (2 * n + 1) * sizeof(int));
    void* given[] = {&out, &n};
    cudaLaunchCooperativeKernel(kernel, each * processors, threads, given, shared, 0);
    cudaError_t error = cudaDeviceSynchronize();
    int* host = new int[2 * n + 1];
    cudaMemcpy(host, out, (2 * n + 1) * sizeof(int), cudaMemcpyDeviceToHost);
    bool same = host[2 * n] == each * processors;
    for (int i = 0; i < n; ++i) same = same && host[i] == i && host[n + i] == n - 1 - i;
    printf("%s, %d blocks: %s, %s\\n", name, each * processors, same ? "as it should be" : "wrong",
           cudaGetErrorString(error));
    cudaFree(out);
    delete[] host;
}
int main() {
    int most = 0, *out;
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    check("small blocks", (const void*)many<64>, 64, 0, 4096);
    check("full blocks", (const void*)many<1024>, 1024, 0, 4096);
    check("all shared memory", (const void*)large, 64, most, 4096);
    check("all threads and shared memory", (const void*)wide, 256, most / 8 - 1024, 4096);
    cudaMalloc(&out, 1 << 22);
    sized<<<1 << 14, 64>>>(out, 1 << 20);
    return cudaDeviceSynchronize();
}
"""
