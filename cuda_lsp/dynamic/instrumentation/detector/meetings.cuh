// What instructions that order threads do to their clocks: barriers, warps, mbarriers, copies.

// ---------------------------------------------------------------------------------- synchronisation

// A full barrier was passed for the 65,536th time: old stamps would look new.
SLOW void clsp_forget(u64 cells) {
    for (u32 i = thread_number(); i < C.plane / 2; i += C.threads) ((u64*)cells)[i] = 0;  // all four planes
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
