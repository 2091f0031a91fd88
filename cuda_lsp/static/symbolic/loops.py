"""Loops in closed form: what each variable holds at the start of round k.

A probe walks one round from unknown header values and compares what comes out with what went in:
unchanged, ``+ s``, ``* c``, ``/ c`` or shifts, toggles and swaps of period two, values set afresh each
round; conditional increments keep their bounds and step; anything else becomes an unknown function
of the round (a sound over-approximation).  Then the round is walked once more, with k symbolic, and
that walk's events are the loop.  The exit round K is an unknown with its defining facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Stmt, Var
from cuda_lsp.ir.types import Int
from cuda_lsp.ir.walk import assigned, walk
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import Access, BarrierEvent, CopyEvent, Event, Fact, LoopEvent
from cuda_lsp.static.symbolic.terms import Level, Op, Term
from cuda_lsp.static.symbolic.values import HeaderPlace, PointerValue, Target, Value, choose, type_range
from cuda_lsp.static.symbolic.walk import WAITING, State, Walker, written_arrays

Header = Mapping[Var, Value]

MAX_CYCLE = 16  # rounds until a variable has its first value again


def walk_loop(walker: Walker, loop: ir.Loop) -> None:
    """Adds the loop's events and moves the walker's state behind the loop."""
    if id(loop) in walker.waiting:
        walker.locks = walker.locks or WAITING
    if walker.unroll and _has_barrier((*loop.test, *loop.body, *loop.step)) and _unrolled(walker, loop):
        return
    entry = walker.state.copy()
    k = t.symbol(f"k{walker.number()}", Level.GRID, 0)
    changed = [v for v in _assigned((*loop.test, *loop.body, *loop.step)) if v in entry.values]
    header, settled = _closed_forms(walker, loop, k, changed, entry)
    walker.state = entry.copy()
    _record(walker, loop, k, header, settled)


# ----------------------------------------------------------------------------------------- syntax


def _assigned(statements: Sequence[Stmt]) -> list[Var]:
    return list(dict.fromkeys(v for s in walk(statements) if (v := assigned(s)) is not None))


def _has_barrier(statements: Sequence[Stmt]) -> bool:
    return any(isinstance(s, ir.Barrier) for s in walk(statements))


# ------------------------------------------------------------------------------------- unrolling


def _unrolled(walker: Walker, loop: ir.Loop) -> bool:
    """Walks a loop round by round when its condition is always plainly true or false."""
    saved, events, count = walker.state.copy(), len(walker.events), walker.statements
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
                return True
            if condition is not t.TRUE:
                break
        if number == walker.unroll:
            break
        walker.walk((ir.Block(loop.continue_label, loop.body),))
        walker.walk(loop.step)
    walker.state, walker.left, walker.statements = saved, left, count
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
    from attrs import evolve

    if isinstance(event, Access | BarrierEvent | CopyEvent):
        return evolve(event, guard=t.and_(event.guard, condition))
    return event


# ------------------------------------------------------------------------------- closed forms


def _closed_forms(
    walker: Walker, loop: ir.Loop, k: Term, changed: Sequence[Var], entry: State
) -> tuple[dict[Var, Value], Set[Array]]:
    """The value of each changed variable at the start of round ``k``, and arrays the block agrees on then."""
    marks: dict[Var, Term] = {}
    start: dict[Var, Value] = {}
    for var in changed:
        lo, hi = type_range(var.type)
        marks[var] = t.symbol(f"h{walker.number()}", Level.GRID, lo, hi)
        pointer = isinstance(entry.values[var], PointerValue)
        start[var] = PointerValue((Target(t.TRUE, HeaderPlace(var), t.ZERO),)) if pointer else marks[var]
    places = {v: s.targets[0].array for v, s in start.items() if isinstance(s, PointerValue)}
    after, settled = _probe(walker, loop, k, start)
    return _resolve(walker, k, changed, entry, marks, places, after), settled


def _probe(walker: Walker, loop: ir.Loop, k: Term, start: Header) -> tuple[dict[Var, Value], Set[Array]]:
    """What the variables hold after one round from ``start``; leaves no events behind.

    And the arrays that nobody stored to since a barrier, neither before the loop nor at the end of a round.
    """
    saved = (walker.state, walker.path, walker.assumed, walker.fenced, walker.locks)
    events, left, iterators = walker.events, walker.left, walker.iterators
    walker.events, walker.left = [], {}
    walker.depth += 1
    _enter(walker, loop, k, start)
    first = dict(walker.state.versions)
    _round(walker, loop, k)
    result = {var: walker.state.values.get(var, value) for var, value in start.items()}
    last = walker.state.versions
    settled = {
        array for array in first
        if saved[0].versions.get(array, (0, Level.BLOCK))[1] <= Level.BLOCK
        and (last[array] == first[array] or last[array][1] <= Level.BLOCK)
    }  # fmt: skip
    walker.depth -= 1
    walker.state, walker.path, walker.assumed, walker.fenced, walker.locks = saved
    walker.events, walker.left, walker.iterators = events, left, iterators
    return result, settled


def _enter(walker: Walker, loop: ir.Loop, k: Term, header: Header, settled: Set[Array] = frozenset()) -> None:
    walker.state = walker.state.copy()
    walker.path = t.and_(walker.path, walker.state.alive)
    walker.state.alive = t.TRUE
    walker.state.values.update(header)
    walker.iterators = (*walker.iterators, k)
    _forget(walker, loop, settled)


def _forget(walker: Walker, loop: ir.Loop, settled: Set[Array] = frozenset()) -> None:
    """Memory that the loop writes holds unknown values in its rounds and after it."""
    statements = (*loop.test, *loop.body, *loop.step)
    touched = written_arrays(statements) & walker.written
    if len(touched) < len(written_arrays(statements)):
        touched = walker.written
    if _has_barrier(statements):
        touched = walker.written
    for array in touched:
        level = Level.BLOCK if array in settled else Level.THREAD
        walker.state.versions[array] = (walker.number(), level)
        walker.state.local.pop(array, None)


def _resolve(
    walker: Walker, k: Term, changed: Sequence[Var], entry: State,
    marks: Mapping[Var, Term], places: Mapping[Var, Array | HeaderPlace | None], after: Mapping[Var, Value],
) -> dict[Var, Value]:  # fmt: skip
    closed: dict[Var, Value] = {}
    pending = list(changed)
    progress = True
    while pending and progress:
        progress = False
        for var in list(pending):
            open_marks = {marks[v] for v in pending}
            open_places = {places[v] for v in pending if v in places}
            value = _substituted(after[var], closed, marks, places)
            place = places.get(var)
            form = _closed_form(k, entry.values[var], marks[var], place, value, open_marks, open_places)
            if form is not None:
                closed[var] = form
                pending.remove(var)
                progress = True
    for group in _toggles(pending, marks, places, after):
        for var in group:
            odd = _substituted(after[var], {v: entry.values[v] for v in group}, marks, places)
            even = t.eq(t.floor_mod(k, 2), t.ZERO)
            closed[var] = choose(even, entry.values[var], odd)
            pending.remove(var)
    levels = _levels(pending, marks, entry, after, closed, places)
    for var in pending:
        closed[var] = _havoc(walker, k, var, levels[var], entry.values[var], marks[var], after[var])
    return closed


def _substituted(
    value: Value, known: Header, marks: Mapping[Var, Term], places: Mapping[Var, Array | HeaderPlace | None]
) -> Value:
    """``value`` with header marks replaced by the closed forms ``known``."""
    mapping = {marks[v]: x for v, x in known.items() if isinstance(x, Term)}
    memo: dict[Term, Term] = {}
    if isinstance(value, Term):
        return t.substitute(value, mapping, memo)
    bases = {places[v]: x for v, x in known.items() if isinstance(x, PointerValue)}
    targets: list[Target] = []
    for target in value.targets:
        condition = t.substitute(target.condition, mapping, memo)
        offset = t.substitute(target.offset, mapping, memo)
        base = bases.get(target.array) if isinstance(target.array, HeaderPlace) else None
        if base is None:
            targets.append(Target(condition, target.array, offset))
            continue
        for inner in base.targets:
            both = t.and_(condition, inner.condition)
            targets.append(Target(both, inner.array, t.add(inner.offset, offset)))
    return PointerValue(tuple(targets))


def _mentions(value: Value, marks: set[Term], places: set[Array | HeaderPlace | None]) -> bool:
    if isinstance(value, Term):
        return any(part in marks for part in t.subterms(value))
    return any(
        x.array in places or _mentions(x.condition, marks, places) or _mentions(x.offset, marks, places)
        for x in value.targets
    )


def _closed_form(
    k: Term, first: Value, mark: Term, place: Array | HeaderPlace | None, value: Value,
    open_marks: set[Term], open_places: set[Array | HeaderPlace | None],
) -> Value | None:  # fmt: skip
    """The value at round k of a variable that enters with ``first`` and becomes ``value``."""
    if not _mentions(value, open_marks, open_places):  # set afresh in each round
        previous = _substitute_value(value, {k: t.sub(k, t.ONE)})
        return choose(t.eq(k, t.ZERO), first, previous)
    if isinstance(value, PointerValue):
        if isinstance(first, PointerValue) and len(value.targets) == 1 and value.targets[0].array is place:
            step = value.targets[0].offset
            if not _mentions(step, {*open_marks, k}, open_places) and value.targets[0].condition is t.TRUE:
                move = t.mul(k, step)
                return PointerValue(
                    tuple(Target(x.condition, x.array, t.add(x.offset, move)) for x in first.targets)
                )
        return None
    if not isinstance(first, Term):
        return None
    step = t.sub(value, mark)
    if not _mentions(step, {*open_marks, k}, open_places):
        return t.add(first, t.mul(k, step))
    return _cycle(k, first, mark, value) or _geometric(k, first, mark, value)


def _cycle(k: Term, first: Term, mark: Term, value: Term) -> Term | None:
    """Constants that come back, evenly spaced: ``s = (s + 1) % 3``, ``if (++s == 3) s = 0``."""
    if not first.is_const:
        return None
    seen = [first]
    while len(seen) <= MAX_CYCLE:
        following = t.substitute(value, {mark: seen[-1]})
        if not following.is_const:
            return None
        if following is first:
            break
        seen.append(following)
    step = seen[1].value - first.value if len(seen) > 1 else 0
    if len(seen) > MAX_CYCLE or any(x.value != first.value + i * step for i, x in enumerate(seen)):
        return None
    return t.add(first, t.scale(t.floor_mod(k, len(seen)), step))


def _geometric(k: Term, first: Term, mark: Term, value: Term) -> Term | None:
    sums = t.monomials(value)
    if set(sums) == {(mark,)} and sums[(mark,)] > 1 and first.lo >= 0:
        return t.power(first, sums[(mark,)], k, growing=True)
    shrinks = value.op is Op.FLOOR_DIV or (value.op is Op.DIV and value.args[1].is_const)
    if shrinks and value.args[0] is mark and first.lo >= 0:
        factor = value.args[1] if isinstance(value.args[1], int) else value.args[1].value
        return t.power(first, factor, k, growing=False) if factor > 1 else None
    return None


def _substitute_value(value: Value, mapping: Mapping[Term, Term]) -> Value:
    if isinstance(value, Term):
        return t.substitute(value, mapping)
    return PointerValue(
        tuple(
            Target(t.substitute(x.condition, mapping), x.array, t.substitute(x.offset, mapping))
            for x in value.targets
        )
    )


def _place_set(places: Mapping[Var, Array | HeaderPlace | None], var: Var) -> set[Array | HeaderPlace | None]:
    return {places[var]} if var in places else set()


def _toggles(
    pending: Sequence[Var], marks: Mapping[Var, Term],
    places: Mapping[Var, Array | HeaderPlace | None], after: Mapping[Var, Value],
) -> list[list[Var]]:  # fmt: skip
    """Groups of variables that two rounds bring back: ``x = 1 - x``, ``swap(p, q)``."""
    groups: list[list[Var]] = []
    used: set[Var] = set()
    for var in pending:
        if var in used:
            continue
        group = [v for v in pending if _mentions(after[var], {marks[v]}, _place_set(places, v))]
        group = list(dict.fromkeys([var, *group]))
        start = {v: after[v] for v in group}
        twice = {v: _substituted(after[v], start, marks, places) for v in group}
        if all(_is_header(twice[v], marks[v], places.get(v)) for v in group):
            groups.append(group)
            used.update(group)
    return groups


def _is_header(value: Value, mark: Term, place: Array | HeaderPlace | None) -> bool:
    if isinstance(value, Term):
        if value is mark:
            return True
        # x ^= bit, on either branch of the flipped bit, comes back as the same polynomial
        return t.sub(value, mark) is t.ZERO
    return len(value.targets) == 1 and value.targets[0].array is place and value.targets[0].offset is t.ZERO


def _levels(
    pending: Sequence[Var], marks: Mapping[Var, Term], entry: State, after: Mapping[Var, Value],
    closed: Header, places: Mapping[Var, Array | HeaderPlace | None],
) -> dict[Var, Level]:  # fmt: skip
    """Among which threads each unresolved variable agrees: a fixed point over their dependences."""
    levels = {var: _value_level(entry.values[var]) for var in pending}
    for _ in pending:
        for var in pending:
            value = _substituted(after[var], closed, marks, places)
            level = max(levels[var], _value_level(value))
            for other in pending:
                if _mentions(value, {marks[other]}, _place_set(places, other)):
                    level = max(level, levels[other])
            levels[var] = level
    return levels


def _value_level(value: Value) -> Level:
    if isinstance(value, Term):
        return t.level_of(value)
    levels = (t.level_of(part) for x in value.targets for part in (x.condition, x.offset))
    return max(levels, default=Level.GRID)


def _havoc(walker: Walker, k: Term, var: Var, level: Level, first: Value, mark: Term, value: Value) -> Value:
    if not isinstance(first, Term) or not isinstance(value, Term):
        return PointerValue((Target(t.TRUE, None, t.ZERO),))
    name = f"?{walker.number()}"
    walker.unknowns[name] = f"how `{var.name or 'a value'}` changes from round to round"
    operands = (*walker.iterators, k)
    steps = _conditional_steps(value, mark) if isinstance(var.type, Int) else None
    if steps and (min(steps) >= 0 or max(steps) <= 0):
        import math

        shared = math.gcd(*steps)
        sign = 1 if min(steps) >= 0 else -1
        taken = t.apply(name, level, operands, 0)
        return t.add(first, t.scale(taken, sign * shared))
    return t.apply(name, level, operands, *type_range(var.type))


def _conditional_steps(value: Term, mark: Term) -> list[int] | None:
    """Constant increments over every branch of ``value``, or None."""
    if value.op is Op.ITE:
        a, b = _conditional_steps(value.args[1], mark), _conditional_steps(value.args[2], mark)
        return a + b if a is not None and b is not None else None
    step = t.sub(value, mark)
    if step.is_const:
        return [step.value]
    inner = [atom for atom in step.parts if atom.op is Op.ITE]
    if len(inner) == 1 and t.monomials(step).get((inner[0],)) == 1:
        rest = t.sub(value, inner[0])
        a = _conditional_steps(t.add(rest, inner[0].args[1]), mark)
        b = _conditional_steps(t.add(rest, inner[0].args[2]), mark)
        return a + b if a is not None and b is not None else None
    return None


# -------------------------------------------------------------------------------- the recorded walk


def _record(walker: Walker, loop: ir.Loop, k: Term, header: Header, settled: Set[Array]) -> None:
    outer_path, outer_events, outer_left = walker.path, walker.events, walker.left
    outer_iterators, entry = walker.iterators, walker.state
    walker.events, walker.left = [], {}
    _enter(walker, loop, k, header, settled)
    inside = walker.path
    at_header = walker.state.copy()
    runs = _round(walker, loop, k)
    events, left = tuple(walker.events), walker.left
    walker.events, walker.left = outer_events, outer_left
    walker.path, walker.iterators = outer_path, outer_iterators

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
    walker.events.append(LoopEvent(k, t.and_(inside, runs), exit_round, events, loop.site, begun))
    _leave(walker, entry, at_header, k, exit_round, runs, list(zip(conditions, leaves, strict=True)), loop)


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


def _leave(
    walker: Walker, entry: State, at_header: State, k: Term, exit_round: Term, runs: Term,
    leaves: list[tuple[Term, tuple[Term, State, int]]], loop: ir.Loop,
) -> None:  # fmt: skip
    """The state behind the loop: header values at the exit round, or a break's snapshot there."""
    at_exit = {k: exit_round}
    known = set(entry.values)
    values = {var: _substitute_value(v, at_exit) for var, v in at_header.values.items() if var in known}
    walker.state = State(values, t.TRUE, dict(entry.versions), dict(entry.local))
    _forget(walker, loop)
    gone: Term = t.FALSE
    for condition, (_, snapshot, label) in leaves:
        then = t.substitute(condition, at_exit)
        moved = {v: _substitute_value(x, at_exit) for v, x in snapshot.values.items() if v in known}
        if label == loop.label:
            for var, value in moved.items():
                if walker.state.values.get(var) != value:
                    walker.state.values[var] = choose(then, value, walker.state.values.get(var, value))
        else:
            outer = walker.state.copy()
            outer.values = {**outer.values, **moved}
            guard = t.and_(walker.path, entry.alive, then)
            walker.left.setdefault(label, []).append((guard, outer))
            gone = t.or_(gone, then)
    walker.state.alive = t.and_(entry.alive, t.not_(gone))
