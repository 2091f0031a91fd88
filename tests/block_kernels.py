"""Blocks that hand over to one another: four blocks run one variant. Used on every dynamic engine.

Every correct variant is followed by what breaks it; the lines that race carry the same number in ``//1``.
``b`` is a block's number within its variant, ``g`` the variant's memory, ``c`` its counters and flags.
"""

from __future__ import annotations

from handovers import Handovers

TOGETHER = 4  # blocks of a variant
WORDS = 192  # of global memory for each

HEAD = """#include <cuda/atomic>
using There = cuda::atomic_ref<int, cuda::thread_scope_device>;
#define WAIT(p) while (atomicAdd(p, 0) == 0) { }
#define SET(p) { __threadfence(); atomicExch(p, 1); }
#define LOCK(p) { while (atomicCAS(p, 0, 1)) { } __threadfence(); }
#define UNLOCK(p) { __threadfence(); atomicExch(p, 0); }
#define MEET(p) { __syncthreads(); if (t == 0) { __threadfence(); atomicAdd(p, 1); \\
    while (atomicAdd(p, 0) < 4) { } __threadfence(); } __syncthreads(); }
"""

CORRECT = {
    "last_block": """
        if (t == 0) {
            g[b] = b;
            __threadfence();
            s[0] = atomicAdd(c, 1) == 3;
        }
        __syncthreads();
        if (s[0] && t < 4) g[8 + t] = g[t];""",
    "last_block_of_which_all_store": """
        if (w == 1) g[b * 32 + l] = t;
        __threadfence();
        __syncthreads();
        if (t == 0) s[0] = atomicAdd(c, 1) == 3;
        __syncthreads();
        if (s[0]) g[t] = g[127 - t];""",
    "last_thread_of_all": """
        if (t < 8) {
            g[b * 8 + t] = t;
            __threadfence();
            if (atomicAdd(c, 1) == 31) g[128] = g[0] + g[31];
        }""",
    "counts_down": """
        if (t == 0) {
            g[b] = b;
            __threadfence();
            if (atomicSub(c, 1) == -3) g[8] = g[0] + g[3];
        }""",
    "all_meet_twice": """
        if (w == 0) g[b * 32 + l] = t;
        MEET(c)
        int v = w == 0 ? g[127 - b * 32 - l] : 0;
        MEET(c + 1)
        if (w == 0) g[b * 32 + l] = v;""",
    "chain_of_flags": """
        if (t == 0) {
            int before = 0;
            if (b) { WAIT(c + b - 1) before = g[b - 1]; }
            g[b] = before + 1;
            SET(c + b)
        }""",
    "end_of_the_chain_reads_all": """
        if (t == 0) {
            if (b) WAIT(c + b - 1)
            g[b] = b;
            SET(c + b)
            if (b == 3) g[8] = g[0] + g[1] + g[2];
        }""",
    "chain_through_other_threads": """
        if (t == 0) g[b] = b;
        if (b && t == 32) WAIT(c + b - 1)
        __syncthreads();
        if (t == 1) SET(c + b)
        if (b == 3 && t == 33) g[8] = g[0] + g[1] + g[2];""",
    "chain_behind_a_barrier": """
        if (t == 0) g[b] = b;
        __syncthreads();
        if (b && t == 32) WAIT(c + b - 1)
        __syncthreads();
        if (t == 1) SET(c + b)
        __syncthreads();
        if (b == 3 && t < 3) g[8 + t] = g[t];""",
    "two_chains_to_one_block": """
        if (t == 0 && b < 2) { g[b] = b; SET(c + b) }
        if (t == 0 && b == 2) { WAIT(c) WAIT(c + 1) SET(c + 2) }
        if (t == 0 && b == 3) { WAIT(c + 2) g[8] = g[0] + g[1]; }""",
    "lock_of_leaders": """
        if (t == 0)
            for (int k = b; k < 4; k += 2) {
                LOCK(c)
                g[0] += b;
                UNLOCK(c)
            }""",
    "lock_of_several_lanes": """
        for (bool done = t > 1 || b > 1; !done;)
            if (atomicCAS(c, 0, 1) == 0) {
                __threadfence();
                g[0] += l;
                UNLOCK(c)
                done = true;
            }""",
    "in_turns": """
        if (t == 0)
            for (int k = b; k < 6; k += 4) {
                while (atomicAdd(c, 0) != k) { }
                g[0] += k;
                __threadfence();
                atomicAdd(c, 1);
            }""",
    "one_lock_in_another": """
        if (t == 0) {
            LOCK(c)
            g[0] += 1;
            LOCK(c + 1)
            g[1] += g[0];
            UNLOCK(c + 1)
            UNLOCK(c)
        }""",
    "flag_released": """
        if (t == 0 && b == 0) { g[0] = 1; There(*c).store(1, cuda::memory_order_release); }
        if (t == 0 && b > 0) { while (!There(*c).load(cuda::memory_order_acquire)) { } g[b] = g[0]; }""",
    "looks_back": """
        if (t == 0) {
            g[b] = b + 1;
            There(c[b]).store(1, cuda::memory_order_release);
            int sum = b + 1;
            for (int k = b - 1; k >= 0; --k) {
                int state;
                while ((state = There(c[k]).load(cuda::memory_order_acquire)) == 0) { }
                sum += state == 2 ? g[8 + k] : g[k];
                if (state == 2) break;
            }
            g[8 + b] = sum;
            There(c[b]).store(2, cuda::memory_order_release);
        }""",
    "two_flags_in_turn": """
        if (t == 0 && b == 0) { g[0] = 1; SET(c) g[1] = 2; SET(c + 1) }
        if (t == 0 && b == 1) { WAIT(c) g[8] = g[0]; WAIT(c + 1) g[9] = g[1]; }""",
    "to_and_fro": """
        if (t == 0 && b < 2)
            for (int k = 1; k < 6; ++k)
                if (k % 2 == b) {
                    while (atomicAdd(c, 0) != k - 1) { }
                    g[0] += k;
                    __threadfence();
                    atomicExch(c, k);
                }""",
    "read_before_it_is_overwritten": """
        if (t == 0 && b == 0) { g[8] = g[0]; SET(c) }
        if (t == 0 && b == 1) { WAIT(c) g[0] = 1; }""",
    "lanes_through_their_leaders": """
        if (w == 0 && b == 0) {
            g[l] = l;
            __syncwarp();
            if (l == 0) SET(c)
        }
        if (w == 0 && b == 1) {
            if (l == 0) WAIT(c)
            __syncwarp();
            g[32 + l] = g[31 - l];
        }""",
    "slots_of_a_queue": """
        if (t == 0 && b < 2) {
            int k = atomicAdd(c, 1);
            g[k] = b;
            SET(c + 1 + k)
        }
        if (t < 2 && b == 2) { WAIT(c + 1 + t) g[8 + t] = g[t]; }""",
}

BROKEN = {
    "last_block_but_one": """
        if (t == 0) {
            g[b] = b;  //1
            __threadfence();
            s[0] = atomicAdd(c, 1) == 2;
        }
        __syncthreads();
        if (s[0] && t < 4) g[8 + t] = g[t];  //1""",
    "first_block_instead_of_last": """
        if (t == 0) {
            g[b] = b;  //1
            __threadfence();
            if (atomicAdd(c, 1) == 0)
                for (int k = 0; k < 4; ++k) g[8 + k] = g[k];  //1
        }""",
    "last_block_without_a_fence": """
        if (t == 0) {
            g[b] = b;  //1
            s[0] = atomicAdd(c, 1) == 3;
        }
        __syncthreads();
        if (s[0] && t < 4) g[8 + t] = g[t];  //1""",
    "last_block_with_a_narrow_fence": """
        if (t == 0) {
            g[b] = b;  //1
            __threadfence_block();
            s[0] = atomicAdd(c, 1) == 3;
        }
        __syncthreads();
        if (s[0] && t < 4) g[8 + t] = g[t];  //1""",
    "barrier_that_does_not_wait": """
        if (w == 0) g[b * 32 + l] = t;  //1
        __syncthreads();
        if (t == 0) {
            __threadfence();
            atomicAdd(c, 1);
        }
        __syncthreads();
        if (w == 0) g[128 + l] = g[127 - b * 32 - l];  //1 //2 //2""",
    "flag_not_waited_for": """
        if (t == 0 && b == 0) {
            g[0] = 1;  //1
            SET(c)
        }
        if (t == 0 && b == 1) {
            atomicAdd(c + 1, 0);
            g[8] = g[0];  //1
        }""",
    "store_behind_the_flag": """
        if (t == 0 && b == 0) {
            SET(c)
            g[0] = 1;  //1
        }
        if (t == 0 && b == 1) {
            WAIT(c)
            g[8] = g[0];  //1
        }""",
    "store_behind_the_flag_and_a_barrier": """
        if (t == 0 && b == 0) SET(c)
        __syncthreads();
        if (t == 0 && b == 0) g[0] = 1;  //1
        if (t == 0 && b == 1) {
            WAIT(c)
            g[8] = g[0];  //1
        }""",
    "behind_the_first_of_two_flags": """
        if (t == 0 && b == 0) {
            SET(c)
            g[0] = 1;  //1
            SET(c + 1)
        }
        if (t == 0 && b == 1) {
            WAIT(c)
            for (int k = 0; k < 200; ++k) atomicAdd(c + 2, 0);
            g[8] = g[0];  //1
        }""",
    "waits_for_one_of_two": """
        if (t == 0 && b < 2) {
            g[b] = 1;  //1
            SET(c + b)
        }
        if (t == 0 && b == 2) {
            WAIT(c)
            g[8] = g[1];  //1
        }
        if (t == 32 && b == 2) WAIT(c + 1)""",
    "another_thread_waits": """
        if (t == 0 && b == 0) {
            g[0] = 1;  //1
            SET(c)
        }
        if (t == 0 && b == 1) WAIT(c)
        if (t == 32 && b == 1) g[8] = g[0];  //1""",
    "chain_with_a_link_missing": """
        if (t == 0) {
            if (b == 1 || b == 3) WAIT(c + b - 1)
            if (b == 0) g[0] = 1;  //1
            SET(c + b)
            if (b == 3) g[8] = g[0];  //1
        }""",
    "link_before_its_wait": """
        if (t == 0) {
            if (b == 0) {
                g[0] = 1;  //1
                SET(c)
            }
            if (b == 1) {
                SET(c + 1)
                WAIT(c)
            }
            if (b == 2) {
                WAIT(c + 1)
                g[8] = g[0];  //1
            }
        }""",
    "two_locks_for_one_word": """
        if (t == 0) {
            LOCK(c + b % 2)
            g[0] = b;  //1 //1
            UNLOCK(c + b % 2)
        }""",
    "lock_given_back_too_early": """
        if (t == 0) {
            LOCK(c)
            UNLOCK(c)
            g[0] = b;  //1 //1
        }""",
    "lock_without_a_fence": """
        if (t == 0) {
            while (atomicCAS(c, 0, 1)) { }
            g[0] = b;  //1 //1
            atomicExch(c, 0);
        }""",
    "flag_stored_relaxed": """
        if (t == 0 && b == 0) {
            g[0] = 1;  //1
            There(*c).store(1, cuda::memory_order_relaxed);
        }
        if (t == 0 && b > 0) {
            while (!There(*c).load(cuda::memory_order_acquire)) { }
            g[b] = g[0];  //1
        }""",
    "lanes_that_did_not_meet_before": """
        if (w == 0 && b == 0) {
            g[l] = l;  //1
            if (l == 0) SET(c)
        }
        if (w == 0 && b == 1) {
            if (l == 0) WAIT(c)
            __syncwarp();
            g[32 + l] = g[31 - l];  //1
        }""",
    "lanes_that_did_not_meet_behind": """
        if (w == 0 && b == 0) {
            g[l] = l;  //1
            __syncwarp();
            if (l == 0) SET(c)
        }
        if (w == 0 && b == 1) {
            if (l == 0) WAIT(c)
            g[32 + l] = g[31 - l];  //1
        }""",
    "overwritten_too_early": """
        if (t == 0 && b == 0) g[8] = g[0];  //1
        if (t == 0 && b == 1) g[0] = 1;  //1""",
    "numbers_drawn_do_not_order": """
        if (t == 0) {
            int k = atomicAdd(c, 1);
            if (k == 0) g[0] = 1;  //1
            if (k == 1) g[0] = 2;  //1
        }""",
}


def kernel(name: str, variants: dict[str, str]) -> str:
    """All variants: blocks 4 k … 4 k + 3 run the k-th."""
    cases = "\n".join(f"    if (variant == {k}) {{{body}\n    }}" for k, body in enumerate(variants.values()))
    return f"""extern "C" __global__ void {name}(int* out) {{
    __shared__ int s[32];
    int t = threadIdx.x, l = t % 32, w = t / 32;
    int b = blockIdx.x % {TOGETHER}, variant = blockIdx.x / {TOGETHER};
    int *g = out + {WORDS} * variant, *c = g + {WORDS - 16};
{cases}
}}
"""


SOURCE = HEAD + kernel("correct", CORRECT) + kernel("broken", BROKEN)
HANDOVERS = Handovers(SOURCE, CORRECT, BROKEN, "variant == {}", TOGETHER, WORDS, deadline=300.0)
