"""Pointers in records that a launch passes by value, and the buffers that they have part of.

A record's fields stand behind the launch's arguments, as arguments of their own: ``Args{d, d + n, n}``,
``carve(d, n)``, and a variable that holds one of these and that nothing else writes to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from cuda_lsp.frontend.host.expressions import parts_of_record
from cuda_lsp.frontend.host.host_pointers import HostPointers
from cuda_lsp.frontend.host.passed_fields import PassedFields
from cuda_lsp.frontend.host.polynomials import Formula
from cuda_lsp.frontend.host.shared_arguments import SharedBuffer

Field = tuple[int, str]
"""An argument's position, and the name of a field."""


@frozen
class RecordField:
    """A field of an argument, and what the host would write for it."""

    position: int
    name: str
    text: str


def record_fields(
    pointers: HostPointers, fields: PassedFields, arguments: Sequence[str], at: int
) -> tuple[RecordField, ...]:
    """The fields of those arguments whose records are known as a whole."""
    return tuple(
        RecordField(position, *field)
        for position, argument in enumerate(arguments)
        for field in _of_argument(pointers, fields, argument.strip(), at)
    )


def _of_argument(
    pointers: HostPointers, fields: PassedFields, argument: str, at: int
) -> Iterator[tuple[str, str]]:
    made = [parts_of_record(text) for text in pointers.returned(argument)]
    if len(made) == 1 and made[0] is not None:
        names = pointers.structure(made[0][0] or "")
        for key, text in made[0][1]:
            if isinstance(key, str) or key < len(names):
                yield key if isinstance(key, str) else names[key], text.strip()
    elif argument.isidentifier():
        known = {field.name: None for field in fields.of([argument], at) if "[" not in field.name}
        known |= dict.fromkeys(pointers.fields_by_call(argument, at))
        yield from ((name, f"{argument}.{name}") for name in known)


def by_field(
    shared: Mapping[int, SharedBuffer], fields: Sequence[RecordField], count: int
) -> tuple[dict[int, SharedBuffer], dict[Field, SharedBuffer]]:
    """What is told of ``count`` arguments and of the fields behind them, each by what it is called."""
    if not fields:  # there may be more arguments than stand there: of a pack
        return dict(shared), {}
    plain: dict[int, SharedBuffer] = {}
    found: dict[Field, SharedBuffer] = {}
    for index, buffer in shared.items():
        first = buffer.first
        if isinstance(first, int) and first >= count:
            first = _called(first, fields, count)
        here = evolve(buffer, first=first, offset=_by_field(buffer.offset, fields, count))
        if index < count:
            plain[index] = here
        else:
            field = fields[index - count]
            found[field.position, field.name] = here
    return plain, found


def _by_field(offset: Formula | None, fields: Sequence[RecordField], count: int) -> Formula | None:
    if offset is None or isinstance(offset, int):
        return offset
    if isinstance(offset, str):
        number = offset.removeprefix("#")
        return _called(int(number), fields, count) if number != offset and int(number) >= count else offset
    left, right = (_by_field(part, fields, count) for part in offset[1:])
    return None if left is None or right is None else (offset[0], left, right)


def _called(index: int, fields: Sequence[RecordField], count: int) -> str:
    field = fields[index - count]
    return f"#{field.position}.{field.name}"
