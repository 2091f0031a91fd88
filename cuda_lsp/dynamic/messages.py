"""Messages between a parent and the child that it started: pickles behind their length, to nobody else."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

_HEADER = struct.Struct("<Q")
_LONGEST = 1 << 30  # bytes


def send(stream: BinaryIO, message: Any) -> None:
    """Write one message."""
    data = pickle.dumps(message)
    stream.write(_HEADER.pack(len(data)) + data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read one message. Raises EOFError when the other side is gone."""
    (size,) = _HEADER.unpack(_exactly(stream, _HEADER.size))
    return pickle.loads(_exactly(stream, size))


def complete(buffer: bytearray) -> Iterator[Any]:
    """The messages that have come whole; they are taken out of the buffer.

    Raises ValueError for a length that nothing of ours has, and what ``pickle`` raises for nonsense.
    """
    while len(buffer) >= _HEADER.size:
        (size,) = _HEADER.unpack_from(buffer)
        if size > _LONGEST:
            raise ValueError(f"a message of {size} bytes")
        end = _HEADER.size + size
        if len(buffer) < end:
            return
        message = pickle.loads(buffer[_HEADER.size : end])
        del buffer[:end]
        yield message


def _exactly(stream: BinaryIO, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = stream.read(size)
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
