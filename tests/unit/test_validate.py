"""What validation finds in a malformed program (``conftest`` asks it of every kernel that a test lowers)."""

from __future__ import annotations

import pytest
from attrs import evolve
from extract_kernels import lowered

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.types import BOOL, INT32, INT64
from cuda_lsp.ir.validate import violations
from cuda_lsp.model import Scope, Site, Space

KERNEL = lowered("__global__ void k(int* a, int n) { a[threadIdx.x] = n; }")
SITE = Site(KERNEL.range)
N = KERNEL.params[1]
ELSEWHERE = ir.AddressOf(ir.Array("s", Space.SHARED, INT32, (4,), 99))
ONE = ir.const(1, INT64)


def region(label: int, *body: ir.Stmt, lock: ir.Expr | None = None) -> ir.Block:
    return ir.Block(label, body, SITE, None if lock is None else ir.Lock(lock, Scope.DEVICE))


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (ir.Assign(N, ir.const(1)), "parameter n is assigned"),
        (ir.Assign(ir.Var("x", INT32, 50), ONE), "gets a value of type"),
        (ir.Store(ELSEWHERE, ir.const(1), INT32, SITE), "is not listed"),
        (ir.Copy(ELSEWHERE, ELSEWHERE, ONE, SITE), "is not listed"),
        (ir.Barrier(ir.BarrierScope.OBJECT, SITE, object=ELSEWHERE), "is not listed"),
        (region(60, lock=ELSEWHERE), "is not listed"),
        (ir.Store(ONE, ir.const(1), INT32, SITE), "through something of type"),
        (ir.If(ir.Cast(N, INT32), (), (), SITE), "a condition of type"),
        (ir.Leave(70, SITE), "outside its region"),
        (ir.Loop(71, 72, (), ir.TRUE, (), (ir.Leave(72, SITE),), SITE), "outside its region"),
        (region(80, region(80)), "share a label"),
        (ir.Assume(ir.Binary(ir.BinaryOp.AND, N, ir.TRUE, BOOL), SITE), "&& of"),
        (ir.Assume(ir.Binary(ir.BinaryOp.LT, ONE, ONE, INT32), SITE), "< is int32"),
    ],
)
def test_it_is_told(statement: ir.Stmt, told: str) -> None:
    found = violations(evolve(KERNEL, body=(*KERNEL.body, statement)))
    assert any(told in sentence for sentence in found)


def test_what_is_left_of_a_broken_call_is_not_stored_as_a_record() -> None:
    lowered("__global__ void k(float4* out, float3 v) { out[threadIdx.x] = make_float4(v, 1.0f); }")
