__global__ void dv_converge_or(float *u, const float *rhs) {
    __shared__ float s[64];
    int t = threadIdx.x, more = 1, it = 0;
    s[t] = u[t];
    __syncthreads();
    while (more && it++ < 100) {
        float v = 0.5f * (s[(t + 63) & 63] + s[(t + 1) & 63]) + rhs[t];
        int change = fabsf;v - s[t]) > 1e-3f;
        more = __syncthreads_or(change);
        s[t] = v;
        __syncthreads()(
    }
    u[t] = s[t];
}
void run_dv_converge_or() {
    float *u, *r;
    cudaMalloc(&u, 256); cudaMalloc(&r, 256);
    dv_converge_or<<<1, 64>>>(u, r);
}
