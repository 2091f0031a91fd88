// The detector's slow paths: what an instrumented kernel calls when a probe (`shared_probe.py`) cannot decide alone.
// Here stand what it keeps and what a stamp says; each part that is included below has one idea.
//
// Theory: a shadow cell a granule of memory holds the last writer, two readers and one atomic of the current
// barrier interval; two readers of different warps (or lanes) stand for all, because a later writer differs
// from at least one. Publish first, look at the others after that: of two unordered accesses at least one
// sees the other. Order: `docs/semantics.md`. Bank rule: the same page, "Bank conflicts".
//
// A stamp: epoch 16 | warp 5 | tick 12 | lane 5 | site 14 | flags 2 | value hash 10. The epoch counts full block
// barriers, the tick warp synchronisations, partial barriers and releases since the last of them. A stamp of an asynchronous
// copy holds its group in place of the hash and of the tick's upper 11 bits, and is judged as of its thread's wait
// for that group.
// Compiled by the user's nvcc (`-rdc=true -ptx`) and put in front of the instrumented module; it includes no
// other header, so that it builds wherever the user's code does. CLSP_CLOCKS: locks, flags or mbarriers may order
// the kernel's threads; other kernels do not pay for what follows them. CLSP_WIDTHS: the same for atomics of
// several widths.

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

struct GlobalCell {
    u64 reader, other_reader, writer, atomic;
};

struct Race {
    u64 key;  // (first site << 32 | second site) + 1; 0: free
    u64 address;
    u32 threads[2], blocks[2];
    u32 different, ready, space, pad;
    u32 pairs[32], words[32];
};
struct Older {
    u64 place, stamp;  // a site that its own thread's later store pushed out of a cell
};
struct Copies {
    u32 committed, awaited;  // groups of asynchronous copies
    u64 moments[8];          // of the waits for the last groups
};
struct Known {
    u64 newest, before;  // number of another block's release << 32 | our lesson; 0: nothing
};
struct Span {
    u32 down, until;  // of checked blocks: their number less the first one's; one more than the last. 0: none
};
struct Dealings {
    u32 fenced, acquired;        // of a thread: has fenced; epoch + 1 in which it last learned something
    u32 learned_at, learned;     // object + 1 and version of that
    u64 released[4];             // its last releases: met_at << 32 | number
    u64 warp_released[4];        // with a warp's first thread: the same of what all lanes had done when they met
    u32 warp_acquired, pad;      // with it: met_at of the first lesson of an epoch
    u32 warp_releases, releases; // how many there were
    Span known, pad_;            // with a block's first thread: of what blocks it knows something
};
struct Object {
    u64 address;       // 0: free
    u32 version, pad;  // how often somebody told or began to tell there; odd: it is held
    Span told, pad_;   // of what blocks something was told
};
struct Told {
    u64 newest, before;  // of one block at an object: version << 32 | number of a release; 0: none
    u64 passed;          // number of one that other blocks know and have passed on
    u64 learned;         // how often the block had learned when it last passed on there what it knew
};
struct Clock {
    u64 some, all;  // what is known of a warp: moment << 32 | lanes; moment of all lanes. Moments + 1
};
struct Thread {
    u32 fenced, news;       // news: it knows what its warp does not
    u32 place, version;     // where it learned last
    u32 learned, together;  // the last epoch in which it did; with a warp's first thread: in which the warp did
    u32 pad[2];
};
struct Fault {
    u64 address;
    u32 count, thread, block, space;
};
struct BankSum {
    u64 executions_and_ideal, wavefronts;  // ideal in the high half
};
struct Bank {
    u32 lock, worst, worst_ways, worst_ideal;
    u32 histogram[32];
};
struct Pattern {
    u32 lanes, taken, wavefronts, pad;  // lanes: of a pattern that is complete; wavefronts: ideal in the high half
    u32 steps[32];                      // of lanes, from the first one's word; + 1
};
struct Flag {
    u64 address_and_space;  // + 1; 0: free
    u32 warps[2], block, pad;
};
struct Range {
    u64 start, size, cells;  // cells: address of the range's first shadow cell, 0: not watched; see WRITERS
};

enum { RANGES = 64, RACES = 4096, FLAGS = 65536, BANK_COPIES = 128, HIT_COPIES = 128, PATTERNS = 8, OLDER = 65536, OBJECTS = 256, PLACES = 128, BARRIERS = 16 };
enum { WRITERS = 1 };  // added to a range's cells: each is a writer's stamp alone
enum { READ = 0, WRITE = 1, ATOMIC = 2, BLOCK_ATOMIC = 3 };
enum { PATIENCE = 1 << 14, ONE_IN = 64 };  // reports of a block; after them one racing access of so many is looked at
enum { LAST_TICK = 4094 };  // of a stamp's; behind it all is taken to be ordered
enum { TICKS_SPENT = 0, RACES_LOST = 1, EPOCHS_SPENT = 2, OBJECTS_LOST = 3, MOMENTS_SPENT = 4, RACES_SKIPPED = 5 };

struct Control {
    u8* executed;
    const u32* ordinal;  // checked blocks' numbers by linear block, ~0: not checked; null: all
    u32* where;          // per checked block and thread: barriers passed and the site it waits at
    Race* races;
    Fault* faults;
    Bank* banks;
    BankSum* bank_sums;  // per site, BANK_COPIES times: one address for all would be a queue
    Pattern* patterns;  // per site, PATTERNS of them
    u64* hits;          // of patterns, in copies: see `bank_probe.py`
    Flag* flags;
    u32* notes;      // see the enum
    u32* knowledge;  // per checked block: what warps know of warps (32 x 32), barriers (16 x 32), lanes (32 x 32 x 32)
    u32* names;      // where the module's shared variables lie; first: the dynamic part
    Older* older;    // OLDER of them, by place
    Copies* copies;  // per checked block and thread, if the kernel copies asynchronously
    Object* objects;  // through which blocks synchronise; null: what orders blocks is not followed
    Told* told;      // per object and checked block
    Known* known;    // per two checked blocks: what the first knows of the second; of itself: how often it has learned, its last release
    Dealings* dealings;  // per checked block and thread
    const u8* widths;  // of sites, where atomics have several: see `widths.cuh`
    u8* clocks;      // per checked block: what its threads know of each other; null: no locks or flags order them
    u64 clocks_stride;
    u32* reports;    // per checked block: how often it has reported a race, up to PATIENCE
    u64 cells;       // shadow of shared memory when it lies in global memory
    u64 cells_stride;
    u32 threads, granule_shift, global_shift, range_count;
    u32 detail_flags, cross_block, knowledge_stride, lock_step;
    u32 checked;  // blocks
    u32 plane;    // bytes from a part of a shared memory's cell to the next
    Range ranges[RANGES];
};
extern "C" {
__constant__ Control clsp_control;
}

#define C clsp_control
#define DEVICE static __device__ __forceinline__
#define SLOW extern "C" __device__ __noinline__
#define APART static __device__ __noinline__
// A kernel takes as many registers as the hungriest function that it may call: rare paths are kept lean.
#define ROLLED _Pragma("unroll 1")

DEVICE u32 block_number() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }
DEVICE u32 thread_number() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
DEVICE u32 block_ordinal() { return C.ordinal ? C.ordinal[block_number()] : block_number(); }
SLOW u32 clsp_ordinal() { return block_ordinal(); }
DEVICE u32 checked_thread() { return block_ordinal() * C.threads + thread_number(); }
DEVICE u64 load(const u64* p) { return *(const volatile u64*)p; }
// Read first: a place to which all threads write again and again is a queue.
DEVICE void note(u32 which) {
    if (!C.notes[which]) C.notes[which] = 1;
}
struct Two {
    u64 first, second;
};
DEVICE Two load_two(const void* p) {
    Two both;
    asm volatile("ld.volatile.v2.u64 {%0, %1}, [%2];" : "=l"(both.first), "=l"(both.second) : "l"(p) : "memory");
    return both;
}

// Over the active lanes. `top_bit`: the highest that a value may have.
DEVICE u32 largest(u32 active, u32 value, u32 top_bit) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(active, value);
#else
    for (u32 bit = top_bit; bit; bit >>= 1)
        if (__any_sync(active, value >= bit && (value & bit))) value = value & bit ? value : 0;
    u32 holders = __ballot_sync(active, value != 0);
    return holders ? __shfl_sync(active, value, __ffs(holders) - 1) : 0;
#endif
}

// Of shared memory. `at`: generic, of its first part; each part has a plane of its own.
struct Cell {
    u64 at;
    __device__ __forceinline__ u64* reader() const { return (u64*)at; }
    __device__ __forceinline__ u64* writer() const { return (u64*)(at + C.plane); }
    __device__ __forceinline__ u64* other() const { return (u64*)(at + 2 * C.plane); }  // reader
    __device__ __forceinline__ u64* atomic() const { return (u64*)(at + 3 * C.plane); }
};

// ------------------------------------------------------------------------------------------ stamps

DEVICE u32 epoch_of(u64 s) { return (u32)(s >> 48); }
DEVICE u32 warp_of(u64 s) { return (u32)(s >> 43) & 31; }
DEVICE u32 tick_of(u64 s) { return (u32)(s >> 31) & 4095; }
DEVICE u32 lane_of(u64 s) { return (u32)(s >> 26) & 31; }
DEVICE u32 site_of(u64 s) { return (u32)(s >> 12) & 16383; }
DEVICE u32 value_of(u64 s) { return (u32)s & 1023; }
DEVICE u32 thread_of(u64 s) { return warp_of(s) * 32 + lane_of(s); }
DEVICE bool same_moment(u64 a, u64 b) { return (a ^ b) >> 26 == 0; }
enum { MANY = 1 << 10 };  // flag of an atomic's stamp: more than one thread was here
enum { COPY = 1 << 11 };  // flag of a writer's stamp: an asynchronous copy

enum : u32 { GROUPS = (1 << 21) - 1 };
DEVICE u32 group_of(u64 copy) { return value_of(copy) | ((u32)(copy >> 32) & 2047) << 10; }

DEVICE u32 moment(u64 s) { return epoch_of(s) << 16 | tick_of(s); }

#include "clocks.cuh"
#include "reports.cuh"
#include "shared.cuh"
#include "global.cuh"
#ifdef CLSP_WIDTHS
#include "widths.cuh"
#endif
#include "tiles.cuh"
#include "meetings.cuh"
#ifdef CLSP_CLOCKS
#include "handovers.cuh"
#include "blocks.cuh"
#endif
#include "banks.cuh"
