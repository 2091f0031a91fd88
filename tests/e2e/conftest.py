"""What the tests in real editors share: the kernel, the server's command, where editors are."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EDITORS = Path(os.environ.get("CUDA_LSP_E2E", Path.home() / ".cache/cuda-lsp-e2e"))
INSTALL = "run scripts/install-editors.sh"

#: Boyer, Skadron and Weimer (2008), figure 1, without the barrier: line 8's read races with line 7's store.
FIGURE1 = """\
// Every thread stores its id, then reads its right neighbour's.

__global__ void neighbour(int* out) {
    extern __shared__ int s[];
    int id = threadIdx.x;
    int nt = blockDim.x;
    s[id] = id;
    out[id] = s[(id + 1) % nt];
}

void launch(int* out) {
    neighbour<<<1, 64, 64 * sizeof(int)>>>(out);
}
"""

#: A kernel that runs until it is stopped.
SPIN = """\
__global__ void spin(volatile int* out) {
    while (out[0] != 1234567) { }
}

void launch(int* out) { spin<<<1, 32>>>(out); }
"""

#: Nothing launches this one; its loads meet in one bank.
COLUMNS = """\
__global__ void columns(float* out, const float* in) {
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""

#: A program with the kernel of Figure 1, at the same lines, that prints its arguments.
MAIN = "int main(int argc, char** argv) {"
APP = f"""\
{FIGURE1.partition("void launch")[0]}\
extern "C" int printf(const char*, ...);

{MAIN}
    int* out;
    cudaMalloc(&out, 64 * sizeof(int));
    neighbour<<<1, 64, 64 * sizeof(int)>>>(out);
    cudaDeviceSynchronize();
    printf("it runs\\n");
    for (int i = 1; i < argc; ++i) printf("argument %d: %s\\n", i, argv[i]);
    return 0;
}}
"""

#: A header that holds a kernel, which races.
HEADER = """// __global__ in a comment alone is none
template <typename T>
__global__ void turned(T* out) {
    __shared__ T s[64];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[63 - threadIdx.x];
}
"""

STORE_LINE = 7
READ = "s[(id + 1) % nt]"
STORE = "s[id]"

SERVER = [sys.executable, "-m", "cuda_lsp", "serve"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)


def need(program: str | Path, why: str) -> str:
    """The program's full path; skips the test, saying what to do, where it is not installed."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{why} is not installed: {INSTALL}")
    return found


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """Screenshots and logs of the last run; ignored by git."""
    folder = ROOT / "test-artifacts"
    folder.mkdir(exist_ok=True)
    return folder
