"""The child process of dynamic checks: jobs in on stdin, progress and results out on a pipe of its own.

A kernel may hang, crash or print; here it cannot hurt the editor. Started by ``runner``.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from typing import Any, BinaryIO

from cuda_lsp.children.sweep import adopt_orphans, end_descendants
from cuda_lsp.dynamic.job import CheckJob, CheckResult, Preparation
from cuda_lsp.dynamic.messages import receive, send
from cuda_lsp.dynamic.programs.build_command import BuildJob, Built, follow
from cuda_lsp.dynamic.programs.job import ProgramJob, ProgramResult

_SPARE = 1.5  # seconds after its deadline in which what came of a kernel has to be there
_PROGRAM_SPACE = 12  # address space of a program's device memory, its maps and the detector's, in its size


def main(folder: str) -> None:
    """Serve jobs until stdin closes. ``folder``: what relative paths of jobs begin at."""
    with contextlib.suppress(OSError):  # it may be gone: then only absolute paths lead anywhere
        os.chdir(folder)
    adopt_orphans()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # crashes are told, and leave no files
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what kernels print must not mix with the answers
    from cuda_lsp.dynamic.check import Engines, prepare
    from cuda_lsp.dynamic.emulator.native.library import LIBRARY

    LIBRARY.asked = lambda: send(answers, ("wanted", "the emulator's engine in C"))
    engines = Engines()
    send(answers, ("ready", ""))
    while True:
        try:
            job: CheckJob | ProgramJob | BuildJob | Preparation = receive(sys.stdin.buffer)
        except EOFError:
            return
        if isinstance(job, Preparation):
            prepare(job)
            continue
        if isinstance(job, BuildJob):
            built = _build(job, answers)
            end_descendants(os.getpid())  # what a build left running
            send(answers, ("result", built))
            continue
        if isinstance(job, ProgramJob):
            checked = _program(job, answers)
            end_descendants(os.getpid())
            send(answers, ("result", checked))
            continue
        send(answers, ("result", _served(job, engines, answers)))
        if engines.spent:
            os._exit(0)  # leaving in order would wait for a kernel that hangs


def _served(job: CheckJob, engines: Any, answers: BinaryIO) -> CheckResult:
    from cuda_lsp.dynamic.check import check
    from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
    from cuda_lsp.dynamic.gpu.engine import GpuEngine

    on_gpu = False

    def told(stage: str) -> None:
        if stage == "running" and on_gpu:  # the driver may keep a call for ever
            send(answers, ("due", job.deadline + _SPARE))
        send(answers, ("progress", stage))

    def chosen(engine: object) -> None:
        nonlocal on_gpu
        on_gpu = isinstance(engine, GpuEngine)
        _limit_memory(job.memory if isinstance(engine, EmulatorEngine) else None)
        if isinstance(engine, GpuEngine):
            engine.limit_memory(job.gpu_memory)

    try:
        return check(job, engines, told, chosen, lambda result: send(answers, ("seen", result)))
    except MemoryError:
        return CheckResult(
            job.kernel,
            problem=f"{job.kernel} needs more than {job.memory >> 20} MiB to be emulated: check fewer blocks",
        )
    except Exception as error:  # noqa: BLE001 - a bug of ours must not read as one of the kernel
        what = f"internal error {type(error).__name__}: {error}"
        return CheckResult(job.kernel, problem=f"{job.kernel} was not checked: {what}; please report this")


def _program(job: ProgramJob, answers: BinaryIO) -> ProgramResult:
    from cuda_lsp.dynamic.programs.run import check_program, runs_on_gpu

    _limit_memory(_PROGRAM_SPACE * job.memory if not runs_on_gpu(job.engine) else None)
    try:
        return check_program(job, lambda stage: send(answers, ("progress", stage)))
    except MemoryError:
        return ProgramResult(problem=f"{job.path.name} needs too much memory to be emulated")
    except Exception as error:  # noqa: BLE001 - a bug of ours must not read as one of the program
        what = f"internal error {type(error).__name__}: {error}"
        return ProgramResult(problem=f"{job.path.name} was not run: {what}; please report this")


def _build(job: BuildJob, answers: BinaryIO) -> Built:
    _limit_memory(None)  # the project's own commands need what they need
    try:
        return follow(job, lambda stage: send(answers, ("progress", stage)))
    except Exception as error:  # noqa: BLE001 - a bug of ours must not read as one of the build
        what = f"internal error {type(error).__name__}: {error}"
        return Built(problem=f"`{job.build}` was not followed: {what}; please report this")


def _limit_memory(size: int | None) -> None:
    """The emulator's memory is capped; CUDA maps address space far beyond what it uses, so it is not."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = size if size is not None else hard
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
