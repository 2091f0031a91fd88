// Mathematical functions and intrinsics.
#define CUDA_LSP_F1(n) double n(double); float n(float); float n##f(float); template <class T> double n(T);
#define CUDA_LSP_F2(n) double n(double, double); float n(float, float); float n##f(float, float); template <class A, class B> double n(A, B);
CUDA_LSP_F1(sin) CUDA_LSP_F1(cos) CUDA_LSP_F1(tan) CUDA_LSP_F1(asin) CUDA_LSP_F1(acos) CUDA_LSP_F1(atan) CUDA_LSP_F1(sinh)
CUDA_LSP_F1(cosh) CUDA_LSP_F1(tanh) CUDA_LSP_F1(asinh) CUDA_LSP_F1(acosh) CUDA_LSP_F1(atanh) CUDA_LSP_F1(sinpi) CUDA_LSP_F1(cospi)
CUDA_LSP_F1(exp) CUDA_LSP_F1(exp2) CUDA_LSP_F1(exp10) CUDA_LSP_F1(expm1) CUDA_LSP_F1(log) CUDA_LSP_F1(log2) CUDA_LSP_F1(log10)
CUDA_LSP_F1(log1p) CUDA_LSP_F1(logb) CUDA_LSP_F1(sqrt) CUDA_LSP_F1(rsqrt) CUDA_LSP_F1(cbrt) CUDA_LSP_F1(rcbrt) CUDA_LSP_F1(floor)
CUDA_LSP_F1(ceil) CUDA_LSP_F1(trunc) CUDA_LSP_F1(round) CUDA_LSP_F1(rint) CUDA_LSP_F1(nearbyint) CUDA_LSP_F1(fabs) CUDA_LSP_F1(erf)
CUDA_LSP_F1(erfc) CUDA_LSP_F1(erfinv) CUDA_LSP_F1(erfcinv) CUDA_LSP_F1(erfcx) CUDA_LSP_F1(tgamma) CUDA_LSP_F1(lgamma)
CUDA_LSP_F1(normcdf) CUDA_LSP_F1(normcdfinv) CUDA_LSP_F1(j0) CUDA_LSP_F1(j1) CUDA_LSP_F1(y0) CUDA_LSP_F1(y1)
CUDA_LSP_F2(pow) CUDA_LSP_F2(atan2) CUDA_LSP_F2(fmod) CUDA_LSP_F2(fmin) CUDA_LSP_F2(fmax) CUDA_LSP_F2(hypot) CUDA_LSP_F2(rhypot)
CUDA_LSP_F2(copysign) CUDA_LSP_F2(fdim) CUDA_LSP_F2(remainder) CUDA_LSP_F2(nextafter) CUDA_LSP_F2(fdivide)
#undef CUDA_LSP_F1
#undef CUDA_LSP_F2
double fma(double, double, double);
float fma(float, float, float);
float fmaf(float, float, float);
template <class A, class B, class C> double fma(A, B, C);
double ldexp(double, int); float ldexp(float, int); float ldexpf(float, int); double scalbn(double, int); float scalbnf(float, int);
double frexp(double, int*); float frexp(float, int*); float frexpf(float, int*); double modf(double, double*); float modf(float, float*); float modff(float, float*);
double powi(double, int); float powif(float, int);
double norm3d(double, double, double); float norm3df(float, float, float); float rnorm3df(float, float, float);
double rnorm3d(double, double, double); double norm4d(double, double, double, double); double rnorm4d(double, double, double, double);
float norm4df(float, float, float, float); float rnorm4df(float, float, float, float); double norm(int, const double*); float normf(int, const float*); double rnorm(int, const double*); float rnormf(int, const float*);
double cyl_bessel_i0(double); double cyl_bessel_i1(double); float cyl_bessel_i0f(float); float cyl_bessel_i1f(float); double jn(int, double); double yn(int, double); float jnf(int, float); float ynf(int, float);
double remquo(double, double, int*); float remquo(float, float, int*); float remquof(float, float, int*); double scalbln(double, long); float scalbln(float, long); float scalblnf(float, long); int ilogbf(float);
void sincos(double, double*, double*); void sincos(float, float*, float*); void sincosf(float, float*, float*);
void sincospi(double, double*, double*); void sincospif(float, float*, float*); void __sincosf(float, float*, float*);
constexpr int abs(int x) { return x < 0 ? -x : x; }
constexpr long abs(long x) { return x < 0 ? -x : x; }
constexpr long long abs(long long x) { return x < 0 ? -x : x; }
float abs(float); double abs(double);
constexpr long labs(long x) { return x < 0 ? -x : x; }
constexpr long long llabs(long long x) { return x < 0 ? -x : x; }
template <class A, class B> constexpr auto min(A a, B b) -> decltype(a < b ? a : b) { return a < b ? a : b; }
template <class A, class B> constexpr auto max(A a, B b) -> decltype(a < b ? b : a) { return a < b ? b : a; }
unsigned umin(unsigned, unsigned); unsigned umax(unsigned, unsigned);
long long llmin(long long, long long); long long llmax(long long, long long);
unsigned long long ullmin(unsigned long long, unsigned long long); unsigned long long ullmax(unsigned long long, unsigned long long);
template <class T> bool isnan(T); template <class T> bool isinf(T); template <class T> bool isfinite(T); template <class T> bool signbit(T);
template <class T> int ilogb(T); template <class T> long lround(T); template <class T> long lrint(T);
template <class T> long long llround(T); template <class T> long long llrint(T);
long lroundf(float); long lrintf(float); long long llroundf(float); long long llrintf(float);
float nanf(const char*); double nan(const char*);
int __mul24(int, int); unsigned __umul24(unsigned, unsigned); int __mulhi(int, int); unsigned __umulhi(unsigned, unsigned);
long long __mul64hi(long long, long long); unsigned long long __umul64hi(unsigned long long, unsigned long long);
int mul24(int, int); unsigned umul24(unsigned, unsigned); int mulhi(int, int); unsigned umulhi(unsigned, unsigned);
int __sad(int, int, unsigned); unsigned __usad(unsigned, unsigned, unsigned); int __hadd(int, int); int __rhadd(int, int); unsigned __uhadd(unsigned, unsigned); unsigned __urhadd(unsigned, unsigned);
int __clz(int); int __clzll(long long); int __ffs(int); int __ffsll(long long); int __popc(unsigned); int __popcll(unsigned long long);
unsigned __brev(unsigned); unsigned long long __brevll(unsigned long long); unsigned __byte_perm(unsigned, unsigned, unsigned);
unsigned __funnelshift_l(unsigned, unsigned, unsigned); unsigned __funnelshift_r(unsigned, unsigned, unsigned);
unsigned __funnelshift_lc(unsigned, unsigned, unsigned); unsigned __funnelshift_rc(unsigned, unsigned, unsigned);
unsigned __fns(unsigned, unsigned, int);
#define CUDA_LSP_DOT(n, A, UA) int n(int, int, int); unsigned n(unsigned, unsigned, unsigned); int n(A, char4, int); unsigned n(UA, uchar4, unsigned);
CUDA_LSP_DOT(__dp4a, char4, uchar4) CUDA_LSP_DOT(__dp2a_lo, short2, ushort2) CUDA_LSP_DOT(__dp2a_hi, short2, ushort2)
#undef CUDA_LSP_DOT
#define CUDA_LSP_F1(n) float n(float);
#define CUDA_LSP_F2(n) float n(float, float);
CUDA_LSP_F1(__sinf) CUDA_LSP_F1(__cosf) CUDA_LSP_F1(__tanf) CUDA_LSP_F1(__tanhf) CUDA_LSP_F1(__expf) CUDA_LSP_F1(__exp10f) CUDA_LSP_F1(__logf)
CUDA_LSP_F1(__log2f) CUDA_LSP_F1(__log10f) CUDA_LSP_F1(__saturatef) CUDA_LSP_F1(saturate) CUDA_LSP_F1(__frsqrt_rn) CUDA_LSP_F2(__powf) CUDA_LSP_F2(__fdividef)
#undef CUDA_LSP_F1
#undef CUDA_LSP_F2
#define CUDA_LSP_ROUNDED(T, n, ...) T n##_rn(__VA_ARGS__); T n##_rz(__VA_ARGS__); T n##_ru(__VA_ARGS__); T n##_rd(__VA_ARGS__);
#define CUDA_LSP_ROUNDED_OF(T, a, fma) CUDA_LSP_ROUNDED(T, __##a##add, T, T) CUDA_LSP_ROUNDED(T, __##a##sub, T, T) CUDA_LSP_ROUNDED(T, __##a##mul, T, T) CUDA_LSP_ROUNDED(T, __##a##div, T, T) CUDA_LSP_ROUNDED(T, __##a##rcp, T) CUDA_LSP_ROUNDED(T, __##a##sqrt, T) CUDA_LSP_ROUNDED(T, fma, T, T, T)
CUDA_LSP_ROUNDED_OF(float, f, __fmaf) CUDA_LSP_ROUNDED_OF(double, d, __fma) CUDA_LSP_ROUNDED(float, __fmaf_ieee, float, float, float)
CUDA_LSP_ROUNDED(float2, __fadd2, float2, float2) CUDA_LSP_ROUNDED(float2, __fmul2, float2, float2) CUDA_LSP_ROUNDED(float2, __ffma2, float2, float2, float2)
#undef CUDA_LSP_ROUNDED
#undef CUDA_LSP_ROUNDED_OF
int __float_as_int(float); unsigned __float_as_uint(float); float __int_as_float(int); float __uint_as_float(unsigned);
long long __double_as_longlong(double); double __longlong_as_double(long long); int __double2loint(double); int __double2hiint(double); double __hiloint2double(int, int);
#define CUDA_LSP_CONVERT(n, R, A) R n##_rn(A); R n##_rz(A); R n##_ru(A); R n##_rd(A);
CUDA_LSP_CONVERT(__float2int, int, float) CUDA_LSP_CONVERT(__float2uint, unsigned, float) CUDA_LSP_CONVERT(__float2ll, long long, float)
CUDA_LSP_CONVERT(__float2ull, unsigned long long, float) CUDA_LSP_CONVERT(__int2float, float, int) CUDA_LSP_CONVERT(__uint2float, float, unsigned)
CUDA_LSP_CONVERT(__ll2float, float, long long) CUDA_LSP_CONVERT(__ull2float, float, unsigned long long) CUDA_LSP_CONVERT(__double2int, int, double)
CUDA_LSP_CONVERT(__double2uint, unsigned, double) CUDA_LSP_CONVERT(__double2ll, long long, double) CUDA_LSP_CONVERT(__double2ull, unsigned long long, double)
CUDA_LSP_CONVERT(__double2float, float, double) CUDA_LSP_CONVERT(__int2double, double, int) CUDA_LSP_CONVERT(__uint2double, double, unsigned)
CUDA_LSP_CONVERT(__ll2double, double, long long) CUDA_LSP_CONVERT(__ull2double, double, unsigned long long)
#undef CUDA_LSP_CONVERT
#define CUDA_LSP_SIMD1(n) unsigned __v##n##2(unsigned); unsigned __v##n##4(unsigned);
#define CUDA_LSP_SIMD(n) unsigned __v##n##2(unsigned, unsigned); unsigned __v##n##4(unsigned, unsigned);
#define CUDA_LSP_SIGNS(n) CUDA_LSP_SIMD(n##s) CUDA_LSP_SIMD(n##u)
#define CUDA_LSP_COMPARED(n) CUDA_LSP_SIGNS(cmp##n) CUDA_LSP_SIGNS(set##n)
CUDA_LSP_SIMD1(abs) CUDA_LSP_SIMD1(absss) CUDA_LSP_SIMD1(neg) CUDA_LSP_SIMD1(negss) CUDA_LSP_SIMD(add) CUDA_LSP_SIMD(addss) CUDA_LSP_SIMD(addus) CUDA_LSP_SIMD(sub) CUDA_LSP_SIMD(subss)
CUDA_LSP_SIMD(subus) CUDA_LSP_SIGNS(max) CUDA_LSP_SIGNS(min) CUDA_LSP_SIGNS(absdiff) CUDA_LSP_SIGNS(avg) CUDA_LSP_SIMD(haddu) CUDA_LSP_SIGNS(sad) CUDA_LSP_SIMD(cmpeq) CUDA_LSP_SIMD(cmpne)
CUDA_LSP_SIMD(seteq) CUDA_LSP_SIMD(setne) CUDA_LSP_COMPARED(ge) CUDA_LSP_COMPARED(gt) CUDA_LSP_COMPARED(le) CUDA_LSP_COMPARED(lt)
#undef CUDA_LSP_SIMD1
#undef CUDA_LSP_SIMD
#undef CUDA_LSP_SIGNS
#undef CUDA_LSP_COMPARED
#define CUDA_LSP_DPX(T, t) T __viaddmax_##t(T, T, T); T __viaddmin_##t(T, T, T); T __vimax3_##t(T, T, T); T __vimin3_##t(T, T, T);
#define CUDA_LSP_DPX_SIGNED(T, t) CUDA_LSP_DPX(T, t) CUDA_LSP_DPX(T, t##_relu) T __vimax_##t##_relu(T, T); T __vimin_##t##_relu(T, T);
CUDA_LSP_DPX_SIGNED(int, s32) CUDA_LSP_DPX_SIGNED(unsigned, s16x2) CUDA_LSP_DPX(unsigned, u32) CUDA_LSP_DPX(unsigned, u16x2)
int __vibmax_s32(int, int, bool*); int __vibmin_s32(int, int, bool*); unsigned __vibmax_u32(unsigned, unsigned, bool*); unsigned __vibmin_u32(unsigned, unsigned, bool*);
unsigned __vibmax_s16x2(unsigned, unsigned, bool*, bool*); unsigned __vibmin_s16x2(unsigned, unsigned, bool*, bool*); unsigned __vibmax_u16x2(unsigned, unsigned, bool*, bool*); unsigned __vibmin_u16x2(unsigned, unsigned, bool*, bool*);
#undef CUDA_LSP_DPX
#undef CUDA_LSP_DPX_SIGNED
