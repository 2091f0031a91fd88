"""``kernel<<<configuration>>>(arguments)`` as text: its parts, before anybody asks what they are worth."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from attrs import field, frozen

from cuda_lsp.frontend.host.text import FURTHEST, HostText, whole_arguments

_NAME = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s?\Z")
_SCOPE = re.compile(r"(?<!\w)(\w+)\s?::\s?\Z")
_MEMBER = re.compile(r"(?<!\w)[A-Za-z_]\w*\s?(?:\[[^\[\];]*\]\s?)?(?:\.|->)\s?\Z")
_CALLED = re.compile(r"[\w>\])]\s?\Z")
_ITS_ARGUMENT = re.compile(r"(?<!\w)HIP_KERNEL_NAME\s?\Z")
"""A macro that is what it is given: it keeps the commas of template arguments together."""
KERNEL = re.compile(r"\A\s?&?\s?(?:\w+\s?::\s?)*([A-Za-z_]\w*)\s?(?:<(.*)>)?\s?\Z", re.S)
"""A kernel as an argument: its name, and its template arguments if it has some."""

_LONGEST_NAME = 400  # characters of a kernel's name with its template arguments


@frozen
class Written:
    """A launch as it is written: ``begin`` and ``end`` are offsets in the text that it was read from.

    ``definitions``: macros that the kernel is compiled with, and what the host has for them. ``scope``: what
    stands before its name, ``a::b::``. ``held``: the expression in the kernel's place, if it is no plain name
    (``wide ? rows<4> : rows<1>``, ``table[i]``, ``pick(n)``); ``kernel`` is the last name in it that counts.
    ``conditions``: what holds in the text of the macro that launches it.
    """

    kernel: str
    template_arguments: str | None
    configuration: Sequence[str]
    arguments: Sequence[str]
    begin: int
    end: int
    definitions: Mapping[str, str] = field(factory=dict[str, str])
    scope: str = ""
    held: str = ""
    conditions: tuple[str, ...] = ()


def every_launch(host: HostText) -> Iterator[tuple[int, Written]]:
    """Where each ``<<<`` of a launch stands, in order, and the launch."""
    for match in re.finditer("<<<", host.plain):
        launch = _written(host, match.start())
        if launch is not None:
            yield match.start(), launch


def _written(host: HostText, start: int) -> Written | None:
    """What stands around the ``<<<`` at ``start``."""
    plain = host.plain
    window = max(0, start - _LONGEST_NAME)
    whole = _without_macro(plain[window:start].rstrip())
    head, template_arguments = _parted(whole)
    name = _NAME.search(head) or _NAME.search(_holder(head))
    end = plain.find(">>>", start, start + FURTHEST)
    if not name or end < 0 or plain.find("<<<", start + 3, end) >= 0:
        return None  # a second `<<<` begins a launch of its own: this one is unfinished
    opening = end + 4 if plain[end + 3 : end + 4].isspace() else end + 3
    closing = host.closing(opening)
    arguments = whole_arguments(plain[opening + 1 : closing]) if closing > 0 else []
    finish = closing + 1 if closing > 0 else end + 3
    configuration = whole_arguments(plain[start + 3 : end])
    begin, scope = window + name.start(1), _scope(head[: name.start(1)])
    held = _expression(whole, head, name.start(1))
    return Written(
        name[1], template_arguments, configuration, arguments, begin, finish, scope=scope, held=held
    )


def last_kernel(expression: str) -> tuple[str, str | None] | None:
    """The last of the kernels that an expression chooses from, and its template arguments."""
    head, template_arguments = _parted(expression.rstrip())
    name = _NAME.search(head)
    return None if name is None else (name[1], template_arguments)


def _parted(expression: str) -> tuple[str, str | None]:
    """An expression up to the end of a kernel's name, and the template arguments behind that."""
    head = _bare(expression)
    if not head.endswith(">"):
        return head, None
    opening = _opening(head)
    return (head[:opening], head[opening + 1 : -1].strip()) if opening >= 0 else ("", None)


def _holder(head: str) -> str:
    """What a table or a function in a kernel's place is called: ``… table[i]`` → ``… table``."""
    while head.endswith((")", "]")):
        opening = _opened(head, head[-1])
        if opening < 0:
            return ""
        head = head[:opening].rstrip()
    return head


def _expression(whole: str, head: str, name: int) -> str:
    """The expression that ends ``whole`` if it is no plain name, which begins at ``name`` of ``head``."""
    if whole.endswith(")"):
        opening = _opened(whole, ")")
        if opening >= 0 and "?" in whole[opening:]:
            return whole[opening + 1 : -1]
    member = _MEMBER.search(head, 0, name)
    return head[member.start() if member else name :] if member or not _NAME.search(head) else ""


def _without_macro(whole: str) -> str:
    """``… HIP_KERNEL_NAME(kernel<4, 2>)`` without the macro's name; all else stays where it is."""
    opening = _opened(whole, ")") if whole.endswith(")") else -1
    macro = _ITS_ARGUMENT.search(whole, 0, opening) if opening > 0 else None
    return (
        whole if macro is None else whole[: macro.start()] + " " * (opening - macro.start()) + whole[opening:]
    )


def _scope(before: str) -> str:
    """The namespaces and classes that a name behind ``before`` is looked up in: ``a::b::``."""
    found = ""
    while (part := _SCOPE.search(before)) is not None:
        found, before = f"{part[1]}::{found}", before[: part.start()]
    return found


def _bare(head: str) -> str:
    """Without the parentheses around the kernel: ``… (kernel<4>)`` → ``… (kernel<4>``."""
    while head.endswith(")"):
        opening = _opened(head, ")")
        if opening < 0 or _CALLED.search(head, 0, opening):
            return head
        head = head[:-1].rstrip()
    return head


def _opened(head: str, closing: str) -> int:
    """Where the bracket that ends ``head`` is opened; -1: nowhere."""
    opening, depth = "([{"[")]}".index(closing)], 0
    for i in range(len(head) - 1, -1, -1):
        depth += (head[i] == closing) - (head[i] == opening)
        if depth == 0:
            return i
    return -1


def _opening(head: str) -> int:
    depth = 0
    for i in range(len(head) - 1, -1, -1):
        if head[i] == ">":
            depth += 1
        elif head[i] == "<":
            depth -= 1
            if depth == 0:
                return i
        elif head[i] in ";{}":
            return -1
    return -1
