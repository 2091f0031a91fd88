/* Values of threads in slots and registers, and memory as threads touch it: bounds, the log, the access. */
#define ACTIVE(type, slot) ((type *)l->slots[slot])

static void fill(u1 *result, i4 size, u8 value, i8 n) {
    switch (size) {
    case 1: memset(result, (int)value, (size_t)n); break;
    case 2: for (i8 i = 0; i < n; i++) ((u2 *)result)[i] = (u2)value; break;
    case 4: for (i8 i = 0; i < n; i++) ((u4 *)result)[i] = (u4)value; break;
    default: for (i8 i = 0; i < n; i++) ((u8 *)result)[i] = value;
    }
}

static void gather(u1 *result, const u1 *from, i4 size, const i4 *active, i8 n) {
    if (!active) { memcpy(result, from, (size_t)(n * size)); return; }
    switch (size) {
    case 1: for (i8 i = 0; i < n; i++) result[i] = from[active[i]]; break;
    case 2: for (i8 i = 0; i < n; i++) ((u2 *)result)[i] = ((const u2 *)from)[active[i]]; break;
    case 4: for (i8 i = 0; i < n; i++) ((u4 *)result)[i] = ((const u4 *)from)[active[i]]; break;
    default: for (i8 i = 0; i < n; i++) ((u8 *)result)[i] = ((const u8 *)from)[active[i]];
    }
}

static void scatter(u1 *result, const u1 *from, i4 size, const i4 *active, i8 n) {
    if (!active) { memcpy(result, from, (size_t)(n * size)); return; }
    switch (size) {
    case 1: for (i8 i = 0; i < n; i++) result[active[i]] = from[i]; break;
    case 2: for (i8 i = 0; i < n; i++) ((u2 *)result)[active[i]] = ((const u2 *)from)[i]; break;
    case 4: for (i8 i = 0; i < n; i++) ((u4 *)result)[active[i]] = ((const u4 *)from)[i]; break;
    default: for (i8 i = 0; i < n; i++) ((u8 *)result)[active[i]] = ((const u8 *)from)[i];
    }
}

static void fault(Launch *l, i4 number, i8 thread, i8 address, i8 whole) {
    i4 *known = &l->fault_of[number];
    if (!*known) {
        if (l->faults_count == l->faults_room) {
            i8 room = 2 * l->faults_room + 16;
            Fault *faults = realloc(l->faults, (size_t)room * sizeof *faults);
            if (!faults) { l->failed = 1; return; }
            l->faults = faults, l->faults_room = room;
        }
        l->faults[l->faults_count++] = (Fault){number, thread, address, (address & (whole - 1)) != 0, 0, address};
        *known = (i4)l->faults_count;
    }
    Fault *f = &l->faults[*known - 1];
    f->count++;
    if (address > f->furthest) f->furthest = address;
}

/* The value of a slot that holds one for all threads, written out for each. */
static void spread(const Launch *l, i4 slot, i4 size, i8 from, i8 n) {
    if (l->same[slot]) fill(l->slots[slot] + from * size, size, l->scalars[slot], n);
}

enum { NOTHING, RACES, BANKS };

/* One access of an element a thread, or of `count`. Everything but the pointers is known when this is compiled. */
static inline __attribute__((always_inline)) void touch(
    Launch *l, const Op *o, const i4 *active, i8 n, const int size, const int stores, const int logging,
    const int single) {
    const i8 *address = ACTIVE(i8, o->a);
    const b1 *mask = o->b < 0 ? 0 : ACTIVE(b1, o->b);
    const i4 count = single ? 1 : o->count;
    const i8 whole = (i8)size * count, low = logging == BANKS ? l->shared_low : l->local_low,
             high = logging == BANKS ? l->shared_high : l->local_high, granules = l->granules;
    const u2 *limits = l->limits;
    u1 *memory = l->memory, *values = l->slots[o->parts[0]];
    Log *log = l->log;
    i8 entries = logging ? log->entries : 0;
    i4 *threads = logging ? log->thread : 0;
    u4 *addresses = logging ? log->address : 0;
    i8 *logged = logging ? log->value : 0;
    const int is_signed = o->kind == 1 && size < 8;
    for (i8 i = 0; i < n; i++) {
        i8 at = address[i], thread = active ? active[i] : i;
        if (mask && !mask[i]) continue;
        u8 granule = (u8)at >> 8;
        if (__builtin_expect(granule >= (u8)granules || (at & 255) + whole > limits[granule] || at & (whole - 1), 0)) {
            fault(l, o->number, thread, at, whole);
            if (!stores)
                for (i4 k = 0; k < count; k++) memset(l->slots[o->parts[k]] + i * size, 0, (size_t)size);
            continue;
        }
        for (i4 k = 0; k < count; k++) {
            u1 *value = (single ? values : l->slots[o->parts[k]]) + i * size, *place = memory + at + k * size;
            if (stores) memcpy(place, value, (size_t)size);
            else memcpy(value, place, (size_t)size);
        }
        if (logging && (logging == BANKS) == (at >= low && at < high)) {
            threads[entries] = (i4)thread, addresses[entries] = (u4)at;
            if (logging == RACES) {
                i8 value = 0;
                if (single) {
                    memcpy(&value, values + i * size, (size_t)size);
                    if (is_signed) value = value << (64 - 8 * size) >> (64 - 8 * size);
                }
                logged[entries] = value;
            }
            entries++;
        }
    }
    if (logging) log->entries = entries;
}

#define TOUCH(size, stores, logging) \
    (o->count == 1 ? touch(l, o, active, n, size, stores, logging, 1) : touch(l, o, active, n, size, stores, logging, 0))
#define TOUCH_SIZE(stores, logging) \
    switch (o->size) { \
    case 1: TOUCH(1, stores, logging); break; \
    case 2: TOUCH(2, stores, logging); break; \
    case 4: TOUCH(4, stores, logging); break; \
    default: TOUCH(8, stores, logging); \
    }

static void access_memory(Launch *l, const Op *o, const i4 *active, i8 n) {
    int stores = o->code == STORE, logging = NOTHING;
    Record *record = 0;
    spread(l, o->a, 8, 0, n);
    if (o->b >= 0) spread(l, o->b, 1, 0, n);
    for (i4 k = 0; k < o->count; k++)
        if (stores) spread(l, o->parts[k], o->size, 0, n);
        else l->same[o->parts[k]] = 0;
    l->executed[o->number] = 1;
    if (l->log && l->watched[o->number]) {
        logging = l->only_shared ? l->logged[o->number]++ < l->most ? BANKS : NOTHING : RACES;
        Record like = {o->number, o->size * o->count, stores, o->kind, o->count == 1, (i4)l->tick, 0, 0, 0};
        if (logging == RACES) like.sequence = ++l->sequence;
        if (logging && !(record = begin(l->log, &like, n))) { l->failed = 1; return; }
    }
    if (logging == RACES && stores) TOUCH_SIZE(1, RACES)
    else if (logging == RACES) TOUCH_SIZE(0, RACES)
    else if (logging == BANKS && stores) TOUCH_SIZE(1, BANKS)
    else if (logging == BANKS) TOUCH_SIZE(0, BANKS)
    else if (stores) TOUCH_SIZE(1, NOTHING)
    else TOUCH_SIZE(0, NOTHING)
    if (record) end(l->log, record);
}
