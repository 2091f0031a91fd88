"""The inside of a solver process: answers one piece of work after another until its pipe closes.

On Linux each piece is done by a fork of this process.  Ending it is then a matter of milliseconds (a new
process would import NumPy and Z3 again, half a second of a core), what Z3 holds goes back to the system
with it, and no answer depends on the questions before it.  Elsewhere the process works by itself.
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import resource
import signal
import sys
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from cuda_lsp.children.confined import end_with_parent
from cuda_lsp.imports import importing
from cuda_lsp.static import budgets
from cuda_lsp.static.solver.answer import Failure

READY, STOP = b"ready", b"stop"


STOPPED = Failure("stopped")


def main(descriptor: str) -> None:
    """The whole process: serve the socket that it was given by number."""
    _limit_memory()
    serve(Connection(int(descriptor)))


def _limit_memory() -> None:
    if sys.platform == "linux":
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = budgets.SOLVER_BYTES
        own = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (own, hard))


def serve(pipe: Connection) -> None:
    """Warm up, then answer each message, a pickled callable, with its pickled result or a ``Failure``.

    The message ``STOP`` ends the work in progress, whose answer is then ``STOPPED``; it is ignored when
    there is none. Where processes cannot fork, it takes effect when the work is done.
    """
    sys.setrecursionlimit(budgets.STACK_FRAMES)
    with importing():
        importlib.import_module("cuda_lsp.static.second_tier")
        z3 = importlib.import_module("z3")
    z3.set_param("memory_max_size", budgets.Z3_MEBIBYTES)
    z3.Solver().check()
    gc.collect()
    gc.freeze()  # forks share these pages for as long as nobody writes to them
    try:
        pipe.send_bytes(READY)
        while True:
            message = pipe.recv_bytes()
            if message != STOP:
                pipe.send_bytes(_answer_apart(pipe, message) if sys.platform == "linux" else _answer(message))
    except (EOFError, ConnectionError):
        return  # whoever asked is gone


def _answer(work: bytes) -> bytes:
    result: Any
    try:
        result = pickle.loads(work)()
    except Exception as error:  # noqa: BLE001  a bug of ours must not silence the kernel
        result = Failure(f"the solver failed: {type(error).__name__}: {error}")
    return pickle.dumps(result)


def _answer_apart(pipe: Connection, work: bytes) -> bytes:
    """The answer of a fork of this process, which ends early when something comes through ``pipe``."""
    ours, theirs = Pipe(duplex=False)
    parent = os.getpid()
    try:
        child = os.fork()
    except OSError as error:  # the system has no process, or no memory, left
        ours.close()
        theirs.close()
        return pickle.dumps(Failure(f"the solver was not started: {error.strerror}", lost=True))
    if child == 0:
        _be_the_child(pipe, ours, theirs, work, parent)
    theirs.close()
    try:
        if ours not in wait([ours, pipe]):
            return pickle.dumps(STOPPED)
        return ours.recv_bytes()
    except EOFError:
        return pickle.dumps(Failure("the solver process ended unexpectedly", lost=True))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        ours.close()


def _be_the_child(pipe: Connection, ours: Connection, theirs: Connection, work: bytes, parent: int) -> None:
    """Answers and ends, at the latest with its parent; never returns."""
    try:
        end_with_parent()
        if os.getppid() != parent:
            return  # it was killed before
        pipe.close()
        ours.close()
        theirs.send_bytes(_answer(work))
    finally:
        os._exit(0)
