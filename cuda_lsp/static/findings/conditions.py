"""What a race needs, and what a doubt is about: data that analyses decide by; ``words`` makes text of them.

A *condition* is something that the source does not exclude. A *doubt* is why nobody knows whether the race
happens; ``Open`` lists those that speak of nothing else.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable

from attrs import frozen

from cuda_lsp.ir.program import Array, Axis

Numbers = tuple[tuple[str, int], ...]
"""Parameters and their values."""


@frozen
class Compared:
    """``parameter sign other``: another parameter or a number, which may be the ``extent`` of the launch."""

    parameter: str
    sign: str
    other: str | int
    extent: Axis | None = None


@frozen
class SomeValues:
    """The parameters take values that no comparison tells."""

    parameters: tuple[str, ...]


@frozen
class Example:
    """Values of parameters under which it was seen."""

    values: Numbers


@frozen
class Sampled:
    """All values under which the first tier saw it, before the solver has looked at it."""

    values: Numbers


@frozen
class Contents:
    """What arrays hold when the kernel starts: (array, byte offset) and value."""

    cells: tuple[tuple[tuple[Array, int], int], ...]


@frozen
class SomeContents:
    """The arrays hold values that cannot be told in a few words."""

    arrays: tuple[str, ...]


@frozen
class Branch:
    """How the condition on a line comes out, which hangs on data."""

    line: int
    holds: bool


@frozen
class Overreach:
    """A row of so many elements reaches into the next; extents as text."""

    extents: tuple[str, ...]


class Needs(enum.Enum):
    """Conditions that speak of nothing else."""

    BLOCKS = enum.auto()  # more than one
    DISAGREEMENT = enum.auto()  # threads evaluate a barrier's guard differently


Condition = Compared | SomeValues | Example | Sampled | Contents | SomeContents | Branch | Overreach | Needs
Conditions = tuple[Condition, ...]
"""All of them are needed."""


def parameters_of(conditions: Iterable[Condition]) -> frozenset[str]:
    """The scalar parameters that conditions for people speak of."""
    found: set[str] = set()
    for condition in conditions:
        match condition:
            case Compared(parameter, _, other):
                found |= {parameter, other} if isinstance(other, str) else {parameter}
            case SomeValues(parameters):
                found.update(parameters)
            case Example(values):
                found.update(name for name, _ in values)
            case _:
                pass
    return frozenset(found)


def is_weak(conditions: Conditions) -> bool:
    """No comparison that the race needs was found, or it needs a size below zero: too little to accuse."""
    last = conditions[-1]
    return isinstance(last, SomeValues) or (
        isinstance(last, Compared) and (last.sign, last.other) == ("<", 0)
    )


def some_contents(arrays: Collection[Array]) -> SomeContents:
    """Each name once, in the order of declarations."""
    ordered = sorted(arrays, key=lambda array: array.id)
    return SomeContents(tuple(dict.fromkeys(array.name for array in ordered)))


# ------------------------------------------------------------------------------------------ doubts


@frozen
class OnData:
    """An unknown value; ``what`` it is or where it comes from, for people."""

    what: str


@frozen
class Uneven:
    """Whether the parameter is a multiple of the layout's vector length."""

    parameter: str
    divisor: int


@frozen
class Unordered:
    """Whether the array of offsets ascends."""

    array: str


@frozen
class Unconfirmed:
    """Arguments that the first tier made up; with all of them open the solver could not confirm it."""

    conditions: Conditions


class Open(enum.Enum):
    """Doubts that speak of nothing else, and what leaves a kernel undecided."""

    LAUNCH = enum.auto()
    LAUNCH_ASSUMED = enum.auto()
    LAUNCH_UNTOLD = enum.auto()  # other plausible launches do not show it
    LAUNCH_AND_ARGUMENTS = enum.auto()
    ARGUMENTS = enum.auto()
    BLOCKS_ASSUMED = enum.auto()
    BLOCKS_UNKNOWN = enum.auto()
    POINTERS = enum.auto()  # may overlap
    REACHED = enum.auto()  # a condition that all threads share may keep both from being executed
    REPLAY = enum.auto()  # a loop too long for it
    BACKGROUND = enum.auto()  # still being executed there
    BROKEN = enum.auto()  # text that does not compile is not executed to its end
    OTHER_BLOCKS = enum.auto()
    ENUMERATION = enum.auto()  # did not decide it, and the solver has not looked


Doubt = OnData | Uneven | Unordered | Unconfirmed | Open
