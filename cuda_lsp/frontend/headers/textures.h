// Textures and surfaces: read-only (or surface) memory that no shared or global access aliases.
typedef unsigned long long cudaTextureObject_t, cudaSurfaceObject_t, CUtexObject, CUsurfObject;
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };
#define cudaTextureType1D 1
#define cudaTextureType2D 2
#define cudaTextureType3D 3
template <class T, int D = 1, cudaTextureReadMode M = cudaReadModeElementType>
struct __attribute__((device_builtin_texture_type)) texture { int normalized, filterMode, addressMode[3]; };
#define CUDA_LSP_FETCH(name) template <class T, class... A> T name(cudaTextureObject_t, A...); template <class T, int D, cudaTextureReadMode M, class... A> T name(texture<T, D, M>, A...);
CUDA_LSP_FETCH(tex1Dfetch) CUDA_LSP_FETCH(tex1D) CUDA_LSP_FETCH(tex2D) CUDA_LSP_FETCH(tex3D) CUDA_LSP_FETCH(tex1DLod) CUDA_LSP_FETCH(tex2DLod) CUDA_LSP_FETCH(tex3DLod)
CUDA_LSP_FETCH(tex1DLayered) CUDA_LSP_FETCH(tex2DLayered) CUDA_LSP_FETCH(texCubemap) CUDA_LSP_FETCH(texCubemapLayered) CUDA_LSP_FETCH(tex2Dgather)
#undef CUDA_LSP_FETCH
template <class T, class... A> T surf1Dread(cudaSurfaceObject_t, A...); template <class T, class... A> T surf2Dread(cudaSurfaceObject_t, A...); template <class T, class... A> T surf3Dread(cudaSurfaceObject_t, A...);
template <class T, class... A> void surf1Dread(T*, cudaSurfaceObject_t, A...); template <class T, class... A> void surf2Dread(T*, cudaSurfaceObject_t, A...);
template <class T, class... A> void surf1Dwrite(T, cudaSurfaceObject_t, A...); template <class T, class... A> void surf2Dwrite(T, cudaSurfaceObject_t, A...); template <class T, class... A> void surf3Dwrite(T, cudaSurfaceObject_t, A...);
template <class T> T surf1DLayeredread(cudaSurfaceObject_t, int, int, int = 0);
template <class T> T surf2DLayeredread(cudaSurfaceObject_t, int, int, int, int = 0);
template <class T> T surfCubemapread(cudaSurfaceObject_t, int, int, int, int = 0);
template <class T, class... A> void surf3Dread(T*, cudaSurfaceObject_t, A...);
template <class T, class... A> void surf1DLayeredwrite(T, cudaSurfaceObject_t, A...);
template <class T, class... A> void surf2DLayeredwrite(T, cudaSurfaceObject_t, A...);
template <class T, class... A> void surfCubemapwrite(T, cudaSurfaceObject_t, A...);
