"""Contents of buffers that make a race's conditions true: one value for all elements of each array.

Values near the numbers that the conditions name are tried, the smallest first: both threads are replayed with
them, and come to their accesses or do not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Expr, Kernel
from cuda_lsp.ir.types import Float, Int, Type
from cuda_lsp.ir.walk import subexpressions
from cuda_lsp.model import WARP_SIZE, Finding, LaunchConfig, SourceRange
from cuda_lsp.static import budgets, work
from cuda_lsp.static.data_flow import DataFlow, data_flow
from cuda_lsp.static.exact.replay import Cut, replay
from cuda_lsp.static.exact.threads import Thread


def contents_for(
    kernel: Kernel, finding: Finding, launch: LaunchConfig, arguments: Mapping[str, int]
) -> dict[str, float]:
    """One value for all elements of each array that the conditions in front of a race read.

    Empty: there are no such conditions, or none that a value for each array fulfils. Arrays that the accesses
    are indexed by are left out: equal indices would make a race of every scatter.
    """
    flow, witness = data_flow(kernel), finding.witness
    early, late = witness.threads if witness else ((0, 0, 0), (0, 0, 0))
    blocks = witness.blocks if witness and witness.blocks else ((0, 0, 0), (0, 0, 0))
    others = [(other.site.range, early, blocks[0]) for other in finding.related[:1]]
    visits = [
        _Visit(place, Thread(tid, bid, launch.block, launch.grid or (1, 1, 1), WARP_SIZE), flow)
        for place, tid, bid in [(finding.site.range, late, blocks[1]), *others]
    ]
    indices = {a for v in visits for x in flow.at(v.place) for a in flow.arrays_in(x.address)}
    deciding = {a for v in visits for x in flow.at(v.place) for a in flow.arrays_in(x.guard)}
    arrays = sorted((a for a in deciding - indices if a.param is not None), key=lambda a: a.id)
    numbers = _candidates(flow, arrays, arguments)
    choices = itertools.product(*(_fitting(array, numbers) for array in arrays))
    found: dict[Array, float] = {}
    matters = False  # some choice is known to be wrong
    end = work.DONE.instructions + budgets.MOST_CONTENTS_INSTRUCTIONS
    for values in itertools.islice(choices, budgets.MOST_CONTENTS_TRIED):
        fill = dict(zip(arrays, values, strict=True))
        reached = [visit.happens(arguments, fill) for visit in visits]
        if False in reached:
            matters = True
        else:
            found = found or fill
        if all(reached) or work.DONE.instructions > end:
            found = fill if all(reached) else found
            break
    return {a.param.name: v for a, v in found.items() if a.param is not None} if matters else {}


@frozen
class _Visit:
    """A thread on its way to the place of an access."""

    place: SourceRange
    thread: Thread
    flow: DataFlow

    def happens(self, arguments: Mapping[str, int], fill: Mapping[Array, float]) -> bool | None:
        """Whether it comes there when arrays hold these values; None: more decides than that."""

        def memory(array: Array, offset: int, type: Type) -> float | None:
            return fill.get(array)

        at_place = frozenset(a for x in self.flow.at(self.place) for a in x.arrays)
        kernel = self.flow.slice.kernel
        try:
            run = replay(kernel, self.thread, arguments, at_place, memory, floats=True)
            missed = False
        except Cut as cut:
            run, missed = cut.run, None
        return any(access.site.range == self.place for access in run.accesses) or missed


def _fitting(array: Array, numbers: Iterable[float]) -> list[float]:
    element = array.element
    if isinstance(element, Int):
        whole = {int(n) for n in numbers if float(n).is_integer()}
        return sorted((n for n in whole if element.wrap(n) == n), key=abs)
    return sorted(map(float, numbers), key=abs) if isinstance(element, Float) else [0]


def _candidates(flow: DataFlow, arrays: Collection[Array], arguments: Mapping[str, int]) -> Sequence[float]:
    """Numbers near those that conditions on the arrays name, the smallest first."""
    ifs = (s.condition for s in flow.slice.statements if isinstance(s, ir.If | ir.Loop))
    found: set[float] = {0, 1}
    for number in _named(
        flow, [e for e in ifs if flow.arrays_in(flow.of(e)).intersection(arrays)], arguments
    ):
        if math.isfinite(number):
            found |= {number, number - 1, number + 1}
    return sorted(found, key=abs)[: budgets.MOST_CONTENTS_VALUES]


def _named(flow: DataFlow, conditions: list[Expr], arguments: Mapping[str, int]) -> Iterator[float]:
    assigned = [s for s in flow.slice.statements if isinstance(s, ir.Assign)]
    seen: set[ir.Var] = set()
    while conditions:
        parts = list(subexpressions(conditions))
        yield from (x.value for x in parts if isinstance(x, ir.Const))
        fresh = {x for x in parts if isinstance(x, ir.Var)} - seen
        yield from (arguments[x.name] for x in fresh if x.name in arguments)
        seen |= fresh
        conditions = [s.value for s in assigned if s.var in fresh]
