"""Launches of a whole program on the emulator: every block is executed, some are checked.

The program keeps its memory in one ``Heap``. A launch that is checked runs its sampled blocks first, from the
O0 build with the detector; then come all other blocks from the O3 build, many at a time. Blocks of one
group run together, groups one after the other: what spins on a later block is told as stuck.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import prod

from attrs import define, evolve, field, frozen

from cuda_lsp.dynamic.compilation.compile import CompiledModule
from cuda_lsp.dynamic.compilation.releases import with_releases
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.emulator.clusters import ALONE, every, whole
from cuda_lsp.dynamic.emulator.engine import DEVICE, EmulatorEngine, Launch, cluster_size, merged
from cuda_lsp.dynamic.emulator.heap import Heap, Needs
from cuda_lsp.dynamic.emulator.memory import Memory, TooMuchMemory
from cuda_lsp.dynamic.emulator.translate import Program
from cuda_lsp.dynamic.job import CheckResult
from cuda_lsp.dynamic.programs.instances import LIBRARY, Instances, Tally, instances
from cuda_lsp.dynamic.programs.job import Checked, KernelRuns, ProgramKernel, argument_names, results_of
from cuda_lsp.dynamic.ptx.names import stable
from cuda_lsp.dynamic.runs import ASSERTION, Detail, EngineUnavailable, KernelRun, PtxSite, RunOutcome
from cuda_lsp.dynamic.sampling import first_and_last_blocks
from cuda_lsp.model import Dim3, LaunchConfig, LaunchSource

SUCCESS, FAILED, TIMEOUT, ASSERTED, UNSUPPORTED = 0, 719, 702, 710, 801  # cudaError_t
_CHECKED = frozenset({1, 2, 4, 8, 32, 128})  # which launches of a kernel are checked
_TOGETHER = 1 << 14  # threads of the groups that are not checked
_MOST_TOGETHER = 1 << 16  # blocks
_SNAPSHOT = 1 << 28  # bytes beyond which a launch is not run twice


@frozen
class Call:
    """A launch as the program asks for it. ``arguments``: parameter after parameter, unpadded."""

    entry: str
    grid: Dim3
    block: Dim3
    shared: int
    arguments: bytes
    together: bool = False  # a cooperative launch: all blocks at once
    cluster: Dim3 = ALONE  # its blocks, where the kernel does not say


@define
class Host:
    """Executes the calls of one program. ``modules``: the O0 and the O3 build of each of its sources."""

    heap: Heap
    modules: Sequence[tuple[CompiledModule, CompiledModule]]
    kernels: Sequence[ProgramKernel]
    wanted: Sequence[str] = ()
    detail: Detail = Detail.PAIRS
    all_blocks: bool = False
    deadline: float = 0.0  # monotonic
    unplaced: str = LIBRARY  # why kernels are not checked whose code stands nowhere
    checked: dict[str, list[Checked]] = field(
        factory=lambda: defaultdict[str, list[Checked]](list)
    )  # by entry
    problems: dict[str, str] = field(factory=dict[str, str])  # entry → why it did not run
    launches: int = 0
    before_launch: Callable[[], None] = lambda: None
    _engine: EmulatorEngine = field(factory=EmulatorEngine)
    _waiting: list[Call] = field(factory=list[Call])  # what kernels launched
    instances: Instances = field(init=False)
    tally: Tally = field(init=False)
    _sites: dict[tuple[str, bool], tuple[PtxSite, ...]] = field(
        factory=dict[tuple[str, bool], tuple[PtxSite, ...]]
    )
    _watched: dict[tuple[str, bool], tuple[CompiledModule, tuple[PtxSite, ...]]] = field(
        factory=dict[tuple[str, bool], tuple[CompiledModule, tuple[PtxSite, ...]]]
    )

    def __attrs_post_init__(self) -> None:
        for pair in self.modules:
            for compiled in pair:
                self.heap.declare(compiled.module)
        self.instances = instances(self.modules, self.kernels, self.wanted, self.unplaced)
        self.tally = Tally(self.instances, _CHECKED)

    # ------------------------------------------------------------------------ what the program asks

    def parameters(self, entry: str) -> tuple[int, ...]:
        """Bytes of each parameter of a kernel; nothing when it is unknown."""
        entry = stable(entry)
        home = self.instances.homes.get(entry)
        return tuple(p.size or 8 for p in home[0].module.entries[entry].params) if home is not None else ()

    def variable(self, name: str) -> int:
        """Address of a variable, 0 when no module has it."""
        region = self.heap.variable(stable(name))
        return region.start if region else 0

    def turn_to(self, device: int) -> bool:
        """What comes next is asked of this device. False: its variables find no memory."""
        try:
            self.heap.turn_to(device, [compiled.module for pair in self.modules for compiled in pair])
        except TooMuchMemory:
            return False
        return True

    def launch(self, call: Call) -> tuple[int, str]:
        """Execute one launch, then those that its kernel made. The runtime's error number, and what they
        printed."""
        error, printed = self._launched(call)
        while self._waiting and error == SUCCESS:
            if time.monotonic() > self.deadline:
                error = TIMEOUT
                break
            error, more = self._launched(self._waiting.pop(0))
            printed += more
        self._waiting.clear()
        return error, printed

    def _launched(self, call: Call) -> tuple[int, str]:
        self.launches += 1
        self.before_launch()
        call = evolve(call, entry=stable(call.entry))
        entry, home = call.entry, self.instances.homes.get(stable(call.entry))
        self.tally.launched(entry)
        if home is None:
            self.problems[entry] = f"{entry} is in no source that was given"
            self.tally.refused(entry, self.problems[entry])
            return UNSUPPORTED, ""
        kernel = self.instances.kernels.get(entry)
        try:
            done: tuple[int, ...] = ()
            printed, error = "", SUCCESS
            if self.tally.chosen(entry) and kernel is not None:
                try:
                    done, printed, error = self._check(call, home[0], home[1], kernel)
                except EngineUnavailable as problem:
                    self.tally.refused(entry, str(problem))
                    raise
                self.tally.checked(entry)
            if error == SUCCESS:
                more, error = self._rest(call, home[1], frozenset(done), kernel)
                printed += more
        except EngineUnavailable as problem:
            self.problems[entry] = str(problem)
            return UNSUPPORTED, ""
        return error, printed

    def runs(self) -> tuple[KernelRuns, ...]:
        """What became of all launches."""
        return self.tally.runs({
            entry: KernelRuns(
                self.instances.name_of(entry), self.instances.kernels[entry], self.tally.counts[entry],
                (CheckResult(
                    self.instances.name_of(entry), DEVICE, results_of(self.checked[entry]),
                    self._sites.get((entry, True), ()), self._sites.get((entry, False), ()),
                ),),
            )
            for entry in self.checked
        })  # fmt: skip

    # ---------------------------------------------------------------------------------- execution

    def _check(
        self, call: Call, plain: CompiledModule, optimised: CompiledModule, kernel: ProgramKernel
    ) -> tuple[tuple[int, ...], str, int]:
        """Run the blocks to check. Which they were, what they printed, the error."""
        blocks = self._sample(call, plain)
        before = self.heap.snapshot() if self.heap.used <= _SNAPSHOT else None
        banks = None
        if before is not None:
            banks = self._run(call, optimised, blocks, kernel, banks=True)
            self.heap.restore(before)
        races = self._run(call, plain, blocks, kernel, races=kernel.watch)
        if races.races and before is not None and races.failure is None:
            self.heap.restore(before)
            races = merged(races, self._run(call, plain, blocks, kernel, races=True, backwards=True))
        if races.failure is not None:
            self.problems.setdefault(call.entry, races.failure)
        number = self.tally.counts[call.entry].launches
        self.checked[call.entry].append(Checked(_config(call), races, banks, number))
        if before is not None and races.failure is None:
            self.heap.restore(before)  # results come from one build: O0 and O3 round differently
            return (), "", SUCCESS
        self._take(races)
        return blocks, races.output, _error(races)

    def _take(self, outcome: RunOutcome) -> None:
        """What the kernel launched waits until it has ended."""
        self._waiting += [
            Call(one.entry, one.grid, one.block, one.shared, one.arguments) for one in outcome.launched
        ]

    def _rest(
        self, call: Call, optimised: CompiledModule, done: frozenset[int], kernel: ProgramKernel | None
    ) -> tuple[str, int]:
        program = self._engine.translated(optimised.ptx, call.entry)
        cluster = cluster_size(program, call.cluster, call.grid)
        left = (b for b in every(call.grid, cluster) if b not in done)
        few = max(1, _TOGETHER // _config(call).threads // prod(cluster)) * prod(cluster)
        size = len(_all(call)) if call.together or program.grid_wide else few
        printed = ""
        while blocks := tuple(islice(left, size)):
            outcome = self._run(call, optimised, blocks, kernel)
            printed += outcome.output
            self._take(outcome)
            if outcome.failure is not None:
                self.problems.setdefault(call.entry, outcome.failure)
                return printed, _error(outcome)
        return printed, SUCCESS

    def _sample(self, call: Call, compiled: CompiledModule) -> tuple[int, ...]:
        """The blocks to check, in whole clusters; all of a cooperative launch."""
        few = None
        if not self.all_blocks and not call.together:
            few = first_and_last_blocks(call.grid, _config(call).threads)
        if few is None:
            return tuple(_all(call))
        program = self._engine.translated(compiled.ptx, call.entry)
        return whole(few, call.grid, cluster_size(program, call.cluster, call.grid))

    def _run(
        self,
        call: Call,
        compiled: CompiledModule,
        blocks: tuple[int, ...],
        kernel: ProgramKernel | None,
        races: bool = False,
        banks: bool = False,
        backwards: bool = False,
    ) -> RunOutcome:
        checked = banks or compiled is self.instances.homes[call.entry][0]
        sites: tuple[PtxSite, ...] = ()
        if checked:
            compiled, sites = self._as_watched(compiled, call.entry, kernel)
        request = KernelRun(
            ptx=compiled.ptx,
            entry=call.entry,
            launch=_config(call),
            arguments=(),
            sites=sites,
            blocks=blocks,
            detail=self.detail,
            races=races,
            banks=banks,
            deadline=max(0.1, self.deadline - time.monotonic()),
            lock_step=kernel.lock_step if kernel else False,
            cluster=call.cluster,
        )
        program = self._engine.translated(compiled.ptx, call.entry)
        names = argument_names(kernel, list(_split(program, call.arguments))) if kernel else {}

        def lay(program: Program, request: KernelRun, count: int) -> Memory:
            flat = program.kernel
            return self.heap.memory(Needs(
                _packed(program, call.arguments), tuple(flat.variables.values()), program.module, count,
                request.launch.threads, call.shared, names,
            ))  # fmt: skip

        return Launch(program, request, backwards, lay, len(blocks)).outcome()

    def _sites_of(self, compiled: CompiledModule, entry: str) -> tuple[PtxSite, ...]:
        key = (entry, compiled is self.instances.homes[entry][0])
        if key not in self._sites:
            self._sites[key] = sites_of(compiled, entry)
        return self._sites[key]

    def _as_watched(
        self, compiled: CompiledModule, entry: str, kernel: ProgramKernel | None
    ) -> tuple[CompiledModule, tuple[PtxSite, ...]]:
        """A kernel's code and sites with its locks' releases, made once for all of its launches."""
        key = (entry, compiled is self.instances.homes[entry][0])
        if key not in self._watched:
            releases = kernel.releases if kernel is not None else ()
            self._watched[key] = with_releases(compiled, self._sites_of(compiled, entry), releases)
        return self._watched[key]


def _all(call: Call) -> range:
    """All blocks of a launch that runs them together. Raises EngineUnavailable."""
    total = prod(call.grid)
    if total > _MOST_TOGETHER:
        raise EngineUnavailable(
            f"{total:,} blocks at once are too many for the emulator (at most {_MOST_TOGETHER:,})"
        )
    return range(total)


def _config(call: Call) -> LaunchConfig:
    return LaunchConfig(call.block, call.grid, call.shared, LaunchSource.PROGRAM)


def _error(outcome: RunOutcome) -> int:
    if outcome.failure is None:
        return SUCCESS
    if outcome.failure.startswith(ASSERTION):
        return ASSERTED
    return TIMEOUT if "deadline" in outcome.failure else FAILED


def _packed(program: Program, arguments: bytes) -> bytes:
    """Each argument at its offset."""
    packed = bytearray(program.kernel.param_bytes)
    places = program.kernel.params.values()
    for (start, size), value in zip(places, _split(program, arguments), strict=True):
        packed[start : start + size] = value
    return bytes(packed)


def _split(program: Program, arguments: bytes) -> Iterator[bytes]:
    given = 0
    for _, size in program.kernel.params.values():
        yield arguments[given : given + size]
        given += size


__all__ = ["Call", "Host"]
