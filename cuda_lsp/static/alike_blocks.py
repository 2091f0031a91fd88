"""Kernels that never ask which block they run in: all blocks do the same, and store one value.

``if (threadIdx.x == 0) *out = largest;`` in a grid of 128: a launch with too many blocks, which costs time
and harms nobody. It takes that no block sees what others do: what is stored in global memory is not read
there, no atomic tells who came first, and no clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import BID, LOOP_SUM, Expr, Kernel, Stmt
from cuda_lsp.ir.types import Int
from cuda_lsp.ir.walk import accesses, children, expressions, inside, subexpressions, walk
from cuda_lsp.model import RaceKind, SourceRange, Space
from cuda_lsp.static.facts import facts_of
from cuda_lsp.static.findings.diagnosis import Diagnosis

_KNOWN = (ir.Load, ir.Store, ir.Assign, ir.If, ir.Loop, ir.Block, ir.Leave, ir.Barrier, ir.Fence, ir.Assume)


def stores_alike(kernel: Kernel, found: Diagnosis) -> bool:
    """The race is of one store that each thread comes to once, by one thread of two such blocks."""
    seen = found.witness
    if found.kind is not RaceKind.WAW or seen is None or seen.blocks is None:
        return False
    places = {found.site.range, *(r.site.range for r in found.related[:1])}
    if len(places) != 1 or seen.threads[0] != seen.threads[1] or seen.blocks[0] == seen.blocks[1]:
        return False
    followed = kernel.followed  # what floats are made of is known there alone
    if followed is None or _is_in_a_loop(kernel.body, found.site.range):
        return False
    return _do_the_same(kernel) and _do_the_same(followed, loaded=False) and _adds_known(followed.body)


def _do_the_same(kernel: Kernel, *, loaded: bool = True) -> bool:
    """``loaded``: nobody knows what values are made of that memory has part in."""
    if not all(map(_is_known, walk(kernel.body))):
        return False
    facts = facts_of(kernel)
    read = {
        array
        for s in walk(kernel.body)
        for pointer, mode, _ in accesses(s)
        if not mode.writes or mode.atomic
        for array in facts.roots(pointer)
    }
    shared = any(array.space is Space.GLOBAL for array in read & facts.written)
    return not shared and all(_is_alike(x, loaded) for x in subexpressions(expressions(kernel.body)))


def _is_known(s: Stmt) -> bool:
    """Atomics of integers that ask nothing leave the same in any order."""
    return isinstance(s, _KNOWN) or (isinstance(s, ir.Atomic) and s.var is None and isinstance(s.type, Int))


def _is_alike(part: Expr, loaded: bool) -> bool:
    """It is what memory, arguments and the thread's place in its block make it."""
    if isinstance(part, ir.Unknown):
        return (part.loaded and loaded) or part.reason == LOOP_SUM
    return not (isinstance(part, ir.Builtin) and part.axis in BID)


def _adds_known(statements: Sequence[Stmt]) -> bool:
    """What loops add up is told behind each of them; within, where it is not, it is known if it is there."""
    for s in statements:
        if isinstance(s, ir.Assign) and isinstance(s.value, ir.Unknown):
            return False
        whole = isinstance(s, ir.Loop) and not any(isinstance(x, ir.Barrier) for x in inside(s))
        if not whole and not all(_adds_known(part) for part in children(s)):
            return False
    return True


def _is_in_a_loop(statements: Sequence[Stmt], place: SourceRange) -> bool:
    return any(
        isinstance(x, ir.Store) and x.site.range == place
        for s in walk(statements)
        if isinstance(s, ir.Loop)
        for part in children(s)
        for x in walk(part)
    )
