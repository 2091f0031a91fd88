"""Starts the process that is a program on the GPU (``gpu_process``) and collects what it says.

The program's output goes to a file of ours; messages come over a pipe, each a pickle behind its length, so
that all that was seen before a crash is kept.
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from attrs import define, evolve, field, frozen

from cuda_lsp.children import NEUTRAL_FOLDER, python_command
from cuda_lsp.children.sweep import kill_descendants
from cuda_lsp.dynamic.compilation.compile import CompiledModule
from cuda_lsp.dynamic.compilation.toolkit import Toolkit
from cuda_lsp.dynamic.job import CheckResult
from cuda_lsp.dynamic.messages import complete
from cuda_lsp.dynamic.programs.guard import Guard, usual_memory
from cuda_lsp.dynamic.programs.instances import Tally, instances
from cuda_lsp.dynamic.programs.job import (
    Checked,
    Counts,
    KernelRuns,
    ProgramJob,
    ProgramKernel,
    ProgramResult,
    results_of,
)
from cuda_lsp.dynamic.programs.process import GARBLED, crash, end_of, environment_of
from cuda_lsp.dynamic.runs import PtxSite

Progress = Callable[[str], None]
Functions = Mapping[str, tuple[str, int]]
"""Of functions, and tables of some: the variable that holds their address in the program, and where in it."""

FAULT = 71  # exit status of a program whose GPU context is lost
RACES = frozenset({1, 3, 8, 32})  # launches of a kernel that are watched for races, …
BANKS = frozenset({2})  # … and for bank conflicts
SAMPLED = RACES | BANKS
SKIPPED = "its check had ended the program in an earlier run"
_CUT = "the program was ended while it was checked"
_MOST_SKIPPED = 8  # kernels, until the program is given up
_WORTH = 1.0  # seconds for which it is started again


@frozen
class Process:
    """In which process the program runs. ``variables``: of its environment, beside the program's."""

    module: str = "cuda_lsp.dynamic.programs.gpu_process"
    interpreter: str = sys.executable
    variables: Mapping[str, str] = field(factory=dict[str, str])

    def command(self, descriptor: int) -> list[str]:
        """How it is started, in ``NEUTRAL_FOLDER``; with another Python by what is installed there."""
        if self.interpreter == sys.executable:
            return python_command(self.module, str(descriptor))
        text = f"from {self.module} import main; main('{descriptor}')"
        return [self.interpreter, "-c", text]


@frozen
class Task:
    """What to run. ``modules``: the O0 and O3 build of each source. ``skipped``: kernels (entries) whose
    check has ended the program before. ``functions``: of each source, where they lie."""

    job: ProgramJob
    library: Path
    modules: tuple[tuple[CompiledModule, CompiledModule], ...]
    toolkit: Toolkit
    skipped: frozenset[str] = frozenset()
    process: Process = Process()
    functions: tuple[Functions, ...] = ()


@frozen
class Said:
    """One message to the parent: a device, a checked launch, why one failed, or a ``remark``.

    ``entry``: the kernel's mangled name. ``counts``: what is known of the launches of all kernels.
    """

    entry: str = ""
    checked: Checked | None = None
    sites: tuple[PtxSite, ...] = ()
    problem: str | None = None
    device: str = ""
    counts: Mapping[str, Counts] = field(factory=dict[str, Counts])
    remark: str = ""
    kernels: Mapping[str, ProgramKernel] = field(factory=dict[str, ProgramKernel])  # that are new, by entry


@define
class _Seen:
    """Everything that was said."""

    tally: Tally
    device: str = ""
    checked: dict[str, list[Checked]] = field(factory=lambda: defaultdict[str, list[Checked]](list))
    sites: dict[tuple[str, bool], tuple[PtxSite, ...]] = field(
        factory=dict[tuple[str, bool], tuple[PtxSite, ...]]
    )
    problems: dict[str, str] = field(factory=dict[str, str])
    remarks: dict[str, None] = field(factory=dict[str, None])

    @property
    def launches(self) -> int:
        """Of all kernels."""
        return sum(counts.launches for counts in self.tally.counts.values())

    def take(self, said: Said) -> None:
        if said.remark:
            self.remarks[said.remark] = None
        if said.kernels:
            known = self.tally.instances
            self.tally = evolve(
                self.tally, instances=evolve(known, kernels={**known.kernels, **said.kernels})
            )
        self.device = said.device or self.device
        self.tally.counts.update(said.counts)
        if said.problem is not None:
            self.problems.setdefault(said.entry, said.problem)
        if said.checked is not None:
            self.checked[said.entry].append(said.checked)
            self.sites[said.entry, said.checked.races is None] = said.sites
            for outcome in (said.checked.races, said.checked.banks):
                if outcome is not None and outcome.failure is not None:
                    self.problems.setdefault(said.entry, outcome.failure)

    @property
    def ended_by(self) -> frozenset[str]:
        """The kernels whose check failed: a program that lost its GPU did so in the last of them."""
        return frozenset(entry for entry in self.problems if entry in self.tally.instances.kernels)

    def keep(self, earlier: _Seen) -> None:
        """What an earlier run showed of the kernels that ended it, and nothing else."""
        self.take(Said(kernels=earlier.tally.instances.kernels))
        for entry in earlier.ended_by:
            self.checked[entry] = [*earlier.checked.get(entry, ()), *self.checked.get(entry, ())]
            self.problems.setdefault(entry, earlier.problems[entry])
        self.sites |= {key: sites for key, sites in earlier.sites.items() if key not in self.sites}

    def runs(self) -> tuple[KernelRuns, ...]:
        """What became of all launches."""
        for counts in self.tally.counts.values():
            begun = counts.launches - counts.checked - sum(counts.reasons.values())
            if begun > 0:
                counts.reasons[_CUT] = counts.reasons.get(_CUT, 0) + begun
        return self.tally.runs({
            entry: KernelRuns(
                self.tally.instances.name_of(entry), self.tally.instances.kernels.get(entry),
                self.tally.counts.get(entry, Counts(1, 1)), (self._check(entry),),
            )
            for entry in self.checked
        })  # fmt: skip

    def _check(self, entry: str) -> CheckResult:
        sites, banks = self.sites.get((entry, False), ()), self.sites.get((entry, True), ())
        name = self.tally.instances.name_of(entry)
        return CheckResult(name, self.device, results_of(self.checked[entry]), sites, banks)


def run_on_gpu(
    job: ProgramJob,
    library: Path,
    modules: Sequence[tuple[CompiledModule, CompiledModule]],
    toolkit: Toolkit,
    progress: Progress,
    process: Process | None = None,
    functions: Sequence[Functions] = (),
) -> ProgramResult:
    """Run a program that was built for it.

    When a checked kernel hangs or faults, the context is lost and with it the program: it runs again, with
    that kernel as it is, so that the others are checked.
    """
    end, task = (
        time.monotonic() + job.deadline,
        Task(job, library, tuple(modules), toolkit, process=process or Process(), functions=tuple(functions)),
    )
    result, seen = _run(task, progress, end)
    while result.status == FAULT and time.monotonic() < end - _WORTH:
        failed = seen.ended_by - task.skipped
        if not failed or len(task.skipped) >= _MOST_SKIPPED:
            break
        task = evolve(task, skipped=task.skipped | failed)
        result, again = _run(task, progress, end, seen)
        seen = again
    return result


def _run(
    task: Task, progress: Progress, end: float, earlier: _Seen | None = None
) -> tuple[ProgramResult, _Seen]:
    """One run of the program, which ends at ``end`` (monotonic); with what an ``earlier`` one showed."""
    job, seen = task.job, _Seen(Tally(instances(task.modules, task.job.kernels, task.job.wanted), SAMPLED))
    progress("running")
    reads, writes = os.pipe()
    with (
        tempfile.TemporaryFile(dir=job.cache) as output,
        tempfile.TemporaryFile(dir=job.cache) as given,
        os.fdopen(reads, "rb") as said,
    ):
        given.write(pickle.dumps(task))
        given.seek(0)
        child = subprocess.Popen(
            task.process.command(writes), cwd=NEUTRAL_FOLDER, stdin=given, stdout=output,
            stderr=subprocess.STDOUT, pass_fds=(writes,),
            env={**environment_of(job), **task.process.variables}, start_new_session=True,
        )  # fmt: skip
        os.close(writes)
        with Guard(child, output, end, job.host_memory or usual_memory()) as guard:
            garbled = _listen(said, seen, child, progress)
            if garbled:
                kill_descendants(os.getpid())
            child.wait()
        text = end_of(output)
    if earlier is not None:
        seen.keep(earlier)
    result = ProgramResult(
        status=child.returncode,
        output=text,
        runs=seen.runs(),
        launches=seen.launches,
        device=seen.device,
        problem=guard.stopped or garbled or _problem(child.returncode, seen),
        notes=(*seen.remarks, *(f"{seen.tally.instances.name_of(e)}: {w}" for e, w in seen.problems.items())),
    )
    return result, seen


def _listen(said: BinaryIO, seen: _Seen, child: subprocess.Popen[bytes], progress: Progress) -> str | None:
    """Until the program hangs up or ends; why it had to be given up."""
    os.set_blocking(said.fileno(), False)
    buffer = bytearray()
    while True:
        ready, _, _ = select.select([said], [], [], 0.05)
        if not ready:
            if child.poll() is not None:
                return None  # what it forked may hold the line
            continue
        part = os.read(said.fileno(), 1 << 16)
        if not part:
            return None
        buffer += part
        try:
            for message in complete(buffer):
                seen.take(message)
                progress(f"running ({seen.launches} launches)")
        except Exception:  # noqa: BLE001 - what a program writes there can be anything
            return GARBLED


def _problem(status: int, seen: _Seen) -> str | None:
    if status < 0:
        return crash(status)
    if status == FAULT and seen.problems:
        return "the program was stopped, because a kernel failed on the GPU"
    if not seen.device:
        return "the program could not be loaded: see its output"
    return None
