"""Names of host code that hold one known value: what launch configurations and arguments are made of.

Read from text, so any state of the file will do. A name counts as constant only when the definition that
is visible at the use (braces delimit scopes; parameters and template parameters shadow) is an initialiser
of constants, and nothing in its scope assigns the name again or takes its address. A wrong constant could
hide a bug, so whatever is in doubt is "not constant".
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from attrs import evolve, frozen

from cuda_lsp.frontend.host.constants import Lookup, NotConstant, evaluate
from cuda_lsp.frontend.host.text import HostText, by_name, end_of, start_of
from cuda_lsp.model import Dim3, Extents

# White space is one character at most in host text (see there), and no stretch of a pattern is unbounded in
# which the pattern may begin anew: each takes time in proportion to the text.
_INTEGER_TYPES = (
    r"unsigned|int|size_t|long|short|uint|auto|bool|char|ptrdiff_t|uchar|ushort|ulong|u?int(?:8|16|32|64)_t"
)
_DEFINE = re.compile(r"^[ \t]?#[ \t]?define[ \t](\w+)[ \t]([^\n]{1,120})$", re.M)
_INTEGER = re.compile(rf"\b(?:{_INTEGER_TYPES})\s(?:const\s|constexpr\s)?(?=\w+\s?[=({{])")
_DECLARATOR = re.compile(r"\s?\b(\w+)\s?([=({])")
_BRACKET_OR_END = re.compile(r"[][(){},;]")
_LONGEST_INITIALISER = 200
_ENUMERATOR = re.compile(r"(?<=[{,])\s?(\w+)\s?=\s?([^,{};]{1,80}?)\s?(?=[,}])")
_PARAMETER = re.compile(
    r"[(,]\s?(?:(?:const|unsigned|long)\s)*[A-Za-z_][\w:]*(?:<[^<>;(){}]*>)?(?:\s?[*&]+\s?|\s)(?:const\s)?"
    r"(\w+)\s?(?=[,)\[])"
)
_TEMPLATE_PARAMETER = re.compile(
    r"[<,]\s?(?:unsigned\s)?(?:int|unsigned|size_t|bool|long|auto)\s(\w+)\s?(?=[,>=])"
)
_DIM3 = re.compile(r"\bdim3\s((?:[^;{}]|\{[^;{}]{0,400}\}){1,400});")
_DIM3_ITEM = re.compile(
    r"\A(\w+)\s?(?:\((.*)\)|\{(.*)\}|=\s?(?:dim3\s?[({](.*)[)}]|\{(.*)\}|(.+)))\s?\Z", re.S
)
_DIM3_CALL = re.compile(r"\A(?:dim3\s?)?[({](.*)[)}]\Z", re.S)
_COMPONENT = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s?\.\s?([xyz])\s?=(?!=)\s?([^;]{1,200});")
_ASSIGNED = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s?(?:\.\s?[xyz]\s?)?=(?!=)")
_CHANGED = re.compile(
    r"\b(\w+)\s?(?:\.\s?[xyz]\s?)?(?:[-+*/%&|^]|<<|>>)=|(?:\+\+|--)\s?(\w+)|\b(\w+)\s?(?:\+\+|--)"
    r"|[(,=]\s?&\s?(\w+)|\bcin\s?>>\s?(\w+)"
)
_ARITHMETIC = re.compile(r"[\w)]\s?[-+*/]\s?[\w(]")
_QUALIFIERS = frozenset({"const", "constexpr", "static", "unsigned", "long"})
_LAST_WORD = re.compile(r"(?<!\w)\w{1,9}\Z")  # none of the qualifiers is longer
_DEPTH = 8  # definitions followed
_MOST_WORK = 4_000_000
"""Characters of definitions read for one file: a name may come to others, with eight levels 30**8 of them."""
_MOST_HIDDEN = 256
"""Definitions of one name looked at for the one that is visible: siblings whose scopes have ended."""


@frozen
class _Definition:
    """``text`` None: a parameter, or something else without a known value. ``end``: where its scope ends."""

    position: int
    end: int
    text: str | None
    writes: int = 0  # how many ``=`` the definition itself contains


class _Definitions:
    """All definitions of one name, by position."""

    def __init__(self, unsorted: Sequence[_Definition]) -> None:
        self._all = sorted(unsorted, key=lambda d: d.position)
        self._positions = [d.position for d in self._all]
        self._writes = [0, *accumulate(d.writes for d in self._all)]

    def visible(self, before: int) -> _Definition | None:
        """The innermost definition whose scope holds the position; without a text where it is not sought."""
        index = bisect_left(self._positions, before)
        first = max(0, index - _MOST_HIDDEN)
        for found in reversed(self._all[first:index]):
            if before <= found.end:
                return found
        return evolve(self._all[first], text=None) if first else None

    def writes(self, begin: int, end: int) -> int:
        """How often the definitions behind ``begin`` and up to ``end`` write the name."""
        first, last = bisect_right(self._positions, begin), bisect_right(self._positions, end)
        return self._writes[last] - self._writes[first]


class HostConstants:
    """Constants of one file, what the preprocessor leaves out being blank.

    ``headers``: the constants of files that it includes, for names that it does not define itself.
    ``doubtful``: stretches of the text that the preprocessor may leave out.
    """

    def __init__(
        self,
        text: HostText,
        headers: Sequence[HostConstants] = (),
        doubtful: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._plain = text.plain
        self._headers = headers
        self._given: Mapping[str, int] = {}
        self._work = 0
        self._braces = text.braces
        self._macros: dict[str, set[str]] = {}
        definitions: dict[str, list[_Definition]] = {}
        for match in _DEFINE.finditer(self._plain):
            self._macros.setdefault(match[1], set()).add(match[2].strip())
        self._read_integers(definitions)
        self._read_parameters(definitions)
        branches = [(text.reduced(begin), text.reduced(end)) for begin, end in doubtful]
        self._definitions = _by_name(definitions, branches)
        self._dims = _by_name(self._read_dims(), branches)
        self._assigned = places_of(_ASSIGNED, self._plain)
        self._changed = places_of(_CHANGED, self._plain)

    def _read_integers(self, found: dict[str, list[_Definition]]) -> None:
        for match in _INTEGER.finditer(self._plain):
            position = match.start()
            outer = _unqualified(self._plain[max(0, position - 60) : position])[-1:]
            inner = outer in ("(", ",")  # a parameter with a default, or a loop's counter
            end = self._braces.parameter_end(position) if inner else self._braces.end(position)
            for name, at, text, writes in _declarators(self._plain, match.end()):
                where = position if at == match.end() else at
                found.setdefault(name, []).append(_Definition(where, end, None if inner else text, writes))
        for match in _ENUMERATOR.finditer(self._plain):
            definition = _Definition(match.start(), len(self._plain), match[2], writes=1)
            found.setdefault(match[1], []).append(definition)

    def _read_parameters(self, found: dict[str, list[_Definition]]) -> None:
        for pattern in (_PARAMETER, _TEMPLATE_PARAMETER):
            for match in pattern.finditer(self._plain):
                position = match.start(1)
                definition = _Definition(position, self._braces.parameter_end(position), None)
                found.setdefault(match[1], []).append(definition)

    def _read_dims(self) -> dict[str, list[_Definition]]:
        found: dict[str, list[_Definition]] = {}
        components: dict[str, list[re.Match[str]]] | None = None
        for match in _DIM3.finditer(self._plain):
            position, end = match.start(), self._braces.end(match.start())
            for item in map(str.strip, split_arguments(match[1])):
                parts = _DIM3_ITEM.match(item)
                if parts:
                    text = next((part for part in parts.groups()[1:] if part is not None), "")
                    definition = _Definition(position, end, text, int("=" in item))
                    found.setdefault(parts[1], []).append(definition)
                elif item.isidentifier():
                    if components is None:
                        components = by_name(_COMPONENT, self._plain)
                    made = self._made_of_components(components.get(item, ()), position, end)
                    found.setdefault(item, []).extend([made] if made else [])
        return found

    def _made_of_components(
        self, assigned: Sequence[re.Match[str]], position: int, end: int
    ) -> _Definition | None:
        """``dim3 block; block.x = 32; block.y = 4;``: each component once, with no condition in between."""
        first = bisect_left(assigned, position, key=start_of)
        found = assigned[first : bisect_right(assigned, end, lo=first, key=end_of)][:4]
        values = {match[2]: match[3] for match in found}
        plainly = all(
            self._braces.end(match.start()) == end
            and self._plain[max(0, match.start() - 2) : match.start()].rstrip()[-1:] in ";{}"
            for match in found
        )
        if not found or not plainly or len(values) != len(found):
            return None
        text = ", ".join(values.get(axis, "1") for axis in "xyz")
        return _Definition(found[-1].end() - 1, end, text, len(found))

    def _varies(self, name: str, definition: _Definition, known: _Definitions) -> bool:
        """Whether something in the definition's scope writes the name, other than what defines it there."""
        begin, end = self._braces.begin(definition.position), definition.end
        if _between(self._changed.get(name, ()), begin, end):
            return True
        return _between(self._assigned.get(name, ()), begin, end) > known.writes(begin, end)

    def _dim(self, name: str, before: int) -> _Definition | None:
        """The visible ``dim3`` of this name, when it holds one value."""
        known = self._dims.get(name)
        definition = known.visible(before) if known else None
        if known is None or definition is None or definition.text is None:
            return None
        return None if self._varies(name, definition, known) else definition

    # ------------------------------------------------------------------------------------ lookups

    def integer(self, text: str, before: int) -> int | None:
        """The value of an expression at a position; None: not constant."""
        try:
            return self._evaluated(text, lambda name: self._lookup(name, before, _DEPTH))
        except (NotConstant, ValueError, RecursionError):
            return None

    def _evaluated(self, text: str, lookup: Lookup) -> int:
        self._work += len(text)
        if self._work > _MOST_WORK:
            raise NotConstant(text)
        return evaluate(text, lookup)

    def _lookup(self, name: str, before: int, depth: int) -> int:
        if not depth:
            raise NotConstant(name)
        if name in self._given:
            return self._given[name]
        if "." in name:
            return self._component(name, before, depth)
        macros = self._macros.get(name)
        if macros:
            if len(macros) > 1:  # which one holds is the preprocessor's business
                raise NotConstant(name)
            return self._evaluated(next(iter(macros)), lambda inner: self._lookup(inner, before, depth - 1))
        known = self._definitions.get(name)
        definition = known.visible(before) if known else None
        if definition is None and name not in self._changed and name not in self._assigned:
            return self._from_headers(name, depth)
        if known is None or definition is None or definition.text is None:
            raise NotConstant(name)
        if self._varies(name, definition, known):
            raise NotConstant(name)
        position = definition.position
        return self._evaluated(definition.text, lambda inner: self._lookup(inner, position, depth - 1))

    def _from_headers(self, name: str, depth: int) -> int:
        """A name that only included files define, with one value for all that do."""
        values: set[int] = set()
        for header in self._headers:
            if header._mentions(name):
                header._work = self._work
                try:
                    values.add(header._lookup(name, len(header._plain), depth - 1))
                finally:
                    self._work = header._work
        if len(values) != 1:
            raise NotConstant(name)
        return values.pop()

    def _mentions(self, name: str) -> bool:
        known = self._definitions.get(name)
        return name in self._macros or (known is not None and known.visible(len(self._plain)) is not None)

    def extents(self, text: str, before: int) -> Dim3 | None:
        """A launch extent: an integer, ``dim3(…)``, ``{…}`` or a dim3 variable."""
        stripped = text.strip()
        call = _DIM3_CALL.match(stripped)
        if call and stripped.startswith(("dim3", "{")):
            return self._components(call[1], before)
        definition = self._dim(stripped, before)
        if definition is not None:
            return self._components(definition.text or "", definition.position)
        value = self.integer(stripped, before)
        return (value, 1, 1) if value and value > 0 else None

    def extents_given(self, text: str, before: int, given: Mapping[str, int]) -> Dim3 | None:
        """``extents`` where some names (template parameters of the host function) have these values."""
        self._given, work, self._work = given, self._work, 0
        try:
            return self.extents(text, before)
        finally:
            self._given, self._work = {}, work

    def known_extents(self, text: str, before: int) -> Extents:
        """``extents`` by axis, None where an axis is not constant."""
        stripped = text.strip()
        call = _DIM3_CALL.match(stripped)
        if call and stripped.startswith(("dim3", "{")):
            return self._axes(call[1], before)
        if stripped in self._dims:
            definition = self._dim(stripped, before)
            if definition is None:
                return (None, None, None)
            return self._axes(definition.text or "", definition.position)
        known = self._definitions.get(stripped)
        integer = known.visible(before) if known else None
        if _ARITHMETIC.search(stripped) or (integer is not None and integer.text is not None):
            return (_extent(self.integer(stripped, before)), 1, 1)  # dim3 has no arithmetic
        return (None, None, None)

    def _axes(self, text: str, before: int) -> Extents:
        parts = [self.integer(part, before) for part in split_arguments(text)] if text.strip() else []
        if len(parts) > 3:
            return (None, None, None)
        x, y, z = [*map(_extent, parts), 1, 1, 1][:3]
        return (x, y, z)

    def _component(self, name: str, before: int, depth: int) -> int:
        """``block.x`` of a dim3 variable."""
        variable, axis = (part.strip() for part in name.split("."))
        definition = self._dim(variable, before)
        if definition is None:
            raise NotConstant(name)
        parts = split_arguments(definition.text or "") if (definition.text or "").strip() else []
        index = "xyz".index(axis)
        if index >= len(parts):
            return 1
        return self._evaluated(
            parts[index], lambda inner: self._lookup(inner, definition.position, depth - 1)
        )

    def _components(self, text: str, before: int) -> Dim3 | None:
        parts = [self.integer(part, before) for part in split_arguments(text)] if text.strip() else []
        if len(parts) > 3 or any(part is None or part < 1 for part in parts):
            return None
        x, y, z = [*(part or 1 for part in parts), 1, 1, 1][:3]
        return (x, y, z)


def _extent(value: int | None) -> int | None:
    """None: unknown, or no extent."""
    return value if value is not None and value > 0 else None


def _declarators(plain: str, at: int) -> Iterator[tuple[str, int, str, int]]:
    """``a = 4, b(8), c{2};``: names, where they stand, their initialisers, and how many ``=`` write them."""
    while (match := _DECLARATOR.match(plain, at)) is not None:
        begin = match.end()
        end = _initialiser_end(plain, begin, closed=match[2] != "=")
        behind = end + 1 if match[2] != "=" else end
        behind += plain[behind : behind + 1].isspace()
        if end < 0 or plain[behind : behind + 1] not in (",", ";", ")") or not plain[begin:end].strip():
            return
        yield match[1], match.start(1), plain[begin:end].strip(), int(match[2] == "=")
        if plain[behind] != ",":
            return
        at = behind + 1


def _initialiser_end(plain: str, begin: int, *, closed: bool) -> int:
    """Where an initialiser ends: at a comma or semicolon, or (``closed``) at its bracket; -1: nowhere."""
    depth = 0
    for match in _BRACKET_OR_END.finditer(plain, begin, begin + _LONGEST_INITIALISER):
        bracket = match[0]
        if bracket in "([{":
            depth += 1
        elif bracket in ")]}":
            if not depth:
                return match.start()
            depth -= 1
        elif bracket == ";" or (not depth and not closed):
            return -1 if closed else match.start()
    return -1


def _by_name(
    found: Mapping[str, Sequence[_Definition]], branches: Sequence[tuple[int, int]]
) -> dict[str, _Definitions]:
    return {name: _Definitions(_doubted(each, branches)) for name, each in found.items()}


def _doubted(found: Sequence[_Definition], branches: Sequence[tuple[int, int]]) -> list[_Definition]:
    """Behind a branch that may be left out, a name that is defined elsewhere too has no known value."""
    doubts = [
        _Definition(end, definition.end, None)
        for definition in found
        for begin, end in branches
        if len(found) > 1 and begin <= definition.position < end < definition.end
    ]
    return [*found, *doubts]


def places_of(pattern: re.Pattern[str], plain: str) -> dict[str, list[int]]:
    """Where a file changes each name."""
    found: dict[str, list[int]] = {}
    for match in pattern.finditer(plain):
        for name in filter(None, match.groups()):
            found.setdefault(name, []).append(match.start())
    return found


def _between(places: Sequence[int], begin: int, end: int) -> int:
    """How many places are behind ``begin`` and not behind ``end``."""
    return bisect_right(places, end) - bisect_right(places, begin)


def _unqualified(before: str) -> str:
    """The text before a declaration without ``static const`` and their kin."""
    before = before.rstrip()
    while (word := _LAST_WORD.search(before)) and word[0] in _QUALIFIERS:
        before = before[: word.start()].rstrip()
    return before


def split_arguments(text: str) -> list[str]:
    """Top-level comma-separated parts."""
    parts: list[str] = []
    depth, first = 0, 0
    for i, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[first:i])
            first = i + 1
    parts.append(text[first:])
    return parts if text.strip() else []
