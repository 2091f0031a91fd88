"""Everything that needs a card, in one go that can be interrupted.

    python benchmarks/device_prepare.py FOLDER [PROGRAMS]              # anywhere, before: see there
    python benchmarks/device_session.py run FOLDER [SECONDS] [STEP…] [--device emulated]   # where the GPU is
    python benchmarks/device_session.py tell FOLDER
    python benchmarks/device_session.py pack FOLDER ARCHIVE            # what was found, as a .tar.gz

``run`` takes the steps below in order, about 28 minutes of an H200 in all. FOLDER/results holds each step's
output (STEP.txt), what it measured, and done.json with exit status and seconds, all up to date after every
row; ``run`` goes on where an earlier one ended, also with the results unpacked on another machine. A step
that fails ends no other. With SECONDS no step begins for which too little is left, and one that does not end
in time goes on in the next call. ``--device emulated`` does a little of each step on the emulated card of the
tests (``card.py``), to try everything without a GPU. This file needs nothing but Python.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks"
EMULATED = os.environ.get("CUDA_LSP_CARD") == "emulated"
RESULTS = "results"
AGAIN = 75
"""Exit status of a step whose process can run nothing more on the GPU: call it again for the rest."""

_CUT = 124


@dataclass(frozen=True)
class Step:
    """``seconds`` it is expected to take; after ``limit`` it is cut. ``needs``: a file it cannot do without.

    ``resumes``: it goes on with what is missing when it is called again.
    """

    name: str
    command: tuple[str, ...]
    seconds: int
    limit: int
    needs: Path | None = None
    resumes: bool = True


def steps(folder: Path, emulated: bool = False) -> list[Step]:
    """What answers most comes first."""
    python, results = sys.executable, folder / RESULTS
    engine = "emulator" if emulated else "gpu"
    jobs, bundle, programs = folder / "jobs.pkl", folder / "kernels.pkl", folder / "programs.pkl"
    cache = str(folder / "cache")

    def script(name: str, *arguments: object) -> tuple[str, ...]:
        return (python, str(HERE / f"{name}.py"), *map(str, arguments))

    kept = ("--out", results, "--resume")
    chosen = "neighbouring and emulated" if emulated else "card or program"
    tests = ("-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", str(ROOT / "tests" / "gpu"), "-k", chosen)
    run_programs = ("run", programs, results / "programs.json", engine, 60, 500)
    clicks = (engine, *((1,) if emulated else ()), "--out", results)
    wavefronts = ("compare", jobs, results / "dynamic-wavefronts.json", 200, cache)
    return [
        Step("install", script("device_session", "install", folder), 100, 240, None, False),
        Step("generated", script("engines", "check-kernels", bundle, results / "generated-kernels.json"),
             40, 150, bundle, False),
        Step("fixtures", script("dynamic", "fixtures", *kept), 150, 400),
        Step("engines", script("engines", "compare", jobs, results / "engines.json", cache), 400, 590, jobs),
        Step("timing", script("dynamic", "timing", *kept), 120, 300),
        Step("detection", script("racecheck", *kept), 200, 500),
        Step("wavefronts", script("dynamic_wavefronts", *wavefronts), 150, 500, jobs, False),
        Step("programs", script("programs", *run_programs), 300, 590, programs),
        Step("papers", script("papers", *kept), 60, 200),
        Step("tests", (python, *tests), 120, 300, None, False),
        Step("build", script("device_session", "build", folder, engine), 30, 120, None, False),
        Step("click", script("click_to_answer", *clicks), 60, 200, None, False),
        Step("banks", script("dynamic", "banks", *kept), 120, 300),
    ]  # fmt: skip


def run(folder: Path, seconds: float, chosen: list[str], emulated: bool = False) -> None:
    """The steps that are not done yet."""
    began, results = time.monotonic(), folder / RESULTS
    results.mkdir(parents=True, exist_ok=True)
    _at_its_place(folder)
    for step in steps(folder, emulated):
        done = _done(folder)
        left = seconds - (time.monotonic() - began)
        if (chosen and step.name not in chosen) or done.get(step.name, {}).get("status") == 0:
            continue
        if step.needs is not None and not step.needs.exists():
            print(f"{step.name}: not prepared, {step.needs.name} is missing", flush=True)
            continue
        if left < min(step.seconds, 60 if step.resumes else step.seconds):
            print(f"{step.name}: not begun, {left:.0f} s are left", flush=True)
            continue
        done[step.name] = _take(step, results, left, emulated)
        scratch = results / "done.part"
        scratch.write_text(json.dumps(done, indent=1) + "\n")
        scratch.replace(results / "done.json")
        print(step.name, done[step.name], flush=True)


def _take(step: Step, results: Path, left: float, emulated: bool) -> dict[str, float | int]:
    """Exit status (124: cut) and seconds of one step; one whose process has spent the GPU begins again."""
    began, limit = time.monotonic(), min(step.limit, left)
    status = AGAIN
    with (results / f"{step.name}.txt").open("a") as output:
        while status == AGAIN:
            rest = limit - (time.monotonic() - began)
            status = _called(step.command, rest, output, emulated) if rest > 1 else _CUT
    return {"status": status, "seconds": round(time.monotonic() - began, 1)}


def _called(command: tuple[str, ...], seconds: float, output: object, emulated: bool) -> int:
    """Exit status; a command that takes longer is ended with all that it started."""
    try:
        child = subprocess.Popen(
            command, cwd=ROOT, env=_environment(emulated), stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # type: ignore[call-overload]  # fmt: skip
    except OSError as error:
        print(f"{command[0]}: {error}", flush=True)
        return 127
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return _CUT
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _environment(emulated: bool) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    own = {"CUDA_ENABLE_CURAND": "False", "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **own, **({"CUDA_LSP_CARD": "emulated"} if emulated else {})}


def _done(folder: Path) -> dict[str, dict[str, float | int]]:
    known = folder / RESULTS / "done.json"
    return json.loads(known.read_text()) if known.exists() else {}


def _at_its_place(folder: Path) -> None:
    """Jobs name files where they were prepared: make those names lead here."""
    known = folder / "places.json"
    for there, here in json.loads(known.read_text()).items() if known.exists() else ():
        target = ROOT if here == "root" else folder
        if Path(there) != target and not Path(there).exists():
            Path(there).parent.mkdir(parents=True, exist_ok=True)
            Path(there).symlink_to(target)


# -------------------------------------------------------------------------------- steps of their own


def install(folder: Path) -> None:
    """What is missing of the libraries for the GPU, and of what this repository needs, by pip.

    Where wheels were prepared, only from those: PyCUDA's sources, which take 95 s to build, may be left out.
    """
    wheels = folder / "wheels"
    source = ("--no-index", "--find-links", str(wheels)) if wheels.exists() else ()
    wanted = {
        "setuptools": "setuptools", "wheel": "wheel", "attr": "attrs", "numpy": "numpy",
        "platformdirs": "platformdirs", "pytest": "pytest",
        "hypothesis": "hypothesis", "cuda.bindings": "cuda-bindings", "pycuda": "pycuda",
        "clang": "libclang", "z3": "z3-solver",
        "lsprotocol": "lsprotocol", "pygls": "pygls",
    }  # fmt: skip
    missing: list[str] = []
    for module, package in wanted.items():
        test = (sys.executable, "-c", f"import {module}")
        if subprocess.run(test, capture_output=True).returncode:
            missing.append(package)
    if wheels.exists():
        there = {path.name.split("-")[0].lower() for path in wheels.iterdir()}
        missing = [package for package in missing if package.replace("-", "_") in there]
    alone = ("--no-build-isolation",) if wheels.exists() else ()  # PyCUDA is built with the machine's NumPy
    pip = (sys.executable, "-m", "pip", "install", "-q", *source, *alone)
    for package in () if EMULATED else missing:
        failed = subprocess.run((*pip, package)).returncode
        print(package, "failed" if failed else "installed", flush=True)
    if not EMULATED:
        test = "from cuda_lsp.dynamic.gpu.engine import device_architecture as a; print('sm', a())"
        subprocess.run((sys.executable, "-c", test), check=True, env=_environment(False))


def build(engine: str) -> None:
    """A program with a Makefile, built and run under check as it is, with a race and without."""
    sys.path.insert(0, str(ROOT / "tests"))
    from programs import HISTOGRAM

    command = (sys.executable, "-m", "cuda_lsp", "run", "count.cu", "--engine", engine)
    architecture = "native" if engine == "gpu" else "sm_90"
    makefile = f"count: count.cu\n\tnvcc -O2 -arch={architecture} $< -o $@\n"
    for barrier, racy in (("__syncthreads();", False), ("", True)):
        with tempfile.TemporaryDirectory() as place:
            Path(place, "count.cu").write_text(HISTOGRAM.replace("BARRIER", barrier))
            Path(place, "Makefile").write_text(makefile)
            done = subprocess.run(
                (*command, "--build", "make", "--run", "./count 4096"),
                cwd=place, capture_output=True, text=True,
            )  # fmt: skip
        print(barrier, done.returncode, done.stdout, done.stderr, flush=True)
        assert "3 launches" in done.stderr
        assert ("[confirmed]" in done.stdout) == racy


def tell(folder: Path) -> None:
    """What is done."""
    done = _done(folder)
    for step in steps(folder):
        print(f"{step.name:10}", done.get(step.name, "not done"))


def pack(folder: Path, archive: Path) -> None:
    with tarfile.open(archive, "w:gz") as file:
        file.add(folder / RESULTS, RESULTS)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=("run", "tell", "pack", "install", "build"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--device", choices=("gpu", "emulated"), default="gpu")
    options = parser.parse_args()
    folder, rest = options.folder.resolve(), options.rest
    match options.verb:
        case "run":
            seconds = float(rest.pop(0)) if rest and rest[0].isdigit() else 1e9
            run(folder, seconds, rest, options.device == "emulated")
        case "install":
            install(folder)
        case "build":
            build(rest[0])
        case "pack":
            pack(folder, Path(rest[0]))
        case _:
            tell(folder)


if __name__ == "__main__":
    main()
