"""A repair as data: what editors, the command line and SARIF are told; ``repairs`` looks for them."""

from __future__ import annotations

import enum

from attrs import frozen

from cuda_lsp.model import Finding, SourceRange


class RepairKind(enum.Enum):
    """What a repair does to the source."""

    BARRIER = "insert a barrier"
    LOCK_STEP = "order the lanes of a warp"
    WAIT = "wait for a copy"
    ATOMIC = "make an update atomic"
    PADDING = "pad a shared array"
    SWIZZLE = "permute the columns of a shared array"
    LIFTED_BARRIER = "lift a barrier out of a branch"
    REMOVED_BARRIER = "remove a barrier"
    DOUBLE_BUFFER = "double-buffer shared arrays"
    GUARD = "guard an access"
    ONE_STORES = "let one thread store"
    STRIDE = "correct a stride or bound"
    WIDE_INDEX = "compute an index in 64 bits"
    FENCE = "publish behind a fence"
    UNDER_LOCK = "move an access under its lock"
    OBJECT = "correct a barrier object"
    GRID_BARRIER = "wait for the whole grid"

    @property
    def waits(self) -> bool:
        """Whether threads wait for others that did not before."""
        return self in (RepairKind.BARRIER, RepairKind.LOCK_STEP, RepairKind.WAIT, RepairKind.GRID_BARRIER)


@frozen
class SourceEdit:
    """``text`` in the place of what stands in ``range``."""

    range: SourceRange
    text: str


@frozen
class Repair:
    """A change of one file that mends ``findings``.

    ``verified``: the finished analysis of the edited text has none of them, nothing new, and no verdict that
    is weaker; else only the first tier says so. ``keeps_meaning`` False: the program may do something else
    afterwards also where nothing was wrong. ``cost``: what it adds to the kernel, or saves it, for people.
    """

    kind: RepairKind
    title: str
    edits: tuple[SourceEdit, ...]
    findings: tuple[Finding, ...]
    verified: bool = False
    keeps_meaning: bool = True
    cost: str = ""
