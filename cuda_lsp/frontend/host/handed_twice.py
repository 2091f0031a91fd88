"""Calls that hand on one thing for several pointers, ``run(d, d + n)``, told at a glance from any text.

Whoever follows what files call reads those alone of which it is true: there may be hundreds of others.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache

from cuda_lsp.frontend.host.constants import NO_POINTERS
from cuda_lsp.frontend.host.host_functions import HostFunction
from cuda_lsp.frontend.host.text import HostText, closing_near, split_arguments, whole_arguments

_NUMBERS = re.compile(
    r"\A\s*(?:(?:const|unsigned|signed|std\s?::)\s*)*(?:bool|char|short|int|long|float|double|size_t|dim3|u?int\d+_t"
    r"|cudaStream_t|unsigned)\b(?![^=]*[*\[])"
)
_CAST = re.compile(r"\A\s*(?:\([\w\s:]+\*+\s*\)|\w+_cast\s*<[^<>]*>\s*\(|[&*(])\s*")
_BASE = re.compile(r"(?:this\s*->\s*)?([A-Za-z_]\w*(?:\s*(?:\.|->|::)\s*[A-Za-z_]\w*(?!\w|\s*\())*)")
_COMMENT = re.compile(r"//[^\n]*|/\*[^*]*\*/")
_SET = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s?=(?!=)([^;=]{1,200})")
_WORD = re.compile(r"(?<![\w.>])[A-Za-z_]\w*")
_MOST_CASTS = 4
_MOST_KEPT = 200


def pointers_of(text: HostText, function: HostFunction) -> tuple[int, ...]:
    """Which of a function's parameters may lead to memory: those of types that are no numbers."""
    declared = whole_arguments(text.plain[function.opening + 1 : function.closing])
    return tuple(i for i, part in enumerate(declared) if not _NUMBERS.match(part))


def hands_on_twice(text: str, name: str, positions: Sequence[int]) -> bool:
    """Whether what looks like a call of ``name`` has one place, or what was made of one, at two positions."""
    if name not in text:
        return False
    for call in re.finditer(rf"(?<!\w){re.escape(name)}\s*(?:<[^<>;(){{}}]{{0,100}}>\s*)?\(", text):
        closing = closing_near(text, call.end() - 1)
        inside = _COMMENT.sub("", text[call.end() : closing]) if closing > 0 else ""
        arguments = split_arguments(inside)
        bases = [_base(arguments[i]) for i in positions if i < len(arguments)]
        pairs = itertools.combinations([base for base in bases if base], 2)
        if any(_are_one(one, other, text) for one, other in pairs):
            return True
    return False


def _base(argument: str) -> str:
    for _ in range(_MOST_CASTS):
        cast = _CAST.match(argument)
        if cast is None:
            break
        argument = argument[cast.end() :]
    found = _BASE.match(argument.strip())
    base = re.sub(r"\s", "", found[1]) if found is not None else ""
    return "" if base in NO_POINTERS else base


def _are_one(one: str, other: str, text: str) -> bool:
    """Whether two places are written alike, or one is set to what the other is named in."""
    if one == other:
        return True
    if not (one.isidentifier() and other.isidentifier()):
        return False
    made_of = _made_of(text)
    return other in made_of.get(one, ()) or one in made_of.get(other, ())


@lru_cache(_MOST_KEPT)
def _made_of(text: str) -> Mapping[str, Set[str]]:
    """The words behind ``name =``, by name."""
    found: dict[str, set[str]] = {}
    for match in _SET.finditer(text):
        found.setdefault(match[1], set()).update(_WORD.findall(match[2]))
    return found
