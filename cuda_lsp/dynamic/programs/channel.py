"""The socket between a program with the stand-in runtime and the emulator (``standin/emulator.cpp``).

A request is its kind and length (u32 each) and a body; the answer has the same head. The program waits for
each answer.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from cuda_lsp.dynamic.emulator.heap import Heap
from cuda_lsp.dynamic.programs.on_emulator import Call, Host
from cuda_lsp.dynamic.programs.process import GARBLED

KINDS = range(1, 8)
ALLOCATE, RELEASE, VARIABLE, PARAMETERS, LAUNCH, EXTENT, DEVICE = KINDS
MEMORY = frozenset({ALLOCATE, RELEASE, EXTENT})
LONGEST = 1 << 20  # bytes of a request: names and arguments
_MOST_DEVICES = 16
Answer = Callable[[int, bytes], bytes]
_HEAD = struct.Struct("<II")
_LAUNCH = struct.Struct("<12I")
_POLL = 0.05


class Garbled(Exception):
    """No request of the stand-in runtime's."""


def serve(
    channel: socket.socket,
    answer: Answer,
    goes_on: Callable[[], bool],
    kinds: range = KINDS,
    longest: int = LONGEST,
) -> str | None:
    """Answer until the program hangs up, or until ``goes_on`` says no. Why it had to be given up.

    ``longest``: bytes of a request.
    """
    try:
        _serve(channel, answer, goes_on, kinds, longest)
    except Garbled:
        return GARBLED
    return None


def _serve(
    channel: socket.socket, answer: Answer, goes_on: Callable[[], bool], kinds: range, longest: int
) -> None:
    channel.settimeout(_POLL)
    while goes_on():
        head = _received(channel, _HEAD.size, goes_on)
        if head is None:
            return
        kind, length = _HEAD.unpack(head)
        if kind not in kinds or length > longest:
            raise Garbled
        body = _received(channel, length, goes_on)
        if body is None:
            return
        said = answer(kind, body)
        try:
            channel.settimeout(None)
            channel.sendall(_HEAD.pack(kind, len(said)) + said)
        except OSError:  # the program ended meanwhile
            return
        channel.settimeout(_POLL)


def answered(host: Host, kind: int, body: bytes) -> bytes:
    """The body of the answer to one request. Raises Garbled."""
    try:
        return of_memory(host.heap, kind, body) if kind in MEMORY else _answered(host, kind, body)
    except (struct.error, UnicodeDecodeError) as error:
        raise Garbled from error


def of_memory(heap: Heap, kind: int, body: bytes) -> bytes:
    """The answer to a request about memory. Raises struct.error."""
    if kind == ALLOCATE:
        return struct.pack("<Q", heap.allocate(struct.unpack("<Q", body)[0]))
    if kind == RELEASE:
        return bytes([0 if heap.release(struct.unpack("<Q", body)[0]) else 1])
    return struct.pack("<Q", heap.used)


def _answered(host: Host, kind: int, body: bytes) -> bytes:
    if kind == VARIABLE:
        return struct.pack("<Q", host.variable(body.decode()))
    if kind == PARAMETERS:
        sizes = host.parameters(body.decode())
        return struct.pack(f"<{len(sizes)}I", *sizes)
    if kind == DEVICE:
        (device,) = struct.unpack("<I", body)
        if device >= _MOST_DEVICES:
            raise Garbled
        return bytes([0 if host.turn_to(device) else 1])
    error, printed = host.launch(call_of(body))
    return struct.pack("<i", error) + printed.encode(errors="replace")


def call_of(body: bytes) -> Call:
    """A launch as it was asked for. Raises struct.error, UnicodeDecodeError."""
    gx, gy, gz, bx, by, bz, shared, together, cx, cy, cz, length = _LAUNCH.unpack_from(body)
    name = body[_LAUNCH.size : _LAUNCH.size + length].decode()
    arguments = body[_LAUNCH.size + length :]
    return Call(name, (gx, gy, gz), (bx, by, bz), shared, arguments, bool(together), (cx, cy, cz))


def _received(channel: socket.socket, size: int, goes_on: Callable[[], bool]) -> bytes | None:
    """``size`` bytes; None when the program is gone or has to stop."""
    parts = bytearray()
    while len(parts) < size:
        try:
            part = channel.recv(size - len(parts))
        except TimeoutError:
            if not goes_on():
                return None
            continue
        except OSError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)
