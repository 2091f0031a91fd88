"""Whether the templates of a text may form trees: each level doubles the instances, and clang makes 2^30 of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

_LONGEST = 20_000
_TEMPLATE = re.compile(
    rb"\btemplate\s*<[^;{}]{0,400}?>\s*(?:(?:struct|class|union|using|constexpr|inline|static|__device__|"
    rb"__host__|__forceinline__|__inline__|auto|void|int|bool|unsigned|float|double|size_t|const|typename)\s+)+"
    rb"(?P<name>[A-Za-z_]\w*)"
)


def template_texts(data: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """Name and text of each template."""
    return tuple(_texts(data)) if b"template" in data else ()


def _texts(data: bytes) -> Iterable[tuple[bytes, bytes]]:
    matches = list(_TEMPLATE.finditer(data))
    for number, match in enumerate(matches):
        end = matches[number + 1].start() if number + 1 < len(matches) else min(len(data), match.end() + _LONGEST)
        yield match["name"], data[match.end() : end]


@lru_cache(maxsize=64)
def branches(texts: tuple[tuple[bytes, bytes], ...]) -> bool:
    """Whether one of them may name two instances of itself, or of another that names it."""
    names = {name for name, _ in texts}
    uses: dict[bytes, dict[bytes, set[bytes]]] = {name: {} for name in names}
    for name, text in texts:
        for match in re.finditer(rb"\b([A-Za-z_]\w*)\s*<([^;{}]{1,200}?)>", text):
            if match[1] in names:
                uses[name].setdefault(match[1], set()).add(match[2])
    for name in names:
        for other, arguments in uses[name].items():
            if len(arguments) > 1 and (other == name or name in _reached(other, uses)):
                return True
    return False


def _reached(name: bytes, uses: Mapping[bytes, Mapping[bytes, object]]) -> set[bytes]:
    found: set[bytes] = set()
    pending = [name]
    while pending:
        for other in uses.get(pending.pop(), ()):
            if other not in found:
                found.add(other)
                pending.append(other)
    return found
