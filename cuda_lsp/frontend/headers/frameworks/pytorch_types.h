// PyTorch's scalar types, and those that it accumulates in.
namespace c10 {
typedef __half Half; typedef __nv_bfloat16 BFloat16;
template <class T> struct __wide { typedef T type; };
template <> struct __wide<__half> { typedef float type; }; template <> struct __wide<__nv_bfloat16> { typedef float type; };
template <class T> constexpr T max(T a, T b) { return a < b ? b : a; } template <class T> constexpr T min(T a, T b) { return b < a ? b : a; }
}
namespace at {
using c10::Half; using c10::BFloat16;
template <class T> using opmath_type = typename c10::__wide<T>::type;
template <class T, bool gpu> using acc_type = typename c10::__wide<T>::type;
template <class T> using scalar_value_type = c10::__wide<T>;
template <class T> constexpr T ceil_div(T a, T b) { return (a + b - 1) / b; }
}
