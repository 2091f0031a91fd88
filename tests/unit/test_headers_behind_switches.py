"""Headers that only a macro of the build includes: miniature projects."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """#ifdef WITH_CUDA
#include "lib/core/place.h"
__global__ void fill(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[place_of(i)] = i;
}
void go(float* out, int n) { fill<<<n / 256 + 1, 256>>>(out, n); }
#endif
"""


@pytest.mark.parametrize(("place", "wanted"), [("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)])
@pytest.mark.parametrize("build", ["", "add_definitions(-DWITH_CUDA)\n"])
def test_what_a_switch_includes_is_looked_for_in_the_project(
    tmp_path: Path, build: str, place: str, wanted: Verdict
) -> None:
    (tmp_path / "lib/core").mkdir(parents=True)
    (tmp_path / "lib/user").mkdir()
    (tmp_path / "CMakeLists.txt").write_text(build)
    (tmp_path / "lib/core/place.h").write_text(
        f"__device__ inline int place_of(int i) {{ return {place}; }}\n"
    )
    path = tmp_path / "lib/user/fill.cu"
    path.write_text(KERNEL)
    report = check_text(path, KERNEL)
    assert [kernel.verdict for kernel in report.kernels] == [wanted]
    assert any("WITH_CUDA" in error.message for error in report.errors)


@pytest.mark.parametrize(("place", "wanted"), [("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)])
def test_a_text_whose_kernels_all_stand_under_a_macro_is_read_with_it(
    tmp_path: Path, place: str, wanted: Verdict
) -> None:
    (tmp_path / "Makefile").write_text("")
    (tmp_path / "place.h").write_text(f"__device__ inline int place_of(int i) {{ return {place}; }}\n")
    path, text = tmp_path / "fill.cu", KERNEL.replace("WITH_CUDA", "BUILD_FAST_FILL").replace("lib/core/", "")
    report = check_text(path, text)
    assert [kernel.verdict for kernel in report.kernels] == [wanted]
    assert any("BUILD_FAST_FILL" in error.message for error in report.errors)


@pytest.mark.parametrize(
    "condition", ["if 0", "ifdef USE_ROCM", "if defined(A) || defined(B)", "ifdef __HIP__"]
)
def test_a_branch_of_other_platforms_or_of_nobody_is_not_taken(condition: str) -> None:
    text = KERNEL.replace("ifdef WITH_CUDA", condition).replace('#include "lib/core/place.h"', "")
    report = check_text(Path("fill.cu"), text.replace("place_of(i)", "i / 2"))
    assert not report.kernels


def test_a_branch_beside_kernels_that_are_read_is_not_taken() -> None:
    other = "__global__ void other(float* out) { out[threadIdx.x] = 1; }\n"
    text = other + KERNEL.replace("WITH_CUDA", "BUILD_FAST_FILL").replace('#include "lib/core/place.h"', "")
    report = check_text(Path("fill.cu"), text)
    assert [kernel.name for kernel in report.kernels] == ["other"]
