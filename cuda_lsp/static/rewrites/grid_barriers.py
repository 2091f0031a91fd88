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

from attrs import evolve, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import BDIM, GDIM, TID, Axis, BinaryOp, Expr, Stmt, Var
from cuda_lsp.ir.types import BOOL
from cuda_lsp.ir.walk import inside, pointers, stripped, used, variables, walk
from cuda_lsp.model import Scope, Space
from cuda_lsp.static.facts import facts_of
from cuda_lsp.static.rewrites import patterns
from cuda_lsp.static.rewrites.patterns import Bare, Bind, Either, Many, Node, commuting, matches
from cuda_lsp.static.rewrites.values import substituted
from cuda_lsp.static.slicing import Slice, assigned_once

_FENCES = Many(Node(ir.Fence))
_WHOLE_BLOCK = Node(ir.Barrier, scope=ir.BarrierScope.BLOCK, phase=ir.BarrierPhase.SYNC, assured=True)
_ARRIVES = Bind("arrives", Node(ir.Atomic, op=AtomicOp.ADD, operands=(Node(ir.Const, value=1),)))
_THEN = (_FENCES, _ARRIVES, _FENCES, Bind("loop", Node(ir.Loop)), _FENCES)
_WAIT = Bind("wait", Node(ir.If, then=_THEN, otherwise=()))
_BARRIER = (_WHOLE_BLOCK, _FENCES, _WAIT, _WHOLE_BLOCK)
"""The statements that are one barrier of the grid."""

_ZERO = Node(ir.Const, value=0)
_NOT = Node(ir.Unary, op=ir.UnaryOp.NOT, operand=Bind("zero"))
_IS_ZERO = Bare(Either(_NOT, commuting(BinaryOp.EQ, Bind("zero"), _ZERO)))
_BOTH = Bare(Node(ir.Binary, op=BinaryOp.AND, left=Bind("left"), right=Bind("right")))
_READS = Either(Node(ir.Atomic, only_reads=True), Node(ir.Load, volatile=True))
_IDLE = Node(ir.Incomplete, harmless=True)


def _still_waits(read: Var) -> Bare:
    """The condition under which blocks wait, by the number that they read."""
    count, wanted = Bare(read), Bind("wanted")
    return Bare(
        Either(
            Node(ir.Binary, op=BinaryOp.LT, left=count, right=wanted),
            Node(ir.Binary, op=BinaryOp.GT, left=wanted, right=count),
            commuting(BinaryOp.NE, count, wanted),
        )
    )


@frozen
class _OfAxes:
    """Expressions that join some axes by some operators, and may multiply them by such expressions."""

    axes: tuple[Axis, ...]
    joins: tuple[BinaryOp, ...]
    times: _OfAxes | None = None

    def of(self, e: Expr) -> frozenset[Axis] | None:
        """The axes in ``e``; None: it is no such expression."""
        e = stripped(e)
        if isinstance(e, ir.Builtin):
            return frozenset({e.axis}) if e.axis in self.axes else None
        if not isinstance(e, ir.Binary):
            return None
        if e.op in self.joins:
            left, right = self.of(e.left), self.of(e.right)
            twice = e.op is BinaryOp.MUL and left and right and left & right
            return None if left is None or right is None or twice else left | right
        if e.op is BinaryOp.MUL and self.times is not None:
            for factor, other in ((e.left, e.right), (e.right, e.left)):
                if self.times.of(factor) is not None:
                    return self.of(other)
        return None


_BLOCKS = _OfAxes(GDIM, (BinaryOp.MUL,))
_COORDINATES = _OfAxes(TID, (BinaryOp.ADD, BinaryOp.BOR), _OfAxes((*BDIM, *GDIM), (BinaryOp.MUL,)))


def with_grid_barriers(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with the grid barriers that are understood; the very kernel when there are none."""
    facts = facts_of(kernel)
    if not facts.loops or not any(
        isinstance(s, ir.Atomic) and s.op is AtomicOp.ADD for s in facts.statements
    ):
        return kernel
    body = _rewritten(kernel.body, facts, assigned_once(facts.statements))
    return kernel if body is kernel.body else evolve(kernel, body=body)


def _rewritten(body: tuple[Stmt, ...], facts: Slice, once: Mapping[Var, Expr]) -> tuple[Stmt, ...]:
    for at, s in enumerate(body):
        if isinstance(s, ir.Block) and s.lock is None:
            inner = _rewritten(s.body, facts, once)
            if inner is not s.body:
                return (*body[:at], evolve(s, body=inner), *body[at + 1 :])
        found = patterns.match_start(_BARRIER, body[at:])
        if found is None:
            continue
        length, parts = found
        written = body[at : at + length]
        wait, arrives = parts["wait"], parts["arrives"]
        axes = _unlike_one(wait, arrives, parts["loop"], facts, once)
        if axes is not None and _fenced((*body[max(at - 1, 0) : at], *written[:-2]), wait, arrives):
            barrier = ir.Barrier(ir.BarrierScope.GRID, arrives.site)
            return (*body[:at], _when_one(axes, barrier, written), *body[at + length :])
    return body


def _fenced(before: Sequence[Stmt], wait: ir.If, arrives: ir.Atomic) -> bool:
    """A fence beyond the block stands before the arrival."""
    early = (*before, *wait.then[: wait.then.index(arrives)])
    return any(isinstance(s, ir.Fence) and s.scope is not Scope.BLOCK for s in early)


def _unlike_one(
    wait: ir.If, arrives: ir.Atomic, loop: ir.Loop, facts: Slice, once: Mapping[Var, Expr]
) -> list[Axis] | None:
    """The extents that have to be 1 for one thread of every block to arrive; None: that is no barrier."""
    own, blocks = _one_thread(substituted(wait.condition, once)), _waits_for_all(loop, arrives, once)
    if own is None or blocks is None or not _alone(wait, arrives, facts):
        return None
    ones = [extent for axis, extent in zip(TID, BDIM, strict=True) if axis not in own]
    return ones + [extent for extent in GDIM if extent not in blocks]


def _one_thread(condition: Expr) -> frozenset[Axis] | None:
    """The coordinates that have to be 0; None: the condition says something else."""
    both = patterns.match(_BOTH, condition)
    if both is not None:
        left, right = _one_thread(both["left"]), _one_thread(both["right"])
        return None if left is None or right is None else left | right
    found = patterns.match(_IS_ZERO, condition)
    return _COORDINATES.of(found["zero"]) if found is not None else None


def _alone(wait: ir.If, arrives: ir.Atomic, facts: Slice) -> bool:
    """Nothing else in the kernel touches the counter, and nobody uses the numbers that it hands out."""
    (array, *others) = facts.roots(arrives.pointer) or (None,)
    if others or not isinstance(array, ir.Array) or array.space is not Space.GLOBAL or facts.wild:
        return False
    within = {id(s) for s in walk((wait,))}
    elsewhere = [s for s in facts.statements if id(s) not in within]
    own = {s.var for s in walk((wait,)) if isinstance(s, (ir.Atomic, ir.Load)) and s.var is not None}
    if any(v in own for s in elsewhere for e in used(s) for v in variables(e)):
        return False
    touched = (facts.roots(p) for s in elsewhere for p in pointers(s))
    aliased = array.may_alias is not None
    return not aliased and all(roots and array not in roots for roots in touched)


def _waits_for_all(loop: ir.Loop, arrives: ir.Atomic, once: Mapping[Var, Expr]) -> frozenset[Axis] | None:
    """The extents of the grid that the loop multiplies to know how many blocks it waits for."""
    within = [s for s in inside(loop) if not matches(_IDLE, s)]
    if len(within) != 1 or not matches(_READS, within[0]):
        return None
    (read,) = within
    assert isinstance(read, (ir.Atomic, ir.Load))
    in_time = read in loop.test or not loop.tests_first
    place, counter = substituted(read.pointer, once), substituted(arrives.pointer, once)
    if not in_time or place != counter or read.var is None:
        return None
    found = patterns.match(_still_waits(read.var), loop.condition)
    return _BLOCKS.of(substituted(found["wanted"], once)) if found is not None else None


def _when_one(axes: Sequence[Axis], barrier: ir.Barrier, written: tuple[Stmt, ...]) -> Stmt:
    """The barrier where these extents are 1, what was written elsewhere."""
    tests = list(_tests(axes))
    if not tests:
        return barrier
    condition = tests[0]
    for test in tests[1:]:
        condition = ir.Binary(BinaryOp.AND, condition, test, BOOL)
    return ir.If(condition, (barrier,), written, barrier.site)


def _tests(axes: Sequence[Axis]) -> Iterator[Expr]:
    for axis in axes:
        extent = ir.Builtin(axis)
        yield ir.Binary(BinaryOp.EQ, extent, ir.Const(1, extent.type), BOOL)
