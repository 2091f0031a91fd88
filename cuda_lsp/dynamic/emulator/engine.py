"""The emulator as an engine: a ``KernelRun`` in, a ``RunOutcome`` out.

Only the blocks to check are executed. Where conflicting accesses were seen the launch is run once more with
the opposite order of warps, because control flow may have depended on the racy values.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from attrs import evolve

from cuda_lsp.dynamic.emulator.accesses import Costly, WarpRows
from cuda_lsp.dynamic.emulator.clusters import fits, whole
from cuda_lsp.dynamic.emulator.detect import Detector, Found
from cuda_lsp.dynamic.emulator.lanes import Lanes
from cuda_lsp.dynamic.emulator.machine import Machine
from cuda_lsp.dynamic.emulator.memory import Memory, TooMuchMemory, lay_out
from cuda_lsp.dynamic.emulator.native.library import LIBRARY
from cuda_lsp.dynamic.emulator.order import Order, Unfollowed
from cuda_lsp.dynamic.emulator.program import Program
from cuda_lsp.dynamic.emulator.services import Services
from cuda_lsp.dynamic.emulator.translate import translate
from cuda_lsp.dynamic.emulator.waits import Waiting
from cuda_lsp.dynamic.ptx.directives import cluster_of, counts_clusters
from cuda_lsp.dynamic.ptx.flatten import Untranslatable, access_bytes
from cuda_lsp.dynamic.ptx.module import Instruction
from cuda_lsp.dynamic.ptx.names import kernel_name
from cuda_lsp.dynamic.ptx.opcodes import Role, row_named, row_of
from cuda_lsp.dynamic.ptx.reader import PtxSyntaxError, read_module
from cuda_lsp.dynamic.runs import (
    WARP,
    Detail,
    EngineUnavailable,
    KernelRun,
    Place,
    RunOutcome,
    SeenBanks,
    SeenFault,
    SeenFlag,
    SeenRace,
    SiteKind,
    Stuck,
    opcodes_of,
)
from cuda_lsp.model import Dim3, Mode, Space
from cuda_lsp.wavefronts import warp_wavefronts

Array = Any

DEVICE = "CPU emulator"
OUTSIDE = "accesses that leave their buffer for another one; they race with nothing"
_MAX_THREADS = 1 << 16
_KEPT = 64
_WATCHED_HERE = ("mapa", "st.async", "red.async", "cp.async.bulk")  # of those that no probe covers


def remarks() -> tuple[str, ...]:
    """What people are told of how kernels are executed here: nothing, unless it is slow."""
    why = LIBRARY.problem
    return () if why is None else (f"emulated in NumPy, several times slower than in C: {why}",)


class EmulatorEngine:
    """Runs kernels on the CPU. Translations are kept by the text of their module.

    ``keep_results``: buffers after the run, in the outcome. ``compiled``: in the C engine, made if need be,
    or not; None: as soon as it is there.
    """

    def __init__(self, keep_results: bool = False, compiled: bool | None = None) -> None:
        self.keep_results, self.compiled = keep_results, compiled
        self._programs: OrderedDict[tuple[int, str], Program] = OrderedDict()

    @property
    def usable(self) -> bool:
        """Always: nothing that a kernel does outlasts its run."""
        return True

    @property
    def device(self) -> str:
        """What runs the kernels, for people."""
        return DEVICE

    def foresee(self, request: KernelRun) -> None:
        """Nothing: what a run needs is made when it is needed."""

    def run(self, request: KernelRun, progress: Callable[[str], None]) -> RunOutcome:
        """Execute and check one launch. Raises EngineUnavailable when the kernel cannot be emulated."""
        progress("translating")
        program = self.translated(request.ptx, request.entry)
        progress("running")
        first, second = (_in_another_order, None) if request.backwards else (None, _in_another_order)
        run = Launch(program, request, request.backwards, first, compiled=self.compiled)
        outcome = run.outcome(self.keep_results)
        left = request.deadline - run.seconds
        if outcome.races and request.races and outcome.failure is None and left > 0:
            request = evolve(request, deadline=left)
            again = Launch(program, request, not request.backwards, second, compiled=self.compiled).outcome()
            outcome = merged(outcome, again)
        return outcome

    def translated(self, ptx: str, entry: str) -> Program:
        """The kernel as generated code. Raises EngineUnavailable."""
        key = (hash(ptx), entry)
        known = self._programs.get(key)
        if known is None:
            try:
                known = self._programs[key] = translate(read_module(ptx), entry)
            except (Untranslatable, PtxSyntaxError) as problem:
                opcodes = problem.opcodes if isinstance(problem, Untranslatable) else ()
                advice = "; use a GPU for it" if opcodes else ""
                raise EngineUnavailable(
                    f"the CPU emulator cannot run this kernel: {problem}{advice}", opcodes
                ) from problem
            while len(self._programs) > _KEPT:
                self._programs.popitem(last=False)
        return known


Lay = Callable[[Program, KernelRun, int], Memory]  # for so many blocks


class Launch:
    """One execution. ``lay`` makes its memory, and its maker runs what the kernel launches; without it the
    kernel runs by itself.

    ``most``: blocks to execute at once, at most.
    """

    def __init__(
        self,
        program: Program,
        request: KernelRun,
        backwards: bool = False,
        lay: Lay | None = None,
        most: int | None = None,
        compiled: bool | None = None,
    ) -> None:
        self.program, self.request = program, request
        grid = request.launch.grid or (1, 1, 1)
        deadline = time.monotonic() + request.deadline
        self.total = math.prod(grid)
        sampled = None if program.grid_wide else request.blocks
        cluster = cluster_size(program, request.cluster, grid)
        wanted = whole(sampled if sampled is not None else range(self.total), grid, cluster)
        allowed = most if most is not None else max(1, _MAX_THREADS // request.launch.threads)
        together = math.prod(cluster)
        self.blocks = tuple(wanted[: max(allowed // together, 1) * together])
        self.cut = len(self.blocks) < len(wanted)
        self.lanes = Lanes(request.launch.block, grid, self.blocks, cluster)
        try:
            self.memory = (lay or _alone)(program, request, len(self.blocks))
        except TooMuchMemory as problem:
            raise EngineUnavailable(str(problem)) from problem
        self.site_of = _site_numbers(program, request)
        order = Order(self.lanes) if request.races else Unfollowed(self.lanes)
        detector = (
            Detector(
                self.memory,
                self.lanes,
                order,
                len(self.blocks) > 1,
                program.kernel.reaches_peers,
                request.lock_step,
                deadline,
            )
            if request.races
            else None
        )
        if detector is not None and program.fetches:
            detector.watch_textures()
        watched = np.array([
            s is not None and (request.banks or request.watch is None or s in request.watch)
            for s in self.site_of
        ])  # fmt: skip
        costly = Costly(self.lanes, self.memory) if request.banks else None
        self.services = Services(program, self.lanes, self.memory, order, detector, watched, costly)
        self.services.device_launches.follows = lay is not None
        self.machine = Machine(self.services, deadline, backwards, compiled=compiled)
        started, worked = time.perf_counter(), time.process_time()
        self.machine.run()
        self.seconds, self.cpu_seconds = time.perf_counter() - started, time.process_time() - worked

    def outcome(self, keep_results: bool = False) -> RunOutcome:
        """What the launch that ``run`` executed has shown."""
        machine, services = self.machine, self.services
        detector, pairs = services.detector, self.request.detail is Detail.PAIRS
        return RunOutcome(
            device=DEVICE,
            seconds=self.seconds,
            blocks_checked=len(self.blocks),
            blocks_total=self.total,
            races=tuple(self._races(detector)) if detector is not None and pairs else (),
            flags=tuple(self._flags(detector.found.values())) if detector is not None and not pairs else (),
            banks=tuple(self._banks()),
            faults=tuple(self._faults()),
            stuck=tuple(self._stuck(w) for w in machine.waits.stuck),
            executed=frozenset(
                s for k, s in enumerate(self.site_of) if s is not None and services.executed[k]
            ),
            not_covered=tuple(self._not_covered()),
            unwatched=tuple(o for o in opcodes_of(self.request.sites, SiteKind.OTHER) if not _followed(o)),
            output="".join(services.printed),
            failure=machine.failure,
            results={n: self.memory.contents(n) for n in self.memory.buffers} if keep_results else {},
            compiled=machine.native is not None,
            launched=tuple(services.device_launches.made),
        )

    def _races(self, detector: Detector) -> Iterable[SeenRace]:
        best: dict[tuple[int, int], SeenRace] = {}
        for f in detector.found.values():
            a, b = (self.site_of[n] for n in f.numbers)
            if a is None or b is None:
                continue
            modes, threads, values = f.modes, f.threads, f.values
            if a > b:
                a, b, modes, threads = b, a, (modes[1], modes[0]), (threads[1], threads[0])
                values = values[1], values[0]
            local = tuple(int(self.lanes.thread[t]) for t in threads)
            blocks = tuple(self.blocks[int(self.lanes.block[t])] for t in threads)
            race = SeenRace(
                (a, b), modes, (local[0], local[1]), (blocks[0], blocks[1]), self.memory.place(f.address),
                f.pairs, f.words, f.same_value, detector.warp_only(f), values, len(f.blocks),
            )  # fmt: skip
            known = best.get((a, b))
            if known is not None:
                warp_only = bool(known.warp_only and race.warp_only)
                race = evolve(race if known.pairs < race.pairs else known, warp_only=warp_only)
            best[a, b] = race
        return best.values()

    def _flags(self, found: Iterable[Found]) -> Iterable[SeenFlag]:
        """Racing words and the warps of one example each; no statements."""
        seen: dict[int, SeenFlag] = {}
        for f in found:
            warps = tuple(int(self.lanes.thread[t]) // WARP for t in f.threads)
            block = self.blocks[int(self.lanes.block[f.threads[0]])]
            for word in f.seen_words:
                seen.setdefault(word, SeenFlag(self.memory.place(word * 4), (warps[0], warps[1]), block))
        return seen.values()

    def _banks(self) -> Iterable[SeenBanks]:
        for number, rows in self.services.costly.executions() if self.services.costly is not None else ():
            site = self.site_of[number]
            if site is not None:
                code = self.program.kernel.instructions[number].code
                row = row_of(code)
                loads = row.role is Role.ACCESS and row.mode is Mode.READ
                yield _cost(site, rows, _bank_bytes(code), loads)

    def _faults(self) -> Iterable[SeenFault]:
        for fault in self.services.faults.values():
            site = self.site_of[fault.number]
            if site is not None:
                thread = int(self.lanes.thread[fault.thread])
                block = self.blocks[int(self.lanes.block[fault.thread])]
                place = self.memory.place(fault.address)
                last = self.memory.place(fault.furthest)
                reach = (
                    last.offset if (last.space, last.array) == (place.space, place.array) else place.offset
                )
                yield SeenFault(site, thread, block, place, fault.count, fault.misaligned, reach=reach)
        for late in self.services.detector.outlived if self.services.detector is not None else ():
            site = self.site_of[late.number]
            if site is not None:
                thread, block = self.lanes.thread[late.thread], self.blocks[self.lanes.block[late.thread]]
                place, owner = self.memory.place(late.address), self.blocks[late.block]
                yield SeenFault(site, int(thread), block, place, late.count, outlived=owner)

    def _stuck(self, waiting: Waiting) -> Stuck:
        first = next(iter(waiting.places.values()))
        lane = int(np.flatnonzero(first)[0])
        block = self.lanes.block[lane]
        mine = self.lanes.block == block
        places: dict[int, tuple[int, int]] = {}
        for number, threads in waiting.places.items():
            here = np.flatnonzero(threads & mine)
            site = self._polled(number) if waiting.spinning else self.site_of[number]
            if len(here) and site is not None:
                count, one = places.get(site, (0, int(self.lanes.thread[here[0]])))
                places[site] = count + len(here), one
        told = tuple((site, count, one) for site, (count, one) in places.items())
        exited = int((waiting.exited & mine).sum())
        return Stuck(self.blocks[int(block)], told, exited, waiting.spinning, waiting.late)

    def _polled(self, number: int) -> int | None:
        """The access nearest to an instruction of a loop: what its threads do again and again.

        The one before it, if there is any: what a jump back hangs on.
        """
        near = itertools.chain(range(number, -1, -1), range(number + 1, len(self.site_of)))
        return next((self.site_of[k] for k in near if self.site_of[k] is not None), None)

    def _not_covered(self) -> Iterable[str]:
        if self.cut:
            yield f"{len(self.blocks)} of the blocks asked for were executed"
        if self.services.detector is not None:
            yield from self.services.detector.left_out
        elsewhere = [f for f in self.services.faults.values() if self.site_of[f.number] is None]
        if elsewhere and self.request.sites:
            count = sum(fault.count for fault in elsewhere)
            yield f"{count:,} accesses outside local or constant memory were not carried out"
        if left_out := self.services.device_launches.left_out:
            yield f"what it launches was not run ({', '.join(map(kernel_name, left_out))})"
        for what in sorted(self.services.without):
            yield f"{what} are not bound: their reads gave zeros, their writes nothing"
        if self.request.banks and any(row_named(s.opcode).base == "wmma" for s in self.request.sites):
            yield "bank conflicts of wmma loads and stores are not counted: their cost is not documented"


def _followed(opcode: str) -> bool:
    """Whether what it does to memory or to the order of blocks is watched here, and only here."""
    row = row_named(opcode)
    return row.role in (Role.ACCESS, Role.CLUSTER) or row.name in _WATCHED_HERE


def cluster_size(program: Program, said: Dim3, grid: Dim3) -> Dim3:
    """Blocks of a cluster: as the kernel demands, else as its launch said. Raises EngineUnavailable."""
    kernel = program.module.entries[program.kernel.name]
    if counts_clusters(kernel):
        raise EngineUnavailable("grids that are given in clusters (__block_size__) are not followed")
    size = cluster_of(kernel) or said
    if not fits(grid, size):
        told, parts = ("×".join(map(str, extents)) for extents in (grid, size))
        raise EngineUnavailable(f"a grid of {told} blocks does not consist of clusters of {parts}")
    return size


def _in_another_order(program: Program, request: KernelRun, blocks: int) -> Memory:
    """The buffers lie the other way round: who leaves one for another now meets a third."""
    return _alone(program, request, blocks, True)


def _strays(here: Place, there: Place) -> bool:
    return here.space is Space.GLOBAL and here.array != there.array


def _alone(program: Program, request: KernelRun, blocks: int, backwards: bool = False) -> Memory:
    """The memory of a kernel that runs by itself."""
    kernel = program.kernel
    return lay_out(
        request.arguments, kernel.params, kernel.param_bytes, program.module.variables.values(),
        kernel.variables.values(), blocks, request.launch.threads, request.launch.dynamic_shared or 0,
        "malloc" in program.module.functions, backwards,
    )  # fmt: skip


def _bank_bytes(code: Instruction) -> int:
    """Bytes that each lane names."""
    role = row_of(code).role
    if role is Role.MATRIX:
        return 16  # one row of a matrix
    return int(code.arguments[2], 0) if role is Role.COPY else access_bytes(code)


def _site_numbers(program: Program, request: KernelRun) -> list[int | None]:
    """Instruction number of the flattened kernel → site."""
    if not request.sites:  # nothing is checked: the launch only runs
        return [None] * len(program.sites)
    by_place = {(s.function, s.index, s.via): k for k, s in enumerate(request.sites)}
    return [
        by_place.get((function, index, ()), by_place.get((function, index, calls)))
        for function, index, calls in program.sites
    ]


def _cost(site: int, rows: list[WarpRows], size: int, load: bool) -> SeenBanks:
    addresses, active, counts = (
        np.concatenate([getattr(r, name) for r in rows]) for name in ("offsets", "active", "counts")
    )
    live = active.any(axis=1)
    counts = counts[live]
    cost = warp_wavefronts(addresses[live], active[live], size, load=load)
    top = cost.dearest
    return SeenBanks(
        site, int(counts.sum()), int((cost.wavefronts * counts).sum()), int((cost.ideal * counts).sum()),
        int(cost.ways.max()), int(cost.wavefronts[top]), int(cost.ideal[top]),
        tuple(int(n) for n in cost.histogram[top]),
    )  # fmt: skip


def merged(first: RunOutcome, second: RunOutcome) -> RunOutcome:
    """What either schedule showed.

    Buffers of a kernel that runs by itself lie elsewhere in the second run. Accesses that meet in another one
    then did so only because one of them left its own: they race with nothing.
    """
    known = {r.sites for r in first.races}
    there = {r.sites: r.place for r in second.races}
    strays = {r.sites for r in first.races if _strays(r.place, there.get(r.sites, r.place))}
    more = tuple(r for r in second.races if r.sites not in known)
    note = "a second order of the warps was tried, because threads race"
    outside = (OUTSIDE,) if strays else ()
    first = evolve(first, not_covered=(*first.not_covered, *outside))
    return evolve(
        first,
        races=(*(r for r in first.races if r.sites not in strays), *more),
        seconds=first.seconds + second.seconds,
        not_covered=(*first.not_covered, note) if more else first.not_covered,
        executed=first.executed | second.executed,
    )
