"""From a ``.cu`` text to PTX whose every ``.loc`` names one token of the user's source.

nvcc's stages are replayed: preprocess, rewrite to one token a line, compile. The text may be an unsaved
buffer; it is compiled from the cache folder under its own name, with the source's folder first on the
include path. Results are kept by content: text, options, toolkit, and every user header they included.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from cuda_lsp.dynamic.compilation.scratch import scratch
from cuda_lsp.dynamic.compilation.stages import Cancelled, Done, Interrupted, Plan, nvcc_variables, plan, run
from cuda_lsp.dynamic.compilation.tokens import Token, TokenTable, rewriter_for
from cuda_lsp.dynamic.compilation.toolkit import Toolkit
from cuda_lsp.dynamic.ptx.module import PtxLocation, PtxModule
from cuda_lsp.dynamic.ptx.names import stable
from cuda_lsp.dynamic.ptx.reader import read_module
from cuda_lsp.dynamic.runs import Level
from cuda_lsp.model import Position, Severity, SourceRange, ToolError

_FORMAT = 5
_SECONDS = 120.0
RELOCATABLE = "-rdc=true"  # what nvcc is told where device code is linked
_SEPARATE = "requires separate compilation mode"
_TOO_OLD = "is not supported for this GPU architecture"
NEWER = "sm_90"  # which has clusters
_ERROR = re.compile(
    r"(?P<path>[^\s(][^(\n]*)\((?P<line>\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<text>.*)"
)
_GCC_ERROR = re.compile(
    r"(?P<path>[^\s:][^:\n]*):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<text>.*)"
)
_PREPROCESSED = re.compile(r'"([^"]*\.cpp1\.ii)"')
_OUTPUT = re.compile(r'-o "([^"]*\.ptx)"')


@frozen
class CompileOptions:
    """What the compiler needs besides the text. ``arch``: ``sm_90``; ``extra``: further nvcc flags."""

    include_dirs: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    arch: str = "sm_90"
    std: str | None = None
    extra: tuple[str, ...] = ()

    def flags(self) -> list[str]:
        """What nvcc is told of all this, the architecture first."""
        standard = [f"-std={self.std}"] if self.std else []
        includes = [f"-I{folder}" for folder in self.include_dirs]
        return [f"-arch={self.arch}", *standard, *includes, *(f"-D{d}" for d in self.defines), *self.extra]


class CompileError(Exception):
    """The text does not compile; ``errors`` stand on the user's lines."""

    def __init__(self, errors: Sequence[ToolError]) -> None:
        super().__init__(errors[0].message if errors else "the kernel does not compile")
        self.errors = tuple(errors)

    @property
    def needs_linking(self) -> bool:
        """Whether it lacks nothing but ``RELOCATABLE``: kernels launch kernels there."""
        return all(_SEPARATE in error.message for error in self.errors)

    @property
    def needs_newer(self) -> bool:
        """Whether it uses what the architecture lacks, by whatever names: clusters."""
        return any(_TOO_OLD in error.message for error in self.errors)


@define(eq=False, slots=False)
class CompiledModule:
    """PTX and where its tokens stand. ``seconds``: to make it. ``headers``: digests of those read."""

    ptx: str
    tokens: TokenTable
    level: Level
    arch: str
    seconds: float
    from_cache: bool = False
    text: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(factory=dict[str, str], repr=False)

    @cached_property
    def module(self) -> PtxModule:
        """The PTX, read once. Raises PtxSyntaxError."""
        return read_module(self.ptx)

    def entries_of(self, kernel: SourceRange, base_name: str) -> tuple[str, ...]:
        """Mangled entries (one per instantiation) of the kernel that stands there.

        Of a kernel whose code the compiler threw away nothing stands anywhere: then its name tells.
        """
        entries = self.module.entries.items()
        named = {name: tuple(f.instructions()) for name, f in entries if base_name in name}
        found = tuple(name for name, code in named.items() if self._stands_in(code, kernel))
        return found or tuple(name for name, code in named.items() if not any(c.location for c in code))

    def _stands_in(self, instructions: Any, kernel: SourceRange) -> bool:
        for code in instructions:
            if code.location is None:
                continue
            token = self.token_at(code.location.chain()[-1])
            if token is not None and token.path == kernel.path.absolute():
                return kernel.start.line <= token.line <= kernel.end.line
        return False

    def token_at(self, place: PtxLocation) -> Token | None:
        """The user's token at a place; None: it is in a file whose lines were not made tokens."""
        token, name = self.tokens[place.line], self.module.files.get(place.file)
        if token is None or (name is not None and not str(token.path).endswith(name.rsplit("/", 1)[-1])):
            return None
        return token

    def extent_of(self, entry: str) -> SourceRange | None:
        """The lines of the user's file in which the code of an entry stands; None: in none of them."""
        tokens = [
            token
            for code in self.module.entries[entry].instructions()
            if code.location is not None and (token := self.token_at(code.location.chain()[-1])) is not None
        ]
        if not tokens:
            return None
        path = tokens[0].path
        lines = [token.line for token in tokens if token.path == path]
        return SourceRange(path, Position(min(lines), 1), Position(max(lines) + 1, 1))


def compile_module(
    source: Path,
    text: str,
    options: CompileOptions,
    level: Level,
    toolkit: Toolkit,
    cache: Path,
    cancelled: Cancelled = lambda: False,
    seconds: float = _SECONDS,
) -> CompiledModule:
    """Compile the device code of ``text``. Raises CompileError, Interrupted, OSError (a full disk)."""
    started = time.perf_counter()
    source = source.absolute()
    folder = cache / "ptx" / _key(source, text, options, level, toolkit)
    known = _kept(folder, level, options.arch, text)
    if known is not None:
        known.seconds = time.perf_counter() - started
        return known
    with scratch(folder.parent) as work:
        build = _Build(source, text, options, level, toolkit, work, time.monotonic() + seconds, cancelled)
        ptx, tokens = build.run()
        headers = {str(p): digest_of(p) for p in tokens.files if p != source}
        _keep(folder, ptx, tokens, headers)
    took = time.perf_counter() - started
    return CompiledModule(ptx, tokens, level, options.arch, took, text=text, headers=headers)


def plan_ahead(source: Path, options: CompileOptions, toolkit: Toolkit, cache: Path) -> None:
    """Ask nvcc for its plans of a file before its text is to be compiled. Raises OSError, Interrupted."""
    (cache / "ptx").mkdir(parents=True, exist_ok=True)
    for level in Level:
        with scratch(cache / "ptx") as work:
            end = time.monotonic() + _SECONDS
            _Build(source.absolute(), "", options, level, toolkit, work, end, lambda: False).planned()


@define
class _Build:
    source: Path
    text: str
    options: CompileOptions
    level: Level
    toolkit: Toolkit
    work: Path
    deadline: float
    cancelled: Cancelled
    top: str = ""  # where nvcc says its toolkit is

    def run(self) -> tuple[str, TokenTable]:
        copy = self.work / self.source.name
        copy.write_text(f'#line 1 "{self.source}"\n{self.text}')
        stages = self.planned()
        if isinstance(stages, Done):
            raise CompileError([ToolError(f"nvcc refuses to compile: {_last_line(stages.output)}")])
        return self._replay(stages)

    def planned(self) -> Plan | Done:
        """nvcc's own plan, which does not depend on the text."""
        optimise = ["-Xcicc", "-O0"] if self.level is Level.O0 else []
        command = [
            str(self.toolkit.nvcc), "-ptx", "-lineinfo", "-x", "cu", f"-I{self.source.parent}",
            *self.options.flags(), *optimise, self.source.name, "-o", "module.ptx",
        ]  # fmt: skip
        return plan(command, self.work, self.deadline, self.cancelled)

    def _replay(self, stages: Plan) -> tuple[str, TokenTable]:
        tokens: TokenTable | None = None
        self.top = os.path.normpath(stages.environment.get("TOP", str(self.toolkit.root)))
        for command in stages.commands:
            compiles = '/cicc"' in command or "/cicc " in command
            if compiles:
                tokens = self._rewrite(_PREPROCESSED.findall(command)[-1])
            done = run(command, self.work, stages.environment, self.deadline, self.cancelled)
            if done.status:
                raise CompileError(build_errors(done.output, self.source, tokens))
            if compiles:
                output = _OUTPUT.search(command)
                assert tokens is not None
                assert output is not None
                return stable((self.work / output[1]).read_text()), tokens
        raise CompileError([ToolError("nvcc's plan has no device compiler in it: is its version supported?")])

    def _rewrite(self, name: str) -> TokenTable:
        path = self.work / name
        system = ("/usr/include/", "/usr/lib/", "/usr/local/cuda", self.top, os.path.realpath(self.top))
        rewriter = rewriter_for(system, self.source, self.text)
        text, tokens = rewriter.rewrite(path.read_text(errors="surrogateescape"))
        path.write_text(text, errors="surrogateescape")
        return tokens


def build_errors(output: str, source: Path, tokens: TokenTable | None = None) -> list[ToolError]:
    """The compiler's errors on the user's lines; its lines are token numbers once the text was rewritten."""
    found: list[ToolError] = []
    for line in output.splitlines():
        match = _ERROR.match(line) or _GCC_ERROR.match(line)
        if match is None:
            continue
        token = tokens[int(match["line"])] if tokens is not None else None
        if token is not None:
            place = _extent(token)
        else:
            start = Position(int(match["line"]), int(match.groupdict().get("column") or 1))
            place = SourceRange(Path(match["path"]), start, Position(start.line, start.column + 1))
        found.append(ToolError(f"nvcc: {match['text'].strip()}", place, Severity.ERROR))
    return found or [ToolError(f"nvcc failed: {_last_line(output)}")]


def _extent(token: Token) -> SourceRange:
    start = Position(token.line, token.column)
    return SourceRange(token.path, start, Position(token.line, token.stop))


def _last_line(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("#$")]
    return lines[-1].strip() if lines else "it says nothing"


# ------------------------------------------------------------------------------------------ cache


def _key(source: Path, text: str, options: CompileOptions, level: Level, toolkit: Toolkit) -> str:
    parts = (_FORMAT, str(source), text, options.flags(), level.value, str(toolkit.nvcc), toolkit.version,
             nvcc_variables())  # fmt: skip
    return hashlib.sha256(repr(parts).encode(errors="surrogatepass")).hexdigest()[:32]


def _kept(folder: Path, level: Level, arch: str, text: str) -> CompiledModule | None:
    """What was made before, unless a header changed or the entry is damaged."""
    try:
        data: Mapping[str, Any] = json.loads((folder / "tokens.json").read_text())
        for name, digest in data["headers"].items():
            if digest_of(Path(name)) != digest:
                return None
        ptx = (folder / "module.ptx").read_text()
        names: list[str] = data["paths"]
        paths = [Path(p) for p in names]
        rows: list[tuple[int, int, int, str, bool, int]] = data["tokens"]
        tokens = [Token(paths[p], line, column, t, exact, end) for p, line, column, t, exact, end in rows]
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return None
    return CompiledModule(ptx, TokenTable(tokens), level, arch, 0.0, True, text, dict(data["headers"]))


def _keep(folder: Path, ptx: str, tokens: TokenTable, headers: Mapping[str, str]) -> None:
    paths = list(dict.fromkeys(t.path for t in tokens.tokens))
    index = {path: k for k, path in enumerate(paths)}
    data = {
        "headers": dict(headers),
        "paths": [str(p) for p in paths],
        "tokens": [(index[t.path], t.line, t.column, t.text, t.exact, t.end) for t in tokens.tokens],
    }
    with scratch(folder.parent) as made:
        (made / "module.ptx").write_text(ptx)
        (made / "tokens.json").write_text(json.dumps(data))
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # another process was faster: its result is as good
            made.rename(folder)


def digest_of(path: Path) -> str:
    """Of a file's contents; "absent" when there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "absent"


__all__ = [
    "CompileError",
    "CompileOptions",
    "CompiledModule",
    "Interrupted",
    "compile_module",
]
