"""Names that kernels use and that nothing they include declares, looked for in the rest of the project.

Some builds bring what a file does not: headers that are forced in, texts that are put together when a
program runs (NVRTC), constants that are passed as macros. The nearest header that declares a type, a template
or a device function is included before the file; a constant becomes a macro with its value. Where several
files give a constant different values, only those count that are called like the kernel's file or name its
kernels, then those that these include. Looked for when a file is opened, never while typing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path

from attrs import frozen

from cuda_lsp import files
from cuda_lsp.frontend.surroundings.included import mentioned
from cuda_lsp.frontend.surroundings.nearby_headers import headers_of, project_root

_UNDECLARED = re.compile(
    r"(?:use of undeclared identifier|unknown type name|no template named|no type named"
    r"|no member named|use of undeclared template name) '(\w+)'"
)
_MOST_NAMES = 24
_MOST_BYTES = 1 << 20
_MOST_FILES = 3000
_SHORTEST = 3  # letters of a name that tells anything, wherever it stands
_CONSTANT = r"(?:constexpr|const)\s[^;{{}}()=]{{0,80}}(?<!\w){0}\s*=\s*([^;,{{}}]{{1,80}})[;,]"
_NUMBERS = re.compile(r"\A[\d()+*/%<>-]{1,200}\Z")
_MOST_STEPS = 5
"""Constants that a constant is made of, one after the other."""
_DECLARED = (
    r"#[ \t]*define[ \t]+{0}\b|\b(?:struct|class|union|enum)\s+(?:\w+\s+){{0,2}}{0}\s*(?:final\s*)?[:{{]"
    r"|\}}\s*{0}\s*;|\btypedef\s[^;{{}}]{{1,120}}(?<!\w){0}\s*;|\busing\s+{0}\s*="
    r"|__device__[^;{{}}()]{{0,120}}(?<!\w){0}\s*\(|(?:constexpr|const)\s[^;{{}}()=]{{0,80}}(?<!\w){0}\s*="
)


@frozen
class Elsewhere:
    """``headers`` that declare what was missing; ``constants`` as ``NAME=VALUE``."""

    headers: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()


def undeclared(messages: Iterable[str]) -> tuple[str, ...]:
    """The names that clang's errors say nothing declares."""
    found = (match[1] for message in messages if (match := _UNDECLARED.search(message)))
    return tuple(dict.fromkeys(found))


def declaration_of(name: str) -> re.Pattern[str]:
    """What declares a type, a template, a device function or a constant of this name."""
    return re.compile(_DECLARED.format(re.escape(name)))


def elsewhere(path: Path, names: Sequence[str], kernels: Set[str] = frozenset()) -> Elsewhere:
    """Where the project declares these names; ``kernels``: of the file, which who launches them names."""
    headers: dict[str, None] = {}
    constants: list[str] = []
    texts = list(_texts(path)) if names and project_root(path) is not None else []
    launches = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(kernels)))})\b") if kernels else None
    own = [(f, text) for f, text in texts if f.stem == path.stem or (launches and launches.search(text))]
    namesakes = {file.name for file, _ in own}
    beside = {Path(header).name for _, text in own for header in mentioned(text)}
    for name in names[:_MOST_NAMES]:
        known = [(file, text) for file, text in texts if name in text]
        value = _constant(name, known, namesakes, beside)
        if value is not None:
            constants.append(f"{name}={value}")
            continue
        declared = declaration_of(name)
        found = (file for file, text in known if declared.search(text))
        header = next(found, None) if len(name) >= _SHORTEST else None
        if header is not None:
            headers[str(header)] = None
    return Elsewhere(tuple(headers), tuple(constants))


def _constant(
    name: str, known: Sequence[tuple[Path, str]], namesakes: Set[str], beside: Set[str]
) -> str | None:
    """The value of a constant that stands in a header, where there is no doubt which."""
    constant = re.compile(_CONSTANT.format(re.escape(name)))
    found = [(file, text, match) for file, text in known if (match := constant.search(text))]
    values = [(file, value) for file, text, match in found if (value := _value(text, match[1]))]
    for near in (namesakes, beside):
        own = [value for file, value in values if file.name in near]
        if own:
            return own[0]
    alone = len(name) >= _SHORTEST and len({value for _, value in values}) == 1
    return values[0][1] if alone else None


def _value(text: str, written: str, steps: int = _MOST_STEPS) -> str | None:
    """What a constant is initialised with, in numbers; ``text`` declares the constants that it is made of."""
    if not steps:
        return None

    def number(name: re.Match[str]) -> str:
        found = re.search(_CONSTANT.format(re.escape(name[0])), text)
        value = _value(text, found[1], steps - 1) if found is not None else None
        return name[0] if value is None else value

    value = re.sub(r"[A-Za-z_]\w*", number, re.sub(r"\s", "", written))
    return None if not _NUMBERS.match(value) else value if value.isdigit() else f"({value})"


def _texts(path: Path) -> Iterator[tuple[Path, str]]:
    """The project's headers, the nearest first, with their texts."""
    root = project_root(path)
    own, here = path.absolute(), path.absolute().parts
    found = {file for files_ in (headers_of(root) if root else {}).values() for file in files_}
    nearest = sorted(found, key=lambda p: (-_shared(p.parts, here), len(p.parts), p))
    for file in nearest[:_MOST_FILES]:
        if file != own and file.suffix != ".cu":
            try:
                yield file, files.read_text(file, _MOST_BYTES)
            except OSError:  # vanished, or too large: it declares nothing
                continue


def _shared(a: Sequence[str], b: Sequence[str]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
