"""What is watched of a launch and how large its shadow gets: decided before anything lies on the device."""

from __future__ import annotations

import math
from enum import Enum
from itertools import islice

from attrs import define, evolve, field

from cuda_lsp.dynamic.gpu import records
from cuda_lsp.dynamic.gpu.device import Device
from cuda_lsp.dynamic.gpu.quiet import Likely
from cuda_lsp.dynamic.instrumentation.preparation import finest_granule, shared_variables
from cuda_lsp.dynamic.instrumentation.shadow import ShadowLayout
from cuda_lsp.dynamic.instrumentation.synchronisation import (
    has_order_of_blocks,
    has_order_of_threads,
    has_partial_order,
    meets_in_clusters,
)
from cuda_lsp.dynamic.instrumentation.watch import Watch
from cuda_lsp.dynamic.instrumentation.widths import spaces_of_widths
from cuda_lsp.dynamic.ptx.functions import (
    has_loops,
    meets_in_grid,
    most_held,
    reached_from,
)
from cuda_lsp.dynamic.ptx.module import PtxModule
from cuda_lsp.dynamic.ptx.names import kernel_name
from cuda_lsp.dynamic.ptx.opcodes import Role, row_named, row_of
from cuda_lsp.dynamic.runs import WARP, EngineUnavailable, KernelRun, PtxSite, SiteKind
from cuda_lsp.model import Space

_ACCESSES = (SiteKind.ACCESS, SiteKind.MATRIX)
_KNOWLEDGE_WORDS = 1024 + 512
_ORDERED_BLOCKS = 1024  # what they know of each other takes the square of it
_MOST_THREADS = 2048  # of a multiprocessor
_FEWEST_THREADS = 64  # of a block that fills a multiprocessor: it has no room for more blocks than that
_BUSY = 24  # accesses to shared memory
_ROOM = (
    (24, 2048),
    (56, 1024),
)  # words that a kernel holds in registers, and threads that have room for them
_RESERVED_SHARED = 1024  # bytes of each block's shared memory, since sm_80
_MOST_NUMBERED = 1 << 28  # blocks: each has a number in the device's memory
_LARGEST_CLUSTER = 8  # blocks that a kernel gets without asking for more
MEMORY_SHARE = 0.5  # of the free device memory, for shadows


class Order(Enum):
    """What orders accesses of different blocks: nothing, something, or something we lose sight of."""

    NONE = 0
    FOLLOWED = 1
    UNKNOWN = 2


@define(slots=False)
class Plan:
    """Of one launch. ``known``: allocations of its program. ``likely``: where accesses lead.
    ``launches``: the kernel launches others.

    ``layout``: of each block's shadow. ``dynamic``: bytes of dynamic shared memory that the launch gets;
    ``static_bound``: of static memory, at most. ``blocks``: the linear numbers of those that are checked;
    ``total_blocks``: of the grid. ``names``: the kernel's shared variables. ``partial``: some barrier leaves
    threads out. ``cooperative``: all blocks run at once, as the program's launch says, or because they meet
    where only those of such a launch can. ``tight``: a block takes as little of a multiprocessor as it can.
    """

    device: Device
    request: KernelRun
    module: PtxModule
    known: int = 0
    likely: Likely = field(factory=Likely)
    tight: bool = False
    launches: bool = False
    not_covered: list[str] = field(factory=list[str])

    def __attrs_post_init__(self) -> None:
        request, module = self.request, self.module
        functions = reached_from(module, request.entry)
        for function in functions:
            if function.body is None and function.name.startswith("_Z"):
                called = kernel_name(function.name)
                raise EngineUnavailable(
                    f"not checked on the GPU: it calls {called}, which stands in another source"
                )
        self.cooperative = (
            meets_in_grid(i for f in functions for i in f.instructions())
            if request.together is None
            else request.together
        )
        self.total_blocks = blocks_of(request)
        if self.total_blocks > _MOST_NUMBERED:
            raise EngineUnavailable(
                f"not checked on the GPU: {self.total_blocks:,} blocks are more than {_MOST_NUMBERED:,}"
            )
        if math.prod(request.cluster) > _LARGEST_CLUSTER:
            raise EngineUnavailable("not checked on the GPU: clusters of more than 8 blocks")
        self.partial = has_partial_order(module, request.entry)
        self.layout = self._shadow_layout()
        self.blocks = self._chosen_blocks()
        self.layout = evolve(self.layout, sampled=len(self.blocks) < self.total_blocks)
        self.order = self._order_of_blocks()
        self.names = tuple(v.name for v in shared_variables(module, request.entry))

    def watch(self) -> Watch:
        """What the probes are to look at."""
        request = self.request
        global_races = request.races and any(
            s.kind in _ACCESSES and s.space in (None, Space.GLOBAL) for s in request.sites
        )
        return Watch(
            entry=request.entry,
            layout=self.layout,
            control=records.control_offsets(),
            names=self.names,
            sites=request.watch,
            races=request.races and self._watches_anything(),
            global_races=global_races,
            banks=request.banks,
            ranges=self._range_bound(),
            sampled=len(self.blocks) < self.total_blocks,
            order=self.order is Order.FOLLOWED,
            resident=self._resident,
            widths=spaces_of_widths(watched_sites(request)),
            cluster=request.cluster,
            quiet=self.likely.quiet if request.races else frozenset(),
            homes=frozenset(self.likely.homes.items()),
            in_shared=self._lead_to(Space.SHARED),
            in_global=self._lead_to(Space.GLOBAL),
        )

    def _lead_to(self, space: Space) -> frozenset[int]:
        """Sites whose generic addresses lie in one space."""
        return frozenset(number for number, found in self.likely.spaces.items() if found is space)

    def granule(self, space: Space) -> int:
        """log2 of the bytes that a shadow cell of shared or global memory stands for."""
        silent = self.likely.quiet if space is Space.GLOBAL else frozenset[int]()
        sites = [
            site
            for number, site in enumerate(self.request.sites)
            if self.likely.spaces.get(number, space) is space
            and number not in silent
            and (self.request.watch is None or number in self.request.watch)
        ]
        return finest_granule(tuple(sites), (None, space))

    @property
    def _resident(self) -> int:
        """Blocks that a multiprocessor is to hold at once: of a grid that meets, all must find a place.

        Code that is linked is assembled function by function, each with the registers that it wants.
        """
        if self.launches:
            return 1
        threads, device = self.layout.threads, self.device
        wanted = self._wanted_threads // threads
        if self.cooperative:
            wanted = max(wanted, -(-self.total_blocks // device.multiprocessors))
        most = device.threads_at_once // max(threads, _FEWEST_THREADS)
        return max(1, most if self.tight else min(wanted, most))

    @property
    def _wanted_threads(self) -> int:
        """Threads of a multiprocessor: many hide each other's waits, few have registers for their probes.

        Measured on an H100: what probes need in a long loop is dear to fetch from memory again and again.
        """
        request = self.request
        probes = sum(
            self.likely.spaces.get(n, s.space) is Space.SHARED
            and (request.watch is None or n in request.watch)
            for n, s in enumerate(request.sites)
        )
        loops = any(has_loops(f) for f in reached_from(self.module, request.entry))
        everywhere = request.races and len(self.blocks) == self.total_blocks
        wanted = _MOST_THREADS
        if probes >= _BUSY and everywhere:
            wanted = 512 if loops else 768
        elif loops and (probes >= _BUSY or everywhere):
            wanted = 1024
        held = max(most_held(f) for f in reached_from(self.module, request.entry))
        return min(wanted, next((threads for words, threads in _ROOM if held <= words), 512))

    @property
    def _shared_room(self) -> int:
        """Bytes of shared memory that a block may take."""
        if not self.cooperative:
            return self.device.shared_limit
        together = -(-self.total_blocks // self.device.multiprocessors)
        return self.device.shared_limit // together - _RESERVED_SHARED

    def _range_bound(self) -> int:
        buffers = {id(buffer) for a in self.request.arguments for _, buffer in a.pointers}
        variables = (v for v in self.module.variables.values() if v.space == "global" and v.size)
        return min(len(buffers) + self.known + sum(1 for _ in variables) + 1, records.RANGES)

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
            granule_shift=self.granule(Space.SHARED),
            atomics=atomics,
            copies=any(row_named(s.opcode).role is Role.COPY for s in sites),
            clocks=request.races and has_order_of_threads(self.module, request.entry),
            static_bytes=self.static_bound,
            calls=any(
                row_of(i).role is Role.CALL
                for f in reached_from(self.module, request.entry)
                for i in f.instructions()
            ),
        )
        self.dynamic = layout.dynamic_bytes
        for elsewhere in ({"in_global": True}, {"in_global": True, "stamps_in_global": True}):
            if self.tight or self.static_bound + layout.dynamic_bytes > self._shared_room:
                layout = evolve(layout, **elsewhere)
        self.dynamic = layout.dynamic_bytes
        if not (request.races and self._watches_anything()):
            self.dynamic = layout.user_dynamic
        return layout

    def _chosen_blocks(self) -> list[int]:
        """Checked blocks, as many as their shadows fit into memory."""
        chosen = range(self.total_blocks) if self.request.blocks is None else self.request.blocks
        each = (4 + records.DEALINGS_BYTES + self.layout.copies * records.COPIES_BYTES) * self.layout.threads
        if self.layout.in_global:
            each += self.cells_stride
        if self.layout.clocks:
            each += records.clocks_bytes(self.layout.threads)
        elif self.partial:
            each += 4 * self.knowledge_stride
        room = int(MEMORY_SHARE * self.device.free_bytes() / 2) // each
        return list(islice((b for b in chosen if b < self.total_blocks), max(1, room)))

    @property
    def cells_stride(self) -> int:
        """Bytes of a block's cells, where they lie in global memory."""
        return self.layout.global_bytes

    @property
    def knowledge_stride(self) -> int:
        """Words of what the threads of a block know of barriers that leave some of them out."""
        return _KNOWLEDGE_WORDS + 1024 * -(-self.layout.threads // WARP)

    def _order_of_blocks(self) -> Order:
        """Whether fences or ordered atomics reach other blocks, and whether there is room to follow them."""
        if self.request.races and meets_in_clusters(self.module, self.request.entry):
            self.not_covered.append("races between blocks: blocks of a cluster wait for one another")
            return Order.UNKNOWN
        if not (self.layout.clocks and has_order_of_blocks(self.module, self.request.entry)):
            return Order.NONE
        if len(self.blocks) <= _ORDERED_BLOCKS:
            return Order.FOLLOWED
        self.not_covered.append(
            "races between blocks: what fences and atomics order is followed for at most"
            f" {_ORDERED_BLOCKS:,} blocks"
        )
        return Order.UNKNOWN


def blocks_of(request: KernelRun) -> int:
    """Blocks of the grid."""
    x, y, z = request.launch.grid or (1, 1, 1)
    return x * y * z


def watched_sites(request: KernelRun) -> tuple[PtxSite, ...]:
    """The sites at which races are looked for."""
    if request.watch is None:
        return request.sites
    return tuple(site for number, site in enumerate(request.sites) if number in request.watch)
