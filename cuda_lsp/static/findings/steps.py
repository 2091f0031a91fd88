"""What to do next, for every cause that a finding has: of a doubt, of what would order two accesses.

What is to do of a code where nothing more is known stands in its row of ``CODES``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from cuda_lsp.ir.program import NextStep
from cuda_lsp.model import CODES, Code
from cuda_lsp.static.findings import conditions as c
from cuda_lsp.static.findings.conditions import Conditions, Doubt, Needs, Open


class Remedy(enum.Enum):
    """What is missing between two accesses: as it is told, in fewer words, and what to do."""

    BETWEEN_BLOCKS = (
        "nothing orders blocks",
        "nothing orders blocks",
        "give each block places of its own, make both accesses atomic, or end the kernel between them",
    )
    IN_A_CLUSTER = (
        "no cluster.sync() orders them",
        "no cluster.sync() between",
        "put a `cluster.sync()` between the two accesses",
    )
    AT_ONCE = (
        "they execute the same statement at the same time",
        "at the same time",
        "let one thread do it, give each thread a place of its own, or make it atomic",
    )
    IN_A_WARP = (
        "no __syncwarp() orders the lanes of this warp",
        "no __syncwarp() between",
        "put a `__syncwarp()` between the two accesses",
    )
    BETWEEN_ROUNDS = (
        "no barrier orders them from one loop round to the next",
        "no barrier between rounds",
        "put a `__syncthreads()` at the end of the loop's body, or before the first of the two accesses",
    )
    IN_A_BLOCK = (
        "no barrier orders them",
        "no barrier between",
        "put a `__syncthreads()` between the two accesses, where all threads of the block come by",
    )
    WRAPPED = ("the 32-bit index wraps", "the 32-bit index wraps", "compute the index in 64 bits")
    GUESSED = (
        "harmless: the compare-and-swap checks what was read",
        "harmless: the compare-and-swap checks what was read",
        "nothing breaks; an atomic load would say that it is meant",
    )
    UNFENCED = (
        "the lock that both hold is given back without a __threadfence(), so it orders nothing",
        "the lock is given back without a __threadfence()",
        "put a `__threadfence()` before the lock is given back",
    )

    @property
    def told(self) -> str:
        return self.value[0]

    @property
    def briefly(self) -> str:
        return self.value[1]

    @property
    def step(self) -> str:
        return self.value[2]


TELL_THE_LAUNCH = "`// cuda-lsp: launch` would tell"
ASSERT = "an `assert` or `// cuda-lsp: assume` would tell"
_A_LAUNCH_IN_THE_FILE = "a launch in the file would tell"

_OPEN: Mapping[Open, str] = {
    Open.LAUNCH: TELL_THE_LAUNCH,
    Open.LAUNCH_ASSUMED: TELL_THE_LAUNCH,
    Open.LAUNCH_UNTOLD: TELL_THE_LAUNCH,
    Open.LAUNCH_AND_ARGUMENTS: TELL_THE_LAUNCH,
    Open.BLOCKS_ASSUMED: TELL_THE_LAUNCH,
    Open.BLOCKS_UNKNOWN: TELL_THE_LAUNCH,
    Open.OTHER_BLOCKS: TELL_THE_LAUNCH,
    Open.LAUNCH_AND_TEMPLATE: _A_LAUNCH_IN_THE_FILE,
    Open.TEMPLATE: _A_LAUNCH_IN_THE_FILE,
    Open.ARGUMENTS: ASSERT,
    Open.POINTERS: NextStep.PROGRAM.value,
    Open.REACHED: NextStep.RUN.value,
    Open.REPLAY: NextStep.RUN.value,
    Open.TIME: NextStep.RUN.value,
    Open.NOT_REPLAYED: NextStep.RUN.value,
    Open.LOCK_STEP: Remedy.IN_A_WARP.step,
    Open.ENUMERATION: NextStep.RUN.value,
    Open.BACKGROUND: "it is told in a moment",
    Open.BROKEN: "mend what clang complains of",
}

ONE_VALUE = "nothing breaks, as one value is stored; one thread would do"
RETURNED = "have threads without work come to the barrier, too, instead of returning before it"
_COSTS = (Code.BANK_CONFLICT, Code.UNCOALESCED_ACCESS)
_EXCLUDED = "; or, if the host never passes that, `assert` it"


def of_doubt(doubt: Doubt) -> str:
    """What would settle it."""
    match doubt:
        case c.Uneven() | c.Untiled() | c.Unconfirmed():
            return ASSERT
        case c.OnData(arguments=True):
            return ASSERT
        case c.OnData() | c.Unordered() | c.Repeated() | c.Overfull():
            return NextStep.PROGRAM.value
        case c.UpToLibrary():
            return NextStep.RUN.value
        case Open():
            return _OPEN[doubt]


def of_finding(
    code: Code, remedy: Remedy | None, conditions: Conditions, doubt: Doubt | None, *, same: bool
) -> str:
    """``same``: it is a race of which both threads write one value."""
    if doubt is not None:
        return of_doubt(doubt)
    if same:
        return ONE_VALUE
    if Needs.RETURNED in conditions:
        return RETURNED
    step = CODES[code].step if remedy is None or code is Code.WARP_SYNCHRONOUS else remedy.step
    return step + (_EXCLUDED if code not in _COSTS and any(map(_of_arguments, conditions)) else "")


def _of_arguments(condition: c.Condition) -> bool:
    return bool(c.parameters_of((condition,)))
