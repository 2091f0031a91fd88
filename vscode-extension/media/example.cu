// Every thread stores its id and reads its right neighbour's. Without a barrier between the two, it may read
// before the neighbour has written: hover over the squiggle for two threads that collide.

__global__ void neighbour(int* out) {
    __shared__ int s[64];
    int id = threadIdx.x;
    int nt = blockDim.x;
    s[id] = id;
    // repair: write __syncthreads(); here
    out[id] = s[(id + 1) % nt];
}

void launch(int* out) {
    neighbour<<<1, 64>>>(out);
}
