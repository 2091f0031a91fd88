"""What macros of a text expand to where they are used: those whose text, or that of macros in it, is wanted.

Macros of other files are not followed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from cuda_lsp.frontend.host.text import HostText, split_arguments

_DIRECTIVE = re.compile(r"^[ \t]?#[^\n\\]*(?:\\\n?[^\n\\]*)*", re.M)
_MACRO = re.compile(r"\A[ \t]?#[ \t]?define[ \t](\w+)(?:\(([^()]*)\))?(.*)\Z", re.S)
_JOINED = re.compile(r"\s?##\s?")
_WORD = re.compile(r"\w+")
_NESTED = 3  # macros that use macros
_MOST_EXPANDED = 1 << 20  # characters that macros may expand to, in one file


@frozen
class Expansion:
    """A use of a macro: from ``begin`` to ``end``. ``before``: the text of macros before its own ``text``.

    ``defined``: where the macro that the file names there stands, to behind its last character.
    """

    begin: int
    end: int
    before: str
    text: str
    defined: tuple[int, int]


@frozen
class _Macro:
    """``parameters`` None: it is used by its name alone. ``begin``: where it is defined."""

    begin: int
    parameters: Sequence[str] | None
    body: str
    names: int
    """Words of the body, each of which may be a parameter."""

    def expanded(self, arguments: Sequence[str]) -> str:
        values = dict(zip(self.parameters or (), map(str.strip, arguments), strict=False))
        if self.parameters and self.parameters[-1] == "...":
            values["__VA_ARGS__"] = ",".join(arguments[len(self.parameters) - 1 :])
        longest = max(map(len, values.values()), default=0)
        if self.names * longest > _MOST_EXPANDED:
            return ""
        text = _WORD.sub(lambda word: values.get(word[0], word[0]), self.body)
        return _JOINED.sub("", text)


_Macros = Mapping[str, Sequence[_Macro]]
"""By name, each as often as it is defined, in order."""


class _Budget:
    """What is left of a file's expansions."""

    def __init__(self) -> None:
        self.characters = _MOST_EXPANDED


def expansions(host: HostText, wanted: re.Pattern[str]) -> Iterator[Expansion]:
    """The uses, outside of directives, of macros in whose text ``wanted`` is found, or which use such."""
    if "define" not in host.plain:
        return
    directives = [match.span() for match in _DIRECTIVE.finditer(host.plain)]
    macros = _macros(host.plain, directives, wanted)
    if not macros:
        return
    spans = dict(directives)
    for begin, end, before, text, first in _uses(host, macros, _NESTED, _Budget()):
        if _is_outside(directives, begin):
            yield Expansion(begin, end, before, text, (first, spans[first]))


def _is_outside(spans: Sequence[tuple[int, int]], place: int) -> bool:
    index = bisect_right(spans, place, key=lambda span: span[0]) - 1
    return index < 0 or place >= spans[index][1]


def _macros(plain: str, directives: Sequence[tuple[int, int]], wanted: re.Pattern[str]) -> _Macros:
    every: dict[str, list[_Macro]] = {}
    for first, last in directives:
        match = _MACRO.match(plain[first:last])
        if match is not None:
            body = match[3].replace("\\\n", " ")
            names = None if match[2] is None else [p.strip() for p in match[2].split(",")]
            every.setdefault(match[1], []).append(_Macro(first, names, body, len(_WORD.findall(body))))
    found = {name for name, known in every.items() if any(wanted.search(macro.body) for macro in known)}
    for _ in range(_NESTED if found else 0):
        uses = _uses_of(found)
        found |= {name for name, known in every.items() if any(uses.search(macro.body) for macro in known)}
    return {name: every[name] for name in found}


def _uses_of(names: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(sorted(names))})\b(\s?\()?")


def _uses(
    host: HostText, macros: _Macros, depth: int, budget: _Budget, at: int | None = None
) -> Iterator[tuple[int, int, str, str, int]]:
    """Of each use: where it begins and ends, the text of macros before its own, and where its is defined.

    ``at``: the place that ``host`` is the expansion of; None: it is the file.
    """
    for match in _uses_of(macros).finditer(host.plain):
        known = macros[match[1]]
        index = bisect_right(known, match.start() if at is None else at, key=lambda macro: macro.begin)
        macro = known[max(0, index - 1)]
        called = macro.parameters is not None
        end = (host.closing(match.end() - 1) if match[2] else -1) if called else match.end(1) - 1
        if end < 0:
            continue
        given = split_arguments(host.plain[match.end() : end]) if called else []
        expanded = macro.expanded(given)
        budget.characters -= len(expanded)
        if budget.characters < 0:
            return
        place = match.start() if at is None else at
        before = "" if at is None else host.plain[: match.start()]
        yield place, end + 1, before, expanded, macro.begin
        if depth:
            inside = _uses(HostText(expanded), macros, depth - 1, budget, place)
            yield from (
                (place, end + 1, before + behind, inner, first) for _, _, behind, inner, first in inside
            )
