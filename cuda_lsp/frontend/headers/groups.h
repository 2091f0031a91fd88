// cooperative_groups.
namespace cooperative_groups {
struct __group {
    void sync() const; unsigned long long size() const; unsigned long long num_threads() const; unsigned thread_rank() const; bool is_valid() const;
    unsigned meta_group_rank() const; unsigned meta_group_size() const;
    template <class T> T shfl(T, int) const; template <class T> T shfl_down(T, int) const; template <class T> T shfl_up(T, int) const; template <class T> T shfl_xor(T, int) const;
    unsigned ballot(int) const; int any(int) const; int all(int) const; template <class T> unsigned match_any(T) const; template <class T> unsigned match_all(T, int&) const;
    struct arrival_token {}; arrival_token barrier_arrive() const; void barrier_wait(arrival_token&&) const; void barrier_wait() const;
};
struct thread_group : __group {};
struct thread_block : __group { dim3 group_index() const; dim3 thread_index() const; dim3 group_dim() const; dim3 dim_threads() const; operator thread_group() const; };
struct grid_group : __group { dim3 group_dim() const; dim3 dim_blocks() const; dim3 block_index() const; unsigned long long block_rank() const; unsigned long long num_blocks() const; };
struct multi_grid_group : __group { unsigned grid_rank() const; unsigned num_grids() const; };
struct coalesced_group : __group { operator thread_group() const; };
struct cluster_group : __group { template <class T> T* map_shared_rank(T*, int) const; unsigned query_shared_rank(const void*) const; unsigned block_rank() const; unsigned num_blocks() const; dim3 block_index() const; dim3 thread_index() const; dim3 dim_blocks() const; dim3 dim_threads() const; };
template <unsigned N, class P = void> struct thread_block_tile : __group { thread_block_tile() = default; template <class Q> thread_block_tile(const thread_block_tile<N, Q>&); operator thread_group() const; };
thread_block this_thread_block(); grid_group this_grid(); multi_grid_group this_multi_grid(); coalesced_group coalesced_threads(); cluster_group this_cluster(); thread_group this_thread();
template <unsigned N, class P> thread_block_tile<N, P> tiled_partition(const P&); template <class P> thread_group tiled_partition(const P&, unsigned);
template <class P> coalesced_group binary_partition(const P&, bool); template <class P, class T> coalesced_group labeled_partition(const P&, T);
template <class G> void sync(const G&); template <class G> void synchronize(const G&); template <class G> unsigned thread_rank(const G&); template <class G> unsigned group_size(const G&);
template <class T> struct plus { T operator()(T, T) const; }; template <class T> struct less { T operator()(T, T) const; }; template <class T> struct greater { T operator()(T, T) const; };
template <class T> struct bit_and { T operator()(T, T) const; }; template <class T> struct bit_or { T operator()(T, T) const; }; template <class T> struct bit_xor { T operator()(T, T) const; };
template <class G, class T, class F> T reduce(const G&, T, F); template <class G, class T, class F> T inclusive_scan(const G&, T, F); template <class G, class T> T inclusive_scan(const G&, T);
template <class G, class T, class F> T exclusive_scan(const G&, T, F); template <class G, class T> T exclusive_scan(const G&, T); template <class G, class A, class T, class F> void reduce_update_async(const G&, A&, T, F);
template <class G, class T, class U, class S> void memcpy_async(const G&, T*, const U*, S); template <class G, class T, class U, class D, class S> void memcpy_async(const G&, T*, D, const U*, S); template <class G> void wait(const G&); template <int N, class G> void wait_prior(const G&);
template <unsigned N> struct block_tile_memory {}; template <unsigned N> thread_block this_thread_block(block_tile_memory<N>&);
namespace experimental { template <unsigned N, class P> thread_block_tile<N, P> tiled_partition(const P&); template <unsigned N> struct block_tile_memory {}; template <unsigned N> thread_block this_thread_block(block_tile_memory<N>&); }
}  // namespace cooperative_groups
