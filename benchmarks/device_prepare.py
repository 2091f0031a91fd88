"""What a session on a card needs that can be made without one.

    python benchmarks/device_prepare.py FOLDER [PROGRAMS] [--python 3.12] [--builds] [--static]

FOLDER can then be copied to the machine with the GPU, whose Python is ``--python``. Left there: check jobs of
the fixtures and labelled kernels (jobs.pkl), generated kernels with their results (kernels.pkl), the programs
of PROGRAMS (a folder of CMake projects) with their sources (programs.pkl, projects/), with ``--builds`` the
compiled jobs (cache/; minutes of work for the machine otherwise), and the packages (wheels/; with
``--static`` also NumPy and what the steps ``build`` and ``click`` need besides). Each part is made unless it
is there, so that an interrupted call can be repeated. Needs libclang and nvcc.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks"
_PACKAGES = (
    "attrs", "platformdirs", "pytest", "hypothesis", "setuptools", "wheel", "pytools", "mako", "MarkupSafe",
    "cuda-bindings", "cuda-pathfinder",
    "iniconfig", "pluggy", "packaging", "pygments", "sortedcontainers", "siphash24", "typing_extensions",
)  # fmt: skip
_STATIC = ("numpy", "libclang", "z3-solver", "lsprotocol", "pygls", "cattrs")  # 70 MiB
_LARGEST_PROJECT = 3 << 20  # bytes of a program's folder: pictures and films are left behind


def prepare(
    folder: Path, projects: Path | None, python: str, packages: tuple[str, ...], builds: bool, kernels: int
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "places.json").write_text(json.dumps({str(ROOT): "root", str(folder): "folder"}))
    _made(folder / "kernels.pkl", "engines.py", "kernels", "{}", str(kernels))
    _made(folder / "jobs.pkl", "engines.py", "jobs", "{}")
    if projects is not None:
        _copy(projects, folder / "projects")
        _made(folder / "programs.pkl", "programs.py", "prepare", str(folder / "projects"), "{}")
    if not (folder / "wheels").exists():
        _packages(folder / "wheels", python, packages)
    if builds:
        _call("engines.py", "builds", str(folder / "jobs.pkl"), str(folder / "cache"))


def _made(target: Path, script: str, *arguments: str) -> None:
    """A file made by another benchmark; ``{}`` among its arguments stands for the file."""
    if target.exists():
        return
    scratch = target.with_suffix(".part")
    if _call(script, *(a.replace("{}", str(scratch)) for a in arguments)) == 0:
        scratch.replace(target)
        print(target.name, f"{target.stat().st_size >> 10} KiB", flush=True)
    else:
        print(f"{target.name} was not made", flush=True)


def _call(script: str, *arguments: str) -> int:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run((sys.executable, str(HERE / script), *arguments), env=environment).returncode


def _copy(projects: Path, target: Path) -> None:
    """The programs that are run, and the headers that all share."""
    sys.path.insert(0, str(HERE))
    from programs import programs

    for name, first, _ in programs(projects):
        size = sum(p.stat().st_size for p in first.parent.rglob("*") if p.is_file())
        place = target / first.parent.relative_to(projects)
        if size > _LARGEST_PROJECT:
            print(f"{name}: left out, {size >> 20} MiB", flush=True)
        elif not place.exists():
            shutil.copytree(first.parent, place)
    if (projects / "Common").exists() and not (target / "Common").exists():
        shutil.copytree(
            projects / "Common", target / "Common", ignore=shutil.ignore_patterns("*.lib", "*.dll")
        )


def _packages(wheels: Path, python: str, packages: tuple[str, ...]) -> None:
    pip = (sys.executable, "-m", "pip", "download", "-q", "-d", str(wheels))
    tags = [f"manylinux_2_{n}_x86_64" for n in (17, 24, 27, 28, 31, 34)] + [
        "manylinux2014_x86_64",
        "linux_x86_64",
    ]
    chosen = ["--only-binary=:all:", "--python-version", python, *(f"--platform={tag}" for tag in tags)]
    for package in packages:
        if subprocess.run((*pip, "--no-deps", *chosen, package)).returncode:
            print(f"{package} was not fetched", flush=True)
    sources = (*pip, "--no-deps", "--no-binary", "pycuda", "pycuda")
    if subprocess.run(sources, env={**os.environ, "CUDA_ENABLE_CURAND": "False"}).returncode:
        print("the sources of PyCUDA were not fetched: the machine with the card must have it", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("projects", type=Path, nargs="?")
    parser.add_argument("--python", default=f"{sys.version_info[0]}.{sys.version_info[1]}")
    parser.add_argument("--builds", action="store_true")
    parser.add_argument("--static", action="store_true")
    parser.add_argument("--kernels", type=int, default=160)
    options = parser.parse_args()
    projects = options.projects.resolve() if options.projects else None
    packages = (*_PACKAGES, *(_STATIC if options.static else ()))
    prepare(options.folder.resolve(), projects, options.python, packages, options.builds, options.kernels)


if __name__ == "__main__":
    main()
