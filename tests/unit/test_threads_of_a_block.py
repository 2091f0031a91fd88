"""Orders of tiles that no digits show: decided by the threads of a block, one by one."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

KERNEL = """
// cuda-lsp: assume gridDim.x == 1
__global__ void k(int* a, int n, int mode) {{
    int x = threadIdx.x, y = threadIdx.y;
    {body}
}}
"""
X, Y = 8, 32


def decided(body: str, seconds: float = 1.0, block: tuple[int, int, int] = (X, Y, 1)) -> SolverResult:
    launch = LaunchConfig(block, source=LaunchSource.FILE)
    return refine_kernel(
        lowered(KERNEL.format(body=body)), [launch], GpuModel("test", (9, 0)), Budget(seconds)
    )


@pytest.mark.parametrize(
    "body",
    [
        "a[n*n + (((y%8/2*4 + y/8)*2 + y%2) << 5) + 4*x] = 1;",
        "a[(n + (mode ? 256*(y/8) + 128*(y%2) + 32*(x/2) + 4*(y%8/2) + 4*((x%2 > 0) ? 4 : 0)"
        " : 32*y + 4*x)) >> 2] = 1;",
        "if (x < 4) a[n*n + y*4 + (x ^ y % 4)] = 1;",
        "if (y < 16) { a[n + x*16 + y] = 1; } else { a[n + 128 + x*16 + y%16] = 2; }",
    ],
)
def test_tiles_in_any_order_are_proved(body: str) -> None:
    result = decided(body)
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize(
    "body",
    [
        "a[n*n + (((y%8/2*4 + y/8)*2 + y%4) << 5) + 4*x] = 1;",
        "if (x < 5) a[n*n + y*4 + (x ^ y % 4)] = 1;",
        "if (y < 16) { a[n + x*16 + y] = 1; } else { a[n + 127 + x*16 + y%16] = 2; }",
        "a[n*n + (x ^ y)] = 1;",
    ],
)
def test_tiles_that_meet_are_not(body: str) -> None:
    assert decided(body).verdict is not Verdict.RACE_FREE


PARTS = ("x", "x*8", "y", "y*4", "(x%2)*16", "(x/2)*2", "(y%4)*8", "(y/4)*32", "(x ^ y)", "(x & 3)", "y%2")


@pytest.mark.parametrize("seed", range(6))
def test_what_meets_in_a_small_block_is_never_proved(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(6):
        address, guard = " + ".join(choose.sample(PARTS, 3)), choose.choice(("x < 3", "y < 4", "x < y", "1"))
        result = decided(f"if ({guard}) a[n*n + {address}] = 1;", 0.3, (4, 8, 1))
        live = [{"x": x, "y": y} for x in range(4) for y in range(8) if eval(guard, {}, {"x": x, "y": y})]
        places = [eval(address.replace("/", "//"), {}, here) for here in live]
        if result.verdict is Verdict.RACE_FREE:
            assert len(places) == len(set(places)), (address, guard)


ROUNDS = """
__global__ void k(const int* in, int n, int mode) {{
    __shared__ int s[4096];
    int t = threadIdx.x;
    {body}
}}
"""


def in_shared_memory(body: str, seconds: float = 1.0, block: int = 192) -> SolverResult:
    launch = LaunchConfig((block, 1, 1), source=LaunchSource.FILE)
    kernel = lowered(ROUNDS.format(body=body))
    return refine_kernel(kernel, [launch], GpuModel("test", (9, 0)), Budget(seconds))


@pytest.mark.parametrize(
    "body",
    [
        "for (int r = 0; r < 8; r++) s[t/2 + 1104*(t%2) + 98*r] = 1;",
        "if (t < 3) { int c = t + (t == 0 ? 192 : -3);"
        " for (int r = 0; r < 5; r++) s[(c + 3)/2 + 1104*(c & 1) + 196*r] = 1; }",
        "for (int r = 0; r < 4; r++) for (int q = 0; q < 3; q++) s[(t/3*4 + r)*9 + t%3*3 + q] = 1;",
    ],
)
def test_rounds_of_short_loops_are_looked_at_one_by_one(body: str) -> None:
    result = in_shared_memory(body)
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize(
    "body",
    [
        "for (int r = 0; r < 8; r++) s[t/2 + 1104*(t%2) + 95*r] = 1 + t;",
        "for (int r = 0; r < 13; r++) s[t/2 + 1104*(t%2) + 96*r] = 1 + t;",
        "for (int r = 0; r < 4; r++) for (int q = 0; q < 4; q++) s[(t/3*4 + r)*9 + t%3*3 + q] = 1 + t;",
        "for (int r = 0; r < n; r++) s[t + 192*(r % 3)] = s[t + 192*(r % 3) + 1];",
    ],
)
def test_rounds_that_meet_are_not(body: str) -> None:
    assert in_shared_memory(body).verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize("seed", range(4))
def test_what_meets_in_rounds_of_a_small_block_is_never_proved(seed: int) -> None:
    choose = random.Random(seed)
    parts = ("t", "t*3", "t/2*4", "t%2*16", "(t^r)", "(t-4)/2+2", "(t-4)%3+2")
    parts += ("r", "r*8", "r*7", "r/2*24", "q*2", "q*64")
    for _ in range(6):
        address = " + ".join(choose.sample(parts, 3))
        rounds, more = choose.choice((2, 3, 5)), choose.choice((1, 2))
        loops = f"for (int r = 0; r < {rounds}; r++) for (int q = 0; q < {more}; q++)"
        result = in_shared_memory(f"{loops} s[{address}] = 1 + t;", 0.3, 8)
        python = address.replace("(t-4)/2", "int((t-4)/2)").replace("(t-4)%3", "fmod(t-4, 3)")
        python = python.replace("t/2", "t//2").replace("r/2", "r//2")
        seen: dict[int, int] = {}
        meet = False
        for t, r, q in itertools.product(range(8), range(rounds), range(more)):
            place = eval(python, {"fmod": math.fmod}, {"t": t, "r": r, "q": q})
            meet = meet or seen.setdefault(place, t) != t
        if result.verdict is Verdict.RACE_FREE:
            assert not meet, (address, rounds, more)


def test_what_one_thread_does_asks_nobody() -> None:
    loop = "for (int i = 0; i < n; i++) s[in[i] & 15] += s[i & 7];"
    result = in_shared_memory("if (t == 0) { s[n & 7] = 1; " + loop + " }")
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert result.stats.queries == 0


@pytest.mark.parametrize("guard", ["t == n", "t == 0 || t == 1", "t <= 1", "t != 1"])
def test_what_may_be_done_by_another_thread_is_no_business_of_one(guard: str) -> None:
    body = f"if (t == 0) s[n & 7] = 1; if ({guard}) s[n & 7] = 2 + t;"
    assert in_shared_memory(body).verdict is not Verdict.RACE_FREE
