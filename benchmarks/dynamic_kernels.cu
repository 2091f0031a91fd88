// The fixtures' kernels at sizes that fill a GPU, for native timing and for compute-sanitizer.
// Build: nvcc -O3 -arch=native benchmarks/dynamic_kernels.cu; run: a.out KERNEL REPETITIONS [BLOCKS] (prints
// milliseconds). BLOCKS: so many of the grid's first row, and for matmul of a matrix that has no more.

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace reduce_file {
#include "../fixtures/reduce.cu"
}
namespace transpose_file {
#include "../fixtures/transpose.cu"
}
namespace matmul_file {
#include "../fixtures/matmul.cu"
}
namespace histogram_file {
#include "../fixtures/histogram.cu"
}
namespace scan_file {
#include "../fixtures/scan.cu"
}
namespace bitonic_file {
#include "../fixtures/bitonic.cu"
}

template <class Launch>
static void timed(Launch launch, int repetitions) {
    cudaEvent_t start, end;
    cudaEventCreate(&start);
    cudaEventCreate(&end);
    float best = 1e30f;
    for (int i = 0; i < repetitions; ++i) {
        cudaEventRecord(start);
        launch();
        cudaEventRecord(end);
        cudaEventSynchronize(end);
        float milliseconds = 0;
        cudaEventElapsedTime(&milliseconds, start, end);
        if (milliseconds < best) best = milliseconds;
    }
    printf("%.6f %s\n", best, cudaGetErrorString(cudaGetLastError()));
}

int main(int count, char** arguments) {
    const char* name = arguments[1];
    int repetitions = count > 2 ? atoi(arguments[2]) : 20;
    const int blocks = count > 3 ? atoi(arguments[3]) : 0;
    auto part = [&](dim3 grid) { return blocks ? dim3(blocks) : grid; };
    const int n = 1 << 22;
    float *x, *y, *z;
    cudaMalloc(&x, n * 4);
    cudaMalloc(&y, n * 4);
    cudaMalloc(&z, n * 4);
    unsigned* host = (unsigned*)malloc(n * 4);
    for (int i = 0; i < n; ++i) host[i] = (i * 2654435761u) & 0x3f7fffffu;
    cudaMemcpy(x, host, n * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(z, host, n * 4, cudaMemcpyHostToDevice);
    cudaMemset(y, 0, n * 4);
    if (!strcmp(name, "reduce_sequential"))
        timed([&] { reduce_file::reduce_sequential<<<part(n / 256), 128>>>(y, x); }, repetitions);
    if (!strcmp(name, "transpose_padded"))
        timed([&] { transpose_file::transpose_padded<<<part(dim3(64, 64)), dim3(32, 32)>>>(y, x, 2048); }, repetitions);
    if (!strcmp(name, "matmul"))
        timed([&] { matmul_file::matmul<<<part(dim3(64, 64)), dim3(16, 16)>>>(y, x, z, blocks ? 16 * blocks : 1024); }, repetitions);
    if (!strcmp(name, "histogram"))
        timed([&] { histogram_file::histogram<<<part(1056), 128>>>((unsigned*)y, (unsigned char*)x, n); }, repetitions);
    if (!strcmp(name, "scan")) timed([&] { scan_file::scan<<<part(n / 256), 128, 1024>>>(y, x, 256); }, repetitions);
    if (!strcmp(name, "bitonic_sort"))
        timed([&] { bitonic_file::bitonic_sort<<<part(n / 256), 256>>>((unsigned*)x); }, repetitions);
    return 0;
}
