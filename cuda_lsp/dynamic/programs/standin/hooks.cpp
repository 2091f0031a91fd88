// Linked into a program whose kernels are checked on a GPU, in front of the real runtime (ld's --wrap).
//
// The program is a shared object in a process of ours (`gpu_process.py`). Each launch asks a callback first,
// which runs the instrumented kernel in its place and answers 1, or answers 0: then the launch goes on as it
// is. Launches that cannot be ours are told, with the reason, so that they are counted. Allocations are remembered, so that the detector knows which memory there is, and refused beyond a limit.

#include <cuda_runtime_api.h>
#include <string.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))
extern "C" char __cudaInitModule(void** handle);  // as nvcc's host code declares it

namespace {

typedef int (*Callback)(const char* name, const unsigned* shape, void** arguments);
typedef void (*Refusal)(int pinned);

struct Variable {
    std::string name;
    const void* host;
    size_t size;
    void** managed = nullptr;  // the module of a managed one, of which `host` is where its address is kept
};

// Why a launch cannot be carried out by us; as `gpu_process.py` words it.
enum Reason { NONE, IN_A_GRAPH, WITH_ATTRIBUTES };

Callback callback = nullptr;
std::recursive_mutex turn;

std::map<const void*, std::string>& names() {
    static std::map<const void*, std::string> all;
    return all;
}
std::vector<Variable>& variables() {
    static std::vector<Variable> all;
    return all;
}
// Memory of one kind that the program holds: the GPU's own, arrays of it, or the host's that is pinned.
enum Kind { DEVICE, ARRAYS, PINNED, KINDS };
struct Place {
    size_t size;
    int device;
};
struct Held {
    std::map<char*, Place> all;
    std::map<int, size_t> sums;  // by device

    void add(char* p, size_t size, int device) {
        drop(p);
        all[p] = Place{size, device};
        sums[device] += size;
    }
    void drop(char* p) {
        auto found = all.find(p);
        if (found == all.end()) return;
        sums[found->second.device] -= found->second.size;
        all.erase(found);
    }
};
Held& held(Kind kind) {
    static Held kinds[KINDS];
    return kinds[kind];
}
size_t limits[KINDS] = {~(size_t)0, ~(size_t)0, ~(size_t)0};  // of arrays: they share the device's
Refusal refusal = nullptr;

// The device of this thread's calls; pinned memory is the host's, whoever asks for it.
int at(Kind kind) {
    int device = 0;
    if (kind != PINNED && cudaGetDevice(&device)) cudaGetLastError();
    return device;
}

bool granted(Kind kind, size_t size) {
    int device = at(kind);
    size_t used = kind == PINNED ? held(PINNED).sums[0] : held(DEVICE).sums[device] + held(ARRAYS).sums[device];
    size_t limit = limits[kind == PINNED ? PINNED : DEVICE];
    if (size <= limit && used <= limit - size) return true;
    if (refusal) refusal(kind == PINNED);
    return false;
}

// How the blocks of a launch run: all at once, or those of a cluster.
struct Way {
    bool together = false;
    dim3 cluster = dim3(1, 1, 1);
};

bool asked(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, Reason reason,
           Way way = Way()) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    auto found = names().find(function);
    if (!callback || found == names().end()) return false;
    unsigned shape[13] = {grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared, reason,
                          way.cluster.x, way.cluster.y, way.cluster.z, way.together, (unsigned)at(DEVICE)};
    return callback(found->second.c_str(), shape, arguments);
}

bool is_captured(cudaStream_t stream) {
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream, &capturing) || capturing != cudaStreamCaptureStatusNone;
}

// What is captured is launched when its graph is (`replay.cpp`).
bool taken(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream,
           Way way = Way()) {
    return !is_captured(stream) && asked(function, grid, block, arguments, shared, NONE, way);
}
// Of a source that is compiled with a default stream for each thread.
cudaStream_t of_thread(cudaStream_t stream) { return stream ? stream : cudaStreamPerThread; }

#if CUDART_VERSION >= 11080
// Attributes of a launch that we may leave out: permissions, as to start early, and hints.
bool allowed(cudaLaunchAttributeID which) {
    switch ((int)which) {
        case cudaLaunchAttributeIgnore:
        case cudaLaunchAttributeCooperative:
        case cudaLaunchAttributeAccessPolicyWindow:
        case cudaLaunchAttributeSynchronizationPolicy:
        case cudaLaunchAttributeClusterSchedulingPolicyPreference:
        case cudaLaunchAttributeProgrammaticStreamSerialization:
        case cudaLaunchAttributePriority: return true;
        default: return false;
    }
}
#endif

cudaError_t refused();

// What `allocate` gives, unless it is beyond the limit: then the error of a device that has no more.
cudaError_t within(Kind kind, size_t size, void** p, const std::function<cudaError_t()>& allocate) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    if (!granted(kind, size)) return refused();
    cudaError_t error = allocate();
    if (error == cudaSuccess && *p) {
        held(kind).add((char*)*p, size, at(kind));
    }
    return error;
}

void* forgotten(Kind kind, void* p) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    held(kind).drop((char*)p);
    return p;
}

size_t pitched(size_t width) { return (width + 511) / 512 * 512; }
size_t some(size_t extent) { return extent ? extent : 1; }
size_t bytes_of(const cudaChannelFormatDesc* format) { return (format->x + format->y + format->z + format->w + 7) / 8; }

}  // namespace

// ---------------------------------------------------------------------------- what our process asks

API void clsp_attach(Callback f) { callback = f; }
API void clsp_limit(unsigned long long device, unsigned long long pinned, Refusal f) {
    limits[DEVICE] = device, limits[PINNED] = pinned, refusal = f;
}
API int clsp_allocation(int number, unsigned long long* start, unsigned long long* size) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    for (auto& one : held(DEVICE).all)
        if (number-- == 0) {
            *start = (unsigned long long)one.first, *size = one.second.size;
            return 1;
        }
    return 0;
}
API int clsp_variable(int number, const char** name, unsigned long long* start, unsigned long long* size) {
    if (number >= (int)variables().size()) return 0;
    Variable& one = variables()[number];
    void* address = nullptr;
    if (!one.managed) {
        if (cudaGetSymbolAddress(&address, one.host)) cudaGetLastError();
    } else {  // no symbol of the runtime's: it has its place when its module is there
        if (!*(void* const*)one.host) __cudaInitModule(one.managed);
        address = *(void* const*)one.host;
    }
    *name = one.name.c_str(), *start = (unsigned long long)address, *size = one.size;
    return 1;
}

// ------------------------------------------------------------------------------- wrapped functions

#define WRAP(type, name, parameters)   \
    extern "C" type __real_##name parameters; \
    API type __wrap_##name parameters

WRAP(void, __cudaRegisterFunction,
     (void** handle, const char* host, char* device, const char* name, int limit, uint3* tid, uint3* bid, dim3* block,
      dim3* grid, int* warp)) {
    names()[host] = known_as(name, host);
    __real___cudaRegisterFunction(handle, host, device, name, limit, tid, bid, block, grid, warp);
}
WRAP(void, __cudaRegisterVar,
     (void** handle, char* host, char* device, const char* name, int ext, size_t size, int constant, int global)) {
    variables().push_back(Variable{known_as(name, host), host, size});
    __real___cudaRegisterVar(handle, host, device, name, ext, size, constant, global);
}
WRAP(void, __cudaRegisterManagedVar,
     (void** handle, void** host, char* device, const char* name, int ext, size_t size, int constant, int global)) {
    variables().push_back(Variable{known_as(name, host), host, size, handle});
    __real___cudaRegisterManagedVar(handle, host, device, name, ext, size, constant, global);
}
#if CUDART_VERSION >= 12000
WRAP(cudaError_t, __cudaGetKernel, (cudaKernel_t * kernel, const void* function)) {
    cudaError_t error = __real___cudaGetKernel(kernel, function);
    std::lock_guard<std::recursive_mutex> guard(turn);
    auto found = names().find(function);
    if (error == cudaSuccess && found != names().end()) names()[(const void*)*kernel] = found->second;
    return error;
}
WRAP(cudaError_t, __cudaLaunchKernel,
     (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream)) {
    if (taken((const void*)kernel, grid, block, arguments, shared, stream)) return cudaSuccess;
    return __real___cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
#endif
WRAP(cudaError_t, cudaLaunchKernel,
     (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream)) {
    if (taken(function, grid, block, arguments, shared, stream)) return cudaSuccess;
    return __real_cudaLaunchKernel(function, grid, block, arguments, shared, stream);
}
WRAP(cudaError_t, cudaLaunchCooperativeKernel,
     (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream)) {
    if (taken(function, grid, block, arguments, shared, stream, Way{true})) return cudaSuccess;
    return __real_cudaLaunchCooperativeKernel(function, grid, block, arguments, shared, stream);
}
#if CUDART_VERSION >= 11080
namespace {
bool taken(const cudaLaunchConfig_t* config, const void* function, void** arguments, cudaStream_t stream) {
    Way way;
    Reason reason = NONE;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        const cudaLaunchAttribute& one = config->attrs[i];
        if (one.id == cudaLaunchAttributeClusterDimension)
            way.cluster = dim3(one.val.clusterDim.x, one.val.clusterDim.y, one.val.clusterDim.z);
        else if (one.id == cudaLaunchAttributeCooperative)
            way.together = one.val.cooperative;
        else if (!allowed(one.id))
            reason = WITH_ATTRIBUTES;
    }
    return !is_captured(stream) && asked(function, config->gridDim, config->blockDim, arguments,
                                         config->dynamicSmemBytes, reason, way);
}
}  // namespace
WRAP(cudaError_t, cudaLaunchKernelExC, (const cudaLaunchConfig_t* config, const void* function, void** arguments)) {
    if (taken(config, function, arguments, config->stream)) return cudaSuccess;
    return __real_cudaLaunchKernelExC(config, function, arguments);
}
WRAP(cudaError_t, cudaLaunchKernelExC_ptsz,
     (const cudaLaunchConfig_t* config, const void* function, void** arguments)) {
    if (taken(config, function, arguments, of_thread(config->stream))) return cudaSuccess;
    return __real_cudaLaunchKernelExC_ptsz(config, function, arguments);
}
#endif
#if CUDART_VERSION >= 12000
WRAP(cudaError_t, __cudaLaunchKernel_ptsz,
     (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream)) {
    if (taken((const void*)kernel, grid, block, arguments, shared, of_thread(stream))) return cudaSuccess;
    return __real___cudaLaunchKernel_ptsz(kernel, grid, block, arguments, shared, stream);
}
#endif
WRAP(cudaError_t, cudaLaunchKernel_ptsz,
     (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream)) {
    if (taken(function, grid, block, arguments, shared, of_thread(stream))) return cudaSuccess;
    return __real_cudaLaunchKernel_ptsz(function, grid, block, arguments, shared, stream);
}
WRAP(cudaError_t, cudaLaunchCooperativeKernel_ptsz,
     (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream)) {
    if (taken(function, grid, block, arguments, shared, of_thread(stream), Way{true})) return cudaSuccess;
    return __real_cudaLaunchCooperativeKernel_ptsz(function, grid, block, arguments, shared, stream);
}
WRAP(cudaError_t, cudaMalloc, (void** p, size_t size)) {
    return within(DEVICE, size, p, [=] { return __real_cudaMalloc(p, size); });
}
WRAP(cudaError_t, cudaMallocManaged, (void** p, size_t size, unsigned flags)) {
    return within(DEVICE, size, p, [=] { return __real_cudaMallocManaged(p, size, flags); });
}
WRAP(cudaError_t, cudaMallocAsync, (void** p, size_t size, cudaStream_t stream)) {
    return within(DEVICE, size, p, [=] { return __real_cudaMallocAsync(p, size, stream); });
}
WRAP(cudaError_t, cudaMallocFromPoolAsync, (void** p, size_t size, cudaMemPool_t pool, cudaStream_t stream)) {
    return within(DEVICE, size, p, [=] { return __real_cudaMallocFromPoolAsync(p, size, pool, stream); });
}
WRAP(cudaError_t, cudaMallocAsync_ptsz, (void** p, size_t size, cudaStream_t stream)) {
    return within(DEVICE, size, p, [=] { return __real_cudaMallocAsync_ptsz(p, size, stream); });
}
WRAP(cudaError_t, cudaMallocFromPoolAsync_ptsz,
     (void** p, size_t size, cudaMemPool_t pool, cudaStream_t stream)) {
    return within(DEVICE, size, p, [=] { return __real_cudaMallocFromPoolAsync_ptsz(p, size, pool, stream); });
}
WRAP(cudaError_t, cudaFreeAsync_ptsz, (void* p, cudaStream_t stream)) {
    return __real_cudaFreeAsync_ptsz(forgotten(DEVICE, p), stream);
}
WRAP(cudaError_t, cudaMallocPitch, (void** p, size_t* pitch, size_t width, size_t height)) {
    return within(DEVICE, pitched(width) * height, p, [=] { return __real_cudaMallocPitch(p, pitch, width, height); });
}
WRAP(cudaError_t, cudaMalloc3D, (cudaPitchedPtr* p, cudaExtent e)) {
    size_t size = pitched(e.width) * some(e.height) * some(e.depth);
    return within(DEVICE, size, &p->ptr, [=] { return __real_cudaMalloc3D(p, e); });
}
WRAP(cudaError_t, cudaMallocArray,
     (cudaArray_t * p, const cudaChannelFormatDesc* format, size_t width, size_t height, unsigned flags)) {
    return within(ARRAYS, bytes_of(format) * width * some(height), (void**)p,
                  [=] { return __real_cudaMallocArray(p, format, width, height, flags); });
}
WRAP(cudaError_t, cudaMalloc3DArray,
     (cudaArray_t * p, const cudaChannelFormatDesc* format, cudaExtent e, unsigned flags)) {
    return within(ARRAYS, bytes_of(format) * e.width * some(e.height) * some(e.depth), (void**)p,
                  [=] { return __real_cudaMalloc3DArray(p, format, e, flags); });
}
WRAP(cudaError_t, cudaMallocHost, (void** p, size_t size)) {
    return within(PINNED, size, p, [=] { return __real_cudaMallocHost(p, size); });
}
WRAP(cudaError_t, cudaHostAlloc, (void** p, size_t size, unsigned flags)) {
    return within(PINNED, size, p, [=] { return __real_cudaHostAlloc(p, size, flags); });
}
WRAP(cudaError_t, cudaDeviceSetLimit, (cudaLimit which, size_t value)) {
    if (which == cudaLimitMallocHeapSize && !granted(DEVICE, value)) return refused();
    return __real_cudaDeviceSetLimit(which, value);
}
WRAP(cudaError_t, cudaFree, (void* p)) { return __real_cudaFree(forgotten(DEVICE, p)); }
WRAP(cudaError_t, cudaFreeAsync, (void* p, cudaStream_t stream)) {
    return __real_cudaFreeAsync(forgotten(DEVICE, p), stream);
}
WRAP(cudaError_t, cudaFreeArray, (cudaArray_t p)) {
    return __real_cudaFreeArray((cudaArray_t)forgotten(ARRAYS, (void*)p));
}
WRAP(cudaError_t, cudaFreeHost, (void* p)) { return __real_cudaFreeHost(forgotten(PINNED, p)); }

namespace {
cudaError_t refused() {
    void* nowhere = nullptr;  // the runtime itself says it, so that it is also the last error
    return __real_cudaMalloc(&nowhere, (size_t)1 << 62);
}
}  // namespace
