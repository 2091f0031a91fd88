"""What the compilers of a build were asked to do: sources, their options, and what was linked from what.

Reads the command lines of nvcc (CUDA Compiler Driver NVCC, "NVCC Command Options"), of compilers that take
GCC's options, and of ``ar``. Options that change what the code means are kept; those that say where output
goes, for which GPU, or how well it is optimised are not, because the check decides these itself.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import define, evolve, field, frozen

from cuda_lsp.dynamic.compilation.compile import CompileOptions
from cuda_lsp.dynamic.programs.job import DEVICE_SOURCES, Library, Unit
from cuda_lsp.dynamic.programs.recorder import Started
from cuda_lsp.files import is_regular, read_text

_MOST_RESPONSE_FILES = 64  # of one command
_SOURCES = (*DEVICE_SOURCES, ".cpp", ".cc", ".cxx", ".c", ".C", ".c++")
_CUDAS_OWN = re.compile(r"(?:lib)?(?:cuda|cudart|cudart_static|cudadevrt)(?:\.a|\.so[.\d]*)?")


def _named(options: str) -> frozenset[str]:
    return frozenset(options.split())


_LONG = {
    "--output-file": "-o", "--include-path": "-I", "--define-macro": "-D", "--undefine-macro": "-U",
    "--library": "-l", "--library-path": "-L", "--pre-include": "-include", "--system-include": "-isystem",
    "--std": "-std", "--gpu-architecture": "-arch", "--gpu-code": "-code", "--generate-code": "-gencode",
    "--compiler-bindir": "-ccbin", "--compiler-options": "-Xcompiler", "--linker-options": "-Xlinker",
    "--ptxas-options": "-Xptxas", "--nvlink-options": "-Xnvlink", "--archive-options": "-Xarchive",
    "--options-file": "-optf", "--output-directory": "-odir", "--relocatable-device-code": "-rdc",
    "--compile": "-c", "--device-c": "-dc", "--device-w": "-dw", "--device-link": "-dlink", "--lib": "-lib",
    "--shared": "-shared", "--ptx": "-ptx", "--cubin": "-cubin", "--fatbin": "-fatbin",
    "--preprocess": "-E", "--generate-dependencies": "-M", "--x": "-x", "--optimize": "-O",
    "--dependency-output": "-MF", "--threads": "-t", "--machine": "-m", "--default-stream": "-default-stream",
    "--cudart": "-cudart", "--cudadevrt": "-cudadevrt", "--maxrregcount": "-maxrregcount",
    "--debug": "-g", "--device-debug": "-G", "--generate-line-info": "-lineinfo", "--dryrun": "-dryrun",
    "--keep-dir": "-keep-dir", "--generate-dependencies-with-compile": "-MD", "--version": "-version",
    "--generate-nonsystem-dependencies-with-compile": "-MMD", "--dependency-target-name": "-MT",
}  # fmt: skip
_SEPARATE = _named(
    "-o -I -D -U -L -l -x -include -isystem -iquote -idirafter -imacros -std -arch -code -gencode -ccbin"
    " -Xcompiler -Xlinker -Xptxas -Xnvlink -Xarchive -Xcudafe -optf -odir -rdc -cudart -cudadevrt -MF -MT -MQ"
    " -O -default-stream -maxrregcount -t -m -keep-dir -diag-suppress -diag-error -diag-warn -target"
)
_JOINED = _named("-o -I -D -U -L -l -x -O")  # the value may follow at once
_OTHER_WORK = _named("-ptx -cubin -fatbin -optix-ir -E -M -MM -S -dryrun -version -v -cuda")
_UNIMPORTANT = _named(
    "-c -dc -dw -o -odir -arch -code -gencode -rdc -MD -MMD -MP -MF -MT -MQ -lineinfo -G -g -Xptxas -Xnvlink"
    " -Xarchive -l -L -Xlinker -cudart -cudadevrt -shared -keep-dir -t -keep -Werror -x -std -link -m -v"
    " -res-usage -resource-usage -static -s"
)
_OUTPUT = _named("-c -o -MD -MMD -MP -MF -MT -MQ -l -L -shared -x")
_FOLDERS = _named("-isystem -iquote -idirafter -include -imacros")
_OF_GCC_LINKS = re.compile(r"-(?:l|L|Wl,|f(?:openmp|sanitize=)|pthread$|rdynamic$|static-lib)")


@frozen
class _Option:
    name: str  # as nvcc's short form; "": an input
    value: str = ""
    words: tuple[str, ...] = ()  # as it was given


@frozen
class Step:
    """One call of a compiler or archiver: what it makes of which inputs.

    ``units``: the sources among its inputs, each with how it is compiled. ``links``: it makes a program,
    an archive or a ``shared`` library of them, the ``objects`` and ``libraries`` (options for GCC); else one
    object.
    """

    output: Path
    units: tuple[Unit, ...] = ()
    objects: tuple[Path, ...] = ()
    libraries: tuple[str, ...] = ()
    links: bool = False
    program: bool = False
    shared: bool = False


@frozen
class Linked:
    """What a program is made of: sources, and files and options of its last link step.

    ``libraries``, ``needs``: as of ``ProgramJob``; the units of libraries come behind the program's own.
    """

    units: tuple[Unit, ...]
    link: tuple[str, ...] = ()
    libraries: tuple[Library, ...] = ()
    needs: tuple[int, ...] = ()


def steps_of(started: Started) -> Iterator[Step]:
    """What one recorded compiler makes; nothing where it makes no object, library or program."""
    name = started.executable.name
    if name == "ar" or name.endswith("-ar"):
        yield from _archived(started)
        return
    nvcc = name == "nvcc"
    options = list(_options(_all_arguments(started, nvcc), started.folder))
    names = {option.name for option in options}
    inputs = [_at(started.folder, option.value) for option in options if not option.name]
    if names & _OTHER_WORK - {"-v"} or not inputs:
        return
    language = next((o.value for o in options if o.name == "-x"), "")
    make = _device_unit if nvcc else _host_unit
    units = tuple(
        make(started, path, options, language) for path in inputs if language or path.suffix in _SOURCES
    )
    sources = {unit.path for unit in units}
    output = next((_at(started.folder, o.value) for o in options if o.name == "-o"), None)
    if names & {"-c", "-dc", "-dw"}:
        folder = next((_at(started.folder, o.value) for o in options if o.name == "-odir"), started.folder)
        for unit in units:
            yield Step(_real(output or folder / f"{unit.path.stem}.o"), (unit,))
        return
    if "-dlink" in names:  # code that is made anew: nothing is taken from it
        yield Step(_real(output or started.folder / "a_dlink.o"), links=True)
        return
    objects = tuple(_real(path) for path in inputs if path not in sources)
    shared, archive = "-shared" in names, "-lib" in names
    libraries = tuple(_libraries(options, started.folder))
    whole = not (shared or archive)
    yield Step(_real(output or started.folder / "a.out"), units, objects, libraries, True, whole, shared)


def linked(program: Path, steps: Mapping[Path, Step], opened: Sequence[Path] = ()) -> Linked:
    """All that a program is made of: objects and archives of the build are taken apart into their sources.

    Shared libraries of the build stay what they are; ``opened``: further ones, which the program may open.
    """
    parts = _Parts(steps)
    binary = parts.binary(program)
    for library in opened:
        parts.number_of(library)
    units = (*binary.units, *(unit for units in parts.units for unit in units))
    return Linked(units, tuple(binary.link), tuple(parts.libraries), tuple(binary.needs))


@define
class _Binary:
    """A program or library that is being taken apart."""

    path: Path
    units: dict[Unit, None] = field(factory=dict[Unit, None])
    link: list[str] = field(factory=list[str])
    needs: list[int] = field(factory=list[int])
    seen: set[Path] = field(factory=set[Path])


@define
class _Parts:
    """The shared libraries that a program of a build has to do with, and the units of each."""

    steps: Mapping[Path, Step]
    libraries: list[Library] = field(factory=list[Library])
    units: list[tuple[Unit, ...]] = field(factory=list[tuple[Unit, ...]])
    _numbers: dict[Path, int] = field(factory=dict[Path, int])

    def number_of(self, path: Path) -> int:
        """The number of a library, which is greater than those of what it is linked with."""
        if path not in self._numbers:
            self._numbers[path] = 0  # one that is linked with itself
            made = self.binary(path)
            self.libraries.append(Library(path, tuple(made.link), tuple(made.needs)))
            self._numbers[path] = number = len(self.libraries)
            self.units.append(tuple(evolve(unit, library=number) for unit in made.units))
        return self._numbers[path]

    def binary(self, path: Path) -> _Binary:
        """What one link step leads to."""
        made = _Binary(path)
        self._visit(path, made)
        return made

    def _visit(self, path: Path, into: _Binary) -> None:
        step = self.steps.get(path)
        if path in into.seen and step is not None:
            return
        into.seen.add(path)
        if step is None:
            if not _CUDAS_OWN.fullmatch(path.name):
                into.link.append(str(path))
            return
        if step.shared and path != into.path:
            if (number := self.number_of(path)) and number not in into.needs:
                into.needs.append(number)
            return
        for unit in step.units:
            into.units.setdefault(unit)
        for made in step.objects:
            self._visit(made, into)
        searched = [_real(Path(o[2:])) for o in step.libraries if o.startswith("-L")]
        for option in step.libraries:
            own = _own_library(option, searched, self.steps)
            if own is not None:
                self._visit(own, into)
            elif path == into.path or option.startswith(("-l", "-L")):  # others are of an archive's own link
                into.link.append(option)


def _own_library(option: str, folders: Sequence[Path], steps: Mapping[Path, Step]) -> Path | None:
    """The library of ``-lname``, where the build made it."""
    if not option.startswith("-l"):
        return None
    name = option[2:]
    names = (name[1:],) if name.startswith(":") else (f"lib{name}.so", f"lib{name}.a")
    made = (_real(folder / name) for folder in folders for name in names)
    return next((path for path in made if path in steps), None)


def _archived(started: Started) -> Iterator[Step]:
    words = [word for word in _expanded(started.arguments[1:], started.folder) if not word.startswith("-")]
    archive = next((k for k, word in enumerate(words) if word.endswith((".a", ".lib"))), None)
    if archive is not None and archive + 1 < len(words):
        members = tuple(_real(_at(started.folder, word)) for word in words[archive + 1 :])
        yield Step(_real(_at(started.folder, words[archive])), objects=members, links=True)


def _all_arguments(started: Started, nvcc: bool) -> list[str]:
    words = list(started.arguments[1:])
    if nvcc:
        before = shlex.split(started.environment.get("NVCC_PREPEND_FLAGS", ""))
        words = [*before, *words, *shlex.split(started.environment.get("NVCC_APPEND_FLAGS", ""))]
    return words


def _expanded(words: Sequence[str], folder: Path) -> Iterator[str]:
    """The words, with those of response files in their place."""
    waiting, read = list(words), 0
    while waiting:
        word = waiting.pop(0)
        name = word[1:] if word.startswith("@") else ""
        if word in ("-optf", "--options-file") and waiting:
            name = waiting.pop(0)
        elif word.startswith(("-optf=", "--options-file=")):
            name = word.split("=", 1)[1]
        files = [_at(folder, part) for part in name.split(",")] if name else []
        if files and read + len(files) <= _MOST_RESPONSE_FILES and all(map(is_regular, files)):
            read += len(files)  # one may name itself
            waiting[:0] = [w for file in files for w in shlex.split(read_text(file))]
        else:
            yield word


def _options(words: Sequence[str], folder: Path) -> Iterator[_Option]:
    waiting = list(_expanded(words, folder))
    while waiting:
        word = waiting.pop(0)
        if not word.startswith("-") or word == "-":
            yield _Option("", word, (word,))
            continue
        head, equals, value = word.partition("=")
        short, name = _LONG.get(head, head), _LONG.get(word, word)
        if equals and short in _SEPARATE:
            yield _Option(short, value, (word,))
        elif name in _SEPARATE and waiting and (name != "-O" or waiting[0].isdigit()):
            value = waiting.pop(0)
            yield _Option(name, value, (word, value))
        elif word[:2] in _JOINED and len(word) > 2 and word not in _LONGER and not word.startswith("--"):
            yield _Option(word[:2], word[2:], (word,))
        else:
            yield _Option(name, "", (word,))


_LONGER = _UNIMPORTANT | _OTHER_WORK | {"-lib", "-dlink"}


def _device_unit(started: Started, path: Path, options: Sequence[_Option], language: str) -> Unit:
    """A source that nvcc compiles."""
    names = {option.name for option in options}
    rdc = next((o.value for o in options if o.name == "-rdc"), "false")
    kept = [o for o in options if o.name and o.name not in _UNIMPORTANT and o.name not in ("-I", "-D", "-O")]
    return Unit(
        path,
        CompileOptions(
            tuple(_at(started.folder, o.value) for o in options if o.name == "-I"),
            tuple(o.value for o in options if o.name == "-D"),
            std=next((o.value for o in reversed(options) if o.name == "-std"), None),
            extra=tuple(word for option in kept for word in _placed(option, started.folder)),
        ),
        folder=started.folder,
        flags=tuple(f"-Xcompiler=-O{o.value}" for o in options if o.name == "-O"),
        device=(language or path.suffix.lstrip(".")) in ("cu", "cuh"),
        relocatable="-dc" in names or rdc == "true",
    )


def _host_unit(started: Started, path: Path, options: Sequence[_Option], language: str) -> Unit:
    """A source that the host's compiler compiles, in the folder where it did."""
    kept = [o for o in options if o.name and o.name not in _OUTPUT and not o.name.startswith("-Wl,")]
    flags = tuple(word for option in kept for word in option.words)
    folder = started.folder
    return Unit(path, CompileOptions(), folder, flags, started.executable, language, device=False)


def _placed(option: _Option, folder: Path) -> tuple[str, ...]:
    """The option, meaning the same in any folder."""
    if option.name in _FOLDERS:
        return (option.name, str(_at(folder, option.value)))
    return option.words


def _libraries(options: Sequence[_Option], folder: Path) -> Iterator[str]:
    """The options of a link step, as GCC takes them."""
    for option in options:
        if option.name == "-l":
            if not _CUDAS_OWN.fullmatch(option.value):
                yield f"-l{option.value}"
        elif option.name == "-L":
            yield f"-L{_at(folder, option.value)}"
        elif option.name == "-Xlinker":
            yield f"-Wl,{option.value}"
        elif option.name == "-Xcompiler":
            yield from (word for word in re.split(r"[,\s]+", option.value) if _OF_GCC_LINKS.match(word))
        elif _OF_GCC_LINKS.match(option.name):
            yield option.name


def _at(folder: Path, name: str) -> Path:
    return Path(os.path.normpath(folder / name))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
