"""Which blocks are executed, and whether what they do is what every block does.

A few blocks stand for the whole grid only when nothing that decides an access to shared memory or a
barrier depends on ``blockIdx``, and global memory is not written: two blocks that were not executed may
meet there however far apart they are. Dependence is a flow-insensitive taint over the kernel program,
control dependence included (so it errs towards "depends"). Otherwise all blocks must have been executed,
or the rest is for the solver.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.clusters import whole
from cuda_lsp.ir.walk import assigned, children, expressions, pointers, subexpressions, used
from cuda_lsp.model import Dim3, LaunchConfig, Space
from cuda_lsp.static import budgets
from cuda_lsp.static.slicing import Slice

NOT_IN_CLUSTERS = "its grid does not consist of whole clusters, so that it is not launched"
_by_kernel: WeakKeyDictionary[ir.Kernel, bool] = WeakKeyDictionary()


def representative_blocks(facts: Slice, launch: LaunchConfig) -> tuple[Dim3, ...]:
    """The blocks to execute: block 0 where it stands for all, a small grid whole, else a few of it.

    The few are block 0, its neighbours (which meet it in global memory) and the last (ragged edges); of a
    grid in clusters, whole clusters.
    """
    if not facts_need_blocks(facts):
        return ((0, 0, 0),)
    cluster = facts.kernel.cluster or (1, 1, 1)
    grid = grid_of(launch, cluster)
    x, y, z = (extent // size for extent, size in zip(grid, cluster, strict=True))
    if launch.grid is not None and math.prod(grid) * launch.threads <= budgets.WHOLE_GRID_LANES:
        found = [(i, j, k) for k, j, i in itertools.product(range(z), range(y), range(x))]
    else:
        neighbours = [(1, 0, 0)] * (x > 1) + [(0, 1, 0)] * (y > 1) + [(0, 0, 1)] * (z > 1)
        found = [*dict.fromkeys(((0, 0, 0), *neighbours, (x - 1, y - 1, z - 1)))]
    return whole([(i * cluster[0], j * cluster[1], k * cluster[2]) for i, j, k in found], cluster)


def grid_of(launch: LaunchConfig, cluster: Dim3 | None) -> Dim3:
    """The grid; along the axes that the launch leaves open two blocks in the first of them, one in others.

    Two also along those that it makes itself. In clusters: as many of these.
    """
    if launch.grid is not None:
        return launch.grid
    found = [1 if n is None else n for n in launch.grid_axes]
    if None in launch.grid_axes:
        found[launch.grid_axes.index(None)] = 2
    for axis in launch.made_axes:
        found[axis] = 2
    told = (n is not None and i not in launch.made_axes for i, n in enumerate(launch.grid_axes))
    x, y, z = (
        n if known else n * size for n, size, known in zip(found, cluster or (1, 1, 1), told, strict=True)
    )
    return (x, y, z)


def in_clusters(launch: LaunchConfig, cluster: Dim3 | None) -> bool:
    """Whether the grid consists of whole clusters: else it is not launched."""
    grid = grid_of(launch, cluster)
    return all(extent % size == 0 for extent, size in zip(grid, cluster or (1, 1, 1), strict=True))


def stand_for_all(facts: Slice, launch: LaunchConfig, blocks: tuple[Dim3, ...]) -> bool:
    """Whether what ``blocks`` do decides the whole launch."""
    if not facts_need_blocks(facts):
        return True
    x, y, z = launch.grid or (0, 0, 0)
    return len(set(blocks)) == x * y * z


def facts_need_blocks(facts: Slice) -> bool:
    """Whether one block does not stand for all."""
    return facts.wild or any(a.space is Space.GLOBAL for a in facts.written) or _block_dependent(facts)


def _block_dependent(facts: Slice) -> bool:
    known = _by_kernel.get(facts.kernel)
    if known is None:
        known = _by_kernel[facts.kernel] = _Taint(facts).reaches_shared_memory()
    return known


class _Taint:
    """Variables, arrays' contents and jump targets that depend on ``blockIdx``."""

    def __init__(self, facts: Slice) -> None:
        self.facts = facts
        self.variables: set[int] = set()
        self.contents: set[ir.Array] = set()
        self.labels: set[int] = set()  # left by some threads or blocks only: what is inside depends too
        self.reached = False

    def reaches_shared_memory(self) -> bool:
        if not any(map(_is_block_index, subexpressions(expressions(self.facts.kernel.body)))):
            return False
        before = -1
        while before != (before := len(self.variables) + len(self.contents) + len(self.labels)):
            self._visit(self.facts.kernel.body, False)
            if self.reached:
                return True
        return False

    def depends(self, parts: Iterable[ir.Expr]) -> bool:
        return any(
            _is_block_index(e) or (isinstance(e, ir.Var) and e.id in self.variables)
            for e in subexpressions(parts)
        )

    def _visit(self, statements: tuple[ir.Stmt, ...], inside: bool) -> None:
        for s in statements:
            within = inside
            if isinstance(s, ir.If | ir.Loop):
                within = within or self.depends((s.condition,))
            if isinstance(s, ir.Loop):
                within = within or s.continue_label in self.labels
            if isinstance(s, ir.Block | ir.Loop):
                within = within or s.label in self.labels
            self._note(s, inside)
            for inner in children(s):
                self._visit(inner, within)

    def _note(self, s: ir.Stmt, inside: bool) -> None:
        """Takes in one statement; ``inside``: whether it runs may depend on the block."""
        touched = pointers(s)
        placed = inside or self.depends(touched)
        roots = [self.facts.roots(p) for p in touched]
        if placed and any(not r or any(a.space is Space.SHARED for a in r) for r in roots):
            self.reached = True
        if isinstance(s, ir.Barrier | ir.Incomplete) and (inside or self.depends(used(s))):
            self.reached = True
        if isinstance(s, ir.Leave) and inside:
            self.labels.add(s.label)
        if isinstance(s, ir.Store | ir.Atomic | ir.Copy) and (placed or self.depends(used(s))):
            self.contents |= roots[0]
        var = assigned(s)
        if var is not None:
            held = isinstance(s, ir.Load | ir.Atomic) and bool(roots[0] & self.contents)
            if held or placed or self.depends(used(s)):
                self.variables.add(var.id)


def _is_block_index(e: ir.Expr) -> bool:
    return isinstance(e, ir.Builtin) and e.axis in ir.BID
