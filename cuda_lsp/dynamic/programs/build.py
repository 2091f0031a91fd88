"""Building a program so that its launches can be checked.

For the emulator its objects are linked with the stand-in runtime; for a GPU they become a shared object with
hooks in front of the real one, which the process of ``gpu_process`` loads.

The text may be an unsaved buffer, compiled as ``compile.py`` does. What is made is kept by content, the
headers that the compiler names included. Functions of CUDA libraries that the stand-in lacks become stubs
which name themselves when they are called, so that code which never calls them still links.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import shutil
import time
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

from attrs import define

from cuda_lsp.dynamic.compilation.compile import RELOCATABLE, CompileError, build_errors, digest_of
from cuda_lsp.dynamic.compilation.scratch import compiler_environment, scratch
from cuda_lsp.dynamic.compilation.stages import Cancelled, Done, nvcc_variables, run
from cuda_lsp.dynamic.compilation.toolkit import Toolkit
from cuda_lsp.dynamic.programs.job import ProgramJob, Unit
from cuda_lsp.hardware import architecture_number
from cuda_lsp.model import ToolError

_FORMAT = 3
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
_REGISTER = """extern "C" void NAME(void (*tell)(void**), void*, void*, void (*)(void*)) {
    static void* binary;
    tell(&binary);
}
"""
_SOURCES = ("emulator.cpp", "runtime.cpp", "images.cpp", "graphs.cpp", "hooks.cpp", "replay.cpp")
_DEPENDENCY = re.compile(r"(?:\\ |[^\s\\])+")


def build(
    job: ProgramJob,
    toolkit: Toolkit,
    architecture: int = 0,
    end: float = math.inf,
    cancelled: Cancelled = lambda: False,
) -> Path:
    """The program's executable; its shared object for a GPU of an ``architecture`` (90). ``end``: monotonic.

    Raises CompileError, Interrupted, OSError.
    """
    folder = job.cache / "programs" / _key(job, toolkit, architecture)
    program = folder / "program"
    if _is_current(folder):
        return program
    with scratch(folder.parent) as work:
        made = _Build(job, toolkit, work, min(end, time.monotonic() + _SECONDS), cancelled, architecture)
        made.run()
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
    return program


def build_library(
    cache: Path, toolkit: Toolkit, name: str, sources: Sequence[str], end: float = math.inf
) -> Path:
    """A shared object of ours, of several sources as one text, that goes by ``name``. ``end``: monotonic.

    Raises CompileError, Interrupted, OSError.
    """
    text = "".join(_ours(source) for source in sources)
    parts = (_FORMAT, text, name, str(toolkit.nvcc), toolkit.version, nvcc_variables())
    folder = cache / "programs" / hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
    library = folder / name
    if library.exists():
        return library
    with scratch(folder.parent) as work:
        (work / "library.cpp").write_text(text)
        command = [
            str(toolkit.nvcc), "-std=c++17", "-O2", "-Xcompiler=-fPIC",
            "-c", "library.cpp", "-o", "library.o",
        ]  # fmt: skip
        link = ["g++", "-shared", "library.o", "-o", name, f"-Wl,-soname,{name}", "-lpthread", "-ldl"]
        for step in (command, link):
            done = run(step, work, compiler_environment(work), end, lambda: False, work / "output.txt")
            if done.status:
                raise CompileError(build_errors(done.output, work / "library.cpp"))
        with contextlib.suppress(OSError):  # another process was faster
            work.rename(folder)
    return library


@define
class _Build:
    job: ProgramJob
    toolkit: Toolkit
    work: Path
    deadline: float
    cancelled: Callable[[], bool]
    architecture: int

    def run(self) -> None:
        job = self.job
        copy = self.work / job.path.name
        copy.write_text(f'#line 1 "{job.path.absolute()}"\n{job.text}')
        objects = [self._object(unit, number, copy) for number, unit in enumerate(job.units)]
        if self.architecture:
            self._share([*objects, self._compiled(_hooks(), "hooks.cpp")])
        else:
            self._link([*objects, self._compiled(_stand_in(), "runtime.cpp")])
        (self.work / "inputs.json").write_text(json.dumps(self._inputs(copy)))

    def _object(self, unit: Unit, number: int, copy: Path) -> str:
        name = f"part{number}.o"
        own = unit.path.absolute()
        source = copy if unit.path == self.job.path else own
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
        return name

    def _compiled(self, text: str, name: str) -> str:
        """A source of ours, with the toolkit's headers."""
        (self.work / name).write_text(text)
        target = Path(name).with_suffix(".o").name
        nvcc = str(self.toolkit.nvcc)  # it knows where its headers are
        self._do([nvcc, "-std=c++17", "-O1", "-Xcompiler=-fPIC", "-c", name, "-o", target])
        return target

    def _share(self, objects: Sequence[str]) -> None:
        nvcc = str(self.toolkit.nvcc)
        wraps = [f"-Xlinker=--wrap={name}" for name in _WRAPPED.findall(_hooks())]
        link = [_for_nvcc(option) for option in self.job.link if option != RELOCATABLE]
        if any(unit.relocatable for unit in self.job.units):
            link.append(f"-arch=sm_{self.architecture}")  # of the device code that is linked
        self._do([nvcc, "-shared", *objects, "-o", "program", *wraps, *link, "-lpthread", "-ldl"])

    def _link(self, objects: Sequence[str]) -> None:
        link = [
            option
            for option in self.job.link
            if option != RELOCATABLE and not _CUDAS.fullmatch(Path(option).name)
        ]
        options = ["-o", "program", *link, "-lpthread", "-lm", "-ldl"]
        done = self._run(["g++", "-pie", *objects, *options])
        if not done.status:
            return
        missing = sorted(set(_UNDEFINED.findall(done.output)))
        registers = [name for name in missing if _REGISTERS.fullmatch(name)]
        aliases = _aliases(missing)
        missing = [name for name in missing if name not in registers and name not in aliases]
        foreign = [name for name in missing if not _LIBRARY.fullmatch(name)]
        if not (missing or registers or aliases) or foreign:
            what = f"nothing defines {', '.join(foreign[:3])}" if foreign else done.output.strip()[-300:]
            raise CompileError([ToolError(f"the program does not link: {what}; name its other sources")])
        stubs = "".join(
            f'extern "C" int {name}() {{ return __cuda_lsp_missing("{name}"); }}\n' for name in missing
        )
        stubs += "".join(_REGISTER.replace("NAME", name) for name in registers)
        declared = 'extern "C" int __cuda_lsp_missing(const char*);\n'
        stand_ins = self._compiled(declared + stubs, "stubs.cpp")
        same = [f"-Wl,--defsym={name}={other}" for name, other in aliases.items()]
        self._do(["g++", "-pie", *objects, stand_ins, *same, *options])

    def _do(self, command: Sequence[str], source: Path | None = None, folder: Path | None = None) -> str:
        done = self._run(command, folder)
        if done.status:
            raise CompileError(build_errors(done.output, source or self.job.path.absolute()))
        return done.output

    def _run(self, command: Sequence[str], folder: Path | None = None) -> Done:
        environment, output = compiler_environment(self.work), self.work / "output.txt"
        return run(command, folder or self.work, environment, self.deadline, self.cancelled, output)

    def _inputs(self, copy: Path) -> dict[str, str]:
        """Digests of the files that the compiler read, but its own and the copy."""
        read: set[str] = set()
        for listing in self.work.glob("*.d"):
            read |= {name.replace("\\ ", " ") for name in _DEPENDENCY.findall(listing.read_text())}
        paths = [Path(name) for name in read if name.startswith("/")]
        own = (str(self.toolkit.root), "/usr/", str(copy))
        return {str(p): digest_of(p) for p in paths if p.exists() and not str(p).startswith(own)}


def _for_nvcc(option: str) -> str:
    """An option of GCC's link step, as nvcc passes it on."""
    if option.startswith("-Wl,"):
        return f"-Xlinker={option[4:]}"
    return (
        f"-Xcompiler={option}"
        if option.startswith(("-f", "-pthread", "-rdynamic", "-static-lib"))
        else option
    )


def _ours(name: str) -> str:
    return (resources.files("cuda_lsp.dynamic.programs") / "standin" / name).read_text()


def _hooks() -> str:
    return _ours("hooks.cpp") + _ours("replay.cpp")


def _stand_in() -> str:
    return _ours("emulator.cpp") + _ours("runtime.cpp") + _ours("images.cpp") + _ours("graphs.cpp")


def _aliases(missing: Sequence[str]) -> dict[str, str]:
    """What a default stream for each thread calls otherwise: for the stand-in all streams are one."""
    ours = frozenset(_DEFINED.findall(_stand_in()))
    found = {name: match[1] for name in missing if (match := _OF_THREAD.fullmatch(name))}
    return {name: other for name, other in found.items() if other in ours}


def _key(job: ProgramJob, toolkit: Toolkit, architecture: int) -> str:
    files = [*(unit.path for unit in job.units), *(Path(o) for o in job.link if not o.startswith("-"))]
    others = [(str(path), digest_of(path)) for path in files]
    ours = [_ours(name) for name in _SOURCES]
    parts = (_FORMAT, str(job.path), job.text, job.options.flags(), job.units, others, job.link,
             str(toolkit.nvcc), toolkit.version, nvcc_variables(), architecture, *ours)  # fmt: skip
    return hashlib.sha256(repr(parts).encode(errors="surrogatepass")).hexdigest()[:32]


def _is_current(folder: Path) -> bool:
    try:
        inputs: dict[str, str] = json.loads((folder / "inputs.json").read_text())
        return (folder / "program").exists() and all(digest_of(Path(p)) == d for p, d in inputs.items())
    except (OSError, ValueError):
        return False
