"""Threads of one block that hand over to one another: a block runs one variant. Used on every dynamic engine.

Every correct variant is followed by what breaks it; the lines that race carry the same number in ``//1``.
"""

from __future__ import annotations

from handovers import Handovers

HEAD = """#include <cuda/atomic>
using Here = cuda::atomic_ref<int, cuda::thread_scope_block>;
using There = cuda::atomic_ref<int, cuda::thread_scope_device>;
#define WAIT(p) while (atomicAdd(p, 0) == 0) { }
#define SET(p) { __threadfence_block(); atomicExch(p, 1); }
#define LOCK(p) { while (atomicCAS(p, 0, 1)) { } __threadfence_block(); }
#define UNLOCK(p) { __threadfence_block(); atomicExch(p, 0); }
__device__ void init(unsigned long long* b) {
    unsigned at = __cvta_generic_to_shared(b);
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at) : "memory");
}
__device__ void arrive(unsigned long long* b) {
    unsigned at = __cvta_generic_to_shared(b);
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(at) : "memory");
}
__device__ void wait(unsigned long long* b) {
    unsigned at = __cvta_generic_to_shared(b), done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at) : "memory");
}
"""

CORRECT = {
    "leaders_take_a_lock": """
        if (l == 0) {
            LOCK(f)
            s[0] += 1;
            UNLOCK(f)
        }""",
    "several_lanes_take_a_lock_in_global_memory": """
        for (bool done = l > 2; !done;)
            if (atomicCAS(gf, 0, 1) == 0) {
                __threadfence();
                s[0] += l;
                g[1] += 1;
                UNLOCK(gf)
                done = true;
            }""",
    "exchanges_as_a_lock": """
        if (l == 0) {
            while (atomicExch(f, 1)) { }
            s[0] += 1;
            UNLOCK(f)
        }""",
    "tickets": """
        if (l == 0) {
            int mine = atomicAdd(f, 1);
            while (atomicAdd(f + 1, 0) != mine) { }
            s[0] += 1;
            __threadfence_block();
            atomicAdd(f + 1, 1);
        }""",
    "flag_set_by_an_exchange": """
        if (t == 0) { g[5] = s[0] = 1; SET(f) }
        if (t == 32) { WAIT(f) g[6] = s[0] + g[5]; }""",
    "flag_released_in_shared_memory": """
        if (t == 0) { s[0] = 1; Here(*f).store(1, cuda::memory_order_release); }
        if (t == 32) { while (!Here(*f).load(cuda::memory_order_acquire)) { } g[0] = s[0]; }""",
    "flag_released_in_global_memory": """
        if (t == 0) { s[0] = 1; There(*gf).store(1, cuda::memory_order_release); }
        if (t == 32) { while (!There(*gf).load(cuda::memory_order_acquire)) { } g[0] = s[0]; }""",
    "lanes_through_their_leaders": """
        if (w == 0) {
            s[l] = l;
            __syncwarp();
            if (l == 0) SET(f)
        } else {
            if (l == 0) WAIT(f)
            __syncwarp();
            g[l] = s[31 - l];
        }""",
    "lanes_of_one_warp": """
        if (t == 0) { s[0] = 1; SET(f) }
        if (t == 1) { WAIT(f) g[0] = s[0]; }""",
    "two_rounds_to_and_fro": """
        if (l == 0)
            for (int k = 1; k < 5; ++k)
                if (k % 2 == w) {
                    while (atomicAdd(f, 0) != k - 1) { }
                    s[0] += k;
                    __threadfence_block();
                    atomicExch(f, k);
                }""",
    "slots_of_a_queue": """
        if (l < 3 && w == 0) {
            int k = atomicAdd(f, 1);
            s[k] = l;
            __threadfence_block();
            atomicExch(f + 1 + k, 1);
        }
        if (l < 3 && w == 1) { WAIT(f + 1 + l) g[l] = s[l]; }""",
    "one_tells_the_next": """
        if (t == 0) { s[0] = 1; SET(f) }
        if (t == 20) { WAIT(f) SET(f + 1) }
        if (t == 40) { WAIT(f + 1) g[0] = s[0]; }""",
    "last_to_come": """
        if (l == 0) {
            s[w] = w;
            __threadfence_block();
            if (atomicAdd(f, 1) == 1) g[0] = s[0] + s[1];
        }""",
    "barrier_object_of_a_leader": """
        if (w == 0) {
            s[l] = l;
            __syncwarp();
            if (l == 0) arrive(once);
        } else {
            wait(once);
            g[l] = s[31 - l];
        }""",
}

BROKEN = {
    "lock_taken_by_one_side": """
        if (t == 0) {
            LOCK(f)
            s[0] = 1;  //1
            UNLOCK(f)
        }
        if (t == 32) s[0] = 2;  //1""",
    "lock_given_back_too_early": """
        if (l == 0) {
            LOCK(f)
            UNLOCK(f)
            s[0] = w;  //1 //1
        }""",
    "lock_without_a_fence": """
        if (l == 0) {
            while (atomicCAS(f, 0, 1)) { }
            s[0] = w;  //1 //1
            atomicExch(f, 0);
        }""",
    "two_locks_for_one_word": """
        if (l == 0) {
            LOCK(f + w)
            s[0] = w;  //1 //1
            UNLOCK(f + w)
        }""",
    "store_behind_the_flag": """
        if (t == 0) {
            SET(f)
            s[0] = 1;  //1
        }
        if (t == 32) {
            WAIT(f)
            g[0] = s[0];  //1
        }""",
    "flag_not_waited_for": """
        if (t == 0) {
            s[0] = 1;  //1
            SET(f)
        }
        if (t == 32) {
            atomicAdd(f + 1, 0);
            g[0] = s[0];  //1
        }""",
    "flag_without_a_fence": """
        if (t == 0) {
            s[0] = 1;  //1
            atomicExch(f, 1);
        }
        if (t == 32) {
            WAIT(f)
            g[0] = s[0];  //1
        }""",
    "flag_stored_relaxed": """
        if (t == 0) {
            s[0] = 1;  //1
            Here(*f).store(1, cuda::memory_order_relaxed);
        }
        if (t == 32) {
            while (!Here(*f).load(cuda::memory_order_acquire)) { }
            g[0] = s[0];  //1
        }""",
    "flag_stored_plainly": """
        if (t == 0) {
            s[0] = 1;  //1
            __threadfence_block();
            *(volatile int*)f = 1;  //2
        }
        if (t == 32) {
            while (!*(volatile int*)f) { }  //2
            g[0] = s[0];  //1
        }""",
    "lanes_that_did_not_meet_before": """
        if (w == 0) {
            s[l] = l;  //1
            if (l == 0) SET(f)
        } else {
            if (l == 0) WAIT(f)
            __syncwarp();
            g[l] = s[31 - l];  //1
        }""",
    "lanes_that_did_not_meet_behind": """
        if (w == 0) {
            s[l] = l;  //1
            __syncwarp();
            if (l == 0) SET(f)
        } else {
            if (l == 0) WAIT(f)
            g[l] = s[31 - l];  //1
        }""",
    "half_of_the_lanes_met": """
        if (w == 0) {
            s[l] = l;  //1
            if (l < 16) __syncwarp(0xffff);
            if (l == 0) SET(f)
        } else {
            if (l == 0) WAIT(f)
            __syncwarp();
            if (l < 24) g[l] = s[l];  //1
        }""",
    "chain_with_a_link_missing": """
        if (t == 0) {
            s[0] = 1;  //1
            SET(f)
        }
        if (t == 20) SET(f + 1)
        if (t == 40) {
            WAIT(f + 1)
            g[0] = s[0];  //1
        }""",
    "queue_read_before_it_is_filled": """
        if (l < 3 && w == 0) {
            int k = atomicAdd(f, 1);
            s[k] = l;  //1
            __threadfence_block();
            atomicExch(f + 1 + k, 1);
        }
        if (l < 3 && w == 1) g[l] = s[l];  //1""",
    "barrier_object_of_a_hasty_leader": """
        if (w == 0) {
            s[l] = l;  //1
            if (l == 0) arrive(once);
        } else {
            wait(once);
            g[l] = s[31 - l];  //1
        }""",
}


def kernel(name: str, variants: dict[str, str]) -> str:
    """All variants: block k runs the k-th."""
    cases = "\n".join(
        f"    if (blockIdx.x == {k}) {{{body}\n    }}" for k, body in enumerate(variants.values())
    )
    return f"""extern "C" __global__ void {name}(int* out) {{
    __shared__ int s[32], f[8];
    __shared__ unsigned long long once[1];
    int t = threadIdx.x, l = t % 32, w = t / 32, *g = out + 64 * blockIdx.x, *gf = g + 60;
    if (t < 32) s[t] = 0;
    if (t < 8) f[t] = 0;
    if (t == 0) init(once);
    __syncthreads();
{cases}
}}
"""


SOURCE = HEAD + kernel("correct", CORRECT) + kernel("broken", BROKEN)
HANDOVERS = Handovers(SOURCE, CORRECT, BROKEN, "blockIdx.x == {}", 1, 64, deadline=60.0)
