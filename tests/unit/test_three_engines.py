"""Generated kernels on which three engines must agree: enumeration, Z3, and a plain interpreter.

The interpreter (``exact.replay``) runs every thread alone on plain integers; every two threads are then
compared (races), and the lanes of every warp instruction counted by hand (wavefronts). Enumeration and the
solver share no code with it above the operators.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st
from kernel_notation import BID, TID, TIDY, UTID, Notation, listing
from property_settings import examples
from test_solve_properties import condition, index, lines, loop, races

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir import program as ir
from cuda_lsp.model import LaunchConfig, LaunchSource, Space, Status, Verdict
from cuda_lsp.static.diagnostics.banks import bank_reports
from cuda_lsp.static.diagnostics.races import race_findings
from cuda_lsp.static.exact.collide import collide
from cuda_lsp.static.exact.replay import Run, replay
from cuda_lsp.static.exact.threads import Thread
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.solver.solve import Budget, refine_kernel

GPU = GpuModel("small", (9, 0), banks=4, warp_size=4)
SHAPES = (((8, 1, 1), (1, 1, 1)), ((4, 2, 1), (1, 1, 1)), ((4, 1, 1), (2, 1, 1)))
Threads = list[tuple[Thread, Run]]


def threads_of(launch: LaunchConfig, warp_size: int = GPU.warp_size) -> list[Thread]:
    assert launch.grid is not None
    places = itertools.product(*(range(n) for n in reversed((*launch.block, *launch.grid))))
    return [
        Thread((x, y, z), (bx, by, bz), launch.block, launch.grid, warp_size)
        for bz, by, bx, z, y, x in places
    ]


def interpret(kernel: ir.Kernel, launch: LaunchConfig) -> Threads:
    """Every thread of the launch, run alone."""
    everything = frozenset(kernel.arrays)
    return [(thread, replay(kernel, thread, {}, everything)) for thread in threads_of(launch)]


def racing_lines(runs: Threads) -> set[tuple[int, int]]:
    sites = {a.site.range.start.line: a.site for _, run in runs for a in run.accesses}
    found: set[tuple[int, int]] = set()
    for (i, a), (j, b) in itertools.combinations_with_replacement(sorted(sites.items()), 2):
        if any(collide(x, y, (a, b)) for x, y in itertools.permutations(runs, 2)):
            found.add((i, j))
    return found


def wavefronts_by_hand(runs: Threads) -> dict[int, int]:
    """Line → worst wavefronts of a warp instruction; 4 bytes a lane, so one part a warp."""
    words: dict[object, set[int]] = defaultdict(set)
    for thread, run in runs:
        for a in run.accesses:
            if a.array.space is Space.SHARED:
                warp = thread.linear // GPU.warp_size
                touched = words[a.site.range.start.line, thread.bid, warp, a.rounds]
                touched |= {a.start // 4} if a.start >= 0 else set()  # below the array: no bank
    worst: dict[int, int] = {}
    for (line, *_), touched in words.items():
        banks = [sum(1 for word in touched if word % GPU.banks == bank) for bank in range(GPU.banks)]
        worst[line] = max(worst.get(line, 1), *banks)
    return worst


@st.composite
def statements(draw, n: Notation, arrays, names, depth) -> list:
    """Reads, writes, atomics and synchronisation of two arrays; loops come from the solver's generator."""
    result = []
    for _ in range(draw(st.integers(2, 4))):
        array = draw(st.sampled_from(arrays))
        kind = draw(st.sampled_from(["read", "write", "write", "atomic", "sync", "warp", "if", "loop"]))
        if kind == "read":
            result.append(n.read(array, draw(index(names))))
        elif kind == "write":
            result.append(n.write(array, draw(index(names))))
        elif kind == "atomic":
            result.append(n.atomic_add(array, draw(index(names))))
        elif kind == "sync":
            result.append(n.sync())
        elif kind == "warp":
            result.append(n.syncwarp())
        elif depth and kind == "if":
            place = draw(index(names))
            result.append(n.when(draw(condition(names)), n.write(array, place)))
        elif depth:
            result += draw(loop(n, array, names, 1, True, (), ()))
    return result


@st.composite
def cases(draw) -> tuple[ir.Kernel, LaunchConfig]:
    block, grid = draw(st.sampled_from(SHAPES))
    n = Notation()
    arrays = [n.shared("s", 64), n.globals("g")]
    names = [TID, TIDY, BID, UTID]
    kernel = n.kernel(*draw(statements(n, arrays, names, 2)))
    return kernel, LaunchConfig(block, grid, source=LaunchSource.FILE)


EXAMPLES = examples(40)


@EXAMPLES
@given(cases())
def test_enumeration_the_solver_and_the_interpreter_name_the_same_lines(case):
    kernel, launch = case
    expected = racing_lines(interpret(kernel, launch))
    trace = execute(kernel, launch, {}, GPU)
    enumerated = {lines(f) for f in race_findings(trace) if f.status is Status.PROVED}
    result = refine_kernel(kernel, [launch], GPU, Budget(kernel=3, query=0.5))
    solved = {lines(f) for f in races(result) if f.status is Status.PROVED}
    said = f"{launch.block} {launch.grid}\n{listing(kernel.body)}\n{trace.undecided} {result.reasons}"
    assert enumerated <= expected, said
    assert solved <= expected, said
    if not trace.undecided:
        assert enumerated == expected, said
    if not result.reasons:
        assert solved == expected, said
    if result.verdict is Verdict.RACE_FREE:
        assert not expected, said


@EXAMPLES
@given(cases())
def test_enumeration_and_the_interpreter_count_the_same_wavefronts(case):
    kernel, launch = case
    trace = execute(kernel, launch, {}, GPU)
    reported: dict[int, int] = {}
    for banks in bank_reports(trace):
        line = banks.site.range.start.line
        reported[line] = max(reported.get(line, 1), banks.report.ways)
    by_hand = wavefronts_by_hand(interpret(kernel, launch))
    assert reported == by_hand, f"{launch.block} {launch.grid}\n{listing(kernel.body)}"


def test_the_interpreter_tells_a_race_from_its_repair():
    n = Notation()
    s = n.shared("s", 64)
    racy = n.kernel(n.write(s, TID), n.read(s, TID + 1))
    clean = n.kernel(n.write(s, TID), n.sync(), n.read(s, TID + 1))
    launch = LaunchConfig((8, 1, 1), (1, 1, 1), source=LaunchSource.FILE)
    assert racing_lines(interpret(racy, launch)) == {(1, 2)}
    assert not racing_lines(interpret(clean, launch))
