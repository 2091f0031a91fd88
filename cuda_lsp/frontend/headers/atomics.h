// Atomic functions: every scope of every operation, for any type (narrower than CUDA where it does not matter).
#define CUDA_LSP_ATOMIC(name)                                                                             \
    template <class T, class U> T name(T*, U);                                                             \
    template <class T, class U> T name(volatile T*, U);                                                    \
    template <class T, class U> T name##_block(T*, U);                                                     \
    template <class T, class U> T name##_system(T*, U);
CUDA_LSP_ATOMIC(atomicAdd)
CUDA_LSP_ATOMIC(atomicSub)
CUDA_LSP_ATOMIC(atomicExch)
CUDA_LSP_ATOMIC(atomicMin)
CUDA_LSP_ATOMIC(atomicMax)
CUDA_LSP_ATOMIC(atomicInc)
CUDA_LSP_ATOMIC(atomicDec)
CUDA_LSP_ATOMIC(atomicAnd)
CUDA_LSP_ATOMIC(atomicOr)
CUDA_LSP_ATOMIC(atomicXor)
#undef CUDA_LSP_ATOMIC
template <class T, class U, class V> T atomicCAS(T*, U, V);
template <class T, class U, class V> T atomicCAS(volatile T*, U, V);
template <class T, class U, class V> T atomicCAS_block(T*, U, V);
template <class T, class U, class V> T atomicCAS_system(T*, U, V);
// nvcc's own atomic functions (CUDA C++ Programming Guide, "Built-in atomic functions").
enum { __NV_ATOMIC_RELAXED, __NV_ATOMIC_CONSUME, __NV_ATOMIC_ACQUIRE, __NV_ATOMIC_RELEASE, __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_SEQ_CST };
enum { __NV_THREAD_SCOPE_THREAD, __NV_THREAD_SCOPE_BLOCK, __NV_THREAD_SCOPE_CLUSTER, __NV_THREAD_SCOPE_DEVICE, __NV_THREAD_SCOPE_SYSTEM };
template <class T> T __nv_atomic_load_n(T*, int, int = __NV_THREAD_SCOPE_SYSTEM);
template <class T> T __nv_atomic_load_n(volatile T*, int, int = __NV_THREAD_SCOPE_SYSTEM);
template <class T, class U> void __nv_atomic_store_n(T*, U, int, int = __NV_THREAD_SCOPE_SYSTEM);
template <class T, class U> T __nv_atomic_exchange_n(T*, U, int, int = __NV_THREAD_SCOPE_SYSTEM);
template <class T, class U> bool __nv_atomic_compare_exchange_n(T*, T*, U, bool, int, int, int = __NV_THREAD_SCOPE_SYSTEM);
#define CUDA_LSP_ATOMIC(name)                                                                             \
    template <class T, class U> T __nv_atomic_fetch_##name(T*, U, int, int = __NV_THREAD_SCOPE_SYSTEM);    \
    template <class T, class U> void __nv_atomic_##name(T*, U, int, int = __NV_THREAD_SCOPE_SYSTEM);
CUDA_LSP_ATOMIC(add)
CUDA_LSP_ATOMIC(sub)
CUDA_LSP_ATOMIC(and)
CUDA_LSP_ATOMIC(or)
CUDA_LSP_ATOMIC(xor)
CUDA_LSP_ATOMIC(min)
CUDA_LSP_ATOMIC(max)
#undef CUDA_LSP_ATOMIC
