"""Builds for the check of what a program compiles at run time: by nvcc, from NVRTC's text and options, or as
the program's own nvcc was asked."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

from attrs import define, evolve, field, frozen

from cuda_lsp.dynamic.compilation.compile import (
    CompiledModule,
    CompileError,
    CompileOptions,
    Interrupted,
    compile_module,
)
from cuda_lsp.dynamic.compilation.toolkit import Toolkit
from cuda_lsp.dynamic.programs.device_code import DeviceCompiler, Pair, linked
from cuda_lsp.dynamic.programs.instances import LIBRARY
from cuda_lsp.dynamic.programs.job import Unit
from cuda_lsp.dynamic.programs.scripts.extensions import BuiltSource
from cuda_lsp.dynamic.programs.scripts.places import INSTALLED, Places, marked
from cuda_lsp.dynamic.programs.scripts.ptx_images import module_of
from cuda_lsp.dynamic.programs.scripts.sources import PtxText, RuntimeSource
from cuda_lsp.dynamic.ptx.reader import PtxSyntaxError
from cuda_lsp.dynamic.runs import Level
from cuda_lsp.files import read_text

_NAME = re.compile(r"\w[\w.+-]{0,100}")
Code = RuntimeSource | PtxText | BuiltSource


@frozen
class Refused:
    """Why a source is not checked."""

    why: str


def unplaced(source: Code) -> str:
    """Why kernels of a module are not checked whose code stands in no file of the program."""
    if isinstance(source, PtxText):
        return "it was loaded as PTX that does not say where it comes from (Numba: lineinfo=True)"
    return LIBRARY


@define
class Builds:
    """Both builds of each source, made when they are asked for first. ``end``: monotonic."""

    toolkit: Toolkit
    cache: Path
    arch: str
    places: Places
    end: float
    told: Callable[[str], None] = lambda stage: None
    _known: dict[Code, Pair | Refused] = field(factory=dict[Code, Pair | Refused])

    def of(self, source: Code) -> Pair | Refused:
        """The O0 and the O3 build."""
        if source not in self._known:
            try:
                if isinstance(source, PtxText):
                    self._known[source] = _as_it_is(source)
                    return self._known[source]
                if isinstance(source, BuiltSource):
                    (self._known[source],) = self.of_units(source.units)
                    return self._known[source]
                self.told(f"compiling {source.name or 'a source'}")
                self._known[source] = self._compiled(source)
            except (CompileError, Interrupted) as problem:
                self._known[source] = Refused(f"its source does not compile for the check: {problem}")
        return self._known[source]

    def of_units(self, units: Sequence[Unit]) -> tuple[Pair, ...]:
        """Both builds of each device code of sources that the program's nvcc compiled.

        Raises CompileError, Interrupted, OSError.
        """
        self.told(f"compiling {', '.join(unit.path.name for unit in units)}")
        compiler = DeviceCompiler(self.arch, self.toolkit, self.cache, self.end)
        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            pending = [compiler.start(pool, unit, self._text_of(unit)) for unit in units]
            return tuple(code.pair for code in linked(pending))

    def _text_of(self, unit: Unit) -> str:
        """A source's text; where the program wrote it into our cache, it stands in the program itself."""
        text = read_text(unit.path)
        if not unit.path.is_relative_to(self.cache):
            return text
        return marked(text, self.places.lines_of(text), unit.path)

    def _compiled(self, source: RuntimeSource) -> Pair | Refused:
        options, places = source.compile_options, self.places.lines_of(source.text)
        if not any(places) and (package := _package_of(options)):
            return Refused(f"no line of its source stands in the program's files: {package} made it")
        folder = self._laid_out(source)
        own = folder / _own_name(source)
        text = marked(source.text, places, own) + _instances(source)
        options = evolve(options, arch=self.arch, include_dirs=(folder, *options.include_dirs))

        def built(level: Level) -> CompiledModule:
            left = self.end - time.monotonic()
            return compile_module(own, text, options, level, self.toolkit, self.cache, seconds=left)

        with ThreadPoolExecutor(2) as pool:
            plain, optimised = pool.map(built, (Level.O0, Level.O3))
        return plain, optimised

    def _laid_out(self, source: RuntimeSource) -> Path:
        """A folder of the cache with the text and the headers that the program holds in memory."""
        parts = repr((source.text, source.name, source.headers)).encode(errors="surrogatepass")
        folder = self.cache / "scripts" / hashlib.sha256(parts).hexdigest()[:32]
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in ((_own_name(source), source.text), *source.headers):
            target = folder / name
            if not target.resolve().is_relative_to(folder.resolve()):
                continue  # "../x.h": nvcc finds it beside the folders of -I, or says so
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, errors="surrogateescape")
        return folder


def _as_it_is(source: PtxText) -> Pair | Refused:
    """PTX of another compiler's, which is one build for both."""
    pair = module_of(source.text), module_of(source.text)
    try:
        for compiled in pair:
            _ = compiled.module  # is read now
    except PtxSyntaxError as problem:
        return Refused(f"its PTX is not understood: {problem}")
    return pair


def _package_of(options: CompileOptions) -> str | None:
    """The installed package whose headers a source is compiled with; NVIDIA's are everybody's."""
    for folder in options.include_dirs:
        for before, name in pairwise(folder.parts):
            if before in INSTALLED and name not in ("nvidia", "cuda"):
                return name
    return None


def _own_name(source: RuntimeSource) -> str:
    """As NVRTC calls a text without a name, unless it has one that a file may have."""
    name = Path(source.name).name
    return name if _NAME.fullmatch(name) else "default_program"


def _instances(source: RuntimeSource) -> str:
    """Uses of the instances that the program asked NVRTC for, so that nvcc makes them, too."""
    uses = "".join(
        f"void* cuda_lsp_instance_{k} = (void*)({expression});\n"
        for k, expression in enumerate(source.expressions)
    )
    return f'\n#line 1 "name expressions"\n{uses}' if uses else ""
