"""Atomic operations: what each leaves in memory, and what its row says of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import examples

from cuda_lsp.ir.atomics import ATOMICS, AtomicOp, updated
from cuda_lsp.ir.types import INT32, UINT32
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

BITS = st.integers(0, 2**32 - 1)


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


@examples(100)
@given(st.sampled_from(sorted(AtomicOp, key=lambda op: op.value)), BITS, BITS, BITS)
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


LOCK = """#include <cuda/atomic>
#include <cuda/std/atomic>
__global__ void k({lock}* lock, int* d) {{
  if (threadIdx.x == 0) {{
    while (lock->{take}) {{}}
    d[0] += 1;
    lock->{give};
  }}
}}
void go({lock}* lock, int* d) {{ k<<<4, 64>>>(lock, d); }}"""
WORD = "cuda::atomic<int, cuda::thread_scope_device>"
FLAG = "cuda::std::atomic_flag"


@pytest.mark.parametrize(
    ("lock", "take", "give", "verdict"),
    [
        (WORD, "exchange(1) != 0", "store(0, cuda::std::memory_order_release)", Verdict.RACE_FREE),
        (WORD, "exchange(1) != 0", "store(0)", Verdict.RACE_FREE),
        (WORD, "exchange(1) != 0", "store(0, cuda::std::memory_order_relaxed)", Verdict.RACY),
        (FLAG, "test_and_set(cuda::std::memory_order_acquire)", "clear(cuda::std::memory_order_release)",
         Verdict.RACE_FREE),
        (FLAG, "test_and_set()", "clear(cuda::std::memory_order_relaxed)", Verdict.RACY),
    ],
)  # fmt: skip
def test_a_lock_that_is_given_back_with_release_order_orders(
    lock: str, take: str, give: str, verdict: Verdict
) -> None:
    (kernel,) = check_text(Path("/k.cu"), LOCK.format(lock=lock, take=take, give=give)).kernels
    assert kernel.verdict is verdict


@pytest.mark.parametrize("update", ["x.fetch_add(1)", "++x", "x += 2", "x |= 4", "x = 3", "x.exchange(1)"])
def test_updates_through_the_standard_atomics_do_not_race(update: str) -> None:
    text = f"""#include <cuda/std/atomic>
__global__ void k(int* d) {{ cuda::std::atomic_ref<int> x(d[0]); {update}; }}
void go(int* d) {{ k<<<4, 64>>>(d); }}"""
    (kernel,) = check_text(Path("/k.cu"), text).kernels
    assert (kernel.verdict, kernel.findings) == (Verdict.RACE_FREE, ())


@pytest.mark.parametrize("amount", ["1e300", "1e300f", "0.5f", "-__builtin_inff()"])
def test_a_sum_of_floats_may_grow_by_anything(amount: str) -> None:
    text = f"""__global__ void k(float* d) {{ atomicAdd(&d[threadIdx.x & 7], {amount}); }}
void go(float* d) {{ k<<<4, 64>>>(d); }}"""
    report = check_text(Path("/k.cu"), text)
    assert [kernel.verdict for kernel in report.kernels] == [Verdict.RACE_FREE], report.errors
