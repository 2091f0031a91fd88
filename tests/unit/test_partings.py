"""Which lines decide who reaches a barrier."""

from __future__ import annotations

from kernel_notation import BID, TID, E, Notation

from cuda_lsp.ir import program as ir
from cuda_lsp.static.findings.partings import as_decided


def said(n: Notation, *body: ir.Stmt) -> str:
    kernel = n.kernel(*body)
    barriers = [s for s in _all(kernel.body) if isinstance(s, ir.Barrier)]
    return as_decided(kernel, barriers[-1].site)


def _all(statements: tuple[ir.Stmt, ...]) -> list[ir.Stmt]:
    from cuda_lsp.ir import walk

    return list(walk.walk(statements))


def test_a_barrier_that_all_come_by_names_nothing() -> None:
    n = Notation()
    assert said(n, n.sync()) == ""


def test_the_branch_around() -> None:
    n = Notation()
    assert said(n, n.when(TID < 32, n.sync())) == ", as line 2 decides"


def test_the_return_before() -> None:
    n = Notation()
    assert said(n, n.leave_if(TID > 40), n.sync()) == ", as line 2 decides"


def test_conditions_that_are_the_same_for_a_block_are_left_out_where_others_are_there() -> None:
    n = Notation()
    assert said(n, n.leave_if(TID > 40), n.when(BID < 3, n.sync())) == ", as line 2 decides"
    n = Notation()
    assert said(n, n.when(BID < 3, n.sync())) == ", as line 2 decides"


def test_variables_of_the_thread_count() -> None:
    n = Notation()
    mine, ours = n.var("mine"), n.var("ours")
    sets = n.let(mine, TID + 1), n.let(ours, BID)
    assert said(n, *sets, n.leave_if(E(mine) > 3), n.when(E(ours) < 3, n.sync())) == ", as line 4 decides"


def test_two_lines() -> None:
    n = Notation()
    body = n.leave_if(TID > 40), n.when(TID < 32, n.sync())
    assert said(n, *body) == ", as lines 2 and 4 decide"


def test_a_loop_around() -> None:
    n = Notation()
    i = n.var("i")
    loop = n.loop(E(i) < TID, [n.let(i, E(i) + 1)], n.sync())
    assert said(n, n.let(i, 0), loop).startswith(", as line ")
