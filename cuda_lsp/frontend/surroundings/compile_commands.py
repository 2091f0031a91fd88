"""What ``compile_commands.json`` says of one file: nvcc's (or clang's) flags in our terms.

Source: the JSON compilation database format of Clang, and the option list of nvcc's manual. Only flags
that change what the front end sees are kept: include folders, macros, forced headers, language standard,
architecture. A header is not listed there; read alone it gets the flags of the first listed file of its
folder, else of the first file at all. Files are read when a file is opened, never while typing.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from attrs import evolve, frozen

from cuda_lsp import files
from cuda_lsp.config import NO_DATABASE
from cuda_lsp.frontend.surroundings.noted import note_forced
from cuda_lsp.frontend.toolchain import FrontendOptions
from cuda_lsp.model import ToolError

FILE_NAME = "compile_commands.json"
_BUILD_FOLDERS = ("", "build", "out", "cmake-build-debug", "cmake-build-release")
_MAX_RESPONSE_FILES = 16
_MAX_RESPONSE_BYTES = 1 << 18
_MAX_DEPTH = 16  # of response files, and of flags for the host compiler, in each other

# Flag → kind, for flags whose value is the next word or joined (``-I dir``, ``-Idir``, ``--flag=value``).
_VALUED: dict[str, str] = {
    "-I": "include", "--include-path": "include", "-isystem": "system", "--system-include": "system",
    "-iquote": "quote", "-idirafter": "after", "-D": "define", "--define-macro": "define",
    "-U": "undefine", "--undefine-macro": "undefine", "-include": "header", "--pre-include": "header",
    "--include": "header", "-imacros": "header", "-std": "std", "--std": "std", "-arch": "arch",
    "--gpu-architecture": "arch", "--cuda-gpu-arch": "arch", "--offload-arch": "arch", "-gencode": "arch",
    "--generate-code": "arch", "-default-stream": "stream", "--default-stream": "stream",
    "-rdc": "separate", "--relocatable-device-code": "separate", "-code": "skip", "--gpu-code": "skip",
    "-o": "skip", "--output-file": "skip", "-Xptxas": "skip", "--ptxas-options": "skip", "-Xlinker": "skip",
    "-Xcudafe": "skip", "-Xclang": "skip", "-Xnvlink": "skip", "-Xarchive": "skip", "-Xcuda-ptxas": "skip",
    "-ccbin": "skip", "--compiler-bindir": "skip", "-x": "skip", "--x": "skip", "-MF": "skip", "-MT": "skip",
    "-MQ": "skip", "--dependency-output": "skip", "-L": "skip", "-l": "skip", "-maxrregcount": "skip",
    "--maxrregcount": "skip", "-isysroot": "skip", "-include-pch": "skip", "-target": "skip",
}  # fmt: skip
_UNPACKED = ("-Xcompiler", "--compiler-options", "--options-file", "-optf")  # their value is further words
_FOLDERS = ("quote", "include", "system", "after")  # in the order in which compilers look into them
# Flags that are macros to the text.
_DEFINING: tuple[tuple[str, str], ...] = (
    (r"--?use_fast_math|-ffast-math", "__USE_FAST_MATH__"),
    (r"-G|--device-debug", "__CUDACC_DEBUG__"),
    (r"-dc|--device-c|-fgpu-rdc", "__CUDACC_RDC__"),
    (r"-fopenmp(?:=\w+)?|-qopenmp", "_OPENMP=201511"),
)
_SEPARATOR = re.compile(r"(?<!\\),|\s+")
# What nvcc allows only when it is asked to; a kernel compiled without may not compile.
_DEVICE = re.compile(r"--?(?:expt-(?:relaxed-constexpr|extended-lambda)|extended-lambda)")
_JOINED = ("-I", "-D", "-U", "-L", "-l", "-isystem", "-iquote", "-idirafter")
_ARCHITECTURE = re.compile(r"(?:sm|compute|lto)_(\d+)")


@frozen
class CompileFlags:
    """Flags of one file, folders absolute. ``arch`` is the highest architecture it is built for."""

    include_dirs: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    undefines: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    std: str | None = None
    arch: str | None = None
    device: tuple[str, ...] = ()

    def applied_to(self, options: FrontendOptions) -> FrontendOptions:
        """``options`` with these flags; the user's own folders and macros come first and win."""
        return evolve(
            options,
            include_dirs=tuple(dict.fromkeys((*options.include_dirs, *self.include_dirs))),
            defines=(*self.defines, *options.defines),
            std=self.std or options.std,
            arguments=(
                *(f"-U{name}" for name in self.undefines),
                *(word for header in self.headers for word in ("-include", header)),
                *options.arguments,
            ),
            device=self.device,
        )


def options_for(path: Path, options: FrontendOptions) -> tuple[FrontendOptions, tuple[ToolError, ...]]:
    """``options`` completed from the database that governs ``path``; unchanged when there is none."""
    if options.compile_commands == NO_DATABASE:
        return options, ()
    database = Path(options.compile_commands) if options.compile_commands else find_database(path)
    if database is None:
        return options, ()
    try:
        entries = _entries(database, files.stamp(database))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        said = f"{database} is not used: {reason}; generate it again with CMake or bear"
        return options, (ToolError(said),)
    entry = _entry_for(path, entries)
    return (translate(*entry[1:]).applied_to(options) if entry else options), ()


def find_database(path: Path) -> Path | None:
    """The nearest ``compile_commands.json`` at or above the file's folder, build folders included."""
    for folder in path.parents:
        for build in _BUILD_FOLDERS:
            candidate = folder / build / FILE_NAME
            if files.is_regular(candidate):
                return candidate
    return None


def files_of(database: Path) -> list[Path]:
    """The files that a database compiles, each once. Raises OSError or ValueError (one readable reason)."""
    return list(dict.fromkeys(path for path, _, _ in _entries(database, files.stamp(database))))


_Entry = tuple[Path, tuple[str, ...], Path]  # file, words of the command, folder it runs in


@lru_cache(maxsize=8)
def _entries(database: Path, modified: tuple[int, int]) -> tuple[_Entry, ...]:
    """Entries of a database. Raises OSError or ValueError (one readable reason)."""
    del modified  # part of the cache's key
    document: Any = json.loads(files.read_text(database, files.DATABASE_LIMIT, errors="strict"))
    if not isinstance(document, list):
        raise ValueError("expected a list of commands")
    found: list[_Entry] = []
    for item in cast("list[Any]", document):
        if not isinstance(item, dict):
            raise ValueError("expected a list of commands")
        entry = cast("dict[str, Any]", item)
        folder = database.parent / str(entry.get("directory", "."))
        words = entry.get("arguments") or shlex.split(str(entry.get("command", "")))
        name = entry.get("file")
        if isinstance(words, list) and isinstance(name, str) and _is_usable(name) and _is_usable(str(folder)):
            texts = tuple(str(word) for word in cast("list[Any]", words))
            found.append((_absolute(name, folder), texts, folder))
    return tuple(found)


def _entry_for(path: Path, entries: Sequence[_Entry]) -> _Entry | None:
    resolved = Path(files.target(path))
    exact = next((e for e in entries if e[0] == resolved), None)
    if exact:
        return exact
    cuda = [e for e in entries if e[0].suffix == ".cu"] or list(entries)
    return next((e for e in cuda if e[0].parent == resolved.parent), cuda[0] if cuda else None)


def _absolute(name: str, folder: Path) -> Path:
    """Links followed, those that go round left as they are."""
    return Path(files.target(folder / name))


def translate(words: Sequence[str], folder: Path) -> CompileFlags:
    """The words of a compiler call (the compiler itself first), run in ``folder``."""
    values: dict[str, list[str]] = {}
    macros: dict[str, str | None] = {}  # name → the last that is said of it; None: -U
    for kind, value in _flags(list(_Words(folder).unpacked(list(words[1:]), 0))):
        if not _is_usable(value):
            continue
        if kind in ("define", "undefine"):
            name = value.partition("=")[0]
            macros.pop(name, None)
            macros[name] = value if kind == "define" else None
        values.setdefault(kind, []).append(value)
    architectures = [int(n) for text in values.get("arch", ()) for n in _ARCHITECTURE.findall(text)]
    folders = [name for kind in _FOLDERS for name in values.get(kind, ())]
    standards = [text for text in values.get("std", ()) if re.fullmatch(r"(?:c|gnu)\+\+\w+", text)]
    return CompileFlags(
        include_dirs=tuple(dict.fromkeys(str(_absolute(d, folder)) for d in folders)),
        defines=tuple(value for value in macros.values() if value is not None),
        undefines=tuple(name for name, value in macros.items() if value is None),
        headers=tuple(_forced(h, folder) for h in values.get("header", ())),
        std=standards[-1] if standards else None,
        arch=f"sm_{max(architectures)}" if architectures else None,
        device=tuple(dict.fromkeys(values.get("device", ()))),
    )


def _forced(header: str, folder: Path) -> str:
    if files.is_regular(folder / header):
        found = str(_absolute(header, folder))
        note_forced(found)
        return found
    files.doubt(f"clang looks for {header} in this process's folder too")
    return header


def _is_usable(text: str) -> bool:
    """Whether it can be a name or a flag: no lone surrogates, which have no bytes, and no NUL."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


class _Words:
    """The words of one command, with those of the response files that it names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = 0  # response files

    def unpacked(self, words: list[str], depth: int) -> Iterator[str]:
        """All words in order, those of the host compiler and of response files in their places."""
        rest = iter(words)
        for word in rest:
            name, equals, value = word.partition("=")
            if word.startswith("@"):
                yield from self._response(word[1:], depth)
            elif name not in _UNPACKED:
                yield word
            else:
                value = value if equals else next(rest, "")
                if name in ("--options-file", "-optf"):
                    for part in value.split(","):
                        yield from self._response(part, depth)
                elif depth < _MAX_DEPTH:
                    parts = [part.replace("\\,", ",") for part in _SEPARATOR.split(value) if part]
                    yield from self.unpacked(parts, depth + 1)

    def _response(self, name: str, depth: int) -> Iterator[str]:
        if depth >= _MAX_DEPTH or self._read >= _MAX_RESPONSE_FILES:
            return
        self._read += 1
        try:
            words = shlex.split(files.read_text(self._folder / name, _MAX_RESPONSE_BYTES), comments=True)
        except (OSError, ValueError):
            return  # made during the build and gone since: the other flags still help
        yield from self.unpacked(words, depth + 1)


def _flags(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(kind, value) of every flag that matters here, in order."""
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        name, equals, value = word.partition("=")
        macro = next((macro for pattern, macro in _DEFINING if re.fullmatch(pattern, word)), None)
        if macro is not None:
            yield "define", macro
        elif _DEVICE.fullmatch(word):
            yield "device", word
        elif word in _VALUED:
            yield from _valued(_VALUED[word], words[position] if position < len(words) else "")
            position += 1
        elif equals and name in _VALUED:
            yield from _valued(_VALUED[name], value)
        else:
            flag = next((f for f in _JOINED if word.startswith(f) and len(word) > len(f)), None)
            if flag is not None:
                yield from _valued(_VALUED[flag], word[len(flag) :])


def _valued(kind: str, value: str) -> Iterator[tuple[str, str]]:
    if kind == "stream" and value == "per-thread":
        yield "define", "CUDA_API_PER_THREAD_DEFAULT_STREAM=1"
    elif kind == "separate" and value == "true":
        yield "define", "__CUDACC_RDC__"
    elif kind in (*_FOLDERS, "undefine"):
        yield from ((kind, part) for part in value.split(",") if part)
    elif kind not in ("skip", "stream", "separate") and value:
        yield kind, value
