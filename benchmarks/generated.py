"""Large CUDA files of our own for benchmarks: many kernels of the usual kinds and host code between them."""

from __future__ import annotations

_KERNELS = (
    """
__global__ void reduce_{i}(float* out, const float* in) {{
    __shared__ float s[256];
    unsigned tid = threadIdx.x;
    s[tid] = in[blockIdx.x * blockDim.x + tid];
    __syncthreads();
    for (unsigned k = blockDim.x / 2; k > 0; k >>= 1) {{
        if (tid < k) s[tid] += s[tid + k];
        __syncthreads();
    }}
    if (tid == 0) out[blockIdx.x] = s[0];
}}
""",
    """
__global__ void matmul_{i}(float* c, const float* a, const float* b, int n) {{
    __shared__ float as[16][16];
    __shared__ float bs[16][17];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    for (int t = 0; t < n / 16; ++t) {{
        as[ty][tx] = a[row * n + t * 16 + tx];
        bs[ty][tx] = b[(t * 16 + ty) * n + col];
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += as[ty][k] * bs[k][tx];
        __syncthreads();
    }}
    c[row * n + col] = sum;
}}
""",
    """
__global__ void blur_{i}(float* out, const float* in, int width, int height) {{
    __shared__ float tile[18][18];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    int lx = threadIdx.x + 1, ly = threadIdx.y + 1;
    if (x < width && y < height) tile[ly][lx] = in[y * width + x];
    if (threadIdx.x == 0 && x > 0) tile[ly][0] = in[y * width + x - 1];
    if (threadIdx.x == 15 && x + 1 < width) tile[ly][17] = in[y * width + x + 1];
    if (threadIdx.y == 0 && y > 0) tile[0][lx] = in[(y - 1) * width + x];
    if (threadIdx.y == 15 && y + 1 < height) tile[17][lx] = in[(y + 1) * width + x];
    __syncthreads();
    if (x < width && y < height)
        out[y * width + x] = 0.2f * (tile[ly][lx] + tile[ly][lx - 1] + tile[ly][lx + 1] + tile[ly - 1][lx]);
}}
""",
    """
__global__ void axpy_{i}(float* y, const float* x, float a, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}}
""",
)
_HOST = """
// What the kernels above must give, computed on the host.
bool check_{i}(const float* got, const float* a, const float* b, int width, int height) {{
    float worst = 0.0f;
    for (int y = 1; y + 1 < height; ++y) {{
        for (int x = 1; x + 1 < width; ++x) {{
            float expected = 0.2f * (a[y * width + x] + a[y * width + x - 1] + a[y * width + x + 1]);
            expected += 0.2f * a[(y - 1) * width + x];
            float difference = got[y * width + x] - expected;
            if (difference < 0.0f) difference = -difference;
            if (difference > worst) worst = difference;
        }}
    }}
    double sum = 0.0;
    for (int k = 0; k < width * height; ++k) sum += a[k] * b[k];
    printf("worst difference %g, checksum %g\\n", worst, sum);
    return worst < 1e-5f;
}}

void fill_{i}(float* a, int count, unsigned seed) {{
    for (int k = 0; k < count; ++k) {{
        seed = seed * 1664525u + 1013904223u;
        a[k] = (seed >> 8) * (1.0f / 16777216.0f);
    }}
}}

struct Options_{i} {{
    int width = 1024;
    int height = 1024;
    int rounds = 10;
    bool verbose = false;
}};

bool parse_{i}(int count, char** words, Options_{i}& options) {{
    for (int k = 1; k < count; ++k) {{
        const char* word = words[k];
        if (word[0] != '-') return false;
        switch (word[1]) {{
            case 'w': options.width = atoi(word + 2); break;
            case 'h': options.height = atoi(word + 2); break;
            case 'r': options.rounds = atoi(word + 2); break;
            case 'v': options.verbose = true; break;
            default: return false;
        }}
    }}
    return options.width > 0 && options.height > 0 && options.rounds > 0;
}}

void run_{i}(float* a, float* b, float* c, int n) {{
    reduce_{i}<<<n / 256, 256>>>(a, b);
    matmul_{i}<<<dim3(64, 64), dim3(16, 16)>>>(c, a, b, 1024);
    blur_{i}<<<dim3(64, 64), dim3(16, 16)>>>(c, a, 1024, 1024);
    axpy_{i}<<<(n + 255) / 256, 256>>>(a, b, 2.0f, n);
}}
"""


def large_file(lines: int) -> str:
    """At least ``lines`` lines of kernels with their launches."""
    text = "#include <cstdio>\n"
    i = 0
    while text.count("\n") < lines:
        text += "".join(kernel.format(i=i) for kernel in _KERNELS) + _HOST.format(i=i)
        i += 1
    return text
