// RAFT's small device functions, after its documentation; what libcudf counts rows with.
namespace cudf { typedef int size_type; }
namespace raft {
static const int WarpSize = 32;
template <class A, class B> constexpr inline __host__ __device__ A ceildiv(A a, B b) { return (a + b - 1) / b; }
template <class T> constexpr inline __host__ __device__ T alignTo(T a, T b) { return (a + b - 1) / b * b; }
template <class T> constexpr inline __host__ __device__ T alignDown(T a, T b) { return a / b * b; }
template <class T> constexpr inline __host__ __device__ bool isPo2(T n) { return n && !(n & (n - 1)); }
inline __device__ int laneId() { return threadIdx.x & 31; }
template <class T> inline __device__ T shfl(T v, int lane, int width = 32, unsigned mask = 0xffffffffu) { return __shfl_sync(mask, v, lane, width); }
template <class T> inline __device__ T shfl_xor(T v, int lanes, int width = 32, unsigned mask = 0xffffffffu) { return __shfl_xor_sync(mask, v, lanes, width); }
template <class T> inline __device__ T warpReduce(T v) { for (int i = 16; i > 0; i /= 2) v = v + shfl_xor(v, i); return v; }
template <class T> inline __device__ T myAtomicAdd(T* p, T v) { return atomicAdd(p, v); }
template <class T> inline __device__ T myAtomicMax(T* p, T v) { return atomicMax(p, v); }
template <class T> inline __device__ T myAtomicMin(T* p, T v) { return atomicMin(p, v); }
template <class T> inline __host__ __device__ T log(T v) { return ::log(v); }
template <class T> inline __host__ __device__ T exp(T v) { return ::exp(v); }
template <class T> inline __host__ __device__ T sqrt(T v) { return ::sqrt(v); }
template <class T> inline __host__ __device__ T tanh(T v) { return ::tanh(v); }
template <class T> inline __host__ __device__ T abs(T v) { return v < T(0) ? -v : v; }
template <class T> inline __host__ __device__ T max(T a, T b) { return a < b ? b : a; }
template <class T> inline __host__ __device__ T min(T a, T b) { return b < a ? b : a; }
template <class T> inline __host__ __device__ void swapVals(T& a, T& b) { T c = a; a = b; b = c; }
}  // namespace raft
