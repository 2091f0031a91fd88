"""Building a program so that its launches can be checked.

For the emulator its objects are linked with the stand-in runtime; for a GPU they become a shared object with
hooks in front of the real one, which the process of ``gpu_process`` loads. Shared libraries of the program's
own build are made beside it; the runtime that they call is the program's, with the stand-in or the hooks.

The text may be an unsaved buffer, compiled as ``compile.py`` does. What is made is kept by content, the
headers that the compiler names included. Functions of CUDA libraries that the stand-in lacks become stubs
which name themselves when they are called, so that code which never calls them still links. What is ours is
compiled once for all programs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path

from attrs import define, evolve, field, frozen

from cuda_lsp.dynamic.compilation.compile import RELOCATABLE, CompileError, build_errors, digest_of
from cuda_lsp.dynamic.compilation.scratch import compiler_environment, scratch
from cuda_lsp.dynamic.compilation.stages import Cancelled, Done, Plan, nvcc_variables, plan, run
from cuda_lsp.dynamic.compilation.toolkit import Toolkit
from cuda_lsp.dynamic.programs.function_tables import compile_with_table
from cuda_lsp.dynamic.programs.job import Library, ProgramJob, Unit
from cuda_lsp.dynamic.ptx.names import stable
from cuda_lsp.hardware import architecture_number
from cuda_lsp.model import ToolError

_FORMAT = 5
_SECONDS = 300.0
_UNDEFINED = re.compile(r"undefined reference to [`']((?:(?!undefined reference)[^\n])+)'")
_LIBRARY = re.compile(r"cu[A-Zbdfrs]\w*|nv\w+|npp\w+")
_WRAPPED = re.compile(r"^WRAP\(\w+, (\w+),", re.MULTILINE)
_CUDAS = re.compile(
    r"(?:-l|lib)(?:cu[a-z]+|nv[a-z]+|npp[a-z]+)(?:_static)?(?:\.a|\.so[.\d]*)?"
)  # not stood in for
_OF_THREAD = re.compile(r"(\w+)_pt[sd][zs]")  # a function, for sources with a default stream for each thread
_DEFINED = re.compile(r"^API (?:[^()\n]{0,200}[^()\w\n])?(\w{1,100})\(", re.MULTILINE)
_REGISTERS = re.compile(r"__cudaRegisterLinkedBinary\w+")  # what device code that was linked would define
_OWN = 'extern "C" __attribute__((visibility("hidden")))'
_DECLARED = 'extern "C" int __cuda_lsp_missing(const char*);\n'
_REGISTER = """OWN void NAME(void (*tell)(void**), void*, void*, void (*)(void*)) {
    static void* binary;
    tell(&binary);
}
"""
_OWN_FLAGS = ("-std=c++17", "-Xcompiler=-fPIC")  # of what is compiled with the toolkit's headers
_RUNTIME = ("memory.cpp", "runtime.cpp", "images.cpp", "graphs.cpp")
_STAND_IN = ("emulator.cpp", "libraries.cpp", *_RUNTIME)
_BORROWED, _OF_LIBRARIES = "libcuda-lsp-runtime.so", ("borrowed.cpp", *_RUNTIME)
_HOOKS = ("libraries.cpp", "hooks.cpp", "replay.cpp")
_TOLD = "functions.json"
_EXPORTED = "{ cuda*; __cuda*; __wrap_dlopen; };\n"  # what libraries call in the program
_STRICT = ("-Wl,--no-undefined", "-Wl,-z,defs", "-Wl,--version-script")  # the program defines what they call
_ALL_UNDEFINED = ("-Wl,-z,defs", "-Wl,--warn-unresolved-symbols")
_NUMBERED = re.compile(r"^[^-].*\.so[.\d]+$")
_DEPENDENCY = re.compile(r"(?:\\ |[^\s\\])+")


def build(
    job: ProgramJob,
    toolkit: Toolkit,
    architecture: int = 0,
    end: float = math.inf,
    cancelled: Cancelled = lambda: False,
    telling: frozenset[int] = frozenset(),
) -> Path:
    """The program's executable; its shared object for a GPU of an ``architecture`` (90). ``end``: monotonic.

    ``telling``: numbers of units whose objects tell where their functions lie; ``told_by`` has their names.
    Raises CompileError, Interrupted, OSError.
    """
    folder = job.cache / "programs" / _key(job, toolkit, architecture, telling)
    program = folder / "program"
    if _is_current(folder):
        return program
    with scratch(folder.parent) as work:
        end = min(end, time.monotonic() + _SECONDS)
        made = _Build(job, toolkit, work, folder, end, cancelled, architecture, telling=telling)
        made.run()
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
    return program


def told_by(program: Path) -> Mapping[int, Sequence[str]]:
    """What the tables of a program's units hold, in their order."""
    told: dict[str, list[str]] = json.loads((program.parent / _TOLD).read_text())
    return {int(number): names for number, names in told.items()}


def build_libraries(job: ProgramJob, toolkit: Toolkit, end: float = math.inf) -> Sequence[Path]:
    """The shared libraries of a Python program's ``job``, for the emulator. ``end``: monotonic.

    Raises CompileError, Interrupted, OSError.
    """
    runtime = build_library(job.cache, toolkit, _BORROWED, _OF_LIBRARIES, end, by_path=True)
    folder = job.cache / "programs" / _key(job, toolkit, 0)
    if not _is_current(folder):
        with scratch(folder.parent) as work:
            _Build(job, toolkit, work, folder, end, lambda: False, 0, runtime).run_libraries()
            shutil.rmtree(folder, ignore_errors=True)
            work.rename(folder)
    return [folder / str(number) / library.path.name for number, library in enumerate(job.libraries, 1)]


def build_library(
    cache: Path,
    toolkit: Toolkit,
    name: str,
    sources: Sequence[str],
    end: float = math.inf,
    by_path: bool = False,
) -> Path:
    """A shared object of ours, of several sources as one text, that goes by ``name``, or by its path.

    ``end``: monotonic. Raises CompileError, Interrupted, OSError.
    """
    text = _text(sources)

    def make(work: Path, library: Path) -> None:
        (work / "library.cpp").write_text(text)
        known = library if by_path else name
        link = ["g++", "-shared", "library.o", "-o", name, f"-Wl,-soname,{known}", "-lpthread", "-ldl"]
        for step in ([str(toolkit.nvcc), *_OWN_FLAGS, "-O2", "-c", "library.cpp"], link):
            done = run(step, work, compiler_environment(work), end, lambda: False, work / "output.txt")
            if done.status:
                raise CompileError(build_errors(done.output, work / "library.cpp"))

    return _made_once(cache, toolkit, name, (text, by_path), make)


def _made_once(
    cache: Path, toolkit: Toolkit, name: str, parts: Sequence[object], make: Callable[[Path, Path], None]
) -> Path:
    """A file ``name`` that hangs on ``parts`` and the toolkit alone.

    ``make`` leaves it in the folder that it is given, and is told where it will lie.
    """
    every = (_FORMAT, *parts, name, str(cache), str(toolkit.nvcc), toolkit.version, nvcc_variables())
    folder = cache / "programs" / hashlib.sha256(repr(every).encode()).hexdigest()[:32]
    made = folder / name
    if not made.exists():
        with scratch(folder.parent) as work:
            make(work, made)
            with contextlib.suppress(OSError):  # another process was faster
                work.rename(folder)
    return made


@define
class _Build:
    job: ProgramJob
    toolkit: Toolkit
    work: Path
    folder: Path  # where all of it will lie
    deadline: float
    cancelled: Callable[[], bool]
    architecture: int
    runtime: Path | None = None  # that libraries are linked with, when there is no program
    telling: frozenset[int] = frozenset()
    told: dict[int, list[str]] = field(factory=dict[int, list[str]])
    aliases: dict[str, str] = field(factory=dict[str, str])  # that libraries need

    def run(self) -> None:
        job = self.job
        copy = self.work / job.path.name
        copy.write_text(f'#line 1 "{job.path.absolute()}"\n{job.text}')
        own = self._parts(copy)
        if self.architecture:
            self._share([*own, self._compiled(self._table(), "table.cpp"), self._runtime(_HOOKS)])
        else:
            self._link([*own, self._compiled(self._table(), "table.cpp"), self._runtime(_STAND_IN)])
        (self.work / _TOLD).write_text(json.dumps(self.told))
        (self.work / "inputs.json").write_text(json.dumps(self._inputs(copy)))

    def run_libraries(self) -> None:
        """The libraries alone."""
        self._parts()
        (self.work / "program").touch()
        (self.work / "inputs.json").write_text(json.dumps(self._inputs()))

    def _parts(self, copy: Path | None = None) -> list[str]:
        """The libraries, and the names of the program's own objects. ``copy``: of its first source."""
        objects = [(unit, self._object(unit, number, copy)) for number, unit in enumerate(self.job.units)]
        for number, library in enumerate(self.job.libraries, 1):
            (self.work / str(number)).mkdir()
            self._library(number, library, [name for unit, name in objects if unit.library == number])
        return [name for unit, name in objects if not unit.library]

    def _table(self) -> str:
        """What ``libraries.cpp`` has to know."""
        paths = "".join(f"{_literal(str(library.path))}, " for library in self.job.libraries)
        folder = f"extern const char __cuda_lsp_folder[] = {_literal(f'{self.folder}/')};\n"
        libraries = f"extern const char* const __cuda_lsp_libraries[] = {{{paths}nullptr}};\n"
        hidden = '#pragma GCC visibility push(hidden)\nextern "C" {\n'
        return f"{hidden}{folder}{libraries}}}\n"

    def _runtime(self, sources: Sequence[str]) -> str:
        """The object of what is ours and the same for all programs."""
        text = _text(sources)

        def make(work: Path, _: Path) -> None:
            (work / "runtime.cpp").write_text(text)
            self._do([str(self.toolkit.nvcc), *_OWN_FLAGS, "-O1", "-c", "runtime.cpp"], folder=work)

        return str(_made_once(self.job.cache, self.toolkit, "runtime.o", (text,), make))

    def _made(self, numbers: Sequence[int]) -> list[str]:
        """Libraries that something is linked with."""
        return [f"{n}/{self.job.libraries[n - 1].path.name}" for n in numbers]

    @property
    def _wraps(self) -> list[str]:
        return ["-Wl,--wrap=dlopen"] if self.job.libraries and self.runtime is None else []

    def _object(self, unit: Unit, number: int, copy: Path | None) -> str:
        name = f"part{number}.o"
        own = unit.path.absolute()
        source = copy if copy is not None and unit.path == self.job.path else own
        if unit.host is not None:
            language = ("-x", unit.language) if unit.language else ()
            made = (self.work / name, self.work / f"part{number}.d")
            command = [
                str(unit.host), *unit.flags, f"-I{own.parent}", "-fPIC", "-MMD", "-MF", str(made[1]),
                *language, "-c", str(source), "-o", str(made[0]),
            ]  # fmt: skip
            self._do(command, own, unit.folder)
            return name
        compute = self.architecture or architecture_number(self.job.options.arch)
        code = f"{'sm' if self.architecture else 'compute'}_{compute}"
        flags = [flag for flag in unit.options.flags() if not flag.startswith("-arch=")]
        command = [
            str(self.toolkit.nvcc), "-c", str(source), "-o", name, f"-I{own.parent}",
            "-gencode", f"arch=compute_{compute},code={code}", "-Xcompiler=-fPIC", "-MMD",
            *(("-x", "cu") if unit.device and source.suffix != ".cu" else ()), *flags, *unit.flags,
            *((RELOCATABLE,) if unit.relocatable else ()),
        ]  # fmt: skip
        self._do(command, own)
        if number in self.telling:
            self._tell(command, unit, number, name)
        return name

    def _tell(self, command: Sequence[str], unit: Unit, number: int, name: str) -> None:
        """The object once more, with a table of its functions."""
        folder, own = self.work / f"functions{number}", unit.path.absolute()
        folder.mkdir()
        command = [str(self.work / name) if word == name else word for word in command if word != "-MMD"]
        names = compile_with_table(command, number, own, folder, self.deadline, self.cancelled)
        shutil.rmtree(folder)
        self.told[number] = [stable(name) for name in names]

    def _compiled(self, text: str, name: str) -> str:
        """A source of ours that includes nothing."""
        (self.work / name).write_text(text)
        target = Path(name).with_suffix(".o").name
        self._do(["g++", "-O1", "-fPIC", "-c", name, "-o", target])
        return target

    def _library(self, number: int, library: Library, objects: Sequence[str]) -> None:
        """A shared library, which finds what it calls of the runtime in the program."""
        name = f"{number}/{library.path.name}"
        link = [option for option in library.link if not option.startswith(_STRICT)]
        own = [f"-Wl,-soname,{self.folder / name}", *self._wraps]
        needs = self._made(library.needs)
        if self.architecture:
            options = _for_nvcc([*needs, *link, *own, "-Wl,--warn-unresolved-symbols"])
            self._do([*self._linker(number), "-shared", *objects, "-o", name, *options])
            return
        parts = [*objects, *needs, *([str(self.runtime)] if self.runtime is not None else [])]
        options = ["-o", name, *_without_cuda(link), *own, "-lpthread", "-lm", "-ldl"]
        said = self._do(["g++", "-shared", *parts, *options, *_ALL_UNDEFINED])
        missing = _Missing.of(said)
        if self.runtime is None:
            self.aliases |= missing.aliases  # for the program to define
        else:
            missing = evolve(missing, calls=(*missing.calls, *missing.aliases))
        if stubs := missing.stubs:
            self._do(["g++", "-shared", *parts, self._compiled(stubs, f"stubs{number}.cpp"), *options])

    def _linker(self, number: int) -> list[str]:
        """nvcc, as it links the program (0) or a library; all of them share one runtime."""
        shared = ["-cudart=shared"] if self.job.libraries else []
        linked = any(unit.relocatable for unit in self.job.units if unit.library == number)
        architecture = [f"-arch=sm_{self.architecture}"] if linked else []  # of its device code
        wraps = [f"-Xlinker=--wrap={name}" for name in _WRAPPED.findall(_text(_HOOKS))]
        return [str(self.toolkit.nvcc), *shared, *architecture, *wraps]

    def _share(self, objects: Sequence[str]) -> None:
        """The program, for a GPU."""
        link = (option for option in self.job.link if option != RELOCATABLE)
        options = _for_nvcc([*self._made(self.job.needs), *link, *self._wraps, *self._runtime_folders()])
        command = [*self._linker(0), "-shared", *objects, "-o", "program"]
        self._do([*command, *options, "-lpthread", "-ldl"])

    def _runtime_folders(self) -> list[str]:
        """Where the runtime lies that the program shares with its libraries: nvcc knows it."""
        if not self.job.libraries:
            return []
        asked = [str(self.toolkit.nvcc), "-shared", "-cudart=shared", "any.o", "-o", "any.so"]
        said = plan(asked, self.work, self.deadline, self.cancelled)
        known = said.environment.get("LIBRARIES", "") if isinstance(said, Plan) else ""
        folders = (option[2:] for option in shlex.split(known) if option.startswith("-L"))
        return [f"-Wl,-rpath,{os.path.realpath(f)}" for f in folders if not f.endswith("stubs")]

    def _link(self, objects: Sequence[str]) -> None:
        """The program, for the emulator."""
        link = _without_cuda(self.job.link)
        options = ["-o", "program", *link, *self._wraps, "-lpthread", "-lm", "-ldl"]
        if self.job.libraries:
            (self.work / "exported").write_text(_EXPORTED)
            options += ["-Wl,--dynamic-list=exported", "-Wl,--allow-shlib-undefined"]
        options += [f"-Wl,--defsym={name}={other}" for name, other in self.aliases.items()]
        parts = [*objects, *self._made(self.job.needs)]
        done = self._run(["g++", "-pie", *parts, *options])
        if not done.status:
            return
        missing = _Missing.of(done.output)
        if not missing or missing.foreign:
            names = ", ".join(missing.foreign[:3])
            what = f"nothing defines {names}" if names else done.output.strip()[-300:]
            raise CompileError([ToolError(f"the program does not link: {what}; name its other sources")])
        aliases = {name: other for name, other in missing.aliases.items() if name not in self.aliases}
        same = [f"-Wl,--defsym={name}={other}" for name, other in aliases.items()]
        self._do(["g++", "-pie", *parts, self._compiled(missing.stubs, "stubs.cpp"), *same, *options])

    def _do(self, command: Sequence[str], source: Path | None = None, folder: Path | None = None) -> str:
        done = self._run(command, folder)
        if done.status:
            raise CompileError(build_errors(done.output, source or self.job.path.absolute()))
        return done.output

    def _run(self, command: Sequence[str], folder: Path | None = None) -> Done:
        environment, output = compiler_environment(self.work), self.work / "output.txt"
        return run(command, folder or self.work, environment, self.deadline, self.cancelled, output)

    def _inputs(self, copy: Path | None = None) -> dict[str, str]:
        """Digests of the files that the compiler read, but its own and the copy."""
        read: set[str] = set()
        for listing in self.work.glob("*.d"):
            read |= {name.replace("\\ ", " ") for name in _DEPENDENCY.findall(listing.read_text())}
        paths = [Path(name) for name in read if name.startswith("/")]
        own = (str(self.toolkit.root), "/usr/", str(copy))
        return {str(p): digest_of(p) for p in paths if p.exists() and not str(p).startswith(own)}


def _for_nvcc(options: Iterable[str]) -> Iterator[str]:
    """Options and files of GCC's link step, as nvcc passes them on."""
    for option in options:
        if option.startswith("-Wl,"):
            yield f"-Xlinker={option[4:]}"
        elif option.startswith(("-f", "-pthread", "-rdynamic", "-static-lib")):
            yield f"-Xcompiler={option}"
        elif _NUMBERED.search(option):  # it takes files for libraries by their last letters
            yield from (f"-L{Path(option).parent}", f"-l:{Path(option).name}")
        else:
            yield option


def _ours(name: str) -> str:
    return (resources.files("cuda_lsp.dynamic.programs") / "standin" / name).read_text()


def _text(sources: Sequence[str]) -> str:
    return "".join(map(_ours, sources))


def _literal(text: str) -> str:
    """A text of C++."""
    return json.dumps(text, ensure_ascii=False)


def _without_cuda(link: Sequence[str]) -> list[str]:
    """Options of a link step, less what there is a stand-in for."""
    return [o for o in link if o != RELOCATABLE and not _CUDAS.fullmatch(Path(o).name)]


@frozen
class _Missing:
    """What a linker for the emulator says that nothing defines.

    ``registers``: what device code that was linked would define; ``aliases``: what sources with a default
    stream for each thread call otherwise (for the stand-in all streams are one); ``calls``: of libraries.
    """

    registers: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(factory=dict[str, str])
    calls: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()

    @classmethod
    def of(cls, said: str) -> _Missing:
        """What the output of a linker names."""
        ours = frozenset(_DEFINED.findall(_text(_STAND_IN)))
        names = sorted(set(_UNDEFINED.findall(said)) - ours - {"__wrap_dlopen"})
        registers = tuple(name for name in names if _REGISTERS.fullmatch(name))
        found = {name: match[1] for name in names if (match := _OF_THREAD.fullmatch(name))}
        aliases = {name: other for name, other in found.items() if other in ours}
        rest = [name for name in names if name not in registers and name not in aliases]
        calls = tuple(name for name in rest if _LIBRARY.fullmatch(name))
        return cls(registers, aliases, calls, tuple(name for name in rest if name not in calls))

    def __bool__(self) -> bool:
        return bool(self.registers or self.aliases or self.calls)

    @property
    def stubs(self) -> str:
        """Definitions: calls name themselves. Each binary has its own."""
        made = [f'{_OWN} int {n}() {{ return __cuda_lsp_missing("{n}"); }}\n' for n in self.calls]
        made += [_REGISTER.replace("OWN", _OWN).replace("NAME", name) for name in self.registers]
        return f"{_DECLARED}{''.join(made)}" if made else ""


def _key(job: ProgramJob, toolkit: Toolkit, architecture: int, telling: frozenset[int] = frozenset()) -> str:
    files = [*(unit.path for unit in job.units), *(Path(o) for o in job.link if not o.startswith("-"))]
    others = [(str(path), digest_of(path)) for path in files]
    for library in job.libraries:
        others += [(o, digest_of(Path(o))) for o in library.link if not o.startswith("-")]
    ours = _text(_STAND_IN), _text(_HOOKS)
    parts = (_FORMAT, str(job.path), job.text, job.options.flags(), job.units, others, job.link,
             job.libraries, job.needs, sorted(telling), str(job.cache), str(toolkit.nvcc),
             toolkit.version, nvcc_variables(), architecture, *ours)  # fmt: skip
    return hashlib.sha256(repr(parts).encode(errors="surrogatepass")).hexdigest()[:32]


def _is_current(folder: Path) -> bool:
    try:
        inputs: dict[str, str] = json.loads((folder / "inputs.json").read_text())
        return (folder / "program").exists() and all(digest_of(Path(p)) == d for p, d in inputs.items())
    except (OSError, ValueError):
        return False
