"""Races that need memory to hold something: which contents show them, and may that be called a condition.

A model of the pair says what arrays hold when the kernel starts; both threads are replayed on those
contents. What comes out is *conditional* where nothing in the source excludes it:

- both addresses are known and only conditions depend on data (``if (in[i] == 6) *count += 1``),
- the address is data and the access is one half of an update that is not atomic (``bins[data[i]]++``),
- in shared memory, one of the two addresses alone is data,
- each thread stores at its own place, and reads that of another (``x[i] = f(x[from[i]])``),
- one value is stored at places that data say (``seen[id[i]] = 1``): who marks them allows for some to be
  marked twice, and it is information.

A plain scatter (``out[index[i]] = x``) stays *possible*: the index may well be a permutation. So does one
that adds what stands beside its ids (``out[id[i]] += in[i]``), and what walks ranges between row offsets
(``for (j = first[i]; j < first[i + 1]; j++) x[j] *= 2``), which ascend; and so does what is
stored where floats of two neighbours enclose a number.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress

from attrs import define, field

from cuda_lsp.ir.program import Array
from cuda_lsp.ir.types import Int, Type
from cuda_lsp.model import Mode, Space
from cuda_lsp.static import budgets
from cuda_lsp.static.data_flow import Source, data_flow
from cuda_lsp.static.exact.collide import Met, collide
from cuda_lsp.static.exact.memory import Initial
from cuda_lsp.static.exact.replay import NeedsData, Run, ThreadAccess, TooLong
from cuda_lsp.static.exact.threads import Thread
from cuda_lsp.static.findings.conditions import Branch, Conditions, Contents, Unordered
from cuda_lsp.static.offset_arrays import enclosing_arrays, offset_arrays
from cuda_lsp.static.solver.query import Answer, Query
from cuda_lsp.static.stored_over import stored_over
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.encode import base_name
from cuda_lsp.static.symbolic.events import Access, accesses
from cuda_lsp.static.symbolic.intervals import Pair
from cuda_lsp.static.symbolic.scene import memory_name
from cuda_lsp.static.symbolic.terms import Level, Op, Term
from cuda_lsp.static.updates_by_ids import by_ids

Cells = tuple[tuple[str, int, int], ...]
"""What arrays hold: name, byte offset, value."""


def with_contents(
    p: Problem, threads: Sequence[Thread], arguments: Mapping[str, int], answer: Answer, query: Query
) -> tuple[Met | None, Conditions | None, Cells]:
    """The collision under some contents of memory, these as a condition if they may be one, and as cells."""
    choices = (None, True, False) if _inputs_choose(p, query) else (None,)
    for fill, choice in itertools.product(budgets.SILENT_CONTENTS, choices):
        memory = _Contents(answer, query, fill)
        with suppress(NeedsData, TooLong):
            met, runs = replayed(p, threads, arguments, query, memory.at, (choice, choice))
            if met is not None and _feasible(met, runs, memory, choice is not None):
                return met, _needed(p, met, memory) if _may_be_meant(p, query) else None, memory.cells()
    return None, None, ()


def replayed(
    p: Problem, threads: Sequence[Thread], arguments: Mapping[str, int], query: Query,
    memory: Initial | None = None,
    choices: tuple[bool | None, bool | None] = (None, None),
) -> tuple[Met | None, Sequence[Run]]:  # fmt: skip
    """The collision of both threads (None: they miss one another), and their runs.

    ``choices``: how conditions come out of which nobody knows, by thread. Raises ``NeedsData``, ``TooLong``.
    """
    first, second = p.pair.first, p.pair.second
    arrays = frozenset((first.array, second.array))
    a, b = (query.replay(x, arguments, arrays, memory, c) for x, c in zip(threads, choices, strict=True))
    met = collide((threads[0], a), (threads[1], b), (first.site, second.site), query.kernel.cluster)
    return met, (a, b)


def _inputs_choose(p: Problem, query: Query) -> bool:
    """Some condition on floating-point data decides, and of no other data than what global memory holds."""
    shared = any(a.space is Space.SHARED for a in (p.pair.first.array, p.pair.second.array))
    contents = {memory_name(a) for a in query.kernel.arrays if a.space is Space.GLOBAL}
    names = _unknowns(p.formula, query)
    floats = names & query.summary.loaded
    return bool(floats) and not shared and all(n.partition("@")[0] in contents for n in names - floats)


def _needed(p: Problem, met: Met, memory: _Contents) -> Conditions:
    """The contents of memory, and how conditions on floating-point data come out, as a condition.

    Of what else the two threads read on their way nothing hangs.
    """
    flow = data_flow(memory.query.kernel)
    places = (x for access in (p.pair.first, p.pair.second) for x in flow.at(access.site.range))
    deciding = flow.arrays_in(frozenset[Source]().union(*(x.address | x.guard for x in places)))
    chosen = {access.chosen for access in met if access.chosen is not None}
    told = sorted({(site.range.start.line, holds) for site, holds in chosen})
    contents = [memory.condition(deciding)] if memory.asked else []
    return (*contents, *(Branch(*branch) for branch in told))


@define
class _Contents:
    """What memory holds at the start: the model's word, else ``fill``. Remembers what was asked."""

    answer: Answer
    query: Query
    fill: int
    asked: dict[tuple[Array, int], int] = field(factory=dict[tuple[Array, int], int])
    of_written: set[Array] = field(factory=set[Array])

    def at(self, array: Array, offset: int, type: Type) -> int | None:
        """The integer at a byte of an array; None: nobody knows."""
        if not isinstance(type, Int):
            return None
        name = memory_name(array)
        unknowns = self.query.summary.unknowns
        if name not in unknowns:
            if array.space is not Space.GLOBAL:
                return None  # nobody fills shared memory before the kernel starts
            self.of_written.add(array)
            name = f"{name}@0"
        said = self.answer.cells.get((name, offset))
        value = max(type.minimum, min(self.fill, type.maximum)) if said is None else type.wrap(said)
        self.asked[array, offset] = value
        return value

    def cells(self) -> Cells:
        return tuple((array.name, offset, value) for (array, offset), value in self.asked.items())

    def condition(self, deciding: Set[Array]) -> Contents:
        """Of the arrays that decide, if any of them was asked."""
        known = {cell: value for cell, value in self.asked.items() if cell[0] in deciding} or self.asked
        inputs = {cell: value for cell, value in known.items() if cell[0] not in self.of_written}
        return Contents(tuple((inputs or known).items()))


def _feasible(met: Met, runs: Sequence[Run], memory: _Contents, chosen: bool) -> bool:
    """Whether some schedule of the two threads reads those contents.

    Arrays that the kernel writes hold their first contents only before any barrier, and until the thread
    itself writes there. ``chosen``: conditions on floating-point data, of which nobody knows where they
    were read, came out as wanted.
    """
    if chosen and any(access.passed for access in met):
        return False
    if not memory.of_written:
        return True
    return not any(access.passed for access in met) and not any(
        _reads_its_own(run.accesses, memory.of_written) for run in runs
    )


def _reads_its_own(accesses: Iterable[ThreadAccess], arrays: set[Array]) -> bool:
    written: list[ThreadAccess] = []
    for a in accesses:
        if a.array not in arrays:
            continue
        if a.mode is not Mode.WRITE and any(
            w.array is a.array and w.start < a.stop and a.start < w.stop for w in written
        ):
            return True
        if a.mode.writes:
            written.append(a)
    return False


def _may_be_meant(p: Problem, query: Query) -> bool:
    """Whether the contents that the race needs are a condition, and not an invariant surely kept."""
    if depends_on_atomics(p, query):
        return False
    first, second, flow = p.pair.first, p.pair.second, data_flow(query.kernel)
    data = [bool(_contents_in(access.offset, query)) for access in (first, second)]
    if not any(data):
        return True
    if all(data):
        if _within_rows(p, query):
            return False
        if p.same_value:
            return True
        pairs = [(x, y) for x in flow.at(first.site.range) for y in flow.at(second.site.range)]
        near = p.pair.relation.same_block
        unlike = any(
            by_ids(flow, x, y, same_block=near) or stored_over(flow, x)
            for x, y in pairs
            if x.arrays & y.arrays
        )
        return is_update(first, query) and _alike(first, second) and not unlike
    return first.array.space is Space.SHARED or _gathered_in_place(p, query)


def _gathered_in_place(p: Problem, query: Query) -> bool:
    """Each thread stores at its own place, and reads that of another, whichever an array says.

    ``x[i] = f(x[from[i]])``. All places from the array's begin on are stored to: none is left that may be
    read alone. Not where a level or a colour says who stores or what is read.
    """
    own, other = sorted((p.pair.first, p.pair.second), key=lambda x: bool(_contents_in(x.offset, query)))
    if (own.mode, other.mode) != (Mode.WRITE, Mode.READ) or own.array.space is not Space.GLOBAL:
        return False
    if not _is_dense(own):
        return False
    flow = data_flow(query.kernel)
    chosen = ((x is other, y.guard) for x in (own, other) for y in flow.at(x.site.range))
    bounds = flow.rows | flow.begins
    return not any(
        isinstance(array.element, Int) and not (read and array in bounds)
        for read, guard in chosen
        for array in flow.arrays_in(guard)
    )


def _is_dense(access: Access) -> bool:
    """No parameter alone says where it is, and coordinates next to one another are of places side by side."""
    parts = t.monomials(access.offset)
    own = all(any(t.level_of(x) is not Level.GRID for x in atoms) for atoms in parts)
    return own and access.size.is_const and min(map(abs, parts.values()), default=0) == access.size.value


def sought_in(pair: Pair, query: Query) -> Unordered | None:
    """The array of floats in which both threads find what encloses a number, and store that they did.

    Of a row that ascends one thread does. Not who counts: it expects many.
    """
    names, judged = enclosing_arrays(query.kernel), query.kernel.computed
    if not names or judged is None or pair.first.mode is not Mode.WRITE is not pair.second.mode:
        return None
    if is_update(pair.first, query) or is_update(pair.second, query):
        return None
    flow = data_flow(judged)
    guards = (
        {array.name for x in flow.at(access.site.range) for array in flow.arrays_in(x.guard)}
        for access in (pair.first, pair.second)
    )
    return next((Unordered(name) for name in sorted(names.intersection(*guards))), None)


def _within_rows(p: Problem, query: Query) -> bool:
    """Where rows begin and how long they are stand apart (``first[v] + k``, ``k < count[v]``).

    Where neighbouring offsets bound them, ``orders`` asks.
    """
    flow = data_flow(query.kernel)
    places = (p.pair.first.site.range, p.pair.second.site.range)
    within = all(any(flow.arrays_in(x.address) & flow.rows for x in flow.at(place)) for place in places)
    return within and not offset_arrays(query.kernel)


def is_update(access: Access, query: Query) -> bool:
    """The same place is read and written without an atomic: ``x[k] += 1``, or in two statements."""
    same = [a for a in accesses(query.summary.events) if a.array is access.array and _alike(a, access)]
    return {Mode.READ, Mode.WRITE} <= {a.mode for a in same} and not any(a.mode.atomic for a in same)


def _alike(a: Access, b: Access) -> bool:
    """The same place for one thread: one expression of the text, or equal addresses."""
    return a.offset is b.offset or a.site.range == b.site.range


def depends_on_atomics(p: Problem, query: Query) -> bool:
    """Some atomic's result decides: one thread may have been picked."""
    return any(name in query.summary.tainted for name in _unknowns(p.formula, query))


def only_inputs_decide(p: Problem, query: Query) -> bool:
    """All unknowns of the pair are contents of arrays that the kernel does not write."""
    inputs = {memory_name(a) for a in query.kernel.arrays if a.space is Space.GLOBAL}
    return all(name.partition(":")[0] in inputs for name in _unknowns(p.formula, query))


def _unknowns(formula: Term, query: Query) -> set[str]:
    names = {base_name(part.args[0]) for part in t.subterms(formula) if part.op in (Op.APPLY, Op.TEST)}
    return {name for name in names if name not in query.summary.facts}


def _contents_in(offset: Term, query: Query) -> set[str]:
    return {name for name in _unknowns(offset, query) if name in query.summary.unknowns}
