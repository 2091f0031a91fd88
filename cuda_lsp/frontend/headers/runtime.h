// The runtime API as far as launches depend on it; other host calls are not our concern.
typedef int cudaError_t;
typedef cudaError_t cudaError;
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef unsigned long long CUdeviceptr;
struct cudaDeviceProp { char name[256]; size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerMultiprocessor, sharedMemPerBlockOptin, totalConstMem, memPitch, textureAlignment; int warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor, maxBlocksPerMultiProcessor, multiProcessorCount, regsPerBlock, regsPerMultiprocessor, major, minor, maxThreadsDim[3], maxGridSize[3], cooperativeLaunch, clockRate, memoryClockRate, memoryBusWidth, l2CacheSize, ECCEnabled, concurrentKernels, asyncEngineCount, canMapHostMemory, integrated, managedMemory, concurrentManagedAccess, unifiedAddressing; };
#define CLOCKS_PER_SEC 1000000l
enum { cudaSuccess = 0 };
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
cudaError_t cudaConfigureCall(dim3, dim3, size_t = 0, cudaStream_t = 0);
extern "C" unsigned __cudaPushCallConfiguration(dim3, dim3, size_t = 0, void* = 0);
template <class F> cudaError_t cudaLaunchKernel(F*, dim3, dim3, void**, size_t = 0, cudaStream_t = 0);
template <class F> cudaError_t cudaLaunchCooperativeKernel(F*, dim3, dim3, void**, size_t = 0, cudaStream_t = 0);
template <class T> cudaError_t cudaMalloc(T**, size_t); template <class T> cudaError_t cudaMallocManaged(T**, size_t, unsigned = 1); template <class T> cudaError_t cudaMallocHost(T**, size_t);
cudaError_t cudaFree(void*); cudaError_t cudaFreeHost(void*); cudaError_t cudaMemcpy(void*, const void*, size_t, cudaMemcpyKind); cudaError_t cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t = 0); cudaError_t cudaMemset(void*, int, size_t);
template <class T> cudaError_t cudaMemcpyToSymbol(T&, const void*, size_t, size_t = 0, cudaMemcpyKind = cudaMemcpyHostToDevice); template <class T> cudaError_t cudaMemcpyFromSymbol(void*, T&, size_t, size_t = 0, cudaMemcpyKind = cudaMemcpyDeviceToHost);
cudaError_t cudaDeviceSynchronize(); cudaError_t cudaGetLastError(); cudaError_t cudaPeekAtLastError(); const char* cudaGetErrorString(cudaError_t); cudaError_t cudaStreamSynchronize(cudaStream_t);
struct cudaExtent { size_t width, height, depth; };
struct cudaPitchedPtr { void* ptr; size_t pitch, xsize, ysize; };
struct cudaPos { size_t x, y, z; };
typedef unsigned long long cudaGraphConditionalHandle;
void cudaGraphSetConditional(cudaGraphConditionalHandle, unsigned);
enum { cudaStreamDefault, cudaStreamNonBlocking, cudaStreamFireAndForget, cudaStreamTailLaunch };
cudaError_t cudaStreamCreateWithFlags(cudaStream_t*, unsigned);
cudaError_t cudaStreamCreate(cudaStream_t*);
cudaError_t cudaStreamDestroy(cudaStream_t);
typedef struct __attribute__((aligned(64))) CUtensorMap_st { unsigned long long opaque[16]; } CUtensorMap;
typedef enum cudaDataType_t { CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_8I, CUDA_C_32F, CUDA_C_64F, CUDA_C_16F, CUDA_C_8I, CUDA_R_8U, CUDA_C_8U, CUDA_R_32I, CUDA_C_32I, CUDA_R_32U, CUDA_C_32U, CUDA_R_16BF, CUDA_C_16BF, CUDA_R_4I, CUDA_C_4I, CUDA_R_4U, CUDA_C_4U, CUDA_R_16I, CUDA_C_16I, CUDA_R_16U, CUDA_C_16U, CUDA_R_64I, CUDA_C_64I, CUDA_R_64U, CUDA_C_64U, CUDA_R_8F_E4M3, CUDA_R_8F_E5M2 } cudaDataType;
typedef float2 cufftComplex;
typedef double2 cufftDoubleComplex;
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef float2 cuComplex;
typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
inline cuFloatComplex make_cuFloatComplex(float x, float y) { cuFloatComplex z; z.x = x; z.y = y; return z; } inline cuComplex make_cuComplex(float x, float y) { return make_cuFloatComplex(x, y); } inline cuDoubleComplex make_cuDoubleComplex(double x, double y) { cuDoubleComplex z; z.x = x; z.y = y; return z; }
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) { return make_cuDoubleComplex(z.x, z.y); } inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) { return make_cuFloatComplex(z.x, z.y); }
inline float cuCrealf(cuFloatComplex z) { return z.x; } inline float cuCimagf(cuFloatComplex z) { return z.y; } inline cuFloatComplex cuConjf(cuFloatComplex z) { z.y = -z.y; return z; }
inline cuFloatComplex cuCaddf(cuFloatComplex a, cuFloatComplex b) { a.x += b.x; a.y += b.y; return a; } inline cuFloatComplex cuCsubf(cuFloatComplex a, cuFloatComplex b) { a.x -= b.x; a.y -= b.y; return a; }
inline cuFloatComplex cuCmulf(cuFloatComplex a, cuFloatComplex b) { cuFloatComplex c; c.x = a.x * b.x - a.y * b.y; c.y = a.x * b.y + a.y * b.x; return c; } inline cuFloatComplex cuCfmaf(cuFloatComplex a, cuFloatComplex b, cuFloatComplex c) { return cuCaddf(cuCmulf(a, b), c); }
cuFloatComplex cuCdivf(cuFloatComplex, cuFloatComplex); float cuCabsf(cuFloatComplex);
inline double cuCreal(cuDoubleComplex z) { return z.x; } inline double cuCimag(cuDoubleComplex z) { return z.y; } inline cuDoubleComplex cuConj(cuDoubleComplex z) { z.y = -z.y; return z; }
inline cuDoubleComplex cuCadd(cuDoubleComplex a, cuDoubleComplex b) { a.x += b.x; a.y += b.y; return a; } inline cuDoubleComplex cuCsub(cuDoubleComplex a, cuDoubleComplex b) { a.x -= b.x; a.y -= b.y; return a; }
inline cuDoubleComplex cuCmul(cuDoubleComplex a, cuDoubleComplex b) { cuDoubleComplex c; c.x = a.x * b.x - a.y * b.y; c.y = a.x * b.y + a.y * b.x; return c; } inline cuDoubleComplex cuCfma(cuDoubleComplex a, cuDoubleComplex b, cuDoubleComplex c) { return cuCadd(cuCmul(a, b), c); }
cuDoubleComplex cuCdiv(cuDoubleComplex, cuDoubleComplex); double cuCabs(cuDoubleComplex);
// Host code that launches kernels seldom does without these; their names are CUDA's own.
struct cudaFuncAttributes { size_t sharedSizeBytes, constSizeBytes, localSizeBytes; int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes, preferredShmemCarveout; };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9 }; enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual }; enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte }; enum cudaLimit { cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize };
enum cudaDeviceAttr { cudaDevAttrMaxThreadsPerBlock = 1, cudaDevAttrMaxGridDimX = 5, cudaDevAttrMaxSharedMemoryPerBlock = 8, cudaDevAttrWarpSize = 10, cudaDevAttrClockRate = 13, cudaDevAttrMultiProcessorCount = 16, cudaDevAttrMemoryClockRate = 36, cudaDevAttrMaxThreadsPerMultiProcessor = 39, cudaDevAttrComputeCapabilityMajor = 75, cudaDevAttrComputeCapabilityMinor = 76, cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81, cudaDevAttrCooperativeLaunch = 95, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
enum { cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInvalidConfiguration = 9, cudaErrorNoDevice = 100, cudaErrorNotReady = 600, cudaErrorUnknown = 999, cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2, cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2, cudaMemAttachGlobal = 1 };
cudaError_t cudaEventCreate(cudaEvent_t*); cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned); cudaError_t cudaEventDestroy(cudaEvent_t); cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = 0); cudaError_t cudaEventSynchronize(cudaEvent_t); cudaError_t cudaEventQuery(cudaEvent_t); cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t); cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0);
cudaError_t cudaSetDevice(int); cudaError_t cudaGetDevice(int*); cudaError_t cudaGetDeviceCount(int*); cudaError_t cudaGetDeviceProperties(cudaDeviceProp*, int); cudaError_t cudaDeviceGetAttribute(int*, cudaDeviceAttr, int); cudaError_t cudaDeviceReset(); cudaError_t cudaDeviceSetLimit(cudaLimit, size_t); cudaError_t cudaMemGetInfo(size_t*, size_t*); cudaError_t cudaDriverGetVersion(int*); cudaError_t cudaRuntimeGetVersion(int*); cudaError_t cudaDeviceEnablePeerAccess(int, unsigned); const char* cudaGetErrorName(cudaError_t);
template <class T> cudaError_t cudaMallocAsync(T**, size_t, cudaStream_t); cudaError_t cudaFreeAsync(void*, cudaStream_t); template <class T> cudaError_t cudaHostAlloc(T**, size_t, unsigned); template <class T> cudaError_t cudaMallocPitch(T**, size_t*, size_t, size_t); cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t = 0); cudaError_t cudaMemcpy2D(void*, size_t, const void*, size_t, size_t, size_t, cudaMemcpyKind); template <class T> cudaError_t cudaGetSymbolAddress(void**, const T&);
template <class F> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, F*); template <class F> cudaError_t cudaFuncSetAttribute(F*, cudaFuncAttribute, int); template <class F> cudaError_t cudaFuncSetCacheConfig(F*, cudaFuncCache); template <class F> cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, F*, int, size_t); template <class F> cudaError_t cudaOccupancyMaxPotentialBlockSize(int*, int*, F*, size_t = 0, int = 0);
