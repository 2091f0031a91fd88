"""A process without threads that analyses one file after the other, each in a fork: beside who has threads.

Requests come and results go as pickles with their length before them. It ends when its owner does, which
closes the pipe.
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from typing import Any, BinaryIO, cast

from attrs import frozen

from cuda_lsp import files
from cuda_lsp.batch.asked import Analysed, Asked
from cuda_lsp.batch.limits import FileLimits
from cuda_lsp.batch.pool import Pool, Say, prepare
from cuda_lsp.children import python_command
from cuda_lsp.readings import Reading

_LENGTH = struct.Struct("<Q")


@frozen
class Request:
    """``place``: the folder below which the files lie, and clang's overlay; None: they are this machine's."""

    reading: Reading
    asked: Asked
    limits: FileLimits
    where: str
    place: tuple[str, str] | None = None


class Station:
    """The process, and the pipes to it. One thread at a time asks."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            python_command(__name__), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=os.sep
        )
        self._to, self._back = cast("BinaryIO", self._process.stdin), cast("BinaryIO", self._process.stdout)

    def ask(self, request: Request) -> Analysed:
        """Raises OSError or EOFError when the process has ended."""
        _write(self._to, request)
        return _read(self._back)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._to.close()
        self._back.close()


def _write(stream: BinaryIO, what: object) -> None:
    data = pickle.dumps(what, 5)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _read(stream: BinaryIO) -> Any:
    """Raises EOFError."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError("the process at the other end has ended")
    return pickle.loads(stream.read(_LENGTH.unpack(head)[0]))


def main() -> None:
    """Serve until nobody asks any more."""
    prepare()
    while True:
        try:
            request: Request = _read(sys.stdin.buffer)
        except EOFError:
            return
        os.chdir(request.where if request.place is None else os.sep)
        with Pool([request.reading], _work(request), 1, request.limits) as pool:
            ((_, found),) = pool.reports()
        _write(sys.stdout.buffer, found)


def _work(request: Request) -> Any:
    def work(reading: Reading, say: Say) -> Analysed:
        from cuda_lsp.batch.analysis import analysed

        if request.place is not None:
            files.below(*request.place)
        return analysed(reading, request.asked, say)

    return work
