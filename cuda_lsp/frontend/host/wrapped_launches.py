"""Launches through a macro or a function of the same file: ``LAUNCH(kernel, n)``, ``run(kernel, grid, 256)``.

Each use is read as the launch that it makes: parameters become what the use gives for them, local names of
the body their definitions, names that the body of a macro writes to before the launch what it writes.
Macros of other files and functions that are handed on twice are not followed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from cuda_lsp.frontend.host.definitions import assigned, writes_of
from cuda_lsp.frontend.host.text import HostText, split_arguments, whole_arguments
from cuda_lsp.frontend.host.written_launches import KERNEL, Written, every_launch

_DIRECTIVE = re.compile(r"^[ \t]?#[^\n\\]*(?:\\\n?[^\n\\]*)*", re.M)
_MACRO = re.compile(r"\A[ \t]?#[ \t]?define[ \t](\w+)(?:\(([^()]*)\))?(.*)\Z", re.S)
_FUNCTION = re.compile(r"\b(?:auto\s(?P<lambda>\w+)\s?=\s?\[[^\[\]]*\]|(?P<function>\w+))\s?(?=\()")
_USE = re.compile(r"(?<![\w.>])(\w+)\s?(?:<[^<>;(){}]*>\s?)?\(")
_LOCAL = re.compile(
    r"\b(?:const\s)?(?:dim3|int|unsigned(?:\sint)?|size_t|auto|uint32_t|int64_t)\s(\w+)\s?"
    r"(?:=\s?([^;]{1,400});|[({]([^;]{0,400})[)}]\s?;)"
)
_WORD = re.compile(r"(?<![\w.>:])[A-Za-z_]\w*")
_PLACE = re.compile(r"(?<![\w.>:])[A-Za-z_]\w*(?:\s?\.\s?[xyz]\b)?")
_LOOP = re.compile(r"\b(?:for|while)\s?\([^{}]{0,400}\)\s?\Z")
_LONGEST_HEAD = 400  # of a loop
_UNKNOWN = "__cuda_lsp_unknown"
_DECLARES = re.compile(r"\w\s\Z")
_BETWEEN = re.compile(r"\A\)\s?(?:(?:mutable|const|noexcept)\s?)*(?:->[\w\s:<>*&]+)?\Z")
_POINTER = re.compile(r"\(\s?[*&]+\s?(\w+)\s?\)")
_JOINED = re.compile(r"\s?##\s?")
_ANY_WORD = re.compile(r"\w+")
_CALLED = re.compile(r"\b(\w+)\s?\(")
_NESTED = 3  # macros that use macros
_FURTHEST = 8000  # characters from a function's name to a launch in it
_MOST_EXPANDED = 1 << 20  # characters that macros may expand to, in one file
_MOST_USES = 10_000  # launches by way of macros or of functions, in one file


@frozen
class Use:
    """A launch that a use of a macro or a function makes; ``begin`` and ``end`` are that use's offsets."""

    launch: Written
    begin: int
    end: int


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
        text = _ANY_WORD.sub(lambda word: values.get(word[0], word[0]), self.body)
        return _JOINED.sub("", text)


# ----------------------------------------------------------------------------------------- macros


def uses_of_macros(host: HostText) -> tuple[list[Use], list[tuple[int, int]]]:
    """Every launch that a macro makes where it is used, and where the macros that are used stand."""
    found: list[Use] = []
    if "define" not in host.plain:
        return found, []
    directives = [match.span() for match in _DIRECTIVE.finditer(host.plain)]
    macros = _launching(host.plain, directives)
    if not macros:
        return found, []
    budget = _Budget()
    spans = dict(directives)
    used: dict[int, int] = {}
    for begin, end, before, text, first in _expansions(host, macros, _NESTED, budget):
        if _outside(directives, begin):
            used[first] = spans[first]
            for launch in _launches(before, text):
                if not budget.take():
                    return found, list(used.items())
                found.append(Use(launch, begin, end))
    return found, list(used.items())


def _outside(spans: Sequence[tuple[int, int]], place: int) -> bool:
    index = bisect_right(spans, place, key=lambda span: span[0]) - 1
    return index < 0 or place >= spans[index][1]


class _Budget:
    """What is left of a file's expansions."""

    def __init__(self) -> None:
        self.characters = _MOST_EXPANDED
        self._uses = _MOST_USES

    def take(self) -> bool:
        """One more use, while there are any."""
        self._uses -= 1
        return self._uses >= 0


_Macros = Mapping[str, Sequence[_Macro]]
"""By name, each as often as it is defined, in order."""


def _launching(plain: str, directives: Sequence[tuple[int, int]]) -> _Macros:
    """Macros whose text has a launch, or uses one that has."""
    every: dict[str, list[_Macro]] = {}
    for first, last in directives:
        match = _MACRO.match(plain[first:last])
        if match is not None:
            body = match[3].replace("\\\n", " ")
            names = None if match[2] is None else [p.strip() for p in match[2].split(",")]
            every.setdefault(match[1], []).append(_Macro(first, names, body, len(_ANY_WORD.findall(body))))
    found = {name for name, known in every.items() if any("<<<" in macro.body for macro in known)}
    for _ in range(_NESTED if found else 0):
        uses = _uses_of(found)
        found |= {name for name, known in every.items() if any(uses.search(macro.body) for macro in known)}
    return {name: every[name] for name in found}


def _uses_of(names: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(sorted(names))})\b(\s?\()?")


def _expansions(
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
            inside = _expansions(HostText(expanded), macros, depth - 1, budget, place)
            yield from (
                (place, end + 1, before + behind, inner, first) for _, _, behind, inner, first in inside
            )


def _launches(before: str, text: str) -> Iterator[Written]:
    """The launches in ``text``, which stands behind ``before``."""
    before = f"; {before}\n"
    first, host = len(HostText(before).plain) - 1, HostText(before + text)
    for start, launch in every_launch(host):
        if start >= first:
            made = _with_writes(launch, host, start)
            yield _with_locals(made, host.plain[max(0, start - _FURTHEST) : start])


def _with_writes(launch: Written, host: HostText, start: int) -> Written:
    """Names in the configuration with the values that the text before the launch writes to them."""
    names = {word[0] for part in launch.configuration for word in _WORD.finditer(part)}
    every = writes_of(host.plain[:start])
    writes = sorted((w.position, name, w) for name in names & every.keys() for w in every[name])
    values: dict[str, str] = {}
    for position, name, write in writes:
        if _DECLARES.search(host.plain, max(0, position - 20), position):
            continue  # it is a local name
        value = assigned(host.plain, write) if _comes_by_once(host, position, start) else None
        value = _UNKNOWN if value is None else _written_to(value, values)
        if write.axis is None:
            values = {place: v for place, v in values.items() if place.partition(".")[0] != name}
        values[f"{name}.{write.axis}" if write.axis else name] = value
    return evolve(launch, configuration=[_whole(part, values) for part in launch.configuration])


def _comes_by_once(host: HostText, position: int, start: int) -> bool:
    """Whether what is at ``start`` comes by a statement before it, and by it once, as far as braces tell."""
    brace = host.braces.begin(position)
    if host.braces.end(position) < start:
        return False
    while brace >= 0 and not _LOOP.search(host.plain, max(0, brace - _LONGEST_HEAD), brace):
        brace = host.braces.begin(brace - 1)
    return brace < 0


def _whole(part: str, values: Mapping[str, str]) -> str:
    """A part of the configuration, a ``dim3`` taken to pieces where one of them was written to."""
    name = part.strip()
    axes = [f"{name}.{axis}" for axis in "xyz"]
    if not values.keys().isdisjoint(axes):
        return f"dim3({', '.join(_written_to(axis, values) for axis in axes)})"
    return values[name] if name in values else _written_to(part, values)


def _written_to(text: str, values: Mapping[str, str]) -> str:
    def value(place: re.Match[str]) -> str:
        written = place[0].replace(" ", "")
        otherwise = _UNKNOWN if written.partition(".")[0] in values else place[0]
        return f"({values[written]})" if written in values else otherwise

    return _PLACE.sub(value, text)


# -------------------------------------------------------------------------------------- functions


def uses_of_functions(host: HostText, launches: Sequence[Written]) -> Iterator[Use]:
    """Launches of a kernel that a function was given, at every call of the function."""
    calls: dict[str, list[tuple[int, int]]] | None = None
    left = _MOST_USES
    for launch in launches:
        header = _function_around(host, launch)
        if header is None:
            continue
        name, parameters, body = header
        first = max(body, launch.begin - _FURTHEST)
        inside = _with_locals(launch, host.plain[first : launch.begin])
        if calls is None:
            calls = _calls(host)
        for begin, opening in calls.get(name, ()):
            end = host.closing(opening)
            if end < 0 or host.plain[end + 1 : end + 3].lstrip()[:1] == "{" or begin <= body <= end + 80:
                continue
            made = _called(inside, parameters, whole_arguments(host.plain[opening + 1 : end]))
            left -= 1
            if left < 0:
                return
            if made is not None:
                yield Use(made, begin, end + 1)


def _calls(host: HostText) -> dict[str, list[tuple[int, int]]]:
    """Where each function is called, or declared, and the parenthesis there."""
    found: dict[str, list[tuple[int, int]]] = {}
    for match in _USE.finditer(host.plain):
        found.setdefault(match[1], []).append((match.start(), match.end() - 1))
    return found


def _function_around(host: HostText, launch: Written) -> tuple[str, list[str], int] | None:
    """The function with a parameter that is launched: its name, its parameters, where its body begins."""
    plain, first = host.plain, max(0, launch.begin - _FURTHEST)
    if not re.search(rf"[*&\s]{launch.kernel}\s?[,)]", plain[first : launch.begin]):
        return None
    found: tuple[str, list[str], int] | None = None
    for match in _FUNCTION.finditer(plain, first, launch.begin):
        closing = host.closing(match.end())
        body = plain.find("{", closing, launch.begin) if closing > 0 else -1
        if body < 0 or not _BETWEEN.match(plain[closing:body]):
            continue
        if host.braces.closing.get(body, len(plain)) < launch.begin:
            continue
        names = [_parameter(p) for p in split_arguments(plain[match.end() + 1 : closing])]
        if launch.kernel in names:
            found = match["lambda"] or match["function"], names, body
    return found


def _parameter(text: str) -> str:
    """``float* data`` → ``data``; ``void (*kernel)(int)`` → ``kernel``; ``Args&&... args`` → ``...args``."""
    pointer = _POINTER.search(text)
    if pointer:
        return pointer[1]
    words = _ANY_WORD.findall(text.split("=")[0].split("[")[0])
    return ("..." if "..." in text else "") + (words[-1] if words else "")


def _called(launch: Written, parameters: Sequence[str], arguments: Sequence[str]) -> Written | None:
    """The launch with what a call gives for the function's parameters."""
    values = dict(zip(parameters, map(str.strip, arguments), strict=False))
    rest = list(arguments[len(parameters) - 1 :]) if parameters and parameters[-1][:3] == "..." else []
    kernel = KERNEL.match(values.get(launch.kernel, ""))
    if kernel is None:
        return None
    given: list[str] = []
    for argument in launch.arguments:
        given += rest if "..." in argument else [_replaced(argument, values)]
    configuration = [_replaced(part, values) for part in launch.configuration]
    return evolve(
        launch, kernel=kernel[1], template_arguments=kernel[2], configuration=configuration, arguments=given
    )


def _replaced(text: str, values: Mapping[str, str]) -> str:
    if text.strip() in values:
        return values[text.strip()]
    return _WORD.sub(lambda word: f"({values[word[0]]})" if word[0] in values else word[0], text)


def _with_locals(launch: Written, before: str) -> Written:
    """Names in the configuration, and in template arguments, that the text before the launch defines.

    They are replaced by their definitions.
    """
    values = {m[1]: (m[2] or m[3]).strip() for m in _LOCAL.finditer(before)}
    values = {
        name: f"dim3({v})" if "," in v and not v.startswith("dim3") else v for name, v in values.items()
    }
    if not values:
        return launch
    configuration = [_replaced(_replaced(part, values), values) for part in launch.configuration]
    template = launch.template_arguments
    parts = [_replaced(part, values) for part in split_arguments(template or "")]
    return evolve(
        launch, configuration=configuration, template_arguments=", ".join(parts) if template else template
    )


__all__ = ["Use", "uses_of_functions", "uses_of_macros"]
