struct __half_raw { unsigned short x; }; struct __half2_raw { unsigned short x, y; }; struct __nv_bfloat16_raw { unsigned short x; }; struct __nv_bfloat162_raw { unsigned short x, y; };
// half, bfloat16 and fp8. Operators live in namespaces found by argument lookup, so a dependent `a + b` stays an operator.
namespace __cuda_lsp_narrow {
template <bool> struct __scalar {}; template <> struct __scalar<true> { typedef int yes; };
#define CUDA_LSP_NARROW(T, T2)                                                                            \
    struct T {                                                                                             \
        unsigned short __x;                                                                                \
        T() = default;                                                                                     \
        template <class A, class = typename __scalar<__is_arithmetic(A) || __is_enum(A) || sizeof(A) <= 2>::yes> constexpr T(A) : __x(0) {} \
        operator float() const;                                                                            \
        T& operator+=(T); T& operator-=(T); T& operator*=(T); T& operator/=(T);                            \
    };                                                                                                     \
    T operator+(T, T); T operator-(T, T); T operator*(T, T); T operator/(T, T); T operator-(T);            \
    bool operator<(T, T); bool operator>(T, T); bool operator<=(T, T); bool operator>=(T, T);              \
    bool operator==(T, T); bool operator!=(T, T);                                                          \
    struct __attribute__((aligned(4))) T2 { T x, y; T2() = default; constexpr T2(T a, T b) : x(a), y(b) {} constexpr T2(T2##_raw r) : x(r.x), y(r.y) {} \
        T2& operator+=(T2); T2& operator-=(T2); T2& operator*=(T2); };                                     \
    T2 operator+(T2, T2); T2 operator-(T2, T2); T2 operator*(T2, T2); T2 operator/(T2, T2); T2 operator-(T2);
CUDA_LSP_NARROW(__half, __half2)
CUDA_LSP_NARROW(__nv_bfloat16, __nv_bfloat162)
#undef CUDA_LSP_NARROW
#define CUDA_LSP_NARROW(T) struct T { unsigned char __x; T() = default; template <class A> T(A); operator float() const; };
CUDA_LSP_NARROW(__nv_fp8_e4m3)
CUDA_LSP_NARROW(__nv_fp8_e5m2)
#undef CUDA_LSP_NARROW
}  // namespace __cuda_lsp_narrow
using __cuda_lsp_narrow::__half;
using __cuda_lsp_narrow::__half2;
using __cuda_lsp_narrow::__nv_bfloat16;
using __cuda_lsp_narrow::__nv_bfloat162;
using __cuda_lsp_narrow::__nv_fp8_e4m3;
using __cuda_lsp_narrow::__nv_fp8_e5m2;
typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
#define CUDA_LSP_BOTH2(f) __half f(__half, __half); __half2 f(__half2, __half2); __nv_bfloat16 f(__nv_bfloat16, __nv_bfloat16); __nv_bfloat162 f(__nv_bfloat162, __nv_bfloat162);
#define CUDA_LSP_BOTH1(f) __half f(__half); __half2 f(__half2); __nv_bfloat16 f(__nv_bfloat16); __nv_bfloat162 f(__nv_bfloat162);
CUDA_LSP_BOTH2(__hadd) CUDA_LSP_BOTH2(__hsub) CUDA_LSP_BOTH2(__hmul) CUDA_LSP_BOTH2(__hdiv) CUDA_LSP_BOTH2(__hadd2) CUDA_LSP_BOTH2(__hsub2)
CUDA_LSP_BOTH2(__hmul2) CUDA_LSP_BOTH2(__h2div) CUDA_LSP_BOTH2(__hmax) CUDA_LSP_BOTH2(__hmin) CUDA_LSP_BOTH2(__hmax2) CUDA_LSP_BOTH2(__hmin2)
CUDA_LSP_BOTH2(__hadd_rn) CUDA_LSP_BOTH2(__hsub_rn) CUDA_LSP_BOTH2(__hmul_rn) CUDA_LSP_BOTH2(__hadd2_rn) CUDA_LSP_BOTH2(__hsub2_rn) CUDA_LSP_BOTH2(__hmul2_rn)
CUDA_LSP_BOTH1(hexp) CUDA_LSP_BOTH1(hexp2) CUDA_LSP_BOTH1(hlog) CUDA_LSP_BOTH1(hsqrt) CUDA_LSP_BOTH1(hrsqrt) CUDA_LSP_BOTH1(hsin) CUDA_LSP_BOTH1(hcos)
CUDA_LSP_BOTH1(hrcp) CUDA_LSP_BOTH1(__habs) CUDA_LSP_BOTH1(__hneg) CUDA_LSP_BOTH1(h2exp) CUDA_LSP_BOTH1(h2log) CUDA_LSP_BOTH1(h2sqrt) CUDA_LSP_BOTH1(h2rcp) CUDA_LSP_BOTH1(h2rsqrt) CUDA_LSP_BOTH1(h2exp2) CUDA_LSP_BOTH1(h2sin) CUDA_LSP_BOTH1(h2cos) CUDA_LSP_BOTH1(hlog2) CUDA_LSP_BOTH1(h2log2) CUDA_LSP_BOTH1(hexp10) CUDA_LSP_BOTH1(hlog10) CUDA_LSP_BOTH1(hfloor) CUDA_LSP_BOTH1(hceil) CUDA_LSP_BOTH1(hrint) CUDA_LSP_BOTH1(htrunc) CUDA_LSP_BOTH1(h2floor) CUDA_LSP_BOTH1(h2ceil) CUDA_LSP_BOTH1(h2rint) CUDA_LSP_BOTH1(h2trunc) CUDA_LSP_BOTH1(htanh) CUDA_LSP_BOTH1(h2tanh) CUDA_LSP_BOTH1(__hneg2) CUDA_LSP_BOTH1(__habs2) CUDA_LSP_BOTH1(h2exp10) CUDA_LSP_BOTH1(h2log10) CUDA_LSP_BOTH1(htanh_approx) CUDA_LSP_BOTH1(h2tanh_approx)
#undef CUDA_LSP_BOTH1
#undef CUDA_LSP_BOTH2
template <class T> T __hfma(T, T, T); template <class T> T __hfma2(T, T, T);
template <class T> bool __hgt(T, T); template <class T> bool __hlt(T, T); template <class T> bool __hge(T, T); template <class T> bool __hle(T, T);
template <class T> T __hadd_sat(T, T); template <class T> T __hsub_sat(T, T); template <class T> T __hmul_sat(T, T); template <class T> T __hadd2_sat(T, T); template <class T> T __hsub2_sat(T, T); template <class T> T __hmul2_sat(T, T); template <class T> T __heq2(T, T); template <class T> T __hne2(T, T); template <class T> T __hlt2(T, T); template <class T> T __hle2(T, T); template <class T> T __hge2(T, T); template <class T> T __hequ2(T, T); template <class T> T __hneu2(T, T); template <class T> T __hltu2(T, T); template <class T> T __hleu2(T, T); template <class T> T __hgtu2(T, T); template <class T> T __hgeu2(T, T); template <class T> T __hmax_nan(T, T); template <class T> T __hmin_nan(T, T); template <class T> T __hmax2_nan(T, T); template <class T> T __hmin2_nan(T, T); template <class T> T __hfma_sat(T, T, T); template <class T> T __hfma_relu(T, T, T); template <class T> T __hfma2_sat(T, T, T); template <class T> T __hfma2_relu(T, T, T); template <class T> T __hcmadd(T, T, T); template <class T> bool __hequ(T, T); template <class T> bool __hneu(T, T); template <class T> bool __hltu(T, T); template <class T> bool __hleu(T, T); template <class T> bool __hgtu(T, T); template <class T> bool __hgeu(T, T); template <class T> bool __hbeq2(T, T); template <class T> bool __hbne2(T, T); template <class T> bool __hblt2(T, T); template <class T> bool __hble2(T, T); template <class T> bool __hbgt2(T, T); template <class T> bool __hbge2(T, T); template <class T> bool __hbequ2(T, T); template <class T> bool __hbneu2(T, T); template <class T> bool __hbltu2(T, T); template <class T> bool __hbleu2(T, T); template <class T> bool __hbgtu2(T, T); template <class T> bool __hbgeu2(T, T);
#define CUDA_LSP_MASK(n) template <class T> unsigned __h##n##2_mask(T, T); template <class T> unsigned __h##n##u2_mask(T, T);
CUDA_LSP_MASK(eq) CUDA_LSP_MASK(ne) CUDA_LSP_MASK(lt) CUDA_LSP_MASK(le) CUDA_LSP_MASK(gt) CUDA_LSP_MASK(ge)
#undef CUDA_LSP_MASK
template <class T> T __hisnan2(T);
template <class T> bool __heq(T, T); template <class T> bool __hne(T, T); template <class T> bool __hisnan(T); int __hisinf(__half); int __hisinf(__nv_bfloat16); template <class T> T __hgt2(T, T);
__half __float2half(float); __half __float2half_rn(float); __half __double2half(double); float __half2float(__half); __half __int2half_rn(int); int __half2int_rz(__half); int __half2int_rn(__half);
#define CUDA_LSP_ROUNDED(n, T) __half __##n##2half_rn(T); __half __##n##2half_rz(T); __half __##n##2half_rd(T); __half __##n##2half_ru(T); T __half2##n##_rn(__half); T __half2##n##_rz(__half); T __half2##n##_rd(__half); T __half2##n##_ru(__half);
CUDA_LSP_ROUNDED(uint, unsigned) CUDA_LSP_ROUNDED(short, short) CUDA_LSP_ROUNDED(ushort, unsigned short) CUDA_LSP_ROUNDED(ll, long long) CUDA_LSP_ROUNDED(ull, unsigned long long)
#undef CUDA_LSP_ROUNDED
#define CUDA_LSP_ROUNDED(n, T) __nv_bfloat16 __##n##2bfloat16_rn(T); __nv_bfloat16 __##n##2bfloat16_rz(T); __nv_bfloat16 __##n##2bfloat16_rd(T); __nv_bfloat16 __##n##2bfloat16_ru(T); T __bfloat162##n##_rn(__nv_bfloat16); T __bfloat162##n##_rz(__nv_bfloat16); T __bfloat162##n##_rd(__nv_bfloat16); T __bfloat162##n##_ru(__nv_bfloat16);
CUDA_LSP_ROUNDED(int, int) CUDA_LSP_ROUNDED(uint, unsigned) CUDA_LSP_ROUNDED(short, short) CUDA_LSP_ROUNDED(ushort, unsigned short) CUDA_LSP_ROUNDED(ll, long long) CUDA_LSP_ROUNDED(ull, unsigned long long)
#undef CUDA_LSP_ROUNDED
__half __int2half_rz(int); __half __int2half_rd(int); __half __int2half_ru(int); int __half2int_rd(__half); int __half2int_ru(__half); __half __float2half_rz(float); __half __float2half_rd(float); __half __float2half_ru(float); __nv_bfloat16 __double2bfloat16(double);
__half __ushort_as_half(unsigned short); unsigned short __half_as_ushort(__half); __half __short_as_half(short); short __half_as_short(__half);
__half2 __float2half2_rn(float); __half2 __floats2half2_rn(float, float); __half2 __float22half2_rn(float2); float2 __half22float2(__half2);
float __low2float(__half2); float __high2float(__half2); __half __low2half(__half2); __half __high2half(__half2); __half2 __half2half2(__half); __half2 __halves2half2(__half, __half); __half2 make_half2(__half, __half);
__half2 __low2half2(__half2); __half2 __high2half2(__half2); __half2 __lows2half2(__half2, __half2); __half2 __highs2half2(__half2, __half2); __half2 __lowhigh2highlow(__half2);
__nv_bfloat16 __float2bfloat16(float); __nv_bfloat16 __float2bfloat16_rn(float); float __bfloat162float(__nv_bfloat16);
__nv_bfloat162 __float2bfloat162_rn(float); __nv_bfloat162 __floats2bfloat162_rn(float, float); __nv_bfloat162 __float22bfloat162_rn(float2); __nv_bfloat162 __halves2bfloat162(__nv_bfloat16, __nv_bfloat16); float2 __bfloat1622float2(__nv_bfloat162); __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16);
__nv_bfloat162 make_bfloat162(__nv_bfloat16, __nv_bfloat16); float __low2float(__nv_bfloat162); float __high2float(__nv_bfloat162); __nv_bfloat16 __low2bfloat16(__nv_bfloat162); __nv_bfloat16 __high2bfloat16(__nv_bfloat162);
__nv_bfloat16 __float2bfloat16_rz(float); __nv_bfloat16 __float2bfloat16_rd(float); __nv_bfloat16 __float2bfloat16_ru(float); __nv_bfloat162 __low2bfloat162(__nv_bfloat162); __nv_bfloat162 __high2bfloat162(__nv_bfloat162); __nv_bfloat162 __lows2bfloat162(__nv_bfloat162, __nv_bfloat162); __nv_bfloat162 __highs2bfloat162(__nv_bfloat162, __nv_bfloat162); short __bfloat16_as_short(__nv_bfloat16); __nv_bfloat16 __short_as_bfloat16(short); unsigned char __half2uchar_rz(__half); signed char __half2char_rz(__half); unsigned char __bfloat162uchar_rz(__nv_bfloat16); signed char __bfloat162char_rz(__nv_bfloat16);
__nv_bfloat16 __ushort_as_bfloat16(unsigned short); unsigned short __bfloat16_as_ushort(__nv_bfloat16);
