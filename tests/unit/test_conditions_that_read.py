"""``a && b`` where ``b`` reads memory is a choice between choices: what it says of sizes is seen."""

from __future__ import annotations

import pytest
from extract_kernels import lowered
from hypothesis import given
from hypothesis import strategies as st

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Level, Term

LAUNCH = LaunchConfig((16, 16, 1), source=LaunchSource.FILE)
KERNEL = """
struct Sizes {{ int width, height, depth; }};
__global__ void k(float* out, float* more, Sizes* d) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if ({condition}) {does}
}}
"""
PLACE = "out[y * d->width + x] = x;"


def decided(condition: str, does: str) -> SolverResult:
    kernel = lowered(KERNEL.format(condition=condition, does=does))
    return refine_kernel(kernel, [LAUNCH], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    "condition",
    [
        "x < d->width && y < d->height",
        "y < d->height && x < d->width",
        "x < d->width && y < d->height && d->depth > 1",
        "!(x >= d->width || y >= d->height)",
        "d->depth > 1 && (x < d->width && y < d->height)",
    ],
)
def test_a_width_that_memory_holds_keeps_rows_apart(condition: str) -> None:
    result = decided(condition, PLACE)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert result.assumptions == ()


@pytest.mark.parametrize(
    ("condition", "does"),
    [
        ("x <= d->width && y < d->height", PLACE),  # a column too many
        ("x < d->width || y < d->height", PLACE),
        ("x < d->height && y < d->width", PLACE),  # mixed up
        ("x < d->width && y < d->height", "out[y * d->height + x] = x;"),
        ("x < d->width && y < d->height", "{ out[y * d->width + x] = x; more[x] = y; }"),
        ("x < d->width && y < d->height", "{ out[y * d->width + x] = x; d->width = 3; }"),  # for others, too
        ("!(x < d->width && y < d->height)", PLACE),
    ],
)
def test_other_conditions_do_not(condition: str, does: str) -> None:
    assert decided(condition, does).verdict is not Verdict.RACE_FREE


A, B = (t.symbol(name, Level.THREAD, -4, 4) for name in "ab")
CONDITIONS = [t.lt(A, t.ZERO), t.lt(B, A), t.eq(B, t.ONE), t.le(A, B)]


def _choices(depth: int = 3) -> st.SearchStrategy[Term]:
    """Choices between choices of constants, over few conditions, which come again inside."""
    leaf = st.sampled_from([t.const(n) for n in (0, 1, 2)])
    if not depth:
        return leaf
    inner = _choices(depth - 1)
    return st.one_of(leaf, st.builds(t.ite, st.sampled_from(CONDITIONS), inner, inner))


@given(_choices(), st.integers(-4, 4), st.integers(-4, 4))
def test_conditions_of_choices_hold_where_the_chosen_number_says_so(choice: Term, a: int, b: int) -> None:
    known = {A: t.const(a), B: t.const(b)}
    value = t.substitute(choice, known).value
    for condition, holds in (
        (t.truth(choice), value != 0),
        (t.le(choice, t.ONE), value <= 1),
        (t.eq(t.scale(choice, 2), t.const(4)), value == 2),
    ):
        assert t.substitute(condition, known) is (t.TRUE if holds else t.FALSE)
