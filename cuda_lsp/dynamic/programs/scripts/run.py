"""A Python program under check: its interpreter gets a library preloaded, through which NVRTC and the driver pass.

Without a GPU that library is the driver (``standin/driver.cpp``), and kernels are emulated here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import evolve

from cuda_lsp.dynamic.compilation.compile import CompileError
from cuda_lsp.dynamic.compilation.toolkit import Toolkit
from cuda_lsp.dynamic.emulator.engine import DEVICE, remarks
from cuda_lsp.dynamic.emulator.heap import Heap
from cuda_lsp.dynamic.programs.attended import Start, attend
from cuda_lsp.dynamic.programs.build import build_library
from cuda_lsp.dynamic.programs.job import ProgramJob, ProgramResult
from cuda_lsp.dynamic.programs.scripts.builds import Builds
from cuda_lsp.dynamic.programs.scripts.on_emulator import KINDS, LONGEST, ScriptHost
from cuda_lsp.dynamic.programs.scripts.places import places_in
from cuda_lsp.model import ToolError

Progress = Callable[[str], None]

DRIVER = "libcuda.so.1"
_STAND_IN = ("emulator.cpp", "nvrtc.cpp", "driver.cpp")


def run_script(
    job: ProgramJob, toolkit: Toolkit, architecture: int, end: float, progress: Progress
) -> ProgramResult:
    """Run it to its end. ``architecture``: of the GPU, 0: there is none. ``end``: monotonic.

    Raises CompileError, Interrupted.
    """
    if architecture:
        raise CompileError([ToolError("Python programs are not checked on a GPU yet")])
    library = build_library(job.cache, toolkit, DRIVER, _STAND_IN, end)
    places = places_in(job.path)
    builds = Builds(toolkit, job.cache, job.options.arch, places, end, progress)
    heap = Heap(job.memory)
    try:
        return _emulated(
            job, library, ScriptHost(heap, builds, job.wanted, job.detail, job.all_blocks), progress
        )
    finally:
        heap.close()


def _emulated(job: ProgramJob, library: Path, host: ScriptHost, progress: Progress) -> ProgramResult:
    start = Start(job.command, variables={"LD_PRELOAD": str(library)})
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
