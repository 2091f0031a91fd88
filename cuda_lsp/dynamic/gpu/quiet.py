"""Accesses to global memory that cannot race, whatever threads do there: nothing of the launch writes to it.

Known from where addresses come from (``ptx/origins.py``) and what the launch's pointers point to. An access
that leaves its allocation is told as such, or is the program's own risk; it races with nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from attrs import define, field, frozen

from cuda_lsp.dynamic.gpu.records import RANGES, Extent
from cuda_lsp.dynamic.ptx.module import PtxModule
from cuda_lsp.dynamic.ptx.origins import Origin, Origins, origins, space_of
from cuda_lsp.dynamic.runs import Argument, KernelRun, PtxSite, SiteKind
from cuda_lsp.model import Mode, Scope, Space

Memory = int | str  # a buffer, an allocation, or the name of a variable


class Shadow(Enum):
    """What the detector has to keep of a piece of memory: nothing, who wrote, or everything."""

    NOTHING = 0
    WRITERS = 1
    ALL = 2


@frozen
class Likely:
    """Of a launch's sites, by number.

    ``spaces``: where generic addresses lie. ``quiet``: they cannot race in global memory. ``shadows``: of
    buffers (their id), allocations (their start) and variables (their name); of others ``elsewhere``.
    ``homes``: the one buffer that a site accesses, by its place among those of the arguments.
    """

    spaces: Mapping[int, Space] = field(factory=dict[int, Space])
    quiet: frozenset[int] = frozenset()
    shadows: Mapping[Memory, Shadow] = field(factory=dict[Memory, Shadow])
    elsewhere: Shadow = Shadow.ALL
    homes: Mapping[int, int] = field(factory=dict[int, int])

    def shadow(self, memory: Memory) -> Shadow:
        """What is kept of a piece of memory."""
        return self.shadows.get(memory, self.elsewhere)


def likely(module: PtxModule, request: KernelRun, allocations: Sequence[Extent] | None) -> Likely:
    """``allocations``: of the program that makes the launch; None: all memory is buffers of arguments."""
    known = origins(module, request.entry)
    found = [known.get((site.function, site.index), frozenset[Origin]()) for site in request.sites]
    spaces = {
        number: space
        for number, origin in enumerate(found)
        if request.sites[number].space is None and (space := space_of(origin)) is not None
    }
    names = (parameter.name for parameter in module.functions[request.entry].params)
    uses = _Uses(dict(zip(names, request.arguments, strict=True)), allocations)
    for site, origin in 2 * list(zip(request.sites, found, strict=True)):  # then all widths are known
        uses.add(site, origin)
    numbers = range(len(request.sites))
    return Likely(
        spaces,
        frozenset(n for n in numbers if uses.is_quiet(request.sites[n], found[n])),
        {memory: _shadow(uses.around(memory)) for memory in uses.modes},
        _shadow(uses.anywhere),
        dict(uses.homes(found)) if allocations is None else {},
    )


@define
class _Uses:
    """What happens to each piece of global memory. ``anywhere``: what happens at addresses of nobody."""

    arguments: Mapping[str, Argument]
    allocations: Sequence[Extent] | None
    modes: dict[Memory, set[Mode]] = field(factory=lambda: defaultdict[Memory, set[Mode]](set))
    anywhere: set[Mode] = field(factory=set[Mode])
    widths: set[int] = field(factory=set[int])  # of atomics

    def add(self, site: PtxSite, found: Origins) -> None:
        """Take note of an access."""
        if site.kind not in (SiteKind.ACCESS, SiteKind.MATRIX) or site.space is Space.SHARED:
            return
        mode = site.mode or Mode.ATOMIC
        if mode.atomic:
            self.widths.add(site.bytes)
        modes = {mode}
        if mode.atomic and (site.scope is Scope.BLOCK or len(self.widths) > 1):
            modes.add(Mode.WRITE)  # may race with its like
        memory = self._memory(found)
        for one in memory or ():
            self.modes[one] |= modes
        if memory is None:
            self.anywhere |= modes

    def _memory(self, found: Origins) -> list[Memory] | None:
        """What an address may lie in; None: anything. Shared variables are none of it."""
        memory = list(self._pieces(found))
        return memory if found and (memory or all(o.space == "shared" for o in found)) else None

    def _pieces(self, found: Origins) -> Iterator[Memory]:
        for origin in found:
            if origin.space == "param":
                yield from self._pointed(origin)
            elif origin.space != "shared":
                yield origin.name

    def _pointed(self, origin: Origin) -> Iterator[Memory]:
        argument = self.arguments[origin.name]
        if self.allocations is None:
            yield from (id(b) for at, b in argument.pointers if at == origin.offset)
            return
        address = int.from_bytes(argument.value[origin.offset : origin.offset + 8], "little")
        inside = [e for e in self.allocations if e.start <= address < e.end]
        yield from (e.start for e in inside)
        if not inside and address:
            yield address

    def homes(self, found: Sequence[Origins]) -> Iterator[tuple[int, int]]:
        """Sites that access one buffer."""
        buffers = dict.fromkeys(id(b) for a in self.arguments.values() for _, b in a.pointers)
        places: dict[Memory, int] = {buffer: place for place, buffer in enumerate(buffers) if place < RANGES}
        for number, origin in enumerate(found):
            memory = set(self._memory(origin) or ())
            if len(memory) == 1 and (place := places.get(memory.pop())) is not None:
                yield number, place

    def around(self, memory: Memory) -> set[Mode]:
        """Everything that happens to a piece of memory."""
        return self.modes[memory] | self.anywhere

    def is_quiet(self, site: PtxSite, found: Origins) -> bool:
        """Whether an access cannot race wherever in global memory it goes."""
        if site.kind is not SiteKind.ACCESS or not site.mode or site.space is Space.SHARED:
            return False
        memory = self._memory(found)
        return bool(memory) and all(_shadow(self.around(one)) is Shadow.NOTHING for one in memory or ())


def _shadow(modes: set[Mode]) -> Shadow:
    if not any(mode.writes for mode in modes) or modes <= {Mode.ATOMIC, Mode.ATOMIC_READ}:
        return Shadow.NOTHING
    return Shadow.WRITERS if modes == {Mode.WRITE} else Shadow.ALL
