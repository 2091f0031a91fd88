"""Loads, stores, atomics and copies over all threads at once: what they touch, and what they leave there.

Accesses that may race are recorded; the contents of arrays that later addresses or conditions depend on
are kept, shared ones in ``contents``, private ones cell by cell.  Everything else reads as unknown data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve

from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import Array, Atomic, Const, Copy, Expr, Load, Store
from cuda_lsp.ir.types import Int, Pointer
from cuda_lsp.ir.walk import accesses, variables
from cuda_lsp.model import Mode, Site, Space
from cuda_lsp.static import budgets
from cuda_lsp.static.execution import tickets
from cuda_lsp.static.execution.contents import SharedContents
from cuda_lsp.static.execution.copies import InFlight, two_of_each
from cuda_lsp.static.execution.masks import Mask
from cuda_lsp.static.execution.private_cells import PrivateCells
from cuda_lsp.static.execution.state import Execution
from cuda_lsp.static.execution.trace import LockEvent, Ticketing, array_bytes
from cuda_lsp.static.execution.values import (
    Address,
    Choice,
    Data,
    Flags,
    Lanes,
    Spread,
    Ticket,
    Value,
    distinct,
    identity,
    spread_of,
)
from cuda_lsp.static.slicing import tracked


def load(machine: Execution, s: Load, mask: Mask) -> Mask:
    """Reads by the lanes of ``mask``; which lanes go on, as of the steps below."""
    wanted = s.var is not None and s.var.id in machine.facts.relevant
    if not wanted and _skippable(machine, s):
        return mask
    values: list[tuple[Flags | None, Value]] = []
    certain = True  # that it is known which of several places each lane reads
    for lanes, address, part in _targets(machine, s.pointer, mask, s.site):
        if part is None:
            continue
        certain = certain and (lanes is not None or part is mask)
        if s.part:
            pass  # the load of all of it was recorded
        elif _records(machine, address.array):
            machine.record(s.site, address, Mode.READ, s.type.size, part)
        elif address.array.space is Space.GLOBAL:
            _sample(machine, s, address, part)
        if wanted:
            values.append((lanes, _loaded(machine, s, address, part)))
    if wanted and s.var is not None:
        result: Value | None = None
        for lanes, value in values:
            if result is None:
                result = value
            elif certain and lanes is not None:
                result = machine.eval.merge(lanes, value, result)
            else:
                result = machine.eval.either(value, result)
        if result is None:
            result = machine.eval.fresh(f"the value of {s.site.text or 'an unresolved load'}", weak=True)
        machine.define(s, s.var, result, mask)
    return mask


def _skippable(machine: Execution, s: Load) -> bool:
    """A read of memory nobody writes, seen often enough."""
    roots = machine.facts.roots(s.pointer)
    if not roots or any(_records(machine, a) for a in roots):
        return False
    if all(a.space is not Space.GLOBAL for a in roots):
        return True
    seen = machine.samples.get(id(s), 0)
    machine.samples[id(s)] = seen + 1
    return seen >= budgets.READ_SAMPLES


def _records(machine: Execution, array: Array) -> bool:
    return tracked(machine.facts, array)


def _sample(machine: Execution, s: Load, address: Address, mask: Mask) -> None:
    if not isinstance(address.offset, Data) and len(machine.path.reads) < budgets.MOST_READS:
        key = (id(s), identity(address.offset), id(mask.must))
        machine.path.reads.setdefault(key, (s, address.array, address.offset, mask.must))


def _targets(
    machine: Execution, pointer: Expr, mask: Mask, site: Site, writes: bool = False
) -> list[tuple[Flags | None, Address, Mask | None]]:
    """The addresses a pointer denotes: (lanes or None, address, executing lanes)."""
    value = machine.eval.value(pointer)
    if isinstance(value, Address):
        return [(None, value, mask)]
    if isinstance(value, Choice):
        result: list[tuple[Flags | None, Address, Mask | None]] = []
        for lanes, address in value.options:
            if lanes is None:
                none = np.zeros_like(mask.must)
                possible = Mask(none, mask.may, mask.guards, mask.drawn, mask.doubt, split=True)
                result.append((None, address, possible))
            else:
                result.append((lanes, address, machine.narrowed(mask, lanes)))
        return result
    line = site.range.start.line
    machine.trace.not_decided(f"line {line}: `{site.text}` goes through a pointer whose target is unknown")
    if writes:
        _blind(machine, pointer)
    return []


def _loaded(machine: Execution, s: Load, address: Address, mask: Mask) -> Value:
    array, offset = address.array, address.offset
    if machine.held and array in machine.facts.written and array.space is not Space.LOCAL:
        # what whoever had the lock before left there
        return machine.eval.fresh(f"the value of {s.site.text}", weak=True)
    if array.id in machine.facts.modelled:
        if array.space is Space.LOCAL:
            return _load_local(machine, s, address)
        known = _shared(machine, array).load(offset, s.type, mask.may)
        if isinstance(known, Data):
            return _broadcast(machine, known)
        if known is not None:
            return known
    if isinstance(s.type, Pointer):
        return machine.eval.fresh(f"the pointer {s.site.text}", weak=True)
    spread = spread_of(offset, machine.blocks)
    if array.space is Space.SHARED:
        spread = min(spread, Spread.BLOCK)
    if array.space is Space.LOCAL:
        spread = Spread.THREAD
    bounds: dict[str, Any] = {}
    if isinstance(s.type, Int) and s.type.bits <= 16:
        bounds = {"low": s.type.minimum, "high": s.type.maximum}
    key = ("load", array.id, machine.eval.content(offset), machine.versions.get(array.id, 0), s.type)
    weak = isinstance(offset, Data) and offset.weak
    if array.space is Space.SHARED or (array.space is not Space.LOCAL and array not in machine.facts.written):
        # who writes there meanwhile is told of itself
        bounds["made"] = ((*key[:2], *key[3:], array.space), (offset,))
    return machine.eval.data(key, f"the value of {s.site.text}", spread, weak=weak, **bounds)


def _broadcast(machine: Execution, term: Data) -> Data:
    """One thread's value, read by the whole block."""
    ticket, drawn = term.ticket, term.drawn
    return machine.eval.data(
        ("broadcast", term.serial), term.reason, max(term.spread, Spread.BLOCK),
        weak=term.weak, low=term.low, high=term.high,
        drawn=None if drawn is None else evolve(drawn, by_block=True, holds=drawn.holds is True),
        ticket=None if ticket is None else evolve(ticket, by_block=True),
    )  # fmt: skip


def _shared(machine: Execution, array: Array) -> SharedContents:
    known = machine.shared.get(array.id)
    if known is None:
        size = array_bytes(array, machine.trace.launch)
        known = machine.shared[array.id] = SharedContents.empty(array.element, size, machine.blocks)
    return known


def _load_local(machine: Execution, s: Load, address: Address) -> Value:
    cells, offset, size = _private(machine, address.array), address.offset, s.type.size
    if isinstance(offset, int):
        kept = cells.at(offset, size)
        if kept is not None:
            return kept
    elif isinstance(offset, np.ndarray):
        found = [int(o) for o in distinct(offset)]
        few = len(found) <= budgets.MOST_PRIVATE_CELLS
        known = [(o, value) for o in found if few and (value := cells.at(o, size)) is not None]
        if len(known) == len(found):
            result = known[0][1]
            for o, value in known[1:]:
                result = machine.eval.merge(offset == o, value, result)
            return result
    return machine.eval.fresh(f"the value of {s.site.text}")


def _private(machine: Execution, array: Array) -> PrivateCells:
    return machine.local.setdefault(array.id, PrivateCells())


def store(machine: Execution, s: Store, mask: Mask) -> Mask:
    """Writes by the lanes of ``mask``."""
    for _, address, part in _targets(machine, s.pointer, mask, s.site, True):
        if part is None:
            continue
        array = address.array
        stored = _stored(machine, s.value, array)
        machine.versions[array.id] = machine.versions.get(array.id, 0) + 1
        if _records(machine, array):
            machine.record(s.site, address, Mode.WRITE, s.type.size, part, stored=stored)
        if array.id in machine.facts.modelled:
            _remember_store(machine, s, address, stored, part)
        if array in machine.facts.lock_arrays:
            _lock(machine, s, array, part, False)
    return mask


def _lock(machine: Execution, s: Store | Atomic, array: Array, mask: Mask, takes: bool) -> None:
    if isinstance(s, Atomic) and not s.row.writes:
        return
    line = s.site.range.start.line
    machine.path.locks.append(LockEvent(machine.sequence, machine.clock, array, takes, mask.must, line))


def _stored(machine: Execution, e: Expr, array: Array) -> Value | None:
    """The stored value where it matters: modelled contents, or whether two stores agree."""
    if array.id in machine.facts.modelled or isinstance(e, Const):
        return machine.eval.value(e)
    known = all(var.id in machine.eval.env for var in variables(e))
    return machine.eval.value(e) if known and array.space is not Space.LOCAL else None


def _remember_store(machine: Execution, s: Store, address: Address, stored: Value | None, mask: Mask) -> None:
    value = stored if stored is not None else machine.eval.fresh("a stored value")
    if address.array.space is not Space.LOCAL:
        _shared(machine, address.array).store(address.offset, value, s.type, mask.must, mask.may)
        return
    cells = _private(machine, address.array)
    if not isinstance(address.offset, int):
        _scatter_local(machine, cells, address.offset, s.type.size, value, mask)
        return
    full = mask.sure and mask.may is machine.everyone.must
    _put(machine, cells, address.offset, s.type.size, value, None if full else mask)


def _scatter_local(
    machine: Execution, cells: PrivateCells, at: Lanes | Data, size: int, value: Value, mask: Mask
) -> None:
    offsets = set[int]() if isinstance(at, Data) else set[int](at.ravel().tolist())
    if isinstance(at, Data) or len(offsets) > budgets.MOST_PRIVATE_CELLS:
        cells.forget()
        return
    for o in sorted(offsets):
        lanes = machine.narrowed(mask, np.equal(at, o))
        if lanes is not None:
            _put(machine, cells, o, size, value, lanes)


def _put(
    machine: Execution, cells: PrivateCells, offset: int, size: int, value: Value, mask: Mask | None
) -> None:
    """A store by the lanes of ``mask`` (None: by all); the others keep what they had."""
    cells.give_up(offset, size)
    old = cells.at(offset, size)
    if old is None and cells.forgotten and mask is not None:
        old = machine.eval.fresh("what a thread's own array held before")
    cells.keep(offset, size, value if old is None or mask is None else machine.merged(value, old, mask))


def atomic(machine: Execution, s: Atomic, mask: Mask) -> Mask:
    """Updates by the lanes of ``mask``."""
    result: Value | None = None
    for _, address, part in _targets(machine, s.pointer, mask, s.site, True):
        if part is None:
            continue
        array = address.array
        if _records(machine, array):
            machine.record(
                s.site,
                address,
                s.mode,
                s.type.size,
                part,
                scope=s.scope,
                elementwise=s.elementwise,
            )
        if array.id in machine.facts.modelled and array.space is Space.SHARED and s.row.writes:
            unknown = machine.eval.fresh("an atomic")
            _shared(machine, array).store(address.offset, unknown, s.type, part.must, part.may)
        if array.space is Space.LOCAL and s.row.writes:
            _private(machine, array).forget()
        if id(s) in machine.facts.acquiring or array in machine.facts.lock_arrays:
            _lock(machine, s, array, part, id(s) in machine.facts.acquiring)
        ticket = _number_drawn(machine, s, address, part)
        if s.var is not None and s.var.id in machine.facts.relevant:
            reason = f"the old value that {s.site.text or 'an atomic'} returns"
            result = machine.eval.fresh(reason, ticket=ticket)
        machine.versions[array.id] = machine.versions.get(array.id, 0) + s.row.writes
    if s.var is not None and s.var.id in machine.facts.relevant:
        machine.define(
            s, s.var, machine.eval.fresh("an atomic", weak=True) if result is None else result, mask
        )
    return mask


def _number_drawn(machine: Execution, s: Atomic, address: Address, mask: Mask) -> Ticket | None:
    """The numbers that a counter hands out here; None: they need not be distinct."""
    if address.array in machine.facts.reached:
        return None  # other blocks draw from it, too
    if not s.row.moves or not _only_counts(machine, s, address.array):
        return None
    gap, wraps = machine.eval.scalar(s.operands[0]), s.op is AtomicOp.INC
    if isinstance(gap, int) and not wraps:
        gap = abs(tickets.signed(gap, s.type.size))
    within = min(spread_of(address.offset, machine.blocks), Spread.GRID)
    if address.array.space is Space.SHARED:
        within = min(within, Spread.BLOCK)
    # Plain stores to the counter (a reset) start a new family; atomics do not.
    resets = machine.plain_stores.get(address.array.id, 0)
    family = hash((address.array.id, identity(address.offset), resets))
    counts = wraps or (isinstance(gap, int) and gap > 0)
    x, y, z = machine.grid if within is Spread.GRID else (1, 1, 1)
    draws = tickets.draws_of_grid(mask.must, mask.may, machine.blocks, x * y * z)
    limit = (gap if isinstance(gap, int) else -1) if wraps else None
    machine.path.tickets.append(
        Ticketing(
            family, address.array.id, machine.sequence, machine.clock, mask.must, draws if counts else None,
            1 if wraps or not isinstance(gap, int) else gap, isinstance(address.offset, int),
            tickets.direction(s) == "down", limit,
        )
    )  # fmt: skip
    if not counts or within < Spread.BLOCK:
        return None
    # atomicInc starts again at 0 beyond its limit: its last number is one, its slots are not
    return Ticket(family, gap if not wraps and isinstance(gap, int) else 0, (), within)


def _only_counts(machine: Execution, counting: Atomic, array: Array) -> bool:
    """All atomics of the kernel on this counter move it the same way."""
    ways = machine.atomic_ways.get(array.id)
    if ways is None:
        ways = machine.atomic_ways[array.id] = {
            tickets.direction(s) for s in machine.facts.statements
            if isinstance(s, Atomic) and array in (machine.facts.roots(s.pointer) or {array})
        }  # fmt: skip
    return None not in ways and ways <= {tickets.direction(counting), ""}


def copy(machine: Execution, s: Copy, mask: Mask) -> Mask:
    """Reads and writes of a copy by the lanes of ``mask``; an asynchronous one begins."""
    size = _copied_bytes(machine, s)
    if size is None:
        _blind(machine, s.destination)
    for pointer, mode, site in accesses(s):
        for _, address, part in _targets(machine, pointer, mask, site, mode.writes):
            if size is not None and part is not None and _records(machine, address.array):
                if s.asynchronous:
                    _issue(machine, s, address, mode, size, part)
                else:
                    stored = _copied_value(machine, s, size, part) if mode is Mode.WRITE else None
                    machine.record(site, address, mode, size, part, copied=True, stored=stored)
            if mode is Mode.WRITE:
                machine.versions[address.array.id] = machine.versions.get(address.array.id, 0) + 1
                if address.array.space is Space.LOCAL:
                    _private(machine, address.array).forget()
                if address.array.space is Space.SHARED and address.array.id in machine.facts.modelled:
                    _shared(machine, address.array).forget()
    return mask


def _copied_value(machine: Execution, s: Copy, size: int, mask: Mask) -> Value | None:
    """What a copy stores, where values are followed and nobody writes to where it comes from."""
    targets = _targets(machine, s.source, mask, s.site) if machine.trace.kernel.valued else []
    if len(targets) != 1:
        return None
    (_, address, _) = targets[0]
    array, offset = address.array, address.offset
    if array.space is Space.LOCAL:
        cells = _private(machine, array)
        if not isinstance(offset, int) or offset not in cells.values:
            return None
        return machine.eval.made_of(("copied", size), tuple(cells.within(offset, size)))
    if array in machine.facts.written:
        return None
    version = machine.versions.get(array.id, 0)
    key = ("copied", array.id, machine.eval.content(offset), version, size)
    made = (("copied", array.id, size, array.space), (offset,))
    return machine.eval.data(key, f"the value of {s.site.text}", spread_of(offset, machine.blocks), made=made)


def _copied_bytes(machine: Execution, s: Copy) -> int | None:
    """How many; None: that is not known, and said."""
    size, at = machine.eval.scalar(s.size), s.site.range.start.line
    if not isinstance(size, int):
        machine.trace.not_decided(f"line {at}: a copy whose size is not one known number")
    elif size < 0:  # as `size_t`
        machine.trace.not_decided(f"line {at}: a copy of more bytes than there are")
    else:
        return size
    return None


def _blind(machine: Execution, pointer: Expr) -> None:
    """Bytes are written, but which ones of the arrays behind ``pointer`` nobody knows."""
    machine.path.blind |= {a.id for a in machine.facts.roots(pointer) or machine.trace.kernel.arrays}


def _issue(machine: Execution, s: Copy, address: Address, mode: Mode, size: int, mask: Mask) -> None:
    """A copy begins, which goes on until it is awaited."""
    site, finishes = s.where(mode), np.full(mask.may.shape[-1], -1, np.int64)
    team = machine.copies.team(s, mask)
    if team is not None:
        mask = two_of_each(mask, team)
    machine.record(site, address, mode, size, mask, copied=True, finishes=finishes, team=team)
    group = np.full(mask.may.shape, -1, np.int64)
    access = machine.path.accesses[-1]
    machine.copies.open.append(InFlight(site, address, mode, size, mask, group, finishes, team, access))
