"""Where the two analyses meet: a kernel that was analysed becomes a dynamic job, its result new findings.

``static`` and ``dynamic`` know nothing of each other; the command line and the server go through here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from types import MappingProxyType

from attrs import evolve, frozen

from cuda_lsp.cache_folder import cache_folder
from cuda_lsp.config import Settings
from cuda_lsp.dynamic.compilation.compile import CompileOptions
from cuda_lsp.dynamic.inputs import unknown_scalar, with_grid
from cuda_lsp.dynamic.job import (
    CheckJob,
    CheckResult,
    ElementKind,
    EngineKind,
    Parameter,
    Piece,
    Places,
    Shape,
    Trial,
    is_wanted,
    places_of,
)
from cuda_lsp.dynamic.observations.merge import merged
from cuda_lsp.dynamic.observations.notes import ending
from cuda_lsp.dynamic.observations.places import waiting_places
from cuda_lsp.dynamic.runner import Runner
from cuda_lsp.dynamic.runs import Detail
from cuda_lsp.frontend.surroundings.compile_commands import options_for
from cuda_lsp.frontend.surroundings.units import is_header
from cuda_lsp.frontend.toolchain import FrontendOptions
from cuda_lsp.hardware import architecture_number
from cuda_lsp.ir.program import Array, Kernel, Member
from cuda_lsp.ir.types import Float, Int, Opaque, Pointer
from cuda_lsp.model import (
    RACES,
    Code,
    Dim3,
    FileReport,
    Finding,
    KernelReport,
    LaunchConfig,
    LaunchSource,
    Position,
    Severity,
    SourceRange,
    Status,
    ToolError,
    Verdict,
    linear_index,
)
from cuda_lsp.overloads import why_not_run
from cuda_lsp.static import run_needs
from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.static.run_needs import Elements

Progress = Callable[[str], None]
Cancelled = Callable[[], bool]

_MAX_TRIALS = 8
_MAX_LAUNCHES = 4  # of the source
_MOST_BLOCKS = 1 << 16  # of a grid that only a witness tells
_LONGEST_OUTPUT = 1 << 16
_LARGEST_SCALAR = 1024
_MOST_OFFSETS = 1 << 14  # offsets of rows are below it
_LARGEST_ARGUMENT = 1 << 24  # of those that a solver chose
_TRIED = (Status.PROVED, Status.CONDITIONAL, Status.POSSIBLE)


@frozen
class CheckOptions:
    """What the user chose for a dynamic check."""

    engine: EngineKind = EngineKind.AUTO
    detail: Detail = Detail.PAIRS
    all_blocks: bool = False
    watch_all: bool = False
    seed: int = 0
    deadline: float = 20.0
    nvcc: Path | None = None


def job_for(
    path: Path, text: str, kernel: Kernel, report: KernelReport, settings: Settings, options: CheckOptions
) -> CheckJob:
    """What to run for one kernel."""
    options = chosen(options, settings)
    trials, untried = _trials(kernel, report, settings)
    return CheckJob(
        path=path,
        text=text + (kernel.instantiated_by or asked_for(path, report.name)),
        kernel=report.name,
        base_name=report.name.split("<")[0],
        mangled=kernel.mangled,
        range=report.range,
        parameters=_filled_parameters(kernel, report),
        trials=trials,
        options=compile_options(settings, path),
        cache=cache_folder(),
        engine=options.engine,
        nvcc=options.nvcc,
        detail=options.detail,
        all_blocks=options.all_blocks,
        watch=options.watch_all or not proved_free(report),
        suspects=tuple(map(places_of, filter(_is_suspected, report.findings))),
        untried=untried,
        proved=frozenset() if options.watch_all else run_needs.proved_sites(kernel, report),
        releases=run_needs.lock_releases(kernel),
        shapes=kernel_shapes(kernel),
        seed=options.seed,
        deadline=options.deadline,
        gpu_memory=(settings.gpu_memory or 0) << 20,
        lock_step=runs_in_lock_step(kernel, settings),
    )


def asked_for(path: Path, kernel: str) -> str:
    """What has a compiler make an instance of a template in a header: another file asks for it."""
    if "<" not in kernel or not is_header(path):
        return ""
    return f"\nvoid __cuda_lsp_asked_for() {{ (void)&{kernel}; }}\n"


def made_ready(_: Analyzer) -> None:
    """Have the process of the analysis know this module before it is asked for a job."""


def kernel_job(
    path: Path, text: str, report: KernelReport, options: CheckOptions, analyzer: Analyzer
) -> CheckJob | None:
    """What to run for a kernel as the analyzer knows it; None: it does not."""
    kernel = analyzer.kernel(path, report.name)
    return kernel and job_for(path, text, kernel, report, analyzer.settings_of(path), options)


def chosen(options: CheckOptions, settings: Settings) -> CheckOptions:
    """The options, and what the settings say where they are silent."""
    return evolve(
        options,
        detail=options.detail if options.detail is not Detail.PAIRS else Detail(settings.detail),
        all_blocks=options.all_blocks or settings.all_blocks,
        watch_all=options.watch_all or settings.watch_all,
        nvcc=options.nvcc or (Path(settings.nvcc) if settings.nvcc else None),
    )


def compile_options(settings: Settings, path: Path | None = None) -> CompileOptions:
    """What the settings say to a compiler, and the compilation database that governs ``path``."""
    options = FrontendOptions.of(settings)
    if path is not None:
        options, _ = options_for(path.absolute(), options)  # the analysis tells what is wrong with it
    return CompileOptions(
        tuple(Path(folder) for folder in options.include_dirs),
        options.defines,
        _real_architecture(settings.arch),
        options.std.replace("gnu++", "c++"),  # nvcc knows these only
        (*options.arguments, *options.device),
    )


def proved_free(report: KernelReport) -> bool:
    """Whether the static side proved the kernel race-free: it need not be watched for races."""
    return report.verdict is Verdict.RACE_FREE and report.refined


def runs_in_lock_step(kernel: Kernel, settings: Settings) -> bool:
    """Whether different instructions of one warp are ordered: an old GPU, or the source says so."""
    return kernel.directives.warp_synchronous or not settings.gpu.independent_threads


def kernel_jobs(
    options: CheckOptions, wanted: Sequence[str], analyzer: Analyzer, text: str, report: FileReport
) -> tuple[CheckJob, ...]:
    """What to run for those of a file's kernels that are known and ``wanted``, by name; none: all."""
    jobs = (
        kernel_job(report.path, text, kernel, options, analyzer)
        for kernel in report.kernels
        if is_wanted(kernel.name, wanted)
    )
    return tuple(job for job in jobs if job is not None)


def check_kernels(
    report: FileReport,
    jobs: Iterable[CheckJob],
    runner: Runner,
    progress: Progress = lambda stage: None,
    cancelled: Cancelled = lambda: False,
    printed: Callable[[str], None] = lambda text: None,
) -> FileReport:
    """``report`` after the ``jobs`` for its kernels were run. Raises CheckCancelled.

    ``printed`` is told what each kernel prints.
    """
    to_run = {job.kernel: job for job in jobs}
    kernels: list[KernelReport] = []
    errors: list[ToolError] = []
    for kernel in report.kernels:
        job = to_run.get(kernel.name)
        if job is None:
            kernels.append(kernel)
            continue
        if why := why_not_run(kernel, report):
            kernels.append(kernel)
            errors.append(ToolError(why, kernel.range, Severity.WARNING, kernel.name))
            continue
        result = runner.run(job, lambda stage, name=kernel.name: progress(f"{name}: {stage}"), cancelled)
        errors += problems_of(result, kernel)
        said = output_of(result)
        if said:
            printed(said)
        kernels.append(merged(kernel, result, job.shapes))
    return evolve(report, kernels=tuple(kernels), errors=(*report.errors, *dict.fromkeys(errors)))


def output_of(result: CheckResult) -> str:
    """What the kernel printed, by run; the end of it, if it is long."""
    parts: list[str] = []
    for trial in result.results:
        text = trial.races.output
        if text:
            under = f" ({trial.trial.why})" if len(result.results) > 1 else ""
            ends = "" if text.endswith("\n") else "\n"
            parts.append(f"{result.kernel}{under} printed:\n{text[-_LONGEST_OUTPUT:]}{ends}")
    return "".join(parts)


def problems_of(result: CheckResult, report: KernelReport) -> Sequence[ToolError]:
    """What kept a check from running, for people."""
    if result.errors:
        return result.errors
    return [ToolError(f"{report.name}: {result.problem}", report.range)] if result.problem else []


def failure_of(result: CheckResult) -> str | None:
    """Why the kernel did not come to its end in the run that was meant, for people."""
    if not result.results or result.results[0].races.failure is None:
        return None
    return f"{result.kernel}: {'; '.join(ending(result, result.results[0]))}"


def endings_of(result: CheckResult, report: KernelReport) -> tuple[ToolError, ...]:
    """Where threads were when a run ended early, each place once: loops without end, faults, barriers.

    Of a run that tells no place it is the kernel's first line.
    """
    found: dict[SourceRange, ToolError] = {}
    for trial in result.results:
        failure = trial.races.failure
        if failure is None:
            continue
        late = any(stuck.late for stuck in trial.races.stuck)
        severity = Severity.WARNING if late else Severity.ERROR
        said = f"{report.name} did not come to its end on {result.device}: {failure}"
        places = [(stuck, *place) for stuck in trial.races.stuck for place in waiting_places(stuck, result)]
        for stuck, site, text, count, _ in places:
            if site.site is not None:
                who = (
                    f"{count} {'thread' if count == 1 else 'threads'} of block {stuck.block} are"
                    if count
                    else "it is"
                )
                where = f"{said}; {who} at `{text}`"
                found.setdefault(site.site.range, ToolError(where, site.site.range, severity))
        if not places:
            start = report.range.start
            line = evolve(report.range, end=Position(start.line + 1, 1))
            found.setdefault(line, ToolError(said, line, severity))
    return tuple(found.values())


def _trials(
    kernel: Kernel, report: KernelReport, settings: Settings
) -> tuple[tuple[Trial, ...], dict[Places, str]]:
    """The launches of the source, then one run for each condition that findings need; what none can show."""
    launches = _different(report.launches) or [LaunchConfig((256, 1, 1), source=LaunchSource.DEFAULT)]
    none: frozenset[Places] = frozenset()
    trials = [Trial(launch, _scalars(kernel, launch), "the launch", shows=none) for launch in launches]
    untried: dict[Places, str] = {}
    for finding in sorted(filter(_is_sought, report.findings), key=lambda f: _TRIED.index(f.status)):
        trial = _under_condition(kernel, finding, finding.launch or launches[0])
        known = next((k for k, other in enumerate(trials) if _same(trial, other)), None)
        if beyond := _beyond(kernel, finding, trial):
            untried[places_of(finding)] = beyond
        elif known is not None:
            trials[known] = _both(trials[known], trial)
        elif len(trials) < _MAX_TRIALS:
            trials.append(trial)
        else:
            untried[places_of(finding)] = f"{_MAX_TRIALS} runs are made at most"
    return tuple(_sized(kernel, trial, settings) for trial in trials), untried


def _both(one: Trial, other: Trial) -> Trial:
    """A run that shows what either does; their inputs are the same."""
    return evolve(
        one,
        blocks=tuple(sorted({*one.blocks, *other.blocks})),
        shows=(one.shows or frozenset()) | (other.shows or frozenset()),
        enough=tuple(sorted({*one.enough, *other.enough})),
    )


def _beyond(kernel: Kernel, finding: Finding, trial: Trial) -> str:
    """Why a run is too small for what a race was found with; "": it is not."""
    witness = finding.witness
    if witness is None:
        return ""
    large = [f"`{n}` == {v}" for n, v in _needed(kernel, finding).items() if abs(v) > _LARGEST_ARGUMENT]
    if large:
        return f"it needs {large[0]}, and arguments are {_LARGEST_ARGUMENT:,} at most"
    if witness.blocks is not None and not trial.blocks:
        return f"it needs block {witness.blocks[1]}, which the grid of the run lacks"
    return ""


def _is_suspected(finding: Finding) -> bool:
    return finding.code in RACES and finding.status in _TRIED


def _is_sought(finding: Finding) -> bool:
    return finding.kind is not None and finding.status in _TRIED


def _different(launches: Sequence[LaunchConfig]) -> list[LaunchConfig]:
    """Those of the source that differ in what a run can show, the first ones."""
    found: dict[object, LaunchConfig] = {}
    for launch in launches:
        known = with_grid(launch)
        found.setdefault((known.block, known.grid, known.dynamic_shared, str(launch.arguments)), launch)
    return list(found.values())[:_MAX_LAUNCHES]


def _needed(kernel: Kernel, finding: Finding) -> dict[str, int]:
    """The arguments that a race was found with, where it does not hold for all."""
    witness = finding.witness
    if witness is None or finding.status is Status.PROVED:
        return {}
    names = {p.name for p in kernel.params if isinstance(p.type, Int)}
    return {n: v for n, v in {**witness.arguments, **witness.values}.items() if n in names}


def _under_condition(kernel: Kernel, finding: Finding, launch: LaunchConfig) -> Trial:
    """A run in which the finding's condition holds."""
    witness = finding.witness if finding.status is not Status.PROVED else None
    values = {n: v for n, v in _needed(kernel, finding).items() if abs(v) <= _LARGEST_ARGUMENT}
    scalars = {**_scalars(kernel, launch), **values}
    # What only a possible race needs may be what the program never does: a scatter by a permutation.
    cells = witness.contents if witness is not None and finding.status is Status.CONDITIONAL else ()
    conditioned = finding.status is not Status.PROVED and not cells
    known = {**scalars, **launch.arguments}
    contents = run_needs.contents_for(kernel, finding, launch, known) if conditioned else {}
    blocks = finding.witness.blocks if finding.witness is not None else None
    launch, numbers = _reaching(launch, blocks or ())
    needs = "data" if contents or cells else "blocks" if numbers else "launch"
    why = (finding.condition or "").removeprefix(
        "for example "
    ) or f"the {needs} that line {finding.site.range.start.line} depends on"
    shared = finding.code in (Code.SHARED_RACE, Code.WARP_RACE, Code.WARP_SYNCHRONOUS)
    enough = tuple(sorted(set(numbers))) or ((0,) if shared else (0, 1))
    shows = frozenset({places_of(finding)})
    return Trial(launch, scalars, why, contents, cells, blocks=numbers, shows=shows, enough=enough)


def _reaching(launch: LaunchConfig, blocks: Sequence[Dim3]) -> tuple[LaunchConfig, tuple[int, ...]]:
    """The launch with a grid that holds some blocks, and their linear numbers."""
    if not blocks:
        return launch, ()
    grid = launch.grid or (4, 1, 1)
    if launch.grid is None:
        x, y, z = (max(n, 1 + max(block[k] for block in blocks)) for k, n in enumerate(grid))
        grid = (x, y, z)
        if prod(grid) > _MOST_BLOCKS:
            return launch, ()
    if any(b >= n for block in blocks for b, n in zip(block, grid, strict=True)):
        return launch, ()
    return evolve(launch, grid=grid), tuple(linear_index(b, grid) for b in blocks)


def _same(a: Trial, b: Trial) -> bool:
    return _inputs(a) == _inputs(b)


def _inputs(trial: Trial) -> tuple[object, ...]:
    return with_grid(trial.launch), trial.scalars, trial.contents, trial.cells


def _sized(kernel: Kernel, trial: Trial, settings: Settings) -> Trial:
    launch = with_grid(trial.launch)
    scalars = {**trial.scalars, **launch.arguments}
    needs = run_needs.buffer_bytes(kernel, launch, scalars, settings.gpu)
    spare = run_needs.spare_shared(kernel, trial.launch, settings.gpu)
    placed = run_needs.shared_places(kernel, scalars, unknown_scalar(launch))
    return evolve(trial, needs=needs, spare_shared=spare, placed=placed)


def _scalars(kernel: Kernel, launch: LaunchConfig) -> dict[str, int]:
    natural = run_needs.sample(kernel, launch) or {}
    return {
        name: value if name in launch.arguments else min(value, _LARGEST_SCALAR)
        for name, value in natural.items()
    }


def _filled_parameters(kernel: Kernel, report: KernelReport) -> tuple[Parameter, ...]:
    """The kernel's parameters, with what a run has to put into them."""
    launch = report.launches[0] if report.launches else LaunchConfig((256, 1, 1))
    return kernel_parameters(kernel, run_needs.elements_of(kernel, with_grid(launch)))


def kernel_parameters(
    kernel: Kernel, elements: Mapping[str, Elements] = MappingProxyType({})
) -> tuple[Parameter, ...]:
    """The kernel's parameters as they are passed; ``elements``: what pointers, by name, have to point to."""
    arrays = {array.param.name: array for array in kernel.arrays if array.param is not None}

    def piece(member: Member) -> Piece:
        return _piece(member, arrays.get(member.name), elements.get(member.name, Elements()))

    return tuple(Parameter(p.name, tuple(map(piece, p.members)), p.size) for p in kernel.layout)


def _piece(member: Member, array: Array | None, elements: Elements) -> Piece:
    type = member.type
    if not isinstance(type, Pointer):
        return Piece(member.name, member.offset, max(1, type.size), fraction=isinstance(type, Float))
    element = array.element if array is not None else member.pointee
    contents = (
        ElementKind.OTHER if elements.counter
        else ElementKind.FLOAT if isinstance(element, Float)
        else ElementKind.OTHER if isinstance(element, Opaque)
        else ElementKind.INTEGER
    )  # fmt: skip
    size = element.size if element is not None else type.pointee_size
    piece = Piece(member.name, member.offset, 8, True, max(size, 1), contents)
    usual = _MOST_OFFSETS if elements.ascending else piece.limit
    limit = usual if elements.below is None else min(usual, elements.below)
    return evolve(piece, limit=limit, ascending=elements.ascending, forest=elements.forest)


def kernel_shapes(kernel: Kernel) -> dict[str, Shape]:
    """The kernel's arrays by name."""
    return {
        array.name: Shape(max(array.element.size, 1), tuple(n or 0 for n in array.shape))
        for array in kernel.arrays
    }


def _real_architecture(arch: str) -> str:
    """The nearest architecture that today's compilers still know (sm_75 and up)."""
    return arch if (architecture_number(arch) or 0) >= 75 else "sm_75"
