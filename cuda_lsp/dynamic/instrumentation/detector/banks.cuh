// What an access to shared memory costs. Source of the rule: `docs/semantics.md`, "Bank conflicts".

struct Cost {
    u32 wavefronts, ideal, worst, ways, peers, bank;  // the last three: of this lane
    bool leads;
};

// Wavefronts of the lanes `active`, of a load if lane pairs that agree merge parts.
APART Cost cost_of(u32 active, u32 address, u32 bytes, bool is_load) {
    u32 lane = thread_number() & 31;
    u32 unit_bytes = bytes > 4 ? bytes : 4, unit = address / unit_bytes, units = 128 / unit_bytes;
    u32 lanes = 32 * 4 / unit_bytes;  // of one part
    if (is_load && bytes >= 8) {
        u32 same = __match_any_sync(active, unit);
        bool both = active >> (lane ^ 1) & 1;
        if (__all_sync(active, !both || (same >> (lane ^ 1) & 1))) lanes *= 2;
    }
    u32 part = lane / lanes, part_mask = (lanes == 32 ? ~0u : (1u << lanes) - 1) << (part * lanes);
    u32 same = __match_any_sync(active, unit) & part_mask;
    Cost cost = {};
    cost.leads = (same & (0u - same)) == 1u << lane;
    cost.bank = unit % units;
    cost.peers = __match_any_sync(active, cost.leads ? cost.bank : 64 + lane);
    cost.ways = cost.leads ? __popc(cost.peers & part_mask) : 0;
    for (u32 p = 0; p * lanes < 32; ++p) {
        u32 most = largest(active, part == p ? cost.ways : 0, 32);
        cost.wavefronts += most;
        cost.ideal += most > 0;
        cost.worst = most > cost.worst ? most : cost.worst;
    }
    return cost;
}

// The worst warp of a site is written down with what each bank has to serve.
APART void keep_worst(u32 active, u32 site, u32 unit_bytes, Cost cost) {
    u32 lane = thread_number() & 31;
    bool first = lane == __ffs(active) - 1;
    Bank* out = &C.banks[site];
    if (!__any_sync(active, out->worst < cost.wavefronts)) return;  // what a cache holds may be too small
    if (!__any_sync(active, *(volatile u32*)&out->worst < cost.wavefronts)) return;
    bool mine = false;  // the lock, unless somebody writes down a worse warp meanwhile
    while (first && !mine && *(volatile u32*)&out->worst < cost.wavefronts) mine = !atomicCAS(&out->lock, 0u, 1u);
    if (!__any_sync(active, mine)) return;
    __syncwarp(active);
    __threadfence();
    if (__any_sync(active, *(volatile u32*)&out->worst < cost.wavefronts)) {
        u32 counts = cost.leads ? __popc(cost.peers) : 0;  // over all parts
        bool speaks = cost.leads && lane == __ffs(cost.peers) - 1;
        if (first)
            for (u32 b = 0; b < 32; ++b) *(volatile u32*)&out->histogram[b] = 0;
        __syncwarp(active);
        if (speaks)
            for (u32 b = 0; b < unit_bytes / 4; ++b)
                *(volatile u32*)&out->histogram[cost.bank * (unit_bytes / 4) + b] = counts;
        __syncwarp(active);
        if (first) {
            out->worst_ways = cost.worst;
            out->worst_ideal = cost.ideal;
            *(volatile u32*)&out->worst = cost.wavefronts;
        }
    }
    __threadfence();
    __syncwarp(active);
    if (first) atomicExch(&out->lock, 0u);
}

APART void add_cost(u32 active, u32 site, Cost cost) {
    if ((thread_number() & 31) != __ffs(active) - 1) return;
    BankSum* sum = &C.bank_sums[site * BANK_COPIES + (block_number() * 4 + (thread_number() >> 5)) % BANK_COPIES];
    atomicAdd(&sum->executions_and_ideal, (u64)cost.ideal << 32 | 1);
    atomicAdd(&sum->wavefronts, (u64)cost.wavefronts);
}

// This warp's copy of the counts of hits: see `bank_probe.py`.
DEVICE u32 hits_copy() { return (blockIdx.x * 4 + blockIdx.y * 7 + thread_number() / 32) % HIT_COPIES; }

// Wavefronts, and the ideal in the high half.
APART u32 judge(u32 active, u32 address, u32 site, u32 bytes, bool is_load) {
    Cost cost = cost_of(active, address, bytes, is_load);
    keep_worst(active, site, bytes > 4 ? bytes : 4, cost);
    add_cost(active, site, cost);
    return cost.wavefronts | cost.ideal << 16;
}

// A pattern that its site does not know, at least not at its place: `step` is what the probe compares lanes by.
// It is kept if the place is free (`slot` is not 0), and then for good, so that nobody who looks meets half of another.
// Where lanes that access other words access other banks, too, it is one wavefront, and no more need be known.
// `info`: site | bytes << 16 | is load << 24 | lanes whose address is not good are left out << 31.
SLOW void clsp_new_pattern(u32 address, u32 info, u32 active, u32 slot, u32 step) {
    u32 site = info & 65535, bytes = info >> 16 & 255, lane = thread_number() & 31, first = __ffs(active) - 1;
    u32 cost = 1 | 1 << 16;
    bool simple = bytes <= 4 && __match_any_sync(active, address >> 2) == __match_any_sync(active, address >> 2 & 31);
    if (!__all_sync(active, simple))
        cost = judge(active, address, site, bytes, info >> 24 & 1);
    else if (lane == first)
        atomicAdd(&C.hits[site * HIT_COPIES * PATTERNS + hits_copy() * PATTERNS], 1ull);
    if (info >> 31 || !slot) return;
    Pattern* pattern = &C.patterns[site * PATTERNS + slot];
    bool mine = lane == first && !pattern->taken && !atomicCAS(&pattern->taken, 0u, 1u);
    if (!__any_sync(active, mine)) return;
    pattern->steps[lane] = step;
    pattern->wavefronts = cost;
    __threadfence();
    __syncwarp(active);
    if (lane == first) *(volatile u32*)&pattern->lanes = active;
}

// Bounds and wavefronts of an access; 1 when it may be carried out. `info`: site | bytes << 16 | is load << 24.
SLOW u32 clsp_bank(u32 address, u32 info, u32 base, u32 limit) {
    u32 site = info & 65535, bytes = info >> 16 & 255;
    if (address - base + (bytes - 1) >= limit || address & (bytes - 1)) {
        fault(site, address, 0);
        return 0;
    }
    if (block_ordinal() == ~0u) return 1;
    // Lanes of another instruction may have come here together with ours.
    u32 active = __match_any_sync(__activemask(), site);
    judge(active, address, site, bytes, info >> 24);
    return 1;
}
