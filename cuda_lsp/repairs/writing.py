"""Mended texts back into their files: every byte that no repair is about stays as it is."""

from __future__ import annotations

import codecs
import contextlib
import os
import tempfile
from pathlib import Path

from cuda_lsp.repairs.difference import difference

_MARK = "\udc80"  # for what is no UTF-8, as many as a reader that replaces it sees


def rewritten(data: bytes, text: str) -> bytes:
    """The bytes of a file whose text (UTF-8, with what is none replaced) became ``text``."""
    foreign: list[bytes] = []

    def note(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeDecodeError)
        foreign.append(error.object[error.start : error.end])
        return _MARK, error.end

    codecs.register_error("cuda-lsp-note", note)
    marked = data.decode("utf-8", "cuda-lsp-note")

    def place(offset: int) -> int:
        """In bytes."""
        before = marked[:offset]
        return len(before.encode("utf-8", "ignore")) + sum(map(len, foreign[: before.count(_MARK)]))

    for edit in reversed(difference(marked.replace(_MARK, "\ufffd"), text)):
        data = data[: place(edit.start)] + edit.text.encode() + data[place(edit.end) :]
    return data


def write(path: Path, data: bytes) -> None:
    """Replace a file's contents at once, or not at all; its mode stays, and links to it lead to it.

    Raises OSError.
    """
    real = Path(os.path.realpath(path))
    status = real.stat()
    handle, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.", suffix=".cuda-lsp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.chmod(name, status.st_mode & 0o7777)
        with contextlib.suppress(PermissionError):  # another's file, in a folder of ours
            os.chown(name, status.st_uid, status.st_gid)
        os.replace(name, real)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
