// GLM, as kernels of splatting and of graphics name it: small vectors and matrices of columns, after its manual.
#pragma clang force_cuda_host_device begin
namespace glm {
typedef unsigned uint; enum qualifier { packed_highp, packed_mediump, packed_lowp, highp = packed_highp, mediump = packed_mediump, lowp = packed_lowp, defaultp = packed_highp };
template <int L, class T, qualifier Q = defaultp> struct vec; template <int C, int R, class T, qualifier Q = defaultp> struct mat;
template <class T> struct __same { typedef T type; }; template <class T> using __same_t = typename __same<T>::type;
template <bool> struct __if; template <> struct __if<true> { typedef int type; }; template <bool b> constexpr typename __if<b>::type __of() { return 0; }
template <class T, qualifier Q> struct vec<1, T, Q> {
  typedef T value_type; T x; static constexpr int length() { return 1; }
  vec() = default;
  constexpr vec(T s) : x(s) {}
  template <class U, qualifier P> constexpr vec(const vec<1, U, P>& v) : x((T)v.x) {}
  template <class U, qualifier P> constexpr explicit vec(const vec<2, U, P>& v) : x((T)v.x) {}
  template <class U, qualifier P> constexpr explicit vec(const vec<3, U, P>& v) : x((T)v.x) {}
  template <class U, qualifier P> constexpr explicit vec(const vec<4, U, P>& v) : x((T)v.x) {}
  constexpr T& operator[](int i) { return x; } constexpr const T& operator[](int i) const { return x; }
  template <class U> constexpr vec& operator+=(U s) { x += (T)s; return *this; }
  template <class U> constexpr vec& operator+=(vec<1, U, Q> v) { x += (T)v.x; return *this; }
  template <class U> constexpr vec& operator-=(U s) { x -= (T)s; return *this; }
  template <class U> constexpr vec& operator-=(vec<1, U, Q> v) { x -= (T)v.x; return *this; }
  template <class U> constexpr vec& operator*=(U s) { x *= (T)s; return *this; }
  template <class U> constexpr vec& operator*=(vec<1, U, Q> v) { x *= (T)v.x; return *this; }
  template <class U> constexpr vec& operator/=(U s) { x /= (T)s; return *this; }
  template <class U> constexpr vec& operator/=(vec<1, U, Q> v) { x /= (T)v.x; return *this; }
};
template <class T, qualifier Q> constexpr vec<1, T, Q> operator+(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, T, Q>(a.x + b.x); }
template <class T, qualifier Q> constexpr vec<1, T, Q> operator-(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, T, Q>(a.x - b.x); }
template <class T, qualifier Q> constexpr vec<1, T, Q> operator*(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, T, Q>(a.x * b.x); }
template <class T, qualifier Q> constexpr vec<1, T, Q> operator/(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, T, Q>(a.x / b.x); }
template <class T, qualifier Q> constexpr vec<1, T, Q> operator%(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, T, Q>(a.x % b.x); }
template <class T, qualifier Q> constexpr vec<1, T, Q> operator&(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, T, Q>(a.x & b.x); }
template <class T, qualifier Q> constexpr vec<1, T, Q> operator|(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, T, Q>(a.x | b.x); }
template <class T, qualifier Q> constexpr vec<1, T, Q> operator^(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, T, Q>(a.x ^ b.x); }
template <class T, qualifier Q> constexpr vec<1, T, Q> operator<<(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, T, Q>(a.x << b.x); }
template <class T, qualifier Q> constexpr vec<1, T, Q> operator>>(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, T, Q>(a.x >> b.x); }
template <class T, qualifier Q> constexpr vec<1, T, Q> operator-(vec<1, T, Q> a) { return vec<1, T, Q>(-a.x); }
template <class T, qualifier Q> constexpr vec<1, T, Q> operator+(vec<1, T, Q> a) { return a; }
template <class T, qualifier Q> constexpr bool operator==(vec<1, T, Q> a, vec<1, T, Q> b) { return a.x == b.x; } template <class T, qualifier Q> constexpr bool operator!=(vec<1, T, Q> a, vec<1, T, Q> b) { return !(a == b); }
template <class T, qualifier Q> constexpr T dot(vec<1, T, Q> a, vec<1, T, Q> b) { return a.x * b.x; }
template <class T, qualifier Q> constexpr vec<1, bool, Q> lessThan(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, bool, Q>(a.x < b.x); }
template <class T, qualifier Q> constexpr vec<1, bool, Q> lessThanEqual(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, bool, Q>(a.x <= b.x); }
template <class T, qualifier Q> constexpr vec<1, bool, Q> greaterThan(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, bool, Q>(a.x > b.x); }
template <class T, qualifier Q> constexpr vec<1, bool, Q> greaterThanEqual(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, bool, Q>(a.x >= b.x); }
template <class T, qualifier Q> constexpr vec<1, bool, Q> equal(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, bool, Q>(a.x == b.x); }
template <class T, qualifier Q> constexpr vec<1, bool, Q> notEqual(vec<1, T, Q> a, vec<1, T, Q> b) { return vec<1, bool, Q>(a.x != b.x); }
template <qualifier Q> constexpr bool any(vec<1, bool, Q> v) { return v.x; } template <qualifier Q> constexpr bool all(vec<1, bool, Q> v) { return v.x; } template <qualifier Q> constexpr vec<1, bool, Q> not_(vec<1, bool, Q> v) { return vec<1, bool, Q>(!v.x); }
template <class T, qualifier Q> struct vec<2, T, Q> {
  typedef T value_type; T x, y; static constexpr int length() { return 2; }
  vec() = default;
  constexpr explicit vec(T s) : x(s), y(s) {}
  template <class X, class Y> constexpr vec(X ax, Y ay) : x((T)ax), y((T)ay) {}
  template <class U, qualifier P> constexpr vec(const vec<2, U, P>& v) : x((T)v.x), y((T)v.y) {}
  template <class U, qualifier P> constexpr explicit vec(const vec<3, U, P>& v) : x((T)v.x), y((T)v.y) {}
  template <class U, qualifier P> constexpr explicit vec(const vec<4, U, P>& v) : x((T)v.x), y((T)v.y) {}
  constexpr T& operator[](int i) { return i == 0 ? x : y; } constexpr const T& operator[](int i) const { return i == 0 ? x : y; }
  template <class U> constexpr vec& operator+=(U s) { x += (T)s; y += (T)s; return *this; }
  template <class U> constexpr vec& operator+=(vec<2, U, Q> v) { x += (T)v.x; y += (T)v.y; return *this; }
  template <class U> constexpr vec& operator-=(U s) { x -= (T)s; y -= (T)s; return *this; }
  template <class U> constexpr vec& operator-=(vec<2, U, Q> v) { x -= (T)v.x; y -= (T)v.y; return *this; }
  template <class U> constexpr vec& operator*=(U s) { x *= (T)s; y *= (T)s; return *this; }
  template <class U> constexpr vec& operator*=(vec<2, U, Q> v) { x *= (T)v.x; y *= (T)v.y; return *this; }
  template <class U> constexpr vec& operator/=(U s) { x /= (T)s; y /= (T)s; return *this; }
  template <class U> constexpr vec& operator/=(vec<2, U, Q> v) { x /= (T)v.x; y /= (T)v.y; return *this; }
};
template <class T, qualifier Q> constexpr vec<2, T, Q> operator+(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, T, Q>(a.x + b.x, a.y + b.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator+(vec<2, T, Q> a, __same_t<T> s) { return vec<2, T, Q>(a.x + s, a.y + s); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator+(__same_t<T> s, vec<2, T, Q> a) { return vec<2, T, Q>(s + a.x, s + a.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator-(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, T, Q>(a.x - b.x, a.y - b.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator-(vec<2, T, Q> a, __same_t<T> s) { return vec<2, T, Q>(a.x - s, a.y - s); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator-(__same_t<T> s, vec<2, T, Q> a) { return vec<2, T, Q>(s - a.x, s - a.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator*(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, T, Q>(a.x * b.x, a.y * b.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator*(vec<2, T, Q> a, __same_t<T> s) { return vec<2, T, Q>(a.x * s, a.y * s); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator*(__same_t<T> s, vec<2, T, Q> a) { return vec<2, T, Q>(s * a.x, s * a.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator/(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, T, Q>(a.x / b.x, a.y / b.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator/(vec<2, T, Q> a, __same_t<T> s) { return vec<2, T, Q>(a.x / s, a.y / s); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator/(__same_t<T> s, vec<2, T, Q> a) { return vec<2, T, Q>(s / a.x, s / a.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator%(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, T, Q>(a.x % b.x, a.y % b.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator%(vec<2, T, Q> a, __same_t<T> s) { return vec<2, T, Q>(a.x % s, a.y % s); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator%(__same_t<T> s, vec<2, T, Q> a) { return vec<2, T, Q>(s % a.x, s % a.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator&(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, T, Q>(a.x & b.x, a.y & b.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator&(vec<2, T, Q> a, __same_t<T> s) { return vec<2, T, Q>(a.x & s, a.y & s); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator&(__same_t<T> s, vec<2, T, Q> a) { return vec<2, T, Q>(s & a.x, s & a.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator|(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, T, Q>(a.x | b.x, a.y | b.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator|(vec<2, T, Q> a, __same_t<T> s) { return vec<2, T, Q>(a.x | s, a.y | s); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator|(__same_t<T> s, vec<2, T, Q> a) { return vec<2, T, Q>(s | a.x, s | a.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator^(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, T, Q>(a.x ^ b.x, a.y ^ b.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator^(vec<2, T, Q> a, __same_t<T> s) { return vec<2, T, Q>(a.x ^ s, a.y ^ s); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator^(__same_t<T> s, vec<2, T, Q> a) { return vec<2, T, Q>(s ^ a.x, s ^ a.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator<<(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, T, Q>(a.x << b.x, a.y << b.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator<<(vec<2, T, Q> a, __same_t<T> s) { return vec<2, T, Q>(a.x << s, a.y << s); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator>>(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, T, Q>(a.x >> b.x, a.y >> b.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator>>(vec<2, T, Q> a, __same_t<T> s) { return vec<2, T, Q>(a.x >> s, a.y >> s); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator-(vec<2, T, Q> a) { return vec<2, T, Q>(-a.x, -a.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> operator+(vec<2, T, Q> a) { return a; }
template <class T, qualifier Q> constexpr bool operator==(vec<2, T, Q> a, vec<2, T, Q> b) { return a.x == b.x && a.y == b.y; } template <class T, qualifier Q> constexpr bool operator!=(vec<2, T, Q> a, vec<2, T, Q> b) { return !(a == b); }
template <class T, qualifier Q> constexpr T dot(vec<2, T, Q> a, vec<2, T, Q> b) { return a.x * b.x + a.y * b.y; }
template <class T, qualifier Q> constexpr vec<2, bool, Q> lessThan(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, bool, Q>(a.x < b.x, a.y < b.y); }
template <class T, qualifier Q> constexpr vec<2, bool, Q> lessThanEqual(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, bool, Q>(a.x <= b.x, a.y <= b.y); }
template <class T, qualifier Q> constexpr vec<2, bool, Q> greaterThan(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, bool, Q>(a.x > b.x, a.y > b.y); }
template <class T, qualifier Q> constexpr vec<2, bool, Q> greaterThanEqual(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, bool, Q>(a.x >= b.x, a.y >= b.y); }
template <class T, qualifier Q> constexpr vec<2, bool, Q> equal(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, bool, Q>(a.x == b.x, a.y == b.y); }
template <class T, qualifier Q> constexpr vec<2, bool, Q> notEqual(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, bool, Q>(a.x != b.x, a.y != b.y); }
template <qualifier Q> constexpr bool any(vec<2, bool, Q> v) { return v.x || v.y; } template <qualifier Q> constexpr bool all(vec<2, bool, Q> v) { return v.x && v.y; } template <qualifier Q> constexpr vec<2, bool, Q> not_(vec<2, bool, Q> v) { return vec<2, bool, Q>(!v.x, !v.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> min(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, T, Q>(b.x < a.x ? b.x : a.x, b.y < a.y ? b.y : a.y); } template <class T, qualifier Q> constexpr vec<2, T, Q> max(vec<2, T, Q> a, vec<2, T, Q> b) { return vec<2, T, Q>(a.x < b.x ? b.x : a.x, a.y < b.y ? b.y : a.y); }
template <class T, qualifier Q> constexpr vec<2, T, Q> min(vec<2, T, Q> a, __same_t<T> b) { return min(a, vec<2, T, Q>(b)); } template <class T, qualifier Q> constexpr vec<2, T, Q> max(vec<2, T, Q> a, __same_t<T> b) { return max(a, vec<2, T, Q>(b)); }
template <class T> constexpr vec<2, T> make_vec2(const T* p) { return vec<2, T>(p[0], p[1]); }
template <class T, qualifier Q> struct vec<3, T, Q> {
  typedef T value_type; T x, y, z; static constexpr int length() { return 3; }
  vec() = default;
  constexpr explicit vec(T s) : x(s), y(s), z(s) {}
  template <class X, class Y, class Z> constexpr vec(X ax, Y ay, Z az) : x((T)ax), y((T)ay), z((T)az) {}
  template <class U, qualifier P> constexpr vec(const vec<3, U, P>& v) : x((T)v.x), y((T)v.y), z((T)v.z) {}
  template <class U, qualifier P> constexpr explicit vec(const vec<4, U, P>& v) : x((T)v.x), y((T)v.y), z((T)v.z) {}
  template <class U, class B, qualifier P> constexpr vec(const vec<2, U, P>& v, B b) : x((T)v.x), y((T)v.y), z((T)b) {}
  template <class A, class U, qualifier P> constexpr vec(A a, const vec<2, U, P>& v) : x((T)a), y((T)v.x), z((T)v.y) {}
  constexpr T& operator[](int i) { return i == 0 ? x : i == 1 ? y : z; } constexpr const T& operator[](int i) const { return i == 0 ? x : i == 1 ? y : z; }
  template <class U> constexpr vec& operator+=(U s) { x += (T)s; y += (T)s; z += (T)s; return *this; }
  template <class U> constexpr vec& operator+=(vec<3, U, Q> v) { x += (T)v.x; y += (T)v.y; z += (T)v.z; return *this; }
  template <class U> constexpr vec& operator-=(U s) { x -= (T)s; y -= (T)s; z -= (T)s; return *this; }
  template <class U> constexpr vec& operator-=(vec<3, U, Q> v) { x -= (T)v.x; y -= (T)v.y; z -= (T)v.z; return *this; }
  template <class U> constexpr vec& operator*=(U s) { x *= (T)s; y *= (T)s; z *= (T)s; return *this; }
  template <class U> constexpr vec& operator*=(vec<3, U, Q> v) { x *= (T)v.x; y *= (T)v.y; z *= (T)v.z; return *this; }
  template <class U> constexpr vec& operator/=(U s) { x /= (T)s; y /= (T)s; z /= (T)s; return *this; }
  template <class U> constexpr vec& operator/=(vec<3, U, Q> v) { x /= (T)v.x; y /= (T)v.y; z /= (T)v.z; return *this; }
};
template <class T, qualifier Q> constexpr vec<3, T, Q> operator+(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, T, Q>(a.x + b.x, a.y + b.y, a.z + b.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator+(vec<3, T, Q> a, __same_t<T> s) { return vec<3, T, Q>(a.x + s, a.y + s, a.z + s); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator+(__same_t<T> s, vec<3, T, Q> a) { return vec<3, T, Q>(s + a.x, s + a.y, s + a.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator-(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, T, Q>(a.x - b.x, a.y - b.y, a.z - b.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator-(vec<3, T, Q> a, __same_t<T> s) { return vec<3, T, Q>(a.x - s, a.y - s, a.z - s); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator-(__same_t<T> s, vec<3, T, Q> a) { return vec<3, T, Q>(s - a.x, s - a.y, s - a.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator*(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, T, Q>(a.x * b.x, a.y * b.y, a.z * b.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator*(vec<3, T, Q> a, __same_t<T> s) { return vec<3, T, Q>(a.x * s, a.y * s, a.z * s); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator*(__same_t<T> s, vec<3, T, Q> a) { return vec<3, T, Q>(s * a.x, s * a.y, s * a.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator/(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, T, Q>(a.x / b.x, a.y / b.y, a.z / b.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator/(vec<3, T, Q> a, __same_t<T> s) { return vec<3, T, Q>(a.x / s, a.y / s, a.z / s); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator/(__same_t<T> s, vec<3, T, Q> a) { return vec<3, T, Q>(s / a.x, s / a.y, s / a.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator%(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, T, Q>(a.x % b.x, a.y % b.y, a.z % b.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator%(vec<3, T, Q> a, __same_t<T> s) { return vec<3, T, Q>(a.x % s, a.y % s, a.z % s); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator%(__same_t<T> s, vec<3, T, Q> a) { return vec<3, T, Q>(s % a.x, s % a.y, s % a.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator&(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, T, Q>(a.x & b.x, a.y & b.y, a.z & b.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator&(vec<3, T, Q> a, __same_t<T> s) { return vec<3, T, Q>(a.x & s, a.y & s, a.z & s); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator&(__same_t<T> s, vec<3, T, Q> a) { return vec<3, T, Q>(s & a.x, s & a.y, s & a.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator|(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, T, Q>(a.x | b.x, a.y | b.y, a.z | b.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator|(vec<3, T, Q> a, __same_t<T> s) { return vec<3, T, Q>(a.x | s, a.y | s, a.z | s); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator|(__same_t<T> s, vec<3, T, Q> a) { return vec<3, T, Q>(s | a.x, s | a.y, s | a.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator^(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, T, Q>(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator^(vec<3, T, Q> a, __same_t<T> s) { return vec<3, T, Q>(a.x ^ s, a.y ^ s, a.z ^ s); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator^(__same_t<T> s, vec<3, T, Q> a) { return vec<3, T, Q>(s ^ a.x, s ^ a.y, s ^ a.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator<<(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, T, Q>(a.x << b.x, a.y << b.y, a.z << b.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator<<(vec<3, T, Q> a, __same_t<T> s) { return vec<3, T, Q>(a.x << s, a.y << s, a.z << s); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator>>(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, T, Q>(a.x >> b.x, a.y >> b.y, a.z >> b.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator>>(vec<3, T, Q> a, __same_t<T> s) { return vec<3, T, Q>(a.x >> s, a.y >> s, a.z >> s); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator-(vec<3, T, Q> a) { return vec<3, T, Q>(-a.x, -a.y, -a.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> operator+(vec<3, T, Q> a) { return a; }
template <class T, qualifier Q> constexpr bool operator==(vec<3, T, Q> a, vec<3, T, Q> b) { return a.x == b.x && a.y == b.y && a.z == b.z; } template <class T, qualifier Q> constexpr bool operator!=(vec<3, T, Q> a, vec<3, T, Q> b) { return !(a == b); }
template <class T, qualifier Q> constexpr T dot(vec<3, T, Q> a, vec<3, T, Q> b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
template <class T, qualifier Q> constexpr vec<3, bool, Q> lessThan(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, bool, Q>(a.x < b.x, a.y < b.y, a.z < b.z); }
template <class T, qualifier Q> constexpr vec<3, bool, Q> lessThanEqual(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, bool, Q>(a.x <= b.x, a.y <= b.y, a.z <= b.z); }
template <class T, qualifier Q> constexpr vec<3, bool, Q> greaterThan(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, bool, Q>(a.x > b.x, a.y > b.y, a.z > b.z); }
template <class T, qualifier Q> constexpr vec<3, bool, Q> greaterThanEqual(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, bool, Q>(a.x >= b.x, a.y >= b.y, a.z >= b.z); }
template <class T, qualifier Q> constexpr vec<3, bool, Q> equal(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, bool, Q>(a.x == b.x, a.y == b.y, a.z == b.z); }
template <class T, qualifier Q> constexpr vec<3, bool, Q> notEqual(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, bool, Q>(a.x != b.x, a.y != b.y, a.z != b.z); }
template <qualifier Q> constexpr bool any(vec<3, bool, Q> v) { return v.x || v.y || v.z; } template <qualifier Q> constexpr bool all(vec<3, bool, Q> v) { return v.x && v.y && v.z; } template <qualifier Q> constexpr vec<3, bool, Q> not_(vec<3, bool, Q> v) { return vec<3, bool, Q>(!v.x, !v.y, !v.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> min(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, T, Q>(b.x < a.x ? b.x : a.x, b.y < a.y ? b.y : a.y, b.z < a.z ? b.z : a.z); } template <class T, qualifier Q> constexpr vec<3, T, Q> max(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, T, Q>(a.x < b.x ? b.x : a.x, a.y < b.y ? b.y : a.y, a.z < b.z ? b.z : a.z); }
template <class T, qualifier Q> constexpr vec<3, T, Q> min(vec<3, T, Q> a, __same_t<T> b) { return min(a, vec<3, T, Q>(b)); } template <class T, qualifier Q> constexpr vec<3, T, Q> max(vec<3, T, Q> a, __same_t<T> b) { return max(a, vec<3, T, Q>(b)); }
template <class T> constexpr vec<3, T> make_vec3(const T* p) { return vec<3, T>(p[0], p[1], p[2]); }
template <class T, qualifier Q> struct vec<4, T, Q> {
  typedef T value_type; T x, y, z, w; static constexpr int length() { return 4; }
  vec() = default;
  constexpr explicit vec(T s) : x(s), y(s), z(s), w(s) {}
  template <class X, class Y, class Z, class W> constexpr vec(X ax, Y ay, Z az, W aw) : x((T)ax), y((T)ay), z((T)az), w((T)aw) {}
  template <class U, qualifier P> constexpr vec(const vec<4, U, P>& v) : x((T)v.x), y((T)v.y), z((T)v.z), w((T)v.w) {}
  template <class U, class B, qualifier P> constexpr vec(const vec<3, U, P>& v, B b) : x((T)v.x), y((T)v.y), z((T)v.z), w((T)b) {}
  template <class A, class U, qualifier P> constexpr vec(A a, const vec<3, U, P>& v) : x((T)a), y((T)v.x), z((T)v.y), w((T)v.z) {}
  template <class U, class A, class B, qualifier P> constexpr vec(const vec<2, U, P>& v, A a, B b) : x((T)v.x), y((T)v.y), z((T)a), w((T)b) {}
  template <class U, class V, qualifier P, qualifier O> constexpr vec(const vec<2, U, P>& v, const vec<2, V, O>& o) : x((T)v.x), y((T)v.y), z((T)o.x), w((T)o.y) {}
  constexpr T& operator[](int i) { return i == 0 ? x : i == 1 ? y : i == 2 ? z : w; } constexpr const T& operator[](int i) const { return i == 0 ? x : i == 1 ? y : i == 2 ? z : w; }
  template <class U> constexpr vec& operator+=(U s) { x += (T)s; y += (T)s; z += (T)s; w += (T)s; return *this; }
  template <class U> constexpr vec& operator+=(vec<4, U, Q> v) { x += (T)v.x; y += (T)v.y; z += (T)v.z; w += (T)v.w; return *this; }
  template <class U> constexpr vec& operator-=(U s) { x -= (T)s; y -= (T)s; z -= (T)s; w -= (T)s; return *this; }
  template <class U> constexpr vec& operator-=(vec<4, U, Q> v) { x -= (T)v.x; y -= (T)v.y; z -= (T)v.z; w -= (T)v.w; return *this; }
  template <class U> constexpr vec& operator*=(U s) { x *= (T)s; y *= (T)s; z *= (T)s; w *= (T)s; return *this; }
  template <class U> constexpr vec& operator*=(vec<4, U, Q> v) { x *= (T)v.x; y *= (T)v.y; z *= (T)v.z; w *= (T)v.w; return *this; }
  template <class U> constexpr vec& operator/=(U s) { x /= (T)s; y /= (T)s; z /= (T)s; w /= (T)s; return *this; }
  template <class U> constexpr vec& operator/=(vec<4, U, Q> v) { x /= (T)v.x; y /= (T)v.y; z /= (T)v.z; w /= (T)v.w; return *this; }
};
template <class T, qualifier Q> constexpr vec<4, T, Q> operator+(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, T, Q>(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator+(vec<4, T, Q> a, __same_t<T> s) { return vec<4, T, Q>(a.x + s, a.y + s, a.z + s, a.w + s); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator+(__same_t<T> s, vec<4, T, Q> a) { return vec<4, T, Q>(s + a.x, s + a.y, s + a.z, s + a.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator-(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, T, Q>(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator-(vec<4, T, Q> a, __same_t<T> s) { return vec<4, T, Q>(a.x - s, a.y - s, a.z - s, a.w - s); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator-(__same_t<T> s, vec<4, T, Q> a) { return vec<4, T, Q>(s - a.x, s - a.y, s - a.z, s - a.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator*(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, T, Q>(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator*(vec<4, T, Q> a, __same_t<T> s) { return vec<4, T, Q>(a.x * s, a.y * s, a.z * s, a.w * s); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator*(__same_t<T> s, vec<4, T, Q> a) { return vec<4, T, Q>(s * a.x, s * a.y, s * a.z, s * a.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator/(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, T, Q>(a.x / b.x, a.y / b.y, a.z / b.z, a.w / b.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator/(vec<4, T, Q> a, __same_t<T> s) { return vec<4, T, Q>(a.x / s, a.y / s, a.z / s, a.w / s); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator/(__same_t<T> s, vec<4, T, Q> a) { return vec<4, T, Q>(s / a.x, s / a.y, s / a.z, s / a.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator%(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, T, Q>(a.x % b.x, a.y % b.y, a.z % b.z, a.w % b.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator%(vec<4, T, Q> a, __same_t<T> s) { return vec<4, T, Q>(a.x % s, a.y % s, a.z % s, a.w % s); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator%(__same_t<T> s, vec<4, T, Q> a) { return vec<4, T, Q>(s % a.x, s % a.y, s % a.z, s % a.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator&(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, T, Q>(a.x & b.x, a.y & b.y, a.z & b.z, a.w & b.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator&(vec<4, T, Q> a, __same_t<T> s) { return vec<4, T, Q>(a.x & s, a.y & s, a.z & s, a.w & s); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator&(__same_t<T> s, vec<4, T, Q> a) { return vec<4, T, Q>(s & a.x, s & a.y, s & a.z, s & a.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator|(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, T, Q>(a.x | b.x, a.y | b.y, a.z | b.z, a.w | b.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator|(vec<4, T, Q> a, __same_t<T> s) { return vec<4, T, Q>(a.x | s, a.y | s, a.z | s, a.w | s); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator|(__same_t<T> s, vec<4, T, Q> a) { return vec<4, T, Q>(s | a.x, s | a.y, s | a.z, s | a.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator^(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, T, Q>(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator^(vec<4, T, Q> a, __same_t<T> s) { return vec<4, T, Q>(a.x ^ s, a.y ^ s, a.z ^ s, a.w ^ s); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator^(__same_t<T> s, vec<4, T, Q> a) { return vec<4, T, Q>(s ^ a.x, s ^ a.y, s ^ a.z, s ^ a.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator<<(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, T, Q>(a.x << b.x, a.y << b.y, a.z << b.z, a.w << b.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator<<(vec<4, T, Q> a, __same_t<T> s) { return vec<4, T, Q>(a.x << s, a.y << s, a.z << s, a.w << s); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator>>(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, T, Q>(a.x >> b.x, a.y >> b.y, a.z >> b.z, a.w >> b.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator>>(vec<4, T, Q> a, __same_t<T> s) { return vec<4, T, Q>(a.x >> s, a.y >> s, a.z >> s, a.w >> s); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator-(vec<4, T, Q> a) { return vec<4, T, Q>(-a.x, -a.y, -a.z, -a.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> operator+(vec<4, T, Q> a) { return a; }
template <class T, qualifier Q> constexpr bool operator==(vec<4, T, Q> a, vec<4, T, Q> b) { return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w; } template <class T, qualifier Q> constexpr bool operator!=(vec<4, T, Q> a, vec<4, T, Q> b) { return !(a == b); }
template <class T, qualifier Q> constexpr T dot(vec<4, T, Q> a, vec<4, T, Q> b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
template <class T, qualifier Q> constexpr vec<4, bool, Q> lessThan(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, bool, Q>(a.x < b.x, a.y < b.y, a.z < b.z, a.w < b.w); }
template <class T, qualifier Q> constexpr vec<4, bool, Q> lessThanEqual(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, bool, Q>(a.x <= b.x, a.y <= b.y, a.z <= b.z, a.w <= b.w); }
template <class T, qualifier Q> constexpr vec<4, bool, Q> greaterThan(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, bool, Q>(a.x > b.x, a.y > b.y, a.z > b.z, a.w > b.w); }
template <class T, qualifier Q> constexpr vec<4, bool, Q> greaterThanEqual(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, bool, Q>(a.x >= b.x, a.y >= b.y, a.z >= b.z, a.w >= b.w); }
template <class T, qualifier Q> constexpr vec<4, bool, Q> equal(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, bool, Q>(a.x == b.x, a.y == b.y, a.z == b.z, a.w == b.w); }
template <class T, qualifier Q> constexpr vec<4, bool, Q> notEqual(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, bool, Q>(a.x != b.x, a.y != b.y, a.z != b.z, a.w != b.w); }
template <qualifier Q> constexpr bool any(vec<4, bool, Q> v) { return v.x || v.y || v.z || v.w; } template <qualifier Q> constexpr bool all(vec<4, bool, Q> v) { return v.x && v.y && v.z && v.w; } template <qualifier Q> constexpr vec<4, bool, Q> not_(vec<4, bool, Q> v) { return vec<4, bool, Q>(!v.x, !v.y, !v.z, !v.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> min(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, T, Q>(b.x < a.x ? b.x : a.x, b.y < a.y ? b.y : a.y, b.z < a.z ? b.z : a.z, b.w < a.w ? b.w : a.w); } template <class T, qualifier Q> constexpr vec<4, T, Q> max(vec<4, T, Q> a, vec<4, T, Q> b) { return vec<4, T, Q>(a.x < b.x ? b.x : a.x, a.y < b.y ? b.y : a.y, a.z < b.z ? b.z : a.z, a.w < b.w ? b.w : a.w); }
template <class T, qualifier Q> constexpr vec<4, T, Q> min(vec<4, T, Q> a, __same_t<T> b) { return min(a, vec<4, T, Q>(b)); } template <class T, qualifier Q> constexpr vec<4, T, Q> max(vec<4, T, Q> a, __same_t<T> b) { return max(a, vec<4, T, Q>(b)); }
template <class T> constexpr vec<4, T> make_vec4(const T* p) { return vec<4, T>(p[0], p[1], p[2], p[3]); }
template <class T> constexpr T min(T a, T b) { return b < a ? b : a; } template <class T> constexpr T max(T a, T b) { return a < b ? b : a; } template <class T> constexpr T clamp(T v, T low, T high) { return min(max(v, low), high); }
template <int L, class T, qualifier Q> constexpr vec<L, T, Q> clamp(vec<L, T, Q> v, __same_t<T> low, __same_t<T> high) { return min(max(v, vec<L, T, Q>(low)), vec<L, T, Q>(high)); }
template <class T> T abs(T); template <int L, class T, qualifier Q> vec<L, T, Q> abs(vec<L, T, Q>);
template <class T> T sign(T); template <int L, class T, qualifier Q> vec<L, T, Q> sign(vec<L, T, Q>);
template <class T> T floor(T); template <int L, class T, qualifier Q> vec<L, T, Q> floor(vec<L, T, Q>);
template <class T> T ceil(T); template <int L, class T, qualifier Q> vec<L, T, Q> ceil(vec<L, T, Q>);
template <class T> T round(T); template <int L, class T, qualifier Q> vec<L, T, Q> round(vec<L, T, Q>);
template <class T> T trunc(T); template <int L, class T, qualifier Q> vec<L, T, Q> trunc(vec<L, T, Q>);
template <class T> T fract(T); template <int L, class T, qualifier Q> vec<L, T, Q> fract(vec<L, T, Q>);
template <class T> T sqrt(T); template <int L, class T, qualifier Q> vec<L, T, Q> sqrt(vec<L, T, Q>);
template <class T> T inversesqrt(T); template <int L, class T, qualifier Q> vec<L, T, Q> inversesqrt(vec<L, T, Q>);
template <class T> T exp(T); template <int L, class T, qualifier Q> vec<L, T, Q> exp(vec<L, T, Q>);
template <class T> T exp2(T); template <int L, class T, qualifier Q> vec<L, T, Q> exp2(vec<L, T, Q>);
template <class T> T log(T); template <int L, class T, qualifier Q> vec<L, T, Q> log(vec<L, T, Q>);
template <class T> T log2(T); template <int L, class T, qualifier Q> vec<L, T, Q> log2(vec<L, T, Q>);
template <class T> T sin(T); template <int L, class T, qualifier Q> vec<L, T, Q> sin(vec<L, T, Q>);
template <class T> T cos(T); template <int L, class T, qualifier Q> vec<L, T, Q> cos(vec<L, T, Q>);
template <class T> T tan(T); template <int L, class T, qualifier Q> vec<L, T, Q> tan(vec<L, T, Q>);
template <class T> T asin(T); template <int L, class T, qualifier Q> vec<L, T, Q> asin(vec<L, T, Q>);
template <class T> T acos(T); template <int L, class T, qualifier Q> vec<L, T, Q> acos(vec<L, T, Q>);
template <class T> T atan(T); template <int L, class T, qualifier Q> vec<L, T, Q> atan(vec<L, T, Q>);
template <class T> T sinh(T); template <int L, class T, qualifier Q> vec<L, T, Q> sinh(vec<L, T, Q>);
template <class T> T cosh(T); template <int L, class T, qualifier Q> vec<L, T, Q> cosh(vec<L, T, Q>);
template <class T> T tanh(T); template <int L, class T, qualifier Q> vec<L, T, Q> tanh(vec<L, T, Q>);
template <class T> T radians(T); template <int L, class T, qualifier Q> vec<L, T, Q> radians(vec<L, T, Q>);
template <class T> T degrees(T); template <int L, class T, qualifier Q> vec<L, T, Q> degrees(vec<L, T, Q>);
template <class T> T pow(T, T); template <int L, class T, qualifier Q> vec<L, T, Q> pow(vec<L, T, Q>, vec<L, T, Q>); template <int L, class T, qualifier Q> vec<L, T, Q> pow(vec<L, T, Q>, __same_t<T>);
template <class T> T mod(T, T); template <int L, class T, qualifier Q> vec<L, T, Q> mod(vec<L, T, Q>, vec<L, T, Q>); template <int L, class T, qualifier Q> vec<L, T, Q> mod(vec<L, T, Q>, __same_t<T>);
template <class T> T step(T, T); template <int L, class T, qualifier Q> vec<L, T, Q> step(vec<L, T, Q>, vec<L, T, Q>); template <int L, class T, qualifier Q> vec<L, T, Q> step(vec<L, T, Q>, __same_t<T>);
template <class T> T atan(T, T); template <int L, class T, qualifier Q> vec<L, T, Q> atan(vec<L, T, Q>, vec<L, T, Q>); template <int L, class T, qualifier Q> vec<L, T, Q> atan(vec<L, T, Q>, __same_t<T>);
template <class T, class A> T mix(T a, T b, A t); template <class T> T smoothstep(T, T, T); template <class T> T fma(T, T, T); bool isnan(float); bool isinf(float); template <int L, class T, qualifier Q> vec<L, bool, Q> isnan(vec<L, T, Q>); template <int L, class T, qualifier Q> vec<L, bool, Q> isinf(vec<L, T, Q>);
template <int L, class T, qualifier Q> T length(vec<L, T, Q>); template <int L, class T, qualifier Q> T length2(vec<L, T, Q>); template <int L, class T, qualifier Q> T distance(vec<L, T, Q>, vec<L, T, Q>); template <int L, class T, qualifier Q> T distance2(vec<L, T, Q>, vec<L, T, Q>); template <int L, class T, qualifier Q> vec<L, T, Q> normalize(vec<L, T, Q>); template <int L, class T, qualifier Q> vec<L, T, Q> reflect(vec<L, T, Q>, vec<L, T, Q>); template <int L, class T, qualifier Q> vec<L, T, Q> refract(vec<L, T, Q>, vec<L, T, Q>, __same_t<T>); template <int L, class T, qualifier Q> vec<L, T, Q> faceforward(vec<L, T, Q>, vec<L, T, Q>, vec<L, T, Q>);
template <class T, qualifier Q> constexpr vec<3, T, Q> cross(vec<3, T, Q> a, vec<3, T, Q> b) { return vec<3, T, Q>(a.y * b.z - b.y * a.z, a.z * b.x - b.z * a.x, a.x * b.y - b.x * a.y); }
template <int C, int R, class T, qualifier Q> struct mat {
  typedef T value_type; typedef vec<R, T, Q> col_type; typedef vec<C, T, Q> row_type; col_type value[C]; static constexpr int length() { return C; }
  mat() = default; explicit mat(T s) { for (int i = 0; i < C; ++i) { value[i] = col_type(T(0)); if (i < R) value[i][i] = s; } }
  template <class... X, class = decltype(__of<sizeof...(X) == C * R && (C * R > C)>())> mat(X... x) { const T all[] = {(T)x...}; for (int i = 0; i < C; ++i) for (int j = 0; j < R; ++j) value[i][j] = all[i * R + j]; }
  template <class... X> mat(const vec<R, X, Q>&... x) { static_assert(sizeof...(X) == C, "columns"); const col_type all[] = {col_type(x)...}; for (int i = 0; i < C; ++i) value[i] = all[i]; }
  template <int A, int B, class U, qualifier P> explicit mat(const mat<A, B, U, P>& m) { for (int i = 0; i < C; ++i) for (int j = 0; j < R; ++j) value[i][j] = i < A && j < B ? (T)m.value[i][j] : T(i == j); }
  col_type& operator[](int i) { return value[i]; } const col_type& operator[](int i) const { return value[i]; }
  mat& operator+=(mat m) { for (int i = 0; i < C; ++i) value[i] += m.value[i]; return *this; } mat& operator-=(mat m) { for (int i = 0; i < C; ++i) value[i] -= m.value[i]; return *this; }
  mat& operator*=(T s) { for (int i = 0; i < C; ++i) value[i] *= s; return *this; } mat& operator/=(T s) { for (int i = 0; i < C; ++i) value[i] /= s; return *this; } mat& operator*=(mat m) { return *this = *this * m; }
};
template <int C, int R, class T, qualifier Q> mat<C, R, T, Q> operator+(mat<C, R, T, Q> a, mat<C, R, T, Q> b) { a += b; return a; }
template <int C, int R, class T, qualifier Q> mat<C, R, T, Q> operator-(mat<C, R, T, Q> a, mat<C, R, T, Q> b) { a -= b; return a; }
template <int C, int R, class T, qualifier Q> mat<C, R, T, Q> operator-(mat<C, R, T, Q> a) { return a * T(-1); }
template <int C, int R, class T, qualifier Q> mat<C, R, T, Q> operator*(mat<C, R, T, Q> a, __same_t<T> s) { a *= s; return a; } template <int C, int R, class T, qualifier Q> mat<C, R, T, Q> operator*(__same_t<T> s, mat<C, R, T, Q> a) { a *= s; return a; } template <int C, int R, class T, qualifier Q> mat<C, R, T, Q> operator/(mat<C, R, T, Q> a, __same_t<T> s) { a /= s; return a; }
template <int C, int R, class T, qualifier Q> vec<R, T, Q> operator*(mat<C, R, T, Q> m, vec<C, T, Q> v) { vec<R, T, Q> r(T(0)); for (int i = 0; i < C; ++i) r += m.value[i] * v[i]; return r; }
template <int C, int R, class T, qualifier Q> vec<C, T, Q> operator*(vec<R, T, Q> v, mat<C, R, T, Q> m) { vec<C, T, Q> r; for (int i = 0; i < C; ++i) r[i] = dot(v, m.value[i]); return r; }
template <int C, int R, int D, class T, qualifier Q> mat<D, R, T, Q> operator*(mat<C, R, T, Q> a, mat<D, C, T, Q> b) { mat<D, R, T, Q> r; for (int i = 0; i < D; ++i) r.value[i] = a * b.value[i]; return r; }
template <int C, int R, class T, qualifier Q> mat<R, C, T, Q> transpose(mat<C, R, T, Q> m) { mat<R, C, T, Q> r; for (int i = 0; i < C; ++i) for (int j = 0; j < R; ++j) r.value[j][i] = m.value[i][j]; return r; }
template <int C, int R, class T, qualifier Q> mat<C, R, T, Q> outerProduct(vec<R, T, Q> c, vec<C, T, Q> r) { mat<C, R, T, Q> m; for (int i = 0; i < C; ++i) m.value[i] = c * r[i]; return m; }
template <int C, int R, class T, qualifier Q> mat<C, R, T, Q> matrixCompMult(mat<C, R, T, Q>, mat<C, R, T, Q>); template <int C, class T, qualifier Q> mat<C, C, T, Q> inverse(mat<C, C, T, Q>); template <int C, class T, qualifier Q> T determinant(mat<C, C, T, Q>); template <int C, int R, class T, qualifier Q> bool operator==(mat<C, R, T, Q>, mat<C, R, T, Q>); template <int C, int R, class T, qualifier Q> bool operator!=(mat<C, R, T, Q>, mat<C, R, T, Q>);
template <int C, int R, class T, qualifier Q> vec<R, T, Q> column(mat<C, R, T, Q> m, int i) { return m.value[i]; } template <int C, int R, class T, qualifier Q> vec<C, T, Q> row(mat<C, R, T, Q> m, int j) { vec<C, T, Q> r; for (int i = 0; i < C; ++i) r[i] = m.value[i][j]; return r; }
template <class T> mat<2, 2, T> make_mat2(const T* p) { mat<2, 2, T> m; for (int i = 0; i < 2; ++i) for (int j = 0; j < 2; ++j) m.value[i][j] = p[i * 2 + j]; return m; }
template <class T> mat<3, 3, T> make_mat3(const T* p) { mat<3, 3, T> m; for (int i = 0; i < 3; ++i) for (int j = 0; j < 3; ++j) m.value[i][j] = p[i * 3 + j]; return m; }
template <class T> mat<4, 4, T> make_mat4(const T* p) { mat<4, 4, T> m; for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) m.value[i][j] = p[i * 4 + j]; return m; }
template <int L, class T, qualifier Q> T* value_ptr(vec<L, T, Q>& v) { return &v.x; } template <int L, class T, qualifier Q> const T* value_ptr(const vec<L, T, Q>& v) { return &v.x; } template <int C, int R, class T, qualifier Q> T* value_ptr(mat<C, R, T, Q>& m) { return &m.value[0].x; } template <int C, int R, class T, qualifier Q> const T* value_ptr(const mat<C, R, T, Q>& m) { return &m.value[0].x; }
template <class T, qualifier Q = defaultp> struct qua {
  typedef T value_type; T x, y, z, w; qua() = default; constexpr qua(T w, T x, T y, T z) : x(x), y(y), z(z), w(w) {} constexpr qua(T s, const vec<3, T, Q>& v) : x(v.x), y(v.y), z(v.z), w(s) {}
  constexpr T& operator[](int i) { return i == 0 ? x : i == 1 ? y : i == 2 ? z : w; } constexpr const T& operator[](int i) const { return i == 0 ? x : i == 1 ? y : i == 2 ? z : w; }
};
template <class T, qualifier Q> qua<T, Q> operator+(qua<T, Q>, qua<T, Q>); template <class T, qualifier Q> qua<T, Q> operator-(qua<T, Q>, qua<T, Q>); template <class T, qualifier Q> qua<T, Q> operator-(qua<T, Q>); template <class T, qualifier Q> qua<T, Q> operator*(qua<T, Q>, qua<T, Q>); template <class T, qualifier Q> qua<T, Q> operator*(qua<T, Q>, __same_t<T>); template <class T, qualifier Q> qua<T, Q> operator*(__same_t<T>, qua<T, Q>); template <class T, qualifier Q> qua<T, Q> operator/(qua<T, Q>, __same_t<T>); template <class T, qualifier Q> vec<3, T, Q> operator*(qua<T, Q>, vec<3, T, Q>); template <class T, qualifier Q> T dot(qua<T, Q>, qua<T, Q>); template <class T, qualifier Q> T length(qua<T, Q>); template <class T, qualifier Q> qua<T, Q> normalize(qua<T, Q>); template <class T, qualifier Q> qua<T, Q> conjugate(qua<T, Q>); template <class T, qualifier Q> qua<T, Q> inverse(qua<T, Q>); template <class T, qualifier Q> qua<T, Q> slerp(qua<T, Q>, qua<T, Q>, __same_t<T>); template <class T, qualifier Q> qua<T, Q> mix(qua<T, Q>, qua<T, Q>, __same_t<T>); template <class T, qualifier Q> vec<3, T, Q> rotate(qua<T, Q>, vec<3, T, Q>); template <class T, qualifier Q> mat<3, 3, T, Q> mat3_cast(qua<T, Q>); template <class T, qualifier Q> mat<4, 4, T, Q> mat4_cast(qua<T, Q>); template <class T, qualifier Q> qua<T, Q> quat_cast(mat<3, 3, T, Q>); template <class T, qualifier Q> mat<3, 3, T, Q> toMat3(qua<T, Q>);
template <class T> qua<T> make_quat(const T* p) { return qua<T>(p[3], p[0], p[1], p[2]); }
typedef qua<float> quat, fquat; typedef qua<double> dquat;
template <class T, qualifier Q = defaultp> using tvec1 = vec<1, T, Q>; typedef vec<1, float> vec1; typedef vec<1, float> fvec1; typedef vec<1, double> dvec1; typedef vec<1, int> ivec1; typedef vec<1, unsigned> uvec1; typedef vec<1, bool> bvec1; typedef vec<1, unsigned char> u8vec1; typedef vec<1, long> i64vec1; typedef vec<1, unsigned long> u64vec1; typedef vec<1, short> i16vec1; typedef vec<1, unsigned short> u16vec1;
template <class T, qualifier Q = defaultp> using tvec2 = vec<2, T, Q>; typedef vec<2, float> vec2; typedef vec<2, float> fvec2; typedef vec<2, double> dvec2; typedef vec<2, int> ivec2; typedef vec<2, unsigned> uvec2; typedef vec<2, bool> bvec2; typedef vec<2, unsigned char> u8vec2; typedef vec<2, long> i64vec2; typedef vec<2, unsigned long> u64vec2; typedef vec<2, short> i16vec2; typedef vec<2, unsigned short> u16vec2;
template <class T, qualifier Q = defaultp> using tvec3 = vec<3, T, Q>; typedef vec<3, float> vec3; typedef vec<3, float> fvec3; typedef vec<3, double> dvec3; typedef vec<3, int> ivec3; typedef vec<3, unsigned> uvec3; typedef vec<3, bool> bvec3; typedef vec<3, unsigned char> u8vec3; typedef vec<3, long> i64vec3; typedef vec<3, unsigned long> u64vec3; typedef vec<3, short> i16vec3; typedef vec<3, unsigned short> u16vec3;
template <class T, qualifier Q = defaultp> using tvec4 = vec<4, T, Q>; typedef vec<4, float> vec4; typedef vec<4, float> fvec4; typedef vec<4, double> dvec4; typedef vec<4, int> ivec4; typedef vec<4, unsigned> uvec4; typedef vec<4, bool> bvec4; typedef vec<4, unsigned char> u8vec4; typedef vec<4, long> i64vec4; typedef vec<4, unsigned long> u64vec4; typedef vec<4, short> i16vec4; typedef vec<4, unsigned short> u16vec4;
typedef mat<2, 2, float> mat2x2; typedef mat<2, 2, float> mat2; typedef mat<2, 2, float> fmat2x2; typedef mat<2, 2, float> fmat2; typedef mat<2, 2, double> dmat2x2; typedef mat<2, 2, double> dmat2; template <class T, qualifier Q = defaultp> using tmat2x2 = mat<2, 2, T, Q>;
typedef mat<2, 3, float> mat2x3; typedef mat<2, 3, float> fmat2x3; typedef mat<2, 3, double> dmat2x3;
typedef mat<2, 4, float> mat2x4; typedef mat<2, 4, float> fmat2x4; typedef mat<2, 4, double> dmat2x4;
typedef mat<3, 2, float> mat3x2; typedef mat<3, 2, float> fmat3x2; typedef mat<3, 2, double> dmat3x2;
typedef mat<3, 3, float> mat3x3; typedef mat<3, 3, float> mat3; typedef mat<3, 3, float> fmat3x3; typedef mat<3, 3, float> fmat3; typedef mat<3, 3, double> dmat3x3; typedef mat<3, 3, double> dmat3; template <class T, qualifier Q = defaultp> using tmat3x3 = mat<3, 3, T, Q>;
typedef mat<3, 4, float> mat3x4; typedef mat<3, 4, float> fmat3x4; typedef mat<3, 4, double> dmat3x4;
typedef mat<4, 2, float> mat4x2; typedef mat<4, 2, float> fmat4x2; typedef mat<4, 2, double> dmat4x2;
typedef mat<4, 3, float> mat4x3; typedef mat<4, 3, float> fmat4x3; typedef mat<4, 3, double> dmat4x3;
typedef mat<4, 4, float> mat4x4; typedef mat<4, 4, float> mat4; typedef mat<4, 4, float> fmat4x4; typedef mat<4, 4, float> fmat4; typedef mat<4, 4, double> dmat4x4; typedef mat<4, 4, double> dmat4; template <class T, qualifier Q = defaultp> using tmat4x4 = mat<4, 4, T, Q>;
}  // namespace glm
#pragma clang force_cuda_host_device end
