"""The socket between a program with the stand-in runtime and the emulator (``standin/runtime.cpp``).

A request is its kind and length (u32 each) and a body; the answer has the same head. The program waits for
each answer.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from cuda_lsp.dynamic.programs.on_emulator import Call, Host
from cuda_lsp.dynamic.programs.process import GARBLED

_KINDS = range(1, 8)
ALLOCATE, RELEASE, VARIABLE, PARAMETERS, LAUNCH, EXTENT, DEVICE = _KINDS
_MOST_DEVICES = 16
_LONGEST = 1 << 20  # bytes of a request: names and arguments
_HEAD = struct.Struct("<II")
_LAUNCH = struct.Struct("<12I")
_POLL = 0.05


class Garbled(Exception):
    """No request of the stand-in runtime's."""


def serve(channel: socket.socket, host: Host, goes_on: Callable[[], bool]) -> str | None:
    """Answer until the program hangs up, or until ``goes_on`` says no. Why it had to be given up."""
    try:
        _serve(channel, host, goes_on)
    except Garbled:
        return GARBLED
    return None


def _serve(channel: socket.socket, host: Host, goes_on: Callable[[], bool]) -> None:
    channel.settimeout(_POLL)
    while goes_on():
        head = _received(channel, _HEAD.size, goes_on)
        if head is None:
            return
        kind, length = _HEAD.unpack(head)
        if kind not in _KINDS or length > _LONGEST:
            raise Garbled
        body = _received(channel, length, goes_on)
        if body is None:
            return
        answer = answered(host, kind, body)
        try:
            channel.settimeout(None)
            channel.sendall(_HEAD.pack(kind, len(answer)) + answer)
        except OSError:  # the program ended meanwhile
            return
        channel.settimeout(_POLL)


def answered(host: Host, kind: int, body: bytes) -> bytes:
    """The body of the answer to one request. Raises Garbled."""
    try:
        return _answered(host, kind, body)
    except (struct.error, UnicodeDecodeError) as error:
        raise Garbled from error


def _answered(host: Host, kind: int, body: bytes) -> bytes:
    if kind == ALLOCATE:
        return struct.pack("<Q", host.heap.allocate(struct.unpack("<Q", body)[0]))
    if kind == RELEASE:
        return bytes([0 if host.heap.release(struct.unpack("<Q", body)[0]) else 1])
    if kind == VARIABLE:
        return struct.pack("<Q", host.variable(body.decode()))
    if kind == PARAMETERS:
        sizes = host.parameters(body.decode())
        return struct.pack(f"<{len(sizes)}I", *sizes)
    if kind == EXTENT:
        return struct.pack("<Q", host.heap.used)
    if kind == DEVICE:
        (device,) = struct.unpack("<I", body)
        if device >= _MOST_DEVICES:
            raise Garbled
        return bytes([0 if host.turn_to(device) else 1])
    error, printed = host.launch(_call(body))
    return struct.pack("<i", error) + printed.encode(errors="replace")


def _call(body: bytes) -> Call:
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
