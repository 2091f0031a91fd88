"""Everything that needs a card, in one go that can be interrupted.

    python benchmarks/device_session.py prepare FOLDER [PROGRAMS]   # anywhere; PROGRAMS: a folder of projects
    python benchmarks/device_session.py run FOLDER [SECONDS] [STEP…]   # where the GPU is
    python benchmarks/device_session.py tell FOLDER

``prepare`` analyses what the card will run (that needs libclang) and, where pip can build PyCUDA, leaves its
wheel in FOLDER. ``run`` takes the steps below in order, about 25 minutes of an H200 in all; what is done
stays done when it is called again, and ``programs`` goes on with those that are missing. Each step's output
is FOLDER/STEP.txt, its results lie beside it, and FOLDER/done.json tells exit status and seconds. With
SECONDS no step begins that is not expected to end in time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks"
_PYCUDA = {"CUDA_ENABLE_CURAND": "False"}


@frozen
class Step:
    """``seconds`` it is expected to take; after ``limit`` it is cut. ``results``: files of ``benchmarks``."""

    name: str
    command: tuple[str, ...]
    seconds: int
    limit: int
    results: tuple[str, ...] = ()


def steps(folder: Path) -> list[Step]:
    """What answers most comes first."""
    here, jobs = str(HERE), str(folder / "jobs.pkl")
    python, out = sys.executable, ("--out", str(folder))
    tests = (python, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", str(ROOT / "tests" / "gpu"))
    programs = (str(folder / "programs.pkl"), str(folder / "programs.json"), "gpu", "60", "300")
    return [
        Step("pycuda", (python, __file__, "pycuda", str(folder)), 100, 240),
        Step("tests", (*tests, "-k", "card or program"), 120, 300),
        Step("engines", (python, f"{here}/engines.py", "compare", jobs, "400"), 400, 500, ("engines.json",)),
        Step("fixtures", (python, f"{here}/dynamic.py", "fixtures", *out), 150, 400),
        Step("timing", (python, f"{here}/dynamic.py", "timing", *out), 120, 300),
        Step("papers", (python, f"{here}/papers.py", *out), 60, 200),
        Step("programs", (python, f"{here}/programs.py", "run", *programs), 300, 400),
        Step("build", (python, __file__, "build", str(folder), "gpu"), 30, 120),
        Step("click", (python, f"{here}/click.py", "gpu"), 60, 200, ("click-gpu.json",)),
        Step("banks", (python, f"{here}/dynamic.py", "banks", *out), 120, 300),
    ]


# ------------------------------------------------------------------------------------------ prepare


def prepare(folder: Path, projects: Path | None) -> None:
    """Job files, and a wheel of PyCUDA."""
    folder.mkdir(parents=True, exist_ok=True)
    _call(sys.executable, str(HERE / "engines.py"), "jobs", str(folder / "jobs.pkl"))
    if projects is not None:
        made = str(folder / "programs.pkl")
        _call(sys.executable, str(HERE / "programs.py"), "prepare", str(projects), made)
    wheels = (sys.executable, "-m", "pip", "wheel", "-q", "-w", str(folder / "wheels"), "pycuda")
    if subprocess.run(wheels, env={**os.environ, **_PYCUDA}).returncode:
        print("no wheel of PyCUDA was made: the machine with the card must have it, or a toolkit and pip")


def _call(*command: str) -> None:
    subprocess.run(command, check=True, env=_environment())


def _environment() -> dict[str, str]:
    return {**os.environ, **_PYCUDA, "PYTHONPATH": str(ROOT)}


# ---------------------------------------------------------------------------------------------- run


def run(folder: Path, seconds: float, chosen: list[str]) -> None:
    """The steps that are not done yet."""
    began = time.monotonic()
    for step in steps(folder):
        done = _done(folder)
        left = seconds - (time.monotonic() - began)
        if (chosen and step.name not in chosen) or done.get(step.name, {}).get("status") == 0:
            continue
        if step.name == "programs" and not (folder / "programs.pkl").exists():
            print("programs: not prepared", flush=True)
            continue
        if step.seconds > left:
            print(f"{step.name}: not begun, {left:.0f} s are left", flush=True)
            continue
        done[step.name] = _take(step, folder, left)
        (folder / "done.json").write_text(json.dumps(done, indent=1) + "\n")
        print(step.name, done[step.name], flush=True)


def _take(step: Step, folder: Path, left: float) -> dict[str, float | int]:
    """Exit status (124: cut) and seconds of one step."""
    began = time.monotonic()
    with (folder / f"{step.name}.txt").open("a") as output:
        child = subprocess.Popen(
            step.command, cwd=ROOT, env=_environment(), stdout=output, stderr=subprocess.STDOUT
        )
        try:
            status = child.wait(min(step.limit, left))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            status = 124
    for name in step.results:
        made = HERE / name
        if made.exists() and made.stat().st_mtime > time.time() - (time.monotonic() - began) - 1:
            shutil.copy(made, folder / name)
    return {"status": status, "seconds": round(time.monotonic() - began, 1)}


def _done(folder: Path) -> dict[str, dict[str, float | int]]:
    known = folder / "done.json"
    return json.loads(known.read_text()) if known.exists() else {}


def pycuda(folder: Path) -> None:
    """PyCUDA, unless it is there: the prepared wheel, else built here."""
    if subprocess.run((sys.executable, "-c", "import pycuda.driver")).returncode:
        wheels = folder / "wheels"
        source = ("--no-index", "--find-links", str(wheels)) if wheels.exists() else ()
        _call(sys.executable, "-m", "pip", "install", "-q", *source, "pycuda")


def build(engine: str) -> None:
    """A program with a Makefile, built and run under check as it is, with a race and without."""
    sys.path.insert(0, str(ROOT / "tests"))
    from programs import HISTOGRAM

    command = (sys.executable, "-m", "cuda_lsp", "run", "count.cu", "--engine", engine)
    for barrier, racy in (("__syncthreads();", False), ("", True)):
        with tempfile.TemporaryDirectory() as place:
            Path(place, "count.cu").write_text(HISTOGRAM.replace("BARRIER", barrier))
            Path(place, "Makefile").write_text("count: count.cu\n\tnvcc -O2 -arch=native $< -o $@\n")
            done = subprocess.run(
                (*command, "--build", "make", "--run", "./count 4096"),
                cwd=place, env=_environment(), capture_output=True, text=True,
            )  # fmt: skip
        print(barrier, done.returncode, done.stdout, done.stderr, flush=True)
        assert "3 launches" in done.stderr
        assert ("[confirmed]" in done.stdout) == racy


def tell(folder: Path) -> None:
    """What is done."""
    done = _done(folder)
    for step in steps(folder):
        print(f"{step.name:10}", done.get(step.name, "not done"))


def main() -> None:
    part, folder, rest = sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3:]
    match part:
        case "prepare":
            prepare(folder, Path(rest[0]).resolve() if rest else None)
        case "run":
            seconds = float(rest.pop(0)) if rest and rest[0].isdigit() else 1e9
            run(folder, seconds, rest)
        case "pycuda":
            pycuda(folder)
        case "build":
            build(rest[0])
        case _:
            tell(folder)


if __name__ == "__main__":
    main()
