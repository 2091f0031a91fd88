"""The kinds of repairs, in the order in which they are tried for a finding; each knows its own codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cuda_lsp.model import RACES, Code, FileReport, Finding
from cuda_lsp.repairs.atomic_accesses import atomic_accesses, atomic_accesses_of_a_grid
from cuda_lsp.repairs.atomics import atomics, flags
from cuda_lsp.repairs.barrier_objects import barrier_objects
from cuda_lsp.repairs.barriers import barriers
from cuda_lsp.repairs.candidate import Candidate
from cuda_lsp.repairs.guards import guards
from cuda_lsp.repairs.lifting import lifting
from cuda_lsp.repairs.lock_step import lock_step
from cuda_lsp.repairs.moving import moving
from cuda_lsp.repairs.owners import owners, owners_of_a_store
from cuda_lsp.repairs.padding import padding
from cuda_lsp.repairs.publishing import publishing
from cuda_lsp.repairs.redundant import redundant
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.strides import strides
from cuda_lsp.repairs.swaps import swaps
from cuda_lsp.repairs.waits import waits
from cuda_lsp.repairs.wide_indices import wide_indices

Kind = Callable[[Source, FileReport, Finding], Iterator[Candidate]]
"""What may mend a finding of a report, best first; nothing for findings that are not its affair."""

KINDS: tuple[Kind, ...] = (
    lock_step, waits, barrier_objects, moving, atomics, wide_indices, strides, swaps, owners_of_a_store,
    atomic_accesses_of_a_grid, barriers, atomic_accesses, publishing, owners, flags,
    lifting, padding, guards, redundant,
)  # fmt: skip


def repairable() -> frozenset[Code]:
    """The codes of findings that some kind may mend."""
    return frozenset(
        {
            *RACES, Code.BARRIER_DIVERGENCE, Code.BANK_CONFLICT,
            Code.SHARED_OUT_OF_BOUNDS, Code.REDUNDANT_BARRIER,
        }
    )  # fmt: skip


def candidates(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """What may mend a finding, each change once, best first; what keeps the meaning before the rest."""
    told: set[object] = set()
    late: list[Candidate] = []
    for kind in KINDS:
        for candidate in kind(source, report, finding):
            if candidate.edits not in told:
                told.add(candidate.edits)
                if candidate.keeps_meaning:
                    yield candidate
                else:
                    late.append(candidate)
    yield from late
