"""Locks and grid barriers of programmers' own making: forms that are read, and those one step beside them."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.walk import walk
from cuda_lsp.static.rewrites.grid_barriers import with_grid_barriers
from cuda_lsp.static.rewrites.locks import with_critical_sections
from cuda_lsp.static.rewrites.patterns import (
    Bare,
    Bind,
    Either,
    Many,
    Node,
    commuting,
    match,
    match_start,
    matches,
)

SPIN = """
__global__ void k(int* lock, volatile int* out, int n) {{
    if (threadIdx.x == 0) {{
        {take}
        {work}
        __threadfence();
        {give}
    }}
}}
"""
TAKE, WORK, GIVE = "while (atomicCAS(lock, 0, 1) != 0) {}", "out[0] += 1;", "atomicExch(lock, 0);"
GRID = """
__global__ void k(int* arrived, int* out) {{
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    {before}
    if ({one}) {{
        {fence}
        {arrive}
        {wait}
    }}
    __syncthreads();
}}
"""
PARTS = {
    "before": "__syncthreads();",
    "one": "threadIdx.x == 0",
    "fence": "__threadfence();",
    "arrive": "atomicAdd(arrived, 1);",
    "wait": "while (atomicAdd(arrived, 0) < gridDim.x) {}",
}


def has_lock(text: str) -> bool:
    body = with_critical_sections(lowered(text)).body
    return any(isinstance(s, ir.Block) and s.lock is not None for s in walk(body))


def has_grid_barrier(**parts: str) -> bool:
    kernel = with_grid_barriers(lowered(GRID.format(**{**PARTS, **parts})))
    return any(isinstance(s, ir.Barrier) and s.scope is ir.BarrierScope.GRID for s in walk(kernel.body))


@pytest.mark.parametrize(
    ("take", "give"),
    [
        (TAKE, GIVE),
        ("while (atomicExch(lock, 1)) {}", GIVE),
        ("while (atomicExch(lock, 1) == 1) {}", None),
        ("while (0 != atomicCAS(lock, 0, 1)) {}", "*(volatile int*)lock = 0;"),
        ("while (!(atomicCAS(lock, 0, 1) == 0)) {}", GIVE),
    ],
)
def test_a_lock_that_is_taken_by_an_atomic_is_a_region(take: str, give: str | None) -> None:
    if give is None:  # what it waits for is that the lock is not 1, which says nothing of who has it
        assert not has_lock(SPIN.format(take=take, work=WORK, give=GIVE))
    else:
        assert has_lock(SPIN.format(take=take, work=WORK, give=give))


@pytest.mark.parametrize(
    ("take", "work", "give"),
    [
        ("while (atomicCAS(lock, 0, 0) != 0) {}", WORK, GIVE),  # leaves it free
        ("while (atomicCAS(lock, 0, n) != 0) {}", WORK, GIVE),  # may leave it free
        ("while (atomicCAS(lock, 1, 2) != 0) {}", WORK, GIVE),  # waits for another value
        ("while (atomicAdd(lock, 1) != 0) {}", WORK, GIVE),  # counts
        ("while (atomicCAS(lock, 0, 1) != 0) { out[1] = 2; }", WORK, GIVE),  # rounds that fail store
        (TAKE, WORK, "atomicExch(lock, 2);"),  # not given back
        (TAKE, WORK, "atomicExch(lock + 1, 0);"),  # another one given back
        (TAKE, "if (n) return;", GIVE),  # a way out with the lock
        (TAKE, "__syncthreads();", GIVE),  # a barrier inside
        (TAKE, "lock += 1;", GIVE),  # no longer the same place
    ],
)
def test_beside_a_lock_nothing_is_a_region(take: str, work: str, give: str) -> None:
    assert not has_lock(SPIN.format(take=take, work=work, give=give))


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"one": "!threadIdx.x"},
        {"one": "threadIdx.x + blockDim.x * threadIdx.y == 0"},
        {"wait": "while (gridDim.x > *(volatile int*)arrived) {}"},
        {"wait": "while (*(volatile int*)arrived != gridDim.x) {}"},
        {"before": "__threadfence(); __syncthreads();", "fence": ""},
    ],
)
def test_a_counter_of_all_blocks_is_a_grid_barrier(parts: dict[str, str]) -> None:
    assert has_grid_barrier(**parts)


@pytest.mark.parametrize(
    "parts",
    [
        {"before": ""},
        {"fence": ""},
        {"fence": "__threadfence_block();"},
        {"one": "threadIdx.x == 1"},
        {"one": "threadIdx.x < 1"},
        {"one": "threadIdx.x - threadIdx.y == 0"},
        {"arrive": "atomicAdd(arrived, 2);"},
        {"arrive": "int mine = atomicAdd(arrived, 1); out[mine] = 1;"},
        {"wait": "while (atomicAdd(arrived, 0) <= gridDim.x) {}"},
        {"wait": "while (atomicAdd(arrived, 0) < gridDim.x - 1) {}"},
        {"wait": "while (atomicAdd(arrived, 1) < gridDim.x) {}"},
        {"wait": "while (atomicAdd(arrived + 1, 0) < gridDim.x) {}"},
        {"wait": "while (*arrived < gridDim.x) {}"},
    ],
)
def test_beside_a_grid_barrier_nothing_is_one(parts: dict[str, str]) -> None:
    assert not has_grid_barrier(**parts)


def test_patterns_ask_for_kinds_fields_and_lists() -> None:
    x, one = ir.Var("x", ir.const(0).type, 0), ir.const(1)
    less = ir.Binary(ir.BinaryOp.ADD, x, one, one.type)
    assert match(commuting(ir.BinaryOp.ADD, one, Bind("other")), less) == {"other": x}
    assert matches(Bare(x), ir.Cast(x, one.type))
    assert not matches(x, ir.Cast(x, one.type))
    assert not matches(Node(ir.Binary, op=ir.BinaryOp.SUB), less)
    assert matches(Either(Node(ir.Const, value=2), Node(ir.Const, value=1)), one)
    assert match_start((Many(Node(ir.Const)), Bind("last", Node(ir.Var))), (one, one, x, one)) == (
        3,
        {"last": x},
    )
    assert match_start((Node(ir.Const), Node(ir.Const)), (one,)) is None
    assert not matches((Node(ir.Const),), (one, one))
