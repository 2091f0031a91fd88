#pragma once

// Each block turns its tile around; nothing orders the stores and the loads.
template <typename T, int N>
__global__ void turned(T* out, const T* in) {
    __shared__ T tile[N];
    int t = threadIdx.x, first = blockIdx.x * N;
    tile[t] = in[first + t];
    out[first + t] = tile[N - 1 - t];
}
