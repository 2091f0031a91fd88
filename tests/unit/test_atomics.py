"""Atomic operations: what each leaves in memory, and what its row says of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_lsp.ir.atomics import ATOMICS, AtomicOp, updated
from cuda_lsp.ir.types import INT32, UINT32

WORD = st.integers(0, 2**32 - 1)


def test_every_operation_has_a_row() -> None:
    assert set(ATOMICS) == set(AtomicOp)


@pytest.mark.parametrize(
    ("op", "old", "operands", "left"),
    [
        (AtomicOp.ADD, 2**32 - 1, [2], 1),
        (AtomicOp.SUB, 0, [1], 2**32 - 1),
        (AtomicOp.INC, 3, [3], 0),
        (AtomicOp.INC, 2, [3], 3),
        (AtomicOp.DEC, 0, [7], 7),
        (AtomicOp.DEC, 9, [7], 7),
        (AtomicOp.DEC, 5, [7], 4),
        (AtomicOp.CAS, 5, [5, 6], 6),
        (AtomicOp.CAS, 4, [5, 6], 4),
        (AtomicOp.LOAD, 4, [], 4),
    ],
)
def test_what_memory_holds_then(op: AtomicOp, old: int, operands: list[int], left: int) -> None:
    assert updated(ATOMICS[op], old, operands, UINT32) == left


def test_what_was_found_matters_but_for_those_that_overwrite_it() -> None:
    blind = {op for op in AtomicOp if updated(ATOMICS[op], None, [1, 2], INT32) is not None}
    assert blind == {AtomicOp.EXCH, AtomicOp.STORE}
    assert updated(ATOMICS[AtomicOp.CAS], 1, [1, None], INT32) is None


@given(st.sampled_from(sorted(AtomicOp, key=lambda op: op.value)), WORD, WORD, WORD)
def test_a_row_says_what_its_update_does(op: AtomicOp, old: int, a: int, b: int) -> None:
    row = ATOMICS[op]
    left = updated(row, old, [a, b], UINT32)
    if row.neutral is not None:
        assert updated(row, old, [UINT32.wrap(row.neutral)], UINT32) == old
    if not row.writes:
        assert left == old
    if row.selects:
        assert left in (old, a, b)
    if row.blind:
        assert left == updated(row, 0, [a, b], UINT32)
