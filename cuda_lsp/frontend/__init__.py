"""CUDA C++ text → kernel programs, through libclang; launches and constants of host code from the text."""

from __future__ import annotations

import contextlib
import ctypes

# The libclang of PyPI searches the libraries that it needs in the working folder too (its RPATH has an empty
# entry), which may be somebody's project. Those that are loaded are not searched.
for _library in ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"):
    with contextlib.suppress(OSError):  # not glibc: other names, and none of these is searched
        ctypes.CDLL(_library)
