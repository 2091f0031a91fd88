"""Pointers that host code keeps side by side: in arrays and vectors, and in what calls return several of.

Each is told as a variable's value: ``float* p[2] = {d, d + n}`` gives ``p[0]`` and ``p[1]``, ``auto [a, b] =
cut(d)`` gives ``a`` what ``std::get<0>(cut(d))`` is. Read from text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from cuda_lsp.frontend.host.host_functions import HostFunctions
from cuda_lsp.frontend.host.text import HostText, split_arguments

_NAME = r"[A-Za-z_]\w*"
_LISTED = re.compile(
    rf"(?:\*\s?({_NAME})\s?\[[^\[\]]{{0,60}}\]|\b(?:vector|array)\s?<[^<>;{{}}]{{0,80}}\*[^<>;{{}}]{{0,40}}>\s?({_NAME}))"
    r"\s?=?\s?\{\s?([^{};]{1,600})\}\s?;"
)
_PUSHED = re.compile(rf"(?<![\w.>])({_NAME})\s?\.\s?(?:push_back|emplace_back)\s?\(([^;{{}}]{{1,200}})\)\s?;")
_BOUND = re.compile(r"\bauto\s?&{0,2}\s?\[([\w\s,]{1,200})\]\s?=\s?([^;{}]{1,300});")
_TIED = re.compile(r"\btie\s?\(([\w\s,]{1,200})\)\s?=(?!=)\s?([^;{}]{1,300});")
_ADDRESSES = re.compile(
    rf"\*\s?\*\s?({_NAME})\s?\[[^\[\]]{{0,60}}\]\s?=?\s?\{{((?:\s?&\s?[\w.>-]{{1,80}}\s?,?){{2,100}})\}}\s?;"
)
_THROUGH = r"\*\s?\(?\s?{name}\s?\[[^\[\]]{{1,60}}\]\s?\)?\s?=(?!=)\s?([^;{{}}]{{1,200}});"
_LENT = r"(?<![\w.>])([A-Za-z_]\w*)\s?\(((?:[^(){{}};]{{1,80}},)?)\s?{name}\s?[,)]"
ONE_OF_MANY = "one_of_many()"
"""How far such a place is from the beginning, as text."""
_FURTHEST = 4000


def listed_pointers(text: HostText, functions: HostFunctions) -> Iterator[tuple[str, int, str]]:
    """Names, where they have a value from, and which."""
    plain = text.plain
    for match in _LISTED.finditer(plain):
        for index, value in enumerate(split_arguments(match[3])):
            yield f"{match[1] or match[2]}[{index}]", match.end(), value.strip()
    pushed: Counter[tuple[str, int]] = Counter()
    for match in _PUSHED.finditer(plain):
        block = match[1], text.braces.begin(match.start())
        yield f"{match[1]}[{pushed[block]}]", match.end(), match[2].strip()
        pushed[block] += 1
    for pattern in (_BOUND, _TIED):
        for match in pattern.finditer(plain):
            for index, name in enumerate(split_arguments(match[1])):
                yield name.strip(), match.end(), f"std::get<{index}>({match[2].strip()})"
    yield from _through_addresses(text, functions)


def _through_addresses(text: HostText, functions: HostFunctions) -> Iterator[tuple[str, int, str]]:
    """``float** to[] = {&a, &w->b}; … *to[i] = p;``, here or where it is lent: places in one buffer."""
    plain = text.plain
    for match in _ADDRESSES.finditer(plain):
        name, end = match[1], min(match.end() + _FURTHEST, text.braces.end(match.end()))
        stored = _stored_through(name, plain, match.end(), end)
        for call in re.compile(_LENT.format(name=name)).finditer(plain, match.end(), end):
            position = call[2].count(",")
            for function in functions.named(call[1]):
                if position < len(function.parameters):
                    to = function.parameters[position][0]
                    stored = stored or _stored_through(to, plain, function.body, function.end)
        for part in split_arguments(match[2]) if stored else ():
            if part.strip():
                yield (
                    part.strip().removeprefix("&").strip(),
                    match.end(),
                    f"{name}__{match.start()} + {ONE_OF_MANY}",
                )


def _stored_through(name: str, plain: str, begin: int, end: int) -> bool:
    return re.compile(_THROUGH.format(name=name)).search(plain, begin, end) is not None
