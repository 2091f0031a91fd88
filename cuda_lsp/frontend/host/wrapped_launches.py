"""Launches through a macro, or a function of the file: ``LAUNCH(kernel, n)``, ``run(kernel, grid, 256)``.

Each use is read as the launch that it makes: parameters become what the use gives for them, local names of
the body their definitions, names that the body of a macro writes to before the launch what it writes.
Functions that are handed on twice are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from cuda_lsp.frontend.host.definitions import assigned, writes_of
from cuda_lsp.frontend.host.guards import comparisons
from cuda_lsp.frontend.host.host_constants import HostConstants
from cuda_lsp.frontend.host.macro_uses import expansions, uses_of, wanted_macros
from cuda_lsp.frontend.host.text import HostText, split_arguments, whole_arguments
from cuda_lsp.frontend.host.written_launches import KERNEL, Written, every_launch, last_kernel

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
_LAUNCH = re.compile("<<<")
_AROUND = "void made() {"  # what a macro's text is part of where it is used
_CONDITION = re.compile(r"\bif\s?\(|\bfor\s?\(")
_UNKNOWN = "__cuda_lsp_unknown"
_DECLARES = re.compile(r"\w\s\Z")
_BETWEEN = re.compile(r"\A\)\s?(?:(?:mutable|const|noexcept)\s?)*(?:->[\w\s:<>*&]+)?\Z")
_POINTER = re.compile(r"\(\s?[*&]+\s?(\w+)\s?\)")
_ANY_WORD = re.compile(r"\w+")
_CALLED = re.compile(r"\b(\w+)\s?\(")
_FURTHEST = 8000  # characters from a function's name to a launch in it
_MOST_USES = 10_000  # launches by way of macros or of functions, in one file


@frozen
class Use:
    """A launch that a use of a macro or a function makes; ``begin`` and ``end`` are that use's offsets."""

    launch: Written
    begin: int
    end: int


# ----------------------------------------------------------------------------------------- macros


def launches_by_macros_of(headers: Sequence[HostText], text: str) -> bool:
    """Whether a text uses a macro of a header that launches."""
    macros = wanted_macros((HostText(""), *headers), _LAUNCH)
    return bool(macros) and uses_of(macros).search(text) is not None


def uses_of_macros(host: HostText, headers: Sequence[HostText]) -> tuple[list[Use], list[tuple[int, int]]]:
    """Every launch that a macro makes where it is used, and where those of the file that are used stand."""
    found: list[Use] = []
    used: dict[tuple[int, int], None] = {}
    for use in expansions(host, _LAUNCH, headers):
        if use.defined is not None:
            used[use.defined] = None
        for launch in _launches(use.before, use.text):
            if len(found) == _MOST_USES:
                return found, list(used)
            found.append(Use(launch, use.begin, use.end))
    return found, list(used)


def _launches(before: str, text: str) -> Iterator[Written]:
    """The launches in ``text``, which stands behind ``before``."""
    before = f"{_AROUND}; {before}\n"
    open_braces = "}" * max(0, (before + text).count("{") - (before + text).count("}"))
    first, host = len(HostText(before).plain) - 1, HostText(before + text + open_braces)
    for start, launch in every_launch(host):
        if start >= first:
            made = evolve(_with_writes(launch, host, start), conditions=_conditions(host, start))
            yield _with_locals(made, host.plain[max(0, start - _FURTHEST) : start])


def _conditions(host: HostText, start: int) -> tuple[str, ...]:
    """What holds in a macro's text where the launch stands, but for what hangs on names of its own."""
    if _CONDITION.search(host.plain, 0, start) is None:
        return ()
    constants = host.kept(HostConstants)
    own = {name for name, _ in constants.defined_between(0, start)}
    own |= {name for name, _ in constants.written_between(0, start)}
    held = (text for text, _ in comparisons(host, constants, start))
    return tuple(text for text in held if own.isdisjoint(_WORD.findall(text)))


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
    given_for = values.get(launch.kernel, "")
    plain, chosen = KERNEL.match(given_for), "?" in given_for
    kernel = last_kernel(given_for) if chosen else plain and (plain[1], plain[2])
    if kernel is None:
        return None
    given: list[str] = []
    for argument in launch.arguments:
        given += rest if "..." in argument else [_replaced(argument, values)]
    configuration = [_replaced(part, values) for part in launch.configuration]
    return evolve(
        launch,
        kernel=kernel[0],
        template_arguments=kernel[1],
        configuration=configuration,
        arguments=given,
        held=given_for if chosen else "",
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


__all__ = ["Use", "launches_by_macros_of", "uses_of_functions", "uses_of_macros"]
