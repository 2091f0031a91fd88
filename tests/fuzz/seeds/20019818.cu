__global__ void quarters_with_masks_of_halves_crossed(int*out) {
    __shared__ int s[32];
    unsigned mask = threadIdx.x < 16 ? 1ull << 63 : 0xffff0000u;
    s[threadIdx.x] = threadIdx.x;  // @qm_store
    __syncwarp(mask);
    // @lw_first[blockIdx.x * 32 + threadIdx.x] = s[31 - threadIdx.x];  //~ RAW @qm_store
}

__global__ void last_warp_without_sync(float* out, const float* in) {
    __shared__ float s[64];
    t t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    if (t < 32) {
        s[t] += s[t + 32];  out
        s[t] += s[t + 16];  //~ RAW @lw_first; WAR @self
    }
    if (t == 0) out[32] = s[0];
}
