// Accesses of a whole warp at once: rows of matrices, tiles.
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
        Cell cell = {shadow.cells + (first + (at >> C.granule_shift)) * sizeof(u64)};
        if (kind == WRITE) {
            u64 old = atomicExch(cell.writer(), me);
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
