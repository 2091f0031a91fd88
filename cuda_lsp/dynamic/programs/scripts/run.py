"""A Python program under check: a library is preloaded, through which its NVRTC and driver pass.

Without a GPU that library is the driver (``standin/driver.cpp``), and kernels are emulated here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import evolve

from cuda_lsp.children import NEUTRAL_FOLDER
from cuda_lsp.dynamic.compilation.scratch import scratch
from cuda_lsp.dynamic.compilation.toolkit import Toolkit
from cuda_lsp.dynamic.emulator.engine import DEVICE, remarks
from cuda_lsp.dynamic.emulator.heap import Heap
from cuda_lsp.dynamic.programs.attended import Start, attend
from cuda_lsp.dynamic.programs.build import build_library
from cuda_lsp.dynamic.programs.build_command import remembered
from cuda_lsp.dynamic.programs.job import ProgramJob, ProgramResult
from cuda_lsp.dynamic.programs.on_gpu import Process, run_on_gpu
from cuda_lsp.dynamic.programs.recorder import LOG, RECORDER, preloadable, recorded, recorder_library
from cuda_lsp.dynamic.programs.scripts.builds import Builds
from cuda_lsp.dynamic.programs.scripts.copies import Copies
from cuda_lsp.dynamic.programs.scripts.extensions import Extensions, folder_for_torch
from cuda_lsp.dynamic.programs.scripts.on_emulator import KINDS, LONGEST, ScriptHost
from cuda_lsp.dynamic.programs.scripts.places import places_in
from cuda_lsp.dynamic.runs import EngineUnavailable

Progress = Callable[[str], None]

DRIVER = "libcuda.so.1"
_NOTING = ("nvrtc.cpp", "linkers.cpp", "lookups.cpp")
_HOOKS, IN_FRONT = "libcuda-lsp.so", (*_NOTING, "launches.cpp")
_LEAST = 1.0  # seconds of a program's run
_TORCHS = "TORCH_EXTENSIONS_DIR"
NO_CACHES = {"CUPY_CACHE_IN_MEMORY": "1", "PYCUDA_DISABLE_CACHE": "1"}
"""So that what packages compiled in an earlier run is compiled in this one, and its source known."""
_STAND_IN = ("emulator.cpp", "memory.cpp", *_NOTING, "driver.cpp", "opened.cpp")


def run_script(
    job: ProgramJob, toolkit: Toolkit, architecture: int, end: float, progress: Progress
) -> ProgramResult:
    """Run it to its end. ``architecture``: of the GPU, 0: there is none. ``end``: monotonic.

    Raises CompileError, Interrupted, OSError.
    """
    recorder = recorder_library(job.cache, end)
    with scratch(recorder.parent) as work, preloadable(recorder) as preloaded:
        log = work / "log"
        log.touch()
        try:
            if architecture:
                return _on_gpu(job, toolkit, end, progress, _variables(job, preloaded, log))
            return _on_emulator(job, toolkit, end, progress, _variables(job, preloaded, log))
        finally:
            remembered(job.folder, job.cache, tuple(recorded(log.read_bytes())))


def _variables(job: ProgramJob, recorder: str, log: Path) -> Mapping[str, str]:
    """Of the program's environment: compilers that it starts write down what they are asked."""
    torchs = {} if _TORCHS in os.environ else {_TORCHS: str(folder_for_torch(job.folder, job.cache))}
    return {RECORDER: recorder, LOG: str(log), "CCACHE_DISABLE": "1", **torchs, **NO_CACHES}


def _on_gpu(
    job: ProgramJob, toolkit: Toolkit, end: float, progress: Progress, variables: Mapping[str, str]
) -> ProgramResult:
    _check_installed(job.interpreter)
    library = build_library(job.cache, toolkit, _HOOKS, IN_FRONT, end)
    variables = {**variables, "LD_PRELOAD": str(library)}
    process = Process("cuda_lsp.dynamic.programs.scripts.gpu_process", job.interpreter, variables)
    job = evolve(job, deadline=max(_LEAST, min(job.running, end - time.monotonic())))
    return run_on_gpu(job, library, (), toolkit, progress, process)


def _on_emulator(
    job: ProgramJob, toolkit: Toolkit, end: float, progress: Progress, variables: Mapping[str, str]
) -> ProgramResult:
    library = build_library(job.cache, toolkit, DRIVER, _STAND_IN, end)
    builds = Builds(toolkit, job.cache, job.options.arch, places_in(job.path), end, progress)
    extensions = Extensions(job.folder, job.cache, Path(variables[LOG]))
    heap = Heap(job.memory)
    try:
        copies = Copies(job, builds, extensions)
        host = ScriptHost(heap, builds, copies, job.wanted, job.detail, job.all_blocks)
        return _emulated(job, {**variables, "LD_PRELOAD": str(library)}, host, progress)
    finally:
        heap.close()


def _check_installed(interpreter: str) -> None:
    """On a GPU we work in the program's own process. Raises EngineUnavailable."""
    if interpreter == sys.executable:
        return
    asked = [interpreter, "-c", "import cuda_lsp.dynamic.programs.scripts.gpu_process"]
    done = subprocess.run(asked, cwd=NEUTRAL_FOLDER, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise EngineUnavailable(
            f"the GPU check runs in the program's own Python, and {interpreter} does not have it ({last}):"
            " install cuda-lsp there, or use --engine emulator"
        )


def _emulated(
    job: ProgramJob, variables: Mapping[str, str], host: ScriptHost, progress: Progress
) -> ProgramResult:
    start = Start(job.command, variables=variables)
    ended = attend(job, host, start, host.answer, progress, KINDS, LONGEST)
    result = ProgramResult(
        status=ended.status,
        output=ended.output,
        runs=host.runs(),
        launches=host.launches,
        device=DEVICE,
        problem=ended.problem,
        notes=host.problems(),
    )
    return evolve(result, notes=(*result.notes, *remarks()))
