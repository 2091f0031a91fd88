"""What a check of a whole program is asked to do, and what comes back. Crosses processes, as ``job.py``."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import define, evolve, field, frozen

from cuda_lsp.dynamic.compilation.compile import RELOCATABLE, CompileOptions
from cuda_lsp.dynamic.job import CheckResult, EngineKind, Parameter, Shape, Trial, TrialResult
from cuda_lsp.dynamic.runs import Detail, RunOutcome
from cuda_lsp.files import read_text
from cuda_lsp.model import LaunchConfig, SourceRange, ToolError


@frozen
class ProgramKernel:
    """A kernel of the program that is to be checked. Fields as in ``CheckJob``; ``watch``: for races too.

    ``analysed``: the name of the report that the static side made of this very kernel (instance); "": there
    is none.
    """

    kernel: str
    base_name: str
    mangled: str
    range: SourceRange
    parameters: tuple[Parameter, ...]
    shapes: Mapping[str, Shape] = field(factory=dict[str, Shape])
    watch: bool = True
    lock_step: bool = False
    analysed: str = ""
    releases: frozenset[SourceRange] = frozenset()


DEVICE_SOURCES = (".cu", ".cuh")


@frozen
class Unit:
    """One source of a program and how it is compiled: by nvcc with ``options``, or by a ``host`` compiler.

    ``flags``: what the host compiler is given in ``folder``, or nvcc beside ``options``. ``language``: of
    a host compiler (``-x``), where it was named. ``device``: it may hold kernels. ``relocatable``: compiled
    to be linked with device code of other sources. ``library``: the number of the ``Library`` that it is part
    of; 0: of the program itself.
    """

    path: Path
    options: CompileOptions
    folder: Path = Path()
    flags: tuple[str, ...] = ()
    host: Path | None = None
    language: str = ""
    device: bool = True
    relocatable: bool = False
    library: int = 0


@frozen
class Library:
    """A shared library that the program's build made, at ``path``, of units that have its number.

    ``link``: further files and options of its link step; ``needs``: numbers of the libraries of the build
    that it is linked with, which are smaller than its own. Numbers begin at 1.
    """

    path: Path
    link: tuple[str, ...] = ()
    needs: tuple[int, ...] = ()


@frozen
class ProgramJob:
    """One program: a file with ``main``, further sources, what it is called with.

    ``kernels``: what is known of those in its sources. ``wanted``: names of those to check, others run
    unwatched; none: all that the program launches, known or not. ``folder``: where it runs. ``deadline``:
    seconds for building and running (``until``: as in ``CheckJob``), ``running``: of them for the run.
    ``memory``: bytes of the emulator's device memory; ``host_memory``, ``gpu_memory``: bytes that it may use
    of the host with all that it starts, and of a GPU (0: the usual share of what there is); ``link``: further
    options of the last build step; ``RELOCATABLE`` among them: device code of the sources is linked.
    ``interpreter``: of a program in Python, whose text ``path`` is; what it compiles at run time is checked.
    ``built``: the sources as a build command compiles them, ``path`` among them (or included by one); then
    ``sources`` and ``options`` do not count. ``libraries``: what the build made of some of them; ``needs``:
    numbers of those that the program is linked with, others it may open. ``called``: the program's own name
    for itself; ``environment``, ``input``: its variables and standard input, where a run command sets them.
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
    until: float = math.inf
    running: float = math.inf
    memory: int = 1 << 30
    host_memory: int = 0
    gpu_memory: int = 0
    built: tuple[Unit, ...] = ()
    libraries: tuple[Library, ...] = ()
    needs: tuple[int, ...] = ()
    called: str = ""
    wanted: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    input: str = ""
    interpreter: str = ""

    @property
    def units(self) -> tuple[Unit, ...]:
        """Every source and how it is compiled; ``path`` itself by this name."""
        if self.interpreter:
            return ()
        if self.built:
            here = os.path.realpath(self.path)
            return tuple(
                evolve(unit, path=self.path) if os.path.realpath(unit.path) == here else unit
                for unit in self.built
            )
        return tuple(
            Unit(
                path, self.options, device=k == 0 or path.suffix in DEVICE_SOURCES,
                relocatable=RELOCATABLE in self.link,
            )
            for k, path in enumerate((self.path, *self.sources))
        )  # fmt: skip

    def text_of(self, unit: Unit) -> str:
        """The source's text, which for ``path`` may not be saved yet. Raises OSError."""
        return self.text if unit.path == self.path else read_text(unit.path)

    @property
    def command(self) -> tuple[str, ...]:
        """How the program is called."""
        if self.interpreter:
            return (self.interpreter, str(self.path), *self.arguments)
        return (self.called or str(self.path.with_suffix("")), *self.arguments)


@frozen
class Checked:
    """A launch that was checked, for races, bank conflicts or both. ``number``: of its kernel, from 1."""

    launch: LaunchConfig
    races: RunOutcome | None
    banks: RunOutcome | None
    number: int


@define
class Counts:
    """Launches of one kernel: all, those that were checked, and the others by the reason why not."""

    launches: int = 0
    checked: int = 0
    reasons: dict[str, int] = field(factory=dict[str, int])


@frozen
class KernelRuns:
    """What became of one kernel's launches. ``kernel``: None where it stands in no source of the program.

    ``checks``: what was seen, of each run of the program.
    """

    name: str
    kernel: ProgramKernel | None
    counts: Counts
    checks: tuple[CheckResult, ...] = ()

    def with_more(self, other: KernelRuns) -> KernelRuns:
        """With the launches of another run."""
        reasons = dict(self.counts.reasons)
        for reason, count in other.counts.reasons.items():
            reasons[reason] = reasons.get(reason, 0) + count
        launches, checked = (
            getattr(self.counts, name) + getattr(other.counts, name) for name in ("launches", "checked")
        )
        return evolve(self, counts=Counts(launches, checked, reasons), checks=(*self.checks, *other.checks))

    @property
    def told(self) -> str:
        """How many launches there were, how many were checked, and why others were not."""
        all_, left = self.counts.launches, sorted(self.counts.reasons.items(), key=lambda reason: -reason[1])
        others = "".join(f"; {count:,} {'was' if count == 1 else 'were'} not: {why}" for why, count in left)
        times = "once" if all_ == 1 else f"{all_:,} times"
        return f"{self.name} was launched {times} by the program, {self.counts.checked} checked{others}"


@frozen
class ProgramResult:
    """What a program did. ``status``: its exit status, negative: the signal that ended it; None: not run.

    ``runs``: of every kernel that it launched. ``output``: what it printed (its end, if
    long). ``problem`` and ``errors`` as in ``CheckResult``.
    """

    status: int | None = None
    output: str = ""
    runs: tuple[KernelRuns, ...] = ()
    launches: int = 0
    device: str = ""
    errors: tuple[ToolError, ...] = ()
    problem: str | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def checks(self) -> Mapping[str, CheckResult]:
        """By the kernel's name, what was seen first of those that were checked."""
        return {run.name: run.checks[0] for run in self.runs if run.checks}

    def with_more(self, other: ProgramResult) -> ProgramResult:
        """With another run of the program, or of one of the same project."""
        found = {_of(run): run for run in self.runs}
        for run in other.runs:
            known = found.get(_of(run))
            found[_of(run)] = run if known is None else known.with_more(run)
        return ProgramResult(
            status=self.status or other.status,
            output=self.output + other.output,
            runs=tuple(found.values()),
            launches=self.launches + other.launches,
            device=self.device or other.device,
            errors=(*self.errors, *other.errors),
            problem=self.problem or other.problem,
            seconds=self.seconds + other.seconds,
            notes=tuple(dict.fromkeys((*self.notes, *other.notes))),
        )


def _of(run: KernelRuns) -> tuple[object, ...]:
    """What makes kernels of two programs the same."""
    return run.name, run.kernel and run.kernel.range


def argument_names(kernel: ProgramKernel, arguments: Sequence[bytes]) -> dict[int, str]:
    """What the kernel calls the memory that its arguments point to, by address."""
    names: dict[int, str] = {}
    for parameter, value in zip(kernel.parameters, arguments, strict=False):
        for piece in parameter.pieces:
            if piece.pointer:
                address = int.from_bytes(value[piece.offset : piece.offset + 8], "little")
                names.setdefault(address, piece.name)
    return names


def results_of(launches: Sequence[Checked]) -> tuple[TrialResult, ...]:
    """One result for each launch watched for races; the first also tells the bank conflicts seen."""
    banks = next((c.banks for c in launches if c.banks is not None), None)
    return tuple(
        TrialResult(
            Trial(c.launch, why=f"launch {c.number} of the program", own_memory=True, number=c.number),
            c.races,
            None if k else banks,
        )
        for k, c in enumerate(c for c in launches if c.races is not None)
        if c.races is not None
    )
