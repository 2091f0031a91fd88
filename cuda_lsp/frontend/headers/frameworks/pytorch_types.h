// PyTorch's scalar types, and those that it accumulates in.
#pragma clang force_cuda_host_device begin
namespace c10 {
#define CUDA_LSP_NARROW(T, Native)                                                                        \
  struct alignas(2) T {                                                                                    \
    unsigned short x;                                                                                      \
    T() = default;                                                                                         \
    template <class A, class = typename __cuda_lsp_narrow::__scalar<__is_arithmetic(A) || __is_enum(A)>::yes> constexpr T(A) : x(0) {} \
    constexpr T(Native) : x(0) {}                                                                          \
    operator float() const; operator Native() const;                                                       \
    T& operator+=(T); T& operator-=(T); T& operator*=(T); T& operator/=(T);                                \
  };                                                                                                       \
  T operator+(T, T); T operator-(T, T); T operator*(T, T); T operator/(T, T); T operator-(T);              \
  bool operator<(T, T); bool operator>(T, T); bool operator<=(T, T); bool operator>=(T, T); bool operator==(T, T); bool operator!=(T, T); \
  CUDA_LSP_MIXED(T, float) CUDA_LSP_MIXED(T, double)                                                       \
  CUDA_LSP_ROUNDED(T, int) CUDA_LSP_ROUNDED(T, long)
#define CUDA_LSP_MIXED(T, A) A operator+(T, A); A operator-(T, A); A operator*(T, A); A operator/(T, A); A operator+(A, T); A operator-(A, T); A operator*(A, T); A operator/(A, T); A& operator+=(A&, T); A& operator-=(A&, T); A& operator*=(A&, T); A& operator/=(A&, T); bool operator<(T, A); bool operator>(T, A); bool operator<=(T, A); bool operator>=(T, A); bool operator==(T, A); bool operator!=(T, A); bool operator<(A, T); bool operator>(A, T); bool operator<=(A, T); bool operator>=(A, T); bool operator==(A, T); bool operator!=(A, T);
#define CUDA_LSP_ROUNDED(T, A) T operator+(T, A); T operator-(T, A); T operator*(T, A); T operator/(T, A); T operator+(A, T); T operator-(A, T); T operator*(A, T); T operator/(A, T); bool operator<(T, A); bool operator>(T, A); bool operator<=(T, A); bool operator>=(T, A); bool operator==(T, A); bool operator!=(T, A);
CUDA_LSP_NARROW(__c10_half, __half)
CUDA_LSP_NARROW(__c10_bfloat16, __nv_bfloat16)
typedef __c10_half Half; typedef __c10_bfloat16 BFloat16;
#undef CUDA_LSP_NARROW
#undef CUDA_LSP_MIXED
#undef CUDA_LSP_ROUNDED
template <class T> struct __wide { typedef T type; };
template <> struct __wide<Half> { typedef float type; }; template <> struct __wide<BFloat16> { typedef float type; };
template <> struct __wide<__half> { typedef float type; }; template <> struct __wide<__nv_bfloat16> { typedef float type; };
template <class T> constexpr T max(T a, T b) { return a < b ? b : a; } template <class T> constexpr T min(T a, T b) { return b < a ? b : a; }
}
namespace std {
#define CUDA_LSP_LIMITS(T) template <> struct numeric_limits<T> { static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false, has_infinity = true, has_quiet_NaN = true; static T min(); static T lowest(); static T max(); static T epsilon(); static T infinity(); static T quiet_NaN(); };
CUDA_LSP_LIMITS(c10::Half) CUDA_LSP_LIMITS(c10::BFloat16)
#undef CUDA_LSP_LIMITS
}
namespace at {
using c10::Half; using c10::BFloat16;
template <class T> using opmath_type = typename c10::__wide<T>::type;
template <class T, bool gpu> using acc_type = typename c10::__wide<T>::type;
template <class T> using scalar_value_type = c10::__wide<T>;
template <class T> constexpr T ceil_div(T a, T b) { return (a + b - 1) / b; }
}
namespace at {
template <class T> struct numeric_limits { static T lowest(); static T max(); static T lower_bound(); static T upper_bound(); };
struct PhiloxCudaState { unsigned long __words[4]; };
namespace cuda { namespace philox { std::tuple<unsigned long, unsigned long> unpack(PhiloxCudaState); } }
}
namespace torch { using c10::Half; using c10::BFloat16; }
#pragma clang force_cuda_host_device end
