"""Which element an access names, as far as its text tells: its index, and what that hangs on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from attrs import define, field, frozen

from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Statement

_ID = re.compile(r"\b(threadIdx|blockIdx)\s*\.\s*([xyz])\b")
_OF_GROUPS = re.compile(r"\b\w+(?:\(\))?\s*\.\s*(thread|group)_index\s*\(\s*\)\s*\.\s*([xyz])\b")
_CALL = re.compile(r"\b(?!sizeof\b|min\b|max\b)[A-Za-z_]\w*\s*(?:<[^<>;()]*>\s*)?\(")
_MEMORY = re.compile(r"\[|->|(?:^|[-+*/%&|(=,?:])\s*\*\s*[A-Za-z_(]|\batomic\w*\s*\(")
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_READ = re.compile(r"(?<![\w.)\]])\*\s*([A-Za-z_]\w*)|\b([A-Za-z_]\w*)\s*(?:\[|->)")
_DEEPEST = 3
_IDS = {"thread": "threadIdx", "group": "blockIdx"}


@define
class Names:
    """The names of one function and what is written to them."""

    source: Source
    function: Statement
    _known: dict[str, list[str]] = field(factory=dict[str, list[str]])

    @cached_property
    def _body(self) -> str:
        return self.source.plain[self.function.start : self.function.end]

    def values(self, name: str) -> list[str]:
        """All that is written to a name, anywhere in the function."""
        if name not in self._known:
            step = re.search(rf"(?:\+\+|--)\s*{name}\b|\b{name}\s*(?:\+\+|--)", self._body)
            change = rf"(?<![\w.])(?<!->){name}\s*(?:<<|>>|[-+*/%&|^])?=(?!=)\s*"
            found = [self._value(match.end()) for match in re.finditer(change, self._body)]
            self._known[name] = [*found, *(["0"] if step else [])]
        return self._known[name]

    def stores_to(self, name: str) -> bool:
        """Whether the function writes elements of an array, or what a pointer points to, plainly."""
        element = rf"\b{name}\s*\[(?:[^][;={{}}]|\[[^][]*\])*\]|(?<![\w)\]])\*\s*{name}\b"
        return re.search(rf"(?:{element})\s*(?:<<|>>|[-+*/%&|^])?=(?!=)", self._body) is not None

    def _value(self, at: int) -> str:
        """From here to the comma or semicolon that ends it."""
        depth = 0
        for end in range(at, min(len(self._body), at + 400)):
            letter = self._body[end]
            if depth == 0 and letter in ",;)":
                return self._body[at:end].strip()
            depth += (letter in "([{") - (letter in ")]}")
        return self._body[at : at + 400]

    def resolved(self, expression: str, depth: int = _DEEPEST) -> str:
        """An expression with names written out that are given one value, when they are declared."""
        if depth == 0:
            return expression

        def written_out(match: re.Match[str]) -> str:
            values = self.values(match[0])
            declared = re.search(rf"[\w>*&]\s+{match[0]}\s*=|,\s*{match[0]}\s*=", self._body)
            if len(values) != 1 or not declared or values[0].startswith("{"):
                return match[0]
            return f"({self.resolved(values[0], depth - 1)})"

        return _NAME.sub(written_out, expression)

    def origins(self, expression: str) -> Origins:
        """What the value of an expression comes from, over all that is written to its names."""
        pending, seen = [expression], set[str]()
        ids, read = set[str](), set[str]()
        memory = calls = False
        while pending:
            text = _OF_GROUPS.sub(lambda m: f"{_IDS[m[1]]}.{m[2]}", pending.pop())
            ids.update(f"{m[1]}.{m[2]}" for m in _ID.finditer(text))
            memory |= _MEMORY.search(text) is not None
            read.update(first or second for first, second in _READ.findall(text))
            calls |= _CALL.search(text) is not None
            for name in _NAME.findall(text):
                if name not in seen:
                    seen.add(name)
                    pending += self.values(name)
        return Origins(frozenset(ids), memory, calls, frozenset(read))


@frozen
class Origins:
    """``ids``: ``threadIdx.x`` and the like. ``memory``: elements that are read. ``calls``: of functions.

    ``read``: names of arrays and pointers through which memory is read.
    """

    ids: frozenset[str]
    memory: bool
    calls: bool
    read: frozenset[str]


def names_around(source: Source, offset: int) -> Names | None:
    """The names of the function around a place."""
    path = source.statements.path(offset)
    return Names(source, path[0]) if path else None


def subscripts(access: str) -> list[str]:
    """What stands in the brackets behind an access's name, from left to right; ``*p`` has none."""
    return list(_brackets(access))


def _brackets(access: str) -> Iterator[str]:
    depth, begin = 0, 0
    for at, letter in enumerate(access):
        if letter == "[":
            begin = at + 1 if depth == 0 else begin
            depth += 1
        elif letter == "]":
            depth -= 1
            if depth == 0:
                yield access[begin:at]
