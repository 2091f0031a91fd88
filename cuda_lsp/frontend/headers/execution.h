// Built-in variables, barriers, fences, votes, shuffles, timing.
extern const __device__ uint3 threadIdx;
extern const __device__ uint3 blockIdx;
extern const __device__ dim3 blockDim;
extern const __device__ dim3 gridDim;
extern const __device__ int warpSize;
// __syncthreads is a builtin of clang's NVPTX target: declaring it again is an error.
int __syncthreads_count(int);
int __syncthreads_and(int);
int __syncthreads_or(int);
void __syncwarp(unsigned = 0xffffffffu);
void __barrier_sync(unsigned);
void __barrier_sync_count(unsigned, unsigned);
unsigned __clusterRelativeBlockRank(); unsigned __clusterSizeInBlocks(); dim3 __clusterDim(); dim3 __clusterRelativeBlockIdx();
void* __cluster_map_shared_rank(const void*, unsigned); unsigned __cluster_query_shared_rank(const void*);
void __cluster_barrier_arrive(); void __cluster_barrier_arrive_relaxed(); void __cluster_barrier_wait();
void __threadfence();
void __threadfence_block();
void __threadfence_system();
unsigned __activemask();
unsigned __ballot_sync(unsigned, int);
int __all_sync(unsigned, int);
int __any_sync(unsigned, int);
int __uni_sync(unsigned, int);
unsigned __ballot(int);
int __any(int);
int __all(int);
template <class T> unsigned __match_any_sync(unsigned, T);
template <class T> unsigned __match_all_sync(unsigned, T, int*);
#define CUDA_LSP_SHUFFLE(name)                                                                            \
    template <class T> T name##_sync(unsigned, T, int, int = 32);                                          \
    template <class T> T name(T, int, int = 32);
CUDA_LSP_SHUFFLE(__shfl)
CUDA_LSP_SHUFFLE(__shfl_up)
CUDA_LSP_SHUFFLE(__shfl_down)
CUDA_LSP_SHUFFLE(__shfl_xor)
#undef CUDA_LSP_SHUFFLE
#define CUDA_LSP_REDUX(name) template <class T> T name(unsigned, T);
CUDA_LSP_REDUX(__reduce_add_sync)
CUDA_LSP_REDUX(__reduce_min_sync)
CUDA_LSP_REDUX(__reduce_max_sync)
CUDA_LSP_REDUX(__reduce_and_sync)
CUDA_LSP_REDUX(__reduce_or_sync)
CUDA_LSP_REDUX(__reduce_xor_sync)
#undef CUDA_LSP_REDUX
void __trap(); extern "C" void __assert_fail(const char*, const char*, unsigned, const char*);
void __brkpt(int = 0);
void __prof_trigger(int);
void __nanosleep(unsigned);
clock_t clock();
long long clock64();
unsigned long long globaltimer();
unsigned long long __globaltimer();
size_t __cvta_generic_to_shared(const void*);
size_t __cvta_generic_to_global(const void*);
void* __cvta_shared_to_generic(size_t);
void* __cvta_global_to_generic(size_t);
unsigned __isShared(const void*);
unsigned __isGlobal(const void*);
unsigned __isLocal(const void*);
unsigned __isConstant(const void*);
void __pipeline_memcpy_async(void*, const void*, size_t, size_t = 0);
void __pipeline_commit();
void __pipeline_wait_prior(size_t);
#define CUDA_LSP_CACHED(name) template <class T> T name(const T*);
CUDA_LSP_CACHED(__ldg)
CUDA_LSP_CACHED(__ldcg)
CUDA_LSP_CACHED(__ldca)
CUDA_LSP_CACHED(__ldcs)
CUDA_LSP_CACHED(__ldlu)
CUDA_LSP_CACHED(__ldcv)
#undef CUDA_LSP_CACHED
#define CUDA_LSP_CACHED(name) template <class T, class U> void name(T*, U);
CUDA_LSP_CACHED(__stwb)
CUDA_LSP_CACHED(__stcg)
CUDA_LSP_CACHED(__stcs)
CUDA_LSP_CACHED(__stwt)
#undef CUDA_LSP_CACHED
