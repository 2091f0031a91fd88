"""Names of host code that hold one known value: what launch configurations and arguments are made of.

A name has the value of the definition that is visible at the use, or of the last assignment that every way
from there to the use comes by, when nothing else in between writes the name or takes its address. A wrong
constant could hide a bug, so whatever is in doubt is "not constant". ``Given`` tells values besides: of
parameters, as one caller passes them, and of what a branch has compared.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Generator, Mapping, Sequence, Set
from contextlib import contextmanager
from functools import cached_property

from cuda_lsp.frontend.host.called_macros import by_its_name, called_macros, expanded
from cuda_lsp.frontend.host.constants import SIZES, Lookup, NotConstant, evaluate, known_value
from cuda_lsp.frontend.host.definitions import (
    Definition,
    Write,
    assigned,
    definitions_of,
    in_namespaces_only,
    scope_of,
    writes_member,
    writes_of,
)
from cuda_lsp.frontend.host.host_functions import HostFunctions
from cuda_lsp.frontend.host.known_values import (
    NOTHING_GIVEN,
    UNKNOWN,
    Given,
    Key,
    Reached,
    all_known,
)
from cuda_lsp.frontend.host.tables import Tables
from cuda_lsp.frontend.host.text import FURTHEST, HostText, split_arguments
from cuda_lsp.model import Dim3, Extents

_DEFINE = re.compile(r"^[ \t]?#[ \t]?define[ \t](\w+)[ \t]([^\n]{1,120})$", re.M)
_DIM3_CALL = re.compile(r"\A(?:dim3\s?[({]|make_u?int3\s?\(|\{)(.*)[)}]\Z", re.S)
_RETURNS = re.compile(r"\A\{\s?return\s?([^;{}]{1,200});\s?\}\Z")
_UNSIGNED = re.compile(r"\b(?:unsigned|u(?:int|long|short|char)(?:\d+_t)?|size_t)\b")
_CASE = re.compile(r"\bcase\b|\bdefault\s?:")
_ARITHMETIC = re.compile(r"[\w)]\s?[-+*/]\s?[\w(]")
_DEPTH = 8  # definitions followed
_MOST_WRITES = 256
"""Writes to one name in its scope; more are not looked through."""
_MOST_WORK = 4_000_000  # characters of definitions read for one file: with eight levels 30**8 names


class HostConstants:
    """Constants of one file, what the preprocessor leaves out being blank.

    ``headers``: the constants of files that it includes, for names that it does not define itself.
    ``doubtful``: stretches of the text that the preprocessor may leave out.
    """

    def __init__(
        self, text: HostText, headers: Sequence[HostConstants] = (), doubtful: Sequence[tuple[int, int]] = ()
    ) -> None:
        self._text = text
        self._plain = text.plain
        self._headers = headers
        self._given = NOTHING_GIVEN
        self._missed: set[Key] = set()
        self._work = 0
        self._braces = text.braces
        self.functions = HostFunctions(text)
        self.tables = Tables(text)
        self._macros: dict[str, set[str]] = {}
        for match in _DEFINE.finditer(self._plain):
            self._macros.setdefault(match[1], set()).add(match[2].strip())
        self._called = called_macros(self._plain)
        self._branches = [(text.reduced(begin), text.reduced(end)) for begin, end in doubtful]
        self._definitions = definitions_of(text, self._branches)
        self._writes = writes_of(self._plain)

    # ---------------------------------------------------------------------------------- what is asked

    def integer(self, text: str, before: int, given: Given = NOTHING_GIVEN) -> int | None:
        """The value of an expression at a position; None: not constant."""
        with self.knowing(given):
            return self._integer(text, before, _DEPTH)

    def extents(self, text: str, before: int, given: Given = NOTHING_GIVEN) -> Dim3 | None:
        """A launch extent, all axes known: an integer, ``dim3(…)``, ``{…}`` or a dim3 variable."""
        return all_known(self.known_extents(text, before, given))

    def known_extents(self, text: str, before: int, given: Given = NOTHING_GIVEN) -> Extents:
        """``extents`` by axis, None where an axis is not constant."""
        with self.knowing(given):
            return self._extents(text, before, _DEPTH)

    def missing(self, text: str, before: int, given: Given = NOTHING_GIVEN) -> frozenset[Key]:
        """What an extent, or an integer, hangs on that is not known."""
        with self.knowing(given):
            self._missed = set()
            self._extents(text, before, _DEPTH)
            return frozenset(self._missed)

    def extents_given(self, text: str, before: int, given: Mapping[str, int]) -> Dim3 | None:
        """``extents`` where some names (template parameters of the host function) have these values."""
        keys = {name: self.key(name, before) for name in given}
        known = Given({key: given[name] for name, key in keys.items() if key is not None})
        return self.extents(text, before, known)

    def key(self, name: str, before: int, axis: str | None = None) -> Key | None:
        """What tells the value of a name (or of a component) at a place; None: nothing does."""
        value = self.reached(name, before, axis)
        return (name, value.position) if value is not None else None

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
        return writes_member(self._plain, begin, end, variable, member)

    def words_of(self, definition: Definition) -> str:
        """What stands before the name where it is declared, and the name."""
        position, ends = definition.position, "(,<" if definition.text is None else ";{}"
        first = max(self._plain.rfind(c, max(0, position - FURTHEST), position) for c in ends)
        return self._plain[first + 1 : self._plain.find(" ", position)]

    @contextmanager
    def knowing(self, given: Given) -> Generator[None]:
        """What is asked inside without anything else given is asked on this way."""
        outer, work, told = self._given, self._work, given != NOTHING_GIVEN
        if told:
            self._given, self._work = given, 0
        try:
            yield
        finally:
            if told:
                self._given, self._work = outer, work

    # ------------------------------------------------------------------------------ what reaches a use

    def _visible(self, name: str, before: int) -> Definition | None:
        known = self._definitions.get(name)
        return known.visible(before) if known else None

    def reached(self, name: str, before: int, axis: str | None = None) -> Reached | None:
        """The definition or assignment whose value the name (or its component) has; None: nobody knows."""
        definition = self._visible(name, before)
        if definition is None or definition.doubt:
            return None
        value = Reached(definition.text, definition.position, definition)
        others = self._others(name, definition)
        if others is None:
            return None
        runs = self._given.taken.runs
        concerning = [w for w in others if (axis is None or w.axis in (None, axis)) and runs(w.position)]
        if not concerning:
            return value
        function = self.functions.around(before)
        if function is None or not function.begin <= definition.position <= function.end:
            return None  # other functions write it
        passed = [w for w in concerning if w.position < before]
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

    def _counter(self, name: str, before: int) -> Reached | None:
        """A loop's counter that only the loop's header changes: unknown unless given."""
        definition = self._visible(name, before)
        if definition is None or definition.doubt or definition.text is not None:
            return None
        header, others = self._text.for_header(definition.position), self._others(name, definition)
        if header is None or others is None or any(write.position > header[1] for write in others):
            return None
        return Reached(None, definition.position, definition)

    @cached_property
    def _written(self) -> Mapping[str, Sequence[Write]]:
        """The writes to each name in order, those by functions that are handed it among them."""
        lent = self.functions.lent((self.functions, *(header.functions for header in self._headers)))
        if not lent:
            return self._writes
        added = {name: [Write(place) for place in places] for name, places in lent.items()}
        every = {name: [*self._writes.get(name, ()), *writes] for name, writes in added.items()}
        return {**self._writes, **{name: sorted(found, key=_position) for name, found in every.items()}}

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

    # ------------------------------------------------------------------------------------ integers

    def _integer(self, text: str, before: int, depth: int) -> int | None:
        try:
            return self._evaluated(text, before, depth)
        except (NotConstant, ValueError, RecursionError):
            return None

    def _evaluated(self, text: str, before: int, depth: int) -> int:
        self._work += len(text)
        if self._work > _MOST_WORK or not depth:
            raise NotConstant(text)
        lookup: Lookup = lambda name: self._lookup(name, before, depth - 1)  # noqa: E731
        return evaluate(text, lookup, lambda name, values: self._returned(name, values, before, depth - 1))

    def _lookup(self, name: str, before: int, depth: int) -> int:
        if "." in name:
            variable, _, axis = (part.strip() for part in name.partition("."))
            if axis not in ("x", "y", "z"):
                return self._member(variable, axis, before)
            return known_value(self._axis(variable, axis, before, depth), name)
        macros = self._macros.get(name)
        if macros:
            if len(macros) > 1:  # which one holds is the preprocessor's business
                raise NotConstant(name)
            return self._evaluated(next(iter(macros)), before, depth)
        if "::" in name:
            return self._in_scope(name, depth)
        if self._visible(name, before) is None and name not in self._writes:
            return self._from_headers(name, depth)
        value = self.reached(name, before) or self._counter(name, before)
        if value is None:
            raise NotConstant(name)
        given = self._given.values.get((name, value.position))
        if isinstance(given, int):
            return given
        found = None if value.text is None else self._integer(value.text, value.position, depth)
        if found is None:
            self._missed.add((name, value.position))
        return known_value(found, name)

    def _member(self, variable: str, member: str, before: int) -> int:
        """``p.n`` of an object that nothing writes to: unknown unless given."""
        value = self.reached(variable, before)
        if value is None or self.writes_member(variable, member, before):
            raise NotConstant(variable)
        key = (f"{variable}.{member}", value.position)
        given = self._given.values.get(key)
        if not isinstance(given, int):
            self._missed.add(key)
            raise NotConstant(variable)
        return given

    def _from_headers(self, name: str, depth: int) -> int:
        """A name that only included files define, with one value for all that do."""
        values: set[int] = set()
        for header in self._headers:
            header._work = self._work
            try:
                values |= header._exported(name, depth)
            finally:
                self._work = header._work
        if len(values) != 1:
            raise NotConstant(name)
        return values.pop()

    def _exported(self, name: str, depth: int) -> set[int]:
        """The values of a name outside of functions and classes. Raises NotConstant if one is not known."""
        if name in self._macros:
            return {self._lookup(name, len(self._plain), depth)}
        known = self._definitions.get(name)
        if known is None:
            return set()
        if known.visible(len(self._plain)) is not None:
            return {self._lookup(name, len(self._plain), depth)}
        return {
            self._lookup(name, definition.end, depth)
            for definition in known.all
            if definition.text is not None and in_namespaces_only(self._text, definition.position)
        }

    def _in_scope(self, qualified: str, depth: int) -> int:
        """``Scope::name``: of the only definition there, or else of the only one of this name."""
        scope, _, name = qualified.rpartition("::")
        every = [
            (file, definition)
            for file in (self, *self._headers)
            if name in file._definitions
            for definition in file._definitions[name].all
            if definition.text is not None
        ]
        scopes = [f"::{scope_of(file._text, definition.position)}" for file, definition in every]
        there = [each for each, own in zip(every, scopes, strict=True) if own == f"::{scope}"]
        ending = [each for each, own in zip(every, scopes, strict=True) if own.endswith(f"::{scope}")]
        found = there or ending or every
        if len(found) != 1:
            raise NotConstant(name)
        file, definition = found[0]
        if file._others(name, definition) != []:
            raise NotConstant(name)
        return file._evaluated(definition.text or "", definition.position, depth)

    def _of_table(self, name: str, values: Sequence[int | None], before: int, depth: int) -> int:
        """``sizes[1]``, ``sizeof sizes`` or ``sizeof sizes[0]``."""
        name, bracket, _ = name.removeprefix("sizeof ").partition("[")
        table, index = self.tables.visible(name, before), values[0] if values else 0
        if table is None or index is None or not 0 <= index < len(table.elements):
            raise NotConstant(name)
        if values:
            return self._evaluated(table.elements[index], table.position, depth)
        return SIZES[table.type] * (1 if bracket else len(table.elements))

    def _returned(self, name: str, values: Sequence[int | None], before: int, depth: int) -> int:
        """What a call gives of a function that has one body, and that is one ``return``, or of a macro."""
        if name.endswith("[]") or name.startswith("sizeof"):
            return self._of_table(name, values, before, depth)
        name = name.rpartition("::")[2]
        macros = [(f, macro) for f in (self, *self._headers) for macro in f._called.get(name, ())]
        if len({macro for _, macro in macros}) == 1:
            file, macro = macros[0]
            if not depth:
                raise NotConstant(name)
            return expanded(
                macro,
                values,
                lambda name: file._lookup(name, len(file._plain), depth - 1),
                lambda name, values: file._returned(name, values, 0, depth - 1),
            )
        found = [(f, function) for f in (self, *self._headers) for function in f.functions.named(name)]
        if not found and not macros:
            return by_its_name(name, values)
        if len(found) != 1 or len(found[0][1].parameters) != len(values):
            raise NotConstant(name)
        file, function = found[0]
        body = _RETURNS.match(file._plain[function.body : function.end + 1])
        if body is None:
            return by_its_name(name, values)
        named = zip((name for name, _ in function.parameters), values, strict=True)
        keys = {file.declared(parameter, function.body + 1): value for parameter, value in named}
        given = Given({key: value for key, value in keys.items() if key is not None and value is not None})
        outer, file._given = file._given, given
        try:
            return file._evaluated(body[1], function.body + 1, depth)
        finally:
            file._given = outer

    # ------------------------------------------------------------------------------------- extents

    def _extents(self, text: str, before: int, depth: int) -> Extents:
        text = text.strip()
        made = _DIM3_CALL.match(text)
        if made:
            return self._components(made[1], before, depth)
        if text.isidentifier() and text not in self._macros:
            return self._named(text, before, depth)
        value = _extent(self._integer(text, before, depth))
        flat = value is not None or _ARITHMETIC.search(text) is not None  # dim3 has no arithmetic
        return (value, 1, 1) if flat else UNKNOWN

    def _named(self, name: str, before: int, depth: int) -> Extents:
        definition = self._visible(name, before)
        if depth and definition is not None and not definition.scalar:
            x, y, z = (self._axis(name, axis, before, depth - 1) for axis in "xyz")
            return (x, y, z)
        value = _extent(self._integer(name, before, depth))
        if value is not None or definition is not None:
            return (value, 1, 1)
        found = {
            h._named(name, len(h._plain), depth - 1)
            for h in self._headers
            if name in h._definitions and depth
        }
        return found.pop() if len(found) == 1 else UNKNOWN

    def _axis(self, name: str, axis: str, before: int, depth: int) -> int | None:
        """``block.x`` of a dim3 variable."""
        value = self.reached(name, before, axis) if depth else None
        if value is None:
            return None
        index = "xyz".index(axis)
        given = self._given.values.get((name, value.position))
        if given is not None:
            return (given if not isinstance(given, int) else (given, 1, 1))[index]
        if value.text is None:
            self._missed.add((name, value.position))
            return None
        if self.is_component(name, value.position):
            return _extent(self._integer(value.text, value.position, depth - 1))
        found = self._extents(value.text, value.position, depth - 1)[index]
        if found is None:
            self._missed.add((name, value.position))
        return found

    def _is_dim(self, text: str, before: int) -> bool:
        """Whether one argument of ``dim3(…)`` is another dim3."""
        definition = self._visible(text, before)
        return text.startswith("dim3") or (definition is not None and not definition.scalar)

    def is_component(self, name: str, position: int) -> bool:
        """Whether the write that stands here is one of a component."""
        return any(w.position == position and w.axis is not None for w in self._writes.get(name, ()))

    def _components(self, text: str, before: int, depth: int) -> Extents:
        parts = split_arguments(text)
        if len(parts) > 3:
            return UNKNOWN
        if len(parts) == 1 and self._is_dim(parts[0].strip(), before):
            return self._extents(parts[0], before, depth)
        values = [_extent(self._integer(part, before, depth)) for part in parts]
        x, y, z = [*values, 1, 1, 1][:3]
        return (x, y, z)


def _position(write: Write) -> int:
    return write.position


def _extent(value: int | None) -> int | None:
    """None: unknown, or no extent."""
    return value if value is not None and value > 0 else None
