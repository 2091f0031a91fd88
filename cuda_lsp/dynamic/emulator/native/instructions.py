"""A lowered block as data: operations on slots, which the C engine reads as ``Op`` (``types.h``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field, frozen

CONSTANT, POOL, ROW, GET, SET, LOAD, STORE, CALL, FIRST = 0, 1, 2, 3, 4, 5, 6, 7, 16
"""Codes of operations; from ``FIRST`` on the rows of ``operations.py``."""


class PythonOnly(Exception):
    """The block asks for something that the engine leaves to Python."""


@frozen
class Value:
    """A slot and the kind of what is in it."""

    slot: int
    kind: str


@frozen
class Operation:
    """Fields of ``Op`` in ``engine.c``."""

    code: int
    result: int = -1
    given: tuple[int, ...] = ()
    number: int = 0
    size: int = 0
    kind: int = 0
    parts: tuple[int, ...] = ()
    constant: int = 0


@frozen
class Call:
    """A function of whole arrays: slots and kinds of its arguments and of its results."""

    function: Callable[..., Any]
    given: tuple[Value, ...]
    results: tuple[Value, ...]


@define(eq=False)
class Shared:
    """What the blocks of one program have in common. ``constants``: names of the generated text;
    ``registers``: their kinds; ``pool`` and ``rows``: what a launch has to fill in, as the text asks for it;
    ``slots``: most of a block."""

    constants: Mapping[str, Any]
    registers: list[str]
    pool: dict[tuple[str, ...], int] = field(factory=dict[tuple[str, ...], int])
    rows: dict[str, int] = field(factory=dict[str, int])
    calls: list[Call] = field(factory=list[Call])
    slots: int = 0


@frozen
class Lowered:
    """``condition``: the slot of what the block returns, -1: nothing."""

    operations: tuple[Operation, ...]
    condition: int
