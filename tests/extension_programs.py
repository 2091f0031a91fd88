"""Python programs whose kernels nvcc builds as they run, without PyTorch: its ``cpp_extension`` in miniature.

As PyTorch does, it writes a ``build.ninja`` into the folder that ``TORCH_EXTENSIONS_DIR`` names, compiles
device code by nvcc and the rest by the host's compiler, links with ``-lcudart``, and opens the result.
"""

from __future__ import annotations

CPP_EXTENSION = r'''
import ctypes, os, pathlib, shutil, subprocess

CUDA_HOME = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
NVCC = shutil.which("nvcc") or f"{CUDA_HOME}/bin/nvcc"
RULES = f"""ninja_required_version = 1.3
cxx = c++
nvcc = {NVCC}
cflags = -DTORCH_EXTENSION_NAME=NAME -DTORCH_API_INCLUDE_EXTENSION_H -fPIC -std=c++17
cuda_cflags = -DTORCH_EXTENSION_NAME=NAME -D__CUDA_NO_HALF_OPERATORS__ --expt-relaxed-constexpr $
  -gencode=arch=compute_90,code=compute_90 -gencode=arch=compute_90,code=sm_90 $
  --compiler-options '-fPIC' -std=c++17
ldflags = -shared -L{CUDA_HOME}/lib64 -lcudart

rule compile
  command = $cxx -MMD -MF $out.d $cflags -c $in -o $out
rule cuda_compile
  command = $nvcc --generate-dependencies-with-compile --dependency-output $out.d $cuda_cflags -c $in -o $out
rule link
  command = $cxx $in $ldflags -o $out

"""


def load(name, sources):
    folder = pathlib.Path(os.environ["TORCH_EXTENSIONS_DIR"], name)
    folder.mkdir(parents=True, exist_ok=True)
    objects, builds = [], []
    for source in map(pathlib.Path, sources):
        cuda = source.suffix == ".cu"
        objects.append(source.stem + (".cuda.o" if cuda else ".o"))
        builds.append(f"build {objects[-1]}: {'cuda_compile' if cuda else 'compile'} {source.absolute()}\n")
    builds.append(f"build {name}.so: link {' '.join(objects)}\n\ndefault {name}.so\n")
    (folder / "build.ninja").write_text(RULES.replace("NAME", name) + "".join(builds))
    subprocess.run(["ninja", "-v"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / f"{name}.so"))


def load_inline(name, cpp_source, cuda_source):
    folder = pathlib.Path(os.environ["TORCH_EXTENSIONS_DIR"], name)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"main.cpp": cpp_source, "cuda.cu": "#include <cuda_runtime.h>\n" + cuda_source}
    for file, text in texts.items():
        if not (folder / file).exists() or (folder / file).read_text() != text:
            (folder / file).write_text(text)
    return load(name, [folder / file for file in texts])
'''

# A launcher that takes host memory, beside kernels with and without a race.
CUDA = """
namespace {
__device__ int shift = 1;
__global__ void racy(int* out, const int* in) {
    __shared__ int s[64];
    s[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = s[63 - threadIdx.x] + shift;
}
__global__ void calm(int* out, const int* in) {
    __shared__ int s[64];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x] + shift;
}
}  // namespace
extern "C" int run(int* host) {
    int *in, *out, two = 2;
    cudaMalloc(&in, 256);
    cudaMalloc(&out, 256);
    cudaMemcpyToSymbol(shift, &two, sizeof two);
    cudaMemcpy(in, host, 256, cudaMemcpyHostToDevice);
    racy<<<1, 64>>>(out, in);
    calm<<<1, 64>>>(out, in);
    cudaMemcpy(host, out, 256, cudaMemcpyDeviceToHost);
    cudaFree(in);
    cudaFree(out);
    return cudaGetLastError();
}
"""
CPP = """
extern "C" int run(int* host);
extern "C" int call(int* host) { return run(host); }
"""

CALLING = """
import ctypes
import cpp_extension

module = cpp_extension.load{arguments}
data = (ctypes.c_int * 64)(*range(64))
print("error", module.call(data), data[:3])
"""
LOADING = CALLING.replace("{arguments}", '("from_files", ["call.cpp", "kernels.cu"])')
INLINE = f'CPP = """{CPP}"""\nCUDA = """{CUDA}"""\n' + CALLING.replace(
    "{arguments}", '_inline("inline", CPP, CUDA)'
)

# A library that is linked with CUDA's static runtime, as nvcc does it by itself.
STATIC = """
import ctypes, subprocess

command = "nvcc -shared -Xcompiler -fPIC -arch=sm_90 kernels.cu call.cpp -o static.so"
subprocess.run(command, shell=True, check=True)
module = ctypes.CDLL("./static.so")
data = (ctypes.c_int * 64)(*range(64))
print("error", module.call(data), data[:3])
"""
# One that is there already.
BUILT = """
import ctypes

module = ctypes.CDLL("./static.so")
data = (ctypes.c_int * 64)(*range(64))
print("error", module.call(data), data[:3])
"""
