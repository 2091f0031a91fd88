"""Orders of tiles that no digits show: decided by the threads of a block, one by one."""

from __future__ import annotations

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
