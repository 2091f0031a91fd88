"""From a solver's model to a finding: replay, status, condition, message.

Status: ``proved`` when the source fixes all that the race needs, ``conditional`` when it needs values
that the source does not exclude (the condition is derived, never a dump of the model), ``possible``
when it rests on data or on an over-approximation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress

from attrs import evolve

from cuda_lsp.ir.program import BDIM, BID, GDIM, TID, Array, Axis, Var
from cuda_lsp.model import Dim3, LaunchConfig, Space, Status, Witness
from cuda_lsp.static import budgets
from cuda_lsp.static.data_flow import data_flow
from cuda_lsp.static.exact.collide import Met
from cuda_lsp.static.exact.replay import NeedsData, TooLong
from cuda_lsp.static.exact.threads import Thread, memory_base
from cuda_lsp.static.findings import conditions as c
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import Conditions, Doubt, Open
from cuda_lsp.static.findings.diagnosis import Diagnosis, race_between
from cuda_lsp.static.findings.places import stands_below
from cuda_lsp.static.findings.steps import Remedy
from cuda_lsp.static.launches.coordinates import axes_of, meant_for_blocks, unlike
from cuda_lsp.static.solver.condition import condition_of, example_of, told_extents
from cuda_lsp.static.solver.contents import Cells, only_inputs_decide, replayed, sought_in, with_contents
from cuda_lsp.static.solver.grains import grain_of
from cuda_lsp.static.solver.orders import order_of
from cuda_lsp.static.solver.query import Answer, Query, is_linear
from cuda_lsp.static.solver.repeats import asked_of_contents
from cuda_lsp.static.solver.rows.kept import only_in_short_rows
from cuda_lsp.static.solver.rows.pitch import Pitch
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.encode import base_name
from cuda_lsp.static.symbolic.events import Access
from cuda_lsp.static.symbolic.intervals import Relation
from cuda_lsp.static.symbolic.launch import related
from cuda_lsp.static.symbolic.scene import memory_name
from cuda_lsp.static.symbolic.terms import Op, Term

_FAR = 4  # times a size is far above it


def race_finding(
    p: Problem, facts: Term, answer: Answer, query: Query, launch: LaunchConfig | None,
    *, whatever: bool = False,
) -> Diagnosis | None:  # fmt: skip
    """The diagnosis for a model of the pair, or None when the model does not replay (spurious).

    ``whatever``: its threads meet whatever memory holds, as has been shown.
    """
    values = answer.values or {}
    threads = model_threads(values, query, p.pair.relation)
    arguments = argument_values(query, values, launch)
    locks = query.summary.locks
    doubt: Doubt | None = c.OnData(locks) if locks else None if whatever else data_dependence(p, query)
    met: Met | None = None
    data: Conditions | None = None
    cells: Cells = ()
    try:
        met, _ = replayed(p, threads, arguments, query)
        if met is None and doubt is None:
            return None
    except NeedsData:
        known = all(part.op not in (Op.APPLY, Op.TEST) for part in t.subterms(p.formula))
        unknown = c.OnData(_named_arguments(p, query) if known else "what memory holds", arguments=known)
        divisor = _divisor(p, values)
        doubt = doubt or (
            c.OnData(f"whether `{t.show(divisor)}` is 0", arguments=True) if divisor is not None else unknown
        )
        met, data, cells = with_contents(p, threads, arguments, answer, query)
        if met is None:
            met, data = _meeting_by_choice(p, threads, arguments, query) or (None, None)
        elif whatever:
            data, cells = (), ()
    except TooLong:
        doubt = doubt or Open.REPLAY
    if memory_base(p.pair.first.array)[0] != memory_base(p.pair.second.array)[0]:
        met, doubt = None, Open.POINTERS
    wraps = _only_wrapped(p, values)
    return _diagnosis(p, facts, query, launch, threads, met, doubt, arguments, data, cells, wraps)


def _only_wrapped(p: Problem, values: Mapping[Term, int]) -> bool:
    """In the model the two addresses meet because an index of 32 bits wraps."""

    def whole(part: Term) -> Term | None:
        if part.op is Op.WRAP and part.args[1] == 32:
            return t.replace(part.args[0], whole, {})
        return None

    if not any(part.op is Op.WRAP for part in t.subterms(p.overlap)):
        return False
    known = {term: t.const(value) for term, value in values.items()}
    return t.substitute(t.replace(p.overlap, whole, {}), known) is t.FALSE


def _meeting_by_choice(
    p: Problem, threads: Sequence[Thread], arguments: Mapping[str, int], query: Query
) -> tuple[Met, Conditions] | None:
    """The collision when a condition on data goes one way, and that condition.

    At addresses that are not data. Either one of the two accesses happens whatever the data are (then
    nothing in the program can make the two exclude each other), or input arrays alone decide.
    """
    inputs = only_inputs_decide(p, query)
    if p.pair.first.array.space is not Space.SHARED and not inputs:
        return None
    for choices in ((True, True), (False, False), (True, False), (False, True)):
        with suppress(NeedsData, TooLong):
            met, _ = replayed(p, threads, arguments, query, choices=choices)
            chosen = [access.chosen for access in met or () if access.chosen is not None]
            if met is not None and (len(chosen) == 1 or (inputs and len(set(chosen)) == 1)):
                site, outcome = chosen[0]
                return met, (c.Branch(site.range.start.line, outcome),)
    return None


def argument_values(query: Query, values: Mapping[Term, int], launch: LaunchConfig | None) -> dict[str, int]:
    """Scalar arguments of a model: what the launch fixes, what the model says, 0 where it is silent."""
    by_name = _by_name(values)
    free = {name: by_name.get(name, 0) for name in query.where.free}
    return {**free, **(launch.arguments if launch is not None else {})}


def _by_name(values: Mapping[Term, int]) -> dict[str, int]:
    return {term.args[0]: v for term, v in values.items() if term.op is Op.SYMBOL}


def model_threads(values: Mapping[Term, int], query: Query, relation: Relation) -> tuple[Thread, Thread]:
    """The two threads of a model as numbers; what the model leaves open is zero or one."""
    by_name = _by_name(values)

    def number(axis: Axis, thread: int, default: int) -> int:
        term = query.where.axes[axis]
        if term.is_const:
            return term.value
        name = term.args[0]
        return by_name.get(f"{name}#{thread}", by_name.get(name, default))

    def triple(axes: Sequence[Axis], thread: int, default: int) -> Dim3:
        x, y, z = (number(axis, thread, default) for axis in axes)
        return x, y, z

    def build(thread: int) -> Thread:
        bid, gdim = triple(BID, thread, 0), triple(GDIM, thread, 1)
        x, y, z = (max(g, b + 1) for g, b in zip(gdim, bid, strict=True))
        return Thread(triple(TID, thread, 0), bid, triple(BDIM, thread, 1), (x, y, z), query.where.warp_size)

    first, second = build(1), build(2)
    return first, second


def _divisor(p: Problem, values: Mapping[Term, int]) -> Term | None:
    """Something by which the pair divides, and which is 0 in the model."""
    known = {term: t.const(value) for term, value in values.items()}
    divisors = (part.args[1] for part in t.subterms(p.formula) if part.op in (Op.DIV, Op.REM))
    return next((divisor for divisor in divisors if t.substitute(divisor, known) is t.ZERO), None)


def _named_arguments(p: Problem, query: Query) -> str:
    """Those that say how far apart the addresses are, or bound what these are made of, a few by name."""
    named = query.parameters(p.overlap) or query.parameters(p.formula)
    names = sorted({x.args[0] for x in named})
    shown = " and ".join(f"`{name}`" for name in names[: budgets.MOST_CONDITIONS])
    return f"the arguments {shown}" if shown else Open.ARGUMENTS.value


def data_dependence(p: Problem, query: Query) -> c.OnData | None:
    """The unknown value that the pair's formula mentions; of its addresses, if these have one.

    Where only conditions have one, the arguments that the addresses are made of have a part in it, too.
    """
    if (found := data_in_addresses(p, query)) is not None:
        return found
    if (name := _unknown_in((p.formula,), query)) is None:
        return None
    found = _unknown(name, p, query, guards=True)
    of_addresses = bool(query.parameters(p.overlap))
    return c.OnData(f"{_named_arguments(p, query)} and {found.what}") if of_addresses else found


def data_in_addresses(p: Problem, query: Query) -> c.OnData | None:
    """The unknown value that the pair's addresses mention."""
    name = _unknown_in(p.offsets, query)
    return _unknown(name, p, query, guards=False) if name is not None else None


def _unknown_in(parts: Sequence[Term], query: Query) -> str | None:
    """The first value in these terms that stands for what nobody knows; a loop's exit is defined."""
    names = (
        base_name(part.args[0])
        for part in itertools.chain(*map(t.subterms, parts))
        if part.op in (Op.APPLY, Op.TEST)
    )
    return next((name for name in names if name not in query.summary.facts), None)


def _unknown(name: str, p: Problem, query: Query, *, guards: bool) -> c.OnData:
    """What a value stands for; of a variable that a loop changes, the arrays that it is made of."""
    if (var := query.summary.changed.get(name)) is not None:
        flow = data_flow(query.kernel)
        places = [x for access in (p.pair.first, p.pair.second) for x in flow.at(access.site.range)]
        sources = frozenset(s for x in places for s in (x.guard if guards else x.address))
        if made_of := flow.arrays_in(sources):
            read = flow.read_for(var)
            ordered = sorted(made_of, key=lambda array: (array not in read, array.id))
            return c.contents_of([array.name for array in ordered])
    own = [a for a in query.kernel.arrays if a.space is Space.LOCAL and name.startswith(memory_name(a))]
    if (made := _made_of(own, query)) is not None:
        return made
    return c.OnData(query.summary.unknowns.get(name, "a value computed from data"))


def _made_of(own: Sequence[Array], query: Query) -> c.OnData | None:
    """What a thread's own array is made of, which is nothing that anybody could look up in memory."""
    flow = data_flow(query.kernel)
    sources = [source for array in own for source in flow.known.get(array, ())]
    if read := flow.arrays_in(frozenset(sources)) - set(own):
        return c.contents_of([array.name for array in sorted(read, key=lambda array: array.id)])
    names = sorted({source.name for source in sources if isinstance(source, Var) and source.name})
    shown = " and ".join(f"`{name}`" for name in names[: budgets.MOST_CONDITIONS])
    return c.OnData(f"the arguments {shown}", arguments=True) if names else None


# --------------------------------------------------------------------------------------- diagnosis


def _diagnosis(
    p: Problem, facts: Term, query: Query, launch: LaunchConfig | None, threads: tuple[Thread, Thread],
    met: Met | None, doubt: Doubt | None, arguments: Mapping[str, int], data: Conditions | None = None,
    cells: Cells = (), wraps: bool = False,
) -> Diagnosis:  # fmt: skip
    """``met``: the two accesses of the replay; ``data``: what of memory that needs, if it may be meant."""
    early, late, swapped = _text_order(p.pair.first, p.pair.second)
    order = (order_of(p, facts, query) or sought_in(p.pair, query)) if data is not None else None
    if order is not None:
        data, doubt, cells = None, order, ()
    status, conditions = Status.POSSIBLE, ()
    meant = data is not None and not query.summary.locks
    if met is not None and (meant or doubt is None or _happens_anyway(p, query, threads, arguments)):
        # Addresses that are products may meet only because the model chose the factors.
        # So may those that need nothing of memory: then it is the parameters that decide.
        needed = () if meant and data and is_linear(p.overlap) else condition_of(p, facts, query, arguments)
        if doubt is not None and not meant and not needed:
            needed = _through_memory(p, query, arguments)
        doubt = _launch_doubt(p, facts, query, needed, arguments)
        if doubt is None:
            conditions = (*needed, *(data or ())) or _needs_blocks(p, launch)
            status = Status.CONDITIONAL if meant or conditions else Status.PROVED
            sizes = (arguments.get(name, 0) for name in c.parameters_of(conditions))
            if wraps and max(sizes, default=0) > budgets.PLAUSIBLE_SIZE:
                status, doubt = Status.POSSIBLE, Open.ARGUMENTS  # every kernel wraps for some size
            query.shown[p.pair.sites] = (p, facts, arguments)
        elif doubt in (Open.ARGUMENTS, Open.LAUNCH_AND_ARGUMENTS):
            formula = query.complete(t.and_(facts, p.formula), p)
            parameters = {x.args[0]: x for x in query.parameters(formula) if x.args[0] in arguments}
            conditions = (example_of(formula, parameters, arguments, query),) if parameters else ()
    if status is Status.POSSIBLE and isinstance(doubt, c.OnData) and not query.summary.locks:
        doubt = asked_of_contents(p, facts, query, doubt)
    array, witness, warp = early.array, None, False
    if met is not None:
        array = p.pair.first.array
        a, b = threads[::-1] if swapped else threads
        witness = Witness(
            (a.tid, b.tid), None if a.bid == b.bid == (0, 0, 0) else (a.bid, b.bid),  # 0: any block
            array.name, words.element(array, max(met[0].start, met[1].start)), {}, arguments, cells,
        )  # fmt: skip
        warp = _within_a_warp_only(p, facts, query, threads)
    remedy = Remedy.WRAPPED if wraps else _remedy(p, early, late, warp, met)
    return race_between(
        query.kernel.name, launch, array, early, late, witness, status, conditions, doubt,
        remedy=remedy, warp=warp, same_value=p.same_value,
        swapped=swapped and p.pair.relation.same_block,
    )  # fmt: skip


def _remedy(p: Problem, early: Access, late: Access, warp: bool, met: Met | None) -> Remedy:
    if any(a.array is b.array and a.scope is None for a in early.held for b in late.held):
        return Remedy.UNFENCED
    # A statement that reads what it writes names the write first: that is no later round.
    first, second = (early, late) if early.order <= late.order else (late, early)
    again = stands_below(first.site, second.site)
    same = early.site.range == late.site.range
    if same and met is not None and met[0].rounds != met[1].rounds:
        same, again = False, True
    relation = p.pair.relation
    return words.remedy(not relation.same_block, warp, same, again, bool(relation.same_cluster))


def unexcluded(p: Problem, facts: Term, query: Query, launch: LaunchConfig | None) -> Diagnosis:
    """Of a pair that only a condition which all threads of the block share may keep apart."""
    threads = model_threads({}, query, p.pair.relation)
    return _diagnosis(p, facts, query, launch, threads, None, Open.REACHED, {})


def with_broken_rows(found: Diagnosis, pitch: Pitch) -> Diagnosis:
    """Of a pair whose columns leave their rows for every width: the arguments are no doubt."""
    if found.doubt is not Open.ARGUMENTS or found.witness is None:
        return found
    return found.needing(c.Overreach(pitch.names))


def _launch_doubt(
    p: Problem, facts: Term, query: Query, needed: Conditions, arguments: Mapping[str, int]
) -> Doubt | None:
    """What of the launch or the arguments a race in global memory rests on, when that is only a guess.

    A grid that nobody knows may be exactly as large as the data; a parameter without a condition
    that can be said in words may be constrained by the host. ``arguments``: of the model.
    """
    launch = query.where.launch
    assumed = launch is not None and launch.assumed
    if needed and (grain := grain_of(p, facts, query)) is not None:
        return grain
    if launch is not None and assumed and unlike(query.kernel, launch):
        return Open.LAUNCH_ASSUMED
    if needed and query.kernel.ties and _hangs_on_ties(p, facts, query):
        return Open.ARGUMENTS
    if p.pair.first.array.space is not Space.GLOBAL:
        return None
    if needed and c.is_weak(needed):
        return Open.LAUNCH_AND_ARGUMENTS if assumed else Open.ARGUMENTS
    if needed and only_in_short_rows(p, facts, query, arguments):
        return Open.ARGUMENTS
    if p.pair.relation.same_block:
        return None
    if assumed and not _mentions_blocks(p):
        return Open.BLOCKS_ASSUMED
    if launch is not None and launch.grid is not None:
        return None
    if launch is not None and not meant_for_blocks(query.kernel, launch):
        return Open.BLOCKS_UNKNOWN
    used, told = axes_of(query.kernel), told_extents(query)
    most = (2 if i == 0 or BID[i] in used else 1 for i in range(3))
    extents = zip((query.where.axes[axis] for axis in GDIM), most, strict=True)
    open_ = ((extent, n) for extent, n in extents if not extent.is_const and extent not in told)
    small = t.and_(*(t.le(extent, t.const(n)) for extent, n in open_))
    if _possible(p, t.and_(facts, small), query, arguments):
        return Open.LAUNCH if assumed and needed else None
    return Open.BLOCKS_UNKNOWN


def _hangs_on_ties(p: Problem, facts: Term, query: Query) -> bool:
    """It is a race for some values alone of what the host makes of another size, which knows why it does.

    Not where it is one if they are equal, and if the one is far above the other.
    """
    formula = query.complete(t.and_(facts, p.formula), p)
    sizes = {x.args[0]: x for x in query.parameters(formula)}
    return any(
        query.satisfiable(t.and_(formula, t.le(t.ONE, sizes[of]), case)) is False
        for made, of in sorted(query.kernel.ties)
        if made in sizes and of in sizes
        for case in (t.eq(sizes[made], sizes[of]), t.le(t.scale(sizes[of], _FAR), sizes[made]))
    )


def _possible(p: Problem, facts: Term, query: Query, arguments: Mapping[str, int]) -> bool:
    """Whether it happens under ``facts``, for the arguments at least: products of sizes are numbers then."""
    if (answer := query.possible(p, facts)) is not None:
        return answer
    formula = query.complete(t.and_(facts, p.formula), p)
    named = (x for x in query.parameters(formula) if x.args[0] in arguments)
    return bool(query.satisfiable(t.substitute(formula, {x: t.const(arguments[x.args[0]]) for x in named})))


def _needs_blocks(p: Problem, launch: LaunchConfig | None) -> Conditions:
    """That there is a second block, where the source does not tell."""
    alone = launch is not None and launch.grid is None and math.prod(launch.least_grid) == 1
    relation = p.pair.relation
    return (c.Needs.BLOCKS,) if alone and not (relation.same_block or relation.same_cluster) else ()


def _mentions_blocks(p: Problem) -> bool:
    names = {axis.value for axis in BID}
    return any(x.op is Op.SYMBOL and x.args[0].split("#")[0] in names for x in t.subterms(*p.offsets))


def _happens_anyway(
    p: Problem, query: Query, threads: Sequence[Thread], arguments: Mapping[str, int]
) -> bool:
    """The collision does, whatever memory holds; not for want of a size, without which nothing is read."""
    if _left_out(p, query, arguments):
        return False
    with suppress(NeedsData, TooLong):
        return not query.summary.locks and replayed(p, threads, arguments, query)[0] is not None
    return False


def _through_memory(p: Problem, query: Query, arguments: Mapping[str, int]) -> Conditions:
    """The arguments by which memory of the kernel's own led both threads there, which the formula has not."""
    flow = data_flow(query.kernel)
    places = [x for access in (p.pair.first, p.pair.second) for x in flow.at(access.site.range)]
    sources = flow.through_memory(frozenset(source for x in places for source in x.address | x.guard))
    named = [v.name for v in query.kernel.params if v in sources and v.name in arguments]
    return (c.Example(tuple((name, arguments[name]) for name in named)),) if named else ()


def _left_out(p: Problem, query: Query, arguments: Mapping[str, int]) -> bool:
    """A loop that an address is summed up in makes no round, as its bound is an argument that is 0."""
    sums = (part for part in t.subterms(*p.offsets) if part.op is Op.APPLY)
    rounds = (x for part in sums for x in part.args[2])

    def given(term: Term) -> Term:
        named = (x for x in query.parameters(term) if x.args[0] in arguments)
        return t.substitute(term, {x: t.const(arguments[x.args[0]]) for x in named})

    asked = (given(x) for x in rounds if query.parameters(x))
    return any(n.is_const and n.value <= 0 for n in asked)


def _within_a_warp_only(p: Problem, facts: Term, query: Query, threads: tuple[Thread, Thread]) -> bool:
    """The two statements race between lanes of one warp, and nowhere else in the block."""
    a, b = threads
    size = query.where.warp_size
    if p.pair.first is p.pair.second or a.bid != b.bid:
        return False
    if a.linear // size != b.linear // size:
        return False
    if p.pair.relation.within is not None:
        return True
    apart = related(query.where, evolve(p.pair.relation, across=size))
    if query.refutes(t.and_(apart, p.overlap)):  # wherever they come by, which may be a long question
        return True
    return query.possible(p, t.and_(facts, apart)) is False


def _text_order(first: Access, second: Access) -> tuple[Access, Access, bool]:
    a, b = first.site.range, second.site.range
    if (a.start, first.order) <= (b.start, second.order):
        return first, second, False
    return second, first, True
