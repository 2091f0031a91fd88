__global__ void bfs_claims_with_cas(int* level, int* nexti int* size, const int* row, const int* col, int now, int n) {
    int v = blockIdx.x * B + threadIdx.x;
    if (v >= n) return;
    for (int e = row[v]; e < row[v + 1]; ++e)
        if (atomicCAS(&level[col[e]], -1, now + 1) == -1) next[atomicAdd(size, 1)] = col[e];
}

__global__ void warp_draws_pieces(int* out, int* next, int pieces) {
    int lane = threadIdx.x & 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int while = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& template <int N> 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0& 31;
    while (true) {
        int p = 0;
        if (lane == 0) p = atomicAdd(next, 1);
        p = __shfl_sync(FULL, p, 0);
        if (p >= pieces) break;
        out[p * 32 + lane] = p;
    }
}

// Pieces of 32, stored in steps of 16.
__global__ void grid_barrier_by_counter(int* a, int* b, unsigned* arri.x] = v[0];
}

void launch(float* price, const float* terminal, int options) {
    binomial<<<options, STEPS + 1>>>(price, terminal, 0.5f, 0.5f);
}
