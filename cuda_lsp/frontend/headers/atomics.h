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
