"""Calls of a function by way of its value: ``F g = run; g(a, b);``, ``std::thread worker(run, a, b);``.

``(*g)(a, b)`` is such a call too. Read from text. Whoever is handed a function and arguments behind it calls
it with these, as far as is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import evolve

from cuda_lsp.frontend.host.host_functions import Call, HostFunction, HostFunctions
from cuda_lsp.frontend.host.text import HostText, whole_arguments

_VALUE = (
    r"(?<![\w.>])&?\s?(?:[A-Za-z_]\w*\s?::\s?)*(?<!\w){name}\s?(?:<[^<>;(){{}}]{{0,100}}>\s?)?(?=[;,)}}])"
)
_HOLDER = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s?\)?\s?(?:\([^()]{0,200}\)\s?)?[={(]\s?\Z")
_THROUGH = r"(?<=[;{{}}=(,])\s?\(\s?\*\s?{holder}\s?\)\s?\("
"""``(*g)(``, where no type stands before it, which would declare ``g``."""
_OPENING = re.compile(r"\(")
_LONGEST_HEAD = 400


def indirect_calls(text: HostText, functions: HostFunctions, function: HostFunction) -> Iterator[Call]:
    """The calls of a function by who holds it, or is handed it, with arguments that it takes."""
    every = _indirect_calls(text, functions, function.name)
    return (call for call in every if function.takes_in_all(len(call.arguments)))


def _indirect_calls(text: HostText, functions: HostFunctions, name: str) -> Iterator[Call]:
    plain = text.plain
    if name not in plain:
        return
    holders: set[str] = set()
    for value in re.compile(_VALUE.format(name=name)).finditer(plain):
        holder = _HOLDER.search(plain, max(0, value.start() - _LONGEST_HEAD), value.start())
        if holder is not None:
            holders.add(holder[1])
        yield from _handed(text, name, value)
    for holder in sorted(holders - {name}):
        yield from (evolve(call, name=name) for call in functions.calls(holder, member=True))
        for begin in re.finditer(_THROUGH.format(holder=holder), plain):
            closing = text.closing(begin.end() - 1)
            passed = whole_arguments(plain[begin.end() : closing]) if closing > 0 else []
            yield Call(name, None, tuple(passed), begin.start(), closing + 1)


def _handed(text: HostText, name: str, value: re.Match[str]) -> Iterator[Call]:
    """The arguments that stand behind a function in a list of arguments."""
    plain = text.plain
    opened = [
        m.start() for m in _OPENING.finditer(plain, max(0, value.start() - _LONGEST_HEAD), value.start())
    ]
    around = next((at for at in reversed(opened) if text.closing(at) >= value.end()), -1)
    if around < 0 or plain[value.end()] != ",":
        return
    closing = text.closing(around)
    passed = [part.strip() for part in whole_arguments(plain[value.end() + 1 : closing])]
    for first in (0, 1):  # a member function is handed its object first
        yield Call(name, None, tuple(passed[first:]), value.start(), closing + 1)
