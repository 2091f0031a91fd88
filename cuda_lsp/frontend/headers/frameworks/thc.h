// Torch's THC, as extensions of Torch and of early PyTorch name it: numbers of any type, and views of tensors.
#ifndef TH_INDEX_BASE
#define TH_INDEX_BASE 1
#endif
#define THCNumericsNative(name, R, expression) static __host__ __device__ R name(T a, T b) { return expression; }
#define THCNumericsOne(name) static __host__ __device__ T name(T);
typedef long THCIndex_t;
typedef struct THCState THCState;
template <class A, class B> struct ScalarConvert { static __host__ __device__ B to(const A a) { return (B)a; } };
template <class T> struct THCNumerics {
  static __host__ __device__ T min(); static __host__ __device__ T max();
  THCNumericsNative(lt, bool, a < b) THCNumericsNative(le, bool, a <= b) THCNumericsNative(gt, bool, a > b) THCNumericsNative(ge, bool, a >= b) THCNumericsNative(eq, bool, a == b) THCNumericsNative(ne, bool, a != b)
  THCNumericsNative(add, T, a + b) THCNumericsNative(sub, T, a - b) THCNumericsNative(mul, T, a * b) THCNumericsNative(div, T, a / b)
  static __host__ __device__ T pow(T, T); static __host__ __device__ T atan2(T, T); static __host__ __device__ T neg(T a) { return -a; }
  THCNumericsOne(abs) THCNumericsOne(exp) THCNumericsOne(expm1) THCNumericsOne(log) THCNumericsOne(log1p) THCNumericsOne(sqrt) THCNumericsOne(rsqrt) THCNumericsOne(cinv) THCNumericsOne(ceil) THCNumericsOne(floor) THCNumericsOne(trunc) THCNumericsOne(round) THCNumericsOne(frac)
  THCNumericsOne(cos) THCNumericsOne(sin) THCNumericsOne(tan) THCNumericsOne(acos) THCNumericsOne(asin) THCNumericsOne(atan) THCNumericsOne(cosh) THCNumericsOne(sinh) THCNumericsOne(tanh) THCNumericsOne(erf) THCNumericsOne(erfinv) THCNumericsOne(lgamma)
};
#undef THCNumericsNative
#undef THCNumericsOne
template <class T> __host__ __device__ constexpr T THCCeilDiv(T a, T b) { return (a + b - 1) / b; }
template <class T> __host__ __device__ constexpr T THCRoundUp(T a, T b) { return THCCeilDiv(a, b) * b; }
template <class T> struct DefaultPtrTraits { typedef T* PtrType; };
template <class T> struct RestrictPtrTraits { typedef T* __restrict__ PtrType; };
template <class T, int N, class I = int, template <class> class P = DefaultPtrTraits> struct THCDeviceTensor {
  typedef T DataType; typedef I IndexType; enum { NumDims = N };
  T* data_; I stride_[N]; I size_[N];
  __host__ __device__ I getSize(int i) const { return size_[i]; } __host__ __device__ I getStride(int i) const { return stride_[i]; }
  __host__ __device__ T* data() { return data_; } __host__ __device__ const T* data() const { return data_; }
  __host__ __device__ long numElements() const { long n = size_[0]; for (int i = 1; i < N; ++i) n *= size_[i]; return n; }
  template <int M, class X> struct __Part {
    T* at; const I* strides;
    __host__ __device__ __Part<M - 1, X> operator[](I i) const { return __Part<M - 1, X>{at + i * strides[0], strides + 1}; }
    __host__ __device__ T* data() const { return at; }
  };
  template <class X> struct __Part<0, X> {
    T* at; const I* strides;
    __host__ __device__ operator T&() const { return *at; } __host__ __device__ T* data() const { return at; } __host__ __device__ T ldg() const { return *at; } __host__ __device__ T* operator&() const { return at; }
    __host__ __device__ T& operator=(T v) { *at = v; return *at; } __host__ __device__ T& operator=(const __Part& v) { *at = *v.at; return *at; }
    __host__ __device__ T& operator+=(T v) { *at += v; return *at; } __host__ __device__ T& operator-=(T v) { *at -= v; return *at; } __host__ __device__ T& operator*=(T v) { *at *= v; return *at; } __host__ __device__ T& operator/=(T v) { *at /= v; return *at; }
  };
  __host__ __device__ __Part<N - 1, void> operator[](I i) const { return __Part<N - 1, void>{data_ + i * stride_[0], stride_ + 1}; }
};
#define TH_CONCAT_2_EXPAND(x, y) x##y
#define TH_CONCAT_2(x, y) TH_CONCAT_2_EXPAND(x, y)
#define TH_CONCAT_3_EXPAND(x, y, z) x##y##z
#define TH_CONCAT_3(x, y, z) TH_CONCAT_3_EXPAND(x, y, z)
#define TH_CONCAT_4_EXPAND(x, y, z, w) x##y##z##w
#define TH_CONCAT_4(x, y, z, w) TH_CONCAT_4_EXPAND(x, y, z, w)
#define THCTensor_(NAME) TH_CONCAT_2(THCTensor_, NAME)
