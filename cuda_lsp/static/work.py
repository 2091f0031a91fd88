"""A clock that runs with the solver tier's work, not with time: a verdict must not depend on what else runs.

Terms made, instructions of replays and schedules, and Z3's own count of its work (``rlimit``) are counted and
told as *seconds*: those that the work took where the rates were measured (kernels of real code, a
least-squares fit; for half of them it is within a fifth). The processor's time ends what the counts do not
see, far beyond the budget.

One clock for the process, like Z3's context and the term table; ``solve`` has one thread at a time use it.
"""

from __future__ import annotations

import math
import time

TERM, INSTRUCTION, Z3_UNIT, QUERY = 1.5e-5, 2.5e-6, 3.6e-7, 2.5e-3
"""Seconds: to make a term (or find it made), for an instruction of the exact machine, one of Z3's units, one
question."""

HARD = 1.7
"""Times so much for one of Z3's units where unknowns are multiplied."""

SAFETY, PATIENCE, GRACE_S = 2.5, 10.0, 0.0
"""Times the budget: when the processor's time ends the work, and when ordinary time does; others may need
the processor as well. The former at the earliest after ``GRACE_S``, in seconds."""

UNHURRIED = 10.0, 400.0, 8.0
"""The same where nobody waits, and the process has a limit of its own."""


def take_time() -> None:
    """For the rest of this process time ends nearly nothing: what others do costs no answer.

    A processor that others keep busy needs up to twice its time for the same work.
    """
    DONE.safety, DONE.patience, DONE.grace = UNHURRIED


class Work:
    """What was done since the process began."""

    __slots__ = ("grace", "instructions", "latest", "patience", "queries", "safety", "terms", "units")

    def __init__(self) -> None:
        self.terms = self.instructions = self.queries = 0
        self.units = 0.0
        self.latest = math.inf  # of time.process_time
        self.safety, self.patience, self.grace = SAFETY, PATIENCE, GRACE_S


DONE = Work()


def begin(seconds: float) -> float:
    """A piece of work begins; when, by this clock, its ``seconds`` are over."""
    DONE.latest = time.process_time() + max(DONE.safety * seconds, DONE.grace)
    return now() + seconds


def now() -> float:
    """Seconds of work; infinite when the processor's time says that it is enough."""
    return math.inf if time.process_time() > DONE.latest else done()


def done() -> float:
    """Seconds of work since the process began."""
    made = TERM * DONE.terms + INSTRUCTION * DONE.instructions
    return made + Z3_UNIT * DONE.units + QUERY * DONE.queries


def z3_units(seconds: float, hard: bool) -> int:
    """How much Z3 may do in ``seconds``; ``hard``: unknowns are multiplied."""
    return max(1, int(seconds / (Z3_UNIT * (HARD if hard else 1))))
