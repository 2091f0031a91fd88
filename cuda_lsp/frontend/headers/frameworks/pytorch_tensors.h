// PyTorch's views of tensors that kernels take: a pointer, sizes and strides.
namespace at {
template <class T> struct DefaultPtrTraits { typedef T* PtrType; }; template <class T> struct RestrictPtrTraits { typedef T* __restrict__ PtrType; };
template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = long> struct TensorAccessor {
  T* data_; const I* sizes_; const I* strides_;
  __host__ __device__ TensorAccessor(T* data, const I* sizes, const I* strides) : data_(data), sizes_(sizes), strides_(strides) {}
  __host__ __device__ TensorAccessor<T, N - 1, P, I> operator[](I i) const { return TensorAccessor<T, N - 1, P, I>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1); }
  __host__ __device__ I size(I i) const { return sizes_[i]; } __host__ __device__ I stride(I i) const { return strides_[i]; } __host__ __device__ T* data() const { return data_; }
};
template <class T, template <class> class P, class I> struct TensorAccessor<T, 1, P, I> {
  T* data_; const I* sizes_; const I* strides_;
  __host__ __device__ TensorAccessor(T* data, const I* sizes, const I* strides) : data_(data), sizes_(sizes), strides_(strides) {}
  __host__ __device__ T& operator[](I i) const { return data_[strides_[0] * i]; }
  __host__ __device__ I size(I i) const { return sizes_[i]; } __host__ __device__ I stride(I i) const { return strides_[i]; } __host__ __device__ T* data() const { return data_; }
};
template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = long> struct GenericPackedTensorAccessor {
  T* data_; I sizes_[N]; I strides_[N];
  __host__ __device__ TensorAccessor<T, N - 1, P, I> operator[](I i) const { return TensorAccessor<T, N - 1, P, I>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1); }
  __host__ __device__ I size(I i) const { return sizes_[i]; } __host__ __device__ I stride(I i) const { return strides_[i]; } __host__ __device__ T* data() const { return data_; }
};
template <class T, template <class> class P, class I> struct GenericPackedTensorAccessor<T, 1, P, I> {
  T* data_; I sizes_[1]; I strides_[1];
  __host__ __device__ T& operator[](I i) const { return data_[strides_[0] * i]; }
  __host__ __device__ I size(I i) const { return sizes_[i]; } __host__ __device__ I stride(I i) const { return strides_[i]; } __host__ __device__ T* data() const { return data_; }
};
template <class T, size_t N, template <class> class P = DefaultPtrTraits> using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, P, int>;
template <class T, size_t N, template <class> class P = DefaultPtrTraits> using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, P, long>;
template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = long> using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, P, I>;
}
namespace torch { using at::DefaultPtrTraits; using at::RestrictPtrTraits; using at::TensorAccessor; using at::PackedTensorAccessor; using at::PackedTensorAccessor32; using at::PackedTensorAccessor64; }
