"""Classes of host code: whose a member function is, their fields, and what constructors make of these.

Read from text. Two classes of one name are taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from attrs import frozen

from cuda_lsp.frontend.host.host_functions import HostFunction, HostFunctions, parameter_of
from cuda_lsp.frontend.host.text import HostText, whole_arguments

_NAME = r"[A-Za-z_]\w*"
_HEAD = re.compile(
    rf"\b(?:class|struct)\s(?:alignas\s?\([^()]*\)\s?)?({_NAME})(?:\s?:[^;{{}}()]{{0,200}})?\s?\{{"
)
_UNNAMED = re.compile(r"\btypedef\sstruct(?:\s\w+)?\s?\{")
_ALIAS = re.compile(rf"\s?\b({_NAME})\s?[;,]")
_OUTSIDE = re.compile(rf"\b({_NAME})(?:\s?<[^<>;{{}}]{{0,100}}>)?\s?::\s?\Z")
_NESTED = re.compile(r"\{[^{}]*\}|\([^()]*\)")
_BRACES = re.compile(r"\{[^{}]*\}")
_TEMPLATE = re.compile(r"\btemplate\s?<(?:[^<>]|<[^<>]*>){0,400}>")
_GETTER = re.compile(rf"[\w>*&]\s?\b({_NAME})\s?\(\s?\)")
_FIELD = re.compile(rf"(?:[\w>*&]\s?|,\s?\*?\s?)(?<!\w)({_NAME})\s?(?=[;=,\[])")
_POINTER = re.compile(rf"\*\s?(?:const\s|__restrict__\s)?({_NAME})\s?(?=[;=,\[])")
_STATIC = re.compile(rf"\bstatic\s[^;=(){{}}]{{0,200}}?\b({_NAME})\s?(?=[;=\[])")
_OPERATOR = re.compile(r"\boperator\s?(\[|\+)\s?\]?\s?\(")
_BODY = re.compile(r"\s?(?:const\s?)?(?:noexcept\s?)?\{")
_INITIALISED = re.compile(rf"\s?,?\s?\b({_NAME})\s?([({{])")
_BEHIND = re.compile(r"\s?(?:noexcept\s?)?(?::(?!:)|(?=\{))")
_MOST_FIELDS = 64


@frozen
class Constructor:
    """``parameters``: (name, default); ``initialisers``: (field, text); ``body`` to ``end``: its braces.

    ``pointers``: positions of the parameters that are pointers.
    """

    parameters: tuple[tuple[str, str], ...]
    initialisers: tuple[tuple[str, str], ...]
    body: int
    end: int
    pointers: frozenset[int] = frozenset()

    def takes(self, count: int) -> bool:
        """Whether it may be called with so many arguments."""
        return sum(not default for _, default in self.parameters) <= count <= len(self.parameters)


@frozen
class HostClass:
    """``begin`` to ``end``: its braces. ``pointers``: those of the fields that are pointers.

    ``getters``: its member functions without parameters. ``statics``: the fields that all objects share.
    """

    name: str
    begin: int
    end: int
    fields: frozenset[str]
    pointers: frozenset[str]
    getters: frozenset[str] = frozenset()
    statics: frozenset[str] = frozenset()


class HostClasses:
    """The classes of one text."""

    def __init__(self, text: HostText, functions: HostFunctions) -> None:
        self._text = text
        self._plain = text.plain
        self._functions = functions
        self._changed: dict[tuple[str, str], bool] = {}

    @cached_property
    def named(self) -> Mapping[str, HostClass]:
        """The classes by name."""
        found: dict[str, HostClass] = {}
        for match in _HEAD.finditer(self._plain):
            self._add(found, match[1], match.end() - 1)
        for match in _UNNAMED.finditer(self._plain):
            alias = _ALIAS.match(self._plain, self._text.braces.closing.get(match.end() - 1, -2) + 1)
            if alias is not None:
                self._add(found, alias[1], match.end() - 1)
        return found

    def _add(self, found: dict[str, HostClass], name: str, begin: int) -> None:
        end = self._text.braces.closing.get(begin, -1)
        if end < 0:
            return
        declared = _without(_BRACES, _TEMPLATE.sub(" ", self._plain[begin + 1 : end]))
        inside = _without(_NESTED, declared)
        fields = frozenset(list(dict.fromkeys(_FIELD.findall(inside)))[:_MOST_FIELDS])
        pointers = frozenset(_POINTER.findall(inside)) & fields
        getters, statics = (frozenset(p.findall(t)) for p, t in ((_GETTER, declared), (_STATIC, inside)))
        found[name] = HostClass(name, begin, end, fields, pointers, getters, statics)

    def of(self, function: HostFunction) -> HostClass | None:
        """The class that a member function is of, where its text is known."""
        return self.around(function.opening, function.name) if function.member else None

    def around(self, opening: int, name: str) -> HostClass | None:
        """The class of a member function whose parameters begin at a place."""
        at = self._plain.rfind(name, 0, opening)
        outside = _OUTSIDE.search(self._plain, max(0, at - 140), at)
        if outside is not None:
            return self.named.get(outside[1])
        brace = self._text.braces.begin(at)
        return next((c for c in self.named.values() if c.begin == brace), None)

    def changes(self, owner: HostClass, field: str) -> bool:
        """Whether a member function, other than by telling it what it is, changes a field from call to call.

        A pointer that is given another value is that from then on; one that is moved gives other places.
        """
        key = owner.name, field
        if key not in self._changed:
            self._changed[key] = any(self._changes(f, field, owner) for f in self._members(owner))
        return self._changed[key]

    def _changes(self, function: HostFunction, field: str, owner: HostClass) -> bool:
        stores = "" if field in owner.pointers else "?"
        stored = rf"(?<![\w.])(?:this\s?->\s?)?{field}\s?(?:(?:[-+*/%&|^]|<<|>>){stores}=(?!=)|\+\+|--)"
        written = rf"{stored}|(?:\+\+|--)\s?{field}\b"
        return re.compile(written).search(self._plain, function.body, function.end) is not None

    def _members(self, owner: HostClass) -> Iterator[HostFunction]:
        every = self._functions.every()
        return (f for f in every if f.member and f.name != owner.name and self.of(f) == owner)

    @cached_property
    def operators(self) -> Sequence[tuple[str, HostClass, Constructor]]:
        """What ``[]`` and ``+`` (by their first character) are of the classes that say so."""
        found: list[tuple[str, HostClass, Constructor]] = []
        for match in _OPERATOR.finditer(self._plain):
            opening, brace = match.end() - 1, self._text.braces.begin(match.start())
            owner = next((c for c in self.named.values() if c.begin == brace), None)
            closing = self._text.closing(opening)
            body = _BODY.match(self._plain, closing + 1) if owner is not None and closing > 0 else None
            end = self._text.braces.closing.get(body.end() - 1, -1) if body is not None else -1
            if owner is not None and body is not None and end > 0:
                parameters = tuple(map(parameter_of, whole_arguments(self._plain[opening + 1 : closing])))
                found.append((match[1], owner, Constructor(parameters, (), body.end() - 1, end)))
        return found

    def constructors(self, name: str) -> Sequence[Constructor]:
        """Those constructors of a class whose bodies stand in the text."""
        return self._constructors.get(name, ())

    @cached_property
    def _constructors(self) -> Mapping[str, Sequence[Constructor]]:
        found: dict[str, list[Constructor]] = {}
        for owner in self.named.values():
            for match in re.compile(rf"(?<![\w~.>]){owner.name}\s?\(").finditer(self._plain):
                own = self._text.braces.begin(match.start()) == owner.begin
                outside = _OUTSIDE.search(self._plain, max(0, match.start() - 140), match.start())
                if own or (outside is not None and outside[1] == owner.name):
                    made = self._constructor(match.end() - 1)
                    if made is not None:
                        found.setdefault(owner.name, []).append(made)
        return found

    def _constructor(self, opening: int) -> Constructor | None:
        plain, closing = self._plain, self._text.closing(opening)
        behind = _BEHIND.match(plain, closing + 1) if closing > 0 else None
        if behind is None:
            return None
        at, initialisers = behind.end(), list[tuple[str, str]]()
        while (match := _INITIALISED.match(plain, at)) is not None:
            begin = match.end() - 1
            end = self._text.closing(begin) if match[2] == "(" else self._text.braces.closing.get(begin, -1)
            if end < 0:
                return None
            initialisers.append((match[1], plain[begin + 1 : end].strip()))
            at = end + 1
        body = plain.find("{", at, at + 3)
        end = self._text.braces.closing.get(body, -1)
        if end < 0:
            return None
        declared = whole_arguments(plain[opening + 1 : closing])
        pointers = frozenset(i for i, part in enumerate(declared) if "*" in part)
        parameters = tuple(parameter_of(part) for part in declared)
        return Constructor(parameters, tuple(initialisers), body, end, pointers)


def _without(pattern: re.Pattern[str], text: str) -> str:
    """A text without what a pattern finds, and what it finds then."""
    while (less := pattern.sub(" ", text)) != text:
        text = less
    return text
