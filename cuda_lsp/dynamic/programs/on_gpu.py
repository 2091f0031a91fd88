"""Starts the process that is a program on the GPU (``gpu_process``) and collects what it says.

The program's output goes to a file of ours; messages come over a pipe, each a pickle behind its length, so
that all that was seen before a crash is kept.
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from attrs import define, field, frozen

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
    ProgramResult,
    results_of,
)
from cuda_lsp.dynamic.programs.process import GARBLED, crash, end_of, environment_of
from cuda_lsp.dynamic.runs import PtxSite

Progress = Callable[[str], None]

FAULT = 71  # exit status of a program whose GPU context is lost
RACES = frozenset({1, 3, 8, 32})  # launches of a kernel that are watched for races, …
BANKS = frozenset({2})  # … and for bank conflicts
SAMPLED = RACES | BANKS


@frozen
class Task:
    """What to run. ``modules``: the O0 and O3 build of each source."""

    job: ProgramJob
    library: Path
    modules: tuple[tuple[CompiledModule, CompiledModule], ...]
    toolkit: Toolkit


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

    def runs(self) -> tuple[KernelRuns, ...]:
        """What became of all launches."""
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
) -> ProgramResult:
    """Run a program that was built for it."""
    task = pickle.dumps(Task(job, library, tuple(modules), toolkit))
    seen = _Seen(Tally(instances(modules, job.kernels, job.wanted), SAMPLED))
    progress("running")
    reads, writes = os.pipe()
    with (
        tempfile.TemporaryFile(dir=job.cache) as output,
        tempfile.TemporaryFile(dir=job.cache) as given,
        os.fdopen(reads, "rb") as said,
    ):
        given.write(task)
        given.seek(0)
        child = subprocess.Popen(
            python_command("cuda_lsp.dynamic.programs.gpu_process", str(writes)), cwd=NEUTRAL_FOLDER,
            stdin=given, stdout=output, stderr=subprocess.STDOUT, pass_fds=(writes,),
            env=environment_of(job), start_new_session=True,
        )  # fmt: skip
        os.close(writes)
        deadline = time.monotonic() + job.deadline
        with Guard(child, output, deadline, job.host_memory or usual_memory()) as guard:
            garbled = _listen(said, seen, child, progress)
            if garbled:
                kill_descendants(os.getpid())
            child.wait()
        text = end_of(output)
    return ProgramResult(
        status=child.returncode,
        output=text,
        runs=seen.runs(),
        launches=seen.launches,
        device=seen.device,
        problem=guard.stopped or garbled or _problem(child.returncode, seen),
        notes=(*seen.remarks, *(f"{seen.tally.instances.name_of(e)}: {w}" for e, w in seen.problems.items())),
    )


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
