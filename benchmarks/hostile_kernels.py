"""Kernels that hang, fault, flood and waste, and what a check has to say of each; our own code.

A case's ``said`` is looked for in what a reader of the report sees; ``gpu`` where a GPU tells it in other
words. All run as ``k`` with made-up arguments.
"""

from __future__ import annotations

from attrs import frozen

ENDLESS = r"did not (finish before the deadline|end within)|wait(s)? for|never"
ENDS = r"race-free|racy|undecided"
OUTSIDE = r"out of bounds|outside"
FAULT = r"failed on the GPU|out of bounds|outside"


@frozen
class Case:
    """``source``: a whole file. ``said``: a pattern that the report has; ``gpu``: there, where it differs.

    ``quick``: a part of the short run. ``emulator``: it can run there.
    """

    name: str
    source: str
    said: str
    gpu: str = ""
    program: bool = False
    quick: bool = False
    emulator: bool = True
    card: bool = True

    def expected(self, engine: str) -> str:
        return self.gpu if self.gpu and engine == "gpu" else self.said


def _kernel(
    name: str,
    body: str,
    said: str,
    gpu: str = "",
    *,
    shape: str = "<<<1, 64>>>",
    params: str = "int* o",
    before: str = "",
    quick: bool = False,
    card: bool = True,
) -> Case:
    names = ", ".join(p.replace("*", " ").split()[-1] for p in params.split(","))
    source = (
        f"#include <cstdio>\n#include <cassert>\n{before}\n"
        f"__global__ void k({params}) {{\n    int t = threadIdx.x;\n    {body}\n}}\n"
        f"void run({params}) {{ k{shape}({names}); }}\n"
    )
    return Case(f"kernel: {name}", source, said, gpu, quick=quick, card=card)


_HANGING = (
    _kernel("polls a word", "while (((volatile int*)o)[0] < 1000) { }", ENDLESS, quick=True),
    _kernel("counts without end", "for (;;) atomicAdd(o, 1);", ENDLESS),
    _kernel("jumps back", "again: o[t] = ((volatile int*)o)[t] + 1; goto again;", ENDLESS),
    _kernel("fences without end", "do { o[t] = t; __threadfence(); } while (((volatile int*)o)[t] == t);", ENDLESS),
    _kernel("one thread never comes to the barrier", "if (t == 7) while (((volatile int*)o)[0] < 1000) { }\n __syncthreads();\n o[t] = t;", ENDLESS),
    _kernel("one lane never comes to the warp's barrier", "if (t == 7) while (((volatile int*)o)[0] < 1000) { }\n __syncwarp();\n o[t] = t;", ENDLESS),
    _kernel("a counter that wraps", "for (unsigned i = 0; i >= 0u; ++i) o[i % 64] = i;", ENDLESS),
    _kernel("waits for the clock", "long long end = clock64() + (1ll << 60); while (clock64() < end) { } o[t] = t;", ENDLESS),
    _kernel("sleeps without end", "while (((volatile int*)o)[0] < 1000) __nanosleep(1000000);", ENDLESS),
    _kernel("sleeps as long as it can", "for (int i = 0; i < 1000000; ++i) __nanosleep(0xffffffff); o[t] = t;", ENDLESS),
    _kernel("a lock that nobody releases", "while (atomicCAS(o, 0, 1) != 0) { } o[1] = t;", ENDLESS),
    _kernel("a lock inside a warp", "while (atomicCAS(o, 0, 1) != 0) { } o[1] += t; __threadfence(); __syncwarp(); atomicExch(o, 0);", ENDLESS),
    _kernel("two locks the wrong way round", "if (t == 0) { int a = blockIdx.x, b = 1 - a; while (atomicCAS(o + a, 0, 1)) { } for (int i = 0; i < 1000; ++i) __nanosleep(1000); while (atomicCAS(o + b, 0, 1)) { } }", ENDLESS, shape="<<<2, 32>>>"),
    _kernel("waits for a later block", "if (blockIdx.x == 0) while (((volatile int*)o)[0] < 1000) { } else o[t + 1] = t;", ENDLESS, shape="<<<8, 32>>>"),
    _kernel("a barrier of more blocks than fit", "if (t == 0) { atomicAdd(o, 1); while (atomicAdd(o, 0) < (int)gridDim.x) { } }", ENDLESS, shape="<<<1000000, 256>>>"),
    _kernel("a list that is a ring", "int i = t; while (i != -1) i = ((volatile int*)o)[i] & 63; o[t] = i;", ENDLESS),
    _kernel("2^60 rounds", "long long sum = 0; for (long long i = 0; i < 1ll << 30; ++i) for (long long j = 0; j < 1ll << 30; ++j) sum += ((volatile int*)o)[(i ^ j) & 63]; o[t] = sum;", ENDLESS),
    _kernel("a barrier without end", "for (;;) __syncthreads();", ENDLESS, quick=True),
    _kernel("a race in each round without end", "__shared__ int s[64]; for (int i = 0;; ++i) { s[t] = i; o[t] = s[63 - t]; __syncthreads(); }", ENDLESS + "|racy"),
    _kernel("100,000 rounds with a race each", "__shared__ int s[64]; for (int i = 0; i < 100000; ++i) { s[t] = i; o[t] = s[63 - t]; __syncthreads(); }", "racy", quick=True),
    _kernel("races of blocks without end", "for (int i = 0; i < 1 << 30; ++i) o[(t + i) & 1023] = blockIdx.x;", ENDLESS + "|racy", shape="<<<64, 256>>>"),
    _kernel("a storm of atomics", "for (long long i = 0; i < 1ll << 40; ++i) atomicAdd(o + (i & 7), t);", ENDLESS, shape="<<<256, 256>>>"),
    _kernel("a storm of compare and swap", "int seen = o[0]; for (;;) { int was = atomicCAS(o, seen, seen + 1); if (was == -1) break; seen = was; }", ENDLESS, shape="<<<64, 256>>>"),
    _kernel("a vote that nobody wins", "while (!__any_sync(0xffffffff, ((volatile int*)o)[0] > 1000)) { } o[t] = t;", ENDLESS),
    _kernel("half a warp waits for the other", "if (t % 32 < 16) __syncwarp(0xffffffff); else while (((volatile int*)o)[0] < 1000) { } o[t] = t;", ENDLESS),
    _kernel("a named barrier of too many", "asm volatile(\"bar.sync 1, 128;\" ::: \"memory\"); o[t] = t;", ENDLESS + "|barrier"),
    _kernel("a transaction barrier that nobody meets", "__shared__ __align__(8) unsigned long long b; unsigned p = (unsigned)__cvta_generic_to_shared(&b); if (t == 0) asm volatile(\"mbarrier.init.shared.b64 [%0], 1000;\" :: \"r\"(p)); __syncthreads(); unsigned done = 0; while (!done) asm volatile(\"{ .reg .pred q; mbarrier.test_wait.parity.shared.b64 q, [%1], 0; selp.u32 %0, 1, 0, q; }\" : \"=r\"(done) : \"r\"(p) : \"memory\"); o[t] = t;", ENDLESS),
    _kernel("a tail call without end", "go(o, t);", ENDLESS + "|recurs|stack|call", before="__device__ __noinline__ void go(int* o, int i) { o[i & 63] = i; if (o[0] < 1000) go(o, i + 1); }"),
    _kernel("recursion that eats its stack", "o[t] = deep(o, 1 << 30);", ENDLESS + "|recurs|stack|failed on the GPU|call", before="__device__ __noinline__ int deep(int* o, int n) { volatile int a[64]; a[n & 63] = n; return n ? deep(o, n - 1) + a[(n + 1) & 63] : o[0]; }"),
    _kernel("mutual recursion", "o[t] = even(o[t]);", ENDLESS + "|recurs|stack|failed on the GPU|call", before="__device__ int odd(int); __device__ __noinline__ int even(int n) { return odd(n + 1) + 1; } __device__ __noinline__ int odd(int n) { return n == -5 ? 0 : even(n + 1) + 2; }"),
)  # fmt: skip

_BARRIERS = (
    _kernel("half the block leaves before the barrier", "if (t < 32) return; __syncthreads(); o[t] = t;", ENDS),
    _kernel("half a warp leaves before the barrier", "if (t < 16) return; __syncthreads(); o[t] = t;", ENDS + "|barrier"),
    _kernel("other barriers in each branch", "if (t < 32) __syncthreads(); else { __syncthreads(); __syncthreads(); } o[t] = t;", "barrier|" + ENDLESS, quick=True),
    _kernel("a barrier as often as the thread's number", "for (int i = 0; i < t; ++i) __syncthreads(); o[t] = t;", "barrier|" + ENDLESS),
    _kernel("a barrier of one warp and a loop of the other", "if (t < 32) __syncthreads(); else while (((volatile int*)o)[0] < 1000) { } o[t] = t;", "barrier|" + ENDLESS),
    _kernel("threads exit on the way", "if (t & 1) asm volatile(\"exit;\"); __syncthreads(); o[t] = t;", "barrier|" + ENDS),
    _kernel("a vote of those that left", "if (t < 16) return; o[t] = __ballot_sync(0xffffffff, 1);", ENDS + "|barrier"),
)  # fmt: skip

_OUTSIDE = (
    _kernel("just behind its buffer", "o[64 + t] = t; o[n] = 1;", ENDS, params="int* o, int n"),
    _kernel("far behind its buffer", "o[(1ll << 33) + t] = t;", OUTSIDE, quick=True),
    _kernel("far before its buffer", "o[-(1ll << 33) - t] = t;", OUTSIDE),
    _kernel("through null", "int* p = nullptr; if (o[0] < 1000) p[t] = t;", OUTSIDE + "|null"),
    _kernel("through a wild pointer", "*(int*)(0xdeadbeef0000ull + 4 * t) = t;", OUTSIDE),
    _kernel("through an address of no space", "*(int*)(0x7fffffffffff0000ull + 4 * t) = t;", OUTSIDE),
    _kernel("through pointers of chance", "unsigned long long x = t + 88172645463325252ull; for (int i = 0; i < 100; ++i) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; *(volatile char*)x = 1; }", OUTSIDE),
    _kernel("an atomic in the wild", "atomicAdd((int*)0x123456780000ull, 1);", OUTSIDE),
    _kernel("not aligned", "*(int*)((char*)o + 4 * t + 1) = t;", "misaligned|aligned|multiple", quick=True),
    _kernel("a vector that is not aligned", "((float4*)(o + 1))[t] = make_float4(1, 2, 3, 4);", "misaligned|aligned|multiple"),
    _kernel("far behind shared memory", "__shared__ int s[64]; s[t] = t; __syncthreads(); s[t + (1 << 26)] = s[63 - t]; o[t] = s[t];", OUTSIDE),
    _kernel("before shared memory", "__shared__ int s[64]; s[t] = t; __syncthreads(); s[t - (1 << 16)] = 1; o[t] = s[t];", OUTSIDE),
    _kernel("behind a local array", "volatile int a[16]; for (int i = 0; i < 16; ++i) a[i] = i; a[(o[t] & 63) + (1 << 20)] = 1; o[t] = a[t & 15];", OUTSIDE + "|" + ENDS),
    _kernel("behind constant memory", "o[t] = table[t + (1 << 24)];", OUTSIDE, before="__constant__ int table[64];"),
    _kernel("a null function", "F f = (F)(size_t)(o[0] & 0); f(o);", "function|failed on the GPU|call", before="typedef void (*F)(int*);"),
    _kernel("a wild function", "F f = (F)(size_t)(0x123456789ull + (o[0] & 1)); f(o);", "function|failed on the GPU|call", before="typedef void (*F)(int*);"),
    _kernel("on and on behind its buffer", "for (long long i = t;; i += 64) o[i << 20] = 1;", OUTSIDE + "|" + ENDLESS),
    _kernel("freed twice", "int* p = (int*)malloc(64); if (p) { free(p); free(p); o[t] = p[0]; }", ENDS + "|" + FAULT),
    _kernel("freed without being allocated", "free(o + 1); free((void*)0x1234); o[t] = t;", ENDS + "|" + FAULT),
    _kernel("a copy into nowhere", "__shared__ int s[64]; unsigned p = (unsigned)__cvta_generic_to_shared(s) + (1u << 28); asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4; cp.async.wait_all;\" :: \"r\"(p), \"l\"(o + t) : \"memory\"); __syncthreads(); o[t] = s[t];", OUTSIDE + "|failed on the GPU"),
    _kernel("a matrix from nowhere", "unsigned a, p = (1u << 28) + 16 * (t & 31); asm volatile(\"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];\" : \"=r\"(a) : \"r\"(p)); o[t] = a;", OUTSIDE + "|failed on the GPU"),
    _kernel("a texture that is none", "o[t] = tex1Dfetch<int>((cudaTextureObject_t)0x1234567890ull, t);", "texture|not bound|failed on the GPU|" + ENDS),
    _kernel("a surface that is none", "surf1Dwrite(t, (cudaSurfaceObject_t)0x1234567890ull, 4 * t);", "surface|not bound|failed on the GPU|" + ENDS),
)  # fmt: skip

_ENDING = (
    _kernel("a trap", "if (t == 5) __trap(); o[t] = t;", "trap|failed on the GPU", quick=True),
    _kernel("a trap after a barrier", "__shared__ int s[64]; s[t] = t; __syncthreads(); if (s[63 - t] == 5) __trap(); o[t] = t;", "trap|failed on the GPU"),
    _kernel("an assertion", "assert(t < 5); o[t] = t;", "[Aa]ssert", quick=True),
    _kernel("an assertion of every thread of a large grid", "assert(o[t & 15] == -12345);", "[Aa]ssert", shape="<<<4096, 256>>>"),
    _kernel("a breakpoint", "__brkpt(); o[t] = t;", "brkpt|breakpoint|failed on the GPU|" + ENDS),
    _kernel("divides by nothing", "o[t] = o[t] / (t >> 10) + o[t] % (t >> 10);", ENDS),
)  # fmt: skip

_FLOODS = (
    _kernel("prints without end", "for (;;) printf(\"%d and on and on and on and on and on and on\\n\", t);", ENDLESS, quick=True),
    _kernel("prints ten million lines", "for (int i = 0; i < 10000; ++i) printf(\"line %d of thread %d\\n\", i, t);", ENDLESS + "|" + ENDS, shape="<<<4, 256>>>"),
    _kernel("prints a wild string", "printf(\"%s\\n\", (const char*)0x123456780000ull); o[t] = t;", ENDS + "|" + FAULT),
    _kernel("prints through a wild format", "printf((const char*)(size_t)(o[0] & 0)); o[t] = t;", ENDS + "|" + FAULT),
    _kernel("takes the device's heap", "int n = 0; while (int* p = (int*)malloc(1 << 16)) { p[0] = t; ++n; } o[t] = n;", ENDS + "|" + ENDLESS),
    _kernel("takes the device's heap and does not look", "for (int i = 0; i < 10000; ++i) { int* p = (int*)malloc(1 << 20); p[t] = i; }", OUTSIDE + "|" + FAULT + "|" + ENDLESS),
    _kernel("new without end", "for (;;) { int* p = new int[1000]; if (p) p[t] = t; }", ENDLESS + "|" + FAULT),
    _kernel("large local memory", "volatile char a[200000]; for (int i = 0; i < 200000; i += 4096) a[i] = i; o[t] = a[(o[t] & 15) << 12];", ENDS + "|MiB|memory|" + ENDLESS, shape="<<<1024, 1024>>>"),
    _kernel("more local memory than a thread has", "volatile char a[1 << 24]; for (int i = 0; i < 1 << 24; i += 4096) a[i] = i; o[t] = a[(o[t] & 15) << 12];", "local|memory|MiB|stack|does not compile|assembled|" + ENDS),
    _kernel("more shared memory than a block has", "__shared__ char s[1 << 20]; s[t] = t; __syncthreads(); o[t] = s[63 - t];", "shared"),
    _kernel("more dynamic shared memory than there is", "extern __shared__ int s[]; s[t] = t; __syncthreads(); o[t] = s[63 - t];", "shared", shape="<<<1, 64, 1 << 30>>>"),
    _kernel("the largest grid", "o[t] = t;", ENDS + "|blocks", shape="<<<2147483647, 1024>>>"),
    _kernel("the deepest grid", "o[t] = t;", ENDS + "|blocks", shape="<<<dim3(2147483647, 65535, 65535), 1024>>>"),
    _kernel("a grid larger than the largest", "o[t] = t;", "grid|launch|blocks|" + ENDS, shape="<<<dim3(1u << 31, 1 << 20, 1 << 20), 32>>>"),
    _kernel("no blocks", "o[t] = t;", "grid|launch|blocks|" + ENDS, shape="<<<0, 32>>>"),
    _kernel("a block of too many threads", "o[t] = t;", "thread|block", shape="<<<1, 4096>>>"),
    _kernel("a block of 2^90 threads", "o[t] = t;", "thread|block", shape="<<<1, dim3(1u << 30, 1u << 30, 1u << 30)>>>"),
    _kernel("numbers that nothing holds", "o[t] = t;", "launch|block|thread|" + ENDS, shape="<<<99999999999999999999999999999, 1ull << 63>>>"),
    _kernel("a scalar that asks for everything", "for (long long i = 0; i < n; ++i) o[i * n] = i;", ENDS + "|" + OUTSIDE + "|" + ENDLESS, params="int* o, long long n"),
    _kernel("touches a terabyte", "for (long long i = t; i < 1ll << 38; i += 64) o[i] = 1;", OUTSIDE + "|" + ENDLESS),
    _kernel("launches kernels from the device", "if (t == 0) k<<<1, 64>>>(o);", "launch|device code|does not compile|rdc|parallelism"),
    _kernel("an instruction that does not exist", "asm volatile(\"fly.to.the.moon %0;\" :: \"r\"(t)); o[t] = t;", "compile|assembl|fly|instruction|error"),
    _kernel("does not compile", "this is no code;", "error|undeclared|identifier|compile"),
    _kernel("includes what is not there", "o[t] = t;", "nowhere.h|file not found|could not open|compile", before="#include \"nowhere.h\""),
    _kernel("a template without end", "o[t] = N<1>::v;", "templat|recurs|compile|depth|error", before="template <int n> struct N { enum { v = N<n + 1>::v }; };"),
)  # fmt: skip

KERNELS = (*_HANGING, *_BARRIERS, *_OUTSIDE, *_ENDING, *_FLOODS)
