"""Generated kernels: the solver agrees with running every pair of threads on plain integers.

The reference is exhaustive: each thread of the block is replayed alone (``exact.replay``, exact machine
arithmetic, no symbols) and every two threads' accesses are compared. Both must name the same lines.
"""

from __future__ import annotations

import itertools

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from kernel_notation import TID, UTID, E, Notation, listing, wrap
from property_settings import examples

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir import program as ir
from cuda_lsp.model import LaunchConfig, LaunchSource, Status, Verdict
from cuda_lsp.static.exact.collide import collide
from cuda_lsp.static.exact.replay import Run, replay
from cuda_lsp.static.exact.threads import Thread
from cuda_lsp.static.solver.solve import Budget, refine_kernel

GPU = GpuModel("small", (9, 0), warp_size=4)
THREADS = 8
LAUNCH = LaunchConfig((THREADS, 1, 1), (1, 1, 1), source=LaunchSource.FILE)


WRAPPED = 1 << 31
"""Bytes from which on an index of these kernels is an unsigned number that has wrapped."""


def brute_force(
    kernel: ir.Kernel, arguments: dict[str, int] | None = None, before: int | None = None
) -> set[tuple[int, int]]:
    """Line pairs at which two threads of the one block race; ``before``: in bytes before this one."""
    threads = [Thread((x, 0, 0), (0, 0, 0), LAUNCH.block, (1, 1, 1), GPU.warp_size) for x in range(THREADS)]
    arrays = frozenset(kernel.arrays)
    runs = [(thread, _cut(replay(kernel, thread, arguments or {}, arrays), before)) for thread in threads]
    sites = {a.site.range.start.line: a.site for _, run in runs for a in run.accesses}
    found: set[tuple[int, int]] = set()
    for (i, a), (j, b) in itertools.product(sites.items(), repeat=2):
        if i <= j and any(collide(x, y, (a, b)) for x, y in itertools.permutations(runs, 2)):
            found.add((i, j))
    return found


def _cut(run: Run, before: int | None) -> Run:
    if before is None:
        return run
    return evolve(run, accesses=[access for access in run.accesses if access.start < before])


def lines(finding) -> tuple[int, int]:
    pair = sorted((finding.site.range.start.line, finding.related[0].site.range.start.line))
    return pair[0], pair[1]


# ------------------------------------------------------------------------------------- generator


@st.composite
def index(draw, names, depth=2) -> E:
    leaves = ["tid", "const", "name"]
    kind = draw(st.sampled_from([*leaves, "add", "mul", "sub", "mod", "div", "xor", "and", "shift"]))
    if depth == 0 or kind in ("tid", "const", "name"):
        if kind == "const":
            return wrap(draw(st.integers(0, 6)))
        return draw(st.sampled_from([TID, TID, UTID, *names]))
    a = draw(index(names, depth=depth - 1))
    if kind in ("add", "sub", "xor"):
        b = draw(index(names, depth=depth - 1))
        return {"add": a + b, "sub": a - b, "xor": a ^ b}[kind]
    c = draw(st.integers(1, 4))
    return {"mul": a * c, "mod": a % (2 * c), "div": a // c, "and": a & c, "shift": a >> (c % 3)}[kind]


@st.composite
def condition(draw, names) -> E:
    a, b = draw(index(names, depth=1)), draw(index(names, depth=1))
    return draw(st.sampled_from([a < b, a.eq(b), a <= 3, a.ne(2), (a % 2).eq(0)]))


@st.composite
def statements(draw, n: Notation, s, names, depth, barriers, labels=(), changing=()) -> list:
    """``names``: expressions to build on. ``labels``: of jumps. ``changing``: variables to set."""
    result = []
    for _ in range(draw(st.integers(1, 3))):
        kinds = ["read", "write", "write"] + ["sync"] * 2 * barriers + ["jump"] * bool(labels)
        kinds += ["set"] * bool(changing) + ["if", "loop", "let"] * bool(depth)
        kind = draw(st.sampled_from(kinds))
        if kind == "read":
            result.append(n.read(s, draw(index(names))))
        elif kind == "write":
            result.append(n.write(s, draw(index(names))))
        elif kind == "sync":
            result.append(draw(st.sampled_from([n.sync, n.sync, n.syncwarp]))())
        elif kind == "jump":
            result.append(n.when(draw(condition(names)), ir.Leave(draw(st.sampled_from(labels)), n.site())))
        elif kind == "set":
            v = draw(st.sampled_from(changing))
            result.append(n.let(v, draw(st.sampled_from([draw(index(names)), 1 - E(v), E(v) + 1, E(v) ^ 2]))))
        elif kind == "let":
            v = n.var(f"v{n.ids}")
            result.append(n.let(v, draw(index(names))))
            names, changing = [*names, E(v)], (*changing, v)
        elif kind == "if":
            then = draw(statements(n, s, names, depth - 1, False, labels, changing))
            other = draw(st.booleans()) and draw(statements(n, s, names, depth - 1, False, labels, changing))
            result.append(n.when(draw(condition(names)), *then, otherwise=tuple(other or ())))
        else:
            result += draw(loop(n, s, names, depth, barriers, labels, changing))
    return result


@st.composite
def loop(draw, n: Notation, s, names, depth, barriers, labels, changing) -> list:
    i = n.var(f"i{n.ids}")
    shape = draw(st.sampled_from(["up", "down", "halve", "double", "thread"]))
    inner = barriers and shape != "thread"
    label, again = n._id() + 1000, n._id() + 1000
    jumps = () if inner else (*labels, label, again)
    body = draw(statements(n, s, [*names, E(i)], depth - 1, inner, jumps, changing))
    if shape == "up":
        start, test, step = 0, E(i) < draw(st.integers(0, 4)), E(i) + draw(st.integers(1, 2))
    elif shape == "down":
        start, test, step = draw(st.integers(0, 4)), E(i) > 0, E(i) - 1
    elif shape == "halve":
        start, test, step = draw(st.sampled_from([4, 8, 5])), E(i) > 0, E(i) >> 1
    elif shape == "double":
        start, test, step = 1, E(i) < draw(st.sampled_from([4, 8])), E(i) * 2
    else:
        start, test, step = TID, E(i) < draw(st.integers(4, 20)), E(i) + THREADS
    init, advance = n.let(i, start), n.let(i, step)
    first = draw(st.sampled_from([True, True, True, False]))
    return [init, ir.Loop(label, again, (), test.node, tuple(body), (advance,), n.site(), tests_first=first)]


@st.composite
def kernels(draw, free=False, jumps=False) -> ir.Kernel:
    n = Notation()
    s = n.shared("s", 64)
    names = [n.param("n")] if free else []
    labels = (0,) if jumps else ()
    return n.kernel(*draw(statements(n, s, names, 2, not jumps, labels)))


def races(result):
    return [f for f in result.findings if f.kind is not None]


def said(kernel, result) -> str:
    messages = [f"{f.status.value} {f.message}" for f in result.findings]
    return f"{result.verdict} {result.reasons} {messages}\n{listing(kernel.body)}"


def check_against_brute_force(kernel) -> None:
    expected = brute_force(kernel)
    result = refine_kernel(kernel, [LAUNCH], GPU, Budget(kernel=3, query=0.5))
    certain = {lines(f) for f in races(result) if f.status is Status.PROVED}
    assert certain <= expected, said(kernel, result)
    if result.verdict is Verdict.RACE_FREE:
        assert not expected, said(kernel, result)
    if not result.reasons:
        assert certain == expected, said(kernel, result)


EXAMPLES = examples(30)


@EXAMPLES
@given(kernels())
def test_the_solver_and_exhaustive_replay_name_the_same_lines(kernel):
    check_against_brute_force(kernel)


@EXAMPLES
@given(kernels(jumps=True))
def test_they_agree_on_kernels_with_jumps(kernel):
    check_against_brute_force(kernel)


@EXAMPLES
@given(kernels(free=True))
def test_a_proof_holds_for_every_value_of_a_parameter(kernel):
    result = refine_kernel(kernel, [LAUNCH], GPU, Budget(kernel=3, query=0.5))
    found = {lines(f) for f in races(result)}
    taken = {"`n` is not negative": 0, "`n` is positive": 1}
    least = max((taken[assumption] for assumption in result.assumptions), default=-3)
    for n in filter(lambda n: n >= least, (-3, 0, 1, 2, 3, 5, 8, 9, 64)):
        # what a parameter adds to an unsigned index is taken not to wrap (docs/semantics.md)
        expected = brute_force(kernel, {"n": n}, before=WRAPPED)
        if result.verdict is Verdict.RACE_FREE or not result.reasons:
            assert expected <= found, f"n = {n}: {expected}\n{said(kernel, result)}"
