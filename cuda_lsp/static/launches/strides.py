"""The block that a kernel counts on: ``blockIdx.x * 64 + threadIdx.x`` is made for 64 threads.

A constant that stands where ``blockDim.x`` could stand; the least one, where there are several. Read from the
program's expressions, variables that are assigned once looked through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from cuda_lsp.ir.program import Axis, Binary, BinaryOp, Builtin, Const, Expr, Kernel, Var
from cuda_lsp.ir.walk import expressions, stripped, subexpressions, walk
from cuda_lsp.model import MAX_BLOCK_THREADS
from cuda_lsp.static import budgets
from cuda_lsp.static.launches.coordinates import BLOCK_AXES, THREAD_AXES
from cuda_lsp.static.slicing import assigned_once

_AXES = dict(zip(BLOCK_AXES, THREAD_AXES, strict=True))


@lru_cache(maxsize=4)  # as ``facts_of``
def block_strides(kernel: Kernel) -> Mapping[Axis, int]:
    """For axes of ``threadIdx``: how many threads of the block the kernel counts on."""
    values = assigned_once(walk(kernel.body))
    found: dict[Axis, int] = {}
    for e in subexpressions(expressions(kernel.body)):
        if isinstance(e, Binary) and e.op is BinaryOp.ADD:
            terms = list(_terms(e, values, budgets.MOST_INDIRECTIONS))
            threads = {t.axis for t in terms if isinstance(t, Builtin)}
            if any(not isinstance(t, Builtin) and _names_threads(t, values) for t in terms):
                continue  # rows of threads: a block of several dimensions, counted as one
            for axis, extent in filter(None, (_blocks(t, values) for t in terms)):
                if axis in threads and 1 < extent <= MAX_BLOCK_THREADS:
                    found[axis] = min(extent, found.get(axis, extent))
    return found


def _names_threads(e: Expr, values: Mapping[Var, Expr]) -> bool:
    """Whether a product has ``threadIdx`` for a factor."""
    factors = (e.left, e.right) if isinstance(e, Binary) else ()
    plain = (_plain(factor, values) for factor in factors)
    return any(isinstance(factor, Builtin) and factor.axis in THREAD_AXES for factor in plain)


def _terms(e: Expr, values: Mapping[Var, Expr], depth: int) -> Iterator[Expr]:
    """The terms of a sum or difference."""
    e = _plain(e, values)
    if depth and isinstance(e, Binary) and e.op in (BinaryOp.ADD, BinaryOp.SUB):
        yield from _terms(e.left, values, depth - 1)
        yield from _terms(e.right, values, depth - 1)
    else:
        yield e


def _plain(e: Expr, values: Mapping[Var, Expr]) -> Expr:
    """Without casts, and variables that hold one value."""
    for _ in range(budgets.MOST_INDIRECTIONS):
        e = stripped(e)
        known = values.get(e) if isinstance(e, Var) else None
        if known is None:
            break
        e = known
    return e


def _blocks(e: Expr, values: Mapping[Var, Expr]) -> tuple[Axis, int] | None:
    """``blockIdx.x * 64``, ``(blockIdx.x - first) * 64``: of which threads, and how many."""
    if not isinstance(e, Binary) or e.op not in (BinaryOp.MUL, BinaryOp.SHL):
        return None
    left, right = _plain(e.left, values), _plain(e.right, values)
    if e.op is BinaryOp.MUL and isinstance(left, Const):
        left, right = right, left
    named = {t.axis for t in _terms(left, values, budgets.MOST_INDIRECTIONS) if isinstance(t, Builtin)}
    axes = [threads for blocks, threads in _AXES.items() if blocks in named]
    if len(axes) != 1 or not isinstance(right, Const):
        return None
    count = int(right.value)
    return axes[0], count if e.op is BinaryOp.MUL else 1 << min(count, 20)
