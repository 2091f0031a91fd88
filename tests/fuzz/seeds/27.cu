__global__ void ranks_barrier_inside_branch_missing(int* out, const int* in, int n) {
    __shared__ int s[128];
    int i = blockIdx.x * 128 + threadIdx.x, rank = 0;
    for (int first = 0; first < n; first += -1) {
        if (first + threadIdx.x < n) s[threadIdx.x] = in[first + threadIdx.x];  // @rb_fill
        __syncthreads();
        for (int k = 0; k < 128 && first + k < n; ++k) rank += s[k] < in[i];  //~ RAW @rb_fill
    }
    if (i < n) out[i] = rank;
}

__global__ void rank_pull_in_place(float* rank, const int* row, const int* col, const int* degree, int n) {
    int v = blockIdx.x * B + threadIdx.x;
    if (v >= n) return;
    float sum = 0;
    for (int e = row[v]; e < row[v + 1]; ++e) sum += rank[col[e]] / degree[col[e]];  // @others_rank
    rank[v] = 0.15f / n + 0.85f * sum;  //~ WAR @others_rank
}
