"""The C engine as a loaded library: compiled once on a machine, by the host compiler that nvcc uses.

It is kept by content: source, compiler and options. Until it is there, and where there is no compiler,
kernels run in NumPy, with the same results. Nobody waits for it: it is made beside a launch that takes a
while, which goes on in it as soon as it is there; ``cuda-lsp doctor`` waits for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import math
import os
import platform
import shutil
import subprocess
import time
from functools import lru_cache
from pathlib import Path

from attrs import define

from cuda_lsp.cache_folder import cache_folder
from cuda_lsp.dynamic.compilation.scratch import compiler_environment, scratch_folder
from cuda_lsp.dynamic.emulator.native.operations import source

_FLAGS = (
    "-x", "c", "-std=gnu11", "-O3", "-march=native", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off",
    "-fno-math-errno", "-w", "-shared", "-fPIC",
)  # fmt: skip
_NUMBER, _PLACE = ctypes.c_int64, ctypes.c_void_p
_FUNCTIONS = {
    "advance": (_NUMBER, (_PLACE,)),
    "compute_row": (None, (_NUMBER, _NUMBER, _PLACE, _PLACE, _PLACE, _PLACE, ctypes.c_uint64)),
    "log_free": (None, (_PLACE,)),
    "log_access": (_NUMBER, (_PLACE, _PLACE, _NUMBER, _PLACE, _PLACE, _PLACE, _NUMBER, _NUMBER)),
    "log_split": (_NUMBER, (_PLACE,) * 4),
    "log_keep": (_NUMBER, (_PLACE, _PLACE, _NUMBER, _NUMBER)),
    "log_screen": (
        _NUMBER, (_PLACE, _PLACE, _PLACE, ctypes.c_int32, ctypes.c_int32, _NUMBER, _PLACE, _NUMBER),
    ),
    "log_patterns": (
        _NUMBER, (_PLACE, ctypes.c_int32, *(_PLACE,) * 6, _NUMBER, _PLACE, _NUMBER),
    ),
    "log_select": (_NUMBER, (_PLACE, _PLACE, _PLACE, _NUMBER)),
}  # fmt: skip
_PAUSE = 0.05  # seconds between looks for what is not there yet
_SECONDS = 60.0  # for a build that somebody waits for


class NoLibrary(Exception):
    """It cannot be had here; the message says why."""


@define(eq=False)
class _Making:
    """A build that goes on. ``folder``: where it happens."""

    process: subprocess.Popen[bytes]
    folder: Path
    result: Path


class Library:
    """The one library of this process."""

    def __init__(self) -> None:
        self._loaded: ctypes.CDLL | None = None
        self._making: _Making | None = None
        self._problem: str | None = None
        self._again = -math.inf  # when to look for it again, monotonic

    def at_once(self) -> ctypes.CDLL | None:
        """The library if it was made before, or is made by now. Starts nothing."""
        now = time.monotonic()
        if self._loaded is None and self._problem is None and now > self._again:
            self._again = now + _PAUSE
            try:
                place = _place()
            except NoLibrary as problem:
                self._problem = str(problem)
                return None
            if self._making is not None and self._making.process.poll() is not None:
                self._made(self._making)
            if place.exists():
                self._load(place)
        return self._loaded

    def begin(self) -> None:
        """Start making it, where that is not done, under way or impossible."""
        if self.at_once() is not None or self._making is not None or self._problem is not None:
            return
        place = _place()
        try:
            folder = scratch_folder(place.parent)
            (folder / "engine.c").write_text(source())
            command = [_compiler(), *_FLAGS, "engine.c", "-o", "engine.so", "-lm"]
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=compiler_environment(folder),
            )
        except OSError as problem:
            self._problem = str(problem)
            return
        self._making = _Making(process, folder, place)

    @property
    def problem(self) -> str | None:
        """Why it cannot be had; None: it can, or nobody has tried."""
        return self._problem

    def get(self) -> ctypes.CDLL:
        """The library, made now if need be. Raises NoLibrary."""
        self.begin()
        if self._making is not None and self._loaded is None:
            try:
                self._making.process.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                self._making.process.kill()
                self._making.process.wait()
            self._again = -math.inf
        found = self.at_once()
        if found is None:
            raise NoLibrary(self._problem or "the host compiler does not compile it")
        return found

    def _made(self, making: _Making) -> None:
        self._making = None
        if making.process.returncode:
            self._problem = f"the host compiler {_compiler()} does not compile it"
        else:
            with contextlib.suppress(OSError):  # somebody else was faster: theirs is as good
                os.replace(making.folder / "engine.so", making.result)
        shutil.rmtree(making.folder, ignore_errors=True)

    def _load(self, place: Path) -> None:
        try:
            loaded = ctypes.CDLL(str(place))
        except OSError as problem:
            self._problem = str(problem)
            return
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
        self._loaded = loaded


LIBRARY = Library()


def _compiler() -> str:
    """nvcc's host compiler. Raises NoLibrary."""
    given = os.environ.get("NVCC_CCBIN", "")
    named = os.path.join(given, "g++") if os.path.isdir(given) else given
    found = shutil.which(named or "g++")
    if found is None:
        raise NoLibrary(f"there is no host compiler ({named or 'g++'})")
    return found


@lru_cache(maxsize=4)
def _key(compiler: str, stamp: int) -> str:
    content = "\0".join((source(), compiler, str(stamp), _processor(), *_FLAGS))
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _processor() -> str:
    """What tells processors apart for which code is made: the cache may be on a disk that several share."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _place() -> Path:
    compiler = _compiler()
    return cache_folder() / "emulator" / f"{_key(compiler, os.stat(compiler).st_mtime_ns)}.so"
