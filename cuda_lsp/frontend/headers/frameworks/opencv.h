// OpenCV's views of images that kernels take: a pointer, the bytes of a row, rows and columns.
typedef unsigned char uchar; typedef unsigned short ushort; typedef signed char schar;
namespace cv { namespace cuda {
template <class T> struct DevPtr { typedef T elem_type; T* data; __host__ __device__ operator T*() { return data; } __host__ __device__ operator const T*() const { return data; } };
template <class T> struct PtrSz : DevPtr<T> { size_t size; };
template <class T> struct PtrStep : DevPtr<T> { size_t step;
  __host__ __device__ T* ptr(int y = 0) { return (T*)((char*)this->data + y * step); } __host__ __device__ const T* ptr(int y = 0) const { return (const T*)((const char*)this->data + y * step); }
  __host__ __device__ T& operator()(int y, int x) { return ptr(y)[x]; } __host__ __device__ const T& operator()(int y, int x) const { return ptr(y)[x]; } };
template <class T> struct PtrStepSz : PtrStep<T> { int cols, rows; };
typedef PtrStepSz<unsigned char> PtrStepSzb; typedef PtrStepSz<unsigned short> PtrStepSzus; typedef PtrStepSz<float> PtrStepSzf; typedef PtrStepSz<int> PtrStepSzi;
typedef PtrStep<unsigned char> PtrStepb; typedef PtrStep<unsigned short> PtrStepus; typedef PtrStep<float> PtrStepf; typedef PtrStep<int> PtrStepi;
namespace device { using cv::cuda::PtrSz; using cv::cuda::PtrStep; using cv::cuda::PtrStepSz; __host__ __device__ inline int divUp(int total, int grain) { return (total + grain - 1) / grain; } }
} }
