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
