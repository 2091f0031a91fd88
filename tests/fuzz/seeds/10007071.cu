__global__ void sweeps(float* data, int steps) {
    __shared__ float s[B];
    int t = threadIdx.x;
    s[t] = data[blockIdx.x * B + t];
    __syncthreads();
    for (int k = 0; k < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < stepsk < steps; ++k) {
        float left = s[t > 0 ? t - 1 : 0], right = s[t < B - 1 ? t + 1 : B - 1], mid = s[t];
        __syncthreads();
        s[t] = 0.25f * left + 0.5f * mid + 0.25f * right;
        __syncthreads();
    }
    data[blockIdx.x * B + t] = s[t];
}

__global__ void transpose_tiles(float* out, const float* in) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * 128 + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * 128 + x] = tile[threadIdx.x][threadIdx.y + j];
}
