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
float norm4df(float, float, float, float); float rnorm4df(float, float, float, float);
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
int __sad(int, int, unsigned); unsigned __usad(unsigned, unsigned, unsigned); int __hadd(int, int); int __rhadd(int, int); unsigned __uhadd(unsigned, unsigned);
int __clz(int); int __clzll(long long); int __ffs(int); int __ffsll(long long); int __popc(unsigned); int __popcll(unsigned long long);
unsigned __brev(unsigned); unsigned long long __brevll(unsigned long long); unsigned __byte_perm(unsigned, unsigned, unsigned);
unsigned __funnelshift_l(unsigned, unsigned, unsigned); unsigned __funnelshift_r(unsigned, unsigned, unsigned);
unsigned __funnelshift_lc(unsigned, unsigned, unsigned); unsigned __funnelshift_rc(unsigned, unsigned, unsigned);
unsigned __fns(unsigned, unsigned, int);
template <class A, class B, class C> int __dp4a(A, B, C); template <class A, class B, class C> int __dp2a_lo(A, B, C); template <class A, class B, class C> int __dp2a_hi(A, B, C);
#define CUDA_LSP_F1(n) float n(float);
#define CUDA_LSP_F2(n) float n(float, float);
CUDA_LSP_F1(__sinf) CUDA_LSP_F1(__cosf) CUDA_LSP_F1(__tanf) CUDA_LSP_F1(__expf) CUDA_LSP_F1(__exp10f) CUDA_LSP_F1(__logf) CUDA_LSP_F1(__log2f)
CUDA_LSP_F1(__log10f) CUDA_LSP_F1(__saturatef) CUDA_LSP_F1(saturate) CUDA_LSP_F1(__frcp_rn) CUDA_LSP_F1(__frcp_rz) CUDA_LSP_F1(__frcp_ru) CUDA_LSP_F1(__frcp_rd)
CUDA_LSP_F1(__fsqrt_rn) CUDA_LSP_F1(__fsqrt_rz) CUDA_LSP_F1(__frsqrt_rn) CUDA_LSP_F2(__powf) CUDA_LSP_F2(__fdividef)
#define CUDA_LSP_ROUNDED(n) CUDA_LSP_F2(n##_rn) CUDA_LSP_F2(n##_rz) CUDA_LSP_F2(n##_ru) CUDA_LSP_F2(n##_rd)
CUDA_LSP_ROUNDED(__fadd) CUDA_LSP_ROUNDED(__fsub) CUDA_LSP_ROUNDED(__fmul) CUDA_LSP_ROUNDED(__fdiv)
#undef CUDA_LSP_F1
#undef CUDA_LSP_F2
#undef CUDA_LSP_ROUNDED
float __fmaf_rn(float, float, float); float __fmaf_rz(float, float, float); float __fmaf_ru(float, float, float); float __fmaf_rd(float, float, float);
#define CUDA_LSP_D2(n) double n##_rn(double, double); double n##_rz(double, double); double n##_ru(double, double); double n##_rd(double, double);
CUDA_LSP_D2(__dadd) CUDA_LSP_D2(__dsub) CUDA_LSP_D2(__dmul) CUDA_LSP_D2(__ddiv)
#undef CUDA_LSP_D2
double __fma_rn(double, double, double); double __fma_rz(double, double, double); double __dsqrt_rn(double); double __drcp_rn(double);
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
unsigned __vabs2(unsigned); unsigned __vabs4(unsigned); unsigned __vabsss2(unsigned); unsigned __vabsss4(unsigned); unsigned __vneg2(unsigned); unsigned __vneg4(unsigned); unsigned __vnegss2(unsigned); unsigned __vnegss4(unsigned);
#define CUDA_LSP_SIMD(n) unsigned n(unsigned, unsigned);
CUDA_LSP_SIMD(__vadd2) CUDA_LSP_SIMD(__vadd4) CUDA_LSP_SIMD(__vsub2) CUDA_LSP_SIMD(__vsub4) CUDA_LSP_SIMD(__vmaxs2) CUDA_LSP_SIMD(__vmaxs4) CUDA_LSP_SIMD(__vmaxu2)
CUDA_LSP_SIMD(__vmaxu4) CUDA_LSP_SIMD(__vmins2) CUDA_LSP_SIMD(__vmins4) CUDA_LSP_SIMD(__vminu2) CUDA_LSP_SIMD(__vminu4) CUDA_LSP_SIMD(__vcmpeq4) CUDA_LSP_SIMD(__vcmpgts2)
CUDA_LSP_SIMD(__vcmpgtu4) CUDA_LSP_SIMD(__vabsdiffu4) CUDA_LSP_SIMD(__vavgu4) CUDA_LSP_SIMD(__vsadu4) CUDA_LSP_SIMD(__vadd2us) CUDA_LSP_SIMD(__vaddss2) CUDA_LSP_SIMD(__vsubss2) CUDA_LSP_SIMD(__vsetgts2)
CUDA_LSP_SIMD(__vaddus2) CUDA_LSP_SIMD(__vsubus2) CUDA_LSP_SIMD(__vcmpeq2) CUDA_LSP_SIMD(__vseteq2) CUDA_LSP_SIMD(__vcmpne2) CUDA_LSP_SIMD(__vsetne2) CUDA_LSP_SIMD(__vcmpges2) CUDA_LSP_SIMD(__vsetges2)
CUDA_LSP_SIMD(__vcmpgeu2) CUDA_LSP_SIMD(__vsetgeu2) CUDA_LSP_SIMD(__vcmpgtu2) CUDA_LSP_SIMD(__vsetgtu2) CUDA_LSP_SIMD(__vcmples2) CUDA_LSP_SIMD(__vsetles2) CUDA_LSP_SIMD(__vcmpleu2) CUDA_LSP_SIMD(__vsetleu2)
CUDA_LSP_SIMD(__vcmplts2) CUDA_LSP_SIMD(__vsetlts2) CUDA_LSP_SIMD(__vcmpltu2) CUDA_LSP_SIMD(__vsetltu2) CUDA_LSP_SIMD(__vabsdiffs2) CUDA_LSP_SIMD(__vabsdiffu2) CUDA_LSP_SIMD(__vavgs2) CUDA_LSP_SIMD(__vavgu2)
CUDA_LSP_SIMD(__vhaddu2) CUDA_LSP_SIMD(__vsads2) CUDA_LSP_SIMD(__vsadu2) CUDA_LSP_SIMD(__vaddss4) CUDA_LSP_SIMD(__vaddus4) CUDA_LSP_SIMD(__vsubss4) CUDA_LSP_SIMD(__vsubus4) CUDA_LSP_SIMD(__vseteq4)
CUDA_LSP_SIMD(__vcmpne4) CUDA_LSP_SIMD(__vsetne4) CUDA_LSP_SIMD(__vcmpges4) CUDA_LSP_SIMD(__vsetges4) CUDA_LSP_SIMD(__vcmpgeu4) CUDA_LSP_SIMD(__vsetgeu4) CUDA_LSP_SIMD(__vcmpgts4) CUDA_LSP_SIMD(__vsetgts4)
CUDA_LSP_SIMD(__vsetgtu4) CUDA_LSP_SIMD(__vcmples4) CUDA_LSP_SIMD(__vsetles4) CUDA_LSP_SIMD(__vcmpleu4) CUDA_LSP_SIMD(__vsetleu4) CUDA_LSP_SIMD(__vcmplts4) CUDA_LSP_SIMD(__vsetlts4) CUDA_LSP_SIMD(__vcmpltu4)
CUDA_LSP_SIMD(__vsetltu4) CUDA_LSP_SIMD(__vabsdiffs4) CUDA_LSP_SIMD(__vavgs4) CUDA_LSP_SIMD(__vhaddu4) CUDA_LSP_SIMD(__vsads4)
#undef CUDA_LSP_SIMD
