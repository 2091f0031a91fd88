"""The memory of one launch: a flat arena whose indices are the generic addresses.

Layout, ascending: an unmapped page, kernel parameters, module variables, one window of shared memory per
block, one of local memory per thread, and the buffers, with unmapped gaps between all of them (what runs
off the last buffer hits nothing). ``limits`` says which bytes exist: every object begins at a granule of its
own. Accesses outside are reported once per site and not carried out.
"""

# NumPy's stubs leave views and fancy indexing unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from attrs import define, field, frozen

from cuda_lsp.dynamic.ptx.flatten import function_address
from cuda_lsp.dynamic.ptx.module import PtxVariable, type_size
from cuda_lsp.dynamic.ptx.operands import FloatOperand, IntegerOperand, parse_operand, split_operands
from cuda_lsp.dynamic.runs import Argument, Place
from cuda_lsp.model import Space

Array = Any

GAP = 4096
GRANULE_BITS = 8
GRANULE = 1 << GRANULE_BITS  # bytes; where objects begin
NOWHERE = -(1 << 40)  # the window of a block that is not there
WORKSPACE = 64  # bytes that blocks of a cooperative launch meet in
VIEWS = ("u1", "u2", "u4", "u8", "f4", "f8", "i1", "i2", "i4", "i8")
_LIMIT = 1 << 31
_MOST_WINDOWS = 256 << 20  # bytes: to make memory of more takes longer than anybody waits
_BUFFER_GAP = 1 << 20  # bytes, at least: what overruns a buffer misses the next one
_SPREAD = 1 << 29  # bytes, over which buffers are spread, with gaps before, between and behind them
_MOST_OF = {"shared": 228 << 10, "local": 512 << 10}  # bytes; of a block and of a thread, on any GPU
_OWN_HEAP = 8 << 20  # bytes, as CUDA's default
_HEAP_UNIT = 16  # bytes, in which it is given out; each allocation takes one more
_HEAP_ROOM = _OWN_HEAP // (2 * _HEAP_UNIT) * GRANULE  # of addresses: the smallest allocation takes a granule


class TooMuchMemory(Exception):
    """The launch needs more memory than the emulator grants; the message says how much."""


@frozen
class Region:
    """A named stretch: of the arena, or (``space`` SHARED) of every block's window."""

    name: str
    start: int
    size: int
    space: Space


@define(eq=False)
class Memory:
    """Arena and layout. ``limits``: bytes of each granule that exist, from its beginning, ``(granules,)``.

    ``shared_base``: address of each thread's shared window, ``(n,)``.
    """

    data: Array
    limits: Array
    views: dict[str, Array]
    regions: list[Region]
    symbols: dict[str, int]  # global and constant variables: address; shared and local: offset in the window
    params: int
    shared_base: Array
    shared: tuple[int, int]  # generic addresses of all shared windows
    shared_stride: int
    local_base: Array
    local: tuple[int, int]
    workspace: int = 0  # of a cooperative launch, zeroed
    buffers: dict[str, Region] = field(factory=dict[str, Region])
    allocate: Callable[[int], int] = lambda size: 0  # the kernel's own ``malloc``; 0: there is no more
    release: Callable[[int], object] = lambda address: None

    def place(self, address: int) -> Place:
        """What an address is, for people."""
        if address < 0:
            return Place(Space.SHARED, None, address - NOWHERE)
        if self.shared[0] <= address < self.shared[1]:
            offset = (address - self.shared[0]) % self.shared_stride
            inside = [r for r in self.regions if r.space is Space.SHARED and r.start <= offset]
            if not inside:
                return Place(Space.SHARED, None, offset)
            region = max(inside, key=lambda r: r.start)
            return Place(Space.SHARED, region.name, offset - region.start)
        below = [r for r in self.regions if r.space is Space.GLOBAL and r.start <= address]
        if not below:
            return Place(Space.GLOBAL, None, address)
        region = max(below, key=lambda r: r.start)  # beyond its end: what the address was meant for
        return Place(Space.GLOBAL, region.name, address - region.start)

    def exists(self, start: int, end: int) -> bool:
        """Whether all bytes between two addresses of the arena do."""
        granules = np.arange(start >> GRANULE_BITS, (end - 1 >> GRANULE_BITS) + 1)
        needed = np.minimum(end - (granules << GRANULE_BITS), GRANULE)
        return bool((needed <= self.limits[granules]).all())

    def size(self) -> int:
        """Bytes of all granules of which any byte exists."""
        return int(np.count_nonzero(self.limits)) << GRANULE_BITS

    def image(self) -> Array:
        """What these granules hold, ``(size,)``: a copy."""
        return self.data.reshape(-1, GRANULE)[self.limits > 0].reshape(-1)

    def contents(self, name: str) -> Array:
        """The bytes of a buffer now."""
        region = self.buffers[name]
        return self.data[region.start : region.start + region.size].copy()


def lay_out(
    arguments: Iterable[Argument],
    params: Mapping[str, tuple[int, int]],
    param_bytes: int,
    module: Iterable[PtxVariable],
    body: Iterable[PtxVariable],
    blocks: int,
    per_block: int,
    dynamic_shared: int,
    allocates: bool = False,
    backwards: bool = False,
) -> Memory:
    """Build the arena. ``body``: the kernel's shared and local variables; ``allocates``: it calls ``malloc``.
    ``backwards``: the buffers in the opposite order.

    Raises TooMuchMemory, and ValueError for a wrong number of arguments.
    """
    given = list(arguments)
    if len(given) != len(params):
        raise ValueError(f"the kernel takes {len(params)} arguments, {len(given)} are given")
    own, outer = list(body), list(module)
    regions: list[Region] = []
    symbols: dict[str, int] = {}
    top = GAP
    param_start = top
    top = after(top + max(param_bytes, 8))
    workspace = top
    top = after(top + WORKSPACE)
    for variable in outer:
        if variable.space in ("global", "const"):
            symbols[variable.name] = top
            size = variable.size or 8
            regions.append(Region(variable.name, top, size, Space.GLOBAL))
            top = after(top + size)
    shared_size = window([*own, *outer], "shared", symbols, regions, dynamic_shared)
    local_size = window(own, "local", symbols, [], 0)
    shared_stride, local_stride = after(shared_size), -(-local_size // 16) * 16 + 16
    shared_start, local_start = top, top + blocks * shared_stride + GAP
    local_end = local_start + blocks * per_block * local_stride
    check_windows(local_end - shared_start)
    top = after(local_end)
    buffers: dict[str, Region] = {}
    pointed = {buffer.name: len(buffer.data) for argument in given for _, buffer in argument.pointers}
    gap = max(_BUFFER_GAP, (_SPREAD - sum(pointed.values())) // (len(pointed) + 1) // GRANULE * GRANULE)
    top += gap if pointed else 0
    for name in reversed(pointed) if backwards else pointed:
        buffers[name] = Region(name, top, pointed[name], Space.GLOBAL)
        top = after(top + pointed[name]) + gap
    regions += buffers.values()
    own_heap = top
    top = after(top + (_HEAP_ROOM if allocates else 0))
    end = top + GAP
    if end > _LIMIT:
        raise TooMuchMemory(
            f"the launch needs {end >> 20} MiB of memory, more than {_LIMIT >> 20}; check fewer blocks"
        )
    end = -(-end // GRANULE) * GRANULE
    data = np.zeros(end, np.uint8)
    limits = no_limits(end)
    block = np.arange(blocks * per_block) // per_block
    mark(limits, param_start, param_start + max(param_bytes, 8))
    mark(limits, workspace, workspace + WORKSPACE)
    for region in regions:
        if region.space is Space.GLOBAL:
            mark(limits, region.start, region.start + region.size)
    mark_windows(limits, shared_start, shared_stride, blocks, shared_size)
    mark(limits, local_start, local_end)
    memory = Memory(
        data,
        limits,
        {kind: data.view(kind) for kind in VIEWS},
        regions,
        symbols,
        param_start,
        shared_start + block * shared_stride,
        (shared_start, shared_start + blocks * shared_stride),
        shared_stride,
        local_start + np.arange(blocks * per_block) * local_stride,
        (local_start, local_end),
        workspace,
        buffers,
    )
    if allocates:
        memory.allocate = _Bump(limits, regions, own_heap).allocate
    for variable in outer:
        if variable.name in symbols and variable.initialiser and variable.space != "shared":
            initialise(memory.data, memory.symbols, variable, symbols[variable.name])
    for argument, (start, size) in zip(given, params.values(), strict=True):
        _store_argument(memory, argument, param_start + start, size)
    return memory


@define
class _Bump:
    """The device's heap of a kernel that runs by itself: what is freed is not used again."""

    limits: Array  # and ``regions``: of its memory, which it does not hold
    regions: list[Region]
    top: int
    left: int = _OWN_HEAP

    def allocate(self, size: int) -> int:
        taken = (-(-size // _HEAP_UNIT) + 1) * _HEAP_UNIT
        if taken > self.left:
            return 0
        start, self.left = self.top, self.left - taken
        self.top = start + -(-(size + 1) // GRANULE) * GRANULE
        mark(self.limits, start, start + size)
        self.regions.append(Region("malloc", start, size, Space.GLOBAL))
        return start


def check_windows(size: int) -> None:
    """Whether shared and local memory of all that run together are bearable. Raises TooMuchMemory."""
    if size > _MOST_WINDOWS:
        raise TooMuchMemory(
            f"the launch needs {size >> 20} MiB of shared and local memory, more than the emulator grants"
            f" ({_MOST_WINDOWS >> 20})"
        )


def no_limits(end: int) -> Array:
    """``limits`` of an arena in which nothing exists yet."""
    return np.zeros(end >> GRANULE_BITS, np.uint16)


def mark(limits: Array, start: int, end: int, exists: bool = True) -> None:
    """Say whether the bytes from ``start``, where a granule begins, to ``end`` exist."""
    whole, rest = end >> GRANULE_BITS, end % GRANULE
    limits[start >> GRANULE_BITS : whole] = GRANULE if exists else 0
    if rest:
        limits[whole] = rest if exists else 0


def mark_windows(limits: Array, start: int, stride: int, count: int, size: int) -> None:
    """The first ``size`` bytes of ``count`` windows exist, which begin ``stride`` bytes from one another."""
    whole, rest = size >> GRANULE_BITS, size % GRANULE
    windows = limits[start >> GRANULE_BITS : (start + count * stride) >> GRANULE_BITS].reshape(count, -1)
    windows[:, :whole] = GRANULE
    if rest:
        windows[:, whole] = rest


def after(address: int) -> int:
    """Where the next object may begin."""
    return -(-address // GRANULE) * GRANULE + GAP


def window(
    variables: Iterable[PtxVariable], space: str, symbols: dict[str, int], regions: list[Region], dynamic: int
) -> int:
    """Offsets of the variables of one window; arrays of unknown extent share its end. Its size in bytes.

    Raises TooMuchMemory where no GPU has as much.
    """
    size = 0
    found = [v for v in variables if v.space == space]
    for variable in sorted(found, key=lambda v: v.count is None or v.size == 0):
        size = -(-size // variable.alignment) * variable.alignment
        symbols[variable.name] = size
        if space == "shared":
            regions.append(Region(variable.name, size, variable.size or dynamic, Space.SHARED))
        size += variable.size
    size += dynamic
    if size > _MOST_OF[space]:
        who, most = "block" if space == "shared" else "thread", _MOST_OF[space] >> 10
        raise TooMuchMemory(
            f"the kernel needs {size >> 10} KiB of {space} memory; a {who} has at most {most}"
        )
    return size


def _store_argument(memory: Memory, argument: Argument, start: int, size: int) -> None:
    value = np.frombuffer(argument.value[:size].ljust(size, b"\0"), np.uint8)
    memory.data[start : start + size] = value
    for at, buffer in argument.pointers:
        region = memory.buffers[buffer.name]
        memory.data[region.start : region.start + region.size] = buffer.data
        pointer = argument.address(at, region.start)
        memory.data[start + at : start + at + 8] = np.frombuffer(pointer, np.uint8)


def initialise(data: Array, symbols: Mapping[str, int], variable: PtxVariable, start: int) -> None:
    """Write what a module says of a variable's first contents."""
    text = (variable.initialiser or "").replace("{", " ").replace("}", " ").strip()
    size = type_size(variable.type)
    kind = np.dtype(f"{variable.type[0] if variable.type[0] == 'f' else 'u'}{size}")
    for k, part in enumerate(p for p in split_operands(text) if p):
        operand = parse_operand(part)
        if isinstance(operand, IntegerOperand):
            value = np.array([operand.value & (1 << 8 * size) - 1], f"u{size}")
        elif isinstance(operand, FloatOperand):
            value = np.array([operand.value], kind)
        else:
            name = getattr(operand, "name", "")
            place = symbols[name] if name in symbols else function_address(name)
            value = np.array([place + getattr(operand, "offset", 0)], f"u{size}")
        data[start + k * size : start + (k + 1) * size] = value.view(np.uint8)
