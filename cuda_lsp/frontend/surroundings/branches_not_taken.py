"""Names that a text declares in a branch of ``#if`` that is not taken, and the macros that take it.

Builds switch parts of headers on: ``#ifdef ENABLE_HALF``, ``#if API_VERSION >= 36``. Where a kernel names
what only such a part declares, the build that compiles it has the macro. Compared with numbers, it is more
than the largest: what came with a version stays in those after it. Looked for when a file is opened, never
while typing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from cuda_lsp.blanked import blanked
from cuda_lsp.frontend.surroundings.cmake_values import OF_OTHERS
from cuda_lsp.frontend.surroundings.named_elsewhere import declaration_of

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b([^\n]*)", re.M)
_TOKEN = re.compile(r"\w+|[<>=!]=|[^\s\w()]")
_KERNEL = re.compile(r"\b__global__\b")
_LAUNCH = re.compile(r"<<<((?:[^;{}<>]|<(?!<<)|>(?!>>)){1,400})>>>")
_NAME = re.compile(r"(?<![\w.>:])[A-Za-z_]\w{2,}\b(?!\s*[.<]|->)")
_SAID = (
    r"^[ \t]*#[ \t]*define[ \t]+{0}\b|\b{0}[ \t]*=[^=]"
    r"|[\w>*&][ \t]+{0}[ \t]*(?:\{{|;|\([^(){{}};]{{0,200}}\)[^(){{}};]{{0,40}}\{{)"
)
"""A macro, a variable, or a function with its text."""
_MOST_NAMES = 24
_MOST_SWITCHES = 8


def switches_of_declarations(texts: Iterable[str], names: Sequence[str]) -> tuple[str, ...]:
    """``NAME`` or ``NAME=VALUE`` for conditions around what declares one of ``names`` in ``texts``."""
    read = [blanked(text) for text in texts]
    found: dict[str, int | None] = {}
    for name in names[:_MOST_NAMES]:
        declared = declaration_of(name)
        for text in read:
            match = declared.search(text) if name in text else None
            for condition in _conditions(text, match.start()) if match else ():
                found.update(_switch(condition))
    for macro in (macro for macro, value in found.items() if value is not None):
        compared = re.compile(rf"\b{macro}\s*>=?\s*(\d{{1,9}})")
        found[macro] = max(
            int(number) for text in read for number in (*compared.findall(text), str(found[macro]))
        )
    switches = (name if value is None else f"{name}={value}" for name, value in found.items())
    return tuple(switches)[:_MOST_SWITCHES]


def switches_of_kernels(text: str) -> tuple[str, ...]:
    """Macros that take the branches in which the text's kernels stand; none: these ask for something else."""
    read, found = blanked(text), dict[str, None]()
    for kernel in _KERNEL.finditer(read):
        macros = _alone_taking(_conditions(read, kernel.start()), [read])
        if not any(map(OF_OTHERS.search, macros)):
            found.update(dict.fromkeys(macros))
    return tuple(found)[:_MOST_SWITCHES]


def names_of_launches(text: str) -> list[str]:
    """Names in the blocks and grids of launches."""
    found = (name for launch in _LAUNCH.findall(blanked(text)) for name in _NAME.findall(launch))
    return list(dict.fromkeys(found))


def switches_of_launches(texts: Iterable[str], names: Sequence[str]) -> tuple[str, ...]:
    """Macros that take the only branch of all texts which says what one of ``names`` is.

    Not macros that a text defines or takes back itself.
    """
    read = [blanked(text) for text in texts] if names else []
    found: dict[str, None] = {}
    for name in names[:_MOST_NAMES]:
        said = re.compile(_SAID.format(name), re.M)
        known = (text for text in read if name in text)
        asked = {tuple(filter(None, _conditions(t, m.start()))) for t in known for m in said.finditer(t)}
        found.update(dict.fromkeys(_alone_taking(asked.pop(), read) if len(asked) == 1 else ()))
    return tuple(found)[:_MOST_SWITCHES]


def _alone_taking(conditions: Iterable[str], texts: Iterable[str]) -> list[str]:
    """The macros that conditions ask for, one each; none: one asks for more, or a text changes one itself."""
    asked = [list(_switch(condition)) for condition in conditions if condition]
    macros = [one[0][0] for one in asked if len(one) == 1 and one[0][1] is None]
    alone = len(macros) == len(asked) and not any(_is_changed(macro, texts) for macro in macros)
    return macros if alone else []


def _is_changed(macro: str, texts: Iterable[str]) -> bool:
    changed = re.compile(rf"^[ \t]*#[ \t]*(?:define|undef)[ \t]+{macro}\b", re.M)
    return any(changed.search(text) for text in texts)


def _conditions(text: str, place: int) -> list[str]:
    """Of the branches around a place, those that are taken when something holds."""
    open_: list[str] = []
    for match in _DIRECTIVE.finditer(text, 0, place):
        kind, condition = match[1], match[2]
        if kind.startswith("if"):
            open_.append("" if kind == "ifndef" else condition)
        elif open_ and kind == "endif":
            open_.pop()
        elif open_:
            open_[-1] = condition if kind == "elif" else ""
    return open_


def _switch(condition: str) -> Iterator[tuple[str, int | None]]:
    """The macros that make a condition hold, where it asks for some and for nothing else."""
    asked = [_asked(_TOKEN.findall(part)) for part in condition.split("&&")]
    yield from (one for one in asked if one is not None and None not in asked)


def _asked(words: Sequence[str]) -> tuple[str, int | None] | None:
    """What one part of a condition asks for; None: something else than a macro, or a larger number."""
    words = words[1:] if words[:1] == ["defined"] else words
    if not words or not words[0].isidentifier() or words[0].startswith("_"):
        return None
    if len(words) == 1:
        return words[0], None
    digits = words[-1].rstrip("uUlL")
    compared = len(words) == 3 and words[1] in (">=", ">") and digits.isdigit() and len(digits) < 10
    return (words[0], int(digits) + 1) if compared else None
