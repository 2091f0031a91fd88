// What generated kernels are written in: operations without undefined behaviour, the same on a device and on a
// host. Instructions that only PTX names are inline assembly on a device and their definition (PTX ISA 9.7) on a
// host, where this file stands after generated_host.h.
#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define DEV static __device__ __forceinline__
#define SHARED __shared__
#endif

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef __half h16;
typedef __nv_bfloat16 b16;
typedef __half2 h16x2;
typedef __nv_bfloat162 b16x2;

#ifdef __CUDACC__
DEV u32 nil() { return gridDim.y - 1; }
#else
DEV u32 nil() { return 0; }
#endif

template <class T> struct Carrier { typedef unsigned U; };
template <> struct Carrier<long long> { typedef unsigned long long U; };
template <> struct Carrier<unsigned long long> { typedef unsigned long long U; };

#define WRAPPING(name, op)                             \
    template <class T> DEV T name(T a, T b) {          \
        typedef typename Carrier<T>::U U;              \
        return (T)((U)a op (U)b);                      \
    }
WRAPPING(add, +)
WRAPPING(sub, -)
WRAPPING(mul, *)
WRAPPING(band, &)
WRAPPING(bor, |)
WRAPPING(bxor, ^)

template <class T> DEV T neg(T a) { return sub<T>((T)0, a); }
template <class T> DEV T inv(T a) { return (T)~a; }
template <class T> DEV T quo(T a, T b) {
    if (b == 0) return a;
    if ((T)-1 < (T)0 && b == (T)-1) return neg(a);
    return (T)(a / b);
}
template <class T> DEV T rem(T a, T b) {
    if (b == 0 || ((T)-1 < (T)0 && b == (T)-1)) return 0;
    return (T)(a % b);
}
template <class T> DEV T shl(T a, u32 n) {
    typedef typename Carrier<T>::U U;
    return (T)((U)a << (n & (sizeof(U) * 8 - 1)));
}
template <class T> DEV T shr(T a, u32 n) { return (T)(a >> (n & (sizeof(T) * 8 - 1))); }
template <class T> DEV T low(T a, T b) { return b < a ? b : a; }
template <class T> DEV T high(T a, T b) { return a < b ? b : a; }
template <class T> DEV T choose(bool c, T a, T b) { return c ? a : b; }

// A NaN has no bits that two machines must agree on.
DEV f32 number(f32 x) { return x == x ? x : 1.5f; }
DEV f64 number(f64 x) { return x == x ? x : 1.5; }
DEV f32 tame(f32 x) { return fabsf(x) < 1e6f ? x : 1.5f; }
DEV f64 tame(f64 x) { return fabs(x) < 1e9 ? x : 1.5; }
DEV h16 tame(h16 x) { return __hlt(__habs(x), __float2half_rn(500.f)) ? x : __float2half_rn(1.5f); }
DEV b16 tame(b16 x) { return __hlt(__habs(x), __float2bfloat16_rn(1e6f)) ? x : __float2bfloat16_rn(1.5f); }
DEV h16x2 tame(h16x2 x) { return __halves2half2(tame(__low2half(x)), tame(__high2half(x))); }
DEV b16x2 tame(b16x2 x) { return __halves2bfloat162(tame(__low2bfloat16(x)), tame(__high2bfloat16(x))); }

// What goes into the 8 bytes of an output.
template <class T> DEV u64 raw(T x) { return (u64)x; }
DEV u64 raw(f32 x) { return __float_as_uint(x); }
DEV u64 raw(f64 x) { return (u64)__double_as_longlong(x); }
DEV u64 raw(h16 x) { return __half_as_ushort(x); }
DEV u64 raw(b16 x) { return __bfloat16_as_ushort(x); }
DEV u64 raw(h16x2 x) { return raw(__low2half(x)) | raw(__high2half(x)) << 16; }
DEV u64 raw(b16x2 x) { return raw(__low2bfloat16(x)) | raw(__high2bfloat16(x)) << 16; }

struct Mixed {
    i32 a;
    u8 b[3];
    f64 c;
    i16 d;
    u64 e;
};
DEV u64 digest(Mixed m) {
    return add<u64>(mul<u64>((u64)m.a, 31), bxor<u64>((u64)m.e, (u64)m.b[0] << 40 | (u64)m.b[2] << 8)) + raw(m.c) +
           (u64)m.d;
}

#ifdef __CUDACC__
#define PTX3(name, opcode, T, C)                                               \
    DEV T name(T a, u32 b, u32 c) {                                            \
        T d;                                                                   \
        asm(opcode " %0, %1, %2, %3;" : "=" C(d) : C(a), "r"(b), "r"(c));      \
        return d;                                                              \
    }
PTX3(bfe_u32, "bfe.u32", u32, "r")
PTX3(bfe_s32, "bfe.s32", i32, "r")
PTX3(bfe_u64, "bfe.u64", u64, "l")
PTX3(bfe_s64, "bfe.s64", i64, "l")
PTX3(prmt_f4e, "prmt.b32.f4e", u32, "r")
PTX3(prmt_b4e, "prmt.b32.b4e", u32, "r")
PTX3(prmt_rc8, "prmt.b32.rc8", u32, "r")
PTX3(prmt_ecl, "prmt.b32.ecl", u32, "r")
PTX3(prmt_ecr, "prmt.b32.ecr", u32, "r")
PTX3(prmt_rc16, "prmt.b32.rc16", u32, "r")
PTX3(mad_hi_u32, "mad.hi.u32", u32, "r")
PTX3(mul24_hi_mad, "mad24.hi.u32", u32, "r")
#undef PTX3
DEV u32 lop3_96(u32 a, u32 b, u32 c) {
    u32 d;
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
DEV u32 lop3_ca(u32 a, u32 b, u32 c) {
    u32 d;
    asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
DEV u32 bfi_b32(u32 a, u32 b, u32 at, u32 count) {
    u32 d;
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(a), "r"(b), "r"(at), "r"(count));
    return d;
}
DEV u64 bfi_b64(u64 a, u64 b, u32 at, u32 count) {
    u64 d;
    asm("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(d) : "l"(a), "l"(b), "r"(at), "r"(count));
    return d;
}
DEV u32 fns_b32(u32 mask, u32 base, i32 n) {
    u32 d;
    asm("fns.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(mask), "r"(base & 31), "r"(n));
    return d;
}
DEV u32 bfind_u32(u32 a) { u32 d; asm("bfind.u32 %0, %1;" : "=r"(d) : "r"(a)); return d; }
DEV u32 bfind_s32(i32 a) { u32 d; asm("bfind.s32 %0, %1;" : "=r"(d) : "r"(a)); return d; }
DEV u32 bfind_s64(i64 a) { u32 d; asm("bfind.s64 %0, %1;" : "=r"(d) : "l"(a)); return d; }
DEV u32 bfind_amount(u32 a) { u32 d; asm("bfind.shiftamt.u32 %0, %1;" : "=r"(d) : "r"(a)); return d; }
DEV u32 bmsk_clamp(u32 a, u32 b) { u32 d; asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); return d; }
DEV i32 szext_clamp(i32 a, u32 b) { i32 d; asm("szext.clamp.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); return d; }
DEV i32 add_sat(i32 a, i32 b) { i32 d; asm("add.sat.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); return d; }
DEV i32 sub_sat(i32 a, i32 b) { i32 d; asm("sub.sat.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); return d; }
DEV i32 mad_hi_sat(i32 a, i32 b, i32 c) {
    i32 d;
    asm("mad.hi.sat.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
DEV i32 slct_s32(i32 a, i32 b, f32 c) {
    i32 d;
    asm("slct.s32.f32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "f"(c));
    return d;
}
DEV u64 add_carry(u64 a, u64 b) {  // two words and their carry
    u32 x, y;
    asm("add.cc.u32 %0, %2, %4; addc.u32 %1, %3, %5;"
        : "=&r"(x), "=r"(y) : "r"((u32)a), "r"((u32)(a >> 32)), "r"((u32)b), "r"((u32)(b >> 32)));
    return (u64)y << 32 | x;
}
DEV u64 sub_borrow(u64 a, u64 b) {
    u32 x, y;
    asm("sub.cc.u32 %0, %2, %4; subc.u32 %1, %3, %5;"
        : "=&r"(x), "=r"(y) : "r"((u32)a), "r"((u32)(a >> 32)), "r"((u32)b), "r"((u32)(b >> 32)));
    return (u64)y << 32 | x;
}
DEV u8 sat_u8(i32 a) { u32 d; asm("cvt.sat.u8.s32 %0, %1;" : "=r"(d) : "r"(a)); return (u8)d; }
DEV i8 sat_s8(i32 a) { i32 d; asm("cvt.sat.s8.s32 %0, %1;" : "=r"(d) : "r"(a)); return (i8)d; }
DEV u16 sat_u16(i64 a) { u16 d; asm("cvt.sat.u16.s64 %0, %1;" : "=h"(d) : "l"(a)); return d; }
DEV i32 sat_s32(u64 a) { i32 d; asm("cvt.sat.s32.u64 %0, %1;" : "=r"(d) : "l"(a)); return d; }
DEV f32 add_sat(f32 a, f32 b) { f32 d; asm("add.sat.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b)); return d; }
DEV f32 min_nan(f32 a, f32 b) { f32 d; asm("min.NaN.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b)); return d; }
DEV f32 max_nan(f32 a, f32 b) { f32 d; asm("max.NaN.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b)); return d; }
DEV f32 add_ftz(f32 a, f32 b) { f32 d; asm("add.ftz.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b)); return d; }
DEV f32 mul_ftz(f32 a, f32 b) { f32 d; asm("mul.ftz.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b)); return d; }
DEV f32 set_f32(f32 a, f32 b) { f32 d; asm("set.gtu.f32.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b)); return d; }
#endif
