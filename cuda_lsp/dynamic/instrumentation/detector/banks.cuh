// What an access to shared memory costs. Source of the rule: `docs/semantics.md`, "Bank conflicts".

// Wavefronts of this warp instruction, a load if lane pairs that agree merge parts.
APART void count_banks(u32 address, u32 site, u32 bytes, bool is_load) {
    // Lanes of another instruction may have come here together with ours.
    u32 active = __match_any_sync(__activemask(), site), lane = thread_number() & 31;
    u32 unit_bytes = bytes > 4 ? bytes : 4, unit = address / unit_bytes, units = 128 / unit_bytes;
    u32 lanes = 32 * 4 / unit_bytes;  // of one part
    if (is_load && bytes >= 8) {
        u32 same = __match_any_sync(active, unit);
        bool both = active >> (lane ^ 1) & 1;
        if (__all_sync(active, !both || (same >> (lane ^ 1) & 1))) lanes *= 2;
    }
    u32 part = lane / lanes, part_mask = (lanes == 32 ? ~0u : (1u << lanes) - 1) << (part * lanes);
    u32 same = __match_any_sync(active, unit) & part_mask;
    bool leads = (same & (0u - same)) == 1u << lane;
    u32 bank = unit % units;
    u32 peers = __match_any_sync(active, leads ? bank : 64 + lane);
    u32 ways = leads ? __popc(peers & part_mask) : 0;
    u32 wavefronts = 0, ideal = 0, worst = 0;
    for (u32 p = 0; p * lanes < 32; ++p) {
        u32 most = largest(active, part == p ? ways : 0, 32);
        wavefronts += most;
        ideal += most > 0;
        worst = most > worst ? most : worst;
    }
    Bank* out = &C.banks[site];
    bool first = lane == __ffs(active) - 1;
    if (first) {
        BankSum* sum = &C.bank_sums[site * BANK_COPIES + (block_number() * 4 + (thread_number() >> 5)) % BANK_COPIES];
        atomicAdd(&sum->executions_and_ideal, (u64)ideal << 32 | 1);
        atomicAdd(&sum->wavefronts, (u64)wavefronts);
    }
    if (!__any_sync(active, *(volatile u32*)&out->worst < wavefronts)) return;
    bool mine = false;  // the lock, unless somebody writes down a worse warp meanwhile
    while (first && !mine && *(volatile u32*)&out->worst < wavefronts) mine = !atomicCAS(&out->lock, 0u, 1u);
    if (!__any_sync(active, mine)) return;
    __syncwarp(active);
    __threadfence();
    if (__any_sync(active, *(volatile u32*)&out->worst < wavefronts)) {
        u32 counts = leads ? __popc(peers) : 0;  // over all parts
        bool speaks = leads && lane == __ffs(peers) - 1;
        if (first)
            for (u32 b = 0; b < 32; ++b) *(volatile u32*)&out->histogram[b] = 0;
        __syncwarp(active);
        if (speaks)
            for (u32 b = 0; b < unit_bytes / 4; ++b)
                *(volatile u32*)&out->histogram[bank * (unit_bytes / 4) + b] = counts;
        __syncwarp(active);
        if (first) {
            out->worst_ways = worst;
            out->worst_ideal = ideal;
            *(volatile u32*)&out->worst = wavefronts;
        }
    }
    __threadfence();
    __syncwarp(active);
    if (first) atomicExch(&out->lock, 0u);
}

// Bounds and wavefronts of an access; 1 when it may be carried out. `info`: site | bytes << 16 | is load << 24.
SLOW u32 clsp_bank(u32 address, u32 info, u32 base, u32 limit) {
    u32 site = info & 65535, bytes = info >> 16 & 255;
    if (address - base + (bytes - 1) >= limit || address & (bytes - 1)) {
        fault(site, address, 0);
        return 0;
    }
    if (block_ordinal() != ~0u) count_banks(address, site, bytes, info >> 24);
    return 1;
}
