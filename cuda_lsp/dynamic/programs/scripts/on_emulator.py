"""Modules and launches of a Python program on the emulator: the counterpart of ``standin/driver.cpp``.

Each source has a host of its own, because kernels of different modules may go by one name; they share the
device's memory, in which each loaded module has variables of its own. So has each shared library that the
program opens (``standin/opened.cpp``): its kernels' names tell which one it is (``ptx/names.py``).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import define, evolve, field

from cuda_lsp.dynamic.compilation.compile import CompileError, Interrupted
from cuda_lsp.dynamic.emulator.heap import Heap
from cuda_lsp.dynamic.programs.channel import (
    DEVICE,
    LAUNCH,
    MEMORY,
    PARAMETERS,
    VARIABLE,
    Garbled,
    answered,
    call_of,
    of_memory,
)
from cuda_lsp.dynamic.programs.instances import LIBRARY as NOWHERE
from cuda_lsp.dynamic.programs.job import KernelRuns
from cuda_lsp.dynamic.programs.on_emulator import Call, Host
from cuda_lsp.dynamic.programs.scripts.builds import Builds, Code, Pair, Refused, unplaced
from cuda_lsp.dynamic.programs.scripts.copies import Copies
from cuda_lsp.dynamic.programs.scripts.ptx_images import is_ptx
from cuda_lsp.dynamic.programs.scripts.sources import PtxText, image_key, told
from cuda_lsp.dynamic.ptx.names import library_of
from cuda_lsp.dynamic.runs import Detail

KINDS = range(1, 14)  # those of every program, and these:
SOURCE, MODULE, FUNCTION, GLOBAL, NAMES, LIBRARY = KINDS[7:]
LONGEST = 1 << 28  # bytes of a request: images and sources
_MACHINE_CODE = (
    "a module was loaded of which only machine code is there (of a library, or made by another process): "
    "without a GPU it cannot run"
)


@define
class Loaded:
    """A module as the program loaded it. ``declared``: its variables have their places."""

    number: int
    source: Code
    declared: bool = False


@define
class ScriptHost:
    """Answers the stand-in driver. ``deadline``: monotonic."""

    heap: Heap
    builds: Builds
    copies: Copies
    wanted: tuple[str, ...] = ()
    detail: Detail = Detail.PAIRS
    all_blocks: bool = False
    deadline: float = 0.0
    before_launch: Callable[[], None] = lambda: None
    notes: dict[str, None] = field(factory=dict[str, None])
    _sources: dict[str, Code] = field(factory=dict[str, Code])
    _modules: list[Loaded] = field(factory=list[Loaded])
    _hosts: dict[Code, Host] = field(factory=dict[Code, Host])
    _libraries: dict[int, Host] = field(factory=dict[int, Host])  # by their numbers

    @property
    def _all(self) -> tuple[Host, ...]:
        return (*self._hosts.values(), *self._libraries.values())

    @property
    def launches(self) -> int:
        """Of all kernels."""
        return sum(host.launches for host in self._all)

    def answer(self, kind: int, body: bytes) -> bytes:
        """The body of the answer to one request. Raises Garbled."""
        try:
            return self._answer(kind, body)
        except (struct.error, UnicodeDecodeError, ValueError) as error:
            raise Garbled from error

    def _answer(self, kind: int, body: bytes) -> bytes:
        if kind in MEMORY:
            return of_memory(self.heap, kind, body)
        if kind == SOURCE:
            key, source = told(body, self._sources)
            self._sources[key] = source
            return b""
        if kind == MODULE:
            return struct.pack("<Q", self._load(body))
        if kind == LIBRARY:
            return self._open(Path(os.fsdecode(body)))
        if kind in (VARIABLE, PARAMETERS):
            host = self._of_library(body.decode())
            return answered(host, kind, body)
        if kind == DEVICE:
            return bytes([body != bytes(4)])  # it has one
        if kind == LAUNCH:
            error, printed = self.launch(call_of(body))
            return struct.pack("<i", error) + printed.encode(errors="replace")
        (number,) = struct.unpack_from("<Q", body)
        module = self._module(number)
        name = body[8:].decode()
        if kind == FUNCTION:
            return self._function(module, name)
        if kind == GLOBAL:
            host = self._entered(module)
            region = host.heap.variable(name) if isinstance(host, Host) else None
            return struct.pack("<QQ", region.start, region.size) if region else bytes(16)
        host = self._entered(module)
        names = host.instances.homes if isinstance(host, Host) else ()
        return b"".join(entry.encode() + b"\0" for entry in names)

    def launch(self, call: Call) -> tuple[int, str]:
        """Execute one launch, whose kernel is named by its module's number and its own name, or is one of a
        library."""
        number, blank, entry = call.entry.partition(" ")
        host = self._entered(self._module(int(number))) if blank else self._of_library(number)
        if isinstance(host, Refused):
            raise Garbled
        entry = entry or number
        host.deadline = self.deadline
        host.before_launch = self.before_launch
        return host.launch(evolve(call, entry=entry))

    def runs(self) -> tuple[KernelRuns, ...]:
        """What became of all launches."""
        return tuple(run for host in self._all for run in host.runs())

    def problems(self) -> tuple[str, ...]:
        """Why kernels did not run, and what could not be loaded."""
        said = (
            f"{host.instances.name_of(entry)}: {why}"
            for host in self._all
            for entry, why in host.problems.items()
        )
        return tuple(dict.fromkeys((*said, *self.notes)))

    def _open(self, library: Path) -> bytes:
        """Numbers and paths of new libraries in the place of one that the program opens."""
        try:
            made = self.copies.of(library)
        except (CompileError, Interrupted, OSError) as problem:
            self.notes[f"{library.name} was not built for the check: {problem}"] = None
            return b""
        for copy in made:
            if copy.number not in self._libraries:
                self.heap.enter(-copy.number)
                self._libraries[copy.number] = self._hosting(copy.modules)
        return b"".join(b"%d %s\n" % (copy.number, os.fsencode(copy.path)) for copy in made)

    def _of_library(self, name: str) -> Host:
        number = library_of(name)
        if number not in self._libraries:
            raise Garbled
        self.heap.enter(-number)
        return self._libraries[number]

    def _hosting(self, modules: Sequence[Pair], unplaced: str = NOWHERE) -> Host:
        return Host(self.heap, modules, (), self.wanted, self.detail, self.all_blocks, unplaced=unplaced)

    def _load(self, image: bytes) -> int:
        source = self._sources.get(image_key(image))
        if source is None and is_ptx(image):
            source = PtxText(image.decode(errors="replace"))
        if source is None:
            self.notes[_MACHINE_CODE] = None
            return 0
        self._modules.append(Loaded(len(self._modules) + 1, source))
        return len(self._modules)

    def _module(self, number: int) -> Loaded:
        if not 0 < number <= len(self._modules):
            raise Garbled
        return self._modules[number - 1]

    def _function(self, module: Loaded, name: str) -> bytes:
        host = self._entered(module)
        if isinstance(host, Refused):
            self.notes[f"{name}: {host.why}"] = None
            return bytes((0, 1))
        if name not in host.instances.homes:
            return bytes((0, 0))
        sizes = host.parameters(name)
        return bytes((1, 0)) + struct.pack(f"<{len(sizes)}I", *sizes)

    def _entered(self, module: Loaded) -> Host | Refused:
        """The host of a module's source; variables are the module's from now on."""
        built = self.builds.of(module.source)
        if isinstance(built, Refused):
            return built
        self.heap.enter(module.number)
        host = self._hosts.get(module.source)
        if host is None:
            host = self._hosts[module.source] = self._hosting((built,), unplaced(module.source))
        elif not module.declared:
            for compiled in built:
                self.heap.declare(compiled.module)
        module.declared = True
        return host
