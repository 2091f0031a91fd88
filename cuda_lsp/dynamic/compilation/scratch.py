"""Folders of ours for one piece of work, inside the cache: nothing is written elsewhere.

Compilers keep temporary files, and leave them when they are killed, as a cancelled check kills them. So they
are told to keep them in such a folder. What a process that was killed left there, the next one removes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Generator, Mapping
from pathlib import Path

_PREFIX = "work-"
_ABANDONED = 3600.0  # seconds; nothing of ours works this long


@contextlib.contextmanager
def scratch(parent: Path) -> Generator[Path]:
    """A new folder in ``parent``, removed afterwards unless it was renamed. Raises OSError."""
    folder = scratch_folder(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def scratch_folder(parent: Path) -> Path:
    """A new folder in ``parent``, which the caller removes. Raises OSError."""
    parent.mkdir(parents=True, exist_ok=True)
    _sweep(parent)
    return Path(tempfile.mkdtemp(dir=parent, prefix=_PREFIX))


def compiler_environment(folder: Path) -> Mapping[str, str]:
    """This process's environment, with temporary files in ``folder``."""
    return {**os.environ, "TMPDIR": str(folder)}


def _sweep(parent: Path) -> None:
    oldest = time.time() - _ABANDONED
    for left in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another process was faster
            if left.stat().st_mtime < oldest:
                shutil.rmtree(left, ignore_errors=True)
