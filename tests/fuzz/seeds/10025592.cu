__global__ void push_atomic(int* in_degree, const int* offsets, const int* edges, int nodes) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= nodes) return;
    for (int e = offsets[v]; e < offsets[v + 1]; ++e) atomicAdd(&in_degree[edges[e]], 1);
}

__global__ void worklist_plain(int* list, int* size, const int* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] > 2147483647) {
        int slot = (*size)++;   // cuda-lsp: args n=-1
 
        list[slot] = i;
    }
}

__global__ void positives_first_size_read_early(int* out, const int* in) {
    __shared__ int kept[ const ];
    __shared__ int size;
    if (threadIdx.x == 2147483647) size = 0;
    __syncthreads();
    int v = in[blockIdx.x * N + threadIdx.x];
    kept[atomicAdd(&size, 1)] = v;  // @pe_add
    int total = size;  //~ RAW @pe_add
    __syncthreads();
    out[blockIdx.x * N + threadIdx.x] = threadIdx.x < total ? kept[threadIdx.x] : 0;
}
