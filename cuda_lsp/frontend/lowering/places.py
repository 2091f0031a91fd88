"""Where C++ objects live during lowering (places) and what expressions yield (values).

Most locals never get an address: they are variables of the kernel program.  References, and pointers
to such locals, are resolved here while lowering, so that ``swap(a, b)`` stays scalar.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from attrs import define, field, frozen

from cuda_lsp.frontend.lowering.types import TypeInfo
from cuda_lsp.frontend.tree import Declaration, Node
from cuda_lsp.ir.program import BarrierScope, Expr, Var
from cuda_lsp.model import Scope


@define(eq=False)
class VarPlace:
    """A scalar in a variable. ``owner``: key of the declaration it belongs to (0: a temporary)."""

    info: TypeInfo
    var: Var
    owner: int = 0
    constant: bool = False  # a kernel parameter, never assigned
    address: bool = False  # an integer that holds an address: the variable is a pointer


@define(eq=False)
class DataPlace:
    """A floating-point object: its value is data and not kept."""

    info: TypeInfo
    owner: int = 0
    uniform: bool = False
    constant: bool = False
    loaded: bool = False  # some value written to it came from memory


@define(eq=False)
class RecordPlace:
    """A record in one place per field, by the field declaration's key (bases' fields included)."""

    info: TypeInfo
    fields: dict[int, Place]
    owner: int = 0
    source: RecordPlace | None = None
    """The kernel's parameter that this is, or was made of: its fields that libclang hides are found there."""
    written: bool = False


@define(eq=False)
class MemoryPlace:
    """An object in memory."""

    info: TypeInfo
    pointer: Expr
    bitfield: bool = False


@define(eq=False)
class StaticPlace:
    """An object whose value is known while lowering: an alias, a group, a closure, a constant."""

    info: TypeInfo
    value: Value
    owner: int = 0


Place = VarPlace | DataPlace | RecordPlace | MemoryPlace | StaticPlace


@frozen(eq=False)
class RecordValue:
    """A record by value."""

    info: TypeInfo
    fields: dict[int, Value]
    source: RecordPlace | None = None


@frozen(eq=False)
class MemoryRecord:
    """A record read from memory as a whole, not yet copied. ``node``: the expression that names it."""

    info: TypeInfo
    pointer: Expr
    node: Node | None


@frozen(eq=False)
class Address:
    """Pointer to an object that has no address in the kernel program."""

    place: Place


@frozen(eq=False)
class Closure:
    """A lambda: captured declarations (by copy) with the places of their copies."""

    key: int
    captures: dict[int, Place] = field(factory=dict[int, Any])
    this: Any = None


@frozen(eq=False)
class Group:
    """A cooperative group. ``size`` None: the whole scope, or not known. ``mask``: of coalesced lanes.

    ``within``: of a tile, the threads of the tile that it is part of; 0: of the block. None: it is not known.
    """

    scope: BarrierScope
    size: int | None = None
    mask: Expr | None = None
    within: int | None = None


@frozen(eq=False)
class AtomicRef:
    """``cuda::atomic_ref`` or an atomic object: atomic access to ``place``."""

    place: Place
    scope: Scope


@frozen(eq=False)
class Handle:
    """A library object that is only named (``cub::BlockReduce``, ``cuda::pipeline``)."""

    name: str
    storage: Any = None


@frozen(eq=False)
class FunctionValue:
    """A function, as a pointer to it or a reference."""

    declaration: Declaration


Value = Expr | RecordValue | MemoryRecord | Address | Closure | Group | AtomicRef | Handle | FunctionValue
EXPR_TYPES: Any = Expr.__args__  # type: ignore[attr-defined]


def is_expr(value: Value | None) -> TypeGuard[Expr]:
    """Whether a value is an expression of the kernel program."""
    return isinstance(value, EXPR_TYPES)


PLACE_TYPES = (VarPlace, DataPlace, RecordPlace, MemoryPlace, StaticPlace)


def own(place: Place, owner: int) -> None:
    """Make a place, and those in it, parts of the declaration ``owner``."""
    if isinstance(place, RecordPlace):
        place.owner = owner
        for part in place.fields.values():
            own(part, owner)
    elif not isinstance(place, MemoryPlace | StaticPlace):
        place.owner = owner


def field_place(place: RecordPlace, key: int) -> Place | None:
    """The place of a field of a record, or of a record in it; None: it has none of this key."""
    found = place.fields.get(key)
    if found is not None:
        return found
    for inner in place.fields.values():
        if isinstance(inner, RecordPlace):
            found = field_place(inner, key)
            if found is not None:
                return found
    return None
