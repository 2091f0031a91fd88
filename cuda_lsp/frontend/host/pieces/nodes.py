"""Expressions of host code as trees, and types as they are written."""

from __future__ import annotations

from attrs import frozen


@frozen
class Type:
    """``pointers``: how many stars; ``reference``: it has ``&``, ``constant``: of something const."""

    name: str
    pointers: int = 0
    reference: bool = False
    constant: bool = False

    @property
    def pointee(self) -> Type:
        """What a pointer of the type points to."""
        return Type(self.name, self.pointers - 1)


@frozen
class Name:
    """A variable, or a function."""

    text: str
    template: str = ""


@frozen
class Number:
    """A number, as it is written."""

    text: str


@frozen
class Member:
    """``object.field``; ``arrow``: through a pointer."""

    object: Node
    field: str
    arrow: bool
    template: str = ""


@frozen
class Index:
    """``array[index]``."""

    array: Node
    index: Node


@frozen
class Called:
    """A call, or something made like one."""

    function: Node
    arguments: tuple[Node, ...]


@frozen
class Unary:
    """``-a``, ``*p``, ``&x``, …"""

    sign: str
    operand: Node


@frozen
class Step:
    """``i++``, ``--i``; ``behind``: worth what it was."""

    sign: str
    operand: Node
    behind: bool


@frozen
class Binary:
    """``a + b``."""

    sign: str
    left: Node
    right: Node


@frozen
class Assigned:
    """``a = b``, ``a += b``."""

    sign: str
    left: Node
    right: Node


@frozen
class Cast:
    """``(T*)p``."""

    type: Type
    operand: Node


@frozen
class SizeOf:
    """``sizeof(T)``, as text."""

    text: str


@frozen
class Choice:
    """``c ? a : b``."""

    condition: Node
    first: Node
    second: Node


@frozen
class Record:
    """``T{a, .b = c}``: parts with the names of their fields, where they have these."""

    type: str | None
    parts: tuple[tuple[str | None, Node], ...]


@frozen
class Made:
    """``new T(a)``."""

    type: Type
    arguments: tuple[Node, ...]


@frozen
class LambdaText:
    """``[&](T a) { … }``: ``captures`` and ``parameters`` as text; ``body``: its brace, in the text."""

    captures: str
    parameters: str
    body: int


Node = (
    Name | Number | Member | Index | Called | Unary | Step | Binary | Assigned | Cast | SizeOf | Choice
    | Record | Made | LambdaText
)  # fmt: skip
