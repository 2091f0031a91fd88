"""Textures and surfaces of a whole program on the emulator, against the same arithmetic on the host."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from ptx_kernels import run

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.cli import main

HEAD = r"""
#include <cstdio>
#include <cmath>
#include <cstring>
const int W = 8, H = 4;
float host[H][W], out[64];
float* result;
cudaTextureObject_t texture(cudaResourceDesc resource, cudaTextureAddressMode mode, bool linear,
                            bool relative) {
    cudaTextureDesc d;
    memset(&d, 0, sizeof d);
    for (int k = 0; k < 3; ++k) d.addressMode[k] = mode;
    d.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    d.normalizedCoords = relative;
    cudaTextureObject_t t = 0;
    if (cudaCreateTextureObject(&t, &resource, &d, nullptr)) printf("no texture\n");
    return t;
}
cudaArray_t array(cudaResourceDesc* resource, unsigned flags) {
    cudaArray_t a;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaMallocArray(&a, &format, W, H, flags);
    for (int y = 0; y < H; ++y) for (int x = 0; x < W; ++x) host[y][x] = 10 * y + x;
    cudaMemcpy2DToArray(a, 0, 0, host, sizeof host[0], sizeof host[0], H, cudaMemcpyHostToDevice);
    memset(resource, 0, sizeof *resource);
    resource->resType = cudaResourceTypeArray;
    resource->res.array.array = a;
    cudaMalloc(&result, sizeof out);
    return a;
}
void said(const char* what, int n) {
    cudaMemcpy(out, result, sizeof out, cudaMemcpyDeviceToHost);
    printf("%s:", what);
    for (int k = 0; k < n; ++k) printf(" %g", out[k]);
    printf("\n");
}
"""
SAMPLES = (
    HEAD
    + r"""
__global__ void at(cudaTextureObject_t t, float* out, float y, float start, float step) {
    out[threadIdx.x] = tex2D<float>(t, start + step * threadIdx.x, y);
}
int main() {
    cudaResourceDesc r;
    array(&r, 0);
    at<<<1, 4>>>(texture(r, cudaAddressModeClamp, false, false), result, 1.5f, -1, 4);
    said("point clamp", 4);
    at<<<1, 4>>>(texture(r, cudaAddressModeBorder, false, false), result, 1.5f, -1, 4);
    said("point border", 4);
    at<<<1, 4>>>(texture(r, cudaAddressModeClamp, true, false), result, 2, 0.5f, 0.75f); said("linear", 4);
    at<<<1, 4>>>(texture(r, cudaAddressModeWrap, false, true), result, 0.5f, -0.25f, 0.5f);
    said("wrap", 4);
    at<<<1, 4>>>(texture(r, cudaAddressModeMirror, false, true), result, 0.1f, 0.9f, 0.25f);
    said("mirror", 4);
    at<<<1, 2>>>(texture(r, cudaAddressModeWrap, true, true), result, 0.125f, 0, 1); said("linear wrap", 2);
    return 0;
}
"""
)
LINEAR = (
    HEAD
    + r"""
__global__ void fetch(cudaTextureObject_t t, float* out) {
    uchar4 v = tex1Dfetch<uchar4>(t, threadIdx.x);
    out[threadIdx.x] = v.x + 1000 * v.w;
}
__global__ void scaled(cudaTextureObject_t t, float* out) {
    out[threadIdx.x] = tex1Dfetch<float4>(t, threadIdx.x).y;
}
int main() {
    cudaResourceDesc r;
    array(&r, 0);
    unsigned char bytes[8] = {1, 51, 3, 4, 5, 255, 7, 8}, *memory;
    cudaMalloc(&memory, 8);
    cudaMemcpy(memory, bytes, 8, cudaMemcpyHostToDevice);
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = memory;
    r.res.linear.desc = cudaCreateChannelDesc<uchar4>();
    r.res.linear.sizeInBytes = 8;
    cudaTextureDesc d;
    memset(&d, 0, sizeof d);
    cudaTextureObject_t t;
    cudaCreateTextureObject(&t, &r, &d, nullptr);
    fetch<<<1, 3>>>(t, result); said("bytes", 3);
    d.readMode = cudaReadModeNormalizedFloat;
    cudaCreateTextureObject(&t, &r, &d, nullptr);
    scaled<<<1, 2>>>(t, result); said("scaled", 2);
    return 0;
}
"""
)
SURFACE = (
    HEAD
    + r"""
__global__ void turned(cudaSurfaceObject_t s, cudaTextureObject_t t, float* out) {
    int x = threadIdx.x, y = threadIdx.y;
    float v = tex2D<float>(t, W - 1 - x, y);
    __syncthreads();
    surf2Dwrite(v, s, x * 4, y);
    surf2Dwrite(99.0f, s, W * 4, y, cudaBoundaryModeZero);
    if (y == 0) out[x] = surf2Dread<float>(s, 4 * x - 8, 0, cudaBoundaryModeZero);
}
int main() {
    cudaResourceDesc r;
    cudaArray_t a = array(&r, cudaArraySurfaceLoadStore);
    cudaSurfaceObject_t s;
    cudaCreateSurfaceObject(&s, &r);
    turned<<<1, dim3(W, H)>>>(s, texture(r, cudaAddressModeClamp, false, false), result);
    said("read", W);
    cudaMemcpy2DFromArray(host, sizeof host[0], a, 0, 0, sizeof host[0], H, cudaMemcpyDeviceToHost);
    printf("row: %g %g %g\n", host[2][0], host[2][1], host[2][7]);
    return 0;
}
"""
)
VOLUME = (
    HEAD
    + r"""
__global__ void layer(cudaTextureObject_t t, float* out) {
    out[threadIdx.x] = tex2DLayered<float>(t, 1.5f, 0.5f, threadIdx.x);
}
__global__ void deep(cudaTextureObject_t t, float* out) {
    out[threadIdx.x] = tex3D<float>(t, 1, 0.5f, threadIdx.x + 1);
}
int main() {
    cudaResourceDesc r;
    array(&r, 0);
    float volume[3][2][4];
    for (int k = 0; k < 24; ++k) (&volume[0][0][0])[k] = k;
    for (int layered = 0; layered < 2; ++layered) {
        cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
        cudaExtent extent = make_cudaExtent(4, 2, 3);
        cudaMalloc3DArray(&r.res.array.array, &format, extent, layered ? cudaArrayLayered : 0);
        cudaMemcpy3DParms p = {};
        p.srcPtr = make_cudaPitchedPtr(volume, 16, 4, 2);
        p.dstArray = r.res.array.array;
        p.extent = extent;
        p.kind = cudaMemcpyHostToDevice;
        cudaMemcpy3D(&p);
        if (layered) layer<<<1, 3>>>(texture(r, cudaAddressModeClamp, false, false), result);
        else deep<<<1, 2>>>(texture(r, cudaAddressModeClamp, true, false), result);
        said(layered ? "layers" : "deep", 3 - !layered);
    }
    return 0;
}
"""
)
EXPECTED = {
    "samples": (
        SAMPLES,
        ["point clamp: 10 13 17 17", "point border: 0 13 17 0", "linear: 15 15.75 16.5 17.25",
         "wrap: 26 22 26 22", "mirror: 7 6 4 2", "linear wrap: 3.5 3.5"],
    ),
    "linear memory": (LINEAR, ["bytes: 4001 8005 0", "scaled: 0.2 1"]),
    "surface": (SURFACE, ["read: 0 0 7 6 5 4 3 2", "row: 27 26 20"]),
    "volume": (VOLUME, ["deep: 4.5 12.5", "layers: 1 9 17"]),
}  # fmt: skip


@needs_nvcc
@pytest.mark.parametrize("name", EXPECTED)
def test_a_program_reads_its_images(name, tmp_path, own_cache):
    text, lines = EXPECTED[name]
    source = tmp_path / "program.cu"
    source.write_text(text)
    done = CliRunner().invoke(main, ["run", str(source), "--program", "--engine", "emulator"])
    assert done.stderr.splitlines()[: len(lines)] == lines, done.stderr + done.stdout


def test_a_handle_without_an_image_reads_zeros_and_says_so():
    body = (
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}]; mov.b32 %r9, %f1;"
        "add.u32 %r9, %r9, 7; st.global.u32 [%rd3], %r9;"
    )
    outcome = run(body)
    assert (outcome.results["out"].view("i4") == 7).all()
    assert any("textures are not bound" in text for text in outcome.not_covered)


RACING = (
    HEAD
    + r"""
__global__ void neighbours(cudaSurfaceObject_t s, float* out) {
    surf2Dwrite(1.0f * threadIdx.x, s, 4 * threadIdx.x, 0);
    BETWEEN
    out[threadIdx.x] = surf2Dread<float>(s, 4 * ((threadIdx.x + 1) % W), 0);
}
__global__ void fetched(cudaTextureObject_t t, float* data, float* out) {
    data[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = tex1Dfetch<float>(t, (threadIdx.x + 1) % W);
}
int main() {
    cudaResourceDesc r;
    array(&r, cudaArraySurfaceLoadStore);
    cudaSurfaceObject_t s;
    cudaCreateSurfaceObject(&s, &r);
    neighbours<<<1, W>>>(s, result);
    float* memory;
    cudaMalloc(&memory, 2 * W * sizeof(float));
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = memory + START;
    r.res.linear.desc = cudaCreateChannelDesc<float>();
    r.res.linear.sizeInBytes = W * sizeof(float);
    cudaTextureDesc d;
    memset(&d, 0, sizeof d);
    cudaTextureObject_t t;
    cudaCreateTextureObject(&t, &r, &d, nullptr);
    fetched<<<1, W>>>(t, memory, result);
    return cudaDeviceSynchronize();
}
"""
)


@needs_nvcc
@pytest.mark.parametrize(("between", "start", "racy"), [("", "0", True), ("__syncthreads();", "W", False)])
def test_images_race_as_their_memory_does(between, start, racy, tmp_path, own_cache):
    """A barrier orders a surface's accesses; what a launch wrote its textures must not read behind any."""
    source = tmp_path / "program.cu"
    source.write_text(RACING.replace("BETWEEN", between).replace("START", start))
    done = CliRunner().invoke(main, ["run", str(source), "--program", "--engine", "emulator", "--watch-all"])
    told = done.stdout + done.stderr
    assert ("[confirmed]" in told) == racy, told
    for call in (
        "surf2Dread<float>(s, 4 * ((threadIdx.x + 1) % W), 0)",
        "tex1Dfetch<float>(t, (threadIdx.x + 1) % W)",
    ):
        begin = call[:10]  # messages shorten what is long
        assert any("race" in line and begin in line for line in told.splitlines()) == racy, told
