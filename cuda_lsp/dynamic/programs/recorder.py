"""Runs a command and tells which compilers it started, and how it would have started a program.

A small library is preloaded into every process of the command (``standin/recorder.c``), whatever build system
it is and wherever it finds its compilers. Each compiler writes one record when it starts: u32 length, then
kind, executable, folder and standard input as texts that end with NUL, then the lists of arguments and of the
environment (u32 length, words that end with NUL). Programs that are named beforehand write the same and stop,
so that a run command of any kind (``make run``, a script) says how it calls them.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
import shutil
import struct
from collections.abc import Generator, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path

from attrs import field, frozen

from cuda_lsp.dynamic.compilation.compile import CompileError
from cuda_lsp.dynamic.compilation.scratch import compiler_environment, scratch
from cuda_lsp.dynamic.compilation.stages import Cancelled, Done, run
from cuda_lsp.dynamic.compilation.toolkit import Toolkit
from cuda_lsp.model import ToolError

_LENGTH = struct.Struct("<I")
LOG = "CUDA_LSP_RECORD"
"""Variable that names the file to which records are written."""
RECORDER = "CUDA_LSP_RECORDER"
"""Variable that tells a program under check what to preload into the processes that it starts."""
_OURS = (LOG, RECORDER, "CUDA_LSP_PROGRAMS")


@frozen
class Started:
    """A process that was started: a compiler that ran, or a program that was stopped at once."""

    program: bool
    executable: Path
    folder: Path
    arguments: tuple[str, ...]  # with the program's own name first
    input: str = ""  # what standard input is
    environment: Mapping[str, str] = field(factory=dict[str, str], repr=False)


def record(
    command: str,
    folder: Path,
    toolkit: Toolkit,
    cache: Path,
    deadline: float,
    cancelled: Cancelled = lambda: False,
    programs: Sequence[Path] = (),
) -> tuple[Done, tuple[Started, ...]]:
    """Run a shell command in ``folder``. ``programs``: those that are not to run.

    Raises CompileError (there is no C compiler), Interrupted, OSError.
    """
    library = recorder_library(cache, deadline, cancelled)
    with scratch(library.parent) as work, preloadable(library) as name:
        log = work / "log"
        log.touch()
        environment = {
            **os.environ,
            LOG: str(log),
            "CUDA_LSP_PROGRAMS": ":".join(map(os.path.realpath, programs)),
            "LD_PRELOAD": " ".join(p for p in (name, os.environ.get("LD_PRELOAD", "")) if p),
            "CCACHE_DISABLE": "1",  # a hit would start no compiler
            "PATH": os.pathsep.join((os.environ.get("PATH", os.defpath), str(toolkit.root / "bin"))),
        }
        done = run(
            command,
            folder,
            environment,
            deadline,
            cancelled,
            output=work / "output",
            what=f"`{command}`",
        )
        return done, tuple(recorded(log.read_bytes(), name))


@contextlib.contextmanager
def preloadable(library: Path) -> Generator[str]:
    """A name for ``LD_PRELOAD``, which takes blanks and colons for separators."""
    if not re.search(r"[\s:]", str(library)):
        yield str(library)
        return
    with library.open("rb") as opened:
        yield f"/proc/{os.getpid()}/fd/{opened.fileno()}"


def recorded(data: bytes, library: str = "") -> Iterator[Started]:
    """What a log holds, but a record that is being written. ``library``: the one that was preloaded."""
    at = 0
    while at + _LENGTH.size <= len(data):
        (size,) = _LENGTH.unpack_from(data, at)
        if at + _LENGTH.size + size > len(data):
            return
        yield _started(data[at + _LENGTH.size : at + _LENGTH.size + size], library)
        at += _LENGTH.size + size


def _started(body: bytes, library: str) -> Started:
    kind, executable, folder, given, rest = body.split(b"\0", 4)
    words, rest = _words(rest)
    variables = dict(word.split("=", 1) for word in _words(rest)[0] if "=" in word)
    for name in _OURS:
        variables.pop(name, None)
    preloaded = [p for p in variables.pop("LD_PRELOAD", "").replace(":", " ").split() if p != library]
    if preloaded:
        variables["LD_PRELOAD"] = " ".join(preloaded)
    where = Path(os.fsdecode(folder))
    return Started(
        kind == b"program", Path(os.fsdecode(executable)), where, words, os.fsdecode(given), variables
    )


def _words(data: bytes) -> tuple[tuple[str, ...], bytes]:
    (size,) = _LENGTH.unpack_from(data)
    end = _LENGTH.size + size
    words = data[_LENGTH.size : end].split(b"\0")[:-1]
    return tuple(map(os.fsdecode, words)), data[end:]


def recorder_library(cache: Path, deadline: float = math.inf, cancelled: Cancelled = lambda: False) -> Path:
    """The library to preload, made once. Raises CompileError (no C compiler), Interrupted, OSError."""
    text = (resources.files("cuda_lsp.dynamic.programs") / "standin" / "recorder.c").read_text()
    made = cache / "recorder" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"
    if made.exists():
        return made
    compiler = shutil.which("gcc") or shutil.which("g++")
    if compiler is None:
        raise CompileError([ToolError("to follow a build command a C compiler is needed: install gcc")])
    with scratch(made.parent) as work:
        (work / "recorder.c").write_text(text)
        command = [compiler, "-x", "c", "-shared", "-fPIC", "-O1", "recorder.c", "-o", "recorder.so"]
        done = run(command, work, compiler_environment(work), deadline, cancelled)
        if done.status:
            raise CompileError([ToolError(f"{compiler} does not work: {done.output.strip()[-300:]}")])
        (work / "recorder.so").replace(made)
    return made
