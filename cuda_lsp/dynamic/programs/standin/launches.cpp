// Preloaded into the process in which a Python program runs on a GPU (`scripts/gpu_process.py`), in front of the
// real driver: which module and name a kernel has, and what memory there is, is noted as it passes. Each launch
// asks a callback first, which runs the instrumented kernel in its place and answers 1, or answers 0: then the
// launch goes on as it is.
//
// What the callback itself asks of the driver passes through.

#include <cuda.h>

#include <functional>

namespace {

struct Kernel {
    const void* module;
    std::string name;
};
struct Shape {  // as `scripts/gpu_process.py` reads it
    unsigned grid[3], block[3], shared, reason, cluster[3], together, device;
    unsigned long long packed_size;
    const void* packed;
};
enum Reason { NONE, IN_A_GRAPH, WITH_ATTRIBUTES };

typedef void (*Compiled)(const char* message, unsigned long long size);
typedef void (*Loaded)(const void* module, const char* image, unsigned long long size);
typedef int (*Launched)(const void* module, const char* name, const Shape* shape, void** arguments);
typedef void (*Refusal)(int pinned);

Compiled on_source = nullptr;
Loaded on_module = nullptr;
Launched on_launch = nullptr;
Refusal on_refusal = nullptr;
unsigned long long limits[2] = {~0ull, ~0ull};  // of the GPU, of the host's memory that it reaches

thread_local bool ours = false;  // the callback is at work in this thread
std::recursive_mutex held_by;

std::map<const void*, Kernel>& kernels() {
    static std::map<const void*, Kernel> all;
    return all;
}
std::map<const void*, const void*>& libraries() {  // a library, or its module → the library
    static std::map<const void*, const void*> all;
    return all;
}
struct Held {
    std::map<CUdeviceptr, size_t> all;
    unsigned long long sum = 0;
};
Held& held(bool pinned) {
    static Held both[2];
    return both[pinned];
}
std::map<std::string, void*>& drivers() {
    static std::map<std::string, void*> all;
    return all;
}

// The driver's own function: as it was given to who asked first, or in the library itself.
void* real(const char* name) {
    std::lock_guard<std::recursive_mutex> guard(held_by);
    void*& known = drivers()[name];
    if (known) return known;
    static void* library = nullptr;
    if (!library) library = dlopen("libcuda.so.1", RTLD_LAZY);
    if (library) known = real_lookup()(library, name);
    return known;
}

template <class... Types>
CUresult call(const char* name, Types... values) {
    void* f = real(name);
    return f ? ((CUresult(*)(Types...))f)(values...) : CUDA_ERROR_NOT_SUPPORTED;
}

struct Inside {
    Inside() { ours = true; }
    ~Inside() { ours = false; }
};

void compiled(const std::string& message) {
    if (ours || !on_source) return;
    Inside inside;
    on_source(message.data(), message.size());
}

void loaded(const void* module, const void* image) {
    if (ours || !on_module || !module || !image) return;
    const char* start = (const char*)image;
    size_t size = size_of(start);
    Inside inside;
    on_module(module, start, size);
}

void known_as(const void* function, const void* module, const char* name) {
    std::lock_guard<std::recursive_mutex> guard(held_by);
    if (!ours) kernels()[function] = Kernel{module, name};
}

// A library's module is known as the library, by whichever of them its kernels are got.
const void* loaded_as(const void* module) {
    std::lock_guard<std::recursive_mutex> guard(held_by);
    auto found = libraries().find(module);
    return found == libraries().end() ? module : found->second;
}

CUresult allocated(CUresult error, const CUdeviceptr* p, size_t size, bool pinned = false) {
    if (error || ours) return error;
    std::lock_guard<std::recursive_mutex> guard(held_by);
    held(pinned).all[*p] = size, held(pinned).sum += size;
    return error;
}

void forgotten(CUdeviceptr p, bool pinned = false) {
    if (ours) return;
    std::lock_guard<std::recursive_mutex> guard(held_by);
    auto found = held(pinned).all.find(p);
    if (found == held(pinned).all.end()) return;
    held(pinned).sum -= found->second;
    held(pinned).all.erase(found);
}

bool granted(size_t size, bool pinned = false) {
    if (ours) return true;
    {
        std::lock_guard<std::recursive_mutex> guard(held_by);
        unsigned long long used = held(pinned).sum;
        if (size <= limits[pinned] && used <= limits[pinned] - size) return true;
    }
    if (on_refusal) {
        Inside inside;
        on_refusal(pinned);
    }
    return false;
}

bool is_captured(CUstream stream, const char* name) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return !call(name, stream, &status) && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// Whether the launch was carried out by us.
bool taken(CUfunction f, Shape& shape, CUstream stream, bool per_thread, void** arguments, void** extra) {
    if (ours || !on_launch) return false;
    Kernel kernel;
    {
        std::lock_guard<std::recursive_mutex> guard(held_by);
        auto found = kernels().find((const void*)f);
        if (found != kernels().end()) kernel = found->second;
    }
    if (kernel.name.empty()) {
        const char* name = nullptr;
        if (call("cuFuncGetName", &name, f) && call("cuKernelGetName", &name, f)) return false;
        if (!name) return false;
        kernel = Kernel{nullptr, name};
        known_as((const void*)f, nullptr, name);
    }
    if (is_captured(stream, per_thread ? "cuStreamIsCapturing_ptsz" : "cuStreamIsCapturing")) shape.reason = IN_A_GRAPH;
    for (void** one = extra; one && *one != CU_LAUNCH_PARAM_END; one += 2) {
        if (*one == CU_LAUNCH_PARAM_BUFFER_POINTER) shape.packed = one[1];
        if (*one == CU_LAUNCH_PARAM_BUFFER_SIZE) shape.packed_size = *(size_t*)one[1];
    }
    Inside inside;
    return on_launch(kernel.module, kernel.name.c_str(), &shape, arguments);
}

Shape shaped(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared) {
    return Shape{{gx, gy, gz}, {bx, by, bz}, shared, NONE, {1, 1, 1}, 0, 0, 0, nullptr};
}

}  // namespace

// ---------------------------------------------------------------------------- what our process asks

API void clsp_attach(Compiled source, Loaded module, Launched launch) {
    on_source = source, on_module = module, on_launch = launch;
}
API void clsp_limit(unsigned long long device, unsigned long long pinned, Refusal f) {
    limits[0] = device, limits[1] = pinned, on_refusal = f;
}
API int clsp_allocation(int number, unsigned long long* start, unsigned long long* size) {
    std::lock_guard<std::recursive_mutex> guard(held_by);
    for (auto& one : held(false).all)
        if (number-- == 0) {
            *start = one.first, *size = one.second;
            return 1;
        }
    return 0;
}
API int clsp_variable(const void* module, const char* name, unsigned long long* start, unsigned long long* size) {
    CUdeviceptr found = 0;
    size_t bytes = 0;
    bool library;
    {
        std::lock_guard<std::recursive_mutex> guard(held_by);
        library = libraries().count(module);
    }
    if (library ? call("cuLibraryGetGlobal", &found, &bytes, module, name)
                : call("cuModuleGetGlobal_v2", &found, &bytes, module, name))
        return 0;
    *start = found, *size = bytes;
    return 1;
}

// ------------------------------------------------------------------------------------------- modules

API CUresult cuModuleLoadData(CUmodule* out, const void* image) {
    CUresult error = call("cuModuleLoadData", out, image);
    if (!error) loaded(*out, image);
    return error;
}
API CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned count, CUjit_option* options, void** values) {
    CUresult error = call("cuModuleLoadDataEx", out, image, count, options, values);
    if (!error) loaded(*out, image);
    return error;
}
API CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) {
    CUresult error = call("cuModuleLoadFatBinary", out, image);
    if (!error) loaded(*out, image);
    return error;
}
API CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
    CUresult error = call("cuModuleGetFunction", out, module, name);
    if (!error) known_as(*out, loaded_as(module), name);
    return error;
}
#if CUDA_VERSION >= 12000
API CUresult cuLibraryLoadData(CUlibrary* out, const void* image, CUjit_option* jit, void** jit_values, unsigned jit_count,
                               CUlibraryOption* options, void** values, unsigned count) {
    CUresult error = call("cuLibraryLoadData", out, image, jit, jit_values, jit_count, options, values, count);
    if (!error && !ours) {
        std::lock_guard<std::recursive_mutex> guard(held_by);
        libraries()[*out] = *out;
    }
    if (!error) loaded(*out, image);
    return error;
}
API CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary library, const char* name) {
    CUresult error = call("cuLibraryGetKernel", out, library, name);
    if (!error) known_as(*out, library, name);
    return error;
}
API CUresult cuKernelGetFunction(CUfunction* out, CUkernel kernel) {
    CUresult error = call("cuKernelGetFunction", out, kernel);
    std::lock_guard<std::recursive_mutex> guard(held_by);
    auto found = kernels().find(kernel);
    if (!error && !ours && found != kernels().end()) kernels()[*out] = Kernel(found->second);
    return error;
}
API CUresult cuLibraryGetModule(CUmodule* out, CUlibrary library) {
    CUresult error = call("cuLibraryGetModule", out, library);
    std::lock_guard<std::recursive_mutex> guard(held_by);
    if (!error && !ours) libraries()[*out] = library;
    return error;
}
#endif

// ------------------------------------------------------------------------------------------ launches

namespace {

CUresult launch(const char* name, bool per_thread, CUfunction f, Shape shape, CUstream stream, void** arguments,
                void** extra) {
    if (taken(f, shape, stream, per_thread, arguments, extra)) return CUDA_SUCCESS;
    return call(name, f, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0], shape.block[1], shape.block[2],
                shape.shared, stream, arguments, extra);
}
CUresult launch_together(const char* name, bool per_thread, CUfunction f, Shape shape, CUstream stream,
                         void** arguments) {
    shape.together = true;
    if (taken(f, shape, stream, per_thread, arguments, nullptr)) return CUDA_SUCCESS;
    return call(name, f, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0], shape.block[1], shape.block[2],
                shape.shared, stream, arguments);
}

}  // namespace

#define SIZES unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared
#define SHAPE shaped(gx, gy, gz, bx, by, bz, shared)
#undef cuLaunchKernel
#undef cuLaunchCooperativeKernel
#undef cuLaunchKernelEx
API CUresult cuLaunchKernel(CUfunction f, SIZES, CUstream stream, void** arguments, void** extra) {
    return launch("cuLaunchKernel", false, f, SHAPE, stream, arguments, extra);
}
API CUresult cuLaunchKernel_ptsz(CUfunction f, SIZES, CUstream stream, void** arguments, void** extra) {
    return launch("cuLaunchKernel_ptsz", true, f, SHAPE, stream, arguments, extra);
}
API CUresult cuLaunchCooperativeKernel(CUfunction f, SIZES, CUstream stream, void** arguments) {
    return launch_together("cuLaunchCooperativeKernel", false, f, SHAPE, stream, arguments);
}
API CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, SIZES, CUstream stream, void** arguments) {
    return launch_together("cuLaunchCooperativeKernel_ptsz", true, f, SHAPE, stream, arguments);
}
#if CUDA_VERSION >= 11080
namespace {

// Attributes of a launch that we may leave out: permissions, as to start early, and hints.
bool allowed(CUlaunchAttributeID which) {
    switch ((int)which) {
        case CU_LAUNCH_ATTRIBUTE_IGNORE:
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        case CU_LAUNCH_ATTRIBUTE_PRIORITY: return true;
        default: return false;
    }
}

CUresult launch_as(const char* name, bool per_thread, const CUlaunchConfig* c, CUfunction f, void** arguments,
                   void** extra) {
    Shape shape = shaped(c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
                         c->sharedMemBytes);
    for (unsigned k = 0; k < c->numAttrs; ++k) {
        auto& value = c->attrs[k].value;
        if (c->attrs[k].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            shape.cluster[0] = value.clusterDim.x, shape.cluster[1] = value.clusterDim.y,
            shape.cluster[2] = value.clusterDim.z;
        else if (c->attrs[k].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            shape.together = value.cooperative;
        else if (!allowed(c->attrs[k].id))
            shape.reason = WITH_ATTRIBUTES;
    }
    if (taken(f, shape, c->hStream, per_thread, arguments, extra)) return CUDA_SUCCESS;
    return call(name, c, f, arguments, extra);
}

}  // namespace

API CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** arguments, void** extra) {
    return launch_as("cuLaunchKernelEx", false, c, f, arguments, extra);
}
API CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* c, CUfunction f, void** arguments, void** extra) {
    return launch_as("cuLaunchKernelEx_ptsz", true, c, f, arguments, extra);
}
#endif

// -------------------------------------------------------------------------------------------- memory

#undef cuMemAllocAsync
#undef cuMemAllocFromPoolAsync
#undef cuMemFreeAsync
API CUresult cuMemAlloc(CUdeviceptr* p, size_t size) {
    if (!granted(size)) return CUDA_ERROR_OUT_OF_MEMORY;
    return allocated(call("cuMemAlloc_v2", p, size), p, size);
}
API CUresult cuMemAllocManaged(CUdeviceptr* p, size_t size, unsigned flags) {
    if (!granted(size)) return CUDA_ERROR_OUT_OF_MEMORY;
    return allocated(call("cuMemAllocManaged", p, size, flags), p, size);
}
API CUresult cuMemAllocPitch(CUdeviceptr* p, size_t* pitch, size_t width, size_t height, unsigned element) {
    if (!granted((width + 511) / 512 * 512 * height)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult error = call("cuMemAllocPitch_v2", p, pitch, width, height, element);
    return allocated(error, p, error ? 0 : *pitch * height);
}
#define ASYNC(suffix)                                                                                     \
    API CUresult cuMemAllocAsync##suffix(CUdeviceptr* p, size_t size, CUstream stream) {                  \
        if (!granted(size)) return CUDA_ERROR_OUT_OF_MEMORY;                                              \
        return allocated(call("cuMemAllocAsync" #suffix, p, size, stream), p, size);                     \
    }                                                                                                     \
    API CUresult cuMemAllocFromPoolAsync##suffix(CUdeviceptr* p, size_t size, CUmemoryPool pool,          \
                                                 CUstream stream) {                                       \
        if (!granted(size)) return CUDA_ERROR_OUT_OF_MEMORY;                                              \
        return allocated(call("cuMemAllocFromPoolAsync" #suffix, p, size, pool, stream), p, size);       \
    }                                                                                                     \
    API CUresult cuMemFreeAsync##suffix(CUdeviceptr p, CUstream stream) {                                 \
        forgotten(p);                                                                                     \
        return call("cuMemFreeAsync" #suffix, p, stream);                                                 \
    }
ASYNC()
ASYNC(_ptsz)
API CUresult cuMemFree(CUdeviceptr p) {
    forgotten(p);
    return call("cuMemFree_v2", p);
}
API CUresult cuMemAllocHost(void** p, size_t size) {
    if (!granted(size, true)) return CUDA_ERROR_OUT_OF_MEMORY;
    return allocated(call("cuMemAllocHost_v2", p, size), (const CUdeviceptr*)p, size, true);
}
API CUresult cuMemHostAlloc(void** p, size_t size, unsigned flags) {
    if (!granted(size, true)) return CUDA_ERROR_OUT_OF_MEMORY;
    return allocated(call("cuMemHostAlloc", p, size, flags), (const CUdeviceptr*)p, size, true);
}
API CUresult cuMemFreeHost(void* p) {
    forgotten((CUdeviceptr)p, true);
    return call("cuMemFreeHost", p);
}

// ------------------------------------------------------------------------------------------- linking

API CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* out) {
    CUresult error = call("cuLinkCreate_v2", count, options, values, out);
    if (!error && !ours) link_begins(*out);
    return error;
}
API CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                           unsigned count, CUjit_option* options, void** values) {
    if (!ours) link_gets(state, Input{type == CU_JIT_INPUT_PTX ? PTX : OTHER, std::string((const char*)data, size), text(name)});
    return call("cuLinkAddData_v2", state, type, data, size, name, count, options, values);
}
API CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                           CUjit_option* options, void** values) {
    if (!ours) link_gets(state, Input{OTHER, "", text(path)});
    return call("cuLinkAddFile_v2", state, type, path, count, options, values);
}
API CUresult cuLinkComplete(CUlinkState state, void** out, size_t* size) {
    size_t bytes = 0;
    CUresult error = call("cuLinkComplete", state, out, size ? size : &bytes);
    if (!error && !ours) link_made(state, (const char*)*out, size ? *size : bytes);
    return error;
}
API CUresult cuLinkDestroy(CUlinkState state) {
    if (!ours) link_ends(state);
    return call("cuLinkDestroy", state);
}

// -------------------------------------------------------------------- how packages find all of these

#undef cuGetProcAddress
namespace {

struct Wrapped {
    const char *name, *symbol;  // as `cuGetProcAddress` is asked, and as the library exports it
    void *function, *per_thread;
    const char* per_thread_symbol;
};
#define ONE(name) {#name, #name, (void*)name, nullptr, nullptr}
#define TWO(name) {#name, #name, (void*)name, (void*)name##_ptsz, #name "_ptsz"}
#define SECOND(name, function) {#name, #name "_v2", (void*)function, nullptr, nullptr}
const Wrapped DRIVER[] = {
    ONE(cuModuleLoadData), ONE(cuModuleLoadDataEx), ONE(cuModuleLoadFatBinary), ONE(cuModuleGetFunction),
#if CUDA_VERSION >= 12000
    ONE(cuLibraryLoadData), ONE(cuLibraryGetKernel), ONE(cuKernelGetFunction), ONE(cuLibraryGetModule),
#endif
    TWO(cuLaunchKernel), TWO(cuLaunchCooperativeKernel),
#if CUDA_VERSION >= 11080
    TWO(cuLaunchKernelEx),
#endif
    SECOND(cuMemAlloc, cuMemAlloc), SECOND(cuMemAllocPitch, cuMemAllocPitch), SECOND(cuMemFree, cuMemFree),
    SECOND(cuMemAllocHost, cuMemAllocHost), ONE(cuMemAllocManaged), ONE(cuMemHostAlloc), ONE(cuMemFreeHost),
    TWO(cuMemAllocAsync), TWO(cuMemAllocFromPoolAsync), TWO(cuMemFreeAsync),
    SECOND(cuLinkCreate, cuLinkCreate), SECOND(cuLinkAddData, cuLinkAddData), SECOND(cuLinkAddFile, cuLinkAddFile),
    ONE(cuLinkComplete), ONE(cuLinkDestroy),
};

void* ours_for(const char* symbol, void* function, void* theirs) {
    if (theirs == function) return function;  // ours is what was found
    std::lock_guard<std::recursive_mutex> guard(held_by);
    void*& known = drivers()[symbol];
    if (!known) known = theirs;
    return function;
}

// By the name under which the library exports it.
void* exported(const char* symbol, void* theirs) {
    for (auto& one : DRIVER) {
        if (!strcmp(one.symbol, symbol)) return ours_for(one.symbol, one.function, theirs);
        if (one.per_thread_symbol && !strcmp(one.per_thread_symbol, symbol))
            return ours_for(one.per_thread_symbol, one.per_thread, theirs);
    }
    return theirs;
}

const cuuint64_t PER_THREAD = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

void replaced(const char* name, void** out, cuuint64_t flags) {
    if (!out || !*out || ours) return;
    for (auto& one : DRIVER)
        if (!strcmp(one.name, name)) {
            bool per_thread = one.per_thread && flags & PER_THREAD;
            *out = ours_for(per_thread ? one.per_thread_symbol : one.symbol,
                            per_thread ? one.per_thread : one.function, *out);
            return;
        }
}

typedef CUresult (*Find)(const char*, void**, int, cuuint64_t);
typedef CUresult (*FindWithStatus)(const char*, void**, int, cuuint64_t, void*);

}  // namespace

extern "C" {
CUresult clsp_find(const char* name, void** out, int version, cuuint64_t flags);
CUresult clsp_find_v2(const char* name, void** out, int version, cuuint64_t flags, void* status);
}

namespace {

void look_up(const char* name, void** out, int version, cuuint64_t flags) {
    if (!strcmp(name, "cuGetProcAddress") && out && *out)
        *out = version >= 12000 ? (void*)clsp_find_v2 : (void*)clsp_find;
    else
        replaced(name, out, flags);
}

}  // namespace

extern "C" {
CUresult clsp_find(const char* name, void** out, int version, cuuint64_t flags) {
    Find find = (Find)real("cuGetProcAddress");
    if (!find) return CUDA_ERROR_NOT_FOUND;
    CUresult error = find(name, out, version, flags);
    if (!error) look_up(name, out, version, flags);
    return error;
}
CUresult clsp_find_v2(const char* name, void** out, int version, cuuint64_t flags, void* status) {
    FindWithStatus find = (FindWithStatus)real("cuGetProcAddress_v2");
    if (!find) return CUDA_ERROR_NOT_FOUND;
    CUresult error = find(name, out, version, flags, status);
    if (!error) look_up(name, out, version, flags);
    return error;
}
}

namespace {

bool is_replaced(const char* name) {
    if (!strncmp(name, "cuGetProcAddress", 16)) return true;
    for (auto& one : DRIVER)
        if (!strcmp(one.symbol, name) || (one.per_thread_symbol && !strcmp(one.per_thread_symbol, name))) return true;
    return false;
}

void* replacement(const char* name, void* theirs, const void* caller) {
    Dl_info info;
    if (dladdr((void*)caller, &info) && info.dli_fname && strstr(info.dli_fname, "libnvrtc")) return theirs;
    if (!strcmp(name, "cuGetProcAddress")) return (void*)clsp_find;
    if (!strcmp(name, "cuGetProcAddress_v2")) return (void*)clsp_find_v2;
    return exported(name, theirs);
}

// What the program starts in turn is not under check.
__attribute__((constructor)) void begin() { followed(); }

}  // namespace
