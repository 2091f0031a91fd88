"""A program that is built by a command of the project's own: what it is made of, and how it is called.

The command runs as it always does, in its own folder, and is followed (``recorder``); what its compilers were
asked is kept, so that a build with nothing left to do is understood too. The program is then built once more
for the check (``build``), in the cache. Runs in the process that may be killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import evolve, field, frozen

from cuda_lsp.dynamic.compilation.compile import CompileError
from cuda_lsp.dynamic.compilation.stages import Interrupted
from cuda_lsp.dynamic.compilation.toolkit import Toolkit, ToolkitMissing, find_toolkit
from cuda_lsp.dynamic.programs.build_commands import Linked, Step, linked, steps_of
from cuda_lsp.dynamic.programs.recorder import Started, record

Progress = Callable[[str], None]

_NVCCS = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
_LINES = 6  # of what a failed command said
_MOST_CALLS = 16  # of programs by a run command
_NOT_FOUND = 127
_IMPORTED = b"\0dlopen\0"  # in the names that a binary imports; CUDA's own static runtime is one that does


@frozen
class BuildJob:
    """A build to follow. ``path``: a source (or header) of the program; ``folder``: where the commands run.

    ``run``: the command that starts the program; "": it is started without arguments. ``first``: of several
    programs that it starts only the first is meant. ``libraries``: it makes those of a Python program, which
    tells itself which of them it opens. ``deadline``: seconds.
    """

    path: Path
    folder: Path
    build: str
    run: str
    cache: Path
    nvcc: Path | None = None
    deadline: float = 600.0
    first: bool = False
    libraries: bool = False


@frozen
class Built:
    """The program of a build, what it is made of and how it is called. ``problem``: why it is not known.

    ``others``: further programs, or calls, that the run command makes.
    """

    program: Path = Path()
    made_of: Linked = field(factory=lambda: Linked((), ()))
    called: str = ""
    arguments: tuple[str, ...] = ()
    folder: Path | None = None
    environment: Mapping[str, str] | None = None
    input: str = ""
    problem: str | None = None
    notes: tuple[str, ...] = ()
    others: tuple[Built, ...] = ()

    @property
    def calls(self) -> tuple[Built, ...]:
        """Each call that is to be checked."""
        return (self, *self.others)


class _NotClear(Exception):
    """The build, or which program is meant, is not understood; the message says what to do."""


def follow(job: BuildJob, progress: Progress) -> Built:
    """Run the build, and ask the run command how it starts the program."""
    try:
        return _followed(job, progress)
    except (CompileError, ToolkitMissing, Interrupted, _NotClear) as problem:
        return Built(problem=str(problem))
    except OSError as problem:
        return Built(problem=f"{problem.filename or job.folder}: {os.strerror(problem.errno or 0)}")


def _followed(job: BuildJob, progress: Progress) -> Built:
    toolkit = find_toolkit(job.nvcc)
    deadline = time.monotonic() + job.deadline
    progress(f"running `{job.build}`")
    done, started = record(job.build, job.folder, toolkit, job.cache, deadline)
    steps = all_steps(remembered(job.folder, job.cache, started))
    if done.status:
        raise _NotClear(_failure(f"the build command `{job.build}`", done.status, done.output, job.folder))
    if job.libraries:
        return Built()
    programs = _programs(steps)
    if not programs:
        raise _NotClear(_nothing(job, started))
    if not job.run:
        return _meant(job, programs)
    return _called(job, programs, toolkit, deadline, progress)


def _programs(steps: Mapping[Path, Step]) -> dict[Path, Linked]:
    """Programs with device code that are there, but those by which CMake tries compilers."""
    found: dict[Path, Linked] = {}
    for path, step in steps.items():
        if step.program and _is_built(path):
            made_of = linked(path, steps)
            made_of = linked(path, steps, tuple(_opened(path, made_of, steps)))
            if any(unit.device for unit in made_of.units):
                found[path] = made_of
    return found


def _is_built(path: Path) -> bool:
    return path.is_file() and "CMakeFiles" not in path.parts


def _opened(program: Path, made_of: Linked, steps: Mapping[Path, Step]) -> Iterator[Path]:
    """Shared libraries with device code that a program which knows ``dlopen`` may open.

    Where its sources name the function these are all; else those that nothing of the build is linked with.
    """
    binaries = [program, *(library.path for library in made_of.libraries)]
    if not any(_IMPORTED in path.read_bytes() for path in binaries if path.is_file()):
        return
    named = any(b"dlopen" in unit.path.read_bytes() for unit in made_of.units if unit.path.is_file())
    shared = {path: linked(path, steps) for path, step in steps.items() if step.shared and _is_built(path)}
    linkers = [linked(path, steps) for path, step in steps.items() if step.program or step.shared]
    needed = {library.path for one in linkers for library in one.libraries}
    for path, parts in shared.items():
        if any(unit.device for unit in parts.units) and (named or path not in needed):
            yield path


def _meant(job: BuildJob, programs: Mapping[Path, Linked]) -> Built:
    """The one program that holds the file."""
    source = os.path.realpath(job.path)
    holding = {
        program: made_of
        for program, made_of in programs.items()
        if source in (os.path.realpath(unit.path) for unit in made_of.units)
    }
    if not holding and job.path.suffix in (".cu", ".cpp", ".cc"):
        names = _names(programs, job.folder)
        raise _NotClear(f"`{job.build}` makes no program of {job.path.name}; it makes {names}")
    candidates = holding or programs
    if len(candidates) > 1:
        names = _names(candidates, job.folder)
        raise _NotClear(f"`{job.build}` makes {names}: name the one to check in run-command (--run)")
    ((program, made_of),) = candidates.items()
    return Built(program, made_of, str(program), folder=job.folder)


def _called(
    job: BuildJob, programs: Mapping[Path, Linked], toolkit: Toolkit, deadline: float, progress: Progress
) -> Built:
    """The programs that the run command starts, as it starts them."""
    progress(f"asking `{job.run}` how it calls the program")
    done, started = record(job.run, job.folder, toolkit, job.cache, deadline, programs=tuple(programs))
    calls = [s for s in started if s.program and s.executable in programs]
    if not calls:
        if done.status:
            raise _NotClear(_failure(f"the run command `{job.run}`", done.status, done.output, job.folder))
        names = _names(programs, job.folder)
        raise _NotClear(f"`{job.run}` starts no program that `{job.build}` made with CUDA: {names}")
    different = list(dict.fromkeys(map(_Call.of, calls)))
    left = 1 if job.first else _MOST_CALLS
    notes = (
        (_left_out(job, len(calls), len(different), left),) if len(calls) > min(left, len(different)) else ()
    )
    first, *others = (
        Built(
            call.executable, programs[call.executable], call.arguments[0], call.arguments[1:], call.folder,
            dict(call.environment), call.input,
        )
        for call in different[:left]
    )  # fmt: skip
    return evolve(first, others=tuple(others), notes=notes)


@frozen
class _Call:
    """What makes one start of a program differ from another."""

    executable: Path
    arguments: tuple[str, ...]
    folder: Path
    input: str
    environment: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, started: Started) -> _Call:
        environment = tuple(sorted(started.environment.items()))
        return cls(started.executable, started.arguments, started.folder, started.input, environment)


def _left_out(job: BuildJob, calls: int, different: int, most: int) -> str:
    what = f"`{job.run}` starts {calls} programs with CUDA"
    same = f", {different} different calls" if different < calls else ""
    checked = "the first was" if most == 1 else f"{min(most, different)} were"
    return f"{what}{same}: {checked} checked"


def _nothing(job: BuildJob, started: Sequence[Started]) -> str:
    if started:
        return f"`{job.build}` links no program with CUDA sources, so there is nothing to run"
    return (
        f"`{job.build}` started no compiler, and was not seen to do so before: if everything was up to date,"
        " build afresh once (`make clean`, `cmake --build … --clean-first`) and run the check again"
    )


def _failure(what: str, status: int, output: str, folder: Path) -> str:
    last = "\n".join(output.strip().splitlines()[-_LINES:])
    where = (
        f" was not found in {folder}" if status == _NOT_FOUND else f" failed in {folder} (status {status})"
    )
    return f"{what}{where}:\n{last}" if last else f"{what}{where}"


def _names(programs: Iterable[Path], folder: Path) -> str:
    shown = [str(p.relative_to(folder)) if p.is_relative_to(folder) else str(p) for p in programs]
    return ", ".join(sorted(shown)[:8]) + (", …" if len(shown) > 8 else "")


# ------------------------------------------------------------------- what was seen of earlier builds


def all_steps(started: Iterable[Started]) -> dict[Path, Step]:
    """What was made, by its path."""
    return {step.output: step for one in started for step in steps_of(one)}


def folder_key(folder: Path) -> str:
    """What tells a project's folder from others in names of the cache."""
    return hashlib.sha256(os.path.realpath(folder).encode(errors="surrogateescape")).hexdigest()[:32]


def remembered(folder: Path, cache: Path, started: Sequence[Started] = ()) -> list[Started]:
    """What earlier builds in the folder and this one started, the newest for each output. Raises OSError."""
    kept = cache / "builds" / f"{folder_key(folder)}.json"
    newest: dict[Path, Started] = {}
    for one in (*_read(kept), *started):
        for step in steps_of(one):
            newest.pop(step.output, None)
            newest[step.output] = one
    unique = list({id(one): one for one in newest.values()}.values())
    if started:
        _write(kept, unique)
    return unique


def _read(kept: Path) -> list[Started]:
    try:
        rows = json.loads(kept.read_text())
        return [
            Started(False, Path(executable), Path(folder), tuple(words), "", variables)
            for executable, folder, words, variables in rows
        ]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError):  # damaged: as if never seen
        return []


def _write(kept: Path, started: Iterable[Started]) -> None:
    rows = [
        (str(one.executable), str(one.folder), one.arguments,
         {name: one.environment[name] for name in _NVCCS if name in one.environment})
        for one in started
    ]  # fmt: skip
    kept.parent.mkdir(parents=True, exist_ok=True)
    new = kept.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(rows))
    new.replace(kept)


__all__ = ["BuildJob", "Built", "follow"]
