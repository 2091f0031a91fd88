"""Settings files: found above a folder, read with care, each mistake at its line.

``cuda-lsp.toml``, or ``[tool.cuda-lsp]`` of ``pyproject.toml``. Paths in one are relative to its folder.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from attrs import evolve

from cuda_lsp import files
from cuda_lsp.config import Reach, Settings, SettingsProblem, merge, names_of, settings_schema
from cuda_lsp.file_patterns import placed as placed_pattern

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_NAME = "cuda-lsp.toml"
_NULL = {"type": "null"}
_MOST_PARTS = 200  # of a dotted key: the time for one grows with their square

_NOT_A_PROJECTS: Mapping[Reach, str] = {
    Reach.MACHINE: "a setting of the machine: set it in the editor or on the command line",
}
_UNTRUSTED: Mapping[Reach, str] = {
    **_NOT_A_PROJECTS,
    Reach.TRUSTED: "not read, because this workspace is not trusted",
}


def file_schema() -> dict[str, Any]:
    """JSON schema of ``cuda-lsp.toml``, by which editors complete it: without what is the machine's."""
    schema = _as_written(settings_schema())
    for name in names_of(Reach.MACHINE):
        del schema["properties"][kebab(name)]
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": FILE_NAME, **schema}


def _as_written(schema: Any) -> Any:
    """A schema with the names of files; TOML has no null, nor defaults that are."""
    if isinstance(schema, list):
        return [_as_written(item) for item in cast("list[Any]", schema) if item not in ("null", _NULL)]
    if not isinstance(schema, dict):
        return schema
    found = cast("dict[str, Any]", schema)
    made = {key: _as_written(value) for key, value in found.items() if (key, value) != ("default", None)}
    if isinstance(found.get("properties"), dict):
        made["properties"] = {kebab(name): shape for name, shape in made["properties"].items()}
    return made


def kebab(name: str) -> str:
    """A setting's name in files, of that in editors."""
    return re.sub(r"([A-Z])", r"-\1", name).lower()


def load(
    folder: Path, defaults: Settings | None = None, *, trusted: bool = True
) -> tuple[Settings, list[SettingsProblem]]:
    """``defaults``, overridden by the nearest settings file at or above ``folder``."""
    found = find_settings_file(folder)
    return load_file(found, defaults, trusted=trusted) if found else (defaults or Settings(), [])


def load_file(
    path: Path, defaults: Settings | None = None, *, trusted: bool = True
) -> tuple[Settings, list[SettingsProblem]]:
    """``defaults``, overridden by one settings file; of one that is not ``trusted`` no paths or flags."""
    defaults = defaults or Settings()
    try:
        text, document = _document(path)
    except _Unreadable as error:
        return defaults, [SettingsProblem(str(path), "file", str(error), path, error.line)]
    refused = _NOT_A_PROJECTS if trusted else _UNTRUSTED
    settings, problems = merge(defaults, document, str(path), refused)
    here = path.parent
    database = settings.compile_commands
    return (
        evolve(
            settings,
            include_dirs=tuple(str(here / d) for d in settings.include_dirs),
            program_sources=tuple(str(here / source) for source in settings.program_sources),
            program_folder=str(here / (settings.program_folder or ".")),
            compile_commands=str(here / database) if database else None,
            per_file={placed_pattern(of, here): table for of, table in settings.per_file.items()},
        ),
        [evolve(problem, path=path, line=_line_of(problem.key, text)) for problem in problems],
    )


class _Unreadable(Exception):
    """A settings file that gives no table of ours; ``line`` is where, 1-based."""

    def __init__(self, reason: str, line: int = 1) -> None:
        super().__init__(reason)
        self.line = line


def _document(path: Path) -> tuple[str, Mapping[str, Any]]:
    """The text of a settings file, and our table in it. Raises _Unreadable."""
    try:
        text = files.read_text(path, files.SETTINGS_LIMIT, errors="strict")
        document = _parsed(text)
    except OSError as error:
        raise _Unreadable(f"cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        line = re.search(r"\(at line (\d+)", str(error))
        raise _Unreadable(f"not readable as TOML: {error}", int(line[1]) if line else 1) from None
    except (RecursionError, ValueError) as error:  # nested too deeply; numbers of thousands of digits
        raise _Unreadable(f"not readable as TOML: {error}") from None
    tables = ("tool", "cuda-lsp") if path.name == "pyproject.toml" else ()
    for table in tables:
        inner: Any = document.get(table, {})
        if not isinstance(inner, dict):
            raise _Unreadable(f"`{table}` is expected to be a table", _line_of(table, text))
        document = cast("dict[str, Any]", inner)
    return text, document


def _parsed(text: str) -> Any:
    """A TOML document. Raises what ``tomllib`` does, and _Unreadable for keys that take it minutes."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.partition("=")[0].count(".") > _MOST_PARTS:
            raise _Unreadable(f"not readable as TOML: a key of more than {_MOST_PARTS} parts", number)
    return tomllib.loads(text)


def _line_of(key: str, text: str) -> int:
    """The line that sets a key, or opens the table of that name; 1 where none is found."""
    written = re.escape(key)
    setting = re.compile(rf"""[ \t]*(?:\[[^\]\n]*)?["']?{written}["']?[ \t]*[=.\]]""")
    return next((n for n, line in enumerate(text.split("\n"), 1) if setting.match(line)), 1)


def placed(settings: Settings, root: Path) -> Settings:
    """The settings of an editor whose workspace is ``root``: folders and patterns are those from there."""
    per_file = {placed_pattern(of, root): table for of, table in settings.per_file.items()}
    return evolve(settings, program_folder=str(root / (settings.program_folder or ".")), per_file=per_file)


def find_settings_file(folder: Path) -> Path | None:
    """``cuda-lsp.toml``, or a ``pyproject.toml`` with our table, in ``folder`` or the nearest parent."""
    for parent in (folder, *folder.parents):
        own = parent / FILE_NAME
        if files.is_there(own):  # also what cannot be read: that is told
            return own
        shared = parent / "pyproject.toml"
        if files.is_regular(shared) and _has_table(shared):
            return shared
    return None


def _has_table(path: Path) -> bool:
    try:
        text = files.read_text(path, files.SETTINGS_LIMIT)
    except OSError:
        return False  # another tool's file; its mistakes are not ours to report
    try:
        tool: Any = _parsed(text).get("tool")
    except (RecursionError, ValueError, _Unreadable):
        return re.search(r"""^[ \t]*\[tool\.["']?cuda-lsp""", text, re.MULTILINE) is not None
    return isinstance(tool, Mapping) and "cuda-lsp" in tool
