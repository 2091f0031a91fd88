"""What expressions of the host are worth: sizes, places in buffers, objects, variables' addresses.

A quotient of what is not divided evenly is a name of its own, the same for the same operands, so that sizes
that were aligned upwards cancel like others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from attrs import define, evolve, field, frozen

from cuda_lsp.frontend.host.host_classes import HostClass
from cuda_lsp.frontend.host.pieces.nodes import Type
from cuda_lsp.frontend.host.pieces.units import Unit
from cuda_lsp.frontend.host.polynomials import Polynomial, added, multiplied

_LONGEST_NAME = 400
"""Characters; beyond it a digest stands for what is unknown."""


@frozen(eq=False)
class Size:
    """An integer."""

    value: Polynomial

    def same(self, other: Value) -> bool:
        """Whether both are one number for all that it may hang on."""
        return isinstance(other, Size) and other.value == self.value


@frozen(eq=False)
class Place:
    """``offset`` bytes behind ``base``, which is somewhere in the buffer ``root``. ``type``: pointed to."""

    base: str
    offset: Polynomial
    root: str
    type: Type | None = None

    def same(self, other: Value) -> bool:
        """Whether both are one place."""
        return isinstance(other, Place) and (other.base, other.offset) == (self.base, self.offset)


@define(eq=False)
class Cell:
    """A variable: what it holds, and its type."""

    value: Value
    type: Type | None = None


@define(eq=False)
class Object:
    """A record, or an array (``[]``). ``name``: of what its fields held before anything was stored.

    ``type``: its class. ``begun``: something was stored to it that nobody knows; ``root``: pointers into
    this buffer alone.
    """

    name: str
    type: str
    fields: dict[str, Cell] = field(factory=dict[str, Cell])
    begun: bool = False
    root: str | None = None


@frozen(eq=False)
class Address:
    """Of a variable."""

    cell: Cell

    def same(self, other: Value) -> bool:
        """Whether both are of one variable."""
        return isinstance(other, Address) and other.cell is self.cell


@frozen(eq=False)
class Lambda:
    """``scopes``: where its names are looked up; ``body``: its brace in the text of ``unit``.

    ``copies``: it has variables of its own. ``owner``: the class of ``this``.
    """

    parameters: str
    body: int
    scopes: tuple[dict[str, Cell], ...]
    this: Cell | None
    copies: bool
    unit: Unit
    owner: HostClass | None


@frozen(eq=False)
class Nobody:
    """What nobody knows. ``name``: the same where it is the same.

    ``points_to``: where it is a pointer, as what ``data<char>()`` returns may be.
    """

    name: str
    points_to: Type | None = None


Value = Size | Place | Object | Address | Lambda | Nobody | None
"""None: the null pointer."""


class Quotients:
    """What names of quotients stand for: (what is divided, by which number)."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[Polynomial, int]] = {}

    def divided(self, value: Polynomial, by: int) -> Polynomial:
        """``value / by``, as sizes, which are not negative, are divided."""
        whole = {names: factor // by for names, factor in value.items() if factor % by == 0}
        rest = {names: factor for names, factor in value.items() if factor % by}
        if rest.get((), 0) > by:
            whole, rest = added(whole, {(): rest[()] // by}, 1), {**rest, (): rest[()] % by}
        if any(factor < 0 for factor in rest.values()):
            whole, rest = {}, dict(value)
        elif not any(rest):  # less than one
            return whole
        name = named(f"Div{tuple(sorted(rest.items()))}/{by}")
        self.known[name] = rest, by
        return added(whole, {(name,): 1}, 1)

    def remainder(self, value: Polynomial, by: int) -> Polynomial | None:
        """``value % by``."""
        times = multiplied(self.divided(value, by), {(): by})
        return None if times is None else added(value, times, -1)


def named(text: str) -> str:
    """A name for what a text tells, the same for the same text, and for no other.

    What is unknown is called by what it is made of, whose names would be twice as long after each step of
    ``x ^= x << 5``: a random number, drawn in a loop, would fill the memory.
    """
    return text if len(text) <= _LONGEST_NAME else f"<{hashlib.sha256(text.encode()).hexdigest()}>"


def constant(value: Polynomial) -> int | None:
    """The number that it is."""
    return value.get((), 0) if not any(value) else None


def number(value: int) -> Polynomial:
    """Of an integer."""
    return {(): value} if value else {}


def moved(place: Place, by: Polynomial) -> Place:
    """The place so many bytes further on."""
    return evolve(place, offset=added(place.offset, by, 1))


def copied(value: Value) -> Value:
    """What a variable holds that a value is copied to."""
    if isinstance(value, Lambda) and value.copies:
        return Nobody("a lambda's copy")  # each has variables of its own
    if not isinstance(value, Object):
        return value
    fields = {name: Cell(copied(cell.value), cell.type) for name, cell in value.fields.items()}
    return Object(value.name, value.type, fields, value.begun, value.root)


def alike(one: Value, other: Value) -> bool:
    """Whether two values are one, for certain."""
    if one is other:
        return True
    if isinstance(one, Object) and isinstance(other, Object):
        return _same_fields(one, other)
    if isinstance(one, Nobody) and isinstance(other, Nobody):
        return one.name == other.name
    return isinstance(one, Size | Place | Address) and one.same(other)


def _same_fields(one: Object, other: Object) -> bool:
    mine: Mapping[str, Cell] = one.fields
    return (
        (one.name, one.type, mine.keys()) == (other.name, other.type, other.fields.keys())
        and all(alike(cell.value, other.fields[name].value) for name, cell in mine.items())
    )  # fmt: skip
