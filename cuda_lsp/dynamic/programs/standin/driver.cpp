// A stand-in for the CUDA driver (libcuda.so.1), preloaded into a Python interpreter on a machine without a GPU.
//
// Memory is that of `emulator.cpp`. Everything happens in the order of the calls; streams and events only keep
// time. Images of modules go to the emulator's process, which knows the sources of those that NVRTC made
// (`nvrtc.cpp`) and compiles them for the check; launches go there, too, and return when they are done.

#include <cuda.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>

#include <map>
#include <string>
#include <vector>

namespace {

struct Module {
    unsigned long long number;
    std::map<std::string, struct Function*> functions;
};
struct Function {
    Module* module;
    std::string name;
    std::vector<unsigned> sizes;
    std::map<int, int> attributes;
};
struct Context {
    CUdevice device = 0;
};
struct Stream {
    int unused;
};
struct Event {
    double time;
};
struct Linked {
    std::string image;
    int inputs = 0;
};

Context primary;
thread_local std::vector<CUcontext> stack;
CUresult broken = CUDA_SUCCESS;  // why a kernel ended: whoever waits for it is told, again and again

CUcontext primary_context() { return (CUcontext)&primary; }
CUresult found(bool is) { return is ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND; }

double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec * 1e-6;
}

CUresult allocate(void** target, size_t size) {
    if (!target || !size) return CUDA_ERROR_INVALID_VALUE;
    *target = allocated(size);
    return *target ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult allocate(CUdeviceptr* target, size_t size) { return allocate((void**)target, size); }
CUresult release(void* p) { return !p || released(p) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

CUresult copy(void* target, const void* source, size_t size) {
    if (size && (!target || !source)) return CUDA_ERROR_INVALID_VALUE;
    memmove(target, source, size);
    return CUDA_SUCCESS;
}

template <class T>
CUresult fill(CUdeviceptr target, size_t pitch, T value, size_t width, size_t height) {
    for (size_t row = 0; row < height; ++row) {
        T* start = (T*)((char*)target + row * pitch);
        if (width && (!on_device(start) || !on_device(start + width - 1))) return CUDA_ERROR_INVALID_VALUE;
        for (size_t k = 0; k < width; ++k) start[k] = value;
    }
    return CUDA_SUCCESS;
}

char* place(CUmemorytype type, const void* host, CUdeviceptr device, size_t x, size_t y, size_t pitch) {
    char* start = type == CU_MEMORYTYPE_HOST ? (char*)host : (char*)device;
    return type == CU_MEMORYTYPE_ARRAY ? nullptr : start + y * pitch + x;
}

// --------------------------------------------------------------------------------- modules and kernels

CUresult loaded(Module** out, const void* data) {
    if (!out || !data) return CUDA_ERROR_INVALID_VALUE;
    const char* image = (const char*)data;
    size_t size = size_of(image);
    std::string answer = asked(MODULE, image, size);
    unsigned long long number;
    memcpy(&number, answer.data(), sizeof number);
    if (!number) return CUDA_ERROR_NO_BINARY_FOR_GPU;  // the report has the reason
    *out = new Module{number, {}};
    return CUDA_SUCCESS;
}

CUresult loaded_file(Module** out, const char* path) {
    FILE* file = fopen(path, "rb");
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    std::string text;
    char part[1 << 14];
    for (size_t got; (got = fread(part, 1, sizeof part, file));) text.append(part, got);
    fclose(file);
    text.append(64, '\0');
    return loaded(out, text.data());
}

std::string named(Module* module, const char* name) {
    std::string body((const char*)&module->number, sizeof module->number);
    return body + name;
}

CUresult function_of(Function** out, Module* module, const char* name) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    if (!out || !module || !name) return CUDA_ERROR_INVALID_VALUE;
    Function*& known = module->functions[name];
    if (!known) {
        std::string body = named(module, name), answer = asked(FUNCTION, body.data(), body.size());
        if (!answer[0]) {
            module->functions.erase(name);
            return answer[1] ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NOT_FOUND;  // does not compile for the check
        }
        known = new Function{module, name, {}, {}};
        known->sizes.resize((answer.size() - 2) / sizeof(unsigned));
        memcpy(known->sizes.data(), answer.data() + 2, answer.size() - 2);
    }
    *out = known;
    return CUDA_SUCCESS;
}

CUresult variable_of(CUdeviceptr* start, size_t* size, Module* module, const char* name) {
    std::string body = named(module, name), answer = asked(GLOBAL, body.data(), body.size());
    unsigned long long values[2];
    memcpy(values, answer.data(), sizeof values);
    if (!values[0]) return CUDA_ERROR_NOT_FOUND;
    if (start) *start = values[0];
    if (size) *size = values[1];
    return CUDA_SUCCESS;
}

std::vector<Function*> all_of(Module* module) {
    std::string names = asked(NAMES, &module->number, sizeof module->number);
    std::vector<Function*> all;
    for (size_t k = 0; k < names.size(); k += strlen(&names[k]) + 1) {
        Function* function;
        if (!function_of(&function, module, &names[k])) all.push_back(function);
    }
    return all;
}

size_t offset_of(const Function* function, size_t index) {
    size_t at = 0;
    for (size_t k = 0; k <= index; ++k) {
        size_t size = function->sizes[k], alignment = size % 16 == 0 ? 16 : size % 8 == 0 ? 8 : size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1;
        at = (at + alignment - 1) / alignment * alignment;
        if (k < index) at += size;
    }
    return at;
}

CUresult launched(Function* function, const unsigned* shape, unsigned shared, bool together, const unsigned* cluster,
                  void** arguments, void** extra) {
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    unsigned long long threads = (unsigned long long)shape[3] * shape[4] * shape[5];
    if (!threads || threads > 1024 || shape[5] > 64 || !shape[0] || !shape[1] || !shape[2] || shape[1] > 65535 ||
        shape[2] > 65535)
        return CUDA_ERROR_INVALID_VALUE;
    std::string name = std::to_string(function->module->number) + " " + function->name;
    unsigned head[12] = {shape[0], shape[1], shape[2], shape[3], shape[4], shape[5], shared, together,
                         cluster[0], cluster[1], cluster[2], (unsigned)name.size()};
    std::string body((const char*)head, sizeof head);
    body += name;
    const char* buffer = nullptr;
    size_t size = 0;
    for (void** one = extra; one && *one != CU_LAUNCH_PARAM_END; one += 2) {
        if (*one == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = (const char*)one[1];
        if (*one == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *(size_t*)one[1];
    }
    for (size_t k = 0; k < function->sizes.size(); ++k) {
        if (arguments) {
            body.append((const char*)arguments[k], function->sizes[k]);
            continue;
        }
        size_t at = offset_of(function, k);
        if (!buffer || at + function->sizes[k] > size) return CUDA_ERROR_INVALID_VALUE;
        body.append(buffer + at, function->sizes[k]);
    }
    fflush(stdout);
    std::string answer = asked(LAUNCH, body.data(), body.size());
    int error;
    memcpy(&error, answer.data(), sizeof error);
    fwrite(answer.data() + sizeof error, 1, answer.size() - sizeof error, stdout);  // what the kernel printed
    fflush(stdout);
    if (error && error != CUDA_ERROR_NOT_SUPPORTED) broken = (CUresult)error;
    return (CUresult)error;
}

int attribute_of(Function* function, CUfunction_attribute which) {
    auto known = function->attributes.find(which);
    if (known != function->attributes.end()) return known->second;
    switch (which) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return 1024;
        case CU_FUNC_ATTRIBUTE_NUM_REGS: return 32;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION: return 90;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: return 48 << 10;
        default: return 0;
    }
}

int attribute_of(CUdevice_attribute which) {
    switch (which) {
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 2147483647;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return 48 << 10;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return 227 << 10;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: return 228 << 10;
        case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: return 1024;
        case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: return 64 << 10;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: return 65536;
        case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return 2147483647;
        case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT: return 512;
        case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return 1000000;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return 4;  // few: programs size their grids by it
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return 2048;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: return 32;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return 9;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return 0;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return 4 << 20;
        case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return 128;
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
        case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
        case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
        case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
        case CU_DEVICE_ATTRIBUTE_INTEGRATED:
        case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
        case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: return 1;
        default: return 0;
    }
}

struct Named {
    CUresult error;
    const char *name, *text;
};
const Named ERRORS[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU", "the emulator cannot load this image"},
    {CUDA_ERROR_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {CUDA_ERROR_ASSERT, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "not available without a GPU"},
};

const Named* error_of(CUresult error) {
    for (auto& one : ERRORS)
        if (one.error == error) return &one;
    return nullptr;
}

}  // namespace

// ------------------------------------------------------------------------------ devices and contexts

API CUresult cuInit(unsigned) {
    connect();
    return CUDA_SUCCESS;
}
API CUresult cuDriverGetVersion(int* out) {
    *out = CUDA_VERSION;
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGet(CUdevice* out, int number) {
    *out = 0;
    return number ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
API CUresult cuDeviceGetCount(int* out) {
    *out = 1;
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetName(char* out, int length, CUdevice) {
    snprintf(out, length, "cuda-lsp CPU emulator");
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetUuid_v2(CUuuid* out, CUdevice) {
    memcpy(out, "cuda-lsp emulat", sizeof *out);
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetPCIBusId(char* out, int length, CUdevice) {
    snprintf(out, length, "0000:00:00.0");
    return CUDA_SUCCESS;
}
API CUresult cuDeviceTotalMem(size_t* out, CUdevice) {
    connect();
    *out = high - low;
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetAttribute(int* out, CUdevice_attribute which, CUdevice) {
    *out = attribute_of(which);
    return CUDA_SUCCESS;
}
API CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice) {
    *major = 9, *minor = 0;
    return CUDA_SUCCESS;
}
API CUresult cuDeviceCanAccessPeer(int* out, CUdevice, CUdevice) {
    *out = 0;
    return CUDA_SUCCESS;
}
API CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice) {
    *out = primary_context();
    return CUDA_SUCCESS;
}
API CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
API CUresult cuDevicePrimaryCtxReset(CUdevice) { return CUDA_SUCCESS; }
API CUresult cuDevicePrimaryCtxSetFlags(CUdevice, unsigned) { return CUDA_SUCCESS; }
API CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
    *flags = 0, *active = 1;
    return CUDA_SUCCESS;
}
API CUresult cuCtxPushCurrent(CUcontext context) {
    stack.push_back(context);
    return CUDA_SUCCESS;
}
API CUresult cuCtxPopCurrent(CUcontext* out) {
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (out) *out = stack.back();
    stack.pop_back();
    return CUDA_SUCCESS;
}
API CUresult cuCtxSetCurrent(CUcontext context) {
    if (!stack.empty()) stack.pop_back();
    if (context) stack.push_back(context);
    return CUDA_SUCCESS;
}
API CUresult cuCtxGetCurrent(CUcontext* out) {
    *out = stack.empty() ? nullptr : stack.back();
    return CUDA_SUCCESS;
}
API CUresult cuCtxDestroy(CUcontext context) {
    if (!stack.empty() && stack.back() == context) stack.pop_back();
    if (context != primary_context()) delete (Context*)context;
    return CUDA_SUCCESS;
}
// Contexts differ in name only; parameters came with CUDA 13 (`_v4`).
#undef cuCtxCreate
API CUresult cuCtxCreate_v2(CUcontext* out, unsigned, CUdevice) {
    *out = (CUcontext) new Context();
    return cuCtxPushCurrent(*out);
}
API CUresult cuCtxCreate_v3(CUcontext* out, void*, int, unsigned flags, CUdevice device) {
    return cuCtxCreate_v2(out, flags, device);
}
API CUresult cuCtxCreate_v4(CUcontext* out, struct CUctxCreateParams_st*, unsigned flags, CUdevice device) {
    return cuCtxCreate_v2(out, flags, device);
}
#undef cuCtxGetDevice
API CUresult cuCtxGetDevice(CUdevice* out) {
    *out = 0;
    return CUDA_SUCCESS;
}
API CUresult cuCtxGetDevice_v2(CUdevice* out, CUcontext) { return cuCtxGetDevice(out); }
#undef cuCtxSynchronize
API CUresult cuCtxSynchronize() { return broken; }
API CUresult cuCtxSynchronize_v2(CUcontext) { return broken; }
API CUresult cuCtxGetFlags(unsigned* out) {
    *out = 0;
    return CUDA_SUCCESS;
}
API CUresult cuCtxSetFlags(unsigned) { return CUDA_SUCCESS; }
API CUresult cuCtxGetId(CUcontext context, unsigned long long* out) {
    *out = (unsigned long long)context;
    return CUDA_SUCCESS;
}
API CUresult cuCtxGetApiVersion(CUcontext, unsigned* out) {
    *out = CUDA_VERSION;
    return CUDA_SUCCESS;
}
API CUresult cuCtxSetLimit(CUlimit, size_t) { return CUDA_SUCCESS; }
API CUresult cuCtxGetLimit(size_t* out, CUlimit) {
    *out = 8 << 20;
    return CUDA_SUCCESS;
}
API CUresult cuCtxSetCacheConfig(CUfunc_cache) { return CUDA_SUCCESS; }
API CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    if (least) *least = 0;
    if (greatest) *greatest = 0;
    return CUDA_SUCCESS;
}

// --------------------------------------------------------------------------------------------- memory

API CUresult cuMemAlloc(CUdeviceptr* p, size_t size) { return allocate(p, size); }
API CUresult cuMemAllocHost(void** p, size_t size) { return allocate(p, size); }
API CUresult cuMemHostAlloc(void** p, size_t size, unsigned) { return allocate(p, size); }
API CUresult cuMemAllocManaged(CUdeviceptr* p, size_t size, unsigned) { return allocate(p, size); }
API CUresult cuMemAllocAsync(CUdeviceptr* p, size_t size, CUstream) { return allocate(p, size); }
API CUresult cuMemAllocFromPoolAsync(CUdeviceptr* p, size_t size, CUmemoryPool, CUstream) { return allocate(p, size); }
API CUresult cuMemAllocPitch(CUdeviceptr* p, size_t* pitch, size_t width, size_t height, unsigned) {
    *pitch = (width + 511) / 512 * 512;
    return allocate(p, *pitch * height);
}
API CUresult cuMemFree(CUdeviceptr p) { return release((void*)p); }
API CUresult cuMemFreeAsync(CUdeviceptr p, CUstream) { return release((void*)p); }
API CUresult cuMemFreeHost(void* p) { return release(p); }
API CUresult cuMemHostGetDevicePointer(CUdeviceptr* out, void* host, unsigned) {
    *out = (CUdeviceptr)host;
    return on_device(host) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API CUresult cuMemHostGetFlags(unsigned* out, void*) {
    *out = 0;
    return CUDA_SUCCESS;
}
// Memory of the host's own allocator is not in the mapping: kernels cannot reach it.
API CUresult cuMemHostRegister(void*, size_t, unsigned) { return CUDA_ERROR_NOT_SUPPORTED; }
API CUresult cuMemHostUnregister(void*) { return CUDA_ERROR_NOT_SUPPORTED; }
API CUresult cuMemGetInfo(size_t* left, size_t* total) {
    connect();
    *total = high - low;
    std::string answer = asked(EXTENT, nullptr, 0);
    unsigned long long used;
    memcpy(&used, answer.data(), sizeof used);
    *left = *total - used;
    return CUDA_SUCCESS;
}
API CUresult cuMemcpy(CUdeviceptr t, CUdeviceptr s, size_t n) { return copy((void*)t, (void*)s, n); }
API CUresult cuMemcpyAsync(CUdeviceptr t, CUdeviceptr s, size_t n, CUstream) { return copy((void*)t, (void*)s, n); }
API CUresult cuMemcpyHtoD(CUdeviceptr t, const void* s, size_t n) { return copy((void*)t, s, n); }
API CUresult cuMemcpyHtoDAsync(CUdeviceptr t, const void* s, size_t n, CUstream) { return copy((void*)t, s, n); }
API CUresult cuMemcpyDtoH(void* t, CUdeviceptr s, size_t n) { return copy(t, (void*)s, n); }
API CUresult cuMemcpyDtoHAsync(void* t, CUdeviceptr s, size_t n, CUstream) { return copy(t, (void*)s, n); }
API CUresult cuMemcpyDtoD(CUdeviceptr t, CUdeviceptr s, size_t n) { return copy((void*)t, (void*)s, n); }
API CUresult cuMemcpyDtoDAsync(CUdeviceptr t, CUdeviceptr s, size_t n, CUstream) { return copy((void*)t, (void*)s, n); }
API CUresult cuMemcpy2D(const CUDA_MEMCPY2D* c) {
    for (size_t row = 0; row < c->Height; ++row) {
        char* to = place(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY + row, c->dstPitch);
        char* from = place(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY + row, c->srcPitch);
        if (!to || !from) return CUDA_ERROR_NOT_SUPPORTED;
        memmove(to, from, c->WidthInBytes);
    }
    return CUDA_SUCCESS;
}
API CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* c) { return cuMemcpy2D(c); }
API CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* c, CUstream) { return cuMemcpy2D(c); }
API CUresult cuMemcpy3D(const CUDA_MEMCPY3D* c) {
    for (size_t slice = 0; slice < c->Depth; ++slice)
        for (size_t row = 0; row < c->Height; ++row) {
            size_t to_row = (c->dstZ + slice) * c->dstHeight + c->dstY + row;
            size_t from_row = (c->srcZ + slice) * c->srcHeight + c->srcY + row;
            char* to = place(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, to_row, c->dstPitch);
            char* from = place(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, from_row, c->srcPitch);
            if (!to || !from) return CUDA_ERROR_NOT_SUPPORTED;
            memmove(to, from, c->WidthInBytes);
        }
    return CUDA_SUCCESS;
}
API CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* c, CUstream) { return cuMemcpy3D(c); }
API CUresult cuMemsetD8(CUdeviceptr t, unsigned char v, size_t n) { return fill(t, 0, v, n, 1); }
API CUresult cuMemsetD16(CUdeviceptr t, unsigned short v, size_t n) { return fill(t, 0, v, n, 1); }
API CUresult cuMemsetD32(CUdeviceptr t, unsigned v, size_t n) { return fill(t, 0, v, n, 1); }
API CUresult cuMemsetD8Async(CUdeviceptr t, unsigned char v, size_t n, CUstream) { return fill(t, 0, v, n, 1); }
API CUresult cuMemsetD16Async(CUdeviceptr t, unsigned short v, size_t n, CUstream) { return fill(t, 0, v, n, 1); }
API CUresult cuMemsetD32Async(CUdeviceptr t, unsigned v, size_t n, CUstream) { return fill(t, 0, v, n, 1); }
API CUresult cuMemsetD2D8(CUdeviceptr t, size_t pitch, unsigned char v, size_t w, size_t h) { return fill(t, pitch, v, w, h); }
API CUresult cuMemsetD2D32(CUdeviceptr t, size_t pitch, unsigned v, size_t w, size_t h) { return fill(t, pitch, v, w, h); }
API CUresult cuPointerGetAttribute(void* out, CUpointer_attribute which, CUdeviceptr p) {
    if (!on_device((void*)p)) return CUDA_ERROR_INVALID_VALUE;
    switch (which) {
        case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext*)out = primary_context(); break;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned*)out = CU_MEMORYTYPE_DEVICE; break;
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr*)out = p; break;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER: *(CUdeviceptr*)out = p; break;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned*)out = 1; break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int*)out = 0; break;
        default: return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}
API CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* which, void** out, CUdeviceptr p) {
    for (unsigned k = 0; k < count; ++k)
        if (cuPointerGetAttribute(out[k], which[k], p)) memset(out[k], 0, sizeof(int));
    return CUDA_SUCCESS;
}

// Every pool takes its memory where all of it comes from, at once.
API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice) {
    *out = (CUmemoryPool)&primary;
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice) {
    *out = (CUmemoryPool)&primary;
    return CUDA_SUCCESS;
}
API CUresult cuDeviceSetMemPool(CUdevice, CUmemoryPool) { return CUDA_SUCCESS; }
API CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps*) {
    *out = (CUmemoryPool)&primary;
    return CUDA_SUCCESS;
}
API CUresult cuMemPoolDestroy(CUmemoryPool) { return CUDA_SUCCESS; }
API CUresult cuMemPoolTrimTo(CUmemoryPool, size_t) { return CUDA_SUCCESS; }
API CUresult cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, void*) { return CUDA_SUCCESS; }
API CUresult cuMemPoolGetAttribute(CUmemoryPool, CUmemPool_attribute which, void* out) {
    if (which <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
        *(int*)out = 1;
    else
        *(unsigned long long*)out = 0;
    return CUDA_SUCCESS;
}
API CUresult cuMemPoolSetAccess(CUmemoryPool, const CUmemAccessDesc*, size_t) { return CUDA_SUCCESS; }

// -------------------------------------------------------------------------------------------- modules

API CUresult cuModuleLoadData(CUmodule* out, const void* image) { return loaded((Module**)out, image); }
API CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned, CUjit_option*, void**) {
    return loaded((Module**)out, image);
}
API CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) { return loaded((Module**)out, image); }
API CUresult cuModuleLoad(CUmodule* out, const char* path) { return loaded_file((Module**)out, path); }
API CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }
API CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
    return function_of((Function**)out, (Module*)module, name);
}
API CUresult cuModuleGetGlobal(CUdeviceptr* start, size_t* size, CUmodule module, const char* name) {
    return variable_of(start, size, (Module*)module, name);
}
API CUresult cuModuleGetFunctionCount(unsigned* out, CUmodule module) {
    *out = all_of((Module*)module).size();
    return CUDA_SUCCESS;
}
API CUresult cuModuleEnumerateFunctions(CUfunction* out, unsigned count, CUmodule module) {
    auto all = all_of((Module*)module);
    for (unsigned k = 0; k < count && k < all.size(); ++k) out[k] = (CUfunction)all[k];
    return CUDA_SUCCESS;
}
API CUresult cuFuncGetAttribute(int* out, CUfunction_attribute which, CUfunction f) {
    *out = attribute_of((Function*)f, which);
    return CUDA_SUCCESS;
}
API CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute which, int value) {
    ((Function*)f)->attributes[which] = value;
    return CUDA_SUCCESS;
}
API CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
API CUresult cuFuncGetModule(CUmodule* out, CUfunction f) {
    *out = (CUmodule)((Function*)f)->module;
    return CUDA_SUCCESS;
}
API CUresult cuFuncGetName(const char** out, CUfunction f) {
    *out = ((Function*)f)->name.c_str();
    return CUDA_SUCCESS;
}
API CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t* offset, size_t* size) {
    Function* function = (Function*)f;
    if (index >= function->sizes.size()) return CUDA_ERROR_INVALID_VALUE;
    if (offset) *offset = offset_of(function, index);
    if (size) *size = function->sizes[index];
    return CUDA_SUCCESS;
}
#if CUDA_VERSION >= 12000
// A library is a module, and a kernel one of its functions.
API CUresult cuLibraryLoadData(CUlibrary* out, const void* image, CUjit_option*, void**, unsigned, CUlibraryOption*,
                               void**, unsigned) {
    return loaded((Module**)out, image);
}
API CUresult cuLibraryLoadFromFile(CUlibrary* out, const char* path, CUjit_option*, void**, unsigned, CUlibraryOption*,
                                   void**, unsigned) {
    return loaded_file((Module**)out, path);
}
API CUresult cuLibraryUnload(CUlibrary) { return CUDA_SUCCESS; }
API CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary library, const char* name) {
    return function_of((Function**)out, (Module*)library, name);
}
API CUresult cuLibraryGetModule(CUmodule* out, CUlibrary library) {
    *out = (CUmodule)library;
    return CUDA_SUCCESS;
}
API CUresult cuLibraryGetGlobal(CUdeviceptr* start, size_t* size, CUlibrary library, const char* name) {
    return variable_of(start, size, (Module*)library, name);
}
API CUresult cuLibraryGetManaged(CUdeviceptr* start, size_t* size, CUlibrary library, const char* name) {
    return variable_of(start, size, (Module*)library, name);
}
API CUresult cuLibraryGetKernelCount(unsigned* out, CUlibrary library) {
    return cuModuleGetFunctionCount(out, (CUmodule)library);
}
API CUresult cuLibraryEnumerateKernels(CUkernel* out, unsigned count, CUlibrary library) {
    return cuModuleEnumerateFunctions((CUfunction*)out, count, (CUmodule)library);
}
API CUresult cuKernelGetFunction(CUfunction* out, CUkernel kernel) {
    *out = (CUfunction)kernel;
    return CUDA_SUCCESS;
}
API CUresult cuKernelGetLibrary(CUlibrary* out, CUkernel kernel) { return cuFuncGetModule((CUmodule*)out, (CUfunction)kernel); }
API CUresult cuKernelGetName(const char** out, CUkernel kernel) { return cuFuncGetName(out, (CUfunction)kernel); }
API CUresult cuKernelGetAttribute(int* out, CUfunction_attribute which, CUkernel kernel, CUdevice) {
    return cuFuncGetAttribute(out, which, (CUfunction)kernel);
}
API CUresult cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel kernel, CUdevice) {
    return cuFuncSetAttribute((CUfunction)kernel, which, value);
}
API CUresult cuKernelSetCacheConfig(CUkernel, CUfunc_cache, CUdevice) { return CUDA_SUCCESS; }
API CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
    return cuFuncGetParamInfo((CUfunction)kernel, index, offset, size);
}
#endif
// One text of PTX "links" to itself, because the emulator needs no machine code.
API CUresult cuLinkCreate(unsigned, CUjit_option*, void**, CUlinkState* out) {
    *out = (CUlinkState) new Linked();
    return CUDA_SUCCESS;
}
API CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char*, unsigned,
                           CUjit_option*, void**) {
    Linked* link = (Linked*)state;
    if (type != CU_JIT_INPUT_PTX || link->inputs++) return CUDA_ERROR_NOT_SUPPORTED;
    link->image.assign((const char*)data, size);
    return CUDA_SUCCESS;
}
API CUresult cuLinkComplete(CUlinkState state, void** out, size_t* size) {
    Linked* link = (Linked*)state;
    *out = &link->image[0];
    if (size) *size = link->image.size();
    return found(link->inputs);
}
API CUresult cuLinkDestroy(CUlinkState state) {
    delete (Linked*)state;
    return CUDA_SUCCESS;
}

// ------------------------------------------------------------------------------------------- launches

API CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                            unsigned shared, CUstream, void** arguments, void** extra) {
    unsigned shape[6] = {gx, gy, gz, bx, by, bz}, alone[3] = {1, 1, 1};
    return launched((Function*)f, shape, shared, false, alone, arguments, extra);
}
API CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                       unsigned bz, unsigned shared, CUstream, void** arguments) {
    unsigned shape[6] = {gx, gy, gz, bx, by, bz}, alone[3] = {1, 1, 1};
    return launched((Function*)f, shape, shared, true, alone, arguments, nullptr);
}
#if CUDA_VERSION >= 11080
API CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** arguments, void** extra) {
    unsigned shape[6] = {c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ};
    unsigned cluster[3] = {1, 1, 1};
    bool together = false;
    for (unsigned k = 0; k < c->numAttrs; ++k) {
        auto& value = c->attrs[k].value;
        if (c->attrs[k].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) together = value.cooperative;
        if (c->attrs[k].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            cluster[0] = value.clusterDim.x, cluster[1] = value.clusterDim.y, cluster[2] = value.clusterDim.z;
    }
    return launched((Function*)f, shape, c->sharedMemBytes, together, cluster, arguments, extra);
}
#endif
API CUresult cuLaunchHostFunc(CUstream, CUhostFn f, void* data) {
    f(data);
    return CUDA_SUCCESS;
}
API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, CUfunction, int block, size_t) {
    *out = block > 0 ? 2048 / block : 0;
    return CUDA_SUCCESS;
}
API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* out, CUfunction, int block, size_t, unsigned) {
    *out = block > 0 ? 2048 / block : 0;
    return CUDA_SUCCESS;
}
API CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction, CUoccupancyB2DSize, size_t, int most) {
    *block = most > 0 && most < 256 ? most : 256, *grid = 32;
    return CUDA_SUCCESS;
}

// --------------------------------------------------------------------------------- streams and events

API CUresult cuStreamCreate(CUstream* out, unsigned) {
    *out = (CUstream) new Stream();
    return CUDA_SUCCESS;
}
API CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int) { return cuStreamCreate(out, flags); }
API CUresult cuStreamDestroy(CUstream stream) {
    delete (Stream*)stream;
    return CUDA_SUCCESS;
}
API CUresult cuStreamSynchronize(CUstream) { return broken; }
API CUresult cuStreamQuery(CUstream) { return broken; }
API CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return CUDA_SUCCESS; }
API CUresult cuStreamGetFlags(CUstream, unsigned* out) {
    *out = 0;
    return CUDA_SUCCESS;
}
API CUresult cuStreamGetPriority(CUstream, int* out) {
    *out = 0;
    return CUDA_SUCCESS;
}
#undef cuStreamGetCtx
API CUresult cuStreamGetCtx(CUstream, CUcontext* out) { return cuCtxGetCurrent(out); }
API CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* out) {
    *out = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}
API CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback f, void* data, unsigned) {
    f(stream, broken, data);
    return CUDA_SUCCESS;
}
API CUresult cuEventCreate(CUevent* out, unsigned) {
    *out = (CUevent) new Event{now()};
    return CUDA_SUCCESS;
}
API CUresult cuEventRecord(CUevent event, CUstream) {
    ((Event*)event)->time = now();
    return CUDA_SUCCESS;
}
API CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned) { return cuEventRecord(event, stream); }
API CUresult cuEventSynchronize(CUevent) { return broken; }
API CUresult cuEventQuery(CUevent) { return broken; }
API CUresult cuEventDestroy(CUevent event) {
    delete (Event*)event;
    return CUDA_SUCCESS;
}
#undef cuEventElapsedTime
API CUresult cuEventElapsedTime(float* out, CUevent start, CUevent end) {
    *out = (float)(((Event*)end)->time - ((Event*)start)->time);
    return CUDA_SUCCESS;
}
API CUresult cuEventElapsedTime_v2(float* out, CUevent start, CUevent end) { return cuEventElapsedTime(out, start, end); }
API CUresult cuProfilerStart() { return CUDA_SUCCESS; }
API CUresult cuProfilerStop() { return CUDA_SUCCESS; }
API CUresult cuGetErrorName(CUresult error, const char** out) {
    const Named* known = error_of(error);
    *out = known ? known->name : "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
}
API CUresult cuGetErrorString(CUresult error, const char** out) {
    const Named* known = error_of(error);
    *out = known ? known->text : "unknown error";
    return CUDA_SUCCESS;
}

// -------------------------------------------------------------------- how packages find all of these

namespace {

void* own(const std::string& name) {
    static void* self = nullptr;
    if (!self) {
        Dl_info info;
        if (!dladdr((void*)cuInit, &info)) return nullptr;
        self = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    }
    return self ? real_lookup()(self, name.c_str()) : nullptr;
}

}  // namespace

#if CUDA_VERSION < 12000
typedef int CUdriverProcAddressQueryResult;
#endif

// The newest form of a function, unless its parameters changed since `version`.
API CUresult cuGetProcAddress_v2(const char* name, void** out, int version, cuuint64_t,
                                 CUdriverProcAddressQueryResult* status) {
    std::string base(name);
    *out = nullptr;
    if (base == "cuGetProcAddress")
        *out = own(version >= 12000 ? "cuGetProcAddress_v2" : "cuGetProcAddress");
    else if (base == "cuCtxCreate")
        *out = own(version >= 13000 ? "cuCtxCreate_v4" : version >= 11040 ? "cuCtxCreate_v3" : "cuCtxCreate_v2");
    else
        for (const char* form : {"_v2", ""})
            if ((*out = own(base + form))) break;
    if (base == "cuCtxGetDevice" || base == "cuCtxSynchronize") *out = own(base);
    if (status) *status = (CUdriverProcAddressQueryResult)!*out;
    return found(*out);
}
#undef cuGetProcAddress
API CUresult cuGetProcAddress(const char* name, void** out, int version, cuuint64_t flags) {
    return cuGetProcAddress_v2(name, out, version, flags, nullptr);
}

namespace {

void compiled(const std::string& message) { asked(SOURCE, message.data(), message.size()); }

// The driver is ours already. NVRTC itself looks for a GPU, by ways that no driver but NVIDIA's has: for it there
// is none.
bool is_replaced(const char* name) { return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z'; }
void* replacement(const char*, void* theirs, const void* caller) {
    Dl_info info;
    bool compiler = dladdr((void*)caller, &info) && info.dli_fname && strstr(info.dli_fname, "libnvrtc");
    return compiler ? nullptr : theirs;
}

// As the interpreter starts, before its own memory grows to where the device's lies. What it starts in turn is
// no program under check.
__attribute__((constructor)) void begin() {
    if (!getenv("CUDA_LSP_PROGRAM")) return;
    connect();
    unsetenv("CUDA_LSP_PROGRAM");
    followed();
}

}  // namespace
