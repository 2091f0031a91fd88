"""Whether the templates of a text may form trees: each level doubles the instances, up to 2^30 of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from cuda_lsp.frontend.excess.statements import Excess

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
        end = (
            matches[number + 1].start()
            if number + 1 < len(matches)
            else min(len(data), match.end() + _LONGEST)
        )
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


def branching_functions(data: bytes) -> Iterator[Excess]:
    """Second uses in a function template of itself, with other arguments that are not halved.

    clang makes instances of functions one after the other, and has no limit of how many.
    """
    for match in _TEMPLATE.finditer(data) if b"template" in data else ():
        opening = data.find(b"{", match.end(), match.end() + _LONGEST)
        if data[match.end() : match.end() + 1] not in (b"(", b" ") or opening < 0:
            continue
        if b"(" not in data[match.end() : opening] or b";" in data[match.end() : opening]:
            continue
        own = re.compile(rb"\b%s\s*<([^;{}]{1,200}?)>\s*\(" % re.escape(match["name"]))
        uses = list(own.finditer(data, opening, _end_of(data, opening)))
        others = [use for use in uses[1:] if use[1] != uses[0][1]]
        if others and not any(b"/" in use[1] or b">>" in use[1] for use in uses):
            name = match["name"].decode()
            reason = f"the function template {name} uses itself several times: these may be 2^n instances"
            yield from (Excess(use.start(), use.start(1) - 1, reason, whole=False) for use in others)


def _end_of(data: bytes, opening: int) -> int:
    depth = 0
    for match in re.compile(rb"[{}]").finditer(data, opening, opening + _LONGEST):
        depth += 1 if match[0] == b"{" else -1
        if not depth:
            return match.end()
    return min(len(data), opening + _LONGEST)
