"""Launches pass what a host's template is instantiated for, where the program tells every instance."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.frontend.surroundings import units
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import Analyzer, check_text

KERNEL = """
__global__ void turn(float* out, const float* in, int n) {
  int x = blockDim.x * blockIdx.x + threadIdx.x, y = blockDim.y * blockIdx.y + threadIdx.y;
  if (x < n && y < n) out[y * n + x] = in[y * n + x];
  __syncthreads();
  if (x < n && y < n) out[x * n + y] += 1.0f;
}
template <int n, typename T> struct Grid { T cells[n][n]; };
template <typename T> struct Line { T cells[9]; };
"""
RUN = "template <int n> void run(float* a, float* b) { turn<<<dim3(4, 4), dim3(16, 16)>>>(a, b, n); }\n"
RUN_GRID = """template <int n, typename T> void run(float* a, const Grid<n, T>& grid) {
  turn<<<dim3(4, 4), dim3(16, 16)>>>(a, (const float*)grid.cells, n); }
"""


def verdict(text: str) -> Verdict:
    (kernel,) = check_text(Path("k.cu"), KERNEL + text).kernels
    return kernel.verdict


def passed(text: str) -> list[int | None]:
    return [site.arguments.get(2) for site in find_launches(Path("k.cu"), KERNEL + text)]


MORE = re.compile(r"(?<=run<)4|(?<= N = )(?:16|8)|(?<=Grid<)8")
FEW = [
    RUN + "int main() { run<4>(a, b); run<16>(b, a); }",
    RUN + "template <int m> void twice(float* a) { run<m>(a, a + 999); run<m - 1>(a, a + 999); }"
    "int main() { constexpr int N = 16; twice<N>(a); }",
    RUN_GRID + "int main() { Grid<8, float> grid; run(a, grid); }",
    RUN_GRID + "template <int n, typename T> void test(const Grid<n, T> &grid) { run(a, grid); }\n"
    "int main() { constexpr const int N = 8; Grid<N, float> grid; test(grid); }",
    "template <int n>\n__attribute__((noinline)) " + RUN.partition(">")[2] + "int main() { run<4>(a, b); }",
]


@pytest.mark.parametrize("text", FEW)
def test_what_every_instance_is_made_for_is_passed(text: str) -> None:
    assert verdict(text) is Verdict.RACE_FREE


@pytest.mark.parametrize("text", FEW)
def test_one_instance_for_more_than_a_block_holds_is_told(text: str) -> None:
    assert verdict(MORE.sub("64", text)) is Verdict.RACY


def test_each_instance_is_a_launch() -> None:
    assert passed(FEW[0]) == [4, 16]
    assert passed(FEW[1]) == [16, 15]


@pytest.mark.parametrize(
    "text",
    [
        RUN,  # nobody calls it
        RUN + "void api() { run<4>(a, b); }",  # of a library, which others may call
        RUN + "template void run<4>(float*, float*);",
        RUN + "int main() { run<4>(a, b); run<N>(a, b); }",
        RUN + "int main() { run<4>(a, b); auto other = run<64>; other(a, b); }",
        RUN + "#define RUN_LARGE run<64>(a, b)\nint main() { run<4>(a, b); RUN_LARGE; }",
        RUN + "void api() { run<64>(a, b); }\nint go() { run<4>(a, b); }\nint main() { go(); } void run(int);"
        "template <> void run<64>(float* a, float* b) { turn<<<dim3(4, 4), dim3(16, 16)>>>(a, b, 64); }",
        RUN + "template <int m> void api() { run<m>(a, b); }\nint main() { run<4>(a, b); }",
        RUN_GRID + "int main() { run(a, made()); }",
        RUN_GRID + "Grid<64, float> grid; int main() { { Grid<4, float> grid; } run(a, grid); }",
        RUN_GRID + "using Large = Grid<64, float>; int main() { Large grid; run(a, grid); }",
        RUN_GRID + "int main() { Grid<4, float> grid; run(a, grid); { auto grid = large(); run(a, grid); } }",
        RUN.replace("<int n>", "<int n = 64>") + "int main() { run<4>(a, b); run(a, b); }",
    ],
)
def test_where_an_instance_may_be_overlooked_nothing_is_known(text: str) -> None:
    assert set(passed(text)) <= {None, 64}
    assert None in passed(text)


def test_a_header_that_two_programs_include_is_instantiated_by_both(tmp_path: Path) -> None:
    header = tmp_path / "run.cuh"
    header.write_text(f"#pragma once\n{KERNEL}{RUN}")
    (tmp_path / "Makefile").write_text("all:\n")
    program = '#include "run.cuh"\nint main() { float *a = 0, *b = 0; run<4>(a, b); }\n'
    (tmp_path / "small.cu").write_text(program)

    def found() -> Verdict:
        report = Analyzer().check(header, header.read_text())
        return report.kernels[0].verdict

    assert found() is Verdict.RACE_FREE
    (tmp_path / "large.cu").write_text(program.replace("<4>", "<64>"))
    units.forget()
    assert found() is Verdict.RACY
