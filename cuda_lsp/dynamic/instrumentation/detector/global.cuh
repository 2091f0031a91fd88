// Cells of global memory, and its bounds.

// A stamp here: block 18 | epoch 14 | thread 10 | tick 6 | site 14 | atomic 1 | of block scope 1.
DEVICE u64 global_stamp(u32 low, u32 high, u32 site, u32 kind) {
    u64 s = stamp(low, high, 0);
    u32 epoch = epoch_of(s) < 16383 ? epoch_of(s) : 16383, tick = tick_of(s) < 63 ? tick_of(s) : 63;
    if (epoch == 16383) note(EPOCHS_SPENT);
    return (u64)(block_number() & 0x3ffff) << 46 | (u64)epoch << 32 | (u64)thread_of(s) << 22 | (u64)tick << 16 |
           (u64)site << 2 | (kind >= ATOMIC) << 1 | (kind == BLOCK_ATOMIC);
}
DEVICE u32 g_block(u64 s) { return (u32)(s >> 46); }
DEVICE u32 g_epoch(u64 s) { return (u32)(s >> 32) & 16383; }
DEVICE u32 g_thread(u64 s) { return (u32)(s >> 22) & 1023; }
DEVICE u32 g_tick(u64 s) { return (u32)(s >> 16) & 63; }
DEVICE u32 g_site(u64 s) { return (u32)(s >> 2) & 16383; }
DEVICE u32 ordinal_of(u32 block) { return C.ordinal ? C.ordinal[block] : block; }


#ifdef CLSP_CLOCKS
APART bool acquired(u64 old, u64 me);
#else
DEVICE bool acquired(u64 old, u64 me) { return false; }
#endif

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
    if (CLOCKS || C.knowledge) {
        if (CLOCKS && g_tick(old) == 63) note(MOMENTS_SPENT);
        if (g_tick(old) == 63 || (!CLOCKS && g_tick(me) == 63)) return true;
        return ordered(in_block(old), in_block(me));
    }
    return (g_thread(old) ^ g_thread(me)) < 32 && (g_tick(old) != g_tick(me) || g_tick(me) == 63);
}

DEVICE Party g_party(u64 s) { return Party{g_site(s), g_thread(s), g_block(s)}; }

APART void g_check_slowly(u64 old, u64 me, u64 address) {
    if (left_out(me) || g_ordered(old, me)) return;
    report(g_party(old), g_party(me), address, 1, true);
    ROLLED for (u32 i = 0; i < 4; ++i) {
        Two kept = load_two(older_of(address) + i);
        bool same = kept.first == address && !((kept.second ^ old) & G_AGENT) && g_site(kept.second) != g_site(old);
        if (same && !(CLOCKS && g_ordered(kept.second, me))) report(g_party(kept.second), g_party(me), address, 1, true);
    }
}

DEVICE void g_check(u64 old, u64 me, u64 address) {
    if (!old || (old & me & 2 && (g_block(old) == g_block(me) || !((old | me) & 1)))) return;
    if (g_block(old) != g_block(me) ? C.cross_block : (g_epoch(old) == g_epoch(me) && g_thread(old) != g_thread(me)))
        g_check_slowly(old, me, address);
}

// Whether `old` says no more than `me` about readers that a later writer could meet.
DEVICE bool g_outdated(u64 old, u64 me) {
    if (CLOCKS) return g_ordered(old, me);
    return !old || (g_block(old) == g_block(me) &&
                    (g_epoch(old) != g_epoch(me) || ((g_thread(old) ^ g_thread(me)) < 32 && g_tick(old) != g_tick(me))));
}

// Whether a later writer meets enough readers of this cell without `me`.
DEVICE bool g_known(Two readers, u64 me) {
    if (CLOCKS && (readers.first == me || readers.second == me)) return true;
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

// Where nothing but plain stores happens, a cell is its writer.
DEVICE void g_store(u64* writer, u64 me, u64 at) {
    u64 old = atomicExch(writer, me);
    if (!((old ^ me) & G_AGENT) && g_site(old) != g_site(me)) keep_older(at, old, G_AGENT, G_AGENT_SITE);
    g_check(old, me, at);
}

APART void global_stores(u64 address, u64* writers, u32 count, u64 me, u32 kind) {
    ROLLED for (u32 i = 0; kind == WRITE && i < count; ++i)  // what else comes here has missed its own memory
        g_store(writers + i, me, address + ((u64)i << C.global_shift));
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
        u64 index = (address - range->start) >> C.global_shift, me = global_stamp(low, high, info & 65535, kind);
        u32 count = bytes >> C.global_shift ? bytes >> C.global_shift : 1;
        if (range->cells & WRITERS)
            global_stores(address, (u64*)(range->cells - WRITERS) + index, count, me, kind);
        else
            global_access(address, range->cells + index * sizeof(GlobalCell), count, me, kind);
    }
    return 1;
}
