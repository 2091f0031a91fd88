"""The atomic operations, one row each: what they leave in memory, and what follows from that.

Source: CUDA C++ Programming Guide, "Atomic Functions"; PTX ISA, ``atom``. A new operation is a row here
and a declaration in ``frontend/headers/atomics.h``. How far an atomic reaches is no matter of the row.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from attrs import frozen

from cuda_lsp.ir.types import Float, Int


class AtomicOp(enum.Enum):
    """By the names of PTX, and ``sub``, ``load``, ``store``."""

    ADD = "add"
    SUB = "sub"
    INC = "inc"
    DEC = "dec"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    XOR = "xor"
    EXCH = "exch"
    CAS = "cas"
    LOAD = "load"
    STORE = "store"


Update = Callable[[int, Sequence[int]], int]
"""What memory held, the operands → what it holds then, before it is wrapped; all in the type's range."""


@frozen
class AtomicRow:
    """One operation.

    ``cuda``: its name behind ``atomic``. ``fetch``: C++ and nvcc know it as ``fetch_…``. ``members``: other
    names in C++'s atomic classes. ``neutral``: the operand with which it changes nothing. ``moves``: which
    way its operand (``inc``: 1) moves a counter. ``swaps``: gives what it found for another value, so that
    it may take a lock. ``selects``: what it leaves is what it found or an operand. ``reads``, ``writes``:
    in general.
    """

    op: AtomicOp
    update: Update
    operands: int = 1
    cuda: str = ""
    fetch: bool = False
    members: tuple[str, ...] = ()
    neutral: int | None = None
    moves: int = 0
    swaps: bool = False
    selects: bool = False
    reads: bool = True
    writes: bool = True

    @property
    def blind(self) -> bool:
        """What it leaves does not depend on what it found."""
        return not self.reads or self.op is AtomicOp.EXCH


_Op, _Row = AtomicOp, AtomicRow
# fmt: off
ATOMICS: Mapping[AtomicOp, AtomicRow] = {row.op: row for row in (
    _Row(_Op.ADD, lambda old, x: old + x[0], cuda="Add", fetch=True, members=("operator+=", "operator++"),
         neutral=0, moves=1),
    _Row(_Op.SUB, lambda old, x: old - x[0], cuda="Sub", fetch=True, members=("operator-=", "operator--"),
         neutral=0, moves=-1),
    _Row(_Op.INC, lambda old, x: 0 if old >= x[0] else old + 1, cuda="Inc", moves=1),
    _Row(_Op.DEC, lambda old, x: x[0] if old == 0 or old > x[0] else old - 1, cuda="Dec"),
    _Row(_Op.MIN, lambda old, x: min(old, x[0]), cuda="Min", fetch=True, selects=True),
    _Row(_Op.MAX, lambda old, x: max(old, x[0]), cuda="Max", fetch=True, selects=True),
    _Row(_Op.AND, lambda old, x: old & x[0], cuda="And", fetch=True, members=("operator&=",), neutral=-1),
    _Row(_Op.OR,  lambda old, x: old | x[0], cuda="Or",  fetch=True, members=("operator|=",), neutral=0),
    _Row(_Op.XOR, lambda old, x: old ^ x[0], cuda="Xor", fetch=True, members=("operator^=",), neutral=0),
    _Row(_Op.EXCH, lambda old, x: x[0], cuda="Exch", members=("exchange", "test_and_set"),
         swaps=True, selects=True),
    _Row(_Op.CAS, lambda old, x: x[1] if old == x[0] else old, operands=2, cuda="CAS",
         members=("compare_exchange_strong", "compare_exchange_weak"), swaps=True, selects=True),
    _Row(_Op.LOAD, lambda old, x: old, operands=0, members=("load", "test"), writes=False),
    _Row(_Op.STORE, lambda old, x: x[0], members=("store", "clear", "operator="), reads=False),
)}
# fmt: on
_OF_REALS = frozenset({_Op.ADD, _Op.SUB, _Op.MIN, _Op.MAX, _Op.EXCH, _Op.LOAD, _Op.STORE})


def updated_real(
    row: AtomicRow, old: float | None, operands: Sequence[float | None], type: Float
) -> float | None:
    """``updated`` of a floating-point number."""
    known = [x for x in operands[: row.operands] if x is not None]
    if row.op not in _OF_REALS or len(known) < row.operands or (old is None and not row.blind):
        return None
    update = cast("Callable[[float, Sequence[float]], float]", row.update)
    return type.rounded(update(0.0 if old is None else old, known))


def updated(row: AtomicRow, old: int | None, operands: Sequence[int | None], type: Int) -> int | None:
    """What an atomic leaves where it found ``old``, in ``type``'s range; None: not known."""
    known = [x for x in operands[: row.operands] if x is not None]
    if len(known) < row.operands or (old is None and not row.blind):
        return None
    return type.wrap(row.update(0 if old is None else old, known))
