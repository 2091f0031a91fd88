// What threads of a block know of what others have done.
//
// A thread's moment is its epoch and tick. Without locks, flags and mbarriers the tick is that of its warp; at
// barriers and masks that leave threads out, tables say what a warp knows of warps, and a lane of lanes.
//
// Where locks and flags order threads of one block, a thread knows of each warp what all its lanes did up to one
// moment, and what some lanes did up to another. A release begins a new moment of its thread, a meeting of lanes
// puts them all at the same one; so the two moments say everything of a warp that meets and has a leader, or whose
// lanes release in turn. Lanes told at several moments are joined at the latest: that may hide a race, and never
// makes one. Behind each other: Thread[threads], Clock[threads][warps], Clock[warps][warps] (what all lanes of a
// warp know), and for each place where threads hand over {u64 address, version; Clock[warps]}.

DEVICE u32* warp_knowledge() { return C.knowledge ? C.knowledge + (u64)block_ordinal() * C.knowledge_stride : nullptr; }
DEVICE u32* barrier_knowledge() { return warp_knowledge() + 1024; }
DEVICE u32* lane_knowledge(u32 warp) {
    return C.knowledge_stride > 1536 ? warp_knowledge() + 1536 + warp * 1024 : nullptr;
}

#ifdef CLSP_CLOCKS
enum { CLOCKS = 1 };

DEVICE u32 warps() { return (C.threads + 31) / 32; }
DEVICE Thread* threads() { return (Thread*)(C.clocks + block_ordinal() * C.clocks_stride); }
DEVICE Clock* known_to_thread(u32 thread) { return (Clock*)(threads() + C.threads) + thread * warps(); }
DEVICE Clock* known_to_warp(u32 warp) { return known_to_thread(C.threads) + warp * warps(); }
DEVICE Clock* place(u32 number) { return known_to_warp(warps()) + number * (warps() + 1); }
DEVICE bool is_news(u64 some, u64 all, u32 epoch) { return some >> 48 == epoch || all >> 16 == epoch; }

DEVICE bool covers(Two clock, u64 s) {
    return moment(s) < clock.second || (clock.first >> lane_of(s) & 1 && moment(s) < clock.first >> 32);
}

APART bool knows(u64 me, u64 old) {
    if (tick_of(old) >= LAST_TICK) {
        note(TICKS_SPENT);
        return true;
    }
    return covers(load_two(&known_to_thread(thread_of(me))[warp_of(old)]), old) ||
           covers(load_two(&known_to_warp(warp_of(me))[warp_of(old)]), old);
}

// What is known of all lanes says everything of those up to an earlier moment; later epochs of earlier ones.
APART void join(Clock* to, u64 some, u32 all) {
    if (*(volatile u32*)&to->all < all) atomicMax((u32*)&to->all, all);
    all = *(volatile u32*)&to->all;
    if (some >> 32 <= all) return;
    for (;;) {
        u64 old = load(&to->some), both = some;
        if (old >> 48 > some >> 48) return;
        if (old >> 48 == some >> 48 && old >> 32 > all)
            both = (old >> 32 > some >> 32 ? old : some) >> 32 << 32 | (u32)(old | some);
        if (both == old || atomicCAS(&to->some, old, both) == old) return;
    }
}

APART void join_all(Clock* to, const Clock* from, u32 epoch) {
    ROLLED for (u32 w = 0; w < warps(); ++w) {
        Two news = load_two(from + w);
        if (is_news(news.first, news.second, epoch)) join(to + w, news.first, (u32)news.second);
    }
}
#else
enum { CLOCKS = 0 };
DEVICE bool knows(u64 me, u64 old) { return false; }
#endif

// Whether `old`, a stamp of this block, is ordered before what the thread of `me` does now.
APART bool ordered(u64 old, u64 me) {
    if (epoch_of(old) != epoch_of(me) || thread_of(old) == thread_of(me)) return true;
    if (warp_of(old) == warp_of(me)) {
        if (C.lock_step) return site_of(old) != site_of(me);
        if (tick_of(me) >= LAST_TICK) {
            note(TICKS_SPENT);
            return true;
        }
        if (!CLOCKS) {
            if (u32* lanes = C.knowledge ? lane_knowledge(warp_of(me)) : nullptr)
                return *(volatile u32*)&lanes[lane_of(me) * 32 + lane_of(old)] > moment(old);
            return tick_of(old) < tick_of(me);
        }
    }
    if (CLOCKS) return knows(me, old);
    if (!C.knowledge) return false;
    return *(volatile u32*)&warp_knowledge()[warp_of(me) * 32 + warp_of(old)] > moment(old);
}
