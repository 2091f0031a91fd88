"""Macros that a project's build files define: ``-DTILE=16`` of a Makefile, ``target_compile_definitions``.

Read from text, without asking which target or option they belong to: whoever takes one says that it is a
guess. The folders above a source count, then commands of CMake anywhere that define something for CUDA,
whatever the case. Of what a build file has for one case or another (``if … else``), the one that speaks of
CUDA counts (of HIP, where a text is read as HIP), else the one that an option asks for as it is by default,
else the first. Looked for when a file is opened, never while typing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from cuda_lsp import files
from cuda_lsp.frontend.surroundings.cmake_values import (
    OF_OTHERS,
    options_of,
    speaks_of_cuda,
    speaks_of_hip,
    texts_of,
    values_of,
)
from cuda_lsp.frontend.surroundings.nearby_headers import project_root

_NAMES = (
    *("CMakeLists.txt", "Makefile", "makefile", "GNUmakefile", "setup.py", "meson.build", "pyproject.toml"),
    *("BUILD", "BUILD.bazel", "SConstruct", "common.mk", "make.config", "Makefile.in", "config.mk"),
)
_MAX_BYTES = 1 << 20
_FLAG = re.compile(r"(?<![\w-])-D[ \t]?([A-Za-z_]\w*)(=(?:[\w.+-]{1,60}|\(\w{1,60}\)))?(?![\w(=$])")
_COMMAND = re.compile(r"\b(?:target|add)_(?:compile_)?definitions\s?\(([^()]{0,4000})\)", re.I)
_ITEM = re.compile(r"(?<![\w$<{:=/-])(?:-D)?([A-Za-z_]\w*)(=[\w.+-]{1,60})?(?![\w(=$>}:/-])")
_CMAKE_WORDS = frozenset({"PRIVATE", "PUBLIC", "INTERFACE"})
_COMMENT = re.compile(r"^[ \t]*(?:#|//)[^\n]*", re.M)
_STRING = re.compile(r'\b[A-Za-z_]\w*=\\?"[^"\n]*"')
_BRANCH = re.compile(
    r"^[ \t]*(?:(?P<if>if\s?\(|ifn?(?:eq|def)\b)|(?P<else>else(?:if)?(?:\s?\(|\b))|(?P<end>endif\b))[^\n]*",
    re.M | re.I,
)
_CLOSED = re.compile(r"\bendif\b", re.I)
_NEGATED = re.compile(r"\s{0,9}(?:if\s?\(\s?NOT\b|ifn)", re.I)
_SEVERAL = re.compile(r"\s(?:OR|AND)\s", re.I)
_ASKED = re.compile(r"\s{0,9}if\s?\(\s?(?:NOT\s)?\s?(\w+)\s?\)", re.I)
_ARCHITECTURE = re.compile(r"\$\{CMAKE_CUDA_ARCHITECTURES\}")
_VARIABLE = re.compile(r"(?<=\w)=\$\{(\w+)\}")
_USUAL = "80"  # what CMake's variable is where nothing tells: the architecture of texts without settings


@frozen
class _Cases:
    """Which of the branches of an ``if`` are taken: by whom the text is compiled, and by its options."""

    speaks: Callable[[str], int]
    options: Mapping[str, str | None]

    def chosen(self, branches: Sequence[str]) -> str:
        """The one that speaks of the compiler most, and least of others; else as options are. "": none."""
        condition, _, body = branches[0].partition("\n")
        negated = _NEGATED.match(condition) is not None and _SEVERAL.search(condition) is None
        asked = self.speaks(condition) * (-1 if negated else 1)
        option = _ASKED.match(condition)
        value = self.options.get(option[1]) if option and not asked else None
        if value is not None:
            return (*branches, "")[(value == "ON") == negated]
        scores = [
            asked + self.speaks(body),
            *(self.speaks(branch) - asked for branch in branches[1:]),
            -asked,
        ]
        return (*branches, "")[scores.index(max(scores))]


def build_macros(
    path: Path, names: Collection[str], *, hip: bool = False, by_options: bool = True
) -> tuple[str, ...]:
    """``NAME=VALUE`` (``NAME``: 1) of those ``names`` that build files define, as the nearest one says.

    ``hip``: the text is read as HIP. ``by_options``: options are as they are by default.
    """
    root = project_root(path)
    options = options_of(root) if root is not None and by_options else dict[str, str | None]()
    cases = _Cases(speaks_of_hip if hip else speaks_of_cuda, options)
    found: dict[str, str] = {}
    for file in _build_files(path):
        try:
            text = _STRING.sub("", _COMMENT.sub("", files.read_text(file, _MAX_BYTES)))
        except OSError:  # gone, or no file at all
            continue
        for name, value in _definitions(_with_values(_one_case(text, cases), path)):
            if name in names:
                found.setdefault(name, f"{name}{value}")
    others = () if hip else _of_other_folders(path, frozenset(names) - found.keys())
    return (*found.values(), *others)


def _of_other_folders(path: Path, names: Collection[str]) -> Iterator[str]:
    """What commands anywhere in the project define for CUDA, and for nothing else, with one value each.

    The folder of a source need not be that of the target which compiles it. Options stay off.
    """
    root = project_root(path)
    values: dict[str, str | None] = {}
    for text in (text for _, text in texts_of(root)) if root is not None and names else ():
        for command in _COMMAND.finditer(_in_all_cases(_STRING.sub("", text))):
            if speaks_of_cuda(command[0]) <= 0 or OF_OTHERS.search(command[0]):
                continue
            for name, value in _definitions(_with_values(command[0], path)):
                if name in names:
                    values[name] = value if values.get(name, value) == value else None
    yield from (f"{name}{value}" for name, value in values.items() if value is not None)


def _build_files(path: Path) -> Iterator[Path]:
    root = project_root(path)
    for folder in path.absolute().parents if root is not None else ():
        yield from (folder / name for name in _NAMES if files.is_regular(folder / name))
        if folder == root:
            break


def _with_values(text: str, path: Path) -> str:
    """The text with the values of CMake's variables that definitions are given: ``SIZE=${SIZE}``."""
    text, root = _ARCHITECTURE.sub(_USUAL, text), project_root(path)
    if root is None or _VARIABLE.search(text) is None:
        return text
    values = values_of(root)
    return _VARIABLE.sub(lambda match: f"={values.get(match[1]) or match[0][1:]}", text)


def _one_case(text: str, cases: _Cases) -> str:
    """The text with one branch of each ``if … else``."""
    branches = [[""]]  # of the text, then of every ``if`` that is open
    place = 0
    for match in _BRANCH.finditer(text):
        branches[-1][-1] += text[place : match.start()]
        place = match.end()
        if match["if"] and _CLOSED.search(match[0]):  # all in one line
            branches[-1][-1] += match[0]
        elif match["if"]:
            branches.append([match[0]])
        elif len(branches) > 1 and match["else"]:
            branches[-1].append(match[0])
        elif len(branches) > 1:
            chosen = cases.chosen(branches.pop())
            branches[-1][-1] += chosen
    return "".join(part for parts in branches for part in parts) + text[place:]


def _in_all_cases(text: str) -> str:
    """The text without what stands in an ``if``."""
    parts: list[str] = []
    place = depth = 0
    for match in _BRANCH.finditer(text):
        if not depth:
            parts.append(text[place : match.start()])
        if match["if"] and not _CLOSED.search(match[0]):
            depth += 1
        elif match["end"]:
            depth = max(0, depth - 1)
        place = match.end()
    return "".join(parts) + (text[place:] if not depth else "")


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
