"""Loops in closed form: what each variable holds at the start of round k.

A probe walks one round from unknown header values; what comes out, beside what went in, gives the values of
round k (``closed_forms``). Then the round is walked once more, with k symbolic, and that walk's events are
the loop. The exit round K is an unknown with its defining facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from attrs import evolve

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.deciding import KERNEL
from cuda_lsp.ir.program import Array, Var
from cuda_lsp.ir.walk import assigned, inside
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.closed_forms import Header, Marks, closed_forms, substituted
from cuda_lsp.static.symbolic.events import Access, BarrierEvent, CopyEvent, Event, Fact, LoopEvent
from cuda_lsp.static.symbolic.filled import filled_by
from cuda_lsp.static.symbolic.scene import WAITING, State, in_order
from cuda_lsp.static.symbolic.terms import Level, Op, Term
from cuda_lsp.static.symbolic.values import Value, choose
from cuda_lsp.static.symbolic.walk import Walker, written_arrays


def walk_loop(walker: Walker, loop: ir.Loop) -> None:
    """Adds the loop's events and moves the walker's state behind the loop."""
    if id(loop) in walker.waiting:
        walker.locks = walker.locks or WAITING
    if walker.unroll and _has_barrier(loop) and _unrolled(walker, loop):
        return
    entry = walker.state.copy()
    k = t.symbol(f"k{walker.number()}", Level.GRID, 0)
    changed = [v for v in _assigned(loop) if v in entry.values]
    marks = Marks.of(walker, changed, entry.values)
    read_only = _read_only(walker, loop)
    after, ends, settled = _probe(walker, loop, k, marks.header, read_only)
    if not read_only <= settled:
        after, ends, settled = _probe(walker, loop, k, marks.header)
    header = closed_forms(walker, k, entry.values, marks, after, ends)
    walker.state = entry.copy()
    _record(walker, loop, k, header, settled)


# ----------------------------------------------------------------------------------------- syntax


def _assigned(loop: ir.Loop) -> list[Var]:
    return list(dict.fromkeys(v for s in inside(loop) if (v := assigned(s)) is not None))


def _has_barrier(loop: ir.Loop) -> bool:
    return any(isinstance(s, ir.Barrier) for s in inside(loop))


# ------------------------------------------------------------------------------------- unrolling


def _unrolled(walker: Walker, loop: ir.Loop) -> bool:
    """Walks a loop round by round when its condition is always plainly true or false."""
    saved, events, count = walker.state.copy(), len(walker.events), walker.statements
    returned = walker.returned
    left = {label: list(entries) for label, entries in walker.left.items()}
    outer_break = walker.left.pop(loop.label, None)
    known = set(walker.state.values)
    for number in range(walker.unroll + 1):
        if number or loop.tests_first:
            walker.walk(loop.test)
            condition = walker.evaluator().condition(loop.condition)
            if condition is t.FALSE or walker.state.alive is t.FALSE:
                walker.rejoin(loop.label, known)
                if outer_break:
                    walker.left[loop.label] = outer_break
                walker.unrolled = True
                return True
            if condition is not t.TRUE:
                break
        if number == walker.unroll:
            break
        walker.walk((ir.Block(loop.continue_label, loop.body),))
        walker.walk(loop.step)
    walker.state, walker.left, walker.statements = saved, left, count
    walker.returned = returned
    del walker.events[events:]
    return False


# ---------------------------------------------------------------------------------- one round


def _round(walker: Walker, loop: ir.Loop, k: Term) -> Term:
    """Walks one round at ``k`` from the walker's state; returns the condition under which it runs."""
    first = t.eq(k, t.ZERO)
    outer = walker.path
    started = len(walker.events)
    if loop.tests_first:
        walker.walk(loop.test)
        runs = walker.evaluator().condition(loop.condition)
    else:
        before = walker.state.copy()
        again = t.not_(first)
        walker.path = t.and_(outer, again)
        walker.walk(loop.test)
        runs = t.or_(first, walker.evaluator().condition(loop.condition))
        walker.state = walker.merge(again, walker.state, before)
    if len(walker.events) > started:  # tests run when the round before was completed
        previous = t.or_(first, t.substitute(runs, {k: t.sub(k, t.ONE)}))
        walker.events[started:] = [_guarded(e, previous) for e in walker.events[started:]]
    walker.path = t.and_(outer, runs)
    walker.walk((ir.Block(loop.continue_label, loop.body),))
    walker.walk(loop.step)
    walker.path = outer
    return runs


def _guarded(event: Event, condition: Term) -> Event:
    if isinstance(event, Access | BarrierEvent | CopyEvent):
        return evolve(event, guard=t.and_(event.guard, condition))
    return event


# ------------------------------------------------------------------------------- closed forms


def _read_only(walker: Walker, loop: ir.Loop) -> frozenset[Array]:
    """Arrays that no round stores to, and that nobody has stored to since a barrier before the loop.

    If that is so at the beginning of a round, and then at its end, it is so in all of them.
    """
    stored = written_arrays((loop,), walker.pointers) if _has_barrier(loop) else walker.written
    if not stored <= walker.written:
        return frozenset()
    unwritten, versions = walker.written - stored, walker.state.versions
    return frozenset(a for a in unwritten if versions.get(a, (0, Level.BLOCK))[1] <= Level.BLOCK)


def _probe(
    walker: Walker, loop: ir.Loop, k: Term, start: Header, read_only: Set[Array] = frozenset()
) -> tuple[dict[Var, Value], Term, Set[Array]]:
    """What the variables hold after one round from ``start``; leaves no events behind.

    When the round comes to its end. And the arrays that nobody stored to since a barrier, neither before the
    loop nor at the end of a round, if that holds of ``read_only`` at its beginning.
    """
    saved = (walker.state, walker.path, walker.assumed, walker.fenced, walker.locks, walker.returned)
    events, left, iterators = walker.events, walker.left, walker.iterators
    members = walker.members
    walker.events, walker.left = [], {}
    walker.depth += 1
    _enter(walker, loop, k, start, read_only)
    first = dict(walker.state.versions)
    ends = t.and_(_round(walker, loop, k), walker.state.alive)
    result = {var: walker.state.values.get(var, value) for var, value in start.items()}
    last = walker.state.versions
    settled = {
        array for array in first
        if saved[0].versions.get(array, (0, Level.BLOCK))[1] <= Level.BLOCK
        and (last[array] == first[array] or last[array][1] <= Level.BLOCK)
    }  # fmt: skip
    walker.depth -= 1
    walker.state, walker.path, walker.assumed, walker.fenced, walker.locks, walker.returned = saved
    walker.events, walker.left, walker.iterators = events, left, iterators
    walker.members = members
    return result, ends, settled


def _enter(walker: Walker, loop: ir.Loop, k: Term, header: Header, settled: Set[Array] = frozenset()) -> None:
    walker.state = walker.state.copy()
    walker.path = t.and_(walker.path, walker.state.alive)
    walker.state.alive = t.TRUE
    walker.state.values.update(header)
    walker.iterators = (*walker.iterators, k)
    _forget(walker, loop, settled)


def _forget(walker: Walker, loop: ir.Loop, settled: Set[Array] = frozenset()) -> None:
    """Memory that the loop writes holds unknown values in its rounds and after it."""
    stored = written_arrays((loop,), walker.pointers)
    touched = stored if stored <= walker.written and not _has_barrier(loop) else walker.written
    for array in in_order(touched):
        level = Level.BLOCK if array in settled else Level.THREAD
        walker.state.versions[array] = (walker.number(), level)
        walker.state.forget(array)


# -------------------------------------------------------------------------------- the recorded walk


def _record(walker: Walker, loop: ir.Loop, k: Term, header: Header, settled: Set[Array]) -> None:
    outer_path, outer_events, outer_left = walker.path, walker.events, walker.left
    outer_iterators, outer_returned, entry = walker.iterators, walker.returned, walker.state
    walker.events, walker.left = [], {}
    _enter(walker, loop, k, header, settled)
    inside = walker.path
    at_header = walker.state.copy()
    runs = _round(walker, loop, k)
    events, left, stored = tuple(walker.events), walker.left, walker.state.local
    walker.events, walker.left = outer_events, outer_left
    walker.path, walker.iterators, walker.returned = outer_path, outer_iterators, outer_returned

    leaves = [(guard, state, label) for label, entries in left.items() for guard, state in entries]
    premises = set(t.conjuncts(inside))
    conditions = [t.and_(*(c for c in t.conjuncts(g) if c not in premises)) for g, _, _ in leaves]
    leaving = t.or_(*conditions)
    name = f"exit{walker.number()}"
    level = max(t.level_of(runs), t.level_of(leaving))
    formals = tuple(t.symbol(f"f{i}.{name}", Level.GRID) for i in range(len(outer_iterators)))
    exit_round = t.apply(name, level, outer_iterators, 0)
    walker.unknowns[name] = "the number of rounds of a loop"
    walker.facts[name] = _exit_facts(
        k, runs, leaving, exit_round, dict(zip(outer_iterators, formals, strict=True)), formals
    )
    begun = bool(leaves) or any(not isinstance(s, ir.Assign) for s in loop.test)
    happens = t.and_(inside, runs)
    walker.events.append(
        LoopEvent(k, happens, exit_round, events, loop.site, begun, left=bool(leaves), leaving=leaving)
    )
    _leave(walker, entry, at_header, k, exit_round, runs, list(zip(conditions, leaves, strict=True)), loop)
    rounds = None if leaves else _rounds(k, runs)
    if rounds is not None:
        walker.state.filled |= filled_by(loop, k, rounds, walker.pointers, stored)


def _exit_facts(
    k: Term,
    runs: Term,
    leaving: Term,
    exit_round: Term,
    rename: Mapping[Term, Term],
    formals: tuple[Term, ...],
) -> Fact:
    last = t.sub(exit_round, t.ONE)
    ran = t.and_(t.substitute(runs, {k: last}), t.not_(t.substitute(leaving, {k: last})))
    ended = t.substitute(t.or_(t.not_(runs), leaving), {k: exit_round})
    fact = t.and_(ended, t.or_(t.eq(exit_round, t.ZERO), ran))
    return Fact(formals, t.substitute(fact, rename))


def _rounds(k: Term, runs: Term) -> Term | None:
    """How many rounds run, where parameters alone tell: what moves by so much in a loop around moves evenly.

    ``c*k + b <= 0`` holds up to ``k == -b // c``.
    """
    if runs.op is not Op.LE:
        return None
    sums = dict(t.monomials(runs.args[0]))
    factor = sums.pop((k,), 0)
    bound = t.from_monomials(sums)
    known = all(x.op not in (Op.APPLY, Op.TEST) and x is not k for x in t.subterms(bound))
    if factor <= 0 or not known or t.level_of(bound) is not Level.GRID:
        return None
    last = t.floor_div(t.scale(bound, -1), factor)
    return t.ite(t.le(bound, t.ZERO), t.add(last, t.ONE), t.ZERO)


def _leave(
    walker: Walker, entry: State, at_header: State, k: Term, exit_round: Term, runs: Term,
    leaves: list[tuple[Term, tuple[Term, State, int]]], loop: ir.Loop,
) -> None:  # fmt: skip
    """The state behind the loop: header values at the exit round, or a break's snapshot there."""
    rounds = None if leaves else _rounds(k, runs)
    at_exit = {k: exit_round if rounds is None else rounds}
    known = set(entry.values)
    values = {var: substituted(v, at_exit) for var, v in at_header.values.items() if var in known}
    walker.state = State(values, t.TRUE, dict(entry.versions), dict(entry.local), dict(entry.filled))
    _forget(walker, loop)
    gone: Term = t.FALSE
    for condition, (_, snapshot, label) in leaves:
        then = t.substitute(condition, at_exit)
        moved = {v: substituted(x, at_exit) for v, x in snapshot.values.items() if v in known}
        if label == loop.label:
            for var, value in moved.items():
                if walker.state.values.get(var) != value:
                    walker.state.values[var] = choose(then, value, walker.state.values.get(var, value))
        else:
            outer = walker.state.copy()
            outer.values = {**outer.values, **moved}
            guard = t.and_(walker.path, entry.alive, then)
            walker.left.setdefault(label, []).append((guard, outer))
            if label == KERNEL:
                walker.returned = t.or_(walker.returned, guard)
            gone = t.or_(gone, then)
    walker.state.alive = t.and_(entry.alive, t.not_(gone))
