/* Values, programs, logs and launches, as structures.py names them. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint8_t u1; typedef uint16_t u2; typedef uint32_t u4; typedef uint64_t u8;
typedef int8_t i1; typedef int16_t i2; typedef int32_t i4; typedef int64_t i8;
typedef float f4; typedef double f8; typedef uint8_t b1; typedef uint16_t f2;

typedef struct {      /* one operation on the active threads; slots are numbers of value arrays */
    i4 code, result, a, b, c;
    i4 number;        /* of the instruction, of an access */
    i4 size, count;   /* bytes of an element, elements; of a register: its bytes */
    i4 kind;          /* of an element: 0 unsigned, 1 signed, 2 float */
    i4 parts[8];      /* slots of the elements */
    u8 constant;
} Op;

typedef struct {
    i4 kind;          /* how it ends: 0 goes on, 1 branch, 2 table, 3 exit, 4 Python's */
    i4 condition;     /* slot, -1: none */
    i4 leads_back, targets_count, ops_count, unused;
    const i4 *targets;
    const Op *ops;
} Block;

enum { GOES_ON, BRANCH, TABLE, EXIT, PYTHON };
enum { CONSTANT, POOL, ROW, GET, SET, LOAD, STORE, CALL, FIRST = 16 };

typedef struct {      /* one executed access of some threads */
    i4 number, size, mode, kind, known, tick;
    i8 sequence, start, count;
} Record;

typedef struct {      /* accesses, in the order of their execution; columns of all records together */
    i8 records, record_room, entries, room;
    Record *record;
    i4 *thread;
    u4 *address;
    i8 *value;
} Log;

typedef struct { i8 number, thread, address, misaligned, count, furthest; } Fault;

typedef struct {
    i8 threads, granules;
    u1 *memory;
    const u2 *limits;
    i8 shared_low, shared_high, local_low, local_high;
    u1 **slots;               /* of active threads, densely */
    u1 *const *own;           /* the memory of each slot */
    u1 *same;                 /* whether a slot holds one value for all, which is in `scalars` */
    u8 *scalars;
    i8 slots_count;
    u1 **registers;           /* of all threads */
    u1 *register_same;        /* whether a register holds one value for all, its first */
    const u1 *row_same;       /* as for registers */
    const u1 **rows;          /* built-in registers, of all threads */
    const u8 *pool;           /* constants of the launch */
    const Block *blocks;
    i8 blocks_count;
    u1 *alive, *resting;
    i8 *pc;
    i1 *parked;
    i4 *active;
    i8 here, all_alive;       /* the block of all living threads, -1: apart; whether all threads live */
    i8 steps, often, look;
    i8 jumps, patience, backwards;
    double deadline;
    const u1 *watched;
    u1 *executed;
    Log *log;                 /* none: nothing is logged */
    i8 only_shared;           /* log accesses to shared memory only, up to `most` a site */
    i8 most;
    i4 *logged;               /* how often a site was logged */
    i8 sequence, tick;
    Fault *faults;
    i8 faults_count, faults_room;
    i4 *fault_of;             /* by instruction number: its fault and 1, 0: none */
    void (*call)(i8 number, i8 count);
    i8 failed;                /* out of memory, or the call failed */
} Launch;
