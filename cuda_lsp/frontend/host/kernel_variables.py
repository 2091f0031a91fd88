"""Kernels that host code holds before it launches them: in variables, tables, fields, and functions' results.

``auto kernel = wide ? rows<4> : rows<1>; kernel<<<…>>>(…)`` launches either. What may be held is followed by
names, within the scopes of variables, whatever conditions lie on the way: each kernel that a name may stand
for has the launch. What is handed to a function is followed in ``wrapped_launches``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import frozen

from cuda_lsp.frontend.host.host_functions import HostFunctions
from cuda_lsp.frontend.host.text import HostText, closings

_MOST_NAMES = 200  # that one launch is followed over
_LONGEST_VALUE = 4000
_LONGEST_TEMPLATE = 400
_DECLARATOR = re.compile(
    r"\s?(?:\[[^\[\];{}]{0,100}\]\s?){0,3}(?:\)\s?\([^;{}]{0,1000}?\)\s?)?(?P<begin>=(?!=)|\{)\s?"
)
_FIELD = re.compile(r"(?:\.|->)\s?\Z")
_DECLARED = re.compile(r"(?:[\w>]\s|[*&]\s?)\Z")
_STATEMENT = re.compile(r"(?<!\w)(?:return|else|case|do)\s?\Z")
_RETURN = re.compile(r"(?<!\w)return\b([^;]{0,1000});")
_VALUE = re.compile(r"(?<![\w+/%])(?<![+/%-]\s)(?<!\w\s\*\s)[A-Za-z_]\w*\b(?!\s?(?:[+*/%=?]|-(?!>)|&&|\|\|))")
"""A name with which nothing is computed, and on which nothing hangs."""
_CALL = re.compile(r"(?<!_cast)(?<=\w)\s?\(")
_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_NO_NAMES = frozenset({
    "auto", "bool", "case", "char", "const", "const_cast", "default", "else", "false", "float", "for", "if",
    "int", "nullptr", "reinterpret_cast", "return", "signed", "sizeof", "static", "static_cast", "struct",
    "switch", "true", "unsigned", "using", "void", "while",
})  # fmt: skip


Names = Mapping[str, tuple[str | None, ...]]
"""Names that may stand for kernels, and the template arguments that stand behind each, or None."""


@frozen
class _Held:
    """What a name is given at a position: the names in its value, and where that may be seen."""

    begin: int
    end: int
    position: int
    names: Names

    @property
    def local(self) -> bool:
        """A variable of a block is declared, which is seen from here on and hides others of its name."""
        return self.begin == self.position


class KernelVariables:
    """Of one text."""

    def __init__(self, host: HostText, functions: HostFunctions) -> None:
        self._host = host
        self._functions = functions
        self._given: dict[str, tuple[_Held, ...]] = {}

    def held(self, kernel: str, at: int) -> Names:
        """What else an expression in a kernel's place may stand for, looked at from ``at``: names of kernels
        among others."""
        found = dict(_names(kernel))
        pending = [(name, at) for name in found]
        while pending and len(found) < _MOST_NAMES:
            name, place = pending.pop()
            for names, where in self._of(name, place):
                pending += ((other, where) for other in names if other not in found)
                for other, templates in names.items():
                    found[other] = tuple(dict.fromkeys((*found.get(other, ()), *templates)))
        whole = kernel.strip()
        return {name: templates for name, templates in found.items() if name != whole}

    def _of(self, name: str, at: int) -> Iterator[tuple[Names, int]]:
        if name not in self._given:
            self._given[name] = tuple(self._values(name))
        seen = [each for each in self._given[name] if each.begin <= at < each.end]
        hidden = max((each.position for each in seen if each.local), default=-1)
        yield from ((each.names, each.position) for each in seen if each.position >= hidden)
        for function in self._functions.named(name):
            body = self._host.plain[function.body : function.end]
            for value in _RETURN.finditer(body):
                yield _names(value[1]), function.body + value.start()

    def _values(self, name: str) -> Iterator[_Held]:
        plain, begin = self._host.plain, -1
        while (begin := plain.find(name, begin + 1)) >= 0:
            end = begin + len(name)
            declarator = _DECLARATOR.match(plain, end)
            if declarator is None or (begin and (plain[begin - 1].isalnum() or plain[begin - 1] == "_")):
                continue
            head = plain[max(0, begin - 40) : begin]
            field, declared = _FIELD.search(head), _DECLARED.search(head) and not _STATEMENT.search(head)
            if declarator["begin"] == "{" and (field or not declared):
                continue
            names = _names(self._value(declarator.start("begin"), declarator.end()))
            if names:
                yield _Held(*self._scope(begin, bool(field), bool(declared)), begin, names)

    def _value(self, sign: int, begin: int) -> str:
        """The text that a name is given, up to its statement's end."""
        plain, depth = self._host.plain, int(self._host.plain[sign] == "{")
        for i in range(begin, min(len(plain), begin + _LONGEST_VALUE)):
            depth += _BRACKETS.get(plain[i], 0)
            if depth < 0 or (plain[i] == ";" and depth == 0):
                return plain[begin:i]
        return ""

    def _scope(self, position: int, field: bool, declared: bool) -> tuple[int, int]:
        """Where what a name is given may be seen: of fields, and of what is declared outside, anywhere."""
        function = self._functions.around(position)
        if field or function is None:
            return 0, len(self._host.plain)
        if not declared:
            return function.body, function.end
        return position, min(self._host.braces.end(position), function.end)


def _names(value: str) -> Names:
    """The names in a value that may stand for a kernel; what a call returns is not its argument."""
    closing = closings(value, "()")
    pieces: list[str] = []
    done = 0
    for call in _CALL.finditer(value):
        if call.start() >= done:
            pieces.append(value[done : call.start()])
            done = closing.get(call.end() - 1, len(value))
    pieces.append(value[done:])
    found: dict[str, tuple[str | None, ...]] = {}
    for piece in pieces:
        for word in _VALUE.finditer(piece):
            if word[0] not in _NO_NAMES:
                templates = (*found.get(word[0], ()), _template_behind(piece, word.end()))
                found[word[0]] = tuple(dict.fromkeys(templates))
    return found


def _template_behind(value: str, place: int) -> str | None:
    """The template arguments that stand behind a name there; None: there are none."""
    opening = value.find("<", place, place + 2)
    if opening < 0 or value[place:opening].strip():
        return None
    depth = 0
    for i in range(opening, min(len(value), opening + _LONGEST_TEMPLATE)):
        depth += {"<": 1, ">": -1}.get(value[i], 0)
        if depth == 0:
            return value[opening + 1 : i].strip()
    return None
