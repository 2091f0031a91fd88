"""Addresses of mixed radix: what is proved, what is not, and that nothing false is."""

from __future__ import annotations

import random

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

GPU = GpuModel("test", (9, 0))
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x; "


def answer(body: str, block: int = 64, grid: int | None = None, seconds: float = 2.0) -> SolverResult:
    text = "__global__ void k(float* a, const int* ids, int A, int B, int C, int D) { float4 v = {}; "
    text += INDEX + body + " }"
    launch = LaunchConfig((block, 1, 1), (grid, 1, 1) if grid else None, source=LaunchSource.FILE)
    return refine_kernel(lowered(text), [launch], GPU, Budget(kernel=seconds, query=0.1))


PROVED = {
    "permutation": "if (i < A*B*C*D) { int b = i / (A*B*C), r = i % (A*B*C); int h = r / (B*C); r %= B*C;"
    " a[b*A*B*C + (r/C)*A*C + h*C + r%C] = 1; }",
    "three parts": "if (i < A*B*C) { int b = i / (B*C), r = i % (B*C); float* p = a + b*3*B*C + r;"
    " p[0] = 1; p[B*C] = 2; p[2*B*C] = 3; }",
    "remainders of quotients": "if (i < A*B*C) { int t = (i / B) % C; a[(i/(B*C))*B*C + (i%B)*C + t] = 1; }",
    "rows of each thread": "int t = i % A; for (int j = 0; j <= t; j++) a[(i/A)*A*A + t*A + j] += 1;",
    "heads": "int s = C / B; for (int j = 0; j < s; j++) a[(i/B)*C + (i%B)*s + j] = 1;",
    "columns of a grid-stride loop": "for (int s = i; s < A; s += blockDim.x * gridDim.x)"
    " for (int j = 0; j < B; j++) a[j*A + s] = 1;",
    "padded rows": "if (threadIdx.x < A && blockIdx.x < B)"
    " for (int z = 0; z < C; z++) a[z*(A+8)*(B+8) + blockIdx.x*(A+8) + threadIdx.x] = 1;",
    "taken off one after the other": "if (i < A*B*C) { int t = i, z = t % C; t = (t - z) / C; int y = t % B;"
    " t = (t - y) / B; a[y*A*C + (t % A)*C + z] = 1; }",
    "quotients of remainders": "a[(i/(A*B*C))*A*B*C + ((i%(B*C))/C)*A*C + ((i%(A*B*C))/(B*C))*C + i%C] = 1;",
    "the highest is what is left": "if (i < A*B) a[(i%B)*A + (i/B)%A] = 1;",
    "a rotated row": "if (threadIdx.x < A && blockIdx.x < B)"
    " a[((blockIdx.x + C) % B)*A + (threadIdx.x + D) % A] = 1;",
    "quotients of remainders of known size": "a[(i/(16*A*B))*16*A*B + ((i%(16*A))/16)*16*B"
    " + ((i%(16*A*B))/(16*A))*16 + i%16] = 1;",
    "columns of 32": "if (4*threadIdx.x < A && blockIdx.x < A) a[blockIdx.x*32 + (threadIdx.x/8)*32*A"
    " + (threadIdx.x%8)*4] = 1;",
    "layers of columns of 32": "if (4*threadIdx.x < A) a[blockIdx.x*((A+31)/32)*8 + (threadIdx.x/8)*8"
    " + threadIdx.x%8] = 1;",
    "rows of vectors": "int j = 4 * threadIdx.x;"
    " if (j < A) ((float4*)(a + A * blockIdx.x))[threadIdx.x] = v;",
    "rows of vectors in a loop": "for (int j = 4 * threadIdx.x; j < A; j += 256)"
    " *(float4*)(a + A * blockIdx.x + j) = v;",
    "an image that is turned": "if (i < A*B*C) { int r = i % (A*B);"
    " a[i/(A*B)*A*B + (A-1 - r/B)*B + B-1 - r%B] = 1; }",
    "pixels of tiles": "int t = i / (D*D), y = t/A%B*D + i/D%D, x = t%A*D + i%D;"
    " if (y < C && x < C && i < A*B*D*D) a[(C-1 - y)*C + x] = 1;",
    "a tile in a grid-stride loop": "for (int s = i; s < A*B; s += blockDim.x * gridDim.x)"
    " for (int y = 0; y < C; y++) for (int x = 0; x < D; x++) a[s/B*B*C*D + (y*D + x)*B + s%B] = 1;",
    "a pointer that moves with the loops": "for (int s = i; s < A*B; s += blockDim.x * gridDim.x) {"
    " float* p = a + s/B*B*C*D + s%B; for (int y = 0; y < C; y++) for (int x = 0; x < D; x++)"
    " { *p = 1; p += B; } }",
    "what memory bounds, in layers": "if (i < A*B) for (int k = 0; k < ids[i]; k++)"
    " a[((i/B)*B + (B-1 - i%B))*C + k] = 1;",
    "known extents": "if (i < 645120)"
    " a[(i / 640) % 42 + i / 26880 * 42 + (i / 32) % 20 * 1008 + i % 32 * 20160] = 1;",
}

NOT_PROVED = {
    "one base too small": "if (i < A*B*C) a[(i/(B*C))*B*C + (i%B)*C + (i/B)%A] = 1;",
    "a digit forgotten": "if (i < A*B*C) a[(i/(B*C))*B*C + (i%B)*C] = 1;",
    "a column more than the row": "int t = i % A; for (int j = 0; j <= A; j++) a[i*A + j] = 1;",
    "a quotient of something else": "a[(i/(A*B))*A + i%A] = 1;",
    "taken off, and more than there are": "if (i < A*B*C + 1) { int t = i, z = t % C; t = (t - z) / C;"
    " int y = t % B; t = (t - y) / B; a[y*A*C + (t % A)*C + z] = 1; }",
    "taken off by another number": "if (i < A*B*C) { int t = i, z = t % C; t = (t - z) / B; int y = t % B;"
    " t = (t - y) / B; a[y*A*C + (t % A)*C + z] = 1; }",
    "a quotient of another remainder": "a[(i/(A*B*C))*A*B*C + ((i%(B*A))/C)*A*C + ((i%(A*B*C))/(B*C))*C"
    " + i%C] = 1;",
    "the highest without a limit": "a[(i%B)*A + (i/B)%A] = 1;",
    "two parts overlap": "if (i < A*B) { a[(i/B)*2*B + i%B] = 1; a[(i/B)*2*B + i%B + B - 1] = 2; }",
    "columns of 32, and one too few": "if (4*threadIdx.x < A) a[blockIdx.x*((A+30)/32)*8"
    " + (threadIdx.x/8)*8 + threadIdx.x%8] = 1;",
    "columns of 16, and rows of 32": "if (2*threadIdx.x < A) a[blockIdx.x*((A+31)/32)*8"
    " + (threadIdx.x/8)*8 + threadIdx.x%8] = 1;",
    "a row that is rotated too far": "if (threadIdx.x <= A && blockIdx.x < B)"
    " a[((blockIdx.x + C) % B)*A + (threadIdx.x + D) % A] = 1;",
    "a row that is rotated backwards": "if (threadIdx.x < A && blockIdx.x < B)"
    " a[((blockIdx.x + C) % B)*A + (threadIdx.x - D) % A] = 1;",
    "rows that are rotated by themselves": "if (threadIdx.x < A && blockIdx.x < B)"
    " a[((blockIdx.x + threadIdx.x) % B)*A + (2*threadIdx.x + D) % A] = 1;",
    "rows of vectors that reach further": "int j = 2 * threadIdx.x; if (j < A)"
    " ((float4*)(a + A * blockIdx.x))[threadIdx.x] = v;",
    "an image that is turned, and one row more": "if (i < A*B*C) { int r = i % (A*B+B);"
    " a[i/(A*B+B)*A*B + (A-1 - r/B)*B + B-1 - r%B] = 1; }",
    "from both ends": "if (threadIdx.x < A) { a[blockIdx.x*A + threadIdx.x] = 1;"
    " a[blockIdx.x*A + A-1 - threadIdx.x] = 2; }",
    "up and down": "if (i < A*B) a[(A-1 - i/B)*B + i/B + i%B] = 1;",
    "pixels of tiles, rows too narrow": "int t = i / (D*D), y = t/A%B*D + i/D%D, x = t%A*D + i%D;"
    " if (y < C && x < C && i < A*B*D*D) a[(C-1 - y)*(C-1) + x] = 1;",
    "pixels of tiles, no border": "int t = i / (D*D), y = t/A%B*D + i/D%D, x = t%A*D + i%D;"
    " if (y < C && i < A*B*D*D) a[(C-1 - y)*C + x] = 1;",
    "tiles that are too small": "int t = i / (D*D), y = t/A%B*D + i/D%D, x = t%A*(D-1) + i%D;"
    " if (y < C && x < C && i < A*B*D*D) a[(C-1 - y)*C + x] = 1;",
    "a tile that reaches into the next": "for (int s = i; s < A*B; s += blockDim.x * gridDim.x)"
    " for (int y = 0; y <= C; y++) for (int x = 0; x < D; x++) a[s/B*B*C*D + (y*D + x)*B + s%B] = 1;",
    "a pointer that moves too far": "for (int s = i; s < A*B; s += blockDim.x * gridDim.x) {"
    " float* p = a + s/B*B*C*D + s%B; for (int y = 0; y < C; y++) for (int x = 0; x <= D; x++)"
    " { *p = 1; p += B; } }",
    "what memory bounds, turned by another row": "if (i < A*B) for (int k = 0; k < ids[i]; k++)"
    " a[((i/B)*B + (B-1 - i%A))*C + k] = 1;",
    "weights that are no multiples": "a[(i%2)*2 + ((i/2)%2)*3 + (i/4)*1] = 1;",
}


@pytest.mark.parametrize("name", PROVED)
def test_proved(name: str):
    result = answer(PROVED[name])
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize("name", NOT_PROVED)
def test_not_proved(name: str):
    assert answer(NOT_PROVED[name], seconds=0.5).verdict is not Verdict.RACE_FREE


def test_what_is_taken_to_be_positive_is_told():
    told = answer(PROVED["remainders of quotients"]).assumptions
    assert any("is positive" in text for text in told)


DIGITS = (
    "(threadIdx.x+C)%A",
    "(i+B)%C",
    "(A-1-i%A)",
    "(B-1-(i/A)%B)",
    "((i%(4*A))/4)",
    "(i%4)",
    "i%A",
    "i/A",
    "(i/A)%B",
    "i/(A*B)",
    "i%(A*B)",
    "(i%(A*B))/A",
    "threadIdx.x",
    "blockIdx.x",
    "i%3",
)
WEIGHTS = ("1", "A", "B", "A*B", "B*C", "C", "4", "2*A", "3", "A*3", "(A+1)")
GUARDS = ("true", "i < A", "i < A*B", "threadIdx.x < A", "blockIdx.x < B", "i < A*B*C")


def collides(guard: str, address: str) -> bool:
    """Whether two of 12 threads in 3 blocks meet for some small positive parameters."""
    python = compile(address.replace("/", "//"), "address", "eval")
    condition = compile(guard.replace("true", "True").replace("/", "//"), "guard", "eval")
    for number in range(27):
        seen: set[int] = set()
        for thread in range(12):
            names = {
                "A": 1 + number % 3, "B": 1 + number // 3 % 3, "C": 1 + number // 9,
                "i": thread, "T": thread % 4, "K": thread // 4,
            }  # fmt: skip
            if not eval(condition, {}, names):
                continue
            where = eval(python, {}, names)
            if where in seen:
                return True
            seen.add(where)
    return False


@pytest.mark.parametrize("seed", range(5))
def test_no_colliding_address_is_proved(seed: int):
    choose = random.Random(seed)
    for _ in range(8):
        terms = [
            f"({choose.choice(DIGITS)})*{choose.choice(WEIGHTS)}" for _ in range(choose.choice((2, 2, 3)))
        ]
        address, guard = " + ".join(terms), choose.choice(GUARDS)
        result = answer(f"if ({guard}) a[{address}] = 1;", block=4, grid=3, seconds=0.3)
        if result.verdict is Verdict.RACE_FREE and not any("rows of" in x for x in result.assumptions):
            short = [x.replace("threadIdx.x", "T").replace("blockIdx.x", "K") for x in (guard, address)]
            assert not collides(*short), (guard, address)


def test_an_offset_that_may_be_0_is_only_free_if_rows_do_not_overlap():
    result = answer("if (i < 64) { a[i + A] = 1; a[i] = 2; }")
    if result.verdict is Verdict.RACE_FREE:  # else the time was short
        assert result.assumptions == ("rows of `A` elements do not overlap",)


GRID = """
__global__ void k(float* a, int A, int B, int C, int D) {{
    int x = blockIdx.x, y = blockIdx.y, i = threadIdx.x;
    {body}
}}
"""


def in_a_grid(body: str, seconds: float = 2.0) -> SolverResult:
    launch = LaunchConfig((64, 1, 1), source=LaunchSource.FILE)
    return refine_kernel(lowered(GRID.format(body=body)), [launch], GPU, Budget(kernel=seconds, query=0.1))


@pytest.mark.parametrize(
    ("body", "taken"),
    [
        ("for (int j = i; j < C*C; j += 64) a[(x*A*B + y)*C*C + j] = 1;", "rows of `A*B` elements"),
        (
            "int z = blockIdx.z; for (int r = x; r < B; r += gridDim.x)"
            " if (i < C) a[((y*A + z)*B + r)*C + i] = 1;",
            "rows of `A` elements",
        ),
        ("for (int j = i; j < 8; j += 32) a[(x*A + y)*8 + j] = 1;", "rows of `A` elements"),
        ("int z = blockIdx.z; if (i < D) a[((z*A + y)*B + x)*D + i] = 1;", "rows of `B` elements"),
    ],
)
def test_blocks_stay_within_the_rows_that_they_make(body: str, taken: str):
    result = in_a_grid(body)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert any(taken in text for text in result.assumptions)


SHORT = 0.15
"""What is right of these takes no more."""
HEADS = "for (int j = i; j < B*C; j += 64) a[{plane} + ((x/A*B + j/C)*A + x%A)*C + j%C] = 1;"


@pytest.mark.parametrize(
    "body",
    [
        HEADS.format(plane="y*D"),
        "for (int j = i; j < A*B; j += 64) a[y*D + x*A*B + j%B*A + j/B] = 1;",
    ],
)
def test_numbers_of_several_digits_stay_within_their_plane(body: str):
    result = in_a_grid(body, seconds=SHORT)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert [text for text in result.assumptions if "rows" in text] == ["rows of `D` elements do not overlap"]


@pytest.mark.parametrize(
    "body",
    [
        HEADS.format(plane="y/2*D"),
        HEADS.format(plane="y%A*D"),
        HEADS.format(plane="1000*y"),  # of a number that is not granted
        HEADS.format(plane="y*D").replace("j < B", "j <= B"),
        HEADS.format(plane="y*D").replace("x/A*B + j/C", "j/C"),
        HEADS.format(plane="y*D").replace("j/C)*A + x%A", "j/C)*A"),
        "if (D == A*B*C) " + HEADS.format(plane="y*D"),  # the source says else
        HEADS.format(plane="y*D") + HEADS.format(plane="y*D + C").replace("= 1", "= 2"),
    ],
)
def test_planes_that_the_program_breaks_are_not_taken_for_granted(body: str):
    assert in_a_grid(body, seconds=SHORT).verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "if (y <= A*B) for (int j = i; j < C*C; j += 64) a[(x*A*B + y)*C*C + j] = 1;",  # the source says else
        "if (A > 7) for (int j = i; j < C*C; j += 64) a[(x*A*B + y)*C*C + j] = 1;",
        "for (int j = i; j <= C*C; j += 64) a[(x*A*B + y)*C*C + j] = 1;",
        "if (i < C) { a[(x*A*B + y)*C + i] = 1; a[(x*A*B + y)*C + i + 1] = 2; }",
        "int z = blockIdx.z; if (i < C) a[(x*A*B + 2*y + z)*C + i] = 1;",
    ],
)
def test_rows_of_blocks_that_the_program_breaks_are_not_taken_for_granted(body: str):
    assert in_a_grid(body, seconds=0.5).verdict is not Verdict.RACE_FREE
