"""Where threads may part on their way to a barrier: at branches, loops and returns before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from cuda_lsp.ir import program as ir
from cuda_lsp.ir import walk
from cuda_lsp.ir.program import Axis
from cuda_lsp.model import Site, SourceRange

_OF_A_THREAD = (Axis.TID_X, Axis.TID_Y, Axis.TID_Z, Axis.LANE)
_MOST = 3
_Condition = ir.If | ir.Loop


def as_decided(kernel: ir.Kernel, barrier: Site) -> str:
    """``, as line 12 decides``: which conditions say who reaches the barrier, nearest first; "" for none.

    Those that hang on the thread, as far as its variables tell; all of them where none does. At most three
    lines, of the barrier's own file.
    """
    conditions = list(dict.fromkeys(_conditions(_way(kernel.body, barrier.range))))
    varying = _varying(kernel)
    parting = [c for c in conditions if _hangs_on(c.condition, varying)] or conditions
    here = (c.site.range for c in parting)
    lines = list(dict.fromkeys(r.start.line for r in here if r.path == barrier.range.path))[:_MOST]
    if not lines:
        return ""
    *first, last = map(str, sorted(lines))
    return f", as lines {', '.join(first)} and {last} decide" if first else f", as line {last} decides"


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


def _conditions(way: list[tuple[list[ir.Stmt], ir.Stmt]]) -> Iterator[_Condition]:
    """Of the branches and loops around the barrier, and of those that leave one of them before it."""
    for depth in range(len(way) - 1, -1, -1):
        before, around = way[depth]
        left = frozenset(label for _, outer in way[:depth] for label in walk.labels(outer))
        for statement in reversed(before):
            yield from _leaving(statement, left)
        if isinstance(around, (ir.If, ir.Loop)):
            yield around
        if isinstance(around, ir.Loop):
            yield from _leaving(around, frozenset({around.label, *left}))


def _leaving(statement: ir.Stmt, labels: Set[int]) -> Iterator[_Condition]:
    """The branches in a statement that hold a ``Leave`` of one of these labels."""
    for inner in (statement, *walk.inside(statement)):
        if isinstance(inner, ir.If) and any(
            isinstance(s, ir.Leave) and s.label in labels for s in walk.inside(inner)
        ):
            yield inner


def _varying(kernel: ir.Kernel) -> frozenset[ir.Var]:
    """Variables whose values hang on the thread: by what they are made of, or where they are loaded from."""
    varying: set[ir.Var] = set()
    grows = True
    while grows:
        grows = False
        for statement in walk.walk(kernel.body):
            var = walk.assigned(statement)
            if var is not None and var not in varying and _made_of(statement, varying):
                varying.add(var)
                grows = True
    return frozenset(varying)


def _made_of(statement: ir.Stmt, varying: Set[ir.Var]) -> bool:
    if isinstance(statement, ir.Atomic):
        return True
    source = statement.value if isinstance(statement, ir.Assign) else getattr(statement, "pointer", None)
    return source is not None and _hangs_on(source, varying)


def _hangs_on(e: ir.Expr, varying: Set[ir.Var]) -> bool:
    return any(
        (isinstance(part, ir.Builtin) and part.axis in _OF_A_THREAD)
        or (isinstance(part, ir.Var) and part in varying)
        or isinstance(part, ir.Intrinsic)
        for part in walk.subexpressions([e])
    )
