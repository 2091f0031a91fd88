"""Barriers that some threads arrive at and some wait for: their state, and what is done to them.

A phase is complete when as many arrivals have come as it counts (PTX ISA, ``mbarrier`` and ``bar``). Which
threads come when is for ``split_barriers``; what that orders for ``barrier_replay``.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from cuda_lsp.ir.program import Barrier, BarrierPhase

Ints = NDArray[np.int64]
NOBODY = -1
ARRIVES = (BarrierPhase.ARRIVE, BarrierPhase.SYNC, BarrierPhase.DROP)
_WAITS = (BarrierPhase.WAIT, BarrierPhase.SYNC)


@frozen(eq=False)
class Operation:
    """One execution of one barrier operation in a block; arrays are ``(threads,)``.

    ``phase``: number of the phase that each thread arrives at or waits for, ``NOBODY`` for the others.
    ``object``: the barrier's number; ``weight``: arrivals of each thread. ``parity``: waits for the first
    phase with it that it does not know of.
    """

    barrier: Barrier
    sequence: int
    phase: Ints
    object: Ints
    weight: Ints
    parity: Ints | None = None

    @property
    def arrives(self) -> bool:
        """It counts as an arrival."""
        return self.barrier.phase in ARRIVES

    @property
    def waits(self) -> bool:
        """Its threads go on when a phase is complete."""
        return self.barrier.phase in _WAITS


@define(eq=False)
class Filling:
    """Arrivals so far, and what those who came knew: ``seen`` ``(classes,)``, None: none in this interval."""

    arrived: int = 0
    seen: Ints | None = None
    complete: set[int] = field(factory=set[int])


@define(eq=False)
class BarrierState:
    """A barrier of one block. ``counts``: arrivals of a phase, by the phase from which on it holds."""

    arrivals: Ints  # of each thread so far
    counts: list[tuple[int, int]] = field(factory=list[tuple[int, int]])
    generation: int = 0
    broken: bool = False

    def expected(self, phase: int) -> int | None:
        """Arrivals that complete the phase; None: not known."""
        found = [count for since, count in self.counts if since <= phase]
        return found[-1] if found else None


@define(eq=False)
class Phases:
    """The barriers of one execution and their phases, by number."""

    threads: int
    objects: dict[tuple[int, object], int] = field(factory=dict[tuple[int, object], int])
    states: list[BarrierState] = field(factory=list[BarrierState])
    numbers: dict[tuple[int, int, int], int] = field(factory=dict[tuple[int, int, int], int])
    places: list[tuple[int, int]] = field(factory=list[tuple[int, int]])
    """For each phase: its barrier, and which of its phases it is."""
    filled: dict[int, Filling] = field(factory=dict[int, Filling])

    def barrier(self, block: int, key: object) -> int:
        """The number of the barrier that ``key`` names in this block."""
        found = self.objects.get((block, key))
        if found is None:
            found = self.objects[block, key] = len(self.states)
            self.states.append(BarrierState(np.zeros(self.threads, np.int64)))
        return found

    def phase(self, barrier: int, which: int) -> int:
        """The number of a phase of a barrier."""
        name = (barrier, self.states[barrier].generation, which)
        found = self.numbers.get(name)
        if found is None:
            found = self.numbers[name] = len(self.places)
            self.places.append((barrier, which))
        return found

    def is_full(self, phase: int) -> bool:
        """Whether all arrivals have come that a phase counts."""
        filling, expected = self.filled.get(phase), self.expected(phase)
        return filling is not None and expected is not None and filling.arrived >= expected

    def expected(self, phase: int) -> int | None:
        """How many arrivals complete a phase."""
        barrier, which = self.places[phase]
        return self.states[barrier].expected(which)


@frozen(eq=False)
class Order:
    """Who knows what, in one interval of a block.

    ``of``: class of each thread, ``(threads,)``. For each class: the ``times`` (sequences) of its waits, and
    what it knows from each on: ``known`` up to which sequence of each class, ``(classes,)``, and the phases
    that are ``complete``. ``ends``: sequences at which classes wait for ever.
    """

    of: Ints
    times: list[list[int]]
    known: list[list[Ints]]
    complete: list[list[frozenset[int]]]
    ends: dict[int, int]

    def knowledge(self, late: int, at: int) -> tuple[Ints, frozenset[int]]:
        """What class ``late`` knows at sequence ``at``."""
        index = bisect_right(self.times[late], at) - 1
        return self.known[late][index], self.complete[late][index]
