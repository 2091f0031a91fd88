"""Kernels that are compiled when the program runs, and looked up by a name in a string.

    auto blur = get_kernel("image::blur", …);  Queue queue(blocks, threads, stream);  blur(queue, out, in, n);
    program.kernel("blur").configure(blocks, threads).launch(out, in, n);

An object that was made of a grid and a block, in CUDA's order, is a configuration, whatever its class is.
Template arguments stand in the string (``"blur<float, 16>"``), in a list that is called so
(``TemplateArgs(TemplateTypename<T>(), TemplateArg(n))``), or in ``instantiate<T>(n)``; macros in one that
defines them (``DefineKeyValue(TILE, n)``), or in an option (``"-DTILE=" + std::to_string(n)``).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from attrs import field, frozen

from cuda_lsp.frontend.host.text import HostText, by_name, start_of, whole_arguments
from cuda_lsp.frontend.host.written_launches import Written

BY_NAME = re.compile(r"[Gg]et_?(?:[Kk]ernel|[Ff]unction)\s?[(<]|\.\s?kernel\s?\(")
"""A text without it launches nothing so, at a glance."""
_LOOKED_UP = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s?=\s?([\w:.>-]{1,80}\s?)\((?=[\s_])")
_STRING = re.compile(r'\s{0,80}"(?:\w{1,80}::){0,8}(\w{1,200})(?:<([^"\n]{0,400})>)?"')
_TEMPLATE_LIST = re.compile(
    r"\A\s?(?:\w{1,80}\s?::\s?){0,8}\w{0,80}[Tt]empl\w{0,80}\s?[({](.*)[)}]\s?\Z", re.S
)
_DEFINED = re.compile(r"\b\w{0,80}[Dd]efine\w{0,80}\s?\(\s?([A-Za-z_]\w*)\s?(?:,\s?([^,()]{1,200}))?\)")
_OPTION = re.compile(
    r'"-D\s?([A-Za-z_]\w*)="(?:s|_s)?\s{0,80}\+\s{0,80}(?:std::)?to_string\(([^()"]{1,200})\)'
)
_OF_TYPE = re.compile(r"\A\s?[\w:\s]{1,200}?<([^;]*)>\s?[({]\s?[)}]\s?\Z", re.S)  # Name<T>()
_OF_VALUE = re.compile(r"\A\s?[\w:\s]{0,200}?(?:[Tt]empl|[Aa]rg|[Vv]alue)\w{0,80}\s?[({](.*)[)}]\s?\Z", re.S)
_MADE = re.compile(r"(?<![\w.>:])[A-Za-z_][\w:]*\s([A-Za-z_]\w*)\s?(?=[({])")
_CALL = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s?\(")
_METHOD = re.compile(r"\.\s?kernel\s?\((?=[\s_])")
_STEP = re.compile(r"\s?\.\s?(?:template\s)?(\w+)\s?(?:<([^;()]{0,200})>\s?)?\(")
_NAME = re.compile(r"\A\s?(\w+)\s?\Z")
_MOST_STEPS = 4
_LONGEST = 400
"""Characters of a configuration."""


@frozen
class _Named:
    """A kernel that a string names. ``arguments``: of the template, as they are written; None: not told.

    ``definitions``: of macros, as the host writes them.
    """

    name: str
    arguments: str | None
    definitions: Mapping[str, str] = field(factory=dict[str, str])


def launches_by_name(host: HostText) -> Iterator[Written]:
    """Every launch of a kernel that a string names, in order of how they are written."""
    if BY_NAME.search(host.plain) is not None:
        yield from _through_variables(host)
        yield from _in_one_line(host)


def _through_variables(host: HostText) -> Iterator[Written]:
    plain = host.plain
    looked_up: dict[str, list[tuple[int, _Named]]] = {}
    for match in _LOOKED_UP.finditer(plain):
        kernel = _string_at(host, match.end() - 1)
        if kernel is not None:
            looked_up.setdefault(match[1], []).append((match.end(), kernel))
    configurations = by_name(_MADE, plain) if looked_up else {}
    for call in _CALL.finditer(plain) if looked_up else ():
        known = looked_up.get(call[1], [])
        index = bisect_left(known, call.start(), key=_place)
        closing = host.closing(call.end() - 1)
        if not index or closing < 0:
            continue
        given = whole_arguments(plain[call.end() : closing])
        made = _configuration(host, given[0], call.start(), configurations) if given else None
        if made is not None:
            kernel = known[index - 1][1]
            place = call.start(), closing + 1
            yield Written(kernel.name, kernel.arguments, made, given[1:], *place, kernel.definitions)


def _configuration(
    host: HostText, text: str, before: int, configurations: Mapping[str, Sequence[re.Match[str]]]
) -> list[str] | None:
    """Grid and block (and bytes of shared memory) of which an object was made; None: nobody knows."""
    name = _NAME.match(text)
    made = configurations.get(name[1], ()) if name is not None else ()
    index = bisect_left(made, before, key=start_of)
    if not index:
        return None
    opening = made[index - 1].end()
    closing = host.closing(opening) if host.plain[opening] == "(" else host.braces.closing.get(opening, -1)
    if not 0 < closing - opening < _LONGEST:
        return None
    parts = [part.strip() for part in whole_arguments(host.plain[opening + 1 : closing])]
    if len(parts) < 2:
        return None
    # A stream stands third; what is fourth may be bytes of shared memory.
    return [*parts[:2], *(parts[3:4] or ["?"])] if len(parts) > 2 else parts


def _in_one_line(host: HostText) -> Iterator[Written]:
    """``….kernel("name")….configure(grid, block)….launch(arguments)``."""
    plain = host.plain
    for match in _METHOD.finditer(plain):
        kernel = _string_at(host, match.end() - 1)
        end, configuration = host.closing(match.end() - 1), list[str]()
        template = kernel.arguments if kernel is not None else None
        for _ in range(_MOST_STEPS if kernel is not None and end > 0 else 0):
            step = _STEP.match(plain, end + 1)
            closing = host.closing(step.end() - 1) if step is not None else -1
            if step is None or closing < 0:
                break
            parts = [part.strip() for part in whole_arguments(plain[step.end() : closing])]
            if step[1] == "configure":
                configuration = parts
            elif step[1] == "instantiate":
                template = ", ".join(part for part in (step[2], *map(_argument, parts)) if part) or template
            elif step[1] == "launch" and kernel is not None and len(configuration) >= 2:
                place = match.start(), closing + 1
                yield Written(kernel.name, template, configuration[:3], parts, *place, kernel.definitions)
                break
            end = closing


def _string_at(host: HostText, opening: int) -> _Named | None:
    """What the string behind a parenthesis names last (``blur`` of ``"image::blur<float>"``), with what the
    call around tells of its template arguments."""
    named = _STRING.match(host.text, host.original(opening) + 1)
    if named is None:
        return None
    closing = host.closing(opening)
    given = whole_arguments(host.plain[opening + 1 : closing]) if closing > 0 else []
    lists = (listed for part in given[1:] if (listed := _TEMPLATE_LIST.match(part)) is not None)
    listed = next(lists, None)
    told = ", ".join(map(_argument, whole_arguments(listed[1]))) if listed is not None else None
    return _Named(named[1], named[2] or told, dict(_definitions(host, opening, closing)))


def _definitions(host: HostText, opening: int, closing: int) -> Iterator[tuple[str, str]]:
    """The macros that a call defines, and what the host has for them."""
    for made in _DEFINED.finditer(host.plain, opening, max(opening, closing)):
        yield made[1], made[2] or made[1]
    for option in _OPTION.finditer(host.text, host.original(opening), host.original(max(opening, closing))):
        yield option[1], option[2]


def _argument(written: str) -> str:
    """One template argument: ``T`` of ``TypeName<T>()``, ``n`` of ``TemplateArg(n)``."""
    wrapped = _OF_TYPE.match(written) or _OF_VALUE.match(written)
    return (wrapped[1] if wrapped is not None else written).strip()


def _place(known: tuple[int, _Named]) -> int:
    return known[0]
