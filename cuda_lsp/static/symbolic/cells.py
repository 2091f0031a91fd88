"""Single elements of shared memory across barriers: what one thread stored for all, and counters.

An element that only one thread of the block stores to, between two barriers, holds behind the second what
that thread stored: the whole block reads one value, and knows which. An element that only atomic additions
touch since then is at least what it was; behind the next barrier it is more than every number drawn from it.

Elements are told apart by constant offsets; whatever may write elsewhere in the array makes all of it
unknown. Stores that no barrier orders are races by themselves: they need no regard here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import evolve

from cuda_lsp.ir.program import BDIM, TID, Array, Axis
from cuda_lsp.ir.types import INT32, Int, Type
from cuda_lsp.model import Space
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import Fact
from cuda_lsp.static.symbolic.lanes import of_lane, of_thread, of_warp
from cuda_lsp.static.symbolic.scene import Cell, Cells, Drawn, Scene, Stored, Versions, WarpCell
from cuda_lsp.static.symbolic.terms import Level, Op, Term
from cuda_lsp.static.symbolic.values import type_range

_MOST = INT32.maximum
"""Counters are taken not to exceed it."""


def _followed(scene: Scene, array: Array) -> bool:
    """Its elements lie under no other name, and are the block's own."""
    alone = not array.dynamic and array.may_alias is None and array not in scene.reached
    return array.space is Space.SHARED and isinstance(array.element, Int) and alone


def of_version(scene: Scene, array: Array, versions: Versions) -> Cells | None:
    """What is known of the array's elements in these versions of memory."""
    if not _followed(scene, array):
        return None
    return scene.cells.get((array, versions.get(array, (0, Level.BLOCK))[0]))


def _at(cells: Cells | None, offset: Term, size: int) -> tuple[dict[int, Cell], int] | None:
    """The cells but for those that an access there meets otherwise than as a whole; None: any of them."""
    if not offset.is_const:
        return None
    at = offset.value
    known = dict(cells.by_offset) if cells is not None else {}
    for other, cell in list(known.items()):
        if (other != at or cell.size != size) and other < at + size and at < other + cell.size:
            del known[other]
    return known, at


def store(
    scene: Scene, array: Array, offset: Term, size: int, value: Term | None, before: Cells | None
) -> None:
    """Notes a store that gave the array its version."""
    found = _at(before, offset, size)
    if found is None:
        if of_warp(scene, offset):
            only = WarpCell(size, Stored(scene.guard, value))
            _keep(scene, array, Cells(by_warp={offset: only}), scene.state.versions)
        return
    cells, at = found
    stored = Stored(scene.guard, value)
    old = cells.get(at) or Cell(size)
    cells[at] = Cell(size, old.known, None, (*old.stored, stored))
    _keep(scene, array, Cells(cells), scene.state.versions)


def raised(
    scene: Scene,
    array: Array,
    offset: Term,
    size: int,
    amount: Term,
    number: Term | None,
    before: Cells | None,
) -> Term | None:
    """Notes an atomic addition that gave the array its version; its result with what is known of it."""
    found = _at(before, offset, size)
    if found is None:
        return number
    cells, at = found
    old = cells.get(at) or Cell(size)
    least = old.least
    if old.known is not None and not old.stored and old.known.lo > -math.inf:
        least = int(old.known.lo)
    elif old.stored:
        least = None
    if number is not None and least is not None:
        name, level, operands = number.args
        number = t.apply(name, level, operands, max(number.lo, least), number.hi)
    drawn = old.drawn if number is None else (*old.drawn, Drawn(number, amount, scene.guard))
    # on top of a store, by the same thread or unordered: what is left is not known
    stored = (*old.stored, Stored(scene.guard, None)) if old.stored else ()
    cells[at] = Cell(size, None, least, stored, () if stored else drawn)
    _keep(scene, array, Cells(cells), scene.state.versions)
    return number


def barrier(scene: Scene, array: Array, before: Cells | None) -> None:
    """Notes a barrier of the block that gave the array its version."""
    if before is None:
        return
    warps = _by_one_lane(scene, array, before)
    after: dict[int, Cell] = {}
    for at, cell in before.by_offset.items():
        drawn = tuple(evolve(d, past=True) for d in cell.drawn)
        if not cell.stored:
            after[at] = evolve(cell, drawn=drawn)
            continue
        value = _by_one_thread(scene, array, at, cell) if len(cell.stored) == 1 else None
        if value is not None:
            after[at] = Cell(cell.size, value)
    _keep(scene, array, Cells(after, warps), scene.state.versions)


def warp_barrier(scene: Scene, array: Array, before: Cells | None, whole: bool) -> None:
    """Notes a barrier of fewer threads that gave the array its version; ``whole``: of every warp."""
    if before is not None:
        warps = _by_one_lane(scene, array, before) if whole else before.by_warp
        _keep(scene, array, evolve(before, by_warp=warps), scene.state.versions)


def merged(scene: Scene, array: Array, then: Versions, otherwise: Versions, after: Versions) -> None:
    """Notes two ways that met, which gave the array its version of ``after``."""
    one_way, other_way = (of_version(scene, array, versions) or Cells() for versions in (then, otherwise))
    ours, theirs = one_way.by_offset, other_way.by_offset
    cells: dict[int, Cell] = {}
    for at in ours.keys() | theirs.keys():
        one, other = ours.get(at), theirs.get(at)
        if one is None or other is None:
            only = one or other
            assert only is not None
            if not only.stored:
                continue  # touched on one way, unknown before
            cells[at] = evolve(only, known=None, least=None, drawn=())
        elif one.size == other.size:
            cells[at] = _either(one, other)
    _keep(scene, array, Cells(cells, _of_both(one_way.by_warp, other_way.by_warp)), after)


def _of_both(ours: Mapping[Term, WarpCell], theirs: Mapping[Term, WarpCell]) -> dict[Term, WarpCell]:
    """What is known of warps' own elements whichever way was gone; a store tells itself when it happens."""
    found = {place: cell for place, cell in ours.items() if theirs.get(place) is cell}
    for some, others in ((ours, theirs), (theirs, ours)):
        found |= {place: c for place, c in some.items() if place not in others and c.known is None}
    return found


def _either(one: Cell, other: Cell) -> Cell:
    if one is other:
        return one
    known = one.known if one.known is other.known else None
    bounds = [_least(cell) for cell in (one, other)]
    least = None if None in bounds else min(b for b in bounds if b is not None)
    stored = tuple(dict.fromkeys((*one.stored, *other.stored)))
    drawn = tuple(dict.fromkeys((*one.drawn, *other.drawn)))
    return Cell(one.size, known, least, stored, () if stored else drawn)


def _least(cell: Cell) -> int | None:
    if cell.stored:
        return None
    if cell.known is not None and cell.known.lo > -math.inf:
        return int(cell.known.lo)
    return cell.least


def content(scene: Scene, offset: Term, type: Type, value: Term, cells: Cells | None) -> Term:
    """``value``, which stands for what the element holds now, or something that is known to be equal."""
    mine = cells.by_warp.get(offset) if cells is not None else None
    if mine is not None and mine.known is not None and mine.size == type.size and isinstance(type, Int):
        return mine.known
    cell = cells.by_offset.get(offset.value) if cells is not None and offset.is_const else None
    if cell is None or cell.stored or cell.size != type.size or not isinstance(type, Int):
        return value
    if cell.known is not None:
        return cell.known
    if cell.least is None or not any(d.past for d in cell.drawn) or value.op is not Op.APPLY:
        return value
    name, level, operands = value.args
    total = t.apply(name, level, operands, max(value.lo, cell.least), min(value.hi, _MOST))
    for drawn in cell.drawn:
        if drawn.past and drawn.number.args[2][1:] == scene.iterators:
            _exceeds(scene, drawn, total)
    return total


def _exceeds(scene: Scene, drawn: Drawn, total: Term) -> None:
    """The counter has gone beyond every number that was drawn before a barrier."""
    name = drawn.number.args[0]
    formals = drawn.number.args[2]
    fact = t.or_(t.not_(drawn.guard), t.le(t.add(drawn.number, drawn.amount), total))
    earlier = scene.limits.get(name)
    scene.limits[name] = Fact(formals, t.and_(fact, earlier.fact) if earlier is not None else fact)


def _by_one_thread(scene: Scene, array: Array, at: int, cell: Cell) -> Term | None:
    """What the one thread that may have stored left there, for the whole block."""
    (stored,) = cell.stored
    if stored.value is None:
        return None
    surely = set(t.conjuncts(scene.guard))  # at the barrier, and so wherever this version is read
    conditions = [c for c in t.conjuncts(stored.guard) if c not in surely]
    coordinates: dict[Term, Term] = {}
    for axis in TID:
        x = scene.axes[axis]
        if x.is_const:
            continue
        fixed = next((c for c in conditions if _fixes(c, x) is not None), None)
        if fixed is None:
            return None
        conditions.remove(fixed)
        coordinates[x] = t.const(_fixes(fixed, x) or 0)
    value = of_thread(scene, coordinates, stored.value)
    there = (t.lt(coordinates[scene.axes[i]], scene.axes[n]) for i, n in zip(TID, BDIM, strict=True)
             if scene.axes[i] in coordinates)  # fmt: skip
    happens = t.and_(*there, *(of_thread(scene, coordinates, c) for c in conditions))
    number = scene.number()
    name = f"{array.name}[{array.id}]@{number}"
    scene.unknowns[name] = f"the contents of `{array.name}`"
    before = t.apply(name, Level.BLOCK, (t.const(at), *scene.iterators), *type_range(array.element))
    return t.ite(happens, value, cell.known if cell.known is not None else before)


def _by_one_lane(scene: Scene, array: Array, cells: Cells) -> dict[Term, WarpCell]:
    """The elements of warps, with what the one lane that may have stored left there."""
    found: dict[Term, WarpCell] = {}
    for place, cell in cells.by_warp.items():
        value = cell.stored.value
        if cell.known is not None:
            found[place] = cell
        if cell.known is not None or value is None:
            continue
        surely = set(t.conjuncts(scene.guard))
        conditions = [c for c in t.conjuncts(cell.stored.guard) if c not in surely]
        lane = scene.axes[Axis.LANE]
        fixed = next((c for c in conditions if _fixes(c, lane) is not None), None)
        if fixed is None:
            continue
        conditions.remove(fixed)
        at = t.const(_fixes(fixed, lane) or 0)
        happens = t.and_(*(of_lane(scene, at, c) for c in conditions))
        name = f"{array.name}[{array.id}]@{scene.number()}"
        scene.unknowns[name] = f"the contents of `{array.name}`"
        before = t.apply(name, Level.WARP, (place, *scene.iterators), *type_range(array.element))
        found[place] = evolve(cell, known=t.ite(happens, of_lane(scene, at, value), before))
    return found


def _fixes(condition: Term, x: Term) -> int | None:
    """The value of ``x`` that the condition demands."""
    if condition.op is not Op.EQ:
        if condition.op is Op.LE and condition.args[0] is x:
            return 0 if x.lo >= 0 else None
        return None
    sums = t.monomials(condition.args[0])
    factor, constant = sums.get((x,)), sums.get((), 0)
    if factor is None or len(sums) - (() in sums) != 1 or constant % factor:
        return None
    return -constant // factor


def _keep(scene: Scene, array: Array, cells: Cells, versions: Versions) -> None:
    if (cells.by_offset or cells.by_warp) and _followed(scene, array):
        scene.cells[array, versions[array][0]] = cells
