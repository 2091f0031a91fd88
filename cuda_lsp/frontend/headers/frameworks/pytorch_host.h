// PyTorch's host words around launches, as far as types go: with them clang makes the instances that dispatch macros ask for.
#if __cplusplus >= 201402L
namespace c10 {
enum class ScalarType : signed char { Byte, Char, Short, Int, Long, Half, Float, Double, ComplexHalf, ComplexFloat, ComplexDouble, Bool, QInt8, QUInt8, QInt32, BFloat16, Undefined };
enum class DeviceType : signed char { CPU, CUDA };
enum class Layout : signed char { Strided, Sparse }; enum class MemoryFormat : signed char { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
constexpr ScalarType kByte = ScalarType::Byte, kChar = ScalarType::Char, kShort = ScalarType::Short, kInt = ScalarType::Int, kLong = ScalarType::Long, kHalf = ScalarType::Half, kFloat = ScalarType::Float, kDouble = ScalarType::Double, kBool = ScalarType::Bool, kBFloat16 = ScalarType::BFloat16;
constexpr ScalarType kUInt8 = kByte, kInt8 = kChar, kInt16 = kShort, kInt32 = kInt, kInt64 = kLong, kFloat16 = kHalf, kFloat32 = kFloat, kFloat64 = kDouble;
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA; constexpr Layout kStrided = Layout::Strided; constexpr ::std::nullptr_t nullopt_layout = nullptr;
struct Device { Device(DeviceType, signed char = -1); bool is_cuda() const; bool is_cpu() const; DeviceType type() const; signed char index() const; bool has_index() const; bool operator==(const Device&) const; bool operator!=(const Device&) const; };
template <class T> struct ArrayRef { ArrayRef(); ArrayRef(const T&); ArrayRef(const T*, size_t); ArrayRef(const ::std::vector<T>&); ArrayRef(::std::initializer_list<T>); const T& operator[](size_t) const; const T* data() const; const T* begin() const; const T* end() const; size_t size() const; bool empty() const; ::std::vector<T> vec() const; const T& front() const; const T& back() const; ArrayRef slice(size_t, size_t) const; ArrayRef slice(size_t) const; bool operator==(const ArrayRef&) const; bool operator!=(const ArrayRef&) const; };
using IntArrayRef = ArrayRef<long>;
struct TypeMeta { operator ScalarType() const; size_t itemsize() const; bool operator==(const TypeMeta&) const; bool operator==(ScalarType) const; bool operator!=(ScalarType) const; };
struct Scalar { template <class T> Scalar(T); template <class T> T to() const; double toDouble() const; float toFloat() const; long toLong() const; int toInt() const; };
struct TensorOptions { TensorOptions(); TensorOptions(ScalarType); TensorOptions(TypeMeta); TensorOptions(Device); TensorOptions(DeviceType); TensorOptions dtype(ScalarType) const; TensorOptions dtype(TypeMeta) const; TensorOptions device(Device) const; TensorOptions device(DeviceType, signed char = -1) const; TensorOptions layout(Layout) const; TensorOptions requires_grad(bool = true) const; TensorOptions memory_format(MemoryFormat) const; TensorOptions pinned_memory(bool = true) const; };
const char* toString(ScalarType); size_t elementSize(ScalarType); bool isFloatingType(ScalarType); bool isIntegralType(ScalarType, bool = false);
template <class T> struct CppTypeToScalarType { static constexpr ScalarType value = ScalarType::Undefined; };
using ::std::optional; using ::std::nullopt; template <class T> ::std::decay_t<T> __any();
namespace cuda {
struct CUDAStream { operator cudaStream_t() const; cudaStream_t stream() const; void synchronize() const; }; CUDAStream getCurrentCUDAStream(signed char = -1); CUDAStream getDefaultCUDAStream(signed char = -1); CUDAStream getStreamFromPool(bool = false, signed char = -1);
struct CUDAGuard { explicit CUDAGuard(Device); explicit CUDAGuard(int); }; struct OptionalCUDAGuard { template <class T> explicit OptionalCUDAGuard(T); }; struct CUDAStreamGuard { explicit CUDAStreamGuard(CUDAStream); };
void MaybeSetDevice(int); int current_device(); void set_device(int);
}
}
namespace at {
using namespace ::c10;
struct Tensor {
  Tensor(); template <class T = void> T* data_ptr() const; template <class T = void> T* mutable_data_ptr() const; template <class T = void> const T* const_data_ptr() const; template <class T> T* data() const; Tensor data() const;
  long size(long) const; IntArrayRef sizes() const; long stride(long) const; IntArrayRef strides() const; long numel() const; long dim() const; long ndimension() const; long nbytes() const; long element_size() const; long itemsize() const; long storage_offset() const;
  ScalarType scalar_type() const; TypeMeta dtype() const; Device device() const; TensorOptions options() const; long get_device() const; Layout layout() const; Tensor type() const; ScalarType scalarType() const;
  bool is_cuda() const; bool is_cpu() const; bool is_sparse() const; bool is_contiguous(MemoryFormat = MemoryFormat::Contiguous) const; bool defined() const; bool is_floating_point() const; bool is_complex() const; bool requires_grad() const; bool is_same(const Tensor&) const; bool is_non_overlapping_and_dense() const; MemoryFormat suggest_memory_format() const; void reset(); void zero();
  template <class T> T item() const; Scalar item() const; template <class T, size_t N> TensorAccessor<T, N> accessor() const;
  template <class T, size_t N, template <class> class P = DefaultPtrTraits> PackedTensorAccessor32<T, N, P> packed_accessor32() const; template <class T, size_t N, template <class> class P = DefaultPtrTraits> PackedTensorAccessor64<T, N, P> packed_accessor64() const; template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = long> GenericPackedTensorAccessor<T, N, P, I> packed_accessor() const; template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = long> GenericPackedTensorAccessor<T, N, P, I> generic_packed_accessor() const;
  Tensor operator[](long) const; Tensor operator[](const Tensor&) const; Tensor operator-() const; Tensor operator~() const; template <class T> Tensor& operator+=(const T&); template <class T> Tensor& operator-=(const T&); template <class T> Tensor& operator*=(const T&); template <class T> Tensor& operator/=(const T&);
#define CUDA_LSP_MADE(name) template <class... A> Tensor name(A&&...) const; Tensor name(::std::initializer_list<long>) const; template <class A> Tensor name(A&&, ::std::initializer_list<long>) const; template <class A> Tensor name(::std::initializer_list<long>, A&&) const; template <class A, class B> Tensor name(::std::initializer_list<long>, A&&, B&&) const;
  CUDA_LSP_MADE(contiguous) CUDA_LSP_MADE(to) CUDA_LSP_MADE(view) CUDA_LSP_MADE(view_as) CUDA_LSP_MADE(reshape) CUDA_LSP_MADE(expand) CUDA_LSP_MADE(expand_as) CUDA_LSP_MADE(transpose) CUDA_LSP_MADE(permute) CUDA_LSP_MADE(squeeze) CUDA_LSP_MADE(unsqueeze) CUDA_LSP_MADE(slice) CUDA_LSP_MADE(narrow) CUDA_LSP_MADE(select) CUDA_LSP_MADE(index) CUDA_LSP_MADE(index_select) CUDA_LSP_MADE(flatten) CUDA_LSP_MADE(t) CUDA_LSP_MADE(flip)
  CUDA_LSP_MADE(cpu) CUDA_LSP_MADE(cuda) CUDA_LSP_MADE(clone) CUDA_LSP_MADE(detach) CUDA_LSP_MADE(toType) CUDA_LSP_MADE(fill_) CUDA_LSP_MADE(zero_) CUDA_LSP_MADE(copy_) CUDA_LSP_MADE(masked_fill_) CUDA_LSP_MADE(resize_) CUDA_LSP_MADE(add_) CUDA_LSP_MADE(mul_) CUDA_LSP_MADE(div_) CUDA_LSP_MADE(set_) CUDA_LSP_MADE(index_put_) CUDA_LSP_MADE(scatter_) CUDA_LSP_MADE(repeat) CUDA_LSP_MADE(new_zeros) CUDA_LSP_MADE(new_empty) CUDA_LSP_MADE(new_full) CUDA_LSP_MADE(bitwise_not)
  CUDA_LSP_MADE(sum) CUDA_LSP_MADE(mean) CUDA_LSP_MADE(max) CUDA_LSP_MADE(min) CUDA_LSP_MADE(abs) CUDA_LSP_MADE(sqrt) CUDA_LSP_MADE(exp) CUDA_LSP_MADE(pow) CUDA_LSP_MADE(add) CUDA_LSP_MADE(sub) CUDA_LSP_MADE(mul) CUDA_LSP_MADE(div) CUDA_LSP_MADE(cumsum) CUDA_LSP_MADE(argsort) CUDA_LSP_MADE(matmul) CUDA_LSP_MADE(mm) CUDA_LSP_MADE(bmm) CUDA_LSP_MADE(any) CUDA_LSP_MADE(all) CUDA_LSP_MADE(nonzero) CUDA_LSP_MADE(eq) CUDA_LSP_MADE(ne) CUDA_LSP_MADE(lt) CUDA_LSP_MADE(gt) CUDA_LSP_MADE(le) CUDA_LSP_MADE(ge)
#undef CUDA_LSP_MADE
};
#define CUDA_LSP_OPERATOR(o) template <class T> Tensor operator o(const Tensor&, const T&); Tensor operator o(double, const Tensor&);
CUDA_LSP_OPERATOR(+) CUDA_LSP_OPERATOR(-) CUDA_LSP_OPERATOR(*) CUDA_LSP_OPERATOR(/) CUDA_LSP_OPERATOR(==) CUDA_LSP_OPERATOR(!=) CUDA_LSP_OPERATOR(<) CUDA_LSP_OPERATOR(>) CUDA_LSP_OPERATOR(<=) CUDA_LSP_OPERATOR(>=) CUDA_LSP_OPERATOR(&) CUDA_LSP_OPERATOR(|)
#undef CUDA_LSP_OPERATOR
#define CUDA_LSP_MADE(name) template <class... A> Tensor name(A&&...); template <class... A> Tensor name(::std::initializer_list<long>, A&&...); template <class B, class... A> Tensor name(::std::initializer_list<long>, B&&, A&&...);
CUDA_LSP_MADE(empty) CUDA_LSP_MADE(zeros) CUDA_LSP_MADE(ones) CUDA_LSP_MADE(full) CUDA_LSP_MADE(empty_like) CUDA_LSP_MADE(zeros_like) CUDA_LSP_MADE(ones_like) CUDA_LSP_MADE(full_like) CUDA_LSP_MADE(arange) CUDA_LSP_MADE(tensor) CUDA_LSP_MADE(from_blob) CUDA_LSP_MADE(cat) CUDA_LSP_MADE(stack) CUDA_LSP_MADE(empty_strided) CUDA_LSP_MADE(where) CUDA_LSP_MADE(matmul) CUDA_LSP_MADE(mm) CUDA_LSP_MADE(bmm) CUDA_LSP_MADE(sum) CUDA_LSP_MADE(randn) CUDA_LSP_MADE(rand)
#undef CUDA_LSP_MADE
TensorOptions dtype(ScalarType); TensorOptions device(Device); using TensorList = ArrayRef<Tensor>;
struct Generator {}; template <class T> T* get_generator_or_default(const optional<Generator>&, const Generator&); struct CUDAGeneratorImpl { PhiloxCudaState philox_cuda_state(unsigned long); ::std::mutex mutex_; }; namespace cuda { namespace detail { const Generator& getDefaultCUDAGenerator(signed char = -1); } }
struct CheckedFrom {}; struct TensorArg { TensorArg(const Tensor&, const char*, int); Tensor tensor; const Tensor* operator->() const; };
bool __asked();
namespace cuda {
using ::c10::cuda::CUDAStream; using ::c10::cuda::CUDAGuard; using ::c10::cuda::OptionalCUDAGuard; using ::c10::cuda::CUDAStreamGuard; using ::c10::cuda::getCurrentCUDAStream; using ::c10::cuda::getDefaultCUDAStream; using ::c10::cuda::getStreamFromPool; template <class T> T ATenCeilDiv(T a, T b) { return (a + b - 1) / b; }
cudaDeviceProp* getCurrentDeviceProperties(); cudaDeviceProp* getDeviceProperties(int); int warp_size();
namespace detail {
template <class T, class I> struct TensorInfo { T* data; I sizes[25]; I strides[25]; int dims; TensorInfo(); TensorInfo(T*, int, I[25], I[25]); bool isContiguous() const { return dims == 1 && strides[0] == 1; } };
template <class T, class I, int Dims> struct IndexToOffset {
  static __host__ __device__ I get(I linear, const TensorInfo<T, I>& info) { I offset = 0; for (int i = (Dims < 0 ? info.dims : Dims) - 1; i > 0; --i) { offset += linear % info.sizes[i] * info.strides[i]; linear /= info.sizes[i]; } return offset + linear * info.strides[0]; }
};
template <class T, class I> TensorInfo<T, I> getTensorInfo(const Tensor&); bool canUse32BitIndexMath(const Tensor&, long = 2147483647); bool maybeOverlappingIndices(const Tensor&);
}
}
}
namespace torch { using namespace ::at; }
#define CUDA_LSP_CASE(T, ...) if (::at::__asked()) { using scalar_t = T; return __VA_ARGS__(); }
#define CUDA_LSP_FLOATS(...) CUDA_LSP_CASE(double, __VA_ARGS__) CUDA_LSP_CASE(float, __VA_ARGS__)
#define CUDA_LSP_INTEGERS(...) CUDA_LSP_CASE(unsigned char, __VA_ARGS__) CUDA_LSP_CASE(signed char, __VA_ARGS__) CUDA_LSP_CASE(int, __VA_ARGS__) CUDA_LSP_CASE(long, __VA_ARGS__) CUDA_LSP_CASE(short, __VA_ARGS__)
template <::c10::ScalarType> struct __c10_type { typedef float type; };
#define CUDA_LSP_TYPE(S, T) template <> struct __c10_type<::c10::ScalarType::S> { typedef T type; };
CUDA_LSP_TYPE(Byte, unsigned char) CUDA_LSP_TYPE(Char, signed char) CUDA_LSP_TYPE(Short, short) CUDA_LSP_TYPE(Int, int) CUDA_LSP_TYPE(Long, long) CUDA_LSP_TYPE(Half, ::c10::Half) CUDA_LSP_TYPE(Double, double) CUDA_LSP_TYPE(Bool, bool) CUDA_LSP_TYPE(BFloat16, ::c10::BFloat16)
#undef CUDA_LSP_TYPE
#define AT_DISPATCH_CASE(S, ...) if (::at::__asked()) { using scalar_t = typename __c10_type<S>::type; return __VA_ARGS__(); }
#define AT_DISPATCH_SWITCH(t, n, ...) [&] { const auto& the_type = t; (void)the_type; __VA_ARGS__ }()
#define AT_DISPATCH_CASE_FLOATING_TYPES(...) CUDA_LSP_FLOATS(__VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...) CUDA_LSP_INTEGERS(__VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...) CUDA_LSP_INTEGERS(__VA_ARGS__) CUDA_LSP_FLOATS(__VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...) CUDA_LSP_FLOATS(__VA_ARGS__) CUDA_LSP_CASE(::c10::Half, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(t, n, ...) [&] { CUDA_LSP_FLOATS(__VA_ARGS__) }()
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(t, n, ...) [&] { CUDA_LSP_FLOATS(__VA_ARGS__) CUDA_LSP_CASE(::c10::Half, __VA_ARGS__) }()
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(t, n, ...) [&] { CUDA_LSP_CASE(::c10::Half, __VA_ARGS__) CUDA_LSP_CASE(::c10::BFloat16, __VA_ARGS__) }()
#define AT_DISPATCH_INTEGRAL_TYPES(t, n, ...) [&] { CUDA_LSP_INTEGERS(__VA_ARGS__) }()
#define AT_DISPATCH_ALL_TYPES(t, n, ...) [&] { CUDA_LSP_INTEGERS(__VA_ARGS__) CUDA_LSP_FLOATS(__VA_ARGS__) }()
#define AT_DISPATCH_ALL_TYPES_AND_HALF(t, n, ...) [&] { CUDA_LSP_INTEGERS(__VA_ARGS__) CUDA_LSP_FLOATS(__VA_ARGS__) CUDA_LSP_CASE(::c10::Half, __VA_ARGS__) }()
#define AT_DISPATCH_FLOATING_TYPES_AND(a, t, n, ...) [&] { CUDA_LSP_FLOATS(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) }()
#define AT_DISPATCH_FLOATING_TYPES_AND2(a, b, t, n, ...) [&] { CUDA_LSP_FLOATS(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) AT_DISPATCH_CASE(b, __VA_ARGS__) }()
#define AT_DISPATCH_ALL_TYPES_AND(a, t, n, ...) [&] { CUDA_LSP_INTEGERS(__VA_ARGS__) CUDA_LSP_FLOATS(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) }()
#define AT_DISPATCH_ALL_TYPES_AND2(a, b, t, n, ...) [&] { CUDA_LSP_INTEGERS(__VA_ARGS__) CUDA_LSP_FLOATS(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) AT_DISPATCH_CASE(b, __VA_ARGS__) }()
#define AT_DISPATCH_ALL_TYPES_AND3(a, b, c, t, n, ...) [&] { CUDA_LSP_INTEGERS(__VA_ARGS__) CUDA_LSP_FLOATS(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) AT_DISPATCH_CASE(b, __VA_ARGS__) AT_DISPATCH_CASE(c, __VA_ARGS__) }()
#endif
