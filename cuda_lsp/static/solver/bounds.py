"""Shared-memory accesses outside their array, for all arguments of a known launch.

Only what the launch does not already decide is of interest here (enumeration sees the rest): an index
that a free parameter moves out of bounds.  One thread suffices; the model is replayed like a race.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cuda_lsp.model import Code, LaunchConfig, Site, Space, Status, Witness
from cuda_lsp.static.exact.replay import NeedsData, TooLong
from cuda_lsp.static.exact.threads import Thread
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.solver.limits import sufficient
from cuda_lsp.static.solver.query import Answer, Outcome, Query
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.encode import closure
from cuda_lsp.static.symbolic.events import Access, Event, accesses
from cuda_lsp.static.symbolic.terms import Level, Op, Term


def out_of_bounds(query: Query, events: Sequence[Event], launch: LaunchConfig) -> Iterator[Diagnosis]:
    """One finding per site whose index can leave its shared array."""
    from cuda_lsp.static.solver.report import argument_values, model_threads
    from cuda_lsp.static.symbolic.intervals import Relation

    seen: set[Site] = set()
    for access in accesses(events):
        size = access.array.size
        if access.array in query.summary.reached:
            continue  # whichever block's memory it is
        if access.array.space is not Space.SHARED or size is None or size <= 0 or access.site in seen:
            continue
        formula = _outside(access, size, query)
        if formula is t.FALSE or not query.parameters(formula) or _rests_on_data(formula, query):
            continue
        formula, answer = _answered(formula, query)
        if answer.outcome is not Outcome.MODEL:
            continue
        model = answer.values or {}
        thread = model_threads(model, query, Relation())[0]
        arguments = argument_values(query, model, launch)
        start = _replayed(query, thread, arguments, access.site, size)
        if start is None:
            continue
        seen.add(access.site)
        values = {p.args[0]: arguments[p.args[0]] for p in query.parameters(formula)}
        place, extent = words.subscript(access.array, start), size // max(access.array.element.size, 1)
        yield Diagnosis(
            Code.SHARED_OUT_OF_BOUNDS, Status.CONDITIONAL,
            f"{words.thread(thread.tid)} reaches {place}, outside its {extent} elements",
            query.kernel.name, access.site, conditions=sufficient(formula, arguments, query), launch=launch,
            witness=Witness(
                (thread.tid, thread.tid), None, access.array.name, words.element(access.array, start),
                values, arguments,
            ),
        )  # fmt: skip


def _outside(access: Access, size: int, query: Query) -> Term:
    """The access happens and touches a byte outside ``[0, size)``."""
    end = t.add(access.offset, access.size)
    outside = t.or_(t.lt(access.offset, t.ZERO), t.lt(t.const(size), end))
    assumed = query.summary.assumptions or t.TRUE
    formula = t.and_(query.where.bounds, assumed, access.guard, outside)
    return closure(formula, query.summary, Level.THREAD)


def _answered(formula: Term, query: Query) -> tuple[Term, Answer]:
    """With parameters that are not negative, as sizes are, if the index can leave the array then."""
    _, sized = query.sized(formula)
    answer = query.solve(sized)
    return (sized, answer) if answer.outcome is Outcome.MODEL else (formula, query.solve(formula))


def _rests_on_data(formula: Term, query: Query) -> bool:
    return any(
        p.op is Op.TEST or (p.op is Op.APPLY and p.args[0] not in query.summary.facts)
        for p in t.subterms(formula)
    )


def _replayed(query: Query, thread: Thread, arguments: dict[str, int], site: Site, size: int) -> int | None:
    """The byte offset outside the array that the thread really touches at the site."""
    try:
        run = query.replay(thread, arguments, frozenset())
    except (NeedsData, TooLong):
        return None
    outside = (a.start for a in run.accesses if a.site == site and (a.start < 0 or a.stop > size))
    return next(outside, None)
