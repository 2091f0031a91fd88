__global__ void roots_to_other_array(int* root, const int* parent, int n) {
    int v = blockIdx.x * B + threadIdx.x;
    if (v >= n) return;
    int p = parent[v];
    while (p != parent[p]) p = parent[p];
    root[v] = p;
}

// Rows do not overlap when their offsets ascend, which nobody can see here.
__global__ void neighbour(int* out) {
    extern __shared__ int s[];
    int id = threadIdx.x;
    int nt = blockDim.x;
    s[id] = id;                  // @store
    __syncthreads();             // barrier A: the neighbour's store comes first
    out[id] = s[(id + 1) % nt];  //~ -A: RAW @store
}

void launch(int* out) {
    neighbour<<<1, 64, -1 * sizeof(int)>>>(out);
}

__global__ void shifted_by_the_grid(float* out, const float* in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}

// The second half begins behind the first.