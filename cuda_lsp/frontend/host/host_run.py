"""What variables of a host function hold at a place of it, found by running the function up to there.

For values that no single definition or assignment tells: ``while (block.x >= 2 * n) { block.x /= 2; }``.
Integers and ``dim3`` variables are followed through declarations, assignments, branches and loops. What is
not understood makes the names unknown that it writes; after a branch whose condition is unknown only what
both ways leave alike is known; a loop whose condition becomes unknown leaves nothing that it writes known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from attrs import define, field

from cuda_lsp.frontend.host.constants import NotConstant
from cuda_lsp.frontend.host.definitions import Definition, Write
from cuda_lsp.frontend.host.host_functions import HostFunction, HostFunctions
from cuda_lsp.frontend.host.known_values import Given, Key
from cuda_lsp.frontend.host.run_values import Axes, State, Unknown, Value, alike, hanging, with_axis
from cuda_lsp.frontend.host.statements import HEADED, NoStatement, Statements
from cuda_lsp.frontend.host.text import HostText, split_arguments

_OUT = re.compile(r"\b(?:return|continue)\b")
_STEPPED = re.compile(r"(\+\+|--)\s?\w|(?<!\w)\w+\s?(?:\.\s?[xyz]\s?)?(\+\+|--)")
_COMPONENT = re.compile(r"(?:\+\+|--)?\s?(?<!\w)\w+\s?\.\s?([xyz])\b")
_OPERATOR = re.compile(r"([-+*/%&|^]|<<|>>)=\s?\Z")
_LEAVES = re.compile(r"(?:throw\b|(?:std\s?::\s?)?(?:exit|abort|_exit)\s?\()")
_MOST_ROUNDS = 128
_MOST_STATEMENTS = 1000
_MOST_IN_A_FILE = 40_000
_CALL = re.compile(
    r"(?<![\w:])(?:::\s?)?(?:\w{1,80}\s?::\s?){0,4}([A-Za-z_]\w{0,80})\s?(?:<[\w\s,:]{0,80}>)?\s?\("
)
_NO_STATEMENT = ("case", "default", "goto", "else", "catch", "asm")


@define
class Budget:
    """Statements that may still be run in a file."""

    statements: int = _MOST_IN_A_FILE


class Evaluator(Protocol):
    """What running asks of the constants of a file."""

    text: HostText
    budget: Budget
    functions: HostFunctions

    def visible(self, name: str, before: int) -> Definition | None:
        """The definition of a name at a place."""
        ...

    def defined_between(self, begin: int, end: int) -> Sequence[tuple[str, Definition]]:
        """In order."""
        ...

    def written_between(self, begin: int, end: int) -> Sequence[tuple[str, Write]]:
        """In order."""
        ...

    def lasts(self, write: Write) -> bool:
        """Whether others may write later, through what the write makes."""
        ...

    def is_static(self, definition: Definition) -> bool:
        """Whether the variable keeps its value from call to call."""
        ...

    def number(self, text: str, place: int, state: State) -> int | Unknown:
        """The value of an expression where names have these values."""
        ...

    def axes(self, text: str, place: int, state: State) -> Axes:
        """The extents that an expression makes."""
        ...

    def left_by(self, name: str, values: Sequence[Value]) -> Mapping[int, Value]:
        """What a function leaves in variables that it is given by reference, by position."""
        ...


class _Arrived(Exception):
    """The place is reached."""


class _Leaves(Exception):
    """The function ends without coming to the place."""


class _Returns(_Leaves):
    """``text`` at ``place`` is what the function returns."""

    def __init__(self, text: str, place: int) -> None:
        super().__init__()
        self.text, self.place = text, place


class _Breaks(Exception):
    """Out of the loop around."""


class _Continues(Exception):
    """To the loop's next round."""


class _Unsure(Exception):
    """Whether the loop goes on is not known."""


_CANNOT = (NoStatement, _Breaks, _Continues, _Unsure)


def state_at(of: Evaluator, function: HostFunction, at: int, given: Given) -> State:
    """What variables hold where the function comes to ``at``. Raises NotConstant."""
    run = _Run(of, Statements(of.text), at, given)
    try:
        run.function(function)
    except _Arrived:
        return run.state
    except (_Leaves, *_CANNOT):
        pass
    raise NotConstant(function.name)


def returned(of: Evaluator, function: HostFunction, given: Given) -> int | Unknown:
    """What the function returns where its parameters are ``given``. Raises NotConstant."""
    end, state = _ended(of, function, given)
    return of.number(end.text, end.place, state)


def returned_axes(of: Evaluator, function: HostFunction, given: Given) -> Axes:
    """The extents that the function returns where its parameters are ``given``. Raises NotConstant."""
    end, state = _ended(of, function, given)
    return of.axes(end.text, end.place, state)


def _ended(of: Evaluator, function: HostFunction, given: Given) -> tuple[_Returns, State]:
    run = _Run(of, Statements(of.text), -1, given)
    try:
        run.function(function)
    except _Returns as end:
        return end, run.state
    except (_Leaves, *_CANNOT):
        pass
    raise NotConstant(function.name)


def left(of: Evaluator, function: HostFunction, given: Given) -> dict[int, Value]:
    """What the function leaves in its references, by position, where its parameters are ``given``.

    Raises NotConstant.
    """
    run = _Run(of, Statements(of.text), -1, given)
    try:
        run.function(function)
    except _Returns:
        pass
    except (_Leaves, *_CANNOT) as error:
        raise NotConstant(function.name) from error
    found: dict[int, Value] = {}
    for position in function.references:
        name, _ = function.parameters[position]
        definition = of.visible(name, function.body + 1)
        value = run.state.get((name, definition.position)) if definition is not None else None
        if value is not None:
            found[position] = value
    return found


def _with(value: Value, nobody: Unknown) -> Value:
    """The value, ``nobody`` in the place of what is not known."""
    if isinstance(value, tuple):
        x, y, z = (nobody if isinstance(axis, Unknown) else axis for axis in value)
        return x, y, z
    return nobody if isinstance(value, Unknown) else value


def _unknown_in(value: Value) -> list[Unknown]:
    return [x for x in (value if isinstance(value, tuple) else (value,)) if isinstance(x, Unknown)]


@define
class _Run:
    """One run; ``at``: where it is to end, -1 for the function's end."""

    of: Evaluator
    read: Statements
    at: int
    given: Given
    state: State = field(factory=dict[Key, Value])
    shared: set[Key] = field(factory=set[Key])  # what lambdas, pointers and references may write to
    left: int = _MOST_STATEMENTS

    # ------------------------------------------------------------------------------------ control

    def function(self, function: HostFunction) -> None:
        """All of it; its parameters have what is given for them."""
        if self.of.functions.jumps(function):
            raise NoStatement
        for name, _ in function.parameters:
            definition = self.of.visible(name, function.body + 1)
            if definition is not None and definition.position < function.body:
                self._unknown(name, definition, definition.position)
        self._block(function.body + 1, function.end)

    def _block(self, place: int, end: int) -> None:
        while (place := self.read.skipped(place)) < end:
            place = self._statement(place, end)

    def _statement(self, place: int, limit: int) -> int:
        """Runs the statement that begins here; gives where it ends."""
        self.left -= 1
        self.of.budget.statements -= 1
        plain = self.of.text.plain
        if min(self.left, self.of.budget.statements) < 0:
            raise NoStatement
        if plain[place] == "#":
            return self.read.line_end(place)
        end = self.read.end(place, limit)
        if plain[place] == "{":
            self._block(place + 1, end - 1)
            return end
        name = self.read.word(place)
        if name in _NO_STATEMENT:
            raise NoStatement
        if name in HEADED and place <= self.at < self.read.behind_header(place):
            self._forget(place, end if name != "if" else place)
            raise _Arrived
        if name == "if":
            self._branch(place, limit)
        elif name in ("for", "while"):
            self._loop(place, end, limit)
        elif name == "do":
            self._do(place, end, limit)
        elif name == "switch":
            self._forget(place, end)
            if place < self.at < end:
                raise _Arrived
            if _OUT.search(plain, place, end):
                raise NoStatement
        elif name == "return":
            if place <= self.at < end:
                raise _Arrived
            raise _Returns(plain[place + len(name) : end - 1].strip(), place)
        elif name == "break":
            raise _Breaks
        elif name == "continue":
            raise _Continues
        elif name == "try":
            return self._statement(self.read.skipped(place + len(name)), limit)
        elif _LEAVES.match(plain, place):
            raise _Leaves
        else:
            self._simple(place, end)
        return end

    # ------------------------------------------------------------------------------------ branches

    def _branch(self, place: int, limit: int) -> None:
        plain, taken = self.of.text.plain, self.given.taken
        behind = self.read.behind_header(place)
        first = self.read.skipped(behind)
        middle = self.read.end(first, limit)
        second = self.read.otherwise(middle)
        end = self.read.end(second, limit) if second is not None else middle
        if first <= self.at < middle or first in taken.braces:
            self._statement(first, limit)
            return
        if second is not None and (second <= self.at < end or second in taken.braces):
            self._statement(second, limit)
            return
        opening = plain.find("(", place, behind)
        self._forget(opening, behind)
        value = self.of.number(plain[opening + 1 : behind - 1], opening, self.state)
        if not taken.runs(first + 1):
            value = 0
        if isinstance(value, Unknown):
            self._either(first, second, (place, end), value, limit)
        elif value:
            self._statement(first, limit)
        elif second is not None:
            self._statement(second, limit)

    def _either(
        self, first: int, second: int | None, extent: tuple[int, int], because: Unknown, limit: int
    ) -> None:
        """One of two ways, nobody knows which."""
        before = dict(self.state)
        ways: list[State] = []
        for way in (first, second):
            self.state = dict(before)
            try:
                if way is not None:
                    self._statement(way, limit)
                ways.append(self.state)
            except _Leaves as leaving:
                if self.at < 0:
                    raise NoStatement from leaving
            except (_Breaks, _Continues) as unsure:
                raise _Unsure from unsure
        if not ways:
            raise _Leaves
        self.state = ways[0]
        if len(ways) > 1:
            self._join(ways[1], extent, because)

    def _join(self, other: State, extent: tuple[int, int], because: Unknown) -> None:
        places = {name: write.position for name, write in self.of.written_between(*extent)}
        for key, value in list(self.state.items()):
            if key in other and other[key] != value:
                definition = self.of.visible(key[0], key[1] + 1)
                if definition is None:
                    raise NoStatement
                self._unknown(key[0], definition, places.get(key[0], key[1]), because)
                self.state[key] = alike(value, other[key], self.state[key])

    # --------------------------------------------------------------------------------------- loops

    def _loop(self, place: int, end: int, limit: int) -> None:
        """``while (test)`` or ``for (first; test; step)``."""
        plain = self.of.text.plain
        behind = self.read.behind_header(place)
        opening = plain.find("(", place, behind)
        body, begin, step = self.read.skipped(behind), opening + 1, behind - 1
        if plain.startswith("for", place):
            begin = self.read.semicolon(begin, behind)  # a loop over a range has none
            step = self.read.semicolon(begin, behind)
            self._simple(opening + 1, begin)
        if body <= self.at < end:
            self._forget(begin, end)
            self._statement(body, limit)
            raise _Leaves
        test = plain[begin:step].rstrip("; ")
        value: int | Unknown = Unknown(frozenset())
        for _ in range(_MOST_ROUNDS):
            self._forget(begin, step)
            value = self.of.number(test or "1", begin, self.state)
            if isinstance(value, Unknown):
                break
            if not value or self._round(body, (begin, end), limit):
                return
            self._simple(step, behind - 1)
        self._forget(begin, end, value if isinstance(value, Unknown) else None)

    def _round(self, body: int, extent: tuple[int, int], limit: int) -> bool:
        """One round; whether it leaves the loop."""
        try:
            self._statement(body, limit)
        except _Breaks:
            return True
        except _Continues:
            pass
        except _Unsure:
            self._forget(*extent)
            return True
        return False

    def _do(self, place: int, end: int, limit: int) -> None:
        plain = self.of.text.plain
        body = self.read.skipped(place + 2)
        behind = self.read.end(body, limit)
        opening = plain.find("(", behind, end)
        if body <= self.at < behind:
            self._forget(place, end)
            self._statement(body, limit)
            raise _Leaves
        for _ in range(_MOST_ROUNDS):
            if self._round(body, (place, end), limit):
                return
            self._forget(opening, end)
            value = self.of.number(plain[opening + 1 : end - 1], opening, self.state)
            if isinstance(value, Unknown):
                break
            if not value:
                return
        self._forget(place, end)

    # ---------------------------------------------------------------------------------- statements

    def _simple(self, place: int, end: int) -> None:
        """Declarations, assignments and calls; what braces in them write (of lambdas) is not known."""
        inner = self.read.braces(place, end)
        if place <= self.at < end:
            self._into(place, inner)
        by_call = self._left_by_call(place, end)
        events = [
            *((d.position, 0, name, d) for name, d in self.of.defined_between(place, end)),
            *((w.position, 1, name, w) for name, w in self.of.written_between(place, end)),
        ]
        own: dict[str, list[Definition]] = {}
        for position, _, name, event in sorted(events, key=lambda e: e[:2]):
            hidden = any(begin < position < close for begin, close in inner)
            if isinstance(event, Definition):
                if event.writes:
                    own.setdefault(name, []).append(event)
                if not hidden:
                    self._define(name, event)
                continue
            defined = own.pop(name, [])
            if hidden or self.of.lasts(event):  # by a lambda or a pointer: now, or later
                self._share(name, position)
            elif not defined:
                self._write(name, event, self.of.visible(name, position), (self.read.skipped(place), end))
            for counter in defined:
                if counter.text is None:
                    self._write(name, event, counter, (position, end))
        self.state.update(by_call)

    def _left_by_call(self, place: int, end: int) -> State:
        """What a call leaves in the variables that the function may write to."""
        text = self.of.text
        call = _CALL.match(text.plain, self.read.skipped(place))
        closing = text.parentheses.get(call.end() - 1, -1) if call is not None else -1
        if call is None or text.plain[closing + 1 : end].strip(" ;\n"):
            return {}
        arguments = [part.strip() for part in split_arguments(text.plain[call.end() : closing])]
        values = [self._passed(argument, call.end()) for argument in arguments]
        left = self.of.left_by(call[1], values)
        inputs = [value for i, value in enumerate(values) if i not in left] or values
        hanging_on = frozenset[Key]().union(*(x.keys for value in inputs for x in _unknown_in(value)))
        found: State = {}
        for position, value in left.items():
            key = self._key(arguments[position], place)
            alone = arguments.count(arguments[position]) == 1 and key in self.state and key not in self.shared
            if key is None or not alone or (_unknown_in(value) and not hanging_on):
                continue  # nobody can say more
            found[key] = _with(value, Unknown(hanging_on))
        return found

    def _passed(self, argument: str, place: int) -> Value:
        key = self._key(argument, place)
        return self.state[key] if key in self.state else self.of.number(argument, place, self.state)

    def _key(self, name: str, place: int) -> Key | None:
        definition = self.of.visible(name, place) if name.isidentifier() else None
        return (name, definition.position) if definition is not None else None

    def _share(self, name: str, place: int) -> None:
        definition = self.of.visible(name, place)
        if definition is not None:
            self.shared.add((name, definition.position))
            self._unknown(name, definition, place)

    def _into(self, place: int, inner: Sequence[tuple[int, int]]) -> None:
        """To the place, which is in this statement, or in a block that it hands to a macro or function."""
        text = self.of.text
        for begin, close in inner:
            if begin < self.at < close:
                opening = text.plain.find("(", place, begin)
                if opening < 0 or text.parentheses.get(opening, -1) < close:
                    raise NoStatement  # a lambda that is called somewhere else
                self._block(begin + 1, close)
                raise NoStatement
        raise _Arrived

    def _define(self, name: str, definition: Definition) -> None:
        key = (name, definition.position)
        if self.of.is_static(definition):
            self.shared.add(key)
        if key in self.given.values or key in self.shared or definition.text is None:
            self._unknown(name, definition, definition.position)
        elif definition.scalar:
            value = self.of.number(definition.text, definition.position, self.state)
            self.state[key] = hanging(value, key)
        else:
            self.state[key] = self._axes(definition.text, definition.position, key)

    def _axes(self, text: str, place: int, made: Key) -> Axes:
        x, y, z = (hanging(axis, made) for axis in self.of.axes(text, place, self.state))
        return x, y, z

    def _write(self, name: str, write: Write, definition: Definition | None, extent: tuple[int, int]) -> None:
        key = (name, definition.position) if definition is not None else None
        if definition is None or key is None or key not in self.state:
            return
        axis, text = self._assigned(name, write, extent)
        made, held = (name, write.position), self.state[key]
        if text is None or made in self.given.values or key in self.shared:
            self._unknown(name, definition, write.position)
        elif axis is None and isinstance(held, tuple):
            self.state[key] = self._axes(text, write.position, made)
        else:
            value = hanging(self.of.number(text, write.position, self.state), made)
            self.state[key] = value if axis is None else with_axis(held, axis, value, made)

    def _assigned(self, name: str, write: Write, extent: tuple[int, int]) -> tuple[str | None, str | None]:
        """Which component is written, and with what; no text: that is not understood."""
        plain = self.of.text.plain
        before = plain[max(0, write.position - 2) : write.position].rstrip()
        if before[-1:] != "," and write.position != extent[0]:
            return None, None
        if write.value < 0:
            step = _STEPPED.match(plain, write.position)
            if step is None:
                return None, None
            axis = _COMPONENT.match(plain, write.position)
            place = f"{name}.{axis[1]}" if axis else name
            return axis[1] if axis else None, f"{place} {(step[1] or step[2])[0]} 1"
        text = plain[write.value : self.read.value_end(write.value, extent[1])].strip()
        operator = _OPERATOR.search(plain, write.position, write.value)
        place = f"{name}.{write.axis}" if write.axis else name
        return write.axis, f"{place} {operator[1]} ({text})" if operator is not None else text

    # ----------------------------------------------------------------------------------- forgetting

    def _forget(self, begin: int, end: int, because: Unknown | None = None) -> None:
        """What a stretch of the text writes is not known."""
        last: dict[Key, tuple[str, Definition, int]] = {}
        for name, write in self.of.written_between(begin, end):
            definition = self.of.visible(name, write.position)
            if definition is not None and (name, definition.position) in self.state:
                last[name, definition.position] = name, definition, write.position
        for name, definition, place in last.values():
            self._unknown(name, definition, place, because)

    def _unknown(self, name: str, definition: Definition, place: int, because: Unknown | None = None) -> None:
        """The name has what is given for this place, if anything is."""
        given = self.given.values.get((name, place))
        nobody = Unknown(because.keys if because is not None and because.keys else frozenset({(name, place)}))
        if isinstance(given, tuple):
            x, y, z = (nobody if axis is None else axis for axis in given)
            self.state[name, definition.position] = (x, y, z)
        else:
            self.state[name, definition.position] = nobody if given is None else given
