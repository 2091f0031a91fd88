"""Settings: one schema for file, editor and command line.

Merged, later wins: defaults < ``cuda-lsp.toml`` or ``[tool.cuda-lsp]`` of ``pyproject.toml`` < editor <
command line; a ``// cuda-lsp:`` directive of the source wins over all for its kernel. Keys are written in
kebab-case in files (``default-block``) and in camelCase by editors (``defaultBlock``). Who may set what is
said in each row (``Reach``): a folder that nobody trusts names no paths, flags or programs.
"""

from __future__ import annotations

import enum
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from attrs import evolve, field, fields, frozen

from cuda_lsp.file_patterns import matches
from cuda_lsp.hardware import ARCHITECTURES, DEFAULT_ARCH, GpuModel, UnknownArchitecture, gpu_model
from cuda_lsp.model import Code, Dim3, Severity

_SEVERITIES = {s.name.lower(): s for s in Severity}
OFF = "off"
NO_DATABASE = ""
"""As ``compile_commands``: none is searched for."""

_DETAILS = ("pairs", "flags")
_LONGEST_BUDGET = 600_000  # milliseconds


class Reach(enum.Enum):
    """Who may set a setting."""

    ANYBODY = "anybody"
    TRUSTED = (
        "trusted"  # it names paths, compiler flags or programs: a settings file only where it is trusted
    )
    MACHINE = "machine"  # it is the machine's, not a project's: no settings file


# ------------------------------------------------------------------------------- the kinds of values


def _checked(value: Any, kind: type, expected: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"expected {expected}, got {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    return _shortened(repr(value))


def _items(value: Any, expected: str) -> list[Any]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"expected {expected}, got {_shown(value)}")
    return list(cast("Iterable[Any]", value))


def _truth(value: Any) -> bool:
    return _checked(value, bool, "true or false")


def _text(value: Any) -> str:
    text = str(_checked(value, (str, Path), "a string"))  # type: ignore[arg-type]
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise ValueError("expected text that a file system can take, without NUL and lone surrogates")
    return text


def _address(value: Any) -> str:
    text = _text(value)
    if text and not re.fullmatch(r"https?://[^\s/]+\S*", text):
        raise ValueError("expected an address that begins with https:// or http://")
    return text


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(_text(item) for item in _items(value, "a list of strings"))


def _number(value: Any, most: int) -> int:
    if isinstance(value, bool) or not 1 <= _checked(value, int, "a whole number") <= most:
        raise ValueError(f"expected a whole number from 1 to {most}")
    return value


def _extents(value: Any, limits: Dim3, most: int) -> Dim3:
    expected = "one to three positive numbers"
    numbers = [value] if isinstance(value, int) else _items(value, expected)
    if not 1 <= len(numbers) <= 3 or any(not isinstance(n, int) or n < 1 for n in numbers):
        raise ValueError(f"expected {expected}, got {_shown(value)}")
    if math.prod(numbers) > most or any(n > limit for n, limit in zip(numbers, limits, strict=False)):
        raise ValueError(f"at most {limits} by axis, and {most} in all")
    x, y, z = [*numbers, 1, 1][:3]
    return (x, y, z)


def _severities(value: Any) -> dict[Code, Severity | None]:
    if not isinstance(value, Mapping):
        raise TypeError(f"expected a table of code = severity, got {_shown(value)}")
    severities: dict[Code, Severity | None] = {}
    for key, name in cast("Mapping[Any, Any]", value).items():
        if key not in {code.value for code in Code}:
            raise ValueError(f"no diagnostic code {_shown(key)}")
        if not isinstance(name, str) or (name != OFF and name not in _SEVERITIES):
            raise ValueError(f"{key}: expected one of {', '.join((*_SEVERITIES, OFF))}, got {_shown(name)}")
        severities[Code(key)] = _SEVERITIES.get(name)
    return severities


def _architecture(value: Any) -> str:
    name = _checked(value, str, "a string like sm_80")
    try:
        gpu_model(name)
    except UnknownArchitecture as error:
        raise ValueError(str(error)) from None
    return name


def _detail(value: Any) -> str:
    if value not in _DETAILS:
        raise ValueError(f"expected {' or '.join(_DETAILS)}, got {_shown(value)}")
    return value


def _optional(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


_Json = dict[str, Any]


@frozen
class _Kind:
    """What values a setting takes: how one is checked, and its JSON schema."""

    convert: Callable[[Any], Any]
    schema: _Json


def _nullable(kind: _Kind) -> _Kind:
    of = kind.schema
    simple = set(of) == {"type"} or "maximum" in of
    schema = {**of, "type": [of["type"], "null"]} if simple else {"anyOf": [of, {"type": "null"}]}
    return _Kind(_optional(kind.convert), schema)


def _whole(most: int) -> _Kind:
    return _Kind(partial(_number, most=most), {"type": "integer", "minimum": 1, "maximum": most})


def _dimensions(limits: Dim3, most: int) -> _Kind:
    items = {"type": "integer", "minimum": 1}
    schema: _Json = {"type": "array", "items": items, "minItems": 1, "maxItems": 3}
    return _Kind(partial(_extents, limits=limits, most=most), schema)


_TRUTH = _Kind(_truth, {"type": "boolean"})
_TEXT = _Kind(_text, {"type": "string"})
_TEXTS = _Kind(_texts, {"type": "array", "items": {"type": "string"}})
_LARGEST = gpu_model(DEFAULT_ARCH)
_BLOCK = _dimensions(_LARGEST.max_block_dim, _LARGEST.max_threads_per_block)
_GRID = _dimensions(_LARGEST.max_grid_dim, math.prod(_LARGEST.max_grid_dim))
_SEVERITY = _Kind(
    _severities,
    {
        "type": "object",
        "additionalProperties": False,
        "properties": {code.value: {"enum": [*_SEVERITIES, OFF]} for code in Code},
    },
)
_MEBIBYTES = _whole(1 << 30)
_NAMED: list[_Json] = [{"enum": [*ARCHITECTURES]}, {"pattern": r"^(sm|compute)_\d{2,3}[af]?$"}]
_ARCHITECTURE: _Json = {"type": "string", "anyOf": _NAMED}  # editors complete the first
_IGNORE = "ignore"
_BY_FILE = ("arch", "banks", "default_block", "block_dim", "grid_dim", "severity", "min_bank_ways", "solver")
"""Settings that files may have of their own."""


def _tables_by_file(value: Any) -> dict[str, dict[str, Any]]:
    """Patterns with the settings of files that match them, checked, by their names here."""
    if not isinstance(value, Mapping):
        raise TypeError(f"expected a table of pattern = settings, got {_shown(value)}")
    found: dict[str, dict[str, Any]] = {}
    for pattern, table in cast("Mapping[Any, Any]", value).items():
        if not isinstance(table, Mapping):
            raise TypeError(f"{_shown(pattern)}: expected a table of settings, got {_shown(table)}")
        found[_text(pattern)] = _of_files(str(pattern), cast("Mapping[Any, Any]", table))
    return found


def _of_files(pattern: str, table: Mapping[Any, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    ignored: list[Any] = []
    for key, value in table.items():
        name = _name(key)
        try:
            if name == _IGNORE:
                ignored = _items(value, "a list of codes")
            elif name not in _BY_FILE:
                raise ValueError("no setting that files may have of their own")
            else:
                changes[name] = _ROWS[name].metadata["kind"].convert(value)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{_shown(pattern)}: {_shortened(str(key))}: {error}") from None
    if ignored:
        off = _severities(dict.fromkeys(_texts(ignored), OFF))
        changes["severity"] = {**changes.get("severity", {}), **off}
    return changes


def _schema_by_file() -> _Json:
    own = {_camel(name): shape for name, shape, _ in _shapes() if name in _BY_FILE}
    codes: _Json = {"type": "array", "items": {"enum": [code.value for code in Code]}}
    ignore = {**codes, "description": "Codes that are not told of these files."}
    table: _Json = {"type": "object", "additionalProperties": False, "properties": {_IGNORE: ignore, **own}}
    return {"type": "object", "additionalProperties": table}


_CORES = os.cpu_count() or 1


def _setting(default: Any, kind: _Kind, help: str, reach: Reach = Reach.ANYBODY) -> Any:
    return field(default=default, metadata={"help": help, "kind": kind, "reach": reach})


@frozen
class Settings:
    """Everything a user can set. Times in milliseconds unless the name says otherwise.

    ``folders``, which nobody sets: folders with settings of their own.
    """

    arch: str = _setting(DEFAULT_ARCH, _Kind(_architecture, _ARCHITECTURE), "Target architecture (sm_NN).")
    banks: int | None = _setting(None, _nullable(_whole(32)), "Shared-memory banks; by default the target's.")
    include_dirs: tuple[str, ...] = _setting((), _TEXTS, "Folders searched for headers.", Reach.TRUSTED)
    defines: tuple[str, ...] = _setting((), _TEXTS, "Macros, as NAME or NAME=VALUE.", Reach.TRUSTED)
    std: str = _setting("c++17", _TEXT, "C++ standard.", Reach.TRUSTED)
    compile_commands: str | None = _setting(
        None, _nullable(_TEXT), "compile_commands.json; by default searched upwards from the file.",
        Reach.TRUSTED,
    )  # fmt: skip
    default_block: Dim3 = _setting(
        (256, 1, 1), _BLOCK, "Block extents assumed when nothing tells a kernel's launch."
    )
    block_dim: Dim3 | None = _setting(None, _nullable(_BLOCK), "Block extents for every kernel.")
    grid_dim: Dim3 | None = _setting(None, _nullable(_GRID), "Grid extents for every kernel.")
    severity: Mapping[Code, Severity | None] = field(
        factory=dict[Code, "Severity | None"],
        metadata={
            "help": "Severity by code: error, warning, information, hint or off.",
            "kind": _SEVERITY,
            "reach": Reach.ANYBODY,
        },
    )
    min_bank_ways: int = _setting(2, _whole(32), "Bank conflicts below this many ways are not shown.")
    enumeration_budget: int = _setting(
        250, _whole(_LONGEST_BUDGET), "Milliseconds a kernel may be enumerated."
    )
    solver: bool = _setting(True, _TRUTH, "Prove with Z3 in the background.")
    solver_budget: int = _setting(
        650, _whole(_LONGEST_BUDGET), "Milliseconds of work that Z3 may spend on a kernel."
    )
    solver_workers: int = _setting(
        1, _whole(1024), "Solver processes, no more than the machine has cores.", Reach.MACHINE
    )
    program_arguments: tuple[str, ...] = _setting(
        (), _TEXTS, "Arguments of the program when it runs under check.", Reach.TRUSTED
    )
    program_sources: tuple[str, ...] = _setting(
        (), _TEXTS, "Further sources of the program, beside the file with main.", Reach.TRUSTED
    )
    program_link: tuple[str, ...] = _setting(
        (), _TEXTS, "Options of the program's link step, such as -lz.", Reach.TRUSTED
    )
    build_command: str = _setting(
        "", _TEXT, "Command that builds the program (make), which tells what it is made of.", Reach.TRUSTED
    )
    run_command: str = _setting(
        "", _TEXT, "Command that starts the built program with its inputs, such as ./app 10.", Reach.TRUSTED
    )
    program_folder: str | None = _setting(
        None, _nullable(_TEXT),
        "Folder of the build and run commands; by default that of the settings file or workspace.",
        Reach.TRUSTED,
    )  # fmt: skip
    program_memory: int | None = _setting(
        None, _nullable(_MEBIBYTES),
        "MiB of memory that a program under check may use with all that it starts; by default half of the"
        " machine's.",
        Reach.TRUSTED,
    )  # fmt: skip
    gpu_memory: int | None = _setting(
        None, _nullable(_MEBIBYTES),
        "MiB of a GPU's memory that a check or its program may use; by default three quarters of what is"
        " free.",
        Reach.TRUSTED,
    )  # fmt: skip
    detail: str = _setting(
        "pairs", _Kind(_detail, {"enum": [*_DETAILS]}),
        "What dynamic checks tell of races: pairs of statements, or flags (racing words).",
    )  # fmt: skip
    all_blocks: bool = _setting(False, _TRUTH, "Dynamic checks look at every block, not at a sample.")
    watch_all: bool = _setting(False, _TRUTH, "Dynamic checks also watch accesses that are proved race-free.")
    nvcc: str | None = _setting(
        None, _nullable(_TEXT), "The CUDA compiler of dynamic checks; by default the one found.",
        Reach.TRUSTED,
    )  # fmt: skip
    documentation: str = _setting(
        "", _Kind(_address, {"type": "string"}),
        "Address (https://…) of the documentation to which codes lead; empty: the pages that are installed.",
        Reach.TRUSTED,
    )  # fmt: skip
    per_file: Mapping[str, Mapping[str, Any]] = field(
        factory=dict[str, "Mapping[str, Any]"],
        metadata={
            "help": "Settings of files that match a pattern: codes to ignore, launches, architecture.",
            "kind": _Kind(_tables_by_file, {"type": "object"}),
            "reach": Reach.ANYBODY,
        },
    )
    inlay_hints: bool = _setting(True, _TRUTH, "Show n-way conflicts beside the access.")
    interval_hints: bool = _setting(
        False, _TRUTH, "Show beside each barrier which barrier interval of its block it ends."
    )  # fmt: skip
    code_lens: bool = _setting(True, _TRUTH, "Show each kernel's verdict above it.")
    folders: tuple[tuple[Path, Settings], ...] = ()

    @property
    def gpu(self) -> GpuModel:
        """The hardware model; settings are validated, so this does not fail."""
        return gpu_model(self.arch, self.banks)

    def of_file(self, path: Path) -> Settings:
        """Those of one file: of the nearest folder with its own, and there all tables of ``per_file`` that
        match it, in their order, before the others."""
        around = [(len(folder.parts), of) for folder, of in self.folders if path.is_relative_to(folder)]
        if around:
            return max(around, key=lambda found: found[0])[1].of_file(path)
        if not self.per_file:
            return self
        found = self
        for pattern, changes in self.per_file.items():
            if matches(pattern, path):
                severity = {**found.severity, **changes.get("severity", {})}
                found = evolve(found, **{**changes, "severity": severity})
        return evolve(found, per_file={})

    @property
    def solver_processes(self) -> int:
        """How many solver processes to start on this machine."""
        return min(self.solver_workers, _CORES)


_ROWS = {attribute.name: attribute for attribute in fields(Settings) if "kind" in attribute.metadata}


@frozen
class SettingsProblem:
    """One mistake in a settings source, for people: where, which key, what is expected.

    ``path`` and ``line`` (1-based): of a settings file. ``refused``: no mistake, but not the source's to set.
    """

    source: str
    key: str
    expected: str
    path: Path | None = None
    line: int = 1
    refused: bool = False

    def __str__(self) -> str:
        return f"{self.source}: {self.said}"

    @property
    def said(self) -> str:
        """Without the source."""
        return f"{_shortened(self.key)}: {self.expected}"


def _name(key: Any) -> str:
    """A setting's name as we write it, of kebab, camel or snake case."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", str(key).replace("-", "_")).lower()


def merge(
    settings: Settings,
    values: Mapping[Any, Any],
    source: str,
    refused: Mapping[Reach, str] | None = None,
) -> tuple[Settings, list[SettingsProblem]]:
    """``settings`` overridden by ``values``; keys in snake, kebab or camel case. Bad ones are left out.

    ``refused``: what the source may not set, and why.
    """
    problems: list[SettingsProblem] = []
    changes: dict[str, Any] = {}
    for key, value in values.items():
        name = _name(key)
        row = _ROWS.get(name)
        if row is None:
            problems.append(SettingsProblem(source, str(key), "no such setting"))
        elif refused and row.metadata["reach"] in refused:
            problems.append(SettingsProblem(source, key, refused[row.metadata["reach"]], refused=True))
        else:
            try:
                changes[name] = row.metadata["kind"].convert(value)
            except (ValueError, TypeError) as error:
                problems.append(SettingsProblem(source, key, str(error)))
    return evolve(settings, **changes), problems


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


PATIENT = Settings(solver_budget=2_600)
"""The defaults of the command line, where nobody waits at a cursor."""

# ------------------------------------------------------------------------------------------- schema


def settings_schema() -> dict[str, Any]:
    """JSON schema of the settings, keys in camelCase as editors write them."""
    properties = {_camel(name): {**shape, "default": default} for name, shape, default in _shapes()}
    properties["perFile"] |= _schema_by_file()
    return {"type": "object", "additionalProperties": False, "properties": properties}


def names_of(reach: Reach) -> tuple[str, ...]:
    """The settings that need this much trust, as editors write them."""
    return tuple(_camel(name) for name, row in _ROWS.items() if row.metadata["reach"] is reach)


def _shapes() -> Iterator[tuple[str, _Json, Any]]:
    """Each setting's name, schema with its description, and default as JSON."""
    for name, row in _ROWS.items():
        default: Any = {} if name in ("severity", "per_file") else row.default
        default = list(cast("tuple[Any, ...]", default)) if isinstance(default, tuple) else default
        yield name, {**row.metadata["kind"].schema, "description": row.metadata["help"]}, default


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
