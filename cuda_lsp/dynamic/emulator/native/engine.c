/* A launch on the CPU, as emulator/machine.py executes it: whole arrays of threads, one instruction after the
   other. Compiled once on a machine, with what operations.py writes behind "OPERATIONS" below; programs come as
   tables. What it does not know it leaves to Python: `advance` returns where the next step is Python's. Results,
   the order of steps, and what is logged for the race detector are those of Python, bit for bit. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One row of operations.py alone, for those who compare it. */
void compute_row(i8 number, i8 n, void *result, const void *x, const void *y, const void *z, u8 constant) {
    operations[number](n, result, x, y, z, constant);
}

#define STRIP 2048

static u8 scalar(const u1 *at, i4 size) {
    u8 value = 0;
    memcpy(&value, at, (size_t)size);
    return value;
}

static void all(const Launch *l, i4 slot, u8 value) { l->same[slot] = 1, l->scalars[slot] = value; }

/* A value of each thread, into a slot. */
static void take(const Launch *l, const Op *o, const u1 *values, int same, const i4 *active, i8 from, i8 n) {
    l->slots[o->result] = l->own[o->result];
    if (same) { all(l, o->result, scalar(values, o->size)); return; }
    l->same[o->result] = 0;
    if (o->kind && !active) { l->slots[o->result] = (u1 *)values; return; } /* the slot stands for them */
    gather(l->slots[o->result] + from * o->size, active ? values : values + from * o->size, o->size,
           active ? active + from : 0, n);
}

/* A slot into a register, of all active threads: what a block leaves is written when it has read everything. */
static void give(const Launch *l, const Op *o, const i4 *active, i8 n) {
    u1 *values = l->registers[o->constant], *same = &l->register_same[o->constant];
    if (l->same[o->a] && !active) {
        memcpy(values, &l->scalars[o->a], (size_t)o->size), *same = 1;
        return;
    }
    if (*same && active) fill(values, o->size, scalar(values, o->size), l->threads);
    *same = 0;
    spread(l, o->a, o->size, 0, n);
    scatter(values, l->slots[o->a], o->size, active, n);
}

static void compute(const Launch *l, const Op *o, i8 from, i8 n) {
    const Widths *w = &widths[o->code - FIRST];
    Operation *operation = operations[o->code - FIRST];
    if (l->same[o->a] && (!w->y || l->same[o->b]) && (!w->z || l->same[o->c])) {
        u8 result = 0;
        operation(1, &result, &l->scalars[o->a], w->y ? &l->scalars[o->b] : 0, w->z ? &l->scalars[o->c] : 0, o->constant);
        all(l, o->result, result);
        return;
    }
    l->same[o->result] = 0;
    if (w->y && !w->z && with_scalar[o->code - FIRST][0] && (l->same[o->a] || l->same[o->b])) {
        int first = l->same[o->a] != 0;
        with_scalar[o->code - FIRST][!first](
            n, l->slots[o->result] + from * w->result, first ? (void *)&l->scalars[o->a] : l->slots[o->a] + from * w->x,
            first ? l->slots[o->b] + from * w->y : (void *)&l->scalars[o->b], 0, o->constant);
        return;
    }
    spread(l, o->a, w->x, from, n);
    if (w->y) spread(l, o->b, w->y, from, n);
    if (w->z) spread(l, o->c, w->z, from, n);
    operation(n, l->slots[o->result] + from * w->result, l->slots[o->a] + from * w->x,
              w->y ? l->slots[o->b] + from * w->y : 0, w->z ? l->slots[o->c] + from * w->z : 0, o->constant);
}

static void execute_pure(const Launch *l, const Op *o, const i4 *active, i8 from, i8 n) {
    switch (o->code) {
    case CONSTANT: all(l, o->result, o->constant); break;
    case POOL: all(l, o->result, l->pool[o->constant]); break;
    case ROW: take(l, o, l->rows[o->constant], l->row_same[o->constant], active, from, n); break;
    case GET: take(l, o, l->registers[o->constant], l->register_same[o->constant], active, from, n); break;
    default: compute(l, o, from, n);
    }
}

/* Operations between two accesses, for as many threads at a time as a cache holds. */
static void execute_between(const Launch *l, const Op *o, const Op *stop, const i4 *active, i8 n) {
    size_t flags = (size_t)l->slots_count;
    u1 same[flags + 1];
    u8 scalars[flags + 1];
    if (n > STRIP) memcpy(same, l->same, flags), memcpy(scalars, l->scalars, flags * sizeof(u8));
    for (i8 from = 0; from < n; from += STRIP) {
        if (from) memcpy(l->same, same, flags), memcpy(l->scalars, scalars, flags * sizeof(u8));
        for (const Op *p = o; p < stop; p++) execute_pure(l, p, active, from, n - from < STRIP ? n - from : STRIP);
    }
}

static void execute(Launch *l, const Block *block, const i4 *active, i8 n) {
    for (const Op *o = block->ops, *last = o + block->ops_count; o < last && !l->failed;) {
        const Op *stop = o;
        while (stop < last && (stop->code < SET || stop->code >= FIRST)) stop++;
        if (stop > o) execute_between(l, o, stop, active, n), o = stop;
        else if (o->code == SET) give(l, o++, active, n);
        else if (o->code == CALL) l->call((i8)(o++)->constant, n);
        else access_memory(l, o++, active, n);
    }
    if (block->condition >= 0) spread(l, block->condition, block->kind == TABLE ? 4 : 1, 0, n);
}


static i8 living(const Launch *l) {
    i8 count = 0;
    for (i8 i = 0; i < l->threads; i++) count += l->alive[i];
    return count;
}

/* All living threads execute one block. 0: all have left. */
static int together(Launch *l, const Block *block, const i4 *active, i8 n) {
    const b1 *condition = block->condition < 0 ? 0 : ACTIVE(b1, block->condition);
    i8 chosen = 0;
    switch (block->kind) {
    case GOES_ON: l->here = block->targets[0]; return 1;
    case BRANCH:
        for (i8 i = 0; i < n; i++) chosen += condition[i];
        if (chosen == 0 || chosen == n) { l->here = block->targets[chosen ? 0 : 1]; return 1; }
        for (i8 i = 0; i < l->threads; i++) l->pc[i] = block->targets[1];
        for (i8 i = 0; i < n; i++) if (condition[i]) l->pc[active ? active[i] : i] = block->targets[0];
        l->here = -1;
        return 1;
    case TABLE: {
        const u4 *index = ACTIVE(u4, block->condition);
        for (i8 i = 0; i < l->threads; i++) l->pc[i] = l->here;
        for (i8 i = 0; i < n; i++) {
            i8 k = index[i] < (u4)block->targets_count ? index[i] : block->targets_count - 1;
            l->pc[active ? active[i] : i] = block->targets[k];
        }
        l->here = -1;
        return 1;
    }
    default: /* EXIT */
        for (i8 i = 0; i < n; i++) if (!condition || condition[i]) l->alive[active ? active[i] : i] = 0;
        if (!condition) return 0;
        for (i8 i = 0; i < l->threads; i++) l->pc[i] = block->targets[0];
        if (!(n = living(l))) return 0;
        l->here = block->targets[0], l->all_alive = n == l->threads;
        return 1;
    }
}

static void leave(Launch *l, const Block *block, const i4 *group, i8 n) {
    const b1 *condition = block->condition < 0 ? 0 : ACTIVE(b1, block->condition);
    for (i8 i = 0; i < n; i++) {
        i8 t = group[i];
        switch (block->kind) {
        case GOES_ON: l->pc[t] = block->targets[0]; break;
        case BRANCH: l->pc[t] = block->targets[condition[i] ? 0 : 1]; break;
        case TABLE: {
            u4 index = ACTIVE(u4, block->condition)[i];
            l->pc[t] = block->targets[index < (u4)block->targets_count ? index : (u4)block->targets_count - 1];
            break;
        }
        default:
            if (!condition || condition[i]) l->alive[t] = 0;
            l->pc[t] = block->targets[0];
        }
    }
}

/* Whether all living threads meet again, and where. 0: all have left. */
static int reunite(Launch *l) {
    i8 place = -1, count = 0;
    l->here = -1;
    for (i8 i = 0; i < l->threads; i++) if (l->parked[i]) return 1;
    for (i8 i = 0; i < l->threads; i++) {
        if (!l->alive[i]) continue;
        if (!count++) place = l->pc[i];
        else if (l->pc[i] != place) return 1;
    }
    if (!count) return 0;
    l->here = place, l->all_alive = count == l->threads;
    return 1;
}

/* The threads that go next; how many. 0: Python says who. */
static i8 next_group(Launch *l, i8 *number) {
    int eager = 0, some = 0;
    for (i8 i = 0; i < l->threads; i++) {
        if (!l->alive[i] || l->parked[i]) continue;
        some = 1;
        if (!l->resting[i]) { eager = 1; break; }
    }
    if (!some) return 0;
    i8 best = -1, n = 0;
    for (i8 i = 0; i < l->threads; i++)
        if (l->alive[i] && !l->parked[i] && !(eager && l->resting[i])) {
            i8 at = l->pc[i];
            if (best < 0 || (l->backwards ? at > best : at < best)) best = at, n = 0;
            if (at == best) l->active[n++] = (i4)i;
        }
    *number = best;
    if (best < l->blocks_count && l->blocks[best].kind != PYTHON && !eager)
        memset(l->resting, 0, (size_t)l->threads); /* nobody is left to go first */
    return n;
}

enum { ENDED, PYTHONS };

/* Execute until all threads have left, or until the next step is Python's. */
i8 advance(Launch *l) {
    for (;;) {
        if (l->failed) return PYTHONS;
        i8 step = l->steps + 1;
        if (step % l->look == 0 || (step % l->often == 0 && now() > l->deadline)) return PYTHONS;
        if (l->here >= 0) {
            if (l->here >= l->blocks_count) return PYTHONS;
            const Block *block = &l->blocks[l->here];
            if (block->kind == PYTHON) return PYTHONS;
            i8 n = l->threads;
            if (!l->all_alive) {
                n = 0;
                for (i8 i = 0; i < l->threads; i++) if (l->alive[i]) l->active[n++] = (i4)i;
            }
            l->steps = step;
            execute(l, block, l->all_alive ? 0 : l->active, n);
            if (!together(l, block, l->all_alive ? 0 : l->active, n)) return ENDED;
            continue;
        }
        i8 number, n = next_group(l, &number);
        if (!n || number >= l->blocks_count || l->jumps % l->patience == l->patience - 1) return PYTHONS;
        const Block *block = &l->blocks[number];
        if (block->kind == PYTHON) return PYTHONS;
        l->steps = step;
        execute(l, block, n == l->threads ? 0 : l->active, n);
        leave(l, block, l->active, n);
        if (block->leads_back)
            for (i8 i = 0; i < n; i++)
                if (l->pc[l->active[i]] <= number) { l->jumps++; break; }
        if (!reunite(l)) return ENDED;
    }
}
