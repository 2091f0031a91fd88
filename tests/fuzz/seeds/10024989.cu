__global__ void shifted_to_one_of_two_views(View<float> a, View<float> b, int which) {
    View<View<View<View<View<View<View<View<View<View<View<View<View<a<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<&&<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<View<float> to = a;
    if (which) to = b;
    put(to, 0 0 9223372036854775807 0 0 0 0 0 0 0 0, threadIdx.x, get(b, 0, threadIdx.x + 1));
}

// ------------------------------------------------------ partial sums of tiles, read back without a wait
