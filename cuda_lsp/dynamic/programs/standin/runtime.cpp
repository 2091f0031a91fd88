// A stand-in for the CUDA runtime: what a program's host code calls, for a machine without a GPU.
//
// Linked into the user's program in the place of cudart. Memory is one mapping that the emulator's process
// shares, at a fixed place: a device pointer is an address in it, for host and kernels alike, so copies are
// plain copies and managed or pinned memory needs nothing. Everything happens in the order of the calls;
// streams and events only keep time. Launches go to the emulator (`emulator.cpp`) and return when it is done.

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

thread_local cudaError_t last = cudaSuccess;

struct Configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};
struct Variable {
    std::string name;
    size_t size;
};
struct Kernel {
    std::string name;
    std::vector<unsigned> sizes;
    bool known = false;
};
thread_local std::vector<Configuration> configurations;

std::map<const void*, Variable>& variables() {
    static std::map<const void*, Variable> all;
    return all;
}
std::map<const void*, Kernel>& kernels() {
    static std::map<const void*, Kernel> all;
    return all;
}

cudaError_t said(cudaError_t error) {
    if (error != cudaSuccess) last = error;
    return error;
}

// How the blocks of a launch run: all at once, or those of a cluster.
struct Way {
    bool together = false;
    dim3 cluster = dim3(1, 1, 1);
};

// Work for a stream: done at once, unless what the stream does is captured for a graph (`graphs.cpp`).
cudaError_t in_turn(cudaStream_t stream, cudaGraphNodeType type, std::function<cudaError_t()> work);
cudaError_t launched_in(cudaStream_t stream, const void* f, dim3 grid, dim3 block, void** arguments, size_t shared,
                        Way way);

cudaError_t broken = cudaSuccess;  // why a kernel ended: whoever waits for it is told, again and again

thread_local int current_device = 0;

// The device of each allocation, by its start.
std::map<char*, int>& owners() {
    static std::map<char*, int> all;
    return all;
}

// What is asked of the device of this thread's calls: its variables, and launches that see them.
std::string asked_here(unsigned kind, const void* body, unsigned length) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    static int told = 0;
    if (told != current_device) {
        unsigned number = told = current_device;
        if (asked(DEVICE, &number, sizeof number)[0]) lost("the variables of another device find no memory");
    }
    return asked(kind, body, length);
}

cudaError_t allocate(void** target, size_t size) {
    if (!target) return said(cudaErrorInvalidValue);
    *target = size ? allocated(size) : nullptr;
    if (*target) {
        std::lock_guard<std::recursive_mutex> guard(turn);
        owners()[(char*)*target] = current_device;
    }
    return said(size && !*target ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t release(void* pointer) {
    if (!pointer) return cudaSuccess;
    std::lock_guard<std::recursive_mutex> guard(turn);
    owners().erase((char*)pointer);
    return said(released(pointer) ? cudaSuccess : cudaErrorInvalidValue);
}

char* address_of(const void* symbol, size_t* size = nullptr) {
    auto found = variables().find(symbol);
    if (found == variables().end()) return on_device(symbol) ? (char*)symbol : nullptr;
    if (size) *size = found->second.size;
    std::string answer = asked_here(VARIABLE, found->second.name.data(), found->second.name.size());
    unsigned long long address;
    memcpy(&address, answer.data(), sizeof address);
    return reinterpret_cast<char*>(address);
}

cudaError_t copy(void* target, const void* source, size_t size) {
    if (size && (!target || !source)) return said(cudaErrorInvalidValue);
    memmove(target, source, size);
    return cudaSuccess;
}

cudaError_t copy_rows(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width,
                      size_t height) {
    if (width > target_pitch || width > source_pitch) return said(cudaErrorInvalidPitchValue);
    for (size_t row = 0; row < height; ++row)
        memmove((char*)target + row * target_pitch, (const char*)source + row * source_pitch, width);
    return cudaSuccess;
}

double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec * 1e-6;
}

Kernel* kernel_of(const void* function) {
    auto found = kernels().find(function);
    if (found == kernels().end()) return nullptr;
    Kernel& kernel = found->second;
    if (!kernel.known) {
        std::string answer = asked(PARAMETERS, kernel.name.data(), kernel.name.size());
        kernel.sizes.resize(answer.size() / sizeof(unsigned));
        memcpy(kernel.sizes.data(), answer.data(), kernel.sizes.size() * sizeof(unsigned));
        kernel.known = true;
    }
    return &kernel;
}

cudaError_t launched(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, Way way) {
    Kernel* kernel = kernel_of(function);
    if (!kernel) return said(cudaErrorInvalidDeviceFunction);
    unsigned long long threads = (unsigned long long)block.x * block.y * block.z;
    if (!threads || threads > 1024 || block.z > 64 || !grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535)
        return said(cudaErrorInvalidConfiguration);
    unsigned head[12] = {grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared, way.together,
                         way.cluster.x, way.cluster.y, way.cluster.z, (unsigned)kernel->name.size()};
    std::string body((const char*)head, sizeof head);
    body += kernel->name;
    for (size_t k = 0; k < kernel->sizes.size(); ++k) body.append((const char*)arguments[k], kernel->sizes[k]);
    fflush(stdout);
    std::string answer = asked_here(LAUNCH, body.data(), body.size());
    int error;
    memcpy(&error, answer.data(), sizeof error);
    fwrite(answer.data() + sizeof error, 1, answer.size() - sizeof error, stdout);  // what the kernel printed
    if (error && error != cudaErrorNotSupported) broken = (cudaError_t)error;
    return said((cudaError_t)error);
}

}  // namespace

// ------------------------------------------------------------------- what the compiler's code calls

API void** __cudaRegisterFatBinary(void*) {
    static void* handle;
    return &handle;
}
API void __cudaRegisterFatBinaryEnd(void**) {}
API void __cudaUnregisterFatBinary(void**) {}
API char __cudaInitModule(void**) { return 1; }
API void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                                int*) {
    kernels()[host] = Kernel{known_as(name, host), {}, false};
}
API void __cudaRegisterVar(void**, char* host, char*, const char* name, int, size_t size, int, int) {
    variables()[host] = Variable{known_as(name, host), size};
}
API void __cudaRegisterManagedVar(void**, void** host, char*, const char* name, int, size_t size, int, int) {
    variables()[host] = Variable{known_as(name, host), size};
    *host = address_of(host);
}
API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st* stream) {
    configurations.push_back(Configuration{grid, block, shared, stream});
    return 0;
}
API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
    if (configurations.empty()) return said(cudaErrorMissingConfiguration);
    Configuration top = configurations.back();
    configurations.pop_back();
    *grid = top.grid, *block = top.block, *shared = top.shared, *(cudaStream_t*)stream = top.stream;
    return cudaSuccess;
}
API cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
    *kernel = (cudaKernel_t)function;
    return cudaSuccess;
}
API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                                   cudaStream_t stream) {
    return launched_in(stream, (const void*)kernel, grid, block, arguments, shared, Way());
}
API cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                                        cudaStream_t stream) {
    return launched_in(stream, (const void*)kernel, grid, block, arguments, shared, Way());
}

// ---------------------------------------------------------------------------------------- launches

API cudaError_t cudaLaunchKernel(const void* f, dim3 grid, dim3 block, void** arguments, size_t shared,
                                 cudaStream_t stream) {
    return launched_in(stream, f, grid, block, arguments, shared, Way());
}
API cudaError_t cudaLaunchCooperativeKernel(const void* f, dim3 grid, dim3 block, void** arguments, size_t shared,
                                            cudaStream_t stream) {
    return launched_in(stream, f, grid, block, arguments, shared, Way{true});
}
API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* f, void** arguments) {
    Way way;
    for (unsigned k = 0; k < config->numAttrs; ++k) {
        auto& value = config->attrs[k].val;
        if (config->attrs[k].id == cudaLaunchAttributeCooperative) way.together = value.cooperative;
        else if (config->attrs[k].id == cudaLaunchAttributeClusterDimension)
            way.cluster = dim3(value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
    }
    return launched_in(config->stream, f, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, way);
}
API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t f, void* data) {
    return in_turn(stream, cudaGraphNodeTypeHost, [=] {
        f(data);
        return cudaSuccess;
    });
}
API cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
API cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }
API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void* f) {
    if (!kernel_of(f)) return said(cudaErrorInvalidDeviceFunction);
    memset(out, 0, sizeof *out);
    out->maxThreadsPerBlock = 1024;
    out->numRegs = 32;
    out->maxDynamicSharedSizeBytes = 48 << 10;
    out->ptxVersion = out->binaryVersion = 90;
    return cudaSuccess;
}
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* out, const void*, int block, size_t) {
    *out = block > 0 ? 2048 / block : 0;
    return cudaSuccess;
}
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* out, const void*, int block, size_t,
                                                                       unsigned) {
    *out = block > 0 ? 2048 / block : 0;
    return cudaSuccess;
}

// ------------------------------------------------------------------------------------------ memory

API cudaError_t cudaMalloc(void** p, size_t size) { return allocate(p, size); }
API cudaError_t cudaMallocHost(void** p, size_t size) { return allocate(p, size); }
API cudaError_t cudaHostAlloc(void** p, size_t size, unsigned) { return allocate(p, size); }
API cudaError_t cudaMallocManaged(void** p, size_t size, unsigned) { return allocate(p, size); }
API cudaError_t cudaMallocAsync(void** p, size_t size, cudaStream_t) { return allocate(p, size); }
API cudaError_t cudaMallocPitch(void** p, size_t* pitch, size_t width, size_t height) {
    *pitch = (width + 511) / 512 * 512;
    return allocate(p, *pitch * height);
}
API cudaError_t cudaMalloc3D(cudaPitchedPtr* out, cudaExtent extent) {
    void* p = nullptr;
    size_t pitch = (extent.width + 511) / 512 * 512;
    cudaError_t error = allocate(&p, pitch * extent.height * extent.depth);
    out->ptr = p, out->pitch = pitch, out->xsize = extent.width, out->ysize = extent.height;
    return error;
}
API cudaError_t cudaFree(void* p) { return release(p); }
API cudaError_t cudaFreeHost(void* p) { return release(p); }
API cudaError_t cudaFreeAsync(void* p, cudaStream_t) { return release(p); }
API cudaError_t cudaHostGetDevicePointer(void** out, void* host, unsigned) {
    *out = host;
    return said(on_device(host) ? cudaSuccess : cudaErrorInvalidValue);
}
API cudaError_t cudaHostGetFlags(unsigned* flags, void*) {
    *flags = 0;
    return cudaSuccess;
}
// Memory of the host's own allocator is not in the mapping: kernels cannot reach it.
API cudaError_t cudaHostRegister(void*, size_t, unsigned) { return said(cudaErrorNotSupported); }
API cudaError_t cudaHostUnregister(void*) { return said(cudaErrorNotSupported); }

API cudaError_t cudaMemcpy(void* t, const void* s, size_t n, cudaMemcpyKind) { return copy(t, s, n); }
API cudaError_t cudaMemcpyAsync(void* t, const void* s, size_t n, cudaMemcpyKind, cudaStream_t stream) {
    return in_turn(stream, cudaGraphNodeTypeMemcpy, [=] { return copy(t, s, n); });
}
API cudaError_t cudaMemcpyPeer(void* t, int, const void* s, int, size_t n) { return copy(t, s, n); }
API cudaError_t cudaMemcpyPeerAsync(void* t, int, const void* s, int, size_t n, cudaStream_t) { return copy(t, s, n); }
API cudaError_t cudaMemcpy2D(void* t, size_t tp, const void* s, size_t sp, size_t w, size_t h, cudaMemcpyKind) {
    return copy_rows(t, tp, s, sp, w, h);
}
API cudaError_t cudaMemcpy2DAsync(void* t, size_t tp, const void* s, size_t sp, size_t w, size_t h, cudaMemcpyKind,
                                  cudaStream_t stream) {
    return in_turn(stream, cudaGraphNodeTypeMemcpy, [=] { return copy_rows(t, tp, s, sp, w, h); });
}
API cudaError_t cudaMemset(void* t, int value, size_t n) {
    if (n && !on_device(t)) return said(cudaErrorInvalidValue);
    memset(t, value, n);
    return cudaSuccess;
}
API cudaError_t cudaMemsetAsync(void* t, int value, size_t n, cudaStream_t stream) {
    return in_turn(stream, cudaGraphNodeTypeMemset, [=] { return cudaMemset(t, value, n); });
}
API cudaError_t cudaMemset2D(void* t, size_t pitch, int value, size_t w, size_t h) {
    for (size_t row = 0; row < h; ++row) memset((char*)t + row * pitch, value, w);
    return cudaSuccess;
}
API cudaError_t cudaMemset2DAsync(void* t, size_t pitch, int value, size_t w, size_t h, cudaStream_t stream) {
    return in_turn(stream, cudaGraphNodeTypeMemset, [=] { return cudaMemset2D(t, pitch, value, w, h); });
}
API cudaError_t cudaGetSymbolAddress(void** out, const void* symbol) {
    *out = address_of(symbol);
    return said(*out ? cudaSuccess : cudaErrorInvalidSymbol);
}
API cudaError_t cudaGetSymbolSize(size_t* out, const void* symbol) {
    return said(address_of(symbol, out) ? cudaSuccess : cudaErrorInvalidSymbol);
}
API cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* s, size_t n, size_t offset, cudaMemcpyKind) {
    char* t = address_of(symbol);
    return t ? copy(t + offset, s, n) : said(cudaErrorInvalidSymbol);
}
API cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* s, size_t n, size_t offset,
                                        cudaMemcpyKind kind, cudaStream_t stream) {
    return in_turn(stream, cudaGraphNodeTypeMemcpy, [=] { return cudaMemcpyToSymbol(symbol, s, n, offset, kind); });
}
API cudaError_t cudaMemcpyFromSymbol(void* t, const void* symbol, size_t n, size_t offset, cudaMemcpyKind) {
    char* s = address_of(symbol);
    return s ? copy(t, s + offset, n) : said(cudaErrorInvalidSymbol);
}
API cudaError_t cudaMemcpyFromSymbolAsync(void* t, const void* symbol, size_t n, size_t offset, cudaMemcpyKind kind,
                                          cudaStream_t stream) {
    return in_turn(stream, cudaGraphNodeTypeMemcpy, [=] { return cudaMemcpyFromSymbol(t, symbol, n, offset, kind); });
}
API cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
    connect();
    *total = high - low;
    std::string answer = asked(EXTENT, nullptr, 0);
    unsigned long long used;
    memcpy(&used, answer.data(), sizeof used);
    *free = *total - used;
    return cudaSuccess;
}
API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* p) {
    memset(out, 0, sizeof *out);
    out->type = on_device(p) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
    out->devicePointer = on_device(p) ? (void*)p : nullptr;
    out->hostPointer = (void*)p;
    std::lock_guard<std::recursive_mutex> guard(turn);
    auto behind = owners().upper_bound((char*)p);
    if (on_device(p) && behind != owners().begin()) out->device = (--behind)->second;
    return cudaSuccess;
}
#if CUDART_VERSION >= 13000
API cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t) { return cudaSuccess; }
API cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) { return cudaSuccess; }
#else
API cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t) { return cudaSuccess; }
API cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
#endif
API cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, size_t, unsigned) { return cudaSuccess; }

// ------------------------------------------------------------------------------------------ device

namespace {
// One, or as many as the program's environment shows it: CUDA's own variable for that.
int devices() {
    static const int count = [] {
        const char* shown = getenv("CUDA_VISIBLE_DEVICES");
        int found = 1;
        for (const char* c = shown ? shown : ""; *c; ++c) found += *c == ',';
        return found < 16 ? found : 16;
    }();
    return count;
}
cudaError_t known(int device) { return said(device >= 0 && device < devices() ? cudaSuccess : cudaErrorInvalidDevice); }

int attribute(cudaDeviceAttr which) {
    switch (which) {
        case cudaDevAttrMaxThreadsPerBlock: case cudaDevAttrMaxBlockDimX: case cudaDevAttrMaxBlockDimY: return 1024;
        case cudaDevAttrMaxBlockDimZ: return 64;
        case cudaDevAttrMaxGridDimX: return 2147483647;
        case cudaDevAttrMaxGridDimY: case cudaDevAttrMaxGridDimZ: return 65535;
        case cudaDevAttrMaxSharedMemoryPerBlock: return 48 << 10;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: return 227 << 10;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return 228 << 10;
        case cudaDevAttrReservedSharedMemoryPerBlock: return 1024;
        case cudaDevAttrTotalConstantMemory: return 64 << 10;
        case cudaDevAttrWarpSize: return 32;
        case cudaDevAttrMaxRegistersPerBlock: case cudaDevAttrMaxRegistersPerMultiprocessor: return 65536;
        case cudaDevAttrClockRate: case cudaDevAttrMemoryClockRate: return 1000000;
        case cudaDevAttrMultiProcessorCount: return 4;  // few: programs size their grids by it
        case cudaDevAttrMaxThreadsPerMultiProcessor: return 2048;
        case cudaDevAttrMaxBlocksPerMultiprocessor: return 32;
        case cudaDevAttrComputeCapabilityMajor: return 9;
        case cudaDevAttrComputeCapabilityMinor: return 0;
        case cudaDevAttrL2CacheSize: return 4 << 20;
        case cudaDevAttrGlobalMemoryBusWidth: return 128;
        case cudaDevAttrUnifiedAddressing: case cudaDevAttrManagedMemory: case cudaDevAttrCanMapHostMemory:
        case cudaDevAttrConcurrentManagedAccess: case cudaDevAttrCooperativeLaunch: case cudaDevAttrIntegrated:
        case cudaDevAttrClusterLaunch:
        case cudaDevAttrConcurrentKernels: case cudaDevAttrStreamPrioritiesSupported:
        case cudaDevAttrMemoryPoolsSupported: return 1;
        default: return 0;
    }
}
}  // namespace

API cudaError_t cudaOccupancyMaxActiveClusters(int* out, const void*, const cudaLaunchConfig_t*) {
    *out = attribute(cudaDevAttrMultiProcessorCount);
    return cudaSuccess;
}
API cudaError_t cudaOccupancyMaxPotentialClusterSize(int* out, const void*, const cudaLaunchConfig_t*) {
    *out = 8;  // as large as every GPU allows
    return cudaSuccess;
}
API cudaError_t cudaDeviceGetAttribute(int* out, cudaDeviceAttr which, int device) {
    *out = attribute(which);
    return known(device);
}
API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
    if (known(device)) return cudaErrorInvalidDevice;
    connect();
    memset(out, 0, sizeof *out);
    strcpy(out->name, "cuda-lsp CPU emulator");
    out->totalGlobalMem = high - low;
    out->sharedMemPerBlock = 48 << 10;
    out->sharedMemPerBlockOptin = 227 << 10;
    out->sharedMemPerMultiprocessor = 228 << 10;
    out->regsPerBlock = out->regsPerMultiprocessor = 65536;
    out->warpSize = 32;
    out->memPitch = 2147483647;
    out->maxThreadsPerBlock = out->maxThreadsDim[0] = out->maxThreadsDim[1] = 1024;
    out->maxThreadsDim[2] = 64;
    out->maxGridSize[0] = 2147483647, out->maxGridSize[1] = out->maxGridSize[2] = 65535;
    out->totalConstMem = 64 << 10;
    out->major = 9;
    out->textureAlignment = 512;
    out->multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount);
    out->maxThreadsPerMultiProcessor = 2048;
    out->maxBlocksPerMultiProcessor = 32;
    out->l2CacheSize = 4 << 20;
    out->memoryBusWidth = 128;
    out->unifiedAddressing = out->managedMemory = out->canMapHostMemory = out->concurrentManagedAccess = 1;
    out->cooperativeLaunch = out->clusterLaunch = out->concurrentKernels = out->integrated = 1;
#if CUDART_VERSION < 13000
    out->clockRate = out->memoryClockRate = 1000000;
#endif
    return cudaSuccess;
}
API cudaError_t cudaGetDeviceCount(int* out) {
    *out = devices();
    return cudaSuccess;
}
API cudaError_t cudaGetDevice(int* out) {
    *out = current_device;
    return cudaSuccess;
}
API cudaError_t cudaSetDevice(int device) {
    if (known(device)) return cudaErrorInvalidDevice;
    current_device = device;
    return cudaSuccess;
}
API cudaError_t cudaChooseDevice(int* out, const cudaDeviceProp*) { return cudaGetDevice(out); }
API cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
API cudaError_t cudaInitDevice(int, unsigned, unsigned) { return cudaSuccess; }
API cudaError_t cudaDeviceSynchronize() { return said(broken); }
API cudaError_t cudaDeviceReset() {
    broken = last = cudaSuccess;
    return cudaSuccess;
}
API cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
API cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
API cudaError_t cudaDeviceGetLimit(size_t* out, cudaLimit) {
    *out = 8 << 20;
    return cudaSuccess;
}
API cudaError_t cudaDeviceCanAccessPeer(int* out, int one, int other) {
    *out = one != other;
    return said(known(one) || known(other) ? cudaErrorInvalidDevice : cudaSuccess);
}
API cudaError_t cudaDeviceEnablePeerAccess(int device, unsigned) { return known(device); }
API cudaError_t cudaDeviceDisablePeerAccess(int device) { return known(device); }
API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    *least = *greatest = 0;
    return cudaSuccess;
}
API cudaError_t cudaDriverGetVersion(int* out) {
    *out = CUDART_VERSION;
    return cudaSuccess;
}
API cudaError_t cudaRuntimeGetVersion(int* out) { return cudaDriverGetVersion(out); }
API cudaError_t cudaProfilerStart() { return cudaSuccess; }
API cudaError_t cudaProfilerStop() { return cudaSuccess; }

// ------------------------------------------------------------------------------------ memory pools
//
// Every pool takes its memory where all of it comes from, at once.

struct CUmemPoolHandle_st {
    std::map<int, unsigned long long> attributes;
};

namespace {

CUmemPoolHandle_st default_pool;
cudaMemPool_t current_pool = &default_pool;
bool is_flag(cudaMemPoolAttr which) { return which <= cudaMemPoolReuseAllowInternalDependencies; }

}  // namespace

API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* out, int) {
    *out = &default_pool;
    return cudaSuccess;
}
API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* out, int) {
    *out = current_pool;
    return cudaSuccess;
}
API cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t pool) {
    current_pool = pool;
    return cudaSuccess;
}
API cudaError_t cudaMemPoolCreate(cudaMemPool_t* out, const cudaMemPoolProps*) {
    *out = new CUmemPoolHandle_st();
    return cudaSuccess;
}
API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    if (pool == &default_pool) return said(cudaErrorInvalidValue);
    if (pool == current_pool) current_pool = &default_pool;
    delete pool;
    return cudaSuccess;
}
API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void* value) {
    pool->attributes[which] = is_flag(which) ? *(unsigned*)value : *(unsigned long long*)value;
    return cudaSuccess;
}
API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void* value) {
    if (is_flag(which))
        *(unsigned*)value = pool->attributes.count(which) ? pool->attributes[which] : 1;
    else
        *(unsigned long long*)value = pool->attributes[which];
    return cudaSuccess;
}
API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) { return cudaSuccess; }
API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
API cudaError_t cudaMallocFromPoolAsync(void** p, size_t size, cudaMemPool_t, cudaStream_t) { return allocate(p, size); }

// ------------------------------------------------------------------------------- streams and events

struct CUstream_st {
    int unused;
};
struct CUevent_st {
    double time;
};

API cudaError_t cudaStreamCreate(cudaStream_t* out) {
    *out = new CUstream_st();
    return cudaSuccess;
}
API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) { return cudaStreamCreate(out); }
API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned, int) { return cudaStreamCreate(out); }
API cudaError_t cudaStreamGetPriority(cudaStream_t, int* out) {
    *out = 0;
    return cudaSuccess;
}
API cudaError_t cudaStreamGetFlags(cudaStream_t, unsigned* out) {
    *out = 0;
    return cudaSuccess;
}
API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    delete stream;
    return cudaSuccess;
}
API cudaError_t cudaStreamSynchronize(cudaStream_t) { return said(broken); }
API cudaError_t cudaStreamQuery(cudaStream_t) { return said(broken); }
API cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t f, void* data, unsigned) {
    f(stream, cudaSuccess, data);
    return cudaSuccess;
}
API cudaError_t cudaEventCreate(cudaEvent_t* out) {
    *out = new CUevent_st{now()};
    return cudaSuccess;
}
API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) { return cudaEventCreate(out); }
API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    event->time = now();
    return cudaSuccess;
}
API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t, unsigned) { return cudaEventRecord(event, 0); }
API cudaError_t cudaEventSynchronize(cudaEvent_t) { return said(broken); }
API cudaError_t cudaEventQuery(cudaEvent_t) { return said(broken); }
API cudaError_t cudaEventElapsedTime(float* out, cudaEvent_t start, cudaEvent_t end) {
    *out = (float)(end->time - start->time);
    return cudaSuccess;
}
API cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}

// ------------------------------------------------------------------------------------------ errors

API cudaError_t cudaGetLastError() {
    cudaError_t error = last;
    last = cudaSuccess;
    return error;
}
API cudaError_t cudaPeekAtLastError() { return last; }
API const char* cudaGetErrorName(cudaError_t error) {
    switch (error) {
        case cudaSuccess: return "cudaSuccess";
        case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
        case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
        case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
        case cudaErrorInvalidSymbol: return "cudaErrorInvalidSymbol";
        case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
        case cudaErrorInvalidDeviceFunction: return "cudaErrorInvalidDeviceFunction";
        case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
        case cudaErrorAssert: return "cudaErrorAssert";
        case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
        case cudaErrorLaunchTimeout: return "cudaErrorLaunchTimeout";
        case cudaErrorNotSupported: return "cudaErrorNotSupported";
        default: return "cudaErrorUnknown";
    }
}
API const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
        case cudaSuccess: return "no error";
        case cudaErrorInvalidValue: return "invalid argument";
        case cudaErrorMemoryAllocation: return "out of memory";
        case cudaErrorInvalidConfiguration: return "invalid configuration argument";
        case cudaErrorInvalidSymbol: return "invalid device symbol";
        case cudaErrorInvalidDevice: return "invalid device ordinal";
        case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
        case cudaErrorAssert: return "device-side assert triggered";
        case cudaErrorLaunchFailure: return "unspecified launch failure";
        case cudaErrorNotSupported: return "not available without a GPU";
        default: return "unknown error";
    }
}

// A function of the runtime that is missing here; generated stubs name it.
API int __cuda_lsp_missing(const char* name) {
    fprintf(stderr, "cuda-lsp: %s is not available without a GPU\n", name);
    last = cudaErrorNotSupported;
    return cudaErrorNotSupported;
}
