// Atomics of kernels that have them in several widths: only those of one width are atomic to each other.
//
// Stamps of the widest stand where a cell keeps atomics, those of the others where it keeps writers, so that a wide
// one meets the last narrow one and the other way round; loads stand where readers do.

// Of an atomic site: its bytes and these flags; of any other site 0.
enum { WIDTH = 31, NARROW = 32, LOADS = 64, OF_BLOCK = 128 };

DEVICE bool atomic_together(u32 site, u32 other, bool same_block) {
    u32 a = C.widths[site], b = C.widths[other];
    return a && b && (a & b & LOADS || ((a & WIDTH) == (b & WIDTH) && (same_block || !((a | b) & OF_BLOCK))));
}

// ------------------------------------------------------------------------------------ shared memory

APART void check_width(u64 old, u64 me, u32 address) {
    if (!atomic_together(site_of(old), site_of(me), true)) check(old, me, address, true);
}

APART void atomic_of_width(u32 address, Cell c, u64 me, u32 kind) {
    u64 old = load(kind & NARROW ? c.writer() : c.atomic());
    if (kind & LOADS) {
        if (CLOCKS)
            publish_by_clock(c, me);
        else
            publish_reader(c, me);
    } else if (kind & NARROW) {
        u64 mine = me | (thread_number() & 1023);  // what it stores is not known
        old = atomicExch(c.writer(), mine);
        if (!((old ^ me) & AGENT) && site_of(old) != site_of(me) && !(old & COPY))
            keep_older(shared_place(address), old, AGENT, AGENT_SITE);
        check_width(old, me, address);
    } else if (epoch_of(old) != epoch_of(me) || (CLOCKS && ordered(old, me)))
        atomicCAS(c.atomic(), old, me);
    else if (!same_moment(old, me) && !(old & MANY))
        atomicCAS(c.atomic(), old, me | MANY);
    __threadfence_block();
    if (kind & (NARROW | LOADS)) check_width(load(c.atomic()), me, address);
    if (!(kind & NARROW) || kind & LOADS) check_width(load(c.writer()), me, address);
    if (kind & LOADS) return;
    check_width(load(c.reader()), me, address);
    check_width(load(c.other()), me, address);
}

SLOW void clsp_atomic_of_width(u32 address, u64 cell, u32 low, u32 high, u32 site, u32 cells) {
    ROLLED for (u32 i = 0; i < cells; ++i)
        atomic_of_width(address + (i << C.granule_shift), Cell{cell + i * sizeof(u64)}, stamp(low, high, site), C.widths[site]);
}

// ------------------------------------------------------------------------------------ global memory

APART void g_check_width(u64 old, u64 me, u64 at) {
    if (!old || atomic_together(g_site(old), g_site(me), g_block(old) == g_block(me))) return;
    g_check(old, me, at);
}

APART void g_atomic_of_width(GlobalCell* cell, u64 me, u64 at, u32 kind) {
    if (kind & LOADS) {
        Two readers = load_two(&cell->reader);
        if (!g_known(readers, me)) g_publish_reader(cell, me);
        Two writers = load_two(&cell->writer);
        g_check_width(writers.first, me, at);
        g_check_width(writers.second, me, at);
        return;
    }
    u64 old = atomicExch(kind & NARROW ? &cell->writer : &cell->atomic, me);
    Two readers = load_two(&cell->reader);
    u64 other = load(kind & NARROW ? &cell->atomic : &cell->writer);
    if (kind & NARROW && !((old ^ me) & G_AGENT) && g_site(old) != g_site(me)) keep_older(at, old, G_AGENT, G_AGENT_SITE);
    g_check_width(old, me, at);
    g_check_width(other, me, at);
    g_check_width(readers.first, me, at);
    g_check_width(readers.second, me, at);
}

// As clsp_global. The stamps are those of writes: what is atomic to what, the sites say.
SLOW u32 clsp_global_of_width(u64 address, u32 low, u32 high, u32 info) {
    u32 bytes = info >> 16 & 255, site = info & 65535;
    const Range* range = range_of(address, bytes);
    if (!range || !range->cells || range->cells & WRITERS) return clsp_bounds(address, info);
    GlobalCell* cells = (GlobalCell*)range->cells + ((address - range->start) >> C.global_shift);
    u32 count = bytes >> C.global_shift ? bytes >> C.global_shift : 1;
    u64 me = global_stamp(low, high, site, WRITE);
    ROLLED for (u32 i = 0; i < count; ++i)
        g_atomic_of_width(cells + i, me, address + ((u64)i << C.global_shift), C.widths[site]);
    return 1;
}
