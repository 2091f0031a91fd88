"""What the solver is asked with and what it says, as data: who hands it on need not import the solver."""

from __future__ import annotations

from attrs import define, field, frozen

from cuda_lsp.model import SourceRange, Verdict
from cuda_lsp.static import budgets
from cuda_lsp.static.findings.diagnosis import Diagnosis


@frozen
class Budget:
    """Limits in seconds of ``work``. ``launches``: how many known launches are looked at."""

    kernel: float = budgets.KERNEL_S
    query: float = budgets.QUERY_S
    launches: int = budgets.MOST_LAUNCHES


@frozen
class Failure:
    """Why there is no answer, for people. ``lost``: not for a cause in the work, which may be asked again."""

    reason: str
    lost: bool = False


@define
class Stats:
    """What it took: pairs listed, refuted by arithmetic, Z3 queries, seconds of ``work``.

    ``mentioned``: parameters in what ``extremes`` decided, of which some may be taken for sizes.
    """

    pairs: int = 0
    refuted: int = 0
    queries: int = 0
    seconds: float = 0.0
    mentioned: set[str] = field(factory=set[str])


@frozen
class SolverResult:
    """What the solver says of a kernel.

    ``verdict``: for the launches looked at, all arguments. ``every_launch``: race-free at the others as well:
    those of the source, or of the target where it tells none. ``reasons``: why it is undecided.
    ``assumptions``: what a proof took for granted, for people.
    """

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    findings: tuple[Diagnosis, ...] = ()
    stats: Stats = field(factory=Stats)
    every_launch: bool = False
    assumptions: tuple[str, ...] = ()
    not_settled: frozenset[SourceRange] = frozenset()  # barriers that threads may miss
    mixed: bool = True  # barriers may be matched wrongly; False only when that is proved impossible
    barriers: bool = False  # all of them were looked at, whatever else is open
