// Locks, flags and mbarriers: threads of a block that hand over to others through one address.

// --------------------------------------------------------------------------- releases, acquisitions

DEVICE volatile u32* my_fences(u32 thread) { return fenced_by(block_ordinal(), thread); }

// `s` is a stamp as of an access to shared memory.
DEVICE u32 met_by(u32 moment) {
    u32 epoch = moment >> 16, tick = moment & 0xffff;
    return ((epoch < 16383 ? epoch : 16383) + 1) << 6 | (tick < 63 ? tick : 63);
}

// What the lanes of the warp did up to here may reach other blocks: of all that its thread knows of them.
APART void released(u64 me) {
    my_fences(thread_of(me))[RELEASED] = met_by(moment(me));
    u32 together = (u32)load(&known_to_warp(warp_of(me))[warp_of(me)].all);
    u64 some = load(&known_to_thread(thread_of(me))[warp_of(me)].some);
    if ((u32)some & ~(1u << lane_of(me)) && some >> 32 > together) together = some >> 32;
    if (together >> 16 == epoch_of(me)) atomicMax((u32*)&my_fences(thread_of(me) & ~31u)[WARP_RELEASED], met_by(together));
}

APART void has_acquired(u64 me) {
    u32 met = met_by(moment(me));
    my_fences(thread_of(me))[ACQUIRED] = met >> 6;
    volatile u32* first = &my_fences(thread_of(me) & ~31u)[WARP_ACQUIRED];
    if (*first >> 6 != met >> 6) *first = met;
}

// ------------------------------------------------------------------------ locks and flags in a block
//
// A fence and then an atomic (or a release) tells, at the atomic's address, what its thread knows; an atomic or
// strong load at that address learns it. Told a little early: that may hide a race, and never makes one.

// The address and version of a place, with its clocks behind it; null: nobody has handed over there. Where many
// addresses have come together they share one place.
APART Clock* place_of(u64 address, bool add) {
    u32 home = mixed((u32)(address >> 2), (u32)(address >> 32));
    ROLLED for (u32 i = 0; i < 8; ++i) {
        Clock* at = place((home + i) % PLACES);
        u64 there = load(&at->some);
        if (!there && add) there = atomicCAS(&at->some, 0ull, address) ?: address;
        if (there == address) return at;
        if (!there) return nullptr;
    }
    return place(home % PLACES);
}

APART void tell(Clock* at, u64 me) {
    u32 warp = warp_of(me), epoch = epoch_of(me);
    const Thread* self = &threads()[thread_of(me)];
    Clock* ours = known_to_warp(warp);
    if (self->learned == epoch) join_all(at + 1, known_to_thread(thread_of(me)), epoch);
    if (*(const volatile u32*)&threads()[warp * 32].together == epoch) join_all(at + 1, ours, epoch);
    join(at + 1 + warp, (u64)(moment(me) + 1) << 32 | 1u << lane_of(me), (u32)load(&ours[warp].all));
    if (C.objects) released(me);
    __threadfence_block();
    atomicAdd((u32*)&at->all, 1u);
    __threadfence_block();
}

APART void learn(Clock* at, u64 me) {
    Thread* self = &threads()[thread_of(me)];
    u32 version = *(volatile u32*)&at->all, number = (u32)(at - place(0));
    if (self->place == number && self->version == version) return;
    __threadfence_block();
    join_all(known_to_thread(thread_of(me)), at + 1, epoch_of(me));
    self->place = number;
    self->version = version;
    self->learned = epoch_of(me);
    *(volatile u32*)&self->news = 1;
    if (C.objects) has_acquired(me);
}

DEVICE u32 tick_after(u64 me) { return tick_of(me) < 4095 ? tick_of(me) + 1 : 4095; }

SLOW void clsp_thread_fenced() { threads()[thread_number()].fenced = 1; }

// Before an atomic or strong store: the thread's tick from now on. `releases`: without a fence, too.
SLOW u32 clsp_hand_over(u64 address, u32 low, u32 high, u32 releases) {
    u64 me = stamp(low, high, 0);
    if (!(releases || threads()[thread_of(me)].fenced)) return tick_of(me);
    tell(place_of(address, true), me);
    return tick_after(me);
}

// After an atomic or strong load.
SLOW void clsp_take_over(u64 address, u32 low, u32 high) {
    __threadfence_block();
    if (Clock* at = place_of(address, false)) learn(at, stamp(low, high, 0));
}

// The same at a barrier that not all threads need to pass.
SLOW u32 clsp_thread_arrives(u32 low, u32 high, u32 id) {
    u64 me = stamp(low, high, 0);
    tell(place(PLACES + (id & 15)), me);
    return tick_after(me);
}

SLOW void clsp_thread_departs(u32 low, u32 high, u32 id) {
    __threadfence_block();
    learn(place(PLACES + (id & 15)), stamp(low, high, 0));
}

// Lanes of `mask` have met: each knows what any of them knew. Their tick from now on.
SLOW u32 clsp_lanes_met(u32 low, u32 high, u32 mask) {
    u64 me = stamp(low, high, 0);
    u32 lane = lane_of(me), warp = warp_of(me), epoch = epoch_of(me), left = C.threads - warp * 32;
    u32 whole = left >= 32 ? ~0u : (1u << left) - 1, live = mask & whole;
    if (!(live >> lane & 1)) return tick_of(me);
    Clock *mine = known_to_thread(thread_of(me)), *ours = known_to_warp(warp);
    Thread *self = &threads()[thread_of(me)], *first = self - lane;
    bool news = *(volatile u32*)&self->news;
    if (live == whole && news) {
        join_all(ours, mine, epoch);
        *(volatile u32*)&first->together = epoch;
        *(volatile u32*)&self->news = 0;
    }
    __threadfence_block();
    __syncwarp(live);
    u32 tick = largest(live, tick_of(me) + 1, 4096), latest = epoch << 16 | tick;
    if (live == whole) {
        u32 here = __ballot_sync(live, true);
        if (lane == __ffs(here) - 1) join(ours + warp, 0, latest);
    } else {
        ROLLED for (u32 tellers = __ballot_sync(live, news) & ~(1u << lane); tellers; tellers &= tellers - 1)
            join_all(mine, known_to_thread(warp * 32 + __ffs(tellers) - 1), epoch);
        join(mine + warp, (u64)latest << 32 | live, 0);
        self->learned = epoch;
        *(volatile u32*)&self->news = 1;
    }
    __threadfence_block();
    __syncwarp(live);
    return tick < 4095 ? tick : 4095;
}
