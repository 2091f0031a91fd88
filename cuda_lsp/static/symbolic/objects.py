"""Barrier objects that are barriers of the whole block, and copies under way, for the solver.

A barrier object whose every initialisation counts the block's threads, and at which each thread arrives and
waits in turn, is a barrier of the block (``split_barriers`` has the general case, by execution). Whether the
statements of a kernel are of that form is read from their order in the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

from attrs import define, field

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.walk import children, root_array, walk


@define
class WholeObjects:
    """What is known of the barrier objects of one kernel. ``threads``: of a block, None: not known."""

    threads: int | None
    regular: bool
    """Each thread arrives and waits in turn, at one object if the two stand apart."""
    counts: dict[ir.Array, bool] = field(factory=dict[ir.Array, bool])

    def initialised(self, s: ir.Barrier, count: int | None) -> None:
        """``init``: whether each phase of these objects counts all threads of the block."""
        array = root_array(s.object)
        if array is not None:
            whole = count is not None and count == self.threads
            self.counts[array] = whole and self.counts.get(array, True)

    def whole(self, s: ir.Barrier) -> bool:
        """``s`` is a step of a barrier of the whole block."""
        array = root_array(s.object)
        return self.regular and array is not None and self.counts.get(array, False)


def regular(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether every arrival at a barrier object is followed by its wait before the next one."""
    objects = [s for s in walk(body) if _is_step(s)]
    steps = [s for s in objects if s.phase not in (ir.BarrierPhase.INIT, ir.BarrierPhase.BIND)]
    if any(s.phase is ir.BarrierPhase.DROP or s.parity is not None or s.count is not None for s in steps):
        return False
    apart = any(s.phase is not ir.BarrierPhase.SYNC for s in steps)
    one = len({root_array(s.object) for s in objects}) == 1 and not any(
        isinstance(s.object, ir.Offset) for s in steps
    )
    bound = any(s.phase is ir.BarrierPhase.BIND for s in objects)
    return (one or not (apart or bound)) and all(_in_turn(part) for part in _lists(body))


def _lists(body: tuple[ir.Stmt, ...]) -> Iterator[tuple[ir.Stmt, ...]]:
    yield body
    for s in body:
        for part in children(s):
            yield from _lists(part)


def _in_turn(statements: Sequence[ir.Stmt]) -> bool:
    pending = False
    for s in statements:
        if _is_step(s):
            if s.phase is ir.BarrierPhase.ARRIVE:
                if pending:
                    return False
                pending = True
            elif s.phase is ir.BarrierPhase.WAIT:
                if not pending:
                    return False
                pending = False
            elif s.phase is ir.BarrierPhase.SYNC and pending:
                return False
        elif pending and any(map(_is_step, walk((s,)))):
            return False
    return not pending


def _is_step(s: ir.Stmt) -> TypeGuard[ir.Barrier]:
    return isinstance(s, ir.Barrier) and s.scope is ir.BarrierScope.OBJECT
