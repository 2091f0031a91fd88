// What the detector says: races, words that race, accesses outside all memory.

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
    note(RACES_LOST);
}

struct Party {
    u32 site, thread, block;
};

// Whether a racing access (its stamp) is left out: races without end must not cost much more than none. Which
// accesses are looked at changes from thread to thread and from round to round.
DEVICE bool left_out(u64 me) {
    if (mixed((u32)me, (u32)(me >> 32)) % ONE_IN == 0) return false;
    if (*(volatile u32*)&C.reports[block_ordinal()] < PATIENCE) return false;
    note(RACES_SKIPPED);
    return true;
}

APART void report(Party a, Party b, u64 address, u32 space, bool different) {
    u32* reports = &C.reports[block_ordinal()];
    if (*(volatile u32*)reports < PATIENCE) atomicAdd(reports, 1u);
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
        if (different && !race->different) race->different = 1;
        u32 pair = mixed(a.thread << 12 ^ b.thread, a.block * 31 ^ b.block) & 1023;
        u32 word = mixed((u32)(address >> 2), space ? 0 : a.block) & 1023;
        if (!(race->pairs[pair >> 5] >> (pair & 31) & 1)) atomicOr(&race->pairs[pair >> 5], 1u << (pair & 31));
        if (!(race->words[word >> 5] >> (word & 31) & 1)) atomicOr(&race->words[word >> 5], 1u << (word & 31));
        return;
    }
    note(RACES_LOST);
}

APART void fault(u32 site, u64 address, u32 space) {
    Fault* seen = &C.faults[site];
    if (atomicAdd(&seen->count, 1u)) return;
    seen->address = address;
    seen->thread = thread_number();
    seen->block = block_number();
    seen->space = space;
}
