"""What barriers of some threads order, in one block between two barriers of all.

The operations are replayed by classes of threads that do the same, each as far as its waits allow, whatever
the order in which branches were executed; what a class then knows of the others is a vector clock (Mattern
1989).  The n-th arrival of a thread is taken for the n-th phase, and that is checked: it holds when the
thread knows that the phase before is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from cuda_lsp.ir.program import BarrierScope
from cuda_lsp.static.execution.barrier_phases import NOBODY, Filling, Ints, Operation, Order, Phases
from cuda_lsp.static.execution.lanes import by_lane
from cuda_lsp.static.execution.trace import Access, Path
from cuda_lsp.static.execution.values import Flags, Lanes, distinct


class Replay:
    """The operations of one block, class by class."""

    def __init__(
        self, phases: Phases, operations: Sequence[Operation], label: Ints, known: Iterable[int]
    ) -> None:
        labels, first, of = np.unique(label, return_index=True, return_inverse=True)
        self.phases = phases
        self.everybody: set[int] = set(known)
        self.lost: str | None = None
        self.of: Ints = np.reshape(of, -1)
        self.first: Ints = first
        self.classes = len(labels)
        self.sizes = [int((self.of == c).sum()) for c in range(self.classes)]
        self.todo = [[o for o in operations if o.object[thread] != NOBODY] for thread in first]
        self.at = [0] * self.classes
        self.arrived = [False] * self.classes
        self.known: list[Ints] = [np.zeros(self.classes, np.int64) for _ in labels]
        self.complete: list[set[int]] = [set(self.everybody) for _ in labels]
        self.times = [[-1] for _ in labels]
        self.knowledge: list[list[Ints]] = [[np.array(k)] for k in self.known]
        self.completed = [[frozenset(c)] for c in self.complete]
        self.passed: list[tuple[int, Operation, int]] = []  # class, wait, incomplete phase

    def run(self) -> None:
        """Until nobody gets on."""
        moved = True
        while moved and not self.lost:
            moved = False
            for c in range(self.classes):
                while self.at[c] < len(self.todo[c]) and self._advance(c, self.todo[c][self.at[c]]):
                    self.at[c] += 1
                    self.arrived[c] = False
                    moved = True

    def order(self) -> Order:
        """Who knows what, after ``run``."""
        waiting = (c for c in range(self.classes) if self.at[c] < len(self.todo[c]))
        ends = {c: self.todo[c][self.at[c]].sequence for c in waiting}
        return Order(self.of, self.times, self.knowledge, self.completed, ends)

    def stuck(self) -> tuple[int, Operation, int] | None:
        """A thread that waits in vain: thread, operation, phase."""
        for c in range(self.classes):
            if self.at[c] < len(self.todo[c]):
                operation = self.todo[c][self.at[c]]
                phase = self._awaited(c, operation)
                if phase is not None:
                    self.phases.filled.setdefault(phase, Filling())
                    return int(self.first[c]), operation, phase
        return None

    def overtaken(self) -> tuple[int, Operation, int] | None:
        """A wait with a parity that goes on only before a phase is complete: thread, wait, phase.

        Nothing makes it come first, and the phase behind that is never complete: who comes late, as the last
        to arrive does, waits for ever.
        """
        for c, operation, phase in self.passed:
            filling = self.phases.filled.get(phase)
            key, number = self.phases.places[phase]
            behind = self.phases.phase(key, number + 1)
            if self.phases.is_full(phase) and not self.phases.is_full(behind):
                seen = filling.seen if filling is not None else None
                if seen is not None and seen[c] <= operation.sequence:
                    return int(self.first[c]), operation, phase
        return None

    def _advance(self, c: int, o: Operation) -> bool:
        """Class ``c`` executes ``o`` unless it has to wait."""
        if o.arrives and not self.arrived[c]:
            self._arrive(c, o)
            self.arrived[c] = True
        return not o.waits or self._wait(c, o)

    def _arrive(self, c: int, o: Operation) -> None:
        thread = self.first[c]
        phase, key = int(o.phase[thread]), int(o.object[thread])
        state, number = self.phases.states[key], self.phases.places[phase][1]
        expected = state.expected(number)
        before = self.phases.phase(key, number - 1) if number else None
        if state.broken:
            return
        where = f"line {o.barrier.site.range.start.line}: `{o.barrier.site.text}`"
        if expected is None:
            self.lost = f"{where}: how many arrivals its barrier counts is not known"
            return
        if before is not None and before not in self.complete[c]:
            self.lost = f"{where}: which arrivals make one phase is not known"
            return
        filling = self.phases.filled.setdefault(phase, Filling())
        if filling.seen is None:
            filling.seen = np.zeros(self.classes, np.int64)
        earlier = filling.seen > 0
        filling.arrived += int(o.weight[self.of == c].sum())
        concurrent = bool((self.known[c][earlier] < filling.seen[earlier]).all())
        filling.seen = np.maximum(filling.seen, self.known[c])
        filling.seen[c] = max(int(filling.seen[c]), o.sequence)
        filling.complete |= self.complete[c]
        if filling.arrived > expected:  # some get on without waiting for the others
            if concurrent and o.barrier.scope is BarrierScope.OBJECT and number == 0:
                state.broken = True
            else:
                self.lost = f"{where}: which arrivals make one phase is not known"

    def _awaited(self, c: int, o: Operation) -> int | None:
        """The phase that class ``c`` waits for; None: it goes on at once."""
        thread = self.first[c]
        if o.parity is None:
            return int(o.phase[thread])
        number = self._first_unknown(c, o)
        key = int(o.object[thread])
        return self.phases.phase(key, number) if number & 1 == int(o.parity[thread]) & 1 else None

    def _first_unknown(self, c: int, o: Operation) -> int:
        """Which phase of its barrier is the first that class ``c`` does not know to be complete."""
        key, number = int(o.object[self.first[c]]), 0
        while self.phases.phase(key, number) in self.complete[c]:
            number += 1
        return number

    def _wait(self, c: int, o: Operation) -> bool:
        phase = self._awaited(c, o)
        if phase is None:
            found = self.phases.phase(int(o.object[self.first[c]]), self._first_unknown(c, o))
            self.passed.append((c, o, found))
        if phase is None or self.lost:
            return True
        key, number = self.phases.places[phase]
        state = self.phases.states[key]
        if state.broken:
            return True
        filling = self.phases.filled.get(phase)
        if filling is None or filling.arrived < (state.expected(number) or 0):
            return phase in self.everybody
        if filling.seen is not None:
            self.known[c] = np.maximum(self.known[c], filling.seen)
        self.complete[c] |= filling.complete | {phase}
        self.times[c].append(o.sequence)
        self.knowledge[c].append(np.array(self.known[c]))
        self.completed[c].append(frozenset(self.complete[c]))
        return True


# -------------------------------------------------------------------------------------- questions


def orders(path: Path, a: Access, b: Access, lanes_a: Lanes, lanes_b: Lanes, threads: int) -> Flags:
    """Where such a barrier stands between the two accesses, in one direction or the other (one block)."""
    found = np.zeros(len(lanes_a), bool)
    if not len(lanes_a):
        return found
    block = int(lanes_a[0]) // threads
    if a.clock[block] > path.ended.get(block, a.clock[block]):
        return ~found  # it never comes to that
    order = path.orders.get((block, a.clock[block]))
    if order is None or a.clock[block] != b.clock[block]:
        return found
    for x, of_x, y, of_y in ((a, lanes_a, b, lanes_b), (b, lanes_b, a, lanes_a)):
        early, late = order.of[of_x % threads], order.of[of_y % threads]
        for c, end in order.ends.items():
            if x.sequence > end:
                found |= early == c
        finishes = None if x.finishes is None else x.finishes[of_x]
        for c in distinct(late):
            known, complete = order.knowledge(int(c), y.sequence)
            mine = late == c
            before = known[early] > x.sequence
            if finishes is not None:
                done = np.isin(finishes, list(complete))
                before = np.where(finishes >= 0, done, before)
            found |= mine & before
    return found


def order_all(path: Path, a: Access, b: Access, block: int, threads: int) -> bool:
    """Whether every two threads are ordered there."""
    order = path.orders.get((block, a.clock[block]))
    if a.clock[block] > path.ended.get(block, a.clock[block]):
        return True
    if order is None or a.clock[block] != b.clock[block]:
        return False
    here = slice(block * threads, (block + 1) * threads)
    firsts: list[Ints] = []
    for x in (a, b):
        lanes = np.flatnonzero(by_lane(x.may)[here])
        _, first = np.unique(order.of[lanes], return_index=True)
        firsts.append(lanes[first] + block * threads)
    lanes_a, lanes_b = (np.ravel(m) for m in np.meshgrid(*firsts))
    return bool(orders(path, a, b, lanes_a, lanes_b, threads).all())
