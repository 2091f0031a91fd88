// RAPIDS' names of qualifiers, and of its most used small functions.
#define DI inline __device__
#define HDI inline __host__ __device__
#define HD __host__ __device__
#define RAFT_KERNEL static __global__ void
#define CUDF_KERNEL static __global__
#define CUDF_HOST_DEVICE __host__ __device__
#define CUML_KERNEL static __global__ void
#define _RAFT_HOST_DEVICE __host__ __device__
#define _RAFT_DEVICE __device__
#define _RAFT_FORCEINLINE inline
#define RAFT_INLINE_FUNCTION inline __host__ __device__
#define RAFT_DEVICE_INLINE_FUNCTION inline __device__
