"""The one reader of files that somebody's project holds: regular files, of bounded size, never waiting.

A project may hold a link to ``/dev/zero``, a pipe that nobody writes to, or a header of a gigabyte. What is
no regular file is refused before it is opened; of a regular one no more is read than it says it has, so that
the kernel's own files (``/proc``), which say that they are empty, are.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_MIB = 1 << 20
SETTINGS_LIMIT = 1 * _MIB
SOURCE_LIMIT = 16 * _MIB
"""Bytes of one source or header: some 400,000 lines."""
DATABASE_LIMIT = 128 * _MIB
"""Bytes of a compilation database: those of the largest projects take some 50 MiB."""


def is_regular(path: Path | str) -> bool:
    """Whether the path leads, through links that end, to a regular file."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):  # the latter: a NUL in the name
        return False


def read_bytes(path: Path | str, limit: int = SOURCE_LIMIT) -> bytes:
    """The bytes of a regular file. Raises OSError, whose ``strerror`` is for people."""
    try:
        _checked(os.stat(path), path, limit)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except ValueError as error:
        raise OSError(errno.EINVAL, f"not a file name ({error})", str(path)) from None
    with os.fdopen(descriptor, "rb") as file:
        size = _checked(os.fstat(descriptor), path, limit)  # another file may have taken its place
        return file.read(size)


def read_text(path: Path | str, limit: int = SOURCE_LIMIT, *, errors: str = "replace") -> str:
    """The text of a regular file, read as UTF-8 with universal line ends.

    Raises OSError, and with ``errors="strict"`` UnicodeDecodeError.
    """
    text = read_bytes(path, limit).decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _checked(status: os.stat_result, path: Path | str, limit: int) -> int:
    """The file's size in bytes. Raises OSError."""
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if status.st_size > limit:
        raise OSError(errno.EFBIG, f"larger than {limit / _MIB:.0f} MiB", str(path))
    return status.st_size
