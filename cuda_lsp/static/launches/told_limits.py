"""Values that keep to what the host says of a kernel's parameters: ``if (k <= 32) select<32><<<…>>>(k)``.

Parameters are moved into the limits that comparisons set for them one by one; for what else is said
(``if (n % 4 == 0) …; else rows<<<…>>>(n)``) numbers near by are tried. Whether all holds in the end is for
those who use the values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field

from cuda_lsp.ir import ops
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import BDIM, BinaryOp, Expr, Kernel
from cuda_lsp.ir.types import Int
from cuda_lsp.ir.walk import stripped, variables
from cuda_lsp.model import LaunchConfig

_SWAPPED = {
    BinaryOp.LT: BinaryOp.GT,
    BinaryOp.LE: BinaryOp.GE,
    BinaryOp.GT: BinaryOp.LT,
    BinaryOp.GE: BinaryOp.LE,
    BinaryOp.EQ: BinaryOp.EQ,
    BinaryOp.NE: BinaryOp.NE,
}
_ROUNDS = 2  # a parameter that is compared with one that was moved itself
_NEAR = (1, 2, 4, 8, 16, 3, 5)
_MOST_MOVED = 4


@define
class _Limits:
    """Of one parameter, both included, and single numbers that it is not."""

    least: float = -math.inf
    most: float = math.inf
    excluded: set[int] = field(factory=set[int])

    def add(self, op: BinaryOp, value: int) -> None:
        if op in (BinaryOp.LT, BinaryOp.LE, BinaryOp.EQ):
            self.most = min(self.most, value - (op is BinaryOp.LT))
        if op in (BinaryOp.GT, BinaryOp.GE, BinaryOp.EQ):
            self.least = max(self.least, value + (op is BinaryOp.GT))
        if op is BinaryOp.NE:
            self.excluded.add(value)

    def nearest(self, value: int) -> int:
        """The nearest that is allowed; the number itself where none is."""
        if self.least > self.most:
            return value
        inside = int(max(self.least, min(self.most, value)))
        near = (inside + step * way for step in range(len(self.excluded) + 1) for way in (1, -1))
        return next((n for n in near if self.least <= n <= self.most and n not in self.excluded), value)


def as_told(kernel: Kernel, launch: LaunchConfig, values: Mapping[str, int]) -> dict[str, int]:
    """The values; those of parameters that the launch leaves open are moved to where the host allows them."""
    found = dict(values)
    told = (*kernel.directives.assumptions, *kernel.said_of(launch))
    for _ in range(_ROUNDS):
        limits: dict[str, _Limits] = {}
        for condition in told:
            for name, op, value in _comparisons(condition, launch, found):
                limits.setdefault(name, _Limits()).add(op, value)
        moved = {n: limits[n].nearest(found[n]) for n in limits if n in found and n not in launch.arguments}
        if all(found[name] == value for name, value in moved.items()):
            break
        found |= moved
    return _near(told, launch, found)


def _near(told: Sequence[Expr], launch: LaunchConfig, values: dict[str, int]) -> dict[str, int]:
    """The values, some of them moved a little where more of what is told holds then."""
    for _ in range(_MOST_MOVED):
        broken = _broken(told, launch, values)
        names = dict.fromkeys(v.name for e in broken for v in variables(e) if v.name not in launch.arguments)
        tried = ({**values, name: at} for name in names if name in values for at in _beside(values[name]))
        better = next((other for other in tried if len(_broken(told, launch, other)) < len(broken)), None)
        if better is None:
            return values
        values = better
    return values


def _beside(value: int) -> Iterator[int]:
    yield from (value + by for by in _NEAR)
    yield from (value - by for by in _NEAR if value >= by)


def _broken(told: Sequence[Expr], launch: LaunchConfig, values: Mapping[str, int]) -> list[Expr]:
    return [e for e in told if _value(e, launch, values) == 0]


def _comparisons(
    e: Expr, launch: LaunchConfig, values: Mapping[str, int]
) -> Iterator[tuple[str, BinaryOp, int]]:
    """Of parameters with numbers, all of which hold where the condition does."""
    e = stripped(e)
    if not isinstance(e, ir.Binary):
        return
    if e.op is BinaryOp.AND:
        yield from _comparisons(e.left, launch, values)
        yield from _comparisons(e.right, launch, values)
    elif e.op is BinaryOp.OR:
        for one, other in ((e.left, e.right), (e.right, e.left)):
            if _value(one, launch, {}) == 0:
                yield from _comparisons(other, launch, values)
    elif e.op in _SWAPPED:
        left, right = stripped(e.left), stripped(e.right)
        for side, other, op in ((left, right, e.op), (right, left, _SWAPPED[e.op])):
            value = _value(other, launch, values) if isinstance(side, ir.Var) else None
            if isinstance(side, ir.Var) and value is not None:
                yield side.name, op, value
                return  # of two parameters the first one follows


def _value(e: Expr, launch: LaunchConfig, values: Mapping[str, int]) -> int | None:
    """Of what numbers, the values and the block's extents make; None: there is more in it."""
    match e:
        case ir.Const():
            return e.value if isinstance(e.value, int) else None
        case ir.Var():
            return values.get(e.name)
        case ir.Builtin():
            return launch.block[BDIM.index(e.axis)] if e.axis in BDIM else None
        case ir.Cast():
            value = _value(e.operand, launch, values)
            return e.type.wrap(value) if value is not None and isinstance(e.type, Int) else None
        case ir.Unary():
            value = _value(e.operand, launch, values)
            type = e.operand.type
            return (
                ops.UNARY[e.op].python(value, type) if value is not None and isinstance(type, Int) else None
            )
        case ir.Binary():
            one, other = (_value(part, launch, values) for part in (e.left, e.right))
            if ops.BINARY[e.op].logical:
                settled = int(e.op is BinaryOp.OR)
                truths = [None if value is None else int(value != 0) for value in (one, other)]
                return settled if settled in truths else None if None in truths else 1 - settled
            if one is None or other is None or not isinstance(e.left.type, Int):
                return None
            return ops.BINARY[e.op].exact(one, other, e.left.type)
        case _:
            return None
