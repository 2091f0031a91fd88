"""``i / (a*b)``, ``i / b % a`` and ``i % b``: digits of one number, also where each has its own stride."""

from __future__ import annotations

import random

import numpy as np
import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel
from cuda_lsp.static.solver.tactics.quotients import _nested  # pyright: ignore[reportPrivateUsage]
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.tabulate import tabulated
from cuda_lsp.static.symbolic.terms import Level

KERNEL = """
__global__ void k(int n, int A, int B, int s, int u, int v, float* out) {{
    {loop} {{
        {body}
    }}
}}
"""
ONCE = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n)"
STRIDES = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)"


def decided(body: str, loop: str) -> SolverResult:
    launch = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
    kernel = lowered(KERNEL.format(body=body, loop=loop))
    return refine_kernel(kernel, [launch], GpuModel("test", (9, 0)), Budget(1.5))


@pytest.mark.parametrize("loop", [ONCE, STRIDES])
@pytest.mark.parametrize(
    "body",
    [
        "out[s * (i / (A * B)) + u * (i / B % A) + v * (i % B)] = 1;",
        "out[s * (i / B / A) + u * (i / B % A) + v * (i % B)] = 1;",
        "out[u * (i / B % A) + v * (i / (B * A)) + s * (i % B)] += 1;",
    ],
)
def test_elements_of_a_tensor_are_their_threads_own(body: str, loop: str) -> None:
    result = decided(body, loop)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert any("rows of" in told for told in result.assumptions)


@pytest.mark.parametrize("loop", [ONCE, STRIDES])
@pytest.mark.parametrize(
    "body",
    [
        "out[s * (i / (A * B * 2)) + u * (i / B % A) + v * (i % B)] = i;",
        "out[s * (i / (A * A)) + u * (i / B % A) + v * (i % B)] = i;",
        "out[s * (i / (A * B)) + u * (i / A % B) + v * (i % B)] = i;",
        "out[s * (i / (A * B)) + v * (i % B)] = i;",
        "out[u * (i / B % A) + v * (i % B)] = i;",
        "out[s * (i / (A * B)) + u * (i / B % A) + v * (i / 2 % B)] = i;",
    ],
)
def test_elements_that_several_threads_have_are_not(body: str, loop: str) -> None:
    assert decided(body, loop).verdict is not Verdict.RACE_FREE


def test_a_round_that_others_make_too_is_not() -> None:
    loop = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x)"
    body = "out[s * (i / (A * B)) + u * (i / B % A) + v * (i % B)] = i;"
    assert decided(body, loop).verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize("seed", range(20))
def test_quotients_stay_the_same_numbers(seed: int) -> None:
    choose = random.Random(seed)
    symbols = [t.symbol(name, Level.GRID, -6, 6) for name in "xyzw"]
    columns = {
        x: np.array([choose.randint(1, 4) * choose.choice((-1, 1)) for _ in range(400)]) for x in symbols
    }
    x, a, b, c = symbols
    columns[x] = np.array([choose.randint(-6, 6) for _ in range(400)])
    divisors = [a, b, t.mul(a, b), t.mul(a, t.mul(b, c)), t.scale(t.mul(a, c), choose.choice((1, 2, 3)))]
    numbers = [t.mul(x, t.add(a, b)), t.add(x, t.scale(c, 3))]
    parts = [t.divide(n, d) for n in numbers for d in choose.sample(divisors, 3)]
    known = _nested(
        t.add(*(t.scale(part, choose.randint(1, 3)) for part in parts), t.remainder(numbers[0], a))
    )
    for part, nested in known.items():
        before, after = tabulated(part, columns), tabulated(nested, columns)
        assert before is not None and after is not None and (before == after).all()
