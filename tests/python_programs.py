"""Python programs that compile kernels, with no package but ctypes and a compiler that compiles nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

# What NVRTC does for a program, but for compiling: the image is the text's length and its end.
NVRTC = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { char image[64]; } Program;
int nvrtcCreateProgram(Program** out, const char* text, const char* name, int n, void* headers, void* names) {
    size_t size = strlen(text);
    unsigned sum = 0;
    for (size_t k = 0; k < size; ++k) sum = sum * 31 + text[k];
    *out = calloc(1, sizeof **out);
    snprintf((*out)->image, sizeof (*out)->image, "// image %u", sum);
    return 0;
}
int nvrtcAddNameExpression(Program* p, const char* name) { return 0; }
int nvrtcCompileProgram(Program* p, int n, const char** options) { return 0; }
int nvrtcGetCUBINSize(Program* p, size_t* out) { *out = strlen(p->image) + 1; return 0; }
int nvrtcGetCUBIN(Program* p, char* out) { strcpy(out, p->image); return 0; }
int nvrtcDestroyProgram(Program** p) { free(*p); *p = 0; return 0; }
"""

# What nvJitLink does for a program, but for linking: the image is the text's length, with -ptx the text.
NVJITLINK = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { char text[4096], image[64]; int ptx; } Link;
int nvJitLinkCreate(Link** out, unsigned count, const char** options) {
    *out = calloc(1, sizeof **out);
    while (count--) (*out)->ptx |= !strcmp(options[count], "-ptx");
    return 0;
}
int nvJitLinkAddData(Link* link, int type, const void* data, size_t size, const char* name) {
    if (strlen(link->text) + size >= sizeof link->text) return 1;
    memcpy(link->text + strlen(link->text), data, size);
    return 0;
}
int nvJitLinkComplete(Link* link) {
    snprintf(link->image, sizeof link->image, "// linked %zu", strlen(link->text));
    return 0;
}
int nvJitLinkGetLinkedCubinSize(Link* link, size_t* out) { *out = strlen(link->image); return link->ptx; }
int nvJitLinkGetLinkedCubin(Link* link, char* out) { strcpy(out, link->image); return link->ptx; }
int nvJitLinkGetLinkedPtxSize(Link* link, size_t* out) { *out = strlen(link->text); return !link->ptx; }
int nvJitLinkGetLinkedPtx(Link* link, char* out) {
    memcpy(out, link->text, strlen(link->text));
    return !link->ptx;
}
int nvJitLinkDestroy(Link** link) { free(*link); *link = 0; return 0; }
"""

# A driver that notes what comes through to it.
DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void* dlsym(void*, const char*);
void* dlopen(const char*, int);
int cuModuleLoadData(void** out, const char* image) { *out = strdup(image); return 0; }
int cuModuleGetFunction(void** out, void* module, const char* name) { *out = strdup(name); return 0; }
int cuModuleGetGlobal_v2(unsigned long long* at, size_t* size, void* m, const char* name) {
    *at = 4096, *size = 4;
    return strcmp(name, "counter") != 0;
}
int cuMemAlloc_v2(unsigned long long* out, size_t size) { *out = (unsigned long long)malloc(size); return 0; }
int cuMemFree_v2(unsigned long long p) { return 0; }
int cuStreamIsCapturing(void* stream, int* out) { *out = stream != 0; return 0; }
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** arguments, void** extra) {
    printf("driver: %s <<<%u, %u>>>\n", (char*)f, gx, bx);
    fflush(stdout);
    return 0;
}
int cuGetProcAddress_v2(const char* name, void** out, int version, unsigned long long flags, int* status) {
    char versioned[64];
    snprintf(versioned, sizeof versioned, "%s_v2", name);
    void* self = dlopen("libcuda.so.1", 1);
    *out = dlsym(self, name);
    if (!*out) *out = dlsym(self, versioned);
    return *out ? 0 : 500;
}
"""

# Calls of both, as packages make them; what fails ends the program.
CALLS = r"""
import ctypes
import sys

nvrtc, cuda = ctypes.CDLL(sys.argv[1]), ctypes.CDLL("libcuda.so.1")


def ok(error):
    assert error == 0, error


def module_of(text, options=(), names=()):
    program, size, module = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_void_p()
    ok(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"made.cu", 0, None, None))
    for name in names:
        ok(nvrtc.nvrtcAddNameExpression(program, name.encode()))
    words = (ctypes.c_char_p * max(1, len(options)))(*(option.encode() for option in options))
    ok(nvrtc.nvrtcCompileProgram(program, len(options), words))
    ok(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
    image = ctypes.create_string_buffer(size.value)
    ok(nvrtc.nvrtcGetCUBIN(program, image))
    ok(cuda.cuModuleLoadData(ctypes.byref(module), image))
    return module


def memory(size):
    pointer = ctypes.c_ulonglong()
    ok(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)))
    return pointer


def launch(module, name, threads, *values, blocks=1, stream=None):
    function = ctypes.c_void_p()
    ok(cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
    given = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    return cuda.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, given, None)
"""


def made(folder: Path, name: str, text: str) -> Path:
    """A shared object of C."""
    (folder / f"{name}.c").write_text(text)
    target = folder / name
    command = ["gcc", "-w", "-shared", "-fPIC", f"{name}.c", "-o", name, f"-Wl,-soname,{name}", "-ldl"]
    subprocess.run(command, cwd=folder, check=True)
    return target


# Programs of packages; each launches a kernel with a race and one without.

KERNELS = '''
KERNELS = r"""
extern "C" __global__ void racy(int* out, const int* in) {
    __shared__ int s[64];
    s[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void calm(int* out, const int* in) {
    __shared__ int s[64];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
"""
'''

BINDINGS = (
    KERNELS
    + """
import numpy as np
from cuda.bindings import driver, nvrtc


def ok(result):
    error, *values = result
    assert int(error) == 0, error
    return values[0] if len(values) == 1 else values


ok(driver.cuInit(0))
device = ok(driver.cuDeviceGet(0))
ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(device))))
kinds = map(driver.CUdevice_attribute, (75, 76))
major, minor = (ok(driver.cuDeviceGetAttribute(kind, device)) for kind in kinds)
program = ok(nvrtc.nvrtcCreateProgram(KERNELS.encode(), b"kernels.cu", 0, [], []))
ok(nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture=sm_{major}{minor}".encode()]))
image = b" " * ok(nvrtc.nvrtcGetCUBINSize(program))
ok(nvrtc.nvrtcGetCUBIN(program, image))
module = ok(driver.cuModuleLoadData(image))
data = np.arange(64, dtype=np.int32)
given, out = ok(driver.cuMemAlloc(256)), ok(driver.cuMemAlloc(256))
ok(driver.cuMemcpyHtoD(given, data.ctypes.data, 256))
for name in (b"racy", b"calm"):
    kernel = ok(driver.cuModuleGetFunction(module, name))
    ok(driver.cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, 0, ((out, given), (None, None)), 0))
    ok(driver.cuCtxSynchronize())
ok(driver.cuMemcpyDtoH(data.ctypes.data, out, 256))
print(data[:3].tolist())
"""
)

LINKED = BINDINGS.replace("CUBIN", "PTX").replace("=sm_{", "=compute_{")
LINKED = LINKED.replace("import numpy as np", "import ctypes\n\nimport numpy as np")
LINKED = LINKED.replace(
    "module = ok(driver.cuModuleLoadData(image))",
    """
link, ptx = ok(driver.cuLinkCreate(0, [], [])), driver.CUjitInputType.CU_JIT_INPUT_PTX
ok(driver.cuLinkAddData(link, ptx, image, len(image), b"kernels", 0, [], []))
linked, size = ok(driver.cuLinkComplete(link))
module = ok(driver.cuModuleLoadData(ctypes.string_at(linked, size)))
ok(driver.cuLinkDestroy(link))
""",
)

CORE = (
    KERNELS
    + """
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

device = Device()
device.set_current()
stream = device.create_stream()
program = Program(KERNELS, code_type="c++", options=ProgramOptions(std="c++17", arch=f"sm_{device.arch}"))
module = program.compile("cubin")
given, out = (device.allocate(256, stream=stream) for _ in range(2))
for name in ("racy", "calm"):
    launch(stream, LaunchConfig(grid=1, block=64), module.get_kernel(name), out, given)
stream.sync()
"""
)

NUMBA = """
import numpy as np
from numba import cuda


@cuda.jit(lineinfo=True)
def racy(out, given):
    s = cuda.shared.array(64, dtype="int32")
    i = cuda.threadIdx.x
    s[i] = given[i]
    out[i] = s[63 - i]


@cuda.jit(lineinfo=True)
def calm(out, given):
    s = cuda.shared.array(64, dtype="int32")
    i = cuda.threadIdx.x
    s[i] = given[i]
    cuda.syncthreads()
    out[i] = s[63 - i]


given, out = cuda.to_device(np.arange(64, dtype=np.int32)), cuda.device_array(64, np.int32)
racy[1, 64](out, given)
calm[1, 64](out, given)
print(out.copy_to_host()[:3].tolist())
"""

CUPY = (
    KERNELS
    + """
import cupy

given, out = cupy.arange(64, dtype=cupy.int32), cupy.zeros(64, cupy.int32)
cupy.RawKernel(KERNELS, "racy")((1,), (64,), (out, given))
cupy.RawModule(code=KERNELS).get_function("calm")((1,), (64,), (out, given))
print(out[:3].tolist())
"""
)

TORCH = (
    KERNELS
    + '''
import torch
from torch.utils.cpp_extension import load_inline

CALL = """
#include <torch/extension.h>
void run(torch::Tensor out, torch::Tensor given) {
    racy<<<1, 64>>>(out.data_ptr<int>(), given.data_ptr<int>());
    calm<<<1, 64>>>(out.data_ptr<int>(), given.data_ptr<int>());
}
"""
module = load_inline(
    "cuda_lsp_inline", "void run(torch::Tensor out, torch::Tensor given);", KERNELS + CALL, functions=["run"]
)
given = torch.arange(64, dtype=torch.int32, device="cuda")
out = torch.zeros_like(given)
module.run(out, given)
print(out[:3].tolist())
'''
)

TORCH_FILE = """#include <torch/extension.h>
__global__ void racy(int* out, const int* in) {
    __shared__ int s[64];
    s[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = s[63 - threadIdx.x];
}
__global__ void calm(int* out, const int* in) {
    __shared__ int s[64];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
void run(torch::Tensor out, torch::Tensor given) {
    racy<<<1, 64>>>(out.data_ptr<int>(), given.data_ptr<int>());
    calm<<<1, 64>>>(out.data_ptr<int>(), given.data_ptr<int>());
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""
_TORCH_CALL = """
given = torch.arange(64, dtype=torch.int32, device="cuda")
out = torch.zeros_like(given)
module.run(out, given)
print(out[:3].tolist())
"""
TORCH_LOADED = f"""
import torch
from torch.utils.cpp_extension import load

module = load("cuda_lsp_loaded", ["kernels.cu"])
{_TORCH_CALL}"""
TORCH_SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

modules = [CUDAExtension("cuda_lsp_built", ["kernels.cu"])]
setup(name="cuda_lsp_built", ext_modules=modules, cmdclass={"build_ext": BuildExtension})
"""
TORCH_IMPORTED = f"""
import torch
import cuda_lsp_built as module
{_TORCH_CALL}"""
