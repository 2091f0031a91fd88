"""Small changes that break kernels: what each kind does to the text of a file.

A mutant keeps every line and, where it can, every column: a removed statement becomes ``;`` and blanks.
Kinds: ``barrier`` (a barrier or fence removed), ``atomic`` (an atomic made plain), ``guard`` (a bounds test
always true), ``shift`` (a shared read one further), ``bound`` (``<`` made ``<=``). Comments and strings are
left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import frozen

KINDS = ("barrier", "atomic", "guard", "shift", "bound")


@frozen
class Mutant:
    """One change: ``text[start:end]`` becomes ``new``; ``line`` counts from 1."""

    kind: str
    line: int
    start: int
    end: int
    new: str
    old: str

    def apply(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]


_SILENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", re.DOTALL)
_BARRIER = re.compile(
    r"(?<![\w.:>])(?:__syncthreads|__syncwarp|__threadfence(?:_block|_system)?"
    r"|(?:(?:cg|cooperative_groups)::)?sync|(?:cg::|cooperative_groups::)?this_thread_block\(\)\.sync|\w+\.sync)"
    r"\s*\([^();]*\)\s*;"
)
_ATOMIC = re.compile(
    r"(?<=[;{})])(?P<blank>\s*)atomic(?P<op>Add|Sub)(?:_block|_system)?\s*\((?P<arguments>[^;]*)\)\s*;"
)
_GUARD = re.compile(r"\bif\s*\((?P<test>[^();{}&|]*[\w)\]]\s*<=?\s*[^();{}&|]*)\)")
_SHARED = re.compile(r"__shared__\s[^;=]*?\b(?P<name>\w+)\s*\[")
_LESS = re.compile(r"(?<=[\w)\] ])<(?=[\s\w(])(?![<=])")
_STORED = re.compile(r"\s*(?:\[|=(?!=)|[-+*/|&^]=|\+\+|--)")  # behind a subscript: it is not a read
_CONDITION = re.compile(r"\b(?:if|while)\s*\((?P<if>[^;{}]*)|\bfor\s*\([^;{}]*;(?P<for>[^;{}]*);")


def silenced(text: str) -> str:
    """``text`` with comments and literals blanked; every offset stays."""
    return _SILENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def mutants(text: str) -> Iterator[Mutant]:
    """All mutants of all kinds, in order of the kinds and then of the text."""
    code = silenced(text)
    for find in (_barriers, _atomics, _guards, _shifts, _bounds):
        for kind, start, end, new in find(code):
            old = text[start:end]
            line = text.count("\n", 0, start) + 1
            yield Mutant(kind, line, start, end, new + "\n" * old.count("\n"), " ".join(old.split()))


_Change = tuple[str, int, int, str]


def _barriers(code: str) -> Iterator[_Change]:
    for match in _BARRIER.finditer(code):
        yield "barrier", match.start(), match.end(), ";" + " " * (len(match[0]) - 1 - match[0].count("\n"))


def _atomics(code: str) -> Iterator[_Change]:
    for match in _ATOMIC.finditer(code):
        operands = _split(match["arguments"])
        if len(operands) == 2:
            sign = {"Add": "+", "Sub": "-"}[match["op"]]
            yield "atomic", match.end("blank"), match.end(), f"*({operands[0]}) {sign}= {operands[1]};"


def _split(arguments: str) -> list[str]:
    """The arguments between commas that no bracket encloses; none where brackets do not match."""
    parts, depth = [""], 0
    for letter in arguments:
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            return []
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _guards(code: str) -> Iterator[_Change]:
    for match in _GUARD.finditer(code):
        yield "guard", match.start("test"), match.end("test"), "1".ljust(len(match["test"]))


def _shifts(code: str) -> Iterator[_Change]:
    names = {match["name"] for match in _SHARED.finditer(code)}
    for name in sorted(names):
        for match in re.finditer(rf"(?<![\w.>]){name}\s*\[", code):
            end = _closing(code, match.end())
            before = code[max(0, code.rfind(";", 0, match.start())) : match.start()]
            if end and not _STORED.match(code, end + 1) and "__shared__" not in before:
                yield "shift", match.end(), end, f"({code[match.end() : end]})+1"


def _closing(code: str, start: int) -> int | None:
    depth = 1
    for place in range(start, min(len(code), start + 300)):
        depth += (code[place] == "[") - (code[place] == "]")
        if depth == 0:
            return place
    return None


def _bounds(code: str) -> Iterator[_Change]:
    for condition in _CONDITION.finditer(code):
        group = "if" if condition["if"] else "for"
        for match in _LESS.finditer(condition[group] or ""):
            place = condition.start(group) + match.start()
            yield "bound", place, place + 1, "<="
