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
lock whose fence stands too early, stays as it is and is what ``facts`` makes of it: a doubt.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import define, evolve, field, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.atomics import AtomicOp, AtomicRow
from cuda_lsp.ir.program import Array, BinaryOp, Expr, Stmt, Var
from cuda_lsp.ir.walk import assigned, destinations, inside, labels, stripped, used, variables, walk
from cuda_lsp.model import Scope
from cuda_lsp.static import budgets
from cuda_lsp.static.facts import facts_of
from cuda_lsp.static.rewrites.patterns import Bind, Either, Node, Pattern, Where, commuting, match, matches
from cuda_lsp.static.rewrites.values import substituted, truth_of
from cuda_lsp.static.slicing import Slice, assigned_once

_TAKES = (AtomicOp.CAS, AtomicOp.EXCH, AtomicOp.ADD)

_HARMLESS = Either(
    Node(ir.Incomplete, harmless=True),
    Node(ir.Barrier, scope=Node(ir.BarrierScope, of_lanes=True), implied=True),
)
_IDLE = Either(
    Node(ir.Assign, value=Where(lambda e: not isinstance(e, ir.Select))), Node(ir.If, ir.Fence), _HARMLESS
)
"""What touches no memory and goes nowhere."""

_DRAWS = Node(ir.Atomic, op=AtomicOp.ADD, constant=Node(ir.Const, value=1))
_READS_TURN = Either(
    Node(ir.Load, volatile=True),
    Node(ir.Atomic, row=Node(AtomicRow, writes=False)),
    Node(ir.Atomic, op=AtomicOp.ADD, constant=Node(ir.Const, value=0)),
)
_ALWAYS = Node(ir.Const, value=Where(bool))


def _takes(free: Expr) -> Pattern:
    """An atomic that has got a lock when it returns ``free``, and leaves it taken."""
    taken = Where(lambda e: isinstance(e, ir.Const) and e != free)
    return Either(
        Node(ir.Atomic, op=AtomicOp.CAS, operands=(free, taken)),
        Node(ir.Atomic, op=AtomicOp.EXCH, operands=(taken,)),
    )


def _gives_back(free: Expr) -> Pattern:
    """What leaves ``free`` in memory again."""
    sets = Node(AtomicRow, blind=True), Node(AtomicRow, swaps=True)
    last = Where(lambda operands: operands[-1] == free)
    return Either(Node(ir.Store, value=free), Node(ir.Atomic, row=Either(*sets), operands=last))


@frozen(eq=False)
class _Taking:
    """How a lock is taken: ``atomic`` got it when it returns ``free``.

    ``turn``: of a ticket lock, the atomic that drew the number; ``free`` is that number then.
    """

    atomic: ir.Atomic | ir.Load
    place: Expr
    array: Array
    free: Expr
    turn: ir.Atomic | None = None


def with_critical_sections(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with the locks that are understood as regions; the very kernel when there are none."""
    facts = facts_of(kernel)  # which the executions of a kernel without locks use again
    if not facts.loops or not any(isinstance(s, ir.Atomic) and s.op in _TAKES for s in facts.statements):
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
    """``free``: what each lock's memory holds when nobody has it; ``known``: statements that keep to that.

    ``held``: statements between taking and giving back.
    """

    facts: Slice
    given_up: frozenset[Array]
    free: dict[Array, Expr | None] = field(factory=dict["Array", "Expr | None"])
    counters: dict[Array, Array] = field(factory=dict["Array", "Array"])
    known: set[int] = field(factory=set[int])
    held: set[int] = field(factory=set[int])
    labels: Iterator[int] = field(init=False)
    once: Mapping[Var, Expr] = field(init=False)

    def __attrs_post_init__(self) -> None:
        used = [s.label for s in self.facts.statements if isinstance(s, (ir.Block, ir.Loop))]
        used += [s.continue_label for s in self.facts.statements if isinstance(s, ir.Loop)]
        self.labels = itertools.count(max(used, default=0) + 1)
        self.once = assigned_once(self.facts.statements)

    # ------------------------------------------------------------------------------- rewriting

    def statements(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        index = 0
        while index < len(body):
            s = body[index]
            index += 1
            if isinstance(s, ir.Loop):
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
        if isinstance(s, ir.If):
            return evolve(s, then=self.statements(s.then), otherwise=self.statements(s.otherwise))
        if isinstance(s, ir.Loop):
            return evolve(s, body=self.statements(s.body))
        return evolve(s, body=self.statements(s.body)) if isinstance(s, ir.Block) else s

    def _region(self, loop: ir.Loop, taking: _Taking, before: Sequence[Stmt], held: Sequence[Stmt]) -> Stmt:
        """``held`` ends with the statement that gives the lock back."""
        self.free[taking.array] = None if taking.turn is not None else taking.free
        if taking.turn is not None:
            self.counters[taking.array] = next(iter(self.facts.roots(taking.turn.pointer)))
            self.known.add(id(taking.turn))
        self.known |= {id(taking.atomic), id(held[-1])}
        self.held |= {id(s) for s in walk(held)}
        got: list[Stmt] = [evolve(taking.atomic, var=None)]
        if taking.atomic.var is not None:
            got.append(ir.Assign(taking.atomic.var, taking.free))
        lock = ir.Lock(taking.place, _scope(held))
        body = (*before, *got, *self.statements(held))
        return ir.Block(next(self.labels), body, loop.site, lock)

    # ------------------------------------------------------------------------------ recognition

    def _spins(self, loop: ir.Loop, before: Sequence[Stmt]) -> _Taking | None:
        """A loop that does nothing until it has the lock."""
        within = list(inside(loop))
        takes = [s for s in within if isinstance(s, (ir.Atomic, ir.Load))]
        if len(takes) != 1 or not all(_idle(s, loop) for s in within if s is not takes[0]):
            return None
        if not self._only_used_in(within, loop, *within):
            return None
        ways_out = [s for s in within if isinstance(s, ir.Leave) and s.label == loop.label]
        if matches(_ALWAYS, loop.condition):
            ends = [s.condition for s in within if isinstance(s, ir.If) and s.then[-1:] == tuple(ways_out)]
            return self._taken(takes[0], ends[0], True, within) if len(ends) == len(ways_out) == 1 else None
        tried = not loop.tests_first or takes[0] in loop.test or _entered(loop, before)
        return self._taken(takes[0], loop.condition, False, within) if tried and not ways_out else None

    def _only_used_in(self, assigning: Iterable[Stmt], *users: Stmt) -> bool:
        """Variables that the statements ``assigning`` set are read by ``users`` alone."""
        own = {var for s in assigning if isinstance(s, ir.Assign) for var in (s.var,)}
        allowed = {id(s) for s in users}
        others = (s for s in self.facts.statements if id(s) not in allowed)
        return not any(var in own for s in others for e in used(s) for var in variables(e))

    def _tries(self, loop: ir.Loop) -> Stmt | None:
        """A loop whose one round that gets the lock also works and gives it back."""
        body = loop.body
        ifs = (n for n, s in enumerate(body) if isinstance(s, ir.If) and _any(Node(ir.Atomic), body[:n]))
        index = next(ifs, None)
        if loop.test or loop.step or index is None:
            return None
        decides, before, after = body[index], body[:index], body[index + 1 :]
        assert isinstance(decides, ir.If)
        takes = [x for x in before if isinstance(x, (ir.Atomic, ir.Load))]
        if len(takes) != 1 or not self._fails_quietly(loop, takes[0], before, (*decides.otherwise, *after)):
            return None
        taking = self._taken(takes[0], decides.condition, True, before)
        end = self._given_back(decides.then, 0, taking) if taking is not None else None
        if taking is None or end is None or not _ends(loop, taking, (*before, *decides.then[end:])):
            return None
        at = before.index(takes[0])
        rest = (*before[at + 1 :], *(x for x in decides.then[end:] if not isinstance(x, ir.Leave)))
        if not all(isinstance(x, (ir.Assign, ir.Fence)) for x in (*before[:at], *rest)):
            return None
        got = (self._region(loop, taking, before[:at], decides.then[:end]), *rest)
        if not loop.tests_first or matches(_ALWAYS, loop.condition):
            return ir.Block(next(self.labels), got, loop.site)
        return ir.If(loop.condition, got, (), loop.site)

    def _fails_quietly(
        self, loop: ir.Loop, takes: Stmt, before: Sequence[Stmt], otherwise: Sequence[Stmt]
    ) -> bool:
        """A round that does not get the lock changes nothing that another one, or anybody else, looks at."""
        failing = tuple(walk(otherwise))
        if not all(_idle(x, loop) for x in (*before, *failing) if x != takes) or _any(
            Node(ir.Leave), failing
        ):
            return False
        alone = self._only_used_in(failing, *failing) and self._only_used_in(before, *walk((loop,)))
        return alone and _anew(before)

    def _taken(
        self, atomic: ir.Atomic | ir.Load, condition: Expr, outcome: bool, before: Sequence[Stmt]
    ) -> _Taking | None:
        """The lock that is held when the condition has that outcome."""
        if atomic.var is None:
            return None
        arrays = self.facts.roots(atomic.pointer)
        if len(arrays) != 1 or arrays & self.given_up:
            return None
        array, place = next(iter(arrays)), self._resolved(atomic.pointer)
        values = {s.var: s.value for s in before if isinstance(s, ir.Assign)}
        free = _compared(substituted(condition, values), atomic.var, outcome)
        if free is None:
            return None
        if matches(_READS_TURN, atomic):
            turn = self._turn(free, place)
            return _Taking(atomic, place, array, free, turn) if turn is not None else None
        same = isinstance(free, ir.Const) and self.free.get(array, free) == free
        return _Taking(atomic, place, array, free) if same and matches(_takes(free), atomic) else None

    def _turn(self, number: Expr, place: Expr) -> ir.Atomic | None:
        """The atomic that drew the number waited for, from a counter beside the one that is served."""
        number = self._resolved(number)
        drawn = [s for s in self.facts.statements if isinstance(s, ir.Atomic) and s.var == number]
        if len(drawn) != 1 or not matches(_DRAWS, drawn[0]):
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
                if isinstance(x, (ir.Barrier, ir.Incomplete)) and not matches(_HARMLESS, x):
                    return None
                if isinstance(x, ir.Leave) and not any(x.label in labels(y) for y in walk((s,))):
                    return None
                var = assigned(x)
                if var is not None:
                    moved.add(var)
        return None

    def _gives_back(self, s: Stmt, taking: _Taking) -> bool:
        if not isinstance(s, (ir.Atomic, ir.Store)) or self._resolved(s.pointer) != taking.place:
            return False
        return matches(_DRAWS if taking.turn is not None else _gives_back(taking.free), s)

    # ------------------------------------------------------------------------------- exclusion

    def exclusive(self, array: Array) -> bool:
        """Only who holds a lock of the array gives it back; no other statement lets a second one in."""
        free, counter = self.free[array], self.counters.get(array)
        guarded = {array, counter} - {None}
        for s in self.facts.statements:
            written = [self.facts.roots(p) for p in destinations(s)]
            if id(s) in self.known or not any(not roots or roots & guarded for roots in written):
                continue
            # A plain store of FREE is initialisation: beside a holder's atomics it races by itself. Unless
            # its thread holds the lock: it then gives it back before its time.
            initial = isinstance(s, ir.Store) and free is not None and s.value == free
            if not initial or id(s) in self.held:
                return False
        return True

    # ------------------------------------------------------------------------------ expressions

    def _resolved(self, e: Expr) -> Expr:
        """The expression with variables that are assigned once, by a plain value, replaced by it."""
        return substituted(e, self.once, depth=2 * budgets.MOST_SUBSTITUTIONS)


def _compared(condition: Expr, var: Var, outcome: bool) -> Expr | None:
    """What ``var`` equals when the condition has that outcome."""
    condition = stripped(condition)
    while isinstance(condition, ir.Unary) and condition.op is ir.UnaryOp.NOT:
        condition, outcome = stripped(condition.operand), not outcome
    if condition == var:
        return None if outcome else ir.Const(0, var.type)
    says = BinaryOp.EQ if outcome else BinaryOp.NE
    found = match(commuting(says, var, Bind("free")), condition)
    return found["free"] if found is not None else None


def _entered(loop: ir.Loop, before: Sequence[Stmt]) -> bool:
    """The loop's condition holds at first, by what stands before it."""
    wanted = set(variables(loop.condition))
    values: dict[Var, Expr] = {}
    for s in before:
        for x in walk((s,)):
            var = assigned(x)
            if var is not None and var in wanted:
                values.pop(var, None)
                if x is s and isinstance(s, ir.Assign) and isinstance(s.value, ir.Const):
                    values[var] = s.value
    return truth_of(substituted(loop.condition, values)) == 1


def _anew(before: Sequence[Stmt]) -> bool:
    """Each round computes these values from what no round changes."""
    own = {s.var for s in before if isinstance(s, ir.Assign)}
    known: set[Var] = set()
    for s in before:
        if isinstance(s, ir.Assign):
            if any(var in own and var not in known for var in variables(s.value)):
                return False
            known.add(s.var)
    return True


def _bytes(pointer: Expr) -> Expr | None:
    """How far a pointer is from the start of its array."""
    return pointer.bytes if isinstance(pointer, ir.Offset) else None


def _idle(s: Stmt, loop: ir.Loop) -> bool:
    """Touches no memory and goes nowhere but out of the loop or to its next round."""
    return s.label in labels(loop) if isinstance(s, ir.Leave) else matches(_IDLE, s)


def _any(pattern: Pattern, statements: Iterable[Stmt]) -> bool:
    return any(matches(pattern, s) for s in statements)


def _ends(loop: ir.Loop, taking: _Taking, rest: Iterable[Stmt]) -> bool:
    """Whether the loop is over after these statements of the round that got the lock."""
    values: dict[Var, Expr] = {}
    if taking.atomic.var is not None:
        values[taking.atomic.var] = taking.free
    for s in rest:
        if isinstance(s, ir.Leave):
            return s.label == loop.label
        if isinstance(s, ir.Assign):
            value = truth_of(substituted(s.value, values))
            values.pop(s.var, None)
            if value is not None:
                values[s.var] = ir.Const(value, s.var.type)
    return truth_of(substituted(loop.condition, values)) == 0


def _scope(held: Sequence[Stmt]) -> Scope | None:
    """How far the fence before the lock is given back reaches; None: there is none."""
    release = held[-1]
    if isinstance(release, ir.Atomic) and release.releases:
        return release.scope
    for s in reversed(held[:-1]):
        if isinstance(s, ir.Fence):
            return s.scope
        if any(isinstance(x, (ir.Load, ir.Store, ir.Atomic, ir.Copy)) for x in walk((s,))):
            break
    return None


def _without_fence(held: Sequence[Stmt]) -> bool:
    """Nothing at all makes what was stored visible before the lock is given back."""
    inside = list(walk(tuple(held)))
    volatile = any(isinstance(s, (ir.Load, ir.Store)) and s.volatile for s in inside)
    return not volatile and not any(isinstance(s, (ir.Fence, ir.Barrier)) for s in inside)
