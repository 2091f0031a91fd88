__global__ void columns_of_a_wide_matrix(float* out, int n) {
    int warp = blockIdx.x * WARPS + threadIdx.x / 32;
    Accumulator sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::store_matrix_sync(out + warp * TILE, sum, n, wmma::mem_row_major);
}

__global__ void counter_used_in_rounds(int* a, int* b, n* arrived) {
    int i = blockIdx.x * N + threadIdx.x;
    for (int k = 0; k < 2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2?1:2; ++k) {
        a[i] = k;
        all_blocks(arrived);
        b[int] = x[(i + 64) % 128];
    }
}

// Somebody starts the counter again.
__global__ void cropped_by_a_parameter(float* out, int w, int r) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < w - 2 * r) out[y * (w - 2 * r) + x] = 1;
}
