"""Whether the stores of the solver's witnesses differ, with floating-point values followed.

The solver knows of a float only that nobody knows it: two threads of one block that both store the block's
sum are a race to it, and when it has shown them it does not look for two blocks, whose sums differ. Each such
witness is executed again as ``Kernel.followed``, under its own arguments and under others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, frozen

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.program import Assign, Copy, Expr, Kernel, Load, Store, Unknown
from cuda_lsp.ir.types import Float, Opaque
from cuda_lsp.ir.walk import subexpressions, variables, walk
from cuda_lsp.model import RaceKind, SourceRange, Status
from cuda_lsp.static import budgets
from cuda_lsp.static.diagnostics.comparing import Comparing
from cuda_lsp.static.diagnostics.races import race_findings
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.findings.conditions import Needs
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.launches.arguments import free_scalars, sample

Arguments = Mapping[str, int]


def with_values(kernel: Kernel, findings: Iterable[Diagnosis], gpu: GpuModel) -> tuple[Diagnosis, ...]:
    """The findings: stores of one value as such, those that differ between blocks alone as of two blocks."""
    if kernel.followed is None:
        return tuple(findings)
    places = stores_of_floats(kernel)
    looks = _Looks(kernel.followed, gpu)
    return tuple(looks.told(f) if _asks(f) and f.site.range in places else f for f in findings)


def stores_of_floats(kernel: Kernel) -> set[SourceRange]:
    """Where it stores floats, records, which may hold some, or integers that are made of what it reads."""
    read = {s.var for s in walk(kernel.body) if isinstance(s, Load) and s.var is not None}
    made = [s for s in walk(kernel.body) if isinstance(s, Assign)]
    read |= {s.var for s in made if _of_floats(s.value)}
    while more := {s.var for s in made if not read.isdisjoint(variables(s.value))} - read:
        read |= more

    def asked(s: Copy | Store) -> bool:
        if isinstance(s, Copy) or isinstance(s.type, Float | Opaque):
            return True
        return _of_floats(s.value) or not read.isdisjoint(variables(s.value))

    return {s.site.range for s in walk(kernel.body) if isinstance(s, Copy | Store) and asked(s)}


def _of_floats(e: Expr) -> bool:
    """Something in it is made of floats that are read, and not followed: ``x[i] < cut``."""
    return any(isinstance(part, Unknown) and part.loaded for part in subexpressions((e,)))


def is_suspected(finding: Diagnosis) -> bool:
    """A certain race of two stores that are not known to be of one value."""
    return finding.kind is RaceKind.WAW and finding.certain and not finding.same_value


def _asks(finding: Diagnosis) -> bool:
    within = finding.witness is not None and finding.witness.blocks is None
    return is_suspected(finding) and within and finding.launch is not None


@frozen
class _Looks:
    """Executions of a kernel whose floating-point values are followed."""

    kernel: Kernel
    gpu: GpuModel

    def told(self, finding: Diagnosis) -> Diagnosis:
        """What its two places show, under all arguments that are tried, at their worst."""
        tried = _arguments(self.kernel, finding)
        seen = [found for arguments in tried for found in self._under(finding, arguments)]
        if not seen or any(not f.same_value and f.witness and f.witness.blocks is None for f in seen):
            return finding
        between = next((f for f in seen if not f.same_value), None)
        if between is None:
            return evolve(finding, same_value=True, told_same=True)
        needed = dict.fromkeys((*finding.conditions, *_grid(between)))
        status = Status.CONDITIONAL if needed else Status.PROVED
        return evolve(between, kernel=finding.kernel, status=status, conditions=tuple(needed))

    def _under(self, finding: Diagnosis, arguments: Arguments) -> Iterator[Diagnosis]:
        assert finding.launch is not None
        trace = execute(self.kernel, finding.launch, arguments, self.gpu)
        if trace.excluded:
            return
        for found in race_findings(trace, Comparing(budgets.COMPARING_AGAIN_S)):
            if found.key == finding.key and found.certain and found.kind is RaceKind.WAW:
                yield found


def _arguments(kernel: Kernel, finding: Diagnosis) -> Iterator[Arguments]:
    """Those of the witness, natural ones, and the least: what agrees under all of them is taken to agree."""
    assert finding.launch is not None
    assert finding.witness is not None
    told = finding.launch.arguments
    yield {**told, **finding.witness.arguments}
    yield sample(kernel, finding.launch) or told
    yield {**dict.fromkeys(free_scalars(kernel, finding.launch), 1), **told}


def _grid(finding: Diagnosis) -> tuple[Needs, ...]:
    return (Needs.BLOCKS,) if finding.launch is not None and finding.launch.grid is None else ()
