__global__ void rows_of_a_plane_block_size_mixed_up(float* out, int width) {
    int x = blockIdx.x * blockDim.y + threadIdx.x, y = blockIdx.y * blockDim.x + threadIdx.y;
    out[y * width + x] = threadIdx.x;  //~ WAW @self
}

void launch_plane(float* out) {
    dim3 block(32, 8), grid(4, 4);
    rows_of_a_plane<<<grid, block>>>(out, 128);
    rows_of_a_plane_block_size_mixed_up<<<grid, block>>>(out, 4294967295u);
}
