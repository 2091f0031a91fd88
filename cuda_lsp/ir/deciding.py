"""Which conditions say who comes to a place of a kernel program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from cuda_lsp.ir import program as ir
from cuda_lsp.ir import walk
from cuda_lsp.model import SourceRange

Condition = ir.If | ir.Loop
KERNEL = 0
"""The label of a kernel's body, which a ``return`` leaves."""


def deciding(statements: Iterable[ir.Stmt], barrier: SourceRange) -> list[Condition]:
    """The branches and loops around a barrier, and those that leave one of them before it; nearest first."""
    found = {id(c): c for c in _conditions(_way(statements, barrier))}  # to hash them would read them whole
    return list(found.values())


def only_returns_decide(
    statements: Iterable[ir.Stmt], barrier: SourceRange, parts: Callable[[Condition], bool]
) -> bool:
    """Whether who does not come to a barrier has left the kernel; ``parts``: threads differ in it."""
    way = _way(statements, barrier)
    around = (s for _, s in way if isinstance(s, (ir.If, ir.Loop)))
    leaving = [c for c in _conditions(way) if parts(c) and not any(c is s for _, s in way)]
    left = {s.label for c in leaving for s in walk.inside(c) if isinstance(s, ir.Leave)}
    return left == {KERNEL} and not any(map(parts, around))


def _way(statements: Iterable[ir.Stmt], barrier: SourceRange) -> list[tuple[list[ir.Stmt], ir.Stmt]]:
    """From the outside to the barrier: the statements before, and the one that it is in."""
    before: list[ir.Stmt] = []
    for statement in statements:
        if isinstance(statement, ir.Barrier) and statement.site.range == barrier:
            return [(before, statement)]
        for inner in walk.children(statement):
            found = _way(inner, barrier)
            if found:
                return [(before, statement), *found]
        before.append(statement)
    return []


def _conditions(way: list[tuple[list[ir.Stmt], ir.Stmt]]) -> Iterator[Condition]:
    for depth in range(len(way) - 1, -1, -1):
        before, around = way[depth]
        left = frozenset(label for _, outer in way[:depth] for label in walk.labels(outer))
        for statement in reversed(before):
            yield from _leaving(statement, left)
        if isinstance(around, (ir.If, ir.Loop)):
            yield around
        if isinstance(around, ir.Loop):
            yield from _leaving(around, frozenset({around.label, *left}))


def _leaving(statement: ir.Stmt, labels: frozenset[int]) -> Iterator[Condition]:
    """The branches in a statement that hold a ``Leave`` of one of these labels."""
    for inner in (statement, *walk.inside(statement)):
        if isinstance(inner, ir.If) and any(
            isinstance(s, ir.Leave) and s.label in labels for s in walk.inside(inner)
        ):
            yield inner
