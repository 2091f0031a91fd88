// One shared-memory instruction a thread, in many shapes: for comparing our wavefront counts with Nsight Compute.
// Addresses: the element (threadIdx.y * pitch + threadIdx.x * stride) modulo SPAN elements of the type.
// Run: a.out, which launches every shape once, in the order of `check_banks` in dynamic.py, under ncu.

#include <cstdio>
#include <cuda_runtime.h>

template <class T>
__device__ unsigned place(int stride, int pitch) {
    unsigned element = (threadIdx.y * pitch + threadIdx.x * stride) % (16384 / sizeof(T));
    return element * sizeof(T);
}

extern __shared__ __align__(16) unsigned char memory[];

#define BOTH(NAME, T, LOAD, STORE)                                                   \
    __global__ void load_##NAME(unsigned* out, int stride, int pitch) {              \
        unsigned at = (unsigned)__cvta_generic_to_shared(memory) + place<T>(stride, pitch); \
        unsigned a = 0, b = 0, c = 0, d = 0;                                         \
        LOAD;                                                                        \
        out[threadIdx.y * blockDim.x + threadIdx.x] = a + b + c + d;                 \
    }                                                                                \
    __global__ void store_##NAME(unsigned* out, int stride, int pitch) {             \
        unsigned at = (unsigned)__cvta_generic_to_shared(memory) + place<T>(stride, pitch); \
        unsigned a = threadIdx.x;                                                    \
        STORE;                                                                       \
        out[threadIdx.y * blockDim.x + threadIdx.x] = a;                             \
    }

BOTH(byte, unsigned char, asm volatile("ld.shared.u8 %0, [%1];" : "=r"(a) : "r"(at)),
     asm volatile("st.shared.u8 [%0], %1;" ::"r"(at), "r"(a)))
BOTH(half, unsigned short, asm volatile("{ .reg .u16 h; ld.shared.u16 h, [%1]; cvt.u32.u16 %0, h; }" : "=r"(a) : "r"(at)),
     asm volatile("{ .reg .u16 h; cvt.u16.u32 h, %1; st.shared.u16 [%0], h; }" ::"r"(at), "r"(a)))
BOTH(word, unsigned, asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a) : "r"(at)),
     asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(a)))
BOTH(two, uint2, asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(at)),
     asm volatile("st.shared.v2.u32 [%0], {%1, %1};" ::"r"(at), "r"(a)))
BOTH(four, uint4,
     asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at)),
     asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(at), "r"(a)))

#ifdef MAIN
int main() {
    unsigned* out;
    cudaMalloc(&out, 4096);
    const int strides[] = {0, 1, 2, 3, 4, 8, 16, 17, 32, 33};
    const int blocks[][3] = {{32, 1, 0}, {16, 8, 16}, {8, 4, 33}, {20, 3, 20}};
    for (auto& block : blocks)
        for (int stride : strides) {
            dim3 threads(block[0], block[1]);
            int pitch = block[2];
#define LAUNCH(NAME)                                               \
    load_##NAME<<<1, threads, 16384>>>(out, stride, pitch);        \
    store_##NAME<<<1, threads, 16384>>>(out, stride, pitch);
            LAUNCH(byte) LAUNCH(half) LAUNCH(word) LAUNCH(two) LAUNCH(four)
        }
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
#endif
