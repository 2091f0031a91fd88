"""Files read away from their build: headers found by name, names known by convention, switches."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.frontend.surroundings.build_files import build_macros
from cuda_lsp.frontend.surroundings.conventions import conventions_of, switches_of
from cuda_lsp.frontend.surroundings.included import inclusions
from cuda_lsp.frontend.surroundings.nearby_headers import folders_of, project_root
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.model import FileReport, Verdict
from cuda_lsp.static.analyze import check_text


def project(root: Path, files: dict[str, str]) -> Path:
    """A project with a repository's mark; its folder."""
    (root / ".git").mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def checked(path: Path) -> FileReport:
    return check_text(path, path.read_text(), Settings(solver=False))


def verdicts(path: Path) -> dict[str, Verdict]:
    return {kernel.name: kernel.verdict for kernel in checked(path).kernels}


SWAP = """#include "tile.h"
__global__ void swap(float* p) {{
    __shared__ float s[TILE];
    s[threadIdx.x] = p[threadIdx.x];
    {barrier}
    p[threadIdx.x] = s[TILE - 1 - threadIdx.x];
}}
void go(float* p) {{ swap<<<1, TILE>>>(p); }}
"""

BACKENDS = """if({})
    target_compile_definitions(swap PUBLIC TILE={})
else()
    target_compile_definitions(swap PUBLIC TILE={})
endif()
"""


def test_a_header_is_found_elsewhere_in_the_project(tmp_path: Path) -> None:
    root = project(tmp_path, {"common/tile.h": "#define TILE 128\n", "src/swap.cu": SWAP.format(barrier="")})
    report = checked(root / "src/swap.cu")
    assert [k.verdict for k in report.kernels] == [Verdict.RACY]
    assert any("found by their names only" in error.message for error in report.errors)


def test_the_nearest_of_several_headers_counts(tmp_path: Path) -> None:
    root = project(tmp_path, {"a/x/tile.h": "", "b/x/tile.h": "", "b/src/k.cu": ""})
    assert folders_of(root / "b/src/k.cu", ["x/tile.h"]) == (str(root / "b"),)


def test_usual_folders_come_before_any_other(tmp_path: Path) -> None:
    root = project(tmp_path, {"src/old/tile.h": "", "include/tile.h": "", "src/k.cu": ""})
    assert folders_of(root / "src/k.cu", ["tile.h"]) == (str(root / "include"),)


def test_nothing_outside_a_project_is_read(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/tile.h").write_text("")
    assert project_root(tmp_path / "k.cu") is None
    assert folders_of(tmp_path / "k.cu", ["tile.h"]) == ()


def test_folders_with_which_less_is_understood_are_not_taken(tmp_path: Path) -> None:
    text = '#include "tile.h"\n__global__ void k(float* p) { p[0] = 1; }\n'
    root = project(tmp_path, {"common/tile.h": "#define float Unknown\n", "src/k.cu": text})
    messages = [error.message for error in checked(root / "src/k.cu").errors]
    assert any("'tile.h' was not found" in message for message in messages)


def test_headers_of_a_file_without_kernels_are_found(tmp_path: Path) -> None:
    text = '#include "set.cuh"\nvoid go(int* p) { set<<<1, 64>>>(p); }\n'
    kernel = "__global__ void set(int* p) { p[threadIdx.x] = 1; }\n"
    root = project(tmp_path, {"kernels/set.cuh": kernel, "src/go.cu": text})
    assert checked(root / "src/go.cu").kernel_headers == (root / "kernels/set.cuh",)


def test_names_of_frameworks_are_known_without_their_headers(tmp_path: Path) -> None:
    text = """#include <ATen/cuda/DeviceUtils.cuh>
template <typename T>
C10_LAUNCH_BOUNDS_1(64)
__global__ void scaled(T* out, const at::Half* in, int n) {
    CUDA_KERNEL_LOOP(i, n) out[i] = WARP_SHFL_XOR((T)in[i], 1);
}
__global__ void shifted(float* out, int n) {
    CUDA_KERNEL_LOOP(i, n) out[i / 2] = WARP_SHFL(1.f, 0);
}
void go(float* o, const at::Half* i) { scaled<float><<<4, 64>>>(o, i, 256); shifted<<<4, 64>>>(o, 256); }
"""
    root = project(tmp_path, {"k.cu": text})
    report = checked(root / "k.cu")
    assert {k.name: k.verdict for k in report.kernels} == {
        "scaled<float>": Verdict.RACE_FREE,
        "shifted": Verdict.RACY,
    }
    assert any("nothing declares" in error.message for error in report.errors)


def test_small_functions_of_rapids_do_what_they_say(tmp_path: Path) -> None:
    text = """#include <raft/core/cuda.hpp>
__global__ void sums(float* out, const float* in, int n) {
    __shared__ float s[raft::ceildiv(128, raft::WarpSize)];
    float v = raft::warpReduce(in[threadIdx.x]);
    if (raft::laneId() == 0) s[threadIdx.x / raft::WarpSize] = v;
    __syncthreads();
    if (threadIdx.x == 0) out[0] = s[0] + s[1] + s[2] + s[3];
}
__global__ void unordered(float* out, const float* in) {
    __shared__ float s[raft::alignTo(100, raft::WarpSize)];
    s[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = raft::max(s[threadIdx.x], s[127 - threadIdx.x]);
}
void go(float* o, const float* i) { sums<<<1, 128>>>(o, i, 128); unordered<<<1, 128>>>(o, i); }
"""
    report = checked(project(tmp_path, {"k.cu": text}) / "k.cu")
    assert {k.name: k.verdict for k in report.kernels} == {
        "sums": Verdict.RACE_FREE,
        "unordered": Verdict.RACY,
    }
    assert any("nothing declares raft::ceildiv" in error.message for error in report.errors)


@pytest.mark.parametrize(
    ("place", "barrier", "wanted"),
    [
        ("[blockIdx.x][threadIdx.x]", "__syncthreads();", {Verdict.RACE_FREE}),
        ("[blockIdx.x][0]", "__syncthreads();", {Verdict.RACY}),
        ("[blockIdx.x][threadIdx.x]", "", {Verdict.RACY}),
    ],
)
def test_numbers_and_views_of_torch_are_known_without_its_headers(
    tmp_path: Path, place: str, barrier: str, wanted: set[Verdict]
) -> None:
    text = f"""#include <THC/THCNumerics.cuh>
#include <THC/THCDeviceTensor.cuh>
template <class T, class A>
__global__ void turned(THCDeviceTensor<T, 2> out, const T* in, const THCIndex_t* at) {{
    __shared__ A s[64];
    s[threadIdx.x] = THCNumerics<A>::exp(ScalarConvert<T, A>::to(in[at[threadIdx.x] - TH_INDEX_BASE]));
    {barrier}
    out{place} = ScalarConvert<A, T>::to(s[63 - threadIdx.x]);
}}
void go(THCDeviceTensor<float, 2> o, const float* i, const long* at) {{
    turned<float, double><<<8, 64>>>(o, i, at);
}}
"""
    path = project(tmp_path, {"k.cu": text}) / "k.cu"
    report = check_text(path, text, Settings())
    assert {k.verdict for k in report.kernels} == wanted


def test_views_of_tensors_and_images_have_their_layout(tmp_path: Path) -> None:
    text = """#include <torch/extension.h>
#include <opencv2/core/cuda_types.hpp>
using namespace cv::cuda;
__global__ void rows(at::PackedTensorAccessor32<float, 2, at::RestrictPtrTraits> t) {
    for (int i = threadIdx.x; i < t.size(1); i += blockDim.x) t[blockIdx.x][i] = 0;
}
__global__ void rotated(PtrStepSz<float> image) {
    __shared__ float s[32];
    s[threadIdx.x] = image(blockIdx.x, threadIdx.x);
    image(blockIdx.x, threadIdx.x) = s[31 - threadIdx.x];
}
void go(at::PackedTensorAccessor32<float, 2, at::RestrictPtrTraits> t, PtrStepSzf image) {
    rows<<<8, 32>>>(t);
    rotated<<<8, 32>>>(image);
}
"""
    root = project(tmp_path, {"k.cu": text})
    report = checked(root / "k.cu")
    found = {k.name: [f.code.value for f in k.findings if f.status.value == "proved"] for k in report.kernels}
    assert found["rotated"] == ["shared-race"]
    assert not any(f.kind for k in report.kernels if k.name == "rows" for f in k.findings)


def test_what_a_file_defines_itself_is_not_taken_from_elsewhere() -> None:
    assert not conventions_of("#define CUDA_KERNEL_LOOP(i, n) for (;;)\nCUDA_KERNEL_LOOP(i, 3)").text
    assert conventions_of("CUDA_KERNEL_LOOP(i, 3)").names == ("CUDA_KERNEL_LOOP",)


def test_device_code_behind_a_switch_is_read(tmp_path: Path) -> None:
    header = "#ifdef USE_CUDA\n#define TILE 128\n#endif\n"
    root = project(tmp_path, {"tile.h": header, "swap.cu": SWAP.format(barrier="__syncthreads();")})
    report = checked(root / "swap.cu")
    assert [k.verdict for k in report.kernels] == [Verdict.RACE_FREE]
    assert any("as if USE_CUDA were defined" in error.message for error in report.errors)


def test_guards_and_opposites_are_no_switches() -> None:
    text = "#ifndef A_CUDA_B\n#define A_CUDA_B\n#ifdef NO_CUDA\n#if defined(WITH_GPU) && !defined(X)\n"
    assert switches_of([text]) == ("WITH_GPU",)


def test_inclusions_behind_declarations_are_seen(tmp_path: Path) -> None:
    for name in ("a.h", "b.h", "deep/c.h"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "b.h").write_text('#include "c.h"\n')
    text = '#include <a.h>\nextern "C" {\n#include "b.h"\n}\n'
    seen = inclusions([(tmp_path / "k.cu", text)], [str(tmp_path), str(tmp_path / "deep")]).texts
    assert sorted(path.name for path in seen) == ["a.h", "b.h", "c.h"]


def test_a_change_of_a_header_behind_declarations_changes_digests(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("#define A 1\n")
    (tmp_path / "b.h").write_text("#define B 1\n")
    text = '#include "a.h"\nextern "C" {\n#include "b.h"\n}\n__global__ void k(int* p) { p[A] = B; }\n'
    translation = Translation(tmp_path / "k.cu", text)
    before = translation.kernels()[0].digest
    (tmp_path / "b.h").write_text("#define B 2\n")
    translation.refresh()
    assert translation.kernels()[0].digest != before


def test_an_object_that_owns_memory_by_a_smart_pointer_can_be_passed(tmp_path: Path) -> None:
    text = """#include <memory>
template <typename T> class Rows {
  public:
    explicit Rows(int n);
    ~Rows();
    __host__ __device__ int count() const;
    __device__ void put(int i, T v);
  private:
    std::shared_ptr<T> owner_;
    T* data_;
    int count_;
};
template <typename T> __host__ __device__ int Rows<T>::count() const { return count_; }
template <typename T> __device__ void Rows<T>::put(int i, T v) { data_[i] = v; }
__global__ void each(Rows<float> rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows.count()) rows.put(i, 1);
}
__global__ void pairs(Rows<float> rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    rows.put(i / 2, 1);
}
void go(Rows<float> r) { each<<<4, 64>>>(r); pairs<<<4, 64>>>(r); }
"""
    path = project(tmp_path, {"k.cu": text}) / "k.cu"
    assert verdicts(path) == {"each": Verdict.RACE_FREE, "pairs": Verdict.RACY}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Makefile", "# -DTILE=4\nNVCCFLAGS += -O3 -DTILE=128 -DOTHER=$(X)\n"),
        ("CMakeLists.txt", "add_definitions(-DTILE=128)\n"),
        ("CMakeLists.txt", "target_compile_definitions(swap PRIVATE OTHER TILE=128)\n"),
        ("setup.py", "ext = CUDAExtension(extra_compile_args={'nvcc': ['-DTILE=128']})\n"),
        ("CMakeLists.txt", "add_compile_definitions(TILE=128 ${MORE} $<CONFIG:TILE=4>)\n"),
        ("CMakeLists.txt", BACKENDS.format("HIP", 4, 128)),
        ("CMakeLists.txt", BACKENDS.format("USE_CUDA", 128, 4)),
        ("CMakeLists.txt", BACKENDS.format("NOT USE_CUDA", 4, 128)),
        ("CMakeLists.txt", BACKENDS.format("DEBUG", 128, 4)),
        (
            "CMakeLists.txt",
            "if(WIN32) add_definitions(-DNOMINMAX) endif()\n" + BACKENDS.format("HIP", 4, 128),
        ),
        ("Makefile", "ifeq ($(ROCM),1)\n  F += -DTILE=4\nelse\n  F += -DTILE=128\nendif\n"),
        ("CMakeLists.txt", "if(HIP)\nadd_definitions(-DTILE=4)\nendif()\nadd_definitions(-DTILE=128)\n"),
        ("CMakeLists.txt", 'add_compile_definitions(NAME="TILE" TILE=128)\n'),
        (
            "CMakeLists.txt",
            'set(ROW "128" CACHE STRING "Columns")\nadd_compile_definitions(TILE=${ROW})\n',
        ),
        ("CMakeLists.txt", "set(TILE 128)\ntarget_compile_definitions(swap PUBLIC TILE=${TILE} N=${N})\n"),
    ],
)
def test_macros_that_build_files_define_are_taken_where_they_help(
    tmp_path: Path, name: str, text: str
) -> None:
    kernel = SWAP.format(barrier="").replace('#include "tile.h"\n', "")
    root = project(tmp_path, {name: text, "src/swap.cu": kernel})
    report = checked(root / "src/swap.cu")
    assert [(k.verdict, k.launches[0].block) for k in report.kernels] == [(Verdict.RACY, (128, 1, 1))]
    assert any("as if TILE=128 were defined" in error.message for error in report.errors)


@pytest.mark.parametrize(
    ("size", "build", "wanted"),
    [
        ("8", "add_compile_definitions(REAL_SIZE=${REAL_SIZE})", Verdict.RACY),
        ("4", "add_compile_definitions(REAL_SIZE=${REAL_SIZE})", Verdict.RACE_FREE),
        ("2", "add_compile_definitions(REAL_SIZE=${REAL_SIZE})", Verdict.UNDECIDED),
        ("4", "", Verdict.UNDECIDED),
    ],
)
def test_headers_and_the_macros_that_they_hang_on_are_taken_together(
    tmp_path: Path, size: str, build: str, wanted: Verdict
) -> None:
    """A header that is found makes more unclear, and so do the macros, each without the other."""
    numbers = """#pragma once
    #if REAL_SIZE == 8
    typedef double Real;
    #elif REAL_SIZE == 4
    typedef float Real;
    #else
    #error REAL_SIZE
    #endif
    struct Pair { double a, b; };
    __device__ inline Pair operator*(Pair v, int n) {
        Real a = v.a, b = v.b;
        Real more = Real(n) * a;
        return Pair{more, b};
    }
    """
    kernel = """#include "project/numbers.h"
    __global__ void halves(double* p, float* q) {
        q[threadIdx.x * 4 / sizeof(Real)] = p[threadIdx.x];
    }
    void go(double* p, float* q) { halves<<<1, 32>>>(p, q); }
    """
    files = {
        "CMakeLists.txt": f'set(REAL_SIZE "{size}" CACHE STRING "")\n{build}\n',
        "lib/project/numbers.h": numbers,
        "src/halves.cu": kernel,
    }
    assert verdicts(project(tmp_path, files) / "src/halves.cu") == {"halves": wanted}


@pytest.mark.parametrize(
    ("build", "wanted"),
    [
        ("target_compile_definitions(gpu PRIVATE FOR_CUDA TILE=128)\n", Verdict.RACY),
        ("add_compile_definitions(FOR_CUDA TILE=128)\nadd_compile_definitions(TILE=4)\n", Verdict.RACY),
        ("target_compile_definitions(gpu PRIVATE FOR_HIP TILE=128)\n", Verdict.UNDECIDED),
        ("target_compile_definitions(gpu PRIVATE TILE=128)\n", Verdict.UNDECIDED),
        ("add_definitions(-DFOR_CUDA -DTILE=128)\nadd_definitions(-DCUDA_OLD -DTILE=4)\n", Verdict.UNDECIDED),
        ("if(OLD_CUDA)\nadd_definitions(-DFOR_CUDA -DTILE=128)\nendif()\n", Verdict.UNDECIDED),
    ],
)
def test_targets_of_other_folders_define_macros_for_cuda(tmp_path: Path, build: str, wanted: Verdict) -> None:
    kernel = SWAP.format(barrier="").replace('#include "tile.h"\n', "")
    files = {"CMakeLists.txt": "", "targets/CMakeLists.txt": build, "common/swap.cu": kernel}
    assert verdicts(project(tmp_path, files) / "common/swap.cu") == {"swap": wanted}


BY_OPTIONS = """option(WIDE "Wide rows" {default})
if(OLD)
  set(WIDE FALSE)
endif()
if({asked})
  add_definitions(-DTILE=128)
else({asked})
  add_definitions(-DTILE={other})
endif({asked})
"""


@pytest.mark.parametrize(
    ("default", "asked", "taken"),
    [("ON", "WIDE", 128), ("OFF", "WIDE", 64), ("ON", "NOT WIDE", 64), ("OFF", "NOT WIDE", 128)],
)
def test_options_are_as_they_are_by_default(tmp_path: Path, default: str, asked: str, taken: int) -> None:
    kernel = SWAP.format(barrier="__syncthreads();").replace('#include "tile.h"\n', "")
    text = BY_OPTIONS.format(default=default, asked=asked, other=64)
    root = project(tmp_path, {"CMakeLists.txt": text, "src/swap.cu": kernel})
    report = checked(root / "src/swap.cu")
    assert [k.launches[0].block for k in report.kernels] == [(taken, 1, 1)]


def test_an_option_is_turned_on_where_nothing_is_understood_without_it(tmp_path: Path) -> None:
    kernel = SWAP.format(barrier="").replace('#include "tile.h"\n', "")
    text = 'option(WIDE "Wide rows" OFF)\nif(WIDE)\n  add_definitions(-DTILE=128)\nendif()\n'
    root = project(tmp_path, {"CMakeLists.txt": text, "src/swap.cu": kernel})
    assert verdicts(root / "src/swap.cu") == {"swap": Verdict.RACY}


@pytest.mark.parametrize(("barrier", "wanted"), [("", Verdict.RACY), ("__syncthreads();", Verdict.RACE_FREE)])
def test_what_is_read_as_hip_is_built_for_hip(tmp_path: Path, barrier: str, wanted: Verdict) -> None:
    kernel = SWAP.format(barrier=barrier).replace('#include "tile.h"\n', "#include <hip/hip_runtime.h>\n")
    text = (
        "if(CUDA)\nadd_definitions(-DON_CUDA -DTILE=4)\nelseif(HIP)\nadd_definitions(-DTILE=128)\nendif()\n"
    )
    root = project(tmp_path, {"CMakeLists.txt": text, "src/swap.cu": kernel})
    report = checked(root / "src/swap.cu")
    assert [(k.verdict, k.launches[0].block) for k in report.kernels] == [(wanted, (128, 1, 1))]


def test_not_is_of_the_word_behind_it_alone(tmp_path: Path) -> None:
    text = "if(NOT WIDE OR SYCL)\nadd_definitions(-DTILE=4)\nelse()\nadd_definitions(-DTILE=128)\nendif()\n"
    (root := project(tmp_path, {"CMakeLists.txt": text})).joinpath("a.cu").touch()
    assert build_macros(root / "a.cu", {"TILE"}) == ("TILE=128",)


def test_the_folder_behind_a_path_is_no_macro(tmp_path: Path) -> None:
    files = {"CMakeLists.txt": "add_definitions(-DPLACE=${PREFIX}/TILE/ -DON_CUDA)\n"}
    (root := project(tmp_path, files)).joinpath("a.cu").touch()
    assert build_macros(root / "a.cu", {"TILE", "ON_CUDA", "PLACE"}) == ("ON_CUDA",)


def test_variables_of_several_values_define_nothing(tmp_path: Path) -> None:
    text = "set(ROW 128)\nset(ROW 32)\nadd_compile_definitions(TILE=${ROW})\n"
    kernel = SWAP.format(barrier="").replace('#include "tile.h"\n', "")
    root = project(tmp_path, {"CMakeLists.txt": text, "src/swap.cu": kernel})
    assert verdicts(root / "src/swap.cu") == {"swap": Verdict.UNDECIDED}


def test_headers_in_the_folder_of_the_unit_launch_for_headers_below(tmp_path: Path) -> None:
    """The unit is in the folder above: clang looks there, whoever includes a header, and so do launches."""
    kernels = SWAP.partition("void go")[0].format(barrier="__syncthreads();")
    files = {
        "swap.cu": '#include "deep/swap.hpp"\n',
        "launch.h": "#define TILE 128\n#define RUN(kernel, n, ...) kernel<<<1, n>>>(__VA_ARGS__)\n",
        "deep/swap.hpp": kernels.replace('"tile.h"', "<launch.h>")
        + "inline void go(float* p) { RUN((swap), TILE, p); }\n",
    }
    report = checked(project(tmp_path, files) / "deep/swap.hpp")
    assert [(k.verdict, k.launches[0].block) for k in report.kernels] == [(Verdict.RACE_FREE, (128, 1, 1))]


def test_words_of_a_header_that_is_made_by_the_build_are_known(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "small.h").write_text(
        "#include <made/compilers.h>\nstruct Small { short v; };\n"
        "AB_CONSTEXPR __device__ inline bool operator!=(Small a, Small b) AB_NOEXCEPT {"
        " return a.v != b.v; }\n"
        "AB_EXPORT void save();\n"
    )
    path = tmp_path / "k.cu"
    path.write_text(
        '#include "small.h"\n__global__ void k(const Small* a, int* o) { o[threadIdx.x] = a[0] != a[1]; }\n'
        "void f(Small* a, int* o) { k<<<1, 64>>>(a, o); }\n"
    )
    report = check_text(path, path.read_text())
    assert report.kernels[0].verdict is Verdict.RACE_FREE
    assert any("AB_CONSTEXPR" in error.message for error in report.errors)


def test_a_word_that_is_defined_in_a_branch_not_taken_is_taken_by_convention(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "small.h").write_text(
        "#ifdef MY_OWN_COMPILER\n#define AB_CONSTEXPR constexpr\n#else\n#include <made/compilers.h>\n#endif\n"
        "template <class T> struct Wide { T v; };\n"
        "template <class T> AB_CONSTEXPR __device__ inline Wide<T> twice(Wide<T> a) { return {a.v + a.v}; }\n"
    )
    path = tmp_path / "k.cu"
    path.write_text(
        '#include "small.h"\n__global__ void k(Wide<int>* a) { a[threadIdx.x] = twice(a[threadIdx.x]); }\n'
        "void f(Wide<int>* a) { k<<<1, 64>>>(a); }\n"
    )
    assert checked(path).kernels[0].verdict is Verdict.RACE_FREE


def test_what_headers_name_is_taken_by_convention_too(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "half.h").write_text("#include <ATen/ATen.h>\nusing phalf = at::Half;\n")
    path = tmp_path / "k.cu"
    path.write_text(
        '#include "half.h"\n__global__ void k(phalf* o, const phalf* a) { o[threadIdx.x] = a[0]; }\n'
        "void f(phalf* a, phalf* o) { k<<<1, 64>>>(o, a); }\n"
    )
    assert check_text(path, path.read_text()).kernels[0].verdict is Verdict.RACE_FREE


def test_a_macro_of_the_project_is_its_own() -> None:
    assert conventions_of("#define AB_CONSTEXPR\nAB_CONSTEXPR int n = 1;").text == ""
    assert conventions_of("AB_EXPORT(name) int n = 1;").text == ""


def test_a_constant_that_is_computed_elsewhere_has_its_value(tmp_path: Path) -> None:
    files = {
        "fill.cuh": "__global__ void fill(int* p) {\n    __shared__ int s[ROWS + 2];\n"
        "    s[threadIdx.x] = p[threadIdx.x];\n    __syncthreads();\n    p[threadIdx.x] = s[ROWS - 1];\n}\n",
        "fill.hpp": "#include <library.hpp>\nconstexpr int TILE = 8;\nstatic const int COLUMNS = 2 * TILE;\n"
        "constexpr int ROWS = 1024 / COLUMNS;\ninline void launch() { run(ROWS); }\n",
    }
    report = checked(project(tmp_path, files) / "fill.cuh")
    assert not any("not understood" in error.message for error in report.errors)
    assert any("ROWS=(1024/(2*8))" in error.message for error in report.errors)


@pytest.mark.parametrize(("barrier", "verdict"), [("__syncthreads();", "race-free"), ("", "racy")])
def test_a_header_that_was_read_is_not_read_before_the_file_as_well(
    tmp_path: Path, barrier: str, verdict: str
) -> None:
    """It declares a class in another namespace, and the one that is meant where a program compiles it."""
    files = {
        "words.h": "#pragma once\n#define ON_BOTH __device__ __host__\n",
        "box.h": "#pragma once\n#ifdef __CUDACC_RTC__\ntemplate <class T> struct Box {\n"
        "  ON_BOTH T* all() { extern __shared__ T own[]; return own; }\n};\n#else\nnamespace deep {\n"
        "template <class T> struct Box { __device__ T* all(); };\n}\n#endif\n",
        "sizes.h": "constexpr int WIDE = 64;\n",
        "swap.cuh": '#include "words.h"\n#include "box.h"\ntemplate <class T> __global__ void swap(T* p) {\n'
        "  Box<T> box;\n  T* s = box.all();\n  const int t = threadIdx.x, first = blockIdx.x * WIDE;\n"
        "  const int last = WIDE - 1;\n  const int to = blockIdx.x * WIDE + last;\n  s[t] = p[first + t];\n"
        f"  {barrier}\n  p[to - t] = s[last - t];\n}}\n",
        "go.cpp": 'void go(float* p) { auto k = getKernel("swap<float>"); Q q(4, dim3(64)); k(q, p); }\n',
    }
    (kernel,) = checked(project(tmp_path, files) / "swap.cuh").kernels
    assert (kernel.name, kernel.verdict.value) == ("swap<float>", verdict)


@pytest.mark.parametrize(("index", "verdict"), [("i", "race-free"), ("i / 2", "racy")])
def test_host_code_that_names_a_library_makes_the_instances_of_kernels(
    tmp_path: Path, index: str, verdict: str
) -> None:
    """A class of parameters, a registry and checks of dmlc: in a header, in the file, under a switch."""
    files = {
        "rows.h": "#include <dmlc/parameter.h>\nstruct Rows : public dmlc::Parameter<Rows> {\n  int count;\n"
        "  DMLC_DECLARE_PARAMETER(Rows) { DMLC_DECLARE_FIELD(count).set_default(8); }\n};\n"
        "struct View { float* values; int count; __device__ float& at(int i) const { return values[i]; } };\n"
        "inline View view_of(const Rows& rows, float* p) {\n"
        "  CHECK_GE(rows.count, 0) << rows.count;\n  return {p, rows.count};\n}\n",
        "fill.cu": '#include "rows.h"\nDMLC_REGISTRY_FILE_TAG(fill);\n'
        "template <class V> __global__ void fill(V view) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"  if (i < view.count) view.at({index}) = i;\n}}\n"
        "#ifdef OWN_USE_CUDA\nvoid go(const Rows& rows, float* p) {\n  auto view = view_of(rows, p);\n"
        "  if (view.count > 1024) LOG(FATAL) << view.count;\n  fill<<<8, 128>>>(view);\n}\n#endif\n",
    }
    path = project(tmp_path, files) / "fill.cu"
    (kernel,) = check_text(path, path.read_text(), Settings()).kernels
    assert (kernel.name, kernel.verdict.value) == ("fill<View>", verdict)


TENSORS = """
template <typename T> __global__ void swap(T* p) {{
    __shared__ T s[64];
    s[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = s[63 - threadIdx.x];
}}
void go(at::Tensor t) {{
    {dispatch}(t.scalar_type(), "swap", [&] {{ swap<scalar_t><<<1, 64>>>(t.data_ptr<scalar_t>()); }});
}}
"""


@pytest.mark.parametrize(
    ("dispatch", "types"),
    [
        ("AT_DISPATCH_FLOATING_TYPES", {"double", "float"}),
        ("AT_DISPATCH_FLOATING_TYPES_AND_HALF", {"double", "float", "c10::__c10_half"}),
        ("MY_OWN_DISPATCH", {"float"}),  # a guess
    ],
)
def test_a_template_has_the_types_of_the_dispatch_around_its_launch(
    tmp_path: Path, dispatch: str, types: set[str]
) -> None:
    root = project(tmp_path, {"k.cu": TENSORS.format(dispatch=dispatch)})
    report = checked(root / "k.cu")
    assert {kernel.name for kernel in report.kernels} == {f"swap<{type}>" for type in types}
    assert {kernel.verdict for kernel in report.kernels} == {Verdict.RACE_FREE}


def test_instances_of_the_host_are_not_asked_for_where_they_are_too_many(tmp_path: Path) -> None:
    text = """
template <typename T, int N> __global__ void fill(T* p) { p[threadIdx.x * N] = N; }
template <typename T, int N> void each(T* p) {
    fill<T, N><<<1, 64>>>(p);
    if constexpr (N > 1) each<T, N - 1>(p);
}
void go(at::Tensor t) {
    AT_DISPATCH_FLOATING_TYPES(t.scalar_type(), "", [&] { each<scalar_t, MOST>(t.data_ptr<scalar_t>()); });
}
"""
    root = project(tmp_path, {"few.cu": text.replace("MOST", "2"), "many.cu": text.replace("MOST", "40")})
    assert set(verdicts(root / "few.cu")) == {f"fill<{t}, {n}>" for t in ("float", "double") for n in (1, 2)}
    (told,) = verdicts(root / "many.cu")
    assert told.startswith("fill<float, ")


@pytest.mark.parametrize("quotes", ['"{}"', "<{}>"])
@pytest.mark.parametrize(
    "name", ["cuda/tile.h", "string_tile.h", "device_tile.cuh", "cuda_tile.h", "nvlib/tile.h", "a/cuda_b/t.h"]
)
def test_headers_that_only_sound_like_the_toolkits_are_looked_for(
    tmp_path: Path, name: str, quotes: str
) -> None:
    text = SWAP.format(barrier="__syncthreads();").replace('"tile.h"', quotes.format(name))
    root = project(tmp_path, {f"include/{name}": "#define TILE 128\n", "src/swap.cu": text})
    assert verdicts(root / "src/swap.cu") == {"swap": Verdict.RACE_FREE}


@pytest.mark.parametrize("name", ["cuda_runtime.h", "cub/cub.cuh", "thrust/pair.h", "math.h", "nv/target"])
@pytest.mark.parametrize("quotes", ['"{}"', "<{}>"])
def test_headers_of_the_toolkit_are_not_taken_from_the_project(
    tmp_path: Path, name: str, quotes: str
) -> None:
    root = project(tmp_path, {f"include/{name}": "", "src/k.cu": f"#include {quotes.format(name)}\n"})
    translation = Translation(root / "src/k.cu", (root / "src/k.cu").read_text())
    assert not translation.understanding().unfound
    assert not translation.guessed.folders
