"""Running a compiler's stages: child processes that can be cancelled, and nvcc's own plan of them.

``nvcc --dryrun`` prints the commands it would run; running them ourselves lets a step come between. Every
child has its own session, so that cancelling ends all it has started.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from cuda_lsp.dynamic.compilation.scratch import compiler_environment

_VARIABLE = re.compile(r"NVCC_(?:PREPEND|APPEND)_FLAGS|NVCC_CCBIN")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=\s?(.*)$")

_LEAST = 16 << 20  # free bytes of a disk: with less a compiler may fail without a word

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
    environment: Mapping[str, str],
    deadline: float,
    cancelled: Cancelled,
    output: Path | None = None,
    what: str = "the compiler",
) -> Done:
    """Run one command (a text goes through the shell) in a folder. ``deadline`` is monotonic time.

    ``output``: the file that takes what it says, by default one of the folder. Raises Interrupted, which
    says ``what`` was not done, and OSError for a full disk.
    """
    with (output or folder / "output.txt").open("w+", errors="replace") as said:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            shell=isinstance(command, str),
            stdout=said,
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
                raise Interrupted(f"{what} did not finish in time")
            time.sleep(0.005)
        said.seek(0)
        text = said.read()
        silent = child.returncode and "error" not in text
        if silent and shutil.disk_usage(said.name).free < _LEAST:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), said.name)
        return Done(child.returncode, text)


def nvcc_variables() -> tuple[str, ...]:
    """The environment variables by which nvcc takes further options, as they are now."""
    names = sorted(name for name in os.environ if _VARIABLE.fullmatch(name))
    return tuple(f"{name}={os.environ[name]}" for name in names)


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it ended in the meantime
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


_PLANNED: dict[tuple[str, ...], str] = {}
"""What nvcc said, by its command line and variables; ``_FOLDER`` stands for where it was to work."""
_FOLDER, _MOST_PLANS = "\0folder\0", 64


def plan(arguments: Sequence[str], folder: Path, deadline: float, cancelled: Cancelled) -> Plan | Done:
    """The stages of an nvcc command line; what nvcc said when it refuses it. The same line is asked once."""
    environment = dict(compiler_environment(folder))
    key = (*arguments, *nvcc_variables(), os.environ.get("PATH", ""))
    said = _PLANNED.get(key)
    if said is None:
        done = run([*arguments, "--dryrun", "--keep"], folder, environment, deadline, cancelled)
        if done.status:
            return done
        said = done.output.replace(str(folder), _FOLDER)
        if len(_PLANNED) < _MOST_PLANS:
            _PLANNED[key] = said
    commands: list[str] = []
    for line in said.replace(_FOLDER, str(folder)).splitlines():
        if not line.startswith("#$ "):
            continue
        text = line[3:]
        assignment = _ASSIGNMENT.match(text)
        if assignment:
            environment[assignment[1]] = assignment[2].strip()
        elif not text.startswith("rm "):
            commands.append(text)
    return Plan(environment, tuple(commands))
