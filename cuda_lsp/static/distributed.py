"""Memory of other blocks of a cluster: that these blocks are there while it is touched.

Source: CUDA C++ Programming Guide, "Distributed Shared Memory": a block must have begun before others access
its memory, and may not end before they have. A barrier of the cluster before the access, and one behind it,
see to that. Looked for are such as stand in the access's own list of statements, or in one around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from cuda_lsp.ir.clusters import moved
from cuda_lsp.ir.program import Assign, Barrier, BarrierPhase, BarrierScope, Expr, Leave, Load, Stmt, Var
from cuda_lsp.ir.types import Pointer
from cuda_lsp.ir.walk import assigned, children, pointers, variables
from cuda_lsp.static.slicing import Slice


def lifetimes(facts: Slice) -> Iterator[str]:
    """Accesses to memory of blocks that may not have begun, or may have ended, for people."""
    if not facts.reached:
        return
    far = _far(facts)
    for s, ended in _exposed(facts, facts.kernel.body, far, before=False, behind=False):
        site = getattr(s, "site", None)
        line = f"line {site.range.start.line}: " if site is not None else ""
        side = (
            "behind it: that block may have ended" if ended else "before it: that block need not have begun"
        )
        yield f"{line}memory of another block, and no cluster.sync() {side}"
    if any(isinstance(s, Leave) and s.label == facts.outermost for s in facts.statements):
        yield "threads return early: blocks may have ended while others access their memory"


def unfollowed(facts: Slice) -> Iterator[str]:
    """Pointers that may change from one block's memory to another's, of which two threads do not tell."""
    if not facts.reached:
        return
    known = _far_pointers(facts)
    given = Counter(var for s in facts.statements if (var := assigned(s)) in known)
    loaded = {s.var for s in facts.statements if isinstance(s, Load)}
    for var in sorted(known, key=lambda v: v.id):
        if given[var] > 1 or var in loaded:
            name = f"`{var.name}`" if var.name else "a pointer"
            yield f"which block's memory {name} points to"


def _far(facts: Slice) -> set[int]:
    """``id()`` of statements that may touch another block's memory."""
    known = _far_pointers(facts)
    return {id(s) for s in facts.statements if any(_leads_away(p, known) for p in pointers(s))}


def _far_pointers(facts: Slice) -> set[Var]:
    """Variables that may point to another block's memory."""
    known: set[Var] = set()
    size = -1
    while size != (size := len(known)):
        for s in facts.statements:
            var = assigned(s)
            if var is None or not isinstance(var.type, Pointer) or var in known:
                continue
            if isinstance(s, Load) or (isinstance(s, Assign) and _leads_away(s.value, known)):
                known.add(var)
    return known


def _leads_away(pointer: Expr, known: set[Var]) -> bool:
    return any(True for _ in moved(pointer)) or any(v in known for v in variables(pointer))


def _exposed(
    facts: Slice, statements: Sequence[Stmt], far: set[int], *, before: bool, behind: bool
) -> Iterator[tuple[Stmt, bool]]:
    """Those statements without a barrier on one side, and whether that is the side behind."""
    for i, s in enumerate(statements):
        begun = before or any(_is_step(x) and x.phase is not BarrierPhase.ARRIVE for x in statements[:i])
        kept = _waited_for(facts, statements[i:], behind)
        if id(s) in far and not (begun and kept):
            yield s, begun
        for inner in children(s):
            yield from _exposed(facts, inner, far, before=begun, behind=kept)


def _waited_for(facts: Slice, rest: Sequence[Stmt], behind: bool) -> bool:
    """Whether lanes come from the first statement to a barrier, ``behind`` the list or in it."""
    arrived = False
    for s in rest:
        if isinstance(s, Leave) or id(s) in facts.leaving:
            return False  # some go to what is behind another list
        if _is_step(s):
            if s.phase is BarrierPhase.SYNC or (arrived and s.phase is BarrierPhase.WAIT):
                return True
            arrived = arrived or s.phase is BarrierPhase.ARRIVE
    return behind


def _is_step(s: Stmt) -> TypeGuard[Barrier]:
    return isinstance(s, Barrier) and s.scope in (BarrierScope.CLUSTER, BarrierScope.GRID)
