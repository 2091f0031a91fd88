"""One instrumented launch on a GPU: what lies where in its memory, the launch, and reading back.

Through PyCUDA's driver interface; ``gpu.py`` opens the device. Layouts: ``device_records.py``. A launch that
hung or faulted must be kept alive: freeing its memory would wait for the kernel.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from cuda_lsp.dynamic import device_records as records
from cuda_lsp.dynamic.detector import assembled, detector_ptx
from cuda_lsp.dynamic.device_records import AddressBook, Extent
from cuda_lsp.dynamic.gpu_code import launch, loaded
from cuda_lsp.dynamic.gpu_memory import ANYTHING, DeviceMemory, HostMemory, captured_output
from cuda_lsp.dynamic.instrument import (
    Instrumented,
    finest_granule,
    instrument,
    shared_variables,
)
from cuda_lsp.dynamic.probes import CELL_BYTES, ShadowLayout
from cuda_lsp.dynamic.ptx import PtxModule
from cuda_lsp.dynamic.runs import (
    Detail,
    KernelRun,
    RunOutcome,
    SeenBanks,
    SiteKind,
)
from cuda_lsp.dynamic.synchronisation import has_order_of_blocks, has_partial_order, reached_from
from cuda_lsp.dynamic.toolkit import Toolkit
from cuda_lsp.dynamic.watch import Watch
from cuda_lsp.model import Mode, Space

_KNOWLEDGE_WORDS = 1024 + 512
_ORDERED_BLOCKS = 1024  # what they know of each other takes the square of it
_MEMORY_SHARE = 0.5  # of the free device memory, for shadows


class _Order(Enum):
    """What orders accesses of different blocks: nothing, something, or something we lose sight of."""

    NONE = 0
    FOLLOWED = 1
    UNKNOWN = 2


@frozen
class Device:
    driver: Any
    handle: Any
    context: Any
    name: str
    architecture: int  # 90
    shared_limit: int  # bytes a block may have


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
    kept: tuple[Any, ...] = ()
    code: Any = None
    function: Any = None
    made: Instrumented | None = None
    layout: ShadowLayout = field(init=False)
    dynamic: int = 0
    static_bound: int = 0
    names: tuple[str, ...] = ()
    seconds: float = 0.0
    _order: _Order = _Order.NONE

    # ----------------------------------------------------------------------------------- before

    def prepare(self) -> None:
        self.layout = self._shadow_layout()
        self._choose_blocks()
        self._order = self._order_of_blocks()
        self.names = tuple(v.name for v in shared_variables(self.module, self.request.entry))
        partial = has_partial_order(self.module, self.request.entry)
        global_races = self.request.races and any(
            s.kind is SiteKind.ACCESS and s.space in (None, Space.GLOBAL) for s in self.request.sites
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
        )
        architecture = self.device.architecture
        module = self._for_device()
        self.made = _instrumented(module, self.request, watch, detector_ptx(self.toolkit, architecture))
        self.not_covered.extend(self.made.not_covered)
        cubin = assembled(self.made.text, self.toolkit, module.target.split(",")[0])
        self.code = loaded(self.device.driver, cubin, self._cooperative)
        self.function = self.code.get_function(self.request.entry)
        self._place_memory()
        self._place_records(watch, partial)

    @property
    def _cooperative(self) -> bool:
        """The kernel asks for what only a cooperative launch has: a place where all blocks meet."""
        functions = reached_from(self.module, self.request.entry)
        return any("%envreg" in i.operands for f in functions for i in f.instructions())

    def _place_memory(self) -> None:
        memory = self.memory = DeviceMemory(self.device.driver, self.module, self.code)
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

    def _watches_anything(self) -> bool:
        return self.request.watch is None or bool(self.request.watch)

    def _shadow_layout(self) -> ShadowLayout:
        request, sites = self.request, self.request.sites
        atomics = any(s.mode is Mode.ATOMIC and s.space in (None, Space.SHARED) for s in sites)
        variables = shared_variables(self.module, request.entry)
        self.static_bound = sum(-(-v.size // 16) * 16 + v.alignment for v in variables)
        layout = ShadowLayout(
            block=request.launch.block,
            user_dynamic=request.launch.dynamic_shared or 0,
            granule_shift=finest_granule(_watched(request), (None, Space.SHARED)),
            atomics=atomics,
            copies=any(s.opcode.startswith("cp.async") and s.mode for s in sites),
        )
        self.dynamic = layout.dynamic_bytes(self.static_bound)
        if self.static_bound + self.dynamic > self.device.shared_limit:
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
        each = (4 + records.FENCED_BYTES + self.layout.copies * records.COPIES_BYTES) * self.layout.threads
        if self.layout.in_global:
            each += self._cells_stride
        if has_partial_order(self.module, self.request.entry):
            each += 4 * self._knowledge_stride
        room = int(_MEMORY_SHARE * self.device.driver.mem_get_info()[0] / 2) // each
        self.blocks = [b for b in chosen if b < self._total_blocks][: max(1, room)]

    @property
    def _cells_stride(self) -> int:
        user = self.static_bound + self.layout.stamps_offset
        return ((user >> self.layout.granule_shift) + 16) * CELL_BYTES

    @property
    def _knowledge_stride(self) -> int:
        return _KNOWLEDGE_WORDS + 1024 * -(-self.layout.threads // 32)

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
        if watch.order:
            values["objects"] = self.memory.allocate("objects", 8 * records.OBJECTS)
            values["told"] = self.memory.allocate("told", 4 * records.OBJECTS * checked)
            values["known"] = self.memory.allocate("known", records.KNOWN_BYTES * checked * checked)
            values["fenced"] = self.memory.allocate("fenced", records.FENCED_BYTES * count * checked)
        if len(self.memory.extents) > records.RANGES:
            values["range_count"] = 0
            self.not_covered.append(f"global memory: more than {records.RANGES} buffers and variables")
        if self.layout.in_global and watch.races:
            values["cells_stride"] = self._cells_stride
            values["cells"] = self.memory.allocate("cells", self._cells_stride * checked)
        if partial and watch.races:
            values["knowledge_stride"] = self._knowledge_stride
            values["knowledge"] = self.memory.allocate("knowledge", 4 * self._knowledge_stride * checked)
        if watch.sampled:
            values["ordinal"] = self._upload_ordinals()
        control = records.with_fields(values)
        self._watch_global_memory(control, watch)
        self.device.driver.memcpy_htod(self.code.get_global("clsp_control")[0], control)

    def _upload_ordinals(self) -> int:
        ordinal = np.full(self._total_blocks, 0xFFFFFFFF, np.uint32)
        ordinal[np.array(self.blocks)] = np.arange(len(self.blocks), dtype=np.uint32)
        start = self.memory.allocate("ordinal", ordinal.nbytes)
        self.device.driver.memcpy_htod(start, ordinal)
        return start

    def _watch_global_memory(self, control: records.Records, watch: Watch) -> None:
        shift = int(control["global_shift"][0])
        room = int(_MEMORY_SHARE * self.device.driver.mem_get_info()[0])
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
        if not (self.request.races and has_order_of_blocks(self.module, self.request.entry)):
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
        driver, request = self.device.driver, self.request
        if self.dynamic > 48 * 1024:
            attribute = driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.function.set_attribute(attribute, self.dynamic)
        start, end, stream = driver.Event(), driver.Event(), driver.Stream()
        # Made now and kept: while a kernel hangs, the driver allocates and frees nothing.
        rescue = driver.Stream(), driver.pagelocked_empty((len(self.blocks), self.layout.threads), np.uint32)
        self.kept = (start, end, stream, *rescue)
        if lead:
            if "lead" not in self.memory.allocations:
                self.memory.allocate("lead", lead)
            driver.memset_d8_async(self.memory.allocations["lead"], 0, lead, stream)
        with captured_output() as output:
            start.record(stream)
            parameters = self.memory.parameters(request.entry, request.arguments)
            grid, block = request.launch.grid or (1, 1, 1), request.launch.block
            launch(self.function, grid, block, parameters, self.dynamic, stream)
            end.record(stream)
            limit = time.monotonic() + request.deadline
            pause = 20e-6
            while not end.query():
                if time.monotonic() > limit:
                    self.hung = True
                    break
                time.sleep(pause)
                pause = min(2 * pause, 5e-3)
            if not self.hung:
                driver.Context.synchronize()  # flushes what the kernel printed
        if self.hung:
            return self._stuck(output.text, *rescue)
        self.seconds = float(start.time_till(end)) / 1000
        return self._outcome(output.text, keep_results)

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
        unwatched = (SiteKind.OTHER, SiteKind.MATRIX, SiteKind.IMAGE)
        others = sorted({s.opcode for s in self.request.sites if s.kind in unwatched})
        yield from (f"{opcode}: memory it touches is not watched" for opcode in others)

    def _stuck(self, output: str, stream: Any, where: Any) -> RunOutcome:
        """The kernel still runs: copy on another stream what its threads wrote about themselves."""
        driver = self.device.driver
        driver.memcpy_dtoh_async(where, self.memory.allocations["where"], stream)
        stream.synchronize()
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


def _instrumented(module: PtxModule, request: KernelRun, watch: Watch, detector: str) -> Instrumented:
    """``instrument``, made once for launches that differ only in their buffers' sizes or contents."""
    what = (watch.sites, watch.races, watch.global_races, watch.banks, watch.ranges)
    key = (request.ptx, request.entry, module.target, watch.layout, watch.names, watch.sampled, *what)
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
