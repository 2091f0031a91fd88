// Eight-bit floating types: values that are moved and converted, nothing more.
#define CUDA_LSP_FP8(name)                                                                                \
    struct name { unsigned char __x; name() = default; template <class T> explicit name(T); operator float() const; };
CUDA_LSP_FP8(__nv_fp8_e8m0)
#undef CUDA_LSP_FP8
#define CUDA_LSP_FP8(name, storage, wide)                                                                 \
    struct name { storage __x; name() = default; template <class... T> explicit name(T...); explicit operator wide() const; };
CUDA_LSP_FP8(__nv_fp8x2_e4m3, unsigned short, float2)
CUDA_LSP_FP8(__nv_fp8x4_e4m3, unsigned int, float4)
CUDA_LSP_FP8(__nv_fp8x2_e5m2, unsigned short, float2)
CUDA_LSP_FP8(__nv_fp8x4_e5m2, unsigned int, float4)
#undef CUDA_LSP_FP8
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
__nv_fp8_storage_t __nv_cvt_float_to_fp8(float, __nv_saturation_t, __nv_fp8_interpretation_t);
__nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2, __nv_saturation_t, __nv_fp8_interpretation_t);
__nv_fp8_storage_t __nv_cvt_double_to_fp8(double, __nv_saturation_t, __nv_fp8_interpretation_t); __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2, __nv_saturation_t, __nv_fp8_interpretation_t);
__nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw, __nv_saturation_t, __nv_fp8_interpretation_t); __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw, __nv_saturation_t, __nv_fp8_interpretation_t);
__nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw, __nv_saturation_t, __nv_fp8_interpretation_t); __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw, __nv_saturation_t, __nv_fp8_interpretation_t);
__half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t, __nv_fp8_interpretation_t); __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t, __nv_fp8_interpretation_t);
