// The detector's slow paths: what an instrumented kernel calls when a probe (`probes.py`) cannot decide alone.
//
// Theory: a shadow cell a granule of memory holds the last writer, two readers and one atomic of the current
// barrier interval; two readers of different warps (or lanes) stand for all, because a later writer differs
// from at least one. Publish first, look at the others after that: of two unordered accesses at least one
// sees the other. Order: `docs/semantics.md`. Bank rule: the same page, "Bank conflicts".
//
// A stamp: epoch 16 | warp 5 | tick 12 | lane 5 | site 14 | flags 2 | value hash 10. The epoch counts full block
// barriers, the tick warp synchronisations and partial barriers since the last of them. A stamp of an asynchronous
// copy holds its group in place of the hash and of the tick's upper 11 bits, and is judged as of its thread's wait
// for that group.
// Compiled by the user's nvcc (`-rdc=true -ptx`) and put in front of the instrumented module; nothing here
// includes a header, so that it builds wherever the user's code does.

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

struct Cell {
    u64 reader, other_reader, writer, atomic;
};
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
    u64 newest, before;  // moment of another block << 32 | ours when we learned it; 0: nothing
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
struct Flag {
    u64 address_and_space;  // + 1; 0: free
    u32 warps[2], block, pad;
};
struct Range {
    u64 start, size, cells;  // cells: address of the range's first shadow cell, 0: not watched
};

// Of a thread: has fenced; epoch + 1 of its last release, acquisition. Of its warp, with the warp's first thread:
// (epoch + 1) << 6 | tick of the last release, of the epoch's first acquisition.
enum { HAS_FENCED, RELEASED, ACQUIRED, WARP_RELEASED, WARP_ACQUIRED, FENCED };
enum { RANGES = 64, RACES = 4096, FLAGS = 65536, BANK_COPIES = 512, OLDER = 65536, OBJECTS = 256 };
enum { READ = 0, WRITE = 1, ATOMIC = 2, BLOCK_ATOMIC = 3 };
enum { TICKS_SPENT = 0, RACES_LOST = 1, EPOCHS_SPENT = 2, OBJECTS_LOST = 3 };

struct Control {
    u8* executed;
    const u32* ordinal;  // checked blocks' numbers by linear block, ~0: not checked; null: all
    u32* where;          // per checked block and thread: barriers passed and the site it waits at
    Race* races;
    Fault* faults;
    Bank* banks;
    BankSum* bank_sums;  // per site, BANK_COPIES times: one address for all would be a queue
    Flag* flags;
    u32* notes;      // see the enum
    u32* knowledge;  // per checked block: what warps know of warps (32 x 32), barriers (16 x 32), lanes (32 x 32 x 32)
    u32* names;      // where the module's shared variables lie; first: the dynamic part
    Older* older;    // OLDER of them, by place
    Copies* copies;  // per checked block and thread, if the kernel copies asynchronously
    u64* objects;    // addresses through which blocks synchronise; null: what orders blocks is not followed
    u32* told;       // per object and checked block: epoch of its last release there + 1
    Known* known;    // per two checked blocks: what the first knows of the second
    u32* fenced;     // FENCED words a checked thread, see there
    u64 cells;       // shadow of shared memory when it lies in global memory
    u64 cells_stride;
    u32 threads, granule_shift, global_shift, range_count;
    u32 detail_flags, cross_block, knowledge_stride, lock_step;
    u32 checked, pad;  // blocks
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
struct Two {
    u64 first, second;
};
DEVICE Two load_two(const void* p) {
    Two both;
    asm volatile("ld.volatile.v2.u64 {%0, %1}, [%2];" : "=l"(both.first), "=l"(both.second) : "l"(p) : "memory");
    return both;
}

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
DEVICE u32* warp_knowledge() { return C.knowledge ? C.knowledge + (u64)block_ordinal() * C.knowledge_stride : nullptr; }
DEVICE u32* barrier_knowledge() { return warp_knowledge() + 1024; }
DEVICE u32* lane_knowledge(u32 warp) {
    return C.knowledge_stride > 1536 ? warp_knowledge() + 1536 + warp * 1024 : nullptr;
}

// Whether `old`, a stamp of this block, is ordered before what the thread of `me` does now.
APART bool ordered(u64 old, u64 me) {
    if (epoch_of(old) != epoch_of(me) || thread_of(old) == thread_of(me)) return true;
    if (warp_of(old) == warp_of(me)) {
        if (C.lock_step) return site_of(old) != site_of(me);
        if (tick_of(me) >= 4094) {
            C.notes[TICKS_SPENT] = 1;
            return true;
        }
        if (u32* lanes = C.knowledge ? lane_knowledge(warp_of(me)) : nullptr)
            return *(volatile u32*)&lanes[lane_of(me) * 32 + lane_of(old)] > moment(old);
        return tick_of(old) < tick_of(me);
    }
    if (!C.knowledge) return false;
    return *(volatile u32*)&warp_knowledge()[warp_of(me) * 32 + warp_of(old)] > moment(old);
}

// ----------------------------------------------------------------------------------------- reports

DEVICE u32 mixed(u32 a, u32 b) { return (a * 2654435761u ^ b * 2246822519u) >> 7; }

APART void report_flag(u32 warp_a, u32 warp_b, u64 address, u32 space) {
    u64 key = (address << 1 | space) + 1;
    u32 home = mixed((u32)address, block_number());
    ROLLED for (u32 i = 0; i < 16; ++i) {
        Flag* flag = &C.flags[(home + i) % FLAGS];
        u64 old = atomicCAS(&flag->address_and_space, 0ull, key);
        if (old == key && flag->block == block_number()) return;
        if (old) continue;
        flag->warps[0] = warp_a;
        flag->warps[1] = warp_b;
        flag->block = block_number();
        return;
    }
    C.notes[RACES_LOST] = 1;
}

struct Party {
    u32 site, thread, block;
};

APART void report(Party a, Party b, u64 address, u32 space, bool different) {
    if (C.detail_flags) return report_flag(a.thread / 32, b.thread / 32, address, space);
    if (a.site > b.site) {
        Party c = a;
        a = b;
        b = c;
    }
    u64 key = ((u64)a.site << 32 | b.site) + 1;
    u32 home = mixed(a.site, b.site);
    ROLLED for (u32 i = 0; i < RACES; ++i) {
        Race* race = &C.races[(home + i) % RACES];
        u64 old = load(&race->key);
        if (!old) old = atomicCAS(&race->key, 0ull, key);
        if (old && old != key) continue;
        if (!old) {
            race->address = address;
            race->threads[0] = a.thread;
            race->threads[1] = b.thread;
            race->blocks[0] = a.block;
            race->blocks[1] = b.block;
            race->space = space;
            race->ready = 1;
        }
        if (different) race->different = 1;
        u32 pair = mixed(a.thread << 12 ^ b.thread, a.block * 31 ^ b.block) & 1023;
        u32 word = mixed((u32)(address >> 2), space ? 0 : a.block) & 1023;
        if (!(race->pairs[pair >> 5] >> (pair & 31) & 1)) atomicOr(&race->pairs[pair >> 5], 1u << (pair & 31));
        if (!(race->words[word >> 5] >> (word & 31) & 1)) atomicOr(&race->words[word >> 5], 1u << (word & 31));
        return;
    }
    C.notes[RACES_LOST] = 1;
}

APART void fault(u32 site, u64 address, u32 space) {
    Fault* seen = &C.faults[site];
    if (atomicAdd(&seen->count, 1u)) return;
    seen->address = address;
    seen->thread = thread_number();
    seen->block = block_number();
    seen->space = space;
}

// ------------------------------------------------------------------------- stores of one thread to one word

DEVICE u64 shared_place(u32 address) { return 1ull << 63 | (u64)block_number() << 32 | address; }

// Where up to four older sites of a place are kept.
DEVICE Older* older_of(u64 place) {
    return &C.older[(mixed((u32)place, (u32)(place >> 32)) * 4) % OLDER];
}

// Bits of stamps that say which thread and interval, and which site, in shared and in global memory.
const u64 AGENT = 0xffffull << 48 | 31ull << 43 | 31ull << 26, AGENT_SITE = AGENT | 16383ull << 12;
const u64 G_AGENT = ~0ull << 22, G_AGENT_SITE = G_AGENT | 16383ull << 2;

// A cell names one site of its writer; what that thread did there earlier in this interval is kept aside.
APART void keep_older(u64 place, u64 old, u64 agent, u64 agent_site) {
    Older* home = older_of(place);
    u32 i = 0;
    for (; i < 3; ++i) {
        Two kept = load_two(home + i);
        if (kept.first != place || (kept.second ^ old) & agent) break;
        if (!((kept.second ^ old) & agent_site)) return;
    }
    asm volatile("st.volatile.v2.u64 [%0], {%1, %2};" ::"l"(home + i), "l"(place), "l"(old) : "memory");
}

// ----------------------------------------------------------------------------------- shared memory

DEVICE Party party(u64 s) { return Party{site_of(s), thread_of(s), block_number()}; }

APART void check_slowly(u64 old, u64 me, u32 address, bool different) {
    if (ordered(old, me)) return;
    report(party(old), party(me), address, 0, different);
    u64 place = shared_place(address);
    ROLLED for (u32 i = 0; i < 4; ++i) {
        Two kept = load_two(older_of(place) + i);
        bool same = kept.first == place && !((kept.second ^ old) & AGENT) && site_of(kept.second) != site_of(old);
        if (same && !ordered(kept.second, me)) report(party(kept.second), party(me), address, 0, true);
    }
}

// The stamp that an asynchronous copy has: of the wait for its group; never over: of now.
APART u64 settled(u64 copy, u64 me) {
    Copies* copies = &C.copies[block_ordinal() * C.threads + thread_of(copy)];
    u32 awaited = *(volatile u32*)&copies->awaited, open = *(volatile u32*)&copies->committed - awaited;
    u32 group = group_of(copy), behind = (awaited - group) & GROUPS, ahead = (group - awaited) & GROUPS;
    const u64 when = 0xffffull << 48 | 4095ull << 31, who = 31ull << 43 | 31ull << 26 | 16383ull << 12;
    u64 moment = me;
    if (ahead > open) moment = behind > 8 ? 0 : load(&copies->moments[group & 7]);
    return (moment & when) | (copy & who);
}

APART void check(u64 old, u64 me, u32 address, bool different) {
    if (old & COPY) {
        old = settled(old, me);
        different = true;
    }
    if (epoch_of(old) == epoch_of(me) && thread_of(old) != thread_of(me)) check_slowly(old, me, address, different);
}

// The bits of a copy's stamp that say its group.
DEVICE u64 copy_group() {
    u32 group = C.copies[checked_thread()].committed;
    return (u64)(group >> 10 & 2047) << 32 | COPY | (group & 1023);
}

// Make sure that a later writer meets a reader other than itself. Lock-free; a lost race tries again.
DEVICE void publish_reader(Cell* cell, u64 me) {
    ROLLED for (int attempt = 0; attempt < 4; ++attempt) {
        u64 first = load(&cell->reader);
        bool current = epoch_of(first) == epoch_of(me);
        if (!current || (warp_of(first) == warp_of(me) && tick_of(first) < tick_of(me))) {
            if (atomicCAS(&cell->reader, first, me) == first) return;
            continue;
        }
        if (thread_of(first) == thread_of(me)) return;
        u64 second = load(&cell->other_reader);
        if (epoch_of(second) == epoch_of(me)) {
            if (warp_of(second) != warp_of(first)) return;
            if (warp_of(first) == warp_of(me) && tick_of(second) >= tick_of(me) && lane_of(second) != lane_of(first))
                return;
        }
        if (atomicCAS(&cell->other_reader, second, me) == second) return;
    }
}

DEVICE u64 stamp(u32 low, u32 high, u32 site) { return (u64)high << 32 | low | (u64)site << 12; }

DEVICE void check_writers(u32 address, Cell* cell, u64 me) {
    u64 writer = load(&cell->writer);
    check(writer, me, address, true);
    check(load(&cell->atomic), me, address, true);
    if (writer & COPY) {
        u64 done = settled(writer, me);
        if (epoch_of(done) < epoch_of(me)) atomicCAS(&cell->writer, writer, done);  // later readers need not ask
    }
}

DEVICE void read_cell(u32 address, Cell* cell, u64 me) {
    publish_reader(cell, me);
    __threadfence_block();
    check_writers(address, cell, me);
}

DEVICE void check_write(u32 address, Cell* cell, u64 old, u64 me) {
    bool again = !((old ^ me) & AGENT) && site_of(old) != site_of(me);
    if (again && !(old & COPY)) keep_older(shared_place(address), old, AGENT, AGENT_SITE);
    check(old, me, address, value_of(old) != value_of(me));
    check(load(&cell->reader), me, address, true);
    check(load(&cell->other_reader), me, address, true);
    check(load(&cell->atomic), me, address, true);
}

// A read of `cells` neighbouring granules. `cell` is generic; `low`, `high`: the thread's stamp.
SLOW void clsp_read(u32 address, u64 cell, u32 low, u32 high, u32 site, u32 cells) {
    ROLLED for (u32 i = 0; i < cells; ++i)
        read_cell(address + (i << C.granule_shift), (Cell*)cell + i, stamp(low, high, site));
}

// After the readers' stamps were left by the probe: is there a writer?
SLOW void clsp_has_read(u32 address, u64 cell, u32 low, u32 high, u32 site, u32 cells) {
    u64 me = stamp(low, high, site);
    ROLLED for (u32 i = 0; i < cells; ++i) {
        Cell* c = (Cell*)cell + i;
        if (cells > 1) publish_reader(c, me);  // the probe stopped at the first cell with news
        u32 at = address + (i << C.granule_shift);
        check_writers(at, c, me);
    }
}

// After the writer's stamp was exchanged for ours; `old` is what stood there.
SLOW void clsp_written(u32 address, u64 cell, u32 low, u32 high, u32 site, u64 old) {
    check_write(address, (Cell*)cell, old, stamp(low, high, site));
}

SLOW void clsp_write(u32 address, u64 cell, u32 low, u32 high, u32 site, u32 cells) {
    u64 me = stamp(low, high, site), kept = me & COPY ? (me & ~(2047ull << 32)) | (copy_group() & 2047ull << 32) : me;
    ROLLED for (u32 i = 0; i < cells; ++i) {
        Cell* c = (Cell*)cell + i;
        u64 old = atomicExch(&c->writer, kept);
        __threadfence_block();
        check_write(address + (i << C.granule_shift), c, old, me);
    }
}

SLOW void clsp_atomic(u32 address, u64 cell, u32 low, u32 high, u32 site, u32 cells) {
    u64 me = stamp(low, high, site);
    ROLLED for (u32 i = 0; i < cells; ++i) {
        Cell* c = (Cell*)cell + i;
        u64 old = load(&c->atomic);
        if (epoch_of(old) != epoch_of(me))
            atomicCAS(&c->atomic, old, me);
        else if (!same_moment(old, me) && !(old & MANY))
            atomicCAS(&c->atomic, old, me | MANY);
        __threadfence_block();
        u32 at = address + (i << C.granule_shift);
        check(load(&c->writer), me, at, true);
        check(load(&c->reader), me, at, true);
        check(load(&c->other_reader), me, at, true);
    }
}

SLOW void clsp_shared_fault(u32 address, u32 site) { fault(site, address, 0); }

// ----------------------------------------------------------------------------------- global memory

// A stamp here: block 18 | epoch 14 | thread 10 | tick 6 | site 14 | atomic 1 | of block scope 1.
DEVICE u64 global_stamp(u32 low, u32 high, u32 site, u32 kind) {
    u64 s = stamp(low, high, 0);
    u32 epoch = epoch_of(s) < 16383 ? epoch_of(s) : 16383, tick = tick_of(s) < 63 ? tick_of(s) : 63;
    if (epoch == 16383) C.notes[EPOCHS_SPENT] = 1;
    return (u64)(block_number() & 0x3ffff) << 46 | (u64)epoch << 32 | (u64)thread_of(s) << 22 | (u64)tick << 16 |
           (u64)site << 2 | (kind >= ATOMIC) << 1 | (kind == BLOCK_ATOMIC);
}
DEVICE u32 g_block(u64 s) { return (u32)(s >> 46); }
DEVICE u32 g_epoch(u64 s) { return (u32)(s >> 32) & 16383; }
DEVICE u32 g_thread(u64 s) { return (u32)(s >> 22) & 1023; }
DEVICE u32 g_tick(u64 s) { return (u32)(s >> 16) & 63; }
DEVICE u32 g_site(u64 s) { return (u32)(s >> 2) & 16383; }
DEVICE u32 ordinal_of(u32 block) { return C.ordinal ? C.ordinal[block] : block; }

DEVICE volatile u32* fenced_by(u32 ordinal, u32 thread) { return C.fenced + FENCED * ((u64)ordinal * C.threads + thread); }
// Epoch + 1 and tick; the last tick stands for all later ones.
DEVICE u32 met_at(u64 s) { return (g_epoch(s) + 1) << 6 | g_tick(s); }
DEVICE bool met_between(u32 a, u32 b) { return a < b || (a == b && (a & 63) == 63); }

// Whether `old`, of another block, happened before a release that this thread, or its block before its last
// barrier, has acquired.
APART bool acquired(u64 old, u64 me) {
    if (!C.objects) return false;
    u32 a = ordinal_of(g_block(old)), b = block_ordinal();
    const volatile u32 *from = fenced_by(a, g_thread(old)), *to = fenced_by(b, g_thread(me));
    u32 released = from[RELEASED], looked = to[ACQUIRED];
    u32 last = fenced_by(a, g_thread(old) & ~31u)[WARP_RELEASED], first = fenced_by(b, g_thread(me) & ~31u)[WARP_ACQUIRED];
    Two known = load_two(&C.known[(u64)b * C.checked + a]);
    for (u32 i = 0; i < 2; ++i) {
        u64 lesson = i ? known.second : known.first;
        u32 theirs = (u32)(lesson >> 32), ours = (u32)lesson;
        // A warp that has met since tells and knows what its lanes do.
        bool told = g_epoch(old) + 1 < theirs ||
                    (g_epoch(old) + 1 == theirs && (released >= theirs || (last >= theirs << 6 && met_between(met_at(old), last))));
        bool known = g_epoch(me) + 1 > ours || looked >= ours || (first >= ours << 6 && met_between(first, met_at(me)));
        if (told && known) return true;
    }
    return false;
}

// The stamp as that of an access to shared memory.
DEVICE u64 in_block(u64 s) {
    return (u64)g_epoch(s) << 48 | (u64)(g_thread(s) / 32) << 43 | (u64)g_tick(s) << 31 | (u64)(g_thread(s) & 31) << 26 |
           (u64)g_site(s) << 12;
}

APART bool g_ordered(u64 old, u64 me) {
    if (!old) return true;
    if (g_block(old) != g_block(me)) return !C.cross_block || acquired(old, me);
    if (g_epoch(old) != g_epoch(me) || g_thread(old) == g_thread(me) || g_epoch(me) == 16383) return true;
    if (C.lock_step && (g_thread(old) ^ g_thread(me)) < 32) return g_site(old) != g_site(me);
    if (C.knowledge) return g_tick(old) == 63 || g_tick(me) == 63 || ordered(in_block(old), in_block(me));
    return (g_thread(old) ^ g_thread(me)) < 32 && (g_tick(old) != g_tick(me) || g_tick(me) == 63);
}

DEVICE Party g_party(u64 s) { return Party{g_site(s), g_thread(s), g_block(s)}; }

APART void g_check_slowly(u64 old, u64 me, u64 address) {
    if (g_ordered(old, me)) return;
    report(g_party(old), g_party(me), address, 1, true);
    ROLLED for (u32 i = 0; i < 4; ++i) {
        Two kept = load_two(older_of(address) + i);
        bool same = kept.first == address && !((kept.second ^ old) & G_AGENT) && g_site(kept.second) != g_site(old);
        if (same) report(g_party(kept.second), g_party(me), address, 1, true);
    }
}

DEVICE void g_check(u64 old, u64 me, u64 address) {
    if (!old || (old & me & 2 && (g_block(old) == g_block(me) || !((old | me) & 1)))) return;
    if (g_block(old) != g_block(me) ? C.cross_block : (g_epoch(old) == g_epoch(me) && g_thread(old) != g_thread(me)))
        g_check_slowly(old, me, address);
}

// Whether `old` says no more than `me` about readers that a later writer could meet.
DEVICE bool g_outdated(u64 old, u64 me) {
    return !old || (g_block(old) == g_block(me) &&
                    (g_epoch(old) != g_epoch(me) || ((g_thread(old) ^ g_thread(me)) < 32 && g_tick(old) != g_tick(me))));
}

// Whether a later writer meets enough readers of this cell without `me`.
DEVICE bool g_known(Two readers, u64 me) {
    if (g_outdated(readers.first, me)) return false;
    if (g_block(readers.first) == g_block(me) && g_thread(readers.first) == g_thread(me)) return true;
    return !g_outdated(readers.second, me) &&
           (g_block(readers.second) != g_block(readers.first) || g_block(readers.second) == g_block(me));
}

APART void g_publish_reader(GlobalCell* cell, u64 me) {
    ROLLED for (int attempt = 0; attempt < 4; ++attempt) {
        Two now = load_two(&cell->reader);
        if (g_known(now, me)) return;
        bool first = g_outdated(now.first, me);
        u64 expected = first ? now.first : now.second;
        if (atomicCAS(first ? &cell->reader : &cell->other_reader, expected, me) == expected) return;
    }
}

DEVICE void g_read(GlobalCell* cell, u64 me, u64 at) {
    Two readers = load_two(&cell->reader), writers = load_two(&cell->writer);
    if (!g_known(readers, me)) {
        g_publish_reader(cell, me);
        writers = load_two(&cell->writer);
    }
    g_check(writers.first, me, at);
    g_check(writers.second, me, at);
}

DEVICE void g_write(GlobalCell* cell, u64 me, u64 at) {
    u64 old = atomicExch(&cell->writer, me);
    Two readers = load_two(&cell->reader);
    u64 atomic = load(&cell->atomic);
    if (!((old ^ me) & G_AGENT) && g_site(old) != g_site(me)) keep_older(at, old, G_AGENT, G_AGENT_SITE);
    g_check(old, me, at);
    g_check(readers.first, me, at);
    g_check(readers.second, me, at);
    g_check(atomic, me, at);
}

DEVICE void g_atomic(GlobalCell* cell, u64 me, u64 at) {
    Two writers = load_two(&cell->writer);
    if (writers.second != me) g_check(atomicExch(&cell->atomic, me), me, at);
    Two readers = load_two(&cell->reader);
    g_check(writers.first, me, at);
    g_check(readers.first, me, at);
    g_check(readers.second, me, at);
}

APART void global_access(u64 address, u64 cells, u32 count, u64 me, u32 kind) {
    ROLLED for (u32 i = 0; i < count; ++i) {
        GlobalCell* cell = (GlobalCell*)cells + i;
        u64 at = address + ((u64)i << C.global_shift);
        if (kind == READ)
            g_read(cell, me, at);
        else if (kind == WRITE)
            g_write(cell, me, at);
        else
            g_atomic(cell, me, at);
    }
}

// Where an access may go; null: outside all ranges, or not a multiple of its bytes.
DEVICE const Range* range_of(u64 address, u32 bytes) {
    if (address & (bytes - 1)) return nullptr;
    for (u32 i = 0; i < C.range_count; ++i)
        if (address - C.ranges[i].start + (bytes - 1) < C.ranges[i].size) return &C.ranges[i];
    return nullptr;
}

// Bounds only: 1 when the access may be carried out. `info`: site | bytes << 16 | kind << 24.
SLOW u32 clsp_bounds(u64 address, u32 info) {
    u32 bytes = info >> 16 & 255;
    if ((!C.range_count && !(address & (bytes - 1))) || range_of(address, bytes)) return 1;
    fault(info & 65535, address, 1);
    return 0;
}

// Bounds and races of an access to global memory; 1 when it may be carried out.
SLOW u32 clsp_global(u64 address, u32 low, u32 high, u32 info) {
    u32 bytes = info >> 16 & 255, kind = info >> 24;
    const Range* range = range_of(address, bytes);
    if (!range) {
        if (!C.range_count && !(address & (bytes - 1))) return 1;
        fault(info & 65535, address, 1);
        return 0;
    }
    if (range->cells) {
        u64 cell = range->cells + ((address - range->start) >> C.global_shift) * sizeof(GlobalCell);
        u32 count = bytes >> C.global_shift ? bytes >> C.global_shift : 1;
        global_access(address, cell, count, global_stamp(low, high, info & 65535, kind), kind);
    }
    return 1;
}

// --------------------------------------------------------------------------------- tiles of a warp
//
// What a lane stores is not known: its own number stands for the value.

struct Shadow {
    u64 cells;  // of the first byte of the block's shared memory
    u32 base, limit;
};

APART void shared_part(u32 address, u32 bytes, Shadow shadow, u32 low, u32 high, u32 site, u32 kind) {
    u32 first = (address - shadow.base) >> C.granule_shift, granule = 1u << C.granule_shift;
    u64 me = stamp(low | (kind == WRITE ? thread_number() : 0), high, site);
    ROLLED for (u32 at = 0; at < bytes; at += granule) {
        Cell* cell = (Cell*)shadow.cells + first + (at >> C.granule_shift);
        if (kind == WRITE) {
            u64 old = atomicExch(&cell->writer, me);
            __threadfence_block();
            check_write(address + at, cell, old, me);
        } else
            read_cell(address + at, cell, me);
    }
}

// Whether the bytes lie in the block's shared memory; if not, that is written down.
DEVICE bool in_shared(u32 address, u32 bytes, Shadow shadow, u32 site) {
    if (address - shadow.base + (bytes - 1) < shadow.limit) return true;
    fault(site, address, 0);
    return false;
}

// ldmatrix, stmatrix: lane 8 j + r names row r of matrix j; the lanes of a group of four share one.
// 1 when all of it may be carried out. `info`: site | kind << 16 | matrices << 20 | trans << 24.
SLOW u32 clsp_rows(u32 address, u64 cells, u32 base, u32 limit, u32 low, u32 high, u32 info) {
    Shadow shadow = {cells, base, limit};
    u32 lane = thread_number() & 31, site = info & 65535, kind = info >> 16 & 15, count = info >> 20 & 15;
    bool good = lane >= 8 * count || in_shared(address, 16, shadow, site);
    if (!__all_sync(~0u, good)) return 0;
    ROLLED for (u32 j = 0; j < count; ++j) {
        bool trans = info >> 24 & 1;
        ROLLED for (u32 half = 0; half <= trans; ++half) {
            u32 row = __shfl_sync(~0u, address, 8 * j + (trans ? 2 * (lane & 3) + half : lane >> 2));
            u32 at = row + (trans ? 2 * (lane >> 2) : 4 * (lane & 3));
            shared_part(at, trans ? 2 : 4, shadow, low, high, site, kind);
        }
    }
    return 1;
}

SLOW u32 clsp_global(u64 address, u32 low, u32 high, u32 info);

DEVICE bool is_shared(u64 address) {
    u32 yes;
    asm("{ .reg .pred p; isspacep.shared p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(yes) : "l"(address));
    return yes;
}

// wmma.load, wmma.store of `rows` rows of `row_bytes`, `pitch` bytes apart: which lane has which element is not
// documented, so the lanes take turns. `info`: site | kind << 16 | in shared, in global memory watched << 25, 26.
SLOW u32 clsp_tile(u64 address, u64 cells, u32 base, u32 limit, u32 low, u32 high, u32 info, u32 pitch, u32 shape) {
    Shadow shadow = {cells, base, limit};
    u32 lane = thread_number() & 31, site = info & 65535, kind = info >> 16 & 15;
    u32 rows = shape & 255, row_bytes = shape >> 8 & 65535;
    u32 part = row_bytes < 16 ? row_bytes : 16, parts = row_bytes / part;
    bool shared = is_shared(address), good = true, watched = info >> (shared ? 25 : 26) & 1;
    ROLLED for (u32 i = lane; i < rows * parts; i += 32) {
        u64 at = address + (u64)(i / parts) * pitch + i % parts * part;
        if (shared) {
            u32 place = (u32)__cvta_generic_to_shared((void*)at);
            bool fits = in_shared(place, part, shadow, site);
            if (fits && watched) shared_part(place, part, shadow, low, high, site, kind);
            good = good && fits;
        } else
            ROLLED for (u32 byte = 0; byte < part; byte += 4) {
                u32 one = site | 4 << 16 | kind << 24;
                good = (watched ? clsp_global(at + byte, low, high, one) : clsp_bounds(at + byte, one)) && good;
            }
    }
    return __all_sync(~0u, good);
}

// ---------------------------------------------------------------------------------- synchronisation

// A full barrier was passed for the 65,536th time: old stamps would look new.
SLOW void clsp_forget(u64 cells, u32 count) {
    for (u32 i = thread_number(); i < count; i += C.threads) ((Cell*)cells)[i] = Cell{0, 0, 0, 0};
    __syncthreads();
}

// A barrier that not all threads need to pass: say what this warp knows, …
SLOW void clsp_arrive(u32 low, u32 high, u32 id) {
    u64 me = stamp(low, high, 0);
    u32 *known = warp_knowledge() + warp_of(me) * 32, *told = barrier_knowledge() + (id & 15) * 32;
    atomicMax(&told[warp_of(me)], moment(me) + 1);
    for (u32 w = 0; w < 32; ++w)
        if (u32 value = *(volatile u32*)&known[w]) atomicMax(&told[w], value);
    __threadfence_block();
}

// … and afterwards learn what the others said.
SLOW void clsp_depart(u32 low, u32 high, u32 id) {
    u64 me = stamp(low, high, 0);
    u32 *known = warp_knowledge() + warp_of(me) * 32, *told = barrier_knowledge() + (id & 15) * 32;
    for (u32 w = 0; w < 32; ++w)
        if (u32 value = *(volatile u32*)&told[w]) atomicMax(&known[w], value);
    u32* lanes = lane_knowledge(warp_of(me));
    for (u32 lane = 0; lanes && lane < 32; ++lane) atomicMax(&lanes[lane_of(me) * 32 + lane], moment(me) + 1);
    __threadfence_block();
}

// Lanes of `mask` have met: each knows what any of them knew.
SLOW void clsp_warp_met(u32 low, u32 high, u32 mask) {
    u64 me = stamp(low, high, 0);
    u32* lanes = lane_knowledge(warp_of(me));
    if (!lanes) return;
    u32 lane = lane_of(me), live = mask & (C.threads - warp_of(me) * 32 >= 32 ? ~0u : (1u << (C.threads & 31)) - 1);
    if (!(live >> lane & 1)) return;
    u32* mine = lanes + lane * 32;
    atomicMax(&mine[lane], moment(me) + 1);
    __threadfence_block();
    __syncwarp(live);
    for (u32 other = 0; other < 32; ++other) {
        if (!(live >> other & 1)) continue;
        for (u32 i = 0; i < 32; ++i) {
            u32 value = *(volatile u32*)&lanes[other * 32 + i];
            if (value > mine[i]) atomicMax(&mine[i], value);
        }
    }
    __threadfence_block();
    __syncwarp(live);
}

// ------------------------------------------------------------------------------- asynchronous copies

SLOW u64 clsp_copy_group() { return copy_group(); }

SLOW void clsp_committed() { C.copies[checked_thread()].committed += 1; }

// All groups but the newest `allowed` are there; ~0: also what was not committed.
SLOW void clsp_awaited(u32 low, u32 high, u32 allowed) {
    Copies* mine = &C.copies[checked_thread()];
    if (allowed == ~0u) {
        mine->committed += 1;
        allowed = 0;
    }
    for (; mine->awaited + allowed < mine->committed; mine->awaited += 1) {
        mine->moments[mine->awaited & 7] = stamp(low, high, 0);
        __threadfence_block();
    }
}

// ------------------------------------------------------------------------------ order between blocks
//
// A fence and then an atomic (or a release) tells, at the atomic's address, what the thread has done and what its
// block had done at its last barrier; an atomic or strong load at that address learns it, for its thread at once
// and for its block from the next barrier on. Told a little early and learned a little late: what this lets
// through is a missed race, never a false one.

DEVICE int object_of(u64 address, bool add) {
    for (u32 i = 0; i < 16; ++i) {
        u32 at = (mixed((u32)(address >> 2), (u32)(address >> 32)) + i) % OBJECTS;
        u64 there = load(&C.objects[at]);
        if (!there && add) there = atomicCAS(&C.objects[at], 0ull, address) ?: address;
        if (there == address) return at;
        if (!there) return -1;
    }
    if (add) C.notes[OBJECTS_LOST] = 1;
    return -1;
}

DEVICE bool in_global(u64 address) {
    u32 yes;
    asm("{ .reg .pred p; isspacep.global p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(yes) : "l"(address));
    return yes;
}

DEVICE volatile u32* my_fences(u32 thread) { return fenced_by(block_ordinal(), thread); }
SLOW void clsp_fenced() { my_fences(thread_number())[HAS_FENCED] = 1; }

// Before an atomic or strong store. `releases`: without a fence, too.
SLOW void clsp_tell(u64 address, u32 low, u32 high, u32 releases) {
    volatile u32* mine = my_fences(thread_number());
    if (!(releases || mine[HAS_FENCED]) || !in_global(address)) return;
    int object = object_of(address, true);
    if (object < 0) return;
    u64 me = global_stamp(low, high, 0, READ);
    u32 now = g_epoch(me) + 1;
    mine[RELEASED] = now;
    atomicMax((u32*)&my_fences(thread_number() & ~31u)[WARP_RELEASED], met_at(me));
    __threadfence();
    atomicMax(&C.told[object * C.checked + block_ordinal()], now);
    __threadfence();
}

// After an atomic or strong load.
SLOW void clsp_learn(u64 address, u32 low, u32 high) {
    int object = in_global(address) ? object_of(address, false) : -1;
    if (object < 0) return;
    __threadfence();
    u64 me = global_stamp(low, high, 0, READ);
    u32 self = block_ordinal(), now = g_epoch(me) + 1;
    for (u32 other = 0; other < C.checked; ++other) {
        u32 theirs = *(volatile u32*)&C.told[object * C.checked + other];
        Known* known = &C.known[(u64)self * C.checked + other];
        if (!theirs || other == self || load(&known->newest) >> 32 >= theirs) continue;
        u64 old = atomicMax(&known->newest, (u64)theirs << 32 | now);
        if (old && (u32)old != now && old >> 32 < theirs) *(volatile u64*)&known->before = old;
    }
    my_fences(thread_number())[ACQUIRED] = now;
    volatile u32* first = &my_fences(thread_number() & ~31u)[WARP_ACQUIRED];
    if (*first >> 6 != now) *first = met_at(me);
    __threadfence();
}

// ------------------------------------------------------------------------------------------- banks

// Over the active lanes.
DEVICE u32 largest(u32 active, u32 value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(active, value);
#else
    for (u32 bit = 32; bit; bit >>= 1)  // ways are at most 32
        if (__any_sync(active, value >= bit && (value & bit))) value = value & bit ? value : 0;
    u32 holders = __ballot_sync(active, value != 0);
    return holders ? __shfl_sync(active, value, __ffs(holders) - 1) : 0;
#endif
}

// Wavefronts of this warp instruction. `bytes` a lane; `is_load`: lane pairs that agree merge parts.
SLOW void clsp_bank(u32 address, u32 site, u32 bytes, u32 is_load) {
    u32 ordinal = block_ordinal();
    if (ordinal == ~0u) return;
    // Lanes of another instruction may have come here together with ours.
    u32 active = __match_any_sync(__activemask(), site), lane = thread_number() & 31;
    u32 unit_bytes = bytes > 4 ? bytes : 4, unit = address / unit_bytes, units = 128 / unit_bytes;
    u32 lanes = 32 * 4 / unit_bytes;  // of one part
    if (is_load && bytes >= 8) {
        u32 same = __match_any_sync(active, unit);
        bool both = active >> (lane ^ 1) & 1;
        if (__all_sync(active, !both || (same >> (lane ^ 1) & 1))) lanes *= 2;
    }
    u32 part = lane / lanes, part_mask = (lanes == 32 ? ~0u : (1u << lanes) - 1) << (part * lanes);
    u32 same = __match_any_sync(active, unit) & part_mask;
    bool leads = (same & (0u - same)) == 1u << lane;
    u32 bank = unit % units;
    u32 peers = __match_any_sync(active, leads ? bank : 64 + lane);
    u32 ways = leads ? __popc(peers & part_mask) : 0;
    u32 wavefronts = 0, ideal = 0, worst = 0;
    for (u32 p = 0; p * lanes < 32; ++p) {
        u32 most = largest(active, part == p ? ways : 0);
        wavefronts += most;
        ideal += most > 0;
        worst = most > worst ? most : worst;
    }
    Bank* out = &C.banks[site];
    bool first = lane == __ffs(active) - 1;
    if (first) {
        BankSum* sum = &C.bank_sums[site * BANK_COPIES + (block_number() * 4 + (thread_number() >> 5)) % BANK_COPIES];
        atomicAdd(&sum->executions_and_ideal, (u64)ideal << 32 | 1);
        atomicAdd(&sum->wavefronts, (u64)wavefronts);
    }
    if (!__any_sync(active, *(volatile u32*)&out->worst < wavefronts)) return;
    bool mine = false;  // the lock, unless somebody writes down a worse warp meanwhile
    while (first && !mine && *(volatile u32*)&out->worst < wavefronts) mine = !atomicCAS(&out->lock, 0u, 1u);
    if (!__any_sync(active, mine)) return;
    __syncwarp(active);
    __threadfence();
    if (__any_sync(active, *(volatile u32*)&out->worst < wavefronts)) {
        u32 counts = leads ? __popc(peers) : 0;  // over all parts
        bool speaks = leads && lane == __ffs(peers) - 1;
        if (first)
            for (u32 b = 0; b < 32; ++b) *(volatile u32*)&out->histogram[b] = 0;
        __syncwarp(active);
        if (speaks)
            for (u32 b = 0; b < unit_bytes / 4; ++b)
                *(volatile u32*)&out->histogram[bank * (unit_bytes / 4) + b] = counts;
        __syncwarp(active);
        if (first) {
            out->worst_ways = worst;
            out->worst_ideal = ideal;
            *(volatile u32*)&out->worst = wavefronts;
        }
    }
    __threadfence();
    __syncwarp(active);
    if (first) atomicExch(&out->lock, 0u);
}
