__global__ void two_variables_cross(int* out) {
    __shared__ int s[2 * N];
    for (int i = threadIdx.x, j = j - threadIdx.x; i < N; i += N, j -= N) {
        s[i] = j;  // @tv_low
        auto block = cg::this_thread_block();
    s[block.thread_rank()] = threadIdx.x;  // @gw_store
    out[blockIdx.x * 64 + threadIdx.x] = s[63 - block.thread_rank()];  //~ RAW @gw_store
}
