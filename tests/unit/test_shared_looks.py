"""What several executions, pairs and readers have in common is worked out once, and says the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from kernel_notation import TID, E, Notation
from test_solve_classics import CLASSICS

from cuda_lsp.frontend.host.called_pointers import CalledPointers
from cuda_lsp.frontend.host.host_constants import HostConstants
from cuda_lsp.frontend.host.host_file import HostFile
from cuda_lsp.frontend.host.text import HostText
from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.types import INT32
from cuda_lsp.ir.walk import assigned, variables, walk
from cuda_lsp.model import LaunchConfig, Space, Status
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.diagnostics import collisions, races
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.needs import Needs
from cuda_lsp.static.slicing import slice_kernel

GPU = GpuModel("sm_80", (8, 0))

WAYS = """
// cuda-lsp: launch block=(64,1,1) grid=(1,1,1)
__global__ void k(const int* flags, int* out) {
    __shared__ int s[64], u[64];
    int t = threadIdx.x;
    BEFORE
    __syncthreads();
    if (flags[0]) { __syncthreads(); FIRST }
    __syncthreads();
    if (flags[1]) { __syncthreads(); SECOND }
    __syncthreads();
    out[t] = s[t] + u[t];
}
"""
RACES = "s[t] = t; u[t] = s[63 - t];"
APART = "s[t] = t; u[t] = s[t];"


def races_of(before: str, first: str, second: str, ways: str = WAYS) -> list[tuple[Status, int]]:
    text = ways.replace("BEFORE", before).replace("FIRST", first).replace("SECOND", second)
    report = check_text(Path("a.cu"), text, solver=False)
    assert not report.errors
    return [
        (f.status, f.site.range.start.line)
        for f in report.kernels[0].findings
        if f.code.value == "shared-race"
    ]


@pytest.mark.parametrize(
    ("before", "first", "second", "found"),
    [
        (RACES, APART, APART, [(Status.PROVED, 6)]),
        (APART, RACES, APART, [(Status.POSSIBLE, 8)]),
        (APART, APART, RACES, [(Status.POSSIBLE, 10)]),
        (RACES, APART, RACES, [(Status.PROVED, 6), (Status.POSSIBLE, 10)]),
        (APART, APART, APART, []),
    ],
)
def test_ways_through_a_kernel_are_told_apart_from_where_they_part(
    before: str, first: str, second: str, found: list[tuple[Status, int]]
) -> None:
    assert races_of(before, first, second) == found


OTHERWISE = WAYS.replace("SECOND", "").replace("FIRST }", "FIRST } else { __syncthreads(); SECOND }")


@pytest.mark.parametrize("first", [RACES, APART])
def test_both_sides_of_a_condition_are_told_apart(first: str) -> None:
    """As many accesses, one after the other, to the same array."""
    second = APART if first == RACES else RACES
    assert [status for status, _ in races_of(APART, first, second, OTHERWISE)] == [Status.POSSIBLE]


def test_what_comes_before_ways_part_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[tuple[str, int]] = []

    def counting(group: races.Group, compatible: object) -> list[collisions.Collision]:
        looked.append((group.accesses[0].array.name, group.accesses[0].decided))
        return collisions.collide(group, compatible)

    monkeypatch.setattr(races, "collide", counting)
    assert races_of(RACES, APART, APART)
    before = [each for each in looked if each == ("s", 0)]
    assert len(before) == 1, looked  # of four ways; nothing else is before the first choice


def test_pairs_that_tell_no_more_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, doubtful, alike in (
        (7, False, True),
        (7, True, True),
        (TID, False, False),
        (TID, True, False),
    ):
        looks, (race,) = joined(value, doubtful, monkeypatch)
        assert (looks, race.same_value) == (1, alike and not doubtful), (value, doubtful)


def test_one_that_stores_another_number_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    _, (race,) = joined(TID // 255, False, monkeypatch)
    assert not race.same_value


def joined(
    value: object, doubtful: bool, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, tuple[races.Race, ...]]:
    """How many stretches of pairs are looked at where all threads store, and the races."""
    n = Notation()
    store: ir.Stmt = n.write(n.shared("s", 64), 0, value)
    flag = n.var("flag")
    told = [n.read(n.globals("flags", INT32), TID, flag), n.when(E(flag) > 0, store)] if doubtful else [store]
    trace = execute(n.kernel(*told), LaunchConfig((256, 1, 1), (1, 1, 1)), {}, GPU)
    best, looks = collisions._best, list[int]()
    with monkeypatch.context() as patched:
        patched.setattr(collisions, "_best", lambda *a: looks.append(1) or best(*a))
        found = races.find_races(trace)
    return len(looks), found


def naive(kernel: ir.Kernel, wanted: set[int]) -> set[int]:
    """The variables that these are made of, by going over all statements until nothing is new."""
    statements, known = list(walk(kernel.body)), set(wanted)
    facts = slice_kernel(kernel)
    stores = [s for s in statements if isinstance(s, (ir.Store, ir.Atomic))]
    while True:
        before = len(known)
        for s in statements:
            var = assigned(s)
            if var is None or var.id not in known:
                continue
            parts = [s.value] if isinstance(s, ir.Assign) else [s.pointer]
            if isinstance(s, ir.Load):
                own = {a for a in facts.roots(s.pointer) if a.space in (Space.SHARED, Space.LOCAL)}
                for other in stores if own else ():
                    if facts.roots(other.pointer) & own:
                        parts += [other.value] if isinstance(other, ir.Store) else other.operands
            known |= {v.id for part in parts for v in variables(part)}
        if len(known) == before:
            return known


def through_memory(n: Notation, drop: int) -> ir.Kernel:
    """``t`` reaches ``j`` through one array, and ``i`` another that ``j`` says the place of."""
    del drop
    s, u, t, i, j = n.shared("s", 64), n.shared("u", 64), n.var("t"), n.var("i"), n.var("j")
    first = n.let(t, TID), n.write(s, 0, E(t)), n.sync(), n.read(s, TID, j), n.write(u, 0, E(j))
    return n.kernel(*first, n.sync(), n.read(u, TID, i), n.write(s, E(i), 0))


@pytest.mark.parametrize("build", [*(build for build, _, _ in CLASSICS.values()), through_memory])
def test_what_is_followed_is_all_that_going_over_the_statements_finds(
    build: Callable[[Notation, int], ir.Kernel],
) -> None:
    kernel = build(Notation(), 0)
    facts = slice_kernel(kernel)
    needs = Needs.of(facts.statements, facts.roots, facts.reached)
    every = {var.id for s in facts.statements if (var := assigned(s)) is not None}
    for wanted in every:
        assert needs.followed([wanted], [])[0] == naive(kernel, {wanted})


SETS = HostText("void set(int& n) { n = 7; }")
READS = HostText("void reads(int n) { }")
CALLS = "void f() { int n = 3; set(n); reads(n); use(n); }"


def test_what_is_lent_hangs_on_the_headers_whichever_is_asked_first() -> None:
    text = HostText(CALLS)  # one for both includers
    for header, value in ((READS, 3), (SETS, 7), (READS, 3)):
        constants = HostConstants(text, [HostConstants(header)])
        assert constants.integer("n", text.plain.index("use(")) == value


def test_a_header_tells_all_who_include_it_what_its_functions_return() -> None:
    header = "float* part(float* base, int n) { return base + n; }"
    made: list[CalledPointers] = []
    for name, ask, value in (("a", "part(d, 5)", "d + 5"), ("b", "part(e, m)", "e + m")):
        host = HostFile(Path(f"{name}.cu"), "", "", [HostConstants(HostText(header))])
        assert host.pointers.returned(ask) == [value]
    shared = HostConstants(HostText(header))
    for name in "ab":
        pointers = HostFile(Path(f"{name}.cu"), "", "", [shared]).pointers
        made += [told() for _, told in pointers.called._known if _ is shared.functions]
    assert len(made) == 2
    assert made[0] is made[1]


def test_fields_are_those_of_the_whole_name() -> None:
    text = "void f(float* d) { W w; V ww; w.a.b = d; w.c = d + 1; ww.a.b = d + 2; use(d); }"
    pointers = HostFile(Path("a.cu"), text, text).pointers
    at = text.index("use(")
    assert list(pointers.fields("w", at)) == [("a.b", "d"), ("c", "d + 1")]
    assert list(pointers.fields("w.a", at)) == [("b", "d")]
    assert list(pointers.fields("ww", at)) == [("a.b", "d + 2")]
