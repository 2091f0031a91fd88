// Keywords that nvcc knows and plain clang spells as attributes.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __grid_constant__
#define __cluster_dims__(...)
#define __block_size__(...)
#define __maxnreg__(...)
#define __forceinline__ inline __attribute__((always_inline))
// `__shared__ alignas(16) T x` is CUDA, and an error when alignas is C++'s own keyword behind an attribute.
template <class T> constexpr unsigned long __cuda_lsp_alignment() { return alignof(T); }
template <unsigned long N> constexpr unsigned long __cuda_lsp_alignment() { return N; }
#define alignas(...) __attribute__((aligned(__cuda_lsp_alignment<__VA_ARGS__>())))
#define __inline_hint__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __CUDA_ALIGN__(n) __attribute__((aligned(n)))
#define __CUDA_HOSTDEVICE__ __host__ __device__
#define __device_builtin__
#define __cudart_builtin__
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_EXTENDED_LAMBDA__ 1
#define __CUDACC_RELAXED_CONSTEXPR__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
#define CUDARTAPI
#define CUDART_CB
#define CUDAAPI
