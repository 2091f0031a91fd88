"""A kernel that its own file does not launch is analysed under the launches of the files around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuda_lsp.frontend.host import workspace
from cuda_lsp.frontend.host.workspace import Workspace
from cuda_lsp.model import FileReport, LaunchSource, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """__global__ void fold(int* a) {
  __shared__ int s[64];
  s[threadIdx.x] = a[threadIdx.x];
  if (threadIdx.x < 16) s[threadIdx.x] += s[threadIdx.x + 32];
  a[threadIdx.x] = threadIdx.x;
}
"""


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def check_file(path: Path) -> FileReport:
    return check_text(path, path.read_text())


def test_a_launch_in_another_file_counts(tmp_path: Path) -> None:
    write(tmp_path, fold_cuh=KERNEL, main_cu='#include "fold.cuh"\nvoid go(int* a) { fold<<<1, 64>>>(a); }\n')
    (kernel,) = check_file(tmp_path / "fold.cuh").kernels
    assert kernel.launches[0].source is LaunchSource.WORKSPACE
    assert kernel.launches[0].block == (64, 1, 1)
    assert kernel.verdict is Verdict.RACY


@pytest.mark.parametrize(
    ("other", "block"), [("", (120, 1, 1)), ("namespace far { int parts(int n) { return n; } }", None)]
)
def test_a_block_that_a_function_of_the_launching_file_computes(
    tmp_path: Path, other: str, block: tuple[int, int, int] | None
) -> None:
    parts = "static int parts(int n) { return n % 16 ? n / 16 + 1 : n / 16; }\n"
    go = "void go(int* a) { int w = 1920; int block = parts(w); fold<<<1, block>>>(a); }\n"
    write(tmp_path, fold_cuh=KERNEL, main_cu=f'#include "fold.cuh"\n{other}\n{parts}{go}')
    (kernel,) = check_file(tmp_path / "fold.cuh").kernels
    assert (
        kernel.launches[0].block if kernel.launches[0].source is LaunchSource.WORKSPACE else None
    ) == block


def test_macros_of_included_files_are_constants(tmp_path: Path) -> None:
    write(
        tmp_path,
        fold_cuh="#define SIDE 8\n" + KERNEL,
        main_cu='#include "fold.cuh"\nvoid go(int* a) { dim3 b(SIDE, SIDE / 2, 2); fold<<<1, b>>>(a); }\n',
    )
    (sites,) = Workspace().launches(tmp_path / "fold.cuh", ["fold"]).values()
    assert [site.block for site in sites] == [(8, 4, 2)]


def test_the_nearest_folder_wins_and_namesakes_launch_their_own(tmp_path: Path) -> None:
    launch = "void go(int* a) {{ fold<<<1, {}>>>(a); }}\n"
    write(
        tmp_path,
        Makefile="",
        k__fold_cu=KERNEL,
        other__same_cu=KERNEL + launch.format(16),
        far__far_cu=launch.format(32),
    )
    found = Workspace().launches(tmp_path / "k" / "fold.cu", ["fold"])
    assert [site.block for site in found["fold"]] == [(32, 1, 1)]
    write(tmp_path, k__near_cu=launch.format(128))
    found = Workspace().launches(tmp_path / "k" / "fold.cu", ["fold"])
    assert [site.block for site in found["fold"]] == [(128, 1, 1)]


def test_parts_of_a_project_have_build_files_of_their_own(tmp_path: Path) -> None:
    launch = "void go(int* a) { fold<<<1, 32>>>(a); }\n"
    write(tmp_path, CMakeLists_txt="", k__CMakeLists_txt="", k__fold_cu=KERNEL, host__go_cu=launch)
    (tmp_path / "CMakeLists.txt").touch()
    (tmp_path / "k" / "CMakeLists.txt").touch()
    (sites,) = Workspace().launches(tmp_path / "k" / "fold.cu", ["fold"]).values()
    assert [site.block for site in sites] == [(32, 1, 1)]


@pytest.mark.parametrize("head", ["", "template <int N> ", "extern "])
def test_who_only_declares_a_kernel_launches_that_of_others(tmp_path: Path, head: str) -> None:
    declared = f"{head}__global__ void __launch_bounds__(256, (1 + 1)) fold(int* a);\n"
    launch = declared + "void go(int* a) { fold<<<1, 32>>>(a); }\n"
    write(tmp_path, Makefile="", k__fold_cu=KERNEL, host__go_cu=launch)
    (sites,) = Workspace().launches(tmp_path / "k" / "fold.cu", ["fold"]).values()
    assert [site.block for site in sites] == [(32, 1, 1)]


def test_a_launch_is_of_the_nearest_kernel_of_its_name(tmp_path: Path) -> None:
    """Programs of one collection have kernels of one name, each in a file beside its launch."""
    kernel = KERNEL.replace("__global__ void", "__global__ void __launch_bounds__(1024)")
    files = {f"{name}__fold_cu": kernel for name in ("one", "two", "three")}
    hosts = {
        f"{n}__go_cu": f"void go(int* a) {{ fold<<<1, {b}>>>(a); }}" for n, b in (("one", 32), ("two", 64))
    }
    write(tmp_path, Makefile="", **files, **hosts)
    for name, block in (("one", [(32, 1, 1)]), ("two", [(64, 1, 1)]), ("three", [])):
        found = Workspace().launches(tmp_path / name / "fold.cu", ["fold"])
        assert [site.block for site in found.get("fold", ())] == block


def test_the_search_ends_at_the_project(tmp_path: Path) -> None:
    write(tmp_path, one__Makefile="", one__fold_cu=KERNEL, two__main_cu="void go(int*a){fold<<<1,32>>>(a);}")
    assert Workspace().launches(tmp_path / "one" / "fold.cu", ["fold"]) == {}


def test_a_template_argument_that_names_the_threads_is_the_block(tmp_path: Path) -> None:
    text = """template <int BlockSize> __global__ void stride(float* a, int n) {
      for (int i = threadIdx.x; i < n; i += BlockSize) a[blockIdx.x * n + i] = i;
    }
    template __global__ void stride<64>(float*, int);
    """
    write(tmp_path, stride_cu=text)
    (kernel,) = check_file(tmp_path / "stride.cu").kernels
    assert kernel.launches[0].block == (64, 1, 1)
    assert not kernel.findings


def test_grid_and_arguments_count_without_the_block(tmp_path: Path) -> None:
    text = """__global__ void fill(int* a, int n) { a[threadIdx.x] = n; }
    void go(int* a, int threads) { fill<<<1, threads>>>(a, 5); }
    """
    write(tmp_path, fill_cu=text)
    (kernel,) = check_file(tmp_path / "fill.cu").kernels
    assert kernel.launches[0].source is LaunchSource.SIZES
    assert (kernel.launches[0].grid, kernel.launches[0].arguments) == ((1, 1, 1), {"n": 5})
    assert kernel.verdict is Verdict.RACE_FREE


def test_extents_made_of_other_extents(tmp_path: Path) -> None:
    text = "void go(int* a) { dim3 b(16, 4); dim3 g(64 / b.x, 64 / b.y); k<<<g, b>>>(a); }"
    write(tmp_path, k_cu="__global__ void k(int* a) {}\n" + text)
    (kernel,) = check_file(tmp_path / "k.cu").kernels
    assert kernel.launches[0].grid == (4, 16, 1)


def test_axes_of_the_grid_that_are_known(tmp_path: Path) -> None:
    text = """__global__ void row(int* a) { if (blockIdx.y == 0) a[threadIdx.x] = 1; }
    void go(int* a, int n) { dim3 grid(1, n); row<<<grid, 64>>>(a); }
    __global__ void column(int* a) { if (blockIdx.y == 0) a[threadIdx.x] = threadIdx.x; }
    void too(int* a, int n) { column<<<(n + 63) / 64, 64>>>(a); }
    """
    write(tmp_path, k_cu=text)
    row, column = check_file(tmp_path / "k.cu").kernels
    assert (row.launches[0].grid_axes, row.verdict) == ((1, None, 1), Verdict.RACE_FREE)
    assert (column.launches[0].grid_axes, column.verdict) == ((None, 1, 1), Verdict.RACY)


def test_macros_of_the_live_branch(tmp_path: Path) -> None:
    text = """#ifdef WG_SIZE
    #define SIDE WG_SIZE
    #elif defined(OTHER)
    #define SIDE 8
    #else
    #define SIDE 32
    #endif
    #if __GNUC__ > 3
    #define ROWS 2
    #else
    #define ROWS 4
    #endif
    __global__ void k(int* a) { }
    void go(int* a) { k<<<ROWS, SIDE>>>(a); }
    """
    write(tmp_path, k_cu=text)
    (kernel,) = check_file(tmp_path / "k.cu").kernels
    assert (kernel.launches[0].block, kernel.launches[0].grid) == ((32, 1, 1), None)


def test_the_block_by_the_name_of_a_template_parameter(tmp_path: Path) -> None:
    text = """template <int W, int H> __global__ void k(int* a) { a[threadIdx.x] = W; }
    template <int W, int H> void go(int* a, int n) { dim3 block(W, H * 2); k<W, H><<<n, block>>>(a); }
    void all(int* a) { go<192, 1>(a, 2); go<64, 4>(a, 2); }
    """
    write(tmp_path, k_cu=text)
    kernels = check_file(tmp_path / "k.cu").kernels
    assert {(k.name, k.launches[0].block) for k in kernels} == {
        ("k<192, 1>", (192, 2, 1)),
        ("k<64, 4>", (64, 8, 1)),
    }


def test_only_files_that_name_the_kernel_are_read_for_its_launches(tmp_path: Path, monkeypatch: Any):
    """A folder of many files that launch kernels of their own took seconds for each of them."""
    (tmp_path / "fold.cu").write_text("__global__ void fold(int* p) {}")
    (tmp_path / "uses.cu").write_text("void f(int* p) { fold<<<4, 96>>>(p); }")
    (tmp_path / "pastes.cu").write_text("#define L(name) fo##name<<<2, 32>>>(p)\nvoid g(int* p) { L(ld); }")
    (tmp_path / "other.cu").write_text(
        "__global__ void own(int* p) {}\nvoid h(int* p) { own<<<1, 64>>>(p); }"
    )
    read: list[str] = []
    whole = workspace.host_code_of
    monkeypatch.setattr(
        workspace, "host_code_of", lambda file, *rest: (read.append(file.name), whole(file, *rest))[1]
    )
    around = Workspace()
    found = around.launches(tmp_path / "fold.cu", ["fold"])
    assert sorted(site.block for site in found["fold"] if site.block) == [(32, 1, 1), (96, 1, 1)]
    assert set(read) == {"uses.cu", "pastes.cu"}
    assert around.launches(tmp_path / "fold.cu", ["fold", "own"])["fold"] == found["fold"]


TILED = """#include "tiles.h"
__global__ void __launch_bounds__(256) tiles(int* out, int w, int h) {
  dim3 b = blockIdx;
  int x = b.x * 16 + threadIdx.x, y = b.y * 16 + threadIdx.y;
  if (x < w && y < h) out[w * y + x] = b.AXIS;
}
void Draw::run(const dim3 grid, dim3 block, int* out, int w, int h) {
  tiles<<<grid, block>>>(out, w, h);
}
"""
DRAWN = """#include "tiles.h"
void draw(int* out, int w, int h) {
  dim3 grid((w + 15) / 16, (h + 15) / 16, DEPTH);
  dim3 block(16, 16, 1);
  CHECK(Draw::run(grid, block, out, w, h));
}
"""


@pytest.mark.parametrize(("axis", "depth", "free"), [("x", "1", True), ("z", "1", True), ("z", "2", False)])
def test_what_callers_in_other_files_pass_is_all_that_is_known_of_a_launch(
    tmp_path: Path, axis: str, depth: str, free: bool
) -> None:
    header = "namespace Draw { void run(const dim3 grid, dim3 block, int* out, int w, int h); }\n"
    write(tmp_path, tiles_h=header, main_cu=DRAWN.replace("DEPTH", depth))
    write(tmp_path, tiles_cu=TILED.replace("AXIS", axis))
    (kernel,) = check_file(tmp_path / "tiles.cu").kernels
    assert [(x.block, x.grid_axes[2], x.source) for x in kernel.launches] == [
        ((16, 16, 1), int(depth), LaunchSource.WORKSPACE)
    ]
    assert not any("is not known" in reason for reason in kernel.reasons)
    assert (kernel.verdict is Verdict.RACE_FREE) is free


@pytest.mark.parametrize(
    ("elsewhere", "block"),
    [
        ("void other() { const int LANES = 16; use(LANES); }", (32, 2, 1)),
        ("void other() { int LANES = 16; LANES = 8; LANES++; use(LANES); }", (32, 2, 1)),
        ("void other() { LANES = 8; }", None),
    ],
)
def test_a_constant_of_a_header_stays_one_where_another_function_has_a_variable_of_its_name(
    tmp_path: Path, elsewhere: str, block: tuple[int, int, int] | None
) -> None:
    launch = "void go(int* a) { dim3 block(LANES, 2); fold<<<1, block>>>(a); }"
    write(tmp_path, lanes_h="static int LANES = 32;\n")
    write(tmp_path, fold_cu=f'#include "lanes.h"\n{KERNEL}{launch}\n{elsewhere}\n')
    (kernel,) = check_file(tmp_path / "fold.cu").kernels
    told = [x.block for x in kernel.launches if x.source is LaunchSource.FILE]
    assert told == ([block] if block is not None else [])


SWAP = """__global__ void swap(float* d) {
    __shared__ float s[256];
    s[threadIdx.x] = d[threadIdx.x];
    d[threadIdx.x] = s[threadIdx.x ^ 32];
}
"""
ALONE = "void here(float* d) { swap<<<1, 32>>>(d); }\n"
FAR = "void there(float* d) { swap<<<1, 128>>>(d); }\n"
DECLARED = "__global__ void swap(float* d);\n"


@pytest.mark.parametrize(
    ("other", "verdict"),
    [
        ('#include "swap.h"\n' + FAR, Verdict.RACY),
        (DECLARED + FAR, Verdict.RACY),
        (FAR, Verdict.RACE_FREE),  # of a kernel that it does not see
        (SWAP.replace("^ 32", "") + FAR, Verdict.RACE_FREE),  # of its own
        (DECLARED + FAR.replace("128", "32"), Verdict.RACE_FREE),
        # Another kernel, from the same text.
        ('namespace own {\n#include "swap.cu"\n}\n' + FAR.replace("swap<", "own::swap<"), Verdict.RACE_FREE),
    ],
)
def test_launches_of_others_count_beside_those_of_the_file(
    tmp_path: Path, other: str, verdict: Verdict
) -> None:
    (tmp_path / ".git").mkdir()
    write(tmp_path, swap_h=DECLARED, swap_cu=SWAP.replace("32", "96") + ALONE, other_cu=other)
    (kernel,) = check_file(tmp_path / "swap.cu").kernels
    assert kernel.verdict is verdict


def test_every_file_that_includes_a_kernel_may_launch_it(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    text = SWAP.replace("32", "96")
    write(tmp_path, swap_cuh=text, a_cu='#include "swap.cuh"\n' + ALONE, b_cu='#include "swap.cuh"\n' + FAR)
    (kernel,) = check_file(tmp_path / "swap.cuh").kernels
    assert kernel.verdict is Verdict.RACY
    assert {launch.block for launch in kernel.launches} == {(32, 1, 1), (128, 1, 1)}
