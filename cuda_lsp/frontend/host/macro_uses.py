"""What macros expand to where a text uses them: those whose text, or that of macros in it, is wanted."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve, frozen

from cuda_lsp.frontend.host.macros import DIRECTIVE, MOST_EXPANDED, Macro, Macros
from cuda_lsp.frontend.host.text import HostText, split_arguments

_NESTED = 3  # macros that use macros
_ELSEWHERE = -1  # where a macro of another file is defined: before all of this one


@frozen
class Expansion:
    """A use of a macro: from ``begin`` to ``end``. ``before``: the text of macros before its own ``text``.

    ``defined``: where the macro that the file names there stands, to behind its last character; None: in
    another file.
    """

    begin: int
    end: int
    before: str
    text: str
    defined: tuple[int, int] | None


class _Budget:
    """What is left of a file's expansions."""

    def __init__(self) -> None:
        self.characters = MOST_EXPANDED


def expansions(
    host: HostText, wanted: re.Pattern[str], headers: Sequence[HostText] = ()
) -> Iterator[Expansion]:
    """The uses, outside of directives, of macros in whose text ``wanted`` is found, or which use such.

    ``headers``: the files that the text includes.
    """
    macros = wanted_macros((host, *headers), wanted)
    if not macros:
        return
    directives = [match.span() for match in DIRECTIVE.finditer(host.plain)]
    spans = dict(directives)
    for begin, end, before, text, first in _uses(host, macros, _NESTED, _Budget()):
        if _is_outside(directives, begin):
            defined = None if first == _ELSEWHERE else (first, spans[first])
            yield Expansion(begin, end, before, text, defined)


def _is_outside(spans: Sequence[tuple[int, int]], place: int) -> bool:
    index = bisect_right(spans, place, key=lambda span: span[0]) - 1
    return index < 0 or place >= spans[index][1]


def wanted_macros(texts: Sequence[HostText], wanted: re.Pattern[str]) -> Macros:
    """The macros of a text, and of headers behind it, in which ``wanted`` is found, or that use such."""
    if not any(text.defines(wanted) for text in texts):
        return {}
    every = _together(texts)
    found = {name for name, known in every.items() if any(wanted.search(macro.body) for macro in known)}
    for _ in range(_NESTED if found else 0):
        uses = uses_of(found)
        found |= {name for name, known in every.items() if any(uses.search(macro.body) for macro in known)}
    return {name: every[name] for name in found}


def _all_of(macros: Macros) -> Iterator[Macro]:
    return (macro for known in macros.values() for macro in known)


def _together(texts: Sequence[HostText]) -> Macros:
    """All macros by name: of the first text, else of the others where these agree."""
    own, *headers = (text.macros for text in texts)
    found: dict[str, list[Macro]] = {}
    for macro in (macro for header in headers for macro in _all_of(header)):
        found.setdefault(macro.name, []).append(evolve(macro, begin=_ELSEWHERE))
    agreed = {name: known[:1] for name, known in found.items() if all(map(known[0].is_like, known))}
    return {**agreed, **own}


def uses_of(names: Iterable[str]) -> re.Pattern[str]:
    """Finds uses of macros: the name, and the parenthesis behind it."""
    return re.compile(rf"\b({'|'.join(sorted(names))})\b(\s?\()?")


def _uses(
    host: HostText, macros: Macros, depth: int, budget: _Budget, at: int | None = None
) -> Iterator[tuple[int, int, str, str, int]]:
    """Of each use: where it begins and ends, the text of macros before its own, and where its is defined.

    ``at``: the place that ``host`` is the expansion of; None: it is the file.
    """
    for match in uses_of(macros).finditer(host.plain):
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
