"""Running a compiler's stages: child processes that can be cancelled, and nvcc's own plan of them.

``nvcc --dryrun`` prints the commands it would run; running them ourselves lets a step come between. Every
child has its own session, so that cancelling ends all it has started.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import frozen

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=\s?(.*)$")

Cancelled = Callable[[], bool]


class Interrupted(Exception):
    """The work was cancelled or ran out of time; the message says which."""


@frozen
class Done:
    """A finished command."""

    status: int
    output: str  # standard output and error, together


@frozen
class Plan:
    """nvcc's stages: environment and shell commands, in order."""

    environment: Mapping[str, str]
    commands: tuple[str, ...]


def run(
    command: Sequence[str] | str,
    folder: Path,
    environment: Mapping[str, str] | None,
    deadline: float,
    cancelled: Cancelled,
) -> Done:
    """Run one command (a text goes through the shell). Raises Interrupted; ``deadline`` is monotonic time."""
    with (folder / "output.txt").open("w+", errors="replace") as output:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment) if environment is not None else None,
            shell=isinstance(command, str),
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        while child.poll() is None:
            if cancelled():
                _end(child)
                raise Interrupted("cancelled")
            if time.monotonic() > deadline:
                _end(child)
                raise Interrupted("the compiler did not finish in time")
            time.sleep(0.005)
        output.seek(0)
        return Done(child.returncode, output.read())


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it ended in the meantime
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def plan(arguments: Sequence[str], folder: Path, deadline: float, cancelled: Cancelled) -> Plan | Done:
    """The stages of an nvcc command line; what nvcc said when it refuses it."""
    done = run([*arguments, "--dryrun", "--keep"], folder, None, deadline, cancelled)
    if done.status:
        return done
    environment = dict(os.environ)
    commands: list[str] = []
    for line in done.output.splitlines():
        if not line.startswith("#$ "):
            continue
        text = line[3:]
        assignment = _ASSIGNMENT.match(text)
        if assignment:
            environment[assignment[1]] = assignment[2].strip()
        elif not text.startswith("rm "):
            commands.append(text)
    return Plan(environment, tuple(commands))
