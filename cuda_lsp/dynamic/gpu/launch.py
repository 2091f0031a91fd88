"""One instrumented launch on a GPU: what lies where in its memory, the launch, and reading back.

``gpu.py`` opens the device. Layouts: ``records.py``. A launch that hung or faulted must be kept alive:
freeing its memory would wait for the kernel.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np
from attrs import astuple, define, evolve, field

from cuda_lsp.dynamic.compilation.toolkit import Toolkit
from cuda_lsp.dynamic.gpu import records
from cuda_lsp.dynamic.gpu.device import Code, Device, Start
from cuda_lsp.dynamic.gpu.memory import ANYTHING, DeviceMemory, HostMemory
from cuda_lsp.dynamic.gpu.records import AddressBook, Extent
from cuda_lsp.dynamic.instrumentation.detector import detector_ptx
from cuda_lsp.dynamic.instrumentation.instrument import (
    Instrumented,
    instrument,
)
from cuda_lsp.dynamic.instrumentation.preparation import finest_granule, shared_variables
from cuda_lsp.dynamic.instrumentation.shadow import CELL_BYTES, ShadowLayout
from cuda_lsp.dynamic.instrumentation.synchronisation import (
    has_order_of_blocks,
    has_order_of_threads,
    has_partial_order,
    meets_in_clusters,
)
from cuda_lsp.dynamic.instrumentation.watch import Watch
from cuda_lsp.dynamic.instrumentation.widths import spaces_of_widths, width_table
from cuda_lsp.dynamic.ptx.functions import launches_kernels, reached_from
from cuda_lsp.dynamic.ptx.module import PtxModule
from cuda_lsp.dynamic.ptx.opcodes import Role, row_named
from cuda_lsp.dynamic.runs import (
    WARP,
    Detail,
    EngineUnavailable,
    KernelRun,
    RunOutcome,
    SeenBanks,
    SiteKind,
)
from cuda_lsp.hardware import architecture_number
from cuda_lsp.model import Space

_ACCESSES = (SiteKind.ACCESS, SiteKind.MATRIX)
_KNOWLEDGE_WORDS = 1024 + 512
_ORDERED_BLOCKS = 1024  # what they know of each other takes the square of it
_WANTED_THREADS, _MOST_THREADS, _MOST_BLOCKS = 1024, 2048, 32  # of a multiprocessor
_RESERVED_SHARED = 1024  # bytes of each block's shared memory, since sm_80
_MEMORY_SHARE = 0.5  # of the free device memory, for shadows


class _Order(Enum):
    """What orders accesses of different blocks: nothing, something, or something we lose sight of."""

    NONE = 0
    FOLLOWED = 1
    UNKNOWN = 2


@define
class Launch:
    """One launch: its device memory and the shape of its shadow.

    ``host``: the program that made the launch; without one the kernel runs on buffers of our own.
    """

    device: Device
    toolkit: Toolkit
    request: KernelRun
    module: PtxModule
    host: HostMemory | None = None
    hung: bool = False
    not_covered: list[str] = field(factory=list[str])
    blocks: list[int] = field(factory=list[int])
    memory: DeviceMemory = field(init=False)
    code: Code = field(init=False)
    made: Instrumented | None = None
    layout: ShadowLayout = field(init=False)
    dynamic: int = 0
    static_bound: int = 0
    names: tuple[str, ...] = ()
    seconds: float = 0.0
    _order: _Order = _Order.NONE

    # ----------------------------------------------------------------------------------- before

    def prepare(self) -> None:
        """Everything up to the launch. Raises EngineUnavailable, AssemblyError, the device's errors."""
        if launches_kernels(self.module, self.request.entry):
            raise EngineUnavailable("not checked on the GPU: it launches kernels from the device")
        self.layout = self._shadow_layout()
        self._choose_blocks()
        self._order = self._order_of_blocks()
        self.names = tuple(v.name for v in shared_variables(self.module, self.request.entry))
        partial = has_partial_order(self.module, self.request.entry)
        global_races = self.request.races and any(
            s.kind in _ACCESSES and s.space in (None, Space.GLOBAL) for s in self.request.sites
        )
        watch = Watch(
            entry=self.request.entry,
            layout=self.layout,
            control=records.control_offsets(),
            names=self.names,
            sites=self.request.watch,
            races=self.request.races and self._watches_anything(),
            global_races=global_races,
            banks=self.request.banks,
            ranges=self._range_bound(),
            sampled=len(self.blocks) < self._total_blocks,
            order=self._order is _Order.FOLLOWED,
            resident=self._resident,
            widths=spaces_of_widths(_watched(self.request)),
        )
        module = self._for_device()
        parts = self.layout.clocks, bool(watch.widths)
        detector = detector_ptx(self.toolkit, self._detector_architecture, *parts)
        self.made = instrumented(module, self.request, watch, detector)
        self.not_covered.extend(self.made.not_covered)
        self.code = self.device.load(self.made.text, module.target.split(",")[0], self._cooperative)
        self._place_memory()
        self._place_records(watch, partial)

    @property
    def _cooperative(self) -> bool:
        """The kernel asks for what only a cooperative launch has: a place where all blocks meet."""
        functions = reached_from(self.module, self.request.entry)
        return any("%envreg" in i.operands for f in functions for i in f.instructions())

    @property
    def _resident(self) -> int:
        """Blocks that a multiprocessor is to hold at once: of a grid that meets, all must find a place."""
        threads, wanted = self.layout.threads, _WANTED_THREADS // self.layout.threads
        if self._cooperative:
            wanted = max(wanted, -(-self._total_blocks // self.device.multiprocessors))
        return max(1, min(wanted, _MOST_THREADS // threads, _MOST_BLOCKS))

    @property
    def _shared_room(self) -> int:
        """Bytes of shared memory that a block may take."""
        if not self._cooperative:
            return self.device.shared_limit
        together = -(-self._total_blocks // self.device.multiprocessors)
        return self.device.shared_limit // together - _RESERVED_SHARED

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

    def _range_bound(self) -> int:
        buffers = {id(buffer) for a in self.request.arguments for _, buffer in a.pointers}
        variables = (v for v in self.module.variables.values() if v.space == "global" and v.size)
        known = len(self.host.allocations) if self.host is not None else 0
        return min(len(buffers) + known + sum(1 for _ in variables) + 1, records.RANGES)

    def _for_device(self) -> PtxModule:
        """The module for this device; what was compiled for its special features (``sm_90a``) keeps them."""
        own = f"sm_{self.device.architecture}"
        return self.module if self.module.target.startswith(own) else evolve(self.module, target=own)

    @property
    def _detector_architecture(self) -> int:
        """The one that the kernel was compiled for, which is known early; the device's if that is older."""
        own = self.device.architecture
        return min(architecture_number(self.module.target) or own, own)

    def _watches_anything(self) -> bool:
        return self.request.watch is None or bool(self.request.watch)

    def _shadow_layout(self) -> ShadowLayout:
        request, sites = self.request, self.request.sites
        atomics = any(s.atomic and s.space in (None, Space.SHARED) for s in sites)
        variables = shared_variables(self.module, request.entry)
        self.static_bound = sum(-(-v.size // 16) * 16 + v.alignment for v in variables)
        layout = ShadowLayout(
            block=request.launch.block,
            user_dynamic=request.launch.dynamic_shared or 0,
            granule_shift=finest_granule(_watched(request), (None, Space.SHARED)),
            atomics=atomics,
            copies=any(row_named(s.opcode).role is Role.COPY for s in sites),
            clocks=request.races and has_order_of_threads(self.module, request.entry),
        )
        self.dynamic = layout.dynamic_bytes(self.static_bound)
        if self.static_bound + self.dynamic > self._shared_room:
            layout = evolve(layout, in_global=True)
            self.dynamic = layout.dynamic_bytes(self.static_bound)
        if not (request.races and self._watches_anything()):
            self.dynamic = layout.user_dynamic
        return layout

    @property
    def _total_blocks(self) -> int:
        x, y, z = self.request.launch.grid or (1, 1, 1)
        return x * y * z

    def _choose_blocks(self) -> None:
        """Checked blocks, as many as their shadows fit into memory."""
        chosen = range(self._total_blocks) if self.request.blocks is None else self.request.blocks
        each = (4 + records.DEALINGS_BYTES + self.layout.copies * records.COPIES_BYTES) * self.layout.threads
        if self.layout.in_global:
            each += self._cells_stride
        if self.layout.clocks:
            each += records.clocks_bytes(self.layout.threads)
        elif has_partial_order(self.module, self.request.entry):
            each += 4 * self._knowledge_stride
        room = int(_MEMORY_SHARE * self.device.free_bytes() / 2) // each
        self.blocks = [b for b in chosen if b < self._total_blocks][: max(1, room)]

    @property
    def _cells_stride(self) -> int:
        user = self.static_bound + self.layout.stamps_offset
        return ((user >> self.layout.granule_shift) + 16) * CELL_BYTES

    @property
    def _knowledge_stride(self) -> int:
        return _KNOWLEDGE_WORDS + 1024 * -(-self.layout.threads // WARP)

    def _has_hidden_memory(self) -> bool:
        """Memory of the device's own heap, or where the blocks of a grid meet, has no range that we know."""
        if self._cooperative:
            self.not_covered.append("bounds of global memory: the driver gives the grid memory of its own")
            return True
        called = {i.arguments[-2] if len(i.arguments) > 1 else "" for f in self.module.functions.values()
                  for i in f.instructions() if i.base == "call" and "malloc" in i.operands}  # fmt: skip
        if called:
            self.not_covered.append("bounds of global memory: the kernel allocates on the device")
        return bool(called)

    def _place_records(self, watch: Watch, partial: bool) -> None:
        assert self.made is not None
        count, checked, sites = self.layout.threads, len(self.blocks), len(self.request.sites)
        values = {
            "executed": self.memory.allocate("executed", len(self.made.marks) + 16),
            "where": self.memory.allocate("where", 4 * count * checked),
            "races": self.memory.allocate("races", records.RACES * records.RACE.itemsize),
            "faults": self.memory.allocate("faults", max(1, sites) * records.FAULT.itemsize),
            "banks": self.memory.allocate("banks", max(1, sites) * records.BANK.itemsize),
            "bank_sums": self.memory.allocate("bank_sums", self._bank_sums * records.BANK_SUM.itemsize),
            "flags": self.memory.allocate("flags", records.FLAGS * records.FLAG.itemsize),
            "notes": self.memory.allocate("notes", 64),
            "names": self.memory.allocate("names", 4 * (1 + len(self.names))),
            "threads": count,
            "granule_shift": self.layout.granule_shift,
            "global_shift": finest_granule(_watched(self.request), (None, Space.GLOBAL)),
            "range_count": len(self.memory.extents),
            "detail_flags": int(self.request.detail is Detail.FLAGS),
            "lock_step": int(self.request.lock_step),
            "cross_block": int(self._order is not _Order.UNKNOWN),
            "checked": checked,
            "older": self.memory.allocate("older", records.OLDER * records.OLDER_BYTES),
        }
        if self.layout.copies and watch.races:
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
        if self.layout.in_global and watch.races:
            values["cells_stride"] = self._cells_stride
            values["cells"] = self.memory.allocate("cells", self._cells_stride * checked)
        if self.layout.clocks and watch.races:
            values["clocks_stride"] = records.clocks_bytes(count)
            size = values["clocks_stride"] * checked
            values["clocks"] = self.memory.allocate("clocks", size)
            self.memory.shadows.append((values["clocks"], size))
        elif partial and watch.races:
            values["knowledge_stride"] = self._knowledge_stride
            values["knowledge"] = self.memory.allocate("knowledge", 4 * self._knowledge_stride * checked)
        if watch.sampled:
            values["ordinal"] = self._upload_ordinals()
        control = records.with_fields(values)
        self._watch_global_memory(control, watch)
        place = self.code.variable("clsp_control")
        assert place is not None
        self.device.upload(place[0], np.frombuffer(control.tobytes(), np.uint8))

    def _upload_ordinals(self) -> int:
        ordinal = np.full(self._total_blocks, 0xFFFFFFFF, np.uint32)
        ordinal[np.array(self.blocks)] = np.arange(len(self.blocks), dtype=np.uint32)
        return self._upload("ordinal", ordinal)

    def _upload(self, name: str, data: records.Records) -> int:
        start = self.memory.allocate(name, data.nbytes)
        self.device.upload(start, data)
        return start

    def _watch_global_memory(self, control: records.Records, watch: Watch) -> None:
        shift = int(control["global_shift"][0])
        room = int(_MEMORY_SHARE * self.device.free_bytes())
        for number, extent in enumerate(self.memory.extents[: records.RANGES]):
            entry = control["ranges"][0, number]
            entry["start"], entry["size"] = extent.start, extent.end - extent.start
            size = (((extent.end - extent.start) >> shift) + 1) * CELL_BYTES
            if not (watch.races and watch.global_races) or extent is ANYTHING:
                continue
            if size > room:
                self.not_covered.append(f"races in {extent.name}: its shadow does not fit into device memory")
                continue
            room -= size
            entry["cells"] = start = self.memory.allocate(f"shadow {number}", size)
            self.memory.shadows.append((start, size))

    def _order_of_blocks(self) -> _Order:
        """Whether fences or ordered atomics reach other blocks, and whether there is room to follow them."""
        if self.request.races and meets_in_clusters(self.module, self.request.entry):
            self.not_covered.append("races between blocks: blocks of a cluster wait for one another")
            return _Order.UNKNOWN
        if not (self.layout.clocks and has_order_of_blocks(self.module, self.request.entry)):
            return _Order.NONE
        if len(self.blocks) <= _ORDERED_BLOCKS:
            return _Order.FOLLOWED
        self.not_covered.append(
            "races between blocks: what fences and atomics order is followed for at most"
            f" {_ORDERED_BLOCKS:,} blocks"
        )
        return _Order.UNKNOWN

    # ----------------------------------------------------------------------------------- launch

    def execute(self, keep_results: bool, lead: int = 0) -> RunOutcome:
        """Launch and wait. ``lead``: bytes cleared first, so that the time holds no wait for the host."""
        request = self.request
        if lead and "lead" not in self.memory.allocations:
            self.memory.allocate("lead", lead)
        ended = self.code.launch(
            Start(
                entry=request.entry,
                grid=request.launch.grid or (1, 1, 1),
                block=request.launch.block,
                parameters=self.memory.parameters(request.entry, request.arguments),
                shared=self.dynamic,
                deadline=request.deadline,
                rescue=(self.memory.start("where"), 4 * len(self.blocks) * self.layout.threads),
                lead=(self.memory.start("lead"), lead) if lead else None,
            )
        )
        if ended.seconds is None:
            self.hung = True
            shape = len(self.blocks), self.layout.threads
            return self._stuck(ended.output, np.ndarray(shape, np.uint32, ended.rescued))
        self.seconds = ended.seconds
        return self._outcome(ended.output, keep_results)

    # ------------------------------------------------------------------------------------ after

    def _book(self) -> AddressBook:
        sizes = {v.name: v.size for v in shared_variables(self.module, self.request.entry)}
        told = [int(address) for address in self.memory.download("names", np.uint32, 1 + len(self.names))]
        shared = [Extent(n, a, a + sizes[n]) for n, a in zip(self.names, told[1:], strict=True)]
        dynamic = next((v.name for v in self.module.variables.values() if _is_dynamic(v)), "dynamic")
        shared.append(Extent(dynamic, told[0], told[0] + self.layout.user_dynamic))
        return AddressBook(tuple(shared), tuple(self.memory.extents))

    def _outcome(self, output: str, keep_results: bool) -> RunOutcome:
        assert self.made is not None
        sites, book = self.request.sites, self._book()
        notes = self.memory.download("notes", np.uint32, 16)
        marks = self.memory.download("executed", np.uint8, len(self.made.marks))
        raced = self.memory.download("races", records.RACE, records.RACES)
        damaged = records.damaged_races(raced, sites)
        races = records.seen_races(raced, sites, book) if not damaged else ()
        if records.lost_order(notes):
            races = tuple(race for race in races if race.blocks[0] == race.blocks[1])
        return RunOutcome(
            device=self.device.name,
            seconds=self.seconds,
            blocks_checked=len(self.blocks),
            blocks_total=self._total_blocks,
            failure=f"{damaged} records of the detector are damaged: do not trust this run"
            if damaged
            else None,
            races=races,
            flags=records.seen_flags(self.memory.download("flags", records.FLAG, records.FLAGS), book),
            banks=self._banks(),
            faults=records.seen_faults(self.memory.download("faults", records.FAULT, len(sites)), book),
            executed=records.executed_sites(marks, self.made.marks),
            not_covered=(*self._uncovered(), *records.notes_said(notes)),
            output=output,
            results=self.memory.results() if keep_results else {},
        )

    @property
    def _bank_sums(self) -> int:
        return len(self.request.sites) * records.BANK_COPIES if self.request.banks else 1

    def _banks(self) -> tuple[SeenBanks, ...]:
        if not self.request.banks:
            return ()
        worst = self.memory.download("banks", records.BANK, len(self.request.sites))
        sums = self.memory.download("bank_sums", records.BANK_SUM, self._bank_sums)
        return records.seen_banks(worst, sums)

    def _uncovered(self) -> Iterator[str]:
        yield from self.not_covered
        if self.request.banks and any(row_named(s.opcode).base == "wmma" for s in self.request.sites):
            yield "bank conflicts of wmma loads and stores are not counted: their cost is not documented"
        others = sorted({s.opcode for s in self.request.sites if s.kind in (SiteKind.OTHER, SiteKind.IMAGE)})
        yield from (f"{opcode}: memory it touches is not watched" for opcode in others)

    def _stuck(self, output: str, where: records.Records) -> RunOutcome:
        """The kernel still runs: ``where`` is what its threads wrote about themselves."""
        return RunOutcome(
            device=self.device.name,
            seconds=self.request.deadline,
            blocks_checked=len(self.blocks),
            blocks_total=self._total_blocks,
            stuck=records.stuck_blocks(where, self.blocks),
            not_covered=tuple(self._uncovered()),
            output=output,
            failure=f"the kernel did not end within {self.request.deadline:g} s",
        )

    def failed(self, message: str) -> RunOutcome:
        """An outcome without observations. ``message``: why, for people."""
        return RunOutcome(
            device=self.device.name,
            seconds=self.seconds,
            blocks_checked=0,
            blocks_total=self._total_blocks,
            not_covered=tuple(self._uncovered()),
            failure=message,
        )


_MADE: OrderedDict[tuple[object, ...], Instrumented] = OrderedDict()  # of this process, newest last
_KEPT = 16


def instrumented(module: PtxModule, request: KernelRun, watch: Watch, detector: str) -> Instrumented:
    """``instrument``, made once for launches that differ only in their buffers' sizes or contents."""
    what = astuple(watch, recurse=False, filter=lambda field, _: field.name != "control")
    key = (request.ptx, module.target, *what)
    known = _MADE.get(key)
    if known is None:
        known = _MADE[key] = instrument(module, request.sites, watch, detector)
        while len(_MADE) > _KEPT:
            _MADE.popitem(last=False)
    return known


def _watched(request: KernelRun) -> tuple[Any, ...]:
    if request.watch is None:
        return request.sites
    return tuple(site for number, site in enumerate(request.sites) if number in request.watch)


def _is_dynamic(variable: Any) -> bool:
    return variable.space == "shared" and not variable.size
