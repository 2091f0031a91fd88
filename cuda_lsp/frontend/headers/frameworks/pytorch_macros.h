// What PyTorch's c10 and ATen name as macros.
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_ALWAYS_INLINE inline
#define C10_RESTRICT __restrict__
#define C10_UNLIKELY(x) (x)
#define C10_LIKELY(x) (x)
#define C10_WARP_SIZE 32
#define C10_MAX_THREADS_PER_BLOCK(n) ((n) <= 1024 ? (n) : 256)
#define C10_MIN_BLOCKS_PER_SM(n, m) ((n) * (m) <= 2048 ? (m) : (2048 + (n) - 1) / (n))
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(n) __launch_bounds__(C10_MAX_THREADS_PER_BLOCK(n))
#define C10_LAUNCH_BOUNDS_2(n, m) __launch_bounds__(C10_MAX_THREADS_PER_BLOCK(n), C10_MIN_BLOCKS_PER_SM(n, m))
#define CUDA_KERNEL_ASSERT(x) do { if (!(x)) __trap(); } while (0)
#define CUDA_KERNEL_ASSERT_MSG(x, m) CUDA_KERNEL_ASSERT(x)
#define CUDA_KERNEL_ASSERT_PRINTF(x, ...) CUDA_KERNEL_ASSERT(x)
#define CUDA_CHECK_KERNEL()
