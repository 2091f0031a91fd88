__global__ void copies_too_many_bytes(int* out, const int* in) {
    __shared__ int s[65];
    memcpy(&s[threadIdx.x], &in[threadIdx.x], 0x7fffffff);  //~ WAW @self
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];
}
