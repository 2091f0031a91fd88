"""Walking a kernel program: every node's children, and what a walk leaves out."""

from __future__ import annotations

import attrs
import pytest

from cuda_lsp.ir import program as ir
from cuda_lsp.ir import walk
from cuda_lsp.ir.types import BOOL, INT32, INT64, UINT32
from cuda_lsp.model import Position, Site, SourceRange, Space

SITE = Site(SourceRange("k.cu", Position(1, 1), Position(1, 2)), "k")
ARRAY = ir.Array("a", Space.GLOBAL, INT32, (), 1)
N, J, K = (ir.Var(name, INT32, number) for number, name in enumerate("njk"))
POINTER = ir.AddressOf(ARRAY)

NODES = (
    ir.Const(1),
    N,
    ir.Builtin(ir.Axis.TID_X),
    ir.Unary(ir.UnaryOp.NEG, N, INT32),
    ir.Binary(ir.BinaryOp.ADD, N, J, INT32),
    ir.Select(ir.TRUE, N, J, INT32),
    ir.Cast(N, INT64),
    ir.Intrinsic("__shfl_xor_sync", (ir.Const(-1, UINT32), N, J), INT32),
    ir.Unknown("data", INT32, 1),
    POINTER,
    ir.Offset(POINTER, ir.Cast(N, INT64)),
)


@pytest.mark.parametrize("node", NODES, ids=lambda e: type(e).__name__)
def test_the_operands_are_all_the_expressions_that_a_node_holds(node: ir.Expr) -> None:
    fields = [getattr(node, f.name) for f in attrs.fields(type(node))]
    flat = [x for f in fields for x in (f if isinstance(f, tuple) else (f,))]
    assert walk.operands(node) == tuple(x for x in flat if isinstance(x, ir.Expr))
    assert walk.mapped(node, lambda e: e) == node


def test_every_kind_of_expression_is_tried_above() -> None:
    assert {type(e) for e in NODES} == set(ir.Expr.__args__)  # type: ignore[attr-defined]


def test_a_part_of_many_uses_is_visited_once() -> None:
    e: ir.Expr = N
    for _ in range(200):  # 2**200 paths lead to ``n``
        e = ir.Binary(ir.BinaryOp.ADD, e, e, INT32)
    assert sum(1 for _ in walk.subexpressions((e,))) == 201


def test_what_enter_refuses_is_not_entered() -> None:
    sum_ = ir.Binary(ir.BinaryOp.ADD, N, ir.Cast(J, INT32), INT32)
    parts = list(walk.subexpressions((sum_,), lambda e: not isinstance(e, ir.Cast)))
    assert N in parts
    assert J not in parts


def test_the_root_of_a_pointer_is_behind_casts_and_offsets() -> None:
    moved = ir.Cast(ir.Offset(ir.Offset(POINTER, ir.Const(4, INT64)), ir.Const(8, INT64)), INT64)
    assert walk.root(moved) == POINTER
    assert walk.root_array(moved) is ARRAY
    assert walk.root_array(ir.Offset(K, ir.Const(4, INT64))) is None


def test_stores_through_variables_are_not_evident() -> None:
    inner = ir.Store(POINTER, N, INT32, SITE)
    outer = ir.If(ir.Cast(N, BOOL), (inner,), (ir.Store(K, N, INT32, SITE),), SITE)
    assert walk.written_arrays((outer,)) == {ARRAY, None}
    assert list(walk.walk((outer,))) == [outer, inner, outer.otherwise[0]]
