// A second opinion on generated kernels: CUDA's words as plain C++, every CUDA thread a thread of the host.
// Definitions follow the CUDA programming guide and the PTX ISA; blocks run one after the other.
#pragma once
#include <algorithm>
#include <atomic>
#include <cfenv>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector_types.h>

#undef __noinline__
#define DEV static inline
#define __global__
#define __device__
#define __shared__ static
#define __noinline__ __attribute__((noinline))
using std::max;
using std::min;

struct Place { unsigned x; };
static thread_local Place threadIdx, blockIdx;
static Place blockDim, gridDim;

// ------------------------------------------------------------------------------------------ meeting

struct Meeting {  // of so many threads; the last one to come does the work, then all go on
    std::mutex lock;
    std::condition_variable gate;
    unsigned expected, here = 0;
    unsigned long long round = 0;
    explicit Meeting(unsigned n) : expected(n) {}
    void meet(const std::function<void()>& work) {
        std::unique_lock<std::mutex> held(lock);
        if (++here == expected) {
            work();
            here = 0;
            ++round;
            gate.notify_all();
            return;
        }
        unsigned long long mine = round;
        gate.wait(held, [&] { return round != mine; });
    }
};

struct Warp {
    unsigned long long value[32];
    unsigned ballot, found[32];
};
static Meeting* whole;
static int counted, counts[3];
static Warp warps[32];
static std::mutex warp_lock;
static std::map<std::pair<unsigned, unsigned>, Meeting*> groups;  // (warp, mask)

static unsigned lane() { return threadIdx.x & 31; }
static Warp& warp() { return warps[threadIdx.x >> 5]; }

static void together(unsigned mask, const std::function<void()>& work) {
    unsigned last = blockDim.x - (threadIdx.x & ~31u);
    mask &= last >= 32 ? ~0u : (1u << last) - 1;
    Meeting* group;
    {
        std::lock_guard<std::mutex> held(warp_lock);
        Meeting*& found = groups[{threadIdx.x >> 5, mask}];
        if (!found) found = new Meeting(__builtin_popcount(mask));
        group = found;
    }
    group->meet(work);
}

static void __syncthreads() {
    whole->meet([] {});
}
static int __syncthreads_count(int p) {
    __atomic_fetch_add(&counts[0], p != 0, __ATOMIC_SEQ_CST);
    whole->meet([] { counted = counts[0]; counts[0] = 0; });
    int result = counted;
    whole->meet([] {});
    return result;
}
static int __syncthreads_and(int p) { return __syncthreads_count(p) == (int)blockDim.x; }
static int __syncthreads_or(int p) { return __syncthreads_count(p) != 0; }
static void __syncwarp(unsigned mask = ~0u) {
    together(mask, [] {});
}

template <class T> static std::vector<T> gathered(unsigned mask, T value) {
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof value);
    warp().value[lane()] = bits;
    together(mask, [] {});
    std::vector<T> all(32);
    for (unsigned k = 0; k < 32; ++k) memcpy((void*)&all[k], &warp().value[k], sizeof(T));
    together(mask, [] {});
    return all;
}
template <class T> static T __shfl_sync(unsigned m, T v, int from, int width = 32) {
    return gathered(m, v)[(lane() & ~(width - 1)) | (from & (width - 1))];
}
template <class T> static T __shfl_xor_sync(unsigned m, T v, int by, int width = 32) {
    unsigned from = lane() ^ by;
    std::vector<T> all = gathered(m, v);
    return from > (lane() | (width - 1)) ? v : all[from];
}
template <class T> static T __shfl_up_sync(unsigned m, T v, unsigned by, int width = 32) {
    std::vector<T> all = gathered(m, v);
    return (lane() & (width - 1)) < by ? v : all[lane() - by];
}
template <class T> static T __shfl_down_sync(unsigned m, T v, unsigned by, int width = 32) {
    std::vector<T> all = gathered(m, v);
    return (lane() & (width - 1)) + by >= (unsigned)width ? v : all[lane() + by];
}
template <class T, class F> static T folded(unsigned m, T v, F f) {
    std::vector<T> all = gathered(m, v);
    T total{};
    bool first = true;
    for (unsigned k = 0; k < 32; ++k)
        if (m >> k & 1) total = first ? all[k] : f(total, all[k]), first = false;
    return total;
}
#define FOLD(name, expression) \
    template <class T> static T name(unsigned m, T v) { return folded(m, v, [](T a, T b) { return (T)(expression); }); }
FOLD(__reduce_add_sync, (unsigned)a + (unsigned)b)
FOLD(__reduce_min_sync, b < a ? b : a)
FOLD(__reduce_max_sync, a < b ? b : a)
FOLD(__reduce_and_sync, a & b)
FOLD(__reduce_or_sync, a | b)
FOLD(__reduce_xor_sync, a ^ b)
static unsigned __ballot_sync(unsigned m, int p) {
    return __reduce_or_sync(m, p ? 1u << lane() : 0u);
}
static int __any_sync(unsigned m, int p) { return __ballot_sync(m, p) != 0; }
static int __all_sync(unsigned m, int p) { return __ballot_sync(m, p) == m; }
template <class T> static unsigned __match_any_sync(unsigned m, T v) {
    std::vector<T> all = gathered(m, v);
    unsigned found = 0;
    for (unsigned k = 0; k < 32; ++k)
        if (m >> k & 1 && all[k] == v) found |= 1u << k;
    return found;
}
template <class T> static unsigned __match_all_sync(unsigned m, T v, int* same) {
    *same = __match_any_sync(m, v) == m;
    return *same ? m : 0;
}

// ------------------------------------------------------------------------------------------ atomics

static std::mutex atomic_lock;
#define ATOMIC(name, expression)                            \
    template <class T> static T name(T* p, T v) {           \
        std::lock_guard<std::mutex> held(atomic_lock);      \
        T a = *p;                                           \
        *p = (T)(expression);                               \
        return a;                                           \
    }
ATOMIC(atomicAdd, a + v)
ATOMIC(atomicSub, a - v)
ATOMIC(atomicMin, v < a ? v : a)
ATOMIC(atomicMax, a < v ? v : a)
ATOMIC(atomicAnd, a & v)
ATOMIC(atomicOr, a | v)
ATOMIC(atomicXor, a ^ v)
ATOMIC(atomicExch, v)
ATOMIC(atomicInc, a >= v ? 0 : a + 1)
ATOMIC(atomicDec, a == 0 || a > v ? v : a - 1)
template <class T> static T atomicCAS(T* p, T old, T v) {
    std::lock_guard<std::mutex> held(atomic_lock);
    T a = *p;
    if (a == old) *p = v;
    return a;
}
static void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
static void __threadfence_block() { __threadfence(); }

// ----------------------------------------------------------------------------------------- integers

template <class To, class From> static To bits_as(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static int __ffs(int x) { return __builtin_ffs(x); }
static int __ffsll(long long x) { return __builtin_ffsll(x); }
static unsigned long long __brevll(unsigned long long x) {
    unsigned long long y = 0;
    for (int k = 0; k < 64; ++k) y |= (x >> k & 1) << (63 - k);
    return y;
}
static unsigned __brev(unsigned x) { return (unsigned)(__brevll(x) >> 32); }
static int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static int low24(int x) { return (int)((unsigned)x << 8) >> 8; }
static int __mul24(int a, int b) { return (int)((long long)low24(a) * low24(b)); }
static unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
static unsigned nibbles(unsigned a, unsigned b, unsigned s, bool signs) {
    unsigned long long both = (unsigned long long)b << 32 | a;
    unsigned d = 0;
    for (int k = 0; k < 4; ++k) {
        unsigned n = s >> 4 * k & (signs ? 15 : 7), byte = (unsigned)(both >> 8 * (n & 7)) & 255;
        if (n & 8) byte = byte & 128 ? 255 : 0;
        d |= byte << 8 * k;
    }
    return d;
}
static unsigned __byte_perm(unsigned a, unsigned b, unsigned s) { return nibbles(a, b, s, false); }
static unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) {
    n &= 31;
    return n ? hi << n | lo >> (32 - n) : hi;
}
static unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) {
    n &= 31;
    return n ? lo >> n | hi << (32 - n) : lo;
}
static unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned n) { return n >= 32 ? lo : __funnelshift_l(lo, hi, n); }
static unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned n) { return n >= 32 ? hi : __funnelshift_r(lo, hi, n); }
template <class S, int N, class T> static long long piece(T x, int k) { return (S)(x >> N * k); }
static int __dp4a(int a, int b, int c) {
    long long t = c;
    for (int k = 0; k < 4; ++k) t += piece<signed char, 8>(a, k) * piece<signed char, 8>(b, k);
    return (int)t;
}
static unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    long long t = c;
    for (int k = 0; k < 4; ++k) t += piece<unsigned char, 8>(a, k) * piece<unsigned char, 8>(b, k);
    return (unsigned)t;
}
static int __dp2a_lo(int a, int b, int c) {
    return (int)(c + piece<short, 16>(a, 0) * piece<signed char, 8>(b, 0) + piece<short, 16>(a, 1) * piece<signed char, 8>(b, 1));
}
static unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) {
    return (unsigned)(c + piece<unsigned short, 16>(a, 0) * piece<unsigned char, 8>(b, 2) +
                      piece<unsigned short, 16>(a, 1) * piece<unsigned char, 8>(b, 3));
}
static unsigned __sad(int a, int b, unsigned c) { return c + (unsigned)(a > b ? (long long)a - b : (long long)b - a); }
static unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
static int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
static int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
static unsigned __uhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b) >> 1); }
static unsigned __urhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b + 1) >> 1); }
template <class S, int N, class F> static unsigned each(unsigned a, unsigned b, F f) {
    unsigned d = 0, m = N == 8 ? 255 : 65535;
    for (int k = 0; k < 32 / N; ++k) d |= ((unsigned)f(piece<S, N>(a, k), piece<S, N>(b, k)) & m) << N * k;
    return d;
}
#define SIMD(name, S, N, expression) \
    static unsigned name(unsigned a, unsigned b) { return each<S, N>(a, b, [](long long x, long long y) { return expression; }); }
SIMD(__vadd4, unsigned char, 8, x + y)
SIMD(__vsub2, unsigned short, 16, x - y)
SIMD(__vabsdiffu4, unsigned char, 8, x > y ? x - y : y - x)
SIMD(__vabsdiffs2, short, 16, x > y ? x - y : y - x)
SIMD(__vmaxs2, short, 16, x > y ? x : y)
SIMD(__vminu4, unsigned char, 8, x < y ? x : y)
SIMD(__vcmpgtu4, unsigned char, 8, x > y ? -1 : 0)
SIMD(__vcmpeq2, unsigned short, 16, x == y ? -1 : 0)
SIMD(__vavgu4, unsigned char, 8, (x + y + 1) >> 1)
SIMD(__vaddss2, short, 16, x + y > 32767 ? 32767 : x + y < -32768 ? -32768 : x + y)
SIMD(__vsubus4, unsigned char, 8, x > y ? x - y : 0)
static unsigned __vsadu4(unsigned a, unsigned b) {
    unsigned t = 0;
    for (int k = 0; k < 4; ++k) t += std::abs((int)(a >> 8 * k & 255) - (int)(b >> 8 * k & 255));
    return t;
}

template <class T> static T field(T x, unsigned at, unsigned count) {
    const int width = sizeof(T) * 8;
    at &= 255, count &= 255;
    T d = 0;
    bool top = false;
    if ((T)-1 < (T)0 && count) {
        unsigned k = at + count - 1;
        top = x >> (k > width - 1u ? width - 1 : k) & 1;
    }
    for (int k = 0; k < width; ++k) {
        bool bit = (unsigned)k < count && at + k < (unsigned)width ? (x >> (at + k) & 1) : top;
        if (bit) d |= (T)((unsigned long long)1 << k);
    }
    return d;
}
static unsigned bfe_u32(unsigned x, unsigned a, unsigned n) { return field(x, a, n); }
static int bfe_s32(int x, unsigned a, unsigned n) { return field(x, a, n); }
static unsigned long long bfe_u64(unsigned long long x, unsigned a, unsigned n) { return field(x, a, n); }
static long long bfe_s64(long long x, unsigned a, unsigned n) { return field(x, a, n); }
template <class T> static T insert(T a, T b, unsigned at, unsigned n) {
    at &= 255, n &= 255;
    for (unsigned k = 0; k < n && at + k < sizeof(T) * 8; ++k) {
        T one = (T)1 << (at + k);
        b = a >> k & 1 ? b | one : b & ~one;
    }
    return b;
}
static unsigned bfi_b32(unsigned a, unsigned b, unsigned at, unsigned n) { return insert(a, b, at, n); }
static unsigned long long bfi_b64(unsigned long long a, unsigned long long b, unsigned at, unsigned n) { return insert(a, b, at, n); }
static unsigned bytes_at(unsigned a, unsigned b, const int (&table)[4][4], unsigned s) {
    unsigned selector = 0;
    for (int k = 0; k < 4; ++k) selector |= (unsigned)table[s & 3][k] << 4 * k;
    return nibbles(a, b, selector, false);
}
static unsigned prmt_f4e(unsigned a, unsigned b, unsigned s) {
    return bytes_at(a, b, {{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}}, s);
}
static unsigned prmt_b4e(unsigned a, unsigned b, unsigned s) {
    return bytes_at(a, b, {{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}}, s);
}
static unsigned prmt_rc8(unsigned a, unsigned b, unsigned s) {
    return bytes_at(a, b, {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}, s);
}
static unsigned prmt_ecl(unsigned a, unsigned b, unsigned s) {
    return bytes_at(a, b, {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}}, s);
}
static unsigned prmt_ecr(unsigned a, unsigned b, unsigned s) {
    return bytes_at(a, b, {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}}, s);
}
static unsigned prmt_rc16(unsigned a, unsigned b, unsigned s) {
    return bytes_at(a, b, {{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}}, s);
}
static unsigned mad_hi_u32(unsigned a, unsigned b, unsigned c) { return __umulhi(a, b) + c; }
static unsigned mul24_hi_mad(unsigned a, unsigned b, unsigned c) {
    return (unsigned)((unsigned long long)(a & 0xffffff) * (b & 0xffffff) >> 16) + c;
}
static unsigned lop3_96(unsigned a, unsigned b, unsigned c) { return a ^ b ^ c; }
static unsigned lop3_ca(unsigned a, unsigned b, unsigned c) { return (a & b) | (~a & c); }
static unsigned fns_b32(unsigned mask, unsigned base, int n) {
    int at = base & 31;
    if (n == 0) return mask >> at & 1 ? at : ~0u;
    for (int left = n > 0 ? n : -n; at >= 0 && at < 32; at += n > 0 ? 1 : -1)
        if (mask >> at & 1 && --left == 0) return at;
    return ~0u;
}
static unsigned bfind_u32(unsigned a) { return a ? 31 - __builtin_clz(a) : ~0u; }
static unsigned bfind_s32(int a) { return bfind_u32(a < 0 ? ~a : a); }
static unsigned bfind_s64(long long a) {
    if (a < 0) a = ~a;
    return a ? 63 - __builtin_clzll(a) : ~0u;
}
static unsigned bfind_amount(unsigned a) { return a ? __builtin_clz(a) : ~0u; }
static unsigned bmsk_clamp(unsigned a, unsigned b) {
    unsigned long long ones = b >= 32 ? 0xffffffffull : (1ull << b) - 1;
    return a >= 32 ? 0 : (unsigned)(ones << a);
}
static int szext_clamp(int a, unsigned b) {
    return b >= 32 ? a : b == 0 ? 0 : (int)((unsigned)a << (32 - b)) >> (32 - b);
}
static int clamped(long long x) { return x > 2147483647ll ? 2147483647 : x < -2147483648ll ? (int)0x80000000 : (int)x; }
static int add_sat(int a, int b) { return clamped((long long)a + b); }
static int sub_sat(int a, int b) { return clamped((long long)a - b); }
static int mad_hi_sat(int a, int b, int c) { return clamped((long long)__mulhi(a, b) + c); }
static int slct_s32(int a, int b, float c) { return c >= 0 ? a : b; }
static unsigned long long add_carry(unsigned long long a, unsigned long long b) { return a + b; }
static unsigned long long sub_borrow(unsigned long long a, unsigned long long b) { return a - b; }
static unsigned char sat_u8(int a) { return a < 0 ? 0 : a > 255 ? 255 : a; }
static signed char sat_s8(int a) { return a < -128 ? -128 : a > 127 ? 127 : a; }
static unsigned short sat_u16(long long a) { return a < 0 ? 0 : a > 65535 ? 65535 : a; }
static int sat_s32(unsigned long long a) { return a > 2147483647ull ? 2147483647 : (int)a; }

// -------------------------------------------------------------------------------- floating point

static unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
static int __float_as_int(float x) { return bits_as<int>(x); }
static float __uint_as_float(unsigned x) { return bits_as<float>(x); }
static float __int_as_float(int x) { return bits_as<float>(x); }
static long long __double_as_longlong(double x) { return bits_as<long long>(x); }
static double __longlong_as_double(long long x) { return bits_as<double>(x); }
static int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
static int __double2loint(double x) { return (int)__double_as_longlong(x); }

struct Rounding {
    int before = fegetround();
    explicit Rounding(int mode) { fesetround(mode); }
    ~Rounding() { fesetround(before); }
};
template <class T> static T kept(T x) { volatile T y = x; return y; }  // not moved across a change of rounding
#define MODES(X) X(rn, FE_TONEAREST) X(rz, FE_TOWARDZERO) X(rd, FE_DOWNWARD) X(ru, FE_UPWARD)
#define ROUNDED(name, mode, T, parameters, expression) \
    __attribute__((noinline)) static T name parameters { Rounding r(mode); return kept<T>(expression); }
#define X(m, fe)                                                                                       \
    ROUNDED(__fadd_##m, fe, float, (float a, float b), kept(a) + kept(b))                              \
    ROUNDED(__fsub_##m, fe, float, (float a, float b), kept(a) - kept(b))                              \
    ROUNDED(__fmul_##m, fe, float, (float a, float b), kept(a) * kept(b))                              \
    ROUNDED(__fdiv_##m, fe, float, (float a, float b), kept(a) / kept(b))                              \
    ROUNDED(__frcp_##m, fe, float, (float a), 1.0f / kept(a))                                          \
    ROUNDED(__fsqrt_##m, fe, float, (float a), std::sqrt(kept(a)))                                     \
    ROUNDED(__fmaf_##m, fe, float, (float a, float b, float c), std::fma(kept(a), kept(b), kept(c)))   \
    ROUNDED(__dadd_##m, fe, double, (double a, double b), kept(a) + kept(b))                           \
    ROUNDED(__dsub_##m, fe, double, (double a, double b), kept(a) - kept(b))                           \
    ROUNDED(__dmul_##m, fe, double, (double a, double b), kept(a) * kept(b))                           \
    ROUNDED(__ddiv_##m, fe, double, (double a, double b), kept(a) / kept(b))                           \
    ROUNDED(__drcp_##m, fe, double, (double a), 1.0 / kept(a))                                         \
    ROUNDED(__dsqrt_##m, fe, double, (double a), std::sqrt(kept(a)))                                   \
    ROUNDED(__fma_##m, fe, double, (double a, double b, double c), std::fma(kept(a), kept(b), kept(c))) \
    ROUNDED(__double2float_##m, fe, float, (double a), (float)kept(a))                                 \
    ROUNDED(__int2float_##m, fe, float, (int a), (float)kept(a))                                       \
    ROUNDED(__uint2float_##m, fe, float, (unsigned a), (float)kept(a))                                 \
    ROUNDED(__ll2float_##m, fe, float, (long long a), (float)kept(a))                                  \
    ROUNDED(__ull2float_##m, fe, float, (unsigned long long a), (float)kept(a))                        \
    ROUNDED(__ll2double_##m, fe, double, (long long a), (double)kept(a))                               \
    ROUNDED(__ull2double_##m, fe, double, (unsigned long long a), (double)kept(a))
MODES(X)
#undef X
template <class T, class F> __attribute__((noinline)) static T saturated(F x, int mode) {
    if (x != x) return sizeof(F) == 8 || sizeof(T) == 8 ? (T)((T)1 << (sizeof(T) * 8 - 1)) : (T)0;
    Rounding r(mode);
    F y = std::nearbyint(kept(x));
    F top = std::ldexp((F)1, sizeof(T) * 8 - ((T)-1 < (T)0));
    if (y >= top) return (T)-1 < (T)0 ? (T) ~((T)1 << (sizeof(T) * 8 - 1)) : (T)-1;
    if ((T)-1 < (T)0 ? y < -top : y < 0) return (T)-1 < (T)0 ? (T)((T)1 << (sizeof(T) * 8 - 1)) : (T)0;
    return (T)y;
}
#define X(m, fe)                                                                                     \
    static int __float2int_##m(float x) { return saturated<int>(x, fe); }                            \
    static unsigned __float2uint_##m(float x) { return saturated<unsigned>(x, fe); }                 \
    static long long __float2ll_##m(float x) { return saturated<long long>(x, fe); }                 \
    static unsigned long long __float2ull_##m(float x) { return saturated<unsigned long long>(x, fe); } \
    static int __double2int_##m(double x) { return saturated<int>(x, fe); }                          \
    static unsigned __double2uint_##m(double x) { return saturated<unsigned>(x, fe); }               \
    static long long __double2ll_##m(double x) { return saturated<long long>(x, fe); }               \
    static unsigned long long __double2ull_##m(double x) { return saturated<unsigned long long>(x, fe); }
MODES(X)
#undef X
static float __saturatef(float x) { return x != x ? 0.f : x < 0 ? 0.f : x > 1 ? 1.f : x + 0.f; }
template <class T> static T smaller(T a, T b) {
    if (a != a) return b;
    if (b != b) return a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T> static T larger(T a, T b) { return -smaller<T>(-a, -b); }
#define fminf smaller<float>
#define fmaxf larger<float>
#define fmin smaller<double>
#define fmax larger<double>
static float add_sat(float a, float b) { return __saturatef(a + b); }
static float min_nan(float a, float b) { return a != a || b != b ? NAN : smaller(a, b); }
static float max_nan(float a, float b) { return a != a || b != b ? NAN : larger(a, b); }
static float flushed(float x) { return std::fabs(x) < 1.17549435e-38f ? std::copysign(0.f, x) : x; }
static float add_ftz(float a, float b) { return flushed(flushed(a) + flushed(b)); }
static float mul_ftz(float a, float b) { return flushed(flushed(a) * flushed(b)); }
static float set_f32(float a, float b) { return a <= b ? 0.f : 1.f; }

// ---------------------------------------------------------------------------------- 16-bit floats

// Round to ``bits`` bits of fraction and an exponent of at least ``least``; ``most``: the largest number.
__attribute__((noinline)) static float narrowed(long double x, int bits, int least, float most, int mode) {
    if (x != x || x == 0 || std::isinf(x)) return (float)x;
    Rounding r(mode);
    int e = std::max(std::ilogb(x), least) - bits;
    long double y = std::ldexp(std::nearbyint(kept(std::ldexp(x, -e))), e);
    if (std::fabs(y) <= most) return std::copysign((float)y, (float)x);
    bool inwards = mode == FE_TOWARDZERO || (mode == FE_DOWNWARD ? y > 0 : mode == FE_UPWARD && y < 0);
    return std::copysign(inwards ? most : INFINITY, (float)x);
}
static float narrow_h16(long double x, int mode) { return narrowed(x, 10, -14, 65504.f, mode); }
static float narrow_b16(long double x, int mode) { return narrowed(x, 7, -126, 3.3895313892515355e38f, mode); }
static float wide(__half x) { return __half2float(x); }
static float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
static void fit(__half& x, long double y) { x = __float2half_rn(narrow_h16(y, FE_TONEAREST)); }
static void fit(__nv_bfloat16& x, long double y) { x = __float2bfloat16_rn(narrow_b16(y, FE_TONEAREST)); }
template <class H> static float fused(H a, H b, H c) {
    long double p = (long double)wide(a) * wide(b), q = wide(c);
    if (p == p && q == q && p != 0 && q != 0 && !std::isinf(p) && !std::isinf(q)) {  // far smaller: only its sign counts
        if (std::fabs(p) > std::ldexp(std::fabs(q), 41)) q = std::copysign(std::ldexp(p, -41), q);
        if (std::fabs(q) > std::ldexp(std::fabs(p), 41)) p = std::copysign(std::ldexp(q, -41), p);
    }
    H x;
    fit(x, p + q);
    return wide(x);
}
template <class H> static H held(float x) { H y; fit(y, x); return y; }
template <class H> static H __hfma(H a, H b, H c) { return held<H>(fused(a, b, c)); }
template <class H> static H __hfma_sat(H a, H b, H c) { return held<H>(__saturatef(fused(a, b, c))); }
template <class H> static H __hfma_relu(H a, H b, H c) {
    float x = fused(a, b, c);
    return held<H>(x != x ? x : larger(x, 0.f));
}
static __half2 both(__half a, __half b) { return __halves2half2(a, b); }
static __nv_bfloat162 both(__nv_bfloat16 a, __nv_bfloat16 b) { return __halves2bfloat162(a, b); }
static __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return both(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }
static __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
    return both(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
template <class P> static P __hfma2_sat(P a, P b, P c) {
    return both(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y));
}
template <class P> static P __hfma2_relu(P a, P b, P c) {
    return both(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y));
}
template <class H> static H hfloor(H a) { return held<H>(std::floor(wide(a))); }
template <class H> static H hceil(H a) { return held<H>(std::ceil(wide(a))); }
template <class H> static H htrunc(H a) { return held<H>(std::trunc(wide(a))); }
template <class H> static H hrint(H a) { return held<H>(std::nearbyint(wide(a))); }
#define X(m, fe)                                                                                       \
    static int half2int_##m(__half x) { return saturated<int>(wide(x), fe); }                          \
    static unsigned half2uint_##m(__half x) { return saturated<unsigned>(wide(x), fe); }               \
    static short half2short_##m(__half x) { return saturated<short>(wide(x), fe); }                    \
    static __half int2half_##m(int x) { return held<__half>(narrow_h16(x, fe)); }                      \
    static __half uint2half_##m(unsigned x) { return held<__half>(narrow_h16(x, fe)); }                \
    static __half short2half_##m(short x) { return held<__half>(narrow_h16(x, fe)); }                  \
    static __half ull2half_##m(unsigned long long x) { return held<__half>(narrow_h16(x, fe)); }       \
    static __half float2half_##m(float x) { return held<__half>(narrow_h16(x, fe)); }                  \
    static __nv_bfloat16 int2bfloat16_##m(int x) { return held<__nv_bfloat16>(narrow_b16(x, fe)); }    \
    static __nv_bfloat16 ull2bfloat16_##m(unsigned long long x) { return held<__nv_bfloat16>(narrow_b16(x, fe)); } \
    static __nv_bfloat16 float2bfloat16_##m(float x) { return held<__nv_bfloat16>(narrow_b16(x, fe)); }
MODES(X)
#undef X
// The headers have some of these for a host, but not all: ours are used for all of them.
#define __half2int_rn half2int_rn
#define __half2int_rz half2int_rz
#define __half2int_rd half2int_rd
#define __half2int_ru half2int_ru
#define __half2uint_rn half2uint_rn
#define __half2uint_rz half2uint_rz
#define __half2uint_rd half2uint_rd
#define __half2uint_ru half2uint_ru
#define __half2short_rn half2short_rn
#define __half2short_rd half2short_rd
#define __int2bfloat16_rn int2bfloat16_rn
#define __int2bfloat16_rz int2bfloat16_rz
#define __int2bfloat16_rd int2bfloat16_rd
#define __int2bfloat16_ru int2bfloat16_ru
#define __ull2bfloat16_rn ull2bfloat16_rn
#define __ull2bfloat16_rz ull2bfloat16_rz
#define __ull2bfloat16_rd ull2bfloat16_rd
#define __ull2bfloat16_ru ull2bfloat16_ru
#define __int2half_rz int2half_rz
#define __int2half_rd int2half_rd
#define __int2half_ru int2half_ru
#define __uint2half_rz uint2half_rz
#define __uint2half_rd uint2half_rd
#define __uint2half_ru uint2half_ru
#define __short2half_rz short2half_rz
#define __short2half_rd short2half_rd
#define __short2half_ru short2half_ru
#define __ull2half_rz ull2half_rz
#define __ull2half_rd ull2half_rd
#define __ull2half_ru ull2half_ru
