"""Launches through a macro or a function of the same file: ``LAUNCH(kernel, n)``, ``run(kernel, grid, 256)``.

Each use is read as the launch that it makes: parameters become what the use gives for them, local names of
the body their definitions. Macros of other files and functions that are handed on twice are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from cuda_lsp.frontend.host.host_constants import split_arguments
from cuda_lsp.frontend.host.written_launches import KERNEL, Written, every_launch, matching, whole_arguments

_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^()]*)\)((?:\\\r?\n|[^\n])*)", re.M)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.M)
_FUNCTION = re.compile(r"\b(?:auto\s+(?P<lambda>\w+)\s*=\s*\[[^\]]*\]|(?P<function>\w+))\s*(?=\()", re.S)
_LOCAL = re.compile(
    r"\b(?:const\s+)?(?:dim3|int|unsigned(?:\s+int)?|size_t|auto|uint32_t|int64_t)\s+(\w+)\s*"
    r"(?:=\s*([^;]+);|[({]([^;]*)[)}]\s*;)"
)
_WORD = re.compile(r"(?<![\w.>:])[A-Za-z_]\w*")
_BETWEEN = re.compile(r"\)\s*(?:(?:mutable|const|noexcept)\s*)*(?:->[\w\s:<>*&]+)?")
_NESTED = 3  # macros that use macros
_FURTHEST = 8000  # characters from a function's name to a launch in it


@frozen
class Use:
    """A launch that a use of a macro or a function makes; ``begin`` and ``end`` are that use's offsets."""

    launch: Written
    begin: int
    end: int


@frozen
class _Macro:
    parameters: Sequence[str]
    body: str

    def expanded(self, arguments: Sequence[str]) -> str:
        values = dict(zip(self.parameters, map(str.strip, arguments), strict=False))
        if self.parameters and self.parameters[-1] == "...":
            values["__VA_ARGS__"] = ",".join(arguments[len(self.parameters) - 1 :])
        text = re.sub(r"\w+", lambda word: values.get(word[0], word[0]), self.body)
        return re.sub(r"\s*##\s*", "", text)


# ----------------------------------------------------------------------------------------- macros


def uses_of_macros(plain: str) -> Iterator[Use]:
    """Every launch that a macro with parameters makes where it is used."""
    macros = _launching(plain)
    if not macros:
        return
    directives = [match.span() for match in _DIRECTIVE.finditer(plain)]
    for begin, end, text in _expansions(plain, macros, _NESTED):
        if not any(first <= begin < last for first, last in directives):
            yield from (Use(launch, begin, end) for launch in _launches(text))


def _launching(plain: str) -> dict[str, _Macro]:
    """Macros whose text has a launch, or uses one that has."""
    every = {
        match[1]: _Macro([p.strip() for p in match[2].split(",")], re.sub(r"\\\r?\n", " ", match[3]))
        for match in _MACRO.finditer(plain)
    }
    found = {name: macro for name, macro in every.items() if "<<<" in macro.body}
    for _ in range(_NESTED if found else 0):
        uses = re.compile(rf"\b(?:{'|'.join(found)})\s*\(")
        found |= {name: macro for name, macro in every.items() if uses.search(macro.body)}
    return found


def _expansions(text: str, macros: Mapping[str, _Macro], depth: int) -> Iterator[tuple[int, int, str]]:
    for match in re.finditer(rf"\b({'|'.join(macros)})\s*\(", text):
        end = matching(text, match.end() - 1)
        if end < 0:
            continue
        expanded = macros[match[1]].expanded(split_arguments(text[match.end() : end]))
        yield match.start(), end + 1, expanded
        if depth:
            for _, _, inner in _expansions(expanded, macros, depth - 1):
                yield match.start(), end + 1, inner


def _launches(text: str) -> Iterator[Written]:
    for start, launch in every_launch(text):
        yield _with_locals(launch, text[:start])


# -------------------------------------------------------------------------------------- functions


def uses_of_functions(plain: str, launches: Sequence[Written]) -> Iterator[Use]:
    """Launches of a kernel that a function was given, at every call of the function."""
    for launch in launches:
        header = _function_around(plain, launch)
        if header is None:
            continue
        name, parameters, body = header
        inside = _with_locals(launch, plain[body : launch.begin])
        for match in re.finditer(rf"(?<![\w.>]){name}\s*(?:<[^<>;(){{}}]*>)?\s*\(", plain):
            end = matching(plain, match.end() - 1)
            if end < 0 or plain[end + 1 : end + 3].lstrip()[:1] == "{" or match.start() <= body <= end + 80:
                continue
            made = _called(inside, parameters, whole_arguments(plain[match.end() : end]))
            if made is not None:
                yield Use(made, match.start(), end + 1)


def _function_around(plain: str, launch: Written) -> tuple[str, list[str], int] | None:
    """The function with a parameter that is launched: its name, its parameters, where its body begins."""
    first = max(0, launch.begin - _FURTHEST)
    if not re.search(rf"[*&\s]{launch.kernel}\s*[,)]", plain[first : launch.begin]):
        return None
    found: tuple[str, list[str], int] | None = None
    for match in _FUNCTION.finditer(plain, first, launch.begin):
        closing = matching(plain, match.end())
        body = plain.find("{", closing) if closing > 0 else -1
        if not 0 <= body < launch.begin or not _BETWEEN.fullmatch(plain, closing, body):
            continue
        if _closed(plain, body) < launch.begin:
            continue
        names = [_parameter(p) for p in split_arguments(plain[match.end() + 1 : closing])]
        if launch.kernel in names:
            found = match["lambda"] or match["function"], names, body
    return found


def _closed(plain: str, body: int) -> int:
    """Where the brace at ``body`` is closed."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(plain, body):
        depth += 1 if match[0] == "{" else -1
        if not depth:
            return match.start()
    return len(plain)


def _parameter(text: str) -> str:
    """``float* data`` → ``data``; ``void (*kernel)(int)`` → ``kernel``; ``Args&&... args`` → ``...args``."""
    pointer = re.search(r"\(\s*[*&]+\s*(\w+)\s*\)", text)
    if pointer:
        return pointer[1]
    words = re.findall(r"\w+", text.split("=")[0].split("[")[0])
    return ("..." if "..." in text else "") + (words[-1] if words else "")


def _called(launch: Written, parameters: Sequence[str], arguments: Sequence[str]) -> Written | None:
    """The launch with what a call gives for the function's parameters."""
    values = dict(zip(parameters, map(str.strip, arguments), strict=False))
    rest = list(arguments[len(parameters) - 1 :]) if parameters and parameters[-1][:3] == "..." else []
    kernel = KERNEL.fullmatch(values.get(launch.kernel, ""))
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
    """Names in the configuration that the text before the launch defines, replaced by their definitions."""
    values = {m[1]: (m[2] or m[3]).strip() for m in _LOCAL.finditer(before)}
    values = {
        name: f"dim3({v})" if "," in v and not v.startswith("dim3") else v for name, v in values.items()
    }
    configuration = [_replaced(_replaced(part, values), values) for part in launch.configuration]
    return evolve(launch, configuration=configuration) if values else launch


__all__ = ["Use", "uses_of_functions", "uses_of_macros"]
