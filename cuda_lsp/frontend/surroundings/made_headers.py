"""Headers that a build writes from templates of the project: `configure_file(config.h.in config.h)` of CMake,
and those of ``.proto`` files (``protobuf_headers``).

Such a header is nowhere before a build was made. Its text is the template's, with the values that ``set``
gives in the project's CMake files; lines with values that nothing tells are left out, so that what hangs
on them stays undeclared. Looked for when a file is opened, never while typing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath

from attrs import frozen

from cuda_lsp import files
from cuda_lsp.frontend.surroundings import cmake_values, protobuf_headers
from cuda_lsp.frontend.surroundings.nearby_headers import project_root

_MAX_BYTES = 1 << 20
_FOLDER = ".cuda-lsp-made"
_CONFIGURED = re.compile(r'\bconfigure_file\s*\(\s*"?([^\s"()]+)"?\s+"?([^\s"()]+)"?', re.I)
_FALSE = re.compile(r"0|OFF|NO|N|FALSE|IGNORE|NOTFOUND|(?<![\w.+-])[\w.+-]{1,60}-NOTFOUND", re.I)
"""Source: CMake's manual, ``if()``, "Condition Syntax"."""
_PLACE = re.compile(r"@(\w+)@|\$\{(\w+)\}")
_SWITCH = re.compile(r"^([ \t]*#[ \t]*)cmakedefine(01)?[ \t]+(\w+)([^\n]*)", re.M)


@frozen
class MadeHeader:
    """``name``: as ``#include`` has it. ``folder``: where it is taken to stand. ``text``: what it holds."""

    name: str
    folder: str
    text: str

    @property
    def path(self) -> str:
        """Where clang finds it; no such file exists."""
        return f"{self.folder}/{self.name}"


@frozen
class _Template:
    source: Path
    made: PurePosixPath  # without the build's folders in front


def made_headers(path: Path, names: Sequence[str]) -> tuple[MadeHeader, ...]:
    """Those of the headers ``names``, which the file ``path`` looks for, that the project's build makes."""
    root = project_root(path)
    if root is None or not names:
        return ()
    templates, values = _configured(root), cmake_values.values_of(root)
    found: list[MadeHeader] = []
    for name in names:
        protocol = protobuf_headers.header_of(path, root, name)
        template = next((t for t in templates if _is_called(t.made, name)), None)
        if protocol is not None:
            found.append(MadeHeader(name, str(root / _FOLDER), protocol))
        elif template is not None:
            try:
                text = files.read_text(template.source, _MAX_BYTES)
            except OSError:
                continue
            found.append(MadeHeader(name, str(root / _FOLDER), _filled_in(text, values)))
    return tuple(found)


def forget() -> None:
    """Look again: templates may have come or gone."""
    _configured.cache_clear()
    cmake_values.forget()
    protobuf_headers.forget()


def _is_called(made: PurePosixPath, name: str) -> bool:
    wanted, parts = PurePosixPath(name).parts, made.parts
    shorter = min(len(wanted), len(parts))
    return ".." not in wanted and shorter > 0 and wanted[-shorter:] == parts[-shorter:]


@lru_cache(maxsize=4)
def _configured(root: Path) -> tuple[_Template, ...]:
    """The templates of a project."""
    templates: list[_Template] = []
    for file, text in cmake_values.texts_of(root):
        for source, made in _CONFIGURED.findall(text):
            template = _source(_told(source), file, root)
            if template is not None:
                templates.append(_Template(template, _told(made)))
    return tuple(templates)


def _told(path: str) -> PurePosixPath:
    """The end of a path, behind its last variable."""
    return PurePosixPath(re.split(r"[$@][{\w]*[}@]", path)[-1].lstrip("/"))


def _source(name: PurePosixPath, said_in: Path, root: Path) -> Path | None:
    """The template, in the nearest folder above the file that names it, or where that file says (``../``)."""
    if ".." in name.parts:
        said = Path(os.path.normpath(said_in.parent / name))
        return said if root in said.parents and files.is_regular(said) else None
    if name.name:
        for folder in said_in.parents:
            if files.is_regular(folder / name):
                return folder / name
            if folder == root:
                break
    return None


def _filled_in(template: str, values: Mapping[str, str | None]) -> str:
    """What a build makes of a template; switches of which nothing is known are off."""

    def switched(match: re.Match[str]) -> str:
        is_on = not _FALSE.fullmatch(values.get(match[3]) or "OFF")
        if match[2]:
            return f"{match[1]}define {match[3]} {int(is_on)}"
        return f"{match[1]}define {match[3]}{match[4]}" if is_on else ""

    def value(match: re.Match[str]) -> str:
        told = values.get(match[1] or match[2])
        return match[0] if told is None else told

    lines = (_PLACE.sub(value, line) for line in _SWITCH.sub(switched, template).splitlines())
    return "".join("\n" if _PLACE.search(line) else f"{line}\n" for line in lines)
