"""One round of a loop that repeats a compare-and-swap, followed twice: as it succeeds, and as it fails.

Values are followed by what they stand for: a constant, what the word holds, what the compare-and-swap found,
what a variable (or an element of a local array, where unions and casts of floats live) held at the round's
beginning. It is a retry when

- every round comes to the compare-and-swap, or leaves the loop before it;
- it expects what the word held: what this round read there, or what stood at its beginning in a variable
  which a failed round leaves with what the compare-and-swap found;
- who succeeds leaves, and who fails does not: no way out hangs on anything else then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, BinaryOp, Expr, Stmt, Var
from cuda_lsp.ir.types import Int, Type
from cuda_lsp.ir.walk import assigned, inside, labels, root_array, used, variables


@frozen
class Element:
    """A number in a local array."""

    array: Array | None
    pointer: Expr
    type: Type


def _element(array: Array | None, pointer: Expr, type: Type) -> Element:
    """By its bits: read with a sign or without (``*(unsigned*)&value``) it is the same."""
    plain = Int(type.bits, signed=False) if isinstance(type, Int) and not type.boolean else type
    return Element(array, pointer, plain)


Cell = Var | Element


@frozen
class Held:
    """What a value stands for. ``cell``: what that held at first; ``number``: a constant.

    ``serial``: nothing that is known, other than itself.
    """

    cell: Cell | None = None
    number: int | None = None
    serial: int = 0


_FOUND, _WORD = Held(serial=-1), Held(serial=-2)  # by the compare-and-swap; by a read in this round


@frozen(eq=False)
class Retry:
    """A loop that is one. ``carried``: what rounds begin with; ``seen``: among it, what the word held.

    ``known``: what else every round but the first begins with. ``stored``: elements that it sets.
    ``decided``: which arm who succeeds takes, by ``id()``. ``looks``: reads of the word, by ``id()``.
    ``over_in_test``: who succeeds leaves before the body.
    """

    cas: ir.Atomic
    place: Expr
    looks: frozenset[int]
    carried: tuple[Cell, ...]
    seen: Cell | None
    known: Mapping[Cell, int]
    stored: tuple[Element, ...]
    decided: Mapping[int, bool]
    over_in_test: bool


def followed(loop: ir.Loop, cas: ir.Atomic, place: Expr, looks: frozenset[int]) -> Retry | None:
    """The loop as a retry; None: it is none, as far as is seen."""
    ways = [_Way(loop, cas, looks, succeeds) for succeeds in (False, True)]
    if not all(way.followed() for way in ways):
        return None
    fails, succeeds = ways
    seen = None
    expected = fails.expected
    if expected is None or not succeeds.left or fails.left:
        return None
    if expected is not _WORD:
        seen = expected.cell
        if seen is None or fails.env.get(seen) not in (_FOUND, _WORD):
            return None
    begun = dict.fromkeys((*fails.begun, *succeeds.begun))
    carried = tuple(c for c in begun if c in fails.env or c in succeeds.env)
    stored = dict.fromkeys((*fails.stored, *succeeds.stored))
    if not all(isinstance(c.type, Int) for c in (*carried, *stored)):
        return None
    ends = {c: held.number for c in carried if (held := fails.env.get(c)) is not None}
    known = {c: number for c, number in ends.items() if number is not None}
    return Retry(
        cas, place, looks, carried, seen, known, tuple(stored), succeeds.decided, succeeds.over_in_test
    )


@define(eq=False)
class _Way:
    """A round that succeeds or fails. ``env``: what is set; ``begun``: what was read before that.

    ``left``: it left the loop, whatever else held. ``of_floats``: the word's value was a float's in between,
    which is not followed. No lock is asked for with one: the condition compares it with what was found.
    """

    loop: ir.Loop
    cas: ir.Atomic
    looks: frozenset[int]
    succeeds: bool
    env: dict[Cell, Held] = field(factory=dict["Cell", "Held"])
    begun: dict[Cell, None] = field(factory=dict["Cell", None])
    stored: dict[Element, None] = field(factory=dict["Element", None])
    decided: dict[int, bool] = field(factory=dict[int, bool])
    expected: Held | None = None
    left: bool = False
    of_floats: bool = False
    over_in_test: bool = False
    serial: int = 0

    def followed(self) -> bool:
        """Whether the round can be followed to its end."""
        loop, behind = self.loop, False
        if loop.tests_first:
            if not self._all(loop.test):
                return False
            self.held(loop.condition)
            behind = self.expected is not None
            self.over_in_test = behind and self._ends()
        if not self._all(loop.body) or not self._all(loop.step):
            return False
        if not behind:
            if not self._all(loop.test):
                return False
            self._ends()
        return self.expected is not None

    def _ends(self) -> bool:
        """The loop's condition, behind the compare-and-swap, ends it."""
        of_floats = self.of_floats and isinstance(self.loop.condition, ir.Unknown)
        ends = self.succeeds if of_floats else self.truth(self.loop.condition) is False
        self.left = self.left or ends
        return self.left

    def _all(self, body: Sequence[Stmt]) -> bool:
        """Follows statements that every round executes; whether they could be."""
        for s in body:
            if self.left:
                return True
            if s is self.cas:
                if self.expected is not None or self.cas.var is None:
                    return False
                self.of_floats = isinstance(self.cas.operands[0], ir.Unknown)
                self.expected = _WORD if self.of_floats else self.held(self.cas.operands[0])
                if self.expected is not _WORD and self.expected.cell is None:
                    return False
                self.env[self.cas.var] = _FOUND
            elif isinstance(s, ir.Leave):
                self.left = self.expected is not None and s.label != self.loop.continue_label
                return self.left
            elif isinstance(s, ir.If):
                if not self._branch(s):
                    return False
            elif not self._step(s):
                return False
        return True

    def _branch(self, s: ir.If) -> bool:
        outcome = self.truth(s.condition) if self.expected is not None else None
        if self.of_floats and isinstance(s.condition, ir.Unknown) and _goes(s.then) and not s.otherwise:
            outcome = self.succeeds
        if outcome is not None:
            if self.decided.setdefault(id(s), outcome) is not outcome:
                return False
            return self._all(s.then if outcome else s.otherwise)
        before, ends = dict(self.env), list[dict[Cell, Held]]()
        for arm in (s.then, s.otherwise):
            self.env = dict(before)
            goes_on = self._arm(arm)
            if goes_on is None:
                return False
            if goes_on:
                ends.append(self.env)
        if not ends:
            return False
        self.env = dict(ends[0])
        for cell in dict.fromkeys(c for env in ends for c in env):
            values = {env.get(cell) or self._first(cell) for env in ends}
            self.env[cell] = values.pop() if len(values) == 1 else self._fresh()
        return True

    def _arm(self, body: Sequence[Stmt]) -> bool | None:
        """Follows what some rounds execute: whether they come to its end; None: it cannot be followed."""
        for s in body:
            if isinstance(s, ir.Leave):  # before the compare-and-swap; behind it, who fails might leave
                quietly = self.expected is None and s.label != self.loop.continue_label
                return False if quietly else None
            if s is self.cas or not self._step(s):
                return None
        return True

    def _step(self, s: Stmt) -> bool:
        """Follows a statement that stays in the round and does not swap; whether it is one."""
        if isinstance(s, (ir.If, ir.Block)):
            return self._region(s)
        if isinstance(s, ir.Assign):
            self.env[s.var] = self.held(s.value)
        elif isinstance(s, ir.Load):
            held = _WORD if id(s) in self.looks else self._loaded(s)
            if s.var is not None:
                self.env[s.var] = held
        elif isinstance(s, ir.Store):
            self._store(s)
        return s is not self.cas and not isinstance(s, ir.Leave)

    def _region(self, s: ir.If | ir.Block) -> bool:
        """Of what is only executed in part nothing is known."""
        within = list(inside(s))
        own = frozenset[int]().union(*(labels(x) for x in (s, *within)))
        if self.cas in within or any(isinstance(x, ir.Leave) and x.label not in own for x in within):
            return False
        for x in (s, *within):
            for v in (v for e in used(x) for v in variables(e)):
                self.held(v)
            if isinstance(x, ir.Load):
                self._loaded(x)
        for x in within:
            if isinstance(x, ir.Store):
                self._store(x)
                self.env[_element(root_array(x.pointer), x.pointer, x.type)] = self._fresh()
            elif (var := assigned(x)) is not None:
                self.held(var)
                self.env[var] = self._fresh()
        return True

    def _loaded(self, s: ir.Load) -> Held:
        array = root_array(s.pointer)
        if array is None:
            return self._fresh()
        cell = _element(array, s.pointer, s.type)
        if cell not in self.env and any(isinstance(c, Element) and c.array is array for c in self.env):
            return self._fresh()  # it may be part of what was stored
        return self.env.get(cell) or self._first(cell)

    def _store(self, s: ir.Store) -> None:
        array = root_array(s.pointer)
        for cell in [c for c in self.env if isinstance(c, Element) and c.array is array]:
            self.env[cell] = self._fresh()
        cell = _element(array, s.pointer, s.type)
        if isinstance(s.type, Int):
            self.stored[cell] = None
        self.env[cell] = self.held(s.value)

    # -------------------------------------------------------------------------------- expressions

    def held(self, e: Expr) -> Held:
        """What the expression stands for."""
        if isinstance(e, ir.Const) and isinstance(e.value, int):
            return Held(number=e.value)
        if isinstance(e, Var):
            return self.env.get(e) or self._first(e)
        if isinstance(e, ir.Cast) and isinstance(e.type, Int) and e.type.size == e.operand.type.size:
            return self.held(e.operand)
        truth = self.truth(e) if self.expected is not None else None
        for v in variables(e):
            if v not in self.env:
                self._first(v)
        return self._fresh() if truth is None else Held(number=int(truth))

    def truth(self, e: Expr) -> bool | None:
        """What a condition comes to."""
        if isinstance(e, ir.Cast):
            return self.truth(e.operand)
        if isinstance(e, ir.Unary) and e.op is ir.UnaryOp.NOT:
            inner = self.truth(e.operand)
            return None if inner is None else not inner
        if isinstance(e, ir.Binary) and e.op in (BinaryOp.AND, BinaryOp.OR):
            return self._joined(e)
        if isinstance(e, ir.Binary) and e.op in (BinaryOp.EQ, BinaryOp.NE):
            sides = {self.held(e.left), self.held(e.right)}
            if self.expected is not None and sides == {_FOUND, self.expected}:
                return self.succeeds is (e.op is BinaryOp.EQ)
            return None
        if isinstance(e, (ir.Const, Var)):
            number = self.held(e).number
            return None if number is None else bool(number)
        return None

    def _joined(self, e: ir.Binary) -> bool | None:
        """Of both or either. What is not known (of floats) is taken to make nobody wait."""
        known = {self.truth(part) for part in (e.left, e.right) if not isinstance(part, ir.Unknown)}
        decisive = e.op is BinaryOp.OR
        if decisive in known:
            return decisive
        return None if None in known or not known else not decisive

    def _first(self, cell: Cell) -> Held:
        self.begun[cell] = None
        return Held(cell)

    def _fresh(self) -> Held:
        self.serial += 1
        return Held(serial=self.serial)


def _goes(body: Sequence[Stmt]) -> bool:
    return isinstance(body[-1] if body else None, ir.Leave)
