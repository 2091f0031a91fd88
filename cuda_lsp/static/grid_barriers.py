"""Barriers of the grid that programmers make of one counter, as the barriers that they are.

    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < gridDim.x) {}      // or a volatile read; or != gridDim.x
    }
    __syncthreads();

Every block counts once, and goes on when all have: what stood before the first barrier of any block is
visible behind the second of every block, given the fence (Xiao and Feng, "Inter-block GPU communication via
fast barrier synchronization", IPDPS 2010). The counter is taken to begin at 0.

Followed where the whole kernel touches the counter nowhere else and passes here once: neither in a loop nor
under a condition. Where the source names x only, one thread of a block and all blocks are counted rightly for
launches along x only: the rewritten kernel asks for that. Whatever else waits is for ``waiting``: a doubt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve

from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import (
    Array,
    Atomic,
    Axis,
    Barrier,
    BarrierPhase,
    BarrierScope,
    Binary,
    BinaryOp,
    Block,
    Builtin,
    Cast,
    Const,
    Expr,
    Fence,
    If,
    Incomplete,
    Kernel,
    Load,
    Loop,
    Stmt,
    Unary,
    UnaryOp,
    Var,
)
from cuda_lsp.ir.types import BOOL
from cuda_lsp.ir.walk import pointers, stripped, used, variables, walk
from cuda_lsp.model import Scope, Space
from cuda_lsp.static.critical import substituted
from cuda_lsp.static.execution.enumerate import facts_of
from cuda_lsp.static.slicing import Slice, assigned_once

_TID = (Axis.TID_X, Axis.TID_Y, Axis.TID_Z)
_BDIM = (Axis.BDIM_X, Axis.BDIM_Y, Axis.BDIM_Z)
_GDIM = (Axis.GDIM_X, Axis.GDIM_Y, Axis.GDIM_Z)


def with_grid_barriers(kernel: Kernel) -> Kernel:
    """The kernel with the grid barriers that are understood; the very kernel when there are none."""
    facts = facts_of(kernel)
    if not facts.loops or not any(isinstance(s, Atomic) and s.op is AtomicOp.ADD for s in facts.statements):
        return kernel
    body = _rewritten(kernel.body, facts, assigned_once(facts))
    return kernel if body is kernel.body else evolve(kernel, body=body)


def _rewritten(body: tuple[Stmt, ...], facts: Slice, once: Mapping[Var, Expr]) -> tuple[Stmt, ...]:
    for index, s in enumerate(body):
        if isinstance(s, Block) and s.lock is None:
            inner = _rewritten(s.body, facts, once)
            if inner is not s.body:
                return (*body[:index], evolve(s, body=inner), *body[index + 1 :])
        found = _grid_barrier(body, index, facts, once)
        if found is not None:
            first, last, barrier = found
            return (*body[:first], barrier, *body[last + 1 :])
    return body


def _grid_barrier(
    body: Sequence[Stmt], index: int, facts: Slice, once: Mapping[Var, Expr]
) -> tuple[int, int, Stmt] | None:
    """The statements from ``body[first]`` to ``body[last]`` as one; ``body[index]`` is where they wait."""
    wait = body[index]
    if not isinstance(wait, If) or wait.otherwise or index + 1 >= len(body) or not _of_block(body[index + 1]):
        return None
    first = index - 1
    while first >= 0 and isinstance(body[first], Fence):
        first -= 1
    if first < 0 or not _of_block(body[first]):
        return None
    axes = _one_thread(substituted(wait.condition, once))
    arrives = next((s for s in wait.then if isinstance(s, Atomic)), None)
    if axes is None or arrives is None or not arrives.adds(1):
        return None
    at = wait.then.index(arrives)
    rest = [s for s in wait.then[at + 1 :] if not isinstance(s, Fence)]
    before = [*body[max(first - 1, 0) : index], *wait.then[:at]]
    fenced = any(isinstance(s, Fence) and s.scope is not Scope.BLOCK for s in before)
    if not fenced or len(rest) != 1 or not isinstance(rest[0], Loop):
        return None
    if not all(isinstance(s, Fence) for s in wait.then[:at]) or not _alone(wait, arrives, facts):
        return None
    extents = _waits_for_all(rest[0], arrives, once)
    if extents is None:
        return None
    ones = [_BDIM[i] for i in range(3) if _TID[i] not in axes]
    ones += [axis for axis in _GDIM if axis not in extents]
    barrier = Barrier(BarrierScope.GRID, arrives.site)
    return first, index + 1, _when_one(ones, barrier, tuple(body[first : index + 2]))


def _of_block(s: Stmt) -> bool:
    return (
        isinstance(s, Barrier)
        and s.scope is BarrierScope.BLOCK
        and s.phase is BarrierPhase.SYNC
        and s.assured
    )


def _one_thread(condition: Expr) -> frozenset[Axis] | None:
    """The coordinates that have to be 0; None: the condition says something else."""
    if isinstance(condition, Cast):
        return _one_thread(condition.operand)
    if isinstance(condition, Binary) and condition.op is BinaryOp.AND:
        left, right = _one_thread(condition.left), _one_thread(condition.right)
        return None if left is None or right is None else left | right
    zero: Expr | None = None
    if isinstance(condition, Unary) and condition.op is UnaryOp.NOT:
        zero = condition.operand
    elif isinstance(condition, Binary) and condition.op is BinaryOp.EQ:
        pair = (condition.left, condition.right)
        zero = next((e for e, other in (pair, pair[::-1]) if _is_zero(other)), None)
    return _coordinates(zero) if zero is not None else None


def _is_zero(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 0


def _coordinates(e: Expr) -> frozenset[Axis] | None:
    """The coordinates of which a sum of coordinates and their multiples is made, or an or of them."""
    if isinstance(e, Cast):
        return _coordinates(e.operand)
    if isinstance(e, Builtin):
        return frozenset({e.axis}) if e.axis in _TID else None
    if isinstance(e, Binary) and e.op in (BinaryOp.ADD, BinaryOp.BOR):
        left, right = _coordinates(e.left), _coordinates(e.right)
        return None if left is None or right is None else left | right
    if isinstance(e, Binary) and e.op is BinaryOp.MUL:
        for factor, other in ((e.left, e.right), (e.right, e.left)):
            if _extents(factor) is not None:
                return _coordinates(other)
    return None


def _extents(e: Expr, of: Sequence[Axis] = (*_BDIM, *_GDIM)) -> frozenset[Axis] | None:
    """The extents whose product it is."""
    if isinstance(e, Cast):
        return _extents(e.operand, of)
    if isinstance(e, Builtin):
        return frozenset({e.axis}) if e.axis in of else None
    if isinstance(e, Binary) and e.op is BinaryOp.MUL:
        left, right = _extents(e.left, of), _extents(e.right, of)
        return None if left is None or right is None or left & right else left | right
    return None


def _alone(wait: If, arrives: Atomic, facts: Slice) -> bool:
    """Nothing else in the kernel touches the counter, and nobody uses the numbers that it hands out."""
    (array, *others) = facts.roots(arrives.pointer) or (None,)
    if others or not isinstance(array, Array) or array.space is not Space.GLOBAL or facts.wild:
        return False
    inside = {id(s) for s in walk((wait,))}
    elsewhere = [s for s in facts.statements if id(s) not in inside]
    own = {s.var for s in walk((wait,)) if isinstance(s, (Atomic, Load)) and s.var is not None}
    if any(v in own for s in elsewhere for e in used(s) for v in variables(e)):
        return False
    touched = (facts.roots(p) for s in elsewhere for p in pointers(s))
    aliased = array.may_alias is not None
    return not aliased and all(roots and array not in roots for roots in touched)


def _waits_for_all(loop: Loop, arrives: Atomic, once: Mapping[Var, Expr]) -> frozenset[Axis] | None:
    """The extents of the grid that the loop multiplies to know how many blocks it waits for."""
    inside = list(walk((*loop.test, *loop.body, *loop.step)))
    reads = [s for s in inside if isinstance(s, (Atomic, Load))]
    idle = all(s in reads or (isinstance(s, Incomplete) and s.harmless) for s in inside)
    if len(reads) != 1 or not idle or not (reads[0] in loop.test or not loop.tests_first):
        return None
    read = reads[0]
    strong = read.only_reads if isinstance(read, Atomic) else read.volatile
    if not strong or substituted(read.pointer, once) != substituted(arrives.pointer, once):
        return None
    condition = stripped(loop.condition)
    if not isinstance(condition, Binary) or read.var is None:
        return None
    sides = {
        BinaryOp.LT: [(condition.left, condition.right)],
        BinaryOp.GT: [(condition.right, condition.left)],
        BinaryOp.NE: [(condition.left, condition.right), (condition.right, condition.left)],
    }.get(condition.op, [])
    for counted, wanted in sides:
        if stripped(counted) == read.var:
            return _extents(substituted(wanted, once), _GDIM)
    return None


def _when_one(axes: Sequence[Axis], barrier: Barrier, written: tuple[Stmt, ...]) -> Stmt:
    """The barrier where these extents are 1, what was written elsewhere."""
    tests = list(_tests(axes))
    if not tests:
        return barrier
    condition = tests[0]
    for test in tests[1:]:
        condition = Binary(BinaryOp.AND, condition, test, BOOL)
    return If(condition, (barrier,), written, barrier.site)


def _tests(axes: Sequence[Axis]) -> Iterator[Expr]:
    for axis in axes:
        extent = Builtin(axis)
        yield Binary(BinaryOp.EQ, extent, Const(1, extent.type), BOOL)


__all__ = ["with_grid_barriers"]
