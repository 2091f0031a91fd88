// The parts of the C and C++ standard libraries that device code uses, and enough of the rest for signatures.
struct FILE;
extern FILE *stdin, *stdout, *stderr;
extern "C" {
int printf(const char*, ...); int fprintf(FILE*, const char*, ...); int sprintf(char*, const char*, ...); int snprintf(char*, size_t, const char*, ...);
void* malloc(size_t); void* calloc(size_t, size_t); void* realloc(void*, size_t); void free(void*); void exit(int) __attribute__((noreturn)); void abort() __attribute__((noreturn));
void* memcpy(void*, const void*, size_t); void* memmove(void*, const void*, size_t); void* memset(void*, int, size_t); int memcmp(const void*, const void*, size_t);
size_t strlen(const char*); char* strcpy(char*, const char*); char* strncpy(char*, const char*, size_t); char* strcat(char*, const char*); int strcmp(const char*, const char*); int strncmp(const char*, const char*, size_t);
int atoi(const char*); double atof(const char*); int rand(); void srand(unsigned);
}
inline void* operator new(size_t, void* p) noexcept { return p; } inline void* operator new[](size_t, void* p) noexcept { return p; }
namespace std {
using ::size_t; using ::ptrdiff_t; using ::intptr_t; using ::uintptr_t; using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::sin; using ::cos; using ::tan; using ::asin; using ::acos; using ::atan; using ::sinh; using ::cosh; using ::tanh; using ::exp; using ::exp2; using ::expm1; using ::log; using ::log2; using ::log10; using ::log1p;
using ::sqrt; using ::cbrt; using ::floor; using ::ceil; using ::trunc; using ::round; using ::rint; using ::fabs; using ::erf; using ::erfc; using ::pow; using ::atan2; using ::fmod; using ::fmin; using ::fmax; using ::hypot;
using ::copysign; using ::fma; using ::abs; using ::isnan; using ::isinf; using ::isfinite; using ::signbit; using ::tgamma; using ::lgamma; using ::lround; using ::llround; using ::nearbyint; using ::nextafter; using ::ldexp; using ::frexp; using ::modf;
using ::printf; using ::memcpy; using ::memmove; using ::memset; using ::memcmp; using ::malloc; using ::free; using ::exit; using ::abort; using ::rand; using ::srand;
template <class T> struct remove_reference { typedef T type; }; template <class T> struct remove_reference<T&> { typedef T type; }; template <class T> struct remove_reference<T&&> { typedef T type; };
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> struct remove_const { typedef T type; }; template <class T> struct remove_const<const T> { typedef T type; }; template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> struct remove_volatile { typedef T type; }; template <class T> struct remove_volatile<volatile T> { typedef T type; };
template <class T> struct remove_cv { typedef typename remove_const<typename remove_volatile<T>::type>::type type; }; template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> struct remove_pointer { typedef T type; }; template <class T> struct remove_pointer<T*> { typedef T type; }; template <class T> using remove_pointer_t = typename remove_pointer<T>::type;
template <class T> struct decay { typedef typename remove_cv<typename remove_reference<T>::type>::type type; }; template <class T> using decay_t = typename decay<T>::type;
template <class T, T v> struct integral_constant { static constexpr T value = v; typedef T value_type; typedef integral_constant type; constexpr operator T() const { return v; } constexpr T operator()() const { return v; } };
typedef integral_constant<bool, true> true_type; typedef integral_constant<bool, false> false_type; template <bool b> using bool_constant = integral_constant<bool, b>;
template <class A, class B> struct is_same : false_type {}; template <class A> struct is_same<A, A> : true_type {}; template <class A, class B> constexpr bool is_same_v = is_same<A, B>::value;
template <bool, class T = void> struct enable_if {}; template <class T> struct enable_if<true, T> { typedef T type; }; template <bool b, class T = void> using enable_if_t = typename enable_if<b, T>::type;
template <bool, class A, class B> struct conditional { typedef A type; }; template <class A, class B> struct conditional<false, A, B> { typedef B type; }; template <bool b, class A, class B> using conditional_t = typename conditional<b, A, B>::type;
#define CUDA_LSP_TRAIT(name, builtin) template <class T> struct name : bool_constant<builtin(T)> {}; template <class T> constexpr bool name##_v = builtin(T);
CUDA_LSP_TRAIT(is_integral, __is_integral) CUDA_LSP_TRAIT(is_floating_point, __is_floating_point) CUDA_LSP_TRAIT(is_arithmetic, __is_arithmetic) CUDA_LSP_TRAIT(is_signed, __is_signed)
CUDA_LSP_TRAIT(is_unsigned, __is_unsigned) CUDA_LSP_TRAIT(is_pointer, __is_pointer) CUDA_LSP_TRAIT(is_enum, __is_enum) CUDA_LSP_TRAIT(is_class, __is_class) CUDA_LSP_TRAIT(is_const, __is_const)
CUDA_LSP_TRAIT(is_trivially_copyable, __is_trivially_copyable) CUDA_LSP_TRAIT(is_trivial, __is_trivial) CUDA_LSP_TRAIT(is_standard_layout, __is_standard_layout) CUDA_LSP_TRAIT(is_pod, __is_pod)
CUDA_LSP_TRAIT(is_void, __is_void) CUDA_LSP_TRAIT(is_array, __is_array) CUDA_LSP_TRAIT(is_function, __is_function) CUDA_LSP_TRAIT(is_union, __is_union) CUDA_LSP_TRAIT(is_empty, __is_empty) CUDA_LSP_TRAIT(is_final, __is_final)
CUDA_LSP_TRAIT(is_abstract, __is_abstract) CUDA_LSP_TRAIT(is_polymorphic, __is_polymorphic) CUDA_LSP_TRAIT(is_aggregate, __is_aggregate) CUDA_LSP_TRAIT(is_volatile, __is_volatile) CUDA_LSP_TRAIT(is_reference, __is_reference)
CUDA_LSP_TRAIT(is_lvalue_reference, __is_lvalue_reference) CUDA_LSP_TRAIT(is_rvalue_reference, __is_rvalue_reference) CUDA_LSP_TRAIT(is_object, __is_object) CUDA_LSP_TRAIT(is_scalar, __is_scalar) CUDA_LSP_TRAIT(is_fundamental, __is_fundamental)
CUDA_LSP_TRAIT(is_compound, __is_compound) CUDA_LSP_TRAIT(is_member_pointer, __is_member_pointer) CUDA_LSP_TRAIT(has_virtual_destructor, __has_virtual_destructor)
CUDA_LSP_TRAIT(is_destructible, __is_destructible) CUDA_LSP_TRAIT(is_trivially_destructible, __is_trivially_destructible) CUDA_LSP_TRAIT(is_nothrow_destructible, __is_nothrow_destructible)
#undef CUDA_LSP_TRAIT
#define CUDA_LSP_MADE(how, builtin) template <class T, class... A> struct is##how##_constructible : bool_constant<builtin(T, A...)> {}; template <class T> struct is##how##_default_constructible : bool_constant<builtin(T)> {}; template <class T> struct is##how##_copy_constructible : bool_constant<builtin(T, const T&)> {}; template <class T> struct is##how##_move_constructible : bool_constant<builtin(T, T&&)> {}; template <class T, class... A> constexpr bool is##how##_constructible_v = builtin(T, A...); template <class T> constexpr bool is##how##_default_constructible_v = builtin(T); template <class T> constexpr bool is##how##_copy_constructible_v = builtin(T, const T&); template <class T> constexpr bool is##how##_move_constructible_v = builtin(T, T&&);
CUDA_LSP_MADE(, __is_constructible) CUDA_LSP_MADE(_trivially, __is_trivially_constructible) CUDA_LSP_MADE(_nothrow, __is_nothrow_constructible)
#undef CUDA_LSP_MADE
#define CUDA_LSP_SET(how, builtin) template <class T, class A> struct is##how##_assignable : bool_constant<builtin(T, A)> {}; template <class T> struct is##how##_copy_assignable : bool_constant<builtin(T&, const T&)> {}; template <class T> struct is##how##_move_assignable : bool_constant<builtin(T&, T&&)> {}; template <class T, class A> constexpr bool is##how##_assignable_v = builtin(T, A); template <class T> constexpr bool is##how##_copy_assignable_v = builtin(T&, const T&); template <class T> constexpr bool is##how##_move_assignable_v = builtin(T&, T&&);
CUDA_LSP_SET(, __is_assignable) CUDA_LSP_SET(_trivially, __is_trivially_assignable) CUDA_LSP_SET(_nothrow, __is_nothrow_assignable)
#undef CUDA_LSP_SET
template <class A, class B> struct is_base_of : bool_constant<__is_base_of(A, B)> {}; template <class A, class B> struct is_convertible : bool_constant<__is_convertible_to(A, B)> {}; template <class A, class B> constexpr bool is_convertible_v = __is_convertible_to(A, B);
template <class T> using make_unsigned_t = __make_unsigned(T); template <class T> using make_signed_t = __make_signed(T); template <class T> struct make_unsigned { typedef __make_unsigned(T) type; }; template <class T> struct make_signed { typedef __make_signed(T) type; };
template <class T> struct underlying_type { typedef __underlying_type(T) type; }; template <class...> using void_t = void;
template <class T> T&& declval() noexcept; template <class T> constexpr T&& forward(remove_reference_t<T>& t) { return static_cast<T&&>(t); } template <class T> constexpr remove_reference_t<T>&& move(T&& t) { return static_cast<remove_reference_t<T>&&>(t); }
template <class T> constexpr void swap(T& a, T& b) { T c = a; a = b; b = c; }
template <class T> constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; } template <class T> constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T> constexpr const T& clamp(const T& v, const T& lo, const T& hi) { return v < lo ? lo : hi < v ? hi : v; }
template <class T, size_t N> struct array { typedef T value_type; T __items[N ? N : 1]; constexpr T& operator[](size_t i) { return __items[i]; } constexpr const T& operator[](size_t i) const { return __items[i]; } constexpr size_t size() const { return N; } constexpr T* data() { return __items; } constexpr const T* data() const { return __items; } constexpr T* begin() { return __items; } constexpr T* end() { return __items + N; } constexpr const T* begin() const { return __items; } constexpr const T* end() const { return __items + N; } };
template <class A, class B> struct pair { typedef A first_type; typedef B second_type; A first; B second; constexpr pair() : first(), second() {} constexpr pair(const A& a, const B& b) : first(a), second(b) {} }; template <class A, class B> constexpr pair<A, B> make_pair(A a, B b) { return {a, b}; }
template <class T> struct initializer_list { const T* __first; size_t __count; constexpr const T* begin() const { return __first; } constexpr const T* end() const { return __first + __count; } constexpr size_t size() const { return __count; } };
#if __cplusplus < 201402L
template <class T> struct plus { constexpr T operator()(T a, T b) const { return a + b; } }; template <class T> struct multiplies { constexpr T operator()(T a, T b) const { return a * b; } }; template <class T> struct less { constexpr bool operator()(const T& a, const T& b) const { return a < b; } }; template <class T> struct greater { constexpr bool operator()(const T& a, const T& b) const { return b < a; } };
#endif
enum float_round_style { round_indeterminate = -1, round_toward_zero, round_to_nearest, round_toward_infinity, round_toward_neg_infinity }; enum float_denorm_style { denorm_indeterminate = -1, denorm_absent, denorm_present };
template <class T> struct numeric_limits;
#define CUDA_LSP_LIMITS(T, low, high, bits, sign) template <> struct numeric_limits<T> { static constexpr bool is_specialized = true, is_signed = sign, is_integer = true, has_infinity = false, has_quiet_NaN = false, is_exact = true, is_bounded = true; static constexpr int digits = bits, digits10 = bits * 30103L / 100000, radix = 2; static constexpr float_round_style round_style = round_toward_zero; static constexpr T min() { return low; } static constexpr T lowest() { return low; } static constexpr T max() { return high; } };
CUDA_LSP_LIMITS(bool, false, true, 1, false) CUDA_LSP_LIMITS(char, CHAR_MIN, CHAR_MAX, 7, true) CUDA_LSP_LIMITS(signed char, SCHAR_MIN, SCHAR_MAX, 7, true) CUDA_LSP_LIMITS(unsigned char, 0, UCHAR_MAX, 8, false)
CUDA_LSP_LIMITS(short, SHRT_MIN, SHRT_MAX, 15, true) CUDA_LSP_LIMITS(unsigned short, 0, USHRT_MAX, 16, false) CUDA_LSP_LIMITS(int, INT_MIN, INT_MAX, 31, true) CUDA_LSP_LIMITS(unsigned, 0, UINT_MAX, 32, false)
CUDA_LSP_LIMITS(long, LONG_MIN, LONG_MAX, 63, true) CUDA_LSP_LIMITS(unsigned long, 0, ULONG_MAX, 64, false) CUDA_LSP_LIMITS(long long, LLONG_MIN, LLONG_MAX, 63, true) CUDA_LSP_LIMITS(unsigned long long, 0, ULLONG_MAX, 64, false)
#undef CUDA_LSP_LIMITS
#define CUDA_LSP_LIMITS(T, P) template <> struct numeric_limits<T> { static constexpr bool is_specialized = true, is_signed = true, is_integer = false, has_infinity = true, has_quiet_NaN = true, is_exact = false, is_bounded = true, is_iec559 = true; static constexpr int digits = __##P##_MANT_DIG__, digits10 = __##P##_DIG__, max_digits10 = __##P##_DECIMAL_DIG__, radix = 2, min_exponent = __##P##_MIN_EXP__, max_exponent = __##P##_MAX_EXP__; static constexpr float_round_style round_style = round_to_nearest; static constexpr T min() { return P##_MIN; } static constexpr T lowest() { return -P##_MAX; } static constexpr T max() { return P##_MAX; } static constexpr T epsilon() { return P##_EPSILON; } static constexpr T infinity() { return __builtin_inf(); } static constexpr T quiet_NaN() { return __builtin_nan(""); } };
CUDA_LSP_LIMITS(float, FLT) CUDA_LSP_LIMITS(double, DBL)
#undef CUDA_LSP_LIMITS
template <class T> struct allocator {};
template <class T, class A = allocator<T>> struct vector { typedef T value_type; typedef T* iterator; typedef const T* const_iterator; vector(); explicit vector(size_t); vector(size_t, const T&); vector(initializer_list<T>); template <class I> vector(I, I); T& operator[](size_t); const T& operator[](size_t) const; size_t size() const; bool empty() const; T* data(); const T* data() const; T* begin(); T* end(); const T* begin() const; const T* end() const; void push_back(const T&); template <class... X> void emplace_back(X&&...); void resize(size_t); void resize(size_t, const T&); void reserve(size_t); void clear(); T& back(); T& front(); T& at(size_t); };
struct string { string(); string(const char*); const char* c_str() const; size_t size() const; size_t length() const; string& operator+=(const string&); char& operator[](size_t); }; string operator+(const string&, const string&); bool operator==(const string&, const string&); template <class T> string to_string(T);
struct ostream { template <class T> ostream& operator<<(const T&); ostream& operator<<(ostream& (*)(ostream&)); }; extern ostream cout, cerr; ostream& endl(ostream&);
template <class F> struct function { function(); template <class G> function(G); };
template <class T> struct shared_ptr { T* __p; void* __count; shared_ptr(); T* get() const; T& operator*() const; T* operator->() const; explicit operator bool() const; void reset(); template <class U> void reset(U*); }; template <class T> struct weak_ptr { T* __p; void* __count; };
template <class T> struct default_delete {}; template <class T, class D = default_delete<T>> struct unique_ptr { T* __p; unique_ptr(); T* get() const; T& operator*() const; T* operator->() const; explicit operator bool() const; void reset(T* = nullptr); T* release(); };
template <class K, class V> struct map { void* __p[6]; V& operator[](const K&); size_t size() const; }; template <class K, class V> struct unordered_map { void* __p[7]; V& operator[](const K&); size_t size() const; };
template <class K> struct set { void* __p[6]; size_t size() const; }; template <class K> struct unordered_set { void* __p[7]; size_t size() const; }; struct mutex { void* __p[5]; };
}  // namespace std
