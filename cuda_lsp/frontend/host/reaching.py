"""What reaches a use of a name in host code: the definition or the assignment whose value it has there.

That is the definition which is visible, or the last assignment that every way from there to the use comes by,
when nothing else in between writes the name or takes its address. Whatever is in doubt reaches nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property

from cuda_lsp.frontend.host.definitions import (
    NOTHING_SAID,
    Definition,
    Write,
    assigned,
    definitions_of,
    writes_member,
    writes_of,
)
from cuda_lsp.frontend.host.host_functions import HostFunctions
from cuda_lsp.frontend.host.known_values import NOTHING_GIVEN, Key, Reached, Taken
from cuda_lsp.frontend.host.text import FURTHEST, HostText

_UNSIGNED = re.compile(r"\b(?:unsigned|u(?:int|long|short|char)(?:\d+_t)?|size_t)\b")
_STATIC = re.compile(r"\bstatic\b")
_CONSTANT = re.compile(r"\bconst(?:expr)?\b")
_CLASS = re.compile(r"\b(?:struct|class)\s[^;{}()]{0,400}\Z")
_REST_OF_NAME = re.compile(r"\s?\w*")
_CASE = re.compile(r"\bcase\b|\bdefault\s?:")
_MOST_WRITES = 256
"""Writes to one name in its scope; more are not looked through."""


def _writes_of(text: HostText) -> dict[str, list[Write]]:
    return writes_of(text.plain)


class Reaching:
    """The names of one file, what the preprocessor leaves out being blank.

    ``included``: of the files that it includes. ``doubtful``: stretches that the preprocessor may leave out.
    """

    def __init__(
        self, text: HostText, included: Sequence[Reaching], doubtful: Sequence[tuple[int, int]]
    ) -> None:
        self.text = text
        self._plain = text.plain
        self._included = included
        self._given = NOTHING_GIVEN
        self._braces = text.braces
        self.functions = text.kept(HostFunctions)
        self._branches = [(text.reduced(begin), text.reduced(end)) for begin, end in doubtful]
        branches = self._branches
        self._definitions = definitions_of(text, branches) if branches else text.kept(definitions_of)
        self._writes = text.kept(_writes_of)
        self._member_writes: dict[tuple[str, str, int], bool] = {}  # by the place of the function
        self._seen: dict[tuple[str, int], Definition | None] = {}  # by name and place
        self._that_reach: dict[tuple[str, int, str | None, Taken], Reached | None] = {}

    def key(self, name: str, before: int, axis: str | None = None) -> Key | None:
        """What tells the value of a name (or of a component) at a place; None: nothing does."""
        value = self.reached(name, before, axis)
        return (name, value.position) if value is not None else None

    def counter(self, name: str, before: int) -> Key | None:
        """What tells the value that a loop's counter has in a round: only the loop's header changes it."""
        found = self._counter(name, before)
        return (name, found.position) if found is not None else None

    def declared(self, name: str, before: int) -> Key | None:
        """What tells the value that a name has where it is declared: of parameters, what is passed."""
        definition = self._visible(name, before)
        return (name, definition.position) if definition is not None else None

    def argument(self, number: int, name: str, at: int) -> str:
        """An argument of a launch as conditions name it: ``#2``, or ``#u2`` of a variable without a sign."""
        found = self._visible(name, at)
        return f"#u{number}" if found and _UNSIGNED.search(self.words_of(found)) else f"#{number}"

    def writes(self, names: Set[str], begin: int, end: int) -> bool:
        """Whether a stretch of the text writes to one of the names."""
        places = (self._written.get(name, ()) for name in names)
        return any(bisect_left(p, end, key=_position) > bisect_left(p, begin, key=_position) for p in places)

    def writes_member(self, variable: str, member: str, at: int) -> bool:
        """Whether the function around a place writes to ``variable.member``, or takes its address."""
        function = self.functions.around(at)
        begin, end = (function.body, function.end) if function is not None else (0, len(self._plain))
        asked = variable, member, begin
        if asked not in self._member_writes:
            self._member_writes[asked] = writes_member(self._plain, begin, end, variable, member)
        return self._member_writes[asked]

    def words_of(self, definition: Definition) -> str:
        """What stands before the name where it is declared, and the name."""
        position, ends = definition.position, "(,<;{}" if definition.text is None else ";{}"
        first = max(self._plain.rfind(c, max(0, position - FURTHEST), position) for c in ends)
        named = _REST_OF_NAME.match(self._plain, position)
        return self._plain[first + 1 : named.end() if named is not None else position]

    def defined_between(self, begin: int, end: int) -> Sequence[tuple[str, Definition]]:
        """The definitions in a stretch of the text, in order, and their names."""
        places = self._defined_in_order
        first, last = (bisect_left(places, at, key=lambda each: each[1].position) for at in (begin, end))
        return places[first:last]

    def written_between(self, begin: int, end: int) -> Sequence[tuple[str, Write]]:
        """The writes in a stretch of the text, in order, and the names that are written."""
        places = self._written_in_order
        first, last = (bisect_left(places, at, key=lambda each: each[1].position) for at in (begin, end))
        return places[first:last]

    @cached_property
    def _defined_in_order(self) -> Sequence[tuple[str, Definition]]:
        every = ((name, d) for name, known in self._definitions.items() for d in known.all if not d.doubt)
        return sorted(every, key=lambda each: each[1].position)

    @cached_property
    def _written_in_order(self) -> Sequence[tuple[str, Write]]:
        every = ((name, write) for name, writes in self._written.items() for write in writes)
        return sorted(every, key=lambda each: each[1].position)

    def visible(self, name: str, before: int) -> Definition | None:
        """The definition of a name at a place; None: it has none, or nobody knows which."""
        found = self._visible(name, before)
        return found if found is not None and not found.doubt else None

    def _visible(self, name: str, before: int) -> Definition | None:
        asked = name, before
        if asked not in self._seen:
            known = self._definitions.get(name)
            self._seen[asked] = known.visible(before) if known else None
        return self._seen[asked]

    def reached(self, name: str, before: int, axis: str | None = None) -> Reached | None:
        """The definition or assignment whose value the name (or its component) has; None: nobody knows."""
        asked = name, before, axis, self._given.taken
        if asked not in self._that_reach:
            self._that_reach[asked] = self._reached(name, before, axis)
        return self._that_reach[asked]

    def _reached(self, name: str, before: int, axis: str | None) -> Reached | None:
        definition = self._visible(name, before)
        if definition is None or definition.doubt:
            return None
        value = Reached(definition.text, definition.position, definition)
        others = self._others(name, definition)
        if others is None or self._is_set_from_outside(name, definition):
            return None
        runs = self._given.taken.runs
        concerning = [w for w in others if (axis is None or w.axis in (None, axis)) and runs(w.position)]
        if not concerning:
            return value
        function = self.functions.around(before)
        if function is None or not function.begin <= definition.position <= function.end:
            return None  # other functions write it
        passed = [w for w in concerning if w.position < before]
        if self.is_static(definition) or any(map(self.lasts, passed)) or self.functions.jumps(function):
            return None
        elsewhere = [w for w in passed if self.functions.in_another_branch(w.position, before)]
        for write in reversed(passed):
            if write not in elsewhere:
                text = assigned(self._plain, write)
                if text is None or not self.comes_by(write.position, before):
                    return None
                value = Reached(text, write.position, definition)
                break
        later = len(concerning) > len(passed) or elsewhere
        return value if not later or self.functions.runs_once(value.position, before) else None

    def _is_set_from_outside(self, name: str, definition: Definition) -> bool:
        """Whether it is a class's variable to which somebody stores by an object (``c.threads = 64``)."""
        brace = self._braces.begin(definition.position)
        head = self._plain[max(0, brace - FURTHEST) : brace]
        if brace < 0 or _CLASS.search(head) is None or _CONSTANT.search(self.words_of(definition)):
            return False
        stored = re.compile(rf"(?:\.|->)\s?{re.escape(name)}\s?(?:\.\s?[xyz]\s?)?(?:[-+*/%&|^]|<<|>>)?=(?!=)")
        return any(stored.search(file.text.plain) for file in (self, *self._included))

    def keeps(self, name: str, begin: int, end: int) -> bool:
        """Whether a variable has one value at two places, the second always reached from the first."""
        definition = self._visible(name, begin)
        others = self._others(name, definition) if definition is not None and not definition.doubt else None
        if definition is None or others is None or self._visible(name, end) is not definition:
            return False
        function = self.functions.around(end)
        local = function is not None and function.begin <= definition.position <= begin <= end <= function.end
        if not local or self.is_static(definition) or any(self.lasts(w) for w in others if w.position < end):
            return False
        return not any(begin <= w.position < end for w in others) and self.functions.runs_once(begin, end)

    def lasts(self, write: Write) -> bool:
        """Whether it makes a pointer or a reference, through which others may write later."""
        return write.value < 0 and self._plain[write.position] in "=&"

    def is_static(self, definition: Definition) -> bool:
        """Whether the variable keeps its value from call to call."""
        words = self.words_of(definition)
        return _STATIC.search(words) is not None and _CONSTANT.search(words) is None

    def _counter(self, name: str, before: int) -> Reached | None:
        """A loop's counter that only the loop's header changes: unknown unless given."""
        definition = self._visible(name, before)
        if definition is None or definition.doubt or definition.text is not None:
            return None
        header, others = self.text.for_header(definition.position), self._others(name, definition)
        if header is None or others is None or any(write.position > header[1] for write in others):
            return None
        return Reached(None, definition.position, definition)

    @cached_property
    def _written(self) -> Mapping[str, Sequence[Write]]:
        """The writes to each name in order, those by functions that are handed it among them."""
        known = (self.functions, *(file.functions for file in self._included))
        lent = self.functions.lent(known)
        added = {name: [Write(place) for place in places] for name, places in lent.items()}
        for name, place in self._filled_by_strangers(known):
            added.setdefault(name, []).append(Write(place))
        if not added:
            return self._writes
        every = {name: [*self._writes.get(name, ()), *writes] for name, writes in added.items()}
        return {**self._writes, **{name: sorted(found, key=_position) for name, found in every.items()}}

    def _filled_by_strangers(self, known: Sequence[HostFunctions]) -> Iterator[tuple[str, int]]:
        """Variables, and the calls that are handed them before anything is said of them: these fill them.

        ``dim3 grid; choose(n, grid);`` of a function whose declaration nobody has read.
        """
        empty = {
            name
            for name, found in self._definitions.items()
            if any(definition.text == NOTHING_SAID for definition in found.all)
        }
        for name, place in self.functions.lent_to_strangers(known, empty):
            definition = self._definitions[name].visible(place)
            writes = self._writes.get(name, ())
            if definition is None or definition.text != NOTHING_SAID:
                continue
            said = bisect_left(writes, definition.position, key=_position)
            if said == bisect_left(writes, place, key=_position):
                yield name, place

    def _others(self, name: str, definition: Definition) -> list[Write] | None:
        """The writes to a name in a definition's scope but for its own; None: too many."""
        writes = self._written.get(name, ())
        first = bisect_left(writes, definition.position, key=_position)
        last = bisect_left(writes, definition.end + 1, lo=first, key=_position)
        inner = self._definitions[name].inside(definition) if last - first <= _MOST_WRITES else None
        if inner is None:
            return None
        every, hidden = writes[first:last], [(d.position, d.end) for d in inner]
        own = [w for w in every if not any(begin <= w.position <= end for begin, end in hidden)]
        return own[definition.writes :]

    def comes_by(self, position: int, use: int) -> bool:
        """Whether every way to ``use`` has come by the statement at ``position`` before it."""
        block = self._braces.begin(position)
        while block in self._given.taken.braces:
            block = self._braces.begin(block - 1)
        if self._braces.closing.get(block, len(self._plain)) < use or use - position > FURTHEST:
            return False
        if any(self._braces.begin(m.start()) == block for m in _CASE.finditer(self._plain, position, use)):
            return False
        return not any(begin <= position <= end < use for begin, end in self._branches)

    def is_component(self, name: str, position: int) -> bool:
        """Whether the write that stands here is one of a component."""
        return any(w.position == position and w.axis is not None for w in self._writes.get(name, ()))


def _position(write: Write) -> int:
    return write.position
