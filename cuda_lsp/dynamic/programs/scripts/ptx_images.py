"""Modules that a program loads as PTX, made by no source of CUDA: Numba's, or written by hand.

What the check sees is this code, as its compiler optimised it. Where it says of lines what they are made of
(``.loc``; Numba: ``lineinfo=True``), each line counts as one token of that file.
"""

from __future__ import annotations

import re
from pathlib import Path

from attrs import define, field

from cuda_lsp.dynamic.compilation.compile import CompiledModule
from cuda_lsp.dynamic.compilation.tokens import Token, TokenTable
from cuda_lsp.dynamic.programs.scripts.places import INSTALLED
from cuda_lsp.dynamic.ptx.names import stable
from cuda_lsp.dynamic.runs import Level
from cuda_lsp.files import read_text

_VERSION = re.compile(rb"^[ \t]{0,64}\.version\s", re.M)
_TARGET = re.compile(r"^[ \t]{0,64}\.target\s+(sm_\d+)", re.M)
_FILE = re.compile(r'^[ \t]{0,64}\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?', re.M)
_PLACE = re.compile(r"(\.loc|inlined_at)(\s+)(\d+)(\s+)(\d+)")
_NOWHERE = 1 << 24  # the number of no token


def is_ptx(image: bytes) -> bool:
    """Whether an image is a text that a driver would assemble."""
    return not image.startswith(b"\x7fELF") and _VERSION.search(image[: 1 << 16]) is not None


def module_of(ptx: str) -> CompiledModule:
    """The text as a build. Its places are those of files that are not of installed packages."""
    lines = _Lines({int(number): Path(a, b or "") for number, a, b in _FILE.findall(ptx)})
    text = _PLACE.sub(lambda m: f"{m[1]}{m[2]}{m[3]}{m[4]}{lines.number(int(m[3]), int(m[5]))}", ptx)
    target = _TARGET.search(ptx)
    files = frozenset(token.path for token in lines.tokens)
    arch = target[1] if target else "sm_90"
    return CompiledModule(stable(text), TokenTable(lines.tokens, files), Level.O3, arch, 0.0)


@define
class _Lines:
    """Numbers for lines of the files that a module names."""

    files: dict[int, Path]
    tokens: list[Token] = field(factory=list[Token])
    _numbers: dict[tuple[int, int], int] = field(factory=dict[tuple[int, int], int])
    _texts: dict[int, list[str]] = field(factory=dict[int, list[str]])

    def number(self, file: int, line: int) -> int:
        """Of the token that stands for a line; 0: the compiler has no line for it."""
        if line == 0:
            return 0
        if (file, line) not in self._numbers:
            self._numbers[file, line] = self._made(file, line)
        return self._numbers[file, line]

    def _made(self, file: int, line: int) -> int:
        written = self._text(file)
        if not line <= len(written):
            return _NOWHERE
        text = written[line - 1]
        column = len(text) - len(text.lstrip()) + 1
        self.tokens.append(Token(self.files[file], line, column, text.strip()))
        return len(self.tokens)

    def _text(self, file: int) -> list[str]:
        if file not in self._texts:
            path = self.files.get(file)
            self._texts[file] = [] if path is None or INSTALLED & set(path.parts) else _lines_of(path)
        return self._texts[file]


def _lines_of(path: Path) -> list[str]:
    try:
        return read_text(path).split("\n")
    except (OSError, UnicodeDecodeError):  # a name that is none of a file: "<string>"
        return []
