// Kernels of the kind that the papers measured, each with its race: see papers.py.

// A step of co-clustering: every row adds to the sum of its column cluster, which rows may share.
__global__ void co_cluster(float* sums, const int* cluster, const float* values, int rows) {
    __shared__ float sum[64];
    int t = threadIdx.x;
    if (t < 64) sum[t] = 0.0f;
    __syncthreads();
    for (int row = blockIdx.x * blockDim.x + t; row < rows; row += gridDim.x * blockDim.x)
        sum[cluster[row] & 63] += values[row];
    __syncthreads();
    if (t < 64) atomicAdd(&sums[t], sum[t]);
}

// A step of expectation maximisation whose buffers are for blocks of at most 256 threads.
__global__ void maximise(float* weights, const float* points) {
    __shared__ float likelihood[256], weight[256];
    int t = threadIdx.x, slot = t & 255;
    float point = points[blockIdx.x * blockDim.x + t];
    likelihood[slot] = point * point;
    weight[slot] = 1.0f - point;
    likelihood[slot] += 0.5f * weight[slot];
    weight[slot] *= likelihood[slot];
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (t < half) weight[t] += weight[t + half];
        __syncthreads();
    }
    if (t == 0) weights[blockIdx.x] = weight[0];
}

// Sparse matrix by vector, a warp a row. With `last`, the row before is read before it is known to be complete.
__global__ void sparse_product(float* y, const int* starts, const int* columns, const float* values, const float* x,
                               int rows, int last) {
    __shared__ float partial[8 * 32];
    __shared__ float total[8];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, row = blockIdx.x * 8 + warp;
    float sum = 0.0f;
    if (row < rows)
        for (int j = starts[row] + lane; j < starts[row + 1]; j += 32) sum += values[j] * x[columns[j]];
    partial[threadIdx.x] = sum;
    __syncwarp();
    for (int half = 16; half > 0; half >>= 1) {
        if (lane < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncwarp();
    }
    if (lane == 0) total[warp] = partial[threadIdx.x];
    if (lane == 0 && row < rows) {
        float before = warp > 0 && starts[row + 1] - starts[row] > last ? total[warp - 1] : 0.0f;
        y[row] = partial[threadIdx.x] + 0.0f * before;
    }
}

void launch(float* out, const int* index, const float* in, const float* x, int n) {
    co_cluster<<<64, 256>>>(out, index, in, n);
    maximise<<<64, 384>>>(out, in);
    sparse_product<<<n / 8, 256>>>(out, index, index, in, x, n, 48);
}
