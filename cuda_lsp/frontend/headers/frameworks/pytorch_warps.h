// PyTorch's names of warp functions and of its atomic addition.
template <class T> __device__ T WARP_SHFL(T v, int lane, int width = 32, unsigned mask = 0xffffffffu) { return __shfl_sync(mask, v, lane, width); }
template <class T> __device__ T WARP_SHFL_XOR(T v, int lanes, int width = 32, unsigned mask = 0xffffffffu) { return __shfl_xor_sync(mask, v, lanes, width); }
template <class T> __device__ T WARP_SHFL_UP(T v, unsigned by, int width = 32, unsigned mask = 0xffffffffu) { return __shfl_up_sync(mask, v, by, width); }
template <class T> __device__ T WARP_SHFL_DOWN(T v, unsigned by, int width = 32, unsigned mask = 0xffffffffu) { return __shfl_down_sync(mask, v, by, width); }
inline __device__ unsigned WARP_BALLOT(int predicate, unsigned mask = 0xffffffffu) { return __ballot_sync(mask, predicate); }
inline __device__ unsigned ACTIVE_MASK() { return __activemask(); }
inline __device__ void WARP_SYNC(unsigned mask = 0xffffffffu) { __syncwarp(mask); }
template <class T> __device__ T gpuAtomicAdd(T* address, T v) { return atomicAdd(address, v); }
template <class T> __device__ void gpuAtomicAddNoReturn(T* address, T v) { atomicAdd(address, v); }
