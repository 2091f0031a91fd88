"""Which text of host code is read, and what that means for launches and constants."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.frontend.host.host_code import HostCode
from cuda_lsp.frontend.host.preprocessor import Preprocessor, State, directives
from cuda_lsp.model import LaunchSource, Status
from cuda_lsp.static.analyze import check_text


def states(text: str, *definitions: str) -> list[State]:
    walk = Preprocessor(lambda where, name: None)
    walk.define(definitions)
    lines = directives(text)
    walk.walk(Path("a.cu"), lines)
    return [s for line, s in zip(lines, walk.states[Path("a.cu")], strict=True) if line.word != "endif"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("if 0", False),
        ("if 1", True),
        ("ifdef A", True),
        ("ifndef A", False),
        ("if A == 3 && !defined(B)", True),
        ("if defined A && A > 3", False),
        ("if UNDEFINED", False),
        ("if (A << 1) + 0x2 == 8 /* comment */", True),
        ("if A ? 0 : 1", False),
        ("if __GNUC__ > 4", None),
        ("if __GNUC__ > 4 && 0", False),
        ("if __GNUC__ > 4 || A", True),
        ("ifdef __CUDA_ARCH__", False),
        ("ifdef __CUDACC__", True),
        ("if defined(__HIPCC__)", False),
        ("if __has_include(<x>)", None),
        ("if LIKE(A)", None),
        ("if A \\\n  == 3", True),
        ("if A ==", None),
    ],
)
def test_conditions_are_those_of_the_host(condition: str, expected: State) -> None:
    assert states(f"#{condition}\nint x;\n#endif\n", "A=3") == [expected]


def test_one_branch_of_a_chain_is_read() -> None:
    text = "#if A == 1\n#elif A == 3\n#elif A > 0\n#else\n#endif\n"
    assert states(text, "A=3") == [False, True, False, False]
    assert states(text) == [False, False, False, True]
    assert states(text.replace("A == 1", "__GNUC__"), "A=3") == [None, None, False, False]


def test_what_an_open_branch_defines_is_open() -> None:
    text = "#if __GNUC__\n#define N 1\n#endif\n#ifdef N\n#endif\n#undef N\n#ifdef N\n#endif\n"
    assert states(text) == [None, None, None, True, False]


def test_an_include_that_is_left_out_defines_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("#define N 64\nconst int M = 8;\n")
    text = '#if {}\n#include "a.h"\n#else\n#define N 32\nconst int M = 4;\n#endif\n'
    text += "void f() {{ k<<<M, N>>>(); }}\n"
    for taken, expected in ((1, (64, 8)), (0, (32, 4))):
        (site,) = HostCode(tmp_path / "a.cu").launches(text.format(taken))
        assert site.block == (expected[0], 1, 1) and site.grid == (expected[1], 1, 1)


def test_constants_of_doubtful_branches_are_not_known_behind_them() -> None:
    text = """#if __GNUC__ > 4
const int N = 64;
void f() { k<<<1, N>>>(); }
#else
const int N = 32;
#endif
void g() { k<<<1, N>>>(); }
"""
    inside, behind = HostCode(Path("a.cu")).launches(text)
    assert inside.block == (64, 1, 1)
    assert behind.block is None


KERNEL = """__global__ void k(int* a, int n) {
    __shared__ int s[512];
    s[threadIdx.x % 512] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] = s[threadIdx.x % 512] + n;
}
"""


def test_a_launch_that_is_left_out_is_only_a_guess() -> None:
    text = KERNEL + "void go(int* a) {\n#if 0\n    k<<<1, 1024>>>(a, 7);\n#endif\n}\n"
    (kernel,) = check_text(Path("a.cu"), text, Settings(solver=False)).kernels
    assert kernel.launches[0].source is LaunchSource.LEFT_OUT
    assert kernel.launches[0].assumed
    assert not [f for f in kernel.findings if f.kind and f.status is Status.PROVED]


def test_constants_hold_only_where_left_out_launches_agree() -> None:
    one = HostCode(Path("a.cu")).launches(
        "void f() {\n#if 0\nk<<<1, 64>>>(3);\n#endif\nk<<<1, 32>>>(4);\n}\n"
    )
    assert [(site.left_out, site.block, dict(site.arguments)) for site in one] == [
        (False, (32, 1, 1), {0: 4}),
        (True, (64, 1, 1), {0: 3}),
    ]
    assert one[1].site is not None and one[1].site.range.start.line == 3


AMONG_ARGUMENTS = """
__global__ void k(int* a, int pitch, int n) { a[threadIdx.x * pitch] = n; }
void run(int* a, int n) {
    int pitch = 80;
    k<<<1, 64>>>(a,
#COND
                 pitch,
#endif
                 n);
}
"""


@pytest.mark.parametrize(("condition", "known"), [("ifndef FIXED", {1: 80}), ("ifdef UNTOLD_1", {})])
def test_a_condition_may_stand_among_the_arguments(condition: str, known: dict[int, int]) -> None:
    (site,) = HostCode(Path("a.cu")).launches(AMONG_ARGUMENTS.replace("COND", condition))
    assert dict(site.arguments) == known
