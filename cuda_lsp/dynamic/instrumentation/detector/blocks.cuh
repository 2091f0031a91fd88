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
    if (add) note(OBJECTS_LOST);
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

DEVICE Dealings* dealings(u32 ordinal, u32 thread) { return C.dealings + ((u64)ordinal * C.threads + thread); }
DEVICE Dealings* my_dealings(u32 thread) { return dealings(block_ordinal(), thread); }

SLOW void clsp_fenced() { my_dealings(thread_number())->fenced = 1; }

// ------------------------------------------------------------------------------- releases, lessons
//
// A block numbers its releases: epoch + 1, and how many there were in it. Who knows a release knows all that the
// block did in earlier epochs; of the same, what each thread did before its own release with that number or a
// smaller one, and each warp before it met. A lesson is when a thread learned of such a number: epoch + 1, thread,
// tick. Its block knows it from the next barrier on, until then those that something orders behind that thread.
// What is forgotten, because there was more in one epoch, is taken to be known.

enum { IN_EPOCH = 17, LATER = (1 << IN_EPOCH) - 1, NO_SITE = 16383 << 2 };

DEVICE u32 next_number(u64* last, u32 epoch) {
    u32 base = ((epoch < 16383 ? epoch : 16383) + 1) << IN_EPOCH;
    if (*(volatile u32*)last < base) atomicMax((u32*)last, base);
    u32 number = atomicAdd((u32*)last, 1u) + 1;
    return number < (base | LATER) ? number : base | LATER;
}

// Epoch + 1 and tick; the last tick stands for all later ones. Of a stamp as of an access to shared memory.
DEVICE u32 met_by(u32 moment) {
    u32 epoch = moment >> 16, tick = moment & 0xffff;
    return ((epoch < 16383 ? epoch : 16383) + 1) << 6 | (tick < 63 ? tick : 63);
}
DEVICE u32 met_at(u64 s) { return (g_epoch(s) + 1) << 6 | g_tick(s); }

// Which of four releases comes first among those of what was done at `met`: its number; 0: so old that it is
// forgotten; ~0: there is none.
APART u32 first_release(const u64* four, u32 met) {
    u32 first = ~0u, later = 0;
    ROLLED for (u32 i = 0; i < 4; i += 2) {
        Two two = load_two(four + i);
        if (two.first >> 32 >= met) first = min(first, (u32)two.first), later += 1;
        if (two.second >> 32 >= met) first = min(first, (u32)two.second), later += 1;
    }
    return later == 4 ? 0 : first;
}

// What the lanes of the warp did up to here may reach other blocks: of all that its thread knows of them.
APART u32 released_as(u64 me) {
    Dealings *mine = my_dealings(thread_of(me)), *first = my_dealings(thread_of(me) & ~31u);
    u32 self = block_ordinal(), number = next_number(&known_of(self, self)->before, epoch_of(me));
    u32 met = met_by(moment(me)), count = mine->releases;
    if (mine->released[(count - 1) & 3] >> 32 != met) {  // else that one was before this
        *(volatile u64*)&mine->released[count & 3] = (u64)met << 32 | number;
        mine->releases = count + 1;
    }
    u32 together = (u32)load(&known_to_warp(warp_of(me))[warp_of(me)].all);
    u64 some = load(&known_to_thread(thread_of(me))[warp_of(me)].some);
    if ((u32)some & ~(1u << lane_of(me)) && some >> 32 > together) together = some >> 32;
    met = met_by(together) - (met_by(together) & 63 && (met_by(together) & 63) < 63);  // before they met
    if (together >> 16 == epoch_of(me) && together & 0xffff && first_release(first->warp_released, met) == ~0u)
        *(volatile u64*)&first->warp_released[atomicAdd(&first->warp_releases, 1u) & 3] = (u64)met << 32 | number;
    __threadfence();
    return number;
}

// The same within the block; nothing is new where the access has just told other blocks.
APART void released(u64 me) {
    Dealings* mine = my_dealings(thread_of(me));
    if (mine->released[(mine->releases - 1) & 3] >> 32 != met_by(moment(me))) released_as(me);
}

APART bool is_told(u64 old, u32 number) {
    u32 epoch = number >> IN_EPOCH, block = ordinal_of(g_block(old));
    if (g_epoch(old) + 1 != epoch) return g_epoch(old) + 1 < epoch;
    return first_release(dealings(block, g_thread(old))->released, met_at(old)) <= number ||
           first_release(dealings(block, g_thread(old) & ~31u)->warp_released, met_at(old)) <= number;
}

// The thread has learned something, in this epoch its warp as well.
APART void has_acquired(u64 me) {
    u32 met = met_by(moment(me));
    *(volatile u32*)&my_dealings(thread_of(me))->acquired = met >> 6;
    volatile u32* first = &my_dealings(thread_of(me) & ~31u)->warp_acquired;
    if (*first >> 6 != met >> 6) *first = met;
}

// A lesson that several threads had, or one had twice, in one epoch: whoever learned anything in it knows it.
DEVICE u32 of_many(u32 lesson) { return lesson & ~LATER; }
DEVICE u32 lesson_of(u64 me) {
    u32 met = met_by(moment(me));
    return met >> 6 << IN_EPOCH | 1 << 16 | thread_of(me) << 6 | (met & 63);
}
DEVICE u32 pupil(u32 lesson) { return lesson >> 6 & 1023; }

APART bool has_learned(u64 me, u32 lesson) {
    if (g_epoch(me) + 1 > lesson >> IN_EPOCH) return true;
    if (lesson != of_many(lesson)) {
        u64 tick = lesson & 63, thread = pupil(lesson), then = (u64)g_epoch(me) << 32 | thread << 22 | tick << 16 | NO_SITE;
        return tick == 63 || ordered(in_block(then), in_block(me));
    }
    u32 self = block_ordinal(), epoch = g_epoch(me) + 1;
    if (*(volatile u32*)&dealings(self, g_thread(me))->acquired >= epoch) return true;
    u32 first = *(volatile u32*)&dealings(self, g_thread(me) & ~31u)->warp_acquired, met = met_at(me);
    return first >> 6 == epoch && (first < met || (first == met && (met & 63) == 63));
}

// Whether `old`, of another block, happened before a release that this thread, or its block before its last
// barrier, has acquired.
APART bool acquired(u64 old, u64 me) {
    if (!C.objects) return false;
    Two known = load_two(known_of(block_ordinal(), ordinal_of(g_block(old))));
    return (is_told(old, known.first >> 32) && has_learned(me, (u32)known.first)) ||
           (is_told(old, known.second >> 32) && has_learned(me, (u32)known.second));
}

// ------------------------------------------------------------------------------------------ objects

DEVICE u32 begin(Span* span) { return C.checked - *(volatile u32*)&span->down; }
DEVICE u32 end(Span* span) { return *(volatile u32*)&span->until; }
DEVICE void widen(Span* span, u32 first, u32 until) {
    if (first < begin(span)) atomicMax(&span->down, C.checked - first);
    if (until > end(span)) atomicMax(&span->until, until);
}

// What the block knows of others may be learned at the object. Nothing to do if it was passed on there before, and
// nothing was learned since.
APART void pass_on(u32 object) {
    u32 self = block_ordinal();
    u64 learned = load(&known_of(self, self)->newest), *passed = &told_at(object, self)->learned;
    if (load(passed) == learned) return;
    Span* span = &my_dealings(0)->known;
    u32 first = begin(span), until = end(span);
    widen(&C.objects[object].told, first, until);
    ROLLED for (u32 other = first; other < until; ++other) {
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
    if (!(releases || my_dealings(thread_number())->fenced) || !in_global(address)) return NOT_HELD;
    int object = object_of(address, true);
    if (object < 0) return NOT_HELD;
    pass_on(object);
    u32 version = *version_of(object);
    if (version & 1 || atomicCAS((u32*)version_of(object), version, version + 1) != version) return BUSY;
    __threadfence();
    return version + 1;
}

// Before it is tried again. Who has had to wait sleeps, so that those who hold the object are not kept from memory.
SLOW void clsp_rest() {
#if __CUDA_ARCH__ >= 700
    __nanosleep(300);
#endif
}

SLOW void clsp_tell(u64 address, u32 low, u32 high, u32 held) {
    if (held == NOT_HELD) return;
    u32 number = released_as(stamp(low, high, 0));
    u32 object = object_of(address, false), self = block_ordinal();
    Told* told = told_at(object, self);
    widen(&C.objects[object].told, self, self + 1);
    *(volatile u64*)&told->before = load(&told->newest);
    __threadfence();
    *(volatile u64*)&told->newest = (u64)held << 32 | number;
    __threadfence();
}

// After the atomic or store. Gives `held` back: nobody is to know that the loop around them ends here.
SLOW u32 clsp_let_go(u64 address, u32 held) {
    __threadfence();
    if (held != NOT_HELD) *version_of(object_of(address, false)) = held + 1;
    return held;
}

// Older knowledge is kept before newer is told: other threads may ask meanwhile.
APART void learned(Known* known, u64 theirs, u32 lesson) {
    for (;;) {
        u64 old = load(&known->newest), now = theirs << 32 | lesson;
        u32 then = (u32)old;
        bool again = then >> IN_EPOCH == lesson >> IN_EPOCH;
        if (old >> 32 >= theirs) {
            if (!again || then == of_many(then) || pupil(then) == pupil(lesson)) return;
            now = old >> 32 << 32 | of_many(lesson);
        } else if (again)
            now = theirs << 32 | of_many(lesson);
        else if (old)
            *(volatile u64*)&known->before = old;
        __threadfence();
        if (atomicCAS(&known->newest, old, now) == old) return;
    }
}

// After an atomic or strong load. `held`: the version at which it was made; NOT_HELD: the newest.
SLOW void clsp_learn(u64 address, u32 low, u32 high, u32 held) {
    int object = in_global(address) ? object_of(address, false) : -1;
    if (object < 0) return;
    u64 me = stamp(low, high, 0);
    volatile Dealings* mine = my_dealings(thread_of(me));
    __threadfence();  // the value was there before what is looked at now
    u32 version = held == NOT_HELD ? *version_of(object) : held + 1;
    if (!(version & 1) && mine->learned_at == object + 1 && mine->learned == version) return;
    __threadfence();
    u32 self = block_ordinal(), lesson = lesson_of(me);
    Span* span = &C.objects[object].told;
    u32 first = begin(span), until = end(span);
    widen(&my_dealings(0)->known, first, until);
    ROLLED for (u32 other = first; other < until; ++other) {
        Told* told = told_at(object, other);
        Two at = load_two(told);
        u32 theirs = (u32)(at.first >> 32 <= held ? at.first : at.second);
        u64 passed = load(&told->passed);
        if (theirs < passed) theirs = passed;
        if (theirs && other != self) learned(known_of(self, other), theirs, lesson);
    }
    __threadfence();
    atomicAdd(&known_of(self, self)->newest, 1ull);  // there is more to pass on
    has_acquired(me);
    mine->learned_at = object + 1;
    mine->learned = version;
    __threadfence();
}
