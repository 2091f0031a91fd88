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
from cuda_lsp.frontend.surroundings.named_elsewhere import declaration_of

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b([^\n]*)", re.M)
_DEFINED = re.compile(r"\A\s*(?:defined\s*\(?\s*)?([A-Za-z]\w*)\s*\)?\s*\Z")
_COMPARED = re.compile(r"\A\s*([A-Za-z]\w*)\s*(?:>=|>|==)\s*(\d{1,9})[uUlL]*\s*\Z")
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
    parts = condition.split("&&")
    told = [(_DEFINED.match(part), _COMPARED.match(part)) for part in parts]
    if condition.strip() and all(defined or compared for defined, compared in told):
        for defined, compared in told:
            if compared is not None:
                yield compared[1], int(compared[2]) + 1
            elif defined is not None:
                yield defined[1], None
