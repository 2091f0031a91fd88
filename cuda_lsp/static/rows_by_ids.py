"""Whether two accesses are of the row that one id names: the same row where ids are equal, and no other one.

``x[id[i]]`` and ``x[id[i]].w`` are; of ``x[id[i] + 1]`` and ``x[id[i - 1]]`` distinct ids say nothing:
they may name what another thread works on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Expr, Stmt, Var
from cuda_lsp.ir.walk import subexpressions, used, variables
from cuda_lsp.model import Space
from cuda_lsp.static import budgets
from cuda_lsp.static.data_flow import Accessed, DataFlow
from cuda_lsp.static.linear import Sum, linear
from cuda_lsp.static.rewrites.values import substituted
from cuda_lsp.static.slicing import assigned_once, givers

_HELD = "what is held by"


def of_one_row(flow: DataFlow, a: Accessed, b: Accessed, ids: frozenset[Array]) -> bool:
    """Each thread has one id for both, and they are less than a row apart."""
    once = assigned_once(flow.slice.statements)
    leading = list(_leading(flow, (a.pointer, b.pointer)))
    named = {_resolved(s.pointer, once) for s in leading if _reads(flow, s, ids)}
    if len(named) != 1 or not _one_kept(flow, [s for s in leading if _is_kept(flow, s, ids)], once, ids):
        return False
    held: dict[Var, Expr] = {**once} | {
        s.var: ir.Intrinsic(_HELD, (_resolved(s.pointer, once),), s.type)
        for s in flow.slice.statements
        if isinstance(s, ir.Load) and s.var is not None and _reads(flow, s, ids)
    }
    sums = [linear(_resolved(x.pointer, held)) for x in (a, b)]
    rows = [{part: n for part, n in x.items() if _names(flow, part, ids)} for x in sums]
    planes = [{part: n for part, n in x.items() if _is_size(flow, part)} for x in sums]
    if rows[0] != rows[1] or planes[0] != planes[1]:
        return False
    return not rows[0] or abs(_from_start(sums[0]) - _from_start(sums[1])) < min(map(abs, rows[0].values()))


def _resolved(e: Expr, values: Mapping[Var, Expr]) -> Expr:
    return substituted(e, values, 2 * budgets.MOST_SUBSTITUTIONS)


def _reads(flow: DataFlow, s: Stmt, ids: frozenset[Array]) -> bool:
    return isinstance(s, ir.Load) and bool(flow.slice.roots(s.pointer) & ids)


def _is_kept(flow: DataFlow, s: ir.Load, ids: frozenset[Array]) -> bool:
    """What it reads is the thread's own memory, where ids are kept: ``at[k] = id[i + k * n] * width``."""
    return s.var is not None and is_local(flow, s.pointer) and bool(flow.arrays_in(flow.of(s.var)) & ids)


def is_local(flow: DataFlow, pointer: Expr) -> bool:
    """It points into the thread's own memory."""
    roots = flow.slice.roots(pointer)
    return bool(roots) and all(array.space is Space.LOCAL for array in roots)


def _one_kept(
    flow: DataFlow, loads: Sequence[ir.Load], once: Mapping[Var, Expr], ids: frozenset[Array]
) -> bool:
    """Both have the id of one element of that memory, which holds ids alone.

    Of two statements that read ``at[k]``, ``k`` may have moved on between them.
    """
    elements = {_resolved(s.pointer, once) for s in loads}
    if len(loads) > 1 and (len(elements) > 1 or any(list(variables(e)) for e in elements)):
        return False
    return all(flow.arrays_in(flow.of(s.value)) & ids for load in loads for s in _kept_in(flow, load))


def _kept_in(flow: DataFlow, load: ir.Load) -> Iterator[ir.Store]:
    """The stores to the memory that is read."""
    arrays = flow.slice.roots(load.pointer)
    stores = (s for s in flow.slice.statements if isinstance(s, ir.Store))
    return (s for s in stores if flow.slice.roots(s.pointer) & arrays)


def _leading(flow: DataFlow, pointers: tuple[Expr, ...]) -> Iterator[ir.Load]:
    """The loads whose values lead to some address, but not what leads to those.

    What the thread has kept in memory of its own leads where what it stored there does.
    """
    setting = givers(flow.slice.statements)
    pending = [v for p in pointers for v in variables(p)]
    seen: set[Var] = set()
    while pending:
        var = pending.pop()
        if var in seen:
            continue
        seen.add(var)
        for s in setting.get(var, ()):
            if isinstance(s, ir.Load):
                yield s
                kept = _kept_in(flow, s) if is_local(flow, s.pointer) else ()
                pending += [v for store in kept for v in variables(store.value)]
            else:
                pending += [v for e in used(s) for v in variables(e)]


def _names(flow: DataFlow, part: Expr | None, ids: frozenset[Array]) -> bool:
    """An id has part in it."""
    if part is None:
        return False
    held = (e for e in subexpressions((part,)) if isinstance(e, ir.Intrinsic))
    return any(e.name == _HELD for e in held) or bool(flow.arrays_in(flow.of(part)) & ids)


def _is_size(flow: DataFlow, part: Expr | None) -> bool:
    """Parameters alone have part in it: where a plane of rows begins."""
    return (
        part is not None
        and set(variables(part)) <= flow.params
        and not any(isinstance(e, ir.Builtin | ir.Intrinsic) for e in subexpressions((part,)))
    )


def _from_start(sum: Sum) -> int:
    return sum.get(None, 0)
