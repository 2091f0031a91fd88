"""Whether host code may write to variables, and to what they point to, between two places of a function."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from attrs import frozen

from cuda_lsp.frontend.host.reaching import Reaching
from cuda_lsp.frontend.host.text import HostText, split_arguments
from cuda_lsp.frontend.host.written_launches import Written, every_launch

_NAME = r"[A-Za-z_]\w*"
_PART = r"(?:(?:\.|->)\w+|\[[^\[\];]{0,80}\])"
_ASSIGNED = re.compile(rf"(?<![\w.>])({_NAME}){_PART}{{0,4}}\s?=(?!=)([^;]{{1,600}});")
_MADE = re.compile(rf"[\w>*&]\s({_NAME})\s?[({{]([^;]{{1,600}});")
_GIVEN = re.compile(rf"(?<![\w.>])({_NAME})(?:\.|->)\w+\s?\(([^;]{{1,600}});")
_LED_BY = re.compile(
    rf"\A\s?(?:[a-z]+_cast\s?<[^<>]*>\s?\(\s?|\([^()]*\*\s?\)\s?|&\s?)*({_NAME})\b(?!\s?[(<:])"
)
_COPIED = re.compile(r"\b(?:cudaMemcpy(?:Async)?|\w{0,60}?(?:ToHost|D2H|DtoH)\w{0,60})\s?\(")
_ASKED = re.compile(
    r"\s?\.\s?(?:size|sizes|numel|dim|options|device|dtype|scalar_type|get_device|defined|empty)\s?\("
)
_BREAKS = re.compile(r"[;{}]\s?(?:break|continue)\s?;\s?\Z")
_LONGEST_END = 40
_NO_VARIABLES = frozenset(
    {"NULL", "nullptr", "this", "if", "else", "for", "while", "switch", "return", "new", "delete", "sizeof"}
)
_MOST_ROUNDS = 8


def names_for(host: HostText, begin: int, end: int, variable: str) -> Set[str]:
    """The variable, and what a stretch of the text makes of it or makes it of: they may lead to its memory.

    Rather too many: whatever has the name on the other side of an assignment, or among the arguments of what
    makes it.
    """
    text = host.plain[begin:end]
    made = [
        (m[1], set(re.findall(_NAME, m[2])), _LED_BY.match(m[2]))
        for pattern in (_ASSIGNED, _MADE, _GIVEN)
        for m in pattern.finditer(text)
    ]
    found = {variable}
    for _ in range(_MOST_ROUNDS):
        before = len(found)
        for name, parts, led in made:
            if not found.isdisjoint(parts):
                found.add(name)
            if name in found and led is not None:
                found.add(led[1])
        found -= _NO_VARIABLES
        if len(found) == before:
            break
    return found


@frozen
class Way:
    """From a place ``begin`` of a function to a ``launch`` whose ``<<<`` stands ``at`` a later one.

    What may run in between stands before ``end``, which is behind the launch where that is repeated.
    """

    constants: Reaching
    begin: int
    end: int
    at: int
    launch: Written

    def writes(self, names: Set[str]) -> bool:
        """Whether one of the variables may be another one at the launch."""
        written = self.constants.written_between(self.begin, self.end)
        return any(name in names and self._leads_on(write.position) for name, write in written)

    def may_write_behind(self, names: Set[str]) -> bool:
        """Whether anything but the launch may write to the memory that the names stand for."""
        plain = self.constants.text.plain
        every = "|".join(map(re.escape, sorted(names)))
        named = re.compile(rf"(?<![\w.>:])(?:{every})\b")
        harmless = list(self._harmless(named))
        for use in named.finditer(plain, self.begin, self.end):
            told = any(first <= use.start() < last for first, last in harmless)
            if not told and _ASKED.match(plain, use.end()) is None and self._leads_on(use.start()):
                return True
        return False

    def _harmless(self, named: re.Pattern[str]) -> Iterator[tuple[int, int]]:
        """Stretches that read at most: what is copied from, and launches of the kernel that are like this."""
        host, arguments = self.constants.text, self.launch.arguments
        for start, other in every_launch(host):
            alike = other.kernel == self.launch.kernel and len(other.arguments) == len(arguments)
            if self.begin <= start < self.end and alike:
                pairs = zip(arguments, other.arguments, strict=True)
                if all(mine == theirs for mine, theirs in pairs if named.search(theirs)):
                    yield other.begin, other.end
        for copy in _COPIED.finditer(host.plain, self.begin, self.end):
            closing = host.closing(copy.end() - 1)
            target = split_arguments(host.plain[copy.end() : closing])[0] if closing > 0 else ""
            yield copy.end() + len(target), closing

    def _leads_on(self, place: int) -> bool:
        """Whether who comes by a place may come to the launch before the beginning comes again."""
        host, functions = self.constants.text, self.constants.functions
        if self.end > self.at:
            return True
        around = list(self._blocks_around(place))
        if not all(map(functions.is_branch, around)):
            return True  # of a loop or a lambda: whatever leaves that goes on behind it
        if functions.in_another_branch(place, self.at) or not host.may_come_to(place, self.at):
            return False
        for i, brace in enumerate(around):
            end = host.braces.closing[brace]
            if _BREAKS.search(host.plain, max(brace, end - _LONGEST_END), end) is not None:
                return any(self._is_of_switch(outer) for outer in around[i:])
        return True

    def _blocks_around(self, place: int) -> Iterator[int]:
        """Those that begin and end on the way, the innermost first."""
        braces = self.constants.text.braces
        brace = braces.begin(place)
        while brace > self.begin and braces.closing.get(brace, self.at) < self.at:
            yield brace
            brace = braces.begin(brace - 1)

    def _is_of_switch(self, brace: int) -> bool:
        header = self.constants.functions.header_of(brace)
        return header is not None and header[0] == "switch"
