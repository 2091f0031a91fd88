"""Locks of programmers' own making: loops that take one become regions in which it is held.

Three ways to take a lock are read, and each ends only when this thread has it::

    while (atomicCAS(lock, FREE, mine) != FREE) {}          // or atomicExch
    for (bool done = false; !done;)
        if (atomicCAS(lock, FREE, mine) == FREE) { …; done = true; }
    turn = atomicAdd(next, 1); while (atomicAdd(serving, 0) != turn) {}

Rounds that fail change nothing, so the loop is its last round: the kernel is rewritten to run that one, and
what stands between taking and giving back is a ``Block`` with a ``Lock``. Two threads are never inside blocks
of one lock at once, and what one did there the next one sees, given a fence before the lock is given back.

A lock is understood only when nothing else in the kernel sets its memory to another value than FREE, and no
barrier and no way out stands inside the region. One without any fence orders nobody. Any other loop, and a
lock whose fence stands too early, stays as it is and is what ``diagnostics.waiting`` makes of it: a doubt.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import define, evolve, field, frozen

from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import (
    Array,
    Assign,
    Atomic,
    Barrier,
    BarrierScope,
    Binary,
    BinaryOp,
    Block,
    Cast,
    Const,
    Copy,
    Expr,
    Fence,
    If,
    Incomplete,
    Kernel,
    Leave,
    Load,
    Lock,
    Loop,
    Offset,
    Select,
    Stmt,
    Store,
    Unary,
    UnaryOp,
    Var,
)  # fmt: skip
from cuda_lsp.ir.walk import assigned, destinations, mapped, used, variables, walk
from cuda_lsp.model import Scope
from cuda_lsp.static.execution.enumerate import facts_of
from cuda_lsp.static.slicing import Slice, assigned_once

_WARP = (BarrierScope.WARP, BarrierScope.TILE, BarrierScope.COALESCED)
_RELEASES = ("release", "acq_rel", "seq_cst")
_TAKES = (AtomicOp.CAS, AtomicOp.EXCH, AtomicOp.ADD)


@frozen(eq=False)
class _Taking:
    """How a lock is taken: ``atomic`` got it when it returns ``free``.

    ``turn``: of a ticket lock, the atomic that drew the number; ``free`` is that number then.
    """

    atomic: Atomic | Load
    place: Expr
    array: Array
    free: Expr
    turn: Atomic | None = None


def with_critical_sections(kernel: Kernel) -> Kernel:
    """The kernel with the locks that are understood as regions; the very kernel when there are none."""
    facts = facts_of(kernel)  # which the executions of a kernel without locks use again
    if not facts.loops or not any(isinstance(s, Atomic) and s.op in _TAKES for s in facts.statements):
        return kernel
    given_up: set[Array] = set()
    while True:
        rewriter = _Rewriter(facts, frozenset(given_up))
        body = rewriter.statements(kernel.body)
        if not rewriter.free:
            return kernel
        broken = {array for array in rewriter.free if not rewriter.exclusive(array)}
        if not broken:
            return evolve(kernel, body=body)
        given_up |= broken


@define(eq=False)
class _Rewriter:
    """``free``: what each lock's memory holds when nobody has it; ``known``: statements that keep to that."""

    facts: Slice
    given_up: frozenset[Array]
    free: dict[Array, Expr | None] = field(factory=dict["Array", "Expr | None"])
    counters: dict[Array, Array] = field(factory=dict["Array", "Array"])
    known: set[int] = field(factory=set[int])
    labels: Iterator[int] = field(init=False)
    once: Mapping[Var, Expr] = field(init=False)

    def __attrs_post_init__(self) -> None:
        used = [s.label for s in self.facts.statements if isinstance(s, (Block, Loop))]
        used += [s.continue_label for s in self.facts.statements if isinstance(s, Loop)]
        self.labels = itertools.count(max(used, default=0) + 1)
        self.once = assigned_once(self.facts)

    # ------------------------------------------------------------------------------- rewriting

    def statements(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        index = 0
        while index < len(body):
            s = body[index]
            index += 1
            if isinstance(s, Loop):
                taking = self._spins(s, body[: index - 1])
                end = self._given_back(body, index, taking) if taking is not None else None
                if taking is not None and end is not None:
                    result.append(self._region(s, taking, (), body[index:end]))
                    index = end
                    continue
                tried = self._tries(s)
                if tried is not None:
                    result.append(tried)
                    continue
            result.append(self._inside(s))
        return tuple(result)

    def _inside(self, s: Stmt) -> Stmt:
        if isinstance(s, If):
            return evolve(s, then=self.statements(s.then), otherwise=self.statements(s.otherwise))
        if isinstance(s, Loop):
            return evolve(s, body=self.statements(s.body))
        return evolve(s, body=self.statements(s.body)) if isinstance(s, Block) else s

    def _region(self, loop: Loop, taking: _Taking, before: Sequence[Stmt], held: Sequence[Stmt]) -> Stmt:
        """``held`` ends with the statement that gives the lock back."""
        self.free[taking.array] = None if taking.turn is not None else taking.free
        if taking.turn is not None:
            self.counters[taking.array] = next(iter(self.facts.roots(taking.turn.pointer)))
            self.known.add(id(taking.turn))
        self.known |= {id(taking.atomic), id(held[-1])}
        got: list[Stmt] = [evolve(taking.atomic, var=None)]
        if taking.atomic.var is not None:
            got.append(Assign(taking.atomic.var, taking.free))
        lock = Lock(taking.place, _scope(held))
        body = (*before, *got, *self.statements(held))
        return Block(next(self.labels), body, loop.site, lock)

    # ------------------------------------------------------------------------------ recognition

    def _spins(self, loop: Loop, before: Sequence[Stmt]) -> _Taking | None:
        """A loop that does nothing until it has the lock."""
        inside = list(walk((*loop.test, *loop.body, *loop.step)))
        takes = [s for s in inside if isinstance(s, (Atomic, Load))]
        if len(takes) != 1 or not all(_idle(s, loop) for s in inside if s is not takes[0]):
            return None
        if not self._only_used_in(inside, loop, *inside):
            return None
        ways_out = [s for s in inside if isinstance(s, Leave) and s.label == loop.label]
        if _always(loop.condition):
            ends = [s.condition for s in inside if isinstance(s, If) and s.then[-1:] == tuple(ways_out)]
            return self._taken(takes[0], ends[0], True, inside) if len(ends) == len(ways_out) == 1 else None
        tried = not loop.tests_first or takes[0] in loop.test or _entered(loop, before)
        return self._taken(takes[0], loop.condition, False, inside) if tried and not ways_out else None

    def _only_used_in(self, assigning: Iterable[Stmt], *users: Stmt) -> bool:
        """Variables that the statements ``assigning`` set are read by ``users`` alone."""
        own = {var for s in assigning if isinstance(s, Assign) for var in (s.var,)}
        allowed = {id(s) for s in users}
        others = (s for s in self.facts.statements if id(s) not in allowed)
        return not any(var in own for s in others for e in used(s) for var in variables(e))

    def _tries(self, loop: Loop) -> Stmt | None:
        """A loop whose one round that gets the lock also works and gives it back."""
        if loop.test or loop.step:
            return None
        for index, s in enumerate(loop.body):
            if not isinstance(s, If) or not any(isinstance(x, Atomic) for x in loop.body[:index]):
                continue
            before, after = loop.body[:index], loop.body[index + 1 :]
            takes = [x for x in before if isinstance(x, (Atomic, Load))]
            failing = (*walk(s.otherwise), *walk(after))
            quiet = all(_idle(x, loop) for x in (*before, *failing) if x not in takes)
            if len(takes) != 1 or not quiet or any(isinstance(x, Leave) for x in failing):
                return None
            own = self._only_used_in(failing, *failing) and self._only_used_in(before, *walk((loop,)))
            if not own or not _anew(before):
                return None
            taking = self._taken(takes[0], s.condition, True, before)
            end = self._given_back(s.then, 0, taking) if taking is not None else None
            if taking is None or end is None or not _ends(loop, taking, (*before, *s.then[end:])):
                return None
            rest = [x for x in s.then[end:] if not isinstance(x, Leave)]
            if not all(isinstance(x, (Assign, Fence)) for x in (*before, *rest) if x not in takes):
                return None
            at = before.index(takes[0])
            region = self._region(loop, taking, before[:at], s.then[:end])
            got = (region, *before[at + 1 :], *rest)
            if not loop.tests_first or _always(loop.condition):
                return Block(next(self.labels), got, loop.site)
            return If(loop.condition, got, (), loop.site)
        return None

    def _taken(
        self, atomic: Atomic | Load, condition: Expr, outcome: bool, before: Sequence[Stmt]
    ) -> _Taking | None:
        """The lock that is held when the condition has that outcome."""
        if atomic.var is None:
            return None
        arrays = self.facts.roots(atomic.pointer)
        if len(arrays) != 1 or arrays & self.given_up:
            return None
        array, place = next(iter(arrays)), self._resolved(atomic.pointer)
        values = {s.var: s.value for s in before if isinstance(s, Assign)}
        free = _compared(substituted(condition, values), atomic.var, outcome)
        if free is None:
            return None
        if isinstance(atomic, Load) or not atomic.row.writes or atomic.adds(0):
            turn = self._turn(free, place, atomic)
            return _Taking(atomic, place, array, free, turn) if turn is not None else None
        if atomic.op is AtomicOp.CAS and (len(atomic.operands) != 2 or atomic.operands[0] != free):
            return None
        if not atomic.row.swaps or not isinstance(free, Const):
            return None
        taken = atomic.operands[-1]
        same = self.free.get(array, free) == free
        known = isinstance(taken, Const) and taken != free
        return _Taking(atomic, place, array, free) if same and known else None

    def _turn(self, number: Expr, place: Expr, waits: Atomic | Load) -> Atomic | None:
        """The atomic that drew the number waited for, from a counter beside the one that is served."""
        number = self._resolved(number)
        drawn = [s for s in self.facts.statements if isinstance(s, Atomic) and s.var == number]
        if len(drawn) != 1 or not drawn[0].adds(1):
            return None
        if isinstance(waits, Load) and not waits.volatile:
            return None
        arrays = self.facts.roots(drawn[0].pointer)
        mine, theirs = _bytes(self._resolved(drawn[0].pointer)), _bytes(place)
        known = self.free.get(next(iter(arrays), None), None) is None  # type: ignore[arg-type]
        return drawn[0] if len(arrays) == 1 and mine == theirs and known else None

    def _given_back(self, body: Sequence[Stmt], start: int, taking: _Taking | None) -> int | None:
        """The index after the statement that gives the lock back, when all before it is a region."""
        if taking is None:
            return None
        moved: set[Var] = set()
        for index in range(start, len(body)):
            s = body[index]
            if self._gives_back(s, taking):
                held = body[start : index + 1]
                still = not moved & set(variables(taking.place))
                told = _scope(held) is not None or _without_fence(held)
                return index + 1 if still and told else None
            for x in walk((s,)):
                if isinstance(x, (Barrier, Incomplete)) and not _harmless(x):
                    return None
                if isinstance(x, Leave) and not _within(x.label, s):
                    return None
                var = assigned(x)
                if var is not None:
                    moved.add(var)
        return None

    def _gives_back(self, s: Stmt, taking: _Taking) -> bool:
        if not isinstance(s, (Atomic, Store)) or self._resolved(s.pointer) != taking.place:
            return False
        if taking.turn is not None:
            return isinstance(s, Atomic) and s.adds(1)
        if isinstance(s, Store):
            return s.value == taking.free
        return (s.row.swaps or s.row.blind) and s.operands[-1] == taking.free

    # ------------------------------------------------------------------------------- exclusion

    def exclusive(self, array: Array) -> bool:
        """Only who holds a lock of the array gives it back; no other statement lets a second one in."""
        free, counter = self.free[array], self.counters.get(array)
        guarded = {array, counter} - {None}
        for s in self.facts.statements:
            written = [self.facts.roots(p) for p in destinations(s)]
            if id(s) in self.known or not any(not roots or roots & guarded for roots in written):
                continue
            # A plain store of FREE is initialisation: beside a holder's atomics it is a race by itself.
            if not (isinstance(s, Store) and free is not None and s.value == free):
                return False
        return True

    # ------------------------------------------------------------------------------ expressions

    def _resolved(self, e: Expr) -> Expr:
        """The expression with variables that are assigned once, by a plain value, replaced by it."""
        return substituted(e, self.once, depth=8)


def substituted(e: Expr, values: Mapping[Var, Expr], depth: int = 4) -> Expr:
    """The expression with variables replaced by their values, and the variables in those, ``depth`` deep."""
    if isinstance(e, Var):
        found = values.get(e)
        return e if found is None or depth == 0 else substituted(found, values, depth - 1)
    return mapped(e, lambda part: substituted(part, values, depth))


def _compared(condition: Expr, var: Var, outcome: bool) -> Expr | None:
    """What ``var`` equals when the condition has that outcome."""
    if condition == var:
        return None if outcome else Const(0, var.type)
    if isinstance(condition, Cast):
        return _compared(condition.operand, var, outcome)
    if isinstance(condition, Unary) and condition.op is UnaryOp.NOT:
        return _compared(condition.operand, var, not outcome)
    if isinstance(condition, Binary) and condition.op is (BinaryOp.EQ if outcome else BinaryOp.NE):
        for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
            if one == var:
                return other
    return None


def _entered(loop: Loop, before: Sequence[Stmt]) -> bool:
    """The loop's condition holds at first, by what stands before it."""
    wanted = set(variables(loop.condition))
    values: dict[Var, Expr] = {}
    for s in before:
        for x in walk((s,)):
            var = assigned(x)
            if var is not None and var in wanted:
                values.pop(var, None)
                if x is s and isinstance(s, Assign) and isinstance(s.value, Const):
                    values[var] = s.value
    return _value(substituted(loop.condition, values)) == 1


def _anew(before: Sequence[Stmt]) -> bool:
    """Each round computes these values from what no round changes."""
    own = {s.var for s in before if isinstance(s, Assign)}
    known: set[Var] = set()
    for s in before:
        if isinstance(s, Assign):
            if any(var in own and var not in known for var in variables(s.value)):
                return False
            known.add(s.var)
    return True


def _always(condition: Expr) -> bool:
    return isinstance(condition, Const) and bool(condition.value)


def _bytes(pointer: Expr) -> Expr | None:
    """How far a pointer is from the start of its array."""
    return pointer.bytes if isinstance(pointer, Offset) else None


def _idle(s: Stmt, loop: Loop) -> bool:
    """Touches no memory and goes nowhere but out of the loop or to its next round."""
    if isinstance(s, Leave):
        return s.label in (loop.label, loop.continue_label)
    if isinstance(s, Assign):
        return not isinstance(s.value, Select)
    return isinstance(s, (If, Fence)) or (isinstance(s, (Barrier, Incomplete)) and _harmless(s))


def _harmless(s: Barrier | Incomplete) -> bool:
    return s.harmless if isinstance(s, Incomplete) else s.scope in _WARP and s.implied


def _within(label: int, s: Stmt) -> bool:
    """The statement has the loop or block that the label ends."""
    inside = (x for x in walk((s,)) if isinstance(x, (Loop, Block)))
    return any(label in (x.label, x.continue_label if isinstance(x, Loop) else x.label) for x in inside)


def _ends(loop: Loop, taking: _Taking, rest: Iterable[Stmt]) -> bool:
    """Whether the loop is over after these statements of the round that got the lock."""
    values: dict[Var, Expr] = {}
    if taking.atomic.var is not None:
        values[taking.atomic.var] = taking.free
    for s in rest:
        if isinstance(s, Leave):
            return s.label == loop.label
        if isinstance(s, Assign):
            value = _value(substituted(s.value, values))
            values.pop(s.var, None)
            if value is not None:
                values[s.var] = Const(value, s.var.type)
    return _value(substituted(loop.condition, values)) == 0


def _value(condition: Expr) -> int | None:
    if isinstance(condition, Const) and isinstance(condition.value, int):
        return condition.value
    if isinstance(condition, Cast):
        return _value(condition.operand)
    if isinstance(condition, Unary) and condition.op is UnaryOp.NOT:
        inner = _value(condition.operand)
        return None if inner is None else int(not inner)
    if isinstance(condition, Binary) and condition.op in (BinaryOp.EQ, BinaryOp.NE):
        a, b = _value(condition.left), _value(condition.right)
        return None if a is None or b is None else int((a == b) is (condition.op is BinaryOp.EQ))
    return None


def _scope(held: Sequence[Stmt]) -> Scope | None:
    """How far the fence before the lock is given back reaches; None: there is none."""
    release = held[-1]
    if isinstance(release, Atomic) and release.order in _RELEASES:
        return release.scope
    for s in reversed(held[:-1]):
        if isinstance(s, Fence):
            return s.scope
        if any(isinstance(x, (Load, Store, Atomic, Copy)) for x in walk((s,))):
            break
    return None


def _without_fence(held: Sequence[Stmt]) -> bool:
    """Nothing at all makes what was stored visible before the lock is given back."""
    inside = list(walk(tuple(held)))
    volatile = any(isinstance(s, (Load, Store)) and s.volatile for s in inside)
    return not volatile and not any(isinstance(s, (Fence, Barrier)) for s in inside)


__all__ = ["substituted", "with_critical_sections"]
