// cub's block and warp collectives, libcu++ synchronisation, wmma, curand: types only.
#define CUB_PTX_ARCH __CUDA_ARCH__
#define CUB_PTX_WARP_THREADS 32
#define CUB_PTX_LOG_WARP_THREADS 5
#define CUB_WARP_THREADS(arch) 32
#define CUB_LOG_WARP_THREADS(arch) 5
#define CUB_RUNTIME_FUNCTION __host__ __device__
namespace cub {
unsigned LaneId(); unsigned LaneMaskLt(); unsigned LaneMaskLe(); unsigned LaneMaskGt(); unsigned LaneMaskGe();
enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS, BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm { BLOCK_LOAD_DIRECT, BLOCK_LOAD_STRIPED, BLOCK_LOAD_VECTORIZE, BLOCK_LOAD_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE };
enum BlockStoreAlgorithm { BLOCK_STORE_DIRECT, BLOCK_STORE_STRIPED, BLOCK_STORE_VECTORIZE, BLOCK_STORE_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE };
template <class T> struct FpLimits { static T Max(); static T Lowest(); };
struct Sum { template <class T> T operator()(T, T) const; }; struct Max { template <class T> T operator()(T, T) const; }; struct Min { template <class T> T operator()(T, T) const; };
#define CUDA_LSP_COLLECTIVE(name) struct TempStorage { int __words[64]; }; name(TempStorage&); name();
template <class T, int B, BlockReduceAlgorithm A = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int __arch = 0> struct BlockReduce { CUDA_LSP_COLLECTIVE(BlockReduce) template <class... X> T Sum(X&&...); template <class... X> T Reduce(X&&...); };
template <class T, int B = 32, int __arch = 0> struct WarpReduce { CUDA_LSP_COLLECTIVE(WarpReduce) template <class... X> T Sum(X&&...); template <class... X> T Reduce(X&&...); };
template <class T, int B, BlockScanAlgorithm A = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int __arch = 0> struct BlockScan { CUDA_LSP_COLLECTIVE(BlockScan) template <class... X> void ExclusiveSum(X&&...); template <class... X> void InclusiveSum(X&&...); template <class... X> void ExclusiveScan(X&&...); template <class... X> void InclusiveScan(X&&...); };
template <class T, int B = 32, int __arch = 0> struct WarpScan { CUDA_LSP_COLLECTIVE(WarpScan) template <class... X> void ExclusiveSum(X&&...); template <class... X> void InclusiveSum(X&&...); template <class... X> void ExclusiveScan(X&&...); template <class... X> void InclusiveScan(X&&...); };
template <class T, int B, int I, BlockLoadAlgorithm A = BLOCK_LOAD_DIRECT> struct BlockLoad { CUDA_LSP_COLLECTIVE(BlockLoad) template <class... X> void Load(X&&...); };
template <class T, int B, int I, BlockStoreAlgorithm A = BLOCK_STORE_DIRECT> struct BlockStore { CUDA_LSP_COLLECTIVE(BlockStore) template <class... X> void Store(X&&...); };
struct NullType {};
template <class T, int B, int I = 1, class V = NullType, int R = 4, bool M = true, BlockScanAlgorithm A = BLOCK_SCAN_WARP_SCANS, int C = 0, int Y = 1, int Z = 1> struct BlockRadixSort { CUDA_LSP_COLLECTIVE(BlockRadixSort) template <class... X> void Sort(X&&...); template <class... X> void SortDescending(X&&...); template <class... X> void SortBlockedToStriped(X&&...); template <class... X> void SortDescendingBlockedToStriped(X&&...); };
template <class T, int B, int Y = 1, int Z = 1> struct BlockAdjacentDifference { CUDA_LSP_COLLECTIVE(BlockAdjacentDifference) template <class... X> void SubtractLeft(X&&...); template <class... X> void SubtractRight(X&&...); template <class... X> void SubtractLeftPartialTile(X&&...); template <class... X> void SubtractRightPartialTile(X&&...); };
template <class T, int B, int Y = 1, int Z = 1> struct BlockDiscontinuity { CUDA_LSP_COLLECTIVE(BlockDiscontinuity) template <class... X> void FlagHeads(X&&...); template <class... X> void FlagTails(X&&...); };
template <class T, int B, int I, bool W = false> struct BlockExchange { CUDA_LSP_COLLECTIVE(BlockExchange) template <class... X> void BlockedToStriped(X&&...); template <class... X> void StripedToBlocked(X&&...); template <class... X> void BlockedToWarpStriped(X&&...); template <class... X> void WarpStripedToBlocked(X&&...); template <class... X> void ScatterToStriped(X&&...); template <class... X> void ScatterToBlocked(X&&...); };
enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };
template <class T, int B, int I, int N, BlockHistogramAlgorithm A = BLOCK_HISTO_SORT> struct BlockHistogram { CUDA_LSP_COLLECTIVE(BlockHistogram) template <class... X> void Histogram(X&&...); template <class... X> void InitHistogram(X&&...); template <class... X> void Composite(X&&...); };
template <class K, int I, int W = 32, class V = int> struct WarpMergeSort { CUDA_LSP_COLLECTIVE(WarpMergeSort) template <class... X> void Sort(X&&...); };
template <class K, int B, int I, class V = int> struct BlockMergeSort { CUDA_LSP_COLLECTIVE(BlockMergeSort) template <class... X> void Sort(X&&...); };
template <class T> struct Uninitialized { alignas(T) unsigned char __bytes[sizeof(T)]; T& Alias() { return *reinterpret_cast<T*>(__bytes); } };
template <class K, class V> struct KeyValuePair { typedef K Key; typedef V Value; K key; V value; KeyValuePair() = default; KeyValuePair(const K& k, const V& v) : key(k), value(v) {} };
struct ArgMax { template <class K, class V> KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a, const KeyValuePair<K, V>& b) const { return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a; } };
struct ArgMin { template <class K, class V> KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a, const KeyValuePair<K, V>& b) const { return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a; } };
inline unsigned LaneId() { return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & 31; } inline int RowMajorTid(int x, int y, int) { return threadIdx.x + x * (threadIdx.y + y * threadIdx.z); }
inline void CTA_SYNC() { __syncthreads(); } inline int CTA_SYNC_AND(int p) { return __syncthreads_and(p); } inline int CTA_SYNC_OR(int p) { return __syncthreads_or(p); } inline void WARP_SYNC(unsigned mask) { __syncwarp(mask); }
template <int W, class T> T ShuffleIndex(T v, int lane, unsigned mask) { return __shfl_sync(mask, v, lane, W); } template <int W, class T> T ShuffleDown(T v, int by, int, unsigned mask) { return __shfl_down_sync(mask, v, by, W); } template <int W, class T> T ShuffleUp(T v, int by, int, unsigned mask) { return __shfl_up_sync(mask, v, by, W); }
struct Equality { template <class T> bool operator()(T, T) const; }; struct Inequality { template <class T> bool operator()(T, T) const; }; struct Difference { template <class T> T operator()(T, T) const; };
#undef CUDA_LSP_COLLECTIVE
}  // namespace cub
namespace nvcuda { namespace wmma {
struct matrix_a; struct matrix_b; struct accumulator; struct row_major; struct col_major; enum layout_t { mem_row_major, mem_col_major }; namespace precision { struct tf32; struct u4; struct s4; struct b1; }
template <class T> struct __element { typedef T type; }; template <> struct __element<precision::tf32> { typedef float type; }; template <> struct __element<precision::u4> { typedef unsigned type; }; template <> struct __element<precision::s4> { typedef int type; }; template <> struct __element<precision::b1> { typedef unsigned type; };
template <class U, int m, int n, int k, class T, class L = void> struct fragment { typedef typename __element<T>::type element_type; typedef element_type storage_element_type; element_type x[8]; static const int num_elements = 8, num_storage_elements = 8; };
template <class F, class T> void fill_fragment(F&, T); template <class F, class T> void load_matrix_sync(F&, const T*, unsigned); template <class F, class T> void load_matrix_sync(F&, const T*, unsigned, layout_t);
template <class T, class F> void store_matrix_sync(T*, const F&, unsigned, layout_t); template <class A, class B, class C, class D> void mma_sync(A&, const B&, const C&, const D&, bool = false); float __float_to_tf32(float);
} }  // namespace nvcuda::wmma
namespace CUDA_LSP_LIBCUDACXX {
namespace ptx {
#define CUDA_LSP_3D(n) unsigned get_sreg_##n##_x(); unsigned get_sreg_##n##_y(); unsigned get_sreg_##n##_z();
unsigned get_sreg_laneid(); unsigned get_sreg_lanemask_eq(); unsigned get_sreg_lanemask_lt(); unsigned get_sreg_lanemask_le(); unsigned get_sreg_lanemask_gt(); unsigned get_sreg_lanemask_ge(); CUDA_LSP_3D(tid) CUDA_LSP_3D(ntid) CUDA_LSP_3D(ctaid) CUDA_LSP_3D(nctaid)
#undef CUDA_LSP_3D
}
enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };
namespace std { using namespace ::std; enum memory_order { memory_order_relaxed, memory_order_consume, memory_order_acquire, memory_order_release, memory_order_acq_rel, memory_order_seq_cst }; }
using std::memory_order; using std::memory_order_relaxed; using std::memory_order_acquire; using std::memory_order_release; using std::memory_order_acq_rel; using std::memory_order_seq_cst;
template <thread_scope S> struct barrier { unsigned long long __state; barrier() = default; explicit barrier(int); struct arrival_token {}; arrival_token arrive(int = 1); void wait(arrival_token&&) const; void wait_parity(bool) const; bool try_wait(arrival_token&&) const; bool try_wait_parity(bool) const; void arrive_and_wait(); void arrive_and_drop(); };
template <thread_scope S> void init(barrier<S>*, int);
#define CUDA_LSP_OPERATIONS(Q) T load(int = 5) const; void store(T, int = 5) Q; T exchange(T, int = 5) Q; T fetch_add(T, int = 5) Q; T fetch_sub(T, int = 5) Q; T fetch_max(T, int = 5) Q; T fetch_min(T, int = 5) Q; T fetch_and(T, int = 5) Q; T fetch_or(T, int = 5) Q; T fetch_xor(T, int = 5) Q; bool compare_exchange_strong(T&, T, int = 5, int = 5) Q; bool compare_exchange_weak(T&, T, int = 5, int = 5) Q; T operator=(T) Q; T operator++() Q; T operator++(int) Q; T operator--() Q; T operator--(int) Q; T operator+=(T) Q; T operator-=(T) Q; T operator&=(T) Q; T operator|=(T) Q; T operator^=(T) Q; operator T() const;
template <class T, thread_scope S = thread_scope_system> struct atomic_ref { explicit atomic_ref(T&); CUDA_LSP_OPERATIONS(const) };
template <class T, thread_scope S = thread_scope_system> struct atomic { T __value; atomic() = default; atomic(T); CUDA_LSP_OPERATIONS() };
#undef CUDA_LSP_OPERATIONS
namespace std {
template <class T> using atomic = ::CUDA_LSP_LIBCUDACXX::atomic<T>; template <class T> using atomic_ref = ::CUDA_LSP_LIBCUDACXX::atomic_ref<T>;
struct atomic_flag { int __value; bool test_and_set(int = 5); bool test(int = 5) const; void clear(int = 5); };
}
void atomic_thread_fence(int, thread_scope = thread_scope_system);
template <thread_scope S> struct pipeline { void producer_acquire(); void producer_commit(); void consumer_wait(); void consumer_release(); bool quit(); };
template <thread_scope S, int N> struct pipeline_shared_state { unsigned long long __stages[2 * N]; unsigned long long __threads; }; pipeline<thread_scope_thread> make_pipeline(); template <class G, class X> pipeline<thread_scope_block> make_pipeline(const G&, X*);
enum class pipeline_role { producer, consumer };
template <class G, class X> pipeline<thread_scope_block> make_pipeline(const G&, X*, pipeline_role); template <class G, class X> pipeline<thread_scope_block> make_pipeline(const G&, X*, size_t);
template <class P, class B> void pipeline_producer_commit(P&, B&);
template <int N, class P> void pipeline_consumer_wait_prior(P&); template <class... X> void memcpy_async(X&&...); template <size_t N> struct aligned_size_t { static constexpr size_t align = N; size_t value; constexpr explicit aligned_size_t(size_t size) : value(size) {} constexpr operator size_t() const { return value; } };
namespace device { template <class... X> void memcpy_async_tx(X&&...); template <class... X> int barrier_arrive_tx(X&&...); template <class... X> void barrier_expect_tx(X&&...); }
}  // namespace CUDA_LSP_LIBCUDACXX
struct curandState { unsigned __words[12]; };
typedef curandState curandState_t, curandStateXORWOW, curandStateXORWOW_t, curandStatePhilox4_32_10, curandStatePhilox4_32_10_t, curandStateMRG32k3a, curandStateMRG32k3a_t, curandStateSobol32, curandStateSobol32_t, curandStateScrambledSobol32, curandStateScrambledSobol32_t, curandStateSobol64, curandStateSobol64_t, curandStateScrambledSobol64, curandStateScrambledSobol64_t;
void curand_init(unsigned long long, unsigned long long, unsigned long long, curandState*);
typedef unsigned curandDirectionVectors32_t[32]; void curand_init(const unsigned*, unsigned, curandState*); void curand_init(const unsigned*, unsigned, unsigned, curandState*);
typedef unsigned long long curandDirectionVectors64_t[64]; void curand_init(const unsigned long long*, unsigned, curandState*); void curand_init(const unsigned long long*, unsigned long long, unsigned, curandState*);
 unsigned curand(curandState*); uint4 curand4(curandState*);
float curand_uniform(curandState*); double curand_uniform_double(curandState*); float curand_normal(curandState*); double curand_normal_double(curandState*); float curand_log_normal(curandState*, float, float); unsigned curand_poisson(curandState*, double);
float2 curand_normal2(curandState*); float4 curand_normal4(curandState*); float4 curand_uniform4(curandState*);
double2 curand_uniform2_double(curandState*); double4 curand_uniform4_double(curandState*); double2 curand_normal2_double(curandState*); double4 curand_normal4_double(curandState*); double curand_log_normal_double(curandState*, double, double);
float2 curand_log_normal2(curandState*, float, float); float4 curand_log_normal4(curandState*, float, float); double2 curand_log_normal2_double(curandState*, double, double); double4 curand_log_normal4_double(curandState*, double, double); uint4 curand_poisson4(curandState*, double);
void skipahead(unsigned long long, curandState*); void skipahead_sequence(unsigned long long, curandState*); void skipahead_subsequence(unsigned long long, curandState*);
struct curandStateMtgp32 { unsigned __words[1024]; int __offset, __index; void* __kernel; }; typedef curandStateMtgp32 curandStateMtgp32_t;
unsigned curand(curandStateMtgp32*); float curand_uniform(curandStateMtgp32*); double curand_uniform_double(curandStateMtgp32*); float curand_normal(curandStateMtgp32*); double curand_normal_double(curandStateMtgp32*); float curand_log_normal(curandStateMtgp32*, float, float); double curand_log_normal_double(curandStateMtgp32*, double, double); unsigned curand_poisson(curandStateMtgp32*, double);
