// Vector types and dim3.
#define CUDA_LSP_VECTOR(T, N, A2, A4)                                                                     \
    struct N##1 { T x; };                                                                                  \
    struct __attribute__((aligned(A2))) N##2 { T x, y; };                                                  \
    struct N##3 { T x, y, z; };                                                                            \
    struct __attribute__((aligned(A4))) N##4 { T x, y, z, w; };                                            \
    constexpr N##1 make_##N##1(T x) { return {x}; }                                                        \
    constexpr N##2 make_##N##2(T x, T y) { return {x, y}; }                                                \
    constexpr N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                                        \
    constexpr N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
CUDA_LSP_VECTOR(signed char, char, 2, 4)
CUDA_LSP_VECTOR(unsigned char, uchar, 2, 4)
CUDA_LSP_VECTOR(short, short, 4, 8)
CUDA_LSP_VECTOR(unsigned short, ushort, 4, 8)
CUDA_LSP_VECTOR(int, int, 8, 16)
CUDA_LSP_VECTOR(unsigned int, uint, 8, 16)
CUDA_LSP_VECTOR(long, long, 16, 16)
CUDA_LSP_VECTOR(unsigned long, ulong, 16, 16)
CUDA_LSP_VECTOR(long long, longlong, 16, 16)
CUDA_LSP_VECTOR(unsigned long long, ulonglong, 16, 16)
CUDA_LSP_VECTOR(float, float, 8, 16)
CUDA_LSP_VECTOR(double, double, 16, 16)
#undef CUDA_LSP_VECTOR
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};
