"""Ordinary inputs for a real execution: sizes that fit together, and contents that arrays may well have.

An array that bounds a loop's range holds row offsets, ascending; what addresses are made of are valid
indices, of which some come twice; counters and locks start at zero, as hosts leave them; a number that all
threads read from one place is a size. Nothing is chosen for flags that the kernel waits for, nor for memory
that no host fills.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from attrs import frozen

from cuda_lsp.ir.program import Array, Const, Kernel
from cuda_lsp.ir.types import Float, Int, Type
from cuda_lsp.model import LaunchConfig, Space
from cuda_lsp.static import budgets
from cuda_lsp.static.data_flow import DataFlow
from cuda_lsp.static.launches.arguments import enumerators, free_scalars, laid_out, sample

_TURNS = {"named": 0, "named in turn": 1}
_LIMITS = {"rising": 0, "falling": budgets.FALLING_FROM}
"""What the kernel's results start with, when every thread is to improve on the one before it."""


_SIZES = {"zeros": (2, 8), "previous": (1, 3), "mixed": (0, 1)}
"""By filling: how many blocks a size in memory is for, none for few threads; and what a byte holds."""


@frozen
class Filling:
    """How arrays are filled: ``index`` those that addresses come from, ``value`` all others."""

    index: str
    value: str


FILLINGS = (
    Filling("zeros", "mixed"),
    Filling("previous", "mixed"),
    Filling("mixed", "mixed"),
    Filling("zeros", "ones"),
    Filling("pairs", "zeros"),
    Filling("next", "ones"),
    Filling("hub", "rising"),
    Filling("hub", "falling"),
    Filling("hub", "named in turn"),
    Filling("next", "named"),
)


UNEVEN = Filling("uneven", "mixed")
"""Rows, and counts of what threads do, differ in length."""
FIRST_ONLY = Filling("zeros", "first")
"""One element is no zero: what warps vote on differs between them."""
RARE = Filling("zeros", "named once")
"""One element is what they are compared with, all others are not."""
STRETCHES = Filling("zeros", "named in stretches")
"""What they are compared with comes in stretches, each twice as long as the one before: whole warps agree."""
TWINS = Filling("zeros", "twins")
"""Arrays hold the same at most places: what is compared with each other differs at some."""
TREE = Filling("tree", "mixed")
"""Elements lead to later ones, and soon to none: lists and paths through a tree differ in length."""
COUPLES = Filling("couples", "mixed")
"""Of two neighbouring elements both lead to the first: there are many roots."""
NO_NUMBERS = Filling("zeros", "no numbers")
"""Some are infinite, and some no number: for kernels that ask."""


def _next_in_tree(element: int) -> int:
    return element + 1 if element < budgets.TREE_ELEMENTS else -1


_LEADING: Mapping[str, Callable[[int], int]] = {
    TREE.index: _next_in_tree,
    COUPLES.index: lambda element: element & ~1,
}
"""By filling: what arrays hold that lead from element to element."""
_NO_NUMBERS = (0.0, math.inf, math.nan)


@frozen(eq=False)
class Contents:
    """What memory holds when the kernel starts, by the roles that its arrays have."""

    flow: DataFlow
    filling: Filling
    arguments: Mapping[str, int]
    threads: int = budgets.ORDINARY_SIZES[0]  # of a block
    floats: bool = False  # they are known, too

    def at(self, array: Array, offset: int, type: Type) -> int | float | None:
        """The number at a byte of an array; None: nobody knows."""
        if array.space is not Space.GLOBAL or array in self.flow.awaited:
            return None
        if isinstance(type, Float) and self.floats:
            return self._real(array, offset // max(type.size, 1))
        return self._integer(array, offset, type) if isinstance(type, Int) else None

    def _real(self, array: Array, element: int) -> float:
        """As integers are, but that mixed contents are fractions on both sides of zero."""
        how = self.filling.index if array in self.flow.indices else self.filling.value
        if array in self.flow.drawn:
            return 0.0
        if how in ("mixed", "twins"):
            return (_element(how, element, array.id) - budgets.MIXED_BELOW // 2) / budgets.REAL_STEPS
        if how == RARE.value:
            return float(self._compared_with(array, int(element > 0)))
        if how in _TURNS:
            return float(self._compared_with(array, element + _TURNS[how]))
        if how == NO_NUMBERS.value:
            return _NO_NUMBERS[element % len(_NO_NUMBERS)]
        if how == STRETCHES.value:
            return float(self._compared_with(array, element.bit_length()))
        return float(_element(how, element, array.id))

    def _integer(self, array: Array, offset: int, type: Int) -> int:
        if array in self.flow.lowered and array not in self.flow.forests:
            return type.wrap(budgets.FALLING_FROM)
        if array in self.flow.drawn or array in self.flow.slice.lock_arrays:
            return 0
        element = offset // max(type.size, 1)
        if array in self.flow.single and self.filling.value == "mixed" and self.filling.index in _SIZES:
            return self._size(type)
        if self.filling.index in _LEADING and array in self.flow.leading:
            return type.wrap(_LEADING[self.filling.index](element))
        if array in self.flow.rows:
            return type.wrap(self._row(array, element))
        how = self.filling.index if array in self.flow.indices else self.filling.value
        if how in _LIMITS and array in self.flow.slice.written:
            return type.wrap(_LIMITS[how])
        if how == RARE.value:
            return type.wrap(int(self._compared_with(array, int(element > 0))))
        if how in _TURNS:
            return type.wrap(int(self._compared_with(array, element + _TURNS[how])))
        if how == STRETCHES.value:
            return type.wrap(int(self._compared_with(array, element.bit_length())))
        return type.wrap(_element(how, element, array.id))

    def _size(self, type: Int) -> int:
        """A number that all threads read: a size, or what fits into a few bits."""
        blocks, bits = _SIZES[self.filling.index]
        return bits if type.size == 1 else type.wrap(blocks * self.threads or budgets.ORDINARY_SIZES[0])

    def _compared_with(self, array: Array, turn: int) -> float:
        """One of the numbers that the kernel tells elements of the array from, and of their neighbours."""
        numbers: dict[float, None] = {}
        others: dict[float, None] = {}
        for other, distance in self.flow.named.get(array, ()):
            number = other.value if isinstance(other, Const) else self.arguments.get(other.name, 0)
            numbers[number + distance] = None
            others[number + distance + (1 if distance < 0 else -1)] = None
        if len(numbers) < 2:
            numbers |= others or {0: None, 1: None}
        return list(numbers)[turn % len(numbers)]

    def _row(self, array: Array, element: int) -> int:
        begins, row = array in self.flow.begins, budgets.ROW_ELEMENTS
        if self.filling is UNEVEN:
            return row * element + element // 3 if begins else row + element % 3
        if begins:
            return row * element
        return row * (element + 1) if self.flow.begins else row


def _element(how: str, element: int, array: int) -> int:
    match how:
        case "ones":
            return 1
        case "first":
            return budgets.HUB if element == 0 else 0
        case "mixed" | "couples":
            return ((element + 1) * 2654435761 + array * 40503 >> 7) % budgets.MIXED_BELOW
        case "previous":
            return max(element - 1, 0)
        case "next":
            return element + 1
        case "hub":
            return budgets.HUB
        case "rising":
            return element + 1
        case "falling":
            return budgets.FALLING_FROM - 1 - element
        case "pairs":
            return element // 2
        case "twins":
            return _element("mixed", element, array * (element % budgets.TWINS_ALIKE == 1))
        case "tree":
            return _next_in_tree(element)
        case _:
            return 0


@frozen(eq=False)
class Arguments:
    """Values for scalars. ``equal``: all that were open are the same: extents and pitches agree."""

    values: Mapping[str, int]
    equal: bool


def argument_sets(kernel: Kernel, launch: LaunchConfig) -> Iterator[Arguments]:
    """Values for the scalars that the launch leaves open, several ways; one when it leaves none open."""
    free = free_scalars(kernel, launch)
    if not free:
        yield Arguments(launch.arguments, equal=True)
        return
    for turn, size in enumerate((launch.threads, *budgets.ORDINARY_SIZES)):
        named = enumerators(kernel, free, turn)
        values = {**launch.arguments, **dict.fromkeys(free, size), **named}
        yield Arguments(laid_out(kernel, free, values), equal=True)
    wide = {**launch.arguments, **dict.fromkeys(free, 2 * launch.threads), **enumerators(kernel, free, 0)}
    yield Arguments(laid_out(kernel, free, wide), equal=False)  # a size for two blocks
    ample = sample(kernel, launch)
    if ample is not None:
        yield Arguments(ample, equal=False)
    odd = {name: 2 * launch.threads + 3 * i + 1 for i, name in enumerate(free)}
    odd = {**launch.arguments, **odd, **enumerators(kernel, free, 1)}
    yield Arguments(laid_out(kernel, free, odd), equal=False)
