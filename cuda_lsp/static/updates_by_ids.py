"""Updates of places that an array of ids tells: ids of rows differ, keys of what is counted do not.

``out[id[i]] += in[i]``: whoever gathers rows, works on them and puts them back has ids that differ. Not what
counts (``bins[key[i]] += 1``), compares with the place, cuts keys down (``key[i] % n``), has fewer keys than
elements (bytes), or follows edges (``y[row[k]] += v[k] * x[col[k]]``), along which much comes to one place.
What the row's own id leads to (``bias[kind[id[i]]]``, a leaf that its features choose) is the row's. Where
nothing stands beside the ids, and rows have more than what is updated (``x[id[i]] += dt * v[id[i]]``), they
list the rows that there is work for, each once: tables that a row's numbers lead to, and what all threads
read, may be read as well. Who reads the entry of another row (``x[id[i] + 1]``, ``x[id[i - 1]]``) meets it.
A product (``y[row[k]] *= v``) is no sum over edges: rows that are named are scaled, once each. So are rows
beside whose ids the bounds of their stretches stand (``listed_segments``), whatever is done with them, and
the columns of a row that a block's threads share out among them (``rows_of_a_block``). And where the host
chooses between this and an atomic update of the same (``if (coloured) y[id[i]] += v; else atomicAdd(…);``),
it knows when ids differ.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Axis, BinaryOp, Expr, Kernel, Stmt, Var
from cuda_lsp.ir.types import Int
from cuda_lsp.ir.walk import (
    assigned,
    children,
    expressions,
    inside,
    stripped,
    subexpressions,
    variables,
    walk,
)
from cuda_lsp.model import Mode, SourceRange
from cuda_lsp.static.data_flow import MERGING, Accessed, DataFlow, Source, data_flow
from cuda_lsp.static.linear import linear
from cuda_lsp.static.listed_segments import name_segments
from cuda_lsp.static.offset_arrays import bounding_arrays
from cuda_lsp.static.rows_by_ids import is_local, of_one_row
from cuda_lsp.static.rows_of_a_block import along_one_row
from cuda_lsp.static.rows_of_themselves import of_themselves

_SCALING = frozenset({BinaryOp.MUL, BinaryOp.DIV})
_OF_IDS = 4
"""Bytes of what may be as many ids as there are elements."""


def by_ids(flow: DataFlow, a: Accessed, b: Accessed, *, same_block: bool = False) -> bool:
    """Whether both are part of an update of places that ids tell, which are taken to differ.

    ``same_block``: by threads of one block.
    """
    if _chosen_by_host(flow, a) and _chosen_by_host(flow, b):
        return True
    if (valued := flow.slice.kernel.followed) is None:
        return _by_ids(flow, a, b, same_block)
    seen = data_flow(valued)  # where floating-point numbers of a row lead is known there
    ours, theirs = (_again(flow, seen, x) for x in (a, b))
    pairs = [(x, y) for x in ours for y in theirs if x.arrays & y.arrays]
    return bool(pairs) and all(_by_ids(seen, x, y, same_block) for x, y in pairs)


def _chosen_by_host(flow: DataFlow, a: Accessed) -> bool:
    """An argument decides between this and an atomic update of the same array, where ids tell the places."""
    return bool(flow.arrays_in(a.address)) and any(
        _is_updated(flow, a, way) and _has_atomics(flow, a.arrays, other)
        for s in flow.slice.statements
        if isinstance(s, ir.If) and s.otherwise and flow.of(s.condition) <= flow.params
        for way, other in ((s.then, s.otherwise), (s.otherwise, s.then))
    )


def _is_updated(flow: DataFlow, a: Accessed, way: Sequence[Stmt]) -> bool:
    """The access stands there, among both reads and stores of the same places, and no atomics."""
    own = [
        s for s in walk(way) if isinstance(s, ir.Load | ir.Store) and flow.slice.roots(s.pointer) & a.arrays
    ]
    here = any(s.site.range == a.site.range for s in own)
    return (
        here
        and {isinstance(s, ir.Store) for s in own} == {False, True}
        and not _has_atomics(flow, a.arrays, way)
    )


def _has_atomics(flow: DataFlow, arrays: frozenset[Array], way: Sequence[Stmt]) -> bool:
    return any(isinstance(s, ir.Atomic) and flow.slice.roots(s.pointer) & arrays for s in walk(way))


def _again(flow: DataFlow, seen: DataFlow, a: Accessed) -> list[Accessed]:
    """The access there; of a vector that is read part by part where it begins."""
    once, parts = ([x for x in f.at(a.site.range) if x.mode is a.mode] for f in (flow, seen))
    sums = [linear(x.pointer) for x in parts]
    rows = [{part: n for part, n in whole.items() if part is not None} for whole in sums]
    if len(once) > 1 or any(row != rows[0] for row in rows):
        return parts
    return sorted(parts, key=lambda x: linear(x.pointer).get(None, 0))[:1]


def _by_ids(flow: DataFlow, a: Accessed, b: Accessed, same_block: bool) -> bool:
    ids = flow.arrays_in(a.address)
    if len(ids) != 1 or not _one_each(flow, ids):
        return False
    along = along_one_row(flow, a, b, ids, same_block) or name_segments(flow, ids)
    if along and flow.arrays_in(b.address) == ids:
        return of_one_row(flow, a, b, ids)
    place = [x for x in flow.accesses if x.arrays & a.arrays]
    if not _chosen_alike(place) or not all(_led_by(flow, x) == _led_by(flow, a) for x in place):
        return False
    if not of_one_row(flow, a, b, ids):
        return False
    named = not ids & bounding_arrays(flow.slice.kernel)  # what tells where rows begin and end names none
    alone = _scales(flow, place) or of_themselves(flow, place)
    return (named and alone) or (not ids & flow.rows and _adds(flow, a, ids))


def _chosen_alike(place: Sequence[Accessed]) -> bool:
    """Whatever contents choose, nothing is stored by who has only looked at the place."""
    stored = {x.choices for x in place if x.mode.writes}
    return len(stored) <= 1 and all(x.choices >= least for x in place for least in stored)


def _led_by(flow: DataFlow, x: Accessed) -> frozenset[Source]:
    """What its address comes from but sizes: rows may lie in several planes of one allocation."""
    return x.address - flow.params


def _one_each(flow: DataFlow, ids: frozenset[Array]) -> bool:
    """There may be as many ids as elements, and none is made of several."""
    wide = all(isinstance(x.element, Int) and x.element.size >= _OF_IDS for x in ids)
    merging = (e for e in subexpressions(expressions(flow.slice.kernel.body)) if isinstance(e, ir.Binary))
    return wide and not any(e.op in MERGING and flow.of(e) & ids for e in merging)


def _adds(flow: DataFlow, a: Accessed, ids: frozenset[Array]) -> bool:
    """What stands beside the ids is added, or what the row leads to.

    Rows of several arrays may be put back by the same ids.
    """
    of_row = _told_by_row(flow, ids)
    if _is_work_list(flow, a, ids, of_row):
        return True
    beside = (x for x in flow.accesses if not x.arrays & a.arrays and not is_local(flow, x.pointer))
    others = [x for x in beside if not _of_row(flow, x, ids, of_row)]
    led = any(flow.arrays_in(x.address) & of_row and not x.arrays & of_row for x in flow.accesses)
    if not led and not any(x.mode is Mode.READ and not x.arrays & ids for x in others):
        return False
    before = _before(flow, ids)
    return not any(_led_apart(flow, x, before) and not _also_put_back(flow, x, a) for x in others)


def _before(flow: DataFlow, ids: frozenset[Array]) -> frozenset[Array]:
    """What leads to the ids themselves: ``id[list[first[i]]]`` stands where ``list`` and ``first`` say.

    Of a thread that goes through a row's ids (``for (k = first[i]; k < first[i + 1]; k++) y[id[k]] += …``)
    nothing does: these are edges.
    """
    found: frozenset[Array] = frozenset()
    pending = frozenset[Array]() if _in_rounds(flow, ids) else ids
    while pending:
        to = [x for x in flow.accesses if x.arrays & pending]
        pending = flow.arrays_in(frozenset(y for x in to for y in flow.carried_by(x.pointer))) - found - ids
        found |= pending
    return found


def _in_rounds(flow: DataFlow, ids: frozenset[Array]) -> bool:
    """They are read in a loop whose rounds contents of memory count."""
    counted = [
        x for x in flow.slice.statements if isinstance(x, ir.Loop) and flow.arrays_in(flow.of(x.condition))
    ]
    return any(
        isinstance(s, ir.Load) and flow.slice.roots(s.pointer) & ids for x in counted for s in inside(x)
    )


def _led_apart(flow: DataFlow, x: Accessed, before: frozenset[Array]) -> bool:
    """Other contents lead there than to the ids: it stands not beside them."""
    apart = flow.arrays_in(x.address) - before
    return bool(apart) and bool(flow.arrays_in(flow.carried_by(x.pointer)) - before)


def _is_work_list(flow: DataFlow, a: Accessed, ids: frozenset[Array], of_row: frozenset[Array]) -> bool:
    """All that is read is of the rows that the ids name, alike for all threads, or kept for each of them."""
    read = [x for x in flow.accesses if x.mode is Mode.READ and not x.arrays & (a.arrays | ids)]
    read = [x for x in read if not _is_kept_on(flow, x)]
    told = [flow.arrays_in(x.address) for x in read]
    alike = [_alike(flow, x) for x in read]
    ours = all(
        same or (arrays and (arrays == ids or arrays <= of_row))
        for arrays, same in zip(told, alike, strict=True)
    )
    return ours and ids in told


def _is_kept_on(flow: DataFlow, x: Accessed) -> bool:
    """The thread's own state, of random numbers perhaps: read and put back at its coordinates."""
    there = [y for y in flow.accesses if y.arrays & x.arrays]
    if flow.arrays_in(x.address) or not any(y.mode is Mode.WRITE for y in there):
        return False
    return all(y.address == x.address for y in there)


def _alike(flow: DataFlow, x: Accessed) -> bool:
    """All threads read the same places, as they do numbers of the whole problem."""
    own = any(isinstance(y, Array | Axis) for y in x.address)
    unknown = any(isinstance(e, ir.Unknown) for e in subexpressions((x.pointer,)))
    return x.arrays <= flow.single or not (own or unknown or x.arrays & flow.slice.written)


def _told_by_row(flow: DataFlow, ids: frozenset[Array]) -> frozenset[Array]:
    """Numbers that are read by the row's own id and lead elsewhere (``kind[id[i]]``): no other end.

    So are those that these lead to, by no coordinate of the thread: ``node = left[node]``.
    """
    of_row = flow.indices - flow.slice.written
    while True:
        kept = frozenset(array for array in of_row if _is_told(flow, array, ids, of_row))
        if kept == of_row:
            return of_row
        of_row = kept


def _is_told(flow: DataFlow, array: Array, ids: frozenset[Array], of_row: frozenset[Array]) -> bool:
    """Each place where it is read is told by the ids alone, or by such numbers."""
    for x in flow.accesses:
        if array in x.arrays:
            told, coordinates = flow.arrays_in(x.address), any(isinstance(y, Axis) for y in x.address)
            if coordinates or not told or (told != ids and not told <= of_row):
                return False
    return True


def _of_row(flow: DataFlow, x: Accessed, ids: frozenset[Array], of_row: frozenset[Array]) -> bool:
    """Such a number is read, or what it leads to."""
    told = flow.arrays_in(x.address)
    leads = bool(told) and (told <= of_row or (told == ids and x.arrays <= of_row))
    return x.mode is Mode.READ and leads


def _also_put_back(flow: DataFlow, x: Accessed, a: Accessed) -> bool:
    """What is accessed is written, at the address that ``a`` has in its array."""
    there = [y for y in flow.accesses if y.arrays & x.arrays]
    return any(y.mode is Mode.WRITE for y in there) and all(y.address == a.address for y in there)


def _scales(flow: DataFlow, place: Sequence[Accessed]) -> bool:
    """Whether all that is written there is a product with what was there."""
    stores = {x.site.range for x in place if x.mode.writes}
    kernel = flow.slice.kernel
    return bool(stores) and stores <= _products(kernel.followed or kernel)


def _products(kernel: Kernel) -> set[SourceRange]:
    """Places of stores of ``p[i] * x`` into ``p[i]``, and of nothing else."""
    found: dict[SourceRange, bool] = {}
    _note_products(kernel.body, {}, found)
    return {place for place, product in found.items() if product}


def _note_products(statements: Sequence[Stmt], read: dict[Var, Expr], found: dict[SourceRange, bool]) -> None:
    """``read``: from where variables were loaded."""
    for s in statements:
        if isinstance(s, ir.Load) and s.var is not None:
            read[s.var] = s.pointer
        if isinstance(s, ir.Assign):
            read.pop(s.var, None)
        if (changed := assigned(s)) is not None:
            for var in [v for v, pointer in read.items() if changed in variables(pointer)]:
                del read[var]
        if isinstance(s, ir.Store):
            product = any(read.get(factor) == s.pointer for factor in _factors(s.value))
            found[s.site.range] = found.get(s.site.range, True) and product
        for inner in children(s):
            _note_products(inner, dict(read), found)


def _factors(e: Expr) -> list[Var]:
    e = stripped(e)
    if not isinstance(e, ir.Binary) or e.op not in _SCALING:
        return []
    sides = (e.left,) if e.op is BinaryOp.DIV else (e.left, e.right)
    return [v for side in sides if isinstance(v := stripped(side), Var)]
