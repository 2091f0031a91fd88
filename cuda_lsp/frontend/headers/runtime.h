// The runtime API as far as launches depend on it; other host calls are not our concern.
typedef int cudaError_t;
typedef cudaError_t cudaError;
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef unsigned long long CUdeviceptr;
struct cudaDeviceProp { char name[256]; size_t totalGlobalMem, sharedMemPerBlock; int warpSize, maxThreadsPerBlock, multiProcessorCount, major, minor, maxThreadsDim[3], maxGridSize[3], cooperativeLaunch; };
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
