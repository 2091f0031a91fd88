"""What a check of a whole program is asked to do, and what comes back. Crosses processes, as ``job.py``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from cuda_lsp.dynamic.compile import CompileOptions
from cuda_lsp.dynamic.job import CheckResult, EngineKind, Parameter, Shape
from cuda_lsp.dynamic.runs import Detail
from cuda_lsp.model import SourceRange, ToolError


@frozen
class ProgramKernel:
    """A kernel of the program that is to be checked. Fields as in ``CheckJob``; ``watch``: for races too."""

    kernel: str
    base_name: str
    mangled: str
    range: SourceRange
    parameters: tuple[Parameter, ...]
    shapes: Mapping[str, Shape] = field(factory=dict[str, Shape])
    watch: bool = True
    lock_step: bool = False


@frozen
class ProgramJob:
    """One program: a file with ``main``, further sources, what it is called with.

    ``kernels``: those to check; others run unwatched. ``folder``: where it runs. ``deadline``: seconds for
    the whole run; ``memory``: bytes of device memory; ``link``: further options of the last build step.
    """

    path: Path
    text: str
    kernels: tuple[ProgramKernel, ...]
    options: CompileOptions
    cache: Path
    folder: Path
    arguments: tuple[str, ...] = ()
    sources: tuple[Path, ...] = ()
    link: tuple[str, ...] = ()
    engine: EngineKind = EngineKind.AUTO
    nvcc: Path | None = None
    detail: Detail = Detail.PAIRS
    all_blocks: bool = False
    deadline: float = 120.0
    memory: int = 1 << 30


@frozen
class ProgramResult:
    """What a program did. ``status``: its exit status, negative: the signal that ended it; None: not run.

    ``checks``: by the kernel's name, those that were launched. ``output``: what it printed (its end, if
    long). ``problem`` and ``errors`` as in ``CheckResult``.
    """

    status: int | None = None
    output: str = ""
    checks: Mapping[str, CheckResult] = field(factory=dict[str, CheckResult])
    launches: int = 0
    device: str = ""
    errors: tuple[ToolError, ...] = ()
    problem: str | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
