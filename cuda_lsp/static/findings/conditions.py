"""What a race needs, and what a doubt is about: data that analyses decide by; ``words`` makes text of them.

A *condition* is something that the source does not exclude. A *doubt* is why nobody knows whether the race
happens; ``Open`` lists those that speak of nothing else.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from attrs import frozen

from cuda_lsp.ir.program import Array, Axis
from cuda_lsp.model import Dim3, Extents, LaunchConfig

_MOST_NAMED = 2
"""Arrays that are named of those whose contents decide."""


@frozen
class Compared:
    """``parameter sign other``: another parameter or a number, which may be the ``extent`` of the launch."""

    parameter: str
    sign: str
    other: str | int
    extent: Axis | None = None


@frozen
class BeyondGrid:
    """The parameter is more than an extent of the grid, which nobody knows."""

    parameter: str
    extent: Axis


@frozen
class SomeValues:
    """The parameters take values that no comparison tells."""

    parameters: tuple[str, ...]


@frozen
class Example:
    """Parameters and values under which it was seen. ``sampled``: all of them, made up by the first tier."""

    values: tuple[tuple[str, int], ...]
    sampled: bool = False


@frozen
class Contents:
    """What arrays hold when the kernel starts: (array, byte offset) and value."""

    cells: tuple[tuple[tuple[Array, int], float], ...]


@frozen
class SomeContents:
    """The arrays hold values that cannot be told in a few words.

    ``one_place``: floats of which two threads make the integers that say where they go.
    """

    arrays: tuple[str, ...]
    one_place: bool = False


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
    """Conditions that speak of nothing else, with their words."""

    BLOCKS = "the grid has more than one block"
    BLOCKS_Y = "the grid has more than one block along y"
    BLOCKS_Z = "the grid has more than one block along z"
    ONE_BLOCK = "the grid is one block"
    FEW_BLOCKS = "the grid has few blocks"
    LAUNCH = "blocks are of a usual size"
    SIZES = "sizes make blocks like that"
    TEMPLATE = "the template arguments are as guessed"
    RETURNED = "GPUs wait for it (below compute capability 7.0)"


Condition = (
    Compared | BeyondGrid | SomeValues | Example | Contents | SomeContents | Branch | Overreach | Needs
)
Conditions = tuple[Condition, ...]
"""All of them are needed."""


def along_an_axis(needed: Conditions, blocks: tuple[Dim3, Dim3], grid: Extents) -> Conditions:
    """Which blocks it takes, of a ``grid`` that may have several where these two do not differ."""
    differing = [i for i in range(3) if blocks[0][i] != blocks[1][i]]
    if len(differing) != 1 or differing == [0] or all(grid[i] == 1 for i in range(3) if i not in differing):
        return needed
    along = Needs.BLOCKS_Y if differing == [1] else Needs.BLOCKS_Z
    return tuple(along if n is Needs.BLOCKS else n for n in needed)


def without_cells(condition: Condition) -> Condition:
    """The arrays alone, of what they hold."""
    if not isinstance(condition, Contents):
        return condition
    arrays = sorted({array for (array, _), _ in condition.cells}, key=lambda array: array.id)
    return SomeContents(tuple(dict.fromkeys(array.name for array in arrays)))


def parameters_of(conditions: Iterable[Condition]) -> frozenset[str]:
    """The scalar parameters that conditions for people speak of."""
    found: set[str] = set()
    for condition in conditions:
        match condition:
            case Compared(parameter, _, str(other)):
                found |= {parameter, other}
            case Compared(parameter) | BeyondGrid(parameter):
                found.add(parameter)
            case SomeValues(parameters):
                found.update(parameters)
            case Example(values):
                found.update(dict(values))
            case _:
                pass
    return frozenset(found)


def is_weak(conditions: Conditions) -> bool:
    """No comparison that the race needs was found, or it needs a size below zero: too little to accuse."""
    match conditions[-1]:
        case SomeValues() | Compared(_, "<", 0):
            return True
        case _:
            return False


def below_zero(conditions: Conditions) -> frozenset[str]:
    """The parameters of which only values below zero are known to show it."""
    examples = (condition for condition in conditions if isinstance(condition, Example))
    return frozenset(name for example in examples for name, value in example.values if value < 0)


@frozen
class Setting:
    """What of the program a finding's numbers are of, as far as the source does not tell it, or tells more.

    ``launch``: of these threads. ``several``: the source has blocks of other sizes, too. ``guessed``:
    the template's arguments, if they are.
    """

    launch: LaunchConfig | None = None
    several: bool = False
    guessed: str = ""

    @property
    def block(self) -> Dim3 | None:
        return None if self.launch is None else self.launch.block


# ------------------------------------------------------------------------------------------ doubts


@frozen
class OnData:
    """An unknown value; ``what`` it is or where it comes from, for people.

    ``in_story``: of findings that are no races, that their story tells it. ``arguments``: what the kernel is
    passed is all that it is made of.
    """

    what: str
    in_story: bool = True
    arguments: bool = False


def contents_of(names: Sequence[str]) -> OnData:
    """What these arrays hold, the first few of them by name."""
    shown = " and ".join(f"`{name}`" for name in names[:_MOST_NAMED])
    return OnData(f"the contents of {shown}{' and others' if len(names) > _MOST_NAMED else ''}")


@frozen
class Uneven:
    """Whether the parameter is a multiple of the layout's vector length."""

    parameter: str
    divisor: int


@frozen
class Untiled:
    """Whether the sizes are multiples of a parameter, and the shifts no more than they are."""

    sizes: tuple[str, ...]
    tile: str
    shifts: tuple[str, ...] = ()


@frozen
class Unordered:
    """Whether the array of offsets ascends."""

    array: str


@frozen
class Repeated:
    """Whether the array holds a number twice."""

    array: str


@frozen
class Overfull:
    """Whether the array counts more than a row has room for."""

    array: str
    room: int


@frozen
class Unconfirmed:
    """Arguments that the first tier made up; with all of them open the solver could not confirm it."""

    conditions: Conditions


@frozen
class UpToLibrary:
    """Whether a call, as text, is a barrier."""

    call: str


class Open(enum.Enum):
    """Doubts that speak of nothing else, and what leaves a kernel undecided, with their words."""

    LAUNCH = "the launch"
    LAUNCH_ASSUMED = "the launch, which is only assumed"
    LAUNCH_UNTOLD = "the launch, whose block nothing in the file tells"  # other plausible ones do not show it
    LAUNCH_AND_TEMPLATE = "the block and template arguments of the launch, which nothing in the file tells"
    TEMPLATE = "the template arguments, which nothing in the file tells"
    LAUNCH_AND_ARGUMENTS = "the launch and the arguments"
    ARGUMENTS = "the arguments"
    BLOCKS_ASSUMED = "the number of blocks, which is only assumed"
    BLOCKS_UNKNOWN = "the number of blocks, which is not known"
    POINTERS = "two pointers that may overlap"
    REACHED = "whether both are ever reached"
    REPLAY = "a loop too long to replay"
    TIME = "the solver ran out of time"
    NOT_REPLAYED = "the solver's candidate race could not be replayed"
    BACKGROUND = "it is still being executed in the background"
    BROKEN = "while it does not compile it is not executed to its end"
    LOCK_STEP = "lock step in warps"  # as they do below compute capability 7.0
    OTHER_BLOCKS = "blocks other than those executed; the solver has not looked at them"
    ENUMERATION = "not decided by enumeration; the solver has not looked at it"


Doubt = OnData | Uneven | Untiled | Unordered | Repeated | Overfull | Unconfirmed | UpToLibrary | Open


@frozen
class Undecided:
    """Accesses at one or two places, on these lines, of which the solver does not know whether they race."""

    array: str
    lines: tuple[int, ...]
    why: Doubt
