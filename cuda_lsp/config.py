"""Settings: one schema for file, editor and command line.

Merged, later wins: defaults < ``cuda-lsp.toml`` or ``[tool.cuda-lsp]`` of ``pyproject.toml`` < editor <
command line; a ``// cuda-lsp:`` directive of the source wins over all for its kernel. Keys are written in
kebab-case in files (``default-block``) and in camelCase by editors (``defaultBlock``).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from attrs import evolve, field, fields, frozen

from cuda_lsp.hardware import DEFAULT_ARCH, UnknownArchitecture, gpu_model
from cuda_lsp.model import Code, Dim3, GpuModel, Severity

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_NAME = "cuda-lsp.toml"
_SEVERITIES = {s.name.lower(): s for s in Severity}
OFF = "off"

_DETAILS = ("pairs", "flags")


@frozen
class Settings:
    """Everything a user can set. Times in milliseconds unless the name says otherwise."""

    arch: str = field(default=DEFAULT_ARCH, metadata={"help": "Target architecture (sm_NN)."})
    banks: int | None = field(
        default=None, metadata={"help": "Shared-memory banks; by default the target's."}
    )
    include_dirs: tuple[str, ...] = field(default=(), metadata={"help": "Folders searched for headers."})
    defines: tuple[str, ...] = field(default=(), metadata={"help": "Macros, as NAME or NAME=VALUE."})
    std: str = field(default="c++17", metadata={"help": "C++ standard."})
    compile_commands: str | None = field(
        default=None, metadata={"help": "compile_commands.json; by default searched upwards from the file."}
    )
    default_block: Dim3 = field(
        default=(256, 1, 1), metadata={"help": "Block extents assumed when nothing tells a kernel's launch."}
    )
    block_dim: Dim3 | None = field(default=None, metadata={"help": "Block extents for every kernel."})
    grid_dim: Dim3 | None = field(default=None, metadata={"help": "Grid extents for every kernel."})
    severity: Mapping[Code, Severity | None] = field(
        factory=dict[Code, "Severity | None"],
        metadata={"help": "Severity by code: error, warning, information, hint or off."},
    )
    min_bank_ways: int = field(
        default=2, metadata={"help": "Bank conflicts below this many ways are not shown."}
    )
    enumeration_budget: int = field(
        default=250, metadata={"help": "Milliseconds a kernel may be enumerated."}
    )
    solver: bool = field(default=True, metadata={"help": "Prove with Z3 in the background."})
    solver_budget: int = field(
        default=650, metadata={"help": "Milliseconds of work that Z3 may spend on a kernel."}
    )
    solver_workers: int = field(default=1, metadata={"help": "Solver processes."})
    program_arguments: tuple[str, ...] = field(
        default=(), metadata={"help": "Arguments of the program when it runs under check."}
    )
    program_sources: tuple[str, ...] = field(
        default=(), metadata={"help": "Further sources of the program, beside the file with main."}
    )
    program_link: tuple[str, ...] = field(
        default=(), metadata={"help": "Options of the program's link step, such as -lz."}
    )
    build_command: str = field(
        default="",
        metadata={"help": "Command that builds the program (make), which tells what it is made of."},
    )
    run_command: str = field(
        default="",
        metadata={"help": "Command that starts the built program with its inputs, such as ./app 10."},
    )
    program_folder: str | None = field(
        default=None,
        metadata={
            "help": "Folder of the build and run commands; by default that of the settings file or workspace."
        },
    )
    detail: str = field(
        default="pairs",
        metadata={"help": "What dynamic checks tell of races: pairs of statements, or flags (racing words)."},
    )
    all_blocks: bool = field(
        default=False, metadata={"help": "Dynamic checks look at every block, not at a sample."}
    )
    watch_all: bool = field(
        default=False,
        metadata={"help": "Dynamic checks also watch accesses that are proved race-free."},
    )
    nvcc: str | None = field(
        default=None, metadata={"help": "The CUDA compiler of dynamic checks; by default the one found."}
    )
    inlay_hints: bool = field(default=True, metadata={"help": "Show n-way conflicts beside the access."})
    code_lens: bool = field(default=True, metadata={"help": "Show each kernel's verdict above it."})

    @property
    def gpu(self) -> GpuModel:
        """The hardware model; settings are validated, so this does not fail."""
        return gpu_model(self.arch, self.banks)


@frozen
class SettingsProblem:
    """One mistake in a settings source, for people: where, which key, what is expected."""

    source: str
    key: str
    expected: str

    def __str__(self) -> str:
        return f"{self.source}: {self.key}: {self.expected}"


def merge(
    settings: Settings, values: Mapping[str, Any], source: str
) -> tuple[Settings, list[SettingsProblem]]:
    """``settings`` overridden by ``values``; keys in snake, kebab or camel case. Bad ones are left out."""
    problems: list[SettingsProblem] = []
    changes: dict[str, Any] = {}
    known = {attribute.name for attribute in fields(Settings)}
    for key, value in values.items():
        name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key.replace("-", "_")).lower()
        if name not in known:
            problems.append(SettingsProblem(source, key, "no such setting"))
            continue
        try:
            changes[name] = _converted(name, value)
        except (ValueError, TypeError) as error:
            problems.append(SettingsProblem(source, key, str(error)))
    return evolve(settings, **changes), problems


PATIENT = Settings(solver_budget=2_600)
"""The defaults of the command line, where nobody waits at a cursor."""


def load(folder: Path, defaults: Settings | None = None) -> tuple[Settings, list[SettingsProblem]]:
    """``defaults``, overridden by the nearest settings file at or above ``folder``."""
    found = find_settings_file(folder)
    return load_file(found, defaults) if found else (defaults or Settings(), [])


def load_file(path: Path, defaults: Settings | None = None) -> tuple[Settings, list[SettingsProblem]]:
    """``defaults``, overridden by one settings file."""
    defaults = defaults or Settings()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return defaults, [SettingsProblem(str(path), "file", f"not readable as TOML: {error}")]
    if path.name == "pyproject.toml":
        document = document.get("tool", {}).get("cuda-lsp", {})
    settings, problems = merge(defaults, document, str(path))
    here = path.parent
    database = settings.compile_commands
    return (
        evolve(
            settings,
            include_dirs=tuple(str(here / d) for d in settings.include_dirs),
            program_sources=tuple(str(here / source) for source in settings.program_sources),
            program_folder=str(here / (settings.program_folder or ".")),
            compile_commands=str(here / database) if database else None,
        ),
        problems,
    )


def placed(settings: Settings, root: Path) -> Settings:
    """The settings of an editor whose workspace is ``root``: the program's folder is found from there."""
    return evolve(settings, program_folder=str(root / (settings.program_folder or ".")))


def find_settings_file(folder: Path) -> Path | None:
    """``cuda-lsp.toml``, or a ``pyproject.toml`` with our table, in ``folder`` or the nearest parent."""
    for parent in (folder, *folder.parents):
        own = parent / FILE_NAME
        if own.is_file():
            return own
        shared = parent / "pyproject.toml"
        if shared.is_file() and _has_table(shared):
            return shared
    return None


def _has_table(path: Path) -> bool:
    try:
        return "cuda-lsp" in tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False  # another tool's file; its mistakes are not ours to report


def _converted(name: str, value: Any) -> Any:
    if name in ("default_block", "block_dim", "grid_dim"):
        return None if value is None and name != "default_block" else _extents(value)
    if name in ("include_dirs", "defines", "program_arguments", "program_sources", "program_link"):
        return _strings(value)
    if name == "severity":
        return _severities(value)
    if name == "arch":
        return _architecture(value)
    if name == "detail":
        if value not in _DETAILS:
            raise ValueError(f"expected {' or '.join(_DETAILS)}, got {value!r}")
        return value
    if name in ("solver", "inlay_hints", "code_lens", "all_blocks", "watch_all"):
        return _checked(value, bool, "true or false")
    if name in ("compile_commands", "program_folder", "nvcc") and value is None:
        return None
    if name in ("std", "compile_commands", "build_command", "run_command", "program_folder", "nvcc"):
        return _checked(value, str, "a string")
    if name == "banks" and value is None:
        return None
    number = _checked(value, int, "a whole number")
    if isinstance(value, bool) or number < 1:
        raise ValueError("expected a positive number")
    return number


def _checked(value: Any, kind: type, expected: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"expected {expected}, got {value!r}")
    return value


def _items(value: Any, expected: str) -> list[Any]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"expected {expected}, got {value!r}")
    return list(cast("Iterable[Any]", value))


def _extents(value: Any) -> Dim3:
    expected = "one to three positive numbers"
    numbers = [value] if isinstance(value, int) else _items(value, expected)
    if not 1 <= len(numbers) <= 3 or any(not isinstance(n, int) or n < 1 for n in numbers):
        raise ValueError(f"expected {expected}, got {value!r}")
    x, y, z = [*numbers, 1, 1][:3]
    return (x, y, z)


def _strings(value: Any) -> tuple[str, ...]:
    items = _items(value, "a list of strings")
    if not all(isinstance(item, (str, Path)) for item in items):
        raise TypeError(f"expected a list of strings, got {value!r}")
    return tuple(str(item) for item in items)


def _severities(value: Any) -> dict[Code, Severity | None]:
    if not isinstance(value, Mapping):
        raise TypeError(f"expected a table of code = severity, got {value!r}")
    severities: dict[Code, Severity | None] = {}
    for key, name in cast("Mapping[Any, Any]", value).items():
        if key not in {code.value for code in Code}:
            raise ValueError(f"no diagnostic code {key!r}")
        if name != OFF and name not in _SEVERITIES:
            raise ValueError(f"{key}: expected one of {', '.join((*_SEVERITIES, OFF))}, got {name!r}")
        severities[Code(key)] = _SEVERITIES.get(name)
    return severities


def _architecture(value: Any) -> str:
    name = _checked(value, str, "a string like sm_80")
    try:
        gpu_model(name)
    except UnknownArchitecture as error:
        raise ValueError(str(error)) from None
    return name


def settings_schema() -> dict[str, Any]:
    """JSON schema of the settings, keys in camelCase as editors write them."""
    extents = {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 1, "maxItems": 3}
    by_name: dict[str, dict[str, Any]] = {
        "default_block": extents,
        "block_dim": {"anyOf": [extents, {"type": "null"}]},
        "grid_dim": {"anyOf": [extents, {"type": "null"}]},
        "banks": {"type": ["integer", "null"], "minimum": 1, "maximum": 32},
        "compile_commands": {"type": ["string", "null"]},
        "program_folder": {"type": ["string", "null"]},
        "nvcc": {"type": ["string", "null"]},
        "detail": {"enum": [*_DETAILS]},
        "severity": {
            "type": "object",
            "additionalProperties": False,
            "properties": {code.value: {"enum": [*_SEVERITIES, OFF]} for code in Code},
        },
    }
    properties: dict[str, Any] = {}
    for attribute in fields(Settings):
        default: Any = {} if attribute.name == "severity" else attribute.default
        shape = by_name.get(attribute.name) or _shape(default)
        default = list(cast("tuple[Any, ...]", default)) if isinstance(default, tuple) else default
        properties[_camel(attribute.name)] = {
            **shape,
            "default": default,
            "description": attribute.metadata["help"],
        }
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _shape(default: Any) -> dict[str, Any]:
    if isinstance(default, bool):
        return {"type": "boolean"}
    if isinstance(default, int):
        return {"type": "integer", "minimum": 1}
    if isinstance(default, tuple):
        return {"type": "array", "items": {"type": "string"}}
    return {"type": "string"}


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
