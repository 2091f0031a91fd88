"""What records hold that launches pass by value: ``Args p{d, 100, n * m}; p.rows = 60; k<<<…>>>(p)``.

Read from text. A field has the value that the record is made with, or that of the last assignment before
the launch, where every way to the launch comes by it; an array's elements are fields of their own
(``stride[1]``). A wrong constant could hide a bug: of a record that anything else may write to, nothing
is told, and values are told apart by their order only for structures without bases and constructors, whose
arrays have braces of their own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from cuda_lsp.frontend.host.fresh_tensors import FreshTensors
from cuda_lsp.frontend.host.host_constants import HostConstants
from cuda_lsp.frontend.host.known_values import Given
from cuda_lsp.frontend.host.text import HostText, split_arguments

_NAME = r"[A-Za-z_]\w*"
_PARTS = r"(?:[^{};]|\{[^{};]{0,200}\}){0,1000}"
_MADE = re.compile(rf"\A({_NAME})\s?(?:<[^<>{{}}]*>\s?)?\{{({_PARTS})\}}\Z")
_TYPED = re.compile(
    rf"(?<=[;{{}}])\s?(?:(?:const|struct)\s){{0,2}}({_NAME})(?:<[^<>;{{}}]{{0,200}}>)?\s(?={_NAME}\s?[;=,{{])"
)
_RECORD = re.compile(
    rf"\s?(?<!\w)({_NAME})\s?(?:(?=[;,])|(?:=\s?(?:{_NAME}\s?)?)?\{{({_PARTS})\}}\s?(?=[;,]))"
)
_DESIGNATED = re.compile(rf"\A\s?\.\s?({_NAME})\s?=\s?(.+)\Z", re.S)
_FIELD = re.compile(rf"\s?\.\s?({_NAME})")
_ELEMENT = re.compile(r"\s?\[\s?([^\[\];{}]{1,200}?)\s?\]")
_ASSIGNED = re.compile(r"\s?=(?!=)\s?([^;{}]{1,200});")
_OTHERWISE = re.compile(r"\s?([\[.(]|(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)")
_STATEMENT_ENDS = (";", "{", "}")
_CHANGED = re.compile(r"(?:(?<!&)&|\+\+|--)\s?\Z")
_LAUNCHED = re.compile(r">>>\s?\Z")
_DECLARED = re.compile(rf"\A[\s*&]*({_NAME})\s?(\[[^\[\]]*\])?\s?(?:=[^=]*)?\Z")
_FUNCTION = re.compile(r"\)\s?(?:(?:const|noexcept|override|final)\s?){0,3}\Z")
_OTHER_WORDS = re.compile(r"\b(?:private|protected|public|static|using|typedef|union|struct|enum)\b|#")
_NO_RECORDS = {
    "return", "delete", "throw", "else", "case", "goto", "new", "using", "typename", "auto", "void", "bool",
    "char", "short", "int", "long", "signed", "unsigned", "float", "double", "size_t", "dim3",
}  # fmt: skip
_Field = tuple[str, bool]
"""The name, and whether it is an array."""
Write = tuple[str | None, int]
"""What is written, None: nobody knows, and where."""
_LONGEST = 2000
"""Characters of a structure that is read."""


@frozen
class PassedField:
    """A field of an argument: what it holds, as text, and where that is read."""

    position: int
    name: str
    text: str
    place: int


def constants_of(
    fields: Iterable[PassedField], constants: HostConstants, given: Given
) -> dict[tuple[int, str], int]:
    """The numbers among them, by position and the field's name."""
    known = (((f.position, f.name), constants.integer(f.text, f.place, given)) for f in fields)
    return {key: value for key, value in known if value is not None}


@frozen
class _Record:
    """A variable, where it is declared, and what it is made of; ``end``: of its declaration."""

    type_: str
    place: int
    made: str
    end: int


class PassedFields:
    """The records of one file."""

    def __init__(self, constants: HostConstants) -> None:
        self._constants = constants
        self._text = constants.text
        self._records: dict[str, list[_Record]] = {}
        for name, record in _records(self._text.plain):
            self._records.setdefault(name, []).append(record)
        self._tensors = FreshTensors(constants)
        self._structures: dict[str, list[_Field] | None] = {}
        self._written: dict[int, Mapping[str, Write] | None] = {}  # by the place of the declaration

    def of(self, arguments: Sequence[str], at: int) -> tuple[PassedField, ...]:
        """What is told of the arguments of a launch."""
        return tuple(
            PassedField(position, *field)
            for position, argument in enumerate(arguments)
            for field in self._held(argument.strip(), at)
        )

    def member(self, variable: str, field: str, at: int) -> tuple[str, int] | None:
        """What a field of a variable holds at a place, as text, and where that is read."""
        if variable not in self._records:
            return None
        held = (place for place in self._of_variable(variable, at) if place[0] == field)
        return next(((text, place) for _, text, place in held), None)

    def _held(self, argument: str, at: int) -> Iterator[tuple[str, str, int]]:
        """What an argument's fields hold, and where that is written."""
        made = _MADE.match(argument)
        if made is not None:
            yield from ((field, text, at) for field, text in self._parts(made[1], made[2]))
        elif argument in self._records:
            yield from self._of_variable(argument, at)
        yield from self._tensors.fields(argument, at)

    def _of_variable(self, name: str, at: int) -> Iterator[tuple[str, str, int]]:
        functions = self._constants.functions
        function = functions.around(at)
        if function is None or functions.jumps(function):
            return
        every = (r for r in self._records[name] if function.body <= r.place < at)
        record, *others = (*itertools.islice(every, 2), None, None)[:2]
        if record is None or others != [None]:
            return
        place = record.place
        if place not in self._written:
            self._written[place] = _writes(self._text.plain, name, record.end, function.end)
        writes = self._written[place]
        if writes is None or not self._constants.comes_by(place, at):
            return
        made = self._parts(record.type_, record.made)
        yield from ((f, text, place) for f, text in made if f not in writes and not _is_part(f, writes))
        for field, (text, last) in writes.items():
            known = last < at and not _is_part(field, writes) and self._constants.comes_by(last, at)
            if text is not None and known:
                yield field, text, last

    def _parts(self, type_: str, made: str) -> Iterator[tuple[str, str]]:
        """What a record is made of, by field."""
        parts = [part for part in split_arguments(made) if part.strip()]
        designated = [_DESIGNATED.match(part) for part in parts]
        if any(designated):
            yield from ((named[1], named[2]) for named in designated if named is not None)
        elif parts:
            if type_ not in self._structures:
                self._structures[type_] = _fields(self._text, type_)
            for (field, is_array), part in zip(self._structures[type_] or (), parts, strict=False):
                inner = part.strip()
                if inner.startswith("{") != is_array:
                    return  # braces left out: which field the next value is of is not told
                if not is_array:
                    yield field, part
                else:
                    yield from ((f"{field}[{i}]", v) for i, v in enumerate(split_arguments(inner[1:-1])))


def _writes(plain: str, name: str, begin: int, end: int) -> Mapping[str, Write] | None:
    """By field: what is assigned last, None where that is not plain. None: anything may be written."""
    found: dict[str, Write] = {}
    for use in re.compile(rf"(?<![\w.>:]){name}\b").finditer(plain, begin, end):
        changed = _CHANGED.search(plain, max(0, use.start() - 4), use.start()) is not None
        field = _FIELD.match(plain, use.end())
        if field is None:
            if changed or not _is_launched(plain, use.start()):
                return None
            continue
        element = _ELEMENT.match(plain, field.end())
        behind = field.end() if element is None else element.end()
        assigned, other = _ASSIGNED.match(plain, behind), _OTHERWISE.match(plain, behind)
        if other is not None and other[1] == "(":
            return None  # a function of the record
        before = plain[max(0, use.start() - 2) : use.start()].rstrip()[-1:]
        which = f"{field[1]}[{element[1]}]" if element is not None and element[1].isdigit() else field[1]
        if assigned is not None and before in _STATEMENT_ENDS:
            found[which] = (assigned[1] if element is None or which != field[1] else None, use.start())
        elif changed or other is not None:
            found[field[1]] = (None, use.start())
        elif element is None:
            found[f"{field[1]}[]"] = (None, use.start())  # an array is lent
    return found


def _is_part(field: str, writes: Mapping[str, Write]) -> bool:
    """Whether it is an element of an array that is written, or lent, as a whole."""
    array, bracket, _ = field.partition("[")
    return bool(bracket) and (array in writes or f"{array}[]" in writes)


def _is_launched(plain: str, place: int) -> bool:
    """Whether a name is an argument of a launch, which copies it."""
    depth = 0
    for opening in range(place - 1, max(0, place - _LONGEST), -1):
        match plain[opening]:
            case ";" | "{" | "}":
                return False
            case ")":
                depth += 1
            case "(" if depth:
                depth -= 1
            case "(":
                return _LAUNCHED.search(plain, max(0, opening - 4), opening) is not None
            case _:
                pass
    return False


def _records(plain: str) -> Iterator[tuple[str, _Record]]:
    """The variables of a file that may be records, by name."""
    for head in _TYPED.finditer(plain):
        at = head.end()
        while head[1] not in _NO_RECORDS and (match := _RECORD.match(plain, at)) is not None:
            yield match[1], _Record(head[1], match.start(1), match[2] or "", match.end())
            if plain[match.end()] == ";":
                break
            at = match.end() + 1


def _fields(text: HostText, type_: str) -> list[_Field] | None:
    """The fields of a structure in their order; None where it is more than they."""
    heads = list(re.compile(rf"\bstruct\s{type_}\s?([:{{])").finditer(text.plain))
    opening = heads[0].end() - 1 if len(heads) == 1 and heads[0][1] == "{" else -1
    closing = text.braces.closing.get(opening, -1)
    if not 0 <= opening < closing < opening + _LONGEST:
        return None
    found: list[_Field] = []
    for piece, has_body in _statements(text, opening + 1, closing):
        if _OTHER_WORDS.search(piece) or re.search(rf"\b{type_}\s?\(", piece):
            return None
        if has_body and _FUNCTION.search(piece):
            continue
        first, *others = split_arguments(piece)
        _, _, last = re.sub(r"=.*", "", first, flags=re.S).strip().rpartition(" ")
        for declarator in (last, *others) if piece.strip() else ():
            name = _DECLARED.match(declarator)
            if name is None:
                return None
            found.append((name[1], name[2] is not None))
    return found


def _statements(text: HostText, begin: int, end: int) -> Iterator[tuple[str, bool]]:
    """The statements of a structure, and whether a body in braces follows, which is left out."""
    start = at = begin
    while at < end:
        if text.plain[at] in "{;":
            yield text.plain[start:at], text.plain[at] == "{"
            at = text.braces.closing.get(at, at)
            start = at + 1
        at += 1
