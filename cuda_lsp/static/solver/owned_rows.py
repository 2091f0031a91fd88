"""Races that need an array to count more than a row has room for.

``for (j = 0; j < count[row]; j++) out[row * 64 + j] = x;`` gives each row elements of its own where no count
is above 64: who owns a row knows what it holds. A witness whose two threads write in different rows of a
known pitch has such a count, and is a doubt about the array.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import BID, TID, Axis, BinaryOp, Expr, Kernel, Var
from cuda_lsp.ir.types import Pointer
from cuda_lsp.ir.walk import accesses, assigned, expressions, root_array, stripped, subexpressions, walk
from cuda_lsp.model import LaunchConfig, Site, Space, Witness
from cuda_lsp.static.findings.conditions import Contents, Overfull, SomeContents
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.linear import Sum, combined, linear

_BELOW = {BinaryOp.LT, BinaryOp.LE}
_ABOVE = {BinaryOp.GT, BinaryOp.GE}
_MOST_STEPS = 8
"""Variables looked through."""


@frozen
class _Rows:
    """``outer``: what numbers the rows, of so many ``columns``, which ``array`` bounds."""

    outer: Mapping[Axis, int]
    columns: int
    array: str


def within_their_rows(kernel: Kernel, launch: LaunchConfig, found: Diagnosis) -> Diagnosis:
    """The race; a doubt where only a count above what rows have room for makes it."""
    hangs = any(isinstance(c, Contents | SomeContents) for c in found.conditions)
    if not found.certain or found.kind is None or not hangs or found.witness is None:
        return found
    text = _Text(kernel)
    rows = [text.rows(site, launch) for site in (found.site, *(r.site for r in found.related[:1]))]
    first = rows[0]
    if first is None or any(r != first for r in rows) or not _part(first, found.witness):
        return found
    return evolve(found.doubted(Overfull(first.array, first.columns)), conditions=())


def _part(rows: _Rows, witness: Witness) -> bool:
    """The two threads of the witness are in different rows."""
    blocks = witness.blocks or ((0, 0, 0), (0, 0, 0))  # of one block, which cancels
    numbers = [
        sum(factor * _coordinate(axis, thread, block) for axis, factor in rows.outer.items())
        for thread, block in zip(witness.threads, blocks, strict=True)
    ]
    return numbers[0] != numbers[-1]


def _coordinate(axis: Axis, thread: Sequence[int], block: Sequence[int]) -> int:
    return thread[TID.index(axis)] if axis in TID else block[BID.index(axis)]


class _Text:
    """What addresses of a kernel are sums of, and which of these data bound."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._values: dict[Var, list[ir.Stmt]] = defaultdict(list)
        for s in walk(kernel.body):
            if (var := assigned(s)) is not None:
                self._values[var].append(s)

    def rows(self, site: Site, launch: LaunchConfig) -> _Rows | None:
        """Of the one access to global memory that stands there; None: its address is none of such rows."""
        here = [
            pointer
            for s in walk(self._kernel.body)
            for pointer, _, at in accesses(s)
            if at.range == site.range
        ]
        array = root_array(here[0]) if len(here) == 1 else None
        if array is None or array.space is not Space.GLOBAL:
            return None
        parts = {part: n for part, n in self._sum(linear(here[0])).items() if not _is_place(part)}
        found = (rows for part in parts if part is not None if (rows := self._bounded(part, parts, launch)))
        return next(found, None)

    def _bounded(self, part: Expr, parts: Sum, launch: LaunchConfig) -> _Rows | None:
        """The rows, where ``part`` is their column and memory bounds it, at a place that each row has."""
        unit = parts[part]
        outer = {x.axis: n for x, n in parts.items() if isinstance(x, ir.Builtin) and n > unit}
        inner = {x.axis: n for x, n in parts.items() if isinstance(x, ir.Builtin) and 0 < n < unit}
        others = [
            x for x in parts
            if x is not None and x != part
            if not isinstance(x, ir.Builtin) or x.axis not in outer | inner
        ]  # fmt: skip
        pitch = math.gcd(*outer.values())
        if unit <= 0 or others or parts.get(None) or not outer or pitch % unit or pitch == unit:
            return None
        if len(outer) + len(inner) + isinstance(part, ir.Builtin) < sum(_several(launch)):
            return None  # several threads have one row and column
        extents: dict[Axis, int] = dict(zip(TID, launch.block, strict=True))
        if not inner.keys() <= extents.keys():
            return None
        furthest = sum(n * (extents[axis] - 1) for axis, n in inner.items())
        if furthest + min((unit, *inner.values())) > unit:
            return None  # columns are wider than the steps between them
        for load in self._limits(part):
            place = {x for x in self._sum(linear(load.pointer)) if x is not None and not _is_place(x)}
            owners = {x for x in parts if isinstance(x, ir.Builtin) and x.axis in outer}
            array = root_array(load.pointer)
            if array is not None and place == owners:
                return _Rows({axis: n // pitch for axis, n in outer.items()}, pitch // unit, array.name)
        return None

    def _limits(self, part: Expr) -> Iterator[ir.Load]:
        """The loads that a part is asked to be below."""
        compared = (
            e for e in subexpressions(expressions(self._kernel.body))
            if isinstance(e, ir.Binary) and e.op in _BELOW | _ABOVE
        )  # fmt: skip
        for e in compared:
            low, high = (e.left, e.right) if e.op in _BELOW else (e.right, e.left)
            if self._sum(linear(low)) == {part: 1}:
                limit = stripped(high)
                values = self._values.get(limit, []) if isinstance(limit, Var) else []
                yield from (s for s in self._looked_through(values) if isinstance(s, ir.Load))

    def _looked_through(self, values: list[ir.Stmt]) -> list[ir.Stmt]:
        for _ in range(_MOST_STEPS):
            value = (
                stripped(values[0].value) if len(values) == 1 and isinstance(values[0], ir.Assign) else None
            )
            if not isinstance(value, Var):
                break
            values = self._values.get(value, [])
        return values

    def _sum(self, whole: Sum) -> Sum:
        """By coordinates, as far as variables are assigned once."""
        for _ in range(_MOST_STEPS):
            known = {
                x: values[0].value
                for x in whole
                if isinstance(x, Var)
                if len(values := self._values.get(x, [])) == 1 and isinstance(values[0], ir.Assign)
            }
            if not known:
                break
            rest = {x: n for x, n in whole.items() if x not in known}
            for x, value in known.items():
                rest = dict(combined(rest, linear(value), whole[x]))
            whole = rest
        return whole


def _is_place(part: Expr | None) -> bool:
    return isinstance(part, ir.AddressOf) or isinstance(getattr(part, "type", None), Pointer)


def _several(launch: LaunchConfig) -> Iterator[bool]:
    """Along which axes a launch has more than one thread, or block."""
    grid = launch.grid or (2, 1, 1)
    return (n > 1 for n in itertools.chain(launch.block, grid))
