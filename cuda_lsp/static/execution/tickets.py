"""Who drew which number from a counter, and what that orders: tickets and the *last block done*.

An atomic addition hands every number to one thread only, so what only the holder of a number does, one
thread (or the block that learns of it) does alone. Whoever drew the last number runs after all others
have drawn; what they did before a fence before their own draw is then visible (CUDA C++ Programming Guide,
"Memory Fence Functions"; fence cumulativity as in the PTX memory model). The counter is taken to start at 0,
one that counts down to end there. A barrier of the block carries a fence's effect from the threads that
stored to the one that draws only when they fenced themselves before it, or that thread fences behind it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import evolve

from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import Atomic, BinaryOp, Builtin, Const
from cuda_lsp.ir.walk import stripped
from cuda_lsp.static.execution.lanes import by_lane
from cuda_lsp.static.execution.trace import Access, FenceEvent, Path, Ticketing
from cuda_lsp.static.execution.values import (
    Data,
    Drawn,
    Flags,
    Lanes,
    Scalar,
    Spread,
    Ticket,
    identity,
    spread_of,
)

# ------------------------------------------------------------------------------------- counters


def direction(s: Atomic) -> str | None:
    """Which way an atomic moves its counter: up, down, round (``atomicInc``), "" neither; None: unknown."""
    if s.op is AtomicOp.INC:
        return "round"
    if not s.row.writes:
        return ""
    amount = stripped(s.operands[0]) if s.operands and s.row.moves else None
    if isinstance(amount, Builtin):
        by = 1
    elif isinstance(amount, Const) and float(amount.value).is_integer():  # not a half, nor infinity
        by = signed(int(amount.value), s.type.size)
    else:
        return None
    return "" if by == 0 else "up" if by * s.row.moves > 0 else "down"


def signed(number: int, size: int) -> int:
    """``number`` as it moves a counter of ``size`` bytes: 0xffffffff is -1."""
    half = 1 << (8 * size - 1)
    return (number + half) % (2 * half) - half


# ------------------------------------------------------------------------------ tests of a number


def moved(ticket: Ticket, op: BinaryOp, other: Scalar, first: bool) -> tuple[int, int] | None:
    """(factor, summand) after ``op`` with ``other``; ``first``: the number is the left operand."""
    if ticket.line is None or not isinstance(other, int):
        return None
    factor, summand = ticket.line
    if op is BinaryOp.MUL:
        return factor * other, summand * other
    if op is BinaryOp.ADD:
        return factor, summand + other
    return (factor, summand - other) if first else (-factor, other - summand)


def tested(op: BinaryOp, a: Scalar, b: Scalar, blocks: int) -> Drawn | None:
    """What the truth of ``a op b`` says about who drew a number."""
    for value, other in ((a, b), (b, a)):
        if not isinstance(value, Data):
            continue
        if value.drawn is not None:
            found = _combined(value.drawn, op, other)
        elif value.ticket is not None and op in (BinaryOp.EQ, BinaryOp.NE):
            found = _compared(value.ticket, other, op is BinaryOp.NE, blocks)
        else:
            found = None
        if found is not None:
            return found
    return None


def _compared(ticket: Ticket, other: Scalar, unequal: bool, blocks: int) -> Drawn | None:
    if spread_of(other, blocks) < ticket.within:
        return None
    number: object = ("compared", ticket.base, identity(other))
    if ticket.line is not None and isinstance(other, int):
        factor, summand = ticket.line
        number = (other - summand) // factor if (other - summand) % factor == 0 else number
    return Drawn(ticket.family, number, ticket.within, ticket.by_block, unequal)


def _combined(drawn: Drawn, op: BinaryOp, other: Scalar) -> Drawn | None:
    """A test of a number and ``other`` under a logical operator, or compared with a truth value."""
    if op in (BinaryOp.EQ, BinaryOp.NE):
        if type(other) is not int or other not in (0, 1):
            return None
        same = (op is BinaryOp.EQ) == bool(other)
        return drawn if same else evolve(drawn, negated=not drawn.negated)
    joins = op is BinaryOp.OR if drawn.negated else op is BinaryOp.AND
    if not joins:
        return None
    if isinstance(other, Data):
        return evolve(drawn, holds=False)
    also: Lanes = np.asarray(other).astype(bool)
    return evolve(drawn, holds=np.asarray(drawn.holds) & (~also if drawn.negated else also))


def negated(value: Data) -> Drawn | None:
    """The test that ``!value`` is."""
    return None if value.drawn is None else evolve(value.drawn, negated=not value.drawn.negated)


def chosen(condition: Data, then: Scalar, otherwise: Scalar) -> Drawn | None:
    """``condition ? x : 0`` that is not 0 tells that the condition held; ``condition ? 1 : 0`` is it."""
    drawn = condition.drawn
    if drawn is None or drawn.negated or type(otherwise) is not int or otherwise != 0:
        return None
    return drawn if type(then) is int and then else evolve(drawn, holds=False)


def selected(lanes: Flags, then: Scalar, otherwise: Scalar) -> Drawn | None:
    """The test ``then`` in ``lanes``, 0 in all others (as ``a && b`` is evaluated)."""
    drawn = then.drawn if isinstance(then, Data) else None
    if drawn is None or drawn.negated or isinstance(otherwise, Data):
        return None
    if np.any(np.not_equal(otherwise, 0) & ~lanes):
        return None
    return evolve(drawn, holds=np.asarray(drawn.holds) & lanes)


def if_outcome(condition: Data, outcome: bool) -> Drawn | None:
    """The number that was drawn where ``condition`` comes out as ``outcome``."""
    drawn = condition.drawn
    return drawn if drawn is not None and outcome is not drawn.negated else None


# ----------------------------------------------------------------------------------- whose number


def same(a: Drawn | None, b: Drawn | None) -> bool:
    """Both are true for who drew one and the same number."""
    return a is not None and b is not None and (a.family, a.number) == (b.family, b.number)


def unique(path: Path, drawn: Drawn) -> bool:
    """No number of the counter is handed out twice."""
    found = list(_draws(path, drawn))
    total = _total(path, found)
    limits = [d.limit for d in found if d.limit is not None]
    return bool(found) and all(total is not None and limit >= total - 1 for limit in limits)


def surely_drawn(path: Path, drawn: Drawn) -> bool:
    """Somebody draws this number in every execution."""
    found = list(_draws(path, drawn))
    total = _total(path, found)
    if total is None or not isinstance(drawn.number, int) or any(d.down for d in found):
        return False
    step = found[0].step
    return unique(path, drawn) and drawn.number % step == 0 and 0 <= drawn.number // step < total


def _is_last(path: Path, drawn: Drawn) -> bool:
    found = list(_draws(path, drawn))
    total = _total(path, found)
    if total is None or not isinstance(drawn.number, int) or not unique(path, drawn):
        return False
    step = found[0].step
    return drawn.number == (step if found[0].down else (total - 1) * step)


def _draws(path: Path, drawn: Drawn) -> Iterator[Ticketing]:
    return (t for t in path.tickets if t.family == drawn.family)


def _total(path: Path, found: list[Ticketing]) -> int | None:
    """How many numbers the grid draws; None: not known, or the steps differ."""
    if not found or len({(d.step, d.down) for d in found}) > 1:
        return None
    others = (t for t in path.tickets if t.array == found[0].array and t.family != found[0].family)
    if any(not (t.fixed and found[0].fixed) for t in others):
        return None  # they may use the same counter
    counts = [d.draws for d in found if d.draws is not None]
    return sum(counts) if len(counts) == len(found) else None


def settle(path: Path) -> None:
    """What only the holder of a number does that somebody surely draws, surely happens."""
    for i, a in enumerate(path.accesses):
        if a.drawn is not None and a.given is not None and surely_drawn(path, a.drawn):
            path.accesses[i] = evolve(a, must=a.given)


def inevitable(path: Path, choices: int) -> bool:
    """Every one of the first ``choices`` conditions is true for some block in every execution."""
    taken = zip(path.choices[:choices], path.chosen, strict=False)
    return all(
        drawn is not None and outcome is not drawn.negated and surely_drawn(path, drawn)
        for (outcome, _), drawn in taken
    )


# --------------------------------------------------------------------------------------- order


def keeps_apart(path: Path, a: Access, b: Access, between_blocks: bool) -> bool:
    """Whether the numbers drawn exclude that ``a`` and ``b`` race."""
    needed = Spread.GRID if between_blocks else Spread.BLOCK
    if a.drawn is not None and same(a.drawn, b.drawn) and a.drawn.within >= needed:
        alone = between_blocks or not (a.drawn.by_block or (b.drawn is not None and b.drawn.by_block))
        if alone and unique(path, a.drawn):
            return True
    return any(
        last.drawn is not None
        and last.drawn.within >= needed
        and _is_last(path, last.drawn)
        and any(_published(path, other, draw) for draw in _draws(path, last.drawn))
        for last, other in ((a, b), (b, a))
    )


def _published(path: Path, other: Access, draw: Ticketing) -> bool:
    """``other`` is the draw itself, or is visible to whoever sees that this number was drawn."""
    if other.sequence == draw.sequence and other.mode.atomic:
        return True
    if other.sequence >= draw.sequence:
        return False
    who = by_lane(other.may)
    blocks = len(draw.clock)
    active: Flags = np.asarray(np.reshape(who, (blocks, -1)).any(axis=1))
    alone = not (who & ~by_lane(draw.must)).any()
    for fence in path.fences:
        if not other.sequence < fence.sequence < draw.sequence:
            continue
        own = not (who & ~_covers(fence, other)).any()
        if own and (alone or _before(fence.clock, draw.clock, active)):
            return True
        if _before(other.clock, fence.clock, active) and not (by_lane(draw.must) & ~fence.must).any():
            return True
    return False


def _before(a: tuple[int, ...], b: tuple[int, ...], active: Flags) -> bool:
    """A barrier of the block separates them in every active block."""
    return all(x < y for x, y, wanted in zip(a, b, active, strict=True) if wanted)


def _covers(fence: FenceEvent, other: Access) -> Flags:
    """Lanes that pass the fence whenever they execute ``other``."""
    return by_lane(fence.may if fence.doubt is not None and fence.doubt is other.doubt else fence.must)


def draws_of_grid(must: Flags, may: Flags, blocks: int, of_grid: int) -> int | None:
    """How many lanes of the grid execute a statement; None where the executed blocks do not tell."""
    if must is not may and not np.array_equal(must, may):
        return None
    counts = np.reshape(must, (-1, blocks, must.shape[-1] // blocks)).sum(axis=(0, 2))
    return int(counts[0]) * of_grid if (counts == counts[0]).all() else None
