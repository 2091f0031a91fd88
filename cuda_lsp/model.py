"""The words every room shares.

Both analyses (static and dynamic) speak in these classes, and every output (editor, terminal, JSON,
SARIF) only translates them.  Definitions of race, conflict, status and verdict: ``docs/semantics.md``.
Nothing here computes; nothing here imports another room.  One vocabulary, which is read as a whole (a finding
names all of it): one file, somewhat longer than most.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from attrs import evolve, field, frozen

from cuda_lsp.told_lines import with_lines

# ---------------------------------------------------------------------------------------- source


@frozen(order=True)
class Position:
    """A place between two characters. 1-based line; 1-based column counted in Unicode code points."""

    line: int
    column: int


@frozen(order=True, cache_hash=True)
class SourceRange:
    """Half-open stretch of one file: ``end`` is the position after the last character."""

    path: Path
    start: Position
    end: Position

    @property
    def beginning(self) -> str:
        """``path:line:column``, as compilers write it."""
        return f"{self.path}:{self.start.line}:{self.start.column}"

    def has_line(self, line: int) -> bool:
        """Whether some of it is on a line (from 1)."""
        return self.start.line <= line <= self.end.line

    def shifted(self, lines: int) -> SourceRange:
        """The same stretch ``lines`` further down (negative: up)."""
        return SourceRange(
            self.path,
            Position(self.start.line + lines, self.start.column),
            Position(self.end.line + lines, self.end.column),
        )


def line_now(path: Path, where: Callable[[SourceRange], SourceRange | None], line: int) -> int | None:
    """The number that a line of a file has now; None: what stood there is gone."""
    now = where(SourceRange(path, Position(line, 1), Position(line + 1, 1)))
    return now and now.start.line


@frozen
class Site:
    """One place of the source where something happens: an access, a barrier, a call.

    ``text`` is the source expression as written (``tile[threadIdx.y][k]``), for messages.
    ``calls`` are the call expressions through which inlining reached it, outermost first; a site
    written in the kernel itself has none.  Two sites are the same source expression when their
    ``range`` agree, whatever the call chain. ``guess``: what is read there goes to a compare-and-swap of that
    word alone, which checks it.
    """

    range: SourceRange
    text: str = ""
    calls: tuple[SourceRange, ...] = ()
    guess: bool = False


# ---------------------------------------------------------------------------------------- memory


class Space(enum.Enum):
    """A memory space of the CUDA programming model."""

    SHARED = "shared"
    GLOBAL = "global"
    LOCAL = "local"
    CONSTANT = "constant"


class Mode(enum.Enum):
    """What an access does to memory.

    ``writes``: memory may hold something else behind it. ``atomic``: it does not race with its like.
    """

    READ = "read"
    WRITE = "write"
    ATOMIC = "atomic"
    ATOMIC_READ = "atomic-read"  # an atomic load: races with plain writes only

    writes: bool
    atomic: bool

    def __init__(self, word: str) -> None:  # attributes: millions of pairs ask
        self.writes = word in ("write", "atomic")
        self.atomic = word in ("atomic", "atomic-read")


class Scope(enum.Enum):
    """How far an atomic operation or a fence reaches (``_block``, plain, ``_system``)."""

    BLOCK = "block"
    DEVICE = "device"
    SYSTEM = "system"


# -------------------------------------------------------------------------------------- hardware


WARP_SIZE = 32
"""Lanes of a warp, on every GPU so far; languages and masks have it built in."""

FULL_WARP = (1 << WARP_SIZE) - 1
"""The mask that names all of them."""

MAX_BLOCK_THREADS = 1024
"""Threads of a block that every GPU allows."""

# ---------------------------------------------------------------------------------------- launch

Dim3 = tuple[int, int, int]


def linear_index(index: Dim3, extents: Dim3) -> int:
    """The number of a thread in its block, or of a block in its grid: x fastest."""
    return index[0] + extents[0] * (index[1] + extents[1] * index[2])


class LaunchSource(enum.Enum):
    """Where a launch configuration was learnt, best first."""

    PROGRAM = "launch that the program made"
    COMMAND_LINE = "command line"
    DIRECTIVE = "directive"
    FILE = "launch in this file"
    WORKSPACE = "launch in the workspace"
    SIZES = "launch in the source, for some sizes"  # its block follows sizes that nobody knows
    LEFT_OUT = "launch that the preprocessor leaves out"
    BOUNDS = "hint in the kernel"  # __launch_bounds__, tiled_partition, static array extents
    DEFAULT = "default"


Extents = tuple[int | None, int | None, int | None]
"""Extents of a grid by axis (x, y, z); None where the source does not tell."""


_APART = "elsewhere: "


def apart(pointer: str) -> str:
    """The parameter that is 1 at launches which point a pointer to an object of its own."""
    return f"{_APART}{pointer}"


def is_apart(name: str) -> bool:
    """Whether a name is one of these, which no source has."""
    return name.startswith(_APART)


@frozen
class LaunchConfig:
    """A launch: block and grid extents, dynamic shared memory, constant scalar arguments.

    ``grid is None``: unknown, any number of blocks along the axes that ``grid_axes`` leaves open.
    ``arguments`` maps parameter names to the values that the launch passes as constants. ``assumed``
    says that the source does not fix it. ``made_axes``: axes that ``grid_axes`` leaves open and along which
    the source makes an extent (1: y, 2: z).
    """

    block: Dim3
    grid: Dim3 | None = None
    dynamic_shared: int | None = None  # bytes; None: unknown
    source: LaunchSource = LaunchSource.DEFAULT
    arguments: Mapping[str, int] = field(factory=dict[str, int])
    site: Site | None = None
    grid_axes: Extents = (None, None, None)
    made_axes: frozenset[int] = frozenset()

    @property
    def threads(self) -> int:
        """Of a block."""
        x, y, z = self.block
        return x * y * z

    @property
    def least_grid(self) -> Dim3:
        """The grid's extents, 1 along the axes of which nothing is known."""
        x, y, z = self.grid or (n or 1 for n in self.grid_axes)
        return (x, y, z)

    @property
    def facts(self) -> tuple[object, ...]:
        """What an analysis takes from it; where it stands, and who tells it, do not count."""
        arguments = tuple(sorted(self.arguments.items()))
        return self.block, self.grid, self.grid_axes, self.made_axes, self.dynamic_shared, arguments

    @property
    def assumed(self) -> bool:
        """The source does not tell it."""
        return self.source in (LaunchSource.LEFT_OUT, LaunchSource.BOUNDS, LaunchSource.DEFAULT)


# -------------------------------------------------------------------------------------- findings


class Code(enum.Enum):
    """Diagnostic codes; each has a page under ``docs/codes`` (``cuda-lsp explain CODE``)."""

    SHARED_RACE = "shared-race"
    GLOBAL_RACE = "global-race"
    WARP_RACE = "warp-race"
    WARP_SYNCHRONOUS = "warp-synchronous"
    BANK_CONFLICT = "bank-conflict"
    BARRIER_DIVERGENCE = "barrier-divergence"
    REDUNDANT_BARRIER = "redundant-barrier"
    SHARED_OUT_OF_BOUNDS = "shared-out-of-bounds"
    GLOBAL_OUT_OF_BOUNDS = "global-out-of-bounds"
    SHARED_UNINITIALISED = "shared-uninitialised"
    MISALIGNED_ACCESS = "misaligned-access"
    UNCOALESCED_ACCESS = "uncoalesced-access"
    LAUNCH_LIMIT = "launch-limit"
    ANALYSIS_INCOMPLETE = "analysis-incomplete"


class Status(enum.Enum):
    """How sure a finding is (``docs/semantics.md``)."""

    PROVED = "proved"
    CONDITIONAL = "conditional"
    POSSIBLE = "possible"
    CONFIRMED = "confirmed"
    NOT_OBSERVED = "not observed"


class Severity(enum.IntEnum):
    """The numbers are LSP's DiagnosticSeverity."""

    ERROR = 1
    WARNING = 2
    INFORMATION = 3
    HINT = 4


STATUS_SEVERITY: Mapping[Status, Severity] = {
    Status.PROVED: Severity.ERROR,
    Status.CONFIRMED: Severity.ERROR,
    Status.CONDITIONAL: Severity.WARNING,
    Status.POSSIBLE: Severity.INFORMATION,
    Status.NOT_OBSERVED: Severity.HINT,
}


@frozen
class CodeInfo:
    """One row of the table of codes.

    ``step``: what to do about it, where nothing is known of its cause. ``worst`` caps the severity that the
    status would give (a bank conflict is never an error); ``enabled`` is the default of the code's setting.
    """

    code: Code
    title: str
    step: str
    worst: Severity = Severity.ERROR
    enabled: bool = True


CODES: Mapping[Code, CodeInfo] = {
    row.code: row
    for row in (
        CodeInfo(
            Code.SHARED_RACE, "data race in shared memory",
            "put a barrier between the two accesses, or give each thread a place of its own",
        ),
        CodeInfo(
            Code.GLOBAL_RACE, "data race in global memory",
            "give each thread a place of its own, make both accesses atomic, or end the kernel between them",
        ),
        CodeInfo(
            Code.WARP_RACE, "data race between lanes of one warp",
            "put a `__syncwarp()` between the two accesses",
        ),
        CodeInfo(
            Code.WARP_SYNCHRONOUS, "code that needs the lanes of a warp in lock step",
            "put a `__syncwarp()` between the two accesses, or say `// cuda-lsp: warp-synchronous`",
            Severity.WARNING,
        ),
        CodeInfo(
            Code.BANK_CONFLICT, "shared-memory bank conflict",
            "pad the rows of the array by one element, or let lanes access neighbouring words",
            Severity.WARNING,
        ),
        CodeInfo(
            Code.BARRIER_DIVERGENCE, "barrier that not all threads reach",
            "move the barrier to where all threads come by",
        ),
        CodeInfo(
            Code.REDUNDANT_BARRIER, "barrier that orders nothing",
            "remove it, if the launch stays as it is", Severity.HINT, enabled=False,
        ),
        CodeInfo(
            Code.SHARED_OUT_OF_BOUNDS, "shared-memory index out of bounds",
            "guard the index, or make the array as large as the launch needs it",
        ),
        CodeInfo(
            Code.GLOBAL_OUT_OF_BOUNDS, "access outside the program's allocations",
            "guard the index, or allocate what it reaches",
        ),
        CodeInfo(
            Code.SHARED_UNINITIALISED, "shared memory read before any write",
            "store there before, with a barrier between, or do not read it", Severity.WARNING,
        ),
        CodeInfo(
            Code.MISALIGNED_ACCESS, "access at an address that is no multiple of its size",
            "make the offset a multiple of the access's size, or access the elements one by one",
        ),
        CodeInfo(
            Code.UNCOALESCED_ACCESS, "uncoalesced global access",
            "let neighbouring lanes access neighbouring elements, or stage them in shared memory",
            Severity.INFORMATION,
        ),
        CodeInfo(
            Code.LAUNCH_LIMIT, "launch exceeds a limit of the target",
            "launch less, or loop over what is left",
        ),
        CodeInfo(
            Code.ANALYSIS_INCOMPLETE, "construct that is not analysed",
            "try `check --dynamic`", Severity.INFORMATION,
        ),
    )
}  # fmt: skip


RACES = frozenset({Code.SHARED_RACE, Code.GLOBAL_RACE, Code.WARP_RACE, Code.WARP_SYNCHRONOUS})
"""The codes of data races."""


def severity_of(code: Code, status: Status, *, harmless: bool = False) -> Severity:
    """The default severity of a finding: its status, capped by its code; ``harmless``: by information."""
    severity = max(STATUS_SEVERITY[status], CODES[code].worst)
    return max(severity, Severity.INFORMATION) if harmless else severity


class RaceKind(enum.Enum):
    """By order of program text: the second access read/wrote what the first wrote/read."""

    RAW = "RAW"
    WAR = "WAR"
    WAW = "WAW"


@frozen
class Witness:
    """Two threads, one memory element and the values that make them collide.

    ``threads`` are threadIdx triples, first site's thread first; ``blocks`` likewise, None when both
    are of one (any) block. ``index`` holds one entry per array dimension (element units), or one
    byte offset when the array's shape is unknown; none where the place depends on contents. ``values`` are
    parameters and loop counters.
    ``arguments`` and ``contents`` (array, byte offset, value) are all that was assumed when the two threads
    were replayed, for a run under the same.
    """

    threads: tuple[Dim3, Dim3]
    blocks: tuple[Dim3, Dim3] | None
    array: str
    index: tuple[int, ...]
    values: Mapping[str, int] = field(factory=dict[str, int])
    arguments: Mapping[str, int] = field(factory=dict[str, int], eq=False)
    contents: tuple[tuple[str, int, int], ...] = field(default=(), eq=False)

    @property
    def alone(self) -> bool:
        """One thread is all it takes: an index outside its array, a divergent barrier."""
        return self.threads[0] == self.threads[1] and self.blocks is None

    def __str__(self) -> str:
        return f"{self.array}[{']['.join(map(str, self.index))}]" if self.index else self.array


@frozen
class BankReport:
    """Cost of one shared-memory access site, over every warp that executes it.

    ``ways``: worst number of distinct words one bank serves in one part of a warp. ``wavefronts`` and
    ``ideal``: of the worst warp. ``mean_wavefronts``: over warps. ``histogram``: accesses (distinct
    words) per bank in the worst warp, ``(banks,)``. ``atomic_ways``: worst number of lanes that
    update one address (atomics only, else 1).
    """

    ways: int
    wavefronts: int
    ideal: int
    mean_wavefronts: float
    histogram: tuple[int, ...]
    warp: int = 0
    atomic_ways: int = 1


@frozen
class Related:
    """Another place that belongs to a finding, and what happens there."""

    site: Site
    message: str


@frozen
class Observation:
    """What a dynamic run saw of a finding. ``pairs`` distinct thread pairs, ``words`` distinct words.

    ``instance``: the instance of the template that ran, where the static side analysed others. ``launches``:
    numbers of the program's launches in which it was seen; ``blocks``: in how many blocks (0: not counted).
    ``values``: what the two threads of the example did, ``("wrote 7", "read 5")``; None: not known.
    """

    device: str
    launch: LaunchConfig
    seconds: float
    pairs: int
    words: int
    blocks_checked: int
    blocks_total: int
    instance: str = ""
    launches: tuple[int, ...] = ()
    blocks: int = 0
    values: tuple[str, str] | None = None

    @property
    def told(self) -> str:
        """Where it was seen, how often, what was read and written, and what of the launch was made up.

        Messages, hovers and JSON say it in these words.
        """
        counts = [f"{self.pairs} thread pair{'s' if self.pairs != 1 else ''}"] if self.pairs else []
        counts += [f"in {self.blocks} blocks"] if self.blocks > 1 else []
        counts += [f"one {self.values[0]}, the other {self.values[1]}"] if self.values else []
        instance = f"in {self.instance} " if self.instance else ""
        *first, last = [str(number) for number in self.launches] or [""]
        several = f"launches {', '.join(first)} and {last}" if first else f"launch {last}"
        launches = f" in {several} of the program" if self.launches else ""
        often = f" ({'; '.join(counts)})" if counts else ""
        guess = ", with a launch that the source does not tell" if self.launch.assumed else ""
        return f"seen {instance}on {self.device}{launches}{often}{guess}"


@frozen
class Finding:
    """One thing to tell the user, from either analysis, for every output.

    ``site`` carries the squiggle. ``condition`` is what a conditional finding needs, readable
    (``n > blockDim.x``); ``reason`` is what a possible finding depends on. ``launch`` is the launch
    it was found under. ``missed``: a run saw it
    and the static analysis had not found it, which is a mistake of ours. ``earlier``: it was found in the
    text before an edit, and is being looked for again. ``array``: that a race is on. ``also``: other pairs of
    accesses of the same defect, where these are told together (``report.defects``). ``guessed``: what is read
    is a guess that a compare-and-swap checks. ``parted``: the conditions that say who comes to a barrier.
    ``step``: what to do about it, where more than its code tells.
    """

    code: Code
    status: Status
    message: str
    kernel: str
    site: Site
    related: tuple[Related, ...] = ()
    kind: RaceKind | None = None
    witness: Witness | None = None
    bank: BankReport | None = None
    condition: str | None = None
    reason: str | None = None
    same_value: bool = False
    launch: LaunchConfig | None = None
    observation: Observation | None = None
    severity: Severity | None = None  # None: by severity_of; settings may override
    missed: bool = False
    earlier: bool = False
    array: str | None = None
    also: tuple[Finding, ...] = ()
    guessed: bool = False
    parted: tuple[SourceRange, ...] = ()
    step: str = ""

    @property
    def next_step(self) -> str:
        """What to do about it."""
        return self.step or CODES[self.code].step

    @property
    def effective_severity(self) -> Severity:
        """As the settings have it, else the default."""
        if self.severity is not None:
            return self.severity
        return severity_of(self.code, self.status, harmless=self.same_value or self.guessed)

    @property
    def places(self) -> Iterator[SourceRange]:
        """All stretches of source that it names: its own, related ones, and the calls that lead there."""
        for site in (self.site, *(related.site for related in self.related)):
            yield from (site.range, *site.calls)
        yield from self.parted

    def placed(self, where: Callable[[SourceRange], SourceRange | None]) -> Finding | None:
        """The same ``where`` its places are now; None: one of them is nowhere."""
        places = [where(place) for place in self.places]
        found = [place for place in places if place is not None]
        if len(found) < len(places):
            return None
        rest = iter(found)

        def taken(site: Site) -> Site:
            return evolve(site, range=next(rest), calls=tuple(next(rest) for _ in site.calls))

        site = taken(self.site)
        related = tuple(evolve(r, site=taken(r.site)) for r in self.related)
        told = {
            name: with_lines(text, partial(line_now, self.site.range.path, where))
            for name in ("message", "condition", "reason")
            if (text := getattr(self, name)) is not None
        }
        return evolve(self, site=site, related=related, parted=tuple(rest), **told)

    def moved(self, lines: int, path: Path) -> Finding:
        """The same with its places in the file ``path`` ``lines`` further down."""
        return self.placed(lambda r: r.shifted(lines) if r.path == path else r) or self


# --------------------------------------------------------------------------------------- verdicts


class Verdict(enum.Enum):
    """The three-valued answer for a kernel: race-free only when every pair was decided."""

    RACY = "racy"
    RACE_FREE = "race-free"
    UNDECIDED = "undecided"


@frozen
class KernelReport:
    """All that one analysis says of one kernel.

    ``reasons`` say why it is undecided (or what was left out). ``refined``: the solver has finished
    with it (False: first tier only, more may come). ``launches`` are those analysed, first one shown.
    ``assumptions``: what a race-free verdict takes for granted of the kernel's arguments, for people.
    ``notes``: those of the reasons that tell of dynamic runs. ``guessed``: the template arguments are.
    """

    name: str
    range: SourceRange
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    launches: tuple[LaunchConfig, ...] = ()
    findings: tuple[Finding, ...] = ()
    refined: bool = False
    key: str = ""  # identifies the analysed text and settings; equal key, equal report
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    guessed: bool = False

    @property
    def misses_barrier(self) -> bool:
        """Whether its threads may part at a barrier: free of races or not, nobody calls it clean."""
        return any(finding.code is Code.BARRIER_DIVERGENCE for finding in self.findings)

    def moved(self, lines: int) -> KernelReport:
        """The report of the same kernel ``lines`` further down."""
        if not lines:
            return self
        findings = tuple(finding.moved(lines, self.range.path) for finding in self.findings)
        reasons, assumptions = (
            tuple(with_lines(text, lambda line: line + lines) for text in told)
            for told in (self.reasons, self.assumptions)
        )
        moved = self.range.shifted(lines)
        return evolve(self, range=moved, findings=findings, reasons=reasons, assumptions=assumptions)


@frozen
class ToolError:
    """The tool could not do something: one clear message with the next step.

    ``kernel``: its base name where it is one kernel that could not be made out.
    """

    message: str
    range: SourceRange | None = None
    severity: Severity = Severity.INFORMATION
    kernel: str = ""


@frozen
class FileReport:
    """All that is known of one file at one version. ``seconds``: wall time of the analysis.

    ``kernel_headers``: files of the project with kernels that it includes, each of which has its own report.
    ``unused``: comments that silence nothing, as far as all kernels are decided.
    """

    path: Path
    kernels: tuple[KernelReport, ...] = ()
    errors: tuple[ToolError, ...] = ()
    seconds: float = 0.0
    version: int | None = None
    kernel_headers: tuple[Path, ...] = ()
    unused: tuple[SourceRange, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of all kernels."""
        return tuple(f for k in self.kernels for f in k.findings)
