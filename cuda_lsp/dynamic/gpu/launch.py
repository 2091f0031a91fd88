"""One instrumented launch on a GPU: what lies where in its memory, the launch, and reading back.

``engine.py`` opens the device. Layouts: ``records.py``. A launch that hung or faulted must be kept alive:
freeing its memory would wait for the kernel.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import astuple, define, evolve, field

from cuda_lsp.dynamic.compilation.toolkit import Toolkit
from cuda_lsp.dynamic.gpu import records
from cuda_lsp.dynamic.gpu.device import Code, Device, Ended, GridTooLarge, Start
from cuda_lsp.dynamic.gpu.memory import ANYTHING, DeviceMemory, HostMemory
from cuda_lsp.dynamic.gpu.plan import MEMORY_SHARE, Order, Plan, blocks_of
from cuda_lsp.dynamic.gpu.quiet import Likely, Shadow, likely
from cuda_lsp.dynamic.gpu.records import AddressBook, Extent
from cuda_lsp.dynamic.instrumentation.bank_probe import HIT_COPIES, PATTERN_BYTES, PATTERNS
from cuda_lsp.dynamic.instrumentation.detector import assembled, detector_ptx
from cuda_lsp.dynamic.instrumentation.instrument import (
    Instrumented,
    instrument,
)
from cuda_lsp.dynamic.instrumentation.preparation import shared_variables
from cuda_lsp.dynamic.instrumentation.program_pointers import with_program_pointers
from cuda_lsp.dynamic.instrumentation.shadow import CELL_BYTES, STAMP_BYTES, WHERE_WORDS
from cuda_lsp.dynamic.instrumentation.watch import Watch
from cuda_lsp.dynamic.instrumentation.widths import width_table
from cuda_lsp.dynamic.ptx.functions import launches_kernels, names_of
from cuda_lsp.dynamic.ptx.module import PtxModule
from cuda_lsp.dynamic.ptx.opcodes import Role, row_named
from cuda_lsp.dynamic.runs import (
    ASSERTION,
    TRAPPED,
    WARP,
    Detail,
    EngineUnavailable,
    KernelRun,
    RunOutcome,
    SeenBanks,
    SiteKind,
    Stuck,
    opcodes_of,
)
from cuda_lsp.hardware import architecture_number
from cuda_lsp.model import Space


@define
class Launch:
    """One launch: its device memory and the shape of its shadow.

    ``host``: the program that made the launch; without one the kernel runs on buffers of our own. ``tight``:
    its blocks did not find a place at once, and now take less of a multiprocessor.
    """

    device: Device
    toolkit: Toolkit
    request: KernelRun
    module: PtxModule
    host: HostMemory | None = None
    hung: bool = False
    tight: bool = False
    not_covered: list[str] = field(factory=list[str])
    memory: DeviceMemory = field(init=False)
    code: Code = field(init=False)
    made: Instrumented | None = None
    plan: Plan = field(init=False)
    likely: Likely = field(factory=Likely)
    seconds: float = 0.0

    # ----------------------------------------------------------------------------------- before

    def prepare(self) -> None:
        """Everything up to the launch. Raises EngineUnavailable, AssemblyError, the device's errors."""
        watch = self._instrument()
        assert self.made is not None
        self.code = self.device.load(self.made.text, self._target, self.plan.cooperative)
        self._place_memory()
        self._place_records(watch)

    def _instrument(self) -> Watch:
        launches = launches_kernels(self.module, self.request.entry)
        if launches:
            self._say_of_launches()
        known = len(self.host.allocations) if self.host is not None else 0
        allocations = self.host.allocations if self.host is not None else None
        self.likely = likely(self.module, self.request, allocations)
        plan = self.plan = Plan(
            self.device, self.request, self.module, known, self.likely, self.tight, launches, self.not_covered
        )
        watch = evolve(plan.watch(), traps=self.host is not None)  # the program is to hear of its own
        pointers = (self.host or HostMemory()).pointers
        module = with_program_pointers(self._for_device(), pointers)
        parts = plan.layout.clocks, bool(watch.widths)
        detector = detector_ptx(self.toolkit, self._detector_architecture, *parts)
        self.made = instrumented(module, self.request, watch, detector, pointers)
        self.not_covered.extend(self.made.not_covered)
        return watch

    def _say_of_launches(self) -> None:
        """What is not watched of kernels that the kernel launches. Raises EngineUnavailable."""
        if self.host is None:  # nobody knows where the others would go in buffers of our own
            raise EngineUnavailable("not checked on the GPU: it launches kernels from the device")
        if self.request.entry in names_of(self.module, self.request.entry):
            raise EngineUnavailable("not checked on the GPU: it launches itself from the device")
        self.not_covered.append("what the kernels do that it launches: they run unwatched")

    def assemble(self) -> None:
        """The code alone, for a launch that is to come. Raises what ``prepare`` raises."""
        self._instrument()
        assert self.made is not None
        assembled(self.made.text, self.toolkit, self._target)

    @property
    def _target(self) -> str:
        return self._for_device().target.split(",")[0]

    def _for_device(self) -> PtxModule:
        """The module for this device; what was compiled for its special features (``sm_90a``) keeps them."""
        own = f"sm_{self.device.architecture}"
        return self.module if self.module.target.startswith(own) else evolve(self.module, target=own)

    @property
    def _detector_architecture(self) -> int:
        """The one that the kernel was compiled for, which is known early; the device's if that is older."""
        own = self.device.architecture
        return min(architecture_number(self.module.target) or own, own)

    def _place_memory(self) -> None:
        memory = self.memory = DeviceMemory(self.device, self.module, self.code)
        memory.place_buffers(self.request.arguments)
        memory.place_variables()
        if self.host is not None and (lost := memory.take_over(self.host)):
            self.not_covered.append(f"races in {lost} further allocations")
        if self.host is None and self._has_hidden_memory():
            memory.extents.append(ANYTHING)

    def return_variables(self) -> None:
        """What the kernel wrote into its variables goes back to the program."""
        self.memory.return_variables(self.host or HostMemory())

    def empty_shadows(self) -> None:
        """What an earlier launch left in the shadows of global memory."""
        self.memory.empty_shadows()

    def _has_hidden_memory(self) -> bool:
        """Memory of the device's own heap, or where the blocks of a grid meet, has no range that we know."""
        if self.plan.cooperative or self.plan.launches:
            who = "the grid" if self.plan.cooperative else "what it launches"
            self.not_covered.append(f"bounds of global memory: the driver gives {who} memory of its own")
            return True
        called = {i.arguments[-2] if len(i.arguments) > 1 else "" for f in self.module.functions.values()
                  for i in f.instructions() if i.base == "call" and "malloc" in i.operands}  # fmt: skip
        if called:
            self.not_covered.append("bounds of global memory: the kernel allocates on the device")
        return bool(called)

    def _place_records(self, watch: Watch) -> None:
        assert self.made is not None
        count, checked, sites = self.plan.layout.threads, len(self.plan.blocks), len(self.request.sites)
        values = {
            "executed": self.memory.allocate("executed", len(self.made.marks) + 16),
            "where": self.memory.allocate("where", self._where_bytes),
            "races": self.memory.allocate("races", records.RACES * records.RACE.itemsize),
            "faults": self.memory.allocate("faults", max(1, sites) * records.FAULT.itemsize),
            "banks": self.memory.allocate("banks", max(1, sites) * records.BANK.itemsize),
            "bank_sums": self.memory.allocate("bank_sums", self._bank_sums * records.BANK_SUM.itemsize),
            **self._place_patterns(),
            "flags": self.memory.allocate("flags", records.FLAGS * records.FLAG.itemsize),
            "notes": self.memory.allocate("notes", 64),
            "names": self.memory.allocate("names", 4 * (1 + len(self.plan.names))),
            "reports": self.memory.allocate("reports", 4 * checked),
            "threads": count,
            "plane": self.plan.layout.plane,
            "granule_shift": self.plan.layout.granule_shift,
            "global_shift": self.plan.granule(Space.GLOBAL),
            "range_count": len(self.memory.extents),
            "detail_flags": int(self.request.detail is Detail.FLAGS),
            "lock_step": int(self.request.lock_step),
            "cross_block": int(self.plan.order is not Order.UNKNOWN),
            "checked": checked,
            "older": self.memory.allocate("older", records.OLDER * records.OLDER_BYTES),
        }
        if self.plan.layout.copies and watch.races:
            values["copies"] = self.memory.allocate("copies", records.COPIES_BYTES * count * checked)
        if watch.widths:
            values["widths"] = self._upload(
                "widths", np.frombuffer(width_table(self.request.sites), np.uint8)
            )
        if watch.order:
            values["objects"] = self.memory.allocate("objects", records.OBJECT_BYTES * records.OBJECTS)
            values["told"] = self.memory.allocate("told", records.TOLD_BYTES * records.OBJECTS * checked)
            values["known"] = self.memory.allocate("known", records.KNOWN_BYTES * checked * checked)
            values["dealings"] = self.memory.allocate("dealings", records.DEALINGS_BYTES * count * checked)
        if len(self.memory.extents) > records.RANGES:
            values["range_count"] = 0
            self.not_covered.append(f"global memory: more than {records.RANGES} buffers and variables")
        if self.plan.layout.in_global and watch.races:
            values["cells_stride"] = self.plan.cells_stride
            values["cells"] = self.memory.allocate("cells", self.plan.cells_stride * checked)
        if self.plan.layout.clocks and watch.races:
            values["clocks_stride"] = records.clocks_bytes(count)
            size = values["clocks_stride"] * checked
            values["clocks"] = self.memory.allocate("clocks", size)
            self.memory.shadows.append((values["clocks"], size))
        elif self.plan.partial and watch.races:
            values["knowledge_stride"] = self.plan.knowledge_stride
            values["knowledge"] = self.memory.allocate("knowledge", 4 * self.plan.knowledge_stride * checked)
        if watch.sampled:
            values["ordinal"] = self._upload_ordinals()
        control = records.with_fields(values)
        self._watch_global_memory(control, watch)
        place = self.code.variable("clsp_control")
        assert place is not None
        self.device.upload(place[0], np.frombuffer(control.tobytes(), np.uint8))

    def _upload_ordinals(self) -> int:
        ordinal = np.full(blocks_of(self.request), 0xFFFFFFFF, np.uint32)
        ordinal[np.array(self.plan.blocks)] = np.arange(len(self.plan.blocks), dtype=np.uint32)
        return self._upload("ordinal", ordinal)

    def _upload(self, name: str, data: records.Records) -> int:
        start = self.memory.allocate(name, data.nbytes)
        self.device.upload(start, data)
        return start

    def _watch_global_memory(self, control: records.Records, watch: Watch) -> None:
        shift = int(control["global_shift"][0])
        room = int(MEMORY_SHARE * self.device.free_bytes())
        for number, extent in enumerate(self.memory.extents[: records.RANGES]):
            entry = control["ranges"][0, number]
            entry["start"], entry["size"] = extent.start, extent.end - extent.start
            kept = self.likely.shadow(self._piece(extent))
            if not (watch.races and watch.global_races) or extent is ANYTHING or kept is Shadow.NOTHING:
                continue
            alone = kept is Shadow.WRITERS and not watch.widths
            size = (((extent.end - extent.start) >> shift) + 1) * (STAMP_BYTES if alone else CELL_BYTES)
            if size > room:
                self.not_covered.append(f"races in {extent.name}: its shadow does not fit into device memory")
                continue
            room -= size
            start = self.memory.allocate(f"shadow {number}", size)
            entry["cells"] = start + alone * records.WRITERS
            self.memory.shadows.append((start, size))

    @property
    def _where_bytes(self) -> int:
        """Of what the threads of checked blocks say of where they wait."""
        return 4 * WHERE_WORDS * -(-self.plan.layout.threads // WARP) * len(self.plan.blocks)

    def _piece(self, extent: Extent) -> int | str:
        """What ``likely`` calls a stretch of memory."""
        buffers = {start: id(buffer) for buffer, start in self.memory.placed.values()}
        if extent in (self.host.allocations if self.host is not None else ()):
            return extent.start
        return buffers.get(extent.start, extent.name)

    # ----------------------------------------------------------------------------------- launch

    def execute(self, keep_results: bool, lead: int = 0) -> RunOutcome:
        """Launch and wait. ``lead``: bytes cleared first, so that the time holds no wait for the host."""
        try:
            ended = self._launched(lead)
        except GridTooLarge:
            if self.tight:
                raise
            self._tighten()
            ended = self._launched(lead)
        if ended.seconds is None:
            self.hung = True
            where = records.each_thread(ended.rescued, len(self.plan.blocks), self.plan.layout.threads)
            return self._stuck(ended.output, where)
        self.seconds = ended.seconds
        return self._outcome(ended.output, keep_results)

    def _tighten(self) -> None:
        """Nothing ran yet: once more, with blocks that leave as much room for others as they can."""
        self.tight = True
        self.not_covered.clear()
        self.prepare()

    def _launched(self, lead: int) -> Ended:
        request = self.request
        if lead and "lead" not in self.memory.allocations:
            self.memory.allocate("lead", lead)
        return self.code.launch(
            Start(
                entry=request.entry,
                grid=request.launch.grid or (1, 1, 1),
                block=request.launch.block,
                parameters=self.memory.parameters(request.entry, request.arguments),
                shared=self.plan.dynamic,
                deadline=request.deadline,
                rescue=(self.memory.start("where"), self._where_bytes),
                lead=(self.memory.start("lead"), lead) if lead else None,
            )
        )

    # ------------------------------------------------------------------------------------ after

    def _book(self) -> AddressBook:
        sizes = {v.name: v.size for v in shared_variables(self.module, self.request.entry)}
        told = [
            int(address) for address in self.memory.download("names", np.uint32, 1 + len(self.plan.names))
        ]
        shared = [Extent(n, a, a + sizes[n]) for n, a in zip(self.plan.names, told[1:], strict=True)]
        dynamic = next((v.name for v in self.module.variables.values() if _is_dynamic(v)), "dynamic")
        shared.append(Extent(dynamic, told[0], told[0] + self.plan.layout.user_dynamic))
        return AddressBook(tuple(shared), tuple(self.memory.extents))

    def _outcome(self, output: str, keep_results: bool) -> RunOutcome:
        assert self.made is not None
        sites, book = self.request.sites, self._book()
        notes = self.memory.download("notes", np.uint32, 16)
        marks = self.memory.download("executed", np.uint8, len(self.made.marks))
        raced = self.memory.download("races", records.RACE, records.RACES)
        damaged = records.damaged_races(raced, sites)
        races = records.seen_races(raced, sites, book) if not damaged else ()
        executed = records.executed_sites(marks, self.made.marks)
        trapped = self._trapped(executed)
        if records.lost_order(notes):
            races = tuple(race for race in races if race.blocks[0] == race.blocks[1])
        return RunOutcome(
            device=self.device.name,
            seconds=self.seconds,
            blocks_checked=len(self.plan.blocks),
            blocks_total=blocks_of(self.request),
            failure=f"{damaged} records of the detector are damaged: do not trust this run"
            if damaged
            else self._why_trapped(trapped),
            stuck=trapped,
            races=races,
            flags=records.seen_flags(self.memory.download("flags", records.FLAG, records.FLAGS), book),
            banks=self._banks(),
            faults=records.seen_faults(
                self.memory.download("faults", records.FAULT, len(sites)), sites, book
            ),
            executed=executed,
            not_covered=(*self._uncovered(), *records.notes_said(notes)),
            unwatched=self._unwatched,
            output=output,
            results=self.memory.results() if keep_results else {},
        )

    def _trapped(self, executed: frozenset[int]) -> tuple[Stuck, ...]:
        """Who came to a trap, and left there instead."""
        assert self.made is not None
        sites = self.request.sites
        traps = [site for site in sorted(executed) if sites[site].kind is SiteKind.TRAP]
        if not traps:
            return ()
        told = self.memory.download("where", np.uint32, self._where_bytes // 4).tobytes()
        where = records.each_thread(told, len(self.plan.blocks), self.plan.layout.threads)
        seen = records.trapped(where, self.plan.blocks, traps)
        return seen or (Stuck(0, tuple((site, 0, 0) for site in traps)),)

    def _why_trapped(self, trapped: Sequence[Stuck]) -> str | None:
        """What ended the launch before its end, if anything did."""
        if not trapped:
            return None
        site = self.request.sites[trapped[0].waiting[0][0]]
        return TRAPPED if row_named(site.opcode).role is Role.TRAP else ASSERTION

    @property
    def _bank_sums(self) -> int:
        return len(self.request.sites) * records.BANK_COPIES if self.request.banks else 1

    def _place_patterns(self) -> dict[str, int]:
        """Room for the patterns of accesses, and how often each is met."""
        sites = len(self.request.sites) if self.request.banks else 0
        return {
            "patterns": self.memory.allocate("patterns", sites * PATTERNS * PATTERN_BYTES),
            "hits": self.memory.allocate("hits", sites * PATTERNS * HIT_COPIES * 8),
        }

    def _banks(self) -> tuple[SeenBanks, ...]:
        assert self.made is not None
        sites = len(self.request.sites)
        if not self.request.banks or not sites:
            return ()
        worst = self.memory.download("banks", records.BANK, sites)
        sums = self.memory.download("bank_sums", records.BANK_SUM, self._bank_sums)
        patterns: Any = self.memory.download("patterns", records.PATTERN, sites * PATTERNS)
        hits: Any = self.memory.download("hits", np.uint64, sites * PATTERNS * HIT_COPIES)
        met, known = hits.reshape(sites, HIT_COPIES, PATTERNS), patterns.reshape(sites, PATTERNS)
        return records.seen_banks(worst, sums, known, met, self.made.followers)

    def _uncovered(self) -> Iterator[str]:
        yield from self.not_covered
        if self.request.banks and any(row_named(s.opcode).base == "wmma" for s in self.request.sites):
            yield "bank conflicts of wmma loads and stores are not counted: their cost is not documented"

    @property
    def _unwatched(self) -> tuple[str, ...]:
        return opcodes_of(self.request.sites, SiteKind.OTHER, SiteKind.IMAGE)

    def _stuck(self, output: str, where: records.Records) -> RunOutcome:
        """The kernel still runs: ``where`` is what its threads wrote about themselves."""
        return RunOutcome(
            device=self.device.name,
            seconds=self.request.deadline,
            blocks_checked=len(self.plan.blocks),
            blocks_total=blocks_of(self.request),
            stuck=records.stuck_blocks(where, self.plan.blocks),
            not_covered=tuple(self._uncovered()),
            unwatched=self._unwatched,
            output=output,
            failure=f"the kernel did not end within {self.request.deadline:g} s",
        )

    def failed(self, message: str) -> RunOutcome:
        """An outcome without observations. ``message``: why, for people."""
        return RunOutcome(
            device=self.device.name,
            seconds=self.seconds,
            blocks_checked=0,
            blocks_total=blocks_of(self.request),
            not_covered=tuple(self._uncovered()),
            unwatched=self._unwatched,
            failure=message,
        )


_MADE: OrderedDict[tuple[object, ...], Instrumented] = OrderedDict()  # of this process, newest last
_KEPT = 16


def instrumented(
    module: PtxModule,
    request: KernelRun,
    watch: Watch,
    detector: str,
    pointers: Mapping[str, int] | None = None,
) -> Instrumented:
    """``instrument``, made once for launches that differ only in their buffers' sizes or contents.

    ``pointers``: which the module has of a program.
    """
    what = astuple(watch, recurse=False, filter=lambda field, _: field.name != "control")
    key = (request.ptx, module.target, tuple((pointers or {}).items()), *what)
    known = _MADE.get(key)
    if known is None:
        known = _MADE[key] = instrument(module, request.sites, watch, detector)
        while len(_MADE) > _KEPT:
            _MADE.popitem(last=False)
    return known


def _is_dynamic(variable: Any) -> bool:
    return variable.space == "shared" and not variable.size
