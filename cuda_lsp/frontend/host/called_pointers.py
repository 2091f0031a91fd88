"""What functions of a file make of pointers that they are handed: ``part(d, n)``, ``carve(d, n, &a, &b)``.

Read from text, in the caller's words: parameters are replaced by arguments, variables of the function by what
they hold. What else is a function's own is written like a call, of which nobody knows what it gives: a
pointer into a buffer stays one into that buffer, however far.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from attrs import frozen

from cuda_lsp.frontend.host.host_functions import HostFunction, HostFunctions
from cuda_lsp.frontend.host.text import HostText, closings, split_arguments, whole_arguments

_NAME = r"[A-Za-z_]\w*"
_CALL = re.compile(rf"\A(?:{_NAME}\s?::\s?)*({_NAME})\s?(?:<[^<>;(){{}}]{{0,200}}>\s?)?\(")
_RETURN = re.compile(r"\breturn\b\s?([^;]{1,1000});")
_STORE = re.compile(
    rf"(?<=[;{{}}])\s?(?:\*\s?(?P<at>{_NAME})|(?P<record>{_NAME})\s?->\s?(?P<field>{_NAME})"
    rf"|(?P<reference>{_NAME})(?:\s?\.\s?(?P<part>{_NAME}))?)\s?=(?!=)\s?(?P<value>[^;{{}}]{{1,200}});"
)
_WORD = re.compile(rf"(?<![\w.])(?<!->)(?<!::){_NAME}\b(?!\s?\(|\s?::|\s?\{{)")
_PLAIN = re.compile(r"\A[\w.]+(?:->\w+)*\Z")
_MADE = re.compile(rf"\A(?:({_NAME})\s?(?:<[^<>{{}}]*>\s?)?)?\{{(.*)\}}\Z", re.S)
_DESIGNATED = re.compile(rf"\A\s?\.\s?({_NAME})\s?=\s?(.+)\Z", re.S)
_BEFORE = re.compile(r"(?:\A|[{(,=])\s?\Z")
_BEHIND = re.compile(r"\s?(?:[-+,)}]|\Z)")
_DEVICE = re.compile(r"__(?:device|global)__")
_HEAD = 200
"""Characters before a function's name in which its attributes stand."""
_MOST_CALLS = 4
"""Functions that call one another."""
_MOST_RETURNS = 8


@frozen
class Store:
    """``*p = value`` or ``p->field = value`` through the parameter at a position, or to a reference."""

    position: int
    field: str | None
    value: str
    place: int
    pointer: bool

    def target(self, argument: str) -> str | None:
        """Which variable of the caller, or which field of one, it is stored to; None: nobody knows."""
        argument = argument.strip()
        lent = argument.startswith("&")
        name = argument.removeprefix("&").strip()
        if (
            not _PLAIN.match(name)
            or (lent and not self.pointer)
            or (self.pointer and not (lent or self.field))
        ):
            return None
        return f"{name}.{self.field}" if self.field else name


@frozen
class Filled:
    """What a call stores through one of its arguments: into ``target``, behind ``place``."""

    target: str
    value: str
    place: int
    lent: tuple[int, int]
    """Where the argument stands."""


class Holds(Protocol):
    """What variables hold, as text; ``HostPointers`` answers."""

    def only_value(self, name: str, at: int) -> str | None:
        """The one value of a variable at a place."""
        ...

    def fields(self, name: str, at: int) -> Iterator[tuple[str | int, str]]:
        """What fields of a record may hold at a place: by name, or by position where it is made."""
        ...


class CalledPointers:
    """The functions that one file knows, as far as they hand pointers on.

    ``headers``: the functions of what it includes, and who tells what they do.
    """

    def __init__(
        self,
        text: HostText,
        functions: HostFunctions,
        holds: Holds,
        headers: Sequence[tuple[HostFunctions, Callable[[], CalledPointers]]] = (),
    ) -> None:
        self._plain = text.plain
        self._functions = functions
        self._holds = holds
        self._known = ((functions, lambda: self), *headers)

    def returned(self, text: str, calls: int = _MOST_CALLS) -> list[str]:
        """What a call may return, in the caller's words; the text itself where it is no call of these."""
        text = text.strip()
        found = _CALL.match(text)
        if found is None or not calls or closings(text, "()").get(found.end() - 1) != len(text) - 1:
            return [text]
        arguments = [a.strip() for a in whole_arguments(text[found.end() : -1])]
        values = (
            value
            for functions, told in self._known
            for function in functions.named(found[1])
            if not function.member and function.takes(len(arguments))
            for said in told().values(function, arguments)
            for value in self.returned(said, calls - 1)
        )
        return list(itertools.islice(dict.fromkeys(values), _MOST_RETURNS)) or [text]

    def values(self, function: HostFunction, arguments: Sequence[str]) -> Iterator[str]:
        """What a function of this file returns, in its caller's words."""
        for match in _RETURN.finditer(self._plain, function.body, function.end):
            value, place = match[1].strip(), match.start()
            fields = list(self._holds.fields(value, place)) if value.isidentifier() else []
            if fields:
                value = "{" + ", ".join(_designated(*field) for field in fields) + "}"
            yield self._said(value, function, arguments, place)

    def filled(self) -> Iterator[Filled]:
        """What the calls of the file store through their arguments."""
        for functions, told in self._known:
            for name in self._functions.used():
                for function in functions.named(name):
                    if function.parameters and not function.member:
                        yield from self._filled_by(function, told)

    def _filled_by(self, function: HostFunction, told: Callable[[], CalledPointers]) -> Iterator[Filled]:
        stores = list(told().stores(function))
        for call in self._functions.calls(function.name) if stores else ():
            arguments = [a.strip() for a in call.arguments]
            if not function.takes(len(arguments)) or call.begin <= function.closing < call.end:
                continue
            for store in stores:
                target = store.target(arguments[store.position] if store.position < len(arguments) else "")
                if target is not None:
                    said = told()._said(store.value, function, arguments, store.place)
                    yield Filled(target, said, call.end, (call.begin, call.end))

    def stores(self, function: HostFunction) -> Iterator[Store]:
        """What a function of the host stores through its parameters."""
        names = [name for name, _ in function.parameters]
        if self._is_device(function):
            return
        for match in _STORE.finditer(self._plain, function.body, function.end):
            reference = match["reference"]
            name = reference or match["at"] or match["record"]
            if name not in names or (reference and names.index(name) not in function.references):
                continue  # a copy of the function's own
            field = match["field"] or match["part"]
            value = match["value"].strip()
            yield Store(names.index(name), field, value, match.start(), not reference)

    def _is_device(self, function: HostFunction) -> bool:
        """Whether it is no function of the host."""
        first = max(0, function.opening - _HEAD)
        first = max(first, *(self._plain.rfind(c, first, function.opening) for c in ";}"))
        head = self._plain[first : function.opening]
        return _DEVICE.search(head) is not None and "__host__" not in head

    def _said(self, text: str, function: HostFunction, arguments: Sequence[str], place: int) -> str:
        """An expression of a function as its caller would write it."""
        given = [*arguments, *(default for _, default in function.parameters[len(arguments) :])]
        known = dict(zip((name for name, _ in function.parameters), given, strict=False))
        own = self._plain[function.body : function.end]

        def word(match: re.Match[str], steps: int = _MOST_CALLS) -> str:
            name, leads = match[0], _leads(match)
            if name in known:
                return _bracketed(known[name], leads)
            value = self._holds.only_value(name, place) if steps else None
            if value is not None and value != name:
                inner = _WORD.sub(lambda m: word(m, steps - 1), value.strip())
                return _bracketed(inner, leads)
            declared = re.search(rf"[\w>*&]\s?\b{name}\s?[=;,\[({{]", own)
            return f"{name}()" if declared is not None else name

        return _WORD.sub(word, text)


def parts_of_record(text: str) -> tuple[str | None, list[tuple[str | int, str]]] | None:
    """``W{d, .n = 4}`` → ``W``, and what its fields are made of, by name or by position."""
    made = _MADE.match(text.strip())
    if made is None:
        return None
    parts: list[tuple[str | int, str]] = []
    for index, part in enumerate(split_arguments(made[2])):
        named = _DESIGNATED.match(part)
        parts.append((named[1], named[2]) if named is not None else (index, part))
    return made[1], parts


def _designated(field: str | int, value: str) -> str:
    return f".{field} = {value}" if isinstance(field, str) else value


def _leads(match: re.Match[str]) -> bool:
    """Whether a sum begins with a name: what it stands for need not be in brackets."""
    text = match.string
    before = _BEFORE.search(text, max(0, match.start() - 2), match.start())
    return before is not None and _BEHIND.match(text, match.end()) is not None


def _bracketed(text: str, leads: bool) -> str:
    return text if _PLAIN.match(text) or (leads and "?" not in text) else f"({text})"
