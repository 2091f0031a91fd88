"""Waits on barrier objects that may give up: incomplete, each with what a loop around it may make of it.

What such a loop is ``static.rewrites.attempts`` tells.
"""

from __future__ import annotations

from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.tree import Node
from cuda_lsp.ir.program import Assign, Attempt, Barrier, BarrierPhase, BarrierScope, Expr, Incomplete, Var
from cuda_lsp.ir.types import BOOL

_REASON = "a wait that may give up is not modelled, other than in a loop that does nothing but repeat it"


def attempt(low: Lowering, node: Node, construct: str, object: Expr, parity: Expr | None) -> Var:
    """One try to wait; whether it succeeded, which nobody knows of a single one."""
    site, outcome = low.site(node), low.var("", BOOL)
    wait = Barrier(BarrierScope.OBJECT, site, BarrierPhase.WAIT, object=object, parity=parity)
    tried = Attempt(wait, outcome)
    low.emit(Incomplete(construct, _REASON, site, synchronises=True, attempt=tried))
    low.emit(Assign(outcome, low.unknown("whether a wait gave up", BOOL, varies=True), site))
    return outcome
