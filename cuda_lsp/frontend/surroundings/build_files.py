"""Macros that a project's build files define: ``-DTILE=16`` of a Makefile, ``target_compile_definitions``.

Read from text, without asking which target or option they belong to: whoever takes one says that it is a
guess. Looked for when a file is opened, never while typing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from cuda_lsp import files
from cuda_lsp.frontend.surroundings.nearby_headers import project_root

_NAMES = (
    *("CMakeLists.txt", "Makefile", "makefile", "GNUmakefile", "setup.py", "meson.build", "pyproject.toml"),
    *("BUILD", "BUILD.bazel", "SConstruct", "common.mk", "make.config", "Makefile.in", "config.mk"),
)
_MAX_BYTES = 1 << 20
_FLAG = re.compile(r"(?<![\w-])-D[ \t]?([A-Za-z_]\w*)(=(?:[\w.+-]{1,60}|\(\w{1,60}\)))?(?![\w(=$])")
_COMMAND = re.compile(r"\b(?:target|add)_(?:compile_)?definitions\s?\(([^()]{0,4000})\)", re.I)
_ITEM = re.compile(r"(?<![\w$<{:=-])(?:-D)?([A-Za-z_]\w*)(=[\w.+-]{1,60})?(?![\w(=$>}:-])")
_CMAKE_WORDS = frozenset({"PRIVATE", "PUBLIC", "INTERFACE"})
_COMMENT = re.compile(r"^[ \t]*(?:#|//)[^\n]*", re.M)
_ARCHITECTURE = re.compile(r"\$\{CMAKE_CUDA_ARCHITECTURES\}")
_USUAL = "80"  # what CMake's variable is where nothing tells: the architecture of texts without settings


def build_macros(path: Path, names: Collection[str]) -> tuple[str, ...]:
    """``NAME=VALUE`` (``NAME``: 1) of those ``names`` that build files define, as the nearest one says."""
    found: dict[str, str] = {}
    for file in _build_files(path):
        try:
            text = _ARCHITECTURE.sub(_USUAL, _COMMENT.sub("", files.read_text(file, _MAX_BYTES)))
        except OSError:  # gone, or no file at all
            continue
        for name, value in _definitions(text):
            if name in names:
                found.setdefault(name, f"{name}{value}")
    return tuple(found.values())


def _build_files(path: Path) -> Iterator[Path]:
    root = project_root(path)
    for folder in path.absolute().parents if root is not None else ():
        yield from (folder / name for name in _NAMES if files.is_regular(folder / name))
        if folder == root:
            break


def _definitions(text: str) -> Iterator[tuple[str, str]]:
    for match in _FLAG.finditer(text):
        yield match[1], match[2] or ""
    for command in _COMMAND.finditer(text):
        words = _ITEM.finditer(command[1])
        # The first word of target_compile_definitions is the target.
        first = "target" in command[0].lower()[:6]
        for number, match in enumerate(words):
            if match[1] not in _CMAKE_WORDS and not (first and number == 0):
                yield match[1], match[2] or ""
