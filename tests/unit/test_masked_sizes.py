"""``x & (size - 1)`` beside ``x``: two digits of one number for powers of two, which is told."""

from __future__ import annotations

import itertools
import random

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

KERNEL = """
__global__ void k(float* a, const float* in, unsigned s, unsigned w, unsigned n) {{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    {body}
}}
"""


def decided(
    body: str, seconds: float = 1.0, block: int = 128, grid: tuple[int, int, int] | None = None
) -> SolverResult:
    launch = LaunchConfig((block, 1, 1), grid, source=LaunchSource.FILE)
    return refine_kernel(
        lowered(KERNEL.format(body=body)), [launch], GpuModel("test", (9, 0)), Budget(seconds)
    )


PLACE = "unsigned p = 2 * i - (i & (s - 1));"


@pytest.mark.parametrize(
    "body",
    [
        f"{PLACE} float x = a[p], y = a[p + s]; a[p] = x + y; a[p + s] = x - y;",
        f"if (i < n) {{ {PLACE} a[p] = in[p]; }}",
        "unsigned r = i & (s - 1); unsigned p = 4 * (i - r) + r; a[p] = 1; a[p + s] = 2; a[p + 3 * s] = 3;",
        "unsigned r = i & (s / 32 - 1); a[(i - r) * 64 / 32 + r] = 1;",
        f"if (s < w / 2) {{ {PLACE} if ((i & (w / 2 - 1)) >= s) {{ a[p - s] = 1; a[p] = 2; }} }}",
    ],
)
def test_places_of_a_butterfly_are_their_threads_own(body: str) -> None:
    result = decided(body)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert any("`s`" in told and "a power of two" in told for told in result.assumptions)


@pytest.mark.parametrize(
    "body",
    [
        "unsigned p = 2 * i - (i & s); a[p] = i; a[p + s] = i;",
        "unsigned p = i - (i & (s - 1)); a[p] = i;",
        f"{PLACE} a[p] = i; a[p + s / 2] = i;",
        f"{PLACE} a[p] = i; a[p + 2 * s] = i;",
        "unsigned r = i & (s - 1); unsigned p = 4 * (i - r) + r; a[p] = i; a[p + 4 * s] = i;",
        "unsigned r = i & (s - 1), p = 2 * (i - r) + 2 * r + w + (r & 1); a[p] = i; a[p - w + s] = i;",
        f"if (s == 48) {{ {PLACE} a[p] = i; a[p + s] = i; }}",
    ],
)
def test_places_that_meet_are_not(body: str) -> None:
    assert decided(body).verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize("seed", range(8))
def test_what_meets_for_a_power_of_two_is_never_proved(seed: int) -> None:
    """Sums of the index, what is masked of it and the size, against all threads of a small grid."""
    choose = random.Random(seed)
    for _ in range(6):
        times, more = choose.choice((1, 2, 3, 4)), choose.randint(0, 3)
        masked = choose.choice((-3, -2, -1, 1, 2))
        one = f"{times} * i + {masked} * (i & (s - 1))".replace("+ -", "- ")
        other = f"{one} + {more} * s" if choose.random() < 0.7 else f"{one} + {more}"
        result = decided(f"a[{one}] = 1 + i; a[{other}] = 1 + i;", 0.4, 8, (4, 1, 1))
        if result.verdict is Verdict.RACE_FREE:
            assert not any(_meet((one, other), 1 << power) for power in range(7)), (one, other)


def _meet(addresses: tuple[str, str], size: int) -> bool:
    seen: dict[int, int] = {}
    for i, address in itertools.product(range(32), addresses):
        place = eval(address, {}, {"i": i, "s": size})
        if seen.setdefault(place, i) != i:
            return True
    return False
