// Locks, flags, last blocks, barriers of grids: blocks that hand over to others through one address, an object.
//
// A fence and then an atomic (or a release) tells, at the atomic's address, what the thread has done and what its
// block had done at its last barrier; an atomic or strong load at that address learns it, for its thread at once
// and for its block from the next barrier on.
//
// An atomic must not learn of one that comes after it. So whoever tells holds the object from before until its
// atomic is made, and the versions of the object are the order in which atomics told there: an atomic learns what
// has an earlier version than its own. A load, or an atomic that tells nothing, learns all that was told by then:
// a little early. What a block knows of others it passes on when it tells, all of it, and a little early, too.
// What is early lets a race through, and never makes one.

DEVICE int object_of(u64 address, bool add) {
    for (u32 i = 0; i < 16; ++i) {
        u32 at = (mixed((u32)(address >> 2), (u32)(address >> 32)) + i) % OBJECTS;
        u64 there = load(&C.objects[at].address);
        if (!there && add) there = atomicCAS(&C.objects[at].address, 0ull, address) ?: address;
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

DEVICE Told* told_at(u32 object, u32 block) { return C.told + ((u64)object * C.checked + block); }
DEVICE Known* known_of(u32 block, u32 other) { return C.known + ((u64)block * C.checked + other); }
DEVICE volatile u32* version_of(u32 object) { return &C.objects[object].version; }

SLOW void clsp_fenced() { my_fences(thread_number())[HAS_FENCED] = 1; }

// What the block knows of others may be learned at the object. Nothing to do if it was passed on there before, and
// nothing was learned since.
APART void pass_on(u32 object) {
    u32 self = block_ordinal();
    u64 learned = load(&known_of(self, self)->newest), *passed = &told_at(object, self)->learned;
    if (load(passed) == learned) return;
    ROLLED for (u32 other = 0; other < C.checked; ++other) {
        u64 theirs = load(&known_of(self, other)->newest) >> 32, *last = &told_at(object, other)->passed;
        if (other != self && theirs > load(last)) atomicMax(last, theirs);
    }
    __threadfence();
    *(volatile u64*)passed = learned;
}

enum : u32 { BUSY = 0, NOT_HELD = ~0u };

// Before an atomic or strong store: the object's version if it is now held, BUSY if others hold it, NOT_HELD if
// the access tells nothing. `releases`: without a fence, too.
SLOW u32 clsp_hold(u64 address, u32 releases) {
    if (!(releases || my_fences(thread_number())[HAS_FENCED]) || !in_global(address)) return NOT_HELD;
    int object = object_of(address, true);
    if (object < 0) return NOT_HELD;
    pass_on(object);
    u32 version = *version_of(object);
    if (version & 1 || atomicCAS((u32*)version_of(object), version, version + 1) != version) {
#if __CUDA_ARCH__ >= 700
        __nanosleep(20);
#endif
        return BUSY;
    }
    __threadfence();
    return version + 1;
}

SLOW void clsp_tell(u64 address, u32 low, u32 high, u32 held) {
    if (held == NOT_HELD) return;
    released(stamp(low, high, 0));
    Told* told = told_at(object_of(address, false), block_ordinal());
    u64 last = load(&told->newest), now = (u64)held << 32 | (g_epoch(global_stamp(low, high, 0, READ)) + 1);
    if ((u32)last < (u32)now) {
        *(volatile u64*)&told->before = last;
        __threadfence();
        *(volatile u64*)&told->newest = now;
    }
    __threadfence();
}

// After the atomic or store. Gives `held` back: nobody is to know that the loop around them ends here.
SLOW u32 clsp_let_go(u64 address, u32 held) {
    __threadfence();
    if (held != NOT_HELD) *version_of(object_of(address, false)) = held + 1;
    return held;
}

// Older knowledge is kept before newer is told: other threads may ask meanwhile.
APART void learned(Known* known, u64 theirs, u32 now) {
    for (;;) {
        u64 old = load(&known->newest);
        if (old >> 32 >= theirs) return;
        if (old && (u32)old != now) *(volatile u64*)&known->before = old;
        __threadfence();
        if (atomicCAS(&known->newest, old, theirs << 32 | now) == old) return;
    }
}

// After an atomic or strong load. `held`: the version at which it was made; NOT_HELD: the newest.
SLOW void clsp_learn(u64 address, u32 low, u32 high, u32 held) {
    int object = in_global(address) ? object_of(address, false) : -1;
    if (object < 0) return;
    u64 me = global_stamp(low, high, 0, READ);
    volatile u32* mine = my_fences(g_thread(me));
    u32 version = held == NOT_HELD ? *version_of(object) : held + 1;
    if (!(version & 1) && mine[LEARNED_AT] == object + 1 && mine[LEARNED] == version) return;
    __threadfence();
    u32 self = block_ordinal(), now = g_epoch(me) + 1;
    ROLLED for (u32 other = 0; other < C.checked; ++other) {
        Told* told = told_at(object, other);
        Two at = load_two(told);
        u32 theirs = (u32)(at.first >> 32 <= held ? at.first : at.second);
        u64 passed = load(&told->passed);
        if (theirs < passed) theirs = passed;
        Known* known = known_of(self, other);
        if (other == self || load(&known->newest) >> 32 >= theirs) continue;
        learned(known, theirs, now);
    }
    __threadfence();
    atomicAdd(&known_of(self, self)->newest, 1ull);
    has_acquired(stamp(low, high, 0));
    mine[LEARNED_AT] = object + 1;
    mine[LEARNED] = version;
    __threadfence();
}
