"""Headers that a build writes from templates: miniature projects of which no build was made."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.frontend.surroundings.made_headers import made_headers
from cuda_lsp.model import FileReport, Verdict
from cuda_lsp.static.analyze import check_text

SUM = """#include <mine/config.h>
__global__ void sum(const float* in, float* out) {
    __shared__ float s[LANES * 2];
    s[threadIdx.x] = in[threadIdx.x];
    if (LANES > 32) __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 1] + s[threadIdx.x ^ 32];
}
void go(const float* in, float* out) { sum<<<1, LANES>>>(in, out); }
"""


def project(root: Path, files: dict[str, str]) -> Path:
    (root / ".git").mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def checked(path: Path) -> FileReport:
    return check_text(path, path.read_text(), Settings(solver=False))


def verdict(path: Path) -> Verdict:
    return next(kernel.verdict for kernel in checked(path).kernels)


CONFIGURE = "configure_file(${CMAKE_SOURCE_DIR}/cmake/config.h.in ${BINARY_DIR}/include/mine/config.h)\n"


@pytest.mark.parametrize(
    ("lanes", "wanted"), [("64", Verdict.RACE_FREE), ("32", Verdict.RACY), ("128", Verdict.RACE_FREE)]
)
def test_a_template_with_values_that_cmake_sets_is_read(tmp_path: Path, lanes: str, wanted: Verdict) -> None:
    root = project(
        tmp_path,
        {
            "CMakeLists.txt": f"set(MINE_LANES {lanes})\n{CONFIGURE}",
            "cmake/config.h.in": "#pragma once\n#define LANES @MINE_LANES@\n",
            "src/sum.cu": SUM,
        },
    )
    report = checked(root / "src/sum.cu")
    assert [kernel.verdict for kernel in report.kernels] == [wanted]
    assert any("the build makes mine/config.h" in error.message for error in report.errors)


def test_what_nothing_sets_stays_undeclared(tmp_path: Path) -> None:
    root = project(
        tmp_path,
        {
            "CMakeLists.txt": CONFIGURE,
            "cmake/config.h.in": "#define LANES ${MINE_LANES}\n",
            "src/sum.cu": SUM,
        },
    )
    assert verdict(root / "src/sum.cu") is Verdict.UNDECIDED


def test_two_values_of_one_variable_are_none(tmp_path: Path) -> None:
    root = project(
        tmp_path,
        {
            "CMakeLists.txt": f"if(BIG)\n  set(L 64)\nelse()\n  set(L 32)\nendif()\n{CONFIGURE}",
            "cmake/config.h.in": "#define LANES @L@\n",
            "src/sum.cu": SUM,
        },
    )
    assert verdict(root / "src/sum.cu") is Verdict.UNDECIDED


@pytest.mark.parametrize(("said", "lines"), [("", "\n"), ("set(MINE_FAST ON)", "#define MINE_FAST\n")])
def test_a_switch_is_off_where_nothing_turns_it_on(tmp_path: Path, said: str, lines: str) -> None:
    root = project(
        tmp_path, {"CMakeLists.txt": f"{said}\n{CONFIGURE}", "cmake/config.h.in": "#cmakedefine MINE_FAST\n"}
    )
    (made,) = made_headers(root / "src/sum.cu", ["mine/config.h"])
    assert made.text == lines


def test_a_template_is_found_beside_the_file_of_cmake_that_names_it(tmp_path: Path) -> None:
    root = project(
        tmp_path,
        {
            "lib/CMakeLists.txt": "configure_file(config.h.in mine/config.h @ONLY)  # a comment\n",
            "lib/config.h.in": '#include "lanes.h"\n',
            "lib/lanes.h": "#define LANES 64\n",
            "lib/sum.cu": SUM,
        },
    )
    assert verdict(root / "lib/sum.cu") is Verdict.RACE_FREE


@pytest.mark.parametrize("name", ["other/config.h", "../mine/config.h", "config.hpp"])
def test_other_headers_are_not_made(tmp_path: Path, name: str) -> None:
    root = project(tmp_path, {"CMakeLists.txt": CONFIGURE, "cmake/config.h.in": ""})
    assert made_headers(root / "sum.cu", [name]) == ()


def test_a_header_that_is_there_is_the_one(tmp_path: Path) -> None:
    root = project(
        tmp_path,
        {
            "CMakeLists.txt": f"set(L 32)\n{CONFIGURE}",
            "cmake/config.h.in": "#define LANES @L@\n",
            "include/mine/config.h": "#define LANES 64\n",
            "src/sum.cu": SUM,
        },
    )
    assert verdict(root / "src/sum.cu") is Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"CMakeLists.txt": 'set(MINE_LANES 64 CACHE INTERNAL "lanes (of a block)")\n'}, Verdict.RACE_FREE),
        (
            {"CMakeLists.txt": "", "cmake/SetupCUDA.cmake": 'set(MINE_LANES "32" CACHE STRING "lanes")\n'},
            Verdict.RACY,
        ),
        (
            {"CMakeLists.txt": "set(MINE_LANES 64)\n", "cmake/SetupHIP.cmake": "set(MINE_LANES 32)\n"},
            Verdict.RACE_FREE,
        ),
    ],
)
def test_values_may_be_kept_in_the_cache_and_are_those_for_cuda(
    tmp_path: Path, files: dict[str, str], wanted: Verdict
) -> None:
    template = "#cmakedefine MINE_LANES @MINE_LANES@\n#define LANES MINE_LANES\n"
    files = {**files, "CMakeLists.txt": files["CMakeLists.txt"] + CONFIGURE}
    root = project(tmp_path, {**files, "cmake/config.h.in": template, "src/sum.cu": SUM})
    assert verdict(root / "src/sum.cu") is wanted


@pytest.mark.parametrize(("default", "wanted"), [("ON", Verdict.RACE_FREE), ("OFF", Verdict.RACY)])
def test_an_option_is_as_it_is_by_default(tmp_path: Path, default: str, wanted: Verdict) -> None:
    template = "#cmakedefine WIDE\n#ifdef WIDE\n#define LANES 64\n#else\n#define LANES 32\n#endif\n"
    text = f'option(WIDE "blocks of two warps" {default})\n{CONFIGURE}'
    root = project(tmp_path, {"CMakeLists.txt": text, "cmake/config.h.in": template, "src/sum.cu": SUM})
    assert verdict(root / "src/sum.cu") is wanted


@pytest.mark.parametrize(("lanes", "wanted"), [("64", Verdict.RACE_FREE), ("32", Verdict.RACY)])
def test_templates_of_folders_beside_are_read(tmp_path: Path, lanes: str, wanted: Verdict) -> None:
    files = {
        "CMakeLists.txt": f"set(MINE_LANES {lanes})\n",
        "lib/CMakeLists.txt": "configure_file(../include/config.h.in ../include/mine/config.h @ONLY)\n",
        "include/config.h.in": "#pragma once\n#define LANES @MINE_LANES@\n",
        "src/sum.cu": SUM,
    }
    assert verdict(project(tmp_path, files) / "src/sum.cu") is wanted


def test_templates_outside_of_the_project_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/config.h.in").write_text("#define LANES 64\n")
    (tmp_path / "here").mkdir()
    files = {
        "CMakeLists.txt": "configure_file(../other/config.h.in ../include/mine/config.h @ONLY)\n",
        "src/sum.cu": SUM,
    }
    assert verdict(project(tmp_path / "here", files) / "src/sum.cu") is Verdict.UNDECIDED
