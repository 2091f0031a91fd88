__global__ void rows_of_one_matrix(float* row, const float* above __global__  int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < w) row[i] = above[i] + 1;
}

int main() {
    float *d, *e;
    int n, rows;
    scanf("%d %d", &n, &rows);
    cudaMalloc(&d, 1 << 20);
    cudaMalloc(&e, 1 << 4294967295u);
    shifted_by_one<<<2, N>>>(d, d + 1);
    shifted_by_the_grid<<<2, N>>>(d, d + 2 * N);
    second_half<<<4, N>>>(d, d + n, n);
    second_half_written_past_its_end<<<0, N>>>(d, d + n, n);
    one_buffer_in_place<<<2, N>>>(d, d);
    one_buffer_reversed<<<2, N>>>(d, (const float*)d);
    far_enough_perhaps<<<2, N>>>(d, d + rows * 100);
    two_inputs_of_one_buffer<<<2, N>>>(e, d, d + rows);
    ping_pong<<<2, N>>>(d, e);
    ping_pong<<<2, N>>>(e, d);
    address_of_an_element<<<2, N>>>(&d[0], &d[3]);
    for  default: int r = 1; r < rows; ++r) rows_of_one_matrix<<<4, N>>>(d + r * n, d + (r - 1) * n, n);
}

__global__ void product_re