"""The detector's PTX and the assembled kernel: built by the user's own nvcc, kept by content.

``detector.cu`` and its parts are shipped as source, because PTX must match the toolkit that compiles the
kernel and the GPU that runs it. The cache is a folder of files named by the hash of what they were made from.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import threading
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from cuda_lsp.cache_folder import cache_folder
from cuda_lsp.dynamic.compilation.scratch import compiler_environment, scratch
from cuda_lsp.dynamic.compilation.toolkit import Toolkit
from cuda_lsp.dynamic.ptx.flatten import DEVICE_RUNTIME

SOURCE = Path(__file__).with_name("detector.cu")
_INCLUDE = re.compile(r'^#include "(\w+\.cuh)"$', re.M)
_TIMEOUT = 300  # seconds; a large module takes ptxas tens of seconds
_MAKING: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)
"""By what is made: who needs it meanwhile waits for it."""


class AssemblyError(Exception):
    """nvcc or ptxas did not accept its input; the message is theirs."""


def detector_ptx(toolkit: Toolkit, architecture: int, clocks: bool = False, widths: bool = False) -> str:
    """The detector for ``sm_<architecture>``. Raises AssemblyError.

    ``clocks``: with what follows locks, flags and mbarriers; other kernels need not pay for it in registers.
    ``widths``: with what follows atomics of several widths.
    """
    parts = (*("-DCLSP_CLOCKS",) * clocks, *("-DCLSP_WIDTHS",) * widths)
    options = ("-rdc=true", "-ptx", f"-arch=sm_{architecture}", *parts)
    made = _made(_source(), ".cu", ".ptx", toolkit, (str(toolkit.nvcc), *options))
    return made.decode()


def _source() -> str:
    """All of the detector as one text: what is built is kept by it."""
    return _INCLUDE.sub(lambda match: SOURCE.with_name(match[1]).read_text(), SOURCE.read_text())


def made_meanwhile(toolkit: Toolkit, architecture: int) -> None:
    """Begin to build the detector, which the first launch will ask for."""

    def build() -> None:
        with suppress(AssemblyError, OSError):  # told when a launch asks for it
            detector_ptx(toolkit, architecture)

    threading.Thread(target=build, daemon=True).start()


def assembled(ptx: str, toolkit: Toolkit, target: str) -> bytes:
    """The cubin of a module for ``target`` (``sm_90a``). Raises AssemblyError.

    That of kernels which launch kernels is linked with the device's runtime, which nvcc knows the place of.
    """
    linked = (str(toolkit.nvcc), "-rdc=true", "-dlink", "-cubin", "-lcudadevrt")
    alone = (str(toolkit.nvcc.with_name("ptxas")),)
    command = linked if DEVICE_RUNTIME in ptx else alone
    return _made(ptx, ".ptx", ".cubin", toolkit, (*command, f"-arch={target}"))


def _made(text: str, suffix: str, result: str, toolkit: Toolkit, command: Sequence[str]) -> bytes:
    folder = cache_folder() / "gpu"
    key = hashlib.sha256("\0".join((toolkit.version, *command[1:], text)).encode()).hexdigest()[:40]
    kept = folder / f"{key}{result}"
    with _MAKING[kept]:
        if not kept.exists():
            _make(text, kept, suffix, command)
        return kept.read_bytes()


def _make(text: str, kept: Path, suffix: str, command: Sequence[str]) -> None:
    with scratch(kept.parent) as folder:
        source, target = folder / f"module{suffix}", folder / f"module{kept.suffix}"
        source.write_text(text)
        try:
            done = subprocess.run(
                (*command, str(source), "-o", str(target)), capture_output=True, text=True, timeout=_TIMEOUT,
                env=compiler_environment(folder),
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise AssemblyError(f"{Path(command[0]).name} needed more than {_TIMEOUT} s") from error
        if done.returncode:
            raise AssemblyError((done.stderr or done.stdout).strip())
        os.replace(target, kept)
