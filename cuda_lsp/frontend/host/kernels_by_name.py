"""Kernels that are compiled when the program runs, and looked up by a name in a string.

    auto blur = get_kernel("image::blur", …);  Queue queue(blocks, threads, stream);  blur(queue, out, in, n);
    program.kernel("blur").configure(blocks, threads).launch(out, in, n);

An object that was made of a grid and a block, in CUDA's order, is a configuration, whatever its class is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from cuda_lsp.frontend.host.text import HostText, by_name, start_of, whole_arguments
from cuda_lsp.frontend.host.written_launches import Written

BY_NAME = re.compile(r"[Gg]et_?(?:[Kk]ernel|[Ff]unction)\s?[(<]|\.\s?kernel\s?\(")
"""A text without it launches nothing so, at a glance."""
_LOOKED_UP = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s?=\s?([\w:.>-]{1,80}\s?)\((?=\s)")
_STRING = re.compile(r'\s{0,80}"(?:\w{1,80}::){0,8}(\w{1,200})(?:<[^"\n]{0,400}>)?"')
_MADE = re.compile(r"(?<![\w.>:])[A-Za-z_][\w:]*\s([A-Za-z_]\w*)\s?(?=[({])")
_CALL = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s?\(")
_METHOD = re.compile(r"\.\s?kernel\s?\((?=\s)")
_STEP = re.compile(r"\s?\.\s?(\w+)\s?(?:<[^;()]{0,200}>\s?)?\(")
_NAME = re.compile(r"\A\s?(\w+)\s?\Z")
_MOST_STEPS = 4
_LONGEST = 400
"""Characters of a configuration."""


def launches_by_name(host: HostText) -> Iterator[Written]:
    """Every launch of a kernel that a string names, in order of how they are written."""
    if BY_NAME.search(host.plain) is not None:
        yield from _through_variables(host)
        yield from _in_one_line(host)


def _through_variables(host: HostText) -> Iterator[Written]:
    plain = host.plain
    looked_up: dict[str, list[tuple[int, str]]] = {}
    for match in _LOOKED_UP.finditer(plain):
        kernel = _string_at(host, match.end() - 1)
        if kernel is not None:
            looked_up.setdefault(match[1], []).append((match.end(), kernel))
    configurations = by_name(_MADE, plain) if looked_up else {}
    for call in _CALL.finditer(plain) if looked_up else ():
        known = looked_up.get(call[1], [])
        index = bisect_left(known, (call.start(), ""))
        closing = host.closing(call.end() - 1)
        if not index or closing < 0:
            continue
        given = whole_arguments(plain[call.end() : closing])
        made = _configuration(host, given[0], call.start(), configurations) if given else None
        if made is not None:
            yield Written(known[index - 1][1], None, made, given[1:], call.start(), closing + 1)


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
        for _ in range(_MOST_STEPS if kernel is not None and end > 0 else 0):
            step = _STEP.match(plain, end + 1)
            closing = host.closing(step.end() - 1) if step is not None else -1
            if step is None or closing < 0:
                break
            parts = [part.strip() for part in whole_arguments(plain[step.end() : closing])]
            if step[1] == "configure":
                configuration = parts
            elif step[1] == "launch" and kernel is not None and len(configuration) >= 2:
                yield Written(kernel, None, configuration[:3], parts, match.start(), closing + 1)
                break
            end = closing


def _string_at(host: HostText, opening: int) -> str | None:
    """What the string behind a parenthesis names last: ``blur`` of ``"image::blur<float>"``."""
    named = _STRING.match(host.text, host.original(opening) + 1)
    return named[1] if named is not None else None
