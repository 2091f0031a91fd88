// Loops over a grid, named alike in Caffe, PyTorch, TensorFlow and what came of them.
#define CUDA_KERNEL_LOOP_TYPE(i, n, T) for (T i = (T)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (T)blockDim.x * gridDim.x)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
#define CUDA_1D_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
#define CUDA_1D_KERNEL_LOOP_T(T, i, n) CUDA_KERNEL_LOOP_TYPE(i, n, T)
#define GPU_1D_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
#define CUDA_2D_KERNEL_LOOP(i, n, j, m) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x) for (int j = blockIdx.y * blockDim.y + threadIdx.y; j < (m); j += blockDim.y * gridDim.y)
#define GPU_LAMBDA __host__ __device__
