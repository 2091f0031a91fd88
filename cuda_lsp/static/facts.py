"""The launch-independent facts of a kernel: what matters of it, its locks, and flags that threads wait for.

What such loops order is not followed (``rewrites`` reads those that are understood);
accesses that they may order are not decided. A lock is taken by a compare-and-swap or exchange in a loop, and
given back by any other store or atomic to its array. A thread waits in a loop that stores nothing, counts
nothing, and ends when one place of memory that the kernel writes holds the right thing.

Words that are claimed (``claimed_words``) are no locks.
"""

from __future__ import annotations

from functools import lru_cache

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Expr, Kernel, Stmt
from cuda_lsp.ir.walk import assigned, inside, used, variables, walk
from cuda_lsp.static import budgets
from cuda_lsp.static.claimed_words import claimed_words
from cuda_lsp.static.slicing import Slice, slice_kernel, tracked


@lru_cache(maxsize=budgets.KEPT_FACTS)
def facts_of(kernel: Kernel) -> Slice:
    """The facts of ``kernel``, computed once for the analyses that follow one another."""
    facts = slice_kernel(kernel)
    _find(facts)
    return facts


def _find(facts: Slice) -> None:
    """Adds to ``facts`` where locks are taken, their arrays, and the loops that wait."""
    facts.claimed, facts.cleared = claimed_words(facts)
    for loop in facts.statements:
        if not isinstance(loop, ir.Loop):
            continue
        within = list(inside(loop))
        for s in within:
            if _takes_lock(facts, s):
                assert isinstance(s, ir.Atomic)
                if facts.roots(s.pointer) <= facts.claimed and _goes_on(s, loop, within):
                    continue
                facts.acquiring.add(id(s))
                facts.lock_arrays |= facts.roots(s.pointer)
        if _waits(facts, loop, within):
            facts.waiting.add(id(loop))


def _takes_lock(facts: Slice, s: Stmt) -> bool:
    return isinstance(s, ir.Atomic) and s.row.swaps and s.var is not None and s.var.id in facts.relevant


def _goes_on(s: ir.Atomic, loop: ir.Loop, inside: list[Stmt]) -> bool:
    """Who does not get the word goes on to another one, or does whatever comes next."""
    changing = {v.id for x in inside if (v := assigned(x)) is not None}
    moves = any(v.id in changing for v in variables(s.pointer))
    return moves or s.var is None or s.var.id not in _deciding(loop, inside)


def _waits(facts: Slice, loop: ir.Loop, inside: list[Stmt]) -> bool:
    if any(
        isinstance(s, (ir.Store, ir.Copy)) or (isinstance(s, ir.Barrier) and not s.scope.of_lanes)
        for s in inside
    ):
        return False
    if any(isinstance(s, ir.Atomic) and not s.only_reads for s in inside):
        return False
    changing = {v.id for s in inside if (v := assigned(s)) is not None}
    needed = _deciding(loop, inside)
    counted = (s for s in inside if isinstance(s, ir.Assign) and s.var.id in needed)
    if any(v.id == s.var.id for s in counted for v in variables(s.value)):
        return False  # it ends by itself
    for s in inside:
        if not isinstance(s, (ir.Load, ir.Atomic)) or s.var is None or s.var.id not in needed:
            continue
        roots = facts.roots(s.pointer)
        fixed = all(v.id not in changing for v in variables(s.pointer))
        if fixed and (not roots or any(tracked(facts, a) for a in roots)):
            return True
    return False


def _deciding(loop: ir.Loop, inside: list[Stmt]) -> set[int]:
    """Variables that decide whether the loop goes on."""
    pending: list[Expr] = [loop.condition]
    ways_out = (
        s
        for s in inside
        if isinstance(s, ir.If) and any(isinstance(e, ir.Leave) and e.label == loop.label for e in walk((s,)))
    )
    pending += (s.condition for s in ways_out)
    needed: set[int] = set()
    while pending:
        for v in variables(pending.pop()):
            if v.id in needed:
                continue
            needed.add(v.id)
            pending += [e for s in inside if isinstance(s, ir.Assign) and s.var.id == v.id for e in used(s)]
    return needed
