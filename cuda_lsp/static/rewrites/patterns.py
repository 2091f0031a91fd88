"""Patterns of kernel programs, as data: what an expression, a statement or a list of statements looks like.

``Node(ir.Atomic, op=AtomicOp.ADD)`` asks for the kind of a node and for the fields that it names; a tuple
asks for a list, in which ``Many`` stands for as many as there are; what is no pattern asks for what is equal.
What ``Bind`` matches is told by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.walk import stripped

Pattern = Any
"""One of the classes below, a tuple of patterns, or a value that is asked for."""


@frozen(init=False)
class Node:
    """A node of one of these kinds whose fields match."""

    kinds: tuple[type, ...]
    fields: Mapping[str, Pattern]

    def __init__(self, *kinds: type, **fields: Pattern) -> None:
        self.__attrs_init__(kinds, fields)  # type: ignore[attr-defined]


@frozen(init=False)
class Either:
    """The first of these that matches."""

    patterns: tuple[Pattern, ...]

    def __init__(self, *patterns: Pattern) -> None:
        self.__attrs_init__(patterns)  # type: ignore[attr-defined]


@frozen
class Bare:
    """What is left without the casts around it."""

    pattern: Pattern


@frozen
class Many:
    """In a list: all that match, from here on."""

    pattern: Pattern


@frozen
class Bind:
    """What matches, by a name."""

    name: str
    pattern: Pattern = None
    """None: anything."""


@frozen
class Where:
    """What a predicate holds of."""

    holds: Callable[[Any], bool]


def commuting(op: ir.BinaryOp, one: Pattern, other: Pattern) -> Either:
    """The operation with its two operands in either order."""
    return Either(*(Node(ir.Binary, op=op, left=a, right=b) for a, b in ((one, other), (other, one))))


def match(pattern: Pattern, value: Any) -> dict[str, Any] | None:
    """What ``Bind`` found, by name, when the value looks like the pattern; None: it does not."""
    bound: dict[str, Any] = {}
    return bound if _matches(pattern, value, bound) else None


def matches(pattern: Pattern, value: Any) -> bool:
    """The value looks like the pattern."""
    return _matches(pattern, value, {})


def match_start(pattern: tuple[Pattern, ...], values: tuple[Any, ...]) -> tuple[int, dict[str, Any]] | None:
    """How many of the values the list takes from their beginning, and what ``Bind`` found."""
    bound: dict[str, Any] = {}
    length = _taken(pattern, values, bound)
    return None if length is None else (length, bound)


def _matches(pattern: Pattern, value: Any, bound: dict[str, Any]) -> bool:
    if isinstance(pattern, Node):
        if not isinstance(value, pattern.kinds):
            return False
        return all(_matches(p, getattr(value, name), bound) for name, p in pattern.fields.items())
    if isinstance(pattern, Either):
        return any(_matches(p, value, bound) for p in pattern.patterns)
    if isinstance(pattern, Bare):
        return _matches(pattern.pattern, stripped(value), bound)
    if isinstance(pattern, Where):
        return pattern.holds(value)
    if isinstance(pattern, Bind):
        if pattern.pattern is not None and not _matches(pattern.pattern, value, bound):
            return False
        bound[pattern.name] = value
        return True
    if isinstance(pattern, tuple) and isinstance(value, tuple):
        return _taken(pattern, value, bound) == len(value)  # type: ignore[arg-type]
    return bool(pattern == value)


def _taken(pattern: tuple[Pattern, ...], values: tuple[Any, ...], bound: dict[str, Any]) -> int | None:
    at = 0
    for part in pattern:
        if isinstance(part, Many):
            while at < len(values) and _matches(part.pattern, values[at], bound):
                at += 1
        elif at < len(values) and _matches(part, values[at], bound):
            at += 1
        else:
            return None
    return at
