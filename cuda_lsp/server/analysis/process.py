"""The server's hold on one analysis process: start it, speak with it, see how it does, end it."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from attrs import define, field, frozen

from cuda_lsp.children import NEUTRAL_FOLDER, python_command, working_folder
from cuda_lsp.children.confined import (
    STUCK,
    End,
    Stillness,
    end_of,
    most_resident,
    too_large,
    too_long,
)
from cuda_lsp.children.stat import Stat, resident
from cuda_lsp.server.analysis.messages import MEMORY_LIMIT
from cuda_lsp.server.analysis.slate import Slate

DEADLINE = 10.0
"""Seconds of processor time that one text may take."""

_PATIENCE = 10.0  # seconds in which a process that neither runs nor waits for its turn must do something
_STOPPED = 1.0  # … that somebody has stopped
_SETTLING = 3.0  # … after a message: what takes it and what works on it are two threads
_START = 120.0  # … that still starts
_ANYHOW = 60.0  # seconds that one text may take where nobody tells of processor time


@frozen
class Death:
    """How a process ended. ``text``: the number of the message it was at, 0: none.

    ``reason`` is for people, and follows the words "the analysis of this text". ``blamed``: the text is
    the cause for certain, else somebody else may have ended it.
    """

    text: int
    reason: str
    blamed: bool


class AnalysisProcess:
    """One process. Linux ends it with the thread that started it, which has to live as long."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        descriptor = Slate.file()
        self._inherited = most_resident()
        try:
            self._popen = subprocess.Popen(
                python_command(
                    "cuda_lsp.server.analysis.child", str(theirs.fileno()), str(descriptor), working_folder()
                ),
                cwd=NEUTRAL_FOLDER,
                stdin=subprocess.DEVNULL,  # ours are the editor's
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), descriptor),
            )
            self._slate = Slate(descriptor)
        finally:
            theirs.close()
            os.close(descriptor)
        self._socket = ours
        self._connection = Connection(os.dup(ours.fileno()), writable=False)
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._sending = threading.Lock()
        self._left = 0  # frames that wait for the thread that writes
        self._sent = 0
        self._sent_at = 0.0  # of ``time.monotonic``
        self._watch = _Watch()
        self._killed: Death | None = None
        self._reaping = threading.Lock()
        self._end: End | None = None

    def start(self, heard: Callable[[Any], None], ended: Callable[[], None]) -> None:
        """Have threads write what is sent and read what comes; then, once, ``ended`` is called."""
        threading.Thread(target=self._write, name="cuda-lsp-to-analysis", daemon=True).start()
        reading = threading.Thread(
            target=self._read, args=(heard, ended), name="cuda-lsp-from-analysis", daemon=True
        )
        reading.start()

    def send(self, number: int, *message: Any) -> None:
        """Say something; returns at once, also where the other side takes nothing."""
        content = pickle.dumps((number, *message), 5)
        frame = struct.pack("!i", len(content)) + content  # as a Connection has them
        with self._sending:
            self._sent, self._sent_at = number, time.monotonic()
            if not self._left:
                try:
                    frame = frame[self._socket.send(frame, socket.MSG_DONTWAIT) :]
                except BlockingIOError:
                    pass
                except OSError:
                    return  # it ended: the reader tells
            if frame:
                self._left += 1
                self._out.put(frame)

    def kill(self, death: Death | None = None) -> None:
        """End it at once. ``death``: what ``death`` is to say of it."""
        self._killed = self._killed or death
        if self._popen.returncode is None:  # nobody but us waits for it
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._popen.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill it, and wait until it is gone."""
        self.kill()
        self._out.put(None)
        self._reaped()

    def death(self) -> Death:
        """How it ended; once it did."""
        end = self._reaped()
        return self._killed or Death(self._slate.text, end.reason, end.blamed)

    @property
    def busy(self) -> bool:
        """Whether it has something to do, as far as one knows."""
        settling = time.monotonic() - self._sent_at < _SETTLING
        return settling or self._slate.text != 0 or self._slate.last < self._sent

    def look(self) -> None:
        """See whether it does well, several times a second while it is busy; kill it if not."""
        death = self._watch.look(self._popen.pid, self._slate, self._sent)
        if death is not None:
            self.kill(death)

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # it ended: the reader tells
            while (frame := self._out.get()) is not None:
                self._socket.sendall(frame)
                with self._sending:
                    self._left -= 1

    def _read(self, heard: Callable[[Any], None], ended: Callable[[], None]) -> None:
        try:
            while True:
                heard(pickle.loads(self._connection.recv_bytes()))
        except (EOFError, OSError, pickle.UnpicklingError):  # killed in the middle of a message
            self.kill()
            self._reaped()
            self._out.put(None)
            ended()

    def _reaped(self) -> End:
        """Wait for its end."""
        with self._reaping:
            if self._end is None:
                _, status, used = os.wait4(self._popen.pid, 0)
                self._end = end_of(status, used, MEMORY_LIMIT, self._inherited)
                self._popen.returncode = os.waitstatus_to_exitcode(status)
            return self._end


@define
class _Watch:
    """What was seen of a process: since when it is at its text, and since when nothing has happened."""

    turn: int = -1
    began: tuple[float, float] = (0.0, 0.0)  # processor time of the thread, time of day
    last: int = -1
    stillness: Stillness = field(factory=Stillness)

    def look(self, process: int, slate: Slate, sent: int) -> Death | None:
        """Why it should be killed, or None."""
        now, text, turn, last = time.monotonic(), slate.text, slate.turn, slate.last
        thread, whole = Stat.of(process, slate.thread), Stat.of(process)
        if turn != self.turn:
            self.turn, self.began = turn, (thread.used, now)
        idle = text == 0 and last >= sent
        waits = idle and not whole.stopped
        still = self.stillness.seconds(whole, now, otherwise_busy=waits or last != self.last)
        self.last = last
        taken = thread.used - self.began[0] if thread.known else (now - self.began[1]) * DEADLINE / _ANYHOW
        if text and taken > DEADLINE:
            return Death(text, too_long(DEADLINE), blamed=True)
        if resident(process) > MEMORY_LIMIT:
            return Death(text, too_large(MEMORY_LIMIT), blamed=True)
        if whole.stopped and still > _STOPPED:
            return Death(text, "was stopped", blamed=False)
        if still > (_START if not last else _PATIENCE if whole.known else _ANYHOW):
            return Death(text, STUCK, blamed=text != 0)
        return None
