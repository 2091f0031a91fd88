"""A kernel that its own file does not launch is analysed under the launches of the files around it."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.frontend.workspace import Workspace
from cuda_lsp.model import LaunchSource, Verdict
from cuda_lsp.static.analyze import check_file

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


def test_a_launch_in_another_file_counts(tmp_path: Path) -> None:
    write(tmp_path, fold_cuh=KERNEL, main_cu='#include "fold.cuh"\nvoid go(int* a) { fold<<<1, 64>>>(a); }\n')
    (kernel,) = check_file(tmp_path / "fold.cuh").kernels
    assert kernel.launches[0].source is LaunchSource.WORKSPACE
    assert kernel.launches[0].block == (64, 1, 1)
    assert kernel.verdict is Verdict.RACY


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
        other__far_cu=launch.format(32),
    )
    found = Workspace().launches(tmp_path / "k" / "fold.cu", ["fold"])
    assert [site.block for site in found["fold"]] == [(32, 1, 1)]
    write(tmp_path, k__near_cu=launch.format(128))
    found = Workspace().launches(tmp_path / "k" / "fold.cu", ["fold"])
    assert [site.block for site in found["fold"]] == [(128, 1, 1)]


def test_the_search_ends_at_the_project(tmp_path: Path) -> None:
    write(tmp_path, one__Makefile="", one__fold_cu=KERNEL, two__main_cu="void go(int*a){fold<<<1,32>>>(a);}")
    assert Workspace().launches(tmp_path / "one" / "fold.cu", ["fold"]) == {}
