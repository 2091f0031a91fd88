"""Addresses of steps that are rounded down, ``size * z / 4``, and of what stands between two of them."""

from __future__ import annotations

import random

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

GPU = GpuModel("test", (9, 0))


def answer(body: str, seconds: float = 1.0) -> SolverResult:
    text = "__global__ void k(char4* a, int A, int B) { int i = threadIdx.x, z = blockIdx.x;"
    launch = LaunchConfig((8, 1, 1), source=LaunchSource.FILE)
    kernel = lowered(text + " char4 v = {}; " + body + " }")
    return refine_kernel(kernel, [launch], GPU, Budget(kernel=seconds, query=0.1))


PROVED = {
    "threads between": "if (32 <= A) a[(A*z + 4*i) >> 2] = v;",
    "a row between": "if (4*i + 3 < A) a[(A*z + 4*i) >> 2] = v;",
    "tiles of 32 columns": "if (z < B && blockIdx.y < A/32)"
    " a[(A*B*blockIdx.z + 32*B*blockIdx.y + 32*z + 4*i) >> 2] = v;",
    "of two sizes": "if (i < A/4) for (int y = 0; y < B; y++) a[(A*B*z + 4*(A/4)*y + 4*i) >> 2] = v;",
}
NOT_PROVED = {
    "a step is too short": "if (31 <= A) a[(A*z + 4*i) >> 2] = v;",
    "two threads to a place": "if (32 <= A) a[(A*z + 2*i) >> 2] = v;",
    "a row that reaches into the next": "if (4*i <= A) a[(A*z + 4*i) >> 2] = v;",
    "two blocks to a step": "if (32 <= A) a[(A*(z/2) + 4*i) >> 2] = v;",
    "one row of tiles too many": "if (z < B && blockIdx.y <= A/32)"
    " a[(A*B*blockIdx.z + 32*B*blockIdx.y + 32*z + 4*i) >> 2] = v;",
    "rounded up": "if (4*i < A) for (int y = 0; y < B; y++) a[(A*B*z + 4*((A+3)/4)*y + 4*i) >> 2] = v;",
    "what goes down": "if (32 <= A) a[(A*B*z + 4*i) >> 2] = v;",  # for a B of 0, or below
    "beside another": "if (32 <= A) { a[(A*z + 4*i) >> 2] = v; a[(A*z + 4*i + 28) >> 2] = v; }",
}


@pytest.mark.parametrize("name", PROVED)
def test_steps_are_proved(name: str) -> None:
    result = answer(PROVED[name])
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize("name", NOT_PROVED)
def test_steps_that_meet_are_not(name: str) -> None:
    assert answer(NOT_PROVED[name], seconds=0.3).verdict is not Verdict.RACE_FREE


STEPS = ("(A*z >> 2)", "(A*B*z >> 1)", "(B*z >> 2)", "((A+1)*z >> 1)", "(2*A*z >> 2)", "(3*z >> 1)")
BETWEEN = ("i", "i%B", "B*(i%2)", "2*i", "i/2", "(A/2)*(i%2)", "(z%2)", "(A*B/4)*(i%2)")
GUARDS = ("true", "i < A", "4*i < A", "4*i < A*B", "2*i + 1 < B", "i < A/2", "i < 1", "z < B")


def meets(guard: str, address: str) -> bool:
    """Whether two of 8 threads in 5 blocks do for some small sizes."""
    python, condition = (
        compile(x.replace("/", "//").replace("true", "True"), "text", "eval") for x in (address, guard)
    )
    for number in range(144):
        sizes = {"A": 1 + number % 12, "B": 1 + number // 12}
        threads = ({**sizes, "i": i, "z": z} for i in range(8) for z in range(5))
        places = [eval(python, {}, x) for x in threads if eval(condition, {}, x)]
        if len(set(places)) < len(places):
            return True
    return False


@pytest.mark.parametrize("seed", range(8))
def test_no_steps_that_meet_are_proved(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(6):
        address = " + ".join((choose.choice(STEPS), *choose.sample(BETWEEN, choose.choice((1, 1, 2)))))
        guard = choose.choice(GUARDS)
        result = answer(f"if ({guard}) a[{address}] = v;", seconds=0.1)
        if result.verdict is Verdict.RACE_FREE and not any("rows of" in x for x in result.assumptions):
            assert not meets(guard, address), (guard, address)
