"""The C engine as a loaded library: compiled once on a machine, by the host compiler that nvcc uses.

It is kept by content: source, compiler and options. Until it is there, and where there is no compiler,
kernels run in NumPy, with the same results. Nobody waits for it: who executes a launch that takes a while
asks for it (``want``), who owns that process has it made (``Maker``), and the launch goes on in it as soon
as it is there. ``cuda-lsp doctor`` waits for it.
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
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from cuda_lsp.cache_folder import cache_folder
from cuda_lsp.children.sweep import end
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
        _NUMBER, (_PLACE, _NUMBER, _NUMBER, *(_PLACE,) * 6, _NUMBER, _PLACE, _NUMBER),
    ),
    "log_select": (_NUMBER, (_PLACE, _PLACE, _PLACE, _NUMBER)),
}  # fmt: skip
_PAUSE = 0.05  # seconds between looks for what is not there yet
_SECONDS = 60.0  # for a build that somebody waits for


class NoLibrary(Exception):
    """It cannot be had here; the message says why."""


class Maker:
    """Makes the library for processes that ask, one build at a time. Its process outlives theirs."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._result: Path | None = None

    def begin(self) -> None:
        """Start a build, where there is none yet. Raises NoLibrary, OSError."""
        self.finish()
        place = _place()
        if self._process is not None or place.exists() or _failed(place).exists():
            return
        folder = scratch_folder(place.parent)
        (folder / "engine.c").write_text(source())
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            [_compiler(), *_FLAGS, "engine.c", "-o", "engine.so", "-lm"],
            cwd=folder, stdin=quiet, stdout=quiet, stderr=quiet, env=compiler_environment(folder),
            start_new_session=True,
        )  # fmt: skip
        self._folder, self._result = folder, place

    def finish(self, seconds: float = 0.0) -> None:
        """Put the library into its place when it is done, in some seconds at most."""
        if self._process is None or self._folder is None or self._result is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        if self._process.returncode is None:
            return
        with contextlib.suppress(OSError):  # somebody else was faster: theirs is as good
            if self._process.returncode:
                _failed(self._result).touch()
            else:
                os.replace(self._folder / "engine.so", self._result)
        self._tidy()

    def abandon(self) -> None:
        """End a build that is not done."""
        self.finish()
        if self._process is not None:
            end(self._process.pid)  # with the compilers that it has started
            self._process.wait()
            self._tidy()

    def _tidy(self) -> None:
        assert self._folder is not None
        shutil.rmtree(self._folder, ignore_errors=True)
        self._process = self._folder = self._result = None


class Library:
    """The one library of this process. ``asked``: called once when a launch would go faster with it.

    ``problem``: why it cannot be had; None: it can, or nobody has tried.
    """

    def __init__(self, asked: Callable[[], object] = lambda: None) -> None:
        self.asked = asked
        self.problem: str | None = None
        self._loaded: ctypes.CDLL | None = None
        self._again = -math.inf  # when to look for it again, monotonic
        self._wanted = False

    def at_once(self) -> ctypes.CDLL | None:
        """The library, if it is there by now."""
        now = time.monotonic()
        if self._loaded is None and self.problem is None and now > self._again:
            self._again = now + _PAUSE
            try:
                place = _place()
            except NoLibrary as problem:
                self.problem = str(problem)
                return None
            if place.exists():
                self._load(place)
            elif _failed(place).exists():
                self.problem = f"the host compiler {_compiler()} does not compile it"
        return self._loaded

    def want(self) -> None:
        """Ask for it, once."""
        if not self._wanted and self.problem is None:
            self._wanted = True
            self.asked()

    def get(self) -> ctypes.CDLL:
        """The library, made now if need be. Raises NoLibrary."""
        if self.at_once() is None and self.problem is None:
            maker = Maker()
            try:
                maker.begin()
                maker.finish(_SECONDS)
            except OSError as problem:
                raise NoLibrary(str(problem)) from problem
            finally:
                maker.abandon()
            self._again = -math.inf
        found = self.at_once()
        if found is None:
            raise NoLibrary(self.problem or "the host compiler takes too long")
        return found

    def _load(self, place: Path) -> None:
        try:
            loaded = ctypes.CDLL(str(place))
        except OSError as problem:
            self.problem = str(problem)
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


def _failed(place: Path) -> Path:
    """Where it is noted that the compiler does not make what belongs into ``place``."""
    return place.with_suffix(".failed")
