"""The folder in which all is kept that can be made again."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import platformdirs

RESULTS = "results"
_FOLDERS = (
    RESULTS, "gpu", "ptx", "programs", "builds", "recorder", "emulator", "scripts", "extensions",
)  # fmt: skip
_FILES = ("shim-*.pch", "tmp*.pch")


def cache_folder() -> Path:
    """Where it is (``CUDA_LSP_CACHE`` overrides)."""
    return Path(os.environ.get("CUDA_LSP_CACHE") or platformdirs.user_cache_dir("cuda-lsp"))


def clean() -> int:
    """Remove what is ours in it, and it when nothing else is there. How many bytes that were.

    Raises OSError.
    """
    folder = cache_folder()
    before = _bytes_below(folder)
    for name in _FOLDERS:
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
    for pattern in _FILES:
        for file in folder.glob(pattern):
            file.unlink(missing_ok=True)
    after = _bytes_below(folder)
    with contextlib.suppress(OSError):  # not there, or something of others is in it
        folder.rmdir()
    return before - after


def _bytes_below(folder: Path) -> int:
    found = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # gone in the meantime
                found += os.lstat(os.path.join(where, name)).st_size
    return found
