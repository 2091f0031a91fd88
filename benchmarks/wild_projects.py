"""Programs of public projects as their own makefiles build and call them, made ready to run under check.

    python benchmarks/wild_projects.py pack FOLDER SUITE=PATH… [--only NAME,…]
    python benchmarks/wild_projects.py analyse FOLDER [SECONDS]
    python benchmarks/wild_projects.py archive FOLDER FILE.tar.gz

SUITE is ``hecbench`` (folders NAME-cuda with a makefile and its target ``run``), ``cuda-samples`` (CMake),
``rodinia`` (makefiles and scripts ``run``) or ``llm.c`` (``dev/cuda``, the calls named in its comments).
``pack`` copies the sources to FOLDER/projects and writes FOLDER/programs.pkl: nothing is compiled, a makefile
is only asked what it would do (``make -n``). ``analyse`` adds what the static side knows of the kernels and
what it accuses, program after program, and goes on where it ended. Neither needs a GPU; ``analyse`` needs
libclang. ``wild_runs.py`` runs what stands in FOLDER.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import shlex
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import evolve, frozen

from cuda_lsp.dynamic.compilation.compile import CompileOptions
from cuda_lsp.dynamic.programs.build_command import Built
from cuda_lsp.dynamic.programs.build_commands import Linked, Step, linked, steps_of
from cuda_lsp.dynamic.programs.job import ProgramJob, Unit
from cuda_lsp.dynamic.programs.recorder import Started

_COMPILERS = ("nvcc", "g++", "gcc", "c++", "cc", "ar")
_VARIABLES = ("ARCH=sm_90", "CUDA_DIR=/usr/local/cuda", "GPU_COMPUTE_CAPABILITY=90")
_LARGEST_FILE, _LARGEST_PROJECT = 1 << 20, 3 << 20  # bytes; pictures, films and matrices are left behind
_OTHERS = frozenset((".git", "opencl", "openmp", "doc", "bin", "cuda.tar", "cfd.tar"))
_TARGET = re.compile(r"add_executable\((\w+)\s+([^)]*)\)")
_LIBRARIES = re.compile(
    r"CUDA::(cublas|cufft|curand|cusparse|cusolver|npp|nvrtc|cuda_driver|nvJ)|OPENGL|GLUT|Vulkan|MPI::|OpenMP"
)
_MOST_CALLS = 4  # of one program of llm.c


@frozen
class Call:
    """How a program is started: its file, arguments, folder and standard input."""

    program: Path
    called: str
    arguments: tuple[str, ...]
    folder: Path
    input: str = ""


@frozen
class Program:
    """A program to run. ``name``: ``suite/name``; ``problem``: why there is nothing to build.

    ``accused``: what the static side says, one line each; None: it was not asked.
    """

    name: str
    job: ProgramJob | None
    problem: str = ""
    built: Built | None = None
    accused: tuple[str, ...] | None = None


# ------------------------------------------------------------------------------- what makefiles would do


def asked(folder: Path, *goals: str) -> list[str]:
    """The commands that make would run, one a line. Raises ValueError: it would fail."""
    command = ("make", "-n", "-B", *goals, *_VARIABLES)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=30)
    if done.returncode:
        raise ValueError((done.stderr.strip() or "make fails").splitlines()[0][:200])
    return re.sub(r"\\\n\s*", " ", done.stdout).splitlines()


def read(lines: Sequence[str], folder: Path) -> tuple[dict[Path, Linked], list[Call]]:
    """The programs that some commands make, and how they call these."""
    steps: dict[Path, Step] = {}
    calls: list[Call] = []
    for line in lines:
        where = folder
        for words in _commands(line):
            if words[0] == "cd" and len(words) > 1:
                where = where / words[1]
            elif Path(words[0]).name in _COMPILERS:
                one = Started(False, Path(Path(words[0]).name), where, tuple(words))
                steps |= {step.output: step for step in steps_of(one)}
            else:
                calls.append(_call(words, where))
    programs = {path: linked(path, steps) for path, step in steps.items() if step.program}
    programs = {path: made for path, made in programs.items() if any(unit.device for unit in made.units)}
    return programs, [call for call in calls if call.program in programs]


def _commands(line: str) -> Iterator[list[str]]:
    """The simple commands of a line; nothing where it is more than the shell's words."""
    try:
        reader = shlex.shlex(line, posix=True, punctuation_chars=";&|<>")
        reader.whitespace_split = True
        words = list(reader)
    except ValueError:
        return
    command: list[str] = []
    for word in [*words, ";"]:
        if word in (";", "&&", "||", "|", "&"):
            while command and re.fullmatch(r"\w+=.*", command[0]):
                del command[0]  # a variable
            if command and command[0] in ("time", "exec"):
                del command[0]
            if command:
                yield command
            command = []
        else:
            command.append(word)


def _call(words: Sequence[str], folder: Path) -> Call:
    given, arguments = "", list[str]()
    rest = iter(words[1:])
    for word in rest:
        if word == "<":
            given = str(folder / next(rest, ""))
        elif word.startswith(">"):
            next(rest, "")
        else:
            arguments.append(word)
    program = Path(os.path.normpath(folder / words[0])).resolve()
    return Call(program, words[0], tuple(arguments), folder, given)


def _ready(name: str, made: Linked, call: Call) -> Program:
    """A program of a makefile, with line tables for racecheck."""
    first = next(unit for unit in made.units if unit.device)
    units = tuple(
        evolve(unit, flags=(*unit.flags, "-lineinfo")) if unit.host is None else unit for unit in made.units
    )
    built = Built(
        call.program, Linked(units, made.link), call.called, call.arguments, call.folder, input=call.input
    )
    main = next((u for u in units if u.device and re.search(r"\bmain\s*\(", _text(u.path))), first)
    job = ProgramJob(
        path=main.path, text=_text(main.path), kernels=(), options=CompileOptions(), cache=Path(),
        folder=call.folder, arguments=call.arguments, link=made.link, built=units, called=call.called,
        input=call.input,
    )  # fmt: skip
    return Program(name, job, built=built)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""


# ---------------------------------------------------------------------------------------------- suites


def hecbench(folder: Path) -> Iterator[Program]:
    """Each folder with a makefile whose target ``run`` calls the program."""
    for project in sorted(folder.glob("*-cuda")):
        name = f"hecbench/{project.name.removesuffix('-cuda')}"
        try:
            programs, calls = read(asked(project, "run"), project)
        except (ValueError, subprocess.TimeoutExpired) as problem:
            yield Program(name, None, str(problem))
            continue
        if not calls:
            yield Program(name, None, "its makefile starts no program that it makes with nvcc")
        else:
            yield _ready(name, programs[calls[0].program], calls[0])


def rodinia(folder: Path) -> Iterator[Program]:
    """Each folder with a script ``run`` beside (or above) its makefile."""
    for script in sorted(folder.glob("cuda/**/run")):
        makefiles = [p for n in ("Makefile", "makefile") for p in sorted(script.parent.glob(f"**/{n}"))]
        programs: dict[Path, Linked] = {}
        problem = "it has no makefile"
        for makefile in makefiles:
            try:
                programs |= read(asked(makefile.parent), makefile.parent)[0]
            except (ValueError, subprocess.TimeoutExpired) as error:
                problem = str(error)
        calls = [
            _call(words, script.parent) for line in _text(script).splitlines() for words in _commands(line)
        ]
        calls = [call for call in calls if call.program in programs]
        parts = script.parent.relative_to(folder / "cuda").parts
        name = "rodinia/" + "-".join(dict.fromkeys(part for part in parts if part != "cuda"))
        if not calls:
            yield Program(name, None, problem if not programs else "its script calls none of its programs")
        for number, call in enumerate(calls[:2]):
            yield _ready(name + (f"-{number + 1}" if number else ""), programs[call.program], call)


def llmc(folder: Path) -> Iterator[Program]:
    """The programs of ``dev/cuda``, called as their first comment says."""
    where = folder / "dev" / "cuda"
    for source in sorted(where.glob("*.cu")):
        try:
            programs, _ = read(asked(where, source.stem), where)
        except (ValueError, subprocess.TimeoutExpired) as problem:
            yield Program(f"llm.c/{source.stem}", None, str(problem))
            continue
        program = where.resolve() / source.stem
        if program not in programs:
            yield Program(f"llm.c/{source.stem}", None, "its makefile makes no program of it")
            continue
        told = re.findall(rf"^(?:[A-Z_]+=\d+ )?\./{source.stem} (\d+)\s*$", _text(source), re.MULTILINE)
        for number in list(dict.fromkeys(told))[:_MOST_CALLS] or [""]:
            call = Call(program, f"./{source.stem}", (number,) if number else (), where)
            yield _ready(f"llm.c/{source.stem}{number and '-' + number}", programs[program], call)


def samples(folder: Path) -> Iterator[Program]:
    """Each CMake project that needs no further libraries, called without arguments."""
    for listing in sorted(folder.rglob("CMakeLists.txt")):
        text = listing.read_text(errors="replace")
        target = _TARGET.search(text)
        if target is None:
            continue
        name = f"cuda-samples/{target[1]}"
        if _LIBRARIES.search(text):
            yield Program(name, None, "it needs further libraries")
            continue
        sources = [listing.parent / s for s in target[2].split() if s.endswith((".cu", ".cpp", ".c"))]
        if not any(s.suffix == ".cu" for s in sources) or not all(s.exists() for s in sources):
            yield Program(name, None, "its listing names no source with kernels that is there")
            continue
        options = CompileOptions((folder / "Common", listing.parent))
        units = tuple(Unit(s, options, device=s.suffix == ".cu") for s in sources)
        call = Call(listing.parent / target[1], f"./{target[1]}", (), listing.parent)
        yield _ready(name, Linked(units), call)


SUITES: Mapping[str, Callable[[Path], Iterator[Program]]] = {
    "hecbench": hecbench, "rodinia": rodinia, "llm.c": llmc, "cuda-samples": samples,
}  # fmt: skip


# --------------------------------------------------------------------------------------------- commands


def pack(folder: Path, suites: Mapping[str, Path], only: frozenset[str]) -> None:
    """Copy the sources and write what is to be run."""
    programs: list[Program] = []
    for suite, source in suites.items():
        copy = folder / "projects" / suite
        if not copy.exists():
            shutil.copytree(source, copy, ignore=_left_behind, ignore_dangling_symlinks=True)
        found = [p for p in SUITES[suite](copy) if not only or p.name.partition("/")[2] in only]
        ready = sum(p.job is not None for p in found)
        print(f"{suite}: {ready} of {len(found)} programs can be built", flush=True)
        programs += found
    _write(folder, programs)
    (folder / "places.json").write_text(json.dumps({str(folder): "folder"}))


def _left_behind(where: str, names: list[str]) -> set[str]:
    """Files that are not taken along, so that the pack stays small."""
    sizes = {n: os.path.getsize(p) for n in names if os.path.isfile(p := os.path.join(where, n))}
    left = {n for n, size in sizes.items() if size > _LARGEST_FILE} | _OTHERS.intersection(names)
    room = _LARGEST_PROJECT
    for name, size in sorted(sizes.items(), key=lambda one: one[1]):
        room -= size
        if room < 0:
            left.add(name)
    return left


def _write(folder: Path, programs: Sequence[Program]) -> None:
    new = folder / "programs.part"
    new.write_bytes(pickle.dumps(list(programs)))
    new.replace(folder / "programs.pkl")


def analyse(folder: Path, seconds: float) -> None:
    """Ask the static side of each program that it was not asked of."""
    from cuda_lsp.batch.asked import Asked
    from cuda_lsp.confirm import CheckOptions
    from cuda_lsp.confirm_files import program_sources
    from cuda_lsp.confirm_program import ProgramOptions, program_job

    programs: list[Program] = pickle.loads((folder / "programs.pkl").read_bytes())
    end, options = time.monotonic() + seconds, CheckOptions(watch_all=True)
    for k, program in enumerate(programs):
        if program.job is None or program.built is None or program.accused is not None:
            continue
        if time.monotonic() > end:
            print("out of time: call again for the others")
            break
        how = ProgramOptions(folder=program.job.folder, built=program.built)
        request = Asked({"arch": "sm_90"})
        files = program_sources(program.job.path, request, options, how)
        job = program_job(files, request.settings(program.job.path)[0], options, how)
        told = tuple(
            f"{finding.status.value} {finding.code.value} {finding.site.range.path.name}:"
            f"{finding.site.range.start.line} {finding.kernel}"
            for file in files
            for finding in file.report.findings
        )
        programs[k] = evolve(program, job=evolve(program.job, kernels=job.kernels), accused=told)
        _write(folder, programs)
        print(program.name, len(job.kernels), "kernels", len(told), "findings", flush=True)


def archive(folder: Path, target: Path) -> None:
    """FOLDER as one file, without results and caches."""
    with tarfile.open(target, "w:gz") as made:
        for name in ("projects", "programs.pkl", "places.json", "wheels"):
            if (folder / name).exists():
                made.add(folder / name, name)
    print(f"{target}: {target.stat().st_size >> 20} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=["pack", "analyse", "archive"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if options.step == "pack":
        suites = {suite: Path(path).resolve() for suite, path in (r.split("=", 1) for r in options.rest)}
        pack(folder, suites, frozenset(filter(None, options.only.split(","))))
    elif options.step == "analyse":
        analyse(folder, float(options.rest[0]) if options.rest else 1e9)
    else:
        archive(folder, Path(options.rest[0]))


if __name__ == "__main__":
    import wild_projects  # what is pickled belongs to the module, not to a script

    wild_projects.main()
