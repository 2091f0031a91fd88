// Cells of shared memory.

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

// --------------------------------------------------------------------------------- accesses

DEVICE Party party(u64 s) { return Party{site_of(s), thread_of(s), block_number()}; }

APART void check_slowly(u64 old, u64 me, u32 address, bool different) {
    if (left_out(me) || ordered(old, me)) return;
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
    u64 moment = me;  // of which nobody knows what the thread did
    if (CLOCKS) moment = (me & 0xffffull << 48) | (LAST_TICK - 1ull) << 31;
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

// What a reader's stamp ends with: so many of its bits need not be those of another reader who is then known,
// because a later writer meets enough without it. The second reader is another lane of the same moment, or one of
// another warp.
enum { ALONE = 26, LANES = 31, WARPS = 48, KNOWN_BY = 63 };

DEVICE void say_known(Cell cell, u64 first, u64 how) {
    if ((first & KNOWN_BY) != how) atomicCAS(cell.reader(), first, (first & ~(u64)KNOWN_BY) | how);
}

// Make sure that a later writer meets a reader other than itself. Lock-free; a lost race tries again.
DEVICE void publish_reader(Cell cell, u64 me) {
    ROLLED for (int attempt = 0; attempt < 4; ++attempt) {
        u64 first = load(cell.reader());
        bool current = epoch_of(first) == epoch_of(me);
        if (!current || (warp_of(first) == warp_of(me) && tick_of(first) < tick_of(me))) {
            if (atomicCAS(cell.reader(), first, me | ALONE) == first) return;
            continue;
        }
        if (thread_of(first) == thread_of(me)) return;
        u64 second = load(cell.other());
        if (epoch_of(second) == epoch_of(me)) {
            if (warp_of(second) != warp_of(first)) return say_known(cell, first, WARPS);
            if (warp_of(first) == warp_of(me) && tick_of(second) >= tick_of(me) && lane_of(second) != lane_of(first)) {
                if (tick_of(second) >= tick_of(first)) say_known(cell, first, LANES);
                return;
            }
        }
        if (atomicCAS(cell.other(), second, me) != second) continue;
        if (warp_of(first) != warp_of(me))
            say_known(cell, first, WARPS);
        else if (tick_of(first) == tick_of(me))
            say_known(cell, first, LANES);
        return;
    }
}

// The same where locks and flags order threads: who is ordered before `me` need not be met.
APART void publish_by_clock(Cell cell, u64 me) {
    ROLLED for (int attempt = 0; attempt < 4; ++attempt) {
        Two now = {load(cell.reader()), load(cell.other())};
        if (same_moment(now.first, me) || same_moment(now.second, me)) return;
        bool first = ordered(now.first, me);
        if (!first && !ordered(now.second, me)) return;
        u64 expected = first ? now.first : now.second;
        if (atomicCAS(first ? cell.reader() : cell.other(), expected, me) == expected) return;
    }
}

DEVICE u64 stamp(u32 low, u32 high, u32 site) { return (u64)high << 32 | low | (u64)site << 12; }

DEVICE void check_writers(u32 address, Cell cell, u64 me) {
    u64 writer = load(cell.writer());
    check(writer, me, address, true);
    check(load(cell.atomic()), me, address, true);
    if (writer & COPY) {
        u64 done = settled(writer, me);
        if (epoch_of(done) < epoch_of(me)) atomicCAS(cell.writer(), writer, done);  // later readers need not ask
    }
}

DEVICE void read_cell(u32 address, Cell cell, u64 me) {
    if (CLOCKS)
        publish_by_clock(cell, me);
    else
        publish_reader(cell, me);
    __threadfence_block();
    check_writers(address, cell, me);
}

DEVICE void check_write(u32 address, Cell cell, u64 old, u64 me) {
    bool again = !((old ^ me) & AGENT) && site_of(old) != site_of(me);
    if (again && !(old & COPY)) keep_older(shared_place(address), old, AGENT, AGENT_SITE);
    check(old, me, address, value_of(old) != value_of(me));
    check(load(cell.reader()), me, address, true);
    check(load(cell.other()), me, address, true);
    check(load(cell.atomic()), me, address, true);
}

// A read of `cells` neighbouring granules. `cell` is generic; `low`, `high`: the thread's stamp.
SLOW void clsp_read(u32 address, u64 cell, u32 low, u32 high, u32 site, u32 cells) {
    ROLLED for (u32 i = 0; i < cells; ++i)
        read_cell(address + (i << C.granule_shift), Cell{cell + i * sizeof(u64)}, stamp(low, high, site));
}

// After the writer's stamp was exchanged for ours; `old` is what stood there.
SLOW void clsp_written(u32 address, u64 cell, u32 low, u32 high, u32 site, u64 old) {
    check_write(address, Cell{cell}, old, stamp(low, high, site));
}

SLOW void clsp_write(u32 address, u64 cell, u32 low, u32 high, u32 site, u32 cells) {
    u64 me = stamp(low, high, site), kept = me & COPY ? (me & ~(2047ull << 32)) | (copy_group() & 2047ull << 32) : me;
    ROLLED for (u32 i = 0; i < cells; ++i) {
        Cell c = Cell{cell + i * sizeof(u64)};
        u64 old = atomicExch(c.writer(), kept);
        __threadfence_block();
        check_write(address + (i << C.granule_shift), c, old, me);
    }
}

SLOW void clsp_atomic(u32 address, u64 cell, u32 low, u32 high, u32 site, u32 cells) {
    u64 me = stamp(low, high, site);
    ROLLED for (u32 i = 0; i < cells; ++i) {
        Cell c = Cell{cell + i * sizeof(u64)};
        u64 old = load(c.atomic());
        if (epoch_of(old) != epoch_of(me) || (CLOCKS && ordered(old, me)))
            atomicCAS(c.atomic(), old, me);
        else if (!same_moment(old, me) && !(old & MANY))
            atomicCAS(c.atomic(), old, me | MANY);
        __threadfence_block();
        u32 at = address + (i << C.granule_shift);
        check(load(c.writer()), me, at, true);
        check(load(c.reader()), me, at, true);
        check(load(c.other()), me, at, true);
    }
}

SLOW void clsp_shared_fault(u32 address, u32 site) { fault(site, address, 0); }
