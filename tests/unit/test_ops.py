"""The operation table: its evaluators agree with one another."""

import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_lsp.ir.ops import BINARY, INTRINSICS, UNARY, NotExpressible, dtype_of, intrinsic_lanes, pretty
from cuda_lsp.ir.program import Axis, Binary, BinaryOp, Builtin, UnaryOp, Var, const
from cuda_lsp.ir.types import INT32, UINT32, Int

TYPES = [Int(8), Int(8, False), Int(16), INT32, UINT32, Int(64), Int(64, False)]


@st.composite
def operands(draw: st.DrawFn) -> tuple[Int, int, int]:
    type = draw(st.sampled_from(TYPES))
    small = st.integers(max(type.minimum, -9), 9)
    value = st.one_of(small, st.integers(type.minimum, type.maximum))
    return type, draw(value), draw(value)


def bits(value: int, type: Int) -> z3.BitVecRef:
    return z3.BitVecVal(value, type.bits)


def number(value: object, type: Int) -> int:
    folded = z3.simplify(value)
    if z3.is_bool(folded):
        return int(z3.is_true(folded))
    if z3.is_bv(folded):
        return folded.as_signed_long() if type.signed else folded.as_long()
    return folded.as_long()


@pytest.mark.parametrize("op", list(BinaryOp))
@settings(max_examples=60, deadline=None)
@given(case=operands())
def test_numpy_and_python_agree(op: BinaryOp, case: tuple[Int, int, int]) -> None:
    type, a, b = case
    row = BINARY[op]
    lanes = [np.array([v, v], dtype_of(type)) for v in (a, b)]
    assert row.numpy(lanes[0], lanes[1], type).tolist() == [row.python(a, b, type)] * 2
    assert row.numpy(lanes[0], b, type).tolist() == [row.python(a, b, type)] * 2


@pytest.mark.parametrize("op", [op for op in BinaryOp if not BINARY[op].logical])
@settings(max_examples=60, deadline=None)
@given(case=operands())
def test_bit_vectors_and_python_agree(op: BinaryOp, case: tuple[Int, int, int]) -> None:
    type, a, b = case
    if op in (BinaryOp.DIV, BinaryOp.REM) and b == 0:
        return  # undefined in C
    value = BINARY[op].z3_bits(bits(a, type), bits(b, type), type)
    assert number(value, type) == BINARY[op].python(a, b, type)


@pytest.mark.parametrize("op", [op for op in BinaryOp if not BINARY[op].logical])
@settings(max_examples=60, deadline=None)
@given(case=operands())
def test_integers_and_python_agree_without_wraparound(op: BinaryOp, case: tuple[Int, int, int]) -> None:
    type, a, b = case
    if (op in (BinaryOp.DIV, BinaryOp.REM) and b == 0) or (
        op in (BinaryOp.SHL, BinaryOp.SHR) and not 0 <= b < type.bits
    ):
        return
    try:
        value = number(BINARY[op].z3_int(z3.IntVal(a), z3.IntVal(b), type), type)
    except NotExpressible:
        return
    if type.minimum <= value <= type.maximum:
        assert value == BINARY[op].python(a, b, type)


@pytest.mark.parametrize("op", [UnaryOp.NEG, UnaryOp.INV])
@settings(max_examples=40, deadline=None)
@given(case=operands())
def test_unary_evaluators_agree(op: UnaryOp, case: tuple[Int, int, int]) -> None:
    type, a, _ = case
    expected = UNARY[op].python(a, type)
    assert UNARY[op].numpy(np.array([a], dtype_of(type)), type).tolist() == [expected]
    assert number(UNARY[op].z3_bits(bits(a, type), type), type) == expected


def test_division_truncates_towards_zero() -> None:
    assert BINARY[BinaryOp.DIV].python(-7, 2, INT32) == -3
    assert BINARY[BinaryOp.REM].python(-7, 2, INT32) == -1


@pytest.mark.parametrize(
    ("name", "args", "type", "expected"),
    [
        ("__popc", (0xF0,), UINT32, 4),
        ("__clz", (1,), INT32, 31),
        ("__ffs", (8,), INT32, 4),
        ("__brev", (1,), UINT32, 1 << 31),
        ("__mul24", (3, 5), INT32, 15),
        ("__umulhi", (1 << 31, 4), UINT32, 2),
        ("abs", (-3,), INT32, 3),
    ],
)
def test_intrinsics(name: str, args: tuple[int, ...], type: Int, expected: int) -> None:
    assert INTRINSICS[name](args, type) == expected
    lanes = [np.array([a], dtype_of(type)) for a in args]
    assert intrinsic_lanes(name, lanes, type, type).tolist() == [expected]


def test_pretty_uses_only_needed_parentheses() -> None:
    tid, n = Builtin(Axis.TID_X), Var("n", UINT32, 1)
    one = const(1, UINT32)
    inner = Binary(BinaryOp.ADD, tid, one, UINT32)
    assert pretty(Binary(BinaryOp.REM, inner, n, UINT32)) == "(threadIdx.x + 1) % n"
    product = Binary(BinaryOp.MUL, tid, n, UINT32)
    assert pretty(Binary(BinaryOp.ADD, product, one, UINT32)) == "threadIdx.x * n + 1"
    assert pretty(Binary(BinaryOp.SUB, n, Binary(BinaryOp.SUB, n, one, UINT32), UINT32)) == "n - (n - 1)"
