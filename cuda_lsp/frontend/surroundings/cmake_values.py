"""The variables of a project's CMake files that ``set`` gives one value: ``set(SIZE "64" CACHE STRING …)``.

Options are as they are by default. Read from text, without running CMake: a variable that several lines give
different values has none that anybody knows; files that set up another platform than CUDA
(``SetupHIP.cmake``) say nothing. Looked for when a file is opened, never while typing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from cuda_lsp import files

_MAX_FOLDERS = 5000
_MAX_BYTES = 1 << 20
_SET = re.compile(r'^[ \t]*set\s*\(\s*(\w+)\s+"?([\w.+-]{1,60})"?\s*(?:\)|CACHE\s+[A-Z]+\s)', re.I | re.M)
_OPTION = re.compile(r'^[ \t]*option\s*\(\s*(\w+)\s+"[^"]{0,200}"\s+(ON|OFF)\s*\)', re.I | re.M)
_OF_CUDA = re.compile(r"cuda|nvidia|nvcc", re.I)
_OF_HIP = re.compile(r"hip(?!blas)|rocm|\bamd", re.I)
_OF_NEITHER = re.compile(r"sycl|opencl", re.I)
OF_OTHERS = re.compile(f"{_OF_HIP.pattern}|{_OF_NEITHER.pattern}", re.I)
"""Words of other platforms."""
_COMMENT = re.compile(r"#[^\n]*")


@lru_cache(maxsize=4)
def values_of(root: Path) -> Mapping[str, str | None]:
    """The variables of the project at ``root``; None: of several values."""
    return _told(root, _SET, _OPTION)


@lru_cache(maxsize=4)
def options_of(root: Path) -> Mapping[str, str | None]:
    """``ON`` or ``OFF`` of each option, as it is by default; None: of several defaults."""
    return _told(root, _OPTION)


def _told(root: Path, *patterns: re.Pattern[str]) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    for _, text in texts_of(root):
        for name, value in (found for pattern in patterns for found in pattern.findall(text)):
            values[name] = value if values.get(name, value) == value else None
    return values


@lru_cache(maxsize=4)
def texts_of(root: Path) -> tuple[tuple[Path, str], ...]:
    """The project's CMake files, without comments."""
    return tuple(_texts(root))


def _texts(root: Path) -> Iterator[tuple[Path, str]]:
    for count, (folder, below, names) in enumerate(files.walk(root, (".txt", ".cmake"))):
        if count >= _MAX_FOLDERS:
            return
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in names:
            if name == "CMakeLists.txt" or (name.endswith(".cmake") and speaks_of_cuda(name) >= 0):
                try:
                    yield (
                        Path(folder, name),
                        _COMMENT.sub("", files.read_text(Path(folder, name), _MAX_BYTES)),
                    )
                except OSError:  # gone, or too large: it tells nothing
                    continue


def speaks_of_cuda(text: str) -> int:
    """How often a text names CUDA, less how often it names another platform."""
    return len(_OF_CUDA.findall(text)) - len(OF_OTHERS.findall(text))


def speaks_of_hip(text: str) -> int:
    """How often a text names HIP, less how often it names another platform."""
    return len(_OF_HIP.findall(text)) - len(_OF_CUDA.findall(text)) - len(_OF_NEITHER.findall(text))


def forget() -> None:
    """Look again: files may have come or gone."""
    texts_of.cache_clear()
    values_of.cache_clear()
    options_of.cache_clear()
