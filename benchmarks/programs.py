"""Programs that verify their own results, run whole under check on either engine.

``programs.py prepare FOLDER JOBS.pkl [NAME…]`` reads the programs of a folder of CMake projects, laid out as
CUDA's samples are (those that need further libraries are left out), and analyses their kernels;
``programs.py run JOBS.pkl RESULTS.json ENGINE [SECONDS [ALL]]`` builds and runs each, and tells its exit
status and the races that were seen; those that RESULTS.json has already are not run again. Preparing needs
libclang, running only what the dynamic check needs.
"""

from __future__ import annotations

import json
import pickle
import re
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from attrs import evolve

from cuda_lsp.dynamic.job import CheckResult, EngineKind
from cuda_lsp.dynamic.programs.job import ProgramJob, ProgramResult
from cuda_lsp.dynamic.runner import Runner

FIRST = ("eigenvalues", "reductionMultiBlockCG")
"""What is run before all others: they ended early where they ran last."""

SMALLER = {
    "eigenvalues": ("--iters-timing=1",),  # of 100, all of them alike
    "reductionMultiBlockCG": ("--n=131072",),  # of 33 million elements
}
"""What programs are called with on the CPU emulator, where their own problem is too large."""

_TARGET = re.compile(r"add_executable\((\w+)\s+([^)]*)\)")
_LIBRARIES = re.compile(
    r"CUDA::(cublas|cufft|curand|cusparse|cusolver|npp|nvrtc|cuda_driver|nvJ)|OPENGL|GLUT|Vulkan|MPI::|OpenMP"
)


def programs(folder: Path) -> Iterator[tuple[str, Path, list[Path]]]:
    """Name, the source with ``main`` (or the first with kernels), and the other sources."""
    for listing in sorted(folder.rglob("CMakeLists.txt")):
        text = listing.read_text()
        target = _TARGET.search(text)
        if target is None or _LIBRARIES.search(text):
            continue
        named = [listing.parent / s for s in target[2].split() if s.endswith((".cu", ".cpp", ".c"))]
        device = [s for s in named if s.suffix == ".cu" and s.exists()]
        if not device or not all(s.exists() for s in named):
            continue
        holds_main = [s for s in device if re.search(r"\bmain\s*\(", s.read_text(errors="replace"))]
        first = (holds_main or device)[0]
        yield target[1], first, [s for s in named if s != first]


def prepare(folder: Path, wanted: set[str]) -> dict[str, ProgramJob]:
    """A job for each program."""
    from cuda_lsp.config import Settings
    from cuda_lsp.confirm import CheckOptions
    from cuda_lsp.confirm_program import ProgramOptions, Source, device_headers, program_job, source_of
    from cuda_lsp.static.analyze import Analyzer

    jobs: dict[str, ProgramJob] = {}
    for name, first, others in programs(folder):
        if wanted and name not in wanted:
            continue
        settings = Settings(include_dirs=(str(folder / "Common"), str(first.parent)), arch="sm_90")
        analyzer, asked = Analyzer(settings), CheckOptions(watch_all=True)
        files: list[Source] = []
        device = [first, *(p for p in others if p.suffix == ".cu")]
        folders = [folder / "Common", first.parent]
        headers = [h for p in device for h in device_headers(p, p.read_text(errors="replace"), folders)]
        for path in dict.fromkeys([*device, *headers]):
            text = path.read_text(errors="replace")
            report = analyzer.update(path, text)
            files.append(source_of(asked, analyzer, text, report))
        analyzer.shutdown()
        options = ProgramOptions(sources=tuple(others), folder=first.parent)
        jobs[name] = program_job(files, settings, asked, options)
    return jobs


def run(job: ProgramJob, engine: EngineKind, seconds: float) -> tuple[ProgramResult, float]:
    """What came of it, and the processor's seconds that it took with its builds."""
    runner, before = Runner(), _worked()
    try:
        cache = Path.home() / ".cache" / "cuda-lsp-programs"
        result = runner.run_program(evolve(job, engine=engine, cache=cache, deadline=seconds))
    finally:
        runner.close()
    return result, _worked() - before


def _worked() -> float:
    """Of all processes that were started here and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def row(result: ProgramResult, worked: float) -> dict[str, object]:
    races = {
        name: sorted({_lines(check, race.sites) for trial in check.results for race in trial.races.races})
        for name, check in result.checks.items()
    }
    return {
        "status": result.status,
        "launches": result.launches,
        "faults": {name: count for name, check in result.checks.items() if (count := _faults(check))},
        "kernels checked": len(result.checks),
        "races": {name: found for name, found in races.items() if found},
        "seconds": round(result.seconds, 1),
        "processor seconds": round(worked, 1),
        "problem": result.problem,
        "errors": [e.message[:200] for e in result.errors][:3],
        "notes": list(result.notes),
        "output": result.output[-300:],
    }


def _faults(check: CheckResult) -> int:
    """Places that reach beyond their memory."""
    outcomes = (outcome for trial in check.results for outcome in (trial.races, trial.banks) if outcome)
    return sum(len(outcome.faults) for outcome in outcomes)


def _lines(check: CheckResult, sites: tuple[int, int]) -> tuple[int, ...]:
    places = [check.sites[k].site for k in sites]
    return tuple(p.range.start.line if p else 0 for p in places)


def main() -> None:
    if sys.argv[1] == "prepare":
        jobs = prepare(Path(sys.argv[2]).resolve(), set(sys.argv[4:]))
        Path(sys.argv[3]).write_bytes(pickle.dumps(jobs))
        print(f"{len(jobs)} programs")
        return
    jobs: dict[str, ProgramJob] = pickle.loads(Path(sys.argv[2]).read_bytes())
    engine = EngineKind(sys.argv[4])
    seconds = float(sys.argv[5]) if len(sys.argv) > 5 else 120.0
    target, limit = Path(sys.argv[3]), float(sys.argv[6]) if len(sys.argv) > 6 else 1e9
    rows = json.loads(target.read_text()) if target.exists() else {}
    started = time.monotonic()
    for name in sorted(jobs, key=lambda name: name not in FIRST):
        job = jobs[name]
        if name in rows:
            continue
        if time.monotonic() - started > limit:
            print("out of time: call again for the others")
            sys.exit(1)
        if engine is EngineKind.EMULATOR:
            job = evolve(job, arguments=SMALLER.get(name, job.arguments))
        try:
            rows[name] = row(*run(job, engine, seconds))
        except Exception as error:  # noqa: BLE001  the next program may run
            rows[name] = {"problem": f"{type(error).__name__}: {error}"[:500]}
        told = {k: v for k, v in rows[name].items() if k != "output"}
        print(name, json.dumps(told)[:400], flush=True)
        target.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
