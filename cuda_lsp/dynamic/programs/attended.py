"""A program's process with a stand-in for CUDA, attended until it ends: requests answered, limits kept."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from attrs import field, frozen

from cuda_lsp.children.sweep import kill_descendants
from cuda_lsp.dynamic.emulator.heap import START, Heap
from cuda_lsp.dynamic.programs.channel import KINDS, LONGEST, Answer, serve
from cuda_lsp.dynamic.programs.guard import Guard, usual_memory
from cuda_lsp.dynamic.programs.job import ProgramJob
from cuda_lsp.dynamic.programs.process import crash, end_of, environment_of, input_of

Progress = Callable[[str], None]

_TOLD_EVERY = 0.2  # seconds between two numbers of launches


class Host(Protocol):
    """What executes the launches. ``deadline``: monotonic."""

    heap: Heap
    deadline: float
    before_launch: Callable[[], None]

    @property
    def launches(self) -> int:
        """How many there were."""
        ...


@frozen
class Start:
    """What is started: words, the file (None: the first word's), variables beside the program's own."""

    command: Sequence[str]
    executable: str | None = None
    variables: Mapping[str, str] = field(factory=dict[str, str])


@frozen
class Ended:
    """How the process ended. ``problem``: why it did not end by itself."""

    status: int
    output: str
    problem: str | None


def attend(
    job: ProgramJob,
    host: Host,
    start: Start,
    answer: Answer,
    progress: Progress,
    kinds: range = KINDS,
    longest: int = LONGEST,
) -> Ended:
    """Start it, and answer what it asks."""
    mine, its = socket.socketpair()
    host.deadline = time.monotonic() + job.deadline
    memory = f"{its.fileno()},{host.heap.descriptor},{START},{host.heap.size}"
    with tempfile.TemporaryFile(dir=job.cache) as output, mine, input_of(job) as given:
        child = subprocess.Popen(
            start.command, executable=start.executable, cwd=job.folder, stdin=given, stdout=output,
            stderr=subprocess.STDOUT,
            env={**environment_of(job), "CUDA_LSP_PROGRAM": memory, **start.variables},
            pass_fds=(its.fileno(), host.heap.descriptor), start_new_session=True,
        )  # fmt: skip
        its.close()
        progress("running")
        told = time.monotonic()

        def shown() -> None:
            nonlocal told
            if time.monotonic() - told > _TOLD_EVERY:
                told = time.monotonic()
                progress(f"running ({host.launches} launches)")

        host.before_launch = shown
        with Guard(child, output, host.deadline, job.host_memory or usual_memory(), host.heap.size) as guard:
            garbled = serve(
                mine, answer, lambda: guard.stopped is None and child.poll() is None, kinds, longest
            )
            if garbled:
                kill_descendants(os.getpid())
            child.wait()
        return Ended(child.returncode, end_of(output), guard.stopped or garbled or crash(child.returncode))
