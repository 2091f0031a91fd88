// dmlc-core, as far as host code around kernels names it: parameters, registries, streams, what is checked and logged.
struct __cuda_lsp_log { template <class T> __cuda_lsp_log& operator<<(const T&) { return *this; } template <class T> __cuda_lsp_log& operator<<(T& (*)(T&)) { return *this; } };
template <class... T> __cuda_lsp_log __cuda_lsp_checked(T&&...);
namespace dmlc {
typedef float real_t; typedef unsigned index_t; typedef long omp_ulong; typedef int omp_uint;
struct Error : ::std::runtime_error { explicit Error(const ::std::string&); };
struct Stream { virtual size_t Read(void*, size_t); virtual size_t Write(const void*, size_t); template <class T> void Write(const T&); template <class T> bool Read(T*); static Stream* Create(const char*, const char*, bool = false); static Stream* Create(const ::std::string&, const char*, bool = false); };
struct SeekStream : Stream { virtual void Seek(size_t); virtual size_t Tell(); }; struct Serializable { virtual void Load(Stream*); virtual void Save(Stream*) const; };
struct DateLogger { const char* HumanDate(); }; struct LogMessageFatal { LogMessageFatal(const char*, int); __cuda_lsp_log& stream(); }; struct LogMessage { LogMessage(const char*, int); __cuda_lsp_log& stream(); };
struct OMPException { template <class F, class... A> void Run(F, A...); void Rethrow(); };
namespace parameter { struct FieldAccessEntry { virtual ~FieldAccessEntry(); }; template <class T> struct __field { template <class V> __field& set_default(const V&); template <class... V> __field& set_range(const V&...); template <class V> __field& set_lower_bound(const V&); template <class V> __field& set_upper_bound(const V&); template <class... V> __field& add_enum(const V&...); __field& describe(const ::std::string&); __field& set_expect_bool(); }; template <class T> struct FieldEntry : __field<T> {}; struct ParamManager; }
template <class P> struct Parameter { template <class C> ::std::vector<::std::pair<::std::string, ::std::string>> InitAllowUnknown(const C&); template <class C> ::std::vector<::std::pair<::std::string, ::std::string>> UpdateAllowUnknown(const C&); template <class C> void Init(const C&); ::std::map<::std::string, ::std::string> __DICT__() const; };
template <class E, class F> struct FunctionRegEntryBase { ::std::string name; ::std::string description; F body; E& describe(const ::std::string&); E& set_body(F); template <class... T> E& add_argument(const T&...); template <class T> E& add_arguments(const T&); E& set_return_type(const ::std::string&); };
template <class E> struct Registry { static Registry* Get(); E& __REGISTER__(const ::std::string&); E& __REGISTER_OR_GET__(const ::std::string&); static const E* Find(const ::std::string&); static const ::std::vector<const E*>& List(); };
template <class T> struct ThreadLocalStore { static T* Get(); }; template <class T> T* BeginPtr(::std::vector<T>&); template <class T> const T* BeginPtr(const ::std::vector<T>&); void ByteSwap(void*, size_t, size_t);
template <class I, class D = real_t> struct RowBlock { size_t size; const size_t* offset; const D* label; const real_t* weight; const unsigned long long* qid; const I* field; const I* index; const D* value; }; template <class T> struct DataIter { virtual void BeforeFirst(); virtual bool Next(); virtual const T& Value() const; }; template <class I, class D = real_t> struct Parser : DataIter<RowBlock<I, D>> {};
}
#define DMLC_DECLARE_PARAMETER(name) template <class M> inline void __DECLARE__(M* manager)
#define DMLC_DECLARE_FIELD(field) ::dmlc::parameter::__field<decltype(field)>()
#define DMLC_DECLARE_ALIAS(field, alias) (void)0
#define DMLC_DECLARE_TRAITS(...)
#define DMLC_REGISTER_PARAMETER(name)
#define DMLC_REGISTRY_ENABLE(entry)
#define DMLC_REGISTRY_FILE_TAG(tag)
#define DMLC_REGISTRY_LINK_TAG(tag)
#define DMLC_ATTRIBUTE_UNUSED __attribute__((unused))
#define DMLC_LITTLE_ENDIAN 1
#define DMLC_IO_NO_ENDIAN_SWAP 1
#ifndef CHECK
#define CHECK(x) __cuda_lsp_checked(x)
#define CHECK_EQ(x, y) __cuda_lsp_checked(x, y)
#define CHECK_NE(x, y) __cuda_lsp_checked(x, y)
#define CHECK_LT(x, y) __cuda_lsp_checked(x, y)
#define CHECK_LE(x, y) __cuda_lsp_checked(x, y)
#define CHECK_GT(x, y) __cuda_lsp_checked(x, y)
#define CHECK_GE(x, y) __cuda_lsp_checked(x, y)
#define CHECK_NOTNULL(x) (x)
#endif
#ifndef LOG_FATAL
#define LOG_FATAL ::__cuda_lsp_log()
#define LOG_ERROR ::__cuda_lsp_log()
#define LOG_INFO ::__cuda_lsp_log()
#define LOG_WARNING ::__cuda_lsp_log()
#define LOG_DEBUG ::__cuda_lsp_log()
#endif
#ifndef LOG
#define LOG(severity) LOG_##severity
#endif
