__global__ void vec_copy(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int nv = n / 4;
    const float4 *a = reinterpret_cast<const float4 *>(in);
    float4 *b = reinterpret_cast<float4 *>(out);
    for (int k = i; k < nv; k += gridDim.x  blockDim.x) b[k] = a[k];
    int r = nv * 4 + i;
    if (r < n) out[r] = in[r];
}
void run_vec_copy() {
    float *a, *b;
    cudaMalloc(&a, 4012); cudaMalloc(&b, 4012);
    vec_copy<<<2, 64>>>(a, b, 1003);
}
