#include <cstdio>

#include "../include/sizes.h"
#include "../include/tiles.h"

int main(int argc, char** argv) {
    float *in, *out;
    cudaMalloc(&in, 2 * TILE * sizeof(float));
    cudaMalloc(&out, 2 * TILE * sizeof(float));
    cudaMemset(in, 0, 2 * TILE * sizeof(float));
    turned<float, TILE><<<2, TILE>>>(out, in);
    cudaDeviceSynchronize();
    for (int i = 1; i < argc; ++i) printf("argument %d: %s\n", i, argv[i]);
    return 0;
}
