"""Where host code defines names that may hold an integer or a ``dim3``, and where it writes to them.

Read from text, so any state of the file will do. Braces delimit scopes; parameters and template parameters
shadow. What a name is worth is told in ``host_constants``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from cuda_lsp.frontend.host.text import HostText, split_arguments

# White space is one character at most in host text (see there), and no stretch of a pattern is unbounded in
# which the pattern may begin anew: each takes time in proportion to the text.
_INTEGER_TYPES = (
    r"unsigned|int|size_t|long|short|uint|auto|bool|char|ptrdiff_t|uchar|ushort|ulong|u?int(?:8|16|32|64)_t"
)
_INTEGER = re.compile(rf"\b(?:{_INTEGER_TYPES})\s(?:const\s|constexpr\s)?(?=\w+\s?[=({{,;])")
_IS_INTEGER = re.compile(rf"\b(?:{_INTEGER_TYPES})\b(?!\s?[*<])")
_WIDE_INTEGER = re.compile(
    r"(?:(?:const|unsigned|signed|long|std\s?::)\s?){0,4}"
    r"(?:unsigned|signed|int|long|size_t|ptrdiff_t|uint|ulong|u?int(?:32|64)_t)"
)
_DECLARATOR = re.compile(r"\s?\b(\w+)\s?(?:([=({])|(?=[,;]))")
_BRACKET_OR_END = re.compile(r"[][(){},;]")
_LONGEST_INITIALISER = 200
_ENUMERATOR = re.compile(r"(?<=[{,])\s?(\w+)\s?=\s?([^,{};]{1,80}?)\s?(?=[,}])")
_OTHER = re.compile(
    r"(?:(?<=[;{}])\s?(?:(?:const|constexpr|static)\s){0,3}|^(?:(?:const|constexpr|static)\s){1,3})"
    r"([A-Za-z_]\w{0,60})\s(\w{1,60})\s?=(?!=)",
    re.M,
)
_LITERAL = re.compile(r"\s?(\d{1,20}[uUlL]{0,3})\s?;")
_NO_TYPE = re.compile(
    r"return|else|using|typedef|delete|new|throw|goto|case|namespace|do|dim3|u?int3|auto|const|constexpr|static"
    r"|struct|class|enum|typename|template"
)
_ONE_TYPE = re.compile(r"[(,]\s?(?:const\s)?([A-Za-z_]\w*)\s(?:const\s)?\Z")
_UNNAMED = re.compile(r"\b(?:namespace\s?|inline\snamespace\s\w+\s?)\Z")
_ENUM = re.compile(r"\benum\b[^;{}()]{0,200}\Z")
_PARAMETER = re.compile(
    r"[(,]\s?(?:(?:const|unsigned|long)\s)*[A-Za-z_][\w:]*(?:<[^<>;(){}]*>)?(?:\s?[*&]+\s?|\s)(?:const\s)?"
    r"(\w+)\s?(?:(?=[,)\[])|(=)(?!=))"
)
_TEMPLATE_PARAMETER = re.compile(
    rf"[<,]\s?(?:const\s)?(?:unsigned\s)?(?:std\s?::\s?)?(?:{_INTEGER_TYPES})\s(\w+)\s?(?=[,>=])"
)
_DIM3 = re.compile(r"\b(?:dim3|uint3|int3)\s(?:const\s)?((?:[^;{}]|\{[^;{}]{0,400}\}){1,400});")
_DIM3_ITEM = re.compile(r"\A(\w+)\s?(?:\((.*)\)|\{(.*)\}|=\s?(.+))?\s?\Z", re.S)
_ASSIGNED = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s?(?:\.\s?([xyz])\s?)?=(?!=)")
_COMPOUND = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s?(?:\.\s?([xyz])\s?)?(?:[-+*/%&|^]|<<|>>)=")
_STEP = re.compile(r"(?<!\w)(\w+(?:\s?\.\s?[xyz])?)\s?([-+*/%&|^]|<<|>>)=")
_CHANGED = re.compile(
    r"(?:\+\+|--)\s?(\w+)|\b(\w+)\s?(?:\.\s?[xyz]\s?)?(?:\+\+|--)"
    r"|[(,=]\s?&\s?(\w+)|\bcin\s?>>\s?(\w+)|&\s?\w+\s?=\s?(\w+)\s?(?=[;,])"
)
_HANDED_OVER = re.compile(r"\b(?:swap|tie|exchange)\s?\(\s?([^()]{1,200})\)")
_NAMED = re.compile(r"[A-Za-z_]\w*")
_POINTERS = re.compile(r"\bvoid\s?\*\s?(\w+)\s?\[[^\[\]]{0,40}\]\s?=?\s?\{([^{}]{0,2000})\}")
NOTHING_SAID = "dim3()"
"""The value of ``dim3 block;``."""
_QUALIFIERS = frozenset({"const", "constexpr", "static", "unsigned", "long"})
_LAST_WORD = re.compile(r"(?<!\w)\w{1,9}\Z")  # none of the qualifiers is longer
_OPENS_PARAMETERS = ("(", ",", "<")
_NAMESPACE = re.compile(r"(?:\bnamespace(?:\s[\w:]*)?|\bextern\s?)\s?\Z")
_SCOPE = re.compile(r"\b(?:namespace|struct|class|union)\s([A-Za-z_][\w:]*)(?:\s[^;{}()]{0,400})?\s?\Z")
_LONGEST_HEAD = 400  # of a class
_MOST_HIDDEN = 256
"""Definitions of one name looked at for the one that is visible: siblings whose scopes have ended."""


@frozen
class Definition:
    """``text`` None: a parameter, or something else without a known value. ``end``: where its scope ends.

    ``writes``: how many ``=`` the definition itself contains. ``scalar``: it is an integer, and no ``dim3``.
    ``doubt``: no definition, but a place behind which nobody knows which one holds. ``of_type``: a name of a
    type that may stand for an integer; then its value is ``said``.
    """

    position: int
    end: int
    text: str | None
    writes: int = 0
    scalar: bool = False
    doubt: bool = False
    of_type: str = ""
    said: str | None = None


class Definitions:
    """All definitions of one name, by position."""

    def __init__(self, unsorted: Sequence[Definition]) -> None:
        self.all = sorted(unsorted, key=lambda d: d.position)
        self._positions = [d.position for d in self.all]

    def visible(self, before: int) -> Definition | None:
        """The innermost definition whose scope holds the position; without a text where it is not sought."""
        index = bisect_left(self._positions, before)
        first = max(0, index - _MOST_HIDDEN)
        for found in reversed(self.all[first:index]):
            if before <= found.end:
                return found
        return evolve(self.all[first], text=None) if first else None

    def inside(self, outer: Definition) -> Sequence[Definition] | None:
        """Definitions of the same name that hide ``outer`` in some part of its scope; None: too many."""
        first = bisect_left(self._positions, outer.position + 1)
        last = bisect_left(self._positions, outer.end)
        return [d for d in self.all[first:last] if not d.doubt] if last - first <= _MOST_HIDDEN else None


@frozen
class Write:
    """A change of a name at a place, or of one component (``axis``).

    ``value``: where what is assigned begins; -1: it is changed in some other way.
    """

    position: int
    axis: str | None = None
    value: int = -1


def definitions_of(text: HostText, doubtful: Sequence[tuple[int, int]] = ()) -> dict[str, Definitions]:
    """By name; ``doubtful``: stretches of ``plain`` that the preprocessor may leave out."""
    found: dict[str, list[Definition]] = {}
    for name, definition in (*_integers(text), *_parameters(text), *_dims(text), *_others(text)):
        found.setdefault(name, []).append(definition)
    return {name: Definitions(_doubted(each, doubtful)) for name, each in found.items()}


def is_integer(type: str) -> bool:
    """Whether it is a type of integers, of 32 bits or more: what is computed keeps its value in it."""
    return _WIDE_INTEGER.fullmatch(type) is not None


def with_integers(
    found: Mapping[str, Definitions], is_integer: Callable[[str], bool]
) -> dict[str, Definitions]:
    """The same where some names of types stand for integers (``typedef int Index;``)."""
    return {
        name: Definitions([_as_integer(d) if d.of_type and is_integer(d.of_type) else d for d in known.all])
        if any(d.of_type for d in known.all)
        else known
        for name, known in found.items()
    }


def _as_integer(definition: Definition) -> Definition:
    text = definition.said if definition.text is None else definition.text
    return evolve(definition, text=text, scalar=True, of_type="", said=None)


def writes_of(plain: str) -> dict[str, list[Write]]:
    """By name, in order; those of definitions among them."""
    found: dict[str, list[Write]] = {}
    for match in _ASSIGNED.finditer(plain):
        found.setdefault(match[1], []).append(Write(match.start(), match[2], match.end()))
    for match in _COMPOUND.finditer(plain):
        found.setdefault(match[1], []).append(Write(match.start(), match[2], match.end()))
    lists = [match.span() for match in _POINTERS.finditer(plain)]
    for match in _CHANGED.finditer(plain):
        if match[3] and any(begin < match.start() < end for begin, end in lists):
            continue  # for a launch to read
        for name in filter(None, match.groups()):
            found.setdefault(name, []).append(Write(match.start()))
    for match in _HANDED_OVER.finditer(plain):  # by reference, by the standard library
        for name in _NAMED.findall(match[1]):
            found.setdefault(name, []).append(Write(match.start()))
    for writes in found.values():
        writes.sort(key=lambda write: write.position)
    return found


def assigned(plain: str, write: Write) -> str | None:
    """What is assigned, where the assignment is a statement of its own; else None."""
    before = plain[max(0, write.position - 2) : write.position].rstrip()
    end = plain.find(";", write.value, write.value + _LONGEST_INITIALISER) if write.value >= 0 else -1
    if before[-1:] not in (";", "{", "}") or end < 0:
        return None
    value = plain[write.value : end].strip()
    step = _STEP.match(plain, write.position, write.value)
    value = f"{step[1]} {step[2]} ({value})" if step is not None else value
    return value if value.count("(") == value.count(")") else None


def pointer_lists(plain: str, begin: int, before: int) -> Iterator[re.Match[str]]:
    """``void* args[] = {&a, &n}``, as ``cudaLaunchKernel`` takes them: name, and its elements."""
    return _POINTERS.finditer(plain, max(0, begin), before)


def in_namespaces_only(text: HostText, position: int) -> bool:
    """Whether no function and no class is around a place."""
    brace = text.braces.begin(position)
    while brace >= 0:
        if not _NAMESPACE.search(text.plain, max(0, brace - 80), brace):
            return False
        brace = text.braces.begin(brace - 1)
    return True


def is_in_class(text: HostText, position: int) -> bool:
    """Whether a place is a class's own, and no function's."""
    return scope_of(text, position) != "" and not in_namespaces_only(text, position)


def writes_member(plain: str, begin: int, end: int, variable: str, member: str) -> bool:
    """Whether a stretch of the text writes to ``variable.member``, or takes its address."""
    name = rf"(?<![\w.]){variable}\s?\.\s?{member}\b"
    write = rf"{name}\s?(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--|(?<!&)&)\s?{name}"
    return re.compile(write).search(plain, begin, end) is not None


def scope_of(text: HostText, position: int) -> str:
    """``outer::Inner``: the namespaces and classes around a place; "" outside of all, and in functions."""
    names: list[str] = []
    brace = scope_begin(text, position)
    while brace >= 0:
        scope = _SCOPE.search(text.plain, max(0, brace - _LONGEST_HEAD), brace)
        if scope is None:
            return ""
        names.insert(0, scope[1])
        brace = text.braces.begin(brace - 1)
    return "::".join(names)


def scope_begin(text: HostText, position: int) -> int:
    """The brace around a place; enumerators are names of what is around their enumeration."""
    brace = text.braces.begin(position)
    head = text.plain[max(0, brace - _LONGEST_HEAD) : max(0, brace)]
    plain = _ENUM.search(head) is not None and _SCOPE.search(head) is None
    return text.braces.begin(brace - 1) if plain else brace


# ---------------------------------------------------------------------------------------- reading


def _integers(text: HostText) -> Iterator[tuple[str, Definition]]:
    plain, braces = text.plain, text.braces
    for match in _INTEGER.finditer(plain):
        position = match.start()
        outer = _unqualified(plain[max(0, position - 60) : position])[-1:]
        inner = outer in _OPENS_PARAMETERS  # a parameter with a default, or a loop's counter
        end = braces.parameter_end(position) if inner else _scope_end(text, position)
        scalar = not match[0].startswith("auto")
        for name, at, value, writes in _declarators(plain, match.end()):
            where = position if at == match.end() else at
            yield name, Definition(where, end, None if inner else value, writes, scalar)
    for match in _ENUMERATOR.finditer(plain):
        brace = braces.begin(match.start(1))
        if _ENUM.search(plain, max(0, brace - _LONGEST_HEAD), max(0, brace)) is not None:
            yield match[1], Definition(match.start(), len(plain), match[2], 1, scalar=True)


def _parameters(text: HostText) -> Iterator[tuple[str, Definition]]:
    for pattern in (_PARAMETER, _TEMPLATE_PARAMETER):
        for match in pattern.finditer(text.plain):
            position, writes = match.start(1), int(match.re is _PARAMETER and match[2] is not None)
            written = match[0][: position - match.start()]
            scalar = _IS_INTEGER.search(written) is not None
            end = text.braces.parameter_end(position)
            of = _ONE_TYPE.search(written)
            named = of[1] if of is not None and not scalar and not _NO_TYPE.fullmatch(of[1]) else ""
            yield match[1], Definition(position, end, None, writes, scalar=scalar, of_type=named)


def _dims(text: HostText) -> Iterator[tuple[str, Definition]]:
    for match in _DIM3.finditer(text.plain):
        position, end = match.start(), _scope_end(text, match.start())
        for item in map(str.strip, split_arguments(match[1])):
            parts = _DIM3_ITEM.match(item)
            if parts is None:
                continue
            listed = parts[2] if parts[2] is not None else parts[3]
            value = parts[4] if parts[4] is not None else f"dim3({listed or ''})"
            yield parts[1], Definition(position, end, value, int(parts[4] is not None))


def _others(text: HostText) -> Iterator[tuple[str, Definition]]:
    """Variables of types that nobody knows here (``const IdType length = high - low;``).

    Without a value, unless that is a number as it stands: any type of numbers has it. What is ``said`` is
    the value where the type turns out to be one of integers.
    """
    for match in _OTHER.finditer(text.plain):
        if not _NO_TYPE.fullmatch(match[1]) and not _IS_INTEGER.search(match[1]):
            literal = _LITERAL.match(text.plain, match.end())
            value, end = literal[1] if literal else None, _scope_end(text, match.start(2))
            scalar = literal is not None
            for name, at, said, writes in _declarators(text.plain, match.start(2)):
                first = at == match.start(2)
                held = value if first else None
                yield (
                    name,
                    Definition(at, end, held, writes, scalar=scalar and first, of_type=match[1], said=said),
                )


def _scope_end(text: HostText, position: int) -> int:
    """Where the scope of what is defined here ends; that of a namespace without a name is the one around."""
    brace = text.braces.begin(position)
    while brace >= 0 and _UNNAMED.search(text.plain, max(0, brace - _LONGEST_HEAD), brace):
        brace = text.braces.begin(brace - 1)
    return text.braces.closing.get(brace, len(text.plain))


def _declarators(plain: str, at: int) -> Iterator[tuple[str, int, str | None, int]]:
    """``a = 4, b(8), c{2}, d;``: names, where they stand, initialisers, and how many ``=`` write them."""
    while (match := _DECLARATOR.match(plain, at)) is not None:
        begin, value = match.end(), None
        behind = begin
        if match[2] is not None:
            end = _initialiser_end(plain, begin, closed=match[2] != "=")
            behind = end + 1 if match[2] != "=" else end
            behind += plain[behind : behind + 1].isspace()
            value = plain[begin:end].strip()
            if end < 0 or plain[behind : behind + 1] not in (",", ";", ")") or not value:
                return
        yield match[1], match.start(1), value, int(match[2] == "=")
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


def _doubted(found: Sequence[Definition], branches: Sequence[tuple[int, int]]) -> list[Definition]:
    """Behind a branch that may be left out, a name that is defined elsewhere too has no known value."""
    doubts = [
        Definition(end, definition.end, None, doubt=True)
        for definition in found
        for begin, end in branches
        if len(found) > 1 and begin <= definition.position < end < definition.end
    ]
    return [*found, *doubts]


def _unqualified(before: str) -> str:
    """The text before a declaration without ``static const`` and their kin."""
    before = before.rstrip()
    while (word := _LAST_WORD.search(before)) and word[0] in _QUALIFIERS:
        before = before[: word.start()].rstrip()
    return before
