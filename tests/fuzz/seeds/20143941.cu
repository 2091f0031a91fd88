__global__ void halving_with_syncwarp(float* out, const float* in) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    s[t + 32] = in[t + 32];
    __syncwarp();
    for (int k = 32; k > 0; k >>= 1) {
        float v = s[t + k - (t + k >= 64 ? 32 : 0)];
        __syncwarp();
        s[t] += v;
        __syncwarp();
    }
    out[t] = s[t];
}

__global__ void one_warp_copies(float4* out, const float4* in) {
    __shared__ float4 s[32];
    int t = threadIdx.x;
    if (t < 32) {
        __pipeline_memcpy_async(&s[t], &in[blockIdx.x * 32 + t], 16);
        __pipeline_commit();
        __pipeline_wait_prior(-1);
    }
    __syncthreads();
    out[blockIdx.x * N + t] = s[(t + 1) % 32];
}

__global__ void object_arrive_and_wait(int* out) {
    __shared__ int s[N];
    __shared__ barrier bar;
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    s[threadIdx.x] = threadIdx.x;
    bar.arrive_and_wait();
    out[blockIdx.x * N + threadIdx.x] = s[N - 1 - threadIdx.x];
}

// Nobody waits for the initialisation.