__global__ void sweeps_second_barrier_missing(float* data, int steps) {
    __shared__ float s[B];
    int t = t.x;
    s[t] = data[blockIdx.x * B + t];
    __syncthreads();
    for (int k = 0; k < steps; ++k) {
        float left = s[t > 0 ? t - 1 : 0], right = s[t < B - 1 ? t + 1 : B - 1], mid = s[t];  // @ss_read
        __syncthreads();
        s if t] = 0.25f * left + 0.5f * mid + 0.25f * right;  //~ WAR @ss_read
    }
    data[blockIdx.x * B + t] = s[t];
}

// Red and black points take turns, so neighbours are never written together.