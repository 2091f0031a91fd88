"""Whether the templates of a text may form trees: each level doubles the instances, up to 2^30 of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from cuda_lsp.frontend.excess.statements import Excess

_LONGEST = 20_000
_MOST_INSTANCES = 4096  # of templates that only pass on what they have: as many as trees of the allowed depth
_BODY = re.compile(rb"[{;]")
_TEMPLATE = re.compile(
    rb"\btemplate\s*<(?P<takes>[^;{}]{0,400}?)>\s*(?:(?P<kind>struct|class|union|using|constexpr|inline|static|"
    rb"__device__|__host__|__forceinline__|__inline__|auto|void|int|bool|unsigned|float|double|size_t|const|"
    rb"typename)\s+)+(?P<name>[A-Za-z_]\w*)"
)
_CLASSES = (b"struct", b"class", b"union", b"using")
_TYPE_ENDS = re.compile(rb"(?<!\s)\s{0,40}(?:[<&*]|(?<!\w)\w{1,80}\s{0,40}\()")
_FUNCTION = re.compile(rb"\b(operator\b[^\w(]{0,4}|[A-Za-z_]\w*)\s*\Z")
_CONST = re.compile(rb"\A(?:(?:const|volatile)\s+)+")
_PLAIN = re.compile(rb"\A(?:(?:const|volatile)\s+)*(?:[A-Za-z_]\w*|\d+)\Z")
_PASTED = re.compile(rb"\A\w*##\w+\Z")
_WORD = re.compile(rb"[A-Za-z_]\w*")
_PASTES = 8  # what stands for what a macro's uses name

Text = tuple[bytes, bytes, bytes]
"""Of a template: its name, its parameters, and the text behind the name."""


def template_texts(data: bytes) -> tuple[Text, ...]:
    """Name and text of each template."""
    return tuple(_texts(data)) if b"template" in data else ()


def _texts(data: bytes) -> Iterable[Text]:
    for match in _TEMPLATE.finditer(data):
        body = _BODY.search(data, match.end(), match.end() + _LONGEST)
        if body is not None:
            end = _end_of(data, body.start()) if body[0] == b"{" else body.end()
            named = _function(data, match, body.start())
            start = match.end() if named is None else match.start("name")
            yield named or match["name"], match["takes"], data[start:end]


def _function(data: bytes, match: re.Match[bytes], body: int) -> bytes | None:
    """What a function is called whose type stands before (``template <class T> Pair<T> half(T a)``)."""
    if match["kind"] in _CLASSES or _TYPE_ENDS.match(data, match.end()) is None:
        return None
    named = _FUNCTION.search(data[match.end() : body].partition(b"(")[0])
    return named[1] if named is not None else None


@lru_cache(maxsize=64)
def branches(texts: tuple[Text, ...]) -> bool:
    """Whether one of them may name two instances of itself, or of another that names it, ever more."""
    names = {name for name, _, _ in texts}
    uses: dict[bytes, dict[bytes, set[bytes]]] = {name: {} for name in names}
    for name, _, text in texts:
        for match in re.finditer(rb"\b([A-Za-z_]\w*)\s*<([^;{}]{1,200}?)>", text):
            if match[1] in names:
                uses[name].setdefault(match[1], set()).add(match[2])
    for name in names:
        for other, arguments in uses[name].items():
            if len(arguments) > 1 and (other == name or name in _reached(other, uses)):
                circle = {each for each in _reached(name, uses) if name in _reached(each, uses)} | {name}
                if not _passed_on(circle, uses, [text for text in texts if text[0] in circle]):
                    return True
    return False


def _passed_on(
    circle: set[bytes], uses: Mapping[bytes, Mapping[bytes, set[bytes]]], texts: Sequence[Text]
) -> bool:
    """Whether templates that name each other pass on what they have, and constants (``Wrap<const T, N>``):
    these are few instances, however often each is named."""
    lists = [
        [part.strip() for part in arguments.split(b",")]
        for name in circle
        for other, every in uses[name].items()
        if other in circle
        for arguments in every
    ]
    if not all(_PLAIN.match(part) or _PASTED.match(part) for parts in lists for part in parts):
        return False
    places: dict[bytes, set[int]] = {}
    for parts in lists:
        for place, part in enumerate(parts):
            places.setdefault(_CONST.sub(b"", part), set()).add(place)
    # What is computed on the way may become more with each level.
    word = rb"\b(?:%s)\b" % b"|".join(re.escape(word) for word in places)
    computed = re.compile(rb"%s\s*(?:=(?!=)(?!\s*[\w:]+\s*[,;>)\0])|\.\.\.)|\.\.\.\s*%s" % (word, word))
    if any(computed.search(b"\0".join(text)) for text in texts):
        return False
    own: set[bytes] = set()
    for _, takes, _ in texts:
        for place, parameter in enumerate(takes.split(b",")):
            words = _WORD.findall(parameter.partition(b"=")[0])
            if words and words[-1] in places:
                places[words[-1]].add(place)
                own.add(words[-1])
    moves = any(len(at) > 1 for word, at in places.items() if word in own)
    return _count(lists, moves) <= _MOST_INSTANCES


def _count(lists: list[list[bytes]], moves: bool) -> int:
    """How many instances there may be: at each place what came first, and what is named there.

    ``moves``: what is passed at one place may come to another.
    """
    width = max(map(len, lists), default=0)
    named = [{parts[place] for parts in lists if place < len(parts)} for place in range(width)]
    weights = [1 + sum(_PASTES if b"##" in part else 1 for part in at) for at in named]
    return sum(weights) ** width if moves else math.prod(weights)


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
