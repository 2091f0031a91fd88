"""Where pointers of a launch stand in one buffer: ``k<<<…>>>(d, d + n, n)``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from cuda_lsp.ir.program import STRETCH, Binary, BinaryOp, Cast, Const, Expr, Kernel, Var

_COMPUTED: Mapping[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: operator.add,
    BinaryOp.SUB: operator.sub,
    BinaryOp.MUL: operator.mul,
}


def shared_places(kernel: Kernel, scalars: Mapping[str, int], other: int) -> dict[str, tuple[str, int]]:
    """The parameter in whose buffer another one stands, and how many bytes from where that one points.

    ``other``: what scalars are that nothing tells. Places in front of a buffer's begin are left out,
    and those in another object.
    """
    found: dict[str, tuple[str, int]] = {}
    for name, (first, behind) in kernel.behind.items():
        count = _computed(behind, scalars, other)
        if count is not None and 0 <= count < STRETCH:
            found[name] = first, count
    return found


def _computed(e: Expr, scalars: Mapping[str, int], other: int) -> int | None:
    """Of sums and products of parameters, which the host computes; None: of something else."""
    match e:
        case Const(value=int(value)):
            return value
        case Var():
            return scalars.get(e.name, other)
        case Cast():
            return _computed(e.operand, scalars, other)
        case Binary():
            left, right = (_computed(side, scalars, other) for side in (e.left, e.right))
            work = _COMPUTED.get(e.op)
            return None if left is None or right is None or work is None else work(left, right)
        case _:
            return None
