"""What one thread's copies may do wrong by themselves: bytes that are still moving, sizes below zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cuda_lsp.static.solver.query import Outcome, Query
from cuda_lsp.static.solver.rows.apart import told
from cuda_lsp.static.solver.rows.stated import speaks_against_sizes
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem, copy_of, shared_level
from cuda_lsp.static.symbolic.encode import closure
from cuda_lsp.static.symbolic.events import Access, accesses
from cuda_lsp.static.symbolic.intervals import OwnCopy, Pair, Relation
from cuda_lsp.static.symbolic.terms import Term


def own_copies(found: Sequence[OwnCopy], query: Query) -> Iterator[str]:
    """Where a thread may touch what its own copy is moving, each place once."""
    relation = Relation()
    shared = shared_level(relation)
    facts = copy_of(query.where.bounds, 1, shared, {})
    told_of: set[str] = set()
    for copy in found:
        if copy.text in told_of:
            continue
        formula = t.and_(facts, copy_of(copy.formula, 1, shared, {}))
        if query.solve(closure(formula, query.summary, shared)).outcome is not Outcome.REFUTED:
            told_of.add(copy.text)
            yield copy.text


def endless_copies(query: Query) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Copies that some thread may make of fewer than no bytes: as ``size_t`` these are nearly all there are.

    Why the kernel is undecided, and which parameters are taken not to be negative where that alone speaks
    against it.
    """
    doubts: dict[str, None] = {}
    assumptions: dict[str, None] = {}
    for access in accesses(query.summary.events):
        if access.size.lo >= 0:
            continue
        sizes = _natural_sizes(access, query)
        if sizes is None:
            doubts[f"`{access.site.text}` copies more bytes than there are, where its size is below zero"] = (
                None
            )
        else:
            assumptions.update(dict.fromkeys(told(sizes)))
    return tuple(doubts), tuple(assumptions)


def _natural_sizes(access: Access, query: Query) -> tuple[Term, ...] | None:
    """Parameters that are not negative for the copy's size never to be; None: it may be even so."""
    relation = Relation()
    level = shared_level(relation)
    guard, offset, size = (copy_of(x, 1, level, {}) for x in (access.guard, access.offset, access.size))
    alone = Problem(
        Pair(access, access, (), relation), t.lt(size, t.ZERO), guard, t.ZERO, (offset, offset), False
    )
    facts = copy_of(query.where.bounds, 1, level, {})
    formula = query.complete(t.and_(facts, alone.formula), alone)
    if query.refutes(formula):
        return ()
    doubtful, sized = query.sized(formula)
    if not doubtful or not query.refutes(sized):
        return None
    return None if speaks_against_sizes(alone, facts, doubtful, 0, query) else doubtful
