"""The process in which a Python program runs on the GPU, its kernels instrumented launch by launch.

As ``programs/gpu_process.py``, but that the program is interpreted here, and its modules are known when it
has loaded them: ``standin/launches.cpp`` is preloaded and tells of each source, module and launch. The images
of shared libraries lie in these, and what they are made of their builds tell (``extensions.py``).
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import math
import os
import pickle
import runpy
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from cuda_lsp.dynamic.compilation.compile import CompiledModule
from cuda_lsp.dynamic.gpu.cuda_bindings import BindingsDevice, Context
from cuda_lsp.dynamic.gpu.engine import BINDINGS, LIBRARY, RealDevice, open_primary
from cuda_lsp.dynamic.programs.gpu_process import Hosted
from cuda_lsp.dynamic.programs.instances import Instances, instances
from cuda_lsp.dynamic.programs.on_gpu import Said, Task
from cuda_lsp.dynamic.programs.process import input_of
from cuda_lsp.dynamic.programs.recorder import LOG
from cuda_lsp.dynamic.programs.scripts.builds import Builds, Code, Refused, unplaced
from cuda_lsp.dynamic.programs.scripts.extensions import (
    BuiltSource,
    Extensions,
    file_at,
    mapped,
    registered,
)
from cuda_lsp.dynamic.programs.scripts.places import places_in
from cuda_lsp.dynamic.programs.scripts.ptx_images import is_ptx
from cuda_lsp.dynamic.programs.scripts.sources import PtxText, image_key, told
from cuda_lsp.dynamic.ptx.module import PtxModule
from cuda_lsp.dynamic.ptx.names import kernel_name, stable
from cuda_lsp.dynamic.runs import EngineUnavailable
from cuda_lsp.files import read_text

_NO_SOURCE = "its source was not compiled by NVRTC in this program"
_NO_BUILD = "it stands in {}, whose build was not seen"
_OTHER_CONTEXT = "it is launched in a context of its own, which needs cuda-bindings"
_SHAPE = 13  # numbers of a launch's shape


class _Shape(ctypes.Structure):
    """``Shape`` of ``standin/launches.cpp``."""

    _fields_ = (
        ("numbers", ctypes.c_uint * _SHAPE),
        ("packed_size", ctypes.c_ulonglong),
        ("packed", ctypes.c_void_p),
    )


_COMPILED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ulonglong)
_LOADED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulonglong)
_LAUNCHED = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.POINTER(_Shape),
    ctypes.POINTER(ctypes.c_void_p),
)
_REFUSAL = ctypes.CFUNCTYPE(None, ctypes.c_int)


@define
class ScriptHosted(Hosted):
    """The program's sources, modules and launches, as they come."""

    builds: Builds = field(kw_only=True)
    extensions: Extensions = field(kw_only=True)
    sources: dict[str, Code] = field(factory=dict[str, Code])
    modules: dict[int, Code | Path] = field(factory=dict[int, Code | Path])  # a path: of a library
    module: int = 0  # of the launch that goes on, and its source
    source: Code | None = None
    _made_of: dict[tuple[Path | None, str, int], Code | None] = field(
        factory=dict[tuple[Path | None, str, int], Code | None]
    )
    _devices: dict[int, RealDevice] = field(factory=dict[int, RealDevice])
    _ready: set[Code] = field(factory=set[Code])

    def compiled(self, message: int, size: int) -> None:
        """An image was made of a source."""
        key, source = told(ctypes.string_at(message, size), self.sources)
        self.sources[key] = source

    def loaded(self, module: int, image: int, size: int) -> None:
        """An image became a module, perhaps at the address of one that is gone."""
        content = ctypes.string_at(image, size)
        source: Code | Path | None = self.sources.get(image_key(content))
        if source is None and is_ptx(content):
            source = PtxText(content.decode(errors="replace"))
        if source is None:
            source = file_at(image)
        if source is None:
            self.modules.pop(module, None)
        else:
            self.modules[module] = source

    def launched(self, module: int | None, name: bytes, shape: Any, arguments: Any) -> int:
        """1: the launch was carried out here. Never raises: the program goes on whatever happens."""
        entry, numbers = stable(name.decode()), list(shape.contents.numbers[:_SHAPE])
        self.module = module or 0
        try:
            self.source = self._source(self.modules.get(self.module), entry)
            key = self._key(self.source, entry)
            given = self._given(key, entry, shape.contents, arguments)
        except Exception as problem:  # noqa: BLE001 - a bug of ours must not stop the program
            self.tally.launched(entry)
            self.tally.refused(entry, f"internal error {type(problem).__name__}: {problem}")
            return 0
        return self.taken(key, entry, numbers, given)

    def variables(self, compiled: CompiledModule) -> Iterator[tuple[str, tuple[int, int]]]:
        """Those of the module that is launched from."""
        start, size = ctypes.c_ulonglong(), ctypes.c_ulonglong()
        found = (ctypes.byref(start), ctypes.byref(size))
        of_library = isinstance(self.source, BuiltSource)
        for name, variable in compiled.module.variables.items():
            if variable.space not in ("global", "const"):
                continue
            actual = registered(name, self.source.library) if isinstance(self.source, BuiltSource) else name
            if actual is None:
                continue  # the host does not know it
            if self.library.clsp_variable(ctypes.c_void_p(self.module), actual.encode(), *found):
                yield name, (start.value, size.value)
            elif of_library:
                raise EngineUnavailable(f"where {name} lies in the program's memory is not known")

    def _source(self, known: Code | Path | None, entry: str) -> Code | None:
        """What a kernel is made of."""
        if known is not None and not isinstance(known, Path):
            return known
        key = known, entry, self.extensions.seen
        if key not in self._made_of:
            self._made_of[key] = self._of_library(known, entry)
        return self._made_of[key]

    def _of_library(self, known: Path | None, entry: str) -> Code | None:
        """The source of a kernel in a library, or in any that is loaded."""
        libraries = [known] if known is not None else mapped()
        sources = [source for path in libraries for source in self.extensions.sources_of(path)]
        named = kernel_name(entry).partition("<")[0]
        sources.sort(key=lambda source: all(named not in read_text(unit.path) for unit in source.units))
        for source in sources:
            built = self.builds.of(source)
            if isinstance(built, Refused):
                self._leave_out(entry, built.why)
            elif entry in built[0].module.entries:
                return source
        if known is not None and not sources:
            self._leave_out(entry, _NO_BUILD.format(known.name))
        return None

    def _key(self, source: Code | None, entry: str) -> str:
        """What a kernel is counted by; its source is compiled when it is launched for the first time."""
        if source is None:
            self._leave_out(entry, _NO_SOURCE)  # unless another reason is known
            return entry
        built = self.builds.of(source)
        if isinstance(built, Refused):
            self._leave_out(entry, built.why)
            return entry
        mark = hashlib.sha256(repr(source).encode(errors="surrogatepass")).hexdigest()[:12]
        if source not in self._ready:
            self._ready.add(source)
            self._add(instances((built,), (), self.task.job.wanted, unplaced(source)), mark)
        key = f"{entry} {mark}"
        return key if key in self.tally.instances.kernels else entry

    def _add(self, found: Instances, mark: str) -> None:
        """The kernels of a source, which go by its mark; those that are not checked, by their name."""
        known = self.tally.instances
        kernels = {f"{entry} {mark}": kernel for entry, kernel in found.kernels.items()}
        homes = {f"{entry} {mark}": found.homes[entry] for entry in found.kernels}
        more = evolve(known, kernels={**known.kernels, **kernels}, homes={**known.homes, **homes})
        self.tally = evolve(self.tally, instances=more)
        for entry, why in found.refused.items():
            self._leave_out(entry, why)
        self.say(Said(kernels=kernels))

    def _leave_out(self, entry: str, why: str) -> None:
        known = self.tally.instances
        if entry not in known.refused:
            self.tally = evolve(self.tally, instances=evolve(known, refused={**known.refused, entry: why}))

    def _given(self, key: str, entry: str, shape: Any, arguments: Any) -> Any:
        """Where each argument lies."""
        home = self.tally.instances.homes.get(key)
        if home is None or arguments or not shape.packed:
            return arguments
        return _unpacked(home[0].module, entry, shape.packed)

    def entered(self, number: int) -> RealDevice:
        """The device in the context that the program launches in, whichever that is."""
        if not isinstance(self.device, BindingsDevice):
            return super().entered(number)
        calls = self.device.calls
        current, number = calls("cuCtxGetCurrent"), int(calls("cuCtxGetDevice"))
        if int(current) not in self._devices:
            device = super().entered(number)
            device.context.pop()
            self._devices[int(current)] = evolve(device, context=Context(calls, current))
        device = self._devices[int(current)]
        device.context.push()
        return device


def _unpacked(module: PtxModule, entry: str, packed: int) -> Sequence[int]:
    """Addresses of arguments that lie in one buffer, each at its alignment."""
    found: list[int] = []
    at = 0
    for parameter in module.entries[entry].params:
        at = -(-at // parameter.alignment) * parameter.alignment
        found.append(packed + at)
        at += parameter.size or 8
    return found


def main(descriptor: str) -> None:
    """Run the program. ``descriptor``: of the pipe that takes what there is to say."""
    answers = os.fdopen(int(descriptor), "wb")
    task: Task = pickle.load(sys.stdin.buffer)
    job = task.job
    os.chdir(job.folder)
    if find_spec("cuda.bindings"):  # its contexts may be the program's own
        os.environ.setdefault(LIBRARY, BINDINGS)
    device = open_primary(task.toolkit)
    library: Any = ctypes.CDLL(str(task.library))
    end = time.monotonic() + job.deadline if math.isfinite(job.deadline) else math.inf
    builds = Builds(task.toolkit, job.cache, f"sm_{device.architecture}", places_in(job.path), end)
    log = Path(os.environ[LOG]) if LOG in os.environ else None
    extensions = Extensions(job.folder, job.cache, log)
    hosted = ScriptHosted(
        task,
        device,
        library,
        answers,
        partial(open_primary, task.toolkit),
        builds=builds,
        extensions=extensions,
    )
    hosted.say(Said(device=device.name))
    limits = hosted.limits()
    kept = (_COMPILED(hosted.compiled), _LOADED(hosted.loaded), _LAUNCHED(hosted.launched))
    refusal = _REFUSAL(partial(hosted.refused, limits))
    library.clsp_limit(*map(ctypes.c_ulonglong, limits), refusal)
    library.clsp_attach(*kept)
    atexit.register(_leave, library, hosted, (kept, refusal))
    with input_of(job) as file:
        os.dup2(file.fileno(), 0)  # until here it was ours
    sys.argv = [str(job.path), *job.arguments]
    sys.path.insert(0, str(job.path.parent))
    runpy.run_path(str(job.path), run_name="__main__")


def _leave(library: Any, hosted: ScriptHosted, kept: object) -> None:
    """Nothing asks us any more: the interpreter is about to end."""
    del kept
    library.clsp_attach(None, None, None)
    hosted.end(None)
