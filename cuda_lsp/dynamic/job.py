"""What a dynamic check of one kernel is asked to do, and what comes back: plain data that crosses processes.

The callers (command line, server) know both analyses: they tell here what the static side knows of the
kernel's parameters, launches and witnesses, so that neither analysis imports the other.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import field, frozen

from cuda_lsp.dynamic.compilation.compile import CompileOptions
from cuda_lsp.dynamic.runs import Detail, PtxSite, RunOutcome
from cuda_lsp.model import Finding, LaunchConfig, SourceRange, ToolError

Places = tuple[SourceRange, SourceRange]
"""Of a race: the other access, and where its finding stands."""


class EngineKind(enum.Enum):
    """Who runs the kernel. AUTO: the GPU where there is one that works, else the emulator."""

    AUTO = "auto"
    GPU = "gpu"
    EMULATOR = "emulator"


class ElementKind(enum.Enum):
    """What an element of a buffer holds, for its first contents."""

    INTEGER = "integer"
    FLOAT = "float"
    OTHER = "other"


@frozen
class Piece:
    """A scalar or pointer inside one kernel parameter. ``offset``: bytes from the parameter's start.

    ``element``: bytes of what a pointer points to. ``name`` as findings name it (``p`` or ``record.p``).
    ``limit``: integers that a pointer points to are below it, because they may be indices.
    ``ascending``: they bound stretches of something, so that none is smaller than the one before.
    ``forest``: they lead from one element to another, and never back: none is above its own number.
    """

    name: str
    offset: int
    size: int
    pointer: bool = False
    element: int = 4
    contents: ElementKind = ElementKind.INTEGER
    fraction: bool = False  # a float or double scalar
    limit: int = 64
    ascending: bool = False
    forest: bool = False


@frozen
class Parameter:
    """One kernel parameter in order, its pieces, and its bytes."""

    name: str
    pieces: tuple[Piece, ...]
    size: int


@frozen
class Shape:
    """An array as the source declares it, for subscripts in messages: bytes of an element, extents."""

    element: int
    extents: tuple[int, ...] = ()


@frozen
class Trial:
    """One run to make: a launch and the values of scalars; ``why`` says what it is meant to show.

    ``contents``: buffers all of whose elements have one value, by name; ``cells``: what single elements hold
    (buffer, byte offset, value). ``needs``: bytes that buffers are
    known to need. ``placed``: pointers into the buffer of an earlier parameter: its name, and how many bytes
    further on. ``blocks``: linear numbers of blocks to check beside the usual ones. ``own_memory``: the
    program's, not ours: what lies outside it is out of bounds. ``spare_shared``: bytes of dynamic shared
    memory for a launch that does not tell. ``number``: of the launch among the program's, from 1.
    ``shows``: the races that this run is to show, where another cannot stand for it; None: any that it can.
    ``enough``: the blocks that it takes to see them.
    """

    launch: LaunchConfig
    scalars: Mapping[str, int] = field(factory=dict[str, int])
    why: str = ""
    contents: Mapping[str, float] = field(factory=dict[str, float])
    cells: tuple[tuple[str, int, int], ...] = ()
    needs: Mapping[str, int] = field(factory=dict[str, int])
    placed: Mapping[str, tuple[str, int]] = field(factory=dict[str, tuple[str, int]])
    blocks: tuple[int, ...] = ()
    own_memory: bool = False
    spare_shared: int = 0
    number: int = 0
    shows: frozenset[Places] | None = None
    enough: tuple[int, ...] = ()


@frozen
class Preparation:
    """What is known of checks that nobody has asked for yet: of the file that somebody looks at."""

    engine: EngineKind
    path: Path
    options: CompileOptions
    cache: Path
    nvcc: Path | None = None


@frozen
class CheckJob:
    """One kernel to check. ``watch``: for races; not when the static side proved that it has none.
    ``proved``: places that it proved to race with nothing, in a kernel that races elsewhere.
    ``releases``: stores that give locks back.

    ``suspects``: pairs of places that may race, which are sought with further data and schedules.
    ``untried``: those for which no run is made that could show them, and why.
    ``shapes``: arrays by the name in the source. ``banks``: bank conflicts are counted in the first trial.
    ``deadline``: seconds for all of it, compilation included (``until``: when they are over, monotonic,
    where they began before), ``running``: of them for each run; ``memory``: bytes the emulator may use;
    ``gpu_memory``: bytes of a GPU (0: the usual share of what is free).
    """

    path: Path
    text: str
    kernel: str
    base_name: str
    mangled: str  # of an instantiation; "": a plain kernel
    range: SourceRange
    parameters: tuple[Parameter, ...]
    trials: tuple[Trial, ...]
    options: CompileOptions
    cache: Path
    engine: EngineKind = EngineKind.AUTO
    nvcc: Path | None = None
    detail: Detail = Detail.PAIRS
    all_blocks: bool = False
    watch: bool = True
    proved: frozenset[SourceRange] = frozenset()
    releases: frozenset[SourceRange] = frozenset()
    suspects: tuple[Places, ...] = ()
    untried: Mapping[Places, str] = field(factory=dict[Places, str])
    shapes: Mapping[str, Shape] = field(factory=dict[str, Shape])
    seed: int = 0
    deadline: float = 20.0
    until: float = math.inf
    running: float = math.inf
    memory: int = 4 << 30
    gpu_memory: int = 0
    lock_step: bool = False
    banks: bool = True


@frozen
class TrialResult:
    """What one trial saw, races at O0 and bank conflicts at O3."""

    trial: Trial
    races: RunOutcome
    banks: RunOutcome | None = None


@frozen
class CheckResult:
    """Everything the check of one kernel saw. ``sites``: of the race runs, ``bank_sites``: of the bank runs.

    ``problem``: why nothing (or not all) was run, with the next step; ``errors``: compile errors.
    ``headers``: digests of the user's headers that were read. ``left``: how many trials were not made.
    ``untried``: as ``CheckJob`` says.
    """

    kernel: str
    device: str = ""
    results: tuple[TrialResult, ...] = ()
    sites: tuple[PtxSite, ...] = ()
    bank_sites: tuple[PtxSite, ...] = ()
    errors: tuple[ToolError, ...] = ()
    problem: str | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(factory=dict[str, str])
    left: int = 0
    untried: Mapping[Places, str] = field(factory=dict[Places, str])


def is_wanted(kernel: str, names: Sequence[str]) -> bool:
    """Whether one of these names means a kernel, with or without a template's arguments; none: all do."""
    return not names or kernel in names or kernel.split("<")[0] in names


def places_of(finding: Finding) -> Places:
    """The two of a race."""
    other = finding.related[0].site if finding.related else finding.site
    return other.range, finding.site.range
