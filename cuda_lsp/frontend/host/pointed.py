"""Where launches pass one buffer in ways that no offset is read of: in records, and as a device's variable.

``k<<<…>>>(Args{d, d + 1})``, ``k<<<…>>>(record, d)`` and ``k<<<…>>>(table)`` of a ``__device__`` array that
the kernel names itself. How far apart the places are is not asked: it is enough that they may be one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from attrs import frozen

from cuda_lsp.frontend.host.expressions import parts_of_record
from cuda_lsp.frontend.host.host_pointers import HostPointers
from cuda_lsp.frontend.host.shared_arguments import choices, parts_of_pointer

_NAME = re.compile(r"\A[A-Za-z_]\w*\Z")
_MOST_STEPS = 8
_MOST = 64
"""Places of one launch."""


@frozen
class Pointed:
    """An argument, by position, or a ``field`` of one (by name, or its place), and where it may point to."""

    position: int
    field: str | int | None
    buffer: str


def pointed(pointers: HostPointers, arguments: Sequence[str], at: int) -> tuple[Pointed, ...]:
    """What the arguments of a launch may point to."""
    found: dict[Pointed, None] = {}
    for position, argument in enumerate(arguments):
        for field, value in _places(pointers, argument.strip(), at):
            for buffer in _buffers(pointers, value, at, _MOST_STEPS):
                found[Pointed(position, field, buffer)] = None
    return tuple(itertools.islice(found, _MOST))


def _places(pointers: HostPointers, argument: str, at: int) -> Iterator[tuple[str | int | None, str]]:
    for text in pointers.returned(argument):
        made = parts_of_record(text)
        if made is not None:
            yield from made[1]
            continue
        fields = list(pointers.fields(text, at)) if _NAME.match(text) else []
        yield from fields or [(None, text)]


def _buffers(pointers: HostPointers, text: str, at: int, steps: int) -> Iterator[str]:
    """The places that a pointer may be made from, through variables."""
    for choice in choices(text):
        parts = parts_of_pointer(choice)
        base = parts[0].replace(" ", "") if parts is not None else None
        if base is None or base.isdigit():
            continue
        symbol = pointers.symbol(base, at)
        held = pointers.held(base, at) if symbol is None and steps else None
        if held is None:
            yield symbol or base
        else:
            told = [b for value in held.values for b in _buffers(pointers, value, at, steps - 1)]
            yield from told or [base]
