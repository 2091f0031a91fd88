// Linked into a program whose kernels are checked on a GPU, in front of the real runtime (ld's --wrap).
//
// The program is a shared object in a process of ours (`gpu_process.py`). Each launch asks a callback first,
// which runs the instrumented kernel in its place and answers 1, or answers 0: then the launch goes on as it
// is. Allocations are remembered, so that the detector knows which memory there is.

#include <cuda_runtime_api.h>
#include <string.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

namespace {

typedef int (*Callback)(const char* name, const unsigned* shape, void** arguments);

struct Variable {
    std::string name;
    const void* host;
    size_t size;
};

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
std::map<char*, size_t>& allocations() {
    static std::map<char*, size_t> all;
    return all;
}

bool taken(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    auto found = names().find(function);
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    if (!callback || found == names().end()) return false;
    if (cudaStreamIsCapturing(stream, &capturing) || capturing != cudaStreamCaptureStatusNone) return false;
    unsigned shape[7] = {grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared};
    return callback(found->second.c_str(), shape, arguments);
}

cudaError_t remembered(cudaError_t error, void** p, size_t size) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    if (error == cudaSuccess && *p) allocations()[(char*)*p] = size;
    return error;
}

void* forgotten(void* p) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    allocations().erase((char*)p);
    return p;
}

}  // namespace

// ---------------------------------------------------------------------------- what our process asks

API void clsp_attach(Callback f) { callback = f; }
API int clsp_allocation(int number, unsigned long long* start, unsigned long long* size) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    for (auto& one : allocations())
        if (number-- == 0) {
            *start = (unsigned long long)one.first, *size = one.second;
            return 1;
        }
    return 0;
}
API int clsp_variable(int number, const char** name, unsigned long long* start, unsigned long long* size) {
    if (number >= (int)variables().size()) return 0;
    Variable& one = variables()[number];
    void* address = nullptr;
    if (cudaGetSymbolAddress(&address, one.host)) cudaGetLastError();
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
    names()[host] = name;
    __real___cudaRegisterFunction(handle, host, device, name, limit, tid, bid, block, grid, warp);
}
WRAP(void, __cudaRegisterVar,
     (void** handle, char* host, char* device, const char* name, int ext, size_t size, int constant, int global)) {
    variables().push_back(Variable{name, host, size});
    __real___cudaRegisterVar(handle, host, device, name, ext, size, constant, global);
}
WRAP(void, __cudaRegisterManagedVar,
     (void** handle, void** host, char* device, const char* name, int ext, size_t size, int constant, int global)) {
    variables().push_back(Variable{name, host, size});
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
    if (taken(function, grid, block, arguments, shared, stream)) return cudaSuccess;
    return __real_cudaLaunchCooperativeKernel(function, grid, block, arguments, shared, stream);
}
#if CUDART_VERSION >= 11080
WRAP(cudaError_t, cudaLaunchKernelExC, (const cudaLaunchConfig_t* config, const void* function, void** arguments)) {
    bool plain = true;  // a cluster or an early start is not ours to give
    for (unsigned i = 0; i < config->numAttrs; ++i) plain &= config->attrs[i].id == cudaLaunchAttributeCooperative;
    if (plain && taken(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, config->stream))
        return cudaSuccess;
    return __real_cudaLaunchKernelExC(config, function, arguments);
}
#endif
WRAP(cudaError_t, cudaMalloc, (void** p, size_t size)) { return remembered(__real_cudaMalloc(p, size), p, size); }
WRAP(cudaError_t, cudaMallocManaged, (void** p, size_t size, unsigned flags)) {
    return remembered(__real_cudaMallocManaged(p, size, flags), p, size);
}
WRAP(cudaError_t, cudaMallocAsync, (void** p, size_t size, cudaStream_t stream)) {
    return remembered(__real_cudaMallocAsync(p, size, stream), p, size);
}
WRAP(cudaError_t, cudaMallocPitch, (void** p, size_t* pitch, size_t width, size_t height)) {
    cudaError_t error = __real_cudaMallocPitch(p, pitch, width, height);
    return remembered(error, p, *pitch * height);
}
WRAP(cudaError_t, cudaFree, (void* p)) { return __real_cudaFree(forgotten(p)); }
WRAP(cudaError_t, cudaFreeAsync, (void* p, cudaStream_t stream)) { return __real_cudaFreeAsync(forgotten(p), stream); }
