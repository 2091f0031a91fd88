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
from cuda_lsp.frontend.host.record_writes import Write, writes_to_record
from cuda_lsp.frontend.host.structures import Field, fields_of
from cuda_lsp.frontend.host.text import split_arguments

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
_NO_RECORDS = {
    "return", "delete", "throw", "else", "case", "goto", "new", "using", "typename", "auto", "void", "bool",
    "char", "short", "int", "long", "signed", "unsigned", "float", "double", "size_t", "dim3",
}  # fmt: skip


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
        self._structures: dict[str, list[Field] | None] = {}
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
            self._written[place] = writes_to_record(self._text.plain, name, record.end, function.end)
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
                self._structures[type_] = fields_of(self._text, type_)
            for (field, is_array), part in zip(self._structures[type_] or (), parts, strict=False):
                inner = part.strip()
                if inner.startswith("{") != is_array:
                    return  # braces left out: which field the next value is of is not told
                if not is_array:
                    yield field, part
                else:
                    yield from ((f"{field}[{i}]", v) for i, v in enumerate(split_arguments(inner[1:-1])))


def _is_part(field: str, writes: Mapping[str, Write]) -> bool:
    """Whether it is an element of an array that is written, or lent, as a whole."""
    array, bracket, _ = field.partition("[")
    return bool(bracket) and (array in writes or f"{array}[]" in writes)


def _records(plain: str) -> Iterator[tuple[str, _Record]]:
    """The variables of a file that may be records, by name."""
    for head in _TYPED.finditer(plain):
        at = head.end()
        while head[1] not in _NO_RECORDS and (match := _RECORD.match(plain, at)) is not None:
            yield match[1], _Record(head[1], match.start(1), match[2] or "", match.end())
            if plain[match.end()] == ";":
                break
            at = match.end() + 1
