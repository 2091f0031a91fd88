"""Which CUDA compiler compiles kernels for dynamic checks, and why that one.

In order: the one the settings name, ``nvcc`` on PATH, ``CUDA_HOME`` or ``CUDA_PATH``, ``/usr/local/cuda``,
and NVIDIA's wheels in this Python (``pip install 'cuda-lsp[toolkit]'``).
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from attrs import frozen

NEXT_STEP = "install a CUDA toolkit, or `pip install 'cuda-lsp[toolkit]'`"


class ToolkitMissing(Exception):
    """There is no usable nvcc; the message says what to do."""


@frozen
class Toolkit:
    """An nvcc that works. ``root``: the folder above its ``bin``; ``origin``: why this one, for people."""

    nvcc: Path
    version: str
    origin: str
    root: Path

    @property
    def wheels(self) -> bool:
        """Whether it came with Python packages, not as an installation of CUDA."""
        return "wheel" in self.origin


def find_toolkit(explicit: Path | None = None) -> Toolkit:
    """The best toolkit here. Raises ToolkitMissing."""
    problems: list[str] = []
    for nvcc, origin in _candidates(explicit):
        try:
            return _probe(nvcc, origin)
        except ToolkitMissing as problem:
            problems.append(str(problem))
            if explicit is not None:
                break
    if problems:
        raise ToolkitMissing(f"{problems[0]}; {NEXT_STEP}")
    raise ToolkitMissing(f"no CUDA compiler (nvcc) was found: {NEXT_STEP}")


def _candidates(explicit: Path | None) -> Iterator[tuple[Path, str]]:
    if explicit is not None:
        yield (explicit / "bin" / "nvcc" if explicit.is_dir() else explicit), "the settings"
        return
    found = shutil.which("nvcc")
    if found:
        yield Path(found), "PATH"
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "bin" / "nvcc", variable
    yield from ((p, "/usr/local/cuda") for p in [Path("/usr/local/cuda/bin/nvcc")] if p.exists())
    yield from _wheels()


def _wheels() -> Iterator[tuple[Path, str]]:
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for nvcc in sorted(Path(folder).glob("cu*/bin/nvcc"), reverse=True):
            yield nvcc, "the nvidia wheels of this Python"


@lru_cache(maxsize=8)
def _probe(nvcc: Path, origin: str) -> Toolkit:
    try:
        done = subprocess.run(
            [str(nvcc), "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise ToolkitMissing(f"{nvcc} (from {origin}) does not run: {problem}") from problem
    version = re.search(r"V(\d+\.\d+\.\d+)", done.stdout)
    if done.returncode or version is None:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise ToolkitMissing(f"{nvcc} (from {origin}) does not work: {said[-1] if said else 'no output'}")
    if shutil.which("g++") is None:
        raise ToolkitMissing("nvcc needs a host compiler: install g++")
    real = Path(os.path.realpath(nvcc))
    return Toolkit(nvcc, version[1], origin, real.parent.parent)
