"""Whether the stores of the solver's witnesses differ, with floating-point values followed.

The solver knows of a float only that nobody knows it: two threads of one block that both store the block's
sum are a race to it, and when it has shown them it does not look for two blocks, whose sums differ. Each such
witness is executed again as ``Kernel.followed``, under its own arguments and under others. Two blocks whose
tiles overlap store what both compute alike of one element: they are executed with those around them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, frozen

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.program import Assign, Copy, Expr, Kernel, Load, Store, Unknown
from cuda_lsp.ir.types import Float, Opaque
from cuda_lsp.ir.walk import subexpressions, variables, walk
from cuda_lsp.model import Dim3, LaunchConfig, RaceKind, SourceRange, Status
from cuda_lsp.static import budgets
from cuda_lsp.static.diagnostics.comparing import Comparing
from cuda_lsp.static.diagnostics.races import race_findings
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.execution.trace import Trace
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
    """Something in it is made of what is not followed: of ``x[i] < cut``, of ``(int)x[i]``."""
    return any(isinstance(part, Unknown) for part in subexpressions((e,)))


def is_suspected(finding: Diagnosis) -> bool:
    """A certain race of two stores that are not known to be of one value."""
    return finding.kind is RaceKind.WAW and finding.certain and not finding.same_value


def _asks(finding: Diagnosis) -> bool:
    return is_suspected(finding) and finding.witness is not None and finding.launch is not None


@frozen
class _Looks:
    """Executions of a kernel whose floating-point values are followed."""

    kernel: Kernel
    gpu: GpuModel

    def told(self, finding: Diagnosis) -> Diagnosis:
        """What its two places show, under all arguments that are tried, at their worst."""
        assert finding.witness is not None
        look = self._within if finding.witness.blocks is None else self._between
        tried = _arguments(self.kernel, finding)
        seen = [found for arguments in tried for found in look(finding, arguments)]
        differ = [f for f in seen if not f.same_value]
        if seen and not differ:
            return evolve(finding, same_value=True)
        within = any(f.witness and f.witness.blocks is None for f in differ)
        if not seen or within or finding.witness.blocks is not None:
            return finding
        between = differ[0]
        needed = dict.fromkeys((*finding.conditions, *_grid(between)))
        status = Status.CONDITIONAL if needed else Status.PROVED
        return evolve(between, kernel=finding.kernel, status=status, conditions=tuple(needed))

    def _within(self, finding: Diagnosis, arguments: Arguments) -> Iterator[Diagnosis]:
        assert finding.launch is not None
        trace = execute(self.kernel, finding.launch, arguments, self.gpu)
        if not trace.excluded:
            yield from _same_places(finding, trace)

    def _between(self, finding: Diagnosis, arguments: Arguments) -> Iterator[Diagnosis]:
        """In the least of the grids with both blocks that the source does not refuse."""
        for launch in _wide_enough(finding):
            blocks = _around(finding, launch)
            trace = execute(self.kernel, launch, arguments, self.gpu, blocks=blocks)
            if not trace.excluded:
                yield from _same_places(finding, trace)
                return


def _same_places(finding: Diagnosis, trace: Trace) -> Iterator[Diagnosis]:
    for found in race_findings(trace, Comparing(budgets.COMPARING_AGAIN_S)):
        if found.key == finding.key and found.certain and found.kind is RaceKind.WAW:
            yield found


def _wide_enough(finding: Diagnosis) -> Iterator[LaunchConfig]:
    """The launch, with blocks for those of the witness along the axes left open, then with up to two more."""
    launch, least = finding.launch, _last_block(finding)
    assert launch is not None
    if launch.grid is not None:
        yield launch
        return
    more = [(0, 1, 2) if n is None else (0,) for n in launch.grid_axes]
    for extra in sorted(itertools.product(*more), key=sum):
        at_least = (last + 1 + further for last, further in zip(least, extra, strict=True))
        x, y, z = (n or m for n, m in zip(launch.grid_axes, at_least, strict=True))
        yield evolve(launch, grid=(x, y, z))


def _last_block(finding: Diagnosis) -> Dim3:
    assert finding.witness is not None
    assert finding.witness.blocks is not None
    one, other = finding.witness.blocks
    x, y, z = map(max, one, other)
    return (x, y, z)


def _around(finding: Diagnosis, launch: LaunchConfig) -> tuple[Dim3, ...]:
    """The witness' blocks, the first, the last, and those beside the former: as many as may be executed."""
    assert finding.witness is not None
    assert finding.witness.blocks is not None
    assert launch.grid is not None
    steps = sorted(itertools.product((0, 1, -1), repeat=3), key=lambda step: sum(map(abs, step)))
    near = [_moved(block, step) for step in steps for block in finding.witness.blocks]
    ends = [(0, 0, 0), _moved(launch.grid, (-1, -1, -1))]
    inside = (
        b for b in (*near[:2], *ends, *near) if all(0 <= i < n for i, n in zip(b, launch.grid, strict=True))
    )
    most = max(2, budgets.LANES_OF_VALUES // launch.threads)
    return tuple(dict.fromkeys(inside))[:most]


def _moved(block: Dim3, step: tuple[int, ...]) -> Dim3:
    x, y, z = (i + by for i, by in zip(block, step, strict=True))
    return (x, y, z)


def _arguments(kernel: Kernel, finding: Diagnosis) -> Iterator[Arguments]:
    """Those of the witness, natural ones, and the least: what agrees under all of them is taken to agree."""
    assert finding.launch is not None
    assert finding.witness is not None
    told, seen = finding.launch.arguments, finding.witness.arguments
    yield {**told, **seen}
    yield sample(kernel, finding.launch) or told
    free = free_scalars(kernel, finding.launch)
    yield {**dict.fromkeys(free, 1), **told}
    if finding.witness.blocks is not None:  # natural ones are round, and tiles of round sizes rarely overlap
        yield {**told, **{name: seen.get(name, 0) + 1 for name in free}}
        yield {**told, **{name: 2 * seen.get(name, 0) + 1 for name in free}}


def _grid(finding: Diagnosis) -> tuple[Needs, ...]:
    return (Needs.BLOCKS,) if finding.launch is not None and finding.launch.grid is None else ()
