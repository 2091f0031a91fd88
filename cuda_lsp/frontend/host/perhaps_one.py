"""Pointers of a launch that may come from one thing, in ways that nobody follows to the end.

``auto b = a; k<<<…>>>(a->p, b->p)``, ``T*& r = d``, ``std::pair q(d, d)``, a union's fields, an integer that
is a pointer, ``same(d)`` of a function without a body, ``p[0]`` beside ``p[i]``, a global that another
function sets. Whatever a variable is made of, in any form and order, it may be: that is more than what is
true, and tells no distance. So it makes no alias; that the two are apart is taken for granted, and told.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from attrs import evolve, frozen

from cuda_lsp.frontend.host.constants import NO_POINTERS
from cuda_lsp.frontend.host.host_functions import HostFunctions
from cuda_lsp.frontend.host.same_element import is_one_element
from cuda_lsp.frontend.host.shared_arguments import choices
from cuda_lsp.frontend.host.text import HostText, closing_near, split_arguments, whole_arguments

_NAME = r"[A-Za-z_]\w*"
_TYPE = (
    rf"(?<![\w.>])(?!(?:return|else|new|delete|throw|case|goto|using|typename|namespace)\b){_NAME}"
    rf"(?:\s?::\s?{_NAME}){{0,4}}(?:\s?<[^;{{}}()]{{0,100}}>)?(?:\s?[*&]{{1,3}}\s?|\s)(?:const\s)?"
)
_ASSIGNED = re.compile(
    rf"(?<![\w.>])({_NAME})((?:\s?(?:\.|->)\s?{_NAME}(?!\w|\s?\()|\s?\[[^\[\]]{{0,80}}\]){{0,4}})"
    r"\s?=\s?([^;{}=][^;{}=]{0,200});"
)
_MADE = re.compile(rf"(?<=[;{{}}])\s?(?:const\s|static\s)?{_TYPE}({_NAME})\s?(?:=\s?)?([({{])")
_EACH = re.compile(rf"\bfor\s?\(\s?(?:const\s)?{_TYPE}({_NAME})\s?:(?!:)\s?")
_CALLED = re.compile(rf"(?<=[;{{}}])\s?(?:({_NAME})\s?(?:\.|->)\s?|{_NAME}\s?::\s?)?({_NAME})\s?\(")
_LENT = re.compile(
    rf"(?:\(\s?\w{{1,40}}\s?\*\s?\*\s?\)\s?)?&\s?({_NAME})\Z|(?<!\w)({_NAME})\s?\.\s?begin\s?\(\s?\)\Z"
)
_UNION = re.compile(rf"\bunion\s({_NAME})\s?\{{")
_DECLARED = re.compile(
    rf"(?<![\w.>])({_NAME})(?:\s?<[^;{{}}()]{{0,100}}>)?(\s?[*&]{{1,3}}\s?|\s)(?:const\s)?({_NAME})\s?(?=[=;,:()\[{{])"
)
_NUMBER = re.compile(
    r"(?:bool|char|short|int|long|float|double|unsigned|signed|s?size_t|dim3|uint|u?int(?:ptr|\d{1,2})_t"
    r"|\w{1,20}(?:Stream|Error|Event)_t)\Z"
)
_NO_TYPE = frozenset({"return", "else", "new", "delete", "throw", "case", "goto"})
_TURNS = re.compile(
    rf"(?<![\w.>])({_NAME})\s?=\s?({_NAME})\s?;\s?({_NAME})\s?=\s?({_NAME})\s?;\s?({_NAME})\s?=\s?({_NAME})\s?;"
)
_CAST = re.compile(
    r"\s?\(\s?(?:const\s)?\w+(?:(?:\s|\s?::\s?)\w+){0,3}(?:\s?<[^<>()]{0,100}>)?[\s*]{0,4}(?:const)?\s?\)\s?(?=[\w(&*])"
)
_FREE = re.compile(rf"(?<!\w)({_NAME}(?:\s?::\s?{_NAME}){{0,4}})\s?(?:<[^;{{}}()]{{0,100}}>\s?)?(?=\()")
_SAME = re.compile(
    r"(?:static_cast|reinterpret_cast|const_cast|move|forward|addressof|raw_pointer_cast|device_pointer_cast)\Z"
)
_FRESH = re.compile(
    r"alloc|new|creat|clone|copy|copies|make|empty|zeros|ones|like|dup|load|[Dd]evice|[Ss]tream|[Ss]ize|[Cc]ount|next|take"
)
"""In names of functions that hand out something of their own, or a number."""
_OF_ITS_OWN = re.compile(
    r"[Bb]uffer|[Ss]cratch|[Ww]ork|[Tt]e?mp|[Ss]pace|[Rr]eserve|[Rr]equest|[Aa]cquire|find|emplace"
)
_ENDS = {"front": "0", "back": "back", "begin": "0"}
_PLACE = re.compile(rf"(?:this\s?->\s?)?({_NAME})(?!\w|\s?::)")
_PART = re.compile(
    rf"\s?(?:(?:\.|->)\s?({_NAME})(?:\s?<[^;{{}}()]{{0,100}}>(?=\s?\())?|\[([^\[\]]{{0,80}})\])"
)
_QUALIFIED = re.compile(r"(?:c|const|mut|mutable|get)(?:_|(?=[a-z]))")
_ON_DEVICE = re.compile(r"__(?:global|device)__")
_LONGEST_HEAD = 300
_MOST = 48
"""Things that a pointer may come from."""
_MOST_CALLS = 8
"""Within one another."""

Integer = Callable[[str], int | None]


@frozen
class _Source:
    """A variable, by where it is declared (-1: elsewhere), or a part of it.

    ``slot``: the argument of the constructor's call at a place that it was, of several.
    """

    declared: int
    name: str
    parts: tuple[str, ...]
    slot: tuple[int, int] | None = None


@frozen
class _Made:
    """What a variable, or a part of one, is made of, at a place.

    ``whole``: it may be all that the value is; else, of a constructor's arguments, a pointer among them.
    """

    place: int
    parts: tuple[str, ...]
    value: str
    slot: tuple[int, int] | None = None
    whole: bool = True


@frozen
class _Declared:
    """A variable: where, the last word of its type, and whether it is a pointer to that, or a reference.

    ``of``: whose parameter it is, by where the body begins.
    """

    place: int
    type_: str
    points: bool
    of: int | None


def perhaps_one(
    text: HostText, arguments: Sequence[str], at: int, integer: Integer
) -> Iterator[tuple[int, int]]:
    """Positions of arguments of a launch, two by two, that may lead to one buffer."""
    origins = text.kept(_Origins)
    found = [origins.of(argument, at) for argument in arguments]
    for (first, here), (position, there) in itertools.combinations(enumerate(found), 2):
        if any(_are_one(a, b, integer) for a, b in itertools.product(here, there)):
            yield first, position


def _are_one(one: _Source, other: _Source, integer: Integer) -> bool:
    if (one.declared, one.name) != (other.declared, other.name):
        return False
    if one.slot is not None and other.slot is not None and one.slot[0] == other.slot[0]:
        return one.slot[1] != other.slot[1]  # one thing, twice; else two parts of what it is made of
    parts = zip(one.parts, other.parts, strict=False)
    return all(_may_be_one_part(a, b, integer) for a, b in parts)


def _may_be_one_part(one: str, other: str, integer: Integer) -> bool:
    """Of elements whether the indices may be one number, of fields and getters whether they have one name."""
    if not (one.startswith("[") and other.startswith("[")):
        return one == other or (
            one.endswith("()") and _QUALIFIED.sub("", one, 1) == _QUALIFIED.sub("", other, 1)
        )
    here, there = integer(one[1:-1]), integer(other[1:-1])
    if here is not None and there is not None:
        return here == there
    return one == other or _names(one) != _names(other) or is_one_element(f"a{one}", f"a{other}") is not False


def _names(index: str) -> set[str]:
    return set(re.findall(_NAME, index))


class _Origins:
    """What the variables of one file are made of."""

    def __init__(self, text: HostText) -> None:
        self._text = text
        self._functions = text.kept(HostFunctions)

    @cached_property
    def _plain(self) -> str:
        """The text without what runs on the device and launches nothing."""
        plain, pieces, done = self._text.plain, list[str](), 0
        for function in self._functions.every():
            head = plain[max(0, function.begin - _LONGEST_HEAD, done) : function.opening]
            on_device = _ON_DEVICE.search(head[1 + max(map(head.rfind, ";}")) :]) is not None
            if on_device and function.body >= done and plain.find("<<<", function.body, function.end) < 0:
                pieces += plain[done : function.body + 1], " " * (function.end - function.body - 1)
                done = function.end
        return "".join((*pieces, plain[done:]))

    @cached_property
    def _unions(self) -> frozenset[str]:
        return frozenset(match[1] for match in _UNION.finditer(self._plain))

    @cached_property
    def _made(self) -> dict[str, list[_Made]]:
        """By the name of the variable."""
        text, plain, found = self._text, self._plain, dict[str, list[_Made]]()
        turning = [match.span() for match in _TURNS.finditer(plain) if _takes_turns(match)]
        for match in _ASSIGNED.finditer(plain):
            if not any(begin <= match.start() < end for begin, end in turning):
                found.setdefault(match[1], []).append(_Made(match.end(), _parts(match[2])[0], match[3]))
        for match in _MADE.finditer(plain):
            found.setdefault(match[1], []).extend(self._by_constructor(match.end() - 1))
        for match in _CALLED.finditer(plain):
            for name, made in self._by_call(match):
                found.setdefault(name, []).append(made)
        for match in _EACH.finditer(plain):
            closing = text.closing(plain.find("(", match.start()))
            value = plain[match.end() : max(match.end(), closing)].strip()
            listed = whole_arguments(value[1:-1]) if value.startswith("{") else [value]
            found.setdefault(match[1], []).extend(_Made(match.end(), (), each) for each in listed)
        return found

    def _by_constructor(self, opening: int) -> Iterator[_Made]:
        """``T q(a, b);`` and ``T q{a, b};``: of several each may be any part of it."""
        plain, closings = self._text.plain, self._text.braces.closing
        closing = self._text.closing(opening) if plain[opening] == "(" else closings.get(opening, -1)
        if closing > 0 and plain.startswith(";", closing + 1):
            values = whole_arguments(plain[opening + 1 : closing])
            several = len(values) > 1
            for index, value in enumerate(values):
                whole = not several and value.strip().isidentifier()
                yield _Made(closing, (), value, (opening, index) if several else None, whole)

    def _by_call(self, match: re.Match[str]) -> Iterator[tuple[str, _Made]]:
        """``x.set(d);``, ``pick(&e, d);`` without a body: what is lent may become what is passed."""
        closing = self._text.closing(match.end() - 1)
        if closing < 0 or any(self._functions.named(match[2])):
            return
        passed = [part.strip() for part in whole_arguments(self._plain[match.end() : closing])]
        written = self._references.get(match[2], ())
        lent = {i: known[1] or known[2] for i, part in enumerate(passed) if (known := _LENT.match(part))}
        lent |= {i: passed[i] for i in written if i < len(passed) and passed[i].isidentifier()}
        if match[1] and not _FRESH.search(match[2]):
            lent[-1] = match[1]
        for at, name in lent.items():
            others = (part for i, part in enumerate(passed) if i != at)
            yield from ((name, _Made(closing, (), part, whole=False)) for part in others)

    @cached_property
    def _references(self) -> Mapping[str, Sequence[int]]:
        """Which arguments functions may write to, by name."""
        return {name: places for name, places, _ in self._functions.written_to}

    @cached_property
    def _declared(self) -> dict[str, list[_Declared]]:
        heads = sorted((f.opening, f.closing, f.body) for f in self._functions.every())
        found: dict[str, list[_Declared]] = {}
        for match in _DECLARED.finditer(self._plain):
            if match[1] not in _NO_TYPE:
                _, closing, body = heads[i] if (i := bisect(heads, (match.start(),)) - 1) >= 0 else (0, 0, 0)
                of = body if match.start() < closing else None
                here = _Declared(match.start(), match[1], not match[2].isspace(), of)
                found.setdefault(match[3], []).append(here)
        return found

    def _declaration(self, name: str, at: int) -> _Declared | None:
        """The one that is visible at a place: of the innermost block around, else of the parameters."""
        function = self._functions.around(at)
        for known in reversed(self._declared.get(name, ())):
            if known.of is not None:
                if function is not None and function.body == known.of:
                    return known
            elif known.place < at <= self._text.braces.end(known.place):
                return known
        return None

    def of(self, text: str, at: int) -> list[_Source]:
        """What the value of an expression at a place may come from, itself included."""
        function = self._functions.around(at)
        own = range(function.opening, function.end) if function is not None else range(0)
        found: dict[_Source, None] = {}
        pending = list(self._leaves(text, at))
        while pending and len(found) < _MOST:
            source = pending.pop(0)
            if source not in found:
                found[source] = None
                pending += self._behind(source)
                if source.declared not in own:
                    pending += self._passed(source)
        return list(found)

    def _behind(self, source: _Source) -> Iterator[_Source]:
        """What a variable is made of, in one step."""
        for made in self._made.get(source.name, ()):
            if self._place_of(source.name, made.place) != source.declared:
                continue
            if all(a == b for a, b in zip(made.parts, source.parts, strict=False)):
                rest = source.parts[len(made.parts) :]
                for leaf in self._leaves(made.value, made.place):
                    if made.slot is None and made.whole:
                        yield evolve(leaf, parts=(*leaf.parts, *rest), slot=source.slot)
                    elif self._points(leaf, made.place):
                        apart = made.slot is not None and not self._fills(made.slot[0], rest)
                        yield evolve(leaf, slot=made.slot if apart else source.slot)

    def _fills(self, opening: int, parts: Sequence[str]) -> bool:
        """``std::vector<float*> v(2, d)``: whether an argument of a constructor becomes any element."""
        return self._plain[opening] == "(" and bool(parts) and parts[0].startswith("[")

    def _passed(self, source: _Source) -> Iterator[_Source]:
        """What callers of the file pass for a parameter of a function."""
        for function in self._functions.every() if source.declared >= 0 else ():
            names = [name for name, _ in function.parameters]
            if not function.opening < source.declared < function.closing or source.name not in names:
                continue
            position = names.index(source.name)
            for call in self._functions.calls(function.name):
                if position < len(call.arguments) and function.takes(len(call.arguments)):
                    for leaf in self._leaves(call.arguments[position], call.begin):
                        yield evolve(leaf, parts=(*leaf.parts, *source.parts), slot=source.slot)

    def _place_of(self, name: str, at: int) -> int:
        declared = self._declaration(name, at)
        return declared.place if declared is not None else -1

    def _points(self, source: _Source, at: int) -> bool:
        """Whether it is a variable that is declared as a pointer."""
        declared = self._declaration(source.name, at)
        return declared is not None and declared.points and not source.parts

    def _leaves(self, text: str, at: int, deep: int = _MOST_CALLS) -> Iterator[_Source]:
        """The variables, or parts of them, that the value of an expression may be, or point into."""
        text = _bare(text)
        several = whole_arguments(text[1:-1]) if text.startswith("{") else choices(text)
        call = _FREE.match(text)
        if not deep:
            return
        if len(several) > 1 or text.startswith("{"):
            for part in several:
                yield from self._leaves(part, at, deep - 1)
        elif call is not None:
            yield from self._of_call(call[1].rpartition("::")[2].strip(), text[call.end() :], at, deep - 1)
        else:
            yield from self._of_place(split_arguments(text)[-1].strip() if text else "", at, deep - 1)

    def _of_call(self, name: str, rest: str, at: int, deep: int) -> Iterator[_Source]:
        """What a call may hand back: of one whose text is known that is followed, and not asked here."""
        closing = closing_near(rest, 0)
        if closing < 0 or any(self._functions.named(name)):
            return
        if _SAME.match(name):
            yield from self._leaves(rest[1:closing], at, deep)
        elif not _FRESH.search(name):
            for argument in whole_arguments(rest[1:closing]):
                yield from (leaf for leaf in self._leaves(argument, at, deep) if self._points(leaf, at))

    def _of_place(self, text: str, at: int, deep: int) -> Iterator[_Source]:
        place = _PLACE.match(text)
        if place is None or place[1] in NO_POINTERS:
            return
        declared = self._declaration(place[1], at)
        parts, end = _parts(text[place.end() :])
        if not parts and declared is not None and not declared.points and _NUMBER.match(declared.type_):
            values = [made.value for made in self._made.get(place[1], ())]
            if not any(_CAST.match(value) or "_cast" in value for value in values):
                _, plus, rest = text.partition("+")  # ``n + p``
                yield from self._leaves(rest, at, deep) if plus else ()
                return
        if end is None:
            return  # a call whose result is its own
        parts = () if declared is not None and declared.type_ in self._unions else parts
        yield _Source(declared.place if declared is not None else -1, place[1], parts)


def _bare(text: str) -> str:
    """Without casts, signs for addresses and what is behind them, and parentheses around all of it."""
    while True:
        text = text.strip()
        cast = _CAST.match(text)
        if text.startswith("(") and closing_near(text, 0) == len(text) - 1:
            text = text[1:-1]
        elif cast is not None:
            text = text[cast.end() :]
        elif text[:1] in ("&", "*"):
            text = text[1:]
        else:
            return text


def _parts(text: str) -> tuple[tuple[str, ...], int | None]:
    """Fields, elements and getters behind a name, and where they end; None: behind a call that is none."""
    parts: list[str] = []
    end = 0
    while (part := _PART.match(text, end)) is not None:
        end = part.end()
        if part[1] is None:
            parts.append(f"[{part[2].strip()}]")
        elif text.startswith("(", end):
            closing = closing_near(text, end)
            inside = text[end + 1 : closing].strip()
            if closing < 0 or _FRESH.search(part[1]) or (inside and _OF_ITS_OWN.search(part[1])):
                return tuple(parts), None
            parts += _element(part[1], inside) if inside or part[1] in _ENDS else [f"{part[1]}()"]
            end = closing + 1
        else:
            parts.append(part[1])
    return tuple(parts), end


def _element(name: str, index: str) -> Iterator[str]:
    """``v.at(i)``, ``v.front()`` are elements like ``v[i]``; so is ``w.get(i)``, of what ``get`` numbers."""
    if name not in _ENDS and name != "at":
        yield name
    yield f"[{_ENDS.get(name, index)}]"


def _takes_turns(match: re.Match[str]) -> bool:
    """``t = a; a = b; b = t;``, which leaves two things where two were."""
    kept, one, first, other, second, last = match.groups()
    return kept == last and one == first and other == second
