"""What clang complained of inside a kernel or inside what it calls.

clang's words are the only thing by which libclang tells its complaints apart: they are read here, once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum, auto

from attrs import frozen

from cuda_lsp.model import SourceRange

_FORGIVEN = re.compile(
    r"^missing 'typename' prior to dependent|^use '\w+' keyword to treat"
    r"|^explicit qualification required to use member '[^'\n]+' from dependent base class\Z"  # by ``this->``
)
_REQUESTED = re.compile(r"in instantiation of (?!function|member function)")
_OF_THE_HOST = re.compile(r"no matching (?:member )?function for call|reference to __host__ function")
_MISSING = re.compile(r"'([^'\n]+)' file not found")


class Complaint(Enum):
    """What kind of thing clang minds."""

    FORGIVEN = auto()
    """nvcc takes it, and clang reads on as if the word that it misses were there."""
    LAUNCH_ON_DEVICE = auto()
    """A kernel launches a kernel, which nvcc takes."""
    OTHER = auto()


def complaint(message: str) -> Complaint:
    """The kind of one of clang's errors."""
    if _FORGIVEN.match(message):
        return Complaint.FORGIVEN
    if message.startswith("reference to __global__ function"):
        return Complaint.LAUNCH_ON_DEVICE
    return Complaint.OTHER


def requested(note: str) -> bool:
    """Whether a note below an error tells where text asks for a type or a constant of a template.

    Of a statement that does, clang keeps nothing, and says so nowhere else. (Functions are called as ever.)
    """
    return _REQUESTED.match(note) is not None


def in_an_instance(note: str) -> bool:
    """Whether a note below an error tells that it is one of a template with some arguments."""
    return note.startswith("in instantiation of ")


def may_call_the_host(message: str) -> bool:
    """Whether an error may be that a kernel calls a function that nothing says to be the device's."""
    return _OF_THE_HOST.match(message) is not None


def missing_header(message: str) -> str | None:
    """The header that an error says was not found, as it was written; None: it says something else."""
    found = _MISSING.search(message)
    return found[1] if found else None


@frozen
class CompileError:
    """An error at a place that matters to a kernel; ``message`` as clang words it.

    ``of_alias``: it stands outside functions, in an alias that a function of the kernel names.
    """

    range: SourceRange
    message: str
    of_alias: bool = False

    @property
    def complaint(self) -> Complaint:
        """What kind of thing clang minds there."""
        return complaint(self.message)


def in_order(errors: Iterable[CompileError]) -> list[CompileError]:
    """As they stand in the text. (Thousands: positions themselves compare slowly.)"""
    return sorted(errors, key=lambda error: (error.range.start.line, error.range.start.column))
