"""What variables hold at the start of round k, from what one round makes of them.

Unchanged, ``+ s``, ``* c``, ``/ c`` or shifts, toggles and swaps of period two, values set afresh each round;
conditional increments keep their bounds and step; anything else becomes an unknown function of the round (a
sound over-approximation), of a pointer within the arrays that it is set to.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from cuda_lsp.ir.program import Array, Var
from cuda_lsp.ir.types import Int, Pointer
from cuda_lsp.static import budgets
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import Fact
from cuda_lsp.static.symbolic.invariants import Round, least, most
from cuda_lsp.static.symbolic.lasting import lasting
from cuda_lsp.static.symbolic.scene import Scene
from cuda_lsp.static.symbolic.terms import Level, Op, Term
from cuda_lsp.static.symbolic.values import (
    NOWHERE,
    HeaderPlace,
    Object,
    PointerValue,
    Target,
    Value,
    choose,
    type_range,
)

Header = Mapping[Var, Value]
"""Variables at the start of a round."""


@frozen(eq=False)
class Marks:
    """Unknowns for what variables hold at the start of any round: ``numbers``, and ``places`` in memory."""

    numbers: Mapping[Var, Term]
    header: Header
    places: Mapping[Var, Object | None]

    @staticmethod
    def of(scene: Scene, changed: Iterable[Var], entry: Header) -> Marks:
        """Marks for the variables that a loop changes."""
        numbers: dict[Var, Term] = {}
        header: dict[Var, Value] = {}
        for var in changed:
            lo, hi = type_range(var.type)
            numbers[var] = t.symbol(f"h{scene.number()}", Level.GRID, lo, hi)
            pointer = isinstance(entry[var], PointerValue)
            place = PointerValue((Target(t.TRUE, HeaderPlace(var), t.ZERO),))
            header[var] = place if pointer else numbers[var]
        places = {v: s.targets[0].array for v, s in header.items() if isinstance(s, PointerValue)}
        return Marks(numbers, header, places)

    def replaced(self, value: Value, known: Header) -> Value:
        """``value`` with marks replaced by what is ``known``."""
        mapping = {self.numbers[v]: x for v, x in known.items() if isinstance(x, Term)}
        memo: dict[Term, Term] = {}
        if isinstance(value, Term):
            return t.substitute(value, mapping, memo)
        bases = {self.places[v]: x for v, x in known.items() if isinstance(x, PointerValue)}
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

    def mentioned(self, value: Value, of: Iterable[Var], *others: Term) -> bool:
        """``value`` has a part in it that one of these variables brought into the round, or of ``others``."""
        some = list(of)
        numbers = {*others, *(self.numbers[v] for v in some)}
        places = {self.places[v] for v in some if v in self.places}

        def has(part: Value) -> bool:
            if isinstance(part, Term):
                return any(x in numbers for x in t.subterms(part))
            return any(x.array in places or has(x.condition) or has(x.offset) for x in part.targets)

        return has(value)

    def unchanged(self, var: Var, value: Value) -> bool:
        """``value`` is what the variable brought into the round."""
        if isinstance(value, Term):
            # x ^= bit, on either branch of the flipped bit, comes back as the same polynomial
            return value is self.numbers[var] or t.sub(value, self.numbers[var]) is t.ZERO
        target = value.targets[0]
        return len(value.targets) == 1 and target.array is self.places.get(var) and target.offset is t.ZERO


def closed_forms(
    scene: Scene, k: Term, entry: Header, marks: Marks, after: Header, ends: Term
) -> dict[Var, Value]:
    """The variables at the start of round ``k``: first they hold ``entry``, behind a round ``after``.

    ``ends``: when a round comes to its end.
    """
    closed: dict[Var, Value] = {}
    pending = list(after)
    progress = True
    while pending and progress:
        progress = False
        for var in list(pending):
            form = _closed_form(k, entry[var], var, marks, marks.replaced(after[var], closed), pending)
            if form is not None:
                closed[var] = form
                pending.remove(var)
                progress = True
    for group in _toggles(pending, marks, after):
        for var in group:
            odd = marks.replaced(after[var], {v: entry[v] for v in group})
            even = t.eq(t.floor_mod(k, 2), t.ZERO)
            closed[var] = choose(even, entry[var], odd)
            pending.remove(var)
    levels = _levels(pending, marks, entry, after, closed)
    behind = {var: marks.replaced(after[var], closed) for var in pending}
    bases, unit = _bases(pending, marks, entry, behind), _unit((entry, behind), pending)
    of = Round(ends, frozenset((k, *marks.numbers.values())))

    def unknown(var: Var) -> Value:
        first, numbers = entry[var], isinstance(entry[var], Term) and isinstance(after[var], Term)
        step = _common(_steps(var, marks, after, k))
        if step is not None:
            value = _stepped(scene, k, var, levels[var], first, step)
        elif isinstance(first, PointerValue):
            value = _moved(scene, k, var, levels[var], first, bases[var], unit)
        else:
            value = _havoc(scene, k, var, levels[var]) if numbers else NOWHERE
        if numbers:
            _keep_within(scene, value, of, marks.numbers[var], first, after[var])
        return value

    def close(var: Var, value: Value, others: Sequence[Var], positive: bool) -> Value | None:
        first = entry[var]
        first = t.maximum(first, t.ZERO) if positive and isinstance(first, Term) else first
        return _closed_form(k, first, var, marks, value, others)

    others = {var: unknown(var) for var in pending}
    level = max(levels.values(), default=Level.GRID)
    return closed | others | lasting(scene, k, marks.numbers, behind, others, close, level)


def _closed_form(
    k: Term, first: Value, var: Var, marks: Marks, value: Value, pending: Sequence[Var]
) -> Value | None:
    """The value at round k of a variable that enters with ``first`` and becomes ``value``."""
    if not marks.mentioned(value, pending):  # set afresh in each round
        return choose(t.eq(k, t.ZERO), first, substituted(value, {k: t.sub(k, t.ONE)}))
    if isinstance(value, PointerValue):
        target = value.targets[0]
        same = len(value.targets) == 1 and target.array is marks.places.get(var)
        if not isinstance(first, PointerValue) or not same or target.condition is not t.TRUE:
            return None
        if marks.mentioned(target.offset, pending, k):
            return None
        move = t.mul(k, target.offset)
        return PointerValue(tuple(Target(x.condition, x.array, t.add(x.offset, move)) for x in first.targets))
    if not isinstance(first, Term):
        return None
    mark = marks.numbers[var]
    step = t.sub(value, mark)
    if not marks.mentioned(step, pending, k):
        return t.add(first, t.mul(k, step))
    return _cycle(k, first, mark, value) or _geometric(k, first, mark, value)


def _cycle(k: Term, first: Term, mark: Term, value: Term) -> Term | None:
    """Constants that come back, evenly spaced: ``s = (s + 1) % 3``, ``if (++s == 3) s = 0``."""
    if not first.is_const:
        return None
    seen = [first]
    while len(seen) <= budgets.MOST_CYCLE:
        following = t.substitute(value, {mark: seen[-1]})
        if not following.is_const:
            return None
        if following is first:
            break
        seen.append(following)
    step = seen[1].value - first.value if len(seen) > 1 else 0
    if len(seen) > budgets.MOST_CYCLE or any(x.value != first.value + i * step for i, x in enumerate(seen)):
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


def substituted(value: Value, mapping: Mapping[Term, Term]) -> Value:
    """``value`` with terms replaced, a pointer's conditions and offsets too."""
    if isinstance(value, Term):
        return t.substitute(value, mapping)
    return PointerValue(
        tuple(
            Target(t.substitute(x.condition, mapping), x.array, t.substitute(x.offset, mapping))
            for x in value.targets
        )
    )


def _toggles(pending: Sequence[Var], marks: Marks, after: Header) -> list[list[Var]]:
    """Groups of variables that two rounds bring back: ``x = 1 - x``, ``swap(p, q)``."""
    groups: list[list[Var]] = []
    used: set[Var] = set()
    for var in pending:
        if var in used:
            continue
        group = list(dict.fromkeys([var, *(v for v in pending if marks.mentioned(after[var], (v,)))]))
        start = {v: after[v] for v in group}
        twice = {v: marks.replaced(after[v], start) for v in group}
        if all(marks.unchanged(v, twice[v]) for v in group):
            groups.append(group)
            used.update(group)
    return groups


def _levels(
    pending: Sequence[Var], marks: Marks, entry: Header, after: Header, closed: Header
) -> dict[Var, Level]:
    """Among which threads each unresolved variable agrees: a fixed point over their dependences."""
    levels = {var: _value_level(entry[var]) for var in pending}
    for _ in pending:
        for var in pending:
            value = marks.replaced(after[var], closed)
            others = (levels[other] for other in pending if marks.mentioned(value, (other,)))
            levels[var] = max(levels[var], _value_level(value), *others)
    return levels


def _value_level(value: Value) -> Level:
    if isinstance(value, Term):
        return t.level_of(value)
    levels = (t.level_of(part) for x in value.targets for part in (x.condition, x.offset))
    return max(levels, default=Level.GRID)


def _bases(
    pending: Sequence[Var], marks: Marks, entry: Header, after: Header
) -> dict[Var, frozenset[Object | None]]:
    """Into which arrays each unresolved pointer may point: a fixed point over those that it is set to."""
    found = {var: _arrays(entry[var]) for var in pending}
    brought = {marks.places[var]: var for var in pending if var in marks.places}
    for _ in pending:
        for var in pending:
            for array in _arrays(after[var]):
                other = brought.get(array)
                found[var] |= frozenset({array}) if other is None else found[other]
    return found


def _arrays(value: Value) -> frozenset[Object | None]:
    return frozenset(x.array for x in value.targets) if isinstance(value, PointerValue) else frozenset()


def _unit(headers: Iterable[Header], pointers: Iterable[Var]) -> int:
    """Bytes of which all that is added to these pointers is a multiple; 0: nothing is."""
    values = (header[var] for var in pointers for header in headers)
    offsets = (x.offset for value in values if isinstance(value, PointerValue) for x in value.targets)
    return math.gcd(*(factor for offset in offsets for factor in t.monomials(offset).values()))


def _moved(
    scene: Scene, k: Term, var: Var, level: Level, first: PointerValue,
    bases: frozenset[Object | None], unit: int,
) -> Value:  # fmt: skip
    """Where it began, and in later rounds anywhere in the arrays in which it can have been moved."""
    arrays = sorted(
        (a for a in bases if isinstance(a, Array | HeaderPlace)),
        key=lambda a: a.id if isinstance(a, Array) else -a.var.id,
    )
    if len(arrays) < len(bases) or len(arrays) > budgets.MOST_BASES:
        return NOWHERE
    name, operands = _changed(scene, var), (*scene.iterators, k)
    place = t.scale(t.apply(name, level, operands), unit)
    which = t.apply(f"{name}!", level, operands, 0, len(arrays) - 1)
    scene.unknowns[f"{name}!"] = scene.unknowns[name]
    alone = len(arrays) == 1
    later = PointerValue(
        tuple(
            Target(t.TRUE if alone else t.eq(which, t.const(number)), array, place)
            for number, array in enumerate(arrays)
        )
    )
    return choose(t.eq(k, t.ZERO), first, later)


def _steps(var: Var, marks: Marks, after: Header, k: Term) -> list[Term]:
    """What one round adds, or another, each the same in all rounds; empty: nobody knows."""
    value, by = after[var], None
    if isinstance(value, Term):  # a pointer's variable stays one
        by = t.sub(value, marks.numbers[var]) if isinstance(var.type, Int) else None
    elif len(value.targets) == 1 and var in marks.places:
        target = value.targets[0]
        same = target.array is marks.places[var] and target.condition is t.TRUE
        by = target.offset if same else None
    steps = _branches(by) if by is not None else []
    return [] if any(marks.mentioned(step, after, k) for step in steps) else steps


def _stepped(scene: Scene, k: Term, var: Var, level: Level, first: Value, step: Term) -> Value:
    """Where it began, and so many steps further: of what only grows, or only shrinks, in equal steps."""
    taken = t.mul(t.apply(_changed(scene, var), level, (*scene.iterators, k), 0), step)
    if isinstance(first, Term):
        return t.add(first, taken)
    return PointerValue(tuple(Target(x.condition, x.array, t.add(x.offset, taken)) for x in first.targets))


def _havoc(scene: Scene, k: Term, var: Var, level: Level) -> Term:
    """Any number."""
    return t.apply(_changed(scene, var), level, (*scene.iterators, k), *type_range(var.type))


def _keep_within(scene: Scene, value: Value, of: Round, mark: Term, first: Value, after: Value) -> None:
    """Notes how far the unknown function in ``value``, a variable at round k, can come."""
    if not (isinstance(value, Term) and isinstance(first, Term) and isinstance(after, Term)):
        return
    unknown = [x for m in t.monomials(value) for x in m if x.op is Op.APPLY]
    if not unknown:
        return
    ends = (most(of, mark, first, after), least(of, mark, first, after))
    limits = [t.le(value, ends[0])] if ends[0] is not None else []
    limits += [t.le(ends[1], value)] if ends[1] is not None else []
    name, _, operands = unknown[-1].args
    formals = tuple(t.symbol(f"f{i}.{name}", Level.GRID) for i in range(len(operands)))
    fact = t.substitute(t.and_(*limits), dict(zip(operands, formals, strict=True)))
    if fact is not t.TRUE:
        scene.invariants[name] = Fact(formals, fact)


def _changed(scene: Scene, var: Var) -> str:
    """A name for how often, or to what, a loop changes a variable."""
    name = f"?{scene.number()}"
    what = "a pointer" if isinstance(var.type, Pointer) else "a value"
    scene.unknowns[name] = f"how `{var.name or what}` changes from round to round"
    scene.changed[name] = var
    return name


def _common(steps: Sequence[Term]) -> Term | None:
    """What all steps are so many times of, none of them back; None: there is no such number."""
    sizes = dict.fromkeys(step for step in steps if step is not t.ZERO)
    if len(sizes) == 1:
        return next(iter(sizes))
    known = [step.value for step in sizes if step.is_const]
    if not known or len(known) < len(sizes) or not (min(known) >= 0 or max(known) <= 0):
        return None
    return t.const(math.gcd(*known) * (1 if min(known) >= 0 else -1))


def _branches(step: Term) -> list[Term]:
    """A sum in each case of its one choice, and of choices in that; empty: there are several."""
    inner = [atom for atoms in t.monomials(step) for atom in atoms if atom.op is Op.ITE]
    if not inner:
        return [step]
    if len(inner) > 1 or t.monomials(step).get((inner[0],)) != 1:
        return []
    rest = t.sub(step, inner[0])
    both = [_branches(t.add(rest, case)) for case in inner[0].args[1:]]
    return [x for case in both for x in case] if all(both) else []
