"""Generated kernels that read data: what both tiers together call race-free never races.

Values come from an array that nothing writes and from a parameter; they reach addresses and conditions.
The interpreter runs every thread with random contents and arguments: a race that it finds refutes a
``race-free``. ``CUDA_LSP_EXAMPLES`` sets how many kernels are tried.
"""

from __future__ import annotations

import random

from attrs import evolve
from hypothesis import event, given
from hypothesis import strategies as st
from kernel_notation import BID, LANE, TID, UTID, E, Notation, listing
from test_solve_properties import condition, index
from test_three_engines import EXAMPLES, Threads, racing_lines, threads_of

from cuda_lsp.config import Settings
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.types import INT32, Type
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.exact.replay import replay
from cuda_lsp.static.second_tier import refine_with_second_opinion
from cuda_lsp.static.solver.solve import Budget
from cuda_lsp.static.tiers import enumerate_kernel, refined

SETTINGS = Settings(enumeration_budget=20_000, solver_budget=20_000)
KINDS = ("fetch", "read", "write", "write", "atomic", "sync", "if", "if", "loop")
SHAPES = (((8, 1, 1), (1, 1, 1)), ((4, 1, 1), (3, 1, 1)), ((8, 1, 1), (40, 1, 1)), ((4, 1, 1), None))


@st.composite
def statements(draw, n: Notation, data, arrays, names, depth, barriers) -> list:
    result = []
    names = list(names)
    for _ in range(draw(st.integers(2, 4))):
        array = draw(st.sampled_from(arrays))
        kind = draw(
            st.sampled_from(["fetch", "read", "write", "write", "atomic", "sync", "if", "if", "loop"])
        )
        if kind == "fetch":
            v = n.var(f"v{n.ids}", INT32)
            result.append(n.read(data, draw(index(names)), v))
            names.append(E(v))
        elif kind == "read":
            result.append(n.read(array, draw(index(names))))
        elif kind == "write":
            result.append(n.write(array, draw(index(names))))
        elif kind == "atomic":
            result.append(n.atomic_add(array, draw(index(names))))
        elif kind == "sync" and barriers:
            result.append(n.sync())
        elif kind == "if" and depth:
            test = draw(condition(names))
            inner = draw(statements(n, data, arrays, names, depth - 1, False))
            result.append(n.when(test, *inner))
        elif kind == "loop" and depth:
            i = n.var(f"i{n.ids}")
            bound = draw(st.sampled_from([E(ir.const(3)), *names]))
            inner = draw(statements(n, data, arrays, [*names, E(i)], depth - 1, False))
            result += [n.let(i, 0), n.loop((E(i) < bound).and_(E(i) < 4), [n.let(i, E(i) + 1)], *inner)]
    return result


@st.composite
def cases(draw) -> tuple[ir.Kernel, LaunchConfig]:
    block, grid = draw(st.sampled_from(SHAPES))
    n = Notation()
    arrays = [n.shared("s", 64), n.globals("g")]
    data = n.globals("d", INT32)
    names = [TID, BID, LANE, UTID, n.param("n")]
    kernel = n.kernel(*draw(statements(n, data, arrays, names, 2, True)))
    return kernel, LaunchConfig(block, grid, source=LaunchSource.FILE)


def runs_with(kernel: ir.Kernel, launch: LaunchConfig, seed: int, least: int) -> Threads:
    """Every thread of a few blocks, run alone with random contents and an argument of ``least`` or more."""
    chance = random.Random(seed)
    salt, spread, n = chance.randrange(1 << 30), chance.choice((2, 8, 64)), chance.randrange(least, 10)

    def memory(array: ir.Array, offset: int, type: Type) -> int:
        return random.Random(salt ^ (offset * 2654435761)).randrange(spread)

    threads = [t for t in threads_of(launch, 32) if t.bid[0] < 2 or t.bid[0] + 1 == t.gdim[0]]
    everything = frozenset(kernel.arrays)
    return [(t, replay(kernel, t, {"n": n}, everything, memory)) for t in threads]


@EXAMPLES
@given(cases(), st.integers(0, 1 << 20))
def test_what_is_called_race_free_never_races(case, seed):
    kernel, launch = case
    kernel = evolve(kernel, launches=(launch,))
    first = enumerate_kernel(kernel, SETTINGS)
    report = first.report
    if not first.decided:
        budget = Budget(kernel=1, query=0.3)
        answer = refine_with_second_opinion(kernel, report.launches, SETTINGS.gpu, budget)
        report = refined(first, kernel, answer, SETTINGS)
    event(report.verdict.value)
    if report.verdict is not Verdict.RACE_FREE:
        return
    concrete = launch if launch.grid else LaunchConfig(launch.block, (3, 1, 1))
    least = 0 if "`n` is not negative" in report.assumptions else -2  # told with the verdict
    for attempt in range(4):
        found = racing_lines(runs_with(kernel, concrete, seed + attempt, least))
        assert not found, f"{launch.block} {launch.grid} {found}\n{listing(kernel.body)}"
