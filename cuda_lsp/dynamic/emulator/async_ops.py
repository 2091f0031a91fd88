"""Asynchronous copies and mbarriers: PTX instruction → calls of ``Async``.

Source: PTX ISA 9.7.9.25 "Asynchronous copy" and 9.7.13.15 "mbarrier". A copy is made when it is issued, but
counts as going on until its threads wait for it: until then whoever touches its target races with it. An
mbarrier orders what its threads did before they arrived with what follows a successful wait.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field

from cuda_lsp.dynamic.emulator.emitter import Emitter
from cuda_lsp.dynamic.emulator.flatten import Untranslatable
from cuda_lsp.dynamic.ptx.module import Instruction

if TYPE_CHECKING:
    from cuda_lsp.dynamic.emulator.services import Services

Array = Any
Mask = Any
Address = Callable[[Emitter, str, str], str]


# ------------------------------------------------------------------------------------- translation


def emit_copy(e: Emitter, code: Instruction, number: int, address: Address) -> None:
    """Everything that begins with ``cp.async``."""
    words = {word.partition("__")[0] for word in code.modifiers}
    arguments = code.arguments
    if "bulk" in words:
        return _bulk(e, code, words, address)
    if "mbarrier" in words:
        e.lines.append(f"S.asynchronous.wait(None, {e.mask})")
        if "noinc" in words:
            where = address(e, arguments[0], _space(words))
            e.lines.append(f"S.asynchronous.arrive({where}, {e.read('1', 'u32')}, {e.mask})")
    elif "commit_group" in words:
        e.lines.append(f"S.asynchronous.commit({e.mask})")
    elif "wait_group" in words:
        e.lines.append(f"S.asynchronous.wait({int(arguments[0], 0)}, {e.mask})")
    elif "wait_all" in words:
        e.lines.append(f"S.asynchronous.wait(None, {e.mask})")
    elif "shared" in words:
        target, source = address(e, arguments[0], "shared"), address(e, arguments[1], "global")
        size = int(arguments[2], 0)
        given = e.read(arguments[3], "u32") if len(arguments) > 3 else "None"
        e.lines.append(f"S.asynchronous.copy({number}, {target}, {source}, {size}, {given}, {e.mask})")
    else:
        raise Untranslatable(code.opcode)


def _bulk(e: Emitter, code: Instruction, words: set[str], address: Address) -> None:
    """A bulk copy from global to shared memory that reports to an mbarrier; no tensors."""
    if (
        "tensor" in words
        or "complete_tx" not in {w.partition("::")[2].partition("::")[0] for w in words} | words
    ):
        raise Untranslatable(code.opcode)
    target, source, size, barrier = code.arguments[:4]
    given = f"{address(e, target, 'shared')}, {address(e, source, 'global')}, {e.read(size, 'u32')}"
    e.lines.append(f"S.asynchronous.bulk({given}, {address(e, barrier, 'shared')}, {e.mask})")


def emit_mbarrier(e: Emitter, code: Instruction, number: int, address: Address) -> None:
    """Everything that begins with ``mbarrier``."""
    words = {word.partition("__")[0] for word in code.modifiers}
    arguments = list(code.arguments)
    space = _space(words)
    if "init" in words:
        count = e.read(arguments[1], "u32")
        e.lines.append(f"S.asynchronous.begin({address(e, arguments[0], space)}, {count}, {e.mask})")
    elif "inval" in words:
        return
    elif "expect_tx" in words and "arrive" not in words:
        size = e.read(arguments[1], "u32")
        e.lines.append(f"S.asynchronous.expect({address(e, arguments[0], space)}, {size}, {e.mask})")
    elif words & {"arrive", "arrive_drop"}:
        target = arguments.pop(0) if not arguments[0].startswith("[") else "_"
        where = address(e, arguments[0], space)
        extra = e.read(arguments[1], "u32") if len(arguments) > 1 else e.read("1", "u32")
        if "expect_tx" in words:
            e.lines.append(f"S.asynchronous.expect({where}, {extra}, {e.mask})")
            extra = e.read("1", "u32")
        drops = "arrive_drop" in words
        e.write(target, f"S.asynchronous.arrive({where}, {extra}, {e.mask}, {drops})", "b64")
    elif "test_wait" in words or "try_wait" in words:
        kind = "u32" if "parity" in words else "b64"
        state, parity = e.read(arguments[2], kind), "parity" in words
        where = address(e, arguments[1], space)
        e.write(arguments[0], f"S.asynchronous.passed({where}, {state}, {parity}, {e.mask})", "pred")
    else:
        raise Untranslatable(code.opcode)


def _space(words: set[str]) -> str:
    return "shared" if any(word.startswith("shared") for word in words) else "generic"


# --------------------------------------------------------------------------------------- execution


@define(eq=False)
class _Barrier:
    """One mbarrier. ``arrived``: who came in this phase, and when (access sequence); 0: not."""

    expected: int
    pending: int
    arrived: Array
    phase: int = 0
    transactions: int = 0
    complete: dict[int, Array] = field(factory=dict[int, Array])  # phase → who had arrived, when


@define(eq=False)
class _Copy:
    """A copy that threads of ``mask`` have not waited for. ``group``: commits of each thread before it."""

    number: int
    target: Array
    mask: Array
    size: int
    group: Array


@define(eq=False)
class Async:
    """Copies under way and mbarriers of one launch."""

    services: Services
    barriers: dict[int, _Barrier] = field(factory=dict[int, _Barrier])
    pending: list[_Copy] = field(factory=list[_Copy])
    commits: Array = None

    def __attrs_post_init__(self) -> None:
        self.commits = np.zeros(self.services.threads, np.int64)

    def _lanes(self, mask: Mask) -> Array:
        return np.arange(self.services.threads) if mask is None else np.flatnonzero(mask)

    def _spread(self, value: Array) -> Array:
        return np.broadcast_to(np.asarray(value), (self.services.threads,))

    # ------------------------------------------------------------------------------------ copies

    def copy(self, number: int, target: Array, source: Array, size: int, given: Mask, mask: Mask) -> None:
        """``cp.async``: ``size`` bytes a lane, zeros beyond the ``given`` ones."""
        moved = self.services.copy(number, target, source, size, given, mask)
        active = np.ones(self.services.threads, bool) if moved is None else moved.copy()
        self.pending.append(_Copy(number, self._spread(target), active, size, self.commits.copy()))

    def commit(self, mask: Mask) -> None:
        """Later copies of these threads belong to a new group."""
        self.commits[self._lanes(mask)] += 1

    def wait(self, allowed: int | None, mask: Mask) -> None:
        """All groups but the newest ``allowed`` of these threads are there; None: every copy is."""
        lanes = np.zeros(self.services.threads, bool)
        lanes[self._lanes(mask)] = True
        for copy in self.pending:
            done = lanes if allowed is None else lanes & (copy.group < self.commits - allowed)
            ended = copy.mask & done
            if ended.any():  # it may have written until now, whatever ordered its beginning
                self.services.log_write(copy.number, copy.target, ended, copy.size)
            copy.mask &= ~done
        self.pending = [copy for copy in self.pending if copy.mask.any()]

    def linger(self) -> None:
        """An interval ends: copies nobody has waited for still write in it."""
        for copy in self.pending:
            self.services.log_write(copy.number, copy.target, copy.mask.copy(), copy.size)

    def bulk(self, target: Array, source: Array, size: Array, barrier: Array, mask: Mask) -> None:
        """``cp.async.bulk``: made at once, its bytes reported to an mbarrier."""
        target, source, size = self._spread(target), self._spread(source), self._spread(size)
        data = self.services.memory.data
        for lane in self._lanes(mask).tolist():
            bytes_ = int(size[lane])
            start, at = int(target[lane]), int(source[lane])
            data[start : start + bytes_] = data[at : at + bytes_]
        self.expect(barrier, -size.astype(np.int64), mask)

    # --------------------------------------------------------------------------------- mbarriers

    def begin(self, address: Array, count: Array, mask: Mask) -> None:
        """``mbarrier.init``."""
        address, count = self._spread(address), self._spread(count)
        for lane in self._lanes(mask).tolist():
            expected = int(count[lane])
            nobody = np.zeros(self.services.threads, np.int64)
            self.barriers[int(address[lane])] = _Barrier(expected, expected, nobody)

    def _at(self, address: int) -> _Barrier:
        known = self.barriers.get(address)
        if known is None:  # never initialised: nobody can pass it
            known = self.barriers[address] = _Barrier(
                1 << 20, 1 << 20, np.zeros(self.services.threads, np.int64)
            )
        return known

    def expect(self, address: Array, size: Array, mask: Mask) -> None:
        """Bytes of bulk copies to wait for, or (negative) that have come."""
        address, size = self._spread(address), self._spread(size)
        for lane in self._lanes(mask).tolist():
            barrier = self._at(int(address[lane]))
            barrier.transactions += int(size[lane])
            self._complete(barrier)

    def arrive(self, address: Array, count: Array, mask: Mask, drops: bool = False) -> Array:
        """The phase in which each thread arrived. ``drops``: later phases do not expect it."""
        address, count = self._spread(address), self._spread(count)
        now = self.services.order.arrives()
        states = np.zeros(self.services.threads, np.uint64)
        for lane in self._lanes(mask).tolist():
            barrier = self._at(int(address[lane]))
            states[lane] = barrier.phase
            barrier.arrived[lane] = now
            barrier.pending -= int(count[lane])
            barrier.expected -= int(count[lane]) if drops else 0
            self._complete(barrier)
        self.services.wake()
        return states

    def _complete(self, barrier: _Barrier) -> None:
        if barrier.pending > 0 or barrier.transactions != 0:
            return
        barrier.complete = {barrier.phase: barrier.arrived}
        barrier.arrived = np.zeros(self.services.threads, np.int64)
        barrier.phase += 1
        barrier.pending = barrier.expected

    def passed(self, address: Array, state: Array, parity: bool, mask: Mask) -> Array:
        """Whether the phase of each thread is over; those for whom it is come after all who arrived in it."""
        address, state = self._spread(address), self._spread(state)
        found = np.zeros(self.services.threads, bool)
        order = self.services.order
        order.sequence += 1
        groups: dict[int, list[int]] = {}
        for lane in self._lanes(mask).tolist():
            groups.setdefault(int(address[lane]), []).append(lane)
        for where, lanes in groups.items():
            barrier, given = self._at(where), state[lanes].astype(np.int64)
            over = (barrier.phase & 1) != (given & 1) if parity else barrier.phase > given
            found[np.array(lanes)[over]] = True
            arrived = barrier.complete.get(barrier.phase - 1)
            if over.any() and arrived is not None:
                after = np.zeros(self.services.threads, bool)
                after[np.array(lanes)[over]] = True
                order.meet(arrived, after)
        missed = np.zeros(self.services.threads, bool)
        missed[self._lanes(mask)] = True
        self.services.rest(missed & ~found)
        return found


TABLE: Mapping[str, Callable[[Emitter, Instruction, int, Address], None]] = {
    "cp": emit_copy,
    "mbarrier": emit_mbarrier,
}
