"""When two accesses to overlapping bytes conflict, and what the race is called (``docs/semantics.md``).

One writes, both see the same object, and they are not atomic to each other: atomics are when they are of one
width and the scope of each holds both threads. Every analysis asks here, with its own kind of access. Not
here: whether the bytes overlap, and whether something orders the two.
"""

from __future__ import annotations

from typing import Any, Protocol

from cuda_lsp.ir.program import Array
from cuda_lsp.model import Mode, RaceKind, Scope, Site, Space


class Accessed(Protocol):
    """What an analysis knows of one access. ``size``: bytes, or a term of them."""

    @property
    def mode(self) -> Mode: ...
    @property
    def size(self) -> object: ...
    @property
    def scope(self) -> Scope | None: ...
    @property
    def elementwise(self) -> bool: ...


class Placed(Protocol):
    """An access at a place of the source."""

    @property
    def mode(self) -> Mode: ...
    @property
    def site(self) -> Site: ...


def conflicting(a: Accessed, b: Accessed, same_block: bool) -> bool:
    """Whether two threads' accesses to overlapping bytes conflict when nothing orders them."""
    if not (a.mode.writes or b.mode.writes):
        return False
    atomic = a.mode.atomic and b.mode.atomic and reach(a.scope, b.scope, same_block)
    return not (atomic and of_one_width(a.size, b.size, a.elementwise or b.elementwise))


def guessed(a: Placed, b: Placed) -> bool:
    """One reads a guess that a compare-and-swap checks, the other is atomic: a race that harms nobody."""
    return (a.site.guess and b.mode.atomic) or (b.site.guess and a.mode.atomic)


def reach(a: Scope | None, b: Scope | None, same_block: bool) -> bool:
    """Each scope holds both threads."""
    return same_block or Scope.BLOCK not in (a, b)


def of_one_width(a: Any, b: Any, elementwise: Any) -> Any:
    """Atomics of these sizes are atomic to each other; also arrays. ``elementwise``: one is on a vector."""
    return (a == b) | elementwise


def lock_orders(a: Scope | None, b: Scope | None, same_block: bool) -> bool:
    """Who holds one lock by regions of these scopes (``ir.Lock``) is kept apart."""
    return a is not None and b is not None and reach(a, b, same_block)


def may_overlap(a: Array, b: Array) -> bool:
    """The two arrays may have bytes in common, in one block."""
    return a is b or (a.may_alias is not None and a.may_alias == b.may_alias)


def seen_by_both(array: Array, same_block: bool) -> bool:
    """Both threads that name the array mean the same memory."""
    return array.space is Space.GLOBAL or (same_block and array.space is Space.SHARED)


def kind(early: Mode, late: Mode) -> RaceKind:
    """By order of execution: ``early`` comes first."""
    if not early.writes:
        return RaceKind.WAR
    return RaceKind.WAW if late.writes else RaceKind.RAW
