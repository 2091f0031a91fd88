"""Z3 as it is: no two threads satisfy the pair's formula."""

from __future__ import annotations

from cuda_lsp.static.solver.query import Outcome
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved


def refuted(pair: OpenPair) -> Proved | None:
    """The formula has no model."""
    return Proved() if pair.query.ask(pair.p, pair.facts).outcome is Outcome.REFUTED else None
