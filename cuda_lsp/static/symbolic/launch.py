"""The launch as symbols: which built-in variables are numbers, which are free, and what binds them."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import BDIM, BID, GDIM, TID, Axis, Var
from cuda_lsp.ir.types import Int, Pointer
from cuda_lsp.ir.walk import read_expressions, subexpressions
from cuda_lsp.model import Dim3, LaunchConfig
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic import whole_grid
from cuda_lsp.static.symbolic.affine import copy_of, linear_thread, shared_level
from cuda_lsp.static.symbolic.flat_grids import folded_axes
from cuda_lsp.static.symbolic.intervals import Relation
from cuda_lsp.static.symbolic.terms import Level, Term
from cuda_lsp.static.symbolic.values import PointerValue, Target, Value, type_range
from cuda_lsp.static.symbolic.wraps import UNTOLD_BLOCKS

_ONE = ir.Const(1, ir.Builtin(Axis.GDIM_X).type)


@frozen(eq=False)
class Setting:
    """A launch to prove things for. ``axes``: the built-ins; ``arguments``: the parameters.

    ``bounds``: what binds one thread's symbols. ``launch`` None: every launch of the target.
    """

    launch: LaunchConfig | None
    axes: Mapping[Axis, Term]
    arguments: Mapping[Var, Value]
    bounds: Term
    warp_size: int
    used: frozenset[Axis] = frozenset()  # built-ins that the kernel mentions
    free: Mapping[str, Var] = field(factory=dict[str, Var])  # scalar parameters without a value, by name
    cluster: Dim3 | None = None


_Axes = tuple[dict[Axis, Term], list[Term], set[Axis]]
"""The built-ins so far, what binds them, and those that the kernel mentions."""


def setting(kernel: ir.Kernel, launch: LaunchConfig | None, gpu: GpuModel) -> Setting:
    """The symbols of a known launch, or (None) of every launch along the axes the kernel uses."""
    used = _axes_used(kernel)
    axes: dict[Axis, Term] = {Axis.WARP_SIZE: t.const(gpu.warp_size)}
    bounds: list[Term] = []
    block = launch.block if launch is not None else (None, None, None)
    grid = (launch.grid or launch.grid_axes) if launch is not None else (None, None, None)
    folded = folded_axes(kernel, grid)
    cluster = kernel.cluster or (1, 1, 1)
    asked = used | {GDIM[i] for i in range(3) if cluster[i] > 1}
    asked = asked | {GDIM[i] for i in (launch.made_axes if launch is not None else ())}
    for i in range(3):
        threads = min(gpu.max_block_dim[i], gpu.max_threads_per_block)
        _bind((axes, bounds, used), TID[i], BDIM[i], Level.THREAD, block[i], threads, threads - 1)
        blocks, known = gpu.max_grid_dim[i], 1 if i in folded and cluster[i] == 1 else grid[i]
        _bind((axes, bounds, asked), BID[i], GDIM[i], Level.BLOCK, known, blocks, UNTOLD_BLOCKS)
        bounds.append(t.eq(t.floor_mod(axes[GDIM[i]], cluster[i]), t.ZERO))
    if launch is None:
        volume = t.mul(t.mul(axes[BDIM[0]], axes[BDIM[1]]), axes[BDIM[2]])
        bounds.append(t.le(volume, t.const(gpu.max_threads_per_block)))
    axes[Axis.LANE] = t.floor_mod(linear_thread(axes), gpu.warp_size)
    arguments, free = _arguments(kernel, launch, axes)
    told = t.and_(*bounds)
    return Setting(launch, axes, arguments, told, gpu.warp_size, frozenset(used), free, kernel.cluster)


def _bind(
    where: _Axes, index: Axis, extent: Axis, level: Level, known: int | None, most: int, last: int
) -> None:
    """A coordinate and its extent: ``known``, 1 where nobody asks along y or z, else free.

    ``most``: what the target allows as extent. ``last``: the largest index of a free extent.
    """
    axes, bounds, used = where
    if known is not None:
        axes[extent] = t.const(known)
        axes[index] = t.symbol(index.value, level, 0, known - 1)
    elif extent not in (Axis.BDIM_X, Axis.GDIM_X) and not used & {index, extent}:
        axes[extent], axes[index] = t.ONE, t.ZERO
    else:
        axes[extent] = t.symbol(extent.value, Level.GRID, 1, most)
        axes[index] = t.symbol(index.value, level, 0, last)
        bounds.append(t.lt(axes[index], axes[extent]))


def _axes_used(kernel: ir.Kernel) -> set[Axis]:
    """Built-ins that the kernel mentions anywhere, but to ask whether an extent is 1 (``grid_barriers``)."""

    def enter(e: ir.Expr) -> bool:
        if isinstance(e, ir.Binary) and e.op is ir.BinaryOp.EQ and e.right == _ONE:
            return not isinstance(e.left, ir.Builtin)
        return True

    parts = subexpressions(whole_grid.without_line(list(read_expressions(kernel.body))), enter)
    return {e.axis for e in parts if isinstance(e, ir.Builtin)}


def _arguments(
    kernel: ir.Kernel, launch: LaunchConfig | None, axes: Mapping[Axis, Term]
) -> tuple[dict[Var, Value], dict[str, Var]]:
    known: Mapping[str, int] = launch.arguments if launch is not None else {}
    extents: Mapping[str, int] = kernel.extents if launch is None else {}
    pointees = {array.param: array for array in kernel.arrays if array.param is not None}
    arguments: dict[Var, Value] = {}
    free: dict[str, Var] = {}
    for var in kernel.params:
        if isinstance(var.type, Pointer):
            arguments[var] = PointerValue((Target(t.TRUE, pointees.get(var), t.ZERO),))
        elif var.name in known and isinstance(var.type, Int):
            arguments[var] = t.const(var.type.wrap(known[var.name]))
        elif var.name in extents and isinstance(var.type, Int):
            arguments[var] = axes[BDIM[extents[var.name]]]
        else:
            arguments[var] = t.symbol(var.name or f"p{var.id}", Level.GRID, *type_range(var.type))
            if isinstance(var.type, Int):
                free[var.name] = var
    return arguments, free


def _cluster(where: Setting) -> list[Term]:
    """Which cluster of the grid the generic thread is in."""
    extents = where.cluster or (1, 1, 1)
    return [t.floor_div(where.axes[axis], extent) for axis, extent in zip(BID, extents, strict=True)]


def rank(where: Setting) -> Term:
    """The number of the generic thread's block in its cluster."""
    total = t.ZERO
    for axis, extent in reversed(list(zip(BID, where.cluster or (1, 1, 1), strict=True))):
        total = t.add(t.mul(total, t.const(extent)), t.floor_mod(where.axes[axis], extent))
    return total


def related(where: Setting, relation: Relation) -> Term:
    """Two different threads of the launch that relate as asked; FALSE when there are none."""
    shared = shared_level(relation)
    memos: tuple[dict[Term, Term], dict[Term, Term]] = ({}, {})

    def both(term: Term) -> tuple[Term, Term]:
        return copy_of(term, 1, shared, memos[0]), copy_of(term, 2, shared, memos[1])

    told_apart = TID if relation.same_block else BID
    parts = [*both(where.bounds)]
    parts.append(t.or_(*(t.not_(t.eq(*both(where.axes[axis]))) for axis in told_apart)))
    if relation.same_cluster is not None:
        together = t.and_(*(t.eq(*both(n)) for n in _cluster(where)))
        parts.append(together if relation.same_cluster else t.not_(together))
    linear = linear_thread(where.axes)
    if relation.within is not None:
        parts.append(t.eq(*both(t.floor_div(linear, relation.within))))
    if relation.across is not None:
        parts.append(t.not_(t.eq(*both(t.floor_div(linear, relation.across)))))
    return t.and_(*parts)
