"""Where threads may part on their way to a barrier: at branches, loops and returns before it."""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache

from cuda_lsp.ir import program as ir
from cuda_lsp.ir import walk
from cuda_lsp.ir.deciding import Condition, deciding, only_returns_decide
from cuda_lsp.ir.program import Axis
from cuda_lsp.model import Site, SourceRange
from cuda_lsp.static import budgets

_OF_A_THREAD = (Axis.TID_X, Axis.TID_Y, Axis.TID_Z, Axis.LANE)
_MOST = 3


def as_decided(kernel: ir.Kernel, barrier: Site) -> str:
    """``, as line 12 decides``: what ``decided_by`` gives, in words; "" for none."""
    lines = list(dict.fromkeys(r.start.line for r in decided_by(kernel, barrier)))[:_MOST]
    if not lines:
        return ""
    *first, last = map(str, sorted(lines))
    return f", as lines {', '.join(first)} and {last} decide" if first else f", as line {last} decides"


def decided_by(kernel: ir.Kernel, barrier: Site) -> tuple[SourceRange, ...]:
    """Which conditions of the barrier's own file say who reaches it, nearest first.

    Those that hang on the thread, as far as its variables tell, or on what nobody knows; all of them where
    none does.
    """
    conditions = deciding(kernel.body, barrier.range)
    varying, unknown = _varying(kernel), _unknown(kernel)
    parting = [
        c for c in conditions if _hangs_on(c.condition, varying) or _is_unknown(c.condition, unknown)
    ] or conditions
    here = dict.fromkeys(c.site.range for c in parting)
    return tuple(r for r in here if r.path == barrier.range.path)


_WAITING_FOR_THOSE_THERE = (ir.BarrierScope.BLOCK, ir.BarrierScope.CLUSTER)


def have_returned(kernel: ir.Kernel, scope: ir.BarrierScope, barrier: Site) -> bool:
    """Whether all who do not come to a barrier have returned before it, and it waits for no such thread.

    Since compute capability 7.0 a barrier waits for threads that have not exited (CUDA C++ Programming Guide,
    Independent Thread Scheduling): what the language asks for is broken, and works.
    """
    if scope not in _WAITING_FOR_THOSE_THERE:
        return False
    varying = _varying(kernel)
    return only_returns_decide(kernel.body, barrier.range, lambda c: _hangs_on(c.condition, varying))


@lru_cache(maxsize=8 * budgets.KEPT_FACTS)  # of each barrier, in each round of a loop
def only_leavers_miss(kernel: ir.Kernel, barrier: Site) -> bool:
    """Whether all who do not come to a barrier have surely returned: nothing else parts threads."""
    varying, unknown = _varying(kernel), _unknown(kernel)

    def parts(condition: Condition) -> bool:
        return _hangs_on(condition.condition, varying) or _is_unknown(condition.condition, unknown)

    return only_returns_decide(kernel.body, barrier.range, parts)


@lru_cache(maxsize=budgets.KEPT_FACTS)  # each barrier that threads miss asks
def _varying(kernel: ir.Kernel) -> frozenset[ir.Var]:
    """Variables whose values hang on the thread: by what they are made of, where they are loaded from, or in
    which branch they are set.
    """
    varying: set[ir.Var] = set()
    known = -1
    while len(varying) > known:
        known = len(varying)
        for statement in walk.walk(kernel.body):
            var = walk.assigned(statement)
            if var is not None and _made_of(statement, varying):
                varying.add(var)
            if isinstance(statement, (ir.If, ir.Loop)) and _hangs_on(statement.condition, varying):
                varying |= {v for s in walk.inside(statement) if (v := walk.assigned(s)) is not None}
    return frozenset(varying)


@lru_cache(maxsize=budgets.KEPT_FACTS)
def _unknown(kernel: ir.Kernel) -> frozenset[ir.Var]:
    """Variables that are set to what nobody knows, or where that decides."""
    found: set[ir.Var] = set()
    for statement in walk.walk(kernel.body):
        if isinstance(statement, ir.Assign) and _is_unknown(statement.value, found):
            found.add(statement.var)
        if isinstance(statement, ir.If) and _is_unknown(statement.condition, found):
            found |= {v for s in walk.inside(statement) if (v := walk.assigned(s)) is not None}
    return frozenset(found)


def _is_unknown(e: ir.Expr, unknown: Set[ir.Var]) -> bool:
    return any(
        (isinstance(part, ir.Unknown) and not part.uniform) or (isinstance(part, ir.Var) and part in unknown)
        for part in walk.subexpressions([e])
    )


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
