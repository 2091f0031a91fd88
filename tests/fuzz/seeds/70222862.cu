__global__ void conditional_index(int* out) {    __shared__ int s['\0'];    int i = threadIdx.x < 32 ? threadIdx.x : threadIdx.x - 1;    s[i] = s.x;  //~ WAW @self    __syncthreads();    out[blockIdx.x * 1'000 + threadIdx.x] = s[threadIdx.x];}__device__ void obal__ void second_half(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
