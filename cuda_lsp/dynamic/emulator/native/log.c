/* Logged accesses: appended, split, screened for races, selected. records.py does the same in NumPy. */

static int roomy(Log *log, i8 more) {
    if (log->records + 1 > log->record_room) {
        i8 room = 2 * log->record_room + 64;
        Record *record = realloc(log->record, (size_t)room * sizeof *record);
        if (!record) return 0;
        log->record = record, log->record_room = room;
    }
    if (log->entries + more > log->room) {
        i8 room = log->room + log->room / 2 + more + 1024;
        i4 *thread = realloc(log->thread, (size_t)room * sizeof *thread);
        if (thread) log->thread = thread;
        u4 *address = realloc(log->address, (size_t)room * sizeof *address);
        if (address) log->address = address;
        i8 *value = realloc(log->value, (size_t)room * sizeof *value);
        if (value) log->value = value;
        if (!thread || !address || !value) return 0;
        log->room = room;
    }
    return 1;
}

void log_free(Log *log) {
    free(log->record), free(log->thread), free(log->address), free(log->value);
    memset(log, 0, sizeof *log);
}

static void push(Log *log, i4 thread, u4 address, i8 value) {
    i8 at = log->entries++;
    log->thread[at] = thread, log->address[at] = address, log->value[at] = value;
}

static Record *begin(Log *log, const Record *like, i8 most) {
    if (!roomy(log, most)) return 0;
    Record *record = &log->record[log->records];
    *record = *like;
    record->start = log->entries;
    return record;
}

static void end(Log *log, Record *record) {
    record->count = log->entries - record->start;
    if (record->count) log->records++;
}

/* An access that Python executed. `value` none: unknown; `active` none: all threads. 0: out of memory. */
i8 log_access(Log *log, const Record *like, i8 threads, const i8 *address, const u1 *active, const i8 *value,
              i8 local_low, i8 local_high) {
    Record *record = begin(log, like, threads);
    if (!record) return 0;
    for (i8 i = 0; i < threads; i++)
        if ((!active || active[i]) && !(address[i] >= local_low && address[i] < local_high))
            push(log, (i4)i, (u4)address[i], value ? value[i] : 0);
    end(log, record);
    return 1;
}

/* Append to `first` what the threads in `done` did, and to `rest` what the others did. */
i8 log_split(const Log *log, const u1 *done, Log *first, Log *rest) {
    for (i8 r = 0; r < log->records; r++) {
        const Record *record = &log->record[r];
        for (int side = 0; side < 2; side++) {
            Log *target = side ? rest : first;
            Record *made = begin(target, record, record->count);
            if (!made) return 0;
            for (i8 k = record->start; k < record->start + record->count; k++)
                if ((done[log->thread[k]] == 0) == side) push(target, log->thread[k], log->address[k], log->value[k]);
            end(target, made);
        }
    }
    return 1;
}

static int writes(i4 mode) { return mode >= 1 && mode <= 3; }

/* Append to `kept` the records outside shared memory; what was read is forgotten. */
i8 log_keep(const Log *log, Log *kept, i8 shared_low, i8 shared_high) {
    for (i8 r = 0; r < log->records; r++) {
        const Record *record = &log->record[r];
        i8 first = log->address[record->start];
        if (first >= shared_low && first < shared_high) continue;
        Record *made = begin(kept, record, record->count);
        if (!made) return 0;
        made->known = record->known && writes(record->mode);
        size_t n = (size_t)record->count;
        memcpy(kept->thread + kept->entries, log->thread + record->start, n * sizeof(i4));
        memcpy(kept->address + kept->entries, log->address + record->start, n * sizeof(u4));
        memcpy(kept->value + kept->entries, log->value + record->start, n * sizeof(i8));
        kept->entries += record->count;
        end(kept, made);
    }
    return 1;
}

static i4 name_of(const Record *record, i4 agent, i4 base, i4 widths, int across) {
    i4 mode = record->mode;
    int atomic = mode == 2 || mode == 4 || ((mode == 3 || mode == 5) && !across);
    if (!atomic) return agent + base + widths;
    i4 bits = 0;
    while (record->size >> bits) bits++;
    return base + bits - 1;
}

/* Words that two agents touch, one of them writing (detect.py says how). `owner`: a name for each word;
   `agents`: of each thread; `found`: where the words go, as many as fit. How many accesses are suspected. */
i8 log_screen(const Log *log, i4 *owner, const i8 *agents, i4 base, i4 widths, i8 across, i8 *found, i8 room) {
    i8 suspected = 0;
    for (int pass = 0; pass < 2; pass++)
        for (i8 r = 0; r < log->records; r++) {
            const Record *record = &log->record[r];
            if (!pass && !writes(record->mode)) continue;
            i8 words = record->size > 4 ? record->size / 4 : 1;
            for (i8 k = record->start; k < record->start + record->count; k++) {
                i8 word = log->address[k] >> 2;
                i4 name = name_of(record, (i4)agents[log->thread[k]], base, widths, (int)across);
                for (i8 w = word; w < word + words; w++) {
                    if (!pass) owner[w] = name;
                    else if (owner[w] != name && owner[w] >= base) {
                        if (suspected < room) found[suspected] = w;
                        suspected++;
                    }
                }
            }
        }
    return suspected;
}

/* The accesses to suspected words: rows (word, thread, record, address, value) into five columns of `room`
   elements each, writes first. How many there are. */
i8 log_select(const Log *log, const u1 *suspected, i8 *columns, i8 room) {
    i8 count = 0;
    for (int reads = 0; reads < 2; reads++)
        for (i8 r = 0; r < log->records; r++) {
            const Record *record = &log->record[r];
            if (writes(record->mode) == reads) continue;
            i8 words = record->size > 4 ? record->size / 4 : 1;
            for (i8 k = record->start; k < record->start + record->count; k++)
                for (i8 w = log->address[k] >> 2, last = w + words; w < last; w++)
                    if (suspected[w]) {
                        if (count < room) {
                            columns[count] = w, columns[room + count] = log->thread[k];
                            columns[2 * room + count] = r, columns[3 * room + count] = log->address[k];
                            columns[4 * room + count] = log->value[k];
                        }
                        count++;
                    }
        }
    return count;
}

/* The accesses of one instruction to the `window` bytes of their blocks, warp by warp, each pattern once: addresses of
   its lanes, moved by a multiple of 128 bytes (the banks are the same then), flags of those that are there, and how
   often. `rows`: 32 of each; `table`:
   zeros, a power of two many, more than `room`. How many patterns there are, at most `room`; -1: more. */
i8 log_patterns(const Log *log, i4 number, i8 window, const i8 *warp, const u4 *lane, const i8 *base, i8 *rows,
                u4 *active, i8 *counts, i8 room, i8 *table, i8 slots) {
    i8 found = 0;
    for (i8 r = 0; r < log->records; r++) {
        const Record *record = &log->record[r];
        if (record->number != number) continue;
        for (i8 k = record->start, last = k + record->count; k < last;) {
            i8 mine = warp[log->thread[k]], row[32] = {0};
            i8 least = INT64_MAX;
            u4 flags = 0;
            for (; k < last && warp[log->thread[k]] == mine; k++) {
                i4 t = log->thread[k];
                i8 at = log->address[k] - base[t];
                if (at < 0 || at >= window) continue;
                row[lane[t]] = at, flags |= (u4)1 << lane[t];
                if (at < least) least = at;
            }
            if (!flags) continue;
            for (int i = 0; i < 32; i++) if (flags >> i & 1) row[i] -= least & ~(i8)127;
            u8 hash = flags;
            for (int i = 0; i < 32; i++) hash = (hash ^ (u8)row[i]) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
            i8 at = (i8)(hash & (u8)(slots - 1));
            while (table[at] && (active[table[at] - 1] != flags || memcmp(rows + 32 * (table[at] - 1), row, sizeof row)))
                at = (at + 1) & (slots - 1);
            if (!table[at]) {
                if (found == room) return -1;
                memcpy(rows + 32 * found, row, sizeof row);
                active[found] = flags, counts[found] = 0, table[at] = ++found;
            }
            counts[table[at] - 1]++;
        }
    }
    return found;
}
