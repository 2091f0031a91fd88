"""Addresses of which a condition chooses the layout: proved when each of them keeps threads apart."""

from __future__ import annotations

import random

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

GPU = GpuModel("test", (9, 0))
KERNEL = """
{told}__global__ void k(float* a, int A, int B, int C, int mode) {{
    int x = blockIdx.x, i = threadIdx.x;
    {body}
}}
"""
FOLLOWED = "// cuda-lsp: assume gridDim.x == B\n"
WHOLE = "// cuda-lsp: assume A % 8 == 0\n"


def decided(body: str, told: str = "", seconds: float = 2.0, threads: int = 64) -> SolverResult:
    launch = LaunchConfig((threads, 1, 1), source=LaunchSource.FILE)
    text = KERNEL.format(body=body, told=told)
    return refine_kernel(lowered(text), [launch], GPU, Budget(kernel=seconds, query=0.1))


PROVED = [
    ("if (i < A && x < B) a[blockIdx.y*A*B + (mode ? x*A + i : i*B + x)] = 1;", ""),
    ("if (i < A && x < B) a[(int)blockIdx.y*A*B + (mode == 0 ? x*A + i"
     " : mode == 1 ? i*B + x : (B-1-x)*A + i)] = 1;", ""),
    ("if (i < A) a[blockIdx.y*A*B + (mode ? x*A + i : i*B + x)] = 1;", FOLLOWED),
    ("if (4*i < A) a[(blockIdx.y*A*B + x*A + (mode ? 8*(i/2) + 4*(i%2) : 4*i)) / 4] = 1;", WHOLE + FOLLOWED),
    ("int r = (i%2 ? 4 : 0) + i/2%2 + 8*(i/4); if (x < B) a[mode ? x*128 + r : r*B + x] = 1;", ""),
    ("if (mode == 3) a[(mode > 2 ? x*64 : 0) + i] = 1;", ""),
    ("if (i < A && x < B) a[(x < 7 ? x - 7 + B : x - 7)*A + (i < 5 ? i - 5 + A : i - 5)] = 1;", ""),
    ("if (x < A) { int z = a[(i < 32 ? i + 96 : i + 200)*A + x]; a[(i < 32 ? i : i + 32)*A + x] = z; }", ""),
]  # fmt: skip

NOT_PROVED = [
    ("if (i < A && x < B) a[blockIdx.y*A*B + (mode ? x*A + i : i*B + x/2)] = 1;", ""),  # one layout is wrong
    ("if (i < A && x < B) a[blockIdx.y*A*B + (i < 32 ? x*A + i : i*B + x)] = 1;", ""),  # two layouts at once
    ("if (i < A) a[blockIdx.y*A*B + (mode ? x*A + i : i*(B-1) + x)] = 1;", FOLLOWED),
    ("if (4*i < A) a[(blockIdx.y*A*B + x*A + (mode ? 8*(i/2) + 4*(i%2) : 3*i)) / 4] = 1;", WHOLE + FOLLOWED),
    ("int r = (i%2 ? 4 : 0) + i/2%2 + 8*(i/8); if (x < B) a[mode ? x*128 + r : r*B + x] = 1;", ""),
    ("if (mode == 3) a[(mode > 3 ? x*64 : 0) + i] = 1;", ""),
    ("a[mode ? i : i / 2] = 1;", "// cuda-lsp: assume gridDim.x == 1\n"),
    # threads of two choices meet, and no two of one
    ("if (i < A && x < B) a[(x < 7 ? x - 7 + B : x - 7)*A + (i < 5 ? i - 5 + A : i - 4)] = 1;", ""),
    ("if (i < A && x < B) a[(x < 7 ? x - 7 + B : x - 6)*A + (i < 5 ? i - 5 + A : i - 5)] = 1;", ""),
    ("if (x < A) { int z = a[(i < 32 ? i + 96 : i + 200)*A + x]; a[(i < 32 ? i : i + 64)*A + x] = z; }", ""),
    ("if (x < A) { int z = a[(i < 32 ? i : i + 64)*A + x]; a[(i < 32 ? i + 96 : i + 200)*A + x] = z; }", ""),
]  # fmt: skip


@pytest.mark.parametrize(("body", "told"), PROVED)
def test_every_layout_keeps_threads_apart(body: str, told: str) -> None:
    result = decided(body, told)
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize(("body", "told"), NOT_PROVED)
def test_a_layout_that_does_not_is_not_proved(body: str, told: str) -> None:
    assert decided(body, told, seconds=0.5).verdict is not Verdict.RACE_FREE


PARTS = ("i*B", "x*A", "i", "x", "(i%2)*A", "(i/2)*2", "((i+C)%A)*B", "x*4", "(x+C)%B", "i*4")
CONDITIONS = ("mode", "i%2", "A < B", "x == 0", "mode == 2")
GUARDS = ("1", "i < A", "x < B", "i < A && x < B", "mode")


def collides(guard: str, address: str, followed: bool) -> bool:
    """Whether two of 4 threads in 2 blocks, or as many as ``B`` says, meet for some small sizes."""
    where, condition = (compile(text, text, "eval") for text in (address, guard))
    for number in range(3 * 3 * 3 * 3):
        names = {
            "A": 1 + number % 3, "B": 1 + number // 3 % 3, "C": number // 9 % 3, "mode": number // 27,
        }  # fmt: skip
        seen: set[int] = set()
        for x in range(names["B"] if followed else 2):
            for i in range(4):
                here = {**names, "x": x, "i": i}
                if not eval(condition, {}, here):
                    continue
                place = eval(where, {}, here)
                if place in seen:
                    return True
                seen.add(place)
    return False


@pytest.mark.parametrize("seed", range(4))
def test_no_layout_that_collides_is_proved(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(6):
        first, second = (" + ".join(choose.sample(PARTS, 2)) for _ in range(2))
        condition, guard, told = (
            choose.choice(CONDITIONS),
            choose.choice(GUARDS),
            choose.choice(("", FOLLOWED)),
        )
        result = decided(f"if ({guard}) a[{condition} ? {first} : {second}] = 1;", told, 0.3, threads=4)
        if result.verdict is Verdict.RACE_FREE and not any("rows of" in x for x in result.assumptions):
            python = f"({first}) if ({condition}) else ({second})".replace("/", "//")
            assert not collides(guard.replace("&&", "and"), python, bool(told)), (guard, python, told)
