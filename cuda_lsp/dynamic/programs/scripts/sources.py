"""What a program gave to NVRTC and to linkers, as ``standin/nvrtc.cpp`` and ``linkers.cpp`` tell it, and how
nvcc is asked for the same.

NVRTC's options are nvcc's for device code, with few exceptions. Those that say what kind of code comes out
are left out: the check makes its own.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from attrs import define, frozen

from cuda_lsp.dynamic.compilation.compile import CompileOptions

_T = TypeVar("_T")
_ELF, _SHORT = b"\x7fELF", 64
_SPACED = ("-I", "-D", "-U", "-std", "-include", "-arch", "-maxrregcount", "-Xptxas")
_LONG = {
    "--include-path": "-I",
    "--define-macro": "-D",
    "--undefine-macro": "-U",
    "--std": "-std",
    "--pre-include": "-include",
    "--use_fast_math": "-use_fast_math",
    "--ftz": "-ftz",
    "--fmad": "-fmad",
    "--prec-div": "-prec-div",
    "--prec-sqrt": "-prec-sqrt",
    "--extra-device-vectorization": "-extra-device-vectorization",
    "--restrict": "-restrict",
}
_ALIKE = frozenset({"-use_fast_math", "-ftz", "-fmad", "-prec-div", "-prec-sqrt", "-restrict"})
_NAMED = re.compile(r"(-{1,2}[\w-]+?)(?:=(.*))?", re.S)


@frozen
class RuntimeSource:
    """A text, what the program calls it, headers that it holds in memory (name and text), NVRTC's options.

    ``expressions``: names of instances that are to be compiled (``kernel<float>``).
    """

    text: str
    name: str
    headers: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()

    @property
    def compile_options(self) -> CompileOptions:
        """For nvcc, all but the architecture."""
        folders: list[Path] = []
        defines: list[str] = []
        others: list[str] = []
        standard = None
        for name, value in _pairs(self.options):
            if name == "-I":
                folders.append(Path(value))
            elif name == "-D":
                defines.append(value)
            elif name == "-std":
                standard = value
            elif name in ("-U", "-include"):
                others += [name, value]
            elif name in _ALIKE:
                others.append(f"{name}={value}" if value else name)
        return CompileOptions(tuple(folders), tuple(defines), std=standard, extra=tuple(others))


@frozen
class PtxText:
    """A module that the program loaded as PTX, or linked from it."""

    text: str


def _pairs(options: Sequence[str]) -> list[tuple[str, str]]:
    """Options by nvcc's short names, with their values, however they were written."""
    found: list[tuple[str, str]] = []
    words = [word.strip() for word in options]
    k = 0
    while k < len(words):
        word = words[k]
        k += 1
        if word[:2] in ("-I", "-D", "-U") and len(word) > 2:
            found.append((word[:2], word[2:].lstrip()))
            continue
        match = _NAMED.fullmatch(word)
        if match is None:
            continue
        name, value = _LONG.get(match[1], match[1]), match[2]
        if value is None and name in _SPACED and k < len(words):
            value = words[k]
            k += 1
        found.append((name, value or ""))
    return found


def image_key(image: bytes) -> str:
    """What makes an image of a module the same one, whoever tells how long it is."""
    return hashlib.sha256(_whole(image)).hexdigest()


def _whole(image: bytes) -> bytes:
    if not image.startswith(_ELF) or len(image) < _SHORT:
        return image.rstrip(b"\0")
    programs, sections = struct.unpack_from("<QQ", image, 32)
    program_size, program_count, size, count = struct.unpack_from("<HHHH", image, 54)
    return image[: max(sections + size * count, programs + program_size * program_count)]


@define
class _Reader:
    body: bytes
    at: int = 0

    def number(self) -> int:
        (value,) = struct.unpack_from("<I", self.body, self.at)
        self.at += 4
        return value

    def field(self) -> bytes:
        size = self.number()
        if size > len(self.body) - self.at:
            raise struct.error("a field is longer than its message")
        self.at += size
        return self.body[self.at - size : self.at]

    def texts(self) -> list[str]:
        return [self.field().decode(errors="replace") for _ in range(self.number())]


def told(message: bytes, known: Mapping[str, _T]) -> tuple[str, RuntimeSource | PtxText | _T]:
    """The key of an image, and what it was made of; of PTX whose own key is ``known``, that.

    Raises struct.error.
    """
    reader = _Reader(message)
    kind, image = reader.field(), reader.field()
    if kind == b"ptx":
        ptx = reader.field().rstrip(b"\0")
        return image_key(image), known.get(image_key(ptx)) or PtxText(ptx.decode(errors="replace"))
    text, name = (reader.field().decode(errors="replace") for _ in range(2))
    headers, options, expressions = reader.texts(), reader.texts(), reader.texts()
    pairs = tuple(zip(headers[::2], headers[1::2], strict=False))
    return image_key(image), RuntimeSource(text, name, pairs, tuple(options), tuple(expressions))
