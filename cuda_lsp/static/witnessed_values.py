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
from cuda_lsp.ir.program import Copy, Expr, Kernel, Store, Unknown
from cuda_lsp.ir.types import Float, Opaque
from cuda_lsp.ir.walk import subexpressions, variables, walk
from cuda_lsp.model import Dim3, LaunchConfig, RaceKind, SourceRange, Status
from cuda_lsp.static import budgets
from cuda_lsp.static.alike_blocks import stores_alike
from cuda_lsp.static.diagnostics.comparing import Comparing
from cuda_lsp.static.diagnostics.races import race_findings
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.execution.trace import Trace
from cuda_lsp.static.findings.conditions import Example, Needs, parameters_of
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.launches.arguments import free_scalars, sample

Arguments = Mapping[str, int]

_ELEMENTS_OF_VECTORS = 4
"""That rows are read and written by at once, at most: sizes that they do not divide let rows overlap."""


def with_values(kernel: Kernel, findings: Iterable[Diagnosis], gpu: GpuModel) -> tuple[Diagnosis, ...]:
    """The findings: stores of one value as such, those that differ between blocks alone as of two blocks."""
    if kernel.followed is None:
        return tuple(findings)
    places = stores_of_floats(kernel)
    looks = _Looks(kernel.followed, gpu)
    return tuple(looks.told(f) if _asks(f) and f.site.range in places else f for f in findings)


def repeated_by_blocks(kernel: Kernel, finding: Diagnosis, gpu: GpuModel) -> bool:
    """Whether two blocks are all that store there at once, and do the same."""
    if not _asks(finding) or not stores_alike(kernel, finding):
        return False
    return not _Looks(kernel.followed or kernel, gpu).in_one_block(finding)


def stores_of_floats(kernel: Kernel) -> set[SourceRange]:
    """Where it stores floats, records, which may hold some, or integers of variables that lead nowhere."""

    def asked(s: Copy | Store) -> bool:
        if isinstance(s, Copy) or isinstance(s.type, Float | Opaque):
            return True
        return _of_floats(s.value) or any(variables(s.value))

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
        one_block = _is_of_one_block(finding)
        alike, apart = False, list[Diagnosis]()
        for found in self._all(finding):
            if found.same_value:
                alike = True
            elif _is_of_one_block(found) or not one_block:
                return finding  # as it was said
            else:
                apart.append(found)
        if not apart:
            return evolve(finding, same_value=True) if alike else finding
        between = apart[0]
        needed = dict.fromkeys((*finding.conditions, *_grid(between)))
        status = Status.CONDITIONAL if needed else Status.PROVED
        return evolve(between, kernel=finding.kernel, status=status, conditions=tuple(needed))

    def _all(self, finding: Diagnosis) -> Iterator[Diagnosis]:
        """What happens at its places, one after the other."""
        one_block = _is_of_one_block(finding)
        look = self._within if one_block else self._between
        for arguments in _arguments(self.kernel, finding):
            yield from look(finding, arguments)
        if one_block:
            yield from self._beside(finding)

    def in_one_block(self, finding: Diagnosis) -> bool:
        """Threads of one block meet there, under some arguments that are tried."""
        tried = _arguments(self.kernel, finding)
        return any(any(self._executed(finding, arguments, ((0, 0, 0),))) for arguments in tried)

    def _beside(self, finding: Diagnosis) -> Iterator[Diagnosis]:
        """Two blocks that meet where two threads of one do, under usual arguments.

        Under those of the witness, strides that it does not need may be 0, and all blocks at one place.
        """
        for arguments in _usual(self.kernel, finding):
            if any(self._executed(finding, arguments, ((0, 0, 0),))):
                yield from (f for f in self._executed(finding, arguments, None) if not _is_of_one_block(f))

    def _within(self, finding: Diagnosis, arguments: Arguments) -> Iterator[Diagnosis]:
        """In the witness's block alone, and in each of several."""
        for blocks in (_blocks(finding), None):
            yield from filter(_is_of_one_block, self._executed(finding, arguments, blocks))

    def _executed(
        self, finding: Diagnosis, arguments: Arguments, blocks: tuple[Dim3, ...] | None
    ) -> Iterator[Diagnosis]:
        assert finding.launch is not None
        trace = execute(self.kernel, finding.launch, arguments, self.gpu, blocks=blocks)
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


def _is_of_one_block(finding: Diagnosis) -> bool:
    """Its two threads are of one block: of any, or of the one that a model has chosen."""
    blocks = finding.witness.blocks if finding.witness is not None else None
    return blocks is None or blocks[0] == blocks[1]


def _blocks(finding: Diagnosis) -> tuple[Dim3, ...]:
    blocks = finding.witness.blocks if finding.witness is not None else None
    return ((0, 0, 0),) if blocks is None else blocks[:1]


def _same_places(finding: Diagnosis, trace: Trace) -> Iterator[Diagnosis]:
    places = {finding.site.range, *(r.site.range for r in finding.related[:1])}
    comparing = Comparing(budgets.COMPARING_AGAIN_S)
    for found in race_findings(trace, comparing, lambda access: access.site.range in places):
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
    """Those of the witness, natural ones, the least and large ones: what agrees under all is taken to agree.

    Large ones are for loops that go over sizes by the whole grid: where they run no round, sums are 0.
    """
    assert finding.launch is not None
    assert finding.witness is not None
    told, seen = finding.launch.arguments, finding.witness.arguments
    yield {**told, **seen}
    yield sample(kernel, finding.launch) or told
    free = free_scalars(kernel, finding.launch)
    yield {**dict.fromkeys(free, 1), **told}
    yield {**dict.fromkeys(free, max(budgets.LARGE_VALUES)), **told}
    if not _is_of_one_block(finding):  # natural ones are round, and tiles of round sizes rarely overlap
        yield {**told, **{name: seen.get(name, 0) + 1 for name in free}}
        yield {**told, **{name: 2 * seen.get(name, 0) + 1 for name in free}}


def _usual(kernel: Kernel, finding: Diagnosis) -> Iterator[Arguments]:
    """Natural ones, and those of the witness where conditions speak of them, examples evened for vectors."""
    assert finding.launch is not None
    assert finding.witness is not None
    natural = {**finding.launch.arguments, **(sample(kernel, finding.launch) or {})}
    yield natural
    seen = finding.witness.arguments
    needed = parameters_of(c for c in finding.conditions if not isinstance(c, Example))
    given = {name: n if name in needed else n + -n % _ELEMENTS_OF_VECTORS for name, n in seen.items()}
    named = parameters_of(finding.conditions)
    yield natural | {name: n for name, n in given.items() if name in named}


def _grid(finding: Diagnosis) -> tuple[Needs, ...]:
    return (Needs.BLOCKS,) if finding.launch is not None and finding.launch.grid is None else ()
