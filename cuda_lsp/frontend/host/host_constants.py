"""Names of host code that hold one known value: what launch configurations and arguments are made of.

Read from text, so any state of the file will do. A name counts as constant only when the definition that
is visible at the use (braces delimit scopes; parameters and template parameters shadow) is an initialiser
of constants, and nothing in its scope assigns the name again or takes its address. A wrong constant could
hide a bug, so whatever is in doubt is "not constant".
"""

from __future__ import annotations

import enum
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from cuda_lsp.frontend.host.constants import NotConstant, evaluate
from cuda_lsp.model import Dim3, Extents

_INTEGER_TYPES = r"unsigned|int|size_t|long|short|uint|auto|uint32_t|int32_t|int64_t|uint64_t"
_PREPROCESSOR = re.compile(r"^[ \t]*#[ \t]*(define|ifdef|ifndef|if|elif|else|endif)\b([^\n]*)", re.M)
_INTEGER = re.compile(rf"\b(?:{_INTEGER_TYPES})\s+(\w+)\s*([=({{])\s*([^;,{{}}]{{1,200}}?)\s*[)}}]?\s*[;,]")
_ENUMERATOR = re.compile(r"(?<=[{,])\s*(\w+)\s*=\s*([^,{};]{1,80}?)\s*(?=[,}])")
_PARAMETER = re.compile(
    r"[(,]\s*(?:const\s+|unsigned\s+|long\s+)*[A-Za-z_][\w:]*(?:<[^<>;(){}]*>)?(?:\s*[*&]+\s*|\s+)(?:const\s+)?"
    r"(\w+)\s*(?=[,)\[])"
)
_TEMPLATE_PARAMETER = re.compile(
    r"[<,]\s*(?:unsigned\s+)?(?:int|unsigned|size_t|bool|long|auto)\s+(\w+)\s*(?=[,>=])"
)
_DIM3 = re.compile(r"\bdim3\s+((?:[^;{}]|\{[^;{}]*\}){1,400});")
_DIM3_ITEM = re.compile(r"(\w+)\s*(?:\((.*)\)|\{(.*)\}|=\s*(?:dim3\s*[({](.*)[)}]|\{(.*)\}|(.+)))\s*$", re.S)
_ASSIGNED = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s*(?:\.\s*[xyz]\s*)?=(?!=)")
_CHANGED = re.compile(
    r"\b(\w+)\s*(?:\.\s*[xyz]\s*)?(?:[-+*/%&|^]|<<|>>)=|(?:\+\+|--)\s*(\w+)|\b(\w+)\s*(?:\+\+|--)"
    r"|[(,=]\s*&\s*(\w+)|\bcin\s*>>\s*(\w+)"
)
_QUALIFIERS = re.compile(r"(?:\b(?:const|constexpr|static|unsigned|long)\s*)+$")
_DEPTH = 8  # definitions followed


@frozen
class _Definition:
    """``text`` None: a parameter, or something else without a known value. ``end``: where its scope ends."""

    position: int
    end: int
    text: str | None
    writes: int = 0  # how many ``=`` the definition itself contains


class HostConstants:
    """Constants of one file; ``plain`` is its text with comments and strings blanked.

    ``headers``: the constants of files that it includes, for names that it does not define itself.
    """

    def __init__(self, plain: str, headers: Sequence[HostConstants] = ()) -> None:
        self._plain = plain
        self._headers = headers
        self._given: Mapping[str, int] = {}
        self._scopes = _Scopes(plain)
        self._macros: dict[str, set[str]] = {}
        self._definitions: dict[str, list[_Definition]] = {}
        self._dims: dict[str, list[_Definition]] = {}
        for name, value in _live_defines(plain):
            self._macros.setdefault(name, set()).add(value)
        self._read_integers()
        self._read_parameters()
        self._read_dims()
        self._assigned, self._changed = _places_of(_ASSIGNED, plain), _places_of(_CHANGED, plain)

    def _read_integers(self) -> None:
        for match in _INTEGER.finditer(self._plain):
            before = self._plain[max(0, match.start() - 60) : match.start()]
            outer = _QUALIFIERS.sub("", before).rstrip()[-1:]
            if outer in ("(", ","):  # a parameter with a default, or a loop's counter
                self._add(match[1], match.start(), None, parameter=True, writes=int(match[2] == "="))
            else:
                self._add(match[1], match.start(), match[3], writes=int(match[2] == "="))
        for match in _ENUMERATOR.finditer(self._plain):
            definition = _Definition(match.start(), len(self._plain), match[2], writes=1)
            self._definitions.setdefault(match[1], []).append(definition)

    def _read_parameters(self) -> None:
        for pattern in (_PARAMETER, _TEMPLATE_PARAMETER):
            for match in pattern.finditer(self._plain):
                self._add(match[1], match.start(1), None, parameter=True)

    def _read_dims(self) -> None:
        for match in _DIM3.finditer(self._plain):
            for item in split_arguments(match[1]):
                parts = _DIM3_ITEM.match(item.strip())
                if not parts:
                    self._read_components(item.strip(), match.start())
                else:
                    arguments = next((part for part in parts.groups()[1:] if part is not None), "")
                    end = self._scopes.end(match.start())
                    writes = int("=" in item)
                    self._dims.setdefault(parts[1], []).append(
                        _Definition(match.start(), end, arguments, writes)
                    )

    def _read_components(self, name: str, position: int) -> None:
        """``dim3 block; block.x = 32; block.y = 4;``: each component once, with no condition in between."""
        if not name.isidentifier():
            return
        end = self._scopes.end(position)
        pattern = re.compile(rf"(?<![\w.>]){name}\s*\.\s*([xyz])\s*=(?!=)\s*([^;]{{1,200}});")
        found = list(pattern.finditer(self._plain, position, end))
        values = {match[1]: match[2] for match in found}
        plain = all(
            self._scopes.end(match.start()) == end
            and self._plain[max(0, match.start() - 400) : match.start()].rstrip()[-1:] in ";{}"
            for match in found
        )
        if found and plain and len(values) == len(found):
            text = ", ".join(values.get(axis, "1") for axis in "xyz")
            definition = _Definition(found[-1].end() - 1, end, text, len(found))
            self._dims.setdefault(name, []).append(definition)

    def _add(
        self, name: str, position: int, text: str | None, parameter: bool = False, writes: int = 0
    ) -> None:
        end = self._scopes.parameter_end(position) if parameter else self._scopes.end(position)
        self._definitions.setdefault(name, []).append(_Definition(position, end, text, writes))

    def _varies(self, name: str, definition: _Definition, known: list[_Definition]) -> bool:
        """Whether something in the definition's scope writes the name, other than what defines it there."""
        begin, end = self._scopes.begin(definition.position), definition.end
        if any(begin < position <= end for position in self._changed.get(name, ())):
            return True
        written = sum(begin < position <= end for position in self._assigned.get(name, ()))
        return written > sum(d.writes for d in known if begin < d.position <= end)

    def _dim(self, name: str, before: int) -> _Definition | None:
        """The visible ``dim3`` of this name, when it holds one value."""
        definition = _visible(self._dims.get(name, ()), before)
        return None if definition is None or self._varies(name, definition, self._dims[name]) else definition

    # ------------------------------------------------------------------------------------ lookups

    def integer(self, text: str, before: int) -> int | None:
        """The value of an expression at a position; None: not constant."""
        try:
            return evaluate(text, lambda name: self._lookup(name, before, _DEPTH))
        except (NotConstant, ValueError, RecursionError):
            return None

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
            return evaluate(next(iter(macros)), lambda inner: self._lookup(inner, before, depth - 1))
        definition = _visible(self._definitions.get(name, ()), before)
        if definition is None and name not in self._changed and name not in self._assigned:
            return self._from_headers(name, depth)
        if definition is None or definition.text is None:
            raise NotConstant(name)
        if self._varies(name, definition, self._definitions[name]):
            raise NotConstant(name)
        position = definition.position
        return evaluate(definition.text, lambda inner: self._lookup(inner, position, depth - 1))

    def _from_headers(self, name: str, depth: int) -> int:
        """A name that only included files define, with one value for all that do."""
        values = {
            header._lookup(name, len(header._plain), depth - 1)
            for header in self._headers
            if header._mentions(name)
        }
        if len(values) != 1:
            raise NotConstant(name)
        return values.pop()

    def _mentions(self, name: str) -> bool:
        return name in self._macros or _visible(self._definitions.get(name, ()), len(self._plain)) is not None

    def extents(self, text: str, before: int) -> Dim3 | None:
        """A launch extent: an integer, ``dim3(…)``, ``{…}`` or a dim3 variable."""
        stripped = text.strip()
        call = re.fullmatch(r"(?:dim3\s*)?[({](.*)[)}]", stripped, re.S)
        if call and stripped.startswith(("dim3", "{")):
            return self._components(call[1], before)
        definition = self._dim(stripped, before)
        if definition is not None:
            return self._components(definition.text or "", definition.position)
        value = self.integer(stripped, before)
        return (value, 1, 1) if value and value > 0 else None

    def extents_given(self, text: str, before: int, given: Mapping[str, int]) -> Dim3 | None:
        """``extents`` where some names (template parameters of the host function) have these values."""
        self._given = given
        try:
            return self.extents(text, before)
        finally:
            self._given = {}

    def known_extents(self, text: str, before: int) -> Extents:
        """``extents`` by axis, None where an axis is not constant."""
        stripped = text.strip()
        call = re.fullmatch(r"(?:dim3\s*)?[({](.*)[)}]", stripped, re.S)
        if call and stripped.startswith(("dim3", "{")):
            return self._axes(call[1], before)
        if stripped in self._dims:
            definition = self._dim(stripped, before)
            if definition is None:
                return (None, None, None)
            return self._axes(definition.text or "", definition.position)
        integer = _visible(self._definitions.get(stripped, ()), before)
        arithmetic = re.search(r"[\w)]\s*[-+*/]\s*[\w(]", stripped)
        if arithmetic or (integer is not None and integer.text is not None):
            return (self.integer(stripped, before), 1, 1)  # dim3 has no arithmetic
        return (None, None, None)

    def _axes(self, text: str, before: int) -> Extents:
        parts = [self.integer(part, before) for part in split_arguments(text)] if text.strip() else []
        if len(parts) > 3:
            return (None, None, None)
        x, y, z = [*parts, 1, 1, 1][:3]
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
        return evaluate(parts[index], lambda inner: self._lookup(inner, definition.position, depth - 1))

    def _components(self, text: str, before: int) -> Dim3 | None:
        parts = [self.integer(part, before) for part in split_arguments(text)] if text.strip() else []
        if len(parts) > 3 or any(part is None or part < 1 for part in parts):
            return None
        x, y, z = [*(part or 1 for part in parts), 1, 1, 1][:3]
        return (x, y, z)


class _Branch(enum.Enum):
    """Where the preprocessor stands in one ``#if``."""

    LIVE = "taken"
    WAITING = "no branch taken yet"
    DONE = "an earlier branch was taken"
    UNKNOWN = "the test is not understood: every branch counts"


def _live_defines(plain: str) -> Iterator[tuple[str, str]]:
    """``#define NAME VALUE`` lines, without those in branches that tests for one name exclude.

    A name that nothing in the file defines before the test counts as undefined: build flags are not known.
    """
    defined: set[str] = set()
    perhaps: set[str] = set()
    branches: list[_Branch] = []

    def entered(word: str, rest: str) -> _Branch:
        test = _defined_test(word, rest)
        if test is None or test[0] in perhaps:
            return _Branch.UNKNOWN
        return _Branch.LIVE if (test[0] in defined) is test[1] else _Branch.WAITING

    for match in _PREPROCESSOR.finditer(plain):
        word, rest = match[1], match[2].strip()
        if word in ("ifdef", "ifndef", "if"):
            branches.append(entered(word, rest))
        elif word == "endif":
            del branches[-1:]
        elif word in ("elif", "else") and branches:
            if branches[-1] is _Branch.LIVE:
                branches[-1] = _Branch.DONE
            elif branches[-1] is _Branch.WAITING:
                branches[-1] = _Branch.LIVE if word == "else" else entered("if", rest)
        elif word == "define" and not {_Branch.WAITING, _Branch.DONE} & set(branches):
            name, _, value = rest.partition(" ") if " " in rest else rest.partition("\t")
            (perhaps if _Branch.UNKNOWN in branches else defined).add(name.partition("(")[0])
            if name.isidentifier() and value.strip() and len(value) <= 120:
                yield name, value.strip()


def _defined_test(word: str, rest: str) -> tuple[str, bool] | None:
    """(name, whether it must be defined) of a plain test for one name."""
    pattern = r"(!?)\s*defined\s*\(?\s*(\w+)\s*\)?" if word == "if" else r"()(\w+).*"
    test = re.fullmatch(pattern, rest)
    if test is None:
        return None
    return test[2], (word != "ifndef") is (test[1] != "!")


def _places_of(pattern: re.Pattern[str], plain: str) -> dict[str, list[int]]:
    """Where a file changes each name."""
    found: dict[str, list[int]] = {}
    for match in pattern.finditer(plain):
        for name in filter(None, match.groups()):
            found.setdefault(name, []).append(match.start())
    return found


def _visible(definitions: tuple[_Definition, ...] | list[_Definition], before: int) -> _Definition | None:
    """The innermost definition whose scope holds the position."""
    found = [d for d in definitions if d.position < before <= d.end]
    return max(found, key=lambda d: d.position, default=None)


class _Scopes:
    """Where the brace pair around a position ends."""

    def __init__(self, plain: str) -> None:
        self._plain = plain
        self._braces = [match.start() for match in re.finditer(r"[{}]", plain)]
        closing: dict[int, int] = {}
        innermost: list[int] = []  # after each brace: the open brace around what follows, -1 for none
        stack: list[int] = []
        for position in self._braces:
            if plain[position] == "{":
                stack.append(position)
            elif stack:
                closing[stack.pop()] = position
            innermost.append(stack[-1] if stack else -1)
        self._closing = closing
        self._innermost = innermost

    def begin(self, position: int) -> int:
        """The open brace around a position; -1 for none."""
        index = bisect_right(self._braces, position) - 1
        return self._innermost[index] if index >= 0 else -1

    def end(self, position: int) -> int:
        return self._closing.get(self.begin(position), len(self._plain))

    def parameter_end(self, position: int) -> int:
        """A parameter lives to the end of the body that follows it; one of a prototype lives nowhere."""
        index = bisect_right(self._braces, position)
        if index >= len(self._braces) or self._plain[self._braces[index]] != "{":
            return position
        opening = self._braces[index]
        if ";" in self._plain[position:opening] and not _in_for(self._plain, position):
            return position
        return self._closing.get(opening, len(self._plain))


def _in_for(plain: str, position: int) -> bool:
    return re.search(r"\bfor\s*\([^;{}]*$", plain[max(0, position - 80) : position + 1]) is not None


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
