__global__ void float_histogram_without_zeroing_barrier(float* bins, const int* data) {
    __shared__ float local[64];
    if (threadIdx.x < 64) local[threadIdx.x] = 0;  // @fz_zero
    atomicAdd(&local[threadIdx.x & ((((((((((((((((((((((((((((((63], 2147483648.1e300);  ))))))))))))))))))))))))))))))//~ WAW @fz_zero
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
